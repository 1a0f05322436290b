"""The paper's Table 2 as its authors measured it: whole processes that read text, predict and write labels."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.answers import Answers
from benchmarks.cases import Case
from benchmarks.compiled import Models
from benchmarks.timing import Effort, seconds, spread

LIBSVM_TOOL = "svm-predict"
OUR_TOOL = "approxsvm-predict"
# The tool of Claesen et al., where APPROXSVM_2014 names the folder of its programs.
TOOLS_OF_2014 = ("approx-svm", "approx-predict")

NOT_INSTALLED = "not installed"
NOT_SUPPORTED = "not supported"


@dataclass(frozen=True)
class ProcessTime:
    """A tool with one kind of model against svm-predict, whole processes on the same file.

    Attributes
    ----------
    given : str
        What our tool predicts with: LIBSVM's own model file, or an artifact of the mode named; or "2014 tool".
    n_threads : int
        Of ours; the others have one.
    model_bytes : int or None
        Of what it is given.
    libsvm_seconds : float or None
        None if svm-predict is not installed.
    seconds : float or None
        None for the reason in ``problem``.
    same_bytes : bool or None
        Whether both wrote the same output file.
    differ : float or None
        Share of the labels that differ from svm-predict's.
    """

    model: str
    given: str
    n_threads: int
    n_rows: int
    libsvm_seconds: float | None
    seconds: float | None
    model_bytes: int | None
    problem: str
    speedup: float | None
    same_bytes: bool | None
    differ: float | None


@dataclass(frozen=True)
class _Run:
    """What a tool took and wrote, or why it did not."""

    seconds: float | None = None
    output: bytes = b""
    problem: str = ""

    @property
    def labels(self) -> npt.NDArray[np.float64]:
        """The first word of each line: the tool of 2014 writes decision values behind it."""
        return np.array([line.split()[0] for line in self.output.splitlines()], np.float64)


def find_tool(name: str) -> str | None:
    """Look beside the running interpreter, which need not be on the path, then on the path."""
    if name in TOOLS_OF_2014:
        return shutil.which(name, path=os.environ.get("APPROXSVM_2014", os.devnull))
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


def measure(
    case: Case, answers: Answers, models: Models, scratch: Path, effort: Effort, all_threads: int
) -> list[ProcessTime]:
    """Time svm-predict once and ours `effort.process_rounds` times, and check the labels in their output."""
    rows = spread(case.n_rows, effort.process_rows)
    test = _test_file(case, rows, scratch)
    output = scratch / "labels"
    libsvm = _run(LIBSVM_TOOL, (test, case.model_path, output), 1)
    if libsvm.seconds is not None:
        answers.check_exact(f"{case.name}: {LIBSVM_TOOL}", libsvm.labels, rows)
    times = []
    for given, path in _model_files(case, models, scratch).items():
        check = answers.check_expansion if given == "approximate" else answers.check_exact
        for n_threads in sorted({1, all_threads}):
            arguments = ("-q", "-j", str(n_threads), test, path, output)
            ours = _run(OUR_TOOL, arguments, effort.process_rounds, may_refuse=path == case.model_path)
            if ours.seconds is not None:
                check(f"{case.name}: {OUR_TOOL}, {given}", ours.labels, rows)
            times.append(_process_time(case, given, n_threads, libsvm, ours, path, len(rows)))
    old = scratch / "of_2014.approx"
    approximated = _run(TOOLS_OF_2014[0], ("-model", case.model_path, "-o", old), 1)
    if approximated.seconds is not None:
        theirs = _run(
            TOOLS_OF_2014[1], ("-q", "-truth", "-data", test, "-model", old, "-o", output), effort.process_rounds
        )
        times.append(_process_time(case, "2014 tool", 1, libsvm, theirs, old, len(rows)))
    return times


def _model_files(case: Case, models: Models, scratch: Path) -> dict[str, Path]:
    files = {"LIBSVM model": case.model_path}
    for mode in ("certified", "approximate"):
        files[mode] = scratch / f"{mode}.asvm"
        models[mode].save(files[mode])
    return files


def _test_file(case: Case, rows: npt.NDArray[np.intp], scratch: Path) -> Path:
    if len(rows) == case.n_rows:
        return case.data.test_path
    lines = case.data.test_path.read_bytes().splitlines(keepends=True)
    sample = scratch / "sample.t"
    sample.write_bytes(b"".join(lines[row] for row in rows))
    return sample


def _run(tool: str, arguments: Sequence[str | Path], rounds: int, *, may_refuse: bool = False) -> _Run:
    """Median seconds of ``tool arguments``, the last of which is the output file; one thread for OpenMP."""
    program = find_tool(tool)
    if program is None:
        return _Run(problem=NOT_INSTALLED)
    output = Path(arguments[-1])
    output.unlink(missing_ok=True)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def run() -> None:
        subprocess.run([program, *arguments], capture_output=True, check=True, env=environment)

    try:
        return _Run(statistics.median(seconds(run) for _ in range(rounds)), output.read_bytes())
    except subprocess.CalledProcessError as error:
        if not may_refuse or error.returncode < 0:  # a crash is not a refusal
            raise
        return _Run(problem=NOT_SUPPORTED)


def _process_time(
    case: Case, given: str, n_threads: int, libsvm: _Run, run: _Run, model_path: Path, n_rows: int
) -> ProcessTime:
    both = libsvm.seconds is not None and run.seconds is not None
    return ProcessTime(
        model=case.name,
        given=given,
        n_threads=n_threads,
        n_rows=n_rows,
        libsvm_seconds=libsvm.seconds,
        seconds=run.seconds,
        model_bytes=model_path.stat().st_size,
        problem=run.problem,
        speedup=libsvm.seconds / run.seconds if libsvm.seconds and run.seconds else None,
        same_bytes=libsvm.output == run.output if both else None,
        differ=float(np.mean(libsvm.labels != run.labels)) if both else None,
    )
