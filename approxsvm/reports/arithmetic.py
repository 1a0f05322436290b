"""The function of a model's parameters in float64, by its definition, and what float64 may lose on the way.

Every kind of model has one class here, which `arithmetic_of` chooses: values, and as bounds in the same unit what their
own rounding, moved rows, and the source's way to them (which may be another) may change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np

from approxsvm.compensated import norms_above
from approxsvm.expansion import taylor_features
from approxsvm.model.cosine_model import CosineModel
from approxsvm.model.kernel_model import FloatArray, KernelModel
from approxsvm.model.single_model import SingleModel
from approxsvm.model.taylor_model import TaylorModel
from approxsvm.readers.sklearn.known_types import name_of
from approxsvm.readers.sklearn.linear_models import linear_parts
from approxsvm.reference.decision_values import cosine_decision_function, taylor_decision_function

_U = 2.0**-53
# Labels are promised where the exact value is further than this from zero, as a share of sum |a_i|: float64 rounding.
NEAR_TIE: Final = 1e-10
# Rows, and support vectors, whose kernels are taken at a time.
_BLOCK_ROWS = 512
_BLOCK_VECTORS = 4096
# Support vectors that say how far values lie apart.
_SOME_VECTORS = 64
# Values that differ by less, relatively, are those of a constant.
_CONSTANT = 1e-6
# Exponentials of more are not worth computing.
_MOST_EXPONENT = 700.0

ModelT = TypeVar("ModelT", bound=SingleModel)


class Arithmetic(Protocol):
    """Of one model; `mapped` are rows behind its input map, ndarray of shape (n_rows, n_features)."""

    @property
    def scale(self) -> float:
        """Greatest sum of |a_i| of any decision function, or what has its place."""

    @property
    def spread(self) -> float:
        """About how far values lie apart: largest less smallest at some support vectors, or what has its place."""

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

    @property
    def scale(self) -> float:
        raise NotImplementedError

    @property
    def spread(self) -> float:
        return 2.0 * self.scale


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

    @property
    def spread(self) -> float:
        vectors: Any = self.model.support_vectors[:: max(1, self.model.n_sv // _SOME_VECTORS)]
        some = vectors if isinstance(vectors, np.ndarray) else vectors.toarray()
        values = self.values(some)
        largest = max(np.abs(values).max(initial=0.0), np.abs(self.model.intercept).max())
        return float(max(np.ptp(values) if len(some) else 0.0, _CONSTANT * largest))

    def values(self, mapped: FloatArray) -> FloatArray:
        model = self.model
        coefficients = np.column_stack([model.coefficients(k) for k in range(model.n_decisions)])
        return self.sums(mapped, coefficients) + model.intercept

    def sums(self, mapped: FloatArray, coefficients: FloatArray) -> FloatArray:
        """Of kernels times coefficients, (n_sv, n) of them, shape (n_rows, n)."""
        model = self.model
        sums = np.zeros((len(mapped), coefficients.shape[1]))
        for start in range(0, len(mapped), _BLOCK_ROWS):
            rows = mapped[start : start + _BLOCK_ROWS]
            for first in range(0, model.n_sv, _BLOCK_VECTORS):
                last = min(first + _BLOCK_VECTORS, model.n_sv)
                with np.errstate(over="ignore", under="ignore"):
                    kernels = self.kernels(rows, model.dense_support_vectors(first, last))
                sums[start : start + len(rows)] += kernels @ coefficients[first:last]
        return sums

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

        scikit-learn's ``rbf_kernel`` takes ||x||^2 - 2 x.z + ||z||^2, whose sums a Nystroem map takes twice; a Gaussian
        process divides rows and training rows by its length scales. LIBSVM, alone or inside scikit-learn, squares
        differences when it predicts.
        """
        model, kind = self.model, "" if steps is None else name_of(steps[-1])
        nystroem = steps[-2] if steps is not None and len(steps) > 1 and name_of(steps[-2]) == "Nystroem" else None
        if nystroem is None and kind not in ("KernelRidge", "GaussianProcessRegressor"):
            return np.zeros((len(mapped), 1))
        reach = (norms_above(mapped) + float(_vector_norms(model).max(initial=0.0)))[:, np.newaxis]
        if kind == "GaussianProcessRegressor":
            return self.moved(mapped, 2.0 * _U * reach)
        moduli = np.abs(model.dual_coef[0])
        if nystroem is not None:
            assert steps is not None
            normalization = np.asarray(nystroem.normalization_, np.float64).T
            coef = linear_parts(steps[-1], kind).coef
            summed = float(np.abs(normalization @ coef).sum())
            # In the units of the model, which may be those of another target.
            unit = self.scale / summed if summed > 0.0 else 1.0
            moduli = unit * (np.abs(normalization) @ np.abs(coef))
        total, exponent = float(moduli.sum()), model.gamma * 2.0 * (model.n_features + 8) * _U * reach**2
        of_sums = 4.0 * (model.n_sv + 8) * _U * total
        lost = exponent * total
        if (lost > NEAR_TIE * self.scale).any():  # what is off by little changes small kernels less
            is_off = exponent < _MOST_EXPONENT
            growth = np.expm1(np.where(is_off, exponent, 0.0)) * self.sums(mapped, moduli[:, np.newaxis])
            lost = np.where(is_off, np.minimum(growth, total), total)
        return np.asarray(lost + of_sums)


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
        reach = abs(model.gamma) * _vector_norms(model)
        sums, slopes = np.zeros((2, len(mapped), model.n_decisions))
        for k in range(model.n_decisions):
            weights = np.abs(model.coefficients(k))
            for power in range(p + 1):
                share = math.comb(p, power) * abs(model.coef0) ** (p - power) * float(weights @ reach**power)
                sums[:, k] += share * norms**power
                slopes[:, k] += power * share * norms ** max(power - 1, 0)
        return sums, slopes


def _vector_norms(model: KernelModel) -> FloatArray:
    """Not below the norms of the support vectors; of sparse ones by their non-zeros."""
    vectors: Any = model.support_vectors
    if isinstance(vectors, np.ndarray):
        return norms_above(vectors)
    largest = float(np.abs(vectors.data).max(initial=0.0))
    if largest == 0.0:
        return np.zeros(model.n_sv)
    scaled = vectors / largest
    norms = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1), np.float64).ravel())
    return np.asarray(largest * (norms * (1.0 + (model.n_features + 8) * _U) + 2.0**-500))  # squares may underflow


def _slack_of_sum(path: int, moduli: float | FloatArray, values: FloatArray) -> FloatArray:
    return np.asarray((path + 16) * 2.0**-52 * moduli + 2.0**-50 * np.abs(values))


def _moved_in_gaussians(gamma: float, moduli: float, errors: FloatArray) -> FloatArray:
    return np.asarray(moduli * np.minimum(math.sqrt(2.0 * gamma / math.e) * errors, 1.0))
