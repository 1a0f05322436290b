"""Tests of comparison.py."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from comparison import Finding, answers, compare_answers
from sklearn.datasets import load_iris
from sklearn.svm import SVC, SVR

import approxsvm

IRIS, SPECIES = load_iris(return_X_y=True)


def compared(source: Any, other: Any, rows: Any = IRIS) -> Finding:
    return compare_answers(source, approxsvm.compile(other), rows, answers(source, rows))


@pytest.mark.filterwarnings("ignore:The `probability` parameter")
def test_equal_answers_are_equal() -> None:
    source = SVC(probability=True, random_state=0).fit(IRIS, SPECIES)
    assert compared(source, source).verdict == "equal"


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
def test_other_answers_differ(source: Any, other: Any, what: str) -> None:
    found = compared(*(estimator.fit(IRIS, y) for estimator, y in (source, other)))
    assert found.verdict == ("other methods" if what.startswith("predict_proba") else "differs")
    assert re.search(what, found.reason)


def test_labels_at_a_tie_may_differ() -> None:
    """For rows on the boundary, to within float64 rounding, two orders of summation may give different labels."""
    source = SVC(gamma=0.3).fit([[-1.0, 0.0], [1.0, 0.0]], [0, 1])
    rows = np.column_stack([np.zeros(50), np.linspace(-3.0, 3.0, 50)])
    assert compared(source, source, rows).verdict == "equal"
