"""Ball arithmetic: values in extended precision, each with a bound on its distance from the exact value.

Each operation guarantees that its result contains the exact results for all operands in the given balls. A radius
allows for rounding by two units per operation, and by four per C library function. Overflow and NaN are ordinary
results here, so callers silence NumPy's warnings (`quiet`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from scipy.special import ndtri

Extended = np.longdouble
# Rounding by two units, and an allowance for underflow.
_UNIT = np.finfo(Extended).eps
_TINY = 4 * np.finfo(Extended).smallest_subnormal
_SPLITTER = Extended(2.0) ** ((np.finfo(Extended).nmant + 2) // 2) + 1  # Veltkamp's; products of halves are exact
_UP = 1 + Extended(2.0**-30)  # covers rounding in the radii, which are sums of a few products
quiet = np.errstate(all="ignore")


@dataclass(frozen=True, eq=False)
class Ball:
    """Arrays of midpoints and radii. An undefined value has a NaN midpoint, an unknown one an infinite radius."""

    mid: Any
    rad: Any

    # Makes NumPy arrays on the left defer to the ball's operators.
    __array_ufunc__ = None

    @classmethod
    def of(cls, numbers: Any) -> Ball:
        """Return balls of radius 0."""
        if isinstance(numbers, Ball):
            return numbers
        mid = np.asarray(numbers).astype(Extended)
        return cls(mid, np.zeros_like(mid))

    @classmethod
    def rounded(cls, mid: Any, rad: Any, units: float = 1.0) -> Ball:
        """Return balls whose midpoints were rounded by at most `units` units."""
        rad = np.where(rad + units > 0, (rad + units * _UNIT * np.abs(mid)) * _UP + _TINY, 0)
        return cls(mid, np.where(np.isnan(rad), np.inf, rad))

    @classmethod
    def join(cls, parts: Sequence[Ball], axis: int = 1) -> Ball:
        """Concatenate balls along an axis."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts], axis=axis) for name in ("mid", "rad")))

    @classmethod
    def stack(cls, columns: Sequence[Ball]) -> Ball:
        """Stack columns into a matrix."""
        return cls.join([column[:, np.newaxis] for column in columns])

    @property
    def ends(self) -> tuple[Any, Any]:
        """Lower and upper bounds of the balls."""
        return tuple(self.mid + sign * (self.rad + 0.5 * _UNIT * np.abs(self.mid)) for sign in (-1, 1))

    @property
    def straddles_zero(self) -> Any:
        """True if the sign is unknown."""
        return (np.abs(self.mid) <= self.rad) & (self.rad > 0)

    def __getitem__(self, key: Any) -> Ball:
        return Ball(self.mid[key], self.rad[key])

    def where(self, condition: Any, other: Any) -> Ball:
        """Return this ball where the condition holds, and the other elsewhere."""
        other = Ball.of(other)
        return Ball(np.where(condition, self.mid, other.mid), np.where(condition, self.rad, other.rad))

    def __neg__(self) -> Ball:
        return Ball(-self.mid, self.rad)

    def __add__(self, other: Any) -> Ball:
        other = Ball.of(other)
        mid = self.mid + other.mid
        of_other = mid - self.mid
        lost = np.abs((self.mid - (mid - of_other)) + (other.mid - of_other))  # exact (Knuth)
        return Ball.rounded(mid, np.where(np.isnan(lost), np.inf, self.rad + other.rad + lost), 0.0)

    def __sub__(self, other: Any) -> Ball:
        return self + -Ball.of(other)

    def __rsub__(self, other: Any) -> Ball:
        return Ball.of(other) - self

    def __mul__(self, other: Any) -> Ball:
        other = Ball.of(other)
        mid, (high, low), (other_high, other_low) = self.mid * other.mid, _split(self.mid), _split(other.mid)
        lost = ((high * other_high - mid) + high * other_low + low * other_high) + low * other_low  # Dekker
        lost = np.where(np.isnan(lost), _UNIT * np.abs(mid), np.abs(lost))
        rad = np.where(self.rad > 0, self.rad * (np.abs(other.mid) + other.rad), 0)
        rad = rad + np.where(other.rad > 0, np.abs(self.mid) * other.rad, 0)
        return Ball.rounded(mid, rad + lost, 0.0)

    def __truediv__(self, other: Any) -> Ball:
        other = Ball.of(other)
        mid, least = self.mid / other.mid, np.abs(other.mid) - other.rad
        rad = np.where(least > 0, (self.rad + np.abs(mid) * other.rad) / least, np.inf)
        return Ball.rounded(mid, rad, 2.0)

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, power: int) -> Ball:
        result = self
        for _ in range(power - 1):
            result = result * self
        return result

    def __matmul__(self, matrix: Any) -> Ball:
        """Multiply by an exact matrix; the bound holds for any order of summation."""
        matrix = np.asarray(matrix, Extended)
        moduli = self.rad + (len(matrix) + 2) * _UNIT * np.abs(self.mid)
        return Ball.rounded(self.mid @ matrix, moduli @ np.abs(matrix) + len(matrix) * _TINY)

    def sum(self) -> Ball:
        """Return row sums, as a column."""
        return self @ np.ones((self.mid.shape[1], 1))

    def norms(self) -> Ball:
        """Return the rows' Euclidean norms, as a column."""
        return (self * self).sum().sqrt()

    def clip(self, low: Any, high: Any) -> Ball:
        """Clamp values to an interval."""
        is_beyond = (self.mid - self.rad > high) | (self.mid + self.rad < low)
        return Ball(np.minimum(np.maximum(self.mid, low), high), np.where(is_beyond, 0, self.rad))

    def _bent(self, function: Callable[[Any], Any], steepness: Callable[[Any, Any], Any]) -> Ball:
        """Apply a C library function; `steepness` bounds its change over the ball."""
        return Ball.rounded(function(self.mid), np.where(self.rad > 0, steepness(self.mid, self.rad), 0), 4.0)

    def abs(self) -> Ball:
        """Return absolute values."""
        return Ball(np.abs(self.mid), self.rad)

    def exp(self) -> Ball:
        """Return exponentials."""
        found = np.exp(self.mid)
        rad = 2 * found * self.rad  # expm1(r) < 2 r for 0 < r <= 1
        if (self.rad > 1).any():
            rad = np.where(self.rad > 1, np.exp(self.mid + self.rad) * _UP, rad)
        return Ball.rounded(found, rad, 4.0)

    def expm1(self) -> Ball:
        """Return exp(t) - 1."""
        return self._bent(np.expm1, lambda m, r: np.exp(m) * np.expm1(r))

    def log(self) -> Ball:
        """Return logarithms."""
        return self._bent(np.log, lambda m, r: np.where(m > r, r / (m - r), np.inf))

    def log1p(self) -> Ball:
        """Return log(1 + t)."""
        return self._bent(np.log1p, lambda m, r: np.where(1 + m > r, r / (1 + m - r), np.inf))

    def sqrt(self) -> Ball:
        """Return square roots; values below 0 are replaced by 0."""
        root = Ball(np.maximum(self.mid, 0), self.rad)
        return root._bent(np.sqrt, lambda m, r: np.fmin(r / np.sqrt(m), np.sqrt(r)))

    def cos(self) -> Ball:
        """Return cosines."""
        return self._bent(np.cos, lambda m, r: np.minimum(r, 2))

    def tanh(self) -> Ball:
        """Return hyperbolic tangents."""
        return self._bent(np.tanh, lambda m, r: np.minimum(r, 2))

    def logistic(self) -> Ball:
        """Return 1 / (1 + exp(-t))."""
        small = (-self.abs()).exp()
        found = (small / (small + 1)).where(self.mid < 0, Ball.of(1) / (small + 1))
        return Ball(found.mid, np.fmin(found.rad, 1))

    def normal_quantiles(self) -> Ball:
        """Return y with P(Z < y) = p, for p from 1e-8 to 1/2."""
        return self._bent(
            lambda m: _each(_normal_quantile, m), lambda m, r: np.where(r < m / 2, 2 * r / (m - r), np.inf)
        )

    def steps(self, function: Callable[[Any], Any], most: Any = 0) -> Ball:
        """Apply a monotone function; radii result from its values at both endpoints and are at least `most`."""
        mid = function(self.mid)
        low, high = (np.abs(function(end) - mid) for end in self.ends)
        return Ball.rounded(mid, np.maximum(np.maximum(low, high), most), 8.0)


def _each(function: Callable[[Any], Any], numbers: Any) -> Any:
    """Apply an mpmath function with 30 digits."""
    distinct, places = np.unique(numbers, return_inverse=True)
    found = np.full(distinct.shape, np.nan, Extended)
    with mpmath.workdps(30):
        for k in np.flatnonzero(np.isfinite(distinct)):
            value = function(sum(map(mpmath.mpf, _halves(distinct[k]))))
            found[k] = sum(map(Extended, _halves(value)))
    return found[places].reshape(np.shape(numbers))


def _split(number: Any) -> tuple[Any, Any]:
    scaled = _SPLITTER * number
    high = scaled - (scaled - number)
    return high, number - high


def _halves(number: Any) -> tuple[float, float]:
    return float(number), float(number - float(number))


def _normal_quantile(p: Any) -> Any:
    """Improve the float64 quantile with one step of Newton's method."""
    y = mpmath.mpf(float(ndtri(float(p))))
    return y - (mpmath.ncdf(y) - p) / mpmath.npdf(y)
