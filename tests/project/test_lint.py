"""Style checks: ruff, mypy --strict and clang-format, with the settings in pyproject.toml."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from conftest import REPOSITORY

pytestmark = pytest.mark.lint

SCRIPTS = Path(sysconfig.get_path("scripts"))


def sources(*suffixes: str) -> list[str]:
    return sorted(str(p) for p in (REPOSITORY / "cpp").rglob("*") if p.suffix in suffixes)


@pytest.mark.parametrize(
    "command",
    [
        [SCRIPTS / "ruff", "check"],
        [SCRIPTS / "ruff", "format", "--check"],
        [sys.executable, "-m", "mypy", f"--cache-dir={os.devnull}"],
        [SCRIPTS / "clang-format", "--dry-run", "-Werror", *sources(".cpp", ".hpp", ".c", ".h")],
    ],
    ids=["ruff check", "ruff format", "mypy", "clang-format"],
)
def test_style(command: list[str | Path]) -> None:
    if not Path(command[0]).exists():
        pytest.skip(f"{command[0]} is not installed; it is part of the test extra")
    result = subprocess.run([str(part) for part in command], cwd=REPOSITORY, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
