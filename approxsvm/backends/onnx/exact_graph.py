"""Definitions of models as graphs in float64: kernel sums over support vectors, and forms of polynomial kernels.

**Gaussian.** With u = scale (z - center) and y_i = scale (x_i - center), rounded once, the squared distances are
||u||^2 - 2 u.y_i + ||y_i||^2 by one matrix product. Products and sums, in any order, together with the rounding of u
and y_i, have an error of at most (n_features + 8) 2^-52 (||u|| + ||y_i||)^2. Half of theta = 2 gamma / scale^2 times
this, e, is the error of exp's argument, and the relative error of K_i is at most exp(e) - 1 <= 2 e for e <= 1. Beyond
e = 1/2 it suffices that K_i and its computed value are in [0, 1]. A sum of n_sv products of absolute values at most
|a_i| has an error of n_sv 2^-53 A1 in any order. So the bound is A1 (min(1, 2 e) + (n_sv + 16) 2^-52 + 2^-40), where
2^-40 allows for an exp that is wrong by some units in the last place. If the input map's error moves a row by r, each
K_i changes by at most min(1, sqrt(2 gamma / e) r), because sqrt(2 gamma / e) is the steepest slope of exp(-gamma t^2):
A1 times that is added. (W, which would serve as in bound_table.py, is not in artifacts of mode "exact".)

**Polynomial.** The error of (gamma x_i.z + coef0)^p, relative to (|gamma| R ||z|| + |coef0|)^p, where R is the norm of
the longest support vector, is p (n_features + 8) 2^-52, plus that of the sum as above, plus coef_error. By the
derivative, values of rows at the distance r differ by at most A1 p |gamma| R (|gamma| R (||z|| + r) + |coef0|)^(p - 1)
r. Forms are bounded as in cpp/include/approxsvm/expansion/form.hpp.

**Sigmoid.** tanh(gamma x_i.z + coef0) has a slope of at most 1: its error is (n_features + 8) 2^-52 (|gamma| R ||z|| +
|coef0|), plus |gamma| R r for rows at the distance r, plus 2^-40 for a runtime's tanh; sums and coef_error as above.

**cos.** Angles are counted in turns, t_j = w_j.z + p_j with w_j = vector_j / (2 pi), and the graph's Cos gets only the
fraction of a turn: its argument is at most pi, and its error is assumed to be at most 2^-40. With
S = sum |c_j| ||vector_j|| the angles contribute, together, an error of at most (n_features + 8) 2^-52 (S ||z|| + 8 A1)
in any order, and the sum as above. Values of rows at the distance r differ by at most S r. Beyond 2^50 turns there is
no bound.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Final

import numpy as np

from approxsvm.artifact.terms import Terms, terms_of
from approxsvm.artifact.views import Artifact
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.known_values import KnownValues
from approxsvm.backends.onnx.polynomial_graph import evaluate, monomials, rounding_path, unfolding
from approxsvm.backends.onnx.rows_graph import GraphRows
from approxsvm.errors import UnsupportedModelError
from approxsvm.expansion.monomials import n_monomials
from approxsvm.ir.constants import UNIT64, gaussian_slope
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.outputs import class_pairs
from approxsvm.ir.schema import FORM_HEADER, POLYNOMIAL_HEADER

_ROUNDING: Final = 2.0 * UNIT64
_EXP: Final = 2.0**-40
# Squares below 2^-1074 are lost, which changes the norm of up to 2^20 coordinates by at most 2^-527.
_TINY_NORM: Final = 2.0**-500
# Scaled coordinates are clipped to this: no product of two overflows, and every kernel value is 0.
_FARTHEST: Final = 1e100


def kernel_sums(g: GraphBuilder, artifact: Artifact, rows: GraphRows, *, with_bounds: bool) -> KnownValues:
    """Compute decision values by definition, for an artifact with support vectors or other terms.

    Raises UnsupportedModelError if the graph would exceed its size limit.
    """
    terms = terms_of(artifact)
    if terms is not None:
        if terms.function != "cos":
            raise UnsupportedModelError(f"the ONNX export does not support the {artifact.kernel} kernel")
        return _cos(g, artifact, terms, rows, with_bounds)
    n_sv, d = artifact.dual_coef().shape[1], artifact.n_features
    g.check_room(4 * n_sv * d)
    vectors = artifact.support_vectors()
    find = {"polynomial": _polynomial, "sigmoid": _sigmoid, "gaussian": _gaussian}.get(artifact.kernel)
    if find is None:
        raise UnsupportedModelError(f"the ONNX export does not support the {artifact.kernel} kernel")
    found = find(g, artifact, rows, vectors, with_bounds)
    if n_sv:
        return found
    # An empty sum is 0 even for rows that a step has turned into NaN.
    empty = g.rows_sum(g.op("Mul", rows.values, 0.0), keepdims=True)
    return KnownValues(g.op("Add", found.values, empty), found.bounds)


def _gaussian(
    g: GraphBuilder, artifact: Artifact, rows: GraphRows, vectors: FloatArray, with_bounds: bool
) -> KnownValues:
    header, decisions = artifact.header, artifact.decision_numbers()
    scale, gamma, center = float(header["input_scale"]), float(header["gamma"]), artifact.center.astype(np.float64)
    half_theta, reach = gamma / scale / scale, _longest(scale * (vectors - center))
    if not reach < _FARTHEST / 2:
        raise UnsupportedModelError(f"support vectors are {reach:.3g} away from their mean, which exceeds float64")
    u = g.op("Mul", g.op("Sub", rows.values, center), scale)
    u = g.op("Min", g.op("Max", u, -_FARTHEST), _FARTHEST)
    y = g.op("Mul", g.op("Sub", g.doubles(vectors), center), scale)  # runtimes compute this once, on loading
    sq_norms = g.rows_sum(g.op("Mul", y, y))
    sq_norm = g.rows_sum(g.op("Mul", u, u), keepdims=True)
    products = g.op("MatMul", u, g.op("Transpose", g.op("Mul", y, -2.0), perm=[1, 0]))
    distances = g.op("Max", g.op("Add", g.op("Add", products, sq_norms), sq_norm), 0.0)
    kernel = g.op("Exp", g.op("Mul", distances, -half_theta))
    values = g.op("Add", _weighted_sums(g, artifact, kernel), decisions["intercept"][np.newaxis])
    if not with_bounds:
        return KnownValues(values)
    norm = g.op("Add", g.op("Sqrt", sq_norm), reach)
    rounding = 2.0 * half_theta * (artifact.n_features + 8) * _ROUNDING * UP
    relative = g.op("Mul", g.op("Mul", norm, norm), rounding)
    relative = g.op("Where", g.op("Less", relative, 1.0), relative, 1.0)
    relative = g.op("Add", relative, (len(vectors) + 16) * _ROUNDING + _EXP)
    absolute_sums = _absolute_sums(artifact)
    bounds = g.op("Mul", relative, absolute_sums[np.newaxis])
    if rows.error is not None:
        moved = g.op("Mul", rows.error, gaussian_slope(gamma) * UP)
        moved = g.op("Where", g.op("Less", moved, 1.0), moved, 1.0)
        bounds = g.op("Add", bounds, g.op("Mul", moved, absolute_sums[np.newaxis]))
    return KnownValues(values, _with_fixed_errors(g, artifact, bounds))


def _polynomial(
    g: GraphBuilder, artifact: Artifact, rows: GraphRows, vectors: FloatArray, with_bounds: bool
) -> KnownValues:
    header, decisions = artifact.header, artifact.decision_numbers()
    degree, gamma, coef0 = int(header["degree"]), float(header["gamma"]), artifact.coef0
    products = g.op("MatMul", rows.values, g.op("Transpose", g.doubles(vectors), perm=[1, 0]))
    argument = g.op("Add", g.op("Mul", products, gamma), coef0)
    kernel = argument
    for _ in range(degree - 1):
        kernel = g.op("Mul", kernel, argument)
    values = g.op("Add", _weighted_sums(g, artifact, kernel), decisions["intercept"][np.newaxis])
    if not with_bounds:
        return KnownValues(values)
    steep = abs(gamma) * _longest(vectors)
    norm = _norms(g, rows)
    relative = (degree * (artifact.n_features + 8) + len(vectors) + 16) * _ROUNDING
    relative += float(artifact.polynomial_numbers()[1]) * 1.001
    largest = g.op("Pow", g.op("Add", g.op("Mul", norm, steep), abs(coef0)), float(degree))
    bound = g.op("Mul", largest, relative)
    if rows.error is not None:
        reach = g.op("Add", g.op("Mul", g.op("Add", norm, rows.error), steep), abs(coef0))
        slope = g.op("Mul", g.op("Pow", reach, float(degree - 1)), degree * steep * UP)
        bound = g.op("Add", bound, g.op("Mul", slope, rows.error))
    bounds = g.op("Mul", bound, _absolute_sums(artifact)[np.newaxis])
    return KnownValues(values, _with_fixed_errors(g, artifact, bounds))


def _sigmoid(
    g: GraphBuilder, artifact: Artifact, rows: GraphRows, vectors: FloatArray, with_bounds: bool
) -> KnownValues:
    decisions, gamma, coef0 = artifact.decision_numbers(), float(artifact.header["gamma"]), artifact.coef0
    products = g.op("MatMul", rows.values, g.op("Transpose", g.doubles(vectors), perm=[1, 0]))
    kernel = g.op("Tanh", g.op("Add", g.op("Mul", products, gamma), coef0))
    values = g.op("Add", _weighted_sums(g, artifact, kernel), decisions["intercept"][np.newaxis])
    if not with_bounds:
        return KnownValues(values)
    steep = abs(gamma) * _longest(vectors)
    reach = g.op("Add", g.op("Mul", _norms(g, rows), steep), abs(coef0))
    changed = g.op("Mul", reach, (artifact.n_features + 8) * _ROUNDING)
    if rows.error is not None:
        changed = g.op("Add", changed, g.op("Mul", rows.error, steep * UP))
    fixed = (len(vectors) + 16) * _ROUNDING + _EXP + float(artifact.polynomial_numbers()[1]) * 1.001
    bounds = g.op("Mul", g.op("Add", changed, fixed), _absolute_sums(artifact)[np.newaxis])
    return KnownValues(values, _with_fixed_errors(g, artifact, bounds))


def _cos(g: GraphBuilder, artifact: Artifact, terms: Terms, rows: GraphRows, with_bounds: bool) -> KnownValues:
    d, n, decisions = artifact.n_features, artifact.n_terms, artifact.decision_numbers()
    g.check_room(8 * n * d)
    turns = g.op("MatMul", rows.values, g.doubles(np.ascontiguousarray(terms.vectors.T) / (2.0 * math.pi)))
    turns = g.op("Add", turns, (terms.shifts / (2.0 * math.pi))[np.newaxis])
    rest = g.op("Sub", turns, g.op("Round", turns))
    each = g.op("Cos", g.op("Mul", rest, 2.0 * math.pi))
    sums = g.op("MatMul", each, g.doubles(np.ascontiguousarray(terms.coef.T)))
    values = g.op("Add", sums, decisions["intercept"][np.newaxis])
    if not with_bounds:
        return KnownValues(values)
    sum_moduli, slope = decisions["sum_moduli"][np.newaxis], decisions["total"][np.newaxis]
    norm = _norms(g, rows)
    rounding = (d + 8) * _ROUNDING
    fixed = (8.0 * rounding + (n + 16) * _ROUNDING + _EXP) * sum_moduli
    bounds = g.op("Add", g.op("Mul", norm, rounding * slope), fixed)
    is_reducible = g.op("Less", norm, 2.0**50 / max(_longest(terms.vectors), 2.0**-60))
    bounds = g.op("Where", is_reducible, bounds, math.inf)
    if rows.error is not None:
        bounds = g.op("Add", bounds, g.op("Mul", rows.error, slope * UP))
    return KnownValues(values, _with_fixed_errors(g, artifact, bounds))


def forms(g: GraphBuilder, artifact: Artifact, rows: GraphRows, *, with_bounds: bool) -> KnownValues:
    """Compute decision values of a polynomial kernel whose sum is stored as a form."""
    header, d = artifact.header, artifact.n_features
    degree, n_forms = int(header["degree"]), int(header["n_decisions"])
    numbers = artifact.polynomial_numbers()[len(POLYNOMIAL_HEADER) :].reshape(n_forms, -1)
    heads, packed = numbers[:, : len(FORM_HEADER)], numbers[:, len(FORM_HEADER) :]
    constant, constant_error, linear_error, quadratic_error = heads.T
    places = unfolding(d, degree)
    g.check_room(8 * n_forms * places.size)
    matrix = np.concatenate([packed, np.zeros((n_forms, 1))], axis=1)[:, places]
    of_rows = monomials(g, rows.values, d, degree)
    values = g.op("Add", evaluate(g, of_rows, g.doubles(matrix)), constant[np.newaxis])
    if not with_bounds:
        return KnownValues(values)
    # Off-diagonal entries are doubled, so these norms are overestimates.
    linear = np.array([_norm(part) for part in packed[:, :d]])
    quadratic = np.array([_norm(part) for part in packed[:, d:]]) if degree > 1 else np.zeros(n_forms)
    assert packed.shape[1] == d + (n_monomials(d, 2) if degree > 1 else 0)
    rounding = rounding_path(d, degree) * _ROUNDING
    norm = _norms(g, rows)
    bound = _polynomial_in(
        g,
        norm,
        [
            rounding * np.abs(constant) + constant_error + artifact.decision_numbers()["value_error"] + 2.0**-1000,
            rounding * linear + linear_error,
            rounding * quadratic + quadratic_error,
        ],
    )
    if rows.error is not None:
        reach = g.op("Add", g.op("Mul", norm, 2.0), rows.error)
        slope = _polynomial_in(g, reach, [linear, quadratic])
        bound = g.op("Add", bound, g.op("Mul", slope, rows.error))
    return KnownValues(values, g.op("Mul", bound, UP))


def _polynomial_in(g: GraphBuilder, x: str, coefficients: list[FloatArray]) -> str:
    """Evaluate by Horner's rule: x is (n_rows, 1), each coefficient an array with one number per decision function."""
    result: Any = coefficients[-1][np.newaxis]
    for coefficient in coefficients[-2::-1]:
        result = g.op("Add", g.op("Mul", x, result), coefficient[np.newaxis])
    return str(result)


def _weighted_sums(g: GraphBuilder, artifact: Artifact, kernel: str) -> str:
    """Compute sums of kernel values times coefficients, shape (n_rows, n_decisions)."""
    coef = artifact.dual_coef()
    n_classes = len(artifact.labels)
    if not artifact.has_pairs:
        return g.op("MatMul", kernel, g.doubles(np.ascontiguousarray(coef.T)))
    # LIBSVM's block: the support vectors of a class contribute only to its pairs, one row of coefficients for each.
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


def _with_fixed_errors(g: GraphBuilder, artifact: Artifact, bounds: str) -> str:
    """Add the errors that do not depend on the row."""
    decisions = artifact.decision_numbers()
    fixed = decisions["value_error"] + _EXP * np.abs(decisions["intercept"]) + 2.0**-1000
    return g.op("Mul", g.op("Add", bounds, fixed[np.newaxis]), UP)


def _absolute_sums(artifact: Artifact) -> FloatArray:
    """Return A1 of each decision function, rounded up."""
    coef, n_classes = np.abs(artifact.dual_coef()), len(artifact.labels)
    up = 1.0 + 1e-9
    if not artifact.has_pairs:
        return np.asarray(coef.sum(axis=1) * up)
    starts = np.cumsum([0, *artifact.numbers("class_counts").astype(np.int64)])
    sums = np.stack([coef[:, a:b].sum(axis=1) for a, b in pairwise(starts)])
    return np.array([sums[i, j - 1] + sums[j, i] for i, j in class_pairs(n_classes)]) * up


def _longest(vectors: FloatArray) -> float:
    """Return the largest norm of a row, rounded up, without overflow of squares."""
    largest = float(np.abs(vectors).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    return largest * math.sqrt(float(np.square(vectors / largest).sum(axis=1).max())) * UP


def _norms(g: GraphBuilder, rows: GraphRows) -> str:
    """Return norms of the rows, rounded up; the added constant exceeds what squares lose by underflow."""
    root = g.op("Sqrt", g.rows_sum(g.op("Mul", rows.values, rows.values), keepdims=True))
    return g.op("Add", g.op("Mul", root, UP), _TINY_NORM)


def _norm(numbers: FloatArray) -> float:
    return _longest(numbers[np.newaxis])
