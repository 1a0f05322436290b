"""Monomials of several variables in lexicographic order, and the sums of them over support vectors.

The monomials of degree k in x_1 ... x_d are taken in the order of itertools.combinations_with_replacement. In it the
monomials that begin with x_i are x_i times a suffix of those of degree k - 1: the ones that begin with x_i or later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from approxsvm.kernel_model import FloatArray

# Arrays of monomials of a block of support vectors have about this many elements: they stay in a cache.
_BLOCK_ELEMENTS = 1 << 19
_LEAST_ROWS, _MOST_ROWS = 16, 512
# Features whose rows of a moment are computed by one matrix product.
_FEATURES = 16


def n_monomials(n_features: int, degree: int) -> int:
    """Number of monomials of exactly this degree."""
    return math.comb(n_features + degree - 1, degree) if n_features else int(degree == 0)


def suffix_start(n_features: int, degree: int, feature: int) -> int:
    """Position of the first monomial of this degree that begins with `feature` or later."""
    return n_monomials(n_features, degree) - n_monomials(n_features - feature, degree)


@lru_cache(maxsize=16)
def inverse_factorials(n_features: int, degree: int) -> FloatArray:
    """1 / (alpha_1! alpha_2! ...) of every monomial; times degree! it is the monomial's multiplicity."""
    # run: how often the first variable of a monomial occurs in it.
    inverse, run = np.ones(n_features), np.ones(n_features)
    for k in range(2, degree + 1):
        starts = [suffix_start(n_features, k - 1, i) for i in range(n_features)]
        ends = [*starts[1:], len(inverse)]
        longer = []
        for start, end in zip(starts, ends, strict=True):
            of_section = np.ones(len(run) - start)
            of_section[: end - start] = run[start:end] + 1.0
            longer.append(of_section)
        run = np.concatenate(longer)
        inverse = np.concatenate([inverse[start:] for start in starts]) / run
    inverse.flags.writeable = False
    return inverse


def rows_of_moments(n_features: int, degree: int) -> int:
    """Support vectors in a block for :func:`moments`."""
    return min(max(_BLOCK_ELEMENTS // n_monomials(n_features, max(degree - 1, 1)), _LEAST_ROWS), _MOST_ROWS)


def moments(blocks: Iterable[tuple[FloatArray, FloatArray]], n_features: int, degree: int) -> list[FloatArray]:
    """Sums of weight times monomial over weighted rows, for every monomial of degree 0 to `degree`.

    Parameters
    ----------
    blocks : iterable of (rows of shape (n_rows, n_features), weights of shape (n_rows,))
        At most :func:`rows_of_moments` rows each.
    n_features, degree : int

    Returns
    -------
    list of ndarray
        Those of degree k at position k.
    """
    d = n_features
    sums = [np.zeros(n_monomials(d, k)) for k in range(degree + 1)]
    # The last degree is a matrix: features times the monomials of one degree less, of which a staircase is needed.
    starts = range(0, d, _FEATURES) if degree > 1 else range(0)
    suffixes = [suffix_start(d, degree - 1, i) for i in starts]
    width = n_monomials(d, degree - 1) if degree > 1 else 0
    stairs = [np.zeros((min(_FEATURES, d - i), width - suffix)) for i, suffix in zip(starts, suffixes, strict=True)]
    buffers = {k: np.empty((n_monomials(d, k), rows_of_moments(d, degree))) for k in range(2, degree)}
    for rows, weights in blocks:
        columns = np.ascontiguousarray(rows.T)
        sums[0] += weights.sum()
        of_degree = columns
        for k in range(1, degree):
            if k > 1:
                of_degree = _times_columns(columns, of_degree, k, buffers[k][:, : len(rows)])
            sums[k] += of_degree @ weights
        if degree == 1:
            sums[1] += columns @ weights
        weighted = columns * weights
        for i, suffix, stair in zip(starts, suffixes, stairs, strict=True):
            stair += weighted[i : i + _FEATURES] @ of_degree[suffix:].T
    if degree > 1:
        sums[degree] = np.concatenate(
            [
                stair[i, suffix_start(d, degree - 1, first + i) - suffix :]
                for first, suffix, stair in zip(starts, suffixes, stairs, strict=True)
                for i in range(len(stair))
            ]
        )
    return sums


def _times_columns(columns: FloatArray, lower: FloatArray, degree: int, out: FloatArray) -> FloatArray:
    """The monomials of one degree, from those of one degree less; one row per monomial."""
    d, at = len(columns), 0
    for i, column in enumerate(columns):
        section = lower[suffix_start(d, degree - 1, i) :]
        np.multiply(section, column, out=out[at : at + len(section)])
        at += len(section)
    return out


@lru_cache(maxsize=4)
def _unfolding(n_features: int, degree: int) -> npt.NDArray[np.int32]:
    """Where x_i times monomial j of one degree less stands among the monomials of `degree`."""
    d = n_features
    lower = np.zeros((1, 0), np.int64)
    for _ in range(degree - 1):  # all monomials of one degree less, as rows of sorted indices
        last = lower[:, -1] if lower.shape[1] else np.zeros(len(lower), np.int64)
        repeat = d - last
        first = np.repeat(last, repeat)
        steps = np.arange(len(first)) - np.repeat(np.cumsum(repeat) - repeat, repeat)
        lower = np.column_stack([np.repeat(lower, repeat, axis=0), first + steps])
    counts = [np.array([n_monomials(m, k) for m in range(d + 1)]) for k in range(degree + 1)]
    position = np.empty((d, len(lower)), np.int32)
    for i in range(d):
        indices = np.sort(np.column_stack([lower, np.full(len(lower), i)]), axis=1)
        before = np.zeros(len(lower), np.int64)
        previous = np.zeros(len(lower), np.int64)
        for j in range(degree):
            before += counts[degree - j][d - previous] - counts[degree - j][d - indices[:, j]]
            previous = indices[:, j]
        position[i] = before
    return position


def spectrum(moment: FloatArray, n_features: int, degree: int) -> FloatArray:
    """G = (1 / degree!) sum_ij w_i w_j (x_i.x_j)^(degree - 1) x_i x_j' from the moments of that degree."""
    unfolded = moment[_unfolding(n_features, degree)]
    gram: FloatArray = (unfolded * inverse_factorials(n_features, degree - 1)) @ unfolded.T / degree
    return 0.5 * (gram + gram.T)


def sq_norm(moment: FloatArray, n_features: int, degree: int) -> float:
    """(1 / degree!) sum_ij w_i w_j (x_i.x_j)^degree from the moments of that degree."""
    return float((moment * inverse_factorials(n_features, degree)) @ moment) if degree else float(moment[0] ** 2)
