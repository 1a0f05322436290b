"""Use of CMake and Ninja, as installed by the "test" extra or by the system."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
PATH = sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"]


def run(*command: str | Path) -> str:
    """Run a command, which must succeed, and return its output; skip if a tool is missing."""
    for tool in (str(command[0]), "c++"):
        if shutil.which(tool, path=PATH) is None:
            pytest.skip(f"{tool} is not installed")
    environment = {**os.environ, "PATH": PATH}
    result = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    return result.stdout + result.stderr


def kernels_of_the_wheel() -> list[str]:
    """Return the option that reuses the installed package's kernels if their sources are unchanged.

    Users run these kernels, and recompiling them takes minutes.
    """
    sources = [path for folder in ("include", "dispatch") for path in (REPOSITORY / "cpp" / folder).rglob("*.*")]
    newest = max(path.stat().st_mtime for path in [*sources, REPOSITORY / "cpp" / "CMakeLists.txt"])
    for folder in (REPOSITORY / "build").glob("cp*"):
        objects = [*folder.glob("cpp/CMakeFiles/approxsvm_kernels_*/dispatch/target.cpp.o")]
        if objects and min(path.stat().st_mtime for path in objects) > newest:
            return [f"-DAPPROXSVM_KERNELS={folder}"]
    return []


def filled_once(base: Path, name: str, fill: Callable[[Path], None]) -> Path:
    """Return a folder for a slow build, which the first process fills while the others wait."""
    folder, unfinished = base / name, base / f"{name}.unfinished"
    while not folder.exists():
        try:
            unfinished.mkdir()
        except FileExistsError:  # another process is filling it
            time.sleep(0.1)
            continue
        try:
            fill(unfinished)
            unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return folder
