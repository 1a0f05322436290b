"""Feature maps before a linear model: our TaylorFeatures, the samplers, and maps that cannot be compiled."""

from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.expansion.monomials import n_monomials
from approxsvm.frontends.sklearn import linear_models
from approxsvm.frontends.sklearn.known_types import KNOWN, name_of
from approxsvm.frontends.sklearn.support_vector_machines import feature_names
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.cosine_model import CosineModel
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.ops import Logarithm
from approxsvm.ir.single_model import SingleModel
from approxsvm.ir.taylor_model import MAX_TAYLOR_DEGREE, TaylorModel

NAMES = frozenset(known.name for known in KNOWN if known.role in ("feature map", "unsupported feature map"))


def read_feature_map(step: Any, step_name: str, final: Any, final_name: str) -> SingleModel | Ensemble:
    """Read a feature map and a linear model; the reference is features @ coef_.T + intercept_ in exact arithmetic.

    Raises UnsupportedModelError unless the map is RBFSampler, SkewedChi2Sampler, or TaylorFeatures of degree at most 6.
    """
    kind = name_of(step)
    if kind == "TaylorFeatures":
        return _read_taylor(step, step_name, final, final_name)
    if kind in ("RBFSampler", "SkewedChi2Sampler"):
        return _read_fourier(kind, step, step_name, final, final_name)
    raise UnsupportedModelError(
        f"step {step_name!r} ({kind}) cannot be compiled; before a linear model, only the feature maps TaylorFeatures, "
        "RBFSampler, SkewedChi2Sampler and Nystroem can"
    )


def own_map(step: Any) -> InputMap | None:
    """Return the map applied before the multiplication by frequencies: log(x + skewedness) for SkewedChi2Sampler."""
    if name_of(step) != "SkewedChi2Sampler":
        return None
    n = len(step.random_weights_)
    return InputMap.identity(n).then_op(Logarithm.of(n, step.skewedness))


def _read_fourier(kind: str, step: Any, step_name: str, final: Any, final_name: str) -> CosineModel:
    """Read n random Fourier features, sqrt(2 / n) cos(z @ random_weights_ + random_offset_).

    Here, z is x for RBFSampler, and log(x + skewedness) for SkewedChi2Sampler.
    """
    frequencies = np.ascontiguousarray(np.asarray(step.random_weights_, dtype=np.float64).T)
    phases = np.asarray(step.random_offset_, dtype=np.float64)
    n_given, n = int(step.n_components), len(phases)
    parts = linear_models.linear_parts(final, final_name)
    if n_given != n:
        raise ModelFormatError(f"step {step_name!r} has {n} random offsets, but n_components is {n_given}")
    _check_coefficients(parts, final_name, n, step_name)
    coef = parts.coef * np.sqrt(2.0 / n)
    return CosineModel(
        task=parts.task,
        frequencies=frequencies,
        phases=phases,
        coef=coef,
        intercept=parts.intercept,
        labels=parts.labels,
        source=f"{kind} + {final_name}",
        feature_names=feature_names(step),
        input_map=own_map(step),
        outputs=parts.outputs,
        # The quotient, square root and product add at most 2.5 roundings to the error. Absolute values of cosines are
        # at most 1.
        value_error=3.0 * UNIT64 * np.abs(coef).sum(axis=1) + 2.0**-1040,
    )


def _read_taylor(step: Any, step_name: str, final: Any, final_name: str) -> SingleModel | Ensemble:
    """Read Taylor features if expansions support their degree."""
    if step.degree_ > MAX_TAYLOR_DEGREE:
        raise UnsupportedModelError(
            f"step {step_name!r} (TaylorFeatures) has degree {step.degree_}; "
            f"at most {MAX_TAYLOR_DEGREE} can be compiled"
        )
    parts = linear_models.linear_parts(final, final_name)
    sizes = [n_monomials(step.n_features_in_, k) for k in range(step.degree_ + 1)]
    _check_coefficients(parts, final_name, sum(sizes), step_name)

    def read(parts: linear_models.LinearParts) -> TaylorModel:
        return TaylorModel(
            task=parts.task,
            weights=tuple(np.split(parts.coef[0], np.cumsum(sizes)[:-1])),
            intercept=parts.intercept,
            gamma=float(step.gamma_),
            labels=parts.labels,
            source=f"TaylorFeatures + {final_name}",
            feature_names=feature_names(step),
            outputs=parts.outputs,
        )

    return linear_models.read_functions(parts, read, several=False)


def _check_coefficients(parts: linear_models.LinearParts, final_name: str, n_given: int, step_name: str) -> None:
    if parts.coef.shape[1] != n_given:
        raise ModelFormatError(
            f"this {final_name} has {parts.coef.shape[1]} coefficients for {n_given} features of step {step_name!r}"
        )
