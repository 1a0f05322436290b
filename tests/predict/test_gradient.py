"""Gradients and their bounds, compared with extended-precision formulas and chain rule, and with finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import random_model
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM

import approxsvm
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.ir.cosine_model import CosineModel
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.ops import Affine

Extended = np.longdouble
if np.finfo(Extended).nmant < 60:
    pytest.skip("long double has no more digits than double here", allow_module_level=True)

RNG = np.random.default_rng(0)
T = RNG.normal(size=(150, 5))
SCALES = np.array([1.0, 100.0, 0.01, 3.0, 1.0])
X = T * SCALES + 5.0
THREE = np.digitize(T[:, 0] + T[:, 1] ** 2 - T[:, 2], [0.3, 1.5])
TWO = THREE > 0


def exact_gradients(model, row):
    """Return all functions' gradients at a raw row, of shape (n_decisions, n_raw_features), in extended precision."""
    x, jacobian = row.astype(Extended), np.eye(len(row), dtype=Extended)
    if model.input_map is not None:
        x, jacobian = x[model.input_map.columns], jacobian[model.input_map.columns]
        for op in model.input_map.ops:
            if isinstance(op, Affine):
                nothing = {"subtract": 0.0, "multiply": 1.0, "divide": 1.0, "add": 0.0, "low": -np.inf, "high": np.inf}
                fields = {name: getattr(op, name) for name in nothing}
                wide = {
                    name: np.asarray(nothing[name] if field is None else field, Extended)
                    for name, field in fields.items()
                }
                x = (x - wide["subtract"]) * wide["multiply"] / wide["divide"] + wide["add"]
                is_inside = (x >= wide["low"]) & (x <= wide["high"])
                factors = wide["multiply"] / wide["divide"] * is_inside * np.ones(len(x))
                jacobian = factors[:, np.newaxis] * jacobian
                x = np.clip(x, wide["low"], wide["high"])
            else:
                matrix = op.matrix.astype(Extended)
                x, jacobian = (x - op.center.astype(Extended)) @ matrix + op.bias, matrix.T @ jacobian
    if isinstance(model, CosineModel):
        frequencies = model.frequencies.astype(Extended)
        return -(model.coef * np.sin(frequencies @ x + model.phases.astype(Extended))) @ frequencies @ jacobian
    vectors = model.dense_support_vectors(0, model.n_sv).astype(Extended)
    coef = np.array([model.coefficients(k) for k in range(model.n_decisions)]).astype(Extended)
    gamma, p = Extended(model.gamma), model.degree
    if model.kernel == "gaussian":
        kernels = np.exp(-gamma * ((vectors - x) ** 2).sum(axis=1))
        return 2 * gamma * (coef * kernels) @ (vectors - x) @ jacobian
    t = gamma * vectors @ x + Extended(model.coef0)
    slopes = 1 / np.cosh(t) ** 2 if model.is_sigmoid else p * t ** (p - 1)
    return gamma * (coef * slopes) @ vectors @ jacobian


def assert_bounded(model, fast, rows):
    """Assert that bounds hold, in the model's order and orientation; sources with labels 1, 0 share these."""
    slopes, bounds = fast.gradient(rows, return_bound=True)
    slopes, bounds = (numbers.reshape(len(rows), -1, rows.shape[1]) for numbers in (slopes, bounds))
    with np.errstate(over="ignore"):
        exact = np.array([exact_gradients(model, row) for row in rows])
    labels = fast.artifact.labels
    sign = -1.0 if len(labels) == 2 and labels[0] < labels[1] else 1.0
    assert np.isfinite(bounds).all()
    assert (np.abs(slopes - sign * exact) <= bounds).all()
    return slopes, bounds


KERNELS = {
    "gaussian": {},
    "linear": {"degree": 1, "coef0": 0.0},
    **{f"degree {p}": {"degree": p, "coef0": 1.5 - 0.5 * p} for p in (2, 3, 4, 5, 6)},
    "sigmoid": {"is_sigmoid": True, "coef0": 0.2},
}


@pytest.mark.attack
@pytest.mark.parametrize("kernel", KERNELS)
def test_no_bound_is_broken(kernel):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        n_sv, m, scale = int(rng.integers(2, 60)), int(rng.integers(1, 20)), 10.0 ** rng.uniform(-4, 4)
        changes = KERNELS[kernel] | {
            "support_vectors": scale * (rng.normal(size=(n_sv, m)) + rng.choice([0.0, 30.0])),
            "dual_coef": rng.normal(size=(1, n_sv)) * 10.0 ** rng.uniform(-5, 5, n_sv),
            "gamma": 10.0 ** rng.uniform(-2, 1) / m / scale**2,
        }
        model = random_model(0, n_sv=n_sv, n_features=m, **changes)
        vectors = model.dense_support_vectors(0, n_sv)
        rows = np.concatenate([vectors, vectors + 0.1 * scale * rng.normal(size=vectors.shape), 0.0 * vectors[:1]])
        slopes, bounds = assert_bounded(model, approxsvm.compile(model, mode="exact"), rows)
        assert (bounds <= 1e-9 * np.abs(model.dual_coef).sum() * (1.0 + np.abs(slopes).max())).all()
        if kernel in ("linear", "degree 2"):
            assert_bounded(model, approxsvm.compile(model, mode="approximate"), rows)


COPIED = make_column_transformer((MinMaxScaler(clip=True), [0, 3]), (StandardScaler(), [0, 1, 2]))
SOURCES = {
    "three classes": (make_pipeline(StandardScaler(), SVC(C=10.0)), THREE),
    "projected": (make_pipeline(StandardScaler(), PCA(3, whiten=True), SVC()), THREE),
    "regression": (make_pipeline(StandardScaler(), SVR(kernel="poly", coef0=1.0)), T[:, 0]),
    "clipped": (make_pipeline(MinMaxScaler(clip=True), PCA(3), MinMaxScaler((-1, 1), clip=True), SVC()), TWO),
    "columns twice": (make_pipeline(COPIED, SVC(kernel="sigmoid", gamma=0.1)), TWO),
    "one class": (make_pipeline(StandardScaler(), OneClassSVM(nu=0.2)), TWO),
    "cosines": (make_pipeline(StandardScaler(), RBFSampler(random_state=0), LogisticRegression()), THREE),
    "linear": (make_pipeline(StandardScaler(), LinearSVC()), TWO),
}


@pytest.mark.parametrize("name", SOURCES)
def test_decision_values_change_by_it(name):
    """Signs, class order and units are the same as in decision_function."""
    source, y = SOURCES[name]
    source.fit(X, y)
    if name in ("three classes", "projected"):
        source[-1].decision_function_shape = "ovo"
    model, fast = approxsvm.read_any(source), approxsvm.compile(source, X, mode="exact")
    rows = X[:20] * (1.0 + 1e-3 * RNG.normal(size=(20, 5)))
    if name == "clipped":
        beyond = rows.copy()
        beyond[:, 0] = X[:, 0].max() + 1.0
        assert (assert_bounded(model, fast, beyond)[0][:, :, 0] == 0.0).all()
    else:
        assert_bounded(model, fast, rows)
    values = source.predict if fast.artifact.task == "regression" else source.decision_function
    slopes = fast.gradient(rows).reshape(20, -1, 5)
    for j, step in enumerate(1e-5 * SCALES):
        h = step * np.eye(5)[j]
        found = (values(rows + h) - values(rows - h)).reshape(20, -1) / (2 * step)
        np.testing.assert_allclose(slopes[:, :, j] * SCALES[j], found * SCALES[j], rtol=1e-4, atol=1e-6)


def test_labels_in_another_order():
    """The model has the labels of pairs in a different order than scikit-learn."""
    rng = np.random.default_rng(0)
    model = random_model(
        0,
        n_sv=30,
        labels=np.array([2, 0, 1]),
        n_support=np.array([10, 10, 10]),
        dual_coef=rng.normal(size=(2, 30)),
        intercept=np.zeros(3),
        value_error=np.zeros(3),
    )
    fast = approxsvm.compile(model, mode="exact")
    row, step = rng.normal(size=(1, 7)), 1e-6
    slopes, bounds = fast.gradient(row, return_bound=True)
    for j in range(7):
        h = step * np.eye(7)[[j]]
        found = (fast.decision_function(row + h) - fast.decision_function(row - h)) / (2 * step)
        np.testing.assert_allclose(slopes[:, :, j], found, atol=1e-7)
    assert (bounds > 0).all()


def test_at_a_limit_both_sides_are_covered():
    source = make_pipeline(MinMaxScaler(clip=True), SVC(kernel="linear")).fit(X, TWO)
    fast = approxsvm.compile(source)
    row = X[[X[:, 0].argmax()]]
    slopes, bounds = fast.gradient(row, return_bound=True)
    inside = fast.gradient(np.median(X, axis=0)[np.newaxis])
    assert abs(inside[0, 0]) > 0
    for side in (0.0, inside[0, 0]):
        assert abs(slopes[0, 0] - side) <= bounds[0, 0]
    assert (bounds[0, 1:][slopes[0, 1:] != 0] < 1e-12).any()


def test_several_targets_and_sparse_rows():
    Y = np.column_stack([T[:, 0], T[:, 1] ** 2])
    source = KernelRidge(kernel="rbf", gamma=0.3).fit(T, Y)
    fast = approxsvm.compile(source, T)
    slopes = fast.gradient(T[:5])
    assert slopes.shape == (5, 2, 5)
    step = 1e-6
    for j in range(5):
        h = step * np.eye(5)[j]
        found = (source.predict(T[:5] + h) - source.predict(T[:5] - h)) / (2 * step)
        np.testing.assert_allclose(slopes[:, :, j], found, atol=1e-6)
    np.testing.assert_array_equal(fast.gradient(sparse.csr_matrix(T[:5])), slopes)
    np.testing.assert_array_equal(
        fast.gradient(T[:5].astype(np.float32)), fast.gradient(T[:5].astype(np.float32).astype(float))
    )
    assert fast.gradient(T[:0]).shape == (0, 2, 5)


def test_what_has_no_gradient_is_refused_by_name():
    approximate = approxsvm.compile(SVC().fit(T, TWO), mode="approximate")
    with pytest.raises(UnsupportedModelError, match="mode='certified'"):
        approximate.gradient(T)
    ensemble = approxsvm.compile(CalibratedClassifierCV(SVC(), cv=2).fit(T, TWO))
    with pytest.raises(
        UnsupportedModelError,
        match="no gradient without a decision function: labels are those of",
    ):
        ensemble.gradient(T)
    normalized = approxsvm.compile(make_pipeline(Normalizer(), SVC()).fit(T, TWO))
    with pytest.raises(UnsupportedModelError, match="not normalizer"):
        normalized.gradient(T)
    fast = approxsvm.compile(SVC().fit(T, TWO))
    strange = T.copy()
    strange[3, 2] = np.nan
    with pytest.raises(InputError, match="row 3"):
        fast.gradient(strange)
    with pytest.raises(ValueError, match="3 features"):
        fast.gradient(T[:, :3])


def test_huge_and_tiny_numbers_have_no_false_bound():
    model = random_model(0, gamma=1e-3)
    for kernel in KERNELS:
        fast = approxsvm.compile(replace(model, **KERNELS[kernel]), mode="exact")
        for size in (1e-300, 1e-30, 1e30):
            rows = size * np.random.default_rng(1).normal(size=(5, 7))
            assert_bounded(replace(model, **KERNELS[kernel]), fast, rows)


def test_what_overflows_on_its_way_to_a_limit_has_no_slope():
    scaler = Affine.of(2, multiply=[1e10, 1.0], low=-1.0, high=1.0)
    model = random_model(0, n_features=2, input_map=InputMap(2, np.arange(2), (scaler,)))
    fast = approxsvm.compile(model, mode="exact")
    for value in (1e300, -1e300, 1e5):
        slopes, bounds = fast.gradient(np.array([[value, 0.25]]), return_bound=True)
        assert slopes[0, 0] == bounds[0, 0] == 0.0
        assert slopes[0, 1] != 0.0
        assert bounds[0, 1] < 1e-10
    back = Affine.of(2, multiply=[1e300, 1.0], divide=[1e300, 1.0], low=-1e30, high=1e30)  # within, in exact arithmetic
    slopes, bounds = approxsvm.compile(
        replace(model, input_map=InputMap(2, np.arange(2), (back,))), mode="exact"
    ).gradient(np.array([[1e10, 0.25]]), return_bound=True)
    assert bounds[0, 0] == np.inf


def test_limits_alone_are_a_step():
    """A scaler with clip and unit scales has only limits, and no mapping before them."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 3))
    X[0] = 1.0
    y = X[:, 0] > 0.0
    clipped = approxsvm.compile(make_pipeline(MaxAbsScaler(clip=True), SVC()).fit(X, y))
    plain = approxsvm.compile(SVC().fit(X, y))
    assert clipped.artifact.input_map.ops[0].multiply is None
    assert np.allclose(clipped.gradient(0.9 * X), plain.gradient(0.9 * X))
