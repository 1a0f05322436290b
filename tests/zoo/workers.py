"""Processes that test one source after another; if one dies or hangs, a new process continues after that source."""

from __future__ import annotations

import itertools
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path

from native_build import filled_once

from zoo.composed import Attempt, Fault, Judged, Zoo, composed_attempt, entry_attempt
from zoo.executors import Executor
from zoo.executors.every import EVERY
from zoo.sources import ENTRIES

# A worker that is silent for this long is terminated. (On a busy machine, importing everything takes longer.)
_HANGING_SECONDS = 180.0
_STARTING_SECONDS = 900.0
_TICK_SECONDS = 1.0


@dataclass(frozen=True)
class Task:
    """The workers' task: sources by number, where even numbers denote entries and odd numbers composed sources."""

    seed: int
    only: str = ""  # a substring of entry names
    executors: tuple[str, ...] = ()  # prefixes of names; all executors if empty
    composed_only: bool = False

    def zoo(self) -> Zoo:
        """Return the entries and executors."""
        entries = [entry for entry in ENTRIES if self.only in entry.name]
        chosen = [one for one in EVERY if not self.executors or one.name.startswith(self.executors)]
        return Zoo(entries, chosen)

    def attempt(
        self, zoo: Zoo, number: int, say: Callable[[str], None] = lambda place: None, known: Counter[str] | None = None
    ) -> Attempt:
        """Test one source."""
        if number % 2 == 0 and not self.composed_only:
            tried = entry_attempt(zoo, self.seed, number // 2, say, known)
        else:
            tried = composed_attempt(zoo, self.seed, number if self.composed_only else number // 2, say, known)
        return replace(tried, index=number)


def _numbers(worker: int, n_workers: int, first: int) -> Iterator[int]:
    """Yield a worker's share of the source numbers: an entry and a composed source in turn."""
    return (number for number in itertools.count(first) if number // 2 % n_workers == worker)


def prepare(executors: Sequence[Executor], folder: Path) -> None:
    """Build everything that the executors need, once, in a folder shared by all processes."""

    built = partial(filled_once, folder)
    for executor in executors:
        executor.prepare(built)


def _work(connection: Connection, task: Task, folder: Path, worker: int, n_workers: int, first: int) -> None:
    """Test one source after another until the other end of the connection is closed."""
    known: Counter[str] = Counter()
    zoo = task.zoo()
    prepare(zoo.executors, folder)
    for number in _numbers(worker, n_workers, first):
        try:
            tried = task.attempt(zoo, number, lambda place, number=number: connection.send((number, place)), known)  # type: ignore[misc]
        except Exception as error:
            fault = Fault("the zoo itself", f"{type(error).__name__}: {error}")
            tried = Attempt(number, f"source {number}", judged=Judged("failed", faults=(fault,)))
        connection.send((number, tried))


@dataclass
class _Worker:
    """A process, and its most recent reports."""

    task: Task
    folder: Path
    worker: int
    n_workers: int
    report: Callable[[Attempt], None]
    deaths: Counter[str]
    number: int = 0

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        arguments = (theirs, self.task, self.folder, self.worker, self.n_workers, self.number)
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.place, self.heard = "start", time.monotonic()

    def hear(self) -> None:
        """Receive the process's messages; if it died or hangs, continue after its source with a new process."""
        try:
            while self.connection.poll():
                self.number, word = self.connection.recv()
                self.heard = time.monotonic()
                if isinstance(word, Attempt):
                    self.report(word)
                else:
                    self.place = word
        except (EOFError, ConnectionResetError):
            self._bury("died")
        if time.monotonic() - self.heard > (_STARTING_SECONDS if self.place == "start" else _HANGING_SECONDS):
            self._bury("hung")

    def _bury(self, how: str) -> None:
        self.deaths[f"{self.place}: {how}"] += 1
        if self.place != "source":  # otherwise scikit-learn is at fault
            fault = Fault(self.place, f"the process {how}")
            self.report(Attempt(self.number, f"source {self.number}", judged=Judged(how, faults=(fault,))))
        self.stop()
        self.number += 1
        self.start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.connection.close()


def try_for(seconds: float, n_workers: int, task: Task, report: Callable[[Attempt], None]) -> Counter[str]:
    """Test sources in parallel for this time; return how many processes died or hung, and where."""
    deaths: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        prepare(task.zoo().executors, Path(folder))
        workers = [_Worker(task, Path(folder), k, n_workers, report, deaths) for k in range(n_workers)]
        for worker in workers:
            worker.start()
        wait([worker.connection for worker in workers], timeout=_STARTING_SECONDS)  # until one has imported everything
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            wait([worker.connection for worker in workers], timeout=_TICK_SECONDS)
            for worker in workers:
                worker.hear()
        for worker in workers:
            worker.stop()
    return deaths
