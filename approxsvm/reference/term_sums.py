"""Bounds on sums of powers, tanh or cos, from the records of these terms in cpp/include/approxsvm/program/terms.h.

The power of a term is 0 for tanh and cos. A1 = sum_i |a_i|, and M(r) = sum_i |a_i| (alpha_i r + beta)^max(power, 1) for
rows of norm r.
"""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import polynomial

from approxsvm import _native
from approxsvm.ir.kernel_model import FloatArray


@dataclass(frozen=True, eq=False)
class TermSums:
    """A1 and M for several functions."""

    power: int
    reach: float  # largest alpha_i
    coefficients: FloatArray  # coefficients of the polynomial M in reach * r, of shape (n_functions, max(power, 1) + 1)
    sums: FloatArray  # A1, of shape (n_functions,)

    @np.errstate(all="ignore")
    def moduli_at(self, r: FloatArray, order: int = 0) -> FloatArray:
        """Compute M, or its derivative of the given order, at rows of norm r; return shape (n_rows, n_functions)."""
        coefficients = polynomial.polyder(self.coefficients, order, axis=1) * self.reach**order
        return np.asarray(polynomial.polyval(self.reach * r, coefficients.T).T)

    @property
    def polynomials(self) -> FloatArray:
        """Coefficients of the polynomial M in r."""
        with np.errstate(all="ignore"):
            return self.coefficients * self.reach ** np.arange(self.coefficients.shape[1])

    def errors(self, of_arguments: float, of_terms: float, moduli: FloatArray) -> FloatArray:
        """Bound the rounding errors of sums with this M, given the relative errors of arguments and terms."""
        return np.asarray(_native.sum_error(self.power, of_arguments, of_terms, moduli, self.sums))

    def majorants(self, of_arguments: float, of_terms: float) -> FloatArray:
        """Return the coefficients of the polynomial in r that `errors` evaluates."""
        constants = np.zeros_like(self.coefficients)
        constants[:, 0] = self.sums
        return np.asarray(_native.sum_error(self.power, of_arguments, of_terms, self.polynomials, constants))


@np.errstate(all="ignore")
def term_sums(power: int, alphas: FloatArray, beta: float, moduli: FloatArray) -> TermSums:
    """Return the sums of terms; `alphas` has shape (n,), and `moduli`, the |a_i|, has shape (n_functions, n)."""
    reach, moments = _native.term_moments(power, alphas, moduli)
    raised = np.float64(beta) ** np.arange(moments.shape[1])[::-1]
    return TermSums(power, reach, moments * raised, moduli.sum(axis=1))
