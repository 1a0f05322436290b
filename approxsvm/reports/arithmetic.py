"""The function of a model's parameters in float64, by its definition, and what float64 may lose on the way.

Every kind of model has one class here, which `arithmetic_of` chooses: values, and as bounds in the same unit what their
own rounding, moved rows, and the source's way to them (which may be another) may change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from approxsvm.compensated import norms_above
from approxsvm.expansion import taylor_features
from approxsvm.model.cosine_model import CosineModel
from approxsvm.model.kernel_model import FloatArray, KernelModel
from approxsvm.model.single_model import SingleModel
from approxsvm.model.taylor_model import TaylorModel
from approxsvm.readers.sklearn.known_types import name_of
from approxsvm.reference.decision_values import cosine_decision_function, taylor_decision_function

_U = 2.0**-53
# Rows, and support vectors, whose kernels are taken at a time.
_BLOCK_ROWS = 512
_BLOCK_VECTORS = 4096

ModelT = TypeVar("ModelT", bound=SingleModel)


class Arithmetic(Protocol):
    """Of one model; `mapped` are rows behind its input map, ndarray of shape (n_rows, n_features)."""

    @property
    def scale(self) -> float:
        """Greatest sum of |a_i| of any decision function, or what has its place."""

    def values(self, mapped: FloatArray) -> FloatArray:
        """Decision values, shape (n_rows, n_decisions)."""

    def slack(self, values: FloatArray) -> FloatArray:
        """What rounding may have changed in such values, of the same shape."""

    def moved(self, mapped: FloatArray, errors: FloatArray) -> FloatArray:
        """What values change at most when rows move by `errors`, both of shape (n_rows, 1)."""

    def noise(self, steps: Sequence[Any] | None, mapped: FloatArray) -> FloatArray:
        """What the source's own float64 loses beside rows, shape (n_rows, 1) or (n_rows, n_decisions).

        `steps` are its transformers and its final estimator, or None where it is numbers alone.
        """


def arithmetic_of(model: SingleModel) -> Arithmetic:
    """The one that suits a model."""
    if isinstance(model, TaylorModel):
        return _OfTaylorFeatures(model)
    if isinstance(model, CosineModel):
        return _OfCosines(model)
    return _OfPolynomialKernels(model) if model.is_polynomial else _OfGaussians(model)


@dataclass(frozen=True, eq=False)
class _OfModel(Generic[ModelT]):
    model: ModelT


class _OfTaylorFeatures(_OfModel[TaylorModel]):
    @property
    def scale(self) -> float:
        return taylor_features.norms_of(self.model)[2]

    def values(self, mapped: FloatArray) -> FloatArray:
        return taylor_decision_function(self.model, mapped)[:, np.newaxis]

    def slack(self, values: FloatArray) -> FloatArray:
        # A feature and its sum; in the Gaussian s errs by n_features roundings, and s phi_k(s) is below 8.
        path = sum(map(len, self.model.weights)) + 8 * self.model.n_features + 64
        return np.asarray(path * 2.0**-52 * self.scale + 2.0**-50 * np.abs(values))

    def moved(self, mapped: FloatArray, errors: FloatArray) -> FloatArray:
        return _moved_in_gaussians(self.model.gamma, self.scale, errors)

    def noise(self, steps: Sequence[Any] | None, mapped: FloatArray) -> FloatArray:
        return self.slack(np.zeros((len(mapped), 1)))


class _OfCosines(_OfModel[CosineModel]):
    @property
    def scale(self) -> float:
        return self.model.sum_moduli

    def values(self, mapped: FloatArray) -> FloatArray:
        return cosine_decision_function(self.model, mapped)[:, np.newaxis]

    def slack(self, values: FloatArray) -> FloatArray:
        return _slack_of_sum(self.model.n_cosines + self.model.n_features, self.scale, values)

    def moved(self, mapped: FloatArray, errors: FloatArray) -> FloatArray:
        return np.minimum(self.model.slope * errors, 2.0 * self.scale)

    def noise(self, steps: Sequence[Any] | None, mapped: FloatArray) -> FloatArray:
        of_angles = (self.model.n_features + 8) * self.model.slope * norms_above(mapped)[:, np.newaxis]
        return np.asarray(4.0 * _U * (of_angles + (self.model.n_cosines + 40) * self.scale))


class _OfKernels(_OfModel[KernelModel]):
    @property
    def scale(self) -> float:
        model = self.model
        return float(max(np.abs(model.coefficients(k)).sum() for k in range(model.n_decisions)))

    def values(self, mapped: FloatArray) -> FloatArray:
        model = self.model
        coefficients = np.column_stack([model.coefficients(k) for k in range(model.n_decisions)])
        values = np.zeros((len(mapped), model.n_decisions))
        for start in range(0, len(mapped), _BLOCK_ROWS):
            rows = mapped[start : start + _BLOCK_ROWS]
            for first in range(0, model.n_sv, _BLOCK_VECTORS):
                last = min(first + _BLOCK_VECTORS, model.n_sv)
                with np.errstate(over="ignore", under="ignore"):
                    kernels = self.kernels(rows, model.dense_support_vectors(first, last))
                values[start : start + len(rows)] += kernels @ coefficients[first:last]
        values += model.intercept
        return values

    def kernels(self, rows: FloatArray, vectors: FloatArray) -> FloatArray:
        """Of each row and each vector."""
        raise NotImplementedError


class _OfGaussians(_OfKernels):
    def kernels(self, rows: FloatArray, vectors: FloatArray) -> FloatArray:
        from scipy.spatial.distance import cdist

        return np.asarray(np.exp(-self.model.gamma * cdist(rows, vectors, "sqeuclidean")))

    def slack(self, values: FloatArray) -> FloatArray:
        return _slack_of_sum(self.model.n_sv + self.model.n_features, self.scale, values)

    def moved(self, mapped: FloatArray, errors: FloatArray) -> FloatArray:
        return _moved_in_gaussians(self.model.gamma, self.scale, errors)

    def noise(self, steps: Sequence[Any] | None, mapped: FloatArray) -> FloatArray:
        """Where the source's way to a kernel cancels.

        scikit-learn's ``rbf_kernel`` takes ||x||^2 - 2 x.z + ||z||^2; a Nystroem map sums its kernels twice.
        """
        if steps is None:
            return np.zeros((len(mapped), 1))
        model, moduli = self.model, self.scale
        nystroem = steps[-2] if len(steps) > 1 and name_of(steps[-2]) == "Nystroem" else None
        if nystroem is not None:
            weights = np.abs(np.asarray(nystroem.normalization_, np.float64)).T @ np.abs(np.ravel(steps[-1].coef_))
            moduli = float(weights.sum())
        elif name_of(steps[-1]) != "KernelRidge":
            return np.zeros((len(mapped), 1))
        vectors = model.dense_support_vectors(0, model.n_sv)
        reach = norms_above(mapped) + float(norms_above(vectors).max(initial=0.0))
        lost = model.gamma * 2.0 * (model.n_features + 8) * _U * reach**2 + 4.0 * (model.n_sv + 8) * _U
        result: FloatArray = (moduli * np.minimum(lost, 1.0))[:, np.newaxis]
        return result


class _OfPolynomialKernels(_OfKernels):
    """These kernels grow with rows."""

    def kernels(self, rows: FloatArray, vectors: FloatArray) -> FloatArray:
        return np.asarray((self.model.gamma * (rows @ vectors.T) + self.model.coef0) ** self.model.degree)

    def slack(self, values: FloatArray) -> FloatArray:
        return _slack_of_sum(self.model.n_sv + self.model.n_features, self.scale + np.abs(values), values)

    def moved(self, mapped: FloatArray, errors: FloatArray) -> FloatArray:
        return np.asarray(errors * self._moduli(mapped)[1] * (1.0 + 1e-6))  # errors are tiny beside rows

    def noise(self, steps: Sequence[Any] | None, mapped: FloatArray) -> FloatArray:
        """What float64 sums over support vectors, or over coefficients, lose in any order."""
        model = self.model
        path = model.n_sv + max(1.0, 0.5 * model.degree) * model.n_features + 16
        return np.asarray(4.0 * path * _U * (self._moduli(mapped)[0] + np.abs(model.intercept)))

    def _moduli(self, mapped: FloatArray) -> tuple[FloatArray, FloatArray]:
        """sum_i |a_i| (||gamma x_i|| ||z|| + |coef0|)^p and its slope in ||z||, (n_rows, n_decisions) each."""
        model = self.model
        norms, p = norms_above(mapped), model.degree
        reach = abs(model.gamma) * norms_above(model.dense_support_vectors(0, model.n_sv))
        sums, slopes = np.zeros((2, len(mapped), model.n_decisions))
        for k in range(model.n_decisions):
            weights = np.abs(model.coefficients(k))
            for power in range(p + 1):
                share = math.comb(p, power) * abs(model.coef0) ** (p - power) * float(weights @ reach**power)
                sums[:, k] += share * norms**power
                slopes[:, k] += power * share * norms ** max(power - 1, 0)
        return sums, slopes


def _slack_of_sum(path: int, moduli: float | FloatArray, values: FloatArray) -> FloatArray:
    return np.asarray((path + 16) * 2.0**-52 * moduli + 2.0**-50 * np.abs(values))


def _moved_in_gaussians(gamma: float, moduli: float, errors: FloatArray) -> FloatArray:
    return np.asarray(moduli * np.minimum(math.sqrt(2.0 * gamma / math.e) * errors, 1.0))
