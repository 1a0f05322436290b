"""Expansion coefficients as stored on a device: float32, or int16 or int8 with one scale per degree.

A polynomial's degree-k part is C_k(u, ..., u) for a symmetric tensor C_k; a monomial's coefficient is the corresponding
entry of C_k times the monomial's multiplicity, the number of orderings of its factors. Quantization replaces each
coefficient with q_m scale_k. The error is again a symmetric tensor D_k, with entries (q_m scale_k - coefficient_m) /
multiplicity_m. Unfold D_k into a matrix with n rows: one factor indexes the rows, and the others index the columns.
Then

    |D_k(u, ..., u)| <= sigma_k ||u||^k, where sigma_k is the largest singular value of the unfolding,

because the product of the other k - 1 factors is a vector of length ||u||^(k-1). For k = 1, sigma_k is the norm of D_1;
for k = 2, sigma_k is the spectral norm of a matrix. device/bounds.py derives a bound on values from this inequality.
The Frobenius norm of D_k is at least sigma_k, and bounds the growth of the sum of the absolute values of a polynomial's
terms. Rounding errors are proportional to this sum.
"""

import math
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.expansion.monomials import inverse_factorials, n_monomials, spectrum, sq_norm, storage_order
from approxsvm.ir.constants import ROUNDED_UP
from approxsvm.ir.kernel_model import FloatArray

CoefficientType = Literal["float32", "int16", "int8"]
LARGEST: Final = {"int16": 32767, "int8": 127}
# Maximum size of an unfolding. For larger unfoldings, sigma_k would take too long to compute, and the Frobenius norm
# replaces it.
_MAX_UNFOLDED: Final = 1 << 23


@dataclass(frozen=True, eq=False)
class Part:
    """Coefficients of one degree, for all n expansions, in the storage order of the artifact."""

    degree: int
    values: npt.NDArray[Any]  # shape (n, n_monomials), float32, int16 or int8
    scales: npt.NDArray[np.float32] | None  # shape (n,); factors that convert integers to coefficients
    error_norms: FloatArray  # shape (n,); sigma_k, rounded up; 0 for float32
    error_frobenius: FloatArray  # shape (n,); the Frobenius norm of D_k, rounded up; 0 for float32


def parts_of(artifact: Artifact, kind: CoefficientType) -> tuple[Part, ...]:
    """Return the coefficients of degrees 1 through the artifact's degree, stored as `kind`."""
    n, degree, n_all = artifact.n_varying, int(artifact.header["degree"]), len(artifact.expansion_numbers())
    sections = {1: artifact.coefficients("linear"), 2: artifact.coefficients("quadratic")}
    higher = artifact.coefficients("higher").reshape(n_all, -1)
    first = 0
    for k in range(3, degree + 1):
        sections[k] = higher[:, first : first + n_monomials(n, k)]
        first += n_monomials(n, k)
    return tuple(_part(k, sections[k].reshape(n_all, -1), n, kind) for k in range(1, degree + 1))


def _part(degree: int, values: npt.NDArray[np.float32], n_features: int, kind: CoefficientType) -> Part:
    if kind == "float32":
        return Part(degree, values, None, np.zeros(len(values)), np.zeros(len(values)))
    largest = np.abs(values).max(axis=1, initial=0.0).astype(np.float64)
    # Scales are rounded up to the next float32 so that no quotient coefficient / scale exceeds the largest integer. The
    # lower limit avoids division by 0.
    scales = np.nextafter(np.maximum(largest / LARGEST[kind], 2.0**-100).astype(np.float32), np.float32(np.inf))
    exact = values.astype(np.float64)
    steps = scales.astype(np.float64)[:, np.newaxis]
    whole = np.rint(exact / steps)
    assert np.abs(whole).max(initial=0.0) <= LARGEST[kind]
    norms = [_error_norms(error, n_features, degree) for error in whole * steps - exact]
    operator, frobenius = np.array(norms).reshape(-1, 2).T
    return Part(degree, whole.astype(kind), scales, operator, frobenius)


def _error_norms(error: FloatArray, n_features: int, degree: int) -> tuple[float, float]:
    """Return upper bounds on sigma_k and on the Frobenius norm, given the error of each stored coefficient."""
    if degree == 1:
        norm = math.sqrt(float(error @ error)) * ROUNDED_UP
        return norm, norm
    lexicographic = np.empty_like(error)
    lexicographic[storage_order(n_features, degree)] = error
    factorial = math.factorial(degree)
    tensor = lexicographic / (factorial * inverse_factorials(n_features, degree))
    frobenius_sq = factorial * sq_norm(tensor, n_features, degree)
    frobenius = math.sqrt(frobenius_sq) * ROUNDED_UP
    if n_features * n_monomials(n_features, degree - 1) > _MAX_UNFOLDED:
        return frobenius, frobenius
    gram = factorial * spectrum(tensor, n_features, degree)
    operator = math.sqrt(max(float(np.linalg.eigvalsh(gram)[-1]), 0.0) + 1e-9 * frobenius_sq) * ROUNDED_UP
    return min(operator, frobenius), frobenius
