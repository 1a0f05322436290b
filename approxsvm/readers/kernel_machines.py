"""Other estimators of scikit-learn that predict sums of RBF kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.input_map import InputMap
from approxsvm.kernel_model import FloatArray, KernelModel
from approxsvm.quadratic_model import QuadraticModel
from approxsvm.readers import linear_models
from approxsvm.readers.support_vector_machines import (
    check_kernel,
    feature_names,
    host_array,
    require_fitted,
    with_kernel,
)


def read_kernel_ridge(estimator: Any, name: str) -> KernelModel | QuadraticModel:
    """Read a fitted KernelRidge with one target; gamma=None is 1 / n_features."""
    require_fitted(estimator, name, "dual_coef_")
    check_kernel(estimator, name)
    rows = host_array(estimator.X_fit_)
    machine = KernelModel(
        task="regression",
        support_vectors=rows,
        dual_coef=_one_target(estimator.dual_coef_, name),
        intercept=np.zeros(1),
        gamma=_gamma(estimator.gamma, rows.shape[1]),
        source=f"sklearn {name}",
        feature_names=feature_names(estimator),
    )
    return with_kernel(machine, estimator)


def read_gaussian_process(estimator: Any, name: str) -> KernelModel:
    """Read the mean prediction of a fitted GaussianProcessRegressor.

    Kernels built of ConstantKernel, RBF and WhiteKernel by sums and products with one RBF in all. Length scales per
    feature become an input map, and the support vectors are divided by them.
    """
    require_fitted(estimator, name, "X_train_")
    require_fitted(estimator, name, "alpha_")
    terms = _terms(estimator.kernel_)
    if terms.length_scale is None:
        raise UnsupportedModelError(f"the kernel of this {name} is {estimator.kernel_}: there is no RBF in it")
    rows = np.asarray(estimator.X_train_, dtype=np.float64)
    alpha = _one_target(estimator.alpha_, name)
    deviation = float(np.ravel(estimator._y_train_std)[0])
    mean = float(np.ravel(estimator._y_train_mean)[0])
    lengths = np.ravel(np.asarray(terms.length_scale, dtype=np.float64))
    names = feature_names(estimator)
    input_map, gamma = None, 0.5
    if len(lengths) == 1:
        gamma = 0.5 / float(lengths[0]) ** 2
    else:
        input_map = InputMap.identity(rows.shape[1], names).then_divide(0.0, lengths)
        rows = input_map.apply(rows)
    return KernelModel(
        task="regression",
        support_vectors=rows,
        dual_coef=deviation * terms.rbf * alpha,
        intercept=np.array([mean + deviation * terms.constant * float(alpha.sum())]),
        gamma=gamma,
        source="sklearn GaussianProcess",
        feature_names=names,
        input_map=input_map,
    )


def read_nystroem(nystroem: Any, final: Any, final_name: str) -> KernelModel:
    """A Nystroem map with the RBF kernel and a linear model: a sum of RBF kernels at the landmarks.

    The map is K(z, components_) @ normalization_.T, so the coefficients are normalization_.T @ coef_.
    """
    require_fitted(nystroem, "Nystroem", "components_")
    if nystroem.kernel != "rbf":
        raise UnsupportedModelError(f"the kernel of this Nystroem is {nystroem.kernel!r}, only 'rbf' can be compiled")
    parts = linear_models.linear_parts(final, final_name)
    landmarks = host_array(nystroem.components_)
    gamma = nystroem.gamma if nystroem.gamma is not None else (nystroem.kernel_params or {}).get("gamma")
    normalization = np.asarray(nystroem.normalization_, dtype=np.float64)
    if len(parts.coef) != len(normalization):
        raise ModelFormatError(
            f"this {final_name} has {len(parts.coef)} coefficients for {len(normalization)} Nystroem components"
        )
    return KernelModel(
        task=parts.task,
        support_vectors=landmarks,
        dual_coef=normalization.T @ parts.coef,
        intercept=np.array([parts.intercept]),
        gamma=_gamma(gamma, landmarks.shape[1]),
        labels=parts.labels,
        source=f"sklearn Nystroem + {final_name}",
        feature_names=feature_names(nystroem),
        heads=parts.heads,
    )


def restored(model: KernelModel | QuadraticModel, factor: float, shift: float) -> KernelModel | QuadraticModel:
    """The same regression in other units: values times `factor`, plus `shift`."""
    if isinstance(model, KernelModel):
        return replace(model, dual_coef=model.dual_coef * factor, intercept=model.intercept * factor + shift)
    machine = model.machine
    if machine is not None:
        machine = replace(machine, dual_coef=machine.dual_coef * factor, intercept=machine.intercept * factor + shift)
    return replace(
        model,
        machine=machine,
        constant=model.constant * factor + shift,
        linear=model.linear * factor,
        quadratic=None if model.quadratic is None else model.quadratic * factor,
        constant_error=model.constant_error * abs(factor) + 2.0**-51 * (np.abs(model.constant * factor) + abs(shift)),
        linear_error=model.linear_error * abs(factor) + 2.0**-52 * np.linalg.norm(model.linear * factor, axis=1),
        quadratic_error=model.quadratic_error * abs(factor)
        + (0.0 if model.quadratic is None else 2.0**-52 * np.linalg.norm(model.quadratic * factor, axis=(1, 2))),
    )


@dataclass(frozen=True)
class _Terms:
    """constant + rbf * exp(-||x - z||^2 / (2 length_scale^2)), between rows of different sets."""

    constant: float = 0.0
    rbf: float = 0.0
    length_scale: Any = None


def _terms(kernel: Any) -> _Terms:
    """What a kernel of scikit-learn's Gaussian processes is between training rows and rows to predict."""
    for base in type(kernel).__mro__:
        kind = base.__name__ if base.__module__ == "sklearn.gaussian_process.kernels" else ""
        if kind == "ConstantKernel":
            return _Terms(constant=float(kernel.constant_value))
        if kind == "WhiteKernel":
            return _Terms()  # noise of the training rows alone
        if kind == "RBF":
            return _Terms(rbf=1.0, length_scale=kernel.length_scale)
        if kind in ("Sum", "Product"):
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
    raise UnsupportedModelError(
        f"the kernel {kernel} cannot be compiled; supported are sums and products of ConstantKernel, WhiteKernel "
        "and one RBF"
    )


def _one_target(coefficients: Any, name: str) -> FloatArray:
    values = np.asarray(coefficients, dtype=np.float64)
    if values.ndim > 1 and values.shape[1] != 1:
        raise UnsupportedModelError(f"this {name} has {values.shape[1]} targets, only one can be compiled")
    return values.ravel()


def _gamma(gamma: Any, n_features: int) -> float:
    return 1.0 / n_features if gamma is None else float(gamma)
