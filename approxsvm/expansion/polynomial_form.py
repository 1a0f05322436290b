"""Sums of linear and quadratic kernels, expanded to linear and quadratic forms without truncation error.

The kernel (gamma x.z + coef0)^2 expands to gamma^2 (x.z)^2 + 2 gamma coef0 x.z + coef0^2, so a sum over any number of
support vectors is the sum of a constant, a linear and a quadratic term (Claesen et al. 2014, Eq. 3.13 to 3.16). A sum
of linear kernels has only a constant and a linear term.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from approxsvm.errors import UnsupportedModelError
from approxsvm.expansion.monomials import n_monomials
from approxsvm.expansion.taylor import check_size
from approxsvm.ir.compensated import norms_above
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.kernel_model import MAX_FORM_DEGREE, FloatArray, KernelModel

_BLOCK_ROWS: Final = 4096


@dataclass(frozen=True, eq=False)
class PolynomialForm:
    """Decision functions f_k(z) = constants_k + linear_k . z + sum_{i <= j} triangle_k,ij z_i z_j.

    The three arrays of errors include the rounding of float64 sums over support vectors and the errors of the source's
    coefficients. They bound the errors of the constant, of the linear term (Euclidean norm) and of the quadratic term
    (Frobenius norm of the symmetric matrix).
    """

    constants: FloatArray  # (n_decisions,), including the intercepts
    linear: FloatArray  # (n_decisions, n_features)
    triangle: FloatArray | None  # (n_decisions, d (d + 1) / 2): row by row, off-diagonal doubled; None for degree 1
    constant_errors: FloatArray  # (n_decisions,)
    linear_errors: FloatArray
    quadratic_errors: FloatArray

    @property
    def is_finite(self) -> bool:
        """True if every value is finite."""
        parts = (self.constants, self.linear, self.constant_errors, self.linear_errors, self.quadratic_errors)
        return all(np.isfinite(part).all() for part in (*parts, *([] if self.triangle is None else [self.triangle])))


def is_cheaper(model: KernelModel) -> bool:
    """Return whether evaluating the form costs less per row than summing over the support vectors."""
    if model.degree > MAX_FORM_DEGREE:
        return False
    numbers = sum(n_monomials(model.n_features, k) for k in range(1, model.degree + 1))
    return model.n_decisions * numbers <= model.n_sv * (model.n_features + len(model.dual_coef))


def sum_up(model: KernelModel) -> PolynomialForm:
    """Compute the linear or quadratic form of a model with a polynomial kernel of degree 1 or 2.

    A sum of n_sv products with up to three factors each has at most n_sv + 20 roundings, in any order. Raises
    UnsupportedModelError if the degree is higher, or if there are too many features for a quadratic form.
    """
    if model.degree > MAX_FORM_DEGREE:
        raise UnsupportedModelError(
            f"the kernel of this {model.source} is polynomial of degree {model.degree}, but mode 'approximate' needs a "
            f"form, which only degrees 1 and 2 have"
        )
    check_size(model.n_features, model.degree)
    d, n_decisions, coef0 = model.n_features, model.n_decisions, np.float64(model.coef0)
    is_quadratic = model.degree == 2
    rows, columns = np.triu_indices(d) if is_quadratic else (np.empty(0, int), np.empty(0, int))
    constants, linear = model.intercept.copy(), np.zeros((n_decisions, d))
    triangle = np.empty((n_decisions, len(rows))) if is_quadratic else None
    moduli = np.zeros((3, n_decisions))  # sums of |a_i|, |a_i| ||gamma x_i||, |a_i| ||gamma x_i||^2
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # the caller checks is_finite
        scale = 2.0 * coef0 if is_quadratic else np.float64(1.0)  # scale of the linear term
        power = coef0**model.degree
        for k in range(n_decisions):
            coefficients, quadratic = model.coefficients(k), np.zeros((d, d) if is_quadratic else (0, 0))
            for first in range(0, model.n_sv, _BLOCK_ROWS):
                last = min(first + _BLOCK_ROWS, model.n_sv)
                # The vectors are multiplied by gamma first, because gamma^2 may overflow even if the products with the
                # vectors do not.
                vectors: Any = model.support_vectors[first:last]  # sparse vectors stay sparse in a linear form
                if is_quadratic:
                    vectors = model.dense_support_vectors(first, last)
                block, a = model.gamma * vectors, coefficients[first:last]
                norms = norms_above(block)
                linear[k] += a @ block
                if is_quadratic:
                    quadratic += block.T @ (a[:, np.newaxis] * block)
                moduli[:, k] += [np.abs(a).sum(), np.abs(a) @ norms, (np.abs(a) * norms) @ norms]
            constants[k] += power * coefficients.sum()
            if triangle is not None:
                symmetric = (quadratic + quadratic.T) / 2
                triangle[k] = symmetric[rows, columns] * np.where(rows == columns, 1.0, 2.0)
        linear *= scale
        path = 1.01 * ((model.n_sv + 20) * UNIT64 + model.coef_error)
        return PolynomialForm(
            constants=constants,
            linear=linear,
            triangle=triangle,
            constant_errors=path * (abs(power) * moduli[0] + np.abs(model.intercept)) + 2.0**-1000,
            linear_errors=path * abs(scale) * moduli[1] + 2.0**-1000,
            quadratic_errors=path * moduli[2] + 2.0**-1000 if is_quadratic else np.zeros(n_decisions),
        )
