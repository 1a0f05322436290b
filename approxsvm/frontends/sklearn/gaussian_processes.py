"""Mean predictions of scikit-learn's Gaussian processes, which are kernel sums."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.sklearn.kernel_machines import fraction, parameter, rounded_float
from approxsvm.frontends.sklearn.known_types import class_name, name_of, recognise
from approxsvm.frontends.sklearn.remedies import refusal
from approxsvm.frontends.sklearn.support_vector_machines import ascending_classes, feature_names
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.kernel_model import FloatArray, KernelModel
from approxsvm.ir.outputs import Outputs, SignAlone

# exp(-r^2 / 2) changes by at most 1 / sqrt(e) per unit of distance.
KERNEL_SLOPE: Final = 0.607
_UP: Final = 1.0 + 2.0**-30
_LAPLACE: Final = "_BinaryGaussianProcessClassifierLaplace"
CLASSIFIERS: Final = ("GaussianProcessClassifier", _LAPLACE)


def read_gaussian_process(estimator: Any, name: str) -> KernelModel | Ensemble:
    """Read the mean prediction of a fitted GaussianProcessRegressor, one model per target.

    The reference is _y_train_mean + _y_train_std * (kernel_(rows, X_train_) @ alpha_) in exact arithmetic.
    """
    kernels, alpha = _Kernels.of(estimator, estimator, name), np.asarray(estimator.alpha_, np.float64)
    targets, n = np.atleast_2d(alpha.T), len(kernels.rows)
    if targets.ndim != 2 or targets.shape[1] != n:
        raise ModelFormatError(f"alpha_ of this {name} has shape {alpha.shape} for {n} rows of X_train_")
    units = [np.ravel(numbers) for numbers in (estimator._y_train_std, estimator._y_train_mean)]
    if any(len(numbers) != len(targets) for numbers in units):
        raise ModelFormatError(
            f"_y_train_std and _y_train_mean of this {name} have {len(units[0])} and {len(units[1])} numbers for "
            f"{len(targets)} targets"
        )
    models = []
    for alphas, deviation, mean in zip(targets, *units, strict=True):
        weights = [fraction(deviation) * fraction(a) for a in alphas]
        models.append(kernels.sum(weights, fraction(mean), task="regression"))
    return models[0] if len(models) == 1 else Ensemble(tuple(models), source=f"sklearn {name}, {len(models)} targets")


def read_gaussian_process_classifier(estimator: Any, name: str) -> KernelModel:
    """Read a fitted two-class GaussianProcessClassifier; the model predicts labels only.

    With Laplace's approximation, the label is determined by the sign of the latent mean, kernel_(rows, X_train_) @
    (y_train_ - pi_): a positive value means the second class. The reference is this mean in exact arithmetic.
    Probabilities, and labels with more than two classes, need the variance, which has one function per training row;
    compiling the variance would not make it faster.
    """
    if len(estimator.classes_) > 2:
        raise UnsupportedModelError(refusal(estimator, f"of {len(estimator.classes_)} classes"))
    inner = estimator if name == _LAPLACE else estimator.base_estimator_
    if name_of(inner) != _LAPLACE:
        raise ModelFormatError(f"base_estimator_ of this {name} is a {class_name(inner)}")
    targets, pi = np.asarray(inner.y_train_, np.float64), np.asarray(inner.pi_, np.float64)
    if targets.shape != pi.shape or targets.ndim != 1 or len(targets) != len(inner.X_train_):
        raise ModelFormatError(f"y_train_ of this {name} has shape {targets.shape}, but pi_ {pi.shape}")
    if not np.isin(targets, (0.0, 1.0)).all():
        raise ModelFormatError(f"y_train_ of this {name} holds other numbers than 0 and 1")
    weights = [fraction(y) - fraction(p) for y, p in zip(targets, pi, strict=True)]
    first, second = ascending_classes(inner.classes_, name)
    labels = np.where([True, False], second, first)  # as in `predict`, so objects become strings
    kernels = _Kernels.of(estimator, inner, name)
    return kernels.sum(weights, Fraction(0), task="classification", labels=labels, outputs=Outputs(SignAlone()))


@dataclass(frozen=True, eq=False)
class _Kernels:
    """Kernels constant + rbf exp(-gamma ||row - rows_i||^2) of a Gaussian process, with an error bound for each exp."""

    terms: "_Terms"
    rows: FloatArray
    gamma: float
    input_map: InputMap | None
    names: tuple[str, ...] | None
    errors: FloatArray

    @classmethod
    def of(cls, estimator: Any, trained: Any, name: str) -> "_Kernels":
        """Read the kernels of the fitted object `trained`.

        The kernel must be built from ConstantKernel, RBF and WhiteKernel by sums and products, with exactly one RBF.
        Per-feature length scales become an input map, and the support vectors are divided by the scales.
        """
        for kernel in (estimator.kernel, trained.kernel):  # `predict` checks rows as required by the attribute `kernel`
            recognise(kernel)
        terms = _terms(trained.kernel_)
        if terms.length_scale is None:
            raise UnsupportedModelError(f"the kernel of this {name} is {trained.kernel_}: it has no RBF")
        rows = np.asarray(trained.X_train_, dtype=np.float64)
        lengths = np.ravel(np.asarray(terms.length_scale, dtype=np.float64))
        names = feature_names(estimator)
        if len(lengths) == 1:
            length = fraction(lengths[0])
            if not 2.0**-100 <= abs(length) <= 2.0**100:
                raise UnsupportedModelError(f"the length scale of this {name} is {lengths[0]:.6g}: scale the features")
            # Bound on the effect of rounding gamma, obtained from t exp(-t) <= 1/e.
            errors = np.full(len(rows), 2.01 * UNIT64 / math.e)
            return cls(terms, rows, float(Fraction(1, 2) / length**2), None, names, errors)
        input_map = InputMap.identity(rows.shape[1], names).then_affine(divide=lengths)
        rows, moved = input_map.mapped_with_errors(rows)
        return cls(terms, rows, 0.5, input_map, names, KERNEL_SLOPE * moved)

    def sum(self, weights: list[Fraction], mean: Fraction, **changes: Any) -> KernelModel:
        """Build the model that computes mean + kernel_(rows, X_train_) @ weights."""
        exact_coef = [self.terms.rbf * a for a in weights]
        exact_intercept = mean + self.terms.constant * sum(weights, Fraction(0))
        dual_coef, intercept = np.array([rounded_float(a) for a in exact_coef]), rounded_float(exact_intercept)
        rounded = sum((abs(a - Fraction(b)) for a, b in zip(exact_coef, dual_coef.tolist(), strict=True)), Fraction(0))
        rounded += abs(exact_intercept - Fraction(intercept))
        error = rounded_float(rounded) + float(np.abs(dual_coef) @ self.errors)
        return KernelModel(
            support_vectors=self.rows,
            dual_coef=dual_coef,
            intercept=np.array([intercept]),
            gamma=self.gamma,
            source="sklearn GaussianProcess",
            feature_names=self.names,
            input_map=self.input_map,
            value_error=np.array([error]) * _UP + 2.0**-1060,
            **changes,
        )


@dataclass(frozen=True)
class _Terms:
    """Kernel constant + rbf * exp(-||x - z||^2 / (2 length_scale^2)) between rows from different sets."""

    constant: Fraction = Fraction(0)
    rbf: Fraction = Fraction(0)
    length_scale: Any = None


def _terms(kernel: Any) -> _Terms:
    """Read a scikit-learn Gaussian process kernel as a function of a training row and a row to predict."""
    kind = name_of(kernel)
    if kind == "ConstantKernel":
        return _Terms(constant=fraction(parameter(kernel.constant_value, "constant_value")))
    if kind == "WhiteKernel":
        return _Terms()  # white noise is 0 between rows from different sets
    if kind == "RBF":
        return _Terms(rbf=Fraction(1), length_scale=kernel.length_scale)
    if kind not in ("Sum", "Product"):
        raise UnsupportedModelError(
            f"the kernel {kernel} cannot be compiled; supported are sums and products of ConstantKernel, WhiteKernel "
            "and one RBF"
        )
    first, second = _terms(kernel.k1), _terms(kernel.k2)
    if first.length_scale is not None and second.length_scale is not None:
        raise UnsupportedModelError(f"the kernel {kernel} has several RBF parts, only one can be compiled")
    length_scale = first.length_scale if second.length_scale is None else second.length_scale
    if kind == "Sum":
        return _Terms(first.constant + second.constant, first.rbf + second.rbf, length_scale)
    return _Terms(
        first.constant * second.constant, first.constant * second.rbf + first.rbf * second.constant, length_scale
    )
