"""Feature maps: inner products compared with the kernels, and scikit-learn's own checks."""

from __future__ import annotations

import math
import os
import pickle
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import approxsvm
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.features import TaylorFeatures


@pytest.mark.filterwarnings("ignore:Skipping check check_array_api_input")  # SciPy's option for it is off
@parametrize_with_checks([TaylorFeatures()])
def test_every_check_of_scikit_learn(estimator, check):
    check(estimator)


def some_rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)


def by_definition(X, gamma, degree):
    """Compute features from scikit-learn's monomials."""
    polynomial = PolynomialFeatures(degree).fit(X)
    weights = [
        math.sqrt((2 * gamma) ** sum(p) / math.prod(map(math.factorial, p))) for p in polynomial.powers_.tolist()
    ]
    return np.exp(-gamma * (X**2).sum(axis=1))[:, np.newaxis] * polynomial.transform(X) * weights, polynomial


@pytest.mark.parametrize(("d", "degree"), [(1, 1), (1, 30), (2, 9), (5, 1), (5, 4), (9, 3)])
def test_taylor_features_are_weighted_monomials(d, degree):
    X = some_rows(12, d)
    expected, polynomial = by_definition(X, 0.3, degree)
    taylor = TaylorFeatures(0.3, degree).fit(X)
    np.testing.assert_allclose(taylor.transform(X), expected, rtol=1e-13)
    assert taylor.n_output_features_ == expected.shape[1]
    np.testing.assert_array_equal(taylor.get_feature_names_out(), polynomial.get_feature_names_out())
    np.testing.assert_array_equal(taylor.get_feature_names_out(list("abcdefghi"[:d]))[1], "a")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_matrix])
def test_sparse_rows_have_the_features_of_their_entries(form, dtype):
    X = some_rows(15, 8).astype(dtype)
    X[3] = 0.0
    taylor = TaylorFeatures(0.3, 3).fit(X)
    features = taylor.transform(form(X))
    assert features.dtype == dtype
    assert features.format == "csr"
    assert isinstance(features, sp.sparray if "array" in form.__name__ else sp.spmatrix)
    np.testing.assert_array_equal(np.diff(features.indptr), [math.comb(n + 3, 3) for n in (X != 0).sum(axis=1)])
    assert all((np.diff(features.indices[a:b]) > 0).all() for a, b in pairwise(features.indptr))
    np.testing.assert_allclose(features.toarray(), taylor.transform(X), rtol=1e-6 if dtype == np.float32 else 1e-14)


def test_float32_features_are_those_of_float64_rounded_once():
    X = some_rows(6, 4).astype(np.float32)
    taylor = TaylorFeatures(0.3, 4).fit(X)
    wide = taylor.transform(X.astype(np.float64))
    np.testing.assert_array_equal(taylor.transform(X), wide.astype(np.float32))


def test_columns_beyond_int32_are_numbered_by_int64():
    d = 1 << 20
    rows = sp.csr_array((np.array([2.0, 3.0]), (np.array([0, 0]), np.array([5, d - 1]))), shape=(1, d))
    taylor = TaylorFeatures(0.5, 3).fit(rows)
    features = taylor.transform(rows)
    assert features.indices.dtype == np.int64
    assert features.shape == (1, math.comb(d + 3, 3))
    last = math.exp(-0.5 * 13.0) * math.sqrt(1 / 6) * 27.0  # x_last^3, the last column
    assert features.indices[-1] == features.shape[1] - 1
    assert features.data[-1] == pytest.approx(last, rel=1e-14)
    # Index of x_5 x_last by counting: all of degrees 0 and 1, those that begin with x_0 ... x_4, and then x_5's.
    assert features.indices[4] == 1 + d + sum(d - i for i in range(5)) + (d - 1 - 5)


def test_too_many_features_are_refused_with_both_numbers():
    rows = sp.csr_array((1, 1 << 30))
    with pytest.raises(InputError, match=rf"makes {math.comb((1 << 30) + 3, 3)} features.*at most {2**63 - 1} columns"):
        TaylorFeatures(1.0, 3).fit(rows)
    if not hasattr(os, "sysconf"):
        pytest.skip("this system does not say how much memory it has")
    wide = sp.csr_array(np.ones((2, 3000)))
    with pytest.raises(
        InputError, match=r"2 rows of up to \d{11,} features take [\d,]{14,} bytes, but this machine has"
    ):
        TaylorFeatures(1.0, 4).fit_transform(wide)
    with pytest.raises(InputError, match="use a lower degree"):
        TaylorFeatures(1.0, 4).fit_transform(wide.toarray())


@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_gamma_is_that_of_svc(gamma):
    X, y = some_rows(20, 4), np.arange(20) % 2
    expected = SVC(gamma=gamma).fit(X, y)._gamma
    assert TaylorFeatures(gamma).fit(X).gamma_ == pytest.approx(expected, rel=1e-12)
    assert TaylorFeatures(gamma).fit(sp.csr_array(X)).gamma_ == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "wrong", [{"gamma": 0.0}, {"gamma": math.inf}, {"gamma": 1e308}, {"gamma": "best"}, {"degree": 0}, {"degree": 31}]
)
def test_parameters_of_taylor_features(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TaylorFeatures(**wrong).fit(some_rows(5, 2))


@pytest.mark.parametrize("number", [np.float32(0.5), np.int64(2), Fraction(1, 3), 10**200])
def test_gamma_may_be_any_real_number(number):
    assert TaylorFeatures(number).fit(some_rows(5, 2)).gamma_ == float(number)


@pytest.mark.parametrize("factor", [1e200, 1e-160])
def test_a_variance_beyond_float64_gives_no_gamma(factor):
    rows = factor * np.array([[1.0], [3.0]])
    for form in (np.array, sp.csr_array):
        with pytest.raises(ValueError, match=r"gamma='scale' is .* for rows of variance"):
            TaylorFeatures("scale").fit(form(rows))


def test_maps_are_those_of_fit_whatever_is_set_later():
    X, y = some_rows(30, 3), np.arange(30) % 2
    pipeline = make_pipeline(TaylorFeatures(0.5, 2), LinearSVC()).fit(X, y)
    features, names = pipeline[0].transform(X), pipeline[0].get_feature_names_out()
    bound = pipeline[0].truncation_bound(X)
    for degree in (1, 7):
        pipeline[0].set_params(degree=degree, gamma=9.0)
        np.testing.assert_array_equal(pipeline[0].transform(X), features)
        sparse = pipeline[0].transform(sp.csr_array(X))
        assert sparse.indices.max() < sparse.shape[1] == features.shape[1]
        np.testing.assert_array_equal(pipeline[0].truncation_bound(X), bound)
        np.testing.assert_array_equal(pipeline[0].get_feature_names_out(), names)
        fast = approxsvm.compile(pipeline, mode="approximate")
        assert (np.abs(fast.decision_function(X) - pipeline.decision_function(X)) <= fast.error_bound(X)).all()


def test_unfitted_maps_say_so():
    with pytest.raises(NotFittedError):
        TaylorFeatures().transform(np.zeros((1, 2)))


# --- the bound of truncation


def exact_difference(x, y, features_x, features_y, gamma):
    """Return |inner product of the given features - kernel|, computed with 60 digits."""
    with mpmath.workdps(60):
        square = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x.tolist(), y.tolist(), strict=True))
        inner = sum(Fraction(a) * Fraction(b) for a, b in zip(features_x.tolist(), features_y.tolist(), strict=True))
        as_mpf = [mpmath.mpf(f.numerator) / f.denominator for f in (square, inner)]
        return abs(as_mpf[1] - mpmath.exp(-mpmath.mpf(gamma) * as_mpf[0]))


def hostile_pairs(rng, d, gamma):
    """Yield pairs of rows that are parallel, opposite, nearly so, or arbitrary, of every size."""
    for _ in range(8):
        x = rng.normal(size=d)
        x *= 10.0 ** rng.uniform(-3, 1.3) / np.linalg.norm(x) / math.sqrt(gamma)
        factor = rng.choice([-1, 1]) * 10.0 ** rng.normal(scale=0.3)
        yield x, factor * x
        yield x, factor * x * (1 + 10.0 ** rng.uniform(-15, -1) * rng.normal(size=d))
        yield x, rng.permutation(x)


@pytest.mark.attack
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nothing_breaks_the_truncation_bound(dtype):
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(10):
        d, degree, gamma = int(rng.integers(1, 4)), int(rng.integers(1, 6)), float(10.0 ** rng.uniform(-8, 8))
        taylor = TaylorFeatures(gamma, degree).fit(np.zeros((1, d)))
        for pair in hostile_pairs(rng, d, gamma):
            rows = np.array(pair).astype(dtype)
            features = taylor.transform(rows)
            bound = taylor.truncation_bound(rows[:1], rows[1:])[0, 0]
            ratio = float(exact_difference(*rows, *features, gamma) / bound)
            largest = max(largest, ratio)
            assert ratio <= 1.0, (d, degree, gamma, rows)
    assert largest > 0.99  # for parallel rows, where the bound is sharp


@pytest.mark.parametrize("degree", [1, 4, 30])
def test_truncation_bound_of_extreme_rows(degree):
    sizes = [0.0, 5e-324, 1e-200, 1e-160, 1e-20, 1.0, 26.0, 27.0, 37.0, 38.0, 39.0, 60.0, 1e20, 1e160, 1e300]
    X = np.array([[size, sign * size] for size in sizes for sign in (1.0, -1.0)])
    taylor = TaylorFeatures(0.5, degree).fit(X)
    features, bound = taylor.transform(X), taylor.truncation_bound(X)
    assert np.isfinite(features).all()
    with np.errstate(over="ignore"):
        kernel = np.exp(-0.5 * ((X[:, np.newaxis] - X) ** 2).sum(axis=2))
    assert (np.abs(features @ features.T - kernel) <= bound + 1e-14).all()
    np.testing.assert_allclose(taylor.truncation_bound(sp.csr_array(X)), bound, rtol=1e-9)


def test_the_bound_falls_with_the_degree():
    X = some_rows(10, 4)
    bounds = [TaylorFeatures(0.1, degree).fit(X).truncation_bound(X).max() for degree in (1, 2, 4, 8)]
    assert all(b < a / 2 for a, b in pairwise(bounds))


@pytest.mark.slow
def test_inner_products_on_a9a(unpacked):
    X = approxsvm.read_libsvm_data(unpacked("data/a9a.bz2"), n_features=123)[0][:300]
    for degree in (2, 3):
        taylor = TaylorFeatures(1 / 80, degree).fit(X)
        features = taylor.transform(X)
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        kernel = np.exp(-taylor.gamma_ * (squares[:, np.newaxis] + squares - 2 * (X @ X.T).toarray()))
        assert (np.abs((features @ features.T).toarray() - kernel) <= taylor.truncation_bound(X) + 1e-12).all()


def test_maps_are_reproducible_and_survive_pickling():
    X = some_rows(20, 4)
    fitted = TaylorFeatures(0.2, 3).fit(X)
    features = fitted.transform(X)
    for other in (clone(fitted).fit(X), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(other.transform(X), features)


def test_frames():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(some_rows(8, 2), columns=["a", "b"])
    frame = TaylorFeatures(0.2, 2).set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["1", "a", "b", "a^2", "a b", "b^2"]


# --- pipelines that compile


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) * [1, 10, 0.1, 3, 1, 1] + [0, 5, 0, 0, 100, 0]
    return X, (X[:, 0] * X[:, 2] + 0.05 * X[:, 3] > 0)


def linear_model(weights, intercept):
    model = Ridge()
    model.coef_, model.intercept_, model.n_features_in_ = weights, intercept, len(weights)
    return model


@pytest.mark.attack
def test_nothing_breaks_the_bound_of_a_linear_model_on_taylor_features():
    rng = np.random.default_rng(0)
    for _ in range(15):
        d, degree, gamma = int(rng.integers(1, 12)), int(rng.integers(1, 7)), float(10.0 ** rng.uniform(-6, 6))
        taylor = TaylorFeatures(gamma, degree).fit(np.zeros((1, d)))
        n = taylor.n_output_features_
        weights = rng.normal(size=n) * 10.0 ** rng.uniform(-4, 4, n) * 10.0 ** rng.uniform(-30, 30)
        intercept = float(rng.normal() * rng.choice([0, 1, 1e3]) * np.abs(weights).max())
        fast = approxsvm.compile(make_pipeline(taylor, linear_model(weights, intercept)), mode="approximate")
        directions = rng.normal(size=(12 * 15, d))
        s = np.repeat([1e-8, 1e-2, 0.5, 2, 6, 12, 30, 100, 170, 175, 256, 1e4], 15) * rng.uniform(0.9, 1.1, 180)
        X = directions * np.sqrt(s / (2 * gamma) / (directions**2).sum(axis=1))[:, np.newaxis]
        for kind in (np.array, sp.csr_array):
            given = kind(X)
            meant = given.astype(np.float64)
            features = taylor.transform(meant.toarray() if sp.issparse(meant) else meant)
            noise = (np.abs(features) @ np.abs(weights) * (d + 40) * (1 + s) + abs(intercept)) * 2.0**-51
            values = features @ weights + intercept
            difference = np.abs(fast.predict(given) - values)
            assert (difference <= fast.error_bound(given) + noise).all(), (d, degree, gamma)
            for one in range(0, given.shape[0], 40):  # evaluated differently
                row = given[one : one + 1]
                assert abs(fast.predict(row) - values[one]) <= fast.error_bound(row) + noise[one], (d, degree, gamma)


def test_bounds_far_from_the_origin_are_of_rounding_alone():
    """There is no truncation, so a remainder whose factor overflows must not add W to the bound."""
    rng = np.random.default_rng(0)
    for degree in (1, 2, 4):
        taylor = TaylorFeatures(0.5, degree).fit(np.zeros((1, 3)))
        weights = rng.normal(size=taylor.n_output_features_)
        fast = approxsvm.compile(make_pipeline(taylor, linear_model(weights, 0.0)), mode="approximate")
        X = rng.normal(size=(40, 3))
        X *= np.linspace(1.0, 13.0, 40)[:, np.newaxis] / np.linalg.norm(X, axis=1, keepdims=True)  # up to s = 169
        for rows in (X, X[:1], sp.csr_array(X)):
            bound, meant = fast.error_bound(rows), X[: rows.shape[0]]
            assert bound.max() < 1e-4 * np.linalg.norm(weights)
            assert (np.abs(fast.predict(rows) - taylor.transform(meant) @ weights) <= bound).all()
        assert fast.within_gamma_bound(np.full((1, 3), 1e300)).all()


def test_what_does_not_compile_is_named(rows):
    X, y = rows
    taylor = make_pipeline(TaylorFeatures(degree=2), LinearSVC()).fit(X, y)
    for mode in ("certified", "exact"):
        with pytest.raises(UnsupportedModelError, match="compile it with mode='approximate'"):
            approxsvm.compile(taylor, mode=mode)
    with pytest.raises(ValueError, match="expansion of degree 2 about 1 center; neither can be chosen"):
        approxsvm.compile(taylor, mode="approximate", degree=3)
    with pytest.raises(UnsupportedModelError, match=r"step 'taylorfeatures' .* degree 7; at most 6"):
        approxsvm.compile(make_pipeline(TaylorFeatures(degree=7), LinearSVC()).fit(X[:, :2], y))
    with pytest.raises(UnsupportedModelError, match="use read_any"):
        approxsvm.read_model(taylor)
    scaled = make_pipeline(TaylorFeatures(degree=1), StandardScaler(), LinearSVC()).fit(X, y)
    with pytest.raises(UnsupportedModelError, match="step 'taylorfeatures'"):
        approxsvm.compile(scaled, mode="approximate")


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_verification_knows_taylor_features(rows, task):
    X, y = rows
    linear, target = (LinearSVC(), y) if task == "classification" else (Ridge(), X[:, 0])
    pipeline = make_pipeline(StandardScaler(), TaylorFeatures("auto", 3), linear).fit(X, target)
    fast = approxsvm.compile(pipeline, mode="approximate")
    found = approxsvm.verify(fast, pipeline, X)
    assert found.kept
    assert 0.0 < found.largest_error_to_bound < 1.0
    assert found.certified_fraction > 0.95
    other = make_pipeline(StandardScaler(), TaylorFeatures("auto", 3), linear).fit(X, np.roll(target, 1))
    assert approxsvm.verify(fast, other, X).bound_violations > 0
