"""Environment of a report: package versions, the processor, and the memory that a new process needs to predict."""

import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from approxsvm.artifact.views import Artifact

_PACKAGES: Final = ("approxsvm", "numpy", "scipy", "scikit-learn")
# Program that prints the increase in resident memory due to loading and predicting, after all imports.
_PROGRAM: Final = """
import os
import numpy as np
from approxsvm.predictor import Predictor

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

before = resident()
predictor = Predictor("model.asvm")
predictor.predict(np.zeros((256, predictor.n_features)))
print(resident() - before)
"""


def versions() -> list[tuple[str, str]]:
    """Return the names and versions of Python, approxsvm and the packages that it uses."""
    packages = [("Python", platform.python_version())]
    for name in _PACKAGES:
        try:
            packages.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return packages


def processor() -> str:
    """Return the name of the processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def resident_bytes(artifact: Artifact) -> int | None:
    """Measure the memory a new process needs to load an artifact and predict a few rows; return None if unavailable."""
    if not Path("/proc/self/statm").exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        artifact.write(os.path.join(folder, "model.asvm"))
        done = subprocess.run([sys.executable, "-c", _PROGRAM], cwd=folder, capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else None
