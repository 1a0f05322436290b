"""String columns: a pipeline's known strings, and their codes in raw rows.

Strings are replaced by codes when rows are received. The column is then numeric like any other, and lookups map its
codes.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.errors import UnsupportedModelError

# Cells of delimited files that pandas.read_csv interprets as missing values.
MISSING_CELLS: Final = (
    *("", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NULL", "null", "None", "nan", "NaN", "-nan", "-NaN"),
    *("1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN"),
)
# Codes of values that are not known strings. The code of a missing value is NaN.
UNKNOWN: Final = -1.0
NONE: Final = -2.0


@dataclass(frozen=True)
class TextColumn:
    """Known strings in one raw column; a string's code is its index."""

    texts: tuple[str, ...] = ()  # in increasing order of code points, which is also the order in UTF-8
    # Code of a null in tables with one kind of missing value (Arrow, CSV, SQL): NaN, or `NONE` if the source was fitted
    # with None as the missing value.
    null: float = math.nan

    def with_texts(self, more: Iterable[str]) -> "TextColumn":
        """Return this column with additional strings."""
        texts = sorted({*self.texts, *map(str, more)})
        for text in texts:
            if not text.isascii():
                check_unicode(text)
        return TextColumn(tuple(texts), self.null)

    @cached_property
    def _code_of(self) -> dict[Any, float]:
        return {text: float(k) for k, text in enumerate(self.texts)} | {None: NONE}

    def code(self, value: Any) -> float:
        """Return the code of any value: a known string, None, NaN, or unknown; pandas.NA is unknown to encoders."""
        try:
            known = self._code_of.get(value)
        except TypeError:  # not hashable
            return UNKNOWN
        return (math.nan if is_nan(value) else UNKNOWN) if known is None else known

    def codes(self, values: Iterable[Any]) -> npt.NDArray[np.float64]:
        """Return the codes of many values."""
        return np.array([self.code(value) for value in values], np.float64)

    def value(self, code: float) -> Any:
        """Return the value that a code represents; for the code `UNKNOWN`, a string that is not known."""
        if math.isnan(code):
            return math.nan
        if code in range(len(self.texts)):
            return self.texts[int(code)]
        return None if code == NONE else unknown_text(self.texts)


def unknown_text(texts: Iterable[str]) -> str:
    """Return a string that is not one of the given strings."""
    known = set(texts)
    return next(text for k in range(len(known) + 1) if (text := f"unknown{k or ''}") not in known)


def decoded(rows: npt.NDArray[np.float64], texts: Mapping[int, TextColumn]) -> npt.NDArray[Any]:
    """Replace the codes in raw rows with their strings, for the source; return an array of objects."""
    values = rows.astype(object)
    for column, known in texts.items():
        values[:, column] = [known.value(code) for code in rows[:, column].tolist()]
    return values


def is_nan(value: Any) -> bool:
    """Return whether a value is NaN, of any float type."""
    return isinstance(value, (float, np.floating)) and bool(value != value)


def is_na(value: Any) -> bool:
    """Return whether a value is pandas.NA."""
    return type(value).__name__ == "NAType"


def is_other_missing(value: Any) -> bool:
    """Return whether only some functions treat a value as missing: pandas.NA, NaT, or a Decimal NaN."""
    try:
        return is_na(value) or (value is not None and not is_nan(value) and bool(value != value))
    except (TypeError, ValueError):
        return False


def check_unicode(text: str) -> None:
    """Raise UnsupportedModelError for a lone surrogate, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnsupportedModelError(f"{text!r} is no valid Unicode: {error.reason}") from None
