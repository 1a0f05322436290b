"""Random sources, and what may be done to them, against what they compile to: an attack on the readers.

Each model has a seed of its own: random rows (random_data.py), an estimator of any kind fitted on them
(random_sources.py), and sometimes a change that its type does not show (tampering.py). It is compiled, mostly in mode
"exact", and asked about rows of several dtypes, containers and orders of columns, on the edges of the source
(row_tables.py). It has to answer each of them as the source answers the very same object: labels away from ties,
values, probabilities (comparison.py). What the source refuses it has to refuse; what it refuses alone is counted by
reason. Every exception has to be an ApproxSVMError or NotFittedError, or ValueError or TypeError where the source
refuses as well. Calls of one, three and all rows, `predict_one` and `Predictor` have to agree, and of some models
`verify`, and compiling leaves the source as it was. The exit code is 1 where there is a fault.

The first model of each kind of fault is made smaller while it has the fault (shrinking.py), and printed as Python.
Models are tried in processes of their own: where one dies, it says whether scikit-learn or we were at work.
"""

from __future__ import annotations

import itertools
import multiprocessing
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

import click
import numpy as np
from sklearn.exceptions import NotFittedError

import approxsvm
from approxsvm.errors import ApproxSVMError
from approxsvm.features import TaylorFeatures
from benchmarks.comparison import FAULTS, Answers, Finding, answers, compare_answers, compiled, counts, short
from benchmarks.experiment import Experiment, Rows, Run, number, positive
from zoo.draw import Draw
from zoo.random_data import random_data
from zoo.random_sources import random_source
from zoo.shrinking import Case, as_code, shrunk
from zoo.tables import Table, random_tables
from zoo.tampering import parts_of

# Without a word from a worker for so long, it is ended.
_HANGING_SECONDS = 60.0
_TICK_SECONDS = 1.0
_SHRINKING_SECONDS = 20.0
_SINGLE_ROWS = 7
_SCRIPTS = 12  # tries to make faults of one kind smaller
# What the source says of rows that compiled models take all the same: sparse ones, none, arrays where columns have
# names; and what NumPy and SciPy say where scikit-learn itself fails.
_MAY_BE_ANSWERED = (
    r"[Ss]parse|minimum of 1 is|0 sample|only supported for dataframes|could not broadcast|blocks must|ufunc|read-only"
)
# What scikit-learn's own checks say, which compiled models call.
_SKLEARN_REFUSES = r"[Ff]eature names|X has \d+ features"


@dataclass(frozen=True)
class Attempt:
    """What came of one model."""

    index: int  # its own seed
    # The estimator, and what its rows came in
    source: str
    form: str
    changes: tuple[str, ...]  # what was done to it after it was fitted
    finding: Finding  # of the comparison; or "not fitted": scikit-learn itself refuses
    faults: tuple[str, ...] = ()  # what should not be
    refused: tuple[str, ...] = ()  # why rows are refused that the source answers
    script: str = ""  # Python that shows a fault


def _no_word(phase: str) -> None:
    """Nobody listens."""


def attempt(seed: int, index: int, say: Callable[[str], None] = _no_word, known: Counter[str] | None = None) -> Attempt:
    """Try one model; `say` is told who is at work: "source" or "compile".

    Its first fault of a kind that is not often among `known` is made smaller, and counted there.
    """
    draw = Draw(seed, index)
    data = random_data(draw)
    say("source")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            made, source = random_source(draw, data)
        except Exception as error:
            return Attempt(index, "", data.table.form, (), Finding("not fitted", str(error), type(error).__name__))
        text = " ".join(repr(source).split())
        changes = tuple((seed, index, k) for k in range(draw.one(0, 0, 0, 1, 1, 2)))
        case = Case(made, data.table, changes, (), *_options(draw, source), draw.maybe(0.1))
        source, words = case.changed(source)
        case = replace(case, asked=tuple(random_tables(draw, source, data.table, data.rows, data.middle)))
        found, faults, refused = _judged(case, source, say)
        script = ""
        for fault in [fault for fault in faults if known is not None and known[_kind(fault)] < _SCRIPTS][:1]:
            assert known is not None
            small, words, still = _shrunk(case, fault, say)
            known[_kind(fault)] += 1
            about = " ".join(sorted({type(part).__name__ for _, part in parts_of(small.made.estimator)}))
            about += f" | {sorted(set(small.table.kinds))} | {sorted(set(small.asked[0].kinds))}"
            known[about] += 1
            if known[about] == 1:
                script = f"# {seed=}, model {index}\n# {fault}\n# {still}\n{as_code(small, words)}\n\n"
        return Attempt(index, text, data.table.form, words, found, tuple(faults), tuple(refused), script)


def _options(draw: Draw, source: Any) -> tuple[dict[str, Any], bool]:
    """Options of compile, and whether it gets sample rows."""
    options: dict[str, Any] = {"mode": "approximate"}
    if not any(isinstance(part, TaylorFeatures) for _, part in parts_of(source)):
        options = {"mode": "exact"}
        if not draw.maybe(0.8):
            options = {"mode": "certified", "effort": "low", "tolerance": draw.one(None, None, 0.1)}
    return options, draw.maybe(0.7)


def _judged(case: Case, source: Any, say: Callable[[str], None] = _no_word) -> tuple[Finding, list[str], list[str]]:
    """The comparison of a case, as one finding; all that should not be; and why rows are refused."""
    before = _state(source)
    theirs = [answers(source, table) for table in case.asked]
    say("compile")
    fast = compiled(source, case.table if case.with_sample else None, **case.options)
    if isinstance(fast, Finding):
        return fast, [f"{fast.reason}: {fast.exception}"] * (fast.verdict in FAULTS), []
    after = _state(source)
    faults = [f"compile changes {path} of its source" for path in before | after if before.get(path) != after.get(path)]
    first = answers(source, case.table.take(slice(_SINGLE_ROWS)))["predict"]
    if isinstance(first, Exception):  # it refuses what it was fitted on, so that no refusal is about rows
        return Finding("source has no answer", str(first), type(first).__name__), faults, []
    findings = []
    for table, theirs_of_it in zip(case.asked, theirs, strict=True):
        ours = answers(fast, table)
        finding = _of_rows(source, fast, table, theirs_of_it, ours)
        findings.append(finding)
        of_rows = [f"{finding.verdict}: {finding.reason}"] * (finding.verdict in (*FAULTS, "answered alone"))
        if finding.verdict in ("equal", "other methods", "differs", "answered alone"):
            of_rows += _disagreements(fast, table, ours["predict"])
        if case.with_verify and (finding.verdict == "equal" or "labels differ" in finding.reason):
            of_rows += _verified(source, fast, table, finding)
        faults += [f"{' '.join(fault.split())} ({table.form})" for fault in of_rows]
    worst = next((f for f in findings if f.verdict in (*FAULTS, "other methods")), findings[0])
    rows, ties = (sum(getattr(f, name) for f in findings) for name in ("n_rows", "n_ties"))
    refused = [f.reason for f in findings if f.verdict == "refused"]
    return replace(worst, n_rows=rows, n_ties=ties), faults, refused


def _of_rows(source: Any, fast: Any, table: Table, theirs: Answers, ours: Answers) -> Finding:
    """What came of some rows; both may refuse them, and ours alone, but not the source alone."""
    mine, its = ours["predict"], theirs["predict"]
    if isinstance(its, Exception):
        if isinstance(mine, Exception):
            known = isinstance(mine, (ValueError, TypeError))
            return Finding("both refuse" if known else "wrong exception", f"{type(mine).__name__}: {mine}")
        may = re.search(_MAY_BE_ANSWERED, str(its)) is not None or isinstance(its, NotImplementedError)
        return Finding("more" if may else "answered alone", f"the source's {type(its).__name__}: {its}")
    if isinstance(mine, Exception) and re.search(_SKLEARN_REFUSES, str(mine)):
        return Finding("refused", f"predict: {mine}", type(mine).__name__)
    if isinstance(mine, Exception) and not isinstance(mine, ApproxSVMError):
        return Finding("wrong exception", f"predict: {type(mine).__name__}: {mine}", type(mine).__name__)
    return compare_answers(source, fast, table, theirs, ours)


def _disagreements(fast: Any, table: Table, whole: Any) -> list[str]:
    """Where other calls of the compiled model say something else than `predict` of all rows."""
    some, predictor = table.take(slice(_SINGLE_ROWS)), approxsvm.Predictor(fast.artifact)
    n_rows = len(some.values)
    if n_rows == 0:
        return []
    slack = 0.0
    if whole.dtype.kind == "f":
        bound = np.max(fast.error_bound(some.make())) if hasattr(fast, "error_bound") else 0.0
        slack = 2.0 * float(bound) + 1e-11 * float(np.abs(whole).max())

    def in_calls(size: int) -> Any:
        return np.concatenate([fast.predict(some.take(slice(k, k + size)).make()) for k in range(0, n_rows, size)])

    faults = _unlike("Predictor", lambda: predictor.predict(some.make()), whole[:n_rows], slack)
    for size in (1, 3):
        faults += _unlike(f"calls of {size} rows", partial(in_calls, size), whole[:n_rows], slack)
    for words, one, matrix in table.singles():
        expected = _or_error(lambda matrix=matrix: fast.predict(matrix))  # type: ignore[misc]
        for model in (fast, predictor):
            call = partial(lambda model, one: np.asarray([model.predict_one(one)]), model, one)
            faults += _unlike(f"{type(model).__name__}.predict_one of {words}", call, expected, slack)
    return faults


def _or_error(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return error


def _unlike(words: str, call: Callable[[], Any], expected: Any, slack: float) -> list[str]:
    """What is wrong with an answer that should be the expected one; either may be an error."""
    answer = _or_error(call)
    if isinstance(answer, Exception):
        allowed = (ValueError, TypeError) if isinstance(expected, Exception) else ApproxSVMError
        return [] if isinstance(answer, allowed) else [f"{words}: {type(answer).__name__}: {answer}"]
    if isinstance(expected, Exception):
        return [f"{words}: an answer, but predict says {type(expected).__name__}: {expected}"]
    same = answer == expected
    if expected.dtype.kind == "f" and answer.dtype.kind == "f":
        same |= (np.abs(answer - expected) <= slack) | (np.isnan(answer) & np.isnan(expected))
    return [] if np.all(same) else [f"{words}: {np.count_nonzero(~same)} answers are not those of predict"]


def _shrunk(case: Case, fault: str, say: Callable[[str], None]) -> tuple[Case, tuple[str, ...], str]:
    """The smallest case with this kind of fault, what was done to its source, and the fault it has."""

    def still(smaller: Case) -> list[str]:
        source, _ = smaller.changed(smaller.made.fitted(smaller.table.make()))
        return [one for one in _judged(smaller, source, say)[1] if _kind(one) == _kind(fault)]

    small = shrunk(case, lambda smaller: bool(still(smaller)), _SHRINKING_SECONDS)
    return small, small.changed(small.made.fitted(small.table.make()))[1], "; ".join(still(small))


def _kind(fault: str) -> str:
    """The beginning of a fault, by which it is the same as another."""
    return re.sub(r"\d+", "#", ": ".join(fault.split(": ")[:2]) if fault.startswith("differs") else fault)[:60]


def _state(source: Any) -> dict[str, str]:
    """Every attribute inside a source, as text; but for flags that SciPy sets in a sparse matrix when it is read."""
    return {f"{path}.{name}": _as_text(value) for path, part in parts_of(source) for name, value in vars(part).items()}


def _as_text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tolist()}"
    if hasattr(value, "indptr"):
        return " ".join(map(_as_text, (value.data, value.indices, value.indptr)))
    return repr(value) if isinstance(value, (int, float, str, type(None))) else type(value).__name__


def _verified(source: Any, fast: Any, table: Table, finding: Finding) -> list[str]:
    """Where `verify` says something else of the rows than the comparison."""
    try:
        kept = approxsvm.verify(fast, source, table.make()).kept
    except (ApproxSVMError, NotFittedError):
        return []
    except Exception as error:
        return [f"verify: {type(error).__name__}: {error}"]
    agrees = kept == (finding.verdict == "equal")
    return [] if agrees else [f"verify: kept is {kept}, but the comparison says {finding.verdict}"]


# --- what came of many of them


def _tables(tried: list[Attempt], deaths: Counter[str]) -> Rows:
    findings = [one.finding for one in tried]
    yield "models", {"tried": len(tried), **counts(findings)}
    refused = (f"{found.exception}: {_alike(found.reason)}" for found in findings if found.verdict == "refused")
    for words, n in Counter(refused).most_common():
        yield "refusals", {"n": n, "reason": words}
    for words, n in Counter(_alike(reason) for one in tried for reason in one.refused).most_common():
        yield "rows refused", {"n": n, "reason": words}
    for words, n in deaths.items():
        yield "deaths", {"n": n, "at work": words}
    faults: dict[str, list[tuple[Attempt, str]]] = {}
    for one in tried:
        for fault in one.faults:
            faults.setdefault(_key(one, fault), []).append((one, fault))
    for alike in sorted(faults.values(), key=len, reverse=True):
        first, fault = min(alike, key=lambda found: len(found[0].source))
        about = {"n": len(alike), "model": first.index, "fault": short(fault), "source": first.source}
        yield "faults", about | {"rows": first.form, "changes": "; ".join(first.changes)}


def _key(tried: Attempt, fault: str) -> str:
    """What faults of one cause have in common: of answers that differ, by which methods, and what was changed."""
    if not fault.startswith("differs"):
        return _alike(fault)
    changes = [re.sub(r" at .*| is .*|=.*", "", change) for change in tried.changes if "not possible" not in change]
    changes = [re.sub(r": .*[.]", ": ", change) for change in changes]
    return " | ".join(["differs", *re.findall(r"(\w+): [^\d]", fault)[1:], *sorted(changes)])


def _alike(words: str) -> str:
    """The first clause, without numbers, names of steps and what is in brackets: the same thing is counted as one."""
    clause = re.split(r"; |\n", words, maxsplit=1)[0]
    clause = re.sub(r"(step '[^']*'( of the pipeline:)? )+", "step ... ", clause)
    clause = re.sub(r"[([].*[)\]]", "(...)", clause)
    return short(re.sub(r"-?\d[\d.,e+-]*", "#", clause))


# --- processes


def _work(connection: Connection, seed: int, indices: Iterator[int]) -> None:
    """Try one model after the other until the other end is closed."""
    known: Counter[str] = Counter()
    for index in indices:
        connection.send((index, "source"))
        try:
            tried = attempt(seed, index, lambda phase, index=index: connection.send((index, phase)), known)  # type: ignore[misc]
        except Exception as error:
            found = Finding("the attack failed")
            tried = Attempt(index, "?", "?", (), found, (f"the attack itself: {error!r}",))
        connection.send((index, tried))


@dataclass
class _Worker:
    """A process that tries every `step`-th model, and what it has told."""

    seed: int
    index: int
    step: int
    tried: list[Attempt]
    deaths: Counter[str]

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        indices = itertools.count(self.index, self.step)
        self.process = context.Process(target=_work, args=(theirs, self.seed, indices), daemon=True)
        self.process.start()
        theirs.close()
        self.phase, self.heard = "source", time.monotonic()

    def hear(self) -> None:
        """Take what it says; where it died or hangs, go on behind that model with a new process."""
        try:
            while self.connection.poll():
                self.index, word = self.connection.recv()
                self.heard = time.monotonic()
                if isinstance(word, Attempt):
                    self.tried.append(word)
                    click.echo(word.script, nl=False)
                else:
                    self.phase = word
        except (EOFError, ConnectionResetError):
            self._bury("died")
        if time.monotonic() - self.heard > _HANGING_SECONDS:
            self._bury("hung")

    def _bury(self, how: str) -> None:
        self.deaths[f"{self.phase}: {how}"] += 1
        if self.phase == "compile":
            fault = f"the process {how} while we were at work"
            self.tried.append(Attempt(self.index, "?", "?", (), Finding(how), (fault,)))
        self.stop()
        self.index += self.step
        self.start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.connection.close()


def measure(run: Run, case: None) -> Rows:
    """Try models, one after the other in each of some processes, for so long; or show one again."""
    options = run.options
    if options.model is not None:
        _show_again(options.seed, options.model)
        return
    tried: list[Attempt] = []
    deaths: Counter[str] = Counter()
    workers = [_Worker(options.seed, k, options.workers, tried, deaths) for k in range(options.workers)]
    for worker in workers:
        worker.start()
    wait([worker.connection for worker in workers], timeout=_HANGING_SECONDS)  # until the first has imported everything
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        wait([worker.connection for worker in workers], timeout=_TICK_SECONDS)
        for worker in workers:
            worker.hear()
    for worker in workers:
        worker.stop()
    yield from _tables(tried, deaths)


def _show_again(seed: int, index: int) -> None:
    """One model in full, and its first fault as Python."""
    tried = attempt(seed, index, known=Counter())
    for name, value in vars(tried).items():
        click.echo(f"{name}: {value}")


_OPTIONS = [
    positive("--seconds", 60.0),
    number("--seed", 0, least=0),
    number("--workers", 1, "Processes."),
    number("--model", None, "Only this one, in full.", least=0),
]
EXPERIMENT = Experiment("reader_attack", __doc__, measure, {"random sources": None}, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()
