"""The columns of raw rows, before any step of a pipeline: the doors' part of an input map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import InputError
from approxsvm.frames.text_columns import NONE, UNKNOWN, TextColumn, is_na, is_other_missing

# The most characters of a value in a message.
_SHOWN = 60


@dataclass(frozen=True, eq=False)
class RawColumns:
    """Columns of raw rows that a model expects."""

    n_columns: int
    names: tuple[str, ...] | None  # that the source was fitted with
    # shape (n_used,); positions of the columns that answers depend on, or whether there is one, ascending. Others are
    # ignored.
    used: npt.NDArray[np.intp]
    # Whether the source's first step is a ColumnTransformer: it finds the columns of a data frame by their names, in
    # any order and among others, and those that it drops need not be numbers, nor be there
    by_column: bool
    # shape (n_taking,); positions of used columns where NaN is a value, such as in front of an imputer
    takes_nan: npt.NDArray[np.intp]
    # Positions of the columns of texts. Arrays of numbers hold their codes.
    texts: Mapping[int, TextColumn] = field(default_factory=dict)
    # Of these columns, which codes of what is no known text the source refuses
    refused: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    # Of these columns, where pandas.NA is a missing value; elsewhere it is something unknown
    taking_na: frozenset[int] = frozenset()
    knowing_nan: frozenset[int] = frozenset()  # of the columns of texts, where NaN is not just one more unknown value
    # Positions of the columns of numbers that are looked up as they are, where "1" is not 1
    looked_up: frozenset[int] = frozenset()
    multiplies: bool = False  # whether the source makes products, which of sparse rows go by the order of entries

    @classmethod
    def of(cls, model: Any) -> RawColumns:
        """Columns of a model, an ensemble, or an artifact of either."""
        n_columns = int(model.n_raw_features)
        maps = [part.input_map for part in getattr(model, "members", ()) or (model,)]
        chosen = np.concatenate([np.arange(n_columns) if one is None else one.columns_looked_at for one in maps])
        used = np.flatnonzero(np.bincount(chosen))  # np.unique would import numpy.ma
        by_column = all(one is not None and one.by_column for one in maps)
        texts = {j: known for one in maps if one is not None for j, known in one.texts.items()}
        refused = {j: tuple(c for c in (UNKNOWN, NONE) if _refuses(maps, j, c)) for j in texts}
        # Who takes pandas.NA asks pandas what is missing, to which None and NaN are the same.
        na = frozenset(j for j in texts if all(m is None or m.reached(j, np.nan) == m.reached(j, NONE) for m in maps))
        nan = frozenset(
            j
            for j in texts
            if any(m is not None and _differs(m.reached(j, np.nan), m.reached(j, UNKNOWN)) for m in maps)
        )
        looked_up = frozenset(int(j) for one in maps if one is not None for j in one.columns_looked_up())
        multiplies = any(one is not None and one.multiplies for one in maps)
        names, taking = model.feature_names, _taking_nan(maps)
        return cls(n_columns, names, used, by_column, taking, texts, refused, na, nan, looked_up, multiplies)

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names by which rows have columns: the source's, or f0, f1, ..."""
        return tuple(f"f{k}" for k in range(self.n_columns)) if self.names is None else self.names

    @property
    def has_categories(self) -> bool:
        """Whether values are looked at one by one: texts, or numbers that are looked up."""
        return bool(self.texts or self.looked_up)

    @property
    def uses_all(self) -> bool:
        """Whether answers depend on every column."""
        return len(self.used) == self.n_columns

    @property
    def takes_null(self) -> npt.NDArray[np.intp]:
        """Positions of the columns where a missing value of a table is one."""
        of_texts = [j for j, known in self.texts.items() if known.null == NONE]
        return np.union1d(self.takes_nan, np.array(of_texts, np.intp))

    def codes(self, column: int, values: Iterable[Any]) -> npt.NDArray[np.float64]:
        """What stands for the values of a column of texts in a row.

        Raises InputError: the source refuses unknown values, or the value may be missing or unknown to it.
        """
        values = list(values)
        takes_na = column in self.taking_na
        codes = self.texts[column].codes(np.nan if takes_na and is_na(value) else value for value in values)
        for row in np.flatnonzero(np.isin(codes, self.refused[column]))[:1].tolist():
            raise self.wrong_value(row, column, "a known category", values[row])
        for row in np.flatnonzero(codes == UNKNOWN).tolist() if column in self.knowing_nan else ():
            if is_other_missing(values[row]):
                raise self.wrong_value(row, column, "a text, None or NaN", values[row])
        return codes

    def wrong_value(self, row: int, column: int, needed: str, value: Any) -> InputError:
        """The error of a value that is not what is needed."""
        shown = repr(value)
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
        return InputError(f"row {row}: {needed} is needed in {self.name_of(column)}, got {shown}")

    def name_of(self, column: int) -> str:
        """A column in words."""
        return f"column {column}" if self.names is None else f"column {self.names[column]!r}"

    def are_taken(self, values: npt.NDArray[Any], columns: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which numbers a model takes in these columns: finite ones, and NaN where it is a value."""
        taken = np.isfinite(values)
        if len(self.takes_nan) and not taken.all():
            taken |= np.isnan(values) & np.isin(columns, self.takes_nan)
        return np.asarray(taken)


def _differs(some: Any, others: Any) -> bool:
    return not np.array_equal(some, others, equal_nan=True)


def _refuses(maps: list[Any], column: int, code: float) -> bool:
    return any(one is not None and np.isnan(one.reached(column, code)).any() for one in maps)


def _taking_nan(maps: list[Any]) -> npt.NDArray[np.intp]:
    """Columns that some map takes NaN of, and no other map of its own uses without."""
    taking = {int(j) for one in maps if one is not None for j in one.columns_of_nan()}
    refusing = {
        int(j) for one in maps if one is not None for j in np.setdiff1d(one.columns_looked_at, one.columns_of_nan())
    }
    every = any(one is None for one in maps)
    return np.array([] if every else sorted(taking - refusing), np.intp)
