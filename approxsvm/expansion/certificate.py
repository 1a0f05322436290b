"""Error bounds of expansions, derived from the norms of their parts.

The decision function without its intercept lies in the kernel's reproducing kernel Hilbert space. Its expansion about a
center consists of orthogonal parts of degree k = 0, 1, ... (xt_i = x_i - center, w_i = a_i exp(-gamma ||xt_i||^2)):

    N_k^2 = (2 gamma)^k / k! sum_ij w_i w_j (xt_i.xt_j)^k,        sum_k N_k^2 = sum_ij a_i a_j K(x_i, x_j) = W^2.

The absolute value of the part of degree k at u = z - center is at most N_k phi_k(s), where s = 2 gamma ||u||^2 and
phi_k(s) = exp(-s/2) sqrt(s^k / k!) (Cauchy-Schwarz in the k-fold tensor product). Because phi_k^2 is a Poisson
probability, the sum of the parts beyond degree m is at most T sqrt(P(m+1, s)), where T^2 = W^2 - sum_{k<=m} N_k^2 and P
is the regularized incomplete gamma function. None of these quantities can overflow. For a single degree, a smaller
value can replace N_k. With

    G_k = (2 gamma)^k / k! sum_ij w_i w_j (xt_i.xt_j)^(k-1) xt_i xt_j',        trace G_k = N_k^2,

N_k may be replaced by the square root of the largest eigenvalue of G_k. A still smaller bound replaces N_k sqrt(s) by
the length of v = sqrt(2 gamma) u in the metric of G_k, sqrt(v' G_k v). This bound depends on the row's direction and
requires one more quadratic form. A single form serves all degrees k = 3, ..., m that have norms: with G = sum_k 2^(3-k)
G_k, Cauchy-Schwarz gives

    sum_k |part k| <= sum_k exp(-s/2) sqrt(s^(k-1) / k!) sqrt(v' G_k v)
                   <= exp(-s/2) sqrt(v' G v) sqrt(sum_k 2^(k-3) s^(k-1) / k!).

The second inequality is nearly tight if the absolute values of the parts halve from degree to degree. This is roughly
the case at the distance from the center at which the first rows are left undecided. The predictor's table uses the
eigenvalues; at degree 2, rows that the table leaves undecided are tested with the form. For a huge model with many
features, a single pass over the Gram matrix computes G but no G_k (stack.py). All G_k are positive semi-definite, so G
>= 2^(3-k) G_k, and 2^(k-3) times the largest eigenvalue of G bounds the largest eigenvalue of G_k.

Support vectors far from the center contribute mostly to parts of high degree. Near the center, these parts are small,
but T includes them at full weight. For 0 < theta <= 1, Cauchy-Schwarz with weights theta^k in place of 1 gives

    sum_{k>m} |part k| <= T_theta exp((1 / theta - 1) s / 2) sqrt(P(m+1, s / theta)),
    T_theta^2 = sum_{k>m} theta^k N_k^2 = W_theta^2 - sum_{k<=m} theta^k N_k^2,

    W_theta^2 = sum_ij w_i w_j exp(2 gamma theta xt_i.xt_j) = sum_ij at_i at_j K_ij^theta,
    at_i = a_i exp(-(1 - theta) gamma ||xt_i||^2).

The contracted norm W_theta is thus also the norm of a kernel sum, with coefficients that decay with the distance of the
support vectors from the center (kernel_sums.py). For each center, theta is chosen to minimize the bound at the
distances of the center's rows. The triangle inequality over the support vectors bounds T_theta without a pass over the
kernel matrix:

    T_theta <= sum_i |w_i| sqrt(sum_{k>m} (theta r_i)^k / k!) = sum_i |at_i| sqrt(P(m+1, theta r_i)),
    r_i = 2 gamma ||xt_i||^2.

Parts of opposite sign do not cancel in this sum, so it is about ten times T_theta. On slices with few varying features,
m can be so high that even this sum adds little to the bound.

The norms are computed from powers of the Gram matrix (gram.py) or, for many centers of a model with few features, from
the moments M_alpha = sum_i w_i xt_i^alpha (monomials.py): in coordinates scaled by sqrt(2 gamma), N_k^2 is the sum of
M_alpha^2 / alpha! over the monomials of degree k, and G_k is the product of a matrix of moments with its transpose.

With one-hot encoded categories, all rows lie on a few slices: affine subspaces on which the encoded features are
constant. On the slice of a center, with xt_i = (xt_v, xt_f) split into varying and fixed features,

    sum_i a_i K(x_i, z) = sum_i a_i exp(-gamma ||xt_f||^2) exp(-gamma ||xt_v - u_v||^2)

is again a sum of RBF kernels, in fewer dimensions, so all the statements above hold for it. Its norm on the slice is at
most W, and its coefficients contain factors that suppress the support vectors of other categories. For a row at
distance r from the slice, W sqrt(2 - 2 exp(-gamma r^2)) <= W sqrt(2 gamma) r is added to the bound at the nearest point
of the slice.

Every bound is rounded up. Let u64 = 2^-53. If a sum of products has the summation depth n, which is the length of its
longest path of operations, its error is at most n u64 (1 + small) times the sum of absolute values. For a double sum
over the blocks of a Gram matrix, the depth P is the length of two blocks plus the number of pairs of blocks.

* Weights w_i: exp turns the absolute error of its argument, at most (n_features + 4) u64 gamma ||xt_i||^2, into a
  relative error. For arguments below -745, exp is 0, and the true w_i is negligible, even after multiplication by
  ||xt_i||^8. With g = max(1, min(750, gamma R^2)) and R = max ||xt_i||, the relative error of a weight is at most
  (n_features + 4) g u64 for every gamma. On a slice, a weight is the product of two such factors, with a relative error
  of at most (n_features + 8) g u64, and R^2 is the sum of the largest squared norms of the varying and of the fixed
  part.
* N_k^2 and G_k from Gram products: two weights, an inner product of n_features terms and its power, and the double sum
  cause an error of at most kappa = (P + (2 k + 2 g) (n_features + 4) + 60) u64 times the sum of absolute values, which
  is at most ((2 gamma)^(k/2) sum_i |w_i| ||xt_i||^k)^2 / k!. G has the errors of the G_k; the constant 60 includes the
  product and the six additions that form G.
* N_k^2 and G_k from the moments of degree k: a moment has a path of n_sv operations, a weight and k factors, and
  squaring doubles its error. The error is at most kappa, with P = 2 n_sv + 2, times the same sum of absolute values.
  Summing the squares of the C moments adds at most C u64 N_k^2 to the error.
* Moments of dropped degrees, which are needed only for norms, may be computed in float32, in blocks of at most 512
  rows; the block sums are added in float64. With two roundings for each of k factors, one for the weight, and the
  rounding of the sum, a moment's error is at most (520 + 2 k) u32 times the sum of absolute values, plus the underflow
  error: 2^-126 for each of 2 k + 2 operations, times powers of features, which are at most R = min(39, max r_i^(1/2))
  because weights with a larger r_i are 0. The moments of a degree, with weights 1 / alpha!, thus have an error of norm
  E <= 1.001 (520 + 2 k) u32 sqrt(moduli) + n_sv 2^-110 max(1, R)^k, where moduli is the sum of absolute values above,
  and there are at most 2^22 moments. N_k^2 is the squared norm of these moments, and G_k the square of a matrix of norm
  N_k, so 2 N_k E + E^2 is added to the errors of N_k^2 and G_k.
* W^2: a kernel value is computed from a distance with cancellation; the error of the argument of exp is at most e =
  (n_features + 4) max(1, 4 gamma R^2) u64. If e is at most 2^-10, the error of the sum is at most (P + 60) u64 + 1.001
  e times sum_ij |a_i a_j| K_ij. If e is larger, the computed sum is useless (the computed K of two equal support
  vectors may be 0), and A1 = sum |a_i| >= W replaces W. K is its eighth root squared three times, which has a relative
  error of at most 23 u64 (included in the constant 60); exp(-708), the smallest root, is negligible.
* W_theta^2: K^theta, computed by the same squarings, has a smaller error than K, and at_i has a relative error of at
  most (n_features + 4) g u64. The error of W_theta^2 is at most the sum of kappa for degree 0 and 1.001 e, times (sum
  |at_i|)^2, which is itself an upper bound on W_theta^2. kernel_sums.py has already added the float32 errors, except
  those from rounding the at_i.
* The sum over |at_i| sqrt(P(m+1, theta r_i)): P(k, x) is at most 1, at most x^k / k! and, by the geometric series, for
  x < k+1 at most x^k / k! exp(-x) / (1 - x / (k+1)). If the last bound is used up to x = 0.9 (k+1), the sum has a
  relative error below (n_sv + 2000 (n_features + 8)) u64. The underflow error is at most A1 2^-480.
* T^2 is computed as an upper bound on W^2 minus lower bounds on the N_k^2; a negative difference is replaced by 0.
* T_theta is multiplied by a factor that grows with s, so the underflow of squares must be included: A1 2^-480 is added.
* The expansion's coefficients have float64 errors of at most kappa (P = n_sv, k is the degree), relative to each
  support vector's part. The sum of one support vector's parts up to any degree is at most |a_i| in absolute value,
  because exp(-(r + s)/2) (1 + sqrt(r s) + r s / 2 + ...) <= exp(-(sqrt r - sqrt s)^2 / 2). Therefore, kappa A1 is added
  to every bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from approxsvm import _native
from approxsvm.expansion.decision_function import DecisionFunction
from approxsvm.expansion.gram import DIRECTION_CONTRACTION, LAST_DEGREE
from approxsvm.expansion.kernel_sums import KernelSums
from approxsvm.expansion.monomials import MOST_ROWS
from approxsvm.ir.constants import CONTRACTIONS, UNIT32, UNIT64, gaussian_slope
from approxsvm.ir.kernel_model import FloatArray, KernelModel
from approxsvm.reference.definition import GaussianDefinition

# Maximum number of features for which the G_k are computed. With more features, these matrices would be too large, so
# the norms are not sharpened.
MAX_FEATURES_SHARPENED: Final = 2048


@dataclass(frozen=True, eq=False)
class Certificates:
    """Upper bounds from which the error bounds of one decision function's expansions are computed.

    With s = 2 gamma ||z - center||^2, phi_k(s) = exp(-s/2) sqrt(s^k / k!) and m + 1 = `first_remainder_degree`, the
    error of a center's expansion, before `coefficient_errors` is added, is at most

        sum_{degree < k <= m} norms[k] phi_k(s) + remainder exp((1 / theta - 1) s / 2) sqrt(gammainc(m + 1, s / theta)),

    If the last term, which grows without limit if theta < 1, exceeds total sqrt(gammainc(m + 1, s)), the latter
    replaces it. All arrays have n_centers rows.
    """

    norms: FloatArray  # (n_centers, 9): N_0 ... N_8, sharpened for dropped degrees; 0 for degrees in the remainder
    remainders: FloatArray  # T_theta: contracted norm of the degrees in the remainder
    first_remainder_degree: int  # lowest degree in the remainder
    contractions: FloatArray  # theta
    coefficient_errors: FloatArray  # bound on the change in any value due to float64 rounding of the coefficients
    total: float  # W, the norm of the whole decision function
    sum_moduli: float  # A1 = sum |a_i|
    # G as a quadratic form in sqrt(2 gamma) (z - center), with coefficients in monomial order; None unless the degree
    # is 2 and G is known.
    directions: FloatArray | None = None
    # Norm of each form's rounding error (infinite if the form is unknown and set to zero), and trace of each form,
    # rounded up.
    direction_errors: FloatArray = field(default_factory=lambda: np.zeros(0))
    direction_traces: FloatArray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class CenterSums:
    """Sums over the support vectors about one center, not rounded up, with coefficients divided by `unit`."""

    degree_sq: FloatArray  # (first_remainder_degree,): N_k^2
    spectra: dict[int, FloatArray]  # G_k of the degrees whose norms are sharpened
    direction: FloatArray | None  # G = sum_k 2^(3-k) G_k, k from 3 to the last degree of `degree_sq`
    path: int  # summation depth of these sums
    terms: FloatArray  # (first_remainder_degree,): number of squares in each sum; 0 if counted in `path`
    moduli_sq: FloatArray  # (9,): (sum_i |w_i| (sqrt(2 gamma) ||xt_i||)^k)^2 / k!, rounded up
    float32_errors: FloatArray  # (first_remainder_degree,): E; 0 for sums in float64
    tails: FloatArray  # (len(CONTRACTIONS),): sum_i |at_i| sqrt(P(first_remainder_degree, theta r_i)), not rounded up
    max_sv_norm: float  # max ||x_i - center||, rounded up
    half_sq_offset: float = 0.0  # gamma max ||x_i - slice||^2; 0 if the expansion covers the whole space

    @cached_property
    def sharpened_sq(self) -> dict[int, float]:
        """Upper bounds on the largest eigenvalue of each G_k."""
        return {k: _largest_eigenvalue(matrix) for k, matrix in self.spectra.items()}


def certificates(
    function: DecisionFunction,
    kernel: KernelSums,
    centers: list[CenterSums],
    degree: int,
    typical_s: FloatArray,
    *,
    n_varying: int,
    directions: bool,
) -> Certificates:
    """Round all sums up, compute the remainders, and choose a contraction for each center.

    `degree` is the highest kept degree; `typical_s`, of shape (n_centers,), is 2 gamma ||z - center||^2 for a typical
    row; and the expansions are in `n_varying` features. With `directions`, the result includes G, and so must the sums
    of every center.
    """
    # On a slice, each coefficient is multiplied by one more exp, which adds at most four operations to those for the
    # features.
    d, unit = function.n_features + (4 if n_varying < function.n_features else 0), function.unit
    sum_moduli = float(np.abs(function.coef).sum()) * (1 + function.n_sv * UNIT64)
    total = _total_norm(kernel, kernel.path, (d + 4) * _growth(4 * kernel.sq_radius) * UNIT64, sum_moduli)
    n_centers, known = len(centers), len(centers[0].degree_sq)
    norms, kept_sq = np.zeros((n_centers, LAST_DEGREE + 1)), np.zeros((n_centers, known))
    radii_sq = np.array([function.gamma * c.max_sv_norm**2 + c.half_sq_offset * (1 + 1e-9) for c in centers])
    forms = np.zeros((n_centers, n_varying * (n_varying + 1) // 2)) if directions else None
    errors, traces = np.zeros(n_centers), np.zeros(n_centers)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for c, (sums, radius_sq) in enumerate(zip(centers, radii_sq, strict=True)):
            slacks = [
                _kappa(k, sums.path, d, radius_sq) * sums.moduli_sq[k]
                + sums.terms[k] * UNIT64 * sums.degree_sq[k]
                + _of_square(sums.float32_errors[k], sums.degree_sq[k])
                for k in range(known)
            ]
            direction_slack = sum(DIRECTION_CONTRACTION ** (k - 3) * slacks[k] for k in range(3, known))
            largest = math.inf  # largest eigenvalue of G, if G must bound the G_k: G >= 2^(3-k) G_k
            if sums.direction is not None and not sums.spectra:
                largest = _largest_eigenvalue(sums.direction) + direction_slack
            for k, slack in enumerate(slacks):
                norm = _root(sums.degree_sq[k] + slack)
                kept_sq[c, k] = max(sums.degree_sq[k] - slack, 0.0) if math.isfinite(norm) else 0.0
                if k in sums.spectra and k > degree:
                    norm = min(norm, _root(sums.sharpened_sq[k] + slack))
                if k >= 3 and k > degree:
                    norm = min(norm, _root(largest / DIRECTION_CONTRACTION ** (k - 3)))
                norms[c, k] = min(norm, total)
            if forms is not None and sums.direction is not None:
                _keep_direction(forms[c], sums.direction * unit * unit)
                errors[c], traces[c] = _direction_numbers(forms[c], sums.direction, direction_slack, unit)
        tails = np.array([sums.tails for sums in centers]).reshape(n_centers, len(CONTRACTIONS))
        remainders, thetas = _remainders(
            kernel, function.n_sv, kept_sq, tails, total, sum_moduli, d, radii_sq, typical_s
        )
        rounding = [_kappa(degree, function.n_sv, d, radius_sq) * sum_moduli * unit for radius_sq in radii_sq]
        return Certificates(
            norms=_times(norms, unit),
            remainders=_times(remainders, unit),
            first_remainder_degree=known,
            contractions=thetas,
            coefficient_errors=np.array(rounding),
            directions=forms if forms is not None and np.isfinite(errors).any() else None,
            direction_errors=errors,
            direction_traces=traces,
            total=total * unit,
            sum_moduli=sum_moduli * unit,
        )


def _remainders(
    kernel: KernelSums,
    n_sv: int,
    kept_sq: FloatArray,
    tails: FloatArray,
    total: float,
    sum_moduli: float,
    d: int,
    radii_sq: FloatArray,
    typical_s: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return T_theta and theta for each center; theta is chosen to minimize the bound."""
    degrees = np.arange(kept_sq.shape[1])
    argument_error = (d + 4) * _growth(4 * kernel.sq_radius) * UNIT64
    remainders, thetas = np.full(len(kept_sq), total), np.ones(len(kept_sq))
    least = np.full(len(kept_sq), np.inf)
    for column, theta in enumerate(CONTRACTIONS):
        for c, radius_sq in enumerate(radii_sq):
            upper, up = total, 1 + (n_sv + 2000 * (d + 4)) * UNIT64
            if theta < 1.0:
                moduli = float(kernel.faded_moduli[c, column]) * up
                slack = _kappa(0, kernel.path, d, radius_sq) + 1.001 * argument_error
                if argument_error <= 2.0**-10:
                    rounded = _root(float(kernel.contracted_sq[c, column]) + slack * moduli**2)
                    upper = min(upper, rounded + 1.01 * UNIT32 * moduli)  # rounding of at_i to float32
                upper = min(upper, moduli) if math.isfinite(moduli) else upper
            kept = float((theta**degrees * kept_sq[c]).sum()) * (1 - 1e-14)
            remainder = min(_root(max(upper**2 * (1 + 1e-14) - kept, 0.0)), upper)
            remainder += sum_moduli * 2.0**-480 if theta < 1.0 else 0.0
            remainder = min(remainder, float(tails[c, column]) * up + sum_moduli * 2.0**-480)
            s = float(typical_s[c])
            factor = float(_native.remainder_factor(len(degrees), theta, s))
            if column == 0 or remainder * factor < least[c]:
                least[c], remainders[c], thetas[c] = remainder * factor, remainder, theta
    return remainders, thetas


def _times(bounds: FloatArray, unit: float) -> FloatArray:
    """Return bounds times a power of two, rounded up if the products underflow."""
    return np.maximum(bounds * unit, np.where(bounds > 0.0, np.finfo(float).smallest_subnormal, 0.0))


def float32_error(degree: int, moduli_sq: float, n_sv: int, max_r: float) -> float:
    """Return E for the moments of a degree, given the sum of absolute values (rounded up) and the largest r_i."""
    rounding = 1.001 * (MOST_ROWS + 8 + 2 * degree) * UNIT32 * math.sqrt(moduli_sq)
    return rounding + n_sv * 2.0**-110 * math.sqrt(min(max(1.0, max_r), 39.0**2)) ** degree


def _of_square(error: float, square: float) -> float:
    """Return the error of a square, given the error of its root."""
    return error * (2.0 * math.sqrt(max(square, 0.0)) + error) * (1.0 + 1e-9) if error > 0.0 else 0.0


def tails_of(coef: FloatArray, r: FloatArray, first: int) -> FloatArray:
    """Return sum_i |at_i| sqrt(P(first, theta r_i)) for each theta, not rounded up; `r` is 2 gamma ||xt_i||^2."""
    sums = np.zeros(len(CONTRACTIONS))
    for column, theta in enumerate(CONTRACTIONS):
        x = theta * r
        ratio = x / (first + 1)
        power = x**first / math.factorial(first)
        above = np.fmin(power * np.where(ratio < 0.9, np.exp(-x) / np.maximum(1.0 - ratio, 0.1), 1.0), 1.0)
        sums[column] = np.abs(coef) * np.exp(-0.5 * (1.0 - theta) * r) @ np.sqrt(above)
    return sums


def _keep_direction(form: FloatArray, spectrum: FloatArray) -> None:
    """Pack a symmetric matrix as the coefficients of monomials."""
    packed = 2.0 * spectrum[np.triu_indices(len(spectrum))]
    packed[np.cumsum([0, *range(len(spectrum), 1, -1)])] = np.diag(spectrum)
    form[:] = packed


def _direction_numbers(form: FloatArray, spectrum: FloatArray, slack: float, unit: float) -> tuple[float, float]:
    """Return the rounding error and the trace of a center's quadratic form G.

    If the form is unknown, or if the squares of the coefficients a_i are too small, both are infinite, and the form is
    set to zero.
    """
    error = slack * unit * unit
    trace = float(np.abs(np.diag(spectrum)).sum()) * unit * unit * (1 + 1e-9) + error
    if unit > 2.0**-400 and np.isfinite(form).all() and math.isfinite(error) and math.isfinite(trace):
        return error, trace
    form[:] = 0.0
    return math.inf, math.inf


def least_tolerance(model: KernelModel, row_error: float = 0.0) -> float:
    """Return the smallest tolerance that float64 arithmetic can guarantee for decision values, with a safety margin.

    `row_error` is the largest Euclidean distance between a transformed row and the exact row.
    """
    definition = GaussianDefinition(model)
    rounding = definition.of_sum + 32.0 * UNIT64 * float(np.abs(model.intercept).max())
    moved = definition.scale * min(1.0, gaussian_slope(model.gamma) * row_error)
    return rounding + 2.0 * (float(model.value_error.max()) + moved) + 2.0**-1000


def _growth(radius_sq: float) -> float:
    """Return the factor by which the error of exp's argument grows with the squared radius; infinite for NaN."""
    return radius_sq if radius_sq > 1.0 else 1.0 if radius_sq <= 1.0 else math.inf


def _kappa(degree: int, path: int, n_features: int, radius_sq: float) -> float:
    """Return kappa, the relative rounding error of a sum of weighted powers of inner products, of depth `path`."""
    return (path + (2 * degree + 2 * min(_growth(radius_sq), 750.0)) * (n_features + 4) + 60) * UNIT64


def _total_norm(kernel: KernelSums, path: int, argument_error: float, sum_moduli: float) -> float:
    """Return W, rounded up, or A1 if rounding errors exceed the distances between support vectors."""
    upper = sum_moduli * (1 + 1e-12)
    if not argument_error <= 2.0**-10:
        return upper
    return min(_root(kernel.total_sq + ((path + 60) * UNIT64 + 1.001 * argument_error) * kernel.moduli_sq), upper)


def _root(x: float) -> float:
    """Return the square root, rounded up; infinite for NaN, which results from an overflow."""
    return math.sqrt(max(x, 0.0)) * (1 + 4 * UNIT64) if math.isfinite(x) else math.inf


def _largest_eigenvalue(symmetric: FloatArray) -> float:
    """Return an upper bound on the largest eigenvalue of a positive semi-definite matrix."""
    if not np.isfinite(symmetric).all():
        return math.inf
    return float(np.linalg.eigvalsh(symmetric)[-1]) + 64 * len(symmetric) * UNIT64 * float(np.linalg.norm(symmetric))
