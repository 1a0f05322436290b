"""The paper's Table 2 as its authors measured it: whole processes that read text, predict and write labels."""

from __future__ import annotations

import os
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.model.schema import Mode
from benchmarks.answers import Answers
from benchmarks.cases import Case
from benchmarks.experiment import Rows
from benchmarks.machine import LIBSVM_TOOL, OUR_TOOL, TOOLS_OF_2014, find_tool
from benchmarks.timing import seconds, spread

_MODES: tuple[Mode, ...] = ("certified", "approximate")


@dataclass(frozen=True)
class _Process:
    """What a tool took and wrote, or why it did not."""

    seconds: float | None = None
    output: bytes = b""
    problem: str = ""

    @property
    def labels(self) -> npt.NDArray[np.float64]:
        """The first word of each line: the tool of 2014 writes decision values behind it."""
        return np.array([line.split()[0] for line in self.output.splitlines()], np.float64)


def measure(case: Case, answers: Answers, scratch: Path, effort: Any, all_threads: int) -> Rows:
    """Time svm-predict once and the others `effort.process_rounds` times, and check the labels in their output.

    Our tool is given LIBSVM's own model file, or an artifact of the mode named. `seconds` is None for the reason in
    `problem`, `differ` is the share of labels that differ from svm-predict's.
    """
    numbers = spread(case.n_rows, effort.process_rows)
    test, output = _test_file(case, numbers, scratch), scratch / "labels"
    libsvm = _run(LIBSVM_TOOL, (test, case.model_path, output), 1)
    if libsvm.seconds is not None:
        answers.check("exact", f"{case.name}: {LIBSVM_TOOL}", libsvm.labels, numbers)
    given: dict[str, Path] = {"LIBSVM model": case.model_path}
    for mode in _MODES:
        given[mode] = scratch / f"{mode}.asvm"
        case.compiled[mode].save(given[mode])
    for name, path in given.items():
        for n_threads in sorted({1, all_threads}):
            arguments = ("-q", "-j", str(n_threads), test, path, output)
            ours = _run(OUR_TOOL, arguments, effort.process_rounds, may_refuse=path == case.model_path)
            if ours.seconds is not None:
                answer = "expansion" if name == "approximate" else "exact"
                answers.check(answer, f"{case.name}: {OUR_TOOL}, {name}", ours.labels, numbers)
            yield "files", _row(case, name, n_threads, libsvm, ours, path, len(numbers))
    old = scratch / "of_2014.approx"
    if _run(TOOLS_OF_2014[0], ("-model", case.model_path, "-o", old), 1).seconds is not None:
        arguments_of_2014 = ("-q", "-truth", "-data", test, "-model", old, "-o", output)
        theirs = _run(TOOLS_OF_2014[1], arguments_of_2014, effort.process_rounds)
        yield "files", _row(case, "2014 tool", 1, libsvm, theirs, old, len(numbers))


def _test_file(case: Case, numbers: npt.NDArray[np.intp], scratch: Path) -> Path:
    if len(numbers) == case.n_rows:
        return case.test_path
    lines = case.test_path.read_bytes().splitlines(keepends=True)
    sample = scratch / "sample.t"
    sample.write_bytes(b"".join(lines[row] for row in numbers))
    return sample


def _run(tool: str, arguments: Sequence[str | Path], rounds: int, *, may_refuse: bool = False) -> _Process:
    """Median seconds of ``tool arguments``, the last of which is the output file; one thread for OpenMP."""
    program = find_tool(tool)
    if program is None:
        return _Process(problem="not installed")
    output = Path(arguments[-1])
    output.unlink(missing_ok=True)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def run() -> None:
        subprocess.run([program, *arguments], capture_output=True, check=True, env=environment)

    try:
        return _Process(statistics.median(seconds(run) for _ in range(rounds)), output.read_bytes())
    except subprocess.CalledProcessError as error:
        if not may_refuse or error.returncode < 0:  # a crash is not a refusal
            raise
        return _Process(problem="not supported")


def _row(
    case: Case, given: str, n_threads: int, libsvm: _Process, run: _Process, model_path: Path, n_rows: int
) -> dict[str, Any]:
    both = libsvm.seconds is not None and run.seconds is not None
    return {
        "model": case.name,
        "given": given,
        "n_threads": n_threads,
        "n_rows": n_rows,
        "libsvm_seconds": libsvm.seconds,
        "seconds": run.seconds,
        "model_bytes": model_path.stat().st_size,
        "problem": run.problem,
        "speedup": libsvm.seconds / run.seconds if libsvm.seconds and run.seconds else None,
        "same_bytes": libsvm.output == run.output if both else None,
        "differ": np.mean(libsvm.labels != run.labels) if both else None,
    }
