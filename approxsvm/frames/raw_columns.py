"""Columns of raw rows, before any step of a pipeline, and checks of their values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import InputError
from approxsvm.frames.dtypes import NO_NUMBER, NOT_NONE
from approxsvm.frames.text_columns import NONE, UNKNOWN, TextColumn, is_na, is_other_missing

# Maximum number of characters of a value shown in a message.
_MAX_CHARACTERS_SHOWN = 60


@dataclass(frozen=True, eq=False)
class RawColumns:
    """Columns that a model expects in raw rows."""

    n_columns: int
    names: tuple[str, ...] | None  # column names on which the source was fitted
    # Indices, in increasing order and of shape (n_used,), of the columns that affect predictions, if only by whether a
    # value is NaN. All other columns are ignored.
    used: npt.NDArray[np.intp]
    # True if the source's first step is a ColumnTransformer, which finds data-frame columns by name, in any order, and
    # ignores other columns. Columns that it drops need not be numeric, and may be missing.
    by_column: bool
    # Indices, of shape (n_taking,), of used columns in which NaN is a valid value, such as an imputer's columns.
    takes_nan: npt.NDArray[np.intp]
    # String columns by index. Numeric arrays contain string codes.
    texts: Mapping[int, TextColumn] = field(default_factory=dict)
    # For each string column: which of the codes UNKNOWN and NONE the source rejects.
    refused: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    # String columns in which pandas.NA is a missing value; in other string columns, it is an unknown value.
    taking_na: frozenset[int] = frozenset()
    knowing_nan: frozenset[int] = frozenset()  # string columns in which NaN differs from other unknown values
    # Indices of numeric columns whose values are looked up without conversion: "1" is not 1.
    looked_up: frozenset[int] = frozenset()
    # Numeric columns in which the source distinguishes None, Decimal("NaN"), NaT, pandas.NA and strings from NaN; and
    # numeric columns in which the missing value is None, and NaN is a different value.
    telling_nan: frozenset[int] = frozenset()
    knowing_none: frozenset[int] = frozenset()
    multiplies: bool = False  # True if the source forms products, which depend on the order of entries in sparse rows

    @classmethod
    def of(cls, model: Any) -> "RawColumns":
        """Return the raw columns of a model, an ensemble, or an artifact."""
        n_columns = int(model.n_raw_features)
        maps = [part.input_map for part in getattr(model, "members", ()) or (model,)]
        chosen = np.concatenate([np.arange(n_columns) if one is None else one.columns_looked_at for one in maps])
        used = np.flatnonzero(np.bincount(chosen))  # np.unique would import numpy.ma
        by_column = all(one is not None and one.by_column for one in maps)
        texts = {j: known for one in maps if one is not None for j, known in one.texts.items()}
        refused = {j: tuple(c for c in (UNKNOWN, NONE) if _rejects(maps, j, c)) for j in texts}
        # A source that accepts pandas.NA finds missing values with pandas.isna, which treats None and NaN alike.
        na = frozenset(j for j in texts if all(m is None or m.reached(j, np.nan) == m.reached(j, NONE) for m in maps))
        nan = frozenset(j for j in texts if _differ(maps, j, np.nan, UNKNOWN))
        looked_up = frozenset(int(j) for one in maps if one is not None for j in one.columns_looked_up())
        multiplies = any(one is not None and one.multiplies for one in maps)
        names, taking = model.feature_names, _columns_accepting_nan(maps)
        # Dtypes have the same effects on all members of an ensemble.
        dtypes = model.row_dtypes if hasattr(model, "row_dtypes") else model.members[0].row_dtypes
        told, none = (frozenset(dtypes.columns_of(kind)) - {*texts} for kind in (NO_NUMBER, NOT_NONE))
        return cls(
            n_columns, names, used, by_column, taking, texts, refused, na, nan, looked_up, told, none, multiplies
        )

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns: the source's names, or f0, f1, ..."""
        return tuple(f"f{k}" for k in range(self.n_columns)) if self.names is None else self.names

    @property
    def has_categories(self) -> bool:
        """True if single values must be inspected: strings, or numbers that are looked up or distinguished from NaN."""
        return bool(self.texts or self.looked_up or self.telling_nan or self.knowing_none)

    @property
    def uses_all(self) -> bool:
        """True if predictions depend on every column."""
        return len(self.used) == self.n_columns

    @property
    def takes_null(self) -> npt.NDArray[np.intp]:
        """Indices of the columns in which a table's null is valid."""
        of_texts = [j for j, known in self.texts.items() if known.null == NONE]
        return np.union1d(self.takes_nan, np.array(of_texts, np.intp))

    def codes(self, column: int, values: Iterable[Any]) -> npt.NDArray[np.float64]:
        """Return the codes of values in a string column.

        Raises InputError for a value that the source rejects, or that may be either missing or unknown.
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

    def code_of(self, column: int | str, value: Any) -> float:
        """Return the code of a value in the string column with this name or index; raise InputError as `codes` does."""
        place = self.column_names.index(column) if column in self.column_names else column
        if isinstance(place, str) or place not in self.texts:
            known = [self.column_names[k] for k in sorted(self.texts)]
            raise InputError(f"column {column!r} holds no strings, only {known} do")
        return float(self.codes(place, [value])[0])

    def wrong_value(self, row: int, column: int, needed: str, value: Any) -> InputError:
        """Return the error for a cell with a value of the wrong kind."""
        shown = repr(value)
        shown = shown if len(shown) <= _MAX_CHARACTERS_SHOWN else f"{shown[:_MAX_CHARACTERS_SHOWN]}..."
        return InputError(f"row {row}: {needed} is needed in {self.name_of(column)}, got {shown}")

    def name_of(self, column: int) -> str:
        """Return a description of a column, by index or name, for messages."""
        return f"column {column}" if self.names is None else f"column {self.names[column]!r}"

    def are_taken(self, values: npt.NDArray[Any], columns: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return whether the model accepts each number: finite ones, and NaN in columns where it is valid."""
        taken = np.isfinite(values)
        if len(self.takes_nan) and not taken.all():
            taken |= np.isnan(values) & np.isin(columns, self.takes_nan)
        return np.asarray(taken)


def _rejects(maps: list[Any], column: int, code: float) -> bool:
    return any(one is not None and np.isnan(one.reached(column, code)).any() for one in maps)


def _differ(maps: list[Any], column: int, code: float, other: float) -> bool:
    """Return whether at least one map transforms two codes of a column into different numbers."""
    return any(
        one is not None and not np.array_equal(one.reached(column, code), one.reached(column, other), equal_nan=True)
        for one in maps
    )


def _columns_accepting_nan(maps: list[Any]) -> npt.NDArray[np.intp]:
    """Return the columns in which at least one map accepts NaN and no map that uses the column rejects it."""
    taking = {int(j) for one in maps if one is not None for j in one.columns_of_nan()}
    refusing = {
        int(j) for one in maps if one is not None for j in np.setdiff1d(one.columns_looked_at, one.columns_of_nan())
    }
    every = any(one is None for one in maps)
    return np.array([] if every else sorted(taking - refusing), np.intp)
