"""Data frames with known columns and dtypes: the core reads their columns in place.

The first frame with given columns and dtypes takes the general path (frames/columns.py), which can convert all values,
and the frame's layout is stored. Later frames with the same columns and dtypes are read column by column, and the core
looks up strings. If a value is not plainly a number or a string, the frame takes the general path.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.frames.columns import rounded
from approxsvm.frames.raw_columns import RawColumns
from approxsvm.frames.text_columns import NONE, is_na, is_nan

_MOST_PLANS: Final = 16
_UNUSED, _NUMBER, _LOOKED_UP, _TEXT = range(4)  # as in cpp/python/row_reader.hpp
_PLAIN_KINDS: Final = "fiub"
_OBJECT: Final = np.dtype(object)
_STRINGS: Final = ("string", "large_string")


def row_reader(artifact: Any, columns: RawColumns, *, needs_real: bool) -> _native.RowReader:
    """Return the core's reader of Python rows for an artifact with these columns."""
    missing = set(columns.takes_null.tolist())
    used = set(columns.used.tolist())
    records = []
    for k, name in enumerate(columns.column_names):
        role = _UNUSED if k not in used else _TEXT if k in columns.texts else _NUMBER
        role = _LOOKED_UP if role == _NUMBER and k in columns.looked_up else role
        null = NONE if k in columns.texts and columns.texts[k].null == NONE else math.nan
        refused = (NONE,) if k in columns.telling_nan else (math.nan,) if k in columns.knowing_none else ()
        records.append((name, role, null if k in missing else None, columns.refused.get(k, refused)))
    has_names = columns.names is not None
    return _native.RowReader(artifact, records, by_column=columns.by_column, has_names=has_names, needs_real=needs_real)


@dataclass(frozen=True, eq=False)
class _Plan:
    """Columns and dtypes of a frame accepted by the general path, and indices of the used columns."""

    kind: type
    layout: Callable[[Any], Any]
    labels: Any
    dtypes: list[Any]
    places: list[tuple[int, int]]  # (column of the model, column of the frame) of each used column


class KnownFrames:
    """Rows of pandas, Polars and Arrow frames whose columns and dtypes are known."""

    def __init__(self, reader: Callable[[], _native.RowReader], columns: RawColumns) -> None:
        self._make_reader = reader  # created for the first frame
        self._columns = columns
        self._plans: list[_Plan] = []

    def rows(self, frame: Any) -> npt.NDArray[np.float64] | None:
        """Return the rows of a frame; None if the frame must take the general path."""
        kind = type(frame)
        for plan in self._plans:
            if plan.kind is kind:
                layout = plan.layout(frame)
                if layout.fits(plan):
                    return self._read(layout, plan)
        return None

    def learn(self, frame: Any, rows: Any) -> None:
        """Store the layout of a frame after the general path has converted the frame to these rows."""
        kind, names = type(frame), self._columns.names
        layout_of = _layout_of(kind)
        if layout_of is None or names is None or not isinstance(rows, np.ndarray):
            return
        if rows.dtype != np.float64 and rows.dtype.kind not in "iub":
            return  # the source computes in float32
        layout = layout_of(frame)
        places, dtypes = {label: k for k, label in enumerate(layout.labels)}, layout.dtypes()
        is_plain = kind.__name__ == "DataFrame" or not any(hasattr(dtype, "index_type") for dtype in dtypes)
        if is_plain and all(isinstance(label, str) for label in places):
            used = [(k, places[names[k]]) for k in self._columns.used.tolist()]
            plan = _Plan(kind, layout_of, layout.labels, dtypes, used)
            self._plans = [*self._plans[1 - _MOST_PLANS :], plan]

    def _read(self, layout: Any, plan: _Plan) -> npt.NDArray[np.float64] | None:
        n_rows = len(layout.frame)
        if n_rows == 1:
            values: list[Any] = [None] * self._columns.n_columns
            for (column, place), value in zip(plan.places, layout.first_row(plan), strict=True):
                is_missing = is_na(value) and self._takes_na(column, layout.column(place).dtype)
                values[column] = math.nan if is_missing else value
            return self._make_reader().row_of_table(values, layout.none_is_null)
        out = np.zeros((self._columns.n_columns, n_rows)).T
        for column, place in plan.places:
            take = self._texts if column in self._columns.texts else self._numbers
            if not take(column, layout.column(place), out[:, column], layout.none_is_null):
                return None
        return out

    def _takes_na(self, column: int, dtype: Any) -> bool:
        """Return whether pandas.NA means NaN in a column of the model with the given dtype."""
        if column in self._columns.texts:
            return column in self._columns.taking_na
        return dtype.kind in _PLAIN_KINDS

    def _numbers(self, column: int, values: Any, out: npt.NDArray[np.float64], none_is_null: bool) -> bool:
        """Store a numeric column in `out`; return whether all its values are plain numbers."""
        dtype: Any = getattr(values, "dtype", None)
        if isinstance(values, list) or dtype == _OBJECT:
            return self._make_reader().fill(column, values, out, none_is_null)
        if getattr(dtype, "kind", "O") not in _PLAIN_KINDS or getattr(dtype, "itemsize", 0) > 8:
            return False
        if not isinstance(values, np.ndarray):  # a pandas extension array
            if column in self._columns.looked_up or not hasattr(dtype, "numpy_dtype"):
                return False
            values = values.to_numpy(np.float64, na_value=np.nan)
        if column in self._columns.looked_up and rounded(values):
            return False
        out[:] = values
        return True

    def _texts(self, column: int, values: Any, out: npt.NDArray[np.float64], none_is_null: bool) -> bool:
        """Store the codes of a string column in `out`; return whether each value has a code."""
        if isinstance(values, (list, np.ndarray)):
            return self._make_reader().fill(column, values, out, none_is_null)
        if not hasattr(values, "dtype"):  # Arrow
            return self._arrow(column, values, out, self._columns.texts[column].null if none_is_null else NONE)
        has_categories = hasattr(values, "categories")
        null = getattr(values.categories.dtype if has_categories else values.dtype, "na_value", math.nan)
        null = math.nan if is_nan(null) or (is_na(null) and self._takes_na(column, values.dtype)) else None
        if has_categories:
            return self._categories(column, list(values.categories), values.codes, out, null)
        if getattr(values.dtype, "storage", "") == "pyarrow" or hasattr(values.dtype, "pyarrow_dtype"):
            return self._arrow(column, values.__arrow_array__(), out, null)
        return self._make_reader().fill(column, np.asarray(values, dtype=object), out, none_is_null)

    def _arrow(self, column: int, chunks: Any, out: npt.NDArray[np.float64], null: float | None) -> bool:
        first = 0
        for chunk in getattr(chunks, "chunks", [chunks]) if str(chunks.type) in _STRINGS else ():
            encoded, part = chunk.dictionary_encode(), out[first : first + len(chunk)]
            first += len(chunk)
            codes = encoded.indices.fill_null(-1).to_numpy()
            if not self._categories(column, encoded.dictionary.to_pylist(), codes, part, null):
                return False
        return first == len(out)

    def _categories(
        self, column: int, known: list[Any], codes: Any, out: npt.NDArray[np.float64], null: float | None
    ) -> bool:
        """Look up each category once; the code -1 is a missing value."""
        numbers = np.full(len(known) + 1, math.nan if null is None else null)
        refused = null is None or null in self._columns.refused[column]
        if not self._make_reader().fill(column, known, numbers[:-1], False) or (refused and (codes < 0).any()):
            return False
        np.take(numbers, codes, out=out, mode="wrap")
        return True


class _Pandas:
    """Layout of a pandas frame; pandas has no public method that returns a stored column."""

    none_is_null = False

    def __init__(self, frame: Any) -> None:
        self.frame, self.labels = frame, frame.columns
        self._arrays: list[Any] = []

    def dtypes(self) -> list[Any]:
        column = self.frame._get_column_array
        self._arrays = [column(k) for k in range(len(self.labels))]
        return [array.dtype for array in self._arrays]

    def fits(self, plan: _Plan) -> bool:
        same = self.labels is plan.labels or self.labels.equals(plan.labels)
        return bool(same and self.dtypes() == plan.dtypes)

    def column(self, place: int) -> Any:
        return self._arrays[place]

    def first_row(self, plan: _Plan) -> list[Any]:
        arrays = [self._arrays[place] for _, place in plan.places]
        return [array.item(0) if type(array) is np.ndarray else _first(array) for array in arrays]


def _first(array: Any) -> Any:
    """Return the first value of a pandas extension array, as `np.asarray` would."""
    value = np.asarray(array, dtype=object)[0] if hasattr(array, "categories") else array[0]
    return value.item() if isinstance(value, np.generic) else value


class _ByTypes:
    """Layout of a frame that is recognized by its column labels and a few dtype objects."""

    labels: Any

    def dtypes(self) -> list[Any]:
        raise NotImplementedError

    def fits(self, plan: _Plan) -> bool:
        return bool(self.labels == plan.labels and self.dtypes() == plan.dtypes)


class _Polars(_ByTypes):
    """Layout of a Polars frame, in which scikit-learn reads a null as None."""

    none_is_null = False

    def __init__(self, frame: Any) -> None:
        self.frame, self.labels = frame, frame.columns

    def dtypes(self) -> list[Any]:
        return list(self.frame.dtypes)

    def column(self, place: int) -> Any:
        series = self.frame.to_series(place)
        if series.dtype.is_numeric():
            return series.to_numpy()
        return series.to_arrow() if "pyarrow" in sys.modules and str(series.dtype) == "String" else series.to_list()

    def first_row(self, plan: _Plan) -> list[Any]:
        row = self.frame.row(0)
        return [row[place] for _, place in plan.places]


class _Arrow(_ByTypes):
    """Layout of an Arrow table or record batch, in which a null stands for the source's missing value."""

    none_is_null = True

    def __init__(self, frame: Any) -> None:
        self.frame, self.schema, self.labels = frame, frame.schema, frame.schema.names

    def dtypes(self) -> list[Any]:
        return list(self.schema.types)

    def column(self, place: int) -> Any:
        column = self.frame.column(place)
        if str(column.type) in _STRINGS:
            return column
        values = column.to_numpy(zero_copy_only=False)
        return values if values.dtype.kind != "O" else column.to_pylist()

    def first_row(self, plan: _Plan) -> list[Any]:
        return [self.frame.column(place)[0].as_py() for _, place in plan.places]


_LAYOUTS: Final[dict[str, Callable[[Any], Any]]] = {"pandas": _Pandas, "polars": _Polars, "pyarrow": _Arrow}
_CLASSES: Final = {"pandas": ("DataFrame",), "polars": ("DataFrame",), "pyarrow": ("Table", "RecordBatch")}


def _layout_of(kind: type) -> Callable[[Any], Any] | None:
    """Return the layout class for a type of frame; None for other types, including subclasses of frames."""
    library = kind.__module__.partition(".")[0]
    known = [getattr(sys.modules.get(library), name, None) for name in _CLASSES.get(library, ())]
    return _LAYOUTS[library] if kind in known else None
