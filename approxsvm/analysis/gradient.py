"""Gradients of decision functions with respect to raw rows, with an error bound for every element.

Let z be the mapped row, and t_i the argument of term i. The gradient of f(z) = sum_i a_i k_i(z) + b is

    Gaussian     sum_i a_i exp(-gamma ||z - x_i||^2) 2 gamma (x_i - z)
    polynomial   sum_i a_i p t_i^(p - 1) gamma x_i,       t_i = gamma x_i.z + coef0
    sigmoid      sum_i a_i (1 - tanh(t_i)^2) gamma x_i
    cos          sum_i -a_i sin(t_i) w_i,                 t_i = w_i.z + shift_i

If the input map scales or projects, the chain rule gives the gradient with respect to the raw row: J' times this
gradient, where J is the map's derivative, which is 0 beyond a clipping limit. At a limit, or within rounding error of a
limit, the function has two one-sided derivatives, and the bound covers both.

Everything is computed in float64, with u = 2^-53, m features and n terms. Each error is at most 1.01 times the
following bound, plus underflow:

* Gaussian: a difference has a relative error of at most u, the argument h_i of exp an error of at most (m + 6) u h_i,
  and exp with the products a relative error of at most 24 u. The summation adds at most (n + 2) u times the sum of
  absolute values. The bound is thus 2 gamma sum_i |a_i| K_i |z_j - x_ij| ((m + 6) h_i + n + 32) u.
* Inner products: the error of t_i is at most (m + 4) u B_i, where B_i = |gamma| sum_j |x_ij z_j| + |coef0|. So the
  error of t_i^(p - 1) is at most (p - 1) (m + 5) u B_i^(p - 1), and the error of the sum is at most p sum_i |a_i gamma
  x_ij| B_i^(p - 1) ((p - 1) (m + 5) + n + 16) u, to which coef_error is added. The slopes of sigmoid and cos are at
  most 1 and change by at most the change in the argument, so the error is at most sum_i |a_i gamma x_ij| ((m + 4) B_i +
  n + 40) u.
* If the input map's error moves a row by e, the gradient changes, in the Euclidean norm, by at most e times the largest
  curvature on the path: 2 gamma A1 for Gaussians, sum_i |a_i| ||gamma x_i||^2 for sigmoid and cos, and
  p (p - 1) sum_i |a_i| ||gamma x_i||^2 (||gamma x_i|| (||z|| + e) + |coef0|)^(p - 2) for polynomials.
* Backpropagation through a scaler multiplies each slope by m_j / d_j, with two roundings and the scaler's
  relative_error. Backpropagation through a projection with n outputs sums slopes, with an error of at most (n + 2) u
  times the sum of absolute values.

The bounds hold with respect to the parameters stored in the artifact. `value_error` bounds how much values with these
parameters may differ from the source's, but it does not bound the difference between slopes.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from approxsvm import _native
from approxsvm.artifact.terms import terms_of
from approxsvm.artifact.views import Artifact
from approxsvm.errors import UnsupportedModelError
from approxsvm.expansion.monomials import storage_order
from approxsvm.frames.rows import chunks, zero_unused
from approxsvm.ir.compensated import FloatArray, norms_above
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.ops import Affine, Op, Projection
from approxsvm.ir.ops.op import Mapper
from approxsvm.ir.schema import FORM_HEADER, POLYNOMIAL_HEADER
from approxsvm.runtime.evaluator import Evaluator, pairs_in_order

_UP: Final = 1.01
_TINY: Final = 2.0**-1000
_LOST: Final = 2.0**-1074
# Argument beyond which exp underflows to 0, so that rounding errors of the argument do not matter.
_FARTHEST: Final = 1e4

_Derivative = Callable[[FloatArray], FloatArray]
# Derivatives of functions whose values and first two derivatives are at most 1 in absolute value.
_DERIVATIVES: Final[dict[str, _Derivative]] = {"cos": lambda t: -np.sin(t), "tanh": lambda t: 1.0 - np.tanh(t) ** 2}

Slopes = tuple[FloatArray, FloatArray]  # derivatives of each function with respect to each feature, and error bounds
_Back = Callable[[FloatArray, FloatArray], Slopes]


def gradients(evaluator: Evaluator, rows: Any) -> Slopes:
    """Compute the decision functions' gradients and error bounds, both of shape (n_rows, n_functions, n_columns).

    If the source's decision values are one-vs-rest scores computed from pairs, the results are the gradients of the
    pairs' decision functions. Raises UnsupportedModelError if the model averages probabilities, if an "approximate"
    artifact does not contain the terms, or if a step neither scales nor projects.
    """
    artifact = evaluator.artifact
    if artifact.n_decisions == 0:
        raise UnsupportedModelError(f"no gradient without a decision function: {artifact.why_no_decision_function}")
    if artifact.combination.weights is not None:
        raise UnsupportedModelError("a weighted sum of several models has no gradient: take its members' gradients")
    functions = [_Function(one) for one in artifact.members or (artifact,)]
    evaluator.evaluate(rows)  # rejects invalid rows
    n_rows, n_columns = rows.shape
    results: list[FloatArray] = [np.zeros((n_rows, artifact.n_decisions, n_columns)) for _ in range(2)]
    for piece in chunks(n_rows, n_columns):
        some = rows[piece]
        dense = np.asarray(some if isinstance(some, np.ndarray) else some.toarray(), np.float64)
        for k, row in enumerate(zero_unused(dense, artifact.raw_columns), piece.start):
            for all_of, parts in zip(
                results, zip(*(function.at(row) for function in functions), strict=True), strict=True
            ):
                all_of[k] = np.concatenate(parts)
    slopes, bounds = (_as_decision_function(evaluator, numbers) for numbers in results)
    return slopes, np.abs(bounds)


def _as_decision_function(evaluator: Evaluator, numbers: FloatArray) -> FloatArray:
    """Reorder functions and change signs to match the source's decision values."""
    artifact = evaluator.artifact
    if artifact.task != "classification":
        return numbers
    if len(artifact.labels) == 2:
        return numbers if artifact.labels[0] > artifact.labels[1] else -numbers
    return numbers[:, evaluator.order] if artifact.outputs.of_each_class else pairs_in_order(numbers, evaluator.order)


class _Function:
    """Decision functions of an artifact that is not an ensemble."""

    def __init__(self, artifact: Artifact) -> None:
        self.map = artifact.input_map
        for op in self.map.ops if self.map else ():
            if not isinstance(op, (Affine, Projection)):
                raise UnsupportedModelError(
                    f"gradients support steps that scale or project, not {op.kind}: take the gradient of the steps "
                    "after it"
                )
        self.steps = [_step_of(op) for op in (self.map.ops if self.map else ())]
        self.terms = _terms_of(artifact)
        self.n_columns = artifact.n_raw_features

    def at(self, row: FloatArray) -> Slopes:
        """Compute slopes at a raw row."""
        with np.errstate(all="ignore"):
            z, error, back = self._mapped(row)
            slopes, bounds = self.terms.slopes(z)
            norm, moved = float(norms_above(z[np.newaxis])[0]), float(error.sum()) * _UP
            bounds = bounds * _UP + _TINY
            if moved > 0.0:
                bounds += (self.terms.curvatures(norm + moved) * moved * _UP)[:, np.newaxis]
            for op, step in reversed(back):
                outputs = slice(op.first, op.first + op.n_outputs)
                through = step(slopes[:, outputs], bounds[:, outputs])
                slopes, bounds = (
                    np.concatenate([numbers[:, : op.first], some, numbers[:, outputs.stop :]], axis=1)
                    for numbers, some in zip((slopes, bounds), through, strict=True)
                )
            slopes, bounds = self._of_columns(slopes, bounds)
        return slopes, np.where(np.isfinite(bounds) & np.isfinite(slopes), bounds, np.inf)

    def _mapped(self, row: FloatArray) -> tuple[FloatArray, FloatArray, list[tuple[Op, _Back]]]:
        """Map a row; return the mapped row, the error of each element, and the steps' backward functions."""
        if self.map is None:
            return row, np.zeros_like(row), []
        x = row[self.map.columns][np.newaxis].copy()
        errors: FloatArray = np.zeros_like(x)
        back: list[tuple[Op, _Back]] = []
        for op, run, unlimited in self.steps:
            before = tuple(numbers[:, op.first : op.end] for numbers in (x, errors))
            after = run(*before)
            x, errors = op.replaced(x, after[0]), op.replaced(errors, after[1])
            if isinstance(op, Projection):
                back.append((op, _back_through_projection(op)))
                continue
            assert isinstance(op, Affine)  # checked in `__init__`
            y, spread = after if unlimited is None else unlimited(*before)
            # If a value overflows and its error after clipping is 0, it is certainly beyond its limit.
            overflows_limit = np.isinf(y[0]) & (after[1][0] == 0.0)
            back.append((op, _back_through_scaler(op, y[0], spread[0], overflows_limit)))
        return x[0], errors[0], back

    def _of_columns(self, slopes: FloatArray, bounds: FloatArray) -> Slopes:
        """Sum, for each raw column, the slopes of the features that depend on it; there may be several, or none."""
        if self.map is None:
            return slopes, bounds
        sums, errors, absolute = np.zeros((3, len(slopes), self.n_columns))
        for all_of, parts in ((sums, slopes), (errors, bounds), (absolute, np.abs(slopes))):
            np.add.at(all_of.T, self.map.columns, parts.T)
        return sums, errors * _UP + len(self.map.columns) * UNIT64 * absolute


def _step_of(op: Op) -> tuple[Op, Mapper, Mapper | None]:
    """Return an op, its map and, if the op clips, also its map without clipping (otherwise None)."""
    if isinstance(op, Affine) and (op.low is not None or op.high is not None):
        return op, op.mapper(), replace(op, low=None, high=None).mapper()
    return op, op.mapper(), None


def _back_through_projection(op: Projection) -> _Back:
    def step(slopes: FloatArray, bounds: FloatArray) -> Slopes:
        rounding = (op.n_outputs + 2) * UNIT64
        errors = (bounds + rounding * np.abs(slopes)) @ np.abs(op.matrix).T
        return slopes @ op.matrix.T, errors * _UP + _TINY

    return step


def _back_through_scaler(op: Affine, y: FloatArray, errors: FloatArray, overflows_limit: Any) -> _Back:
    """Build a scaler's backward function; `y` is the row before clipping, and `errors` bounds the errors of `y`."""
    ones = np.ones(op.n_features)
    factors = ones if op.multiply is None else op.multiply
    factors = factors if op.divide is None else factors / op.divide
    relative = 3.0 * UNIT64 + (0.0 if op.relative_error is None else op.relative_error)
    low = -np.inf if op.low is None else op.low
    high = np.inf if op.high is None else op.high
    is_limited = op.low is not None or op.high is not None
    beyond = (y + errors < low) | (y - errors > high) | overflows_limit
    within = (y - errors > low) & (y + errors < high) if is_limited else np.ones(len(y), bool)

    def step(slopes: FloatArray, bounds: FloatArray) -> Slopes:
        scaled = np.where(beyond, 0.0, slopes * factors)
        errors = (bounds + relative * np.abs(slopes)) * np.abs(factors)
        errors += (bounds + np.abs(slopes)) * _LOST  # error of a subnormal factor
        errors = np.where(beyond, 0.0, errors * _UP + _TINY)
        return scaled, np.where(beyond | within, errors, errors + np.abs(scaled))

    return step


class _Terms:
    """Sums over terms, with vectors of shape (n, m) and coefficients of shape (n_functions, n)."""

    def __init__(self, vectors: FloatArray, coef: FloatArray) -> None:
        self.vectors, self.coef = vectors, coef
        self.absolute_coef = np.abs(coef)
        self.norms = norms_above(vectors)

    def slopes(self, z: FloatArray) -> Slopes:
        raise NotImplementedError

    def curvatures(self, reach: float) -> FloatArray:
        """Return upper bounds on the curvature of each function at rows with norms up to `reach`."""
        raise NotImplementedError


class _Gaussians(_Terms):
    def __init__(self, artifact: Artifact) -> None:
        super().__init__(artifact.support_vectors(), artifact.decision_coef())
        self.gamma = float(artifact.header["gamma"])

    def slopes(self, z: FloatArray) -> Slopes:
        n, m = self.vectors.shape
        differences = self.vectors - z
        h = np.minimum(self.gamma * np.einsum("ij,ij->i", differences, differences), _FARTHEST)
        kernels = np.exp(-h)
        relative = ((m + 6) * h + n + 32) * UNIT64
        slopes = 2.0 * self.gamma * ((self.coef * kernels) @ differences)
        return slopes, 2.0 * self.gamma * (self.absolute_coef * (kernels * relative + _TINY)) @ np.abs(differences)

    def curvatures(self, reach: float) -> FloatArray:
        return np.asarray(2.0 * self.gamma * self.absolute_coef.sum(axis=1))


class _Products(_Terms):
    """Functions of inner products x.z; the vectors include the factor gamma.

    `power` is 0 for functions that are not powers. The core computes bounds on derivatives.
    """

    def __init__(
        self, vectors: FloatArray, coef: FloatArray, shifts: Any, coef_error: float, power: int, derivative: _Derivative
    ) -> None:
        super().__init__(vectors, coef)
        self.shifts, self.coef_error, self.power, self.derivative = shifts, coef_error, power, derivative
        self.absolute_vectors = np.abs(vectors) + 2.0**-1000  # gamma times a vector may underflow

    def slopes(self, z: FloatArray) -> Slopes:
        n, m = self.vectors.shape
        arguments, reach = self.vectors @ z + self.shifts, self.absolute_vectors @ (np.abs(z) + _TINY)
        reach = reach + np.abs(self.shifts)
        slope, curvature = (_native.term_limit(self.power, order, reach) for order in (1, 2))
        errors = (m + 4) * curvature * reach + (n + (self.power + 15 if self.power else 40)) * slope
        weights = self.absolute_coef * (errors * UNIT64 + self.coef_error * slope)
        return (self.coef * self.derivative(arguments)) @ self.vectors, weights @ self.absolute_vectors

    def curvatures(self, reach: float) -> FloatArray:
        limits = _native.term_limit(self.power, 2, self.norms * reach + np.abs(self.shifts))
        return np.asarray(self.absolute_coef @ (self.norms**2 * limits))


class _Forms:
    """Sums of polynomial kernels, stored as quadratic forms (models/FORMAT.md, "polynomial")."""

    def __init__(self, artifact: Artifact) -> None:
        m, numbers = artifact.n_features, artifact.polynomial_numbers()[len(POLYNOMIAL_HEADER) :]
        numbers = numbers.reshape(artifact.n_decisions, -1)
        self.errors = numbers[:, 2 : len(FORM_HEADER)]  # errors of the linear and quadratic parts
        packed = numbers[:, len(FORM_HEADER) :]
        self.linear = packed[:, :m]
        self.matrices = np.zeros((len(numbers), m, m))  # twice the symmetric matrices
        if packed.shape[1] > m:
            rows, columns = (part[storage_order(m, 2)] for part in np.triu_indices(m))
            for matrix, part in zip(self.matrices, packed[:, m:], strict=True):
                np.add.at(matrix, (rows, columns), part)
                np.add.at(matrix, (columns, rows), part)

    def slopes(self, z: FloatArray) -> Slopes:
        rounding, m = (len(z) + 6) * UNIT64, np.abs(self.matrices)
        bounds = rounding * (np.abs(self.linear) + m @ np.abs(z))
        of_parts = self.errors[:, 0] + 2.0 * self.errors[:, 1] * norms_above(z[np.newaxis])[0]
        return self.linear + self.matrices @ z, bounds + of_parts[:, np.newaxis]

    def curvatures(self, reach: float) -> FloatArray:
        """Bound the curvature of the stored quadratic forms; the factor 1.01 covers rounding."""
        return np.array([np.linalg.norm(matrix) for matrix in self.matrices]) + 2.0 * self.errors[:, 1]


def _terms_of(artifact: Artifact) -> Any:
    terms = terms_of(artifact)
    if terms is not None:
        return _Products(terms.vectors, terms.coef, terms.shifts, 0.0, 0, _DERIVATIVES[terms.function])
    if artifact.is_polynomial and artifact.mode == "approximate":
        return _Forms(artifact)
    if artifact.mode == "approximate":
        raise UnsupportedModelError(
            "gradients need the exact sum, which an artifact of mode 'approximate' lacks: compile it with "
            "mode='certified' or 'exact'"
        )
    if artifact.kernel == "gaussian":
        return _Gaussians(artifact)
    if artifact.kernel not in ("polynomial", "sigmoid"):
        raise UnsupportedModelError(f"gradients do not support the {artifact.kernel} kernel")
    vectors = float(artifact.header["gamma"]) * artifact.support_vectors()
    coef, shift, coef_error = artifact.decision_coef(), artifact.coef0, float(artifact.polynomial_numbers()[1])
    power = int(artifact.header["degree"])
    derivative = _DERIVATIVES["tanh"] if power == 0 else lambda t: power * t ** (power - 1)
    return _Products(vectors, coef, shift, coef_error, power, derivative)
