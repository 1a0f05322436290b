"""A progress bar is shown only to people."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
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
def test_an_interrupt_while_planning_leaves_no_file(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty", reason="pseudo terminals are POSIX's")
    head = "svm_type c_svc\nkernel_type rbf\ngamma 0.05\nnr_class 2\ntotal_sv 6000\nrho 0\nlabel 1 -1\n"
    rows = np.random.default_rng(0).normal(size=(6000, 20)).round(6).tolist()
    lines = [
        " ".join([str(1 - k // 3000 * 2), *(f"{j + 1}:{x}" for j, x in enumerate(row))]) for k, row in enumerate(rows)
    ]
    model, temporary = tmp_path / "large.model", tmp_path / "temporary"
    model.write_text(head + "nr_sv 3000 3000\nSV\n" + "\n".join(lines) + "\n")
    temporary.mkdir()
    ours, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "approxsvm.cli", "convert-model", model, "-o", tmp_path / "large.asvm"]
    with subprocess.Popen(command, stderr=terminal, env=environment) as process:
        os.close(terminal)
        said = b""
        while b"Planning" not in said:
            said += os.read(ours, 1 << 16)
        process.send_signal(signal.SIGINT)
        try:
            while part := os.read(ours, 1 << 16):
                said += part
        except OSError:  # Linux: whatever was written has been read
            pass
        assert process.wait(120) == 130, said
    os.close(ours)
    assert b"interrupted" in said
    assert sorted(tmp_path.iterdir()) == [model, temporary]
    assert not any(temporary.iterdir())


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
