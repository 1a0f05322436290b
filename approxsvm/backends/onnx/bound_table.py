"""Derivation of the error bound for an expansion that a graph evaluates in float64, relative to the exact function.

The graph reports a label as certain if the decision value is further from 0 than this bound. The notation and the bound
on the truncation error are the same as in expansion/certificate.py: s = 2 gamma ||z - center||^2, phi_k(s) = exp(-s/2)
sqrt(s^k / k!), m the degree, and u64 = 2^-53. Every float64 rounding is counted several times, because a runtime may
sum in any order and may fuse products and sums, and its exp may have an error of a few units in the last place.

1. **Row.** The graph treats its float32 or float64 inputs as exact. Coordinates are u = scale (z - center), where scale
   is a power of two, and one rounding changes each coordinate by a relative error of at most u64. So the computed u is
   the exact u of another row, at a distance of at most u64 ||z - center||, which is sqrt(s) u64 in the kernel's units.
   The input map's rounding increases this distance, as does the row's distance from the center's slice if the model has
   slices. In the kernel's feature space, the distance between two rows at a distance of r is sqrt(2 - 2 exp(-gamma
   r^2)), at most min(sqrt(2), sqrt(2 gamma) r), and their decision values differ by at most W times this distance. The
   items below refer to this other row.

2. **Truncation error.** By certificate.py, one bound is the sum over m < k < first of N_k phi_k(s) plus the remainder T
   exp((1 / theta - 1) s / 2) sqrt(P(first, s / theta)). Another is W sqrt(P(m + 1, s)), which bounds the terms of
   degree above m of any function of norm W. The smaller of the two is used. Both hold for any center, so they are valid
   whichever center a row is assigned to.

3. **Kept degrees** k <= m. By the Cauchy-Schwarz inequality, the absolute values of all products of a coefficient and a
   monomial of degree k sum to at most N_k sqrt(s^k / k!) before the Gaussian factor, because taking absolute values
   changes neither the norm of the coefficients nor the norm of the tensor power of u. Relative errors of products thus
   become multiples of N_k phi_k(s):

   * 2^-24 for narrowing the coefficients to float32;
   * the roundings of the monomials, the matrix product and the sum (polynomial_graph.rounding_path);
   * half of s times the relative error of s, (n + 8) roundings, for the argument of exp;
   * 2^-40 for exp itself and the products after it.

   Underflow in narrowing changes each coefficient by at most 2^-149 output_scale, and the sum of all monomials times
   the Gaussian factor is at most 100 (1 + sqrt(n))^6, because exp(-t^2/2) (1 + t)^6 is below 100.

4. **Fixed errors.** Coefficients have the summation error coefficient_error, and a frontend adds its value_error.
   Adding the intercept rounds once; the bound includes 2^-40 (|intercept| + W), thousands of times the rounding error.

5. **Distant rows.** Beyond s = 174.66 the value is the intercept alone (models/FORMAT.md), so all kept degrees count as
   errors. Beyond s = 256, and for rows for which s overflows, the only bound is |f - intercept| <= W.

All these functions of s are tabulated, so a graph needs only one logarithm, to find the cell of s. There are 32 cells
per octave from 2^-12 to 2^8, one cell below and one above. The table contains the maximum of each function over each
cell, widened by 2^-16 at both ends; the errors of s and of the logarithm are far smaller. phi_k increases up to s = k
and then decreases; the other functions increase. A bound is a sum of a few nonnegative products, each of a tabulated
function and a norm.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.expansion.gram import LAST_DEGREE
from approxsvm.ir.constants import CONTRACTIONS, ROUNDED_UP, UNIT32, UNIT64
from approxsvm.ir.kernel_model import FloatArray

CELLS_PER_OCTAVE: Final = 32
FIRST_OCTAVE, LAST_OCTAVE = -12, 8
N_CELLS: Final = CELLS_PER_OCTAVE * (LAST_OCTAVE - FIRST_OCTAVE) + 2
END: Final = 2.0**LAST_OCTAVE
# Half of the smallest s beyond which a value is the intercept alone.
LAST_HALF_S: Final = 87.33
_WIDENED: Final = 2.0**-16
_EXP_AND_PRODUCTS: Final = 2.0**-40
_ROUNDING: Final = 2.0 * UNIT64


@dataclass(frozen=True, eq=False)
class BoundTable:
    """Functions of s, tabulated over cells."""

    # Shape (N_CELLS, n_columns). The columns are the factors of N_k for each degree k below first_remainder_degree, of
    # T for each theta, of W (used where T's factor would overflow), and of W in the bound on all truncated degrees
    functions: npt.NDArray[np.float32]
    degree: int  # highest degree of the expansions
    first_remainder_degree: int  # lowest degree that remainders cover
    thetas: tuple[float, ...]  # contractions theta of the expansions

    @property
    def n_columns(self) -> int:
        """Number of tabulated functions."""
        return int(self.functions.shape[1])


def bound_table(
    degree: int,  # highest degree of the expansions
    first_remainder_degree: int,  # lowest degree that remainders cover
    thetas: tuple[float, ...],  # contractions of the expansions
    path: float,  # number of roundings in a product or in s, whichever is larger
) -> BoundTable:
    """Build the table of the functions of s."""
    ends = _cells()
    in_float64 = (UNIT32 + _EXP_AND_PRODUCTS) / _ROUNDING + path  # includes roundings of coefficients, exp and products
    arithmetic = _native.ExpansionArithmetic(_ROUNDING, in_float64, 0.5 * path)
    factors = _native.bound_factors(ends, degree, first_remainder_degree, arithmetic)
    remainders = factors[[LAST_DEGREE + 1 + CONTRACTIONS.index(theta) for theta in thetas]]
    large = np.isinf(remainders)
    of_total = large.any(axis=0), _native.remainder_factor(degree + 1, 1.0, ends[1])
    functions = np.vstack([factors[:first_remainder_degree], np.where(large, 0.0, remainders), *of_total]).T
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
    """Return the part of the error that does not depend on the row; the arrays have one element per expansion."""
    with np.errstate(under="ignore"):
        underflow = output_scale * 2.0**-149 * 100.0 * (1.0 + math.sqrt(n_varying)) ** 6
    rounded = 2.0**-40 * (np.abs(intercept) + total)
    result: FloatArray = (1.001 * coefficient_error + value_error + rounded + underflow) * ROUNDED_UP + 2.0**-1000
    return result


def weights_of_expansion(
    table: BoundTable, norms: FloatArray, remainder: float, theta: float, total: float
) -> FloatArray:
    """Return weights of the table's columns, shape (2, n_columns): row 0 for kept degrees, row 1 for truncated ones."""
    weights = np.zeros((2, table.n_columns))
    kept, first = table.degree + 1, table.first_remainder_degree
    weights[0, :kept] = norms[:kept]
    weights[1, kept:first] = norms[kept:first]
    weights[1, first + table.thetas.index(theta)] = remainder
    weights[1, -2] = total
    return weights


def _cells() -> FloatArray:
    """Return the smallest and largest s of each cell after widening; the last cell's upper endpoint is not used."""
    ends = 2.0 ** np.linspace(FIRST_OCTAVE, LAST_OCTAVE, N_CELLS - 1)
    return np.array([[0.0, *ends * (1.0 - _WIDENED)], [*ends * (1.0 + _WIDENED), 4.0 * END]])
