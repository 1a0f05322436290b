"""A progress bar is shown to people, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import GOLDEN
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import approxsvm

PROGRAM = """
import sys, approxsvm
approxsvm.compile(sys.argv[1])
print("silent", end="", file=sys.stderr)
approxsvm.compile(sys.argv[1], verbose=False)
"""
MODEL = str(GOLDEN / "breast_cancer.model")


def said_in_a_terminal(program: str, **variables: str) -> str:
    pty = pytest.importorskip("pty", reason="pseudo terminals are POSIX's")
    ours, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", **variables}
    command = [sys.executable, "-c", program, MODEL]
    subprocess.run(command, stderr=terminal, env=environment, check=True, timeout=120)
    os.close(terminal)
    found = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # Linux: everything written has been read
            break
        if not part:
            break
        found += part
    os.close(ours)
    return found.decode()


@pytest.mark.slow
def test_in_a_terminal():
    said, afterwards = said_in_a_terminal(PROGRAM).split("silent")
    assert "Reading" in said
    assert afterwards == ""


@pytest.mark.slow
@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"FORCE_COLOR": ""}], ids=["dumb", "no escapes"])
def test_a_terminal_that_cannot_draw_over_a_line_gets_lines(variables):
    program = """
import time
from approxsvm.system.progress_bar import compiling
for show in (None, False):
    with compiling(show) as told:
        told("Planning", 0.1)
        time.sleep(1.1)
        told("Planning", 0.5)
        told("Planning", 0.6)
"""
    (line,) = said_in_a_terminal(program, **variables).splitlines()
    assert line.startswith("Planning ")
    assert line.endswith("0:00:01")
    assert "\x1b" not in line


def test_elsewhere(capfd):
    X, y = load_iris(return_X_y=True)
    svc = SVC().fit(X, y)
    approxsvm.compile(svc, X)
    assert capfd.readouterr() == ("", "")
    steps = []
    approxsvm.compile(MODEL, verbose=True, progress=lambda step, share: steps.append((step, share)))
    assert capfd.readouterr() == ("", "")
    assert {step for step, _ in steps} >= {"Planning"}
    assert all(0.0 <= share <= 1.0 for _, share in steps)
    approxsvm.compile(svc, X, verbose=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "0:00" in err
