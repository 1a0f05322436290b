"""Evaluating the pairs of a guessed winner first: for any guess, labels equal the exact model's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from artifact_changes import changed, content
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs, make_gaussian_quantiles
from sklearn.svm import SVC
from zoo import class_numbers

import approxsvm
from approxsvm import Artifact, KernelModel
from approxsvm.estimators import estimator_for
from approxsvm.frontends import read_any

Rows = npt.NDArray[np.float64]


def trained(n_classes: int, n_features: int, seed: int, **options: Any) -> tuple[KernelModel, Rows]:
    """Return a model of overlapping classes (blobs, or shells around the origin), and rows from the same region."""
    if options.pop("shells", False):
        X, y = make_gaussian_quantiles(
            n_samples=150 * n_classes, n_features=n_features, n_classes=n_classes, random_state=seed
        )
    else:
        X, y = make_blobs(min(60 * n_classes, 700), n_features, centers=n_classes, cluster_std=3.0, random_state=seed)
    svc = SVC(**{"C": 10.0, **options}).fit(X, y)
    return read_any(svc), X


def exact_values(model: KernelModel, rows: Rows) -> Rows:
    """Return decision values by the definition in float64, with distances from differences."""
    coefficients = np.column_stack([model.coefficients(k) for k in range(model.n_decisions)])
    kernel = np.exp(-model.gamma * cdist(rows, np.asarray(model.support_vectors), "sqeuclidean"))
    return kernel @ coefficients + model.intercept


def exact_labels(model: KernelModel, rows: Rows) -> npt.NDArray[np.intp]:
    """Return labels by LIBSVM's votes on float64 values; `rows_to_judge` returns no rows with values near 0."""
    return class_numbers.winner(exact_values(model, rows))


def rows_to_judge(model: KernelModel, X: Rows, seed: int) -> Rows:
    """Return data rows, rows near them, and pairs of rows on both sides of a decision boundary, 1e-9 A1 apart."""
    rng = np.random.default_rng(seed)
    low, high = X[rng.permutation(len(X))[:60]], X[rng.permutation(len(X))[:60]]
    labels = exact_labels(model, low)
    for _ in range(40):
        middle = 0.5 * (low + high)
        same = exact_labels(model, middle) == labels
        low, high = np.where(same[:, np.newaxis], middle, low), np.where(same[:, np.newaxis], high, middle)
    rows = np.concatenate([X, X + rng.normal(size=X.shape), 3.0 * X, low, high, 1e3 * X[:5]])
    smallest = np.abs(exact_values(model, rows)).min(axis=1)
    return rows[smallest > 1e-11 * np.abs(model.dual_coef).sum()]


MODELS = [
    pytest.param(3, 2, {}, id="3 classes"),
    pytest.param(7, 5, {}, id="7 classes"),
    pytest.param(7, 5, {"C": 1e6, "gamma": 0.05}, id="7 classes, large coefficients"),
    pytest.param(12, 40, {"gamma": 0.002}, id="12 classes, 40 features"),
    pytest.param(26, 4, {"gamma": 1.0}, id="26 classes, narrow kernel"),
    pytest.param(6, 3, {"shells": True}, id="6 shells, which landmarks tell apart"),
]


@pytest.mark.parametrize(("n_classes", "n_features", "options"), MODELS)
def test_labels_near_boundaries_however_rows_come(n_classes: int, n_features: int, options: dict[str, Any]) -> None:
    model, X = trained(n_classes, n_features, 1, **options)
    rows = rows_to_judge(model, X, 2)
    expected = model.labels[exact_labels(model, rows)]
    for mode in ("exact", "certified"):
        forced: dict[str, Any] = {"n_centers": 8, "degree": 2} if mode == "certified" else {}
        fast = approxsvm.compile(model, X, mode=mode, **forced)
        assert fast.artifact.header["majority_only"] == (mode == "certified")
        for some in (rows, rows.astype(np.float32).astype(np.float64), csr_array(rows)):
            dense = np.asarray(some.toarray() if isinstance(some, csr_array) else some)
            of_these = expected if dense is rows else model.labels[exact_labels(model, dense)]
            clear = np.abs(exact_values(model, dense)).min(axis=1) > 1e-11 * np.abs(model.dual_coef).sum()
            np.testing.assert_array_equal(fast.predict(some)[clear], of_these[clear])
        np.testing.assert_array_equal(fast.predict(rows[::-1]), expected[::-1])
        some = slice(None, None, max(len(rows) // 500, 1))  # calls take longer than rows
        for n in (2, 3, 5, 7, 17, 49):
            calls = [fast.predict(rows[some][i : i + n]) for i in range(0, len(rows[some]), n)]
            np.testing.assert_array_equal(np.concatenate(calls), expected[some])
        np.testing.assert_array_equal([fast.predict_one(row) for row in rows[some]], expected[some])
        values = fast._evaluator.evaluate(fast._rows(rows))
        exact = exact_values(model, rows)
        assert np.abs(values - exact).max() <= 1e-9 * np.abs(model.dual_coef).sum()


@pytest.mark.parametrize("speculated", [*range(7), "random", "nobody"])
def test_a_wrong_speculation_costs_time_alone(speculated: int | str) -> None:
    model, X = trained(7, 5, 3, shells=True)
    rows = rows_to_judge(model, X, 4)
    artifact = approxsvm.compile(model, X, mode="exact").artifact
    found = artifact.section("speculation")
    assert np.frombuffer(found, "<u4", 1)[0] > 0, "this model is to have landmarks"
    if speculated == "nobody":
        wrong: bytes | None = None
    else:
        n_landmarks = int(np.frombuffer(found, "<u4", 1)[0])
        start = 8 + 4 * (n_landmarks + n_landmarks % 2)
        weights = np.frombuffer(found, "<f4", offset=start).reshape(-1, 7).copy()
        if speculated == "random":
            weights = np.random.default_rng(5).normal(size=weights.shape)
        else:
            weights[0, int(speculated)] = 1e6
        wrong = found[:start] + weights.astype("<f4").tobytes()
    misled = estimator_for(Artifact(changed(content({"speculation": wrong}), artifact)))
    expected = model.labels[exact_labels(model, rows)]
    np.testing.assert_array_equal(misled.predict(rows), expected)
    np.testing.assert_array_equal([misled.predict_one(row) for row in rows], expected)


def test_coefficients_of_both_signs_in_a_pair() -> None:
    model, X = trained(5, 3, 6)
    coef = model.dual_coef.copy()
    coef[:, ::3] *= -0.5
    mixed = replace(model, dual_coef=coef)
    rows = rows_to_judge(mixed, X, 7)
    for options in ({"mode": "exact"}, {"n_centers": 4, "degree": 2}):
        fast = approxsvm.compile(mixed, X, **options)
        np.testing.assert_array_equal(fast.predict(rows), mixed.labels[exact_labels(mixed, rows)])


def test_coefficients_beyond_float32() -> None:
    model, X = trained(5, 3, 8)
    for factor in (2.0**70, 2.0**-70):
        coef, intercept = model.dual_coef.copy() * factor, model.intercept * factor
        scaled = replace(model, dual_coef=coef, intercept=intercept)
        rows = rows_to_judge(scaled, X, 9)
        fast = approxsvm.compile(scaled, X, mode="exact")
        np.testing.assert_array_equal(fast.predict(rows), scaled.labels[exact_labels(scaled, rows)])


def test_labels_by_scores_have_all_pairs() -> None:
    X, y = make_blobs(200, 3, centers=5, cluster_std=3.0, random_state=1)
    svc = SVC(break_ties=True).fit(X, y)
    fast = approxsvm.compile(svc, X, n_centers=4, degree=2)
    assert fast.artifact.header["majority_only"] == 0
    np.testing.assert_array_equal(fast.predict(X), svc.predict(X))


def test_a_tolerance_has_all_pairs() -> None:
    model, X = trained(5, 3, 10)
    fast = approxsvm.compile(model, X, n_centers=4, degree=2, tolerance=0.1)
    assert fast.artifact.header["majority_only"] == 0
    assert np.abs(fast._evaluator.evaluate(fast._rows(X)) - exact_values(model, X)).max() <= 0.1


def test_the_same_speculation_again() -> None:
    model, X = trained(7, 5, 11)
    one, two = (approxsvm.compile(model, X, mode="exact", random_state=3).artifact for _ in range(2))
    assert one.section("speculation") == two.section("speculation") != b""


@pytest.mark.filterwarnings("error", "ignore:invalid value encountered in reduce")  # scikit-learn's own check
@pytest.mark.parametrize("column", ["constant", "noise of 1e-42", "1.7e308", "one row of 1e200", "offset of 1e9"])
def test_columns_that_nothing_can_be_fitted_to(column: str) -> None:
    model, X = trained(7, 5, 12)
    rng = np.random.default_rng(13)
    odd = {
        "constant": np.full(len(X), 1.0 / 3.0),
        "noise of 1e-42": rng.normal(size=len(X)) * 1e-42,
        "1.7e308": np.where(rng.normal(size=len(X)) > 0, 1.7e308, -1.7e308),
        "one row of 1e200": np.where(np.arange(len(X)) == 5, 1e200, 0.0),
        "offset of 1e9": 1e9 + rng.normal(size=len(X)),
    }[column]
    of_vectors = {"constant": 1.0 / 3.0, "offset of 1e9": 1e9}.get(column, 0.0)
    vectors = np.column_stack([np.asarray(model.support_vectors), np.full(model.n_sv, of_vectors)])
    wider = replace(model, support_vectors=vectors)
    fast = approxsvm.compile(wider, np.column_stack([X, odd]), mode="exact")
    rows = np.column_stack([X, np.full(len(X), of_vectors)])
    np.testing.assert_array_equal(fast.predict(rows), model.labels[exact_labels(wider, rows)])


def test_thousands_of_features_have_landmarks_alone() -> None:
    rng = np.random.default_rng(14)
    centers, y = rng.normal(size=(4, 1500)), rng.integers(4, size=200)
    X = centers[y] + 2.0 * rng.normal(size=(200, 1500))
    svc = SVC(C=10.0, gamma=1e-4).fit(X, y)
    fast = approxsvm.compile(svc, X, mode="exact")
    np.testing.assert_array_equal(fast.predict(X), svc.predict(X))
