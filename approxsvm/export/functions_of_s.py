"""What bounds are made of, on cells of s: functions of expansion/certificate.py, rounded up."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.special import gammainc, gammaln

from approxsvm.model.constants import MOST_REMAINDER_FACTOR
from approxsvm.model.kernel_model import FloatArray

_UP: Final = 1.0 + 1e-9


def largest_phi(k: int, low: FloatArray, high: FloatArray) -> FloatArray:
    """The largest phi_k(s) = exp(-s/2) sqrt(s^k / k!) on each cell: at s = k, or at the end that is nearer to it."""
    s = np.clip(float(k), low, high)
    with np.errstate(divide="ignore"):
        logarithm = -s + (k * np.log(s) if k else 0.0) - gammaln(k + 1.0)
    return np.asarray(np.exp(0.5 * logarithm) * _UP)


def remainder_factor(first: int, theta: float, s: FloatArray) -> FloatArray:
    """exp((1 / theta - 1) s / 2) sqrt(P(first, s / theta)), which rises with s; infinite where W is to take over."""
    factor = np.exp(np.minimum(0.5 * (1.0 / theta - 1.0) * s, 700.0)) * np.sqrt(gammainc(first, s / theta))
    return np.where(factor < MOST_REMAINDER_FACTOR, factor * _UP, np.inf)
