"""Conversion of options to plain Python values."""

import math
import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from approxsvm.errors import InputError

MAX_SEED: Final = 2**32 - 1  # limit of NumPy's RandomState, which scikit-learn uses


def whole_number(value: Any, name: str, least: int, most: int | None = None, *, words: Sequence[str] = ()) -> Any:
    """Return an integer of any type as an int, or one of `words`; otherwise raise an InputError with `name`."""
    if isinstance(value, str) and value in words:
        return str(value)
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is not None and least <= number and (most is None or number <= most):
        return number
    limits = f"of at least {least}" if most is None else f"from {least} to {most}"
    raise InputError(f"{name} is {value!r}, but must be {_listed(words, ', or ')}a whole number {limits}")


def real_number(value: Any, name: str) -> float:
    """Return a real number of any type as a float; for NaN or anything else, raise an InputError with `name`."""
    others = (str, bytes, bytearray, bool, np.bool_, np.datetime64, np.timedelta64)
    is_other = isinstance(value, others) or getattr(value, "shape", ()) != ()
    try:
        number = math.nan if is_other else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise InputError(f"{name} is {value!r}, but must be a number")
    return number


def one_of(value: Any, name: str, words: Sequence[str]) -> Any:
    """Return one of `words` as a plain string; for anything else, raise an InputError with the option's name."""
    if isinstance(value, str) and value in words:
        return str(value)
    raise InputError(f"{name} is {value!r}, but must be {_listed(words)}")


def _listed(words: Sequence[str], end: str = "") -> str:
    *first, last = [*map(repr, words)] or [""]
    return f"{', '.join(first)} or {last}{end}" if first else last and last + end
