"""Interfaces that answer rows, each as one object with the same two methods."""

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
    refuses = True  # whether it raises `RefusedError` for rows without an answer; else these are not certified
    float32 = False  # whether it sees rows of float32 alone
    settles = True  # whether labels that are not certified are the source's, too
    share = 1.0  # of the tables of all entries, how many it is asked about in a selection
    always: tuple[str, ...] = ()  # names of entries that it is asked about in any selection
    by_entry = False  # whether that is a share of the entries: what costs is to open a model
    refuses_itself = True  # whether it raises `RefusedError` with the words of `why_not` where it serves no source
    names_row = True  # whether its refusals say which row they are about
    twin: Executor | None = None  # another interface that the documentation promises the same bits of

    def prepare(self, built: Callable[[str, Callable[[Path], None]], Path]) -> None:
        """Build what it needs by `built(name, fill)`, which returns a folder that is filled once."""
        return

    def may_answer(self, specimen: Specimen, row: Table) -> bool:
        """Return whether the documentation says that it answers a row that the source refuses."""
        return False

    def why_not(self, specimen: Specimen) -> str:
        """Return why the interface cannot serve a source, "" if it can; skips are reported."""
        return ""

    def seen(self, specimen: Specimen, table: Table) -> Table:
        """Return the table whose values the interface sees: the source is asked about these."""
        return as_float32(table) if self.float32 else table

    def takes(self, specimen: Specimen, table: Table) -> bool:
        """Return whether such a table can be passed to the interface: its container, its dtypes."""
        return True

    @abstractmethod
    def answers(self, specimen: Specimen, table: Table) -> Answers:
        """Answer all rows; raise `RefusedError` if the interface refuses them."""


def is_drawn(what: str, share: float, seed: int) -> bool:
    """Whether something is in a seeded share."""
    return zlib.crc32(f"{seed} {what}".encode()) < share * 2.0**32


# Of the shares below 1 that executors name, what the time of the README's test command leaves.
_LEFT = 0.7


def selected(executors: Iterable[Executor], entry: str, number: int, seed: int) -> Iterator[Executor]:
    """Yield those that a selection asks about a table of an entry: a seeded share of them."""
    for executor in executors:
        drawn = entry if executor.by_entry else f"{entry}, {number}"
        share = executor.share if executor.share >= 1 else _LEFT * executor.share
        if entry in executor.always or is_drawn(f"{drawn}: {executor.name}", share, seed):
            yield executor
