"""Every example that the documentation shows is executed; the C++ program in tests/test_cpp_programs.py."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sysconfig

import pytest
from conftest import REPOSITORY

import approxsvm

MODULES = [
    "approxsvm",
    *(m.name for m in pkgutil.walk_packages(approxsvm.__path__, "approxsvm.") if "_native" not in m.name),
]
README = (REPOSITORY / "README.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_readme_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(REPOSITORY / "models", "models")
    namespace: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), namespace)
    assert blocks("python")


@pytest.mark.slow
def test_readme_shell(tmp_path):
    """The commands behind `$ ` work as printed; the test command itself is run by .ci/run."""
    shutil.copytree(REPOSITORY / "models", tmp_path / "models")
    path = sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"]
    lines = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    assert lines
    for line in lines:
        result = subprocess.run(
            line, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
        )
        assert result.returncode == 0, (line, result.stderr)
