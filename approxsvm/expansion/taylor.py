"""Second-order expansion of a sum of RBF kernels about a center.

With xt_i = x_i - center, u = z - center and w_i = a_i exp(-gamma ||xt_i||^2),

    sum_i a_i K(x_i, z) = exp(-gamma ||u||^2) sum_i w_i exp(2 gamma xt_i.u),

and the exponential on the right is replaced by 1 + x + x^2 / 2 (Claesen et al. 2014, Eq. 3.8, where the center is
the origin). The kernel does not change when both arguments are shifted, so any center will do; near the data is best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from approxsvm.errors import UnsupportedModelError
from approxsvm.kernel_model import FloatArray, KernelModel

CenterChoice = Literal["mean", "origin"]

# Support vectors are made dense this many bytes at a time.
_BLOCK_BYTES = 64 << 20
# Above this the quadratic term alone would take more than 1 GB while compiling.
MAX_FEATURES_DEGREE_2 = 11_585


@dataclass(frozen=True, eq=False)
class Expansion:
    """f(z) ~ intercept + exp(-gamma ||u||^2) (constant + linear.u + u' quadratic u), u = z - center.

    Attributes
    ----------
    center : ndarray of shape (n_features,), float32
        The point expanded about. Rounded to float32 before expanding, so that rounding it later costs nothing.
    center_choice : {"mean", "origin"}
        What the center is.
    constant, intercept : float
        Numbers outside and inside the Gaussian factor.
    linear : ndarray of shape (n_features,), float64
        The vector v of the paper.
    quadratic : ndarray of shape (n_features, n_features), float64
        The symmetric matrix M of the paper.
    gamma : float
        As in the model.
    max_sv_norm, max_sv_norm_origin : float
        max ||x_i - center|| and max ||x_i||, for the paper's validity test.
    """

    center: npt.NDArray[np.float32]
    center_choice: CenterChoice
    constant: float
    linear: FloatArray
    quadratic: FloatArray
    intercept: float
    gamma: float
    max_sv_norm: float
    max_sv_norm_origin: float


def choose_center(model: KernelModel, choice: CenterChoice) -> npt.NDArray[np.float32]:
    """The center as float32: the mean of the support vectors, or the origin.

    Raises
    ------
    UnsupportedModelError
        The mean does not fit float32.
    """
    if choice == "origin" or model.n_sv == 0:
        return np.zeros(model.n_features, np.float32)
    scale = 1.0 / model.n_sv  # scaled before summing: the sum itself may overflow
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
    """The support vectors as dense rows, a block at a time, each with the number of its first."""
    block = max(1, _BLOCK_BYTES // (8 * model.n_features))
    for first in range(0, model.n_sv, block):
        yield first, model.dense_support_vectors(first, min(first + block, model.n_sv))


def sv_norms(model: KernelModel, center: npt.NDArray[np.float32]) -> tuple[float, float]:
    """Max ||x_i - center|| and max ||x_i||, rounded up; infinite where they overflow."""
    largest = [0.0, 0.0]
    with np.errstate(over="ignore"):
        for _, rows in _dense_blocks(model):
            for k, shifted in enumerate((rows - center.astype(np.float64), rows)):
                largest[k] = max(largest[k], float(np.einsum("ij,ij->i", shifted, shifted).max()))
    up = 1.0 + (model.n_features + 8) * 2.0**-52
    return float(np.sqrt(largest[0])) * up, float(np.sqrt(largest[1])) * up


def expand(model: KernelModel, choice: CenterChoice = "mean") -> Expansion:
    """Expand the only decision function of `model` to degree 2 (Claesen et al. 2014, Eq. 3.8) by BLAS in float64.

    Parameters
    ----------
    model : KernelModel
        With exactly one decision function.
    choice : {"mean", "origin"}
        The center; "origin" gives the paper's own expansion.

    Returns
    -------
    Expansion

    Raises
    ------
    UnsupportedModelError
        The quadratic term would not fit in memory, or the center not in float32.
    """
    from scipy.linalg.blas import dsyrk  # here: importing it takes longer than all the rest of the package

    n_features = model.n_features
    if n_features > MAX_FEATURES_DEGREE_2:
        raise UnsupportedModelError(
            f"degree 2 needs a {n_features} x {n_features} matrix; "
            f"at most {MAX_FEATURES_DEGREE_2} features are supported"
        )
    center = choose_center(model, choice)
    mean = center.astype(np.float64)
    gamma = model.gamma
    coef = model.coefficients(0)

    constant = 0.0
    linear = np.zeros(n_features)
    quadratic = np.zeros((n_features, n_features), order="F")  # dsyrk adds to its upper triangle
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # infinity and NaN are refused when written
        for first, rows in _dense_blocks(model):
            shifted = rows - mean
            sq_norm = np.einsum("ij,ij->i", shifted, shifted)
            weights = coef[first : first + len(rows)] * np.exp(-gamma * sq_norm)
            constant += float(weights.sum())
            linear += weights @ shifted
            # A symmetric rank update needs weights of one sign: square roots of their moduli, two updates.
            scaled = shifted * np.sqrt(np.abs(weights))[:, np.newaxis]
            for sign in (1.0, -1.0):
                part = scaled[weights * sign > 0.0]
                if len(part):
                    quadratic = dsyrk(sign, part.T, beta=1.0, c=quadratic, overwrite_c=1)

        upper = np.triu(quadratic, 1)
        linear = 2.0 * gamma * linear
        quadratic = 2.0 * gamma * gamma * (upper + upper.T + np.diag(np.diag(quadratic)))
    max_sv_norm, max_sv_norm_origin = sv_norms(model, center)
    return Expansion(
        center=center,
        center_choice=choice,
        constant=constant,
        linear=linear,
        quadratic=quadratic,
        intercept=float(model.intercept[0]),
        gamma=gamma,
        max_sv_norm=max_sv_norm,
        max_sv_norm_origin=max_sv_norm_origin,
    )
