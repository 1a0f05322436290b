"""Input maps: the folded steps against scikit-learn's own, and their rounding against exact arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.input_map import InputMap


def exact_row(steps, row):
    """The steps over the rational numbers, one after the other."""
    x = [Fraction(float(v)) for v in row]
    for kind, *arguments in steps:
        per_feature = kind in ("affine", "divide", "clip")
        a = [[Fraction(float(v)) for v in np.broadcast_to(b, len(x))] for b in arguments] if per_feature else []
        if kind == "affine":
            x = [(v - o) * s + t for v, o, s, t in zip(x, *a, strict=True)]
        elif kind == "divide":
            x = [(v - o) / s for v, o, s in zip(x, *a, strict=True)]
        elif kind == "clip":
            x = [min(max(v, lo), hi) for v, lo, hi in zip(x, *a, strict=True)]
        elif kind == "select":
            x = [x[j] for j in arguments[0]]
        else:
            mean, matrix, divisor = arguments
            x = [v - Fraction(float(m)) for v, m in zip(x, np.broadcast_to(mean, len(x)), strict=True)]
            x = [
                sum(v * Fraction(float(matrix[j, k])) for j, v in enumerate(x)) / Fraction(float(divisor[k]))
                for k in range(matrix.shape[1])
            ]
    return x


def folded(steps, n):
    result = InputMap.identity(n)
    for kind, *arguments in steps:
        result = getattr(result, f"then_{kind}")(*arguments)
    return result


def random_steps(rng, n, n_steps, projected=False):
    steps = []
    for _ in range(n_steps):
        kind = rng.choice(["affine", "divide", "select", "project"] + ([] if projected else ["clip"]))
        size = 10.0 ** rng.integers(-4, 5, size=n)
        if kind == "affine":
            steps.append((kind, rng.normal(size=n) * size, rng.normal(size=n), rng.normal(size=n) * size))
        elif kind == "divide":
            steps.append((kind, rng.normal(size=n) * size, rng.uniform(0.1, 9, size=n) * size))
        elif kind == "clip":
            ends = np.sort(rng.normal(size=(2, n)), axis=0) * size
            steps.append((kind, ends[0], ends[1]))
        elif kind == "select":
            chosen = rng.permutation(n)[: max(2, n - 1)]
            steps.append((kind, chosen.tolist()))
            n = len(chosen)
        else:
            k = int(rng.integers(2, n + 1))
            steps.append((kind, rng.normal(size=n), rng.normal(size=(n, k)), rng.uniform(0.1, 3, size=k)))
            n, projected = k, True
    return steps


@pytest.mark.parametrize("seed", range(60))
def test_rounding_is_never_exceeded(seed):
    rng = np.random.default_rng(seed)
    n = 5
    steps = random_steps(rng, n, int(rng.integers(1, 5)))
    map_ = folded(steps, n)
    rows = rng.normal(size=(20, n)) * 10.0 ** rng.integers(-3, 6, size=(20, 1))
    rows[0] = 0.0
    given, allowed = map_.apply(rows), map_.rounding(rows)
    assert given.shape == (20, map_.n_features)
    for row in range(len(rows)):
        exact = exact_row(steps, rows[row])
        squared = sum((Fraction(float(g)) - e) ** 2 for g, e in zip(given[row], exact, strict=True))
        assert squared <= Fraction(float(allowed[row])) ** 2, (steps, row)


@pytest.mark.parametrize("seed", range(30))
def test_maps_one_after_the_other_round_within_their_bound(seed):
    rng = np.random.default_rng(seed)
    n = 4
    first = [step for _ in range(3) for step in random_steps(rng, n, 1) if step[0] in ("affine", "divide", "clip")]
    second = random_steps(rng, n, 2)
    map_ = folded(first, n).then(folded(second, n))
    rows = rng.normal(size=(10, n)) * 10.0 ** rng.integers(-3, 5, size=(10, 1))
    given, allowed = map_.apply(rows), map_.rounding(rows)
    for row in range(len(rows)):
        exact = exact_row(first + second, rows[row])
        squared = sum((Fraction(float(g)) - e) ** 2 for g, e in zip(given[row], exact, strict=True))
        assert squared <= Fraction(float(allowed[row])) ** 2


@pytest.mark.parametrize("seed", range(20))
def test_folding_alone_changes_no_more_than_its_errors_say(seed):
    """The stored map over the rational numbers, so that no rounding of `apply` hides a wrong error term."""
    rng = np.random.default_rng(seed)
    n = 5
    steps = [s for _ in range(4) for s in random_steps(rng, n, 1) if s[0] in ("affine", "divide", "clip")]
    map_ = folded(steps, n)
    rows = rng.normal(size=(20, n)) * 10.0 ** rng.integers(-3, 6, size=(20, 1))
    stored = [[Fraction(float(v)) for v in values] for values in (map_.offset, map_.scale)]
    used = []
    for row in rows:
        exact = exact_row(steps, row)
        for j in range(n):
            z, o, s = Fraction(float(row[j])), stored[0][j], stored[1][j]
            t = (z - o) * s
            allowed = abs(z - o) * Fraction(map_.scale_error[j]) + Fraction(map_.shift_error[j])
            if not map_.low[j] < t < map_.high[j]:
                t = Fraction(min(max(float(t), map_.low[j]), map_.high[j]))
                allowed = max(allowed, Fraction(map_.limit_error[j]))
            assert abs(t - exact[j]) <= allowed
            used.append(float(abs(t - exact[j]) / allowed) if allowed else 0.0)
    assert max(used) > 0.2 or all(kind == "clip" for kind, *_ in steps)


def test_errors_of_folding_reach_the_bound():
    plain = InputMap.identity(2).then_divide(0, [2, 4])
    errors = {"scale_error": [1e-3, 0], "shift_error": [0, 1e-2], "limit_error": [0.5, 0]}
    row = np.array([[30.0, 8.0]])
    for name, values in errors.items():
        bound = replace(plain, **{name: np.array(values)}).rounding(row)[0]
        assert bound == pytest.approx({"scale_error": 30e-3, "shift_error": 1e-2, "limit_error": 0.5}[name], rel=1e-6)
    turned = plain.then_project(0, np.array([[3.0], [0.0]]))
    assert replace(turned, scale_error=np.array([1e-3, 0])).rounding(row)[0] == pytest.approx(90e-3, rel=1e-6)
    assert replace(turned, bias_error=np.array([0.25])).rounding(row)[0] == pytest.approx(0.25, rel=1e-6)
    off = replace(turned, matrix_error=np.array([[1e-3], [1e-3]])).rounding(row)[0]
    assert off == pytest.approx(15e-3 + 2e-3, rel=1e-6)


def test_long_sums_of_a_projection_round_within_their_bound():
    rng = np.random.default_rng(0)
    n = 3000
    map_ = InputMap.identity(n).then_project(0.0, np.full((n, 1), 0.1))
    rows = rng.uniform(1, 2, size=(5, n))
    for row, given, allowed in zip(rows, map_.apply(rows), map_.rounding(rows), strict=True):
        off = abs(Fraction(float(given[0])) - sum(Fraction(float(v)) for v in row) * Fraction(0.1))
        assert off <= Fraction(float(allowed))
        assert off > Fraction(float(allowed)) / n / 50


def test_a_second_projection_and_whitening_are_accounted_for():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(40, 30)), rng.normal(size=(30, 2))
    divisor = np.array([3.0, 7.0])
    map_ = InputMap.identity(40).then_project(0.0, first).then_project(0.0, second, divisor)
    for j in range(40):
        for k in range(2):
            exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(first[j], second[:, k], strict=True))
            off = abs(Fraction(float(map_.matrix[j, k])) - exact / Fraction(divisor[k]))
            assert off <= Fraction(float(map_.matrix_error[j, k]))
    assert (map_.matrix_error < 1e-13).all()


def test_maps_that_cannot_follow_one_another_are_refused():
    turned = InputMap.identity(2).then_project(0, np.eye(2))
    with pytest.raises(UnsupportedModelError, match="projection after another"):
        turned.then(turned)
    with pytest.raises(UnsupportedModelError, match="scaling after a projection"):
        turned.then(InputMap.identity(2).then_divide(0, 3))
    with pytest.raises(ModelFormatError, match="3 features cannot follow one of 2"):
        turned.then(InputMap.identity(3))


def test_rounding_is_of_the_order_of_float64():
    rng = np.random.default_rng(0)
    mean, deviation = rng.normal(size=50) * 3, rng.uniform(0.5, 2, size=50)
    rows = mean + deviation * rng.normal(size=(100, 50))
    scaled = InputMap.identity(50).then_divide(mean, deviation)
    norms = np.linalg.norm(scaled.apply(rows), axis=1)
    assert (scaled.rounding(rows) < 4 * 2.0**-53 * norms).all()
    projected = scaled.then_project(0.0, np.linalg.qr(rng.normal(size=(50, 10)))[0])
    assert (projected.rounding(rows) < 600 * 2.0**-53 * norms).all()


def test_the_identity_rounds_nothing():
    map_ = InputMap.identity(3, ("a", "b", "c"))
    rows = np.random.default_rng(0).normal(size=(4, 3))
    assert map_.is_identity
    assert map_.keeps_zeros
    np.testing.assert_array_equal(map_.apply(rows), rows)
    np.testing.assert_array_equal(map_.rounding(rows), 0)
    assert not map_.then_select([2, 0]).is_identity
    np.testing.assert_array_equal(map_.then_select([2, 0]).rounding(rows), 0)


def test_sparse_integer_and_half_precision_rows_are_the_same_rows():
    map_ = InputMap.identity(4).then_divide([1, 2, 3, 4], [3, 3, 5, 7]).then_clip(-1, 1)
    rows = np.array([[0, 2, 0, 8], [1, 0, 0, 0]])
    expected = map_.apply(rows.astype(np.float64))
    for same in (rows, rows.astype(np.float16), csr_array(rows), np.asfortranarray(rows)):
        np.testing.assert_array_equal(map_.apply(same), expected)
        np.testing.assert_array_equal(map_.rounding(same), map_.rounding(rows.astype(np.float64)))


def test_constants_survive_later_steps():
    map_ = InputMap.identity(2).then_affine(0, [0.0, 1.0], [0.25, 0.0]).then_divide([1, 1], [3, 3])
    np.testing.assert_allclose(map_.apply([[1e300, 4], [-5, 1]]), [[-0.25, 1], [-0.25, 0]])
    assert map_.rounding([[1e300, 4]])[0] < 1e-15
    dropped = InputMap.identity(1).then_affine(0, 0.0)
    np.testing.assert_array_equal(dropped.apply([[7.0]]), [[0.0]])


def test_limits_follow_negative_scales_and_meet_other_limits():
    map_ = InputMap.identity(1).then_clip(-1, 2).then_affine(0, -3.0, 1.0)
    np.testing.assert_array_equal(map_.apply([[-9.0], [0.0], [9.0]]), [[4.0], [1.0], [-5.0]])
    np.testing.assert_array_equal(map_.then_clip(5, 6).apply([[-9.0], [9.0]]), [[5.0], [5.0]])


def test_zeros_kept_and_not():
    assert InputMap.identity(2).then_divide(0, [2, 3]).keeps_zeros
    assert not InputMap.identity(2).then_divide([0, 1], [2, 3]).keeps_zeros
    assert not InputMap.identity(2).then_project(0, np.eye(2)).keeps_zeros


def test_maps_side_by_side():
    whole = InputMap.identity(4)
    first = whole.then_select([3, 1]).then_divide(1, 2)
    second = whole.then_select([0, 2]).then_project([1, 1], np.array([[1.0], [2.0]]))
    rows = np.arange(8.0).reshape(2, 4)
    expected = np.hstack([first.apply(rows), second.apply(rows)])
    np.testing.assert_array_equal(InputMap.concatenate([first, second]).apply(rows), expected)
    np.testing.assert_array_equal(InputMap.concatenate([first, first]).apply(rows)[:, 2:], first.apply(rows))
    assert InputMap.concatenate([first, first]).matrix is None


def test_limits_after_a_projection_cannot_be_folded():
    with pytest.raises(UnsupportedModelError, match="after a projection"):
        InputMap.identity(2).then_project(0, np.eye(2)).then_clip(0, 1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: InputMap.identity(2).then_divide(0, [1, 0]), "divisor of an input step holds 0"),
        (lambda: InputMap.identity(2).then_affine(np.nan, 1), "offset of an input step holds NaN"),
        (lambda: InputMap.identity(2).then_affine(0, np.ones(3)), r"scale of an input step has shape \(3,\)"),
        (lambda: InputMap.identity(2).then_affine(0, 1e-300).then_affine(0, 1e300).then_divide(1e300, 1e-300), "range"),
        (lambda: InputMap.selection(2, [2]), "selects column 2 of 2"),
        (lambda: InputMap.identity(2, ("a",)), "1 feature names for 2"),
        (lambda: InputMap.identity(2).apply(np.zeros((1, 3))), r"shape \(1, 3\), expected \(n_rows, 2\)"),
        (lambda: InputMap.concatenate([InputMap.identity(2), InputMap.identity(3)]), r"\[2, 3\] raw features"),
    ],
)
def test_maps_are_validated_when_built(build, message):
    with pytest.raises(ModelFormatError, match=message):
        build()
