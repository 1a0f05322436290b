"""One row with names, as `predict_one` takes it: a mapping, a Series, a named tuple, a data frame of one row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import InputError
from approxsvm.frames.columns import check_names, check_numbers, row_of_values
from approxsvm.frames.raw_columns import RawColumns
from approxsvm.frames.text_columns import NONE


def is_one_row_frame(row: Any) -> bool:
    """Whether a row is a data frame; InputError unless that has one row."""
    if not (hasattr(row, "columns") or hasattr(row, "column_names")):
        return False
    n_rows = len(row) if hasattr(row, "__len__") else "an unknown number of"
    if n_rows != 1:
        raise InputError(f"expected one row, but the data frame has {n_rows} rows")
    return True


def row_by_name(row: Any, model: RawColumns) -> npt.NDArray[Any] | None:
    """The numbers of a row with names, shape (1, n_columns); None if it has none and goes by position.

    Names may stand in any order. Further ones are ignored if the source matches columns by name, and refused otherwise,
    as in data frames. A mapping may lack columns where a missing value is one, and its None is that value.
    """
    if hasattr(row, "as_py"):  # an Arrow scalar
        row = row.as_py()
    named = _named_values(row)
    if named is None:
        return None
    names, values = named
    if not all(isinstance(name, str) for name in names):
        if not isinstance(row, Mapping) and (model.names is None or names == list(range(len(values)))):
            return None  # numbers, as pandas makes them up
        raise InputError(f"the row has the names {names}, but names of columns are strings")
    if model.names is None and not isinstance(row, Mapping):
        check_numbers(names)
        return None
    own = model.own_names
    if model.names is None and not set(own) <= set(names):
        raise InputError("the model has no names for its features: give them in order, or as f0, f1, ...")
    if isinstance(row, Mapping):
        names, values = _with_missing(dict(zip(names, values, strict=True)), own, model)
    check_names([own[k] for k in model.used], names)
    others = [name for name in names if name not in own]
    if others and not model.by_column:
        raise InputError(f"the row has the names {others}, but the model was fitted with {list(own)}")
    dtype = getattr(row, "dtype", None)  # of a Series
    return row_of_values(values, [names.index(own[k]) for k in model.used], model, dtype)


def _named_values(row: Any) -> tuple[list[Any], list[Any]] | None:
    """Names and values of a row; None if it has no names."""
    if isinstance(row, Mapping):
        return list(row), list(row.values())
    if hasattr(row, "keys"):  # a Series, a row of SQLite
        return list(row.keys()), list(row)
    names = getattr(row, "_fields", getattr(row, "__fields__", None))  # of a named tuple, of a row of Spark
    return None if names is None else (list(names), list(row))


def _with_missing(record: dict[str, Any], own: tuple[str, ...], model: RawColumns) -> tuple[list[str], list[Any]]:
    """Names and values of a record, whose absent and null columns hold the source's missing value where it has one."""
    for k in model.takes_null.tolist():
        if record.get(own[k]) is None:
            record[own[k]] = None if k in model.texts and model.texts[k].null == NONE else np.nan
    return list(record), list(record.values())
