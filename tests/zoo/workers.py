"""Processes that try one source after another; if one dies or hangs, a new one continues after that source."""

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

# Without a word from a worker for so long, it is ended; a loaded machine needs longer to import everything.
_HANGING_SECONDS = 180.0
_STARTING_SECONDS = 900.0
_TICK_SECONDS = 1.0


@dataclass(frozen=True)
class Task:
    """What the workers try: sources by their number, even ones entries, odd ones composed."""

    seed: int
    only: str = ""  # part of the names of entries
    executors: tuple[str, ...] = ()  # beginnings of names; all if empty
    composed_only: bool = False

    def zoo(self) -> Zoo:
        """Return the entries and executors."""
        entries = [entry for entry in ENTRIES if self.only in entry.name]
        chosen = [one for one in EVERY if not self.executors or one.name.startswith(self.executors)]
        return Zoo(entries, chosen)

    def attempt(
        self, zoo: Zoo, number: int, say: Callable[[str], None] = lambda place: None, known: Counter[str] | None = None
    ) -> Attempt:
        """Try one source."""
        if number % 2 == 0 and not self.composed_only:
            tried = entry_attempt(zoo, self.seed, number // 2, say, known)
        else:
            tried = composed_attempt(zoo, self.seed, number if self.composed_only else number // 2, say, known)
        return replace(tried, index=number)


def _numbers(worker: int, n_workers: int, first: int) -> Iterator[int]:
    """Yield the numbers of one of several workers: an entry and a composed source in turn."""
    return (number for number in itertools.count(first) if number // 2 % n_workers == worker)


def prepare(executors: Sequence[Executor], folder: Path) -> None:
    """Build what the executors need, once in a folder that all processes know."""

    built = partial(filled_once, folder)
    for executor in executors:
        executor.prepare(built)


def _work(connection: Connection, task: Task, folder: Path, worker: int, n_workers: int, first: int) -> None:
    """Try one source after the other until the other end is closed."""
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
    """A process, and what it has reported."""

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
        """Take what it says; if it died or hangs, go on behind that source with a new process."""
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
        if self.place != "source":  # scikit-learn is not ours to mend
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
    """Try sources for so long in some processes; return which of these died or hung, and where."""
    deaths: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        prepare(task.zoo().executors, Path(folder))
        workers = [_Worker(task, Path(folder), k, n_workers, report, deaths) for k in range(n_workers)]
        for worker in workers:
            worker.start()
        wait([worker.connection for worker in workers], timeout=_STARTING_SECONDS)  # until the first has imported all
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            wait([worker.connection for worker in workers], timeout=_TICK_SECONDS)
            for worker in workers:
                worker.hear()
        for worker in workers:
            worker.stop()
    return deaths
