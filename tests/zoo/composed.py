"""The test of one randomly composed source, or of one zoo entry with new rows, through the interfaces.

A composed source is determined by a seed. It is random (random_sources.py) or an entry of the zoo with other
parameters, rows, preceding steps or wrappers, and sometimes it is changed after fit in a way that its type does not
show (tampering.py). The first fault of each kind is reduced (shrinking.py) to a few lines of Python.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from comparison import answers
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from approxsvm.errors import ApproxSVMError
from approxsvm.features import TaylorFeatures
from zoo.draw import Draw
from zoo.executors import Executor, selected
from zoo.executors.in_python import BATCH
from zoo.hostile import hostile_tables
from zoo.properties import compiling_faults, estimator_faults, interface_faults, source_faults
from zoo.random_data import random_data, varied_data
from zoo.random_sources import Made, random_source, varied_source
from zoo.shrinking import Case, as_code, shrunk
from zoo.sources import ROWS, TARGETS, specimen
from zoo.specimens import Entry, RefusedError, Specimen
from zoo.tables import Table, random_tables
from zoo.tampering import parts_of

_SHRINKING_SECONDS = 20.0
_FEW_ROWS = 7
_ASKED = 8  # approximate number of interfaces asked about each composed source
_SCRIPTS = 4  # number of faults of one kind that each process reduces
ESTIMATOR = "the estimator"  # stands for its methods and verify, which are tested in addition to the executors
# Errors of sources for rows that compiled models accept: sparse rows, zero rows, arrays instead of named columns, and
# duplicate names of unused columns; also errors raised by NumPy, pandas and SciPy if the source itself fails.
_MAY_BE_ANSWERED = (
    r"[Ss]parse|minimum of 1 is|0 sample|only supported for dataframes|could not broadcast|blocks must|ufunc|read-only|"
    r"multiply sequence|[Bb]ig-endian|Buffer dtype|Cannot cast|Expected unique column names|"
    r"operation .mul. not supported"
)
_AS_THEY_ARE = rf"{ESTIMATOR}|batch|calls|predict_one"  # interfaces that receive column names unchanged
# Differences that are not faults for a composed source, because no answer is guaranteed.
_NO_PROMISE = re.compile(r"(?:^|: )(?:refused|other methods): (.*)", re.DOTALL)
Say = Callable[[str], None]


@dataclass(frozen=True)
class Fault:
    """An answer that is wrong."""

    place: str  # the executor, or another place that was asked
    words: str

    def __str__(self) -> str:
        return f"{self.place}: {self.words}"

    @property
    def kind(self) -> str:
        """The place and the first words, without numbers; usually equal for faults with the same cause."""
        return f"{self.place}: {re.sub(r'[-+]?[0-9][0-9.e+-]*', '#', self.words)[:60]}"


@dataclass(frozen=True)
class Judged:
    """The test result for one source."""

    verdict: str  # "compiled", "not fitted", "refused", or "source has no answer"
    reason: str = ""  # reason for the verdict
    n_answers: int = 0  # rows times interfaces
    faults: tuple[Fault, ...] = ()
    refused: tuple[str, ...] = ()  # reasons why interfaces refuse rows that the source answers


@dataclass(frozen=True)
class Attempt:
    """One source, with a description of how it was made and the test result."""

    index: int  # its number, as in --number
    source: str
    form: str = ""  # form of the training rows
    changes: tuple[str, ...] = ()  # changes made after fitting
    judged: Judged = field(default_factory=lambda: Judged("not fitted"))
    script: str = ""  # Python code that reproduces the first fault


@dataclass(frozen=True)
class Zoo:
    """The entries and executors under test."""

    entries: Sequence[Entry]
    executors: Sequence[Executor]


def _no_word(place: str) -> None:
    """Ignore the place."""


@contextmanager
def quiet() -> Iterator[Path]:
    with warnings.catch_warnings(), np.errstate(all="ignore"), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        yield Path(folder)


# --- entries, and composed sources


def entry_attempt(zoo: Zoo, seed: int, index: int, say: Say = _no_word, known: Counter[str] | None = None) -> Attempt:
    """Test one entry on hostile tables from a seed; `say` is called with each place before it is tested."""
    n = len(zoo.entries)
    entry, seed = zoo.entries[int(Draw(seed).rng.permutation(n)[index % n])], seed + index // n
    with quiet() as folder:
        say("source")
        one = specimen(entry, folder)
        n_answers, found, at = entry_faults(one, zoo.executors, seed, say)
        script = ""
        if found and known is not None and known[found[0].kind] < _SCRIPTS:
            known[found[0].kind] += 1
            script = (
                f"# {seed=}, entry {entry.name!r}, rows {at.code()[:1000]}\n# {found[0].place}: {found[0].words}\n\n"
            )
            if isinstance(one.source, BaseEstimator) and _is_plain(entry) and not _NO_PROMISE.search(found[0].words):
                made = Made(clone(one.source), TARGETS[entry.target], {})
                case = Case(made, one.table, (), (at,), dict(entry.options), True, ())
                script = f"# {seed=}, entry {entry.name!r}\n{_script(case, found[0], say, zoo.executors)}"
        judged = Judged("compiled", "", n_answers, tuple(found))
    return Attempt(index, f"entry {entry.name}", one.table.form, (), judged, script)


def entry_faults(
    one: Specimen, executors: Sequence[Executor], seed: int, say: Say = _no_word
) -> tuple[int, list[Fault], Table]:
    """Return the number of checked answers, all faults of an entry, and the first fault's table."""
    say("compile")
    n_answers, at = 0, one.table
    found = [Fault("compile", words) for words in (*compiling_faults(one), *source_faults(one, one.table))]
    for number, table in enumerate(hostile_tables(one, seed=seed)):
        for place in (ESTIMATOR, *selected(executors, one.name, number, seed)):
            say(_name(place))
            more = []
            try:
                more += [Fault(_name(place), _without_name(one, words)) for words in _asked(one, place, table)]
            except Exception as error:  # a fault of this interface alone
                more.append(Fault(_name(place), f"{type(error).__name__}: {error}"))
            at = table if more and not found else at
            n_answers, found = n_answers + len(table.values), found + more
    return n_answers, found, at


def composed_attempt(
    zoo: Zoo, seed: int, index: int, say: Say = _no_word, known: Counter[str] | None = None
) -> Attempt:
    """Test one composed source, and reduce its first fault whose kind is still rare in `known`."""
    draw = Draw(seed, index)
    with quiet() as folder:
        say("source")
        try:
            made, source, data, options = _drawn(draw, zoo, folder)
        except Exception as error:
            return Attempt(index, "", judged=Judged("not fitted", type(error).__name__))
        text = " ".join(repr(source).split())
        changes = tuple((seed, index, k) for k in range(draw.one(0, 0, 0, 1, 1, 2)))
        share = _ASKED / len(zoo.executors)
        asks = (ESTIMATOR, *(one.name for one in zoo.executors if one is BATCH or draw.maybe(share * one.share)))
        case = Case(made, data.table, changes, (), options or _options(draw, source), draw.maybe(0.7), asks)
        source, words = case.changed(source)
        case = replace(case, asked=tuple(random_tables(draw, source, data.table, data.rows, data.middle)))
        judged = judge(case, source, zoo.executors, say)
        script = ""
        for fault in [one for one in judged.faults if known is not None and known[one.kind] < _SCRIPTS][:1]:
            assert known is not None
            known[fault.kind] += 1
            script = f"# {seed=}, model {index}\n{_script(case, fault, say, zoo.executors)}"
        return Attempt(index, text, data.table.form, words, judged, script)


def _drawn(draw: Draw, zoo: Zoo, folder: Path) -> tuple[Made, Any, Any, dict[str, Any]]:
    """Return a random source or a varied entry, the fitted estimator, its rows, and the entry's options, if any."""
    if zoo.entries and draw.maybe(0.5):
        entry = draw.one(*zoo.entries)
        one = specimen(entry, folder)
        if isinstance(one.source, BaseEstimator) and _is_plain(entry):
            data = varied_data(draw, ROWS[entry.rows])
            made, source = varied_source(draw, one.source, data, TARGETS[entry.target])
            return made, source, data, dict(entry.options) if draw.maybe(0.5) else {}
    data = random_data(draw)
    made, source = random_source(draw, data)
    return made, source, data, {}


def _options(draw: Draw, source: Any) -> dict[str, Any]:
    """Draw options for compile."""
    if any(isinstance(part, TaylorFeatures) for _, part in parts_of(source)):
        return {"mode": "approximate"}
    if draw.maybe(0.8):
        return {"mode": "exact"}
    return {"mode": "certified", "effort": "low", "tolerance": draw.typed(draw.one(None, None, 0.1, 1))}


# --- judging


def judge(case: Case, source: Any, executors: Sequence[Executor], say: Say = _no_word) -> Judged:
    """Compile a case's source, and test the places named in the case."""
    theirs = [answers(source, table)["predict"] for table in case.asked]
    with TemporaryDirectory() as folder:
        say("compile")
        one = Specimen("composed", source, case.table, Path(folder), Entry("composed", clone, options=case.options))
        one.sample = case.table if case.with_sample else None
        try:
            found = [Fault("compile", _without_name(one, words)) for words in compiling_faults(one)]
        except (ApproxSVMError, NotFittedError) as error:
            return Judged("refused", f"{type(error).__name__}: {error}")
        except Exception as error:
            return Judged("refused", faults=(Fault("compile", f"{type(error).__name__}: {error}"),))
        first = answers(source, case.table.take(slice(_FEW_ROWS)))["predict"]
        if isinstance(first, Exception):  # it refuses its training rows, so its refusals reveal nothing about rows
            return Judged("source has no answer", type(first).__name__, 0, tuple(found))
        n_answers, refused = 0, []
        places = [place for place in (ESTIMATOR, *executors) if _name(place) in case.asks]
        for table, its in zip(case.asked, theirs, strict=True):
            if isinstance(its, Exception) and _may_be_answered(source, table, its):
                continue
            has_other_columns = len(table.kinds) != len(case.table.kinds) or table.names != case.table.names
            has_other_columns |= "cells" in table.kinds
            for place in places:
                if has_other_columns and not re.match(_AS_THEY_ARE, _name(place)):
                    continue
                say(_name(place))
                for words in _told(one, place, table, isinstance(its, Exception)):
                    unkept = _NO_PROMISE.search(words)
                    if unkept:
                        refused.append(unkept[1])
                    else:
                        found.append(Fault(_name(place), _without_name(one, words)))
                n_answers += len(table.values)
    return Judged("compiled", "", n_answers, tuple(found), tuple(refused))


def _may_be_answered(source: Any, table: Table, problem: Exception) -> bool:
    """Return whether the source's error for a table, or for its first rows alone, is listed in _MAY_BE_ANSWERED."""
    problems = [problem, *(answers(source, table.take(slice(i, i + 1)))["predict"] for i in range(2))]
    return any(isinstance(one, Exception) and re.search(_MAY_BE_ANSWERED, str(one)) for one in problems)


def _is_plain(entry: Entry) -> bool:
    """Return whether fit and compile are all that an entry's compiled model needs."""
    return entry.write is None and entry.compile is None


def _name(place: str | Executor) -> str:
    return place if isinstance(place, str) else place.name


def _asked(one: Specimen, place: str | Executor, table: Table) -> Iterator[str]:
    """Yield the faults of the estimator or of an executor."""
    if isinstance(place, str):
        yield from estimator_faults(one, table)
    else:
        yield from interface_faults(one, place, table)


def _told(one: Specimen, place: str | Executor, table: Table, source_refuses: bool) -> Iterator[str]:
    """Yield the faults from `_asked`, and exceptions as faults or refusals."""
    if not isinstance(place, str) and place.why_not(one):
        return
    try:
        yield from _asked(one, place, table)
    except (ApproxSVMError, NotFittedError, RefusedError) as error:  # the interface does not serve this source
        yield f"refused: {error}"
    except Exception as error:
        if not (source_refuses and isinstance(error, (ValueError, TypeError))):
            yield f"{type(error).__name__}: {error}"


def _without_name(one: Specimen, words: str) -> str:
    return re.sub(rf"^{re.escape(one.name)}(, [^:]*)?: ", "", words)


# --- reducing


def _script(case: Case, fault: Fault, say: Say, executors: Sequence[Executor]) -> str:
    """Return Python code for the smallest case found with this kind of fault."""
    case = replace(case, asks=(fault.place,))

    def still(smaller: Case) -> list[str]:
        source, _ = smaller.changed(smaller.made.fitted(smaller.table.make()))
        judged = judge(smaller, source, executors, say)
        return [one.words for one in judged.faults if one.kind == fault.kind]

    small = shrunk(case, lambda smaller: bool(still(smaller)), _SHRINKING_SECONDS)
    say("source")
    changes = small.changed(small.made.fitted(small.table.make()))[1]
    return f"# {fault}\n# {'; '.join(still(small))}\n{as_code(small, changes)}\n\n"
