"""Other scikit-learn estimators that predict sums of kernels: KernelRidge, KernelDensity and Nystroem."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.sklearn import linear_models
from approxsvm.frontends.sklearn.host_arrays import host_array
from approxsvm.frontends.sklearn.known_types import class_name, helper
from approxsvm.frontends.sklearn.support_vector_machines import (
    check_kernel,
    feature_names,
    with_kernel,
)
from approxsvm.ir import compensated
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.outputs import GaussianDensity, Outputs
from approxsvm.ir.single_model import SingleModel

# Bound on the relative error of multiplying by a factor that was rounded to float64.
_ROUNDED = 3 * UNIT64
_UP = 1.0 + 2.0**-30

Regression = TypeVar("Regression", bound=SingleModel)


def read_kernel_ridge(estimator: Any, name: str) -> KernelModel | Ensemble:
    """Read a fitted KernelRidge, one model per target; gamma=None means 1 / n_features.

    The reference is K(rows, X_fit_) @ dual_coef_ in exact arithmetic.
    """
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


def read_density(estimator: Any, name: str) -> KernelModel:
    """Read a fitted KernelDensity with the Gaussian kernel as a regressor: the weighted mean of the kernels.

    The reference is sum_i w_i exp(-||z - x_i||^2 / (2 bandwidth_^2)) / sum_i w_i in exact arithmetic; scikit-learn's
    tree search stops when its result is within rtol and atol of the reference.
    """
    if estimator.kernel != "gaussian" or estimator.metric != "euclidean" or estimator.metric_params:
        raise UnsupportedModelError(
            f"this {name} has the kernel {estimator.kernel!r} and the metric {estimator.metric!r}: only 'gaussian' "
            "and 'euclidean' can be compiled"
        )
    tree = helper(estimator.tree_, "tree_", "KDTree", "BallTree")
    if not any(class_name(part) in ("EuclideanDistance64", "EuclideanDistance") for part in tree.__getstate__()):
        raise ModelFormatError(f"tree_ of this {name} has another metric than 'euclidean'")
    rows, given = np.array(tree.data, dtype=np.float64), tree.sample_weight
    weights = [Fraction(1)] * len(rows) if given is None else [fraction(w) for w in np.asarray(given)]
    total = sum(weights, Fraction(0))
    if min(weights) < 0 or total == 0:
        raise ModelFormatError(f"the sample weights of this {name} are negative, or all 0")
    length = fraction(estimator.bandwidth_)
    if not 2.0**-100 <= length <= 2.0**100:
        raise UnsupportedModelError(f"the bandwidth of this {name} is {estimator.bandwidth_:.6g}: scale the features")
    dual_coef = np.array([rounded_float(w / total) for w in weights])
    return KernelModel(
        task="regression",
        support_vectors=rows,
        dual_coef=dual_coef,
        intercept=np.zeros(1),
        gamma=float(Fraction(1, 2) / length**2),
        source="sklearn KernelDensity",
        feature_names=feature_names(estimator),
        outputs=Outputs(GaussianDensity()),
        # Bound on the effect of rounding the coefficients and gamma, obtained from t exp(-t) <= 1/e.
        value_error=np.array([(1.0 + 2.01 / math.e) * UNIT64 * _UP]),
    )


def read_nystroem(nystroem: Any, final: Any, final_name: str) -> SingleModel | Ensemble:
    """Read a Nystroem map with the RBF kernel, followed by a linear model, as a sum of RBF kernels at the landmarks.

    The map is K(z, components_) @ normalization_.T, so the coefficients are coef_ @ normalization_, computed with twice
    the precision of float64. The reference is the product of this map and coef_.T, plus intercept_, in exact
    arithmetic.
    """
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

    return linear_models.read_functions(parts, read, several=True)


def restored(model: Regression, factor: Fraction, shift: Fraction) -> Regression:
    """Convert a regressor's values f to `factor` f + `shift`; the new bounds include the added rounding errors."""
    f = _factor(factor)
    intercept = np.array([rounded_float(fraction(b) * factor + shift) for b in model.intercept])
    changes, reach = model.times(f, _ROUNDED)
    error = model.value_error * abs(f) + _ROUNDED * (reach + np.abs(intercept)) + 2.0**-1040
    return replace(model, intercept=intercept, value_error=error * _UP, **changes)


def _factor(exact: Fraction) -> float:
    f = rounded_float(exact)
    if not 2.0**-900 <= abs(f) <= 2.0**900:
        raise UnsupportedModelError(f"the target is scaled by {f:.6g}, too close to the limits of float64")
    return f


def rounded_float(exact: Fraction) -> float:
    """Return the nearest float64; raise UnsupportedModelError if it overflows."""
    try:
        return float(exact)
    except OverflowError:
        raise UnsupportedModelError("a number of the model is beyond the range of float64") from None


def parameter(value: Any, name: str) -> float:
    """Return a parameter that the source uses in NumPy arithmetic; reject types that do not compute as float64 does.

    For example, ``-np.uint8(1)`` is 255, and the sum of two int8 constants may wrap around.
    """
    is_plain = isinstance(value, (int, float, np.int64)) and not isinstance(value, bool)  # np.float64 is a float
    if is_plain and abs(value) <= 2.0**53:
        return float(value)
    raise UnsupportedModelError(
        f"{name} is {value!r}, and scikit-learn computes in the arithmetic of {class_name(value)}: fit it again "
        "with a Python float"
    )


def fraction(number: Any) -> Fraction:
    """Return a parameter as an exact fraction; raise ModelFormatError unless it is finite."""
    try:
        return Fraction(float(number))
    except (ValueError, OverflowError):
        raise ModelFormatError(f"a parameter of the model is {number}") from None


def _gamma(gamma: Any, n_features: int) -> float:
    return 1.0 / n_features if gamma is None else parameter(gamma, "gamma")
