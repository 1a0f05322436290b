"""Functions of s in error bounds, on cells: the core's functions of expansion/certificate.py, rounded up."""

from __future__ import annotations

from typing import Final

import numpy as np

from approxsvm import _native
from approxsvm.ir.constants import MOST_REMAINDER_FACTOR
from approxsvm.ir.kernel_model import FloatArray

# Exceeds the rounding of numbers that are computed once in float64.
ROUNDED_UP: Final = 1.0 + 1e-9


def largest_phi(k: int, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the largest phi_k(s) = exp(-s/2) sqrt(s^k / k!) on each cell: at s = k, or at the end closer to k."""
    return np.asarray(_native.max_phi(k, low, high) * ROUNDED_UP)


def remainder_factor(first: int, theta: float, s: FloatArray) -> FloatArray:
    """Return exp((1 / theta - 1) s / 2) sqrt(P(first, s / theta)), which rises with s; infinite where W replaces it."""
    factor = _native.remainder_factor(first, theta, s)
    return np.where(factor < MOST_REMAINDER_FACTOR, factor * ROUNDED_UP, np.inf)
