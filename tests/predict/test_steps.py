"""Steps that look up, normalize and take powers: scikit-learn's own answers, errors against exact arithmetic, NaN."""

from __future__ import annotations

import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import ColumnTransformer
from sklearn.cross_decomposition import CCA, PLSCanonical, PLSRegression
from sklearn.decomposition import PCA, FastICA, IncrementalPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import SVC

import approxsvm
from approxsvm.artifact.input_map import pack_input_map, unpack_input_map
from approxsvm.errors import InputError, ModelFormatError, UnsupportedModelError
from approxsvm.model import steps
from approxsvm.model.input_map import InputMap
from approxsvm.model.steps.normalizer import LEAST_NORM, NORMS
from approxsvm.model.steps.pieces import Pieces
from approxsvm.model.steps.step import LIBRARY
from approxsvm.model.steps.table import GIVES_NAN, REFUSED, SAME, Steps, Table

NUMBERS, CODES = [0, 1, 2, 5], [3, 4]


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


def of_reals(*steps):
    return ColumnTransformer([("reals", make_pipeline(*steps), [0, 1, 2, 5])])


EXACT = {
    "binarizer": Binarizer(threshold=0.5),
    "bins": KBinsDiscretizer(4, encode="ordinal"),
    "bins of equal edges": KBinsDiscretizer(9, encode="onehot-dense", strategy="quantile"),
    "scaled bins": make_pipeline(StandardScaler(), KBinsDiscretizer(4)),
    "one-hot": of_codes(OneHotEncoder()),
    "one-hot without the first": of_codes(OneHotEncoder(drop="first", handle_unknown="ignore")),
    "one-hot, infrequent": of_codes(OneHotEncoder(min_frequency=75, handle_unknown="infrequent_if_exist")),
    "one-hot, some": make_pipeline(of_codes(OneHotEncoder()), SelectKBest(k=4)),
    "ordinal": of_codes(OrdinalEncoder()),
    "ordinal one-hot": of_codes(make_pipeline(OrdinalEncoder(), OneHotEncoder())),
    "target": of_codes(TargetEncoder(random_state=0)),
}
WITH_NAN = {
    "mean": SimpleImputer(),
    "median, marked": SimpleImputer(strategy="median", add_indicator=True),
    "constant, scaled": make_pipeline(SimpleImputer(strategy="constant", fill_value=-1.0), StandardScaler()),
    "union": FeatureUnion([("a", SimpleImputer()), ("b", MissingIndicator())]),
    "scaled before": make_pipeline(StandardScaler(), SimpleImputer()),
    "one-hot": of_codes(OneHotEncoder()),
    "mixed": ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), NUMBERS),
            (
                "codes",
                make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")),
                CODES,
            ),
        ]
    ),
    "scaled beside codes": ColumnTransformer(
        [
            ("numbers", make_pipeline(StandardScaler(), SimpleImputer(strategy="median")), NUMBERS),
            ("codes", make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder()), CODES),
        ]
    ),
}
ROUNDED = {
    "products": make_pipeline(StandardScaler(), PolynomialFeatures(3, include_bias=False)),
    "interactions": PolynomialFeatures((2, 3), interaction_only=True),
    "splines": SplineTransformer(),
    "splines, linear": SplineTransformer(extrapolation="linear", knots="quantile", include_bias=False),
    "splines, continued": of_reals(MinMaxScaler(), SplineTransformer(5, degree=2, extrapolation="continue")),
    "quantiles": QuantileTransformer(n_quantiles=50),
    "scaled quantiles": of_reals(StandardScaler(), QuantileTransformer(n_quantiles=9)),
    "splines that repeat": of_reals(StandardScaler(), SplineTransformer(6, extrapolation="periodic")),
    "splines that repeat, some": of_codes(SplineTransformer(4, degree=2, extrapolation="periodic", include_bias=False)),
    "splines that end": SplineTransformer(degree=2, extrapolation="error"),
    "normal quantiles": QuantileTransformer(n_quantiles=50, output_distribution="normal"),
    "scaled normal quantiles": of_reals(
        PCA(3), QuantileTransformer(n_quantiles=30, output_distribution="normal"), StandardScaler()
    ),
    "waves": of_codes(AdditiveChi2Sampler()),
    "scaled waves": of_reals(MinMaxScaler(clip=True), AdditiveChi2Sampler(sample_steps=3, sample_interval=0.7)),
    "bent": ColumnTransformer(
        [
            ("e", QuantileTransformer(n_quantiles=20, output_distribution="normal"), [1, 2]),
            ("f", SplineTransformer(extrapolation="periodic"), [3]),
            ("g", AdditiveChi2Sampler(), [4]),
            ("a", SplineTransformer(degree=1), [0, 1]),
            ("b", QuantileTransformer(n_quantiles=30), [3, 5]),
            ("c", PolynomialFeatures(), [2, 0]),
            ("d", OneHotEncoder(), [4]),
        ]
    ),
    **{f"normalizer, {norm}": Normalizer(norm) for norm in NORMS},
    "normalizer of some": ColumnTransformer([("a", Normalizer(), [0, 1]), ("b", "passthrough", CODES)]),
    "normalizers": ColumnTransformer([("a", Normalizer("l1"), [0, 1]), ("b", Normalizer("l1"), [2, 5])]),
    "selected norms": make_pipeline(Normalizer(), SelectKBest(k=2)),
    "yeo-johnson": PowerTransformer(),
    "box-cox": ColumnTransformer([("a", PowerTransformer("box-cox", standardize=False), [5])]),
    "discriminants": LinearDiscriminantAnalysis(),
    "discriminants, eigen": LinearDiscriminantAnalysis(solver="eigen"),
    "incremental": IncrementalPCA(3),
    "ica": FastICA(3, random_state=0),
    "gaussian projection": GaussianRandomProjection(4, random_state=0),
    "sparse projection": SparseRandomProjection(4, random_state=0),
    "agglomeration": FeatureAgglomeration(3),
}


def fitted(step, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(step, SVC(gamma=0.3)).fit(X, y)


def own_rows(pipeline, X):
    rows = pipeline[:-1].transform(X)
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


def holds(step, X, y, exact):
    pipeline = fitted(step, X, y)
    compiled = approxsvm.compile(pipeline)
    mapped, errors = compiled.artifact.input_map.mapped_with_errors(X)
    off = np.linalg.norm(mapped - own_rows(pipeline, X), axis=1)
    source = compiled.artifact.input_map.source_rounding(X)
    assert (off == 0).all() if exact else (off <= 1.001 * (errors + source)).all()
    assert (compiled.predict(X) == pipeline.predict(X)).all()
    kept = approxsvm.verify(compiled, pipeline, X)
    assert kept.kept
    again = unpack_input_map(pack_input_map(compiled.artifact.input_map))
    assert (again.apply(X) == mapped).all()
    return pipeline, compiled


@pytest.mark.parametrize("name", EXACT)
def test_what_is_looked_up_is_the_sources_own_bit_for_bit(name):
    X, y = table()
    pipeline, compiled = holds(EXACT[name], X, y, exact=True)
    assert compiled.certified(X).mean() > 0.5
    assert (compiled.predict(csr_array(X)) == pipeline.predict(X)).all()


@pytest.mark.parametrize("name", WITH_NAN)
def test_missing_values_are_values(name):
    X, y = table(missing=True)
    pipeline, compiled = holds(WITH_NAN[name], X, y, exact=True)
    assert (compiled.predict(csr_array(X)) == pipeline.predict(X)).all()
    assert (np.array([compiled.predict_one(row) for row in X[:20]]) == pipeline.predict(X[:20])).all()
    X[3, compiled.artifact.raw_columns.used[0]] = np.inf
    with pytest.raises(InputError, match="contains infinity"):
        compiled.predict(X)


@pytest.mark.parametrize("name", ROUNDED)
def test_what_rounds_is_the_sources_within_its_error(name):
    X, y = table()
    holds(ROUNDED[name], X, y, exact=False)


@pytest.mark.parametrize("step", [PLSRegression(2), PLSCanonical(1), CCA(1)], ids=lambda s: type(s).__name__)
def test_partial_least_squares(step):
    X, y = table()
    holds(FrozenEstimator(step.fit(X, y)), X, y, exact=False)  # pipelines of scikit-learn cannot fit it themselves


def test_nan_is_an_error_everywhere_else():
    X, y = table(missing=True)
    compiled = approxsvm.compile(fitted(WITH_NAN["one-hot"], X, y))
    assert compiled.artifact.raw_columns.takes_nan.tolist() == CODES
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
    "encoder",
    [
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        TargetEncoder(),
    ],
)
def test_unknown_categories_among_long_numbers(encoder):
    rng = np.random.default_rng(0)
    X = np.c_[rng.choice([1e17, 2e17, 3e17], 200), rng.normal(size=200)]
    encoded = ColumnTransformer([("codes", encoder, [0])], remainder="passthrough")
    source = make_pipeline(encoded, SVC()).fit(X, X[:, 0] == 3e17)
    rows = np.c_[[5e17, 3e17, 1e17, 1.5e17, 0.5], np.zeros(5)]
    assert (approxsvm.compile(source).predict(rows) == source.predict(rows)).all()


@pytest.mark.parametrize("with_rows", [True, False])
def test_nan_on_its_way_to_an_imputer(with_rows):
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
        fast = approxsvm.compile(source, rows if with_rows else None)
        assert (fast.predict(rows) == labels).all()


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


def exact_norm(x, norm):
    moduli = [abs(v) for v in x]
    if norm == "l1":
        return mpmath.fsum(moduli)
    return max(moduli) if norm == "max" else mpmath.sqrt(mpmath.fsum([v * v for v in moduli]))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(8))
def test_normalized_rows_hold_their_errors(norm, seed):
    mpmath.mp.prec = 2200
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
    map_ = map_.then_stage(steps.Normalizer.of(n, norm))
    given, allowed = map_.mapped_with_errors(rows)
    n_judged = 0
    for row, values, bound in zip(rows, given, allowed, strict=True):
        x = [mpmath.mpf(v) for v in row.tolist()]
        if seed % 2:
            scaler = map_.stages[0]
            x = [(v - s) / d for v, s, d in zip(x, scaler.subtract.tolist(), scaler.divide.tolist(), strict=True)]
        length = exact_norm(x, norm)
        exact = [v / length for v in x] if length >= LEAST_NORM else x
        off = mpmath.sqrt(mpmath.fsum([(g - e) ** 2 for g, e in zip(values.tolist(), exact, strict=True)]))
        assert off <= bound, (off, bound)
        n_judged += np.isfinite(bound)
    assert n_judged >= 26


@pytest.mark.parametrize("seed", range(8))
def test_products_hold_their_errors(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    scaler = {"subtract": rng.normal(size=n), "divide": rng.uniform(0.1, 9.0, size=n)}
    rows = rng.normal(size=(30, n)) * 10.0 ** rng.integers(-90, 90, size=(30, n))
    products = steps.Monomials.of_powers(PolynomialFeatures(3).fit(rows).powers_)
    map_ = InputMap.identity(n).then_affine(**scaler).then_stage(products)
    given, allowed = map_.mapped_with_errors(rows)
    for row, values, bound in zip(rows, given, allowed, strict=True):
        terms = zip(row.tolist(), scaler["subtract"].tolist(), scaler["divide"].tolist(), strict=True)
        x = [*((Fraction(v) - Fraction(s)) / Fraction(d) for v, s, d in terms), Fraction(1)]
        exact = [np.prod([x[j] for j in factors]) for factors in products.factors.tolist()]
        off = sum((Fraction(g) - e) ** 2 for g, e in zip(values.tolist(), exact, strict=True))
        assert off <= Fraction(float(bound)) ** 2


def exact_piece(pieces, i, x):
    t = x - Fraction(float(pieces.origins[i]))
    return sum(Fraction(float(coef)) * t**k for k, coef in enumerate(pieces.coefs[i].tolist()))


@pytest.mark.parametrize("seed", range(12))
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
    y, bounds = stage.run(x.copy(), errors.copy())
    own = stage.run_on_source_rows(x.copy(), errors.copy())[1]
    for k in range(len(x)):
        at = Fraction(float(x[k, 0]))
        for share in [*np.linspace(-1, 1, 9), *rng.uniform(-1, 1, 9)]:
            meant = at + Fraction(float(errors[k, 0])) * Fraction(float(share))
            piece = sum(meant >= Fraction(edge) for edge in edges.tolist())
            assert abs(exact_piece(pieces, piece, meant) - Fraction(float(y[k, 0]))) <= Fraction(float(bounds[k, 0]))
            piece = sum(at >= Fraction(edge) for edge in edges.tolist())
            assert abs(exact_piece(pieces, piece, meant) - Fraction(float(y[k, 0]))) <= Fraction(float(own[k, 0]))


def test_what_bends_is_the_cores_too():
    X, y = table()
    for name in ("products", "splines, continued", "scaled quantiles", "bent"):
        compiled = approxsvm.compile(fitted(ROUNDED[name], X, y))
        rows = np.r_[X, 3.0 * X, np.round(X)]
        rows[:, 4] = X[0, 4]
        source = fitted(ROUNDED[name], X, y)
        assert (compiled.predict(rows) == source.predict(rows)).all()
        values, bounds = compiled.decision_function(rows), compiled.error_bound(rows)
        assert (np.abs(values - source.decision_function(rows)) <= bounds + 1e-7).all()


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


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("extrapolation", ["constant", "continue"])
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


def exact_power(x, p, method):
    mirrored = method == "yeo-johnson" and x < 0
    p = 2 - mpmath.mpf(p) if mirrored else mpmath.mpf(p)
    t = 1 + abs(x) if method == "yeo-johnson" else x
    y = mpmath.log(t) if p == 0 else (t**p - 1) / p
    return -y if mirrored else y


@pytest.mark.parametrize("method", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("seed", range(12))
def test_powers_hold_their_errors(method, seed):
    mpmath.mp.prec = 1200
    rng = np.random.default_rng(seed)
    powers = np.append(rng.normal(size=7) * 10.0 ** rng.integers(-12, 1, size=7), [0.0, 1.0, 2.0, -1.0])
    n = len(powers)
    rows = rng.normal(size=(40, n)) * 10.0 ** rng.integers(-12, 9, size=(40, n))
    if method == "box-cox":
        rows = np.abs(rows) + 1e-30
    map_, scaler = InputMap.identity(n), None
    if seed % 2:
        map_ = map_.then_affine(divide=rng.uniform(0.5, 3.0, size=n))
        scaler = map_.stages[0]
    map_ = map_.then_stage(steps.Power(method, powers))
    given, allowed = map_.mapped_with_errors(rows)
    for row, values, bound in zip(rows, given, allowed, strict=True):
        x = [mpmath.mpf(v) for v in row.tolist()]
        if scaler is not None:
            x = [v / d for v, d in zip(x, scaler.divide.tolist(), strict=True)]
        exact = [exact_power(v, p, method) for v, p in zip(x, powers.tolist(), strict=True)]
        off = mpmath.sqrt(mpmath.fsum([(g - e) ** 2 for g, e in zip(values.tolist(), exact, strict=True)]))
        assert off <= bound, (off, bound)
    assert np.isfinite(allowed).all()
    assert LIBRARY > 0


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


@pytest.mark.parametrize("seed", range(4))
def test_functions_of_one_feature_hold_their_errors(seed):
    mpmath.mp.prec = 300
    rng = np.random.default_rng(seed)
    for step, function, numbers in functions_of_one_feature(rng):
        came = np.abs(numbers) * 10.0 ** -rng.uniform(3, 17, len(numbers)) * rng.integers(0, 2, len(numbers))
        shares = rng.uniform(-1, 1, len(came))
        moved = [mpmath.mpf(x) + mpmath.mpf(e) * u for x, e, u in zip(numbers, came, shares, strict=True)]
        moved = [abs(x) if isinstance(step, steps.Waves) else x for x in moved]
        given, errors = step.run(numbers[:, np.newaxis].copy(), came[:, np.newaxis].copy())
        for x, y, error in zip(moved, given[:, 0].tolist(), errors[:, 0].tolist(), strict=True):
            assert abs(function(x) - mpmath.mpf(y)) <= error
        near = (came == 0) & np.isfinite(errors[:, 0])  # own errors say something
        assert (errors[near, 0] <= 1e-10 * (1 + np.abs(numbers[near]) + np.abs(given[near, 0]))).all()


@pytest.mark.parametrize(
    "step",
    [
        QuantileTransformer(n_quantiles=30, output_distribution="normal"),
        AdditiveChi2Sampler(sample_steps=1),
        SplineTransformer(3, degree=1, extrapolation="periodic", include_bias=False),
    ],
    ids=lambda step: type(step).__name__,
)
def test_the_core_maps_within_its_bound(step):
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(300, 1)) * 10.0 ** rng.integers(-9, 2, size=(300, 1))
    for front in ([], [MinMaxScaler(clip=True)]):
        source = make_pipeline(*front, step, LinearRegression()).fit(X, X[:, 0])
        source[-1].coef_, source[-1].intercept_ = np.ones_like(source[-1].coef_), 0.0
        compiled = approxsvm.compile(source, mode="exact")
        rows = np.r_[X * rng.uniform(0.9, 1.1, size=X.shape), X]
        mapped, errors = compiled.artifact.input_map.mapped_with_errors(rows)
        off = np.abs(compiled.predict(rows) - mapped.sum(axis=1))
        assert (off <= compiled.error_bound(rows) + errors).all()
        assert np.median(compiled.error_bound(rows)) < 1e-8


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


def test_normal_quantiles_at_ends_and_ties():
    X = np.repeat([0.0, 1.0, 1.0, 2.0, 5.0, 5.0], 40)[:, np.newaxis]
    rows = np.c_[X, np.full_like(X, 3.0), (X + 1) * 1e20, X * 1e-9]
    near = np.array([0.0, 1e-7, -1e-7, 2e-7])
    for n_quantiles in (1, 3, 50, 240):
        step = QuantileTransformer(n_quantiles=n_quantiles, output_distribution="normal").fit(rows)
        asked = np.concatenate([point + near for point in (0.0, 1.0, 1.5, 3.0, 5.0, 1e20, 6e20, 5e-9, 2e-9)])
        asked = np.repeat(np.r_[asked, np.nextafter(asked, 9e30), np.nextafter(asked, -9.0)][:, np.newaxis], 4, axis=1)
        compiled = approxsvm.compile(make_pipeline(step, SVC()).fit(rows, X.ravel() > 1))
        map_ = compiled.artifact.input_map
        mapped, errors = map_.mapped_with_errors(asked)
        off = np.linalg.norm(mapped - step.transform(asked), axis=1)
        assert (off <= errors + map_.source_rounding(asked)).all()
        assert np.quantile(off, 0.9) < 1e-6


def random_steps(rng):
    n = int(rng.integers(0, 6))
    edges = np.unique(np.round(rng.normal(size=n), 2))
    values = rng.choice([SAME, 0.0, 1.0, -2.5], size=len(edges) + 1)
    return Steps(edges, values, float(rng.choice([REFUSED, SAME, 3.0])))


@pytest.mark.parametrize("seed", range(40))
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


@pytest.mark.parametrize("seed", range(40))
def test_tables_of_tables(seed):
    rng = np.random.default_rng(seed)
    first = Table.of(3, [(int(j), random_steps(rng)) for j in rng.integers(0, 3, 5)])
    second = Table.of(5, [(int(j), random_steps(rng)) for j in rng.permutation(5)])
    joined = InputMap.identity(3).then_stage(first).then_stage(second)
    assert len(joined.stages) == 1
    x = np.round(rng.normal(size=(200, 3)), 2)
    x[rng.random(x.shape) < 0.1] = np.nan
    fine = ~first.outside(x).any(axis=1)
    fine[fine] = ~second.outside(first.run(x[fine].copy(), None)[0]).any(axis=1)
    assert np.array_equal(~joined.stages[0].outside(x).any(axis=1), fine)
    apart = second.run(first.run(x[fine].copy(), None)[0], None)[0]
    assert np.array_equal(joined.stages[0].run(x[fine].copy(), None)[0], apart, equal_nan=True)
    kept = rng.permutation(5)[:3]
    chosen = joined.then_select(kept)
    used = chosen.columns
    assert np.array_equal(chosen.stages[0].run(x[fine][:, used], None)[0], apart[:, kept], equal_nan=True)


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
