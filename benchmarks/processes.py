"""The paper's Table 2 as its authors measured it: whole processes that read text, predict and write labels."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import approxsvm
from benchmarks.answers import Answers
from benchmarks.cases import Case
from benchmarks.timing import Effort, seconds, spread

LIBSVM_TOOL = "svm-predict"
OUR_TOOL = "approxsvm-predict"


@dataclass(frozen=True)
class ProcessTime:
    """Whole-process times on the same file; None where a tool is not installed."""

    model: str
    n_rows: int
    libsvm_seconds: float | None
    our_seconds: float | None
    speedup: float | None
    speedup_2014: float | None
    differ: float | None


def find_tool(name: str) -> str | None:
    """Look beside the running interpreter, which need not be on the path, then on the path."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


def measure(case: Case, answers: Answers, fast: approxsvm.CompiledSVC, scratch: Path, effort: Effort) -> ProcessTime:
    """Time svm-predict once and ours `effort.rounds` times, and check the labels in their output."""
    rows = spread(case.n_rows, effort.process_rows)
    test = _test_file(case, rows, scratch)
    artifact = scratch / "model.asvm"
    fast.save(artifact)
    output = scratch / "labels"

    libsvm = _timed(LIBSVM_TOOL, (test, case.model_path), output, 1)
    libsvm_labels = _labels(output) if libsvm is not None else None
    if libsvm_labels is not None:
        answers.check_exact(f"{case.name}: {LIBSVM_TOOL}", libsvm_labels, rows)
    ours = _timed(OUR_TOOL, (test, artifact), output, effort.rounds)
    our_labels = _labels(output) if ours is not None else None
    if our_labels is not None:
        answers.check_expansion(f"{case.name}: {OUR_TOOL}", our_labels, rows)
    both = libsvm_labels is not None and our_labels is not None
    return ProcessTime(
        model=case.name,
        n_rows=len(rows),
        libsvm_seconds=libsvm,
        our_seconds=ours,
        speedup=libsvm / ours if libsvm and ours else None,
        speedup_2014=case.spec.prior.speedup,
        differ=float(np.mean(libsvm_labels != our_labels)) if both else None,
    )


def _test_file(case: Case, rows: npt.NDArray[np.intp], scratch: Path) -> Path:
    if len(rows) == case.n_rows:
        return case.data.test_path
    lines = case.data.test_path.read_bytes().splitlines(keepends=True)
    sample = scratch / "sample.t"
    sample.write_bytes(b"".join(lines[row] for row in rows))
    return sample


def _timed(tool: str, inputs: Sequence[Path], output: Path, rounds: int) -> float | None:
    """Median seconds of ``tool inputs output``, or None if the tool is not installed."""
    program = find_tool(tool)
    if program is None:
        return None
    output.unlink(missing_ok=True)

    def run() -> None:
        subprocess.run([program, *inputs, output], stdout=subprocess.DEVNULL, check=True)

    return statistics.median(seconds(run) for _ in range(rounds))


def _labels(output: Path) -> npt.NDArray[np.float64]:
    return np.loadtxt(output, ndmin=1)
