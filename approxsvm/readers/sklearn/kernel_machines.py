"""Other estimators of scikit-learn that predict sums of RBF kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.model import compensated
from approxsvm.model.constants import UNIT64
from approxsvm.model.ensemble import Ensemble
from approxsvm.model.input_map import InputMap
from approxsvm.model.kernel_model import DENSITY_SOURCE, FloatArray, KernelModel
from approxsvm.model.outputs import Outputs
from approxsvm.model.single_model import SingleModel
from approxsvm.readers.sklearn import linear_models
from approxsvm.readers.sklearn.instead import refusal
from approxsvm.readers.sklearn.known_types import class_name, name_of
from approxsvm.readers.sklearn.support_vector_machines import (
    check_kernel,
    feature_names,
    host_array,
    require_fitted,
    with_kernel,
)

# exp(-r^2 / 2) changes by at most 1 / sqrt(e) per unit of distance.
KERNEL_SLOPE = 0.607
# Of classifiers the values are latent ones, which no wrapper takes for scores.
PROCESS_SOURCE = "sklearn GaussianProcess"
# A factor rounded to float64, and a product with it.
_ROUNDED = 3 * UNIT64
_UP = 1.0 + 2.0**-30

Regression = TypeVar("Regression", bound=SingleModel)


def read_kernel_ridge(estimator: Any, name: str) -> KernelModel | Ensemble:
    """Read a fitted KernelRidge, one model for each target; gamma=None is 1 / n_features.

    The reference is K(rows, X_fit_) @ dual_coef_ over the real numbers.
    """
    require_fitted(estimator, name, "dual_coef_")
    check_kernel(estimator, name)
    rows, dual_coef = host_array(estimator.X_fit_), np.asarray(estimator.dual_coef_, dtype=np.float64)
    outputs = Outputs(is_column=dual_coef.shape[1:] == (1,))
    models = [
        with_kernel(
            KernelModel(
                task="regression",
                support_vectors=rows,
                dual_coef=coefficients,
                intercept=np.zeros(1),
                gamma=_gamma(estimator.gamma, rows.shape[1]),
                source=f"sklearn {name}",
                feature_names=feature_names(estimator),
                outputs=outputs,
            ),
            estimator,
        )
        for coefficients in np.atleast_2d(dual_coef.T)
    ]
    return models[0] if len(models) == 1 else Ensemble(tuple(models), source=f"sklearn {name}, {len(models)} targets")


def read_gaussian_process(estimator: Any, name: str) -> KernelModel:
    """Read the mean prediction of a fitted GaussianProcessRegressor.

    The reference is _y_train_mean + _y_train_std * (kernel_(rows, X_train_) @ alpha_) over the real numbers.
    """
    require_fitted(estimator, name, "X_train_")
    require_fitted(estimator, name, "alpha_")
    alpha = [_fraction(a) for a in _one_target(estimator.alpha_, name)]
    deviation, mean = (_fraction(np.ravel(v)[0]) for v in (estimator._y_train_std, estimator._y_train_mean))
    return _of_process(estimator, estimator, name, [deviation * a for a in alpha], mean, task="regression")


def read_process_classifier(estimator: Any, name: str) -> KernelModel:
    """Read the labels of a fitted GaussianProcessClassifier of two classes.

    Laplace's approximation labels by the sign of the latent mean, kernel_(rows, X_train_) @ (y_train_ - pi_), which is
    the reference, over the real numbers: above 0 is the second class. Its probabilities need the variance as well.
    """
    require_fitted(estimator, name, "base_estimator_")
    if len(estimator.classes_) > 2:
        raise UnsupportedModelError(refusal(estimator, f"of {len(estimator.classes_)} classes"))
    inner = estimator.base_estimator_
    if name_of(inner) != "_BinaryGaussianProcessClassifierLaplace":
        raise ModelFormatError(f"base_estimator_ of this {name} is a {class_name(inner)}")
    targets, pi = np.asarray(inner.y_train_, np.float64), np.asarray(inner.pi_, np.float64)
    if targets.shape != pi.shape or targets.ndim != 1 or len(targets) != len(inner.X_train_):
        raise ModelFormatError(f"y_train_ of this {name} has shape {targets.shape}, but pi_ {pi.shape}")
    if not np.isin(targets, (0.0, 1.0)).all():
        raise ModelFormatError(f"y_train_ of this {name} holds other numbers than 0 and 1")
    weights = [_fraction(y) - _fraction(p) for y, p in zip(targets, pi, strict=True)]
    labels = np.asarray(inner.classes_)[::-1].copy()
    return _of_process(estimator, inner, name, weights, Fraction(0), task="classification", labels=labels)


def _of_process(
    estimator: Any, trained: Any, name: str, weights: list[Fraction], mean: Fraction, **changes: Any
) -> KernelModel:
    """The sum mean + kernel_(rows, X_train_) @ weights of what was `trained`.

    Kernels built of ConstantKernel, RBF and WhiteKernel by sums and products with one RBF in all. Length scales per
    feature become an input map, and the support vectors are divided by them.
    """
    terms = _terms(trained.kernel_)
    if terms.length_scale is None:
        raise UnsupportedModelError(f"the kernel of this {name} is {trained.kernel_}: there is no RBF in it")
    rows = np.asarray(trained.X_train_, dtype=np.float64)
    exact_coef = [terms.rbf * a for a in weights]
    exact_intercept = mean + terms.constant * sum(weights, Fraction(0))
    dual_coef, intercept = np.array([rounded_float(a) for a in exact_coef]), rounded_float(exact_intercept)
    rounded = sum((abs(a - Fraction(b)) for a, b in zip(exact_coef, dual_coef.tolist(), strict=True)), Fraction(0))
    rounded += abs(exact_intercept - Fraction(intercept))
    lengths = np.ravel(np.asarray(terms.length_scale, dtype=np.float64))
    names = feature_names(estimator)
    input_map, gamma = None, 0.5
    if len(lengths) == 1:
        length = _fraction(lengths[0])
        if not 2.0**-100 <= abs(length) <= 2.0**100:
            raise UnsupportedModelError(f"the length scale of this {name} is {lengths[0]:.6g}: scale the features")
        gamma = float(Fraction(1, 2) / length**2)
        # The rounding of gamma, and t exp(-t) <= 1/e.
        kernel_errors = np.full(len(rows), 2.01 * UNIT64 / math.e)
    else:
        input_map = InputMap.identity(rows.shape[1], names).then_affine(divide=lengths)
        rows, moved = input_map.mapped_with_errors(rows)
        kernel_errors = KERNEL_SLOPE * moved
    return KernelModel(
        support_vectors=rows,
        dual_coef=dual_coef,
        intercept=np.array([intercept]),
        gamma=gamma,
        source=PROCESS_SOURCE,
        feature_names=names,
        input_map=input_map,
        value_error=np.array([rounded_float(rounded) + float(np.abs(dual_coef) @ kernel_errors)]) * _UP + 2.0**-1060,
        **changes,
    )


def read_density(estimator: Any, name: str) -> KernelModel:
    """Read a fitted KernelDensity with the Gaussian kernel: the mean of the kernel as a regression.

    The reference is sum_i w_i exp(-||z - x_i||^2 / (2 bandwidth_^2)) / sum_i w_i over the real numbers; scikit-learn's
    own tree stops within rtol and atol of it.
    """
    require_fitted(estimator, name, "tree_")
    if estimator.kernel != "gaussian" or estimator.metric != "euclidean" or estimator.metric_params:
        raise UnsupportedModelError(
            f"this {name} has the kernel {estimator.kernel!r} and the metric {estimator.metric!r}: only 'gaussian' "
            "and 'euclidean' can be compiled"
        )
    rows = np.array(estimator.tree_.data, dtype=np.float64)
    given = estimator.tree_.sample_weight
    weights = [Fraction(1)] * len(rows) if given is None else [_fraction(w) for w in np.asarray(given)]
    total = sum(weights, Fraction(0))
    if min(weights) < 0 or total == 0:
        raise ModelFormatError(f"the sample weights of this {name} are negative, or all 0")
    length = _fraction(estimator.bandwidth_)
    if not 2.0**-100 <= length <= 2.0**100:
        raise UnsupportedModelError(f"the bandwidth of this {name} is {estimator.bandwidth_:.6g}: scale the features")
    dual_coef = np.array([rounded_float(w / total) for w in weights])
    return KernelModel(
        task="regression",
        support_vectors=rows,
        dual_coef=dual_coef,
        intercept=np.zeros(1),
        gamma=float(Fraction(1, 2) / length**2),
        source=DENSITY_SOURCE,
        feature_names=feature_names(estimator),
        # Rounding of coefficients and of gamma, and t exp(-t) <= 1/e.
        value_error=np.array([(1.0 + 2.01 / math.e) * UNIT64 * _UP]),
    )


def read_nystroem(nystroem: Any, final: Any, final_name: str) -> SingleModel | Ensemble:
    """A Nystroem map with the RBF kernel and a linear model: a sum of RBF kernels at the landmarks.

    The map is K(z, components_) @ normalization_.T, so the coefficients are normalization_.T @ coef_, summed as if in
    twice the precision. The reference is that map times coef_ plus intercept_ over the real numbers.
    """
    require_fitted(nystroem, "Nystroem", "components_")
    if nystroem.kernel != "rbf":
        raise UnsupportedModelError(f"the kernel of this Nystroem is {nystroem.kernel!r}, only 'rbf' can be compiled")
    parts = linear_models.linear_parts(final, final_name)
    landmarks = host_array(nystroem.components_)
    gamma = nystroem.gamma if nystroem.gamma is not None else (nystroem.kernel_params or {}).get("gamma")
    normalization = np.asarray(nystroem.normalization_, dtype=np.float64)
    if parts.coef.shape[1] != len(normalization):
        raise ModelFormatError(
            f"this {final_name} has {parts.coef.shape[1]} coefficients for {len(normalization)} Nystroem components"
        )

    def read(parts: linear_models.LinearParts) -> KernelModel:
        dual_coef, errors = compensated.matmul(parts.coef, np.ascontiguousarray(normalization))
        return KernelModel(
            task=parts.task,
            support_vectors=landmarks,
            dual_coef=dual_coef,
            intercept=parts.intercept,
            gamma=_gamma(gamma, landmarks.shape[1]),
            labels=parts.labels,
            source=f"sklearn Nystroem + {final_name}",
            feature_names=feature_names(nystroem),
            outputs=parts.outputs,
            value_error=errors.sum(axis=1) * _UP,
        )

    return linear_models.side_by_side(parts, read, several=True)


def restored(model: Regression, factor: Fraction, shift: Fraction) -> Regression:
    """The same regression in other units: values times `factor`, plus `shift`; rounding goes into its bounds."""
    f = _factor(factor)
    intercept = np.array([rounded_float(_fraction(b) * factor + shift) for b in model.intercept])
    changes, reach = model.times(f, _ROUNDED)
    error = model.value_error * abs(f) + _ROUNDED * (reach + np.abs(intercept)) + 2.0**-1040
    return replace(model, intercept=intercept, value_error=error * _UP, **changes)


@dataclass(frozen=True)
class _Terms:
    """constant + rbf * exp(-||x - z||^2 / (2 length_scale^2)), between rows of different sets."""

    constant: Fraction = Fraction(0)
    rbf: Fraction = Fraction(0)
    length_scale: Any = None


def _terms(kernel: Any) -> _Terms:
    """What a kernel of scikit-learn's Gaussian processes is between training rows and rows to predict."""
    kind = name_of(kernel)
    if kind == "ConstantKernel":
        return _Terms(constant=_fraction(kernel.constant_value))
    if kind == "WhiteKernel":
        return _Terms()  # noise of the training rows alone
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
        first.constant * second.constant,
        first.constant * second.rbf + first.rbf * second.constant,
        length_scale,
    )


def _one_target(coefficients: Any, name: str) -> FloatArray:
    values = np.asarray(coefficients, dtype=np.float64)
    if values.ndim > 1 and values.shape[1] != 1:
        raise UnsupportedModelError(f"this {name} has {values.shape[1]} targets, only one can be compiled")
    return values.ravel()


def _factor(exact: Fraction) -> float:
    f = rounded_float(exact)
    if not 2.0**-900 <= abs(f) <= 2.0**900:
        raise UnsupportedModelError(f"the target is scaled by {f:.6g}, which leaves float64 no room")
    return f


def rounded_float(exact: Fraction) -> float:
    """The nearest float64.

    Raises
    ------
    UnsupportedModelError
        It is beyond float64.
    """
    try:
        return float(exact)
    except OverflowError:
        raise UnsupportedModelError("a number of the model is beyond the range of float64") from None


def _fraction(number: Any) -> Fraction:
    try:
        return Fraction(float(number))
    except (ValueError, OverflowError):
        raise ModelFormatError(f"a parameter of the model is {number}") from None


def _gamma(gamma: Any, n_features: int) -> float:
    return 1.0 / n_features if gamma is None else float(gamma)
