"""Tests of the oracle against independent code with 40 digits."""

from __future__ import annotations

from bisect import bisect_right
from itertools import combinations_with_replacement
from math import comb, factorial, prod
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.sparse import csr_array

from approxsvm.ir import ops
from approxsvm.ir.cosine_model import CosineModel
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.ops.lookup import SAME, Steps
from approxsvm.ir.ops.piecewise_polynomial import Pieces
from approxsvm.ir.outputs import (
    DensityMarks,
    IsotonicCalibrator,
    OneVsRestCalibration,
    PairwiseSigmoid,
    SigmoidCalibrator,
    TemperatureCalibration,
)
from approxsvm.ir.single_model import SingleModel
from approxsvm.ir.taylor_model import TaylorModel
from zoo import class_numbers, oracle
from zoo.balls import Ball, Extended
from zoo.mapped_rows import mapped

mpf = mpmath.mpf


@pytest.fixture(autouse=True)
def _forty_digits() -> Any:
    with mpmath.workdps(40):
        yield


def exactly(number: Any) -> Any:
    """Convert a number of any precision exactly."""
    high = float(number)
    return mpf(high) + mpf(float(number - high)) if np.isfinite(high) else mpf(high)


def assert_within(found: Ball, exact: Any, most: float) -> None:
    """Assert that errors against 40-digit results are within the slack, and that the slack is at most `most`."""
    exact = np.array(exact, object).reshape(found.mid.shape)
    for value, slack, truth in zip(found.mid.flat, found.rad.flat, exact.flat, strict=True):
        assert abs(exactly(value) - truth) <= exactly(slack), (value, slack, truth)
        assert slack <= most * max(1, abs(value)), (value, slack)


# --- models


def dot(a: Any, b: Any) -> Any:
    return mpmath.fdot(map(mpf, map(float, a)), map(mpf, map(float, b)))


def exact_value(model: Any, decision: int, z: Any) -> Any:
    """Compute a decision value with the formulas in the models' docstrings."""
    intercept = mpf(float(model.intercept[decision]))
    if isinstance(model, CosineModel):
        angles = [dot(w, z) + mpf(float(p)) for w, p in zip(model.frequencies, model.phases, strict=True)]
        return intercept + mpmath.fdot(map(mpf, model.coef[decision].tolist()), map(mpmath.cos, angles))
    gamma = mpf(float(model.gamma))
    if isinstance(model, TaylorModel):
        terms = []
        for k, weights in enumerate(model.weights):
            for weight, factors in zip(weights, combinations_with_replacement(range(len(z)), k), strict=True):
                alpha = prod(factorial(factors.count(i)) for i in set(factors))
                power = mpmath.fprod(mpf(float(z[i])) for i in factors)
                terms.append(mpf(float(weight)) * mpmath.sqrt((2 * gamma) ** k / alpha) * power)
        return intercept + mpmath.exp(-gamma * dot(z, z)) * mpmath.fsum(terms)
    kernels = []
    for x in model.dense_support_vectors(0, model.n_sv):
        product = gamma * dot(x, z) + mpf(float(model.coef0))
        sq_distance = mpmath.fsum((mpf(float(a)) - mpf(float(b))) ** 2 for a, b in zip(x, z, strict=True))
        of_kernel = {
            "gaussian": lambda d=sq_distance: mpmath.exp(-gamma * d),
            "polynomial": lambda p=product: p**model.degree,
            "sigmoid": lambda p=product: mpmath.tanh(p),
        }
        kernels.append(of_kernel[model.kernel]())
    return intercept + mpmath.fdot(map(mpf, model.coefficients(decision).tolist()), kernels)


def some_models(seed: int) -> dict[str, SingleModel]:
    """Return one model of each kind, near or far from the origin, with coefficients of many sizes."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 6)), 18
    vectors = rng.normal(size=(n, d)) + rng.choice([0.0, 10.0, 1e3])
    coef = rng.normal(size=(2, n)) * 10.0 ** rng.integers(-3, 4, size=(2, n))
    gamma = float(10.0 ** rng.uniform(-3, 1)) / d
    classes: dict[str, Any] = {"labels": np.arange(3), "n_support": np.array([6, 5, 7])}
    three = rng.normal(size=3)
    weights = tuple(rng.normal(size=comb(d + k - 1, k)) for k in range(4))
    phases = rng.uniform(0.0, 6.0, n)
    return {
        "gaussian": KernelModel("regression", vectors, coef[:1], three[:1], gamma),
        "gaussian, classes": KernelModel("classification", csr_array(vectors), coef, three, gamma, **classes),
        "polynomial": KernelModel("regression", vectors, coef[:1], three[:1], gamma, degree=3, coef0=-0.7),
        "polynomial, classes": KernelModel("classification", vectors, coef, three, gamma, degree=2, **classes),
        "sigmoid": KernelModel("regression", vectors, coef[:1], three[:1], gamma, coef0=-0.7, is_sigmoid=True),
        "taylor": TaylorModel("regression", weights, three[:1], gamma),
        "cosines": CosineModel("regression", rng.normal(size=(n, d)), phases, coef[0], three[:1]),
    }


def some_rows(model: SingleModel, seed: int) -> Any:
    """Return near and far rows, one of which is next to a support vector."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(3, model.n_features)) * 10.0 ** rng.integers(-1, 2, size=(3, 1))
    if isinstance(model, KernelModel):
        rows[1] = model.dense_support_vectors(3, 4)[0] + 1e-3
    return rows


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", some_models(0))
def test_values_are_within_their_slack(kind: str, seed: int) -> None:
    model = some_models(seed)[kind]
    rows = some_rows(model, seed)
    found = Ball(*oracle.decision_values(model, rows))
    assert_within(found, [[exact_value(model, k, z) for k in range(model.n_decisions)] for z in rows], np.inf)
    sizes = np.abs([model.coefficients(k) for k in range(model.n_decisions)]).sum() if model.n_sv else 1e6
    if model.kernel == "gaussian":
        assert found.rad.max() < 1e-16 * sizes


# --- steps

N = 3
BINS = Steps.of([0.25, 0.5], [SAME, 1.0, -2.0])
CURVE = Pieces(np.array([0.5]), np.array([0.1, 0.7]), np.array([[0.3, -1.0, 2.0], [1.0, 0.4, -0.7]]))
TURN = np.array([[1.0, 0.3], [-1.0, 0.7], [0.0, -1.0]])
OPS: dict[str, Any] = {
    "affine": ops.Affine.of(N, subtract=0.3, multiply=1.7, divide=0.9, low=-0.5, high=1.5),
    "projection": ops.Projection(np.full(N, 300.3), TURN, np.full(2, 0.2), np.zeros(2)),
    "lookup": ops.Lookup.of(N, [(0, BINS), (2, Steps.of([], [SAME]))]),
    "piecewise_polynomial": ops.PiecewisePolynomial.of(N, [(0, CURVE), (2, CURVE)]),
    "projection of the last": ops.Projection(np.full(2, 0.3), np.ones((2, 1)), np.full(1, 0.2), np.zeros(1), first=1),
    "lookup of the last": ops.Lookup.of(2, [(1, BINS), (0, BINS), (1, BINS)], first=1),
    "turns": ops.Interval("turns", np.full(1, 0.31), np.full(1, 0.2)),
    "ends": ops.Interval("refuses", np.full(1, 0.25), np.full(1, 0.8), first=1),
    "quantiles": ops.InverseNormal(2),
    "logarithm": ops.Logarithm(np.array([0.3])),
    "box-cox": ops.Power("box-cox", np.array([0.4, -1.3])),
    "yeo-johnson": ops.Power("yeo-johnson", np.array([1.7, 0.0])),
    "products": ops.Monomials.of_powers([[2, 1, 0], [0, 1, 2], [0, 0, 3]]),
    **{f"{norm} norm": ops.Normalizer(2, norm) for norm in ("l1", "l2", "max")},
}


def stepped(op: Any, x: list[Any]) -> list[Any]:
    """Return the exact numbers after a step; raise ValueError if the step refuses them."""
    return [*x[: op.first], *stepped_part(op, x[op.first : op.end]), *x[op.end :]]


def stepped_part(op: Any, x: list[Any]) -> list[Any]:
    kind = type(op)
    if kind is ops.Projection:
        off = [a - mpf(c) for a, c in zip(x, op.center, strict=True)]
        return [mpmath.fdot(off, map(mpf, w)) + mpf(b) for w, b in zip(op.matrix.T, op.bias, strict=True)]
    if kind is ops.Monomials:
        return [mpmath.fprod([*x, mpf(1)][j] for j in factors) for factors in op.factors]
    if kind is ops.Normalizer:
        own = [abs(a) for a in x]
        norm = {"l1": mpmath.fsum(own), "l2": mpmath.sqrt(mpmath.fdot(own, own)), "max": max(own)}[op.norm]
        return [a / norm if norm >= mpf(10) * 2**-52 else a for a in x]
    if kind in (ops.Lookup, ops.PiecewisePolynomial):
        return [stepped_output(op, k, x[j]) for k, j in enumerate(op.source)]
    return [stepped_feature(op, j, a) for j, a in enumerate(x)]


def stepped_output(op: Any, k: int, x: Any) -> Any:
    if isinstance(op, ops.Lookup):
        value = op.steps[k].values[bisect_right(op.steps[k].edges, x)]
        return x if value == SAME else mpf(value)
    edges, origins, coefs = op.pieces[k]
    piece = bisect_right(edges, x)
    return mpmath.fsum(mpf(c) * (x - mpf(origins[piece])) ** k for k, c in enumerate(coefs[piece]))


def stepped_feature(op: Any, j: int, x: Any) -> Any:
    if isinstance(op, ops.Affine):
        for name, operation in AFFINE.items():
            if getattr(op, name) is not None:
                x = operation(x, mpf(getattr(op, name)[j]))
        return x
    if isinstance(op, ops.InverseNormal):
        t = max(min(x, 1 - x), mpf(2) ** -24)
        y = mpmath.findroot(lambda y: mpmath.ncdf(y) - t, float(mpmath.erfinv(2 * t - 1)) * 2**0.5)
        return y if x < 0.5 else -y
    numbers = {"interval": "second", "logarithm": "offset", "power": "powers"}[op.kind]
    number = mpf(getattr(op, numbers)[j])
    if isinstance(op, ops.Interval):
        low = mpf(op.low[j])
        if op.rule == "turns":
            return low + (x - low) % number
        if low <= x <= number:
            return x
        raise ValueError
    if isinstance(op, ops.Logarithm) or op.method == "box-cox":
        number, x = (mpf(0), x + number) if isinstance(op, ops.Logarithm) else (number, x)
        if x <= 0:
            raise ValueError
        return (x**number - 1) / number if number else mpmath.log(x)
    if x < 0:
        return -((1 - x) ** (2 - number) - 1) / (2 - number) if number != 2 else -mpmath.log(1 - x)
    return ((1 + x) ** number - 1) / number if number else mpmath.log(1 + x)


AFFINE = {"subtract": mpf.__sub__, "multiply": mpf.__mul__, "divide": mpf.__truediv__, "low": max, "high": min}

# Preceding steps: none, or one that rounds, either in the source's own arithmetic or in another.
FRONTS = {
    "alone": [],
    "scaled": [ops.Affine.of(N, subtract=0.01, divide=0.99)],
    "projected": [ops.Projection(np.full(N, 0.1), np.eye(N) + 0.01, np.full(N, 0.1), np.zeros(N))],
}


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("name", OPS)
def test_mapped_rows_are_within_their_slack(name: str, front: str) -> None:
    map_ = InputMap.identity(N)
    for op in (*FRONTS[front], OPS[name]):
        map_ = InputMap(N, map_.columns, (*map_.ops, op))
    rows = np.random.default_rng(0).uniform(-0.2, 1.1, (40, N))
    rows[:4] = [[0.25, 0.5, 0.0], [0.5, 1e-9, 1e-20], [0.0, 0.0, 0.0], [7.03, 0.9999999999, -3.0]]
    found = mapped(map_, rows)
    for k, row in enumerate(rows):
        try:
            exact = [mpf(float(a)) for a in row]
            for op in map_.ops:
                exact = stepped(op, exact)
        except ValueError:
            assert np.isnan(found.mid[k]).all()
        else:
            assert_within(found[k : k + 1], exact, 1e-13)


def test_pieces_are_looked_up_where_the_source_looks() -> None:
    """A scaled row is above an edge if its float64 value is on the edge, and below if its float64 value is below."""
    scale = ops.Affine.of(1, divide=3.0)
    table = ops.Lookup.of(1, [(0, Steps.of([0.1], [1.0, 2.0]))])
    row = np.array([[0.3]])  # 0.3 / 3 rounds to a number below 0.1, and the exact quotient is also below 0.1
    after = np.nextafter(row, 1)
    found = mapped(InputMap(1, np.arange(1), (scale, table)), np.concatenate([row, after]))
    np.testing.assert_array_equal(found.mid[:, 0], np.where(np.array([0.3, after[0, 0]]) / 3.0 < 0.1, 1.0, 2.0))
    assert not found.rad.any()
    behind = ops.Projection(np.zeros(1), np.eye(1), np.zeros(1), np.zeros(1))
    found = mapped(InputMap(1, np.arange(1), (behind, scale, table)), np.array([[0.3], [0.4], [0.30000000000000004]]))
    assert not found.rad[:2].any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_without_an_answer(bad: float) -> None:
    model = some_models(1)["gaussian"]
    rows = some_rows(model, 1)
    rows[1, -1] = bad
    values, _ = oracle.decision_values(model, rows)
    assert np.isnan(values[:, 0]).tolist() == [False, True, False]
    filled = ops.Lookup.of(2, [(0, Steps.of([], [SAME], 0.5)), (1, Steps.of([3.0], [SAME, np.nan]))])
    rows = np.array([[bad, 1.0], [1.0, bad], [1.0, 3.0], [1.0, 2.0]])
    found = mapped(InputMap(2, np.arange(2), (filled,)), rows)
    assert np.isnan(found.mid).any(axis=1).tolist() == [not np.isnan(bad), True, True, False]
    checked = InputMap(3, np.arange(2), (filled,), checked={2: True})
    found = mapped(checked, np.hstack([rows[3:], [[bad]]]))
    assert np.isnan(found.mid).any() == np.isinf(bad)


# --- probabilities

ISOTONIC = IsotonicCalibrator(np.array([-1.0, 0.0, 0.5]), np.array([0.1, 0.4, 0.9]))
SLOPED = SigmoidCalibrator(-2.0, 0.3)
HEADS: dict[str, tuple[Any, int]] = {
    "pair": (PairwiseSigmoid(np.array([-1.7]), np.array([0.3])), 1),
    "calibrated": (OneVsRestCalibration((ISOTONIC,), positive=0), 1),
    "calibrated, three": (OneVsRestCalibration((ISOTONIC, SLOPED, SLOPED), decision_shape="ovr"), 3),
    "calibrated, by values": (OneVsRestCalibration((ISOTONIC, SLOPED, SLOPED), decision_shape="ovo"), 3),
    "temperature": (TemperatureCalibration(1.3), 1),
    "temperature, three": (TemperatureCalibration(1.3), 3),
    "one class": (DensityMarks(np.linspace(-1.0, 0.9, 10)), 1),
}


def exact_probabilities(head: Any, f: list[Any]) -> list[Any]:
    """Compute probabilities with the formulas in models/FORMAT.md."""
    if isinstance(head, DensityMarks):
        above = [k for k, mark in enumerate(head.marks) if f[0] < mark]
        i = above[0] if above else 10
        share = mpf(0.001) if i == 0 else mpf(0.999) if i == 10 else mpf(i) / 10
        return [share, 1 - share]
    if isinstance(head, PairwiseSigmoid):
        share = 1 / (1 + mpmath.exp(mpf(head.prob_a[0]) * f[0] + mpf(head.prob_b[0])))
        return [share, 1 - share]
    scores = [f[0], -f[0]] if len(f) == 1 else []
    for k, signed in enumerate(((f[0], f[1]), (-f[0], f[2]), (-f[1], -f[2])) if len(f) == 3 else ()):
        won = sum(v > 0 for v in signed)
        scores.append(won + sum(signed) / (3 * (abs(sum(signed)) + 1)))
        assert len(scores) == k + 1
    if isinstance(head, TemperatureCalibration):
        powers = [mpmath.exp(mpf(head.inverse_temperature) * s) for s in scores]
        return [power / mpmath.fsum(powers) for power in powers]
    inputs = f if len(f) == 1 or head.decision_shape == "ovo" else scores
    found = []
    for one, x in zip(head.calibrators, inputs, strict=True):
        if isinstance(one, SigmoidCalibrator):
            found.append(1 / (1 + mpmath.exp(mpf(one.slope) * x + mpf(one.intercept))))
            continue
        k = min(max(bisect_right(one.knots, x) - 1, 0), len(one.knots) - 2)
        (a, b), (low, high) = (map(mpf, numbers[k : k + 2]) for numbers in (one.knots, one.heights))
        found.append(low + (high - low) * min(max((x - a) / (b - a), mpf(0)), mpf(1)))
    return [found[0], 1 - found[0]] if len(found) == 1 else [share / mpmath.fsum(found) for share in found]


@pytest.mark.parametrize("name", HEADS)
def test_probabilities_are_within_their_slack(name: str) -> None:
    head, n_decisions = HEADS[name]
    values = np.random.default_rng(0).normal(size=(20, n_decisions)).astype(Extended)
    outputs: Any = SimpleNamespace(probability=head, of_each_class=False)
    found = class_numbers.probabilities(outputs, Ball.of(values))
    exact = [exact_probabilities(head, [exactly(v) for v in row]) for row in values]
    if isinstance(head, DensityMarks):
        found = Ball(found.mid, found.rad + 1e-17)  # the marks' probabilities are rounded to float64
    assert_within(found, exact, 1e-16)
    moved = values + np.random.default_rng(1).uniform(-1, 1, values.shape) * 1e-3
    around = class_numbers.probabilities(outputs, Ball(values, np.full_like(values, 1e-3)))
    other = class_numbers.probabilities(outputs, Ball.of(moved))
    assert (np.abs(other.mid - around.mid) <= around.rad).all()
