"""The issue's promises on the data of the paper: labels, sizes. Skipped where $APPROXSVM_DATA is absent."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import approxsvm
from approxsvm import reference
from approxsvm.expansion import taylor


def exact_values(model, X):
    """Exact decision values by plain float64 NumPy, in pieces."""
    vectors, coef = model.dense_support_vectors(0, model.n_sv), model.coefficients(0)
    parts = [
        np.exp(-model.gamma * cdist(X[i : i + 1000], vectors, "sqeuclidean")) @ coef for i in range(0, len(X), 1000)
    ]
    return np.concatenate(parts) + model.intercept[0]


@pytest.fixture(scope="module")
def a9a(unpacked):
    model = approxsvm.read_libsvm_model(unpacked("models/a9a_g0.01.model.xz"), n_features=123)
    X, y = approxsvm.read_libsvm_data(unpacked("data/a9a.t.bz2"), n_features=123)
    return model, X, y, exact_values(model, X.toarray())


def test_svm_predicts_accuracy_is_reproduced_by_the_reader(a9a):
    _, _, y, exact = a9a
    assert int((np.where(exact > 0, 1, -1) == y).sum()) == 13806  # what svm-predict printed: models/README.md


@pytest.mark.parametrize(("center", "low", "high"), [("mean", 0.0, 0.0005), ("origin", 0.0015, 0.0030)])
def test_share_of_labels_that_differ_on_a9a(a9a, center, low, high, target):
    """The paper, with the origin as center: 0.2 %."""
    model, X, _, exact = a9a
    fast = approxsvm.compile(model, center=center)
    for rows in (X, X.toarray().astype(np.float32)):
        differ = (fast.predict(rows) != np.where(exact > 0, 1, -1)).mean()
        assert low <= differ <= high


def test_the_artifact_of_a9a_is_at_most_32_kb(a9a):
    assert len(approxsvm.compile(a9a[0]).artifact.data) <= 32 * 1024


def test_native_values_equal_the_reference_expansion_on_a9a(a9a, target):
    model, X, _, _ = a9a
    rows = X[:500].toarray()
    expected = reference.evaluate(taylor.expand(model), rows)
    fast = approxsvm.compile(model)
    np.testing.assert_allclose(fast.decision_function(rows), expected, atol=1e-5)
    np.testing.assert_allclose(fast.decision_function(X[:500]), expected, atol=1e-5)


def test_ijcnn1(unpacked, target):
    model = approxsvm.read_libsvm_model(unpacked("models/ijcnn1_g0.05.model.xz"))
    X, _ = approxsvm.read_libsvm_data(unpacked("data/ijcnn1.t.xz"), n_features=model.n_features)
    X = X[:20_000]
    exact = exact_values(model, X.toarray())
    differ = (approxsvm.compile(model).predict(X) != np.where(exact > 0, 1, -1)).mean()
    assert differ < 0.006  # seen: 0.51 %
