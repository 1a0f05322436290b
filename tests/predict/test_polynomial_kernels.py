"""Polynomial and sigmoid kernels: boundaries, tolerances, modes and refusals; test_bounds.py tests their bounds."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from conftest import GOLDEN, random_model
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

import approxsvm
from approxsvm import KernelModel, _native
from approxsvm.artifact.polynomials import build_polynomial
from approxsvm.errors import InputError, ModelFormatError, UnsupportedModelError
from approxsvm.runtime.evaluator import BOUNDS, VALUES, Evaluator

KINDS = {
    "SVC": SVC(kernel="poly", coef0=0.5),
    "NuSVC": NuSVC(kernel="poly", nu=0.2, gamma=0.3),
    "one class": OneClassSVM(kernel="poly", nu=0.2, gamma=0.3, coef0=-0.2),
    "SVR": SVR(kernel="poly", gamma=0.2, coef0=1.0),
    "NuSVR": NuSVR(kernel="poly", gamma=0.2),
    "KernelRidge": KernelRidge(kernel="poly", alpha=1e-2),
}


def data(n_classes=2, n=150, d=5):
    X, y = make_classification(n, d, n_informative=d - 1, n_redundant=0, random_state=1)
    return X, y if n_classes == 2 else y + (X[:, 0] > 1)


def fitted(name, degree, n_classes=2):
    X, y = data(n_classes)
    target = np.sin(X.sum(axis=1)) if name in ("SVR", "NuSVR", "KernelRidge") else y
    return clone(KINDS[name]).set_params(degree=degree).fit(X, target), X


def test_every_target(target):
    expected = np.loadtxt(GOLDEN / "iris_cubic.values")
    rows, _ = approxsvm.read_libsvm_data(GOLDEN / "iris_cubic.t", n_features=4)
    fast = approxsvm.load(GOLDEN / "iris_cubic.asvm")
    assert _native.Predictor(fast.artifact.data).target == target
    values, bounds = fast._evaluator.evaluate(fast._rows(rows.toarray()), VALUES | BOUNDS)
    assert expected.shape == (20, 3)
    assert (bounds < 1e-9).all()
    assert (np.abs(values - expected) <= bounds).all()


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_rows_on_the_boundary_are_summed_in_libsvms_order(degree):
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(60, 3)).astype(float)
    model = KernelModel(
        "classification",
        X,
        rng.choice([-0.1, 0.3, 0.7], 60),
        np.zeros(1),
        1.0,
        labels=np.array([1, -1]),
        n_support=np.array([30, 30]),
        degree=degree,
    )
    Z = np.zeros((4, 3))
    for artifact in (approxsvm.compile(model).artifact, build_polynomial(model, "exact")):
        evaluator = Evaluator(artifact)
        np.testing.assert_array_equal(evaluator.predict(Z), -1)  # a value of 0 means the second label
        assert evaluator.rows_per_stage["definition"] == 4
        assert not evaluator.certified(Z).any()


def test_tolerances_are_kept_or_rows_refused():
    source, X = fitted("KernelRidge", 3)
    fast = approxsvm.compile(source, tolerance=1e-7)
    assert fast.error_bound(X).max() <= 1e-7
    far = np.concatenate([X, 1e8 * X[:1]])
    with pytest.raises(InputError, match=rf"row {len(X)}: its value is certain to .* not to the tolerance of 1e-07"):
        fast.predict(far)
    assert approxsvm.compile(source, tolerance=np.inf).predict(far).shape == (len(far),)
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="tolerance is"):
            approxsvm.compile(source, tolerance=bad)


def test_modes():
    source, _ = fitted("SVC", 3)
    with pytest.raises(UnsupportedModelError, match="polynomial of degree 3, but mode 'approximate' needs a form"):
        approxsvm.compile(source, mode="approximate")
    wide = SVC(kernel="poly", degree=2).fit(np.random.default_rng(0).normal(size=(20, 60)), np.arange(20) % 2)
    fast = approxsvm.compile(wide)
    assert fast.summary.mode == "exact"  # evaluating the form would take more terms than the support vectors
    assert "would cost more" in fast.summary.plan
    approximate = approxsvm.compile(wide, mode="approximate")
    assert approximate.summary.mode == "approximate"
    Z = np.random.default_rng(1).normal(size=(50, 60))
    difference = np.abs(approximate.decision_function(Z) - fast.decision_function(Z))
    assert (difference <= approximate.error_bound(Z) + fast.error_bound(Z)).all()
    assert fast.within_gamma_bound(Z).all()
    small = approxsvm.compile(fitted("SVC", 2)[0])
    limited = approxsvm.compile(fitted("SVC", 2)[0], max_bytes=len(small.artifact.data) - 1)
    assert limited.summary.mode == "exact"


def test_kernels_beyond_float64_are_refused_when_compiling():
    vectors = np.ones((2, 2))
    with pytest.raises(UnsupportedModelError, match=r"exceeds the range of float64 at the origin: coef0 is 1e\+100"):
        approxsvm.compile(KernelModel("regression", vectors, np.ones(2), 0.0, 1.0, degree=6, coef0=1e100))
    with pytest.raises(UnsupportedModelError, match="the coefficients have the absolute sum"):
        approxsvm.compile(KernelModel("regression", vectors, np.full(2, 1e308), 0.0, 1.0, degree=1))


def test_linear_machines_have_no_gamma():
    X, _ = data()
    fast = approxsvm.compile(SVR(kernel="linear").fit(X, X[:, 0]))
    assert (fast.summary.kernel, fast.summary.mode) == ("linear", "certified")
    assert "gamma" not in dict(fast.summary.rows())


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_what_underflows_is_written_and_read(degree, tmp_path):
    """Huge coefficients multiply kernel values that underflow float64, so check rows differ by what was lost."""
    rng = np.random.default_rng(0)
    for gamma, size, factor, coef0 in itertools.product(
        (1e-300, 1e-150, 1e150), (1e-150, 1.0), (1.0, 1e200), (0.0, 1e-200)
    ):
        vectors = size * rng.normal(size=(4, 3))
        model = KernelModel(
            "regression",
            support_vectors=vectors,
            dual_coef=factor * np.array([1.0, -2.0, 3.0, -2.0]),
            intercept=0.0,
            gamma=gamma,
            coef0=coef0,
            degree=degree,
        )
        fast = approxsvm.compile(model, mode="exact")
        fast.save(tmp_path / "tiny.asvm")
        assert approxsvm.load(tmp_path / "tiny.asvm").artifact.data == fast.artifact.data


def test_sigmoid_kernels():
    model = replace(random_model(7, n_features=3, n_sv=5, gamma=1e3), is_sigmoid=True)
    with pytest.raises(UnsupportedModelError, match="a sigmoid kernel has no expansion"):
        approxsvm.compile(model, mode="approximate")
    with pytest.raises(ModelFormatError, match="degree is 2, but a sigmoid kernel has none"):
        replace(model, degree=2)
    fast = approxsvm.compile(model)
    with pytest.raises(InputError, match="exceeds the range of float64"):
        fast.predict(np.full((2, 3), 1e308))
    with pytest.raises(InputError, match="exceeds the range of float64"):
        approxsvm.compile(replace(model, task="regression", labels=np.empty(0), n_support=np.empty(0))).predict(
            np.full((2, 3), 1e308)
        )
