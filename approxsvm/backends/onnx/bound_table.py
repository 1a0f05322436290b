"""How far an expansion that a graph evaluates in float64 may be from the exact decision function: the derivation.

The graph says that a label is certain where its decision value is further from 0 than this bound. Notation and the
bound of what is cut off are those of expansion/certificate.py: s = 2 gamma ||z - center||^2, phi_k(s) = exp(-s/2)
sqrt(s^k / k!), m the degree, and u64 = 2^-53. Everything that float64 does is counted several times over, for a
runtime may sum in any order, may fuse products and sums, and may have an exp that is off by some units in the last
place.

1. **The row.** It is given in float32 or float64, and taken as exactly these numbers. Coordinates are u = scale (z -
   center): scale is a power of two, and one rounding moves each by at most u64 of itself. The computed u thus belongs
   to a row at most u64 ||z - center|| away, sqrt(s) u64 in the kernel's own units. What an input map's rounding moves
   a row by, and its distance from the slice of its center where there are slices, come on top. Two rows at the
   distance r have features in the kernel's space that differ by sqrt(2 - 2 exp(-gamma r^2)) <= min(sqrt(2), sqrt(2
   gamma) r), and their decision values differ by at most W times that. From here on the row is the one of the
   computed u.

2. **What is cut off**: by certificate.py, the sum over m < k < first of N_k phi_k(s) and the remainder T exp((1 /
   theta - 1) s / 2) sqrt(P(first, s / theta)), and never more than W sqrt(P(m + 1, s)), as the parts beyond degree m
   of a function of norm W. Both hold about any center, so that it does not matter which one a row is brought to.

3. **What is kept** is the sum of parts of degree k <= m. By Cauchy and Schwarz the moduli of the products of part k,
   coefficient times monomial, add up to at most N_k sqrt(s^k / k!) before the Gaussian factor: taking moduli leaves
   the norm of the coefficients and that of the tensor power of u what they are. So relative errors of products become
   multiples of N_k phi_k(s): 2^-24 for the narrowing of the coefficients to float32; a path of roundings of
   monomials, matrix product and sum (polynomial_graph.rounding_path); half of s times the relative error of s for the
   argument of exp, (n + 8) roundings; and what exp itself and the products behind it err by, for which there are
   2^-40. What underflows while coefficients are narrowed is at most 2^-149 output_scale for each, and all monomials
   times the Gaussian factor add up to at most 100 (1 + sqrt(n))^6: exp(-t^2/2) (1 + t)^6 is below 100.

4. **Coefficients** carry coefficient_error from their own summation, the model value_error from its reader, and
   adding the intercept rounds once: 2^-40 of |intercept| + W is a thousand times as much.

5. Beyond s = 174.66 the value is the intercept alone (models/FORMAT.md): the kept parts are then an error in whole.
   Beyond s = 256 nothing is known but |f - intercept| <= W; so it is for rows whose s overflows.

As functions of s all of this is tabulated, for s costs a graph no more than a logarithm: 32 cells per octave from
2^-12 to 2^8, one below and one above. A cell holds the largest value that each function takes on it, widened by 2^-16
to either side, which is far more than s and its logarithm err by. phi_k rises up to s = k and falls behind; the other
functions rise. Norms are weights: a bound is a sum of few products of numbers that are not negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.functions_of_s import ROUNDED_UP, largest_phi, remainder_factor
from approxsvm.ir.constants import BARE_FROM_S, UNIT32, UNIT64
from approxsvm.ir.kernel_model import FloatArray

CELLS_PER_OCTAVE: Final = 32
FIRST_OCTAVE, LAST_OCTAVE = -12, 8
N_CELLS: Final = CELLS_PER_OCTAVE * (LAST_OCTAVE - FIRST_OCTAVE) + 2
END: Final = 2.0**LAST_OCTAVE
# Half of s beyond which a value is the intercept alone.
LAST_HALF_S: Final = 87.33
_WIDENED: Final = 2.0**-16
_EXP_AND_PRODUCTS: Final = 2.0**-40


@dataclass(frozen=True, eq=False)
class BoundTable:
    """Functions of s by cells."""

    # (N_CELLS, n_columns): per unit of N_k, for each degree that remainders do not cover; of T, for each theta; of W
    # where T's factor would overflow; and of W, for everything beyond the degree
    functions: npt.NDArray[np.float32]
    degree: int  # where the expansions are cut off
    first_remainder_degree: int  # the lowest degree that remainders cover
    thetas: tuple[float, ...]  # the contractions that the table has

    @property
    def n_columns(self) -> int:
        """Functions."""
        return int(self.functions.shape[1])


def bound_table(
    degree: int,  # where the expansions are cut off
    first_remainder_degree: int,  # the lowest degree that remainders cover
    thetas: tuple[float, ...],  # contractions that there are
    path: float,  # of roundings of a product, and of s, whichever is longer
) -> BoundTable:
    """Tabulate."""
    low, high = _cells()
    columns = [_of_norm(k, degree, path, low, high) for k in range(first_remainder_degree)]
    overflows = np.zeros(N_CELLS)
    for theta in thetas:
        factor = remainder_factor(first_remainder_degree, theta, high)
        large = np.isinf(factor)
        overflows[large] = 1.0
        columns.append(np.where(large, 0.0, factor))
    columns += [overflows, remainder_factor(degree + 1, 1.0, high)]
    functions = np.stack(columns, axis=1)
    functions[-1] = 0.0
    functions[-1, -2:] = 1.0
    narrowed = (functions * (1.0 + 2.0**-22) + 2.0**-125).astype(np.float32)
    return BoundTable(narrowed, degree, first_remainder_degree, thetas)


def fixed_error(
    coefficient_error: FloatArray,
    intercept: FloatArray,
    total: FloatArray,
    value_error: FloatArray,
    output_scale: FloatArray,
    n_varying: int,
) -> FloatArray:
    """What does not depend on the row; arrays of one shape, of one number for each expansion."""
    with np.errstate(under="ignore"):
        underflow = output_scale * 2.0**-149 * 100.0 * (1.0 + math.sqrt(n_varying)) ** 6
    rounded = 2.0**-40 * (np.abs(intercept) + total)
    result: FloatArray = (1.001 * coefficient_error + value_error + rounded + underflow) * ROUNDED_UP + 2.0**-1000
    return result


def weights_of_expansion(
    table: BoundTable, norms: FloatArray, remainder: float, theta: float, total: float
) -> FloatArray:
    """Weights of the table's columns, shape (2, n_columns): for what is kept, and for what is cut off."""
    weights = np.zeros((2, table.n_columns))
    kept, first = table.degree + 1, table.first_remainder_degree
    weights[0, :kept] = norms[:kept]
    weights[1, kept:first] = norms[kept:first]
    weights[1, first + table.thetas.index(theta)] = remainder
    weights[1, -2] = total
    return weights


def _cells() -> tuple[FloatArray, FloatArray]:
    """Least and greatest s of each cell, widened; the last one's end is not used."""
    ends = 2.0 ** np.linspace(FIRST_OCTAVE, LAST_OCTAVE, N_CELLS - 1)
    low = np.concatenate([[0.0], ends * (1.0 - _WIDENED)])
    high = np.concatenate([ends * (1.0 + _WIDENED), [4.0 * END]])
    return low, high


def _of_norm(k: int, degree: int, path: float, low: FloatArray, high: FloatArray) -> FloatArray:
    """Error per unit of N_k."""
    phi = largest_phi(k, low, high)
    if k > degree:
        return phi
    relative = 2.0 * UNIT64 * path * (1.0 + 0.5 * np.minimum(high, 2.0 * END)) + UNIT32 + _EXP_AND_PRODUCTS
    error: FloatArray = 1.01 * np.expm1(np.minimum(relative, 1.0)) * phi
    return error + np.where(high > BARE_FROM_S, phi, 0.0)
