"""Single rows with names, for `predict_one`: a mapping, a Series, a named tuple, or a data frame of one row."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import InputError
from approxsvm.frames.columns import check_names, check_numbers, row_of_values
from approxsvm.frames.raw_columns import RawColumns
from approxsvm.frames.text_columns import NONE


def is_one_row_frame(row: Any) -> bool:
    """Return whether `row` is a data frame; raise InputError if the data frame does not have exactly one row."""
    if not (hasattr(row, "columns") or hasattr(row, "column_names")):
        return False
    n_rows = len(row) if hasattr(row, "__len__") else "an unknown number of"
    if n_rows != 1:
        raise InputError(f"expected one row, but the data frame has {n_rows} rows")
    return True


def row_by_name(row: Any, model: RawColumns) -> npt.NDArray[Any] | None:
    """Convert a row with names to numbers, shape (1, n_columns); None if the row has no names and is read by position.

    The names may have any order. As in data frames, additional names are ignored if the source matches columns by name,
    and rejected otherwise. In a mapping, columns that accept a missing value may be absent; a None in a mapping is a
    missing value.
    """
    if hasattr(row, "as_py"):  # an Arrow scalar
        row = row.as_py()
    named = _named_values(row)
    if named is None:
        return None
    names, values = named
    if not all(isinstance(name, str) for name in names):
        if not isinstance(row, Mapping) and (model.names is None or names == list(range(len(values)))):
            return None  # integers that pandas generated
        raise InputError(f"the row has the names {names}, but column names must be strings")
    if model.names is None and not isinstance(row, Mapping):
        check_numbers(names)
        return None
    column_names = model.column_names
    if model.names is None and not set(column_names) <= set(names):
        raise InputError("the model has no names for its features: pass them in order, or as f0, f1, ...")
    if isinstance(row, Mapping):
        names, values = _with_missing(dict(zip(names, values, strict=True)), column_names, model)
    check_names([column_names[k] for k in model.used], names)
    others = [name for name in names if name not in column_names]
    if others and not model.by_column:
        raise InputError(f"the row has the names {others}, but the model was fitted with {list(column_names)}")
    dtype = getattr(row, "dtype", None)  # only a Series has a dtype
    return row_of_values(values, [names.index(column_names[k]) for k in model.used], model, dtype)


def _named_values(row: Any) -> tuple[list[Any], list[Any]] | None:
    """Return the names and values of a row; None if the row has no names."""
    if isinstance(row, Mapping):
        return list(row), list(row.values())
    if hasattr(row, "keys"):  # a Series, or a row of SQLite
        return list(row.keys()), list(row)
    names = getattr(row, "_fields", getattr(row, "__fields__", None))  # named tuples, and Spark rows
    return None if names is None else (list(names), list(row))


def _with_missing(
    record: dict[str, Any], column_names: tuple[str, ...], model: RawColumns
) -> tuple[list[str], list[Any]]:
    """Return names and values of a record; absent and null columns get the source's missing value, if allowed."""
    for k in model.takes_null.tolist():
        if record.get(column_names[k]) is None:
            is_none = model.texts[k].null == NONE if k in model.texts else k in model.knowing_none
            record[column_names[k]] = None if is_none else np.nan
    return list(record), list(record.values())
