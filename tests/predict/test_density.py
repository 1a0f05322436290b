"""Kernel densities: for rows anywhere, logarithms differ from 60-digit values by at most their bounds."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import approxsvm
from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.estimators import CompiledDensity

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(80, 4))
WEIGHTS = RNG.exponential(size=80) * (RNG.random(80) < 0.8)


def assert_bounded(fast, weights, bandwidth, rows, training=Z, mapped=None):
    logs, bounds = fast.score_samples(rows, return_bound=True)
    for row, log, bound in zip(rows if mapped is None else mapped, logs, bounds, strict=True):
        with mp.workdps(60):
            z, h = [mp.mpf(a) for a in row], mp.mpf(float(bandwidth))
            exponents = [
                mp.fsum((mp.mpf(float(a)) - b) ** 2 for a, b in zip(x, z, strict=True)) / (2 * h * h) for x in training
            ]
            least = min(e for e, w in zip(exponents, weights, strict=True) if w > 0)
            terms = [mp.mpf(float(w)) * mp.exp(least - e) for e, w in zip(exponents, weights, strict=True)]
            mean = mp.fsum(terms) / mp.fsum(mp.mpf(float(w)) for w in weights)
            exact = mp.log(mean) - least - len(z) * (mp.log(h) + mp.log(2 * mp.pi) / 2)
            assert abs(mp.mpf(float(log)) - exact) <= bound
    return logs, bounds


@pytest.mark.attack
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["uniform", "weighted"])
@pytest.mark.parametrize("bandwidth", [0.01, 0.3, 2.0, 50.0])
def test_no_bound_is_broken(bandwidth, weights):
    source = KernelDensity(bandwidth=bandwidth).fit(Z, sample_weight=weights)
    fast = approxsvm.compile(source)
    assert type(fast) is CompiledDensity
    rows = np.concatenate([Z[:4], Z[:4] + 0.5, 10.0 * Z[:2], 1e3 * Z[:2], 1e7 * Z[:1], 0.0 * Z[:1]])
    logs, bounds = assert_bounded(fast, np.ones(len(Z)) if weights is None else weights, bandwidth, rows)
    assert (bounds <= 1e-7 * np.maximum(1.0, np.abs(logs))).all()
    if weights is None:  # scikit-learn's tree computes logarithms of zero weights, and stops early in the tails
        np.testing.assert_allclose(logs[:4], source.score_samples(rows[:4]), rtol=1e-7, atol=1e-7)
        assert fast.score(rows[:4]) == pytest.approx(source.score(rows[:4]), rel=1e-7)


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
    assert_bounded(approxsvm.compile(source), np.ones(len(Z)), 0.5, rows, projection.transform(Z), mapped)


def test_rounding_of_the_source_in_float32_is_inside_the_bound():
    source = make_pipeline(StandardScaler(), PCA(3), MinMaxScaler(), KernelDensity(bandwidth=0.2)).fit(Z)
    fast = approxsvm.compile(source)
    rows = np.concatenate([Z, 1.3 * Z + 0.1, 30.0 * Z[:4]]).astype(np.float32)
    logs, bounds = fast.score_samples(rows, return_bound=True)
    off = np.abs(logs - source.score_samples(rows))
    assert off.max() > 1e-9  # far above float64 rounding
    assert (off <= bounds + 1e-12 * np.abs(logs)).all()
    assert (bounds[: len(Z)] < 0.1).all()


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
