"""Each term of the radii is needed: for these numbers, the other terms do not cover the error.

`python -m tests.mutants` sets each term to 0. Then a case fails here, or tests/mutants/explained.py says why none does.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest

from approxsvm import _native
from approxsvm.ir import ops
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.ops.lookup import SAME, Steps
from approxsvm.ir.ops.piecewise_polynomial import Pieces

UNKNOWN, TINY, U32 = None, 5e-324, 2.0**-24
ONE, STAYS, RNG = np.ones(1), np.array([np.inf]), np.random.default_rng(0)


class Case(NamedTuple):
    """A row mapped by an op, and the numbers that its radii must cover."""

    op: Any
    x: Any
    meant: Any  # the exact numbers, or the source's; UNKNOWN: the radius must be infinite
    errors: Any = None  # of x
    how: Any = {}  # noqa: RUF012


NARROW: Any = {"in_float32": True}
NOT_OWN: Any = {"is_source": False}


def exactly(value: Any) -> Fraction:
    """Convert a number to a fraction, without rounding."""
    if isinstance(value, mpmath.mpf):
        sign, mantissa, exponent, _ = value._mpf_
        return (-1) ** sign * Fraction(int(mantissa)) * Fraction(2) ** exponent
    return value if isinstance(value, Fraction) else Fraction(float(value))


def power(x: float, p: float, *, shifted: bool = False, moved: float = 0.0, raised: float = 0.0) -> Any:
    """Return a power whose exponent is off by `moved` float32 units, and x^p by `raised` units (power.h)."""
    a, p = mpmath.mpf(x) + shifted, mpmath.mpf(p) * (1 + U32 * moved)
    return (a**p * (1 + U32 * raised) - 1) / p


def off_by(y: float, units: float) -> float:
    """Move a number by float32 units: NumPy functions may be off by 8."""
    return y * (1.0 + U32 * units)


def nearest(x: float) -> float:
    return float(np.float32(x))


CLIPPED = ops.Affine.of(1, multiply=1e300, high=1e305, relative_error=1e-9)
WRAPPED = ops.Interval("turns", np.array([0.4 * 2.0**-149]), np.array([7 * 2.0**-149]))
CONSTANT = Pieces(np.empty(0), np.zeros(1), np.array([[0.3 * 2.0**-149, 0.0]]))
BENT = Pieces(np.array([0.0, 1.0]), np.array([0.0, 0.0, 1.0]),
              np.array([[0.0, 0.0], [0.0, 0.0], [1 + 0.45 * 2.0**-23, 0.45 * 2.0**-23]]))  # fmt: skip
THIRD, ORIGINS = 1.0 / 3.0, RNG.uniform(1e3, 1e4, 40)


def between_pieces(origin: float) -> Case:
    """Return a case for a number that may lie on the edge above it; the next piece rounds far more than it changes."""
    (value,) = np.polyval([1.0, -origin], [THIRD + origin])
    curve = Pieces(np.array([THIRD]), np.array([0.0, -origin]), np.array([[value, 0.0], [-origin, 1.0]]))
    x = np.nextafter(THIRD, 0.0)
    meant = Fraction(THIRD) + Fraction(origin) - Fraction(origin)
    return Case(ops.PiecewisePolynomial.of(1, [(0, curve)]), [x], [meant], [6e-17], NOT_OWN)


def cubes() -> Case:
    """Return a case of seventh powers, in which every factor is rounded."""
    x = RNG.uniform(1e3, 1e4, 60)
    curve = Pieces(np.empty(0), np.array([THIRD]), np.array([[0.0] * 7 + [1.0]]))
    return Case(ops.PiecewisePolynomial.of(60, [(j, curve) for j in range(60)]), x,
                [(Fraction(number) - Fraction(THIRD)) ** 7 for number in x])  # fmt: skip


def cancelled() -> Case:
    """Return a case of products whose sum is so small that double the precision cannot represent it."""
    n = 20
    x, matrix = RNG.uniform(1.0, 2.0, (2, n)) * 2.0 ** RNG.integers(-18, 18, (2, n))
    rest = sum(Fraction(a) * Fraction(b) for a, b in zip(x, matrix, strict=True))
    for _ in range(4):  # the rest of the sum, in ever smaller terms
        left = float(rest)
        x, matrix, rest = np.append(x, -left), np.append(matrix, 1.0), rest - Fraction(left)
    order = RNG.permutation(len(x))
    projection = ops.Projection.about(0.0, matrix[order, np.newaxis])
    return Case(projection, x[order], [rest], how={"exactly": True})


CASES: dict[str, Callable[[], Case]] = {
    "underflow of a scaler": lambda: Case(
        ops.Affine.of(1, multiply=0.3), [3 * TINY], [Fraction(3 * TINY) * Fraction(0.3)]
    ),
    "underflow of a scaler behind errors": lambda: Case(
        ops.Affine.of(1, multiply=0.3), [3 * TINY], [Fraction(3 * TINY) * Fraction(0.3)], [0.0]
    ),
    "a limit within the parameters' error": lambda: Case(
        CLIPPED, [1e10], [Fraction(1e305) * (1 - Fraction(9e-10))], [1e10 - 1e5 * (1 + 1e-10)]
    ),
    "a limit within the error": lambda: Case(CLIPPED, [1e10], [5e304], [1e10 - 5e4]),
    "an end that float32 may miss": lambda: Case(
        ops.Interval("refuses", np.zeros(1), ONE), [1 - 1e-6], UNKNOWN, [1e-3], NARROW
    ),
    "an end that another number is beyond": lambda: Case(
        ops.Interval("refuses", np.zeros(1), ONE), [1 - 1e-12], UNKNOWN, [1e-9], NOT_OWN
    ),
    "a turn that float32 does not take": lambda: Case(WRAPPED, [0.0], [0.0], how=NARROW),
    "a product that underflows in float32": lambda: Case(
        ops.Monomials.of_powers([[1, 1, 1]]), [nearest(1e-30), nearest(1e-30), nearest(1e30)], [0.0], how=NARROW
    ),
    "a product that overflows in float32": lambda: Case(
        ops.Monomials.of_powers([[1, 1, 1]]), [nearest(1e30), nearest(1e30), nearest(1e-30)], UNKNOWN, how=NARROW
    ),
    "a product that underflows": lambda: Case(ops.Monomials.of_powers([[2]]), [1e-200], [Fraction(1e-200) ** 2]),
    "squares that underflow in float32": lambda: Case(
        ops.Normalizer(1, "l2", "sparse"),
        [nearest(3e-23)],
        [np.float32(3e-23) / np.sqrt(np.float32(3e-23) ** 2)],
        how=NARROW,
    ),
    "squares that underflow": lambda: Case(ops.Normalizer(1, "l2", "sparse"), [1.7e-162], [1.0]),
    "a quotient that underflows": lambda: Case(ops.Normalizer(2, "l1"), [3 * TINY, 7.0], [Fraction(3 * TINY) / 7, 1.0]),
    "a long sum": lambda: Case(
        ops.Normalizer(200, "l1"),
        [1.0] + [0.9 * 2.0**-53] * 199,
        [1 / (1 + 199 * Fraction(0.9) * Fraction(2) ** -53)],
    ),
    "a piece that float32 extends": lambda: Case(ops.PiecewisePolynomial.of(1, [(0, BENT)]), [2.0], [1.0], how=NARROW),
    "a number that float32 does not hold": lambda: Case(
        ops.PiecewisePolynomial.of(1, [(0, CONSTANT)]), [1.0], [0.0], [1e-30], NARROW
    ),
    "the degree of a polynomial": cubes,
    **{f"the next piece of {origin:.0f}": lambda origin=origin: between_pieces(origin) for origin in ORIGINS},
    **dict.fromkeys((f"products that cancel, {k}" for k in range(8)), cancelled),
    "a sum that overflows": lambda: Case(
        ops.Projection.about(0.0, np.ones((2, 1))), [1e308, 1e308], UNKNOWN, how={"exactly": True}
    ),
    "an edge that float32 rounds": lambda: Case(
        ops.Lookup.of(1, [(0, Steps.of([1 + 0.4 * 2.0**-23], [5.0, 7.0]))]),
        [1 + 0.1 * 2.0**-23],
        [7.0],
        [0.11 * 2.0**-23],
        NARROW,
    ),
    "an edge that is 0 in float32": lambda: Case(
        ops.Lookup.of(1, [(0, Steps.of([0.4 * 2.0**-149], [5.0, 7.0]))]),
        [0.1 * 2.0**-149],
        [7.0],
        [0.11 * 2.0**-149],
        NARROW,
    ),
    "an unknown number of float32 looked up": lambda: Case(
        ops.Lookup.of(1, [(0, Steps.of([0.5], [5.0, 7.0]))]), [1.0], UNKNOWN, [np.inf], NARROW
    ),
    "a number looked up whose error is none": lambda: Case(
        ops.Lookup.of(1, [(0, Steps.of([0.5], [5.0, 7.0]))]), [1.0], UNKNOWN, [np.nan], NOT_OWN
    ),
    "NaN that is kept": lambda: Case(
        ops.Lookup.of(1, [(0, Steps.of([0.5], [5.0, 7.0], nan=SAME))]), [np.nan], UNKNOWN, [1.0], NOT_OWN
    ),
    "a logarithm of float32": lambda: Case(
        ops.Logarithm(np.zeros(1)), [nearest(1e30)], [off_by(float(np.log(nearest(1e30))), 8.0)], how=NARROW
    ),
    "a logarithm of a sum that is next to 1": lambda: Case(
        ops.Logarithm(ONE), [3 * TINY], [Fraction(3 * TINY) - Fraction(3 * TINY) ** 2 / 2]
    ),
    "a quantile of float32": lambda: Case(
        ops.InverseNormal(1),
        [nearest(0.9)],
        [off_by(float(mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(nearest(0.9)) - 1)), 8.0)],
        how=NARROW,
    ),
    "a power that underflows": lambda: Case(
        ops.Power("yeo-johnson", np.array([1e-30])), [1e-290], [power(1e-290, 1e-30, shifted=True)]
    ),
    "a small power of float32": lambda: Case(
        ops.Power("box-cox", np.array([0.01])), [1.5], [power(1.5, 0.01, raised=15.0)], how=NARROW
    ),
    "a large power of float32": lambda: Case(
        ops.Power("box-cox", np.array([5.0])),
        [nearest(np.exp(2.0))],
        [power(nearest(np.exp(2.0)), 5.0, raised=139.0)],
        how=NARROW,
    ),
    "a power of float32 that is rounded": lambda: Case(
        ops.Power("box-cox", np.array([50.0])),
        [nearest(np.exp(0.4))],
        [power(nearest(np.exp(0.4)), 50.0, moved=2.05, raised=279.0)],
        how=NARROW,
    ),
    "a logarithm in place of a power of float32": lambda: Case(
        ops.Power("box-cox", np.zeros(1)), [nearest(1.2)], [off_by(float(np.log(nearest(1.2))), 8.0)], how=NARROW
    ),
    "1 + x in float32": lambda: Case(
        ops.Power("yeo-johnson", np.array([100.0])),
        [nearest(1e-3)],
        [power(nearest(1e-3) + 0.9 * U32, 100.0, shifted=True)],
        how=NARROW,
    ),
    "a power of float32 that overflows at the end of a ball": lambda: Case(
        ops.Power("box-cox", np.array([50.0])), [5.0], UNKNOWN, [1.05], NARROW
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_radius_covers(name: str) -> None:
    mpmath.mp.dps = 60
    with np.errstate(all="ignore"):
        op, x, meant, errors, how = CASES[name]()
    map_ = InputMap.identity(op.n_features).then_op(op)
    core = _native.InputMap(map_.packed(), map_.n_raw_features, map_.n_features)
    given = None if errors is None else np.array([errors], float)
    values, radii, *_ = core.map(np.array([x], float), given, **how)
    if meant is UNKNOWN:
        assert radii[0, 0] == np.inf
        return
    for value, radius, number in zip(values[0], radii[0], meant, strict=False):
        assert radius == np.inf or abs(exactly(value) - exactly(number)) <= exactly(radius), (value, radius, number)
