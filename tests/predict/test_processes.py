"""Gaussian processes with their variance: deviations and probabilities within their bounds of 50 digits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from zoo import oracle

import approxsvm
from approxsvm.errors import UnsupportedModelError
from approxsvm.estimators import CompiledProcess
from approxsvm.readers import read_any
from approxsvm.readers.sklearn import committees, processes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
TARGET = 7.0 * np.sin(2.0 * X[:, 0]) + X[:, 1] + 100.0
KINDS = np.digitize(TARGET, np.quantile(TARGET, [0.3, 0.7]))
LABELS = np.array(["c", "a", "b"])[KINDS]
# Training rows, rows a hair from them, between them, and far away.
ROWS = np.concatenate([X[:2], X[4:6] + 1e-7, RNG.normal(size=(2, 3)), [[30.0, 0.0, 0.0], [1e6, 1e6, 1e6]]])
KERNELS = {
    "plain": RBF(1.3),
    "with constant and noise": 2.5 * RBF(2.0) + ConstantKernel(0.3) + WhiteKernel(0.2),
    "nearly singular": RBF(20.0),
}


def exact(number):
    return mp.mpf(float(number))


def exact_kernels(kernel, a, b, same):
    """A kernel of scikit-learn's between two rows over the reals; `same` where they are one row of one matrix."""
    kind = type(kernel).__name__
    if kind == "ConstantKernel":
        return exact(kernel.constant_value)
    if kind == "WhiteKernel":
        return exact(kernel.noise_level) if same else mp.mpf(0)
    if kind == "RBF":
        lengths = np.broadcast_to(np.ravel(kernel.length_scale), a.shape)
        return mp.exp(-sum(((exact(p) - exact(q)) / exact(h)) ** 2 for p, q, h in zip(a, b, lengths, strict=True)) / 2)
    first, second = (exact_kernels(inner, a, b, same) for inner in (kernel.k1, kernel.k2))
    return first + second if kind == "Sum" else first * second


def exact_latent(machine, row, weights, scales):
    """Mean and variance at a row, by substitution with the factor that is stored."""
    values = [exact_kernels(machine.kernel_, x, row, False) for x in machine.X_train_]
    mean = mp.fsum(exact(w) * k for w, k in zip(weights, values, strict=True))
    v = []
    for k, factor in enumerate(machine.L_):
        known = mp.fsum(exact(factor[j]) * v[j] for j in range(k))
        v.append((exact(scales[k]) * values[k] - known) / exact(factor[k]))
    return mean, max(mp.mpf(0), exact_kernels(machine.kernel_, row, row, True) - mp.fsum(one**2 for one in v))


@pytest.mark.attack
@pytest.mark.parametrize(("kernel", "alpha"), [("with constant and noise", 0.1), ("nearly singular", 1e-10)])
def test_deviations(kernel, alpha):
    source = GaussianProcessRegressor(KERNELS[kernel], alpha=alpha, optimizer=None, normalize_y=True).fit(X, TARGET)
    fast = approxsvm.compile(source, variance=True)
    assert type(fast) is CompiledProcess
    mean, deviation = fast.predict(ROWS, return_std=True)
    bounds, scale = fast.deviation_bound(ROWS), float(source._y_train_std)
    np.testing.assert_array_equal(mean, approxsvm.compile(source).predict(ROWS))
    with mp.workdps(50):
        for k, row in enumerate(ROWS):
            _, variance = exact_latent(source, row, source.alpha_, np.ones(len(X)))
            error = abs(exact(deviation[k]) - mp.sqrt(variance) * exact(scale))
            assert error <= bounds[k], (k, float(error), bounds[k])
    # Useful: what the bound allows of the variance is small beside the prior, unless L has hardly an inverse.
    if alpha > 1e-10:
        assert (bounds * (deviation + bounds) <= 1e-9 * scale**2).all()
        np.testing.assert_allclose(deviation, source.predict(ROWS, return_std=True)[1], rtol=1e-6)


def test_equal_probabilities_are_of_the_last_class_where_the_source_takes_it(monkeypatch):
    """As scikit-learn 1.6 does; far from all training rows every latent function has the same distribution."""
    source = GaussianProcessClassifier(RBF(1.3), optimizer=None).fit(X, LABELS)
    monkeypatch.setattr(committees, "takes_last_of_ties", lambda _: True)
    fast = approxsvm.compile(source)
    assert fast.predict(ROWS)[-1] == "c"
    assert not fast.certified(ROWS)[-1]
    np.testing.assert_array_equal(fast.predict(X), source.predict(X))
    np.testing.assert_allclose(fast.predict_proba(ROWS), source.predict_proba(ROWS), atol=1e-9)


def test_against_the_rest():
    """Of two classes the second has more than one half, which is not where the mean is 0, but a hair above it."""
    process = GaussianProcessClassifier(RBF(1.3), optimizer=None)
    source = OneVsRestClassifier(process).fit(X, np.where(TARGET > 100.0, "yes", "no"))
    fast, sign = approxsvm.compile(source), approxsvm.compile(source.estimators_[0])
    is_it = source.predict_proba(X)[:, 1] > 0.5
    low, high = X[~is_it][0], X[is_it][0]
    rows = low + np.linspace(0, 1, 30)[:, np.newaxis] * (high - low)
    for _ in range(50):
        edge = (low + high) / 2
        low, high = (low, edge) if source.predict([edge])[0] == "yes" else (edge, high)
    edge = low[np.newaxis]
    assert sign.predict(edge) == 1 != (fast.predict(edge) == "yes")
    assert not fast.certified(edge).any()
    assert fast.certified(rows).mean() > 0.9
    np.testing.assert_array_equal(fast.predict(rows), source.predict(rows))
    np.testing.assert_allclose(fast.predict_proba(rows), source.predict_proba(rows), atol=1e-7)


def test_the_mean_keeps_its_speed_and_its_promise():
    """Labels and means are answered by what answers them without variance; a tolerance is of the mean."""
    source = GaussianProcessRegressor(RBF(2.0), alpha=0.1, optimizer=None).fit(X, TARGET)
    fast = approxsvm.compile(source, variance=True, tolerance=1e-2)
    fast.predict(ROWS)
    assert sum(fast.rows_per_stage.values()) == len(ROWS)
    assert (fast.error_bound(ROWS) <= 1e-2).all()


def test_deviations_are_verified():
    source = make_pipeline(
        StandardScaler(), GaussianProcessRegressor(RBF(2.0), alpha=0.1, optimizer=None, normalize_y=True)
    )
    fast, other = approxsvm.compile(source.fit(X, TARGET), variance=True), clone(source)
    found = approxsvm.verify(fast, source, ROWS)
    assert found.kept
    assert 0.0 < found.largest_error_to_bound < 1.0
    other.fit(X, TARGET)[-1].alpha_ = source[-1].alpha_
    other[-1].L_ = 1.01 * source[-1].L_  # means as before
    assert approxsvm.verify(fast, other, ROWS).bound_violations > len(ROWS) / 2


def test_probabilities_rise_with_the_mean():
    """So that they stay between 0 and a limit below 1: the slope where the variance is 0, from the mean 0 to far away.

    With x the square of the mean it is sum_i c_i l_i exp(-l_i^2 x), in steps so small that it cannot come to 0 between.
    """
    c = np.array([-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654])
    h = np.array([0.41, 0.4, 0.37, 0.44, 0.39])
    x = np.arange(0.0, 400.0, 1e-3)[:, np.newaxis]
    # Times exp(0.37^2 x), which leaves the signs as they are, and its own slope.
    terms = c * h * np.exp((0.37**2 - h**2) * x)
    slope, change = terms.sum(axis=1), np.abs(terms * (0.37**2 - h**2)).sum(axis=1)
    assert (slope > 1e-3 * change + 1e-9).all()
    assert np.abs(np.delete(terms[-1], 2)).sum() < terms[-1, 2]  # from there on this one is more than all others


def test_what_is_refused(monkeypatch):
    regressor = GaussianProcessRegressor(RBF(2.0), alpha=0.1, optimizer=None).fit(X, TARGET)
    classifier = GaussianProcessClassifier(RBF(2.0), optimizer=None, multi_class="one_vs_one").fit(X, LABELS)
    many = GaussianProcessRegressor(RBF(0.1), alpha=0.1, optimizer=None).fit(RNG.normal(size=(1025, 2)), np.zeros(1025))
    several = GaussianProcessRegressor(RBF(2.0), optimizer=None).fit(X, X[:, :2])
    for source, said in (
        (several, "has 2 targets, of which only means can be compiled: leave out variance=True"),
        (SVR().fit(X, TARGET), "variance=True is for Gaussian processes.* not for this SVR"),
        (classifier, "of 3 classes by OneVsOneClassifier; fit it with multi_class='one_vs_rest'"),
        (many, "has 1025 functions, one for each training row, of which at most 1024 .* without variance=True"),
    ):
        with pytest.raises(UnsupportedModelError, match=said):
            approxsvm.compile(source, variance=True)
    of_three = GaussianProcessClassifier(RBF(2.0), optimizer=None).fit(X, LABELS)
    with pytest.raises(UnsupportedModelError, match="leave out variance=False"):
        approxsvm.compile(of_three, variance=False)
    fast = approxsvm.compile(regressor, variance=True)
    with pytest.raises(UnsupportedModelError, match="C export has no variances of Gaussian processes"):
        fast.export_c("unused.h")
    with pytest.raises(UnsupportedModelError, match="variance of a Gaussian process"):
        fast.to_onnx()
    binary = GaussianProcessClassifier(RBF(2.0), optimizer=None).fit(X, TARGET > 100.0)
    with pytest.raises(UnsupportedModelError, match="labels by its mean"):
        approxsvm.compile(binary, variance=True, labels="probability")
    with pytest.raises(AttributeError) as told:
        approxsvm.compile(binary).predict_proba(X)
    assert "compile it with variance=True" in str(told.value)
    monkeypatch.setattr(processes, "MOST_ROWS", 39)
    with pytest.raises(UnsupportedModelError, match="at most 39 are supported, and labels of several classes need it"):
        approxsvm.compile(of_three)


@pytest.mark.attack
def test_probabilities_from_loose_means():
    """The mean of mode "approximate" is off by what its bound says; the bound of the probability follows."""
    source = GaussianProcessClassifier(4.0 * RBF(3.0), optimizer=None).fit(X, TARGET > 100.0)
    fast = approxsvm.compile(source, variance=True, mode="approximate", degree=2)
    assert fast.artifact.labels.tolist() == [True, False]
    shares, bounds = (part[:, ::-1] for part in (fast.predict_proba(X[:12]), fast.probability_bound(X[:12])))
    truth, slack = oracle.probabilities(read_any(source, variance=True), X[:12])
    errors = np.abs(shares - truth)
    assert (errors <= bounds + slack).all()
    assert (bounds <= 1.0).all()
    assert errors.max() > 1e-4  # it is loose
