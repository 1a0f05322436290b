"""Lookup and nonlinear steps: refused values and estimators, and errors compared with exact arithmetic."""

from __future__ import annotations

import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

import approxsvm
from approxsvm.errors import InputError, ModelFormatError, UnsupportedModelError
from approxsvm.ir import ops
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.ops.lookup import GIVES_NAN, REFUSED, SAME, Lookup, Steps
from approxsvm.ir.ops.piecewise_polynomial import Pieces

CODES = [3, 4]


def table(n=400, missing=False):
    rng = np.random.default_rng(0)
    X = np.c_[
        rng.normal(size=(n, 3)) * [1, 5, 0.2] + [0, 3, 1], rng.integers(0, 5, size=(n, 2)), rng.exponential(size=n)
    ]
    y = (X[:, 0] + 0.3 * X[:, 3] + rng.normal(size=n) * 0.3 > 0.5).astype(int)
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def of_codes(step):
    return ColumnTransformer([("codes", step, CODES)], remainder="drop")


def fitted(step, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(step, SVC(gamma=0.3)).fit(X, y)


@pytest.mark.parametrize(
    ("step", "place", "value", "theirs", "ours"),
    [
        *(
            (
                of_codes(encoder),
                (5, 4),
                2.5,
                "unknown categories",
                r"row 5: a known value is needed in column 4, got 2\.5",
            )
            for encoder in (OneHotEncoder(), OneHotEncoder(drop="first"), OrdinalEncoder())
        ),
        (
            SplineTransformer(extrapolation="error"),
            (7, 2),
            99.0,
            "beyond the limits",
            "row 7: a value between its limits is needed, the nearest of which is",
        ),
    ],
)
def test_refused_values_are_named(step, place, value, theirs, ours):
    X, y = table()
    pipeline = fitted(step, X, y)
    compiled = approxsvm.compile(pipeline)
    X[place] = value
    with pytest.raises(ValueError, match=theirs):
        pipeline.predict(X)
    for call in (compiled.predict, compiled.artifact.input_map.apply):
        with pytest.raises(InputError, match=ours):
            call(X)
    assert not compiled.artifact.input_map.takes(X)[place[0]]


def test_sparse_rows_of_tiny_norm_are_named():
    X, y = table()
    compiled = approxsvm.compile(make_pipeline(Normalizer(), LinearSVC()).fit(csr_array(X), y))
    assert compiled.predict(1e-20 * X[:4]).shape == (4,)
    for call in (compiled.predict, compiled.artifact.input_map.apply):
        with pytest.raises(InputError, match=r"row 3: the norm of a sparse row must be 0 or at least 2.22045e-15, got"):
            call(csr_array(X[:4] * [[1.0], [0.0], [1.0], [1e-20]]))


def of_unknown(*behind):
    """Return an encoder that turns unknown values into NaN, followed by these steps."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    return of_codes(make_pipeline(encoder, *behind))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (KBinsDiscretizer(3, dtype=np.float32), "refit it with dtype=np.float64"),
        (FeatureAgglomeration(2, pooling_func=np.max), "it pools by 'max'"),
        (SimpleImputer(strategy="constant", fill_value=np.nan, keep_empty_features=True), "fills NaN into column 0"),
        (of_unknown(StandardScaler(), SimpleImputer()), "unknown categories become NaN, which a later step"),
        (SplineTransformer(degree=1, extrapolation="linear"), "refit it with 'continue', the same there"),
        (SplineTransformer(degree=8), "its degree is 8; supported are 1 to 7"),
        (PolynomialFeatures(12), "products of up to 12 features"),
        (
            SplineTransformer(knots="quantile", n_knots=6, extrapolation="linear"),
            "its first or last knots coincide, and its extrapolation is",
        ),
    ],
)
def test_what_cannot_be_a_step_is_named(step, message):
    X, y = table(100)
    X = np.abs(X)
    X[:, 0] = np.minimum(X[:, 0], 0.3)
    with pytest.raises(UnsupportedModelError, match=message):
        approxsvm.compile(fitted(make_pipeline(step, SimpleImputer()), X, y))


# --- errors, compared with exact arithmetic


def exact_piece(pieces, i, x):
    t = x - Fraction(float(pieces.origins[i]))
    return sum(Fraction(float(coef)) * t**k for k, coef in enumerate(pieces.coefs[i].tolist()))


@pytest.mark.parametrize("seed", range(3))
def test_piecewise_polynomials_hold_their_errors(seed):
    """A preceding projection has large errors; any row within these errors may be the exact one."""
    rng = np.random.default_rng(seed)
    degree, n_edges = int(rng.integers(0, 6)), int(rng.integers(0, 9))
    edges = np.unique(rng.normal(size=n_edges).round(int(rng.integers(1, 6))))
    origins = np.append(edges, 0.5) * (seed % 3 > 0)
    coefs = rng.normal(size=(len(edges) + 1, degree + 1)) * 10.0 ** rng.integers(-3, 4)
    pieces = Pieces(edges, origins, coefs)
    op = ops.PiecewisePolynomial.of(1, [(0, pieces)])
    x = np.concatenate([rng.normal(size=60), edges, np.nextafter(edges, -np.inf), edges + 1e-9])[:, np.newaxis]
    errors = 10.0 ** rng.integers(-17, 1, size=x.shape) * (rng.random(x.shape) < 0.8)
    y, bounds = op.mapper()(x, errors, is_source=False)
    own = op.mapper()(x, errors)[1]
    for k in range(len(x)):
        at = Fraction(float(x[k, 0]))
        for share in [*np.linspace(-1, 1, 9), *rng.uniform(-1, 1, 9)]:
            meant = at + Fraction(float(errors[k, 0])) * Fraction(float(share))
            piece = sum(meant >= Fraction(edge) for edge in edges.tolist())
            assert abs(exact_piece(pieces, piece, meant) - Fraction(float(y[k, 0]))) <= Fraction(float(bounds[k, 0]))
            piece = sum(at >= Fraction(edge) for edge in edges.tolist())
            assert abs(exact_piece(pieces, piece, meant) - Fraction(float(y[k, 0]))) <= Fraction(float(own[k, 0]))


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_coefficients_beyond_normal_float64_are_refused(scale):
    X = np.random.default_rng(0).normal(size=(400, 2))
    source = make_pipeline(SplineTransformer(), SVC()).fit(X * scale, X[:, 0] > 0)
    with pytest.raises(UnsupportedModelError, match="the distances of its knots or quantiles are too"):
        approxsvm.compile(source)


def standard_normal(p):
    limit = mpmath.mpf(2) ** -24
    return mpmath.sqrt(2) * mpmath.erfinv(2 * min(max(p, limit), 1 - limit) - 1)


def wrapped(x, low, length):
    return low + (x - low) - mpmath.floor((x - low) / length) * length


def functions_of_one_feature(rng):
    """Yield a step, its function in exact arithmetic, and numbers that it accepts."""
    tails = np.r_[10.0 ** -rng.uniform(0, 9, 30), [0.0, 0.5, 0.075, 2.0**-24, 1e-7, 0.25]]
    shares = np.r_[tails, 1.0 - tails, 0.5 + rng.normal(size=20) * 10.0 ** -rng.uniform(1, 16, 20)]
    yield ops.InverseNormal(1), standard_normal, shares
    low, length = float(rng.normal()), float(rng.uniform(0.1, 3))
    numbers = rng.normal(size=60) * 10.0 ** rng.integers(-3, 6, 60)
    turns = ops.Interval("turns", np.array([low]), np.array([length]))
    numbers = np.r_[numbers, low, low + length, low - length]
    yield turns, lambda x: wrapped(x, mpmath.mpf(low), mpmath.mpf(length)), numbers


def test_functions_of_one_feature_hold_their_errors():
    mpmath.mp.prec = 300
    rng = np.random.default_rng(0)
    for step, function, numbers in functions_of_one_feature(rng):
        came = np.abs(numbers) * 10.0 ** -rng.uniform(3, 17, len(numbers)) * rng.integers(0, 2, len(numbers))
        shares = rng.uniform(-1, 1, len(came))
        moved = [mpmath.mpf(x) + mpmath.mpf(e) * u for x, e, u in zip(numbers, came, shares, strict=True)]
        given, errors = step.mapper()(numbers[:, np.newaxis], came[:, np.newaxis], is_source=False)
        for x, y, error in zip(moved, given[:, 0].tolist(), errors[:, 0].tolist(), strict=True):
            assert abs(function(x) - mpmath.mpf(y)) <= error
        near = (came == 0) & np.isfinite(errors[:, 0])  # here the step's own errors must be small
        assert (errors[near, 0] <= 1e-10 * (1 + np.abs(numbers[near]) + np.abs(given[near, 0]))).all()


def random_steps(rng):
    n = int(rng.integers(0, 6))
    edges = np.unique(np.round(rng.normal(size=n), 2))
    values = rng.choice([SAME, 0.0, 1.0, -2.5], size=len(edges) + 1)
    return Steps(edges, values, float(rng.choice([REFUSED, SAME, 3.0])))


@pytest.mark.parametrize("seed", range(6))
def test_tables_of_tables(seed):
    rng = np.random.default_rng(seed)
    first = Lookup.of(3, [(int(j), random_steps(rng)) for j in rng.integers(0, 3, 5)])
    second = Lookup.of(5, [(int(j), random_steps(rng)) for j in rng.permutation(5)])
    joined = InputMap.identity(3).then_op(first).then_op(second)
    assert len(joined.ops) == 1
    x = np.round(rng.normal(size=(200, 3)), 2)
    x[rng.random(x.shape) < 0.1] = np.nan
    one, two = InputMap.identity(3).then_op(first), InputMap.identity(5).then_op(second)
    fine = ~one._run(x).outside
    fine[fine] = ~two._run(first.mapper()(x[fine])[0]).outside
    assert np.array_equal(~joined._run(x).outside, fine)
    apart = second.mapper()(first.mapper()(x[fine])[0])[0]
    assert np.array_equal(joined.ops[0].mapper()(x[fine])[0], apart, equal_nan=True)
    kept = rng.permutation(5)[:3]
    chosen = joined.then_select(kept)
    used = chosen.columns
    assert np.array_equal(chosen.ops[0].mapper()(x[fine][:, used])[0], apart[:, kept], equal_nan=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Lookup.of(1, [(1, Steps.of([], [SAME]))]), "a lookup takes feature 1 of 1"),
        (lambda: Lookup.of(1, [(0, Steps(np.array([1.0, 1.0]), np.zeros(3), 0.0))]), "do not ascend"),
        (lambda: Lookup.of(1, [(0, Steps(np.array([1.0]), np.zeros(3), 0.0))]), r"shape \(3,\), expected \(2,\)"),
        (lambda: Lookup.of(1, [(0, Steps.of([], [GIVES_NAN]))]).stored(), "a lookup gives NaN for a number"),
        (lambda: ops.Normalizer(2, "l3"), "expected one of"),
        (lambda: ops.Normalizer(2, "l1", "other"), "the rows of a normalizer"),
        (lambda: ops.Power("cube", np.ones(1)), "expected one of"),
        (lambda: ops.Power("box-cox", np.array([np.nan])), "powers of an input step holds NaN"),
        (lambda: ops.Power("box-cox", np.array([2e300])), "beyond 1e300"),
        (lambda: ops.Interval("turns", np.zeros(1), np.array([2e300])), "must be up to 1e300"),
    ],
)
def test_broken_steps_are_refused(make, message):
    with pytest.raises(ModelFormatError, match=message):
        make()
