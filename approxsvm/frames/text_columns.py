"""Columns of texts: which texts a pipeline knows, and the numbers that stand for them in raw rows.

A text is coded once, at the door where rows come in. Behind it a column of texts is one of numbers like any other,
which tables look up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.errors import UnsupportedModelError

# Cells of delimited files that mean a missing value, as pandas.read_csv has them.
MISSING_CELLS: Final = (
    *("", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NULL", "null", "None", "nan", "NaN", "-nan", "-NaN"),
    *("1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN"),
)
# Codes of what is no known text. NaN stands for a missing value.
UNKNOWN: Final = -1.0
NONE: Final = -2.0


@dataclass(frozen=True)
class TextColumn:
    """The texts of one raw column; the code of each is its position."""

    texts: tuple[str, ...] = ()  # ascending by code point, which is their order as UTF-8, too
    # Code of a missing value in tables that have one kind of these (Arrow, CSV, SQL): NaN, or `NONE` where the source
    # was fitted on None
    null: float = math.nan

    def with_texts(self, more: Iterable[str]) -> TextColumn:
        """The same with further texts."""
        texts = sorted({*self.texts, *map(str, more)})
        for text in texts:
            if not text.isascii():
                check_unicode(text)
        return TextColumn(tuple(texts), self.null)

    @cached_property
    def _code_of(self) -> dict[Any, float]:
        return {text: float(k) for k, text in enumerate(self.texts)} | {None: NONE}

    def code(self, value: Any) -> float:
        """The code of any value: a known text, None, NaN, or something unknown, as pandas.NA is to encoders."""
        try:
            known = self._code_of.get(value)
        except TypeError:  # not hashable
            return UNKNOWN
        return (math.nan if is_nan(value) else UNKNOWN) if known is None else known

    def codes(self, values: Iterable[Any]) -> npt.NDArray[np.float64]:
        """The codes of many values."""
        return np.array([self.code(value) for value in values], np.float64)

    def value(self, code: float) -> Any:
        """What a code stands for; of one that stands for nothing known, a text that is unknown."""
        if math.isnan(code):
            return math.nan
        if code in range(len(self.texts)):
            return self.texts[int(code)]
        return None if code == NONE else unknown_text(self.texts)


def unknown_text(texts: Iterable[str]) -> str:
    """A text that is none of these."""
    known = set(texts)
    return next(text for k in range(len(known) + 1) if (text := f"unknown{k or ''}") not in known)


def decoded(rows: npt.NDArray[np.float64], texts: Mapping[int, TextColumn]) -> npt.NDArray[Any]:
    """Raw rows with texts in the place of their codes, as the source takes them; an array of objects."""
    values = rows.astype(object)
    for column, known in texts.items():
        values[:, column] = [known.value(code) for code in rows[:, column].tolist()]
    return values


def is_nan(value: Any) -> bool:
    """Whether a value is NaN of any kind of float."""
    return isinstance(value, (float, np.floating)) and bool(value != value)


def is_na(value: Any) -> bool:
    """Whether a value is pandas.NA."""
    return type(value).__name__ == "NAType"


def is_other_missing(value: Any) -> bool:
    """Whether a value is missing to some and a value to others: pandas.NA, NaT, a Decimal that is NaN."""
    try:
        return is_na(value) or (value is not None and not is_nan(value) and bool(value != value))
    except (TypeError, ValueError):
        return False


def check_unicode(text: str) -> None:
    """Raise UnsupportedModelError for half a surrogate pair, which UTF-8 does not have."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnsupportedModelError(f"{text!r} is no valid Unicode: {error.reason}") from None
