"""Matching of a table's columns to a model's features: by name, by number, or by position with a warning."""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ColumnsByPositionWarning, InputError
from approxsvm.frames.dtypes import frame_dtypes
from approxsvm.frames.raw_columns import RawColumns
from approxsvm.frames.text_columns import NONE, is_nan

# Names of a model's features, in feature order; None for unused features.
Features = tuple[str | None, ...]
Tell = Callable[[str], None]

# Common prefixes of numbered features.
_NUMBERED = re.compile(r"(f|x|features?|col(?:umn)?|)[ _.-]?([0-9]+)", re.IGNORECASE)
# Names that pandas gives to an index column in a file.
_INDEX = re.compile("Unnamed: 0|__index_level_0__")
# Lower-case names of date, time and duration dtypes in NumPy, pandas, Polars and Arrow.
_TIME_DTYPES = re.compile("date|time|duration|period|month_day_nano")
_MAX_NAMES_SHOWN = 20
_FEW_NAMES = 3  # number of names shown from a longer list
# Attributes that contain the names of a row's values: for mappings and Series, for named tuples, and for Spark rows.
_NAME_ATTRIBUTES = ("keys", "_fields", "__fields__")
# All integers of at most this magnitude are exact in float64.
_LARGEST_EXACT = 1 << 53
_MAX_NAME_SHOWN = 100
# Values that NumPy may convert to floats although they are not real numbers: dates, durations and complex numbers.
_NOT_REAL = (np.datetime64, np.timedelta64, complex, np.complexfloating)


def choose_columns(
    names: Sequence[str],
    model: RawColumns,
    *,
    columns: Sequence[str] | None = None,
    others: Sequence[str] = (),
    generated: bool = False,
    tell: Tell | None = None,
) -> Features:
    """Choose the feature columns of a table from its column names.

    `columns` is the user's choice, including unused columns. If it is a single column, that column contains lists,
    unless the model has only one feature. `others` lists columns that are not features, unless the model's names
    include them. `generated` is True if the reader generated the column names because the table has none. The function
    `tell` is called with a sentence if columns are matched by position. Raises InputError, which names the columns, if
    columns are missing, duplicated, too few or too many, or if numbered columns are incomplete or out of order.
    """
    n, sentence = model.n_columns, ""
    if columns is not None:
        chosen = tuple(columns)
        if len(chosen) not in (n, 1):
            raise InputError(f"{len(chosen)} columns are given, but the model has {n} features")
        check_names(chosen, names)
    elif model.names is not None and not generated:
        chosen = model.names
    else:
        chosen = tuple(f"f{k}" for k in range(n))
        if generated or not set(chosen) <= set(names):
            chosen = _by_position(names, n, others, generated)
            sentence = _sentence(chosen, n, generated)
    read = range(len(chosen)) if len(chosen) < n else model.used.tolist()
    check_names([chosen[k] for k in read], names)
    if sentence and tell is not None:
        tell(sentence)
    features = dict.fromkeys(range(len(chosen))) | {k: chosen[k] for k in read}
    return tuple(features.values())


def _by_position(names: Sequence[str], n: int, others: Sequence[str], generated: bool) -> tuple[str, ...]:
    """Return all columns except `others`; raise InputError if names or numbers show that these are not features."""
    known, not_features = set(names), set(others)
    chosen = tuple(name for name in names if name not in not_features)
    missing = [name for name in (f"f{k}" for k in range(n)) if name not in known]
    if len(missing) < n and not generated:
        raise InputError(
            f"there is no column {quoted(missing, ' and no ')}, but other features have such names; choose columns"
        )
    if len(chosen) not in (n, 1):
        raise InputError(
            f"there are {len(chosen)} columns for features ({quoted(chosen)}), but the model has {n} features, "
            "without names; choose columns, or keep the others"
        )
    if not generated and len(chosen) == n:
        check_numbers(chosen)
    for name in filter(_INDEX.fullmatch, chosen):
        raise InputError(f"the column {name!r} is an index that pandas wrote, not a feature; choose columns")
    return chosen


def check_numbers(chosen: Sequence[str]) -> None:
    """Reject numbered names unless the numbers are complete and in order: "x0, x2, x1" and "id, x0, x1" are rejected.

    If the largest number exceeds the number of features, the names are treated as ordinary names in two cases: all
    numbers are at least 2, as years are, or at most half of the names are numbered.
    """
    parts = [(match[1].lower(), int(match[2]), name) for name in chosen if (match := _NUMBERED.fullmatch(name.strip()))]
    ((prefix, count),) = Counter(prefix for prefix, _, _ in parts).most_common(1) or [("", 0)]
    numbers = {name: number for other, number, name in parts if other == prefix}
    if count < 2:
        return
    if max(numbers.values()) > len(chosen) and (min(numbers.values()) > 1 or 2 * count <= len(chosen)):
        return
    first = 0 if 0 in numbers.values() else 1
    expected = range(first, first + len(chosen))
    if list(numbers.values()) == list(expected) and count == len(chosen):
        return
    missing = sorted(set(expected) - set(numbers.values()))
    what = f"number {', '.join(map(str, missing[:_MAX_NAMES_SHOWN]))} is missing" if missing else "not in order"
    raise InputError(
        f"the columns {quoted(list(numbers))} are numbered, but {what}, and the model has {len(chosen)} features, "
        "without names; choose columns"
    )


def _sentence(chosen: Sequence[str], n: int, generated: bool) -> str:
    why = "the table has no names" if generated else "the model has no names for its features"
    if len(chosen) < n:
        return f"{why}: the column {quoted(chosen)} is taken for lists of all {n}"
    shown = quoted(chosen) if n <= _MAX_NAMES_SHOWN else f"{quoted(chosen[:3])}, ..., {chosen[-1]!r}"
    return f"{why}: by position, the columns {shown} are taken for features 0 to {n - 1}"


def warn(sentence: str, stacklevel: int = 1) -> None:
    """Warn that columns are matched by position; `stacklevel` counts from the caller."""
    warnings.warn(sentence, ColumnsByPositionWarning, stacklevel=stacklevel + 1)


def check_names(wanted: Sequence[str], names: Sequence[str]) -> None:
    """Raise InputError for wanted names that are missing or occur twice."""
    counts = Counter(names)
    missing = [name for name in wanted if not counts[name]]
    if missing:
        most = _MAX_NAMES_SHOWN if len(missing) <= _FEW_NAMES else _FEW_NAMES  # one of the names may be misspelled
        raise InputError(f"there is no column {quoted(missing, ' and no ')}, only {quoted(names, most=most)}")
    twice = [name for name in dict.fromkeys(wanted) if counts[name] > 1]
    if twice:
        raise InputError(f"there are several columns {quoted(twice)}")


def quoted(names: Sequence[str], separator: str = ", ", most: int = _MAX_NAMES_SHOWN) -> str:
    """Return quoted names; if there are more than `most`, the first three and the number of the others."""
    shown = names if len(names) <= most else names[:_FEW_NAMES]
    texts = (repr(name if len(name) <= _MAX_NAME_SHOWN else name[:_MAX_NAME_SHOWN] + "...") for name in shown)
    more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    return separator.join(texts) + more or "none"


def frame_names(X: Any) -> list[str] | None:
    """Return the column names of a data frame; None for anything else, or if no name is a string.

    Raises InputError if only some names are strings, as scikit-learn does.
    """
    labels = _frame_labels(X) or []
    is_text = [isinstance(label, str) for label in labels]
    if any(is_text) and not all(is_text):
        raise InputError(
            f"some of the columns {labels} have names that are not strings: X.columns = X.columns.astype(str)"
        )
    return labels if any(is_text) else None


def _frame_labels(X: Any) -> list[Any] | None:
    labels = getattr(X, "column_names", None)  # in pyarrow, the `columns` attribute contains arrays
    labels = getattr(X, "columns", None) if labels is None else labels
    return None if labels is None else list(labels)


def known_rows(X: Any, model: RawColumns | None = None) -> Any:
    """Convert rows to a container that scikit-learn accepts: record batches to Arrow tables, arrays to NumPy arrays.

    Raises InputError for structured arrays, and for arrays that NumPy cannot read, such as a tensor in GPU memory. If
    `model` is given, two more checks are made. If the model has names, a list of rows with names is rejected, because
    its columns would be matched by position. Frame columns are rejected if NumPy would convert their values to
    different numbers: dates, times, and Arrow dictionaries with nulls.
    """
    if model is not None and (labels := _frame_labels(X)) is not None:
        _check_kinds(X, labels, model)
    if (
        model is not None
        and model.names is not None
        and isinstance(X, list)
        and X
        and any(hasattr(X[0], name) for name in _NAME_ATTRIBUTES)
    ):
        raise InputError("X is a list of rows that have names: pass pandas.DataFrame(X), whose columns keep them")
    if hasattr(X, "to_struct_array") and not hasattr(X, "to_batches"):
        from pyarrow import Table

        return Table.from_batches([X])
    if getattr(getattr(X, "dtype", None), "names", None):
        raise InputError(
            f"X is a structured array with the fields {list(X.dtype.names)}: pass pandas.DataFrame(X), or "
            "numpy.lib.recfunctions.structured_to_unstructured(X)"
        )
    is_array = hasattr(X, "__dlpack__") or hasattr(X, "__array_namespace__")
    is_array |= hasattr(X, "__array__") and not hasattr(X, "dtype") and _frame_labels(X) is None
    if not is_array or isinstance(X, np.ndarray) or hasattr(X, "to_pylist"):
        return X
    try:
        return np.asarray(X)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        kind = f"{type(X).__module__}.{type(X).__name__}"
        raise InputError(f"X is a {kind}, which NumPy cannot read; pass a NumPy array: {error}") from None


def _check_kinds(X: Any, labels: list[Any], model: RawColumns) -> None:
    kinds = X.schema.types if hasattr(X, "column_names") else getattr(X, "dtypes", ())
    used = labels if model.names is None else {model.names[k] for k in model.used.tolist()}
    for place, (label, kind) in enumerate(zip(labels, kinds, strict=False)):
        if label in used and _TIME_DTYPES.match(str(kind).lower()):
            raise InputError(f"column {label!r} is {kind}, but the model takes numbers and texts")
        if label in used and hasattr(kind, "index_type") and X.column(place).null_count:
            raise InputError(f"column {label!r} is a dictionary with nulls: decode it, or call predict_arrow")


def rows_by_column(X: Any, model: RawColumns, as_numbers: Callable[[Any], Any]) -> npt.NDArray[Any]:
    """Return rows for a model whose source begins with a ColumnTransformer or takes strings; unused columns are zero.

    Unused columns are not read. Columns of a data frame are matched by name if the model has names. The function
    `as_numbers` converts the used columns to an array; strings are replaced by codes. Raises InputError for missing or
    duplicate columns, for the wrong number of columns, and for an unknown string that the source rejects.
    """
    names = frame_names(X)
    if names is not None and model.names is not None:
        return _rows_by_name(X, choose_columns(names, model), model, as_numbers)
    if model.by_column and model.names is not None and (labels := _frame_labels(X)) is not None:
        raise InputError(
            f"X has the columns {labels}, but the model finds them by the names {list(model.names)}; "
            "pass X.to_numpy() if they are these, in order"
        )
    table = X if hasattr(X, "shape") else _as_table(X)
    _check_shape(table.shape, model)
    return _rows(table, model.used.tolist(), model, as_numbers)


def row_of_values(values: list[Any], places: list[int], model: RawColumns, dtype: Any) -> npt.NDArray[Any]:
    """Convert one row's values to numbers, of shape (1, n_columns); `places` are the indices of the used columns.

    Numbers keep their common NumPy `dtype`, unless the model has string columns, because numbers in a numeric array
    would be mistaken for codes.
    """
    are_numbers = isinstance(dtype, np.dtype) and dtype.kind in "fiub" and not model.texts
    table = np.empty((1, len(values)), dtype=dtype if are_numbers else object)
    table[0] = values
    return _rows(table, places, model, _as_numbers)


def numpy_rows(X: Any, model: RawColumns, *, stacklevel: int) -> npt.NDArray[Any]:
    """Convert an array-like or a data frame to rows, using only NumPy.

    A data frame must have the columns on which the model was fitted, in order, unless the source matches columns by
    name (`rows_by_column`). For a model without names, `choose_columns` chooses the columns; its warning has this
    `stacklevel`, counted from the caller. Raises InputError if values are not numbers, or if the columns differ from
    the model's.
    """
    labels, names = _frame_labels(X), frame_names(X)
    if names is not None and model.names is None:
        sentences: list[str] = []
        features = choose_columns(names, model, tell=sentences.append)
        if len(features) == model.n_columns:
            for sentence in sentences:
                warn(sentence, stacklevel=stacklevel + 1)
            return _rows_by_name(X, features, model, _as_numbers)
    is_in_order = labels is None or model.names is None or labels == list(model.names)
    if model.by_column or (model.has_categories and is_in_order):
        return rows_by_column(X, model, _as_numbers)
    if not is_in_order:
        raise InputError(f"X has the columns {labels}, but the model was fitted with {list(model.names or ())}")
    try:
        rows = _as_numbers(X)
    except InputError as error:
        raise error_of_cells(X, model, str(error)) from None
    _check_shape(rows.shape, model)
    return rows


def _as_numbers(columns: Any) -> npt.NDArray[Any]:
    try:
        given = real_rows(columns)
        rows = np.asarray(given)
        if rows.dtype.kind in "fiubc":
            return rows
        # pandas recognizes pandas.NA, but NumPy does not.
        return np.asarray((given if hasattr(given, "iloc") else rows).astype(np.float64))
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"X is not an array of numbers: {error}") from None


def real_rows(X: Any) -> Any:
    """Return rows in any container, lists as arrays, after checking that NumPy converts no cell to a different number.

    Raises InputError for dates, durations and complex numbers.
    """
    X = np.asarray(X) if isinstance(X, (list, tuple)) else X
    kinds = frame_dtypes(X) if hasattr(X, "iloc") else None
    columns = None if kinds is None else [k for k, kind in enumerate(kinds) if kind.kind == "O"]
    cells = X if columns is None else np.asarray(X.iloc[:, columns])
    kind = getattr(getattr(cells, "dtype", None), "kind", "")
    if kind in tuple("cmM"):
        raise InputError(f"rows are {cells.dtype}, but must be real numbers")
    if kind == "O" and any(issubclass(each, _NOT_REAL) for each in {*map(type, cells.ravel().tolist())}):
        *row, column = next(place for place, value in np.ndenumerate(cells) if isinstance(value, _NOT_REAL))
        value, column = cells[(*row, column)], column if columns is None else columns[column]
        raise InputError(f"row {[0, *row][-1]}: a number is needed in column {column}, got {value!r}")
    return X


def error_of_cells(X: Any, model: RawColumns, otherwise: str) -> InputError:
    """Return an error that names the first non-numeric cell, or has the message `otherwise` if all are numeric."""
    try:
        table = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
        if table.shape[1:] == (model.n_columns,) and not hasattr(table, "tocsr"):
            _check_values(table, [(column, column) for column in model.used.tolist()], model, _is_number)
    except InputError as error:
        return error
    except (TypeError, ValueError):  # the rows have different lengths
        pass
    return InputError(otherwise)


def _check_shape(shape: tuple[int, ...], model: RawColumns) -> None:
    if len(shape) != 2 or shape[1] != model.n_columns:
        raise InputError(f"X has shape {tuple(shape)}, expected (n_rows, {model.n_columns})")


def _rows_by_name(
    frame: Any, features: Features, model: RawColumns, as_numbers: Callable[[Any], Any]
) -> npt.NDArray[Any]:
    places = {label: k for k, label in enumerate(_frame_labels(frame) or ())}
    return _rows(frame, [places[name] for name in features if name is not None], model, as_numbers)


def _as_table(X: Any) -> npt.NDArray[Any]:
    """Convert lists to an array of objects; a list of numeric arrays becomes a numeric array."""
    rows = list(X)
    are_numbers = all(_is_numeric(row) for row in rows) and len({row.shape for row in rows}) == 1
    return np.asarray(rows, dtype=None if are_numbers else object)


def _is_numeric(X: Any) -> bool:
    """Return whether X is a numeric array, in which string columns hold codes (elsewhere, they hold strings)."""
    return getattr(getattr(X, "dtype", None), "kind", "") in tuple("fiub")


def _rows(table: Any, places: list[int], model: RawColumns, as_numbers: Callable[[Any], Any]) -> npt.NDArray[Any]:
    """Return rows from a table's used columns, at the indices `places`; strings are replaced by codes."""
    if _is_numeric(table):
        if isinstance(table, np.ndarray):
            check_exact(table, model)
        return _with_unused(as_numbers(_select(table, places)), model)
    pairs = list(zip(model.used.tolist(), places, strict=True))
    if not model.texts:
        return _with_unused(_numbers(table, pairs, model, as_numbers), model)
    rows = np.zeros((len(table), model.n_columns))
    numbers = [(column, place) for column, place in pairs if column not in model.texts]
    if numbers:
        rows[:, [column for column, _ in numbers]] = _numbers(table, numbers, model, as_numbers)
    for column, place in pairs:
        if column in model.texts:
            rows[:, column] = model.codes(column, _values(table, place, model.texts[column].null))
    return rows


def _numbers(
    table: Any, pairs: list[tuple[int, int]], model: RawColumns, as_numbers: Callable[[Any], Any]
) -> npt.NDArray[Any]:
    """Convert numeric columns, given as pairs (model column, index); InputError names the first non-numeric value."""
    _check_values(table, [pair for pair in pairs if pair[0] in model.looked_up], model, _is_exact)
    _check_missing(table, pairs, model)
    try:
        return np.asarray(as_numbers(_select(table, [place for _, place in pairs])))
    except (TypeError, ValueError, OverflowError) as error:
        _check_values(table, pairs, model, _is_number)
        raise InputError(f"X is not an array of numbers: {error}") from None


def _check_values(table: Any, pairs: list[tuple[int, int]], model: RawColumns, is_fine: Callable[[Any], bool]) -> None:
    for column, place in pairs:
        taken = np.asarray(_select(table, [place]))
        if taken.dtype.kind in "fb":
            continue
        values = taken.ravel().astype(object)
        if {*map(type, values)} <= {float, bool}:
            continue
        for row, value in enumerate(values):
            if is_fine(value):
                continue
            if isinstance(value, np.longdouble):
                raise InputError(
                    f"row {row}: {model.name_of(column)} holds {value!r}, which float64 rounds; pass float(value)"
                )
            raise model.wrong_value(row, column, "a number", value)


def _check_missing(table: Any, pairs: list[tuple[int, int]], model: RawColumns) -> None:
    """Raise InputError if the source does not accept a Python value as a missing value in its column.

    A column can contain several kinds of missing values only if its dtype is object.
    """
    told = [pair for pair in pairs if pair[0] in model.telling_nan or pair[0] in model.knowing_none]
    kinds = frame_dtypes(table) if told else None
    for column, place in told:
        values = np.asarray(_select(table, [place])).ravel()
        if values.dtype.kind in "fiub" or (kinds is not None and kinds[place].kind != "O"):
            continue
        is_missing, name = (_is_none, "None") if column in model.knowing_none else (is_nan, "NaN")
        for row, value in enumerate(values.tolist()):
            if not is_missing(value) and (is_nan(value) or not _is_real(value)):
                error = model.wrong_value(row, column, f"a number or {name}", value)
                raise InputError(f"{error}, which the source does not take for {name}")


def _is_none(value: Any) -> bool:
    return value is None


def _is_real(value: Any) -> bool:
    """Return whether a value is a real number of any type, finite or infinite, and not a string or a duration."""
    if isinstance(value, Decimal):
        return not value.is_nan()
    return isinstance(value, (Real, np.bool_)) and not isinstance(value, np.timedelta64)


def check_exact(rows: Any, model: RawColumns) -> None:
    """Raise InputError if float64 would round an integer in a column whose values are looked up."""
    if not (model.looked_up and _may_round(rows.dtype)):
        return
    if hasattr(rows, "tocsr"):
        entries = rows.tocoo()
        faults = [(entries.row[k], entries.col[k], entries.data[k]) for k in rounded(entries.data)]
    else:
        columns = sorted(model.looked_up)
        faults = [(row, column, rows[row, column]) for column in columns for row in rounded(rows[:, column])]
    for row, column, value in faults:
        if column in model.looked_up:
            raise model.wrong_value(int(row), int(column), "a number of float64", int(value))


def rounded(values: npt.NDArray[Any]) -> list[int]:
    """Return the indices of the integers that float64 rounds."""
    if not _may_round(values.dtype):
        return []
    large = values > _LARGEST_EXACT
    if values.dtype.kind == "i":
        large |= values < -_LARGEST_EXACT
    return [k for k in np.flatnonzero(large).tolist() if not _is_exact(values[k])]


def _may_round(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iu" and dtype.itemsize == 8


def _is_exact(value: Any) -> bool:
    """Return whether a value can be looked up as a float64: it is no string, date or array, and need not be rounded."""
    if isinstance(value, (*_NOT_REAL, str, bytes, np.ndarray)):
        return False
    if isinstance(value, Integral):
        return abs(int(value)) <= _LARGEST_EXACT or int(value) == _as_float(value)
    if isinstance(value, (Decimal, Fraction)):
        number = _as_float(value)
        return number is None or number != number or Fraction(number) == value
    if isinstance(value, np.longdouble):
        return bool(value != value or np.longdouble(float(value)) == value)
    return True


def _is_number(value: Any) -> bool:
    return value is None or (not isinstance(value, _NOT_REAL) and _as_float(value) is not None)


def _as_float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _values(table: Any, place: int, null: float) -> list[Any]:
    """Return one column as a list of Python values; an Arrow null is replaced by the source's missing value."""
    if hasattr(table, "iloc"):
        return list(np.asarray(table.iloc[:, place], dtype=object))  # iterating over pandas takes twice as long
    names = frame_names(table)
    if names is None:
        return list(np.asarray(table)[:, place])
    if not hasattr(table, "column_names"):  # Polars frames: scikit-learn does not convert them, so a null is None
        return list(table[names[place]].to_list())
    missing = None if null == NONE else np.nan
    return [missing if value is None else value for value in table.column(place).to_pylist()]


def _select(table: Any, positions: list[int]) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[:, positions]
    names = frame_names(table)
    return np.asarray(table)[:, positions] if names is None else table.select([names[k] for k in positions])


def _with_unused(used: Any, model: RawColumns) -> npt.NDArray[Any]:
    """Return a matrix of all columns, with zeros in the unused columns."""
    if model.uses_all:
        return np.asarray(used)
    rows = np.zeros((len(used), model.n_columns), used.dtype)
    rows[:, model.used] = used
    return rows
