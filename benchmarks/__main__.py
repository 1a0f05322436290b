"""LIBSVM models from file to file, as measured by Claesen et al. in 2014: accuracy, whole processes, compiling.

For times with rows already in memory, see `benchmarks.ordinary`. The accuracy table corresponds to the paper's Table 1.
It lists the fraction of correct labels (exact, origin, mean) and, for each center, the fraction of labels that differ
from the exact model's. The files table corresponds to Table 2: whole processes on one thread, including startup, that
read text, predict and write labels; our tool gets LIBSVM's model file, or an artifact in the given mode. If `seconds`
is None, `problem` contains the reason; `differ` is the fraction of labels that differ from svm-predict's. The tool of
2014 takes part if APPROXSVM_2014 names the folder that contains its programs. The compile table lists the time in
seconds from the model file to a predictor, on all processors, and the peak memory, including imports, of a fresh
process that compiles the model. A wrong label on an exact path ends the run.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

import approxsvm
from benchmarks.experiment import Experiment, Rows, Run, demand_labels
from benchmarks.machine import LIBSVM_TOOL, OUR_TOOL, TOOLS_OF_2014, find_tool
from benchmarks.problems import SOURCES, Source, scaled, unpacked, write_text
from benchmarks.timing import seconds, spread, timed

_ROUNDS = 5
_QUICK_ROWS = 512
# Read the kernel's record of this process: getrusage would include the process that started it.
_PEAK_MEMORY = r"""
import re, sys
import approxsvm

def peak():
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])

approxsvm.compile, approxsvm.read_model
imported = peak()
approxsvm.compile(sys.argv[1], n_features=int(sys.argv[2]))
print(imported, peak())
"""


def measure(run: Run, source: Source) -> Rows:
    """Measure all tables for one model."""
    problem = scaled(run.data, source, "none", n_test=_QUICK_ROWS if run.options.quick else None)
    model_path, test_path = run.scratch / "of_libsvm.model", run.scratch / "rows.t"
    model_path.write_bytes(unpacked(run.data.parent / "models" / f"{source.model}.model"))
    write_text(run.data, source.test, test_path)
    if run.options.quick:
        lines = test_path.read_bytes().splitlines(keepends=True)
        test_path.write_bytes(b"".join(lines[k] for k in spread(len(lines), _QUICK_ROWS)))
    model, X = problem.model, problem.X_test
    assert model is not None
    about = {"model": source.name, "n_features": model.n_features, "n_sv": model.n_sv, "gamma": model.gamma}
    exact = approxsvm.compile(model, mode="exact").predict(X)
    alone, alone_seconds = timed(lambda: approxsvm.compile(model_path, n_features=X.shape[1], mode="approximate"))
    origin = approxsvm.compile(model, mode="approximate", center="origin").predict(X)
    mean, y = alone.predict(X), problem.y_test
    row = about | {"gamma_max": approxsvm.gamma_max(problem.X, X)}
    row |= {"exact": np.mean(exact == y), "origin": np.mean(origin == y), "mean": np.mean(mean == y)}
    yield "accuracy", row | {"differ_origin": np.mean(origin != exact), "differ_mean": np.mean(mean != exact)}
    certified, certified_seconds = timed(
        lambda: approxsvm.compile(model_path, problem.X, n_features=X.shape[1], mode="certified")
    )
    artifacts = {"certified": certified, "approximate": alone}
    yield from _files(source.name, exact, artifacts, model_path, test_path)
    compiling = {"compile_seconds": alone_seconds, "certified_compile_seconds": certified_seconds}
    yield "sizes", about | compiling | _memory(model_path, X.shape[1])


def _memory(model_path: Path, n_features: int) -> dict[str, int | None]:
    """Measure the peak memory of a separate process that compiles again; None if the kernel does not record it."""
    if not Path("/proc/self/status").exists():
        return {"peak_bytes": None, "import_bytes": None}
    command = [sys.executable, "-c", _PEAK_MEMORY, str(model_path), str(n_features)]
    imported, peak = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    return {"peak_bytes": peak, "import_bytes": imported}


# --- whole processes


@dataclass(frozen=True)
class _Process:
    """Time and output of a tool, or the reason why it did not run."""

    seconds: float | None = None
    output: bytes = b""
    problem: str = ""

    @property
    def labels(self) -> npt.NDArray[np.float64]:
        """First word of each line; the tool of 2014 writes decision values after it."""
        return np.array([line.split()[0] for line in self.output.splitlines()], np.float64)


def _files(name: str, exact: npt.NDArray[Any], artifacts: dict[str, Any], model_path: Path, test_path: Path) -> Rows:
    scratch = model_path.parent
    output = scratch / "labels"
    libsvm = _run(LIBSVM_TOOL, (test_path, model_path, output), 1)
    given: dict[str, Path] = {"LIBSVM model": model_path}
    for mode, compiled in artifacts.items():
        given[mode] = scratch / f"{mode}.asvm"
        compiled.save(given[mode])
    processes = {}
    for what, path in given.items():
        arguments = ("-q", "-j", "1", test_path, path, output)
        processes[what] = _run(OUR_TOOL, arguments, _ROUNDS, may_refuse=path == model_path)
    old = scratch / "of_2014.approx"
    if _run(TOOLS_OF_2014[0], ("-model", model_path, "-o", old), 1).seconds is not None:
        arguments_of_2014 = ("-q", "-truth", "-data", test_path, "-model", old, "-o", output)
        processes["2014 tool"] = _run(TOOLS_OF_2014[1], arguments_of_2014, _ROUNDS)
    for what, process in {"svm-predict": libsvm, **processes}.items():
        if process.seconds is not None and what not in ("approximate", "2014 tool"):
            demand_labels(f"{name}: {what}", process.labels, exact)
    for what, process in processes.items():
        both = libsvm.seconds is not None and process.seconds is not None
        row = {
            "model": name,
            "given": what,
            "n_rows": len(exact),
            "libsvm_seconds": libsvm.seconds,
            "seconds": process.seconds,
            "problem": process.problem,
            "speedup": libsvm.seconds / process.seconds if libsvm.seconds and process.seconds else None,
            "same_bytes": libsvm.output == process.output if both else None,
            "differ": np.mean(libsvm.labels != process.labels) if both else None,
        }
        yield "files", row


def _run(tool: str, arguments: Sequence[str | Path], rounds: int, *, may_refuse: bool = False) -> _Process:
    """Run the tool with these arguments (output file last) and one OpenMP thread; return the median seconds."""
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
        if not may_refuse or error.returncode < 0:  # a crash is not a rejection
            raise
        return _Process(problem="not supported")


_QUICK = click.Option(["--quick"], is_flag=True, help="Use few rows, as a test.")
_CASES = {source.name: source for source in SOURCES.values() if source.model}
EXPERIMENT = Experiment("libsvm", __doc__, measure, _CASES, [_QUICK])

if __name__ == "__main__":
    EXPERIMENT.main()
