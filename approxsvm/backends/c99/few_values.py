"""Gaussian models whose features take few values on a common grid: integers replace floats and exp.

Support vector i is origin + step k_i, with integers k_ij such that 0 <= k_ij - lowest_j < 2^b. These differences are
packed into words, with b = 1, 2 or 4 bits each. A row z is rounded to q, the nearest of the grid points that b bits can
represent. The squared distance between q and k_i, measured in steps, is an integer h. The header reads exp(-g h), where
g = gamma step^2, from a table, which ends where exp(-g h) drops below 2^-60. In units of a step,

    |f(z) - f(q)| <= A1 sqrt(2 g / e) (||z - q|| + ||z - source's row||),

and the distances of support vectors from their grid points, due to float64 rounding, contribute in the same way. For
rows on the grid, ||z - q|| is 0. The grid point of a row and the distance ||z - q|| are computed in float64, for
coordinates of at most 2^50 steps, with an error of at most

    sqrt(d) 2^-50 (|origin| / step + largest |k| + 1).

For a row far from the grid, the bound on float32 kernels may be smaller; the header then evaluates these kernels. With
y_i = k_i - lowest, exact in float32, and r, the distance of z from lowest in steps, the result is a sum of Gaussians as
in sums.py with theta = 2 g, and the same majorant(r) bounds its error. The factor 1.01 in the majorant also covers the
float64 error 2^-50 r.

Lookup entries and coefficients are rounded to float32, with a relative error of at most u = 2^-24, or an error of at
most 2^-120 on underflow. Products and sums are computed in float64, and an entry's exponent has an error of at most 4
u64 g h <= 2^-40. Hence the error of a value at q is at most

    A1 (2.02 u + 2^-39 + (n + 8) u64 + 2^-60),

where A1 = sum |a_i|, with each |a_i| increased by 2^-120.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99 import source
from approxsvm.backends.c99.answers import Macros
from approxsvm.backends.c99.device.ops import float32_above
from approxsvm.backends.c99.device.router import smallest
from approxsvm.backends.c99.device.rows import DeviceRows
from approxsvm.backends.c99.sums import LARGEST, _float32, _gaussian_rounding, _of_kernels
from approxsvm.backends.sum_bounds import fixed_errors
from approxsvm.ir.constants import UNIT32, UNIT64, gaussian_slope
from approxsvm.ir.kernel_model import FloatArray

_WORD_BITS: Final = 32
_MOST_BITS: Final = 4
_MOST_KERNELS: Final = 4_096
_MOST_VALUES: Final = 256
_MOST_OFF: Final = 1e-9 * 255.0  # maximum distance of a support vector from its grid point, in steps
_LAST_EXPONENT: Final = 42.0  # exp(-42) < 2^-60


@dataclass(frozen=True, eq=False)
class Grid:
    """Support vectors as points of a grid, with integer coordinates."""

    origin: float
    step: float
    lowest: npt.NDArray[np.int64]  # shape (n_features,)
    codes: npt.NDArray[np.int64]  # shape (n_sv, n_features); numbers of steps above `lowest`
    bits: int  # number of bits per code
    off: float  # maximum distance of a support vector from its grid point, in steps


def grid_of(vectors: FloatArray) -> Grid | None:
    """Return the support vectors' grid; None if there is no grid or the features take too many values."""
    values = np.unique(vectors)
    origin, step = _native.common_grid(values) if len(values) <= _MOST_VALUES else (0.0, 0.0)
    if step == 0.0:
        return None
    steps = np.rint((vectors - origin) / step)
    off = float(np.sqrt(np.square((vectors - origin) / step - steps).sum(axis=1)).max())
    if off > _MOST_OFF:
        return None
    lowest, highest = steps.min(axis=0), steps.max(axis=0)
    bits = next((b for b in (1, 2, _MOST_BITS) if (highest - lowest < 2**b).all()), 0)
    if not bits:
        return None
    zero = np.rint(-origin / step)  # rows may contain 0, so include 0 in the range if possible
    lowest = np.where((lowest > zero) & (highest - zero < 2**bits), zero, lowest)
    return Grid(origin, step, lowest.astype(np.int64), (steps - lowest).astype(np.int64), bits, off)


def packed(codes: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.uint32]:
    """Pack codes into words, with the first feature in the lowest bits."""
    per_word = _WORD_BITS // bits
    n_words = -(-codes.shape[1] // per_word)
    room = np.zeros((len(codes), n_words * per_word), np.uint64)
    room[:, : codes.shape[1]] = codes
    shifts = np.arange(per_word, dtype=np.uint64) * np.uint64(bits)
    words: npt.NDArray[np.uint64] = (room.reshape(len(codes), n_words, per_word) << shifts).sum(axis=2, dtype=np.uint64)
    return words.astype(np.uint32)


class FewValues:
    """Decision values in a header for a model whose features take few values; counterpart of `SumFunction`."""

    def __init__(self, artifact: Artifact, rows: DeviceRows, grid: Grid) -> None:
        self.artifact, self.rows, self.grid = artifact, rows, grid
        self.terms = _of_kernels(artifact, grid.codes.astype(np.float64))
        sums, n = self.terms.moduli.sum(axis=1), self.terms.n
        g = float(artifact.header["gamma"]) * grid.step * grid.step
        self.slope = gaussian_slope(g) * sums
        largest = abs(grid.origin) / grid.step + float(np.abs(grid.lowest).max()) + 2.0**grid.bits + 1.0
        moved = grid.off * 1.0001 + math.sqrt(artifact.n_features) * 2.0**-50 * largest
        own = 2.02 * UNIT32 + 2.0**-39 + (n + 8) * UNIT64 + 2.0**-60
        fixed = fixed_errors(artifact, self.terms.arithmetic())
        self.majorant = own * sums + self.slope * moved + fixed
        self.beside = _gaussian_rounding(self.terms, 2.0 * g)
        self.beside[:, 0] += self.slope * moved + fixed
        self.most = 1.01 * sums + fixed
        n_kernels = min(_MOST_KERNELS, artifact.n_features * (2**grid.bits - 1) ** 2 + 1)
        self.kernels = np.exp(-g * np.arange(n_kernels))
        self.kernels = self.kernels[g * np.arange(n_kernels) <= _LAST_EXPONENT]
        self.words = packed(grid.codes, grid.bits)
        self.strange = f"a row {rows.refused}, or 2^50 steps away"  # rows for which no value is computed
        self.what = f"{n:,} Gaussians on a grid, {grid.bits} bits a feature"
        self.stack_bytes = 4 * (self.words.shape[1] + artifact.n_features) + rows.stack_bytes
        self.multiply_adds = artifact.n_features + n * int(self.terms.groups[0].shape[1])

    @classmethod
    def of(cls, artifact: Artifact, rows: DeviceRows) -> "FewValues | None":
        """Return the function, or None if it cannot represent the model or its rows."""
        if artifact.kernel != "gaussian" or rows.codes:
            return None
        grid = grid_of(artifact.support_vectors())
        if grid is None or not 2.0**-100 < float(artifact.header["gamma"]) * grid.step * grid.step < 2.0**60:
            return None
        found = cls(artifact, rows, grid)
        # Kernel values at distances beyond the end of the table are negligible.
        is_whole = len(found.kernels) < _MOST_KERNELS or artifact.n_features * (2**grid.bits - 1) ** 2 < _MOST_KERNELS
        fits = (found.most + np.abs(artifact.decision_numbers()["intercept"]) < LARGEST).all()
        return found if is_whole and fits and (found.slope + found.beside.T < LARGEST).all() else None

    @property
    def macros(self) -> Macros:
        """Macros for sizes and scalars, by name (cpp/include/approxsvm/exported/few_values.h)."""
        bits, step = self.grid.bits, self.grid.step
        return {
            "n_terms_": self.terms.n,
            "n_weights_": self.terms.groups[0].shape[1],
            "n_words_": self.words.shape[1],
            "n_kernels_": len(self.kernels),
            "origin_": source.literal(self.grid.origin),
            "minus_g_": source.literal(np.float32(-float(self.artifact.header["gamma"]) * step**2)),
            "per_step_": source.literal(1.0 / step),
            "step_bits_": bits,
            "largest_step_": 2**bits - 1,
            "per_word_": _WORD_BITS // bits,
        }

    def arrays(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Yield the name and the values of each array."""
        weights, ends, places = self.terms.groups
        yield "lowest_", self.grid.lowest.astype(np.int8 if np.abs(self.grid.lowest).max() < 128 else np.int16)
        yield "words_", self.words
        yield "kernels_", np.where(self.kernels > 2.0**-120, self.kernels, 0.0).astype(np.float32)
        yield "weights_", _float32(weights, "coefficients")
        yield "ends_", smallest(ends)
        yield "places_", smallest(places)
        yield "intercepts_", self.artifact.decision_numbers()["intercept"].copy()
        yield "majorants_", float32_above(self.majorant)
        yield "slopes_", float32_above(self.slope)
        yield "besides_", float32_above(self.beside)
        yield "most_", float32_above(self.most)
