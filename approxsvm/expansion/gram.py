"""Norms of an expansion's parts, from powers of the Gram matrix computed block by block."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.expansion.decision_function import DecisionFunction
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.schema import LAST_NORM_DEGREE

# Highest degree with a separate norm.
LAST_DEGREE: Final = LAST_NORM_DEGREE
# Ratio between the weights of successive degrees in G, which is the weighted sum of the G_k with k >= 3.
DIRECTION_CONTRACTION: Final = 0.5
# Weight in G of the power k - 1 of the Gram matrix, for each k.
_SERIES: Final = np.array(
    [0.0, 0.0, *(DIRECTION_CONTRACTION ** (k - 3) / math.factorial(k) for k in range(3, LAST_DEGREE + 1)), 0.0]
)

# Name of a matrix over pairs of support vectors: the degree k for the power k - 1 of the Gram matrix, or "direction"
# for the weighted sum of such powers.
_Matrix: TypeAlias = int | Literal["direction"]

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class InOrder(Protocol):
    """Protocol for functions that apply a function to each argument, in parallel or not, and yield results in order."""

    def __call__(
        self, function: Callable[[Argument], Result], arguments: Iterable[Argument], /
    ) -> Iterable[tuple[Argument, Result]]:
        """Yield each argument together with its result."""


def one_by_one(
    function: Callable[[Argument], Result], arguments: Iterable[Argument]
) -> Iterable[tuple[Argument, Result]]:
    """Apply a function to one argument after another, without threads."""
    return ((argument, function(argument)) for argument in arguments)


# Number of multiply-adds at or above which only one pass over the Gram matrix is made.
_MANY_PRODUCTS: Final = 4e11


def is_huge(n_sv: int, n_features: int) -> bool:
    """Return whether the model is so large that only one pass over the Gram matrix is affordable."""
    return float(n_sv) ** 2 * n_features >= _MANY_PRODUCTS


def _block_side(n_features: int) -> int:
    """Return the side length of the square blocks of the Gram matrix, small enough for a cache."""
    return 1024 if n_features >= 1024 else 512 if n_features >= 64 else 256  # larger products are faster for long rows


@dataclass(frozen=True, eq=False)
class GramSums:
    """Double sums over the support vectors about one center, not rounded up."""

    degree_sq: FloatArray  # (9,): N_k^2
    spectra: dict[int, FloatArray]  # G_k of the degrees whose norms are sharpened
    direction: FloatArray | None  # G = sum_{k=3}^8 2^(3-k) G_k
    kernel_sq: float  # sum_ij a_i a_j K_ij; this sum and the next are NaN unless requested
    kernel_moduli_sq: float  # sum_ij |a_i a_j| K_ij
    half_sq_radius: float  # gamma max ||x_i - center||^2


def sum_path(n_sv: int, n_features: int) -> int:
    """Return the summation depth of a double sum over the Gram matrix: within two blocks, then over all block pairs."""
    side = _block_side(n_features)
    n_blocks = -(-n_sv // side)
    return 2 * min(n_sv, side) + n_blocks * (n_blocks + 1) // 2


def gram_sums(
    function: DecisionFunction,
    center: npt.NDArray[np.float32],
    sharpened: tuple[int, ...],
    directed: bool,
    in_order: InOrder,
    progress: Callable[[float], None],
    with_kernel: bool = False,
) -> GramSums:
    """Compute the sums in one pass over the Gram matrix; the results do not depend on `in_order`.

    The matrices G_k are computed for the degrees in `sharpened`; `directed` requests G, and `with_kernel` requests the
    sums over the kernel matrix. `progress` is called with the completed fraction of the work.
    """
    n_sv, d = function.n_sv, function.n_features
    degree_sq, kernel_sq, kernel_moduli_sq, radius = np.zeros(LAST_DEGREE + 1), 0.0, 0.0, 0.0
    wanted: tuple[_Matrix, ...] = (*sharpened, "direction") if directed else sharpened
    matrices: dict[_Matrix, FloatArray] = {name: np.zeros((d, d)) for name in wanted}
    point = center.astype(np.float64)

    side = _block_side(d)
    workspace = Workspace()

    def block(first: int) -> _Block:
        rows = (function.rows(first, min(first + side, n_sv)) - point) * function.scale
        return _Block.of(rows, function.coef[first : first + len(rows)])

    def pairs() -> Iterator[tuple[_Block, int, int]]:
        """Yield the pairs of blocks strip by strip; each strip begins with its diagonal block."""
        for first in range(0, n_sv, side):
            left = block(first)
            for second in range(first, n_sv, side):
                yield left, first, second

    def pair_of(of: tuple[_Block, int, int]) -> _Pair:
        return _pair(of[0], block(of[2]), wanted, with_kernel, workspace)

    n_blocks = -(-n_sv // side)
    n_pairs = n_blocks * (n_blocks + 1) // 2
    strip: dict[_Matrix, FloatArray] = {}
    for n_done, ((left, first, second), pair) in enumerate(in_order(pair_of, pairs()), 1):
        if first == second:
            radius = max(radius, float(left.half_sq_norm.max(initial=0.0)))
            strip = {name: np.zeros((len(left.rows), d)) for name in wanted}
        twice = 1.0 if first == second else 2.0
        degree_sq += twice * pair.degree_sq
        kernel_sq += twice * pair.kernel_sq
        kernel_moduli_sq += twice * pair.kernel_moduli_sq
        for name, product in pair.products.items():
            product *= twice
            strip[name] += product
        if second + side >= n_sv:
            for name, product in strip.items():
                matrices[name] += left.weighted.T @ product
        progress(n_done / n_pairs)
    factorials = np.array([math.factorial(k) for k in range(LAST_DEGREE + 1)], float)
    spectra = {k: (0.5 / factorials[k]) * (matrices[k] + matrices[k].T) for k in sharpened}
    direction = 0.5 * (matrices["direction"] + matrices["direction"].T) if directed else None
    return GramSums(degree_sq / factorials, spectra, direction, kernel_sq, kernel_moduli_sq, radius)


@dataclass
class _Block:
    """Consecutive support vectors, shifted and scaled, with their coefficients and weights."""

    rows: FloatArray
    coef: FloatArray
    half_sq_norm: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, coef: FloatArray) -> _Block:
        half_sq_norm = 0.5 * np.einsum("ij,ij->i", rows, rows)
        return cls(rows, coef, half_sq_norm, coef * np.exp(-half_sq_norm))

    @property
    def weighted(self) -> FloatArray:
        return self.rows * self.weight[:, np.newaxis]


@dataclass
class _Pair:
    degree_sq: FloatArray
    kernel_sq: float
    kernel_moduli_sq: float
    products: dict[_Matrix, FloatArray]  # product of each matrix with the second block's weighted rows


class Workspace(threading.local):
    """Block-sized matrices that each thread allocates once, because allocation costs more than the arithmetic."""

    def __init__(self) -> None:
        self._numbers: dict[str | int, npt.NDArray[Any]] = {}

    def matrix(self, name: str | int, n_rows: int, n_columns: int, dtype: npt.DTypeLike = np.float64) -> Any:
        """Return the matrix with a given name, whose values are uninitialized."""
        size = n_rows * n_columns
        if name not in self._numbers or self._numbers[name].size < size:
            self._numbers[name] = np.empty(size, dtype)
        return self._numbers[name][:size].reshape(n_rows, n_columns)


def _pair(left: _Block, right: _Block, wanted: tuple[_Matrix, ...], with_kernel: bool, workspace: Workspace) -> _Pair:
    """Compute the terms that one block of the Gram matrix contributes to the sums."""

    def matrix(name: str | int) -> Any:
        return workspace.matrix(name, len(left.rows), len(right.rows))

    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        gram = np.matmul(left.rows, right.rows.T, out=matrix("gram"))
        of_pairs = {name: matrix(name) for name in wanted}
        degree_sq = _native.gram_powers(
            gram,
            left.weight,
            right.weight,
            {k - 1: of_pairs[k] for k in wanted if k != "direction"},  # G_k is computed from the power k - 1
            _SERIES,
            of_pairs.get("direction"),
        )
        kernel_sq = kernel_moduli_sq = math.nan
        if with_kernel:
            gram -= left.half_sq_norm[:, np.newaxis]
            gram -= right.half_sq_norm
            kernel = np.exp(np.minimum(gram, 0.0, out=gram), out=gram)
            kernel_sq = float(left.coef @ (kernel @ right.coef))
            kernel_moduli_sq = float(np.abs(left.coef) @ (kernel @ np.abs(right.coef)))
        weighted = right.weighted
        return _Pair(
            degree_sq, kernel_sq, kernel_moduli_sq, {name: of_pair @ weighted for name, of_pair in of_pairs.items()}
        )
