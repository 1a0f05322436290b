"""Machine and software used to measure the figures."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from approxsvm import _native

LIBSVM_TOOL = "svm-predict"
OUR_TOOL = "approxsvm-predict"
# The tools of Claesen et al., if APPROXSVM_2014 is set to the folder that contains their programs.
TOOLS_OF_2014 = ("approx-svm", "approx-predict")
# A single string, because it is easier to read than one package per line.
_PACKAGES = (
    "approxsvm, numpy, scipy, scikit-learn, scikit-learn-intelex, libsvm-official, onnxruntime, skl2onnx, thundersvm, "
    "threadpoolctl"
)
# Files written by a run of the suite; changes to them do not affect the measurements.
_WRITTEN = ("benchmarks/results", "docs", "README.md")


@dataclass(frozen=True)
class Machine:
    """Processor, software and load."""

    cpu: str
    architecture: str
    n_cpus: int
    all_threads: int  # number of threads that the tables call "all threads"
    target: str  # target of the microkernels in use
    commit: str
    load_average: float  # over the last minute before the run: above about 0.5, times are unreliable
    python: str
    packages: dict[str, str]
    tools: dict[str, str | None]


def describe(all_threads: int) -> Machine:
    """Describe this machine, with the microkernels chosen for it by predictors."""
    return Machine(
        cpu=_cpu_model(),
        architecture=platform.machine(),
        n_cpus=os.cpu_count() or 1,
        all_threads=all_threads,
        target=os.environ.get("APPROXSVM_TARGET") or _native.runnable_targets()[0],
        commit=_commit(),
        load_average=os.getloadavg()[0],
        python=platform.python_version(),
        packages={name: _version(name) for name in _PACKAGES.split(", ")},
        tools={tool: find_tool(tool) for tool in (LIBSVM_TOOL, OUR_TOOL, *TOOLS_OF_2014)},
    )


def find_tool(name: str) -> str | None:
    """Find a tool next to the running interpreter, which need not be on the path, or else on the path."""
    if name in TOOLS_OF_2014:
        return shutil.which(name, path=os.environ.get("APPROXSVM_2014", os.devnull))
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


def _cpu_model() -> str:
    """Return the model name with family and model numbers, because virtual machines often hide it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    numbers = [f"{key} {fields[key]}" for key in ("cpu family", "model") if key in fields]
    return ", ".join([fields.get("model name", "unknown"), *numbers])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """Return the commit's short name, with ``-dirty`` if files that affect figures differ from it."""
    git = ["git", "-C", str(Path(__file__).parent.parent)]
    changes = [*git, "status", "--porcelain", "--untracked-files=no", "--", ".", *(f":(exclude){x}" for x in _WRITTEN)]
    try:
        name, changed = (
            subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
            for command in ([*git, "rev-parse", "--short", "HEAD"], changes)
        )
    except (FileNotFoundError, subprocess.CalledProcessError):
        return "unknown"
    return f"{name}-dirty" if changed else name
