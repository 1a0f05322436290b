"""How far an expansion can be from the exact decision function: norms of its parts, and the bound they give.

The decision function without its intercept lies in the reproducing kernel Hilbert space of the kernel. Expanded about a
center it splits into orthogonal parts of degree k = 0, 1, ... (xt_i = x_i - center, w_i = a_i exp(-gamma ||xt_i||^2)):

    N_k^2 = (2 gamma)^k / k! sum_ij w_i w_j (xt_i.xt_j)^k,        sum_k N_k^2 = sum_ij a_i a_j K(x_i, x_j) = W^2

and the part of degree k at u = z - center is at most N_k phi_k(s) in modulus, where s = 2 gamma ||u||^2 and
phi_k(s) = exp(-s/2) sqrt(s^k / k!) (Cauchy and Schwarz in the k-fold tensor product). phi_k^2 is a Poisson
probability, so the parts beyond degree m together are at most T sqrt(P(m+1, s)), T^2 = W^2 - sum_{k<=m} N_k^2 and P the
regularised incomplete gamma function: nothing here can overflow. For single degrees a sharper number takes the place of
N_k: with

    G_k = (2 gamma)^k / k! sum_ij w_i w_j (xt_i.xt_j)^(k-1) xt_i xt_j',        trace G_k = N_k^2,

N_k may be replaced by the square root of the largest eigenvalue of G_k, and, better still, N_k sqrt(s) by the length of
v = sqrt(2 gamma) u in the metric of G_k, sqrt(v' G_k v): a bound that knows the direction of the row, for the price of
one more quadratic form. The table of the predictor uses the eigenvalue; rows that it leaves open get the form, k = 3.

Every number is rounded up. u64 = 2^-53; a sum of products whose longest path has n operations errs by at most n u64
(1 + small) times the sum of moduli. A double sum over the blocks of a Gram matrix has a path P of two blocks and the
number of pairs of blocks.

* Weights w_i: exp turns the error of its argument, (n_features + 4) u64 gamma ||xt_i||^2, into a relative one. Beyond
  an argument of 745 exp is 0, and the true w_i, even times ||xt_i||^8, below what can matter: with g = max(1, min(750,
  gamma R^2)), R = max ||xt_i||, the relative error of a weight is (n_features + 4) g u64 for every gamma.
* N_k^2 and G_k from Gram products: two weights, an inner product of n_features terms and its power, the double sum:
  kappa = (P + (2 k + 2 g) (n_features + 4) + 60) u64 times the sum of moduli, which is at most
  ((2 gamma)^(k/2) sum_i |w_i| ||xt_i||^k)^2 / k!.
* W^2: a kernel value comes from the cancelled distance; its argument errs by e = (n_features + 4) max(1, 4 gamma R^2)
  u64. Up to e = 2^-10 the sum errs by (P + 60) u64 + 1.001 e times sum_ij |a_i a_j| K_ij. Beyond that nothing is known
  of it (two equal support vectors may get K = 0) and A1 = sum |a_i| >= W takes its place.
* T^2 is a difference: an upper bound of W^2 less lower bounds of the N_k^2, never below 0.
* The coefficients of the expansion carry float64 errors, at most kappa (with P = n_sv, k = 2) relative to each support
  vector's part, and the parts of degree 0 to 2 of one support vector are together at most |a_i| in modulus, because
  exp(-(r + s)/2) (1 + sqrt(r s) + r s / 2) <= exp(-(sqrt r - sqrt s)^2 / 2): kappa A1 is added to every bound.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np

from approxsvm.expansion.taylor import Expansion
from approxsvm.kernel_model import FloatArray, KernelModel
from approxsvm.threads import all_threads

U64: Final = 2.0**-53
# Degrees up to this have norms of their own; the rest goes into one remainder.
LAST_DEGREE: Final = 8
# Degrees whose norm is sharpened by the largest eigenvalue: the first two that are dropped.
SHARPENED: Final = (3, 4)
# With more features than this the matrices G_k would be too large, and the plain norms have to do.
MAX_FEATURES_SHARPENED: Final = 2048
# Side of the square blocks of the Gram matrix: the passes over one stay in a cache.
_BLOCK: Final = 512


@dataclass(frozen=True, eq=False)
class Certificate:
    """Upper bounds that determine the error bound of one expansion of degree 2.

    Attributes
    ----------
    norms : tuple of float
        N_0 ... N_8, the dropped degrees sharpened where that helps.
    remainder : float
        T, the norm of everything of a higher degree.
    total : float
        W, the norm of the whole decision function.
    sum_moduli : float
        A1 = sum |a_i|.
    coefficient_error : float
        What float64 rounding of the coefficients can add to any decision value.
    direction : ndarray of shape (n_features, n_features), or None
        G_3, in the coordinates v = sqrt(2 gamma) (z - center); None with more than 2,048 features or on overflow.
    direction_error : float
        The norm of the rounding error in `direction`.
    value_range : float
        Largest less smallest decision value at the support vectors, for scale.
    """

    norms: tuple[float, ...]
    remainder: float
    total: float
    sum_moduli: float
    coefficient_error: float
    direction: FloatArray | None
    direction_error: float
    value_range: float


def certify(model: KernelModel, expansion: Expansion, progress: Callable[[float], None] | None = None) -> Certificate:
    """Compute the norms by blocked BLAS in float64; the Gram matrix is never held whole.

    Parameters
    ----------
    model : KernelModel
        With one decision function.
    expansion : Expansion
        Of that function, to degree 2.
    progress : callable, optional
        Told the share of the work that is done, from 0 to 1.

    Returns
    -------
    Certificate
    """
    gamma, n_sv, d = model.gamma, model.n_sv, model.n_features
    radius_sq = gamma * expansion.max_sv_norm * expansion.max_sv_norm
    coef = model.coefficients(0)
    # Squares of coefficients must not overflow: a power of two is taken out of them, and put back at the end.
    unit = 2.0 ** min(int(np.frexp(np.abs(coef).max(initial=0.0))[1]), 1023)
    coef = coef / unit
    sum_moduli = float(np.abs(coef).sum()) * (1 + n_sv * U64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        sums = _gram_sums(model, coef, expansion, progress)
        total = _total_norm(sums, _sum_path(n_sv), (d + 4) * max(1.0, 4 * radius_sq) * U64, sum_moduli)
        norms, kept = [], 0.0
        for k in range(LAST_DEGREE + 1):
            slack = _kappa(k, _sum_path(n_sv), d, radius_sq) * sums.degree_moduli_sq[k]
            norm = _root(sums.degree_sq[k] + slack)
            lower = sums.degree_sq[k] - slack
            kept += lower if lower > 0.0 and math.isfinite(norm) else 0.0
            if k in sums.spectra:
                norm = min(norm, _root(_largest_eigenvalue(sums.spectra[k]) + slack))
            norms.append(min(norm, total))
        remainder = min(_root(max(total**2 * (1 + 1e-12) - kept, 0.0)), total)
        direction = sums.spectra[3] * unit * unit if 3 in sums.spectra else np.full((1, 1), np.inf)
        direction_error = _kappa(3, _sum_path(n_sv), d, radius_sq) * float(sums.degree_moduli_sq[3]) * unit * unit
        known = np.isfinite(direction).all() and math.isfinite(direction_error)
        value_range = float(np.ptp(sums.values)) * unit if n_sv else 0.0
        return Certificate(
            norms=tuple(norm * unit for norm in norms),
            remainder=remainder * unit,
            total=total * unit,
            sum_moduli=sum_moduli * unit,
            coefficient_error=_kappa(2, n_sv, d, radius_sq) * sum_moduli * unit,
            direction=direction if known else None,
            direction_error=direction_error if known else 0.0,
            value_range=value_range if math.isfinite(value_range) else 0.0,
        )


def least_tolerance(model: KernelModel) -> float:
    """The closest to the exact decision values that float64 arithmetic can be sure to come, with room for rounding."""
    with np.errstate(over="ignore"):  # infinity cannot be promised, and is refused with the coefficients
        sum_moduli = float(np.abs(model.coefficients(0)).sum())
    path = model.n_sv + model.n_features + 20
    return 2.0 * path * U64 * sum_moduli + 2.0**-48 * float(np.abs(model.intercept).max()) + 2.0**-1000


def _sum_path(n_sv: int) -> int:
    """Longest path of additions of a double sum over the Gram matrix: two blocks, then all pairs of blocks."""
    n_blocks = -(-n_sv // _BLOCK)
    return 2 * min(n_sv, _BLOCK) + n_blocks * (n_blocks + 1) // 2


def _kappa(degree: int, path: int, n_features: int, radius_sq: float) -> float:
    """Relative rounding error of a sum of weighted powers of inner products, the sum itself having that path."""
    weight_growth = max(1.0, min(radius_sq, 750.0))
    return (path + (2 * degree + 2 * weight_growth) * (n_features + 4) + 60) * U64


def _total_norm(sums: _GramSums, path: int, argument_error: float, sum_moduli: float) -> float:
    """W; A1 where the distances between support vectors drown in rounding."""
    upper = sum_moduli * (1 + 1e-12)
    if not argument_error <= 2.0**-10:
        return upper
    return min(_root(sums.total_sq + ((path + 60) * U64 + 1.001 * argument_error) * sums.moduli_sq), upper)


def _root(x: float) -> float:
    """Square root, rounded up; NaN, the trace of an overflow, knows nothing and becomes infinity."""
    return math.sqrt(max(x, 0.0)) * (1 + 4 * U64) if math.isfinite(x) else math.inf


def _largest_eigenvalue(symmetric: FloatArray) -> float:
    """Upper bound of the largest eigenvalue of a positive semi-definite matrix."""
    if not np.isfinite(symmetric).all():
        return math.inf
    return float(np.linalg.eigvalsh(symmetric)[-1]) + 64 * len(symmetric) * U64 * float(np.linalg.norm(symmetric))


@dataclass
class _GramSums:
    total_sq: float  # sum_ij a_i a_j K_ij
    moduli_sq: float  # sum_ij |a_i a_j| K_ij
    degree_sq: FloatArray  # N_k^2
    degree_moduli_sq: FloatArray  # bounds on the sums of moduli in N_k^2
    spectra: dict[int, FloatArray]  # G_k
    values: FloatArray  # f - b at the support vectors


def _gram_sums(
    model: KernelModel, coef: FloatArray, expansion: Expansion, progress: Callable[[float], None] | None
) -> _GramSums:
    """Walk over the upper triangle of blocks of the Gram matrix of the support vectors, shifted and scaled."""
    n_sv, d = model.n_sv, model.n_features
    scale = math.sqrt(2.0 * model.gamma)
    mean = expansion.center.astype(np.float64)
    total_sq = moduli_sq = 0.0
    degree_sq = np.zeros(LAST_DEGREE + 1)
    sharpened = SHARPENED if d <= MAX_FEATURES_SHARPENED else ()
    spectra = {k: np.zeros((d, d)) for k in sharpened}
    values = np.zeros(n_sv)

    def block(first: int) -> _Block:
        rows = (model.dense_support_vectors(first, min(first + _BLOCK, n_sv)) - mean) * scale
        return _Block.of(rows, coef[first : first + len(rows)])

    starts = range(0, n_sv, _BLOCK)
    workers = all_threads()
    with ThreadPoolExecutor(workers) as pool:
        for step, first in enumerate(starts):
            left = block(first)

            def pair_with(second: int, left: _Block = left) -> _Pair:
                return _pair(left, block(second), sharpened)

            # Side by side, but added in order: the sums do not depend on the threads.
            for second, pair in _mapped_in_order(pool, 2 * workers, pair_with, range(first, n_sv, _BLOCK)):
                twice = 1.0 if first == second else 2.0
                total_sq += twice * pair.total_sq
                moduli_sq += twice * pair.moduli_sq
                degree_sq += twice * pair.degree_sq
                values[first : first + len(left.rows)] += pair.left_values
                if first != second:
                    values[second : second + len(pair.right_values)] += pair.right_values
                for k, part in pair.spectra.items():
                    spectra[k] += twice * part
            if progress is not None:
                progress(1.0 - (1.0 - (step + 1) / len(starts)) ** 2)
    factorials = np.array([math.factorial(k) for k in range(LAST_DEGREE + 1)], float)
    return _GramSums(
        total_sq=total_sq,
        moduli_sq=moduli_sq,
        degree_sq=degree_sq / factorials,
        degree_moduli_sq=_degree_moduli(model, np.abs(coef), expansion) ** 2 / factorials,
        spectra={k: (0.5 / factorials[k]) * (part + part.T) for k, part in spectra.items()},
        values=values,
    )


def _mapped_in_order(
    pool: ThreadPoolExecutor, window: int, function: Callable[[int], _Pair], arguments: range
) -> Iterator[tuple[int, _Pair]]:
    """Arguments and results in order, with at most `window` results waiting: each may be large."""
    waiting: deque[tuple[int, Future[_Pair]]] = deque()
    for argument in arguments:
        waiting.append((argument, pool.submit(function, argument)))
        if len(waiting) >= window:
            done, future = waiting.popleft()
            yield done, future.result()
    for done, future in waiting:
        yield done, future.result()


@dataclass
class _Block:
    """Consecutive support vectors, shifted and scaled, with what the pairs need of them."""

    rows: FloatArray
    half_sq_norm: FloatArray
    coef: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, coef: FloatArray) -> _Block:
        half_sq_norm = 0.5 * np.einsum("ij,ij->i", rows, rows)
        return cls(rows, half_sq_norm, coef, coef * np.exp(-half_sq_norm))


@dataclass
class _Pair:
    total_sq: float
    moduli_sq: float
    degree_sq: FloatArray
    spectra: dict[int, FloatArray]
    left_values: FloatArray
    right_values: FloatArray


def _pair(left: _Block, right: _Block, sharpened: tuple[int, ...]) -> _Pair:
    """What one block of the Gram matrix contributes."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        gram = left.rows @ right.rows.T
        kernel = gram - left.half_sq_norm[:, np.newaxis]
        kernel -= right.half_sq_norm
        np.exp(np.minimum(kernel, 0.0, out=kernel), out=kernel)
        left_values, right_values = kernel @ right.coef, left.coef @ kernel
        degree_sq = np.empty(LAST_DEGREE + 1)
        degree_sq[0] = left.weight.sum() * right.weight.sum()
        degree_sq[1] = left.weight @ gram @ right.weight
        spectra = {}
        power = gram.copy()
        for k in range(2, LAST_DEGREE + 1):
            if k in sharpened:
                spectra[k] = (left.rows * left.weight[:, np.newaxis]).T @ (
                    power @ (right.rows * right.weight[:, np.newaxis])
                )
            power *= gram
            degree_sq[k] = left.weight @ power @ right.weight
        return _Pair(
            total_sq=float(left.coef @ left_values),
            moduli_sq=float(np.abs(left.coef) @ kernel @ np.abs(right.coef)),
            degree_sq=degree_sq,
            spectra=spectra,
            left_values=left_values,
            right_values=right_values,
        )


def _degree_moduli(model: KernelModel, moduli: FloatArray, expansion: Expansion) -> FloatArray:
    """sum_i |w_i| (sqrt(2 gamma) ||xt_i||)^k for k = 0, 1, ..., slightly rounded up."""
    sums = np.zeros(LAST_DEGREE + 1)
    mean = expansion.center.astype(np.float64)
    for first in range(0, model.n_sv, _BLOCK):
        rows = model.dense_support_vectors(first, min(first + _BLOCK, model.n_sv)) - mean
        norm = np.sqrt(2.0 * model.gamma * np.einsum("ij,ij->i", rows, rows))
        weight = moduli[first : first + len(rows)] * np.exp(-0.5 * norm**2)
        for k in range(LAST_DEGREE + 1):
            sums[k] += float(weight @ norm**k)
    return sums * (1 + 1e-9)
