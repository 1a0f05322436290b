"""Monomials of several variables in lexicographic order, and their weighted sums over support vectors.

The monomials of degree k in x_1 ... x_d are in the order of itertools.combinations_with_replacement. In this order, the
monomials that begin with x_i are x_i times a suffix of those of degree k - 1: those that begin with x_i or later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from approxsvm.ir.kernel_model import FloatArray

# Approximate number of monomials of a block of support vectors, small enough for a cache.
_BLOCK_ELEMENTS = 1 << 19
_LEAST_ROWS, _MOST_ROWS = 64, 512
# Most tails of a row, of degree 2 and above 2, unless the tails are its features; and the number of features of a head
# that share a matrix product. More features would waste products, while fewer would leave the products small.
_MOST_TAILS = (1 << 11, 1 << 10)
_FEATURES = 8


def n_monomials(n_features: int, degree: int) -> int:
    """Return the number of monomials of exactly this degree."""
    return math.comb(n_features + degree - 1, degree) if n_features else int(degree == 0)


def n_higher(n_features: int, degree: int) -> int:
    """Return the number of monomials of degrees 3 to `degree`."""
    return sum(n_monomials(n_features, k) for k in range(3, degree + 1))


def suffix_start(n_features: int, degree: int, feature: int) -> int:
    """Return the position of the first monomial of this degree that begins with `feature` or later."""
    return n_monomials(n_features, degree) - n_monomials(n_features - feature, degree)


@lru_cache(maxsize=16)
def inverse_factorials(n_features: int, degree: int) -> FloatArray:
    """Return 1 / (alpha_1! alpha_2! ...) of every monomial; times degree!, this is the monomial's multiplicity."""
    # run: multiplicity of the first variable of each monomial.
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
    """Return the highest degree below `degree` whose monomials, for some hundred rows, stay in a cache."""
    fitting = [k for k in range(1, degree) if n_monomials(n_features, k) <= _MOST_TAILS[k > 2]]
    return max(fitting, default=1)


def rows_of_moments(n_features: int, degree: int) -> int:
    """Return the most support vectors in a block for :func:`moments`."""
    tail = _tail_degree(n_features, degree)
    return (
        min(max(_BLOCK_ELEMENTS // n_monomials(n_features, tail), _LEAST_ROWS), _MOST_ROWS) if tail > 1 else _MOST_ROWS
    )


def moments(blocks: Iterable[tuple[FloatArray, FloatArray]], n_features: int, degree: int) -> list[FloatArray]:
    """Weighted sums of every monomial of degree 0 to `degree` over rows; those of degree k at position k.

    `blocks` yields rows (n_rows, n_features) with their weights (n_rows,), at most :func:`rows_of_moments` at a time.
    A monomial is a head times a tail that begins where the head ends or later. The tails of a block of rows are kept;
    each group of heads is multiplied by all its tails in one matrix product.
    """
    d, last_tail = n_features, _tail_degree(n_features, degree)
    sums = [np.zeros(n_monomials(d, k)) for k in range(min(last_tail, degree) + 1)]
    heads = [_Heads(d, k, last_tail) for k in range(last_tail + 1, degree + 1)]
    buffers = {k: np.empty((n_monomials(d, k), rows_of_moments(d, degree))) for k in range(2, last_tail + 1)}
    for rows, weights in blocks:
        columns = np.ascontiguousarray(rows.T)
        sums[0] += weights.sum()
        tails = columns
        for k in range(1, last_tail + 1):
            if k > 1:
                tails = _times_columns(columns, tails, k, buffers[k][:, : len(rows)])
            sums[k] += tails @ weights
        for of_degree in heads:
            of_degree.add(columns, weights, tails)
    return sums + [of_degree.moments() for of_degree in heads]


class _Heads:
    """Accumulator of the moments of one degree, higher than the degree of the tails."""

    def __init__(self, n_features: int, degree: int, tail: int) -> None:
        self.d, self.degree, self.tail = n_features, degree, tail
        self.width = n_monomials(n_features, tail)
        self.products: list[FloatArray] = []

    def add(self, columns: FloatArray, weights: FloatArray, tails: FloatArray) -> None:
        """Add a block of rows; `tails` are its monomials of the tail degree."""
        for at, (row, first) in enumerate(self._chunks(columns, weights)):
            product = (columns[first : first + _FEATURES] * row) @ tails[self._suffix(first) :].T
            if at < len(self.products):
                self.products[at] += product
            else:
                self.products.append(product)

    def moments(self) -> FloatArray:
        """Return the products of each head with its own tails."""
        if not self.products:
            return np.zeros(n_monomials(self.d, self.degree))
        nothing = np.zeros((self.d, 0))
        firsts = [first for _, first in self._chunks(nothing, nothing[0])]
        return np.concatenate(
            [
                row[self._suffix(first + i) - self._suffix(first) :]
                for first, product in zip(firsts, self.products, strict=True)
                for i, row in enumerate(product)
            ]
        )

    def _suffix(self, feature: int) -> int:
        return suffix_start(self.d, self.tail, feature)

    def _chunks(self, columns: FloatArray, weights: FloatArray) -> Iterator[tuple[FloatArray, int]]:
        """Yield weighted heads without their last feature, and the first of the features that come next."""

        def extend(row: FloatArray, first: int, missing: int) -> Iterator[tuple[FloatArray, int]]:
            if missing == 0:
                for chunk in range(first, self.d, _FEATURES):
                    yield row, chunk
                return
            for feature in range(first, self.d):
                yield from extend(row * columns[feature], feature, missing - 1)

        return extend(weights, 0, self.degree - self.tail - 1)


def _times_columns(columns: FloatArray, lower: FloatArray, degree: int, out: FloatArray) -> FloatArray:
    """Compute the monomials of one degree from those of the degree below, one row per monomial."""
    d, at = len(columns), 0
    for i, column in enumerate(columns):
        section = lower[suffix_start(d, degree - 1, i) :]
        np.multiply(section, column, out=out[at : at + len(section)])
        at += len(section)
    return out


@lru_cache(maxsize=4)
def _unfolding(n_features: int, degree: int) -> npt.NDArray[np.int32]:
    """Return the position of x_i times monomial j of the degree below among the monomials of `degree`."""
    d = n_features
    lower = np.zeros((1, 0), np.int64)
    for _ in range(degree - 1):  # all monomials of the degree below, as rows of sorted indices
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
    """Return (1 / degree!) sum_ij w_i w_j (x_i.x_j)^(degree - 1) x_i x_j' from the moments of that degree."""
    unfolded = moment[_unfolding(n_features, degree)]
    gram: FloatArray = (unfolded * inverse_factorials(n_features, degree - 1)) @ unfolded.T / degree
    return 0.5 * (gram + gram.T)


@lru_cache(maxsize=32)
def storage_order(n_features: int, degree: int) -> npt.NDArray[np.intp]:
    """Return the lexicographic positions of the monomials, in storage order (models/FORMAT.md).

    Quadratic forms are stored in panels of eight rows, the triangle first; a part of higher degree is a sequence of
    parts of the degree below, one for each first variable.
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
    """Return (1 / degree!) sum_ij w_i w_j (x_i.x_j)^degree from the moments of that degree."""
    return float((moment * inverse_factorials(n_features, degree)) @ moment) if degree else float(moment[0] ** 2)
