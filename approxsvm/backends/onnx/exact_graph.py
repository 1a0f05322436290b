"""Graphs that evaluate a model's definition in float64: a sum over support vectors, or a polynomial form.

backends/sum_bounds.py bounds the errors, given the relative errors of a graph's arithmetic. The latter are at most eta
= (n_features + 8) 2^-52 for an inner product, summed in any order, and (n + 16) 2^-52 for a sum of n terms. The term
2^-40 covers errors of a few units in the last place in tanh, cos and exp, and the addition of the intercept.

**Gaussian.** With u = scale (z - center) and y_i = scale (x_i - center), rounded once, the squared distances ||u||^2 -
2 u.y_i + ||y_i||^2 need one matrix product. Their error, including the rounding of u and y_i, is at most eta (||u|| +
||y_i||)^2. The error e of exp's argument is theta / 2 = gamma / scale^2 times this bound, and the relative error of K_i
is at most exp(e) - 1 <= 2 e for e <= 1. For e > 1/2, it suffices that K_i and its computed value lie in [0, 1]; so no
error exceeds A1, apart from the rounding of the sum. If the input map's error moves a row by r, each K_i changes by at
most sqrt(2 gamma / e) r, because sqrt(2 gamma / e) is the steepest slope of exp(-gamma t^2). (The bound with W in
bound_table.py is not available, because "exact" artifacts do not contain W.)

**cos.** Angles are measured in turns, t_j = w_j.z + p_j with w_j = vector_j / (2 pi), and only the fraction of a turn
is passed to the graph's Cos, whose argument is at most pi. Setting beta = 8 covers the roundings of p_j and of the
fraction. Beyond 2^50 turns, the bound is infinite.
"""

import math
from typing import Any, Final

import numpy as np

from approxsvm.artifact.terms import Terms, terms_of
from approxsvm.artifact.views import Artifact
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.known_values import KnownValues
from approxsvm.backends.onnx.polynomial_graph import evaluate, monomials, rounding_path, unfolding
from approxsvm.backends.onnx.rows_graph import GraphRows
from approxsvm.backends.sum_bounds import Arithmetic, SumBounds, bounds_of_form, bounds_of_terms, fixed_errors, form_of
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.compensated import norms_above
from approxsvm.ir.constants import UNIT64, gaussian_slope
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.outputs import class_pairs
from approxsvm.reference.term_sums import term_sums

_ROUNDING: Final = 2.0 * UNIT64
_EXP: Final = 2.0**-40
_UNDERFLOW: Final = 2.0**-1000
_MOST_ANGLE: Final = 8.0
# Squares below 2^-1074 underflow. This changes the norm of up to 2^20 coordinates by at most 2^-527.
_TINY_NORM: Final = 2.0**-500
# Limit to which scaled coordinates are clipped: no product of two overflows, and every kernel value there is 0.
_FARTHEST: Final = 1e100


def kernel_sums(g: GraphBuilder, artifact: Artifact, rows: GraphRows, *, with_bounds: bool) -> KnownValues:
    """Compute decision values by their definition, for an artifact with support vectors or other terms.

    Raises UnsupportedModelError if the graph would exceed the size limit.
    """
    terms = terms_of(artifact)
    if terms is not None:
        if terms.function != "cos":
            raise UnsupportedModelError(f"the ONNX export does not support the {artifact.kernel} kernel")
        return _cos(g, artifact, terms, rows, with_bounds)
    n_sv, d = artifact.dual_coef().shape[1], artifact.n_features
    g.check_room(4 * n_sv * d)
    vectors = artifact.support_vectors()
    find = {"polynomial": _of_products, "sigmoid": _of_products, "gaussian": _gaussian}.get(artifact.kernel)
    if find is None:
        raise UnsupportedModelError(f"the ONNX export does not support the {artifact.kernel} kernel")
    found = find(g, artifact, rows, vectors, with_bounds)
    if n_sv:
        return found
    # Without support vectors, adding 0 times the row preserves the NaN of rows that a step has mapped to NaN.
    empty = g.rows_sum(g.op("Mul", rows.values, 0.0), keepdims=True)
    return KnownValues(g.op("Add", found.values, empty), found.bounds)


def _gaussian(
    g: GraphBuilder, artifact: Artifact, rows: GraphRows, vectors: FloatArray, with_bounds: bool
) -> KnownValues:
    header, decisions = artifact.header, artifact.decision_numbers()
    scale, gamma, center = float(header["input_scale"]), float(header["gamma"]), artifact.center.astype(np.float64)
    half_theta, reach = gamma / scale / scale, norms_above(scale * (vectors - center))
    if not reach.max(initial=0.0) < _FARTHEST / 2:
        raise UnsupportedModelError(
            f"support vectors are {reach.max():.3g} away from their mean, which exceeds float64"
        )
    u = g.op("Mul", g.op("Sub", rows.values, center), scale)
    u = g.op("Min", g.op("Max", u, -_FARTHEST), _FARTHEST)
    y = g.op("Mul", g.op("Sub", g.doubles(vectors), center), scale)  # runtimes fold this constant when loading
    sq_norms = g.rows_sum(g.op("Mul", y, y))
    sq_norm = g.rows_sum(g.op("Mul", u, u), keepdims=True)
    products = g.op("MatMul", u, g.op("Transpose", g.op("Mul", y, -2.0), perm=[1, 0]))
    distances = g.op("Max", g.op("Add", g.op("Add", products, sq_norms), sq_norm), 0.0)
    kernel = g.op("Exp", g.op("Mul", distances, -half_theta))
    values = g.op("Add", _weighted_sums(g, artifact, kernel), decisions["intercept"][np.newaxis])
    if not with_bounds:
        return KnownValues(values)
    arithmetic, moduli = _arithmetic(artifact.n_features, len(vectors)), np.abs(artifact.decision_coef())
    # sum_i |a_i| (r + ||y_i||)^2, in ascending powers of r
    squares = term_sums(2, reach * UP, 1.0, moduli).polynomials[:, ::-1]
    sums, fixed = moduli.sum(axis=1), fixed_errors(artifact, arithmetic)
    of_terms = (arithmetic.terms + arithmetic.functions) * sums + fixed
    majorant = 2.0 * half_theta * arithmetic.arguments * squares
    majorant[:, 0] += of_terms
    bounds = SumBounds(majorant, (gaussian_slope(gamma) * sums)[:, np.newaxis], sums + of_terms)
    return KnownValues(values, _bound(g, rows, g.op("Mul", g.op("Sqrt", sq_norm), UP), bounds))


def _of_products(
    g: GraphBuilder, artifact: Artifact, rows: GraphRows, vectors: FloatArray, with_bounds: bool
) -> KnownValues:
    degree, gamma, coef0 = int(artifact.header["degree"]), float(artifact.header["gamma"]), artifact.coef0
    products = g.op("MatMul", rows.values, g.op("Transpose", g.doubles(vectors), perm=[1, 0]))
    argument = g.op("Add", g.op("Mul", products, gamma), coef0)
    kernel = argument if degree else g.op("Tanh", argument)
    for _ in range(degree - 1):
        kernel = g.op("Mul", kernel, argument)
    values = g.op("Add", _weighted_sums(g, artifact, kernel), artifact.decision_numbers()["intercept"][np.newaxis])
    if not with_bounds:
        return KnownValues(values)
    alphas, moduli = abs(gamma) * norms_above(vectors) * UP, np.abs(artifact.decision_coef())
    arithmetic = _arithmetic(artifact.n_features, len(vectors))
    bounds = bounds_of_terms(artifact, arithmetic, degree, alphas, abs(coef0), moduli)
    return KnownValues(values, _bound(g, rows, _norms(g, rows), bounds))


def _cos(g: GraphBuilder, artifact: Artifact, terms: Terms, rows: GraphRows, with_bounds: bool) -> KnownValues:
    d, n = artifact.n_features, artifact.n_terms
    g.check_room(8 * n * d)
    turns = g.op("MatMul", rows.values, g.doubles(np.ascontiguousarray(terms.vectors.T) / (2.0 * math.pi)))
    turns = g.op("Add", turns, (terms.shifts / (2.0 * math.pi))[np.newaxis])
    rest = g.op("Sub", turns, g.op("Round", turns))
    each = g.op("Cos", g.op("Mul", rest, 2.0 * math.pi))
    sums = g.op("MatMul", each, g.doubles(np.ascontiguousarray(terms.coef.T)))
    values = g.op("Add", sums, artifact.decision_numbers()["intercept"][np.newaxis])
    if not with_bounds:
        return KnownValues(values)
    norm, alphas = _norms(g, rows), norms_above(terms.vectors) * UP
    bounds = bounds_of_terms(artifact, _arithmetic(d, n), 0, alphas, _MOST_ANGLE, np.abs(terms.coef))
    is_reducible = g.op("Less", norm, 2.0**50 / max(float(alphas.max()), 2.0**-60))
    return KnownValues(values, g.op("Where", is_reducible, _bound(g, rows, norm, bounds), math.inf))


def forms(g: GraphBuilder, artifact: Artifact, rows: GraphRows, *, with_bounds: bool) -> KnownValues:
    """Compute decision values of a polynomial-kernel model stored as linear or quadratic forms."""
    d, degree, form = artifact.n_features, int(artifact.header["degree"]), form_of(artifact)
    n_forms, places = len(form.packed), unfolding(d, degree)
    g.check_room(8 * n_forms * places.size)
    matrix = np.concatenate([form.packed, np.zeros((n_forms, 1))], axis=1)[:, places]
    of_rows = monomials(g, rows.values, d, degree)
    values = g.op("Add", evaluate(g, of_rows, g.doubles(matrix)), form.constants[np.newaxis])
    if not with_bounds:
        return KnownValues(values)
    rounding = rounding_path(d, degree) * _ROUNDING
    bounds = bounds_of_form(artifact, Arithmetic(0.0, rounding, 0.0, rounding, _UNDERFLOW), form)
    return KnownValues(values, _bound(g, rows, _norms(g, rows), bounds))


def _arithmetic(n_features: int, n_terms: int) -> Arithmetic:
    """Return the relative errors of a sum computed in a graph."""
    return Arithmetic((n_features + 8) * _ROUNDING, (n_terms + 16) * _ROUNDING, _EXP, _EXP, _UNDERFLOW)


def _bound(g: GraphBuilder, rows: GraphRows, norm: str, bounds: SumBounds) -> str:
    """Bound the errors of the values of rows with the norms `norm`, including the input map's error."""
    bound = _polynomial_in(g, norm, bounds.majorant)
    if rows.error is not None:
        slope = _polynomial_in(g, g.op("Add", norm, rows.error), bounds.slope)
        bound = g.op("Add", bound, g.op("Mul", slope, rows.error))
    if bounds.most is not None:
        most = bounds.most[np.newaxis]
        bound = g.op("Where", g.op("Less", bound, most), bound, most)
    if rows.error is not None:  # if the error is NaN, the source may reject the row
        bound = g.op("Where", g.op("Less", rows.error, math.inf), bound, math.inf)
    return g.op("Mul", bound, UP)


def _polynomial_in(g: GraphBuilder, x: str, coefficients: FloatArray) -> Any:
    """Evaluate polynomials by Horner's rule; x has shape (n_rows, 1), `coefficients` has shape (n_functions, n)."""
    result: Any = coefficients[:, -1][np.newaxis]
    for coefficient in coefficients.T[-2::-1]:
        result = g.op("Add", g.op("Mul", x, result), coefficient[np.newaxis])
    return result


def _weighted_sums(g: GraphBuilder, artifact: Artifact, kernel: str) -> str:
    """Compute the weighted sums of kernel values, of shape (n_rows, n_decisions)."""
    coef = artifact.dual_coef()
    n_classes = len(artifact.labels)
    if not artifact.has_pairs:
        return g.op("MatMul", kernel, g.doubles(np.ascontiguousarray(coef.T)))
    # In LIBSVM's coefficient array, the support vectors of a class have one row per pair that includes the class; they
    # contribute to no other pair.
    ends = np.cumsum(artifact.numbers("class_counts").astype(np.int64))
    counts = np.diff(ends, prepend=0)
    of_class = g.op_with_outputs(n_classes, "Split", kernel, counts, axis=1)
    parts = []
    for c, name in enumerate(of_class):
        block = coef[:, ends[c] - counts[c] : ends[c]]
        parts.append(g.op("MatMul", name, g.doubles(np.ascontiguousarray(block.T))))
    sums = g.op("Concat", *parts, axis=1)
    pairs = class_pairs(n_classes)
    first = [i * (n_classes - 1) + j - 1 for i, j in pairs]
    second = [j * (n_classes - 1) + i for i, j in pairs]
    return g.op("Add", g.columns(sums, first), g.columns(sums, second))


def _norms(g: GraphBuilder, rows: GraphRows) -> str:
    """Return upper bounds on row norms; the added constant exceeds the error caused by underflow of squares."""
    root = g.op("Sqrt", g.rows_sum(g.op("Mul", rows.values, rows.values), keepdims=True))
    return g.op("Add", g.op("Mul", root, UP), _TINY_NORM)
