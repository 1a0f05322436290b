"""LIBSVM's models against all peers: accuracy, time, size.

Every answer is checked before it is timed. The tool of 2014 takes part where APPROXSVM_2014 names the folder of its
programs. Tables: accuracy is the paper's Table 1, with shares of labels that are right (exact, origin, mean) and of
those that differ from the exact model's about either center; exact labels, expansion alone (in_memory.py) and files
(processes.py) its Table 2; sizes its Table 3, with seconds from the model file to a predictor, on every processor, and
the most memory that a fresh process has held when it has compiled in mode "certified", imports included.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

import approxsvm
from approxsvm.model.schema import Mode
from benchmarks import in_memory, processes
from benchmarks.answers import Answers, check_decision_values
from benchmarks.cases import SPECS, Case, Spec, read_case
from benchmarks.experiment import Experiment, Rows, Run, number
from benchmarks.timing import timed

_MODES: tuple[Mode, ...] = ("approximate", "certified", "exact")
# The kernel's own record of this process: getrusage would begin with that of the process that started it.
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


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds, and test rows, evenly spread, of which None means all."""

    # Of expansions and of exact predictors in memory
    rounds: int = 21
    slow_rounds: int = 5
    # For LIBSVM and scikit-learn, and for other exact predictors that are faster
    slow_rows: int | None = 512
    engine_rows: int | None = 4096
    # Of whole processes
    process_rounds: int = 5
    process_rows: int | None = None


_QUICK = Effort(5, 3, 64, 2048, 3, 512)
_FULL = Effort(slow_rounds=1, slow_rows=None, engine_rows=None)


def measure(run: Run, spec: Spec) -> Rows:
    """All tables of one model."""
    case = read_case(spec, run.data, run.scratch)
    answers, effort, threads = Answers.of(case), run.options.effort or Effort(), run.options.threads
    seconds = {}
    for mode in _MODES:
        case.compiled[mode], seconds[mode] = timed(
            lambda mode=mode: approxsvm.compile(  # type: ignore[misc]
                case.model_path, case.X_train, n_features=spec.n_features, mode=mode
            )
        )
    yield "accuracy", _accuracy(case, answers)
    yield from in_memory.measure(case, answers, effort, threads)
    yield from processes.measure(case, answers, run.scratch, effort, threads)
    yield "sizes", _sizes(case, seconds)


def _accuracy(case: Case, answers: Answers) -> dict[str, Any]:
    """Check decision values about both centers, then compare their labels with the exact model's."""
    exact = answers.exact_labels()
    about_mean = case.compiled["approximate"]
    about_origin = approxsvm.compile(case.model, mode="approximate", center="origin")
    check_decision_values(case, about_mean, "mean")
    check_decision_values(case, about_origin, "origin")
    mean, origin = about_mean.predict(case.X_test), about_origin.predict(case.X_test)
    return {
        "model": case.name,
        "n_features": case.model.n_features,
        "n_sv": case.model.n_sv,
        "gamma": case.model.gamma,
        "gamma_max": approxsvm.gamma_max(case.X_train, case.X_test),
        "exact": np.mean(exact == case.y_test),
        "origin": np.mean(origin == case.y_test),
        "mean": np.mean(mean == case.y_test),
        "differ_origin": np.mean(origin != exact),
        "differ_mean": np.mean(mean != exact),
    }


def _sizes(case: Case, seconds: dict[Mode, float]) -> dict[str, Any]:
    """Compare the artifacts with the model file, and compile once more in a process of its own for its memory."""
    import_bytes = peak_bytes = None
    if Path("/proc/self/status").exists():
        command = [sys.executable, "-c", _PEAK_MEMORY, str(case.model_path), str(case.model.n_features)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        import_bytes, peak_bytes = map(int, printed.split())
    model_bytes, artifact_bytes = case.model_path.stat().st_size, case.compiled["approximate"].artifact.n_bytes
    return {
        "model": case.name,
        "model_bytes": model_bytes,
        "artifact_bytes": artifact_bytes,
        "ratio": model_bytes / artifact_bytes,
        "certified_bytes": case.compiled["certified"].artifact.n_bytes,
        "compile_seconds": seconds["approximate"],
        "certified_compile_seconds": seconds["certified"],
        "peak_bytes": peak_bytes,
        "import_bytes": import_bytes,
    }


OPTIONS = [
    click.Option(["--quick", "effort"], flag_value=_QUICK, type=click.UNPROCESSED, help="Few rows: a few minutes."),
    click.Option(["--full", "effort"], flag_value=_FULL, type=click.UNPROCESSED, help="Every row for slow ones too."),
    number("--threads", os.cpu_count() or 1, "What to call all threads."),
]
EXPERIMENT = Experiment("libsvm", __doc__, measure, SPECS, OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()
