"""Conversion of fitted estimators' arrays, which GPU libraries may keep on the device."""

from typing import Any

import numpy as np


def host_array(values: Any) -> Any:
    """Convert a GPU library's array to a NumPy array or a SciPy sparse matrix."""
    for method in ("to_output", "get", "to_numpy"):
        if not isinstance(values, np.ndarray) and hasattr(values, method):
            values = values.to_output("numpy") if method == "to_output" else getattr(values, method)()
    return values if hasattr(values, "tocsr") else np.asarray(values)
