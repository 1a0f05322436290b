"""Taylor expansions of a sum of RBF kernels about centers.

With xt_i = x_i - center, u = z - center and w_i = a_i exp(-gamma ||xt_i||^2),

    sum_i a_i K(x_i, z) = exp(-gamma ||u||^2) sum_i w_i exp(2 gamma xt_i.u),

where the exponential on the right is replaced by its Taylor polynomial 1 + x + x^2 / 2 + ... (Claesen et al. 2014, Eq.
3.8, uses degree 2 and the origin as center). Shifting both arguments by the same vector does not change the kernel, so
the center may be any point; a center near the data is best.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from approxsvm.errors import UnsupportedModelError
from approxsvm.expansion.decision_function import DecisionFunction
from approxsvm.expansion.monomials import inverse_factorials, moments, n_monomials, rows_of_moments
from approxsvm.frames.rows import sparse_sq_distances
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.kernel_model import FloatArray, KernelModel

CenterChoice = Literal["mean", "origin"]

# Size in bytes of the blocks in which support vectors are converted to dense rows.
_BLOCK_BYTES = 64 << 20
# Maximum number of features; with more, the quadratic term alone would take more than 1 GB of memory in `compile`.
MAX_FEATURES_DEGREE_2 = 11_585


@dataclass(frozen=True, eq=False)
class Expansions:
    """Decision function expanded about n_centers points: f(z) ~ intercept + exp(-gamma ||u||^2) sum_k part k (u).

    ``parts[k - 1]``, of shape (n_centers, n_monomials(n_features, k)), contains the coefficients of the monomials of
    degree k in u = z - center, in lexicographic order. For i < j, the coefficient of u_i u_j is twice an element of the
    matrix M of Claesen et al. 2014.
    """

    constants: FloatArray  # (n_centers,): parts of degree 0
    parts: tuple[FloatArray, ...]
    max_sv_norms: FloatArray  # (n_centers,): max ||x_i - center|| over the support vectors, rounded up


def check_size(n_features: int, degree: int) -> None:
    """Raise UnsupportedModelError if an expansion would not fit in memory."""
    if degree == 2 and n_features > MAX_FEATURES_DEGREE_2:
        raise UnsupportedModelError(
            f"degree 2 needs a {n_features} x {n_features} matrix; "
            f"at most {MAX_FEATURES_DEGREE_2} features are supported"
        )
    if n_monomials(n_features, degree) > n_monomials(MAX_FEATURES_DEGREE_2, 2):
        raise UnsupportedModelError(
            f"degree {degree} needs {n_monomials(n_features, degree)} coefficients for {n_features} features; "
            f"at most {n_monomials(MAX_FEATURES_DEGREE_2, 2)} are supported"
        )


def moments_about(
    function: DecisionFunction,
    center: npt.NDArray[np.float32],
    degree: int,
    least: int = 0,
    dtype: npt.DTypeLike = np.float64,
) -> list[FloatArray]:
    """Compute sum_i w_i xt_i^alpha for all monomials of degrees `least` through `degree`, in scaled coordinates."""

    def weighted() -> Iterator[tuple[FloatArray, FloatArray]]:
        for first, block in function.blocks_about(center, rows_of_moments(function.n_features, degree, dtype)):
            rows = block * function.scale
            weights = function.coef[first : first + len(rows)] * np.exp(-0.5 * np.einsum("ij,ij->i", rows, rows))
            if not weights.all():  # some weights underflow; powers of their rows could overflow
                rows, weights = rows[weights != 0.0], weights[weights != 0.0]
            if len(rows):
                yield rows, weights

    return moments(weighted(), function.n_features, degree, least, dtype)


def coefficients_of(function: DecisionFunction, sums: list[FloatArray]) -> list[FloatArray]:
    """Compute the coefficients of the monomials in u from the moments, one array per degree, starting at 0."""
    coefficients = []
    for k, moment in enumerate(sums):
        part = moment * inverse_factorials(function.n_features, k) if k > 1 else moment.copy()
        for _ in range(k):
            part *= function.scale
        coefficients.append(part * function.unit)
    return coefficients


def choose_center(model: KernelModel, choice: CenterChoice) -> npt.NDArray[np.float32]:
    """Return the mean of the support vectors, or the origin, as float32.

    Raises UnsupportedModelError if the mean overflows float32.
    """
    if choice == "origin" or model.n_sv == 0:
        return np.zeros(model.n_features, np.float32)
    scale = 1.0 / model.n_sv  # rows are scaled first, because their sum could overflow
    if isinstance(model.support_vectors, np.ndarray):
        mean: FloatArray = np.sum([(rows * scale).sum(axis=0) for _, rows in _dense_blocks(model)], axis=0)
    else:
        mean = np.asarray((model.support_vectors * scale).sum(axis=0)).ravel()
    with np.errstate(over="ignore"):
        center = mean.astype(np.float32)
    if not np.isfinite(center).all():
        column = int(np.flatnonzero(~np.isfinite(center))[0])
        raise UnsupportedModelError(
            f"the mean of feature {column} over the support vectors is {mean[column]:.6g}, beyond float32's "
            f"{np.finfo(np.float32).max:.6g}: scale the features"
        )
    return center


def _dense_blocks(model: KernelModel) -> Iterator[tuple[int, FloatArray]]:
    """Yield blocks of the support vectors as dense rows, each with the index of its first vector."""
    block = max(1, _BLOCK_BYTES // (8 * model.n_features))
    for first in range(0, model.n_sv, block):
        yield first, model.dense_support_vectors(first, min(first + block, model.n_sv))


def sv_norms(model: KernelModel, center: npt.NDArray[np.float32]) -> tuple[float, float]:
    """Return the largest ||x_i - center|| and the largest ||x_i||, rounded up; infinite on overflow."""
    if model.n_sv and not isinstance(model.support_vectors, np.ndarray):
        return _sparse_sv_norms(model, center)
    largest = [0.0, 0.0]
    with np.errstate(over="ignore"):
        for _, rows in _dense_blocks(model):
            for k, shifted in enumerate((rows - center.astype(np.float64), rows)):
                largest[k] = max(largest[k], float(np.einsum("ij,ij->i", shifted, shifted).max()))
    up = 1.0 + (model.n_features + 8) * 2.0 * UNIT64
    return float(np.sqrt(largest[0])) * up, float(np.sqrt(largest[1])) * up


def _sparse_sv_norms(model: KernelModel, center: npt.NDArray[np.float32]) -> tuple[float, float]:
    """Compute `sv_norms` from the nonzeros, adding a bound on the cancellation error of each squared distance."""
    vectors: Any = model.support_vectors
    point = center.astype(np.float64)
    up = (model.n_features + 8) * 2.0 * UNIT64
    with np.errstate(over="ignore", invalid="ignore"):
        sq_norm = sparse_sq_distances(vectors, np.zeros_like(point))
        sq_distance = sparse_sq_distances(vectors, point)
        sq_distance += up * (np.sqrt(sq_norm) + math.sqrt(float(point @ point))) ** 2
    about, origin = (math.sqrt(most) if most < math.inf else math.inf for most in (sq_distance.max(), sq_norm.max()))
    return about * (1.0 + up), origin * (1.0 + up)
