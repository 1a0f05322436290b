"""Error bounds for sums of kernels or other terms and for polynomial forms, as polynomials in the row's norm r.

The polynomials have nonnegative coefficients, stored in ascending order of the power of r, such that

    |value - exact value at the given row|              <=  majorant(r),
    |change in the exact value if the row moves by e|   <=  slope(r + e) e,

and no error exceeds `most`. Let eta B_i bound the error of an inner product t_i computed by a backend, where B_i =
alpha_i r + beta and alpha_i >= ||v_i||. Then the error of t_i^p is at most p eta (1 + eta)^(p - 1) B_i^p, and the error
of tanh t_i or cos t_i is at most eta B_i. The functions in cpp/include/approxsvm/program/terms.h sum these errors and
each term's other errors.
"""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import polynomial

from approxsvm.artifact.views import Artifact
from approxsvm.ir.compensated import norms_above
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.schema import FORM_HEADER, POLYNOMIAL_HEADER
from approxsvm.reference.term_sums import term_sums


@dataclass(frozen=True)
class Arithmetic:
    """Bounds on the relative errors of a backend's arithmetic, and on the effect of underflow."""

    arguments: float  # error eta of inner products
    terms: float  # error of a term, including the rounding of its coefficient and of the sums that contain it
    functions: float  # error of tanh, cos and exp
    intercepts: float  # error of sums with an intercept
    underflow: float  # bound on the effect of underflow on a value


@dataclass(frozen=True, eq=False)
class SumBounds:
    """Error bounds of all decision functions: `majorant` and `slope` have one row of coefficients per function."""

    majorant: FloatArray
    slope: FloatArray
    most: FloatArray | None  # shape (n_functions,); None if values are unbounded


@dataclass(frozen=True, eq=False)
class Form:
    """Sums of polynomial kernels, stored as linear or quadratic forms (models/FORMAT.md, "polynomial")."""

    constants: FloatArray
    errors: FloatArray  # errors of the constant, linear and quadratic parts, shape (3, n_functions)
    packed: FloatArray  # coefficients, shape (n_functions, n_coefficients)
    norms: FloatArray  # norms of the linear and quadratic parts, shape (2, n_functions)


def fixed_errors(artifact: Artifact, arithmetic: Arithmetic, constants: FloatArray | None = None) -> FloatArray:
    """Return the part of the error that is independent of the row; `constants` defaults to the intercepts."""
    decisions = artifact.decision_numbers()
    of_constants = arithmetic.intercepts * np.abs(decisions["intercept"] if constants is None else constants)
    return np.asarray(decisions["value_error"] + of_constants + arithmetic.underflow)


def bounds_of_terms(
    artifact: Artifact, arithmetic: Arithmetic, power: int, alphas: FloatArray, beta: float, moduli: FloatArray
) -> SumBounds:
    """Bound errors of sums of powers (tanh or cos if `power` is 0); `moduli` is |a_i|, shape (n_functions, n_terms)."""
    kernel_numbers = artifact.polynomial_numbers()  # empty for kernels that are not functions of inner products
    coef_error = 1.001 * float(kernel_numbers[1]) if len(kernel_numbers) else 0.0
    of_terms = arithmetic.terms + coef_error + (0.0 if power else arithmetic.functions)
    sums, fixed = term_sums(power, alphas, beta, moduli), fixed_errors(artifact, arithmetic)
    majorant = sums.majorants(arithmetic.arguments * (1.0 + arithmetic.arguments) ** max(power - 1, 0), of_terms)
    majorant[:, 0] += fixed
    most = None if power else (2.0 + of_terms) * sums.sums + fixed
    return SumBounds(majorant, np.asarray(polynomial.polyder(sums.polynomials, axis=1), np.float64), most)


def form_of(artifact: Artifact) -> Form:
    """Return an artifact's polynomial forms. Because off-diagonal entries are doubled, the norms are upper bounds."""
    numbers = artifact.polynomial_numbers()[len(POLYNOMIAL_HEADER) :].reshape(artifact.n_decisions, -1)
    constants, *errors = numbers[:, : len(FORM_HEADER)].T
    packed = np.ascontiguousarray(numbers[:, len(FORM_HEADER) :])
    d = artifact.n_features
    norms = np.array([norms_above(packed[:, :d]), norms_above(packed[:, d:])])
    return Form(constants, np.array(errors), packed, norms)


def bounds_of_form(artifact: Artifact, arithmetic: Arithmetic, form: Form) -> SumBounds:
    """Bound the errors of polynomial forms whose terms have relative errors of at most `arithmetic.terms`."""
    of_parts = arithmetic.terms * form.norms + form.errors[1:]
    fixed = form.errors[0] + fixed_errors(artifact, arithmetic, form.constants)
    majorant = np.column_stack([fixed, *of_parts])
    slope = np.column_stack([form.norms[0] + form.errors[1], 2.0 * (form.norms[1] + form.errors[2])])
    return SumBounds(majorant, slope, None)
