"""Kernel sums in few coordinates: norms and bounds compared with float64, labels from every stage, and the planner."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from forced_subspaces import in_subspaces
from scipy.sparse import csr_array, hstack
from scipy.spatial.distance import cdist
from scipy.special import gammainc
from sklearn.datasets import load_digits, make_blobs, make_classification
from sklearn.svm import SVC, SVR, OneClassSVM

import approxsvm
from approxsvm import Artifact, KernelModel
from approxsvm.artifact.writer import input_scale_for
from approxsvm.estimators import estimator_for
from approxsvm.expansion import taylor
from approxsvm.expansion.gram import one_by_one
from approxsvm.expansion.subspace import GroupInSubspace, Lists
from approxsvm.frontends import read_any
from approxsvm.runtime.evaluator import BOUNDS, STAGE_NUMBERS, STAGES, VALUES, Evaluator

Rows = npt.NDArray[np.float64]
SUBSPACE = STAGES.index("subspace")


def sums(model: KernelModel, rows: Rows) -> Rows:
    """Return decision values by the definition, with distances from differences."""
    coefficients = np.column_stack([model.coefficients(k) for k in range(model.n_decisions)])
    kernel = np.exp(-model.gamma * cdist(rows, np.asarray(model.support_vectors), "sqeuclidean"))
    return kernel @ coefficients + model.intercept


def settled(artifact: Artifact, rows: Any) -> tuple[Rows, Rows, npt.NDArray[np.uint8]]:
    """Return values, bounds and stages from the cheapest stage that settles each row's label."""
    values, bounds, stages = Evaluator(artifact).evaluate(rows, VALUES | BOUNDS | STAGE_NUMBERS, values="settled")
    return values.ravel(), bounds.ravel(), stages


def settled_alone(artifact: Artifact, rows: Rows) -> tuple[Rows, Rows, npt.NDArray[np.uint8]]:
    """Return the same from calls with one row each."""
    evaluator = Evaluator(artifact)
    found = [
        evaluator.evaluate(rows[i : i + 1], VALUES | BOUNDS | STAGE_NUMBERS, values="settled") for i in range(len(rows))
    ]
    values, bounds, stages = (np.concatenate([np.ravel(answer[k]) for answer in found]) for k in range(3))
    return values, bounds, stages


def rows_about(model: KernelModel, X: Rows, seed: int) -> Rows:
    """Return noisy data, support vectors, far rows, rows off in one feature, and pairs straddling the boundary."""
    rng = np.random.default_rng(seed)
    vectors = np.asarray(model.support_vectors)[:100]
    low, high = X[rng.permutation(len(X))[:100]], X[rng.permutation(len(X))[:100]]
    signs = np.sign(sums(model, low)[:, 0])
    for _ in range(40):
        middle = 0.5 * (low + high)
        same = np.sign(sums(model, middle)[:, 0]) == signs
        low, high = np.where(same[:, np.newaxis], middle, low), np.where(same[:, np.newaxis], high, middle)
    spread = X.std(axis=0)
    off = X[:200].copy()
    off[np.arange(200) % len(off), rng.integers(X.shape[1], size=len(off))] += 20.0 * spread.max()
    noisy = X + rng.normal(size=X.shape) * spread
    return np.concatenate([X, noisy, vectors, vectors * (1 + 1e-9), low, high, off, 3.0 * X[:50], 1e3 * X[:5]])


def binary(seed: int = 0, d: int = 40, n: int = 400, offset: float = 0.0, **options: Any) -> tuple[KernelModel, Rows]:
    X, y = make_classification(n, d, n_informative=8, n_redundant=8, class_sep=0.7, random_state=seed)
    X += offset
    return read_any(SVC(**{"gamma": 0.01, **options}).fit(X, y)), X


def regression(seed: int = 0) -> tuple[KernelModel, Rows]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 30))
    return read_any(SVR(C=3.0, gamma=0.01).fit(X, np.sin(X[:, 0]) + 0.3 * X[:, 1])), X


def outliers() -> tuple[KernelModel, Rows]:
    """Return a model with support vectors hundreds of kernel widths off in rare features, and rows."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(500, 40))
    rare = rng.random(X.shape) < 0.01
    X[rare] += 60.0
    return read_any(SVC(gamma=0.02).fit(X, X[:, 0] + X[:, 1] ** 2 > 0.8)), X


def one_class() -> tuple[KernelModel, Rows]:
    X = binary()[1]
    return read_any(OneClassSVM(gamma=0.01, nu=0.3).fit(X)), X


MODELS = {
    "C = 1": lambda: binary(),
    "C = 1e4": lambda: binary(C=1e4),
    "narrow kernel": lambda: binary(gamma=0.3),
    "wide kernel": lambda: binary(gamma=1e-5, C=1e3),
    "offset of 1e4": lambda: binary(offset=1e4),
    "outliers": outliers,
    "regression": regression,
    "one class": one_class,
    "600 features": lambda: binary(d=600, n=300, gamma=0.002),
}


@cache
def made(name: str) -> tuple[KernelModel, Rows]:
    return MODELS[name]()


@pytest.mark.parametrize("name", MODELS)
def test_norms_are_upper_bounds_and_close(name: str) -> None:
    model, _ = made(name)
    center = taylor.choose_center(model, "mean")
    (lists,) = Lists.of(model)
    group = GroupInSubspace(model, lists, center, 16, random_state=0)
    x = (np.asarray(model.support_vectors)[lists.members] - center) * math.sqrt(2.0 * model.gamma)
    np.testing.assert_allclose(group.basis.T @ group.basis, np.eye(16), atol=1e-12)
    for k in (4, 16):
        stage = group.stage(k, input_scale_for(model.gamma), one_by_one)
        assert stage is not None
        y = x @ group.basis[:, :k]
        v = x - y @ group.basis[:, :k].T
        a = np.concatenate([lists.own_coef[0], lists.others_coef[0]])
        c = a * np.exp(-0.5 * (v**2).sum(axis=1))
        kernel, r = np.exp(-0.5 * cdist(y, y, "sqeuclidean")), v @ v.T
        matter, known = (c[:, np.newaxis] * c) * kernel, stage.known[0]
        total = math.sqrt(max(a @ np.exp(-0.5 * cdist(x, x, "sqeuclidean")) @ a, 0.0))
        slack = 1e-6 * np.abs(a).sum()
        assert total <= known.total <= total * 1.001 + slack
        for b in (1, 2, 3):
            spectrum = np.linalg.eigvalsh(v.T @ ((matter * r ** (b - 1)) @ v) / math.factorial(b))
            norm = math.sqrt(max(spectrum[-1], 0.0))
            assert norm * (1 - 1e-9) - slack <= known.norms[b - 1] <= 1.3 * norm + slack
        series = (
            sum(accumulate(range(5, 60), lambda term, b, r=r: term * r / b, initial=r**4 / 24))
            if np.abs(r).max() < 8.0
            else np.exp(r) - (1 + r + r**2 / 2 + r**3 / 6)
        )
        tail = math.sqrt(max(float((matter * series).sum()), 0.0))
        assert tail * (1 - 1e-6) - slack <= known.norms[3] <= tail * 1.001 + slack


@pytest.mark.parametrize("degree", [0, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_no_value_errs_by_more_than_its_bound(name: str, degree: int) -> None:
    model, X = made(name)
    rows = rows_about(model, X, 1)
    artifact = in_subspaces(model, (6, 20) if model.n_features < 100 else (20, 200), degree)
    for kind in (np.float64, np.float32):
        typed = rows.astype(kind)
        exact = sums(model, typed.astype(np.float64))[:, 0]
        slack = 1e-12 * np.abs(model.dual_coef).sum()
        clear = np.abs(exact) > slack
        in_blocks, some = settled(artifact, typed), slice(None, None, 4)
        for k, (values, bounds, stages) in ((slice(None), in_blocks), (some, settled_alone(artifact, typed[some]))):
            assert (np.abs(values - exact[k]) <= bounds + slack).all()
            if model.task != "regression":
                np.testing.assert_array_equal(np.sign(values)[clear[k]], np.sign(exact[k])[clear[k]])
            # Single rows and blocks settle equally many, except rows with borderline bounds.
            assert abs((stages == SUBSPACE).mean() - (in_blocks[2][k] == SUBSPACE).mean()) < 0.01
    _, bounds, stages = in_blocks
    if name not in ("outliers", "narrow kernel"):
        assert (np.isfinite(bounds) & (stages == SUBSPACE)).mean() > 0.02, (
            "this model is to be settled by few coordinates"
        )


def test_the_bound_is_that_of_the_derivation() -> None:
    model, X = binary()
    artifact = in_subspaces(model, (20,))
    _, bounds, stages = settled(artifact, X)
    (lists,), center = Lists.of(model), taylor.choose_center(model, "mean")
    group = GroupInSubspace(model, lists, center, 20, random_state=0)
    stage = group.stage(20, input_scale_for(model.gamma), one_by_one)
    assert stage is not None
    z = (X - center) * math.sqrt(2.0 * model.gamma)
    s = (z**2).sum(axis=1) - ((z @ group.basis) ** 2).sum(axis=1)
    phis = [np.exp(-s / 2) * np.sqrt(s**b / math.factorial(b)) for b in (1, 2, 3)]
    expected = stage.known[0].norms @ np.array([*phis, np.sqrt(gammainc(4, s))])
    mine = stages == SUBSPACE
    assert mine.any()
    assert (bounds[mine] >= expected[mine]).all()
    assert (bounds[mine] <= 1.06 * expected[mine] + 1e-3 * stage.known[0].total).all()


@pytest.mark.parametrize("sq_distance", [600.0, 704.0, 709.7, 800.0])
def test_many_small_support_vectors_far_off_the_subspace(sq_distance: float) -> None:
    """Products of factors that decay like exp(-350) and grow like exp(700) are of order one."""
    n, a = 2990, 1.3 * 2.0**-26
    far = np.tile([[0.0, math.sqrt(sq_distance)]], (n, 1))
    far[1::2] *= -1.0
    model = KernelModel(
        task="classification",
        gamma=0.5,
        support_vectors=np.concatenate([[[1.0, 0.0], [-1.0, 0.0]], far]),
        dual_coef=np.concatenate([[0.75, -0.75], np.full(n, -a)])[np.newaxis],
        intercept=np.array([0.5 * n / 2 * a]),
        labels=np.array([1, -1]),
        n_support=np.array([1, n + 1]),
    )
    rows = np.tile(far[:1], (48, 1))
    artifact = in_subspaces(model, (1,))
    values, bounds, _ = settled(artifact, rows)
    assert (np.abs(values - sums(model, rows)[:, 0]) <= bounds).all()
    np.testing.assert_array_equal(estimator_for(artifact).predict(rows), -1)


def test_distances_that_drown_in_rounding() -> None:
    model, _ = binary()
    far = np.asarray(model.support_vectors).copy()
    far[0] += 1e8
    with pytest.raises(approxsvm.UnsupportedModelError, match="distances"):
        in_subspaces(replace(model, support_vectors=far), (8,))


@pytest.mark.parametrize("degree", [0, 3])
def test_sparse_rows_and_features_that_the_model_has_not(degree: int) -> None:
    model, X = binary(2)
    artifact = in_subspaces(model, (8, 20), degree)
    rng = np.random.default_rng(3)
    thin = np.where(rng.random(X.shape) < 0.3, X, 0.0)
    extra = np.where(rng.random((len(X), 5)) < 0.2, rng.normal(size=(len(X), 5)), 0.0)
    exact = (sums(model, thin)[:, 0] - model.intercept[0]) * np.exp(-model.gamma * (extra**2).sum(axis=1))
    exact += model.intercept[0]
    values, bounds, stages = settled(artifact, csr_array(hstack([csr_array(thin), csr_array(extra)])))
    assert (np.abs(values - exact) <= bounds + 1e-12 * np.abs(model.dual_coef).sum()).all()
    assert (stages == SUBSPACE).any()


@pytest.mark.parametrize("degree", [0, 2])
def test_values_within_a_tolerance(degree: int) -> None:
    model, X = regression()
    tolerance = 0.3
    fast = estimator_for(in_subspaces(model, (8, 25), degree, tolerance=tolerance))
    assert np.abs(fast.predict(X) - sums(model, X)[:, 0]).max() <= tolerance
    assert fast.rows_per_stage["subspace"] > 0
    assert np.abs(estimator_for(in_subspaces(model, (8, 25), degree)).predict(X) - sums(model, X)[:, 0]).max() < 1e-9


CLASSES = {
    "5 classes": lambda: make_blobs(500, 40, centers=5, cluster_std=9.0, random_state=1),
    "10 digits": lambda: (load_digits().data[:900] / 16.0, load_digits().target[:900]),
}


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("name", CLASSES)
def test_labels_of_several_classes(name: str, C: float) -> None:
    X, y = CLASSES[name]()
    model = read_any(SVC(C=C).fit(X, y))
    fast = estimator_for(in_subspaces(model, (8, 24), X=X))
    assert fast.artifact.section("speculation")
    rows = rows_about(model, X, 2)
    values = sums(model, rows)
    votes, k, n = np.zeros((len(rows), len(model.labels)), int), 0, len(model.labels)
    for i in range(n):
        for j in range(i + 1, n):
            votes[np.arange(len(rows)), np.where(values[:, k] > 0.0, i, j)] += 1
            k += 1
    clear = np.abs(values).min(axis=1) > 1e-11 * np.abs(model.dual_coef).sum()
    for some in (rows, csr_array(rows)):
        np.testing.assert_array_equal(fast.predict(some)[clear], model.labels[votes.argmax(axis=1)][clear])
    assert fast.rows_per_stage["subspace"] > 0.2 * 2 * len(rows)
    labels = fast.predict(rows)
    for n_rows in (5, 48, 49, 200):
        np.testing.assert_array_equal(fast.predict(rows[:n_rows]), labels[:n_rows])
    alone = estimator_for(fast.artifact)
    np.testing.assert_array_equal([alone.predict(row[np.newaxis])[0] for row in rows[::4]], labels[::4])
    assert alone.rows_per_stage["subspace"] > 0.2 * len(rows[::4])


def test_a_model_of_digits_is_compiled_to_few_coordinates() -> None:
    X, y = load_digits(return_X_y=True)
    svc = SVC(gamma=0.08).fit(X[:1400] / 16, y[:1400] == 8)
    fast = approxsvm.compile(svc, X[:1400] / 16)
    assert "coordinates" in fast.artifact.plan
    assert fast.artifact.section("subspaces")
    np.testing.assert_array_equal(fast.predict(X / 16), svc.predict(X / 16))
    assert fast.rows_per_stage["subspace"] > 0.8 * len(X)
    again = approxsvm.compile(svc, X[:1400] / 16)
    assert again.artifact.data == fast.artifact.data
    assert not approxsvm.compile(svc, X[:1400] / 16, mode="exact").artifact.section("subspaces")
    small = approxsvm.compile(svc, X[:1400] / 16, max_bytes=len(fast.artifact.data) - 1)
    assert not small.artifact.section("subspaces")
    np.testing.assert_array_equal(small.predict(X / 16), svc.predict(X / 16))


def test_coefficients_of_both_signs_in_a_list_and_beyond_float32() -> None:
    X, y = CLASSES["5 classes"]()
    model = read_any(SVC(C=100.0).fit(X, y))
    coef = model.dual_coef.copy()
    coef[:, ::3] *= -0.5
    for odd in (replace(model, dual_coef=coef), replace(model, dual_coef=model.dual_coef * 2.0**90)):
        fast = approxsvm.compile(odd, X)
        assert not fast.artifact.section("subspaces")
        exact = approxsvm.compile(odd, X, mode="exact")
        np.testing.assert_array_equal(fast.predict(X), exact.predict(X))
