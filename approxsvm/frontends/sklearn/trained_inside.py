"""Replacement of compiling estimators (approxsvm/compiling.py) with the trained estimators inside them."""

from copy import copy
from typing import Any, Final

import numpy as np

_COMPILING: Final = "approxsvm.compiling"


def trained_inside(source: Any) -> Any:
    """Return the source with compiling estimators replaced by their trained ones, or the source itself if it has none.

    Objects that contain a replaced estimator are copied, so the source is not modified. Raises NotFittedError if the
    source itself is a compiling estimator that has not been fitted.
    """
    if _is_compiling(source) and "estimator_" not in vars(source):
        from sklearn.utils.validation import check_is_fitted  # already loaded with the estimator

        check_is_fitted(source)
    return _replaced(source, {})


def _is_compiling(candidate: Any) -> bool:
    return any(base.__module__ == _COMPILING for base in type(candidate).__mro__)


def _replaced(held: Any, seen: dict[int, Any]) -> Any:
    """Return an object with its inner objects replaced; `seen` contains the objects already replaced or in progress."""
    if id(held) in seen:
        return seen[id(held)]
    seen[id(held)] = held
    if _is_compiling(held):
        if "estimator_" in vars(held):  # estimators that are only parameters have not been fitted
            seen[id(held)] = _replaced(held.estimator_, seen)
    elif type(held) in (list, tuple):
        parts = [_replaced(one, seen) for one in held]
        if any(new is not old for new, old in zip(parts, held, strict=True)):
            seen[id(held)] = type(held)(parts)
    elif isinstance(held, np.ndarray) and held.dtype == object:
        flat = held.ravel().copy()
        for k, one in enumerate(flat):
            flat[k] = _replaced(one, seen)
        if any(new is not old for new, old in zip(flat, held.ravel(), strict=True)):
            seen[id(held)] = flat.reshape(held.shape)
    elif hasattr(held, "__dict__") and (hasattr(held, "get_params") or type(held).__module__.startswith("sklearn.")):
        changed = {name: new for name, old in vars(held).items() if (new := _replaced(old, seen)) is not old}
        if changed:
            seen[id(held)] = copied = copy(held)
            vars(copied).update(changed)
    return seen[id(held)]
