"""Monomials in several variables, in lexicographic order, and their weighted sums over support vectors.

The monomials of degree k in x_1 ... x_d are in the order of itertools.combinations_with_replacement. In this order, the
monomials that begin with x_i are x_i times a suffix of the monomials of degree k - 1: those that begin with x_i or a
later variable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt

from approxsvm.ir.kernel_model import FloatArray

# Approximate size, in bytes, of the tails of a block of support vectors; small enough for a cache.
_BLOCK_BYTES = 1 << 21
_LEAST_ROWS, MOST_ROWS = 64, 512
# Maximum number of tails per row, for tails of degree 2 and of higher degrees (tails of degree 1 have no limit), and
# maximum number of heads in a matrix product.
_MOST_TAILS = (1 << 11, 1 << 10)
_MOST_HEADS = 128
# Number of different last features among the heads of a matrix product: _FEATURES for heads of one feature. For longer
# heads, it is the number of features divided by _SHARE_OF_FEATURES, within the other two limits. A larger number would
# cause many unnecessary products; a smaller one would make the matrix products too small.
_FEATURES = 16
_SHARE_OF_FEATURES, _LEAST_FEATURES, _MOST_FEATURES = 8, 4, 32


def n_monomials(n_features: int, degree: int) -> int:
    """Return the number of monomials of exactly this degree."""
    return math.comb(n_features + degree - 1, degree) if n_features else int(degree == 0)


def n_higher(n_features: int, degree: int) -> int:
    """Return the number of monomials of degrees 3 through `degree`."""
    return sum(n_monomials(n_features, k) for k in range(3, degree + 1))


def suffix_start(n_features: int, degree: int, feature: int) -> int:
    """Return the index of the first monomial of this degree that begins with `feature` or a later feature."""
    return n_monomials(n_features, degree) - n_monomials(n_features - feature, degree)


@lru_cache(maxsize=16)
def inverse_factorials(n_features: int, degree: int) -> FloatArray:
    """Return 1 / (alpha_1! alpha_2! ...) for every monomial; times degree!, this is its multinomial coefficient."""
    # The array `run` contains the exponent of the first variable in each monomial.
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


def _tail_degree(n_features: int, degree: int) -> int:
    """Return half the degree, rounded up, or less if a cache could not hold the monomials of a few hundred rows."""
    half = (degree + 1) // 2
    return max((k for k in range(1, half + 1) if n_monomials(n_features, k) <= _MOST_TAILS[k > 2]), default=1)


def rows_of_moments(n_features: int, degree: int, dtype: npt.DTypeLike = np.float64) -> int:
    """Return the maximum number of support vectors in a block for :func:`moments`."""
    tail = _tail_degree(n_features, degree)
    fitting = _BLOCK_BYTES // (n_monomials(n_features, tail) * np.dtype(dtype).itemsize)
    return min(max(fitting, _LEAST_ROWS), MOST_ROWS) if tail > 1 else MOST_ROWS


def moments(
    blocks: Iterable[tuple[FloatArray, FloatArray]],
    n_features: int,
    degree: int,
    least: int = 0,
    dtype: npt.DTypeLike = np.float64,
) -> list[FloatArray]:
    """Compute weighted sums over rows of all monomials of degrees `least` through `degree`, one array per degree.

    `blocks` yields rows, of shape (n_rows, n_features), and their weights, of shape (n_rows,), at most
    :func:`rows_of_moments` rows at a time. The sums over a block are computed in `dtype` and added in float64. Each
    monomial is a head times a tail that begins with the head's last feature or a later one. The tails of a block of
    rows are kept. Heads that end in neighboring features are multiplied, in one matrix product, by the tails for the
    first of these features.
    """
    d, last_tail = n_features, _tail_degree(n_features, degree)
    sums = {k: np.zeros(n_monomials(d, k)) for k in range(least, min(last_tail, degree) + 1)}
    heads = [_Heads(d, k - last_tail, last_tail) for k in range(max(last_tail + 1, least), degree + 1)]
    buffers = {
        k: np.empty((n_monomials(d, k), rows_of_moments(d, degree, dtype)), dtype) for k in range(2, last_tail + 1)
    }
    for rows, of_rows in blocks:
        columns, weights = np.ascontiguousarray(rows.T, dtype), of_rows.astype(dtype, copy=False)
        if least == 0:
            sums[0] += weights.sum()
        tails = columns
        for k in range(1, last_tail + 1):
            if k > 1:
                tails = _times_columns(columns, tails, k, buffers[k][:, : len(rows)])
            if k in sums:
                sums[k] += tails @ weights
        weighted = columns * weights
        for of_degree in heads:
            of_degree.add(columns, weighted, tails)
    return [*sums.values(), *(of_degree.moments() for of_degree in heads)]


class _Heads:
    """Accumulator for the products of all heads of one degree with the tails that may follow them."""

    def __init__(self, n_features: int, degree: int, tail: int) -> None:
        self.d, self.tail = n_features, tail
        self.groups = _groups_of_heads(n_features, degree)
        self.products = [np.zeros((len(group), self._n_tails(int(group[:, -1].min())))) for group in self.groups]

    def add(self, columns: FloatArray, weighted: FloatArray, tails: FloatArray) -> None:
        """Add a block of rows, given as features, weighted features, and monomials of the tail degree."""
        for group, product in zip(self.groups, self.products, strict=True):
            heads = weighted[group[:, 0]]
            for features in group.T[1:]:
                heads *= columns[features]
            product += heads @ tails[len(tails) - product.shape[1] :].T

    def moments(self) -> FloatArray:
        """Return each head's products with the tails that may follow it, in the order of the heads."""
        rows = {
            tuple(head): row[len(row) - self._n_tails(head[-1]) :]
            for group, product in zip(self.groups, self.products, strict=True)
            for head, row in zip(group.tolist(), product, strict=True)
        }
        return np.concatenate([rows[head] for head in sorted(rows)]) if rows else np.zeros(0)

    def _n_tails(self, feature: int) -> int:
        """Return the number of tails that begin with this feature or a later one."""
        return n_monomials(self.d - feature, self.tail)


@lru_cache(maxsize=16)
def _groups_of_heads(n_features: int, degree: int) -> tuple[npt.NDArray[np.intp], ...]:
    """List all monomials of a degree as rows of nondecreasing feature indices, grouped by neighboring last features."""
    heads = np.array(list(combinations_with_replacement(range(n_features), degree)), np.intp).reshape(-1, degree)
    several = min(max(n_features // _SHARE_OF_FEATURES, _LEAST_FEATURES), _MOST_FEATURES)
    width = _FEATURES if degree == 1 else several
    groups = []
    for first in range(0, n_features, width):
        mine = heads[(heads[:, -1] >= first) & (heads[:, -1] < first + width)]
        mine = mine[np.argsort(mine[:, -1], kind="stable")]
        groups += [mine[at : at + _MOST_HEADS] for at in range(0, len(mine), _MOST_HEADS)]
    return tuple(groups)


def _times_columns(columns: FloatArray, lower: FloatArray, degree: int, out: FloatArray) -> FloatArray:
    """Compute the monomials of one degree from the monomials of the next lower degree, one row per monomial."""
    d, at = len(columns), 0
    for i, column in enumerate(columns):
        section = lower[suffix_start(d, degree - 1, i) :]
        np.multiply(section, column, out=out[at : at + len(section)])
        at += len(section)
    return out


@lru_cache(maxsize=16)
def _unfolding(n_features: int, degree: int) -> npt.NDArray[np.int32]:
    """Return, for all i and j, the index of x_i times monomial j of degree - 1 among the monomials of `degree`."""
    d = n_features
    lower = np.zeros((1, 0), np.int64)
    for _ in range(degree - 1):  # all monomials of the next lower degree, as rows of sorted indices
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
    """Return (1 / degree!) sum_ij w_i w_j (x_i.x_j)^(degree - 1) x_i x_j' from the moments of this degree."""
    unfolded = moment[_unfolding(n_features, degree)]
    gram: FloatArray = (unfolded * inverse_factorials(n_features, degree - 1)) @ unfolded.T / degree
    return 0.5 * (gram + gram.T)


@lru_cache(maxsize=32)
def storage_order(n_features: int, degree: int) -> npt.NDArray[np.intp]:
    """Return the lexicographic indices of the monomials, in storage order (models/FORMAT.md).

    Quadratic forms are stored in panels of eight rows, each of which begins with its triangle. A form of higher degree
    is stored as a sequence of forms of the next lower degree, one per first variable.
    """
    if degree > 2:
        parts, first = [], 0
        for i in range(n_features):
            parts.append(first + storage_order(n_features - i, degree - 1))
            first += len(parts[-1])
        return np.concatenate(parts)
    row_starts = np.cumsum([0, *range(n_features, 1, -1)])
    order: list[npt.NDArray[np.intp]] = []
    for first in range(0, n_features, 8):
        last = min(first + 8, n_features)
        columns, rows = np.tril_indices(last - first)
        order.append(row_starts[rows + first] + columns - rows)
        rows = np.tile(np.arange(first, last), n_features - last)
        columns = np.repeat(np.arange(last, n_features), last - first)
        order.append(row_starts[rows] + columns - rows)
    return np.concatenate(order)


def sq_norm(moment: FloatArray, n_features: int, degree: int) -> float:
    """Return (1 / degree!) sum_ij w_i w_j (x_i.x_j)^degree from the moments of this degree."""
    return float((moment * inverse_factorials(n_features, degree)) @ moment) if degree else float(moment[0] ** 2)
