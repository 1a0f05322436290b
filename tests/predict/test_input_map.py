"""Input maps: against scikit-learn's own transformers bit for bit, and their errors against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVR

import approxsvm
from approxsvm.errors import InputError, ModelFormatError
from approxsvm.model import compensated
from approxsvm.model.input_map import InputMap
from approxsvm.model.steps import Affine, Logarithm, Projection
from approxsvm.readers.sklearn.pipeline import fold


def fractions(values, n):
    return [Fraction(float(v)) for v in np.broadcast_to(values, n)]


def exact_stage(stage, x):
    """One stage over the rational numbers."""
    if isinstance(stage, Projection):
        centered = [v - m for v, m in zip(x, fractions(stage.center, len(x)), strict=True)]
        columns = [fractions(stage.matrix[:, k], len(x)) for k in range(stage.n_outputs)]
        sums = [sum(a * b for a, b in zip(centered, column, strict=True)) for column in columns]
        return [s + b for s, b in zip(sums, fractions(stage.bias, len(sums)), strict=True)]
    if stage.subtract is not None:
        x = [a - b for a, b in zip(x, fractions(stage.subtract, len(x)), strict=True)]
    if stage.multiply is not None:
        x = [a * b for a, b in zip(x, fractions(stage.multiply, len(x)), strict=True)]
    if stage.divide is not None:
        x = [a / b for a, b in zip(x, fractions(stage.divide, len(x)), strict=True)]
    if stage.add is not None:
        x = [a + b for a, b in zip(x, fractions(stage.add, len(x)), strict=True)]
    if stage.low is not None:
        x = [max(a, b) for a, b in zip(x, fractions(stage.low, len(x)), strict=True)]
    if stage.high is not None:
        x = [min(a, b) for a, b in zip(x, fractions(stage.high, len(x)), strict=True)]
    return x


def exact_row(map_, row):
    x = [Fraction(float(row[j])) for j in map_.columns]
    for stage in map_.stages:
        x = exact_stage(stage, x)
    return x


def random_map(rng, n, n_stages):
    map_ = InputMap.selection(n, rng.permutation(n)[: max(2, n - 1)])
    for _ in range(n_stages):
        n = map_.n_features
        size = 10.0 ** rng.integers(-4, 5, size=n)
        kind = rng.choice(["scale", "minmax", "range", "clip", "select", "project"])
        if kind == "scale":
            map_ = map_.then_affine(subtract=rng.normal(size=n) * size, divide=rng.uniform(0.1, 9, size=n) * size)
        elif kind == "minmax":
            map_ = map_.then_affine(multiply=rng.normal(size=n), add=rng.normal(size=n) * size)
        elif kind == "range":
            parts = {name: rng.normal(size=n) * size for name in ("subtract", "multiply", "divide", "add")}
            map_ = map_.then_affine(**parts)
        elif kind == "clip":
            ends = np.sort(rng.normal(size=(2, n)), axis=0) * size
            map_ = map_.then_affine(low=ends[0], high=ends[1])
        elif kind == "select":
            map_ = map_.then_select(rng.permutation(n)[: max(2, n - 1)])
        else:
            map_ = map_.then_stage(
                Projection.about(rng.normal(size=n), rng.normal(size=(n, int(rng.integers(2, n + 1)))))
            )
    return map_


def distance_sq(given, exact):
    return sum((Fraction(float(g)) - e) ** 2 for g, e in zip(given, exact, strict=True))


@pytest.mark.parametrize("seed", range(90))
@pytest.mark.parametrize("exactly", [False, True])
def test_errors_are_never_exceeded(seed, exactly):
    rng = np.random.default_rng(seed)
    map_ = random_map(rng, 5, int(rng.integers(1, 6)))
    rows = rng.normal(size=(12, 5)) * 10.0 ** rng.integers(-3, 6, size=(12, 1))
    rows[0] = 0.0
    given, allowed = map_.mapped_with_errors(rows, exactly=exactly)
    assert given.shape == (12, map_.n_features)
    for row in range(len(rows)):
        assert distance_sq(given[row], exact_row(map_, rows[row])) <= Fraction(float(allowed[row])) ** 2, row


def test_what_is_summed_exactly_is_off_by_units_in_the_last_place():
    rng = np.random.default_rng(0)
    rows = 1e6 + rng.normal(size=(3, 200))
    map_ = InputMap.identity(200).then_stage(Projection.about(0.0, rng.normal(size=(200, 3))))
    plainly, exactly = (map_.mapped_with_errors(rows, exactly=e) for e in (False, True))
    for k in range(3):
        off = distance_sq(exactly[0][k], exact_row(map_, rows[k]))
        assert off <= Fraction(float(exactly[1][k])) ** 2
        assert exactly[1][k] <= 4 * 2.0**-53 * np.linalg.norm(exactly[0][k])
        assert exactly[1][k] < 1e-2 * plainly[1][k]


def test_sums_of_products_as_if_in_twice_the_precision():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(6, 40)) * 10.0 ** rng.integers(-9, 9, size=(6, 40)), rng.normal(size=(40, 3))
    given, allowed = compensated.matmul(a, b)
    for i in range(6):
        for k in range(3):
            exact = sum(Fraction(x) * Fraction(y) for x, y in zip(a[i].tolist(), b[:, k].tolist(), strict=True))
            assert abs(Fraction(float(given[i, k])) - exact) <= Fraction(float(allowed[i, k]))
    assert np.isinf(compensated.matmul(np.full((1, 1), 1e305), np.ones((1, 1)))[1]).all()  # halves would overflow


def transformers():
    two = ColumnTransformer([("a", StandardScaler(), [0, 2]), ("b", MinMaxScaler(clip=True), [3])], remainder="drop")
    weighted = FeatureUnion([("a", MaxAbsScaler()), ("b", RobustScaler())], transformer_weights={"b": 0.3})
    chain = make_pipeline(RobustScaler(), StandardScaler(), MinMaxScaler((-1, 1)))
    return [
        StandardScaler(),
        MinMaxScaler(),
        MinMaxScaler((0.1, 0.7), clip=True),
        MaxAbsScaler(),
        RobustScaler(),
        two,
        weighted,
        chain,
    ]


@pytest.mark.parametrize("step", transformers(), ids=lambda step: type(step).__name__)
@pytest.mark.parametrize("offset", [0.0, 3.7, 1e9, 1.7e12])
def test_mapped_rows_are_the_sources_own_bit_for_bit(step, offset):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * [1e-3, 1, 1e4, 7] + offset
    step.fit(X[:40])
    map_ = fold(InputMap.identity(4), step, "step")
    np.testing.assert_array_equal(map_.apply(X), step.transform(X))


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e9])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "step",
    [
        PCA(3),
        PCA(3, whiten=True),
        TruncatedSVD(3, random_state=0),
        make_pipeline(PCA(3, whiten=True), StandardScaler()),
    ],
    ids=["pca", "whitened", "svd", "chain"],
)
def test_projections_stay_within_their_errors_of_source_and_real_numbers(step, dtype, offset):
    """Square roots, means and their products were taken in the precision that the source was fitted in."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)) @ rng.normal(size=(6, 6)) + offset
    step.fit(X[:50].astype(dtype))
    map_ = fold(InputMap.identity(6), step, "step")
    given, allowed = map_.mapped_with_errors(X)
    own, source_off = step.transform(X), map_.source_rounding(X)
    assert (np.linalg.norm(given - own, axis=1) <= allowed + source_off).all()
    pca = step[0] if isinstance(step, type(make_pipeline(PCA()))) else step
    for row in range(0, 80, 20):
        mean = fractions(getattr(pca, "mean_", 0.0), 6)
        x = [Fraction(float(v)) - m for v, m in zip(X[row], mean, strict=True)]
        x = [sum(a * Fraction(float(b)) for a, b in zip(x, component, strict=True)) for component in pca.components_]
        if getattr(pca, "whiten", False):
            least = float(np.finfo(dtype).eps)  # scikit-learn's own limit
            roots = [max(var, least**2) for var in pca.explained_variance_.tolist()]
            x = [v * reciprocal_root(root) for v, root in zip(x, roots, strict=True)]
        if pca is not step:
            x = exact_stage(map_.stages[-1], x)
        assert distance_sq(given[row], x) <= Fraction(float(allowed[row])) ** 2


def reciprocal_root(square):
    """1 / sqrt to 80 digits."""
    from mpmath import mp, mpf

    with mp.workdps(90):
        digits = mp.nstr(1 / mp.sqrt(mpf(square)), 80, min_fixed=0, max_fixed=0)
    return Fraction(digits)


def test_a_row_does_not_change_the_errors_of_others():
    map_ = InputMap.identity(3).then_affine(subtract=[1, 2, 3], divide=[2, 2, 2])
    rows = np.random.default_rng(0).normal(size=(5, 3))
    alone = map_.mapped_with_errors(rows)[1]
    with_huge = map_.mapped_with_errors(np.vstack([rows, np.full((1, 3), 1e18)]))[1]
    np.testing.assert_array_equal(with_huge[:5], alone)
    assert with_huge[5] > 1.0


def test_limits_make_errors_harmless():
    map_ = InputMap.identity(2).then_affine(subtract=0.1, divide=3.0, low=-1.0, high=1.0)
    mapped, errors = map_.mapped_with_errors([[1e18, -1e18], [0.5, 1e18]])
    np.testing.assert_array_equal(mapped[0], [1.0, -1.0])
    assert errors[0] <= 2.0**-490
    assert 0 < errors[1] < 1e-15


def test_errors_of_parameters_reach_the_bound():
    row = np.array([[30.0, 8.0]])
    scaled = InputMap.identity(2).then_affine(divide=[2.0, 4.0], relative_error=[1e-3, 0.0])
    assert scaled.mapped_with_errors(row)[1][0] == pytest.approx(15e-3, rel=1e-6)
    turned = scaled.then_stage(Projection(np.zeros(2), np.array([[3.0], [0.0]]), np.zeros(1), np.zeros(1)))
    assert turned.mapped_with_errors(row)[1][0] == pytest.approx(45e-3, rel=1e-6)
    biased = InputMap.identity(2).then_stage(Projection(np.zeros(2), np.eye(2), np.zeros(2), np.array([0.25, 0.0])))
    assert biased.mapped_with_errors(row)[1][0] == pytest.approx(0.25, rel=1e-6)


def test_long_sums_of_a_projection_round_within_their_bound():
    rng = np.random.default_rng(0)
    n = 3000
    map_ = InputMap.identity(n).then_stage(Projection.about(0.0, np.full((n, 1), 0.1)))
    rows = rng.uniform(1, 2, size=(5, n))
    for row, given, allowed in zip(rows, *map_.mapped_with_errors(rows), strict=True):
        off = abs(Fraction(float(given[0])) - sum(Fraction(float(v)) for v in row) * Fraction(0.1))
        assert off <= Fraction(float(allowed))
        assert off > Fraction(float(allowed)) / n / 50


def test_errors_are_of_the_order_of_float64():
    rng = np.random.default_rng(0)
    mean, deviation = rng.normal(size=50) * 3, rng.uniform(0.5, 2, size=50)
    rows = mean + deviation * rng.normal(size=(100, 50))
    scaled = InputMap.identity(50).then_affine(subtract=mean, divide=deviation)
    mapped, errors = scaled.mapped_with_errors(rows)
    norms = np.linalg.norm(mapped, axis=1)
    assert (errors < 4 * 2.0**-53 * norms).all()
    projected = scaled.then_stage(Projection.about(0.0, np.linalg.qr(rng.normal(size=(50, 10)))[0]))
    assert (projected.mapped_with_errors(rows)[1] < 600 * 2.0**-53 * norms).all()


def test_the_identity_rounds_nothing():
    map_ = InputMap.identity(3, ("a", "b", "c"))
    rows = np.random.default_rng(0).normal(size=(4, 3))
    assert map_.is_identity
    mapped, errors = map_.mapped_with_errors(rows)
    np.testing.assert_array_equal(mapped, rows)
    np.testing.assert_array_equal(errors, 0)
    chosen = map_.then_select([2, 0])
    assert not chosen.is_identity
    np.testing.assert_array_equal(chosen.mapped_with_errors(rows)[1], 0)
    assert map_.then_affine(subtract=0.0, multiply=1.0, divide=1.0, low=-np.inf).is_identity


def test_sparse_integer_and_half_precision_rows_are_the_same_rows():
    map_ = InputMap.identity(4).then_affine(subtract=[1, 2, 3, 4], divide=[3, 3, 5, 7], low=-1, high=1)
    rows = np.array([[0, 2, 0, 8], [1, 0, 0, 0]])
    expected = map_.mapped_with_errors(rows.astype(np.float64))
    for same in (rows, rows.astype(np.float16), csr_array(rows), np.asfortranarray(rows)):
        for given, wanted in zip(map_.mapped_with_errors(same), expected, strict=True):
            np.testing.assert_array_equal(given, wanted)
        np.testing.assert_array_equal(map_.apply(same), expected[0])


def test_many_rows_are_mapped_as_few_are():
    rng = np.random.default_rng(0)
    map_ = random_map(rng, 5, 4)
    rows = rng.normal(size=(20_000, 5))
    mapped, errors = map_.mapped_with_errors(rows)
    np.testing.assert_allclose(mapped[-3:], map_.apply(rows[-3:]), rtol=1e-13)
    assert errors.shape == (20_000,)


def test_logarithms_are_within_their_errors_of_source_and_real_numbers():
    """Also behind scaling, in front of a projection, and where 1 + x would cost a small x its digits."""
    from mpmath import log, mp, mpf

    rng = np.random.default_rng(0)
    with mp.workdps(60):
        for seed in range(40):
            offset = float(rng.choice([0.0, 1.0, 0.01, 1e6, -3.0, 1e-300]))
            about = [0.0, -offset, 1.0 - offset][seed % 3]
            scaled = InputMap.identity(4).then_affine(subtract=rng.normal(size=4) if seed % 2 else 0.0)
            map_ = scaled.then_stage(Logarithm.of(scaled.n_features, offset))
            if seed % 5 == 0:
                map_ = map_.then_affine(divide=3.0).then_stage(Projection.about(0.0, rng.normal(size=(4, 2))))
            size = np.exp(rng.uniform(-30, 30, size=(60, 4)) * (seed % 4 < 2) + rng.uniform(-3, 3, size=(60, 4)))
            rows = np.maximum(about, -offset) + 3.0 * (seed % 2) + size
            rows = rows[(scaled.apply(rows) > -offset).all(axis=1)]
            assert len(rows) > 5
            given, allowed = map_.mapped_with_errors(rows)
            source_off = map_.source_rounding(rows)
            for row, own, most, off in zip(rows, given, allowed, source_off, strict=True):
                x = [mpf(v.numerator) / v.denominator for v in exact_row(scaled, row)]
                if not all(v + mpf(offset) > 0 for v in x):
                    assert most == np.inf
                    continue
                exact = [log(v + mpf(offset)) for v in x]
                if seed % 5 == 0:
                    exact = [v / 3 for v in exact]
                    matrix = map_.stages[-1].matrix
                    exact = [sum(v * mpf(float(m)) for v, m in zip(exact, matrix[:, k], strict=True)) for k in (0, 1)]
                distance = mp.norm([mpf(float(a)) - b for a, b in zip(own, exact, strict=True)])
                assert distance <= mpf(float(most)), (seed, row)
                assert off > 0
        row = np.array([[1e-18, 1e-300, 5e-324, 0.0]])
        given, allowed = InputMap.identity(4).then_stage(Logarithm.of(4, 1.0)).mapped_with_errors(row)
        np.testing.assert_array_equal(given, row)
        assert allowed[0] < 1e-30


def test_logarithms_of_some_columns():
    X = np.random.default_rng(0).gamma(1.0, size=(50, 5))
    step = make_column_transformer(
        (FunctionTransformer(np.log1p), [3, 0]),
        (make_pipeline(FunctionTransformer(np.log), StandardScaler()), [4]),
        (PCA(1), [1, 2]),
        remainder="passthrough",
    ).fit(X)
    map_ = fold(InputMap.identity(5), step, "step")
    assert [type(stage) for stage in map_.stages] == [Logarithm, Affine, Projection]
    np.testing.assert_allclose(map_.apply(X), step.transform(X), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(map_.then_select([2, 0]).apply(X), map_.apply(X)[:, [2, 0]], rtol=1e-13)
    logarithm, _ = map_.stages[0].select(np.arange(3))
    mapped = X[:, :3]
    np.testing.assert_allclose(InputMap.identity(3).then_stage(logarithm).apply(logarithm.preimage(mapped)), mapped)


def test_a_row_without_a_logarithm_is_refused_by_its_number():
    map_ = InputMap.identity(2).then_affine(subtract=1.0, low=-5.0).then_stage(Logarithm.of(2, 0.25))
    rows = np.ones((40_000, 2))
    assert np.isfinite(map_.apply(rows)).all()
    for wrong in (0.75, 0.5, -1e300):
        rows[30_001, 1] = wrong
        message = f"row 30001: log needs a value above -0.25, got {max(wrong - 1, -5):g}"
        with pytest.raises(InputError, match=message):
            map_.mapped_with_errors(rows)
        with pytest.raises(InputError, match=message):
            map_.apply(rows)


def test_maps_side_by_side():
    whole = InputMap.identity(4)
    first = whole.then_select([3, 1]).then_affine(subtract=1, divide=2).then_affine(multiply=[2, 5])
    second = whole.then_select([0, 2]).then_stage(Projection.about([1, 1], np.array([[1.0], [2.0]]))).then_affine(add=3)
    rows = np.arange(8.0).reshape(2, 4)
    for maps in ([first, second], [second, first], [first, first], [second, second, first], [whole, second]):
        expected = np.hstack([m.apply(rows) for m in maps])
        np.testing.assert_array_equal(InputMap.concatenate(maps).apply(rows), expected)


def test_maps_one_after_the_other():
    rng = np.random.default_rng(3)
    first, rows = random_map(rng, 5, 3), rng.normal(size=(4, 5))
    second = random_map(rng, first.n_features, 3)
    np.testing.assert_allclose(first.then(second).apply(rows), second.apply(first.apply(rows)), rtol=1e-12)
    with pytest.raises(ModelFormatError, match="9 features cannot follow"):
        first.then(InputMap.identity(9))


def test_raw_rows_that_stand_behind_mapped_ones():
    rng = np.random.default_rng(0)
    map_ = InputMap.selection(6, [4, 1, 2]).then_affine(
        subtract=[1, 2, 3], multiply=[2, 1, -1], divide=[1, 3, 1], add=1
    )
    mapped = rng.normal(size=(5, 3))
    raw = map_.preimage(mapped)
    np.testing.assert_allclose(map_.apply(raw), mapped, rtol=1e-12)
    assert not raw[:, [0, 3, 5]].any()
    turned = map_.then_stage(Projection.about([1, 2, 3], np.linalg.qr(rng.normal(size=(3, 2)))[0]))
    np.testing.assert_allclose(turned.apply(turned.preimage(mapped[:, :2])), mapped[:, :2], rtol=1e-12, atol=1e-12)


def test_which_rows_a_map_takes():
    map_ = InputMap.identity(2).then_affine(multiply=[1.0, 1e10]).then_stage(Logarithm(np.array([1.0, np.inf])))
    rows = np.array([[0.0, 0.0], [-1.0, 0.0], [-2.0, 1.0], [np.inf, 0.0], [1.0, np.nan], [1.0, 1e300], [1.0, -1e290]])
    taken = map_.takes(rows)
    np.testing.assert_array_equal(taken, [True, False, False, False, False, False, True])
    assert np.isfinite(map_.apply(rows[taken])).all()
    for row in rows[np.isfinite(rows).all(axis=1) & ~taken]:
        with pytest.raises(InputError):
            map_.apply(row[np.newaxis])


def test_a_tolerance_needs_no_rows_where_those_behind_the_support_vectors_have_outside_domain():
    X = np.random.default_rng(0).gamma(0.3, size=(60, 4)) + 1e-12
    y = np.log(X).sum(axis=1)
    pipeline = make_pipeline(FeatureUnion([("log", FunctionTransformer(np.log)), ("pca", PCA(2))]), SVR(C=5.0))
    fast = approxsvm.compile(pipeline.fit(X, y), tolerance=0.5)
    model = approxsvm.read_model(pipeline)
    assert not model.input_map.takes(model.input_map.preimage(model.support_vectors)).all()
    assert np.abs(fast.predict(X) - pipeline.predict(X)).max() <= 0.5


def test_a_finite_row_that_overflows_is_refused_by_its_number():
    map_ = InputMap.identity(2).then_affine(multiply=[1.0, 10.0])
    with pytest.raises(InputError, match=r"row 1: scaling its values.*1e\+308.*range of float64 in feature 1"):
        map_.mapped_with_errors([[1.0, 2.0], [1.0, 1e308]])
    with pytest.raises(InputError, match="row 0"):
        map_.apply(csr_array([[0.0, -1e308]]))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: InputMap.identity(2).then_affine(divide=[1, 0]), "divisor of an input step holds 0"),
        (lambda: InputMap.identity(2).then_affine(subtract=np.nan), "subtract of an input step holds NaN"),
        (lambda: InputMap.identity(2).then_affine(multiply=np.ones(3)), r"multiply of an input step has shape \(3,\)"),
        (lambda: InputMap.identity(2).then_affine(low=np.nan), "limit of an input step is NaN"),
        (lambda: InputMap.identity(2).then_affine(low=1, high=[2, 0]), "lower limit of an input step is above"),
        (lambda: InputMap.identity(2).then_affine(relative_error=-1.0), "relative error of an input step is negative"),
        (lambda: Projection.about(0, np.ones(3)), "1 dimensions instead of 2"),
        (lambda: Projection.about(np.inf, np.ones((3, 1))), "center of an input step holds NaN or infinity"),
        (lambda: Projection(np.zeros(3), np.ones((3, 1)), np.zeros(2), np.zeros(1)), r"bias.* shape \(2,\)"),
        (lambda: Projection(np.zeros(3), np.ones((3, 1)), np.zeros(1), -np.ones(1)), "error of the bias"),
        (lambda: InputMap.selection(2, [2]), "selects column 2 of 2"),
        (lambda: InputMap.selection(2, [0, -1]), "selects column -1 of 2"),
        (lambda: InputMap.identity(2, ("a",)), "1 feature names for 2"),
        (lambda: Logarithm.of(2, np.inf), "offset of a logarithm is inf, but must be finite"),
        (lambda: Logarithm(np.array([0.0, np.nan])), "offset of an input step is NaN or negative infinity"),
        (lambda: Logarithm(np.array([-np.inf, 0.0])), "offset of an input step is NaN or negative infinity"),
        (lambda: InputMap.identity(2).then_stage(Affine(3)), "takes 3 features, but 2 come"),
        (lambda: InputMap.concatenate([InputMap.identity(2), InputMap.identity(3)]), r"\[2, 3\] raw features"),
    ],
)
def test_maps_are_validated_when_built(build, message):
    with pytest.raises(ModelFormatError, match=message):
        build()


def test_rows_of_another_width_are_refused():
    with pytest.raises(InputError, match=r"shape \(1, 3\), expected \(n_rows, 2\)"):
        InputMap.identity(2).apply(np.zeros((1, 3)))
