"""Random sources, and what may be done to them, against what they compile to: an attack on the readers.

    python -m benchmarks.reader_attack [--seconds 60] [--seed 0] [--workers 1] [--results DIR]
    python -m benchmarks.reader_attack --seed 0 --model 1234    # one of them again, with all that is known of it

Each model has a seed of its own: random rows (random_data.py), an estimator of any kind fitted on them
(random_sources.py), and sometimes a change that its type does not show (tampering.py). It is compiled, mostly in mode
"exact", and has to answer as the source does: labels away from ties, values, probabilities (comparison.py). Every
exception has to be an ApproxSVMError or NotFittedError. Of some models more is asked: `verify` agrees, compiling leaves
the source as it was, and rows in other containers are answered alike, or refused.

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
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.exceptions import NotFittedError

import approxsvm
from approxsvm.errors import ApproxSVMError
from approxsvm.features import TaylorFeatures
from benchmarks.comparison import answers, compare
from benchmarks.other_rows import asked_otherwise
from benchmarks.random_data import Data, Draw, random_data
from benchmarks.random_sources import random_fitted
from benchmarks.record import Record, results_option
from benchmarks.tampering import parts_of, tampered

# Without a word from a worker for so long, it is ended.
_HANGING_SECONDS = 120.0
_TICK_SECONDS = 1.0
_MAX_WORDS = 160


@dataclass(frozen=True)
class Attempt:
    """What came of one model.

    Attributes
    ----------
    index : int
        Its own seed.
    source, form : str
        The estimator, and what its rows came in.
    changes : tuple of str
        What was done to it after it was fitted.
    verdict : str
        That of `comparison.compare`, or "not fitted": scikit-learn itself refuses.
    reason, exception : str
        Of a refusal, in its words.
    faults : tuple of str
        What should not be.
    n_rows, n_ties : int
    """

    index: int
    source: str
    form: str
    changes: tuple[str, ...]
    verdict: str
    reason: str = ""
    exception: str = ""
    faults: tuple[str, ...] = ()
    n_rows: int = 0
    n_ties: int = 0


def _no_word(phase: str) -> None:
    """Nobody listens."""


def attempt(seed: int, index: int, say: Callable[[str], None] = _no_word) -> Attempt:
    """Try one model.

    Parameters
    ----------
    seed, index : int
        The run's and the model's own.
    say : callable
        Told who is at work: "source" or "compile".
    """
    draw = Draw(seed, index)
    data = random_data(draw)
    say("source")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            source = random_fitted(draw, data)
        except Exception as error:
            return Attempt(index, "", data.form, (), "not fitted", str(error), type(error).__name__)
        text = " ".join(repr(source).split())
        changes: list[str] = []
        for _ in range(draw.one(0, 0, 1, 1, 1, 2)):
            source, what = tampered(draw, source)
            changes.append(what)
        return _tried(draw, data, source, say, Attempt(index, text, data.form, tuple(changes), ""))


def _tried(draw: Draw, data: Data, source: Any, say: Callable[[str], None], so_far: Attempt) -> Attempt:
    theirs = answers(source, data.rows)
    before = _state(source)
    say("compile")
    options = _options(draw, source)
    found = compare(source, _sample(draw, data), data.rows, theirs, **options)
    faults = [f"{found.verdict}: {found.exception} {found.reason}"] * (found.verdict in ("differs", "wrong exception"))
    if found.verdict == "equal":
        after = _state(source)
        faults += [
            f"compile changes {path} of its source" for path in before | after if before.get(path) != after.get(path)
        ]
        faults += _verified(draw, source, data) + asked_otherwise(draw, source, data)
    described = vars(so_far) | {"verdict": found.verdict, "reason": found.reason, "exception": found.exception}
    return Attempt(**described | {"faults": tuple(faults), "n_rows": found.n_rows, "n_ties": found.n_ties})


def _options(draw: Draw, source: Any) -> dict[str, Any]:
    if any(isinstance(part, TaylorFeatures) for _, part in parts_of(source)):
        return {"mode": "approximate"}
    if draw.maybe(0.8):
        return {"mode": "exact"}
    return {"mode": "certified", "effort": "low", "tolerance": draw.one(None, None, 0.1)}


def _sample(draw: Draw, data: Data) -> Any:
    return data.X if draw.maybe(0.8) else None


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


# --- many of them


@dataclass
class Tally:
    """What came of all models so far."""

    verdicts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)
    faults: dict[str, list[tuple[Attempt, str]]] = field(default_factory=dict)
    n_rows: int = 0
    n_ties: int = 0

    def add(self, tried: Attempt) -> None:
        """Count one."""
        self.verdicts[tried.verdict] += 1
        self.n_rows += tried.n_rows
        self.n_ties += tried.n_ties
        if tried.verdict == "refused":
            self.refusals[f"{tried.exception}: {_alike(tried.reason)}"] += 1
        for fault in tried.faults:
            self.faults.setdefault(_key(tried, fault), []).append((tried, fault))

    def fill(self, record: Record) -> None:
        """Tables of a record."""
        record.add(
            "models",
            {"tried": sum(self.verdicts.values()), **self.verdicts, "rows": self.n_rows, "ties": self.n_ties},
        )
        for words, n in self.refusals.most_common():
            record.add("refusals", {"n": n, "reason": words})
        for words, n in self.deaths.items():
            record.add("deaths", {"n": n, "at work": words})
        for alike in sorted(self.faults.values(), key=len, reverse=True):
            first, fault = min(alike, key=lambda found: len(found[0].source))
            record.add(
                "faults",
                {
                    "n": len(alike),
                    "model": first.index,
                    "fault": _short(fault),
                    "source": first.source,
                    "rows": first.form,
                    "changes": "; ".join(first.changes),
                },
            )


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
    return _short(re.sub(r"-?\d[\d.,e+-]*", "#", clause))


def _short(words: str) -> str:
    return words if len(words) <= _MAX_WORDS else f"{words[: _MAX_WORDS - 3]}..."


def _work(connection: Connection, seed: int, indices: Iterator[int]) -> None:
    """Try one model after the other until the other end is closed."""
    for index in indices:
        connection.send((index, "source"))
        try:
            tried = attempt(seed, index, lambda phase, index=index: connection.send((index, phase)))  # type: ignore[misc]
        except Exception as error:
            tried = Attempt(index, "?", "?", (), "the attack failed", faults=(f"the attack itself: {error!r}",))
        connection.send((index, tried))


@dataclass
class _Worker:
    """A process that tries every `step`-th model."""

    seed: int
    index: int
    step: int
    phase: str = "source"
    heard: float = 0.0

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=_work, args=(theirs, self.seed, itertools.count(self.index, self.step)), daemon=True
        )
        self.process.start()
        theirs.close()
        self.heard = time.monotonic()

    def hear(self, tally: Tally) -> None:
        """Take what it says; where it died or hangs, go on behind that model with a new process."""
        try:
            while self.connection.poll():
                self.index, word = self.connection.recv()
                self.heard = time.monotonic()
                if isinstance(word, Attempt):
                    tally.add(word)
                else:
                    self.phase = word
        except (EOFError, ConnectionResetError):
            self._buried(tally, "died")
        if time.monotonic() - self.heard > _HANGING_SECONDS:
            self._buried(tally, "hung")

    def _buried(self, tally: Tally, how: str) -> None:
        tally.deaths[f"{self.phase}: {how}"] += 1
        if self.phase == "compile":
            tally.add(Attempt(self.index, "?", "?", (), how, faults=(f"the process {how} while we were at work",)))
        self.stop()
        self.index += self.step
        self.phase = "source"
        self.start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.connection.close()


def attack(seconds: float, seed: int, n_workers: int) -> Tally:
    """Try models, one after the other in each of some processes, for so long."""
    tally = Tally()
    workers = [_Worker(seed, k, n_workers) for k in range(n_workers)]
    for worker in workers:
        worker.start()
    wait([worker.connection for worker in workers], timeout=_HANGING_SECONDS)  # until the first has imported everything
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        wait([worker.connection for worker in workers], timeout=_TICK_SECONDS)
        for worker in workers:
            worker.hear(tally)
    for worker in workers:
        worker.stop()
    return tally


def show_again(seed: int, index: int) -> None:
    """One model, with the traceback of what compile raises."""
    tried = attempt(seed, index)
    for name, value in vars(tried).items():
        click.echo(f"{name}: {value}")
    draw = Draw(seed, index)
    data = random_data(draw)
    if tried.verdict == "wrong exception":
        source = random_fitted(draw, data)
        for _ in range(draw.one(0, 0, 1, 1, 1, 2)):
            source, _ = tampered(draw, source)
        try:
            options = _options(draw, source)
            approxsvm.compile(source, _sample(draw, data), **options)
        except Exception:
            click.echo(traceback.format_exc())


@click.command()
@click.option("--seconds", type=click.FloatRange(min=0), default=60.0, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes.")
@click.option("--model", type=click.IntRange(min=0), help="Only this one, in full.")
@results_option
def main(seconds: float, seed: int, workers: int, model: int | None, results: Path) -> None:
    """Attack the readers with random sources."""
    if model is not None:
        show_again(seed, model)
        return
    record = Record.begin("reader_attack")
    tally = attack(seconds, seed, workers)
    tally.fill(record)
    record.show()
    record.save(results)
    if tally.faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
