"""Rows of float32 that a source maps in float32: bounds hold for its numbers, certified labels are its own."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, FastICA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import SVC, SVR, OneClassSVM

import approxsvm
from approxsvm import _native
from approxsvm.errors import InputError

UNIT32 = 2.0**-24
LABELS, VALUES, BOUNDS, CERTIFIED = 1, 2, 4, 16
WHOLE, POSITIVE = [3, 4], [0, 1, 2, 5]


def table(n=160):
    """Positive features: of a large mean, of none, of few values, tiny ones; and a label that most of them say."""
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


def of_reals(*steps):
    return ColumnTransformer([("reals", make_pipeline(*steps), POSITIVE)])


STEPS = {
    "standard": StandardScaler(),
    "min-max": MinMaxScaler(feature_range=(0.1, 0.7)),
    "min-max, clipped": MinMaxScaler(feature_range=(-0.3, 0.7), clip=True),
    "max-abs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "pca": PCA(3),
    "pca, whitened": PCA(3, whiten=True),
    "svd": TruncatedSVD(3),
    "discriminants": LinearDiscriminantAnalysis(),
    "ica": FastICA(3, random_state=0),
    "gaussian projection": GaussianRandomProjection(3, random_state=0),
    "sparse projection": SparseRandomProjection(4, density=0.5, random_state=0),
    "agglomeration": FeatureAgglomeration(3),
    "log1p": FunctionTransformer(np.log1p),
    "log": of_reals(FunctionTransformer(np.log)),
    "normalizer, l1": Normalizer("l1"),
    "normalizer, l2": Normalizer("l2"),
    "normalizer, max": Normalizer("max"),
    "yeo-johnson": ColumnTransformer([("a", PowerTransformer(), [1, 2, 3, 5])]),
    "box-cox": ColumnTransformer([("a", PowerTransformer("box-cox", standardize=False), [1, 2, 5])]),
    "quantiles": QuantileTransformer(n_quantiles=20),
    "normal quantiles": QuantileTransformer(n_quantiles=20, output_distribution="normal"),
    "splines": SplineTransformer(4),
    "splines, linear": SplineTransformer(5, degree=2, extrapolation="linear"),
    "splines, continued": SplineTransformer(3, extrapolation="continue"),
    "splines, periodic": SplineTransformer(5, extrapolation="periodic"),
    "products": ColumnTransformer([("a", PolynomialFeatures(3, include_bias=False), [1, 2])]),
    "waves": AdditiveChi2Sampler(sample_steps=3),
    "bins": KBinsDiscretizer(4, encode="ordinal"),
    "thresholds": Binarizer(threshold=0.7),
    "codes beside scaled": ColumnTransformer(
        [("a", StandardScaler(), POSITIVE), ("b", OneHotEncoder(handle_unknown="ignore"), WHOLE)]
    ),
    "missing": make_pipeline(SimpleImputer(strategy="mean"), StandardScaler()),
}
LEAST = {"log": 1e-45, "box-cox": 1e-45}
WAYS = {
    "alone": lambda name: [STEPS[name]],
    "fitted in float32": lambda name: [STEPS[name]],
    "binned": lambda name: [STEPS[name], KBinsDiscretizer(3, encode="ordinal", strategy="quantile")],
}


@functools.cache
def fitted(name, way):
    """A fitted pipeline of a linear kernel, which shows every error, and what it compiles to."""
    X, y = table()
    X = X.astype(np.float32) if way == "fitted in float32" else X
    if name == "missing":
        X = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = make_pipeline(*WAYS[way](name), SVC(kernel="linear")).fit(X, y)
    return pipeline, approxsvm.compile(pipeline)


def rows_of(rng, X, least=0.0, n=300):
    """Rows like those of X, on and around its numbers, of any size down to denormal ones; none is below `least`."""
    X32 = X.astype(np.float32)
    rows = X32[rng.integers(0, len(X), n)]
    for row in rows[n // 4 :]:
        for j in rng.permutation(X.shape[1])[: rng.integers(1, 4)]:
            way = rng.integers(6)
            if way == 0:
                row[j] = np.nextafter(row[j], np.float32(rng.choice([0.0, np.inf])))
            elif way == 1:
                row[j] = rng.choice([0.0, 1.0, 0.7, 100.0, 1e-45, 1e-39, 1e-30, 1e-20, 1e-7, 3e-6])
            elif way == 2:
                row[j] = rng.choice([1e6, 1e12, 1e19, 3e19, 1e30, 3.3e38])
            elif way == 3:
                row *= np.float32(10.0 ** rng.integers(-12, 0))
            else:
                row[j] = min(row[j], 1e38) * (1.0 + rng.normal() * 2.0 ** -rng.integers(3, 23))
    return np.clip(np.abs(rows), least, np.float32(3.3e38))


def transformed(step, rows, lost):
    """What a step makes of rows; those that it refuses are marked as lost, and are the first row from there on."""
    try:
        made = step.transform(rows)
    except ValueError:
        infinite = np.isinf(rows).any(axis=1)
        refused = np.array(
            [
                (is_odd or not infinite.any()) and refuses(step, row)
                for is_odd, row in zip(infinite, rows[:, np.newaxis], strict=True)
            ]
        )
        lost |= refused
        return transformed(step, np.where(refused[:, np.newaxis], rows[0], rows), lost)
    return made.toarray() if hasattr(made, "toarray") else np.asarray(made)


def refuses(step, row):
    """Whether a step refuses a row."""
    try:
        step.transform(row)
    except ValueError:
        return True
    return False


def sources_own(pipeline, rows):
    """Mapped rows, values and labels of the source, and whether it has any; the first row has to be good."""
    mapped, lost = rows, np.zeros(len(rows), np.bool_)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _, step in pipeline.steps[:-1]:
            mapped = transformed(step, mapped, lost)
        lost |= ~np.isfinite(mapped).all(axis=1)
        mapped[lost] = mapped[0]
    return mapped, pipeline[-1].decision_function(mapped), pipeline[-1].predict(mapped), ~lost


def holds(pipeline, compiled, target, rows, unit=UNIT32):
    """Check every row; the share of certified rows, and how much of its bound each value uses up."""
    native = _native.Predictor(compiled.artifact.native, target, float32_unit=unit)
    mapped, source, labels, kept = sources_own(pipeline, rows)
    ours, values, bounds, certified = native.dense(rows, 1, LABELS + VALUES + BOUNDS + CERTIFIED)
    ours = compiled.artifact.labels[ours]
    assert not certified[~kept].any()
    assert not np.isnan(bounds).any()
    machine = pipeline[-1]
    sign = -1.0 if compiled.artifact.labels[0] == machine.classes_[0] else 1.0
    vectors = machine.support_vectors_
    of_terms = (np.abs(mapped).astype(np.float64) @ np.abs(vectors.T) + 1.0) @ np.abs(machine.dual_coef_[0])
    own = (len(vectors) + vectors.shape[1] + 100) * 2.0**-52 * (of_terms + abs(machine.intercept_[0]))
    off = np.abs(sign * values - source)[kept]
    assert (off <= (bounds + own)[kept]).all()
    assert (ours == labels)[kept & certified].all()
    return certified, off / (bounds + own)[kept]


TARGETS = _native.runnable_targets()


@pytest.mark.parametrize(
    ("name", "way", "target"),
    [(name, way, TARGETS[(i + j) % len(TARGETS)]) for j, way in enumerate(WAYS) for i, name in enumerate(STEPS)],
)
def test_bounds_and_certified_labels_hold_for_a_source_that_computes_in_float32(name, way, target):
    if way == "fitted in float32" and name == "yeo-johnson":
        pytest.skip("a reader refuses powers of float32")
    pipeline, compiled = fitted(name, way)
    rows = rows_of(np.random.default_rng(3), table()[0], LEAST.get(name, 0.0))
    if name == "missing":
        rows[::7, 1] = rows[3::7, 5] = np.nan
    certified, _ = holds(pipeline, compiled, target, rows)
    assert certified[: len(rows) // 4].any()  # of rows like those that it was fitted on


def test_a_number_on_the_other_side_of_a_threshold_is_within_the_bound(target):
    X, y = table()
    pipeline = make_pipeline(MinMaxScaler(), Binarizer(threshold=0.7), SVC(kernel="linear")).fit(X, y)
    compiled = approxsvm.compile(pipeline)
    rows = np.repeat(X[:1].astype(np.float32), 6 * 400, axis=0).reshape(6, 400, 6)
    for j, scaler in enumerate(zip(pipeline[0].min_, pipeline[0].scale_, strict=True)):
        nearest = np.float32((0.7 - scaler[0]) / scaler[1])
        rows[j, :, j] = (nearest.view(np.int32) + np.arange(-200, 200, dtype=np.int32)).view(np.float32)
    rows = np.concatenate([X[:1].astype(np.float32), rows.reshape(-1, 6)])
    with pytest.raises(AssertionError):  # what these rows are for
        holds(pipeline, compiled, target, rows, unit=0.0)
    certified, _ = holds(pipeline, compiled, target, rows)
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
    if name != "votes":  # which have no values
        values, bounds = native.dense(rows, 1, VALUES + BOUNDS)
        assert (bounds[beyond] == np.inf).all()
        assert np.isfinite(values).all()
        assert not np.isnan(bounds).any()


def test_the_unit_is_none_or_that_of_float32():
    _, compiled = fitted("standard", "alone")
    with pytest.raises(InputError, match=r"float32_unit is 0.5.*, expected 0 or 2\*\*-24"):
        _native.Predictor(compiled.artifact.native, float32_unit=0.5)


# --- sparse rows, which a source multiplies where it divides dense ones


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


def test_a_sparse_row_of_almost_no_norm_is_not_certified(target):
    X, y = table()
    pipeline = make_pipeline(Normalizer(), SVC(kernel="linear")).fit(X, y)
    rows = csr_array(X[:5] * np.array([[1.0], [1e-20], [0.0], [1e-12], [1.0]]))
    native = _native.Predictor(approxsvm.compile(pipeline).artifact.native, target)
    bounds, certified = native.csr(rows.indptr, rows.indices, rows.data, 1, BOUNDS + CERTIFIED)
    assert np.isinf(bounds).tolist() == [False, True, False, False, False]
    assert not certified[1]
