"""Double sums over the kernel matrix of the support vectors, computed block by block.

`KernelSums.total_sq` is W^2 = sum_ij a_i a_j K_ij. The contracted energy W_theta^2 for a center is the same sum with
the kernel K^theta and coefficients that decay with the distance from the center (used in certificate.py):

    W_theta^2 = sum_ij at_i at_j K_ij^theta,        at_i = a_i exp(-(1 - theta) gamma ||x_i - center||^2).

The energies of many centers are computed as products of large matrices, in float32. With K^theta, such products would
be too inaccurate, because positive and negative terms nearly cancel. Therefore, the first two parts of the expansion of
K^theta about the mean of the support vectors (about 0 if the support vectors are sparse) are subtracted, and their sums
are added in float64:

    K_ij^theta = e_i e_j (1 + theta x_i.x_j) + R_ij,      e_i = exp(-theta |x_i|^2 / 2),      x scaled and shifted
    W_theta^2 = (sum_i at_i e_i)^2 + theta |sum_i at_i e_i x_i|^2 + sum_ij at_i at_j R_ij

All R_ij are positive, because exp(y) >= 1 + y. The sums over positive and over negative at_j are kept separate. Their
difference is Q = sum_ij |at_i at_j| R_ij, up to rounding. The errors, with u32 = 2^-24, are:

* The at_i are divided by a power of two larger than all |at_i| of a center, and rounded to float32. The rounding
  changes W_theta by at most sum |at_i - rounded| <= 1.01 u32 sum |at_i|, because each kernel function has norm 1;
  certificate.py adds this error. All statements below are about the rounded at_i.
* R_ij is rounded from float64 to float32, and sums over a block's columns are computed in float32. The error is at most
  1.001 (ROWS + 4) u32 Q, and Q itself has this relative error. Blocks and rows are summed in float64.
* Underflow in float32 changes the terms at_j R_ij by at most 2^-124 in units of the largest |at_i|, and thus W_theta^2
  by at most n_sv 2^-120 (sum |at_i|)^2.
* The errors of K^theta are bounded in certificate.py. The absolute value of each e_i e_j (1 + theta x_i.x_j) is at most
  1, because exp(-b) (1 + b) <= 1, where b = theta (|x_i|^2 + |x_j|^2) / 2 >= theta |x_i.x_j|. The roundings of b, of
  products and of sums, here and in the other two terms, add up to at most (8 n_sv + 16 (n_features + 8)) u64 (sum
  |at_i|)^2.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.expansion.decision_function import DecisionFunction
from approxsvm.expansion.gram import Workspace
from approxsvm.ir.constants import CONTRACTIONS, KERNEL_BLOCK_COLUMNS, UNIT32, UNIT64
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.system.threads import all_threads

# Number of rows of the kernel matrix computed at a time.
ROWS: Final = 256
# Above this number of support vectors, energies are computed only for theta = 1/2. For most centers, 1/2 is best or
# nearly best: in measurements, the remainder is at most 1.06 times the smallest remainder for nine in ten centers. For
# a few centers, theta = 1 is best, and no energies are needed.
_MOST_FOR_ALL_CONTRACTIONS: Final = 1 << 13
# Maximum size, in bytes, of the coefficients at_i for a group of centers.
_GROUP_BYTES: Final = 384 << 20
# Number of centers whose products are computed together. BLAS rounds products of different shapes differently, so with
# a fixed number, a center's energies depend neither on the other centers nor on earlier passes.
_CENTERS_TOGETHER: Final = 16

# Work in multiply-adds of a large matrix product (about 4e10 per second and core): for each pair of support vectors,
# and for each contraction of each center.
_PAIR_WORK: Final = 30.0
_CONTRACTION_WORK: Final = 1.2

Argument = TypeVar("Argument")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class KernelSums:
    """Sums, not rounded up, with coefficients divided by `unit`; the caller bounds their errors."""

    total_sq: float  # sum_ij a_i a_j K_ij
    moduli_sq: float  # sum_ij |a_i a_j| K_ij
    values: FloatArray  # (n_sv,): decision values at the support vectors, without intercept; empty if not needed
    contracted_sq: FloatArray  # (n_centers, len(CONTRACTIONS)): W_theta^2 plus float32 errors; column 0 is `total_sq`
    faded_moduli: FloatArray  # (n_centers, len(CONTRACTIONS)): sum_i |at_i|
    sq_radius: float  # gamma times the largest squared norm from which a distance is computed
    path: int  # summation depth


def mapped_in_order(
    pool: ThreadPoolExecutor, function: Callable[[Argument], Result], arguments: Iterable[Argument]
) -> Iterator[tuple[Argument, Result]]:
    """Apply a function in a thread pool and yield the results in order, with only a few of them in memory at a time."""
    waiting: deque[tuple[Argument, Future[Result]]] = deque()
    most = 2 * all_threads()
    for argument in arguments:
        waiting.append((argument, pool.submit(function, argument)))
        if len(waiting) >= most:
            done, future = waiting.popleft()
            yield done, future.result()
    for done, future in waiting:
        yield done, future.result()


@dataclass(frozen=True, eq=False)
class ExpansionPoint:
    """Expansion center and the function to expand about it: the whole function or its restriction to a slice."""

    function: DecisionFunction
    center: npt.NDArray[np.float32]


def kernel_sums(
    function: DecisionFunction,
    n_centers: int,
    point_of: Callable[[int], ExpansionPoint],
    *,
    contracted: bool,
    progress: Callable[[float], None],
) -> KernelSums:
    """Iterate over the upper triangle of the kernel matrix of `function`, once for each group of centers.

    `point_of` returns the expansion point of the center with a given index. All points share the support vectors of
    `function`, but each has its own coefficients. If `contracted` is False, all energies for contractions below 1 stay
    infinite. If it is True, energies stay infinite only for contractions below 1/2, and only if there are very many
    support vectors. `progress` is called with the completed fraction of the work.
    """
    shape = n_centers, len(CONTRACTIONS)
    roots = CONTRACTIONS[1 : 2 if is_large(function.n_sv) else None]
    contractions = roots if contracted else ()
    contracted_sq, faded_moduli = np.full(shape, np.inf), np.full(shape, np.inf)
    group = max(1, _GROUP_BYTES // (4 * len(contractions) * max(function.n_sv, 1)) if contracted else n_centers)
    starts = range(0, max(1, n_centers), group)  # without centers, one pass is made for `values`
    with ThreadPoolExecutor(all_threads()) as pool, np.errstate(all="ignore"):
        rows = _Rows(function)
        for step, first in enumerate(starts):
            last = min(first + group, n_centers)
            faded = _faded(pool, rows.n_padded, range(first, last), point_of, contractions)

            def report(share: float, step: int = step) -> None:
                progress((step + share) / len(starts))

            total_sq, moduli_sq, values, energies = _walk(pool, rows, faded, len(roots), report)
            for of_theta, energy in zip(faded, energies, strict=True):
                mine = slice(first + of_theta.first, min(first + of_theta.first + _CENTERS_TOGETHER, last))
                contracted_sq[mine, 1 + of_theta.column] = energy[: mine.stop - mine.start]
                faded_moduli[mine, 1 + of_theta.column] = (of_theta.moduli * of_theta.unit)[: mine.stop - mine.start]
    contracted_sq[:, 0], faded_moduli[:, 0] = total_sq, np.abs(function.coef).sum()
    path = _sum_path(function.n_sv)
    return KernelSums(total_sq, moduli_sq, values, contracted_sq, faded_moduli, rows.sq_radius, path)


def is_large(n_sv: int) -> bool:
    """Return whether a pass over the kernel matrix takes so long that only one contraction is computed."""
    return n_sv > _MOST_FOR_ALL_CONTRACTIONS


def pass_work(n_sv: float, n_features: int) -> float:
    """Return the work for a pass over half of the kernel matrix without centers."""
    return 0.5 * n_sv**2 * (1.5 * n_features + _PAIR_WORK)


def energy_work(n_sv: float) -> float:
    """Return the additional work for each center in a pass."""
    return 0.5 * n_sv**2 * _CONTRACTION_WORK * (1 if is_large(int(n_sv)) else len(CONTRACTIONS) - 1)


def _sum_path(n_sv: int) -> int:
    """Return the summation depth of the double sums: within a block and across blocks, for each index."""
    return 2 * (min(n_sv, ROWS) + -(-n_sv // ROWS))


class _Rows:
    """Scaled support vectors, one block at a time; the last block is padded with zero rows.

    Vectors with few nonzeros stay sparse; all others are shifted by their mean.
    """

    def __init__(self, function: DecisionFunction) -> None:
        self.function = function
        self.n_sv = function.n_sv
        self.n_padded = -(-self.n_sv // KERNEL_BLOCK_COLUMNS) * KERNEL_BLOCK_COLUMNS
        self.coef = np.zeros(self.n_padded)
        self.coef[: self.n_sv] = function.coef
        self.point = np.zeros(function.n_features, np.float32)
        self.half_sq_norm = np.zeros(self.n_padded)
        if function.is_sparse:
            vectors = function.sparse_rows(0, self.n_sv)
            sq_norm = np.asarray(vectors.multiply(vectors).sum(axis=1), np.float64).ravel()
            self.half_sq_norm[: self.n_sv] = function.gamma * sq_norm
        elif self.n_sv:
            share = 1.0 / self.n_sv
            mean = sum((block * share).sum(axis=0) for _, block in function.blocks_about(self.point, ROWS))
            self.point = np.nan_to_num(np.asarray(mean, np.float32))
            for first, block in function.blocks_about(self.point, ROWS):
                self.half_sq_norm[first : first + len(block)] = function.gamma * np.einsum("ij,ij->i", block, block)
        self.sq_radius = float(self.half_sq_norm.max(initial=0.0))

    def scaled(self, first: int) -> Any:
        """Return the block of at most ROWS rows that starts at `first`, dense or sparse."""
        function, last, n_rows = self.function, min(first + ROWS, self.n_sv), min(ROWS, self.n_padded - first)
        if function.is_sparse:
            sparse = function.sparse_rows(first, last) * function.scale
            sparse.resize(n_rows, function.n_features)
            return sparse
        rows = function.rows(first, last)
        scaled = np.zeros((n_rows, rows.shape[1]))
        np.multiply(rows - self.point.astype(np.float64), function.scale, out=scaled[: len(rows)])
        return scaled

    def gram(self, left: Any, right: Any, out: FloatArray) -> FloatArray:
        """Compute the inner products between the rows of two blocks, of shape (n_left, n_right)."""
        return (left @ right.T).toarray(out=out) if self.function.is_sparse else np.matmul(left, right.T, out=out)


class _Faded:
    """Coefficients at_i of `_CENTERS_TOGETHER` centers for one theta, in float32 and in each center's unit.

    `first` is the index of the first center, and `column` the index of theta. Coefficients of missing centers are 0.
    """

    def __init__(self, theta: float, column: int, first: int, n_padded: int) -> None:
        self.theta, self.column, self.first = theta, column, first
        self.unit = np.ones(_CENTERS_TOGETHER)
        self.coef = np.zeros((_CENTERS_TOGETHER, n_padded), np.float32)
        self.moduli: FloatArray = np.zeros(_CENTERS_TOGETHER)  # sum_i |at_i|, in each center's unit

    def fill(self, c: int, coef: FloatArray) -> None:
        """Set the coefficients of the group's center `c`."""
        self.unit[c] = 2.0 ** int(np.frexp(np.abs(coef).max(initial=0.0))[1])
        self.coef[c, : len(coef)] = coef / self.unit[c]
        self.moduli[c] = np.abs(coef).sum() / self.unit[c]

    def energies(self, sums: FloatArray, moduli: FloatArray, linear: FloatArray, n_sv: int) -> FloatArray:
        """Return W_theta^2, rounded up, from the sums of at_i at_j R_ij, |at_i at_j| R_ij and at_i e_i (1, x_i)."""
        sums = sums + linear[:, 0] ** 2 + self.theta * np.einsum("ij,ij->i", linear[:, 1:], linear[:, 1:])
        single = 1.002 * (ROWS + 4) * UNIT32 * moduli
        n_features = linear.shape[1] - 1
        double = (8 * n_sv + 16 * (n_features + 8)) * UNIT64 + n_sv * 2.0**-120
        energies: FloatArray = (sums + single + double * self.moduli**2) * self.unit**2
        return energies


def _faded(
    pool: ThreadPoolExecutor,
    n_padded: int,
    numbers: range,
    point_of: Callable[[int], ExpansionPoint],
    contractions: tuple[float, ...],
) -> list[_Faded]:
    """Compute the coefficients at_i for each of these contractions, for a few centers at a time."""
    starts = range(0, len(numbers), _CENTERS_TOGETHER)
    faded = [_Faded(theta, k, first, n_padded) for k, theta in enumerate(contractions) for first in starts]
    if not faded:
        return faded

    def fill(c: int) -> None:
        with np.errstate(all="ignore"):
            about = point_of(numbers[c])
            function = about.function
            exponent = np.empty(function.n_sv)
            for first, block in function.blocks_about(about.center, ROWS):
                exponent[first : first + len(block)] = -function.gamma * np.einsum("ij,ij->i", block, block)
            for of_theta in faded:
                if of_theta.first <= c < of_theta.first + _CENTERS_TOGETHER:
                    of_theta.fill(c - of_theta.first, function.coef * np.exp((1.0 - of_theta.theta) * exponent))

    for _ in mapped_in_order(pool, fill, range(len(numbers))):
        pass
    return faded


def _walk(
    pool: ThreadPoolExecutor, rows: _Rows, faded: list[_Faded], n_roots: int, progress: Callable[[float], None]
) -> tuple[float, float, FloatArray, list[FloatArray]]:
    """Add up strips of rows, which begin at the diagonal, in an order that does not depend on the number of threads.

    Kernel values are computed from the same root with and without centers, so W is identical in both cases.
    """
    moduli_sq = 0.0
    values = np.zeros(rows.n_padded)
    d = rows.function.n_features
    sums = [np.zeros((2, _CENTERS_TOGETHER)) for _ in faded]  # sums of at_i at_j R_ij, and of their absolute values
    linear = [np.zeros((_CENTERS_TOGETHER, 1 + d)) for _ in faded]
    workspace = Workspace()

    def strip(first: int) -> tuple[float, FloatArray, FloatArray, list[FloatArray], list[FloatArray]]:
        with np.errstate(all="ignore"):
            left = rows.scaled(first)
            n_left = left.shape[0]
            mine = slice(first, first + n_left)
            own, others = np.zeros(n_left), np.zeros(rows.n_padded - first)
            row_sums = np.empty(n_left)
            modulus = 0.0
            # Products with the columns before, and with the columns after, the change of sign
            products = [np.zeros((2, _CENTERS_TOGETHER, n_left)) for _ in faded]
            for second in range(first, rows.n_padded, ROWS):
                right = left if first == second else rows.scaled(second)
                block = slice(second, second + right.shape[0])
                shape = n_left, right.shape[0]
                gram = rows.gram(left, right, workspace.matrix("gram", *shape))
                remainders: list[Any] = [None] * n_roots
                if faded:
                    remainders = [workspace.matrix(k, *shape, np.float32) for k in range(n_roots)]
                twice = 1.0 if first == second else 2.0
                modulus += twice * _native.kernel_block(
                    gram,
                    rows.half_sq_norm[mine],
                    rows.half_sq_norm[block],
                    rows.coef[mine],
                    rows.coef[block],
                    remainders,
                    row_sums,
                    others[second - first : second - first + right.shape[0]],
                )
                own += row_sums
                change = min(max(rows.function.n_first, second), block.stop)
                for of_theta, product in zip(faded, products, strict=True):
                    remainder = remainders[of_theta.column]
                    for of_sign, start, stop in zip(product, (second, change), (change, block.stop), strict=True):
                        if start < stop:
                            coef, columns = of_theta.coef[:, start:stop], remainder[:, start - second : stop - second]
                            of_sign += np.float32(0.5 * twice) * (coef @ columns.T)
            others[:n_left] = 0.0
            of_strip, linear_of_strip = [], []
            for of_theta, product in zip(faded, products, strict=True):
                coef = of_theta.coef[:, mine].astype(np.float64)
                halves = [(coef, product[0] + product[1]), (np.abs(coef), np.abs(product[0] - product[1]))]
                of_strip.append(np.stack([2.0 * np.einsum("ij,ij->i", *half) for half in halves]))
                coef *= np.exp(-of_theta.theta * rows.half_sq_norm[mine])
                linear_of_strip.append(np.column_stack([coef.sum(axis=1), coef @ left]))
            return modulus, own, others, of_strip, linear_of_strip

    starts = range(0, rows.n_padded, ROWS)
    for first, (modulus, own, others, of_strip, linear_of_strip) in mapped_in_order(pool, strip, starts):
        moduli_sq += modulus
        values[first : first + len(own)] += own
        values[first:] += others
        for total, part in zip(sums + linear, of_strip + linear_of_strip, strict=True):
            total += part
        progress(1.0 - (1.0 - (first + len(own)) / rows.n_padded) ** 2)
    energies = [
        of_theta.energies(of_remainders[0], of_remainders[1], of_linear, rows.n_sv)
        for of_theta, of_remainders, of_linear in zip(faded, sums, linear, strict=True)
    ]
    if not math.isfinite(rows.sq_radius):
        return math.nan, math.nan, np.full(rows.n_sv, math.nan), energies
    total_sq = sum(float(rows.coef[first : first + ROWS] @ values[first : first + ROWS]) for first in starts)
    return total_sq, moduli_sq, values[: rows.n_sv], energies
