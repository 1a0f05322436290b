"""Checks of numbers that callers choose."""

import operator
from typing import Any, Final

from approxsvm.errors import InputError

MAX_SEED: Final = 2**32 - 1  # limit of NumPy's RandomState, which scikit-learn uses


def is_whole_number(value: Any, least: int, most: int | None = None) -> bool:
    """Return whether a value is an integer of any type, but not bool, within limits."""
    try:
        number = operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool) and least <= number and (most is None or number <= most)


def whole_number(value: Any, name: str, least: int, most: int | None = None) -> int:
    """Return the value as an int; InputError, with its name, if it is not an integer within limits."""
    if is_whole_number(value, least, most):
        return operator.index(value)
    limits = f"of at least {least}" if most is None else f"from {least} to {most}"
    raise InputError(f"{name} is {value!r}, but must be a whole number {limits}")
