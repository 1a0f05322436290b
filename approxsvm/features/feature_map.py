"""Base class of feature maps, and checks of their parameters."""

from numbers import Real
from typing import Any, Final

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import validate_data

from approxsvm.frames.rows import check_sparse


class FeatureMap(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transformer for dense or sparse rows; float32 and float64 rows keep their dtype."""

    def _rows(self, X: Any, reset: bool = False) -> Any:
        return validate_data(self, check_sparse(X), reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def is_number(value: Any, kind: type) -> bool:
    """Return whether a parameter is a number of the given kind; bool and NumPy's timedelta do not count."""
    return isinstance(value, kind) and not isinstance(value, (bool, np.timedelta64))


# If gamma were larger, a row whose squares underflow could not be treated as the origin.
_MOST_GAMMA: Final = 2.0**900


def resolved_gamma(gamma: Any, rows: Any) -> float:
    """Resolve `gamma` for these rows as SVC does; raise ValueError unless it is positive and at most 2^900."""
    if isinstance(gamma, str) and gamma in ("scale", "auto"):
        variance = 1.0
        if gamma == "scale":
            wide = rows.astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                variance = float(wide.multiply(wide).mean() - wide.mean() ** 2) if issparse(rows) else float(wide.var())
        resolved = 1.0 if variance <= 0.0 else 1.0 / (rows.shape[1] * variance)
        if not 0.0 < resolved <= _MOST_GAMMA:
            raise ValueError(
                f"gamma={gamma!r} is {resolved} for rows of variance {variance}: scale them, or pass a number"
            )
        return resolved
    # Convert gamma to a Python number, because NumPy cannot compare float32 with the limit.
    number = gamma.item() if isinstance(gamma, np.generic) else gamma
    if not is_number(number, Real) or not 0.0 < number <= _MOST_GAMMA:
        raise ValueError(f"gamma must be 'scale', 'auto' or a positive number up to 2^900, not {gamma!r}")
    return float(number)
