"""Feature maps in front of a linear model: TaylorFeatures of our own, and those that cannot be compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.expansion.monomials import n_monomials
from approxsvm.model.taylor_model import MAX_TAYLOR_DEGREE, TaylorModel
from approxsvm.readers.sklearn import linear_models
from approxsvm.readers.sklearn.support_vector_machines import feature_names, require_fitted

# Of scikit-learn, by the names of their classes, and our own. None of them has a kernel that it is a sum of.
_NOT_COMPILED = (
    "AdditiveChi2Sampler",
    "PolynomialCountSketch",
    "PolynomialFeatures",
    "RBFSampler",
    "RandomBinningFeatures",
    "SkewedChi2Sampler",
    "SplineTransformer",
)


def feature_map(step: Any) -> str:
    """Name of the class of feature maps, of scikit-learn or our own, that a step is of; or an empty string."""
    for base in type(step).__mro__:
        if base.__name__ == "TaylorFeatures" and base.__module__.startswith("approxsvm.features."):
            return base.__name__
        if base.__name__ in _NOT_COMPILED and base.__module__.split(".")[0] in ("sklearn", "approxsvm"):
            return base.__name__
    return ""


def read_feature_map(step: Any, step_name: str, final: Any, final_name: str) -> TaylorModel:
    """A feature map and a linear model behind it.

    The reference is the features times coef_ plus intercept_ over the real numbers.

    Raises
    ------
    UnsupportedModelError
        The map is not TaylorFeatures, or of a degree beyond 6.
    """
    kind = feature_map(step)
    if kind != "TaylorFeatures":
        raise UnsupportedModelError(
            f"step {step_name!r} ({kind}) cannot be compiled; in front of a linear model, of feature maps only "
            "TaylorFeatures and Nystroem can"
        )
    require_fitted(step, kind, "gamma_")
    if step.degree_ > MAX_TAYLOR_DEGREE:
        raise UnsupportedModelError(
            f"step {step_name!r} (TaylorFeatures) has degree {step.degree_}; "
            f"at most {MAX_TAYLOR_DEGREE} can be compiled"
        )
    parts = linear_models.linear_parts(final, final_name)
    sizes = [n_monomials(step.n_features_in_, k) for k in range(step.degree_ + 1)]
    if len(parts.coef) != sum(sizes):
        raise ModelFormatError(
            f"this {final_name} has {len(parts.coef)} coefficients for {sum(sizes)} features of step {step_name!r}"
        )
    return TaylorModel(
        task=parts.task,
        weights=tuple(np.split(parts.coef, np.cumsum(sizes)[:-1])),
        intercept=np.array([parts.intercept]),
        gamma=float(step.gamma_),
        labels=parts.labels,
        source=f"TaylorFeatures + {final_name}",
        feature_names=feature_names(step),
        outputs=parts.outputs,
    )
