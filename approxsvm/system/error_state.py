"""NumPy's error state inside public functions, whatever the caller has set."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")


def in_default_error_state(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to run in NumPy's default error state: numbers that underflow are no errors there."""

    @wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> T:
        with np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"):
            return function(*args, **kwargs)

    return inner
