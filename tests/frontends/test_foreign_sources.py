"""Tests of comparison.py and gallery.py: scikit-learn's own fitted estimators, compared with what they compile to."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparison import compare
from conftest import REPOSITORY
from gallery import PACKAGE, SUITES
from sklearn.datasets import load_iris
from sklearn.svm import SVC, SVR

import approxsvm

IRIS, SPECIES = load_iris(return_X_y=True)


@pytest.mark.filterwarnings("ignore:The `probability` parameter")
def test_equal_answers_are_equal() -> None:
    found = compare(SVC(probability=True, random_state=0).fit(IRIS, SPECIES), IRIS)
    assert (found.verdict, found.n_rows, found.n_ties) == ("equal", len(IRIS), 0)


@pytest.mark.filterwarnings("ignore:The `probability` parameter")
@pytest.mark.parametrize(
    ("source", "other", "what"),
    [
        ((SVC(C=10.0), SPECIES), (SVC(C=0.01), SPECIES), "predict: [0-9]+ of 150 labels"),
        ((SVC(), SPECIES), (SVC(probability=True), SPECIES), "predict_proba: an answer, but"),
        ((SVC(), SPECIES), (SVC(), SPECIES + 1), r"classes_: \[1, 2, 3\] instead of \[0, 1, 2\]"),
        ((SVR(), IRIS[:, 0]), (SVR(), 1.001 * IRIS[:, 0]), "predict: 150 of 150 rows"),
    ],
    ids=["labels", "methods", "classes", "values"],
)
def test_other_answers_differ(source: Any, other: Any, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, other = (estimator.fit(IRIS, y) for estimator, y in (source, other))
    compiled = approxsvm.compile(other)
    monkeypatch.setattr(approxsvm, "compile", lambda *_, **__: compiled)
    found = compare(source, IRIS)
    assert found.verdict == ("other methods" if what.startswith("predict_proba") else "differs")
    assert re.search(what, found.reason)


def test_exceptions_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    other = SVC(kernel=lambda a, b: a @ b.T).fit(IRIS, SPECIES)
    assert compare(other, IRIS).verdict == "refused"
    assert compare(SVC(), IRIS).exception == "NotFittedError"
    monkeypatch.setattr(approxsvm, "compile", lambda *_, **__: 1 / 0)
    assert compare(other, IRIS).verdict == "wrong exception"


def test_labels_at_a_tie_are_counted_apart() -> None:
    """For rows on the boundary, up to float64, two orders of summation may give different labels."""
    X = np.array([[-1.0, 0.0], [1.0, 0.0]])
    source = SVC(gamma=0.3).fit(X, [0, 1])
    rows = np.column_stack([np.zeros(50), np.linspace(-3.0, 3.0, 50)])
    found = compare(source, X, rows)
    assert found.verdict == "equal"
    assert found.n_rows == 50


@pytest.mark.slow
def test_gallery_runs_and_finds_nothing(tmp_path: Path) -> None:
    if not (PACKAGE / SUITES["kernel_ridge"][0]).exists():
        pytest.skip("scikit-learn's tests are not installed")
    command = [sys.executable, "-m", "tests.gallery", "--only", "kernel_ridge", "--results", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    tables = json.loads((tmp_path / "gallery.json").read_text())["tables"]
    counts = tables["fitted"][0]
    assert counts["fitted"] == counts["equal"] + counts["refused"] > 15
    assert counts["equal"] > 10
    assert tables["tests"][0]["failed"] == 0
