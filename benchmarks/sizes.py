"""The paper's Table 3, sizes of models, with what compiling and importing cost."""

from __future__ import annotations

import statistics
import subprocess
import sys
from dataclasses import dataclass
from functools import partial

from threadpoolctl import threadpool_limits

import approxsvm
from benchmarks.answers import Answers
from benchmarks.cases import Case
from benchmarks.timing import Effort, medians, seconds

IMPORTS = (
    "import numpy",
    "import sklearn.svm",
    "import approxsvm",
    "from approxsvm import load",
)


@dataclass(frozen=True)
class Size:
    """One row of Table 3.

    Attributes
    ----------
    ratio, ratio_2014 : float
        LIBSVM's bytes over the compiled model's, ours and that of the tool of 2014.
    compile_seconds : float
        From the model file to a predictor on one thread, in a process that has compiled before.
    compile_rows : float or None
        Rows that LIBSVM predicts in this time.
    """

    model: str
    model_bytes: int
    artifact_bytes: int
    ratio: float
    bytes_2014: int | None
    ratio_2014: float | None
    compile_seconds: float
    compile_rows: float | None


@dataclass(frozen=True)
class ImportTime:
    """Seconds that a statement takes in a fresh interpreter, and as a multiple of importing NumPy."""

    statement: str
    seconds: float
    ratio_to_numpy: float


def measure(case: Case, answers: Answers, libsvm_seconds: float | None, effort: Effort) -> Size:
    """Compile from the file, check the result, then compile again for the time."""

    def compiled() -> approxsvm.CompiledSVC:
        return approxsvm.compile(case.model_path, n_features=case.n_features)

    fast = compiled()
    answers.check_expansion(f"{case.name}: compiled from its file", fast.predict(case.data.X_test))
    with threadpool_limits(1):  # as LIBSVM is timed; and threads of BLAS waiting for a busy core take tenfold
        compile_seconds = statistics.median(seconds(compiled) for _ in range(effort.rounds))
    model_bytes, artifact_bytes = case.model_path.stat().st_size, len(fast.artifact.data)
    before = case.spec.prior.model_bytes
    return Size(
        model=case.name,
        model_bytes=model_bytes,
        artifact_bytes=artifact_bytes,
        ratio=model_bytes / artifact_bytes,
        bytes_2014=before,
        ratio_2014=None if before is None else model_bytes / before,
        compile_seconds=compile_seconds,
        compile_rows=None if libsvm_seconds is None else compile_seconds / libsvm_seconds,
    )


def measure_imports(effort: Effort) -> list[ImportTime]:
    """Time imports in fresh interpreters, taking turns. Ours are lazy, so names are timed as well."""
    times = medians({statement: partial(_import_seconds, statement) for statement in IMPORTS}, effort.import_rounds)
    return [ImportTime(statement, time, time / times["import numpy"]) for statement, time in times.items()]


def _import_seconds(statement: str) -> float:
    code = f"from time import perf_counter as now; start = now(); {statement}; print(now() - start)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
