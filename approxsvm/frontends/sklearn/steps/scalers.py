"""Scalers and other steps that transform each value separately, and Normalizer, which divides rows by their norms."""

from typing import Any, Final

import numpy as np

from approxsvm.errors import UnsupportedModelError
from approxsvm.frames.dtypes import SPARSE, WIDE_SPARSE
from approxsvm.frontends.sklearn.steps.dtype_rules import F64, Behaviour, DType, checked_dtype, in_place
from approxsvm.frontends.sklearn.steps.record import OVERWRITES, Step, keeps_sparse
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.ops import Logarithm, Normalizer, Power

# Functions that compute log(x + offset), with their offsets.
_LOGARITHMS: Final = ((np.log, 0.0), (np.log1p, 1.0))


def _standard_scaler(map_: InputMap, step: Any) -> InputMap:
    mean = step.mean_ if step.with_mean else 0.0
    return map_.then_affine(subtract=mean, **_scaled(map_, step.scale_ if step.with_std else 1.0))


def _scaled(map_: InputMap, scale: Any) -> dict[str, Any]:
    """Return the source's operation for a scale: division or, for sparse rows, multiplication by 1 / scale."""
    return {"multiply": 1.0 / scale} if map_.is_sparse else {"divide": scale}


def _standard_dtypes(step: Any, dtype: DType) -> Behaviour:
    behaviour = in_place(step, dtype)
    return behaviour if step.with_mean or step.with_std else Behaviour(behaviour.gives)


def _scale_of_sparse(step: Any) -> tuple[str, ...]:
    """Return the kinds of sparse rows that the source multiplies by 1 / scale in a dtype other than float64."""
    scale = step.scale_
    return () if scale is None or np.asarray(scale).dtype == F64 else (WIDE_SPARSE,)


def _min_max_scaler(map_: InputMap, step: Any) -> InputMap:
    low, high = step.feature_range if getattr(step, "clip", False) else (-np.inf, np.inf)
    return map_.then_affine(multiply=step.scale_, add=step.min_, low=low, high=high)


def _max_abs_scaler(map_: InputMap, step: Any) -> InputMap:
    low, high = (-1.0, 1.0) if getattr(step, "clip", False) else (-np.inf, np.inf)
    return map_.then_affine(**_scaled(map_, step.scale_), low=low, high=high)


def _robust_scaler(map_: InputMap, step: Any) -> InputMap:
    center = step.center_ if step.with_centering else 0.0
    return map_.then_affine(subtract=center, **_scaled(map_, step.scale_ if step.with_scaling else 1.0))


def _function_transformer(map_: InputMap, step: Any) -> InputMap:
    if step.func is None:
        return map_
    offset = next((offset for function, offset in _LOGARITHMS if step.func is function), None)
    if offset is None or step.kw_args:
        given = f" with {', '.join(map(repr, step.kw_args))}" if step.kw_args else ""
        raise UnsupportedModelError(f"it calls {getattr(step.func, '__name__', step.func)!r}{given}")
    return map_.then_op(Logarithm.of(map_.n_features, offset))


def _function_dtypes(step: Any, dtype: DType) -> Behaviour:
    if step.func is None:
        return Behaviour(dtype)
    taken = checked_dtype(dtype)
    with np.errstate(all="ignore"):
        made = step.func(np.ones(1, taken)).dtype
    return Behaviour(made, made)


def _power_transformer(map_: InputMap, step: Any) -> InputMap:
    powers = np.array(step.lambdas_, np.float64)
    if not np.isfinite(powers).all():
        raise UnsupportedModelError(f"its power of column {int(np.flatnonzero(~np.isfinite(powers))[0])} is NaN")
    # SciPy treats powers this close to 0 or 2 as exactly 0 or 2.
    if step.method == "yeo-johnson":
        powers[np.abs(powers) < 2.0**-52] = 0.0
        powers[np.abs(powers - 2.0) <= 2.0**-52] = 2.0
    else:
        powers[np.abs(powers) < 1e-19] = 0.0
    mapped = map_.then_op(Power(step.method, powers))
    return _standard_scaler(mapped, step._scaler) if step.standardize else mapped


def _power_dtypes(step: Any, dtype: DType) -> Behaviour:
    """Check the powers, because 2 - lambda is computed in the training rows' dtype even for float64 rows."""
    powers = np.asarray(step.lambdas_)
    exact = 2.0 - powers.astype(np.float64) == (2 - powers).astype(np.float64)
    if step.method == "yeo-johnson" and powers.dtype != F64 and not exact[np.isfinite(powers)].all():
        raise UnsupportedModelError(
            f"it was fitted on {powers.dtype.name} rows, and computes 2 - lambda in that dtype: refit it on "
            "X.astype(np.float64)"
        )
    return in_place(step, dtype)


def _normalizer(map_: InputMap, step: Any) -> InputMap:
    rows = "sparse" if map_.is_sparse else "as raw" if map_.stays_sparse else "dense"
    return map_.then_op(Normalizer(map_.n_features, step.norm, rows))


STEPS: Final = (
    Step(
        "StandardScaler",
        "sklearn.preprocessing",
        "with_mean with_std mean_ scale_ copy",
        _standard_scaler,
        _standard_dtypes,
        refused=OVERWRITES,
        takes_nan=True,
        gives_sparse=keeps_sparse,
        differs_if_sparse=_scale_of_sparse,
    ),
    Step(
        "MinMaxScaler",
        "sklearn.preprocessing",
        "clip feature_range scale_ min_ copy",
        _min_max_scaler,
        in_place,
        refused=OVERWRITES,
        takes_nan=True,
    ),
    Step(
        "MaxAbsScaler",
        "sklearn.preprocessing",
        "clip scale_ copy",
        _max_abs_scaler,
        in_place,
        refused=OVERWRITES,
        takes_nan=True,
        gives_sparse=keeps_sparse,
        differs_if_sparse=_scale_of_sparse,
    ),
    Step(
        "RobustScaler",
        "sklearn.preprocessing",
        "with_centering with_scaling center_ scale_ copy",
        _robust_scaler,
        in_place,
        refused=OVERWRITES,
        takes_nan=True,
        gives_sparse=keeps_sparse,
        differs_if_sparse=lambda step: (SPARSE,) if step.with_centering else _scale_of_sparse(step),
    ),
    Step(
        "FunctionTransformer",
        "sklearn.preprocessing",
        "func kw_args inverse_func inv_kw_args",
        _function_transformer,
        _function_dtypes,
        refused="functions other than np.log and np.log1p",
        checks=lambda step: bool(step.validate),
        gives_sparse=keeps_sparse,
    ),
    Step(
        "PowerTransformer",
        "sklearn.preprocessing",
        "method lambdas_ standardize _scaler copy",
        _power_transformer,
        _power_dtypes,
        refused=f"{OVERWRITES}; float32 powers",
        helpers=(("_scaler", "StandardScaler"),),
        takes_nan=True,
    ),
    Step(
        "Normalizer",
        "sklearn.preprocessing",
        "norm copy",
        _normalizer,
        in_place,
        refused=OVERWRITES,
        gives_sparse=keeps_sparse,
    ),
)
