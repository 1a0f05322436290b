"""Input maps, compared bit for bit with scikit-learn's transformers, and their errors, checked in exact arithmetic."""

from __future__ import annotations

import contextlib
import operator
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp
from scipy.sparse import csr_array
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVR

import approxsvm
from approxsvm.errors import InputError, ModelFormatError
from approxsvm.frontends.sklearn.pipeline import fold
from approxsvm.ir import compensated
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.ops import Affine, Logarithm, Projection


def fractions(values, n):
    return [Fraction(float(v)) for v in np.broadcast_to(values, n)]


OPERATIONS = {
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "add": operator.add,
    "low": max,
    "high": min,
}


def exact_row(map_, row):
    """Return a mapped row in rational arithmetic."""
    x = [Fraction(float(row[j])) for j in map_.columns]
    for op in map_.ops:
        if isinstance(op, Projection):
            centered = [v - m for v, m in zip(x, fractions(op.center, len(x)), strict=True)]
            columns = [fractions(op.matrix[:, k], len(x)) for k in range(op.n_outputs)]
            sums = [sum(map(operator.mul, centered, column)) for column in columns]
            x = [s + b for s, b in zip(sums, fractions(op.bias, len(sums)), strict=True)]
            continue
        for name, operation in OPERATIONS.items():
            numbers = getattr(op, name)
            if numbers is not None:
                x = list(map(operation, x, fractions(numbers, len(x))))
    return x


def random_map(rng, n, n_ops):
    map_ = InputMap.selection(n, rng.permutation(n)[: max(2, n - 1)])
    for _ in range(n_ops):
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
            map_ = map_.then_op(Projection.about(rng.normal(size=n), rng.normal(size=(n, int(rng.integers(2, n + 1))))))
    return map_


def distance_sq(given, exact):
    return sum((Fraction(float(g)) - e) ** 2 for g, e in zip(given, exact, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_errors_are_never_exceeded(seed):
    rng = np.random.default_rng(seed)
    map_ = random_map(rng, 5, int(rng.integers(1, 6)))
    rows = rng.normal(size=(12, 5)) * 10.0 ** rng.integers(-3, 6, size=(12, 1))
    rows[0] = 0.0
    for exactly in (False, True):
        given, allowed = map_.mapped_with_errors(rows, exactly=exactly)
        for row, mapped, most in zip(rows, given, allowed, strict=True):
            assert distance_sq(mapped, exact_row(map_, row)) <= Fraction(float(most)) ** 2
    alone = map_.mapped_with_errors(rows)[1]
    with contextlib.suppress(InputError):  # beyond the range of float64
        np.testing.assert_array_equal(map_.mapped_with_errors(np.vstack([rows, rows[:1] + 1e18]))[1][:12], alone)


def test_long_sums_are_off_by_units_in_the_last_place():
    """Exact sums are off by units in the last place; others are within their bounds, which are not far too large."""
    rng = np.random.default_rng(0)
    rows = 1e6 + rng.normal(size=(3, 200))
    map_ = InputMap.identity(200).then_op(Projection.about(0.0, rng.normal(size=(200, 3))))
    plainly, exactly = (map_.mapped_with_errors(rows, exactly=e) for e in (False, True))
    for k in range(3):
        off = distance_sq(exactly[0][k], exact_row(map_, rows[k]))
        assert off <= Fraction(float(exactly[1][k])) ** 2
        assert exactly[1][k] <= 4 * 2.0**-53 * np.linalg.norm(exactly[0][k])
        assert exactly[1][k] < 1e-2 * plainly[1][k]
    mean, deviation = rng.normal(size=50) * 3, rng.uniform(0.5, 2, size=50)
    scaled = InputMap.identity(50).then_affine(subtract=mean, divide=deviation)
    mapped, errors = scaled.mapped_with_errors(mean + deviation * rng.normal(size=(100, 50)))
    assert (errors < 4 * 2.0**-53 * np.linalg.norm(mapped, axis=1)).all()
    limited = InputMap.identity(2).then_affine(subtract=0.1, divide=3.0, low=-1.0, high=1.0)
    mapped, errors = limited.mapped_with_errors([[1e18, -1e18], [0.5, 1e18]])
    np.testing.assert_array_equal(mapped[0], [1.0, -1.0])  # limits make errors harmless
    assert errors[0] <= 2.0**-490
    assert 0 < errors[1] < 1e-15


def test_sums_of_products_as_if_in_twice_the_precision():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(6, 40)) * 10.0 ** rng.integers(-9, 9, size=(6, 40)), rng.normal(size=(40, 3))
    given, allowed = compensated.matmul(a, b)
    for i in range(6):
        for k in range(3):
            exact = sum(Fraction(x) * Fraction(y) for x, y in zip(a[i].tolist(), b[:, k].tolist(), strict=True))
            assert abs(Fraction(float(given[i, k])) - exact) <= Fraction(float(allowed[i, k]))
    assert np.isinf(compensated.matmul(np.full((1, 1), 1e305), np.ones((1, 1)))[1]).all()  # halves would overflow


WEIGHTED = FeatureUnion([("a", MaxAbsScaler()), ("b", RobustScaler())], transformer_weights={"b": 0.3})


@pytest.mark.parametrize("offset", [0.0, 3.7, 1e9, 1.7e12])
def test_mapped_rows_are_the_sources_own_bit_for_bit(offset):
    X = np.random.default_rng(0).normal(size=(60, 4)) * [1e-3, 1, 1e4, 7] + offset
    chain = make_pipeline(RobustScaler(), StandardScaler(), MinMaxScaler((-1, 1)))
    for step in (StandardScaler(), MinMaxScaler((0.1, 0.7), clip=True), MaxAbsScaler(), WEIGHTED, chain):
        np.testing.assert_array_equal(fold(InputMap.identity(4), step.fit(X[:40]), "step").apply(X), step.transform(X))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("step", [PCA(3, whiten=True), TruncatedSVD(3, random_state=0)], ids=str)
def test_projections_stay_within_their_errors_of_source_and_real_numbers(step, dtype):
    """Square roots, means and their products were computed in the source's precision when it was fitted."""
    rng = np.random.default_rng(0)
    for offset in (0.0, 1e9):
        X = rng.normal(size=(80, 6)) @ rng.normal(size=(6, 6)) + offset
        step.fit(X[:50].astype(dtype))
        map_ = fold(InputMap.identity(6), step, "step")
        given, allowed = map_.mapped_with_errors(X)
        assert (np.linalg.norm(given - step.transform(X), axis=1) <= allowed + map_.source_rounding(X)).all()
        for row in range(0, 80, 20):
            mean = fractions(getattr(step, "mean_", 0.0), 6)
            x = [Fraction(float(v)) - m for v, m in zip(X[row], mean, strict=True)]
            x = [sum(a * Fraction(float(b)) for a, b in zip(x, part, strict=True)) for part in step.components_]
            if getattr(step, "whiten", False):
                least = float(np.finfo(dtype).eps)  # scikit-learn's own limit
                roots = [max(var, least**2) for var in step.explained_variance_.tolist()]
                x = [v * reciprocal_root(root) for v, root in zip(x, roots, strict=True)]
            assert distance_sq(given[row], x) <= Fraction(float(allowed[row])) ** 2


def reciprocal_root(square):
    """Return 1 / sqrt(square) to 80 digits."""
    with mp.workdps(90):
        return Fraction(mp.nstr(1 / mp.sqrt(mp.mpf(square)), 80, min_fixed=0, max_fixed=0))


def test_errors_of_parameters_reach_the_bound():
    row = np.array([[30.0, 8.0]])
    scaled = InputMap.identity(2).then_affine(divide=[2.0, 4.0], relative_error=[1e-3, 0.0])
    assert scaled.mapped_with_errors(row)[1][0] == pytest.approx(15e-3, rel=1e-6)
    turned = scaled.then_op(Projection(np.zeros(2), np.array([[3.0], [0.0]]), np.zeros(1), np.zeros(1)))
    assert turned.mapped_with_errors(row)[1][0] == pytest.approx(45e-3, rel=1e-6)
    biased = InputMap.identity(2).then_op(Projection(np.zeros(2), np.eye(2), np.zeros(2), np.array([0.25, 0.0])))
    assert biased.mapped_with_errors(row)[1][0] == pytest.approx(0.25, rel=1e-6)


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


def test_rows_that_a_map_refuses():
    map_ = InputMap.identity(2).then_affine(subtract=1.0, low=-5.0).then_op(Logarithm.of(2, 0.25))
    rows = np.ones((40_000, 2))
    for wrong in (0.75, -1e300):
        rows[30_001, 1] = wrong
        message = f"row 30001: log needs a value above -0.25, got {max(wrong - 1, -5):g}"
        for ask in (map_.mapped_with_errors, map_.apply):
            with pytest.raises(InputError, match=message):
                ask(rows)
    map_ = InputMap.identity(2).then_affine(multiply=[1.0, 1e10]).then_part(Logarithm(np.array([1.0])))
    rows = np.array([[0.0, 0.0], [-1.0, 0.0], [-2.0, 1.0], [np.inf, 0.0], [1.0, np.nan], [1.0, 1e300], [1.0, -1e290]])
    taken = map_.takes(rows)
    np.testing.assert_array_equal(taken, [True, False, False, False, False, False, True])
    assert np.isfinite(map_.apply(rows[taken])).all()
    with pytest.raises(InputError, match=r"row 5: scaling its values.*range of float64 in feature 1"):
        map_.apply(rows[[0, 0, 0, 0, 0, 5]])
    with pytest.raises(InputError, match="row 0"):
        InputMap.identity(2).then_affine(multiply=10.0).apply(csr_array([[0.0, -1e308]]))
    with pytest.raises(InputError, match=r"shape \(1, 3\), expected \(n_rows, 2\)"):
        map_.apply(np.zeros((1, 3)))


def test_maps_side_by_side_and_one_after_the_other():
    whole = InputMap.identity(4)
    first = whole.then_select([3, 1]).then_affine(subtract=1, divide=2).then_affine(multiply=[2, 5])
    second = whole.then_select([0, 2]).then_op(Projection.about([1, 1], np.array([[1.0], [2.0]]))).then_affine(add=3)
    rows = np.arange(8.0).reshape(2, 4)
    for maps in ([first, second], [first, first], [second, second, first], [whole, second]):
        expected = np.hstack([m.apply(rows) for m in maps])
        np.testing.assert_array_equal(InputMap.concatenate(maps).apply(rows), expected)
    after = random_map(np.random.default_rng(3), 2, 3)
    np.testing.assert_allclose(first.then(after).apply(rows), after.apply(first.apply(rows)), rtol=1e-12)
    with pytest.raises(ModelFormatError, match="9 features cannot follow"):
        first.then(InputMap.identity(9))


def test_raw_rows_that_stand_behind_mapped_ones():
    rng = np.random.default_rng(0)
    map_ = InputMap.selection(6, [4, 1, 2]).then_affine(subtract=[1, 2, 3], multiply=[2, 1, -1], divide=3, add=1)
    mapped = rng.normal(size=(5, 3))
    raw = map_.preimage(mapped)
    np.testing.assert_allclose(map_.apply(raw), mapped, rtol=1e-12)
    assert not raw[:, [0, 3, 5]].any()
    # A tolerance needs no rows even if the steps do more than scale.
    X = rng.gamma(0.3, size=(60, 4)) + 1e-12
    pipeline = make_pipeline(FeatureUnion([("log", FunctionTransformer(np.log)), ("pca", PCA(2))]), SVR(C=5.0))
    model = approxsvm.read_model(pipeline.fit(X, np.log(X).sum(axis=1)))
    assert model.input_map.preimage(model.support_vectors) is None
    assert approxsvm.compile(pipeline, tolerance=0.5).error_bound(X).max() <= 0.5


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
        (lambda: Logarithm(np.array([0.0, np.nan])), "offset of an input step holds NaN or infinity"),
        (lambda: Logarithm(np.array([-np.inf, 0.0])), "offset of an input step holds NaN or infinity"),
        (lambda: Logarithm(np.array([2e300])), "offset of an input step is beyond 1e300"),
        (lambda: InputMap.identity(3).then_part(Logarithm(np.zeros(2), first=2)), "takes features 2 to 3 of 3"),
        (lambda: InputMap.identity(2).then_op(Affine(3)), "takes 3 features, but gets 2"),
        (lambda: InputMap.concatenate([InputMap.identity(2), InputMap.identity(3)]), r"\[2, 3\] raw features"),
    ],
)
def test_maps_are_validated_when_built(build, message):
    with pytest.raises(ModelFormatError, match=message):
        build()
