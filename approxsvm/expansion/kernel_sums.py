"""Double sums over the kernel matrix of the support vectors, computed block by block.

`KernelSums.total_sq` is W^2 = sum_ij a_i a_j K_ij. The contracted energy of a center is the same sum with the kernel
K^theta and coefficients that decay with the distance from the center (used in certificate.py):

    W_theta^2 = sum_ij at_i at_j K_ij^theta,        at_i = a_i exp(-(1 - theta) gamma ||x_i - center||^2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from approxsvm.expansion.decision_function import DecisionFunction
from approxsvm.ir.constants import CONTRACTIONS
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.system.threads import all_threads

# Rows of the kernel matrix at a time.
ROWS: Final = 256
# Most bytes of a group of centers' faded coefficients, for each contraction.
_GROUP_BYTES: Final = 96 << 20

Argument = TypeVar("Argument")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class KernelSums:
    """Sums as computed, with coefficients divided by `unit`; the caller bounds their error."""

    total_sq: float  # sum_ij a_i a_j K_ij
    moduli_sq: float  # sum_ij |a_i a_j| K_ij
    values: FloatArray  # (n_sv,): decision values at the support vectors, without intercept; empty if not needed
    contracted_sq: FloatArray  # (n_centers, len(CONTRACTIONS)): W_theta^2; column 0 repeats `total_sq`
    faded_moduli: FloatArray  # (n_centers, len(CONTRACTIONS)): sum_i |at_i|
    sq_radius: float  # gamma times the largest squared norm that went into a distance
    path: int  # longest path of additions


def mapped_in_order(
    pool: ThreadPoolExecutor, function: Callable[[Argument], Result], arguments: Iterable[Argument]
) -> Iterator[tuple[Argument, Result]]:
    """InOrder with threads; few results wait at a time, as each may be large."""
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
    """A center, and the function to expand about it: the whole function, or its restriction to a slice."""

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
    """Walk over the upper triangle of the kernel matrix of `function`, once for each group of centers.

    `point_of` gives the expansion point of a center by number: all share the support vectors of `function`, each with
    its own coefficients. Without `contracted`, the energies for contractions below 1 stay infinite. `progress` gets the
    share of the work done.
    """
    shape = n_centers, len(CONTRACTIONS)
    contracted_sq, faded_moduli = np.full(shape, np.inf), np.full(shape, np.inf)
    group = max(1, _GROUP_BYTES // (8 * max(function.n_sv, 1)) if contracted else n_centers)
    starts = range(0, max(1, n_centers), group)  # one walk even without centers, for `values`
    with ThreadPoolExecutor(all_threads()) as pool, np.errstate(all="ignore"):
        rows = _Rows(function)
        for step, first in enumerate(starts):
            last = min(first + group, n_centers)
            faded = _faded(pool, function.n_sv, range(first, last), point_of) if contracted else []

            def told(share: float, step: int = step) -> None:
                progress((step + share) / len(starts))

            total_sq, moduli_sq, values, energies = _walk(pool, rows, faded, told)
            for column, (coef, energy) in enumerate(zip(faded, energies, strict=True), 1):
                contracted_sq[first:last, column] = energy
                faded_moduli[first:last, column] = np.abs(coef).sum(axis=1)
    contracted_sq[:, 0], faded_moduli[:, 0] = total_sq, np.abs(function.coef).sum()
    path = _sum_path(function.n_sv)
    return KernelSums(total_sq, moduli_sq, values, contracted_sq, faded_moduli, rows.sq_radius, path)


def _sum_path(n_sv: int) -> int:
    """Longest path of additions of the double sums: within blocks and over the blocks, in both directions."""
    return 2 * (min(n_sv, ROWS) + -(-n_sv // ROWS))


class _Rows:
    """Scaled support vectors about their mean, a block at a time; and the kernel between two blocks."""

    def __init__(self, function: DecisionFunction) -> None:
        self.function = function
        self.n_sv, self.coef = function.n_sv, function.coef
        self.point = np.zeros(function.n_features, np.float32)
        if self.n_sv:
            share = 1.0 / self.n_sv
            mean = sum((block * share).sum(axis=0) for _, block in function.blocks_about(self.point, ROWS))
            self.point = np.nan_to_num(np.asarray(mean, np.float32))
        self.half_sq_norm = np.zeros(self.n_sv)
        for first, block in function.blocks_about(self.point, ROWS):
            self.half_sq_norm[first : first + len(block)] = function.gamma * np.einsum("ij,ij->i", block, block)
        self.sq_radius = float(self.half_sq_norm.max(initial=0.0))

    def scaled(self, first: int) -> FloatArray:
        rows = self.function.rows(first, min(first + ROWS, self.n_sv))
        return (rows - self.point.astype(np.float64)) * self.function.scale

    def kernel(self, left: FloatArray, first: int, second: int) -> FloatArray:
        kernel: FloatArray = left @ self.scaled(second).T
        kernel -= self.half_sq_norm[first : first + ROWS, np.newaxis]
        kernel -= self.half_sq_norm[second : second + ROWS]
        return np.asarray(np.exp(np.minimum(kernel, 0.0, out=kernel), out=kernel))


def _faded(
    pool: ThreadPoolExecutor, n_sv: int, numbers: range, point_of: Callable[[int], ExpansionPoint]
) -> list[FloatArray]:
    """The coefficients at_i, (n_centers, n_sv), for each contraction below 1."""
    faded = [np.empty((len(numbers), n_sv)) for _ in CONTRACTIONS[1:]]

    def fill(c: int) -> None:
        with np.errstate(all="ignore"):
            about = point_of(numbers[c])
            function = about.function
            for first, block in function.blocks_about(about.center, ROWS):
                last = first + len(block)
                exponent = -function.gamma * np.einsum("ij,ij->i", block, block)
                for theta, coef in zip(CONTRACTIONS[1:], faded, strict=True):
                    coef[c, first:last] = function.coef[first:last] * np.exp((1.0 - theta) * exponent)

    for _ in mapped_in_order(pool, fill, range(len(numbers))):
        pass
    return faded


def _walk(
    pool: ThreadPoolExecutor, rows: _Rows, faded: list[FloatArray], progress: Callable[[float], None]
) -> tuple[float, float, FloatArray, list[FloatArray]]:
    """Add up the strips of rows, each from its diagonal block on, in an order that does not depend on the threads."""
    coef, moduli = rows.coef, np.abs(rows.coef)
    moduli_sq = 0.0
    values = np.zeros(rows.n_sv)
    energies = [np.zeros(len(coefs)) for coefs in faded]

    def strip(first: int) -> tuple[float, FloatArray, FloatArray, list[FloatArray]]:
        with np.errstate(all="ignore"):
            left = rows.scaled(first)
            last = first + len(left)
            own, others = np.zeros(len(left)), np.zeros(rows.n_sv - first)
            modulus = 0.0
            products = [np.zeros((len(coefs), len(left))) for coefs in faded]
            for second in range(first, rows.n_sv, ROWS):
                kernel = rows.kernel(left, first, second)
                block = slice(second, second + kernel.shape[1])
                twice = 1.0 if first == second else 2.0
                own += kernel @ coef[block]
                others[second - first : second - first + kernel.shape[1]] = coef[first:last] @ kernel
                modulus += twice * float(moduli[first:last] @ kernel @ moduli[block])
                for coefs, product in zip(faded, products, strict=True):
                    np.sqrt(kernel, out=kernel)
                    product += twice * (coefs[:, block] @ kernel.T)
            others[: len(left)] = 0.0
            sums = [
                np.einsum("ij,ij->i", coefs[:, first:last], product)
                for coefs, product in zip(faded, products, strict=True)
            ]
            return modulus, own, others, sums

    starts = range(0, rows.n_sv, ROWS)
    for first, (modulus, own, others, sums) in mapped_in_order(pool, strip, starts):
        moduli_sq += modulus
        values[first : first + len(own)] += own
        values[first:] += others
        for energy, part in zip(energies, sums, strict=True):
            energy += part
        progress(1.0 - (1.0 - (first + len(own)) / rows.n_sv) ** 2)
    total_sq = sum(float(coef[first : first + ROWS] @ values[first : first + ROWS]) for first in starts)
    return total_sq, moduli_sq, values, energies
