"""How far a row may move without changing its label, proven.

A kernel sum f = sum_i a_i K(x_i, .) + b with the Gaussian kernel lies in a space of functions where f(z) is the inner
product of f - b with K(z, .), plus b. So from z to z' at distance d it changes by at most

    W ||K(z, .) - K(z', .)|| = W sqrt(2 - 2 exp(-gamma d^2)),    W^2 = sum_ij a_i a_j K(x_i, x_j),

and term by term, as no Gaussian is steeper than sqrt(2 gamma / e) (constants.py) nor leaves (0, 1], by at most

    A1 min(sqrt(2 gamma / e) d, 1),    A1 = sum_i |a_i|.

The smaller of the two holds. Together with the bound e of the value that was computed at z, the value at z' lies within
e + v + change(d) of it, where v is how far the model may be from its source anywhere (`value_error`; e has it for z).
The label stays what it is as long as it is that of all values in this box, one interval for each decision function:
which the core decides for every rule of labels (`certified_class`), so that pairs whose flip moves no majority do not
count. The largest d is found by bisection; any d that passes is sound, however the search came to it.

In front of the model may be steps that scale, choose, limit or project columns. Limits bring no two rows further apart,
and the others are linear, so a row that moves by r is moved by at most L r before the kernel, L being the product of
spectral norms between limits. d / L is the radius of raw rows.

Rounding: all that is computed here goes through a handful of operations with relative errors of a few 2^-53 and is
widened by 2^-30. W, where it is computed here, is widened by what float64 may change in n^2 kernels of sums over m
features, (2 m + 2 n + 20) 2^-53 A1^2, before its root is taken; spectral norms by 2^-30 of the Frobenius norm.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from approxsvm.artifact.views import Artifact
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.constants import UNIT64, gaussian_slope
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.steps import Affine, Projection
from approxsvm.runtime.evaluator import BOUNDS, VALUES, Evaluator, Values, native_outputs

_UP: Final = 1.0 + 2.0**-30
_STEPS: Final = 64  # of the bisection: the interval is known to 2^-64 of where Gaussians are 0
_MOST_VECTORS: Final = 1 << 13  # whose kernels are summed for W
_BLOCK: Final = 1 << 9


def certified_radius(evaluator: Evaluator, rows: Any) -> FloatArray:
    """Distances of raw rows within which their labels are certified, shape (n_rows,); 0 where nothing is proven.

    Raises UnsupportedModelError as `CompiledModel.certified_radius` says.
    """
    artifact = evaluator.artifact
    if artifact.members or artifact.task == "regression" or artifact.kernel != "gaussian":
        kind = "an ensemble" if artifact.members else "a regression" if artifact.task == "regression" else "of another"
        raise UnsupportedModelError(f"certified radii are of classifiers with the Gaussian kernel, but this is {kind}")
    stretch = 1.0 if artifact.input_map is None else _stretch(artifact.input_map)
    exact: Values = "promised" if artifact.mode == "approximate" else "exact"  # the former has its expansions alone
    values, bounds = evaluator.evaluate(rows, VALUES | BOUNDS, exact)
    n_rows = len(values)
    values, bounds = (np.ascontiguousarray(one.reshape(n_rows, -1 if n_rows else 1)) for one in (values, bounds))
    numbers, gamma = artifact.decision_numbers(), float(artifact.header["gamma"])
    moduli, norms = numbers["sum_moduli"] * _UP, _norms(artifact)
    fixed = bounds + numbers["value_error"]

    def is_certain(distances: FloatArray) -> Any:
        d = distances[:, np.newaxis]
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.sqrt(-2.0 * np.expm1(-gamma * d * d))
            change = np.minimum(norms * apart, moduli * np.minimum(gaussian_slope(gamma) * d, 1.0))
        slack = fixed + np.where(np.isnan(change), moduli, change) * _UP
        if artifact.task == "one_class":
            return np.abs(values[:, 0]) > slack[:, 0]
        outputs = native_outputs(artifact.outputs, artifact.task, len(artifact.labels))
        return outputs.certified_class(values, np.ascontiguousarray(slack * _UP))[1]

    low = np.zeros(n_rows)
    certain = is_certain(low)
    # Beyond this distance Gaussians are 0 beside 1, and what is certain there is so everywhere.
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
    """W of each decision function, rounded up; infinite where nobody knows it."""
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
    moduli = np.abs(coef).sum(axis=1) * _UP
    lost = (2.0 * vectors.shape[1] + 2.0 * n_sv + 20.0) * UNIT64 * moduli * moduli
    found: FloatArray = np.sqrt(np.maximum(squares, 0.0) + lost) * _UP
    return np.where(known > 0.0, known, found)


def _stretch(map_: InputMap) -> float:
    """What a move of a raw row may be multiplied by, at most.

    The linear map up to the next limit is a factor for each column as long as nothing projects, then a matrix.
    Infinite where factors are so large or small that products of them might overflow or underflow.
    """
    product, columns = 1.0, map_.columns
    linear: FloatArray = np.ones(len(columns))
    moduli, roundings = linear, 0  # sums of the products' moduli, which what cancels is rounded by, and how often
    for stage in map_.stages:
        if isinstance(stage, Affine):
            factors = _factors(stage)
            if not _are_moderate(factors, 2.0**300):
                return math.inf
            linear, moduli = linear * factors, moduli * factors
            roundings += 4
            is_limited = stage.low is not None or stage.high is not None
            # Copies of a column that limits may stop one without the other no longer cancel behind them.
            if is_limited and (linear.ndim == 2 or len(np.unique(columns)) < len(columns)):
                product *= _norm(linear, columns, moduli, roundings)
                linear, columns = np.ones(stage.n_outputs), np.arange(stage.n_outputs)
                moduli, roundings = linear, 0
        elif isinstance(stage, Projection):
            roundings += 1 if linear.ndim == 1 else linear.shape[1] + 1
            if not _are_moderate(stage.matrix, 2.0**300):
                return math.inf
            linear, moduli = _projected(linear, stage.matrix), _projected(moduli, np.abs(stage.matrix))
        else:
            raise UnsupportedModelError(
                f"certified radii cannot be told through a {stage.kind}, which has no steepest slope"
            )
        if not _are_moderate(moduli, 2.0**600):
            return math.inf
    return product * _norm(linear, columns, moduli, roundings) * _UP


def _are_moderate(numbers: FloatArray, limit: float) -> bool:
    """Whether all numbers but zeros are between a limit and its inverse in modulus."""
    moduli = np.abs(numbers[numbers != 0.0])
    return bool(((moduli >= 1.0 / limit) & (moduli <= limit)).all())


def _projected(linear: FloatArray, matrix: FloatArray) -> FloatArray:
    found: FloatArray = linear[:, np.newaxis] * matrix if linear.ndim == 1 else linear @ matrix
    return found


def _factors(stage: Affine) -> FloatArray:
    ones = np.ones(stage.n_features)
    multiply, divide, error = (
        ones if stage.multiply is None else stage.multiply,
        ones if stage.divide is None else stage.divide,
        0.0 * ones if stage.relative_error is None else stage.relative_error,
    )
    factors: FloatArray = np.abs(multiply / divide) * (1.0 + error)
    return factors


def _norm(linear: FloatArray, columns: Any, moduli: FloatArray, roundings: int) -> float:
    """The spectral norm, at most, of columns that go in times a factor each, or a matrix; some go in several times."""
    if linear.ndim == 1:
        largest = float(np.abs(linear).max(initial=0.0))
        if largest == 0.0:
            return 0.0
        linear = linear / largest  # squares of which do not overflow
        return largest * float(np.sqrt(np.bincount(columns, linear * linear).max())) * _UP
    together = np.zeros((int(columns.max(initial=0)) + 1, linear.shape[1]))
    rounded = together.copy()
    np.add.at(together, columns, linear)
    np.add.at(rounded, columns, moduli)
    lost = 2.0 * (roundings + len(columns)) * UNIT64 * np.linalg.norm(rounded)
    return float(np.linalg.norm(together, 2) + 2.0**-30 * np.linalg.norm(together) + lost)
