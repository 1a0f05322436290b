"""Calls of every size: the labels of the source whatever the call, also of rows that lie at its boundary."""

import numpy as np
import pytest
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm import _native
from approxsvm.artifact.views import Artifact
from approxsvm.evaluator import BOUNDS, LABELS, VALUES
from approxsvm.planning.subspaces import in_subspaces

# Around the numbers of rows from which engines and expansions take blocks, and where rows are left over behind those.
SIZES = (*range(1, 10), 12, 15, 16, 17, 19, 24, 31, 33, 49, 51)
PLANS = ((2, 1), (5, 1), (3, 16))


def _svc(n_classes: int, n_features: int, gamma: float, rest: bool = False) -> tuple[SVC, np.ndarray, np.ndarray]:
    """A machine, rows to plan by, and others to ask, of which every third lies at a boundary."""
    random = np.random.default_rng(n_classes * 100 + n_features)
    X = random.normal(size=(500, n_features))
    angle = np.arctan2(X[:, 0] + 0.3 * X[:, 2] ** 2, X[:, 1])
    y = np.floor((angle / (2 * np.pi) + 0.5) * n_classes).clip(0, n_classes - 1)
    svc = SVC(C=4.0, gamma=gamma)
    svc = (OneVsRestClassifier(svc) if rest else svc).fit(X, y)
    rows = random.normal(size=(204, n_features))
    first, second = rows[::3].copy(), random.permutation(rows[1::3])
    labels = svc.predict(first)
    for _ in range(26):
        middle = 0.5 * (first + second)
        stays = (svc.predict(middle) == labels)[:, np.newaxis]
        first, second = np.where(stays, middle, first), np.where(stays, second, middle)
    rows[::3] = first
    return svc, X, rows


def _check(artifact: Artifact, svc: SVC, rows: np.ndarray) -> None:
    expected = np.searchsorted(svc.classes_, svc.predict(rows))
    order = np.argsort(np.argsort(artifact.labels))
    for target in _native.runnable_targets():
        native = _native.Predictor(artifact.native, target)
        for n in SIZES:
            calls = [rows[k : k + n] for k in range(0, len(rows), n)]
            labels = np.concatenate([order[native.dense(call, 1, LABELS, "promised", False)] for call in calls])
            np.testing.assert_array_equal(labels, expected, err_msg=f"{target}, calls of {n} rows")


def _check_values(artifact: Artifact, exact: Artifact, rows: np.ndarray) -> None:
    """Values of calls of every size are within their bounds."""
    expected = _native.Predictor(exact.native, None).dense(rows, 1, VALUES, "exact", False)
    for target in _native.runnable_targets():
        native = _native.Predictor(artifact.native, target)
        for n in SIZES[::3]:
            for k in range(0, len(rows), n):
                values, bounds = native.dense(rows[k : k + n], 1, VALUES | BOUNDS, "settled", False)
                assert (np.abs(values - expected[k : k + n]) <= bounds + 1e-12).all(), (target, n, k)


@pytest.mark.parametrize(
    ("n_classes", "rest", "gamma"), [(2, False, 0.02), (2, False, 0.2), (5, False, 0.1), (5, True, 0.1)]
)
def test_expansions(n_classes, gamma, rest):
    svc, X, rows = _svc(n_classes, 9, gamma, rest)
    exact = approxsvm.compile(svc, mode="exact").artifact
    for degree, n_centers in PLANS:
        artifact = approxsvm.compile(svc, X, degree=degree, n_centers=n_centers).artifact
        _check(artifact, svc, rows)
        _check_values(artifact, exact, rows)


@pytest.mark.parametrize(("n_classes", "n_features"), [(2, 4), (2, 40), (6, 9)])
def test_exact_engines(n_classes, n_features):
    svc, _, rows = _svc(n_classes, n_features, 1.0 / n_features)
    artifact = approxsvm.compile(svc, mode="exact").artifact
    _check(artifact, svc, rows)
    _check_values(artifact, artifact, rows)


@pytest.mark.parametrize(("n_classes", "degree"), [(2, 0), (2, 3), (4, 0)])
def test_subspaces(n_classes, degree):
    svc, X, rows = _svc(n_classes, 24, 0.02)
    _check(in_subspaces(approxsvm.read_model(svc), (6, 12), degree, X=X), svc, rows)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_behind_a_map(n_classes):
    """Small calls have memory for one row at a time, and what is carved for the map lies right behind it."""
    svc, X, rows = _svc(n_classes, 9, 0.1)
    source = make_pipeline(StandardScaler(), SVC(C=4.0, gamma=0.1)).fit(1000.0 * X, svc.predict(X))
    for degree, n_centers in PLANS:
        artifact = approxsvm.compile(source, 1000.0 * X, degree=degree, n_centers=n_centers).artifact
        _check(artifact, source, 1000.0 * rows)
