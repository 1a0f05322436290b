"""Pytest plugin for the command: records the places that each test reaches, and which test notices a disabled one.

Everything is imported and collected once. Each mutant is a forked process that runs tests until one fails.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from approxsvm import _mutants as approxsvm_mutants
from approxsvm import _native

_MOST_PLACES = 10000
_LIBRARY = ctypes.CDLL(_native.__file__)
_LIBRARY.approxsvm_reached.restype = ctypes.POINTER(ctypes.c_ubyte * _MOST_PLACES)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants-record", type=Path)
    parser.addoption("--mutants-plan", type=Path)


def pytest_configure(config: pytest.Config) -> None:
    if config.option.mutants_record:
        config.pluginmanager.register(_Recorder(config.option.mutants_record))
    if config.option.mutants_plan:
        config.pluginmanager.register(_Runner(json.loads(config.option.mutants_plan.read_text())))


def read_record(path: Path) -> dict[str, Any]:
    """Read each test's time and the places that it reaches."""
    lines = map(json.loads, path.read_text().splitlines() if path.exists() else ())
    return {line["test"]: line for line in lines}


class _Recorder:
    """Records the places reached by each passing test, including its fixtures and subprocesses."""

    def __init__(self, path: Path) -> None:
        self.path, self.known = path, read_record(path)
        self.of_fixtures: dict[str, set[int]] = defaultdict(set)
        self.folder = Path(tempfile.mkdtemp())
        os.environ["APPROXSVM_MUTANTS_REACHED"] = str(self.folder)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid not in self.known]

    def taken(self) -> set[int]:
        """Return the places reached since the last call."""
        cpp = _LIBRARY.approxsvm_reached().contents
        found = approxsvm_mutants.reached | {n for n, is_reached in enumerate(bytes(cpp)) if is_reached}
        approxsvm_mutants.reached.clear()
        ctypes.memset(cpp, 0, _MOST_PLACES)
        for file in self.folder.iterdir():
            found |= set(map(int, file.read_text().split()))
            file.unlink()
        return found

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        before = self.taken()
        try:
            return (yield)
        finally:
            found = self.taken()
            self.of_fixtures[fixturedef.argname] |= found
            approxsvm_mutants.reached.update(before | found)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.taken()
        self.passed, begin = False, time.monotonic()
        result = yield
        found = self.taken().union(*(self.of_fixtures[name] for name in getattr(item, "fixturenames", ())))
        line: dict[str, Any] = {"test": item.nodeid, "seconds": round(time.monotonic() - begin, 3)}
        line["places"] = sorted(found) if self.passed else []
        with self.path.open("a") as record:  # so that the next call continues where this one stopped
            print(json.dumps(line), file=record)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.passed = report.passed

    def pytest_sessionfinish(self) -> None:
        shutil.rmtree(self.folder)


@dataclass
class _Mutant:
    number: int
    tests: list[str]
    limit: float
    begin: float = field(default_factory=time.monotonic)


class _Runner:
    """Runs the mutants of a plan, which contains numbers, files, the test record and limits."""

    def __init__(self, plan: Any) -> None:
        self.record, self.files = read_record(Path(plan["record"])), plan["files"]
        self.queue, self.jobs, self.seconds, self.results = (
            plan["numbers"],
            plan["jobs"],
            plan["seconds"],
            plan["results"],
        )
        self.end = time.monotonic() + plan["total_seconds"]
        self.reaching: dict[int, list[str]] = defaultdict(list)
        for name, test in self.record.items():
            for n in test["places"]:
                self.reaching[n].append(name)
        self.kills: Counter[tuple[str, str]] = Counter()
        self.sound: dict[str, bool] = {}  # True if a failed test passes in a forked process without a mutant
        self.folder = Path(tempfile.mkdtemp())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        running: dict[int, _Mutant] = {}
        with open(self.results, "a") as results:
            while self.queue or running:
                while self.queue and len(running) < self.jobs and time.monotonic() < self.end:
                    mutant = self.chosen(self.queue.pop(0))
                    running[self.forked(mutant)] = mutant
                for pid, mutant in list(running.items()):
                    found = self.finished(pid, mutant)
                    if found is None:
                        continue
                    del running[pid]
                    if found and not self.is_sound(found):
                        self.queue.insert(0, mutant.number)
                        continue
                    if found:
                        self.kills[self.files[str(mutant.number)], found] += 1
                    line = {"number": mutant.number, "by": found, "tests": len(mutant.tests),
                            "of": len(self.reaching[mutant.number])}  # fmt: skip
                    print(json.dumps(line), file=results, flush=True)
                if not running and time.monotonic() >= self.end:
                    break
                time.sleep(0.01)
        shutil.rmtree(self.folder)
        return True

    def chosen(self, n: int) -> _Mutant:
        """Choose tests that reach a place: first those that noticed others in its file, then fast, diverse ones."""
        names = [name for name in self.reaching[n] if name in self.items and self.sound.get(name, True)]
        seen: Counter[str] = Counter()
        rank = {}
        for name in sorted(names, key=lambda name: self.record[name]["seconds"]):
            function = name.split("[")[0]
            rank[name] = (-self.kills[self.files[str(n)], name], seen[function], self.record[name]["seconds"])
            seen[function] += 1
        names.sort(key=rank.__getitem__)
        left, kept = self.seconds, []
        for name in names:
            left -= self.record[name]["seconds"]
            if left < 0.0 and kept:
                break
            kept.append(name)
        place = {name: k for k, name in enumerate(self.items)}
        kept[12:] = sorted(kept[12:], key=place.__getitem__)  # so that fixtures with file scope are made once
        return _Mutant(n, kept, 60.0 + 4.0 * sum(self.record[name]["seconds"] for name in kept))

    def forked(self, mutant: _Mutant) -> int:
        """Start a process that runs the tests with a mutant until one fails, and records its name."""
        pid = os.fork()
        if pid:
            return pid
        status = 3
        try:
            os.setsid()
            os.environ["APPROXSVM_MUTANT"] = str(mutant.number)
            approxsvm_mutants.active = mutant.number
            _LIBRARY.approxsvm_set_mutant(mutant.number)
            own = self.folder / f"{os.getpid()}"
            own.mkdir()
            os.environ["TMPDIR"] = tempfile.tempdir = str(own)
            items = [self.items[name] for name in mutant.tests]
            status = 0
            for item, after in zip(items, [*items[1:], None], strict=True):
                (own / "running").write_text(item.nodeid)
                if any(report.failed for report in runtestprotocol(item, log=False, nextitem=after)):
                    status = 1
                    break
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(status)

    def finished(self, pid: int, mutant: _Mutant) -> str | None:
        """Return the test that noticed, "" if none did, or None while tests run."""
        done, status = os.waitpid(pid, os.WNOHANG)
        if not done:
            if time.monotonic() < mutant.begin + mutant.limit:
                return None
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            status = signal.SIGKILL
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # processes started by its tests
        own = self.folder / str(pid)
        name = (own / "running").read_text() if status and (own / "running").exists() else ""
        shutil.rmtree(own, ignore_errors=True)
        return name

    def is_sound(self, name: str) -> bool:
        """Return whether a test passes without a mutant; one that fails shows nothing about mutants."""
        if name not in self.sound:
            control = _Mutant(-1, [name], 600.0)
            pid = self.forked(control)
            while (found := self.finished(pid, control)) is None:
                time.sleep(0.01)
            self.sound[name] = not found
        return self.sound[name]
