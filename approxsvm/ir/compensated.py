"""Compensated sums of products, with twice the working precision (Ogita, Rump and Oishi 2005, Dot2)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.ir.constants import UNIT64

FloatArray = npt.NDArray[np.float64]
# Veltkamp's constant splits a 53-bit significand into two halves, whose products are exact.
_SPLITTER = 2.0**27 + 1.0
# Splitting a larger number would overflow.
_LARGEST = 2.0**995


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rounded sum and its rounding error: s + error == a + b exactly (Knuth)."""
    s = a + b
    b_part = s - a
    return s, (a - (s - b_part)) + (b - b_part)


def two_product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rounded product and its rounding error, which is exact without overflow or underflow (Dekker)."""
    p = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def matmul(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a @ b and a bound on its error; the bound is infinite if splitting an element would overflow."""
    n_terms = a.shape[1]
    total, lost, absolute_sum = np.zeros((3, a.shape[0], b.shape[1]))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for j in range(n_terms):
            column, row = a[:, j, np.newaxis], b[j]
            product, rest = two_product(column, row)
            total, carry = two_sum(total, product)
            lost += rest + carry
            absolute_sum += np.abs(product)
        result = total + lost
        # |result - exact| <= u |result| + gamma_m^2 sum |a b|. The bound includes twice the second term, because
        # products may underflow.
        rounding = (n_terms + 4) * UNIT64
        error = 1.01 * (UNIT64 * np.abs(result) + 2.0 * rounding**2 * absolute_sum) + (n_terms + 1) * 2.0**-1070
    fits = (np.abs(a).max(axis=1, initial=0.0) < _LARGEST)[:, np.newaxis] & (np.abs(b).max(initial=0.0) < _LARGEST)
    return result, np.where(np.isfinite(result) & fits, error, np.inf)


def norms_above(rows: Any) -> FloatArray:
    """Return upper bounds, of shape (n_rows,), on the rows' Euclidean norms; rows with extreme values are scaled first.

    Sparse rows remain sparse.
    """
    if not isinstance(rows, np.ndarray):
        largest = float(np.abs(rows.data).max(initial=0.0))
        if largest == 0.0:
            return np.zeros(rows.shape[0])
        scaled = rows / largest
        sparse_norms = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1), np.float64).ravel())
        return np.asarray(largest * (sparse_norms * (1.0 + (rows.shape[1] + 8) * UNIT64) + 2.0**-500))  # for underflow
    norms: FloatArray = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    extreme = np.flatnonzero(~((norms > 1e-140) & (norms < np.inf)))
    if len(extreme):
        part = rows[extreme]
        exponents = np.frexp(np.abs(part).max(axis=1, initial=0.0))[1]
        scaled = np.ldexp(part, -exponents[:, np.newaxis])
        norms[extreme] = np.ldexp(np.linalg.norm(scaled, axis=1), exponents)
    # Add the smallest subnormal number, because square roots of subnormal squares are inaccurate.
    above: FloatArray = norms * (1 + (rows.shape[1] + 4) * UNIT64) + (norms > 0) * 2.0**-1074
    return above


def _halves(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high
