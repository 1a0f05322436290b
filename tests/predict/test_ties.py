"""Rows at a tie between classes get the labels elected by all pairs, which are summed by the definition."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm.ir.outputs import class_pairs


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("n_classes", "copies"), [(3, 2), (10, 3), (30, 2)])
def test_duplicated_classes(n_classes: int, copies: int, scaled: bool) -> None:
    rng = np.random.default_rng(n_classes)
    one = np.repeat(2 * rng.random((n_classes, 5)), 6, axis=0) + 0.2 * rng.normal(size=(6 * n_classes, 5))
    X, y = np.vstack([one] * copies), np.repeat(np.arange(n_classes * copies), 6)
    svc = SVC(gamma=1.0)
    fast = approxsvm.compile((make_pipeline(StandardScaler(), svc) if scaled else svc).fit(X, y), mode="exact")
    rows = np.vstack([one, one + 0.1 * rng.normal(size=one.shape), 50 * rng.normal(size=(20, 5))])
    before = fast.rows_per_stage["definition"]
    labels = fast.predict(rows)
    assert fast.rows_per_stage["definition"] - before > len(rows) // 2
    # For a row at a tie, exact values are the definition's, for all pairs.
    values = fast._evaluator.evaluate(rows)
    votes = np.zeros((len(rows), n_classes * copies), int)
    for k, (i, j) in enumerate(class_pairs(n_classes * copies)):
        votes[:, i] += values[:, k] > 0
        votes[:, j] += values[:, k] <= 0
    np.testing.assert_array_equal(labels, fast.artifact.labels[votes.argmax(axis=1)])
    assert not fast.certified(rows[: len(one)]).any()
