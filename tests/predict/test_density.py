"""Kernel densities: logarithms within their bounds of the density in 60 digits, wherever the row is."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import approxsvm
from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.estimators import CompiledDensity

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4)) * [1.0, 30.0, 0.1, 5.0] + [0.0, 100.0, 0.0, -3.0]
Z = (X - X.mean(axis=0)) / X.std(axis=0)
WEIGHTS = RNG.exponential(size=200) * (RNG.random(200) < 0.8)


def exact_log_density(training, weights, bandwidth, row):
    """Of float64 numbers over the reals."""
    with mp.workdps(60):
        z, h = [mp.mpf(a) for a in row], mp.mpf(float(bandwidth))
        exponents = [
            sum((mp.mpf(float(a)) - b) ** 2 for a, b in zip(x, z, strict=True)) / (2 * h * h) for x in training
        ]
        least = min(e for e, w in zip(exponents, weights, strict=True) if w > 0)
        total = mp.fsum(mp.mpf(float(w)) for w in weights)
        terms = [mp.mpf(float(w)) * mp.exp(least - e) for e, w in zip(exponents, weights, strict=True)]
        d = len(z)
        return mp.log(mp.fsum(terms) / total) - least - d * mp.log(h) - mp.mpf(d) / 2 * mp.log(2 * mp.pi)


def assert_bounded(fast, training, weights, bandwidth, rows, mapped=None):
    logs, bounds = fast.score_samples(rows, return_bound=True)
    for k, row in enumerate(rows if mapped is None else mapped):
        with mp.workdps(60):
            error = abs(mp.mpf(float(logs[k])) - exact_log_density(training, weights, bandwidth, row))
        assert error <= bounds[k], (k, float(error), bounds[k])
    return logs, bounds


@pytest.mark.attack
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["uniform", "weighted"])
@pytest.mark.parametrize("bandwidth", [0.01, 0.3, 2.0, 50.0])
def test_no_bound_is_broken(bandwidth, weights):
    source = KernelDensity(bandwidth=bandwidth).fit(Z, sample_weight=weights)
    fast = approxsvm.compile(source)
    assert type(fast) is CompiledDensity
    rows = np.concatenate([Z[:8], Z[:8] + 0.5, 10.0 * Z[:4], 1e3 * Z[:2], 1e7 * Z[:1], 0.0 * Z[:1]])
    logs, bounds = assert_bounded(fast, Z, np.ones(200) if weights is None else weights, bandwidth, rows)
    assert (bounds <= 1e-7 * np.maximum(1.0, np.abs(logs))).all()
    if weights is None:  # scikit-learn's tree takes logarithms of weights of 0, and stops early in the tails
        np.testing.assert_allclose(logs[:8], source.score_samples(rows[:8]), rtol=1e-7, atol=1e-7)
        assert fast.score(rows[:8]) == pytest.approx(source.score(rows[:8]), rel=1e-7)


def test_every_mode_and_file(tmp_path):
    source = KernelDensity(bandwidth=2.0).fit(Z)
    for mode in ("certified", "approximate", "exact"):
        fast = approxsvm.compile(source, Z, mode=mode)
        fast.save(tmp_path / "density.asvm")
        for one in (fast, approxsvm.load(tmp_path / "density.asvm")):
            _, bounds = assert_bounded(one, Z, np.ones(200), 2.0, np.concatenate([Z[:5], 100 * Z[:1]]))
            assert (bounds[:5] < (0.5 if mode == "approximate" else 1e-8)).all()
            assert np.isinf(bounds[5]) == (mode == "approximate")
    np.testing.assert_array_equal(fast.score_samples(sparse.csr_matrix(Z)), fast.score_samples(Z))
    assert fast.score_samples(Z[:0]).shape == (0,)
    assert approxsvm.verify(fast, source, Z).kept


def test_pipelines_and_searches():
    source = make_pipeline(StandardScaler(), PCA(3), MinMaxScaler(), KernelDensity(bandwidth=0.2)).fit(X)
    fast = approxsvm.compile(source, X)
    rows = np.concatenate([X[:20], X[:3] * 3.0])
    mapped, training = source[:-1].transform(rows), source[:-1].transform(X)
    logs, bounds = fast.score_samples(rows, return_bound=True)
    for k, row in enumerate(mapped):  # the source's own transformers round, too
        assert abs(float(exact_log_density(training, np.ones(200), 0.2, row)) - logs[k]) <= bounds[k] + 1e-9
    assert (bounds[:20] < 1e-8).all()
    search = GridSearchCV(KernelDensity(), {"bandwidth": [0.1, 0.5]}, cv=3).fit(Z)
    np.testing.assert_allclose(approxsvm.compile(search).score_samples(Z), search.score_samples(Z), rtol=1e-6)


def test_what_a_projection_loses_is_inside_the_bound_in_the_tails():
    source = make_pipeline(PCA(2), KernelDensity(bandwidth=0.5)).fit(Z)
    projection, density = source
    projection.components_ = np.array([[1 / 3, 1 / 3, 0.0, 0.0], [0.0, 0.0, 1 / 7, 1 / 7]])
    density.fit(projection.transform(Z))
    rows = 100.0 * Z[:6] + 1e8 * np.array([1.0, -1.0, 1.0, -1.0])
    numbers = [
        [mp.mpf(float(a)) - mp.mpf(float(b)) for a, b in zip(row, projection.mean_, strict=True)] for row in rows
    ]
    mapped = [[mp.fdot(row, map(float, component)) for component in projection.components_] for row in numbers]
    assert_bounded(approxsvm.compile(source), projection.transform(Z), np.ones(200), 0.5, rows, mapped)


def test_predict_is_the_mean_of_the_kernel():
    source = KernelDensity(bandwidth=0.7).fit(Z)
    fast = approxsvm.compile(source)
    constant = -4 * np.log(0.7) - 2 * np.log(2 * np.pi)
    tolerance = float(fast.artifact.header["tolerance"])
    mean = np.exp(fast.score_samples(Z) - constant)
    np.testing.assert_allclose(fast.predict(Z), mean, rtol=1e-12, atol=min(tolerance, 1e-4))


def test_what_does_not_compile_is_named():
    for changes in ({"kernel": "tophat"}, {"metric": "manhattan"}):
        with pytest.raises(UnsupportedModelError, match="only 'gaussian' and 'euclidean'"):
            approxsvm.compile(KernelDensity(**changes).fit(Z))
    with pytest.raises(UnsupportedModelError, match="bandwidth"):
        approxsvm.compile(KernelDensity(bandwidth=1e-200).fit(Z))
    source = KernelDensity().fit(Z)
    source.bandwidth_ = np.nan
    with pytest.raises(ModelFormatError, match="nan"):
        approxsvm.compile(source)
