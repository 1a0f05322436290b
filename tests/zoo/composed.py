"""One source composed at random, and one entry of the zoo with new rows: asked through the interfaces, and judged.

A composed source has a seed: it is random (random_sources.py) or an entry of the zoo with other parameters, rows, steps
in front or wrappers, and sometimes changed after fit in a way that its type does not show (tampering.py). The first
fault of a kind is made smaller (shrinking.py), to a few lines of Python.
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
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

import approxsvm
from approxsvm.errors import ApproxSVMError
from approxsvm.features import TaylorFeatures
from benchmarks.comparison import FAULTS, Finding, answers, compare_answers, compiled
from zoo.draw import Draw
from zoo.executors import Executor
from zoo.hostile import hostile_tables
from zoo.properties import faults
from zoo.random_data import random_data, varied_data
from zoo.random_sources import Made, random_source, varied_source
from zoo.shrinking import Case, as_code, shrunk
from zoo.sources import ROWS, TARGETS, specimen
from zoo.specimens import Entry, Specimen
from zoo.tables import Table, random_tables
from zoo.tampering import parts_of

_SHRINKING_SECONDS = 20.0
_FEW_ROWS = 7
_SCRIPTS = 4  # faults of one kind that each process makes smaller
# Judges of the compiled estimator that are no executors.
ESTIMATOR, VERIFY = "methods of the estimator", "verify"
# What the source says of rows that compiled models take all the same: sparse ones, none, arrays where columns have
# names; and what NumPy and SciPy say where scikit-learn itself fails.
_MAY_BE_ANSWERED = (
    r"[Ss]parse|minimum of 1 is|0 sample|only supported for dataframes|could not broadcast|blocks must|ufunc|read-only|"
    r"multiply sequence"
)
# What scikit-learn's own checks say, which compiled models call.
_SKLEARN_REFUSES = r"[Ff]eature names|X has \d+ features"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Fault:
    """An answer that should not be."""

    place: str  # the executor, or who else was asked
    words: str

    @property
    def kind(self) -> str:
        """The place and the beginning of the words, without numbers: equal for faults of one cause, mostly."""
        return f"{self.place}: {re.sub(r'[-+]?[0-9][0-9.e+-]*', '#', self.words)[:60]}"


@dataclass(frozen=True)
class Judged:
    """The result for one source."""

    verdict: str  # "compiled"; or "not fitted", "refused", "source has no answer"
    reason: str = ""  # of the verdict
    n_answers: int = 0  # rows times interfaces
    faults: tuple[Fault, ...] = ()
    refused: tuple[str, ...] = ()  # why interfaces refuse rows that the source answers


@dataclass(frozen=True)
class Attempt:
    """One source, how it was made, and the result."""

    index: int
    source: str
    form: str = ""  # of the rows to train on
    changes: tuple[str, ...] = ()  # made after it was fitted
    judged: Judged = field(default_factory=lambda: Judged("not fitted"))
    script: str = ""  # Python that shows the first fault


@dataclass(frozen=True)
class Zoo:
    """Entries and executors that take part."""

    entries: Sequence[Entry]
    executors: Sequence[Executor]


def _no_word(place: str) -> None:
    """Nobody listens."""


@contextmanager
def _quiet() -> Iterator[Path]:
    with warnings.catch_warnings(), np.errstate(all="ignore"), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        yield Path(folder)


# --- entries, and what is composed


def entry_attempt(zoo: Zoo, seed: int, index: int, say: Say = _no_word, known: Counter[str] | None = None) -> Attempt:
    """Ask one entry about hostile tables of a seed, through all executors; `say` is told who is at work."""
    entry = zoo.entries[index % len(zoo.entries)]
    with _quiet() as folder:
        say("source")
        one = specimen(entry, folder)
        say("compile")
        found: list[Fault] = []
        n_answers, table = 0, one.table
        for asked in hostile_tables(one, seed=seed + index // len(zoo.entries)):
            for executor in zoo.executors:
                say(executor.name)
                n, more, refusals = _executor_faults(one, executor, asked, source_refuses=False)
                found += [*more, *(Fault(executor.name, f"refused: {words}") for words in refusals)]
                n_answers, table = n_answers + n, asked if len(found) == len(more) > 0 else table
        script = ""
        if found and (known is None or known[found[0].kind] < _SCRIPTS):
            script = f"# entry {entry.name!r}, rows: {table.code()[:2000]}\n# {found[0].words}\n"
            if isinstance(one.source, BaseEstimator) and not entry.write:
                made = Made(clone(one.source), TARGETS[entry.target], {})
                case = Case(made, one.table, (), (table,), dict(entry.options), True, ())
                script += _script(case, found[0], say, zoo.executors)
            if known is not None:
                known[found[0].kind] += 1
        judged = Judged("compiled", "", n_answers, tuple(found))
    return Attempt(index, f"entry {entry.name}", one.table.form, (), judged, script)


def composed_attempt(
    zoo: Zoo, seed: int, index: int, say: Say = _no_word, known: Counter[str] | None = None
) -> Attempt:
    """Try one composed source; its first fault of a kind that is not often among `known` is made smaller."""
    draw = Draw(seed, index)
    with _quiet() as folder:
        say("source")
        try:
            made, source, data, options = _drawn(draw, zoo, folder)
        except Exception as error:
            return Attempt(index, "", judged=Judged("not fitted", type(error).__name__))
        text = " ".join(repr(source).split())
        changes = tuple((seed, index, k) for k in range(draw.one(0, 0, 0, 1, 1, 2)))
        options = options or _options(draw, source)
        asks = (ESTIMATOR, *(VERIFY for _ in range(draw.maybe(0.1))), *_some(draw, zoo.executors))
        case = Case(made, data.table, changes, (), options, draw.maybe(0.7), asks)
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
    """A random source, or an entry that is varied, fitted; its rows; and options, if the entry has any."""
    if zoo.entries and draw.maybe(0.5):
        entry = draw.one(*zoo.entries)
        one = specimen(entry, folder)
        if isinstance(one.source, BaseEstimator) and not entry.write:
            data = varied_data(draw, ROWS[entry.rows])
            made, source = varied_source(draw, one.source, data, TARGETS[entry.target])
            return made, source, data, dict(entry.options) if draw.maybe(0.5) else {}
    data = random_data(draw)
    made, source = random_source(draw, data)
    return made, source, data, {}


def _options(draw: Draw, source: Any) -> dict[str, Any]:
    """Options of compile."""
    if any(isinstance(part, TaylorFeatures) for _, part in parts_of(source)):
        return {"mode": "approximate"}
    if draw.maybe(0.8):
        return {"mode": "exact"}
    return {"mode": "certified", "effort": "low", "tolerance": draw.one(None, None, 0.1)}


def _some(draw: Draw, executors: Sequence[Executor]) -> tuple[str, ...]:
    """Cheap executors, and a share of those that compile a program for each model."""
    return tuple(one.name for one in executors if draw.maybe(one.share))


# --- judging


def judge(case: Case, source: Any, executors: Sequence[Executor], say: Say = _no_word) -> Judged:
    """Compile the source of a case, and ask whom the case names."""
    before = _state(source)
    theirs = [answers(source, table) for table in case.asked]
    say("compile")
    fast = compiled(source, case.table if case.with_sample else None, **case.options)
    if isinstance(fast, Finding):
        fault = Fault("compile", f"{fast.verdict}: {fast.exception}: {fast.reason}")
        return Judged("refused", f"{fast.exception}: {fast.reason}", 0, (fault,) * (fast.verdict in FAULTS))
    after = _state(source)
    found = [
        Fault("compile", f"changes {path} of its source")
        for path in before | after
        if before.get(path) != after.get(path)
    ]
    first = answers(source, case.table.take(slice(_FEW_ROWS)))["predict"]
    if isinstance(first, Exception):  # it refuses what it was fitted on, so that no refusal is about rows
        return Judged("source has no answer", type(first).__name__, 0, tuple(found))
    n_answers, refused = 0, []
    with TemporaryDirectory() as folder:
        one = Specimen("composed", source, case.table, Path(folder))
        one.fast = fast
        for table, its in zip(case.asked, theirs, strict=True):
            if {ESTIMATOR, VERIFY} & set(case.asks):
                finding = _compared(source, fast, table, its)
                n_answers += finding.n_rows
                refused += [finding.reason] * (finding.verdict == "refused")
                if ESTIMATOR in case.asks and finding.verdict in (*FAULTS, "answered alone"):
                    found.append(Fault(ESTIMATOR, f"{finding.verdict}: {finding.reason} ({table.form})"))
                if VERIFY in case.asks and (finding.verdict == "equal" or "labels differ" in finding.reason):
                    found += [Fault(VERIFY, words) for words in _verified(source, fast, table, finding)]
            problem = its["predict"]
            source_refuses = isinstance(problem, Exception)
            if source_refuses and re.search(_MAY_BE_ANSWERED, str(problem)):
                continue
            for executor in [one for one in executors if one.name in case.asks]:
                say(executor.name)
                n, more, refusals = _executor_faults(one, executor, table, source_refuses)
                found, refused, n_answers = found + more, refused + refusals, n_answers + n
    return Judged("compiled", "", n_answers, tuple(found), tuple(refused))


def _executor_faults(
    one: Specimen, executor: Executor, table: Table, source_refuses: bool
) -> tuple[int, list[Fault], list[str]]:
    """Answers asked for, faults, and reasons of refusals."""
    if executor.why_not(one) or not executor.takes(one, table):
        return 0, [], []
    found, refused = [], []
    try:
        for words in faults(one, executor, table):
            if words.startswith("refused: "):
                refused.append(words.removeprefix("refused: "))
            else:
                found.append(Fault(executor.name, words.partition(f"{executor.name}, ")[2] or words))
    except ApproxSVMError as error:  # an interface that does not serve this source
        refused.append(str(error))
    except Exception as error:
        if not (source_refuses and isinstance(error, (ValueError, TypeError))):
            found.append(Fault(executor.name, f"{type(error).__name__}: {error}"))
    return len(table.values), found, refused


def _compared(source: Any, fast: Any, table: Table, theirs: Any) -> Finding:
    """Compare all methods of the estimator; both may refuse the rows, and ours alone, but not the source alone."""
    ours = answers(fast, table)
    mine, its = ours["predict"], theirs["predict"]
    if isinstance(its, Exception):
        if isinstance(mine, Exception):
            known = isinstance(mine, (ValueError, TypeError))
            return Finding("both refuse" if known else "wrong exception", f"{type(mine).__name__}: {mine}")
        may = re.search(_MAY_BE_ANSWERED, str(its)) is not None or isinstance(its, NotImplementedError)
        return Finding("more" if may else "answered alone", f"the source's {type(its).__name__}: {its}")
    if isinstance(mine, Exception) and re.search(_SKLEARN_REFUSES, str(mine)):
        return Finding("refused", f"predict: {mine}")
    if isinstance(mine, Exception) and not isinstance(mine, ApproxSVMError):
        return Finding("wrong exception", f"predict: {type(mine).__name__}: {mine}")
    return compare_answers(source, fast, table, theirs, ours)


def _verified(source: Any, fast: Any, table: Table, finding: Finding) -> list[str]:
    """Differences between what `verify` says of the rows and the comparison."""
    try:
        kept = approxsvm.verify(fast, source, table.make()).kept
    except (ApproxSVMError, NotFittedError):
        return []
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    agrees = kept == (finding.verdict == "equal")
    return [] if agrees else [f"kept is {kept}, but the comparison says {finding.verdict}"]


def _state(source: Any) -> dict[str, str]:
    """Every attribute inside a source, as text; but for flags that SciPy sets in a sparse matrix when it is read."""
    return {f"{path}.{name}": _as_text(value) for path, part in parts_of(source) for name, value in vars(part).items()}


def _as_text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tolist()}"
    if hasattr(value, "indptr"):
        return " ".join(map(_as_text, (value.data, value.indices, value.indptr)))
    return repr(value) if isinstance(value, (int, float, str, type(None))) else type(value).__name__


# --- making it smaller


def _script(case: Case, fault: Fault, say: Say, executors: Sequence[Executor]) -> str:
    """Python of the smallest case found with this kind of fault."""
    case = replace(case, asks=(fault.place,))

    def still(smaller: Case) -> list[str]:
        source, _ = smaller.changed(smaller.made.fitted(smaller.table.make()))
        judged = judge(smaller, source, executors, say)
        return [one.words for one in judged.faults if one.kind == fault.kind]

    small = shrunk(case, lambda smaller: bool(still(smaller)), _SHRINKING_SECONDS)
    say("source")
    changes = small.changed(small.made.fitted(small.table.make()))[1]
    return f"# {fault.place}: {fault.words}\n# {'; '.join(still(small))}\n{as_code(small, changes)}\n\n"
