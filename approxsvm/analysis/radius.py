"""Certified radii: distances by which rows may move without changing their labels.

With the Gaussian kernel, f - b for f = sum_i a_i K(x_i, .) + b lies in a reproducing kernel Hilbert space, where f(z) -
b is the inner product of f - b and K(z, .). So the values at two points z and z' at a distance d differ by at most

    W ||K(z, .) - K(z', .)|| = W sqrt(2 - 2 exp(-gamma d^2)),    W^2 = sum_ij a_i a_j K(x_i, x_j).

The slope of a Gaussian is at most sqrt(2 gamma / e) (constants.py), and the values of a Gaussian are in (0, 1]. So,
term by term, the values also differ by at most

    A1 min(sqrt(2 gamma / e) d, 1),    A1 = sum_i |a_i|.

Let change(d) be the smaller of the two bounds. If the value computed at z has the error bound e, the source's value at
z' differs from it by at most e + v + change(d). Here v (`value_error`) bounds the difference between the model and its
source at any row, because e only covers the difference at z. The resulting intervals, one per decision function, form a
box. The label cannot change if all points of the box yield the same label. The core checks this condition for every
label rule (`certified_class`), so that class pairs that cannot affect the majority do not matter. A bisection
approximates the largest d. Every d that passes the test is a valid radius, even if it is not the largest.

The input map may scale, select, clip or project columns. Clipping never increases distances, and the other steps are
linear. So if a raw row moves by r, the mapped row moves by at most L r, where L is the product of the spectral norms of
the linear maps between clipping steps. The radius for raw rows is d / L.

Rounding: each result needs only a few operations with relative errors of a few 2^-53 and is multiplied by 1 + 2^-30. If
W is computed here, W^2 is first increased by (2 m + 2 n + 20) 2^-53 A1^2, which bounds the float64 error of a sum of
n^2 kernel values computed from m features. Spectral norms are increased by 2^-30 times the Frobenius norm.
"""

import math
from typing import Any, Final

import numpy as np

from approxsvm.artifact.views import Artifact
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.constants import UNIT64, gaussian_slope
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.ops import Affine, Projection
from approxsvm.runtime.evaluator import BOUNDS, VALUES, Evaluator, Values, native_outputs

_UP: Final = 1.0 + 2.0**-30
_STEPS: Final = 64  # bisection steps; the precision is 2^-64 times the distance beyond which Gaussians vanish
_MOST_VECTORS: Final = 1 << 13  # maximum number of support vectors for which W is computed
_BLOCK: Final = 1 << 9


def certified_radius(evaluator: Evaluator, rows: Any) -> FloatArray:
    """Return the certified radius of each raw row, shape (n_rows,); 0 for rows without a certificate.

    Raises UnsupportedModelError under the conditions documented in `CompiledModel.certified_radius`.
    """
    artifact = evaluator.artifact
    if artifact.members or artifact.task == "regression" or artifact.kernel != "gaussian":
        kind = (
            "an ensemble" if artifact.members else "a regression" if artifact.task == "regression" else artifact.kernel
        )
        raise UnsupportedModelError(f"certified radii need a classifier with the Gaussian kernel, not {kind}")
    stretch = 1.0 if artifact.input_map is None else _stretch(artifact.input_map)
    exact: Values = "promised" if artifact.mode == "approximate" else "exact"  # "approximate" has no exact values
    values, bounds = evaluator.evaluate(rows, VALUES | BOUNDS, exact)
    n_rows = len(values)
    values, bounds = (np.ascontiguousarray(one.reshape(n_rows, -1 if n_rows else 1)) for one in (values, bounds))
    numbers, gamma = artifact.decision_numbers(), float(artifact.header["gamma"])
    absolute_sums, norms = numbers["sum_moduli"] * _UP, _norms(artifact)
    fixed = bounds + numbers["value_error"]

    def is_certain(distances: FloatArray) -> Any:
        d = distances[:, np.newaxis]
        with np.errstate(invalid="ignore", over="ignore"):
            distance = np.sqrt(-2.0 * np.expm1(-gamma * d * d))
            change = np.minimum(norms * distance, absolute_sums * np.minimum(gaussian_slope(gamma) * d, 1.0))
        slack = fixed + np.where(np.isnan(change), absolute_sums, change) * _UP
        if artifact.task == "one_class":
            return np.abs(values[:, 0]) > slack[:, 0]
        outputs = native_outputs(artifact.outputs, artifact.task, len(artifact.labels))
        return outputs.certified_class(values, np.ascontiguousarray(slack * _UP))[1]

    low = np.zeros(n_rows)
    certain = is_certain(low)
    # At this distance, Gaussians are negligible relative to 1. A label certified up to this distance is certified at
    # any distance.
    end = 1.0 if gamma == 0.0 else math.sqrt(64.0 / gamma)
    everywhere = is_certain(np.full(n_rows, np.inf if gamma > 0.0 else end))
    high = np.full(n_rows, end)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        passes = is_certain(middle)
        low, high = np.where(passes, middle, low), np.where(passes, high, middle)
    if math.isinf(stretch):
        return np.zeros(n_rows)
    radius = low / (stretch * _UP) if stretch > 0.0 else np.full(n_rows, np.inf)
    radius = np.where(everywhere, np.inf, np.where(certain, radius, 0.0))
    return np.asarray(radius)


def _norms(artifact: Artifact) -> FloatArray:
    """Return W for each decision function, rounded up; infinity if it is unknown."""
    known = np.asarray(artifact.decision_numbers()["total"]) * _UP
    n_sv = artifact.dual_coef().shape[1]
    if (known > 0.0).all() or not 0 < n_sv <= _MOST_VECTORS:
        return np.where(known > 0.0, known, np.inf)
    vectors, gamma = artifact.support_vectors(), float(artifact.header["gamma"])
    coef = artifact.decision_coef()
    from scipy.spatial.distance import cdist

    squares = np.zeros(len(coef))
    for first in range(0, n_sv, _BLOCK):
        part = slice(first, first + _BLOCK)
        kernel = np.exp(-gamma * cdist(vectors[part], vectors, "sqeuclidean"))
        squares += np.einsum("pi,pi->p", coef[:, part], coef @ kernel.T)
    absolute_sums = np.abs(coef).sum(axis=1) * _UP
    lost = (2.0 * vectors.shape[1] + 2.0 * n_sv + 20.0) * UNIT64 * absolute_sums * absolute_sums
    computed: FloatArray = np.sqrt(np.maximum(squares, 0.0) + lost) * _UP
    return np.where(known > 0.0, known, computed)


def _stretch(map_: InputMap) -> float:
    """Bound the factor by which the input map stretches distances.

    Between clipping steps, the linear map has one factor per column before the first projection, and is a matrix
    afterwards. The bound is infinite if factors are so large or small that products might overflow or underflow.
    """
    product, columns = 1.0, map_.columns
    linear: FloatArray = np.ones(len(columns))
    absolute, roundings = linear, 0  # sums of the absolute values of products, which bound the effect of cancellation
    for op in map_.ops:
        n = len(linear.T)
        if isinstance(op, Affine):
            factors = _factors(Affine.covering([op], 0, n))
            if not _are_moderate(factors, 2.0**300):
                return math.inf
            linear, absolute = linear * factors, absolute * factors
            roundings += 4
            is_limited = op.low is not None or op.high is not None
            # If a limit clips one copy of a column but not another, the copies may no longer cancel.
            if is_limited and (linear.ndim == 2 or len(np.unique(columns)) < len(columns)):
                product *= _norm(linear, columns, absolute, roundings)
                linear, columns = np.ones(n), np.arange(n)
                absolute, roundings = linear, 0
        elif isinstance(op, Projection):
            roundings += 1 if linear.ndim == 1 else linear.shape[1] + 1
            if not _are_moderate(op.matrix, 2.0**300):
                return math.inf
            made = np.zeros((n, op.n_outputs))
            made[op.first : op.end] = op.matrix
            matrix = op.replaced(np.eye(n), made)
            linear, absolute = _projected(linear, matrix), _projected(absolute, np.abs(matrix))
        else:
            raise UnsupportedModelError(f"certified radii do not support {op.kind}, which has no largest slope")
        if not _are_moderate(absolute, 2.0**600):
            return math.inf
    return product * _norm(linear, columns, absolute, roundings) * _UP


def _are_moderate(numbers: FloatArray, limit: float) -> bool:
    """Return whether the absolute values of all nonzero elements are between 1 / `limit` and `limit`."""
    absolute = np.abs(numbers[numbers != 0.0])
    return bool(((absolute >= 1.0 / limit) & (absolute <= limit)).all())


def _projected(linear: FloatArray, matrix: FloatArray) -> FloatArray:
    product: FloatArray = linear[:, np.newaxis] * matrix if linear.ndim == 1 else linear @ matrix
    return product


def _factors(op: Affine) -> FloatArray:
    ones = np.ones(op.n_features)
    multiply, divide, error = (
        ones if op.multiply is None else op.multiply,
        ones if op.divide is None else op.divide,
        0.0 * ones if op.relative_error is None else op.relative_error,
    )
    factors: FloatArray = np.abs(multiply / divide) * (1.0 + error)
    return factors


def _norm(linear: FloatArray, columns: Any, absolute: FloatArray, roundings: int) -> float:
    """Bound the spectral norm of a linear map (one factor per column, or a matrix) whose inputs may repeat columns."""
    if linear.ndim == 1:
        largest = float(np.abs(linear).max(initial=0.0))
        if largest == 0.0:
            return 0.0
        linear = linear / largest  # prevents overflow of squares
        return largest * float(np.sqrt(np.bincount(columns, linear * linear).max())) * _UP
    together = np.zeros((int(columns.max(initial=0)) + 1, linear.shape[1]))
    rounded = together.copy()
    np.add.at(together, columns, linear)
    np.add.at(rounded, columns, absolute)
    lost = 2.0 * (roundings + len(columns)) * UNIT64 * np.linalg.norm(rounded)
    return float(np.linalg.norm(together, 2) + 2.0**-30 * np.linalg.norm(together) + lost)
