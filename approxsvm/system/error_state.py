"""NumPy's error state inside public functions, independent of the caller's settings."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")


def in_own_error_state(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that NumPy's floating-point errors in it cause no exceptions or warnings."""

    @wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> T:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return inner
