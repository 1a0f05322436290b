"""The paper's Table 3, sizes of models, with what compiling and importing cost."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.cases import Case
from benchmarks.compiled import Compiled
from benchmarks.timing import Effort, medians

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
    ratio : float
        LIBSVM's bytes over those of the artifact in mode "approximate".
    compile_seconds, certified_compile_seconds : float
        From the model file to a predictor, the certificate included, on every processor.
    compile_rows : float or None
        Rows that LIBSVM predicts in the time that mode "certified" takes to compile.
    peak_bytes : int or None
        The most memory that a fresh process has held when it has compiled in mode "certified"; None where the
        system has no /proc.
    import_bytes : int or None
        How much of that it held when everything was imported and nothing read.
    """

    model: str
    model_bytes: int
    artifact_bytes: int
    ratio: float
    certified_bytes: int
    compile_seconds: float
    certified_compile_seconds: float
    compile_rows: float | None
    peak_bytes: int | None
    import_bytes: int | None


@dataclass(frozen=True)
class ImportTime:
    """Seconds that a statement takes in a fresh interpreter, and as a multiple of importing NumPy."""

    statement: str
    seconds: float
    ratio_to_numpy: float


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


def measure(case: Case, compiled: Compiled, libsvm_seconds: float | None) -> Size:
    """Compare the artifacts with the model file, and compile once more in a process of its own for its memory."""
    model_bytes = case.model_path.stat().st_size
    artifact_bytes = compiled.models["approximate"].artifact.n_bytes
    certified_seconds = compiled.seconds["certified"]
    import_bytes, peak_bytes = _peak_memory(case)
    return Size(
        model=case.name,
        model_bytes=model_bytes,
        artifact_bytes=artifact_bytes,
        ratio=model_bytes / artifact_bytes,
        certified_bytes=compiled.models["certified"].artifact.n_bytes,
        compile_seconds=compiled.seconds["approximate"],
        certified_compile_seconds=certified_seconds,
        compile_rows=None if libsvm_seconds is None else certified_seconds / libsvm_seconds,
        peak_bytes=peak_bytes,
        import_bytes=import_bytes,
    )


def _peak_memory(case: Case) -> tuple[int, int] | tuple[None, None]:
    if not Path("/proc/self/status").exists():
        return None, None
    command = [sys.executable, "-c", _PEAK_MEMORY, str(case.model_path), str(case.n_features)]
    imported, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(imported), int(peak)


def measure_imports(effort: Effort) -> list[ImportTime]:
    """Time imports in fresh interpreters, taking turns. Ours are lazy, so names are timed as well."""
    times = medians({statement: partial(_import_seconds, statement) for statement in IMPORTS}, effort.import_rounds)
    return [ImportTime(statement, time, time / times["import numpy"]) for statement, time in times.items()]


def _import_seconds(statement: str) -> float:
    code = f"from time import perf_counter as now; start = now(); {statement}; print(now() - start)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
