"""Random sources, and what may be done to them, against what they compile to: an attack on the readers.

Each model has a seed of its own: random rows (random_data.py), an estimator of any kind fitted on them
(random_sources.py), and sometimes a change that its type does not show (tampering.py). It is compiled, mostly in mode
"exact", and has to answer as the source does: labels away from ties, values, probabilities (comparison.py). Every
exception has to be an ApproxSVMError or NotFittedError. Of some models more is asked: `verify` agrees, compiling leaves
the source as it was, and rows in other containers are answered alike, or refused. The exit code is 1 where there is a
fault.

Models are tried in processes of their own: where one dies, it says whether scikit-learn or we were at work.
"""

from __future__ import annotations

import copy
import itertools
import multiprocessing
import re
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import click
import numpy as np
from sklearn.exceptions import NotFittedError

import approxsvm
from approxsvm.errors import ApproxSVMError
from approxsvm.features import TaylorFeatures
from benchmarks.comparison import FAULTS, Finding, answers, compare, counts, short
from benchmarks.experiment import Experiment, Rows, Run, number, positive
from benchmarks.other_rows import asked_otherwise
from benchmarks.random_data import Data, Draw, random_data
from benchmarks.random_sources import random_fitted
from benchmarks.tampering import parts_of, tampered

# Without a word from a worker for so long, it is ended.
_HANGING_SECONDS = 120.0
_TICK_SECONDS = 1.0


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


def _no_word(phase: str) -> None:
    """Nobody listens."""


def attempt(seed: int, index: int, say: Callable[[str], None] = _no_word) -> Attempt:
    """Try one model; `say` is told who is at work: "source" or "compile"."""
    draw = Draw(seed, index)
    data = random_data(draw)
    say("source")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            source = random_fitted(draw, data)
        except Exception as error:
            return Attempt(index, "", data.form, (), Finding("not fitted", str(error), type(error).__name__))
        text = " ".join(repr(source).split())
        source, changes = _changed(draw, source)
        theirs = answers(source, data.rows)
        before = _state(source)
        say("compile")
        options, X = _options(draw, source, data)
        found = compare(source, X, data.rows, theirs, **options)
        faults = [f"{found.verdict}: {found.exception} {found.reason}"] * (found.verdict in FAULTS)
        if found.verdict == "equal":
            after = _state(source)
            changed = [path for path in before | after if before.get(path) != after.get(path)]
            faults += [f"compile changes {path} of its source" for path in changed]
            faults += _verified(draw, source, data) + asked_otherwise(draw, source, data)
        return Attempt(index, text, data.form, changes, found, tuple(faults))


def _changed(draw: Draw, source: Any) -> tuple[Any, tuple[str, ...]]:
    changes = []
    for _ in range(draw.one(0, 0, 1, 1, 1, 2)):
        source, what = tampered(draw, source)
        changes.append(what)
    return source, tuple(changes)


def _options(draw: Draw, source: Any, data: Data) -> tuple[dict[str, Any], Any]:
    """Of compile, with sample rows."""
    options: dict[str, Any] = {"mode": "approximate"}
    if not any(isinstance(part, TaylorFeatures) for _, part in parts_of(source)):
        options = {"mode": "exact"}
        if not draw.maybe(0.8):
            options = {"mode": "certified", "effort": "low", "tolerance": draw.one(None, None, 0.1)}
    return options, data.X if draw.maybe(0.8) else None


def _state(source: Any) -> dict[str, str]:
    """Every attribute inside a source, as text; but for flags that SciPy sets in a sparse matrix when it is read."""
    return {f"{path}.{name}": _as_text(value) for path, part in parts_of(source) for name, value in vars(part).items()}


def _as_text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tolist()}"
    if hasattr(value, "indptr"):
        return " ".join(map(_as_text, (value.data, value.indices, value.indptr)))
    return repr(value) if isinstance(value, (int, float, str, type(None))) else type(value).__name__


def _verified(draw: Draw, source: Any, data: Data) -> list[str]:
    """What is wrong with `verify` of a model that answers as its source does."""
    if draw.maybe(0.8):
        return []
    try:
        fast = approxsvm.compile(source, mode="exact")
        kept = approxsvm.verify(fast, source, copy.deepcopy(data.rows)).kept
    except (ApproxSVMError, NotFittedError):
        return []
    except Exception as error:
        return [f"verify: {type(error).__name__}: {error}"]
    return [] if kept else ["verify: not kept, although all answers are equal"]


# --- what came of many of them


def _tables(tried: list[Attempt], deaths: Counter[str]) -> Rows:
    findings = [one.finding for one in tried]
    yield "models", {"tried": len(tried), **counts(findings)}
    refused = (f"{found.exception}: {_alike(found.reason)}" for found in findings if found.verdict == "refused")
    for words, n in Counter(refused).most_common():
        yield "refusals", {"n": n, "reason": words}
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
    changes = [re.sub(r" at .*| is .*", "", change) for change in tried.changes if "not possible" not in change]
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
    for index in indices:
        connection.send((index, "source"))
        try:
            tried = attempt(seed, index, lambda phase, index=index: connection.send((index, phase)))  # type: ignore[misc]
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
    """One model, with the traceback of what compile raises."""
    tried = attempt(seed, index)
    for name, value in vars(tried).items():
        click.echo(f"{name}: {value}")
    if tried.finding.verdict == "wrong exception":
        draw = Draw(seed, index)
        data = random_data(draw)
        source, _ = _changed(draw, random_fitted(draw, data))
        options, X = _options(draw, source, data)
        try:
            approxsvm.compile(source, X, **options)
        except Exception:
            click.echo(traceback.format_exc())


_OPTIONS = [
    positive("--seconds", 60.0),
    number("--seed", 0, least=0),
    number("--workers", 1, "Processes."),
    number("--model", None, "Only this one, in full.", least=0),
]
EXPERIMENT = Experiment("reader_attack", __doc__, measure, {"random sources": None}, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()
