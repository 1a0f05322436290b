"""NumPy's error state inside public functions, whatever the caller has set."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")


def in_own_error_state(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that overflow, underflow and NaN are no errors and give no warnings in it."""

    @wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> T:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return inner
