"""Steps that look up, normalize and take powers: scikit-learn's own answers, errors against exact arithmetic, NaN."""

from __future__ import annotations

import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC
from zoo.mapped_rows import mapped

import approxsvm
from approxsvm.errors import InputError, ModelFormatError, UnsupportedModelError
from approxsvm.model import steps
from approxsvm.model.input_map import InputMap
from approxsvm.model.steps.normalizer import LEAST_NORM, NORMS
from approxsvm.model.steps.pieces import Pieces
from approxsvm.model.steps.table import GIVES_NAN, REFUSED, SAME, Steps, Table

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


def test_nan_is_an_error_everywhere_else():
    X, y = table(missing=True)
    compiled = approxsvm.compile(fitted(of_codes(OneHotEncoder()), X, y))
    assert compiled.artifact.raw_columns.takes_nan.tolist() == CODES
    X[3, 4] = np.inf
    with pytest.raises(InputError, match="contains infinity"):
        compiled.predict(X)
    half = ColumnTransformer([("a", SimpleImputer(), [0]), ("b", "passthrough", [3])])
    X[:, 3] = np.nan_to_num(X[:, 3])
    compiled = approxsvm.compile(fitted(half, X, y))
    assert compiled.predict(X).shape == y.shape
    X[7, 3] = np.nan
    with pytest.raises(InputError, match=r"contains NaN. \(row 7, column 3\)"):
        compiled.predict(X)
    with pytest.raises(InputError, match=r"contains NaN. \(row 7, column 3\)"):
        approxsvm.compile(fitted(half, np.nan_to_num(X), y), X)


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OneHotEncoder(drop="first"), OrdinalEncoder()])
def test_unknown_categories_name_column_and_value(encoder):
    X, y = table()
    pipeline = fitted(of_codes(encoder), X, y)
    compiled = approxsvm.compile(pipeline)
    bad = X.copy()
    bad[5, 4] = 2.5
    with pytest.raises(ValueError, match="unknown categories"):
        pipeline.predict(bad)
    for call in (compiled.predict, compiled.artifact.input_map.apply):
        with pytest.raises(InputError, match=r"row 5: a known value is needed in column 4, got 2\.5"):
            call(bad)
    assert not compiled.artifact.input_map.takes(bad)[5]


@pytest.mark.parametrize(
    "encoder", [OneHotEncoder(handle_unknown="ignore", sparse_output=False), TargetEncoder()], ids=str
)
def test_unknown_categories_among_long_numbers(encoder):
    rng = np.random.default_rng(0)
    X = np.c_[rng.choice([1e17, 2e17, 3e17], 200), rng.normal(size=200)]
    encoded = ColumnTransformer([("codes", encoder, [0])], remainder="passthrough")
    source = make_pipeline(encoded, SVC()).fit(X, X[:, 0] == 3e17)
    rows = np.c_[[5e17, 3e17, 1e17, 1.5e17, 0.5], np.zeros(5)]
    assert (approxsvm.compile(source).predict(rows) == source.predict(rows)).all()


def test_nan_on_its_way_to_an_imputer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] > 0.2
    X[rng.random(200) < 0.3, 0] = np.nan
    empty = np.c_[X, np.full(200, np.nan)]
    codes = np.c_[rng.choice([1.0, 2.0, np.nan], 200), X[:, 1]]
    encoded = make_pipeline(OrdinalEncoder(), SimpleImputer())
    for rows, step in (
        (X, make_pipeline(PowerTransformer(standardize=False), SimpleImputer(add_indicator=True))),
        (empty, SimpleImputer()),
        (codes, ColumnTransformer([("codes", encoded, [0])], remainder="passthrough")),
    ):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Skipping features without any observed values")
            source = make_pipeline(step, SVC()).fit(rows, y)
            labels = source.predict(rows)
        for sample in (rows, None):
            assert (approxsvm.compile(source, sample).predict(rows) == labels).all()


def test_unknown_categories_of_outputs_that_are_not_selected():
    X, y = table()
    encoded = of_codes(OneHotEncoder())
    pipeline = fitted(make_pipeline(encoded, SelectKBest(k=3)), X, y)
    compiled = approxsvm.compile(pipeline)
    column = CODES[int(np.argmax(pipeline[0][1].get_support()) // 5)]
    X[0, column] = 77.0
    with pytest.raises(InputError, match=f"in column {column}, got 77"):
        compiled.predict(X)


@pytest.mark.parametrize("drop", ["first", None])
def test_unknown_categories_of_columns_of_which_nothing_is_left(drop):
    X, y = table()
    X[:, 4] = 3.0
    encoder = OneHotEncoder(drop=drop)
    pipeline = fitted(ColumnTransformer([("codes", encoder, [4, 3])]), X, y)
    if drop is None:
        pipeline = fitted(make_pipeline(pipeline[0], SelectKBest(k=2)), X, y)
        assert not pipeline[0].get_feature_names_out()[0].endswith("x4_3.0")
    compiled = approxsvm.compile(pipeline, X)
    assert (compiled.predict(X) == pipeline.predict(X)).all()
    assert 4 in compiled.artifact.raw_columns.used
    for column, value in ((4, 2.0), (4, np.nan), (3, 77.0)):
        bad = X.copy()
        bad[0, column] = value
        with pytest.raises(ValueError, match="unknown categories"):
            pipeline.predict(bad)
        with pytest.raises(InputError, match=f"column {column}"):
            compiled.predict(bad)
        with pytest.raises(InputError, match=f"column {column}"):
            approxsvm.Predictor(compiled.artifact.data).predict(bad)


def test_unknown_numbers_on_their_way_to_an_imputer():
    X, y = table()
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    pipeline = fitted(of_codes(make_pipeline(encoder, SimpleImputer(strategy="median"))), X, y)
    compiled = approxsvm.compile(pipeline)
    X[:50, 3] = 2.5
    X[50:70, 4] = np.nan
    assert (compiled.predict(X) == pipeline.predict(X)).all()
    unreplaced = fitted(of_codes(encoder), table()[0], y)
    compiled = approxsvm.compile(unreplaced)
    for source in (unreplaced, compiled):
        with pytest.raises(ValueError, match=r"NaN|known value"):
            source.predict(X)
    scaled = fitted(of_codes(make_pipeline(encoder, StandardScaler(), SimpleImputer())), table()[0], y)
    with pytest.raises(UnsupportedModelError, match="unknown categories become NaN, which a step further behind"):
        approxsvm.compile(scaled)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (KBinsDiscretizer(3, dtype=np.float32), "refit it with dtype=np.float64"),
        (FeatureAgglomeration(2, pooling_func=np.max), "it pools by 'max'"),
        (SimpleImputer(strategy="constant", fill_value=np.nan, keep_empty_features=True), "puts NaN into column 0"),
    ],
)
def test_what_cannot_be_a_step_is_named(step, message):
    X, y = table()
    with pytest.raises(UnsupportedModelError, match=message):
        approxsvm.compile(fitted(make_pipeline(step, SimpleImputer()), X, y))


# --- errors against exact arithmetic


def errors_hold(map_, rows):
    """Assert that mapped rows are within their errors of the real ones; return these errors."""
    given, allowed = map_.mapped_with_errors(rows)
    exact = mapped(map_, rows)
    off, slack = (np.sqrt((part**2).sum(axis=1)) for part in (given - exact.mid, exact.rad))
    assert (off <= allowed + slack).all()
    return allowed


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(2))
def test_normalized_rows_hold_their_errors(norm, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    rows = rng.normal(size=(30, n)) * 10.0 ** rng.integers(-18, 19, size=(30, 1))
    rows *= 2.0 ** rng.integers(-20, 20, size=rows.shape)
    rows[0], rows[1], rows[2] = 0.0, 1e306 if seed % 2 else 1e308, 5e-324
    rows[3, 0], rows[3, 1:] = LEAST_NORM, 0.0
    rows[4] *= 1e200 / np.abs(rows[4]).max()
    map_ = InputMap.identity(n)
    if seed % 2:
        map_ = map_.then_affine(subtract=rng.normal(size=n), divide=rng.uniform(0.1, 9.0, size=n))
    assert np.isfinite(errors_hold(map_.then_stage(steps.Normalizer.of(n, norm)), rows)).sum() >= 26


@pytest.mark.parametrize("seed", range(2))
def test_products_hold_their_errors(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    rows = rng.normal(size=(30, n)) * 10.0 ** rng.integers(-90, 90, size=(30, n))
    map_ = InputMap.identity(n).then_affine(subtract=rng.normal(size=n), divide=rng.uniform(0.1, 9.0, size=n))
    errors_hold(map_.then_stage(steps.Monomials.of_powers(PolynomialFeatures(3).fit(rows).powers_)), rows)


def exact_piece(pieces, i, x):
    t = x - Fraction(float(pieces.origins[i]))
    return sum(Fraction(float(coef)) * t**k for k, coef in enumerate(pieces.coefs[i].tolist()))


@pytest.mark.parametrize("seed", range(3))
def test_piecewise_polynomials_hold_their_errors(seed):
    """Behind a projection, whose errors are large here: any row within them may be what is meant."""
    rng = np.random.default_rng(seed)
    degree, n_edges = int(rng.integers(0, 6)), int(rng.integers(0, 9))
    edges = np.unique(rng.normal(size=n_edges).round(int(rng.integers(1, 6))))
    origins = np.append(edges, 0.5) * (seed % 3 > 0)
    coefs = rng.normal(size=(len(edges) + 1, degree + 1)) * 10.0 ** rng.integers(-3, 4)
    pieces = Pieces(edges, origins, coefs)
    stage = steps.Piecewise.of(1, [(0, pieces)])
    x = np.concatenate([rng.normal(size=60), edges, np.nextafter(edges, -np.inf), edges + 1e-9])[:, np.newaxis]
    errors = 10.0 ** rng.integers(-17, 1, size=x.shape) * (rng.random(x.shape) < 0.8)
    y, bounds = stage.run(x, errors, is_source=False)
    own = stage.run(x, errors)[1]
    for k in range(len(x)):
        at = Fraction(float(x[k, 0]))
        for share in [*np.linspace(-1, 1, 9), *rng.uniform(-1, 1, 9)]:
            meant = at + Fraction(float(errors[k, 0])) * Fraction(float(share))
            piece = sum(meant >= Fraction(edge) for edge in edges.tolist())
            assert abs(exact_piece(pieces, piece, meant) - Fraction(float(y[k, 0]))) <= Fraction(float(bounds[k, 0]))
            piece = sum(at >= Fraction(edge) for edge in edges.tolist())
            assert abs(exact_piece(pieces, piece, meant) - Fraction(float(y[k, 0]))) <= Fraction(float(own[k, 0]))


def test_quantiles_at_ties_and_ends():
    X = np.repeat([0.0, 1.0, 1.0, 1.0, 2.0, 5.0, 5.0], 30)[:, np.newaxis]
    constant = np.full_like(X, 3.0)
    rows = np.c_[X, constant, np.r_[X[:105], X[105:] + 1e-300]]
    for n_quantiles in (1, 3, 7, 50, 210):
        step = QuantileTransformer(n_quantiles=n_quantiles).fit(rows)
        asked = np.repeat(np.unique(np.r_[X.ravel(), 3.0, -1.0, 0.5, 4.0, 7.0])[:, np.newaxis], 3, axis=1)
        asked = np.r_[asked, np.nextafter(asked, 9.0), np.nextafter(asked, -9.0)]
        source = make_pipeline(step, SVC()).fit(rows, X.ravel() > 1)
        mapped = approxsvm.compile(source).artifact.input_map.apply(asked)
        assert np.abs(mapped - step.transform(asked)).max() < 1e-15


@pytest.mark.parametrize(("extrapolation", "degree"), [("constant", 1), ("constant", 3), ("continue", 2)])
def test_knots_of_splines_that_coincide_at_the_ends(extrapolation, degree):
    x = np.random.default_rng(0).normal(size=400)
    X = np.c_[np.minimum(x, 0.3), np.maximum(x, -0.3), np.clip(x, -0.5, 0.5), np.round(x)]
    step = SplineTransformer(knots="quantile", n_knots=6, degree=degree, extrapolation=extrapolation).fit(X)
    knots = np.unique([spline.t for spline in step.bsplines_])
    asked = np.repeat(np.r_[knots, x[:100], -1.0, 5.0, -5.0][:, np.newaxis], 4, axis=1)
    asked = np.r_[X, asked, np.nextafter(asked, 9.0), np.nextafter(asked, -9.0)]
    source = make_pipeline(step, SVC()).fit(X, x > 0.4)
    compiled = approxsvm.compile(source, X)
    mapped, wanted = compiled.artifact.input_map.apply(asked), step.transform(asked)
    assert (np.abs(mapped - wanted) <= 1e-12 * (1 + np.abs(wanted))).all()
    assert (compiled.predict(X) == source.predict(X)).all()


def test_knots_that_coincide_are_refused_where_lines_go_on():
    X = np.minimum(np.random.default_rng(0).normal(size=(400, 2)), 0.3)
    step = SplineTransformer(knots="quantile", n_knots=6, extrapolation="linear")
    with pytest.raises(UnsupportedModelError, match="its first or last knots coincide, and its extrapolation is"):
        approxsvm.compile(fitted(step, X, X[:, 0] > 0))


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_coefficients_beyond_normal_float64_are_refused(scale):
    X = np.random.default_rng(0).normal(size=(400, 2))
    source = make_pipeline(SplineTransformer(), SVC()).fit(X * scale, X[:, 0] > 0)
    with pytest.raises(UnsupportedModelError, match="the distances of its knots or quantiles are too"):
        approxsvm.compile(source)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (SplineTransformer(degree=1, extrapolation="linear"), "refit it with 'continue', the same there"),
        (SplineTransformer(degree=8), "its degree is 8; supported are 1 to 7"),
        (PolynomialFeatures(12), "products of up to 12 features"),
    ],
)
def test_what_bends_in_other_ways_is_named(step, message):
    X, y = table(100)
    with pytest.raises(UnsupportedModelError, match=message):
        approxsvm.compile(fitted(step, X, y))


@pytest.mark.parametrize("method", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("seed", range(2))
def test_powers_hold_their_errors(method, seed):
    rng = np.random.default_rng(seed)
    powers = np.append(rng.normal(size=7) * 10.0 ** rng.integers(-12, 1, size=7), [0.0, 1.0, 2.0, -1.0])
    n = len(powers)
    rows = rng.normal(size=(40, n)) * 10.0 ** rng.integers(-12, 9, size=(40, n))
    if method == "box-cox":
        rows = np.abs(rows) + 1e-30
    map_ = InputMap.identity(n)
    if seed % 2:
        map_ = map_.then_affine(divide=rng.uniform(0.5, 3.0, size=n))
    assert np.isfinite(errors_hold(map_.then_stage(steps.Power(method, powers)), rows)).all()


def standard_normal(p):
    limit = mpmath.mpf(2) ** -24
    return mpmath.sqrt(2) * mpmath.erfinv(2 * min(max(p, limit), 1 - limit) - 1)


def wave(x, a, w, sine):
    return a * mpmath.sqrt(x) * (mpmath.sin if sine else mpmath.cos)(w * mpmath.log(x)) if x else mpmath.mpf(0)


def wrapped(x, low, length):
    return low + (x - low) - mpmath.floor((x - low) / length) * length


def functions_of_one_feature(rng):
    """A step, its function of exact numbers, and numbers that it takes."""
    tails = np.r_[10.0 ** -rng.uniform(0, 9, 30), [0.0, 0.5, 0.075, 2.0**-24, 1e-7, 0.25]]
    shares = np.r_[tails, 1.0 - tails, 0.5 + rng.normal(size=20) * 10.0 ** -rng.uniform(1, 16, 20)]
    yield steps.InverseNormal(np.ones(1, np.bool_)), standard_normal, shares
    for sine in (False, True, True):
        a, w = rng.uniform(0, 3), rng.uniform(0, 9)
        made = steps.Waves(1, np.zeros(1, np.intp), np.array([sine]), np.array([a]), np.array([w]))
        yield made, lambda x, a=a, w=w, sine=sine: wave(x, a, w, sine), np.append(10.0 ** rng.uniform(-30, 30, 50), 0.0)
    low, length = float(rng.normal()), float(rng.uniform(0.1, 3))
    numbers = rng.normal(size=60) * 10.0 ** rng.integers(-3, 6, 60)
    turns = steps.Interval("turns", np.array([low]), np.array([length]))
    numbers = np.r_[numbers, low, low + length, low - length]
    yield turns, lambda x: wrapped(x, mpmath.mpf(low), mpmath.mpf(length)), numbers


def test_functions_of_one_feature_hold_their_errors():
    mpmath.mp.prec = 300
    rng = np.random.default_rng(0)
    for step, function, numbers in functions_of_one_feature(rng):
        came = np.abs(numbers) * 10.0 ** -rng.uniform(3, 17, len(numbers)) * rng.integers(0, 2, len(numbers))
        shares = rng.uniform(-1, 1, len(came))
        moved = [mpmath.mpf(x) + mpmath.mpf(e) * u for x, e, u in zip(numbers, came, shares, strict=True)]
        moved = [abs(x) if isinstance(step, steps.Waves) else x for x in moved]
        given, errors = step.run(numbers[:, np.newaxis], came[:, np.newaxis], is_source=False)
        for x, y, error in zip(moved, given[:, 0].tolist(), errors[:, 0].tolist(), strict=True):
            assert abs(function(x) - mpmath.mpf(y)) <= error
        near = (came == 0) & np.isfinite(errors[:, 0])  # own errors say something
        assert (errors[near, 0] <= 1e-10 * (1 + np.abs(numbers[near]) + np.abs(given[near, 0]))).all()


def test_rows_beyond_their_interval_are_refused_as_by_the_source():
    X, y = table()
    source = fitted(SplineTransformer(extrapolation="error"), X, y)
    compiled = approxsvm.compile(source)
    bad = X.copy()
    bad[7, 2] = X[:, 2].max() + 1e-9
    with pytest.raises(ValueError, match="beyond the limits"):
        source.predict(bad)
    for call in (compiled.predict, compiled.artifact.input_map.apply):
        with pytest.raises(InputError, match="row 7: a value between its limits is needed, the nearest of which is"):
            call(bad)
    source = fitted(of_codes(AdditiveChi2Sampler()), X, y)
    compiled = approxsvm.compile(source)
    X[9, 3] = -2.0
    for call in (compiled.predict, compiled.artifact.input_map.apply):
        with pytest.raises(InputError, match="row 9: additive chi2 needs a value of at least 0, got -2"):
            call(X)


def random_steps(rng):
    n = int(rng.integers(0, 6))
    edges = np.unique(np.round(rng.normal(size=n), 2))
    values = rng.choice([SAME, 0.0, 1.0, -2.5], size=len(edges) + 1)
    return Steps(edges, values, float(rng.choice([REFUSED, SAME, 3.0])))


@pytest.mark.parametrize("seed", range(6))
def test_tables_behind_steps_that_round(seed):
    rng = np.random.default_rng(seed)
    functions = [random_steps(rng) for _ in range(6)]
    map_ = InputMap.identity(3).then_stage(steps.Projection.about(0.0, np.eye(3)[:, rng.permutation(3)]))
    looked = map_.then_stage(Table.of(3, [(int(j), f) for j, f in zip(rng.integers(0, 3, 6), functions, strict=True)]))
    rows = np.round(rng.normal(size=(60, 3)), 2)  # on many edges
    (before, _), (given, allowed) = map_.mapped_with_errors(rows), looked.mapped_with_errors(rows)
    for row in range(len(rows)):
        inputs = [Fraction(float(v)) for v in before[row]]  # exact: a permutation
        worst = Fraction(0)
        for k, (j, f) in enumerate(zip(looked.stages[-1].source.tolist(), looked.stages[-1].steps, strict=True)):
            reach = 3.0 * 2.0**-53 * abs(before[row, j])
            tried = [float(inputs[j]), before[row, j] - reach / 2, before[row, j] + reach / 2]
            ends = [v if np.isinf(f.at(v)) else float(f.at(v)) for v in tried]
            worst += max((Fraction(e) - Fraction(float(given[row, k]))) ** 2 for e in ends)
        assert worst <= Fraction(float(allowed[row])) ** 2


@pytest.mark.parametrize("seed", range(6))
def test_tables_of_tables(seed):
    rng = np.random.default_rng(seed)
    first = Table.of(3, [(int(j), random_steps(rng)) for j in rng.integers(0, 3, 5)])
    second = Table.of(5, [(int(j), random_steps(rng)) for j in rng.permutation(5)])
    joined = InputMap.identity(3).then_stage(first).then_stage(second)
    assert len(joined.stages) == 1
    x = np.round(rng.normal(size=(200, 3)), 2)
    x[rng.random(x.shape) < 0.1] = np.nan
    one, two = InputMap.identity(3).then_stage(first), InputMap.identity(5).then_stage(second)
    fine = ~one._run(x).outside
    fine[fine] = ~two._run(first.run(x[fine])[0]).outside
    assert np.array_equal(~joined._run(x).outside, fine)
    apart = second.run(first.run(x[fine])[0])[0]
    assert np.array_equal(joined.stages[0].run(x[fine])[0], apart, equal_nan=True)
    kept = rng.permutation(5)[:3]
    chosen = joined.then_select(kept)
    used = chosen.columns
    assert np.array_equal(chosen.stages[0].run(x[fine][:, used])[0], apart[:, kept], equal_nan=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Table.of(1, [(1, Steps.of([], [SAME]))]), "a table takes feature 1 of 1"),
        (lambda: Table.of(1, [(0, Steps(np.array([1.0, 1.0]), np.zeros(3), 0.0))]), "do not ascend"),
        (lambda: Table.of(1, [(0, Steps(np.array([1.0]), np.zeros(3), 0.0))]), r"shape \(3,\), expected \(2,\)"),
        (lambda: Table.of(1, [(0, Steps.of([], [GIVES_NAN]))]).stored(), "a table gives NaN for a number"),
        (lambda: steps.Normalizer.of(2, "l3"), "expected one of"),
        (lambda: steps.Normalizer("l1", np.array([2])), "group 2 of a normalizer follows group 0"),
        (lambda: steps.Normalizer("l1", np.array([1, 2, 1])), "group 1 of a normalizer follows group 2"),
        (lambda: steps.Power("cube", np.ones(1)), "expected one of"),
        (lambda: steps.Power("box-cox", np.array([np.nan])), "NaN or negative infinity"),
    ],
)
def test_broken_steps_are_refused(make, message):
    with pytest.raises(ModelFormatError, match=message):
        make()


@pytest.mark.parametrize("scaler", [MaxAbsScaler(), StandardScaler(with_mean=False), PolynomialFeatures(3)])
def test_rows_that_are_sparse_within_the_source_are_scaled_as_it_does(scaler):
    """By 1 / scale, and products from their first factor on: in some rows another last bit, which decides on bins."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 3, 400), rng.normal(size=(400, 2))]).astype(np.float64)
    codes = ColumnTransformer([("codes", OneHotEncoder(), [0])], remainder="passthrough", sparse_threshold=1.0)
    source = make_pipeline(codes, scaler, SVC()).fit(X, X[:, 1] * X[:, 2] > 0)
    mapped, _ = approxsvm.read_any(source).input_map.mapped_with_errors(X)
    np.testing.assert_array_equal(mapped, source[:-1].transform(X).toarray())
