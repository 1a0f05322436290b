"""Coefficients of expansions as a device stores them: float32 as they are, or int16 and int8 with a scale each.

The part of degree k of a form is a symmetric tensor C_k applied to u k times over; a monomial's coefficient is its
entry times its multiplicity, the number of orders of its factors. Quantized, the coefficients are q_m scale_k, and D_k
is the tensor of what they are off by, q_m scale_k - coefficient_m over the multiplicity. Unfolded into a matrix of n
rows, one factor against all others,

    |D_k(u, ..., u)| <= sigma_k ||u||^k,    sigma_k the largest singular value of the unfolding,

because the other k - 1 factors are a vector of length ||u||^(k-1). For k = 1 that is the norm of D_1, for k = 2 the
spectral norm of a matrix. device_bounds.py makes a bound of it. The Frobenius norm of D_k is no less, and says how far
the moduli of a form's terms, which rounding errors are in proportion to, grow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.functions_of_s import ROUNDED_UP
from approxsvm.expansion.monomials import inverse_factorials, n_monomials, spectrum, sq_norm, storage_order
from approxsvm.ir.kernel_model import FloatArray

CoefficientType = Literal["float32", "int16", "int8"]
LARGEST: Final = {"int16": 32767, "int8": 127}
# Unfoldings of more numbers than this would take too long; the Frobenius norm has to do.
_MAX_UNFOLDED: Final = 1 << 23


@dataclass(frozen=True, eq=False)
class Part:
    """The parts of one degree, of every expansion.

    Attributes
    ----------
    degree : int
    values : ndarray of shape (n_expansions, n_monomials), float32, int16 or int8
        In the artifact's order of storage.
    scales : ndarray of shape (n_expansions,), float32, or None
        What whole numbers are multiplied by.
    error_norms, error_frobenius : ndarray of shape (n_expansions,)
        sigma_k and the Frobenius norm of D_k, rounded up; 0 for float32.
    """

    degree: int
    values: npt.NDArray[Any]
    scales: npt.NDArray[np.float32] | None
    error_norms: FloatArray
    error_frobenius: FloatArray


def parts_of(artifact: Artifact, kind: CoefficientType) -> tuple[Part, ...]:
    """Coefficients of the degrees 1 to the artifact's, stored as `kind` says."""
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
    # One float32 up, so that no quotient is beyond the largest whole number; a scale of 0 would divide by zero.
    scales = np.nextafter(np.maximum(largest / LARGEST[kind], 2.0**-100).astype(np.float32), np.float32(np.inf))
    exact = values.astype(np.float64)
    steps = scales.astype(np.float64)[:, np.newaxis]
    whole = np.rint(exact / steps)
    assert np.abs(whole).max(initial=0.0) <= LARGEST[kind]
    norms = [_error_norms(error, n_features, degree) for error in whole * steps - exact]
    operator, frobenius = np.array(norms).reshape(-1, 2).T
    return Part(degree, whole.astype(kind), scales, operator, frobenius)


def _error_norms(error: FloatArray, n_features: int, degree: int) -> tuple[float, float]:
    """Upper bounds of sigma_k and of the Frobenius norm, from what each stored coefficient is off by."""
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
