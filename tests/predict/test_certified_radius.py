"""Certified radii: attacks along gradients and in random directions, and a case in which the bound is attained."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import approxsvm
from approxsvm.analysis.radius import _norms, _stretch
from approxsvm.analysis.source_answers import exact_decision_values
from approxsvm.errors import UnsupportedModelError
from approxsvm.frontends import read_any
from approxsvm.ir.constants import gaussian_slope

RNG = np.random.default_rng(0)
SCALES = np.array([1.0, 10.0, 0.1, 3.0])
T, U = RNG.normal(size=(200, 4)), RNG.normal(size=(30, 4))
X, Z = T * SCALES + 5.0, U * SCALES + 5.0
THREE = np.digitize(T[:, 0] + T[:, 1] ** 2 - T[:, 2], [0.3, 1.5])
TWO = THREE > 0
SOURCES = {
    "two classes": (make_pipeline(StandardScaler(), SVC()), TWO),
    "three classes": (make_pipeline(StandardScaler(), SVC(C=10.0)), THREE),
    "scores": (make_pipeline(StandardScaler(), SVC(break_ties=True)), THREE),
    "probabilities": (make_pipeline(MinMaxScaler(clip=True), CalibratedClassifierCV(SVC(), ensemble=False)), TWO),
    "projected": (make_pipeline(StandardScaler(), PCA(3, whiten=True), SVC()), THREE),
    "columns twice": (make_pipeline(make_union(StandardScaler(), MinMaxScaler()), SVC()), TWO),
    "one class": (make_pipeline(StandardScaler(), OneClassSVM(nu=0.2)), TWO),
}


def unit(directions):
    lengths = np.linalg.norm(directions, axis=-1, keepdims=True)
    return directions / np.where(lengths > 0, lengths, 1.0)


def gradients(model, rows):
    """Return finite-difference gradients of all decision functions, of shape (n_decisions, n_rows, n_features)."""
    steps = np.eye(4) * SCALES * 1e-5
    slopes = [exact_decision_values(model, rows + h) - exact_decision_values(model, rows - h) for h in steps]
    return np.moveaxis(np.stack(slopes, axis=2) / np.diag(steps), 1, 0)


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.parametrize("mode", ["certified", "approximate", "exact"])
@pytest.mark.parametrize("name", SOURCES)
def test_no_row_within_the_radius_has_another_label(name, mode):
    source, y = SOURCES[name]
    source.fit(X, y)
    model, fast = read_any(source), approxsvm.compile(source, X, mode=mode)
    radius, labels = fast.certified_radius(Z), source.predict(Z)
    proven = radius > 0
    assert proven.any()
    assert np.isfinite(radius).all()
    assert mode == "approximate" or proven.all()
    rows, radius, labels = Z[proven], radius[proven, np.newaxis], labels[proven]
    for direction in [unit(RNG.normal(size=rows.shape) * SCALES ** (k % 2)) for k in range(8)]:
        for share in (0.3, 0.999999):
            assert (source.predict(rows + share * radius * direction) == labels).all()
    for k in range(model.n_decisions):
        for sign in (-1.0, 1.0):
            moved = rows.copy()
            for _ in range(5):  # a step uphill, and back into the ball
                moved += sign * 0.5 * radius * unit(gradients(model, moved)[k])
                away = moved - rows
                moved = rows + away * np.minimum(1.0, 0.999999 * radius / np.linalg.norm(away, axis=1, keepdims=True))
                assert (source.predict(moved) == labels).all()


@pytest.mark.parametrize("gamma", [0.01, 1.0, 300.0])
def test_the_bound_is_attained(gamma):
    """The bound is attained halfway between two vectors of opposite sign, where both Gaussians are steepest."""
    vectors = np.array([[-1.0, 0.0], [1.0, 0.0]]) / np.sqrt(2.0 * gamma)
    margin = 1e-4
    model = approxsvm.KernelModel(
        "classification",
        support_vectors=vectors,
        dual_coef=[-1.0, 1.0],
        intercept=margin,
        gamma=gamma,
        labels=np.array([1, 0]),
    )
    fast = approxsvm.compile(model, mode="exact")
    (radius,) = fast.certified_radius(np.zeros((1, 2)))
    assert radius == pytest.approx(margin / (2.0 * gaussian_slope(gamma)), rel=1e-6)
    left = np.array([[-radius, 0.0]])
    assert fast.predict(0.999 * left).tolist() == [1]
    assert fast.predict(1.001 * left).tolist() == [0]


def test_copies_of_a_column_that_a_limit_stops_do_not_cancel():
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 1, (400, 2))
    y = np.sin(6 * rows[:, 0]) + rows[:, 1] > 0.5
    copies = make_column_transformer((MinMaxScaler(clip=True), [0]), ("passthrough", [0, 1]))
    source = make_pipeline(copies, PCA(whiten=True), SVC(gamma=0.5, C=10)).fit(rows, y)
    near = np.column_stack([rng.uniform(-0.5, 1.5, 3000), rng.uniform(0, 1, 3000)])
    radius, labels = approxsvm.compile(source).certified_radius(near), source.predict(near)
    assert np.isfinite(radius).all()
    for _ in range(10):
        moved = near + 0.999999 * radius[:, np.newaxis] * unit(rng.normal(size=near.shape))
        assert (source.predict(moved) == labels).all()


def test_scales_whose_products_are_no_numbers_prove_nothing():
    rows = T[:, :2] * 1e165
    source = make_pipeline(MinMaxScaler(), SVC()).fit(rows, TWO)
    assert (approxsvm.compile(source).certified_radius(rows) == 0).all()
    assert approxsvm.compile(source).certified_radius(rows[:0]).shape == (0,)


def test_nothing_to_fear():
    """The radius is infinite if no row has another label, and 0 if the row is on the boundary."""
    one = {"support_vectors": np.ones((1, 2)), "dual_coef": [1.0], "gamma": 1.0, "labels": np.array([1, 0])}
    fast = approxsvm.compile(approxsvm.KernelModel("classification", intercept=2.0, **one), mode="exact")
    assert fast.certified_radius(np.zeros((2, 2))).tolist() == [np.inf, np.inf]
    intercept = -float(np.exp(-2.0))
    fast = approxsvm.compile(approxsvm.KernelModel("classification", intercept=intercept, **one), mode="exact")
    assert fast.certified_radius(np.zeros((1, 2))).tolist() == [0.0]
    far = fast.certified_radius(np.full((1, 2), 30.0))  # the Gaussian is 0 there, and grows only nearer to the vector
    assert 0.0 < far[0] < 30.0 * np.sqrt(2.0)


def test_norms_are_those_of_the_functions():
    source, y = SOURCES["three classes"]
    model = read_any(source.fit(X, y))
    found = _norms(approxsvm.compile(source, mode="exact").artifact)
    vectors = np.asarray(model.support_vectors)
    kernel = np.exp(-model.gamma * ((vectors[:, np.newaxis] - vectors) ** 2).sum(axis=2))
    for k, norm in enumerate(found):
        coef = model.coefficients(k)
        exact = np.sqrt(coef @ kernel @ coef)
        assert exact <= norm <= exact * (1 + 1e-6)


@pytest.mark.parametrize("name", SOURCES)
def test_no_step_moves_rows_further(name):
    source, y = SOURCES[name]
    map_ = read_any(source.fit(X, y)).input_map
    stretch = _stretch(map_)
    attained = 0.0
    for direction in [*np.eye(4), *unit(RNG.normal(size=(200, 4)) / SCALES)]:
        h = 1e-3 * direction / np.linalg.norm(direction)
        moved = np.linalg.norm(map_.apply(X + h) - map_.apply(X), axis=1)
        assert (moved <= 1e-3 * stretch * (1 + 1e-9)).all()
        attained = max(attained, float(moved.max()) / (1e-3 * stretch))
    assert attained > 0.9


@pytest.mark.parametrize(
    ("source", "y", "what"),
    [
        (SVR(), T[:, 0], "a regression"),
        (SVC(kernel="linear"), TWO, "need a classifier with the Gaussian kernel"),
        (CalibratedClassifierCV(SVC(), cv=2), TWO, "an ensemble"),
        (make_pipeline(FunctionTransformer(np.log1p), StandardScaler(), SVC()), TWO, "do not support logarithm"),
    ],
)
def test_refusals(source, y, what):
    rows = np.abs(T)
    with pytest.raises(UnsupportedModelError, match=what):
        approxsvm.compile(source.fit(rows, y)).certified_radius(rows)
