"""Dense and sparse float32 rows that a source maps in float32: thresholds, and float32 overflow.

The zoo compares the bounds of every step with the source's own numbers.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import BaggingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    MaxAbsScaler,
    MinMaxScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, OneClassSVM

import approxsvm
from approxsvm import _native
from approxsvm.errors import InputError

UNIT32 = 2.0**-24
LABELS, VALUES, BOUNDS, CERTIFIED = 1, 2, 4, 16


def table(n=160):
    """Return positive features (one with a large mean, others tiny or with few values), and labels based on several."""
    rng = np.random.default_rng(1)
    X = np.c_[
        rng.normal(size=n) * 0.01 + 100.0,
        rng.exponential(size=n),
        rng.normal(size=n) ** 2 * 1e-3,
        rng.integers(0, 6, size=(n, 2)),
        rng.lognormal(size=n) * 30.0,
    ]
    y = (X[:, 0] - 100.0) * 50.0 + X[:, 1] + 0.3 * X[:, 3] + rng.normal(size=n) * 0.2 > 1.2
    return X, y.astype(int)


def test_a_number_on_the_other_side_of_a_threshold_is_within_the_bound(target):
    X, y = table()
    pipeline = make_pipeline(MinMaxScaler(), Binarizer(threshold=0.7), SVC(kernel="linear")).fit(X, y)
    compiled = approxsvm.compile(pipeline)
    rows = np.repeat(X[:1].astype(np.float32), 6 * 400, axis=0).reshape(6, 400, 6)
    for j, scaler in enumerate(zip(pipeline[0].min_, pipeline[0].scale_, strict=True)):
        nearest = np.float32((0.7 - scaler[0]) / scaler[1])
        rows[j, :, j] = (nearest.view(np.int32) + np.arange(-200, 200, dtype=np.int32)).view(np.float32)
    rows = rows.reshape(-1, 6)
    source, labels = -pipeline.decision_function(rows), pipeline.predict(rows)
    assert compiled.artifact.labels.tolist() == [0, 1]
    for unit, is_held in ((0.0, False), (UNIT32, True)):  # some rows need the bound
        native = _native.Predictor(compiled.artifact.native, target, float32_unit=unit)
        ours, values, bounds, certified = native.dense(rows, 1, LABELS + VALUES + BOUNDS + CERTIFIED)
        assert (np.abs(values - source) <= bounds + 1e-12).all() == is_held
        assert (ours == labels)[certified].all() == is_held
    assert certified.mean() > 0.9


MACHINES = {
    "rbf": SVC(gamma=0.3),
    "polynomial": SVC(kernel="poly", degree=3, gamma=0.1, coef0=1.0),
    "linear model": LogisticRegression(),
    "cosines": make_pipeline(RBFSampler(n_components=20, random_state=0), LogisticRegression()),
    "votes": BaggingClassifier(SVC(gamma=0.3), 3, random_state=0),
    "one class": OneClassSVM(gamma=0.3),
    "process": GaussianProcessClassifier(RBF(1.0), optimizer=None),
    "regression": SVR(gamma=0.3),
}


@pytest.mark.parametrize("name", MACHINES)
def test_a_row_that_exceeds_float32_on_its_way_is_answered_and_not_certified(target, name):
    X, y = table()
    X[:, 2] *= 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = make_pipeline(StandardScaler(), MACHINES[name]).fit(X, y)
    compiled = approxsvm.compile(pipeline)
    rows = X[:20].astype(np.float32)
    rows[3, 2], rows[5, 1], rows[7, 0] = 3e37, np.float32(3.4e38), -3.4e38
    native = _native.Predictor(compiled.artifact.native, target, float32_unit=UNIT32)
    plain = _native.Predictor(compiled.artifact.native, target)
    with np.errstate(over="ignore"):
        beyond = ~np.isfinite(pipeline[0].transform(rows)).all(axis=1)
    assert beyond.any()
    assert not native.dense(rows, 1, CERTIFIED)[beyond].any()
    if name == "regression":
        tolerance = float(compiled.artifact.header["tolerance"])
        np.testing.assert_allclose(compiled.predict(rows), plain.dense(rows, 1, VALUES), rtol=0, atol=2 * tolerance)
    else:
        assert (native.dense(rows, 1, LABELS) == plain.dense(rows, 1, LABELS)).all()
    if name != "votes":  # votes have no values
        values, bounds = native.dense(rows, 1, VALUES + BOUNDS)
        assert (bounds[beyond] == np.inf).all()
        assert np.isfinite(values).all()
        assert not np.isnan(bounds).any()


def test_the_unit_is_none_or_that_of_float32():
    X, y = table()
    compiled = approxsvm.compile(make_pipeline(StandardScaler(), SVC()).fit(X, y))
    with pytest.raises(InputError, match=r"float32_unit is 0.5.*, expected 0 or 2\*\*-24"):
        _native.Predictor(compiled.artifact.native, float32_unit=0.5)


# --- sparse rows, which a source multiplies, while it divides dense ones


def test_sparse_rows_on_the_edge_of_a_bin_are_not_certified(target):
    X = np.arange(1.0, 41.0).reshape(20, 2)
    y = np.arange(20) > 9
    scaler = MaxAbsScaler().fit(X * 0.7)
    x = X * 0.7
    apart = x / scaler.scale_ != x * (1.0 / scaler.scale_)
    row, column = next(at for at in np.argwhere(apart) if 5 < at[0] < 15)
    edge = max(x[row, column] / scaler.scale_[column], x[row, column] * (1.0 / scaler.scale_[column]))
    binarizer = Binarizer(threshold=np.nextafter(edge, 0.0))
    pipeline = make_pipeline(scaler, binarizer, LogisticRegression()).fit(x, y)
    native = _native.Predictor(approxsvm.compile(pipeline).artifact.native, target)
    sparse = csr_array(x)
    bounds, _certified = native.csr(sparse.indptr, sparse.indices, sparse.data, 1, BOUNDS + CERTIFIED)
    source = pipeline.decision_function(sparse) - pipeline.decision_function(x)
    assert source[row] != 0.0
    assert (np.abs(source) <= bounds + 1e-12).all()
    assert bounds[row] > 0.01
    assert np.median(bounds) < 1e-12
