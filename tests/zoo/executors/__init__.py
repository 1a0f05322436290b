"""Interfaces that predict for rows, each as an object with the same methods."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from zoo.specimens import Answers, Specimen, as_float32
from zoo.tables import Table


class Executor(ABC):
    """One interface to a compiled model."""

    name: str
    refuses = True  # True if it raises `RefusedError` for rows without an answer; otherwise it leaves them uncertified
    float32 = False  # True if it sees only float32 rows
    settles = True  # True if uncertified labels, too, equal the source's
    share = 1.0  # fraction of all entries' tables for which a selection asks it
    always: tuple[str, ...] = ()  # names of entries for which every selection asks it
    by_entry = False  # True if `share` is a fraction of entries, not tables, because opening a model is expensive
    refuses_itself = True  # True if it raises `RefusedError` with the text of `why_not` for sources it cannot serve
    names_row = True  # True if its refusals name the row
    twin: Executor | None = None  # another interface that is documented to give bit-identical results

    def prepare(self, built: Callable[[str, Callable[[Path], None]], Path]) -> None:
        """Build what the executor needs by `built(name, fill)`, which returns a folder that is filled only once."""
        return

    def may_answer(self, specimen: Specimen, row: Table) -> bool:
        """Return whether the executor, as documented, may answer a row that the source refuses."""
        return False

    def why_not(self, specimen: Specimen) -> str:
        """Return why the interface cannot serve a source, or "" if it can; skips are reported."""
        return ""

    def seen(self, specimen: Specimen, table: Table) -> Table:
        """Return the table with the values that the interface sees; the source answers the same table."""
        return as_float32(table) if self.float32 else table

    def takes(self, specimen: Specimen, table: Table) -> bool:
        """Return whether the interface accepts the table's container and dtypes."""
        return True

    @abstractmethod
    def answers(self, specimen: Specimen, table: Table) -> Answers:
        """Answer all rows; raise `RefusedError` if the interface refuses them."""


def is_drawn(what: str, share: float, seed: int) -> bool:
    """Return whether `what` belongs to a seeded random sample that contains the fraction `share`."""
    return zlib.crc32(f"{seed} {what}".encode()) < share * 2.0**32


# Factor for shares below 1, so that the README's test command finishes in the stated time.
_LEFT = 0.4


def selected(executors: Iterable[Executor], entry: str, number: int, seed: int) -> Iterator[Executor]:
    """Yield the executors that answer an entry's table in a selection: a seeded random sample of them."""
    for executor in executors:
        drawn = entry if executor.by_entry else f"{entry}, {number}"
        share = executor.share if executor.share >= 1 else _LEFT * executor.share
        if entry in executor.always or is_drawn(f"{drawn}: {executor.name}", share, seed):
            yield executor
