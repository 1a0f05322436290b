"""Graphs that evaluate polynomials, writing each monomial as a product of two monomials, a head and a tail.

A polynomial of degree D in the coordinates u is evaluated as tails' C heads, where the tails are all monomials of
degree 0 to t, the heads are all monomials of degree 0 to h, h + t = D, and h <= t. A monomial u_a u_b ... u_c, a <= b
<= ... <= c, of degree above t is split into its last t variables (the tail) and its first ones (the head); any other
monomial is a tail times the head 1. Each row and polynomial needs one matrix product and one short sum; for degree 2,
they evaluate (1, u)' C (1, u).
"""

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from approxsvm.backends.onnx.graph_builder import GraphBuilder
from approxsvm.expansion.monomials import n_monomials, storage_order, suffix_start

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Monomials:
    """Names of the rows' heads, of shape (n_rows, n_heads), and of their tails, of shape (n_rows, n_tails)."""

    heads: str
    tails: str


def split(degree: int) -> tuple[int, int]:
    """Return the maximum degrees of the heads and the tails."""
    return degree // 2, degree - degree // 2


def count_up_to(n_features: int, degree: int) -> int:
    """Count the monomials of degree 0 to `degree`."""
    return sum(n_monomials(n_features, k) for k in range(degree + 1))


def rounding_path(n_features: int, degree: int) -> float:
    """Return the maximum number of roundings that affect a product of the polynomial, for any order of summation."""
    h, t = split(degree)
    return count_up_to(n_features, h) + count_up_to(n_features, t) + 2.0 * degree + 4.0


def monomials(g: GraphBuilder, u: str, n_features: int, degree: int) -> Monomials:
    """Compute the rows' heads and tails."""
    h, t = split(degree)
    n_rows = g.op("Shape", u, start=0, end=1)
    ones = g.op("Expand", np.ones((1, 1)), g.op("Concat", n_rows, np.array([1], np.int64), axis=0))
    parts = [ones, u]
    for k in range(2, t + 1):
        starts = [suffix_start(n_features, k - 1, i) for i in range(n_features)]
        tails = [np.arange(start, n_monomials(n_features, k - 1)) for start in starts]
        first = np.repeat(np.arange(n_features), [len(tail) for tail in tails])
        parts.append(g.op("Mul", g.columns(u, first), g.columns(parts[-1], np.concatenate(tails))))
    heads, tails_name = (g.op("Concat", *parts[: k + 1], axis=1) if k else ones for k in (h, t))
    return Monomials(heads, tails_name)


def evaluate(
    g: GraphBuilder,
    of_rows: Monomials,
    matrix: str,  # matrices C, shape (n_polynomials, n_tails, n_heads), float64
) -> str:
    """Evaluate polynomials; the result has shape (n_rows, n_polynomials)."""
    products = g.op("Mul", g.op("MatMul", of_rows.tails, matrix), of_rows.heads)
    return g.op("Transpose", g.rows_sum(products, axis=2), perm=[1, 0])


def unfolding(n_features: int, degree: int) -> npt.NDArray[np.int32]:
    """Return an array of shape (n_tails, n_heads): the index of each pair's packed coefficient.

    Coefficients are in the order of models/FORMAT.md, beginning with degree 1. Unused pairs and the constant have the
    index one past the last coefficient, where a zero is stored.
    """
    h, t = split(degree)
    head_starts, tail_starts = (
        list(accumulate((n_monomials(n_features, k) for k in range(last + 1)), initial=0)) for last in (h, t)
    )
    counts = [n_monomials(n_features, k) for k in range(1, degree + 1)]
    places = np.full((tail_starts[-1], head_starts[-1]), sum(counts), np.int32)
    first = 0
    for k, count in enumerate(counts, 1):
        variables = _lexicographic(n_features, k)
        variables = variables if k == 1 else variables[storage_order(n_features, k)]
        n_head = max(k - t, 0)
        heads = head_starts[n_head] + _rank(variables[:, :n_head], n_features)
        tails = tail_starts[k - n_head] + _rank(variables[:, n_head:], n_features)
        places[tails, heads] = np.arange(first, first + count)
        first += count
    return places


def _lexicographic(n_features: int, degree: int) -> IntArray:
    """Return the variables of each monomial in ascending order, as itertools.combinations_with_replacement does."""
    result = np.zeros((1, 0), np.int64)
    for _ in range(degree):
        last = result[:, -1] if result.shape[1] else np.zeros(1, np.int64)
        repeat = n_features - last
        steps = np.arange(int(repeat.sum())) - np.repeat(np.cumsum(repeat) - repeat, repeat)
        result = np.column_stack([np.repeat(result, repeat, axis=0), np.repeat(last, repeat) + steps])
    return result


def _rank(variables: IntArray, n_features: int) -> IntArray:
    """Return the indices of monomials in the order of `_lexicographic`."""
    degree = variables.shape[1]
    position = np.zeros(len(variables), np.int64)
    previous = np.zeros(len(variables), np.int64)
    for j in range(degree):
        counts = np.array([n_monomials(m, degree - j) for m in range(n_features + 1)])
        position += counts[n_features - previous] - counts[n_features - variables[:, j]]
        previous = variables[:, j]
    return position
