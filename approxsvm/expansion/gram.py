"""Norms of the parts of an expansion from powers of the Gram matrix, which is never held whole."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.expansion.decision_function import DecisionFunction
from approxsvm.model.kernel_model import FloatArray

# Degrees up to this have norms of their own.
LAST_DEGREE: Final = 8
# In G, the sum of the G_k of degrees 3 and more, each degree counts this much of the one before.
DIRECTION_CONTRACTION: Final = 0.5
# What power k - 1 of the Gram matrix counts in G.
_SERIES: Final = np.array(
    [0.0, 0.0, *(DIRECTION_CONTRACTION ** (k - 3) / math.factorial(k) for k in range(3, LAST_DEGREE + 1)), 0.0]
)

Result = TypeVar("Result")
InOrder = Callable[[Callable[[int], Result], Sequence[int]], Iterable[tuple[int, Result]]]


def _block_side(n_features: int) -> int:
    """Side of the square blocks of the Gram matrix: those of one pair of blocks stay in a cache."""
    return 512 if n_features >= 64 else 256  # wide rows are worth larger products of matrices


def sum_path(n_sv: int, n_features: int) -> int:
    """Longest path of additions of a double sum over the Gram matrix: two blocks, then all pairs of blocks."""
    side = _block_side(n_features)
    n_blocks = -(-n_sv // side)
    return 2 * min(n_sv, side) + n_blocks * (n_blocks + 1) // 2


def gram_norms(
    function: DecisionFunction,
    center: npt.NDArray[np.float32],
    sharpened: tuple[int, ...],
    directed: bool,
    in_order: InOrder[_Pair],
    progress: Callable[[float], None],
) -> tuple[FloatArray, dict[int, FloatArray], FloatArray | None]:
    """N_k^2 for k = 0 ... 8, G_k for the degrees to be sharpened, and G = sum_{k=3}^8 2^(3-k) G_k.

    Parameters
    ----------
    function : DecisionFunction
    center : ndarray of shape (n_features,), float32
    sharpened : tuple of int
    directed : bool
        Whether G is wanted; None takes its place otherwise.
    in_order : callable
        Maps a function over arguments, side by side or not, with results in order: the sums do not depend on it.
    progress : callable
        Told the share of the work that is done.
    """
    n_sv, d = function.n_sv, function.n_features
    degree_sq = np.zeros(LAST_DEGREE + 1)
    spectra = {k: np.zeros((d, d)) for k in sharpened}
    direction = np.zeros((d, d)) if directed else None
    point = center.astype(np.float64)

    side = _block_side(d)
    workspace = _Workspace()

    def block(first: int) -> _Block:
        rows = (function.rows(first, min(first + side, n_sv)) - point) * function.scale
        return _Block.of(rows, function.coef[first : first + len(rows)])

    starts = range(0, n_sv, side)
    for step, first in enumerate(starts):
        left = block(first)

        def pair_with(second: int, left: _Block = left) -> _Pair:
            return _pair(left, block(second), sharpened, directed, workspace)

        for second, pair in in_order(pair_with, range(first, n_sv, side)):
            twice = 1.0 if first == second else 2.0
            degree_sq += twice * pair.degree_sq
            for k, part in pair.spectra.items():
                spectra[k] += twice * part
            if direction is not None and pair.direction is not None:
                direction += twice * pair.direction
        progress(1.0 - (1.0 - (step + 1) / len(starts)) ** 2)
    factorials = np.array([math.factorial(k) for k in range(LAST_DEGREE + 1)], float)
    spectra = {k: (0.5 / factorials[k]) * (part + part.T) for k, part in spectra.items()}
    return degree_sq / factorials, spectra, None if direction is None else 0.5 * (direction + direction.T)


@dataclass
class _Block:
    """Consecutive support vectors, shifted and scaled, and their weights."""

    rows: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, coef: FloatArray) -> _Block:
        return cls(rows, coef * np.exp(-0.5 * np.einsum("ij,ij->i", rows, rows)))


@dataclass
class _Pair:
    degree_sq: FloatArray
    spectra: dict[int, FloatArray]
    direction: FloatArray | None


class _Workspace(threading.local):
    """Matrices of the size of a block that each thread makes once: fresh memory costs more than what is put there."""

    def __init__(self) -> None:
        self._numbers: dict[str | int, FloatArray] = {}

    def matrix(self, name: str | int, n_rows: int, n_columns: int) -> FloatArray:
        """The matrix of that name, whatever it holds."""
        size = n_rows * n_columns
        if name not in self._numbers or self._numbers[name].size < size:
            self._numbers[name] = np.empty(size)
        return self._numbers[name][:size].reshape(n_rows, n_columns)


def _pair(left: _Block, right: _Block, sharpened: tuple[int, ...], directed: bool, workspace: _Workspace) -> _Pair:
    """What one block of the Gram matrix contributes."""

    def matrix(name: str | int) -> FloatArray:
        return workspace.matrix(name, len(left.rows), len(right.rows))

    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        gram = np.matmul(left.rows, right.rows.T, out=matrix("gram"))
        powers = {k: matrix(k) for k in sharpened}
        sum_of_powers = matrix("direction") if directed else None
        degree_sq = _native.gram_powers(
            gram,
            left.weight,
            right.weight,
            {k - 1: power for k, power in powers.items()},  # G_k is made of powers k - 1
            _SERIES,
            sum_of_powers,
        )
        weighted = [side.rows * side.weight[:, np.newaxis] for side in (left, right)]

        def in_features(of_gram: FloatArray) -> FloatArray:
            return weighted[0].T @ (of_gram @ weighted[1])

        spectra = {k: in_features(power) for k, power in powers.items()}
        return _Pair(degree_sq, spectra, None if sum_of_powers is None else in_features(sum_of_powers))
