"""Conversion of record-batch columns to floating-point matrices for the core."""

import math
import threading
from collections.abc import Set
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import InputError
from approxsvm.frames.columns import Features, rounded
from approxsvm.frames.dtypes import RowDtypes, numpy_dtype
from approxsvm.frames.raw_columns import RawColumns
from approxsvm.frames.text_columns import MISSING_CELLS, UNKNOWN
from approxsvm.frames.texts import TextRows
from approxsvm.system.packages import import_package

pa = import_package("pyarrow", "arrow", "scoring tables")
pc = import_package("pyarrow.compute", "arrow", "scoring tables")

_MISSING = pa.array(MISSING_CELLS)
# Strings in CSV files that pandas interprets as booleans.
_TRUTHS = pa.array(["False", "FALSE", "false", "True", "TRUE", "true"])
_FIRST_TRUE = 3
# Padding between the buffer's columns: if their distance were a power of two, they would share few cache sets.
_PADDING = 16


class TextRowsColumn:
    """Converter from a column of documents to sparse rows, with the interface of FeatureColumns."""

    def __init__(self, name: str, texts: TextRows, columns: RawColumns) -> None:
        self.names = (name,)
        self._texts = texts
        self._columns = columns

    @classmethod
    def takes(cls, kind: Any) -> bool:
        """Return whether columns of this type can contain documents."""
        return _is_text(_value_type(kind))

    def matrix(self, batch: Any) -> Any:
        """Vectorize a batch's documents to a csr_array; a missing document becomes infinity, which is rejected."""
        texts = batch.column(self.names[0]).to_pylist()
        rows = self._texts.rows(["" if text is None else text for text in texts])
        missing = np.array([k for k, text in enumerate(texts) if text is None], np.intp)
        if not len(missing):
            return rows
        somewhere = np.full(len(missing), self._columns.used[0])
        return rows + type(rows)((np.full(len(missing), np.inf), (missing, somewhere)), shape=rows.shape)

    def fault(self, batch: Any, row: int, columns: RawColumns) -> str:
        """Describe why a document is rejected."""
        return f"column {self.names[0]!r} is null"


class FeatureColumns:
    """Thread-safe converter from batches with one schema to feature matrices.

    `names` lists the feature columns in the model's order, with None for unused features, or names one column whose
    lists contain `n_features` numbers each. With `text`, string columns, as in CSV files, are parsed: as booleans if
    `truths` contains their names, and otherwise as numbers. The model's string columns, as given by the raw `columns`,
    become codes. With `narrow`, matrices are float32 (see `are_narrow`). Raises InputError for any other column type.
    """

    def __init__(
        self,
        schema: Any,
        names: Features,
        n_features: int,
        columns: RawColumns | None = None,
        *,
        text: bool = False,
        truths: Set[str] = frozenset(),
        narrow: bool = False,
    ) -> None:
        self.names = tuple(name for name in names if name is not None)
        self.n_features = n_features
        self._positions = [k for k, name in enumerate(names) if name is not None]
        self._thread = threading.local()
        types = [_value_type(schema.field(name).type) for name in self.names]
        # A column of nulls has no list type, but is treated as a list column if the model has several features.
        is_one = len(names) == 1
        no_list = is_one and n_features > 1 and pa.types.is_null(types[0])
        self._is_list = is_one and (_is_list(types[0]) or no_list)
        if pa.types.is_fixed_size_list(types[0]) and self._is_list and types[0].list_size != n_features:
            raise InputError(
                f"column {self.names[0]!r} has lists of {types[0].list_size} numbers, but the model has {n_features} "
                "features"
            )
        if not self._is_list and len(names) != n_features:
            raise InputError(f"there is 1 feature column, {self.names[0]!r}, but the model has {n_features} features")
        numbers = [types[0].value_type] if self._is_list and not no_list else types
        texts = {} if self._is_list or columns is None else columns.texts
        self._looked_up = frozenset() if columns is None else columns.looked_up
        self._truths = {k for k, name in zip(self._positions, self.names, strict=True) if name in truths}
        self._texts = {k: _CodeColumn(columns, k, text) for k in self._positions if columns and k in texts}
        for position, name, kind in zip(self._positions, self.names, numbers, strict=True):
            if position in texts and not (_is_text(kind) or pa.types.is_null(kind)):
                raise InputError(f"column {name!r} is {kind}, but the model takes texts there")
            if position not in texts and not (_is_number(kind) or (text and _is_text(kind))):
                raise InputError(f"column {name!r} is {kind}, but a feature must be a number")
        self._dtype = np.float32 if narrow or all(kind == pa.float32() for kind in numbers) else np.float64

    def matrix(self, batch: Any) -> npt.NDArray[Any]:
        """Return a batch's features, of shape (n_rows, n_features), as float32 or float64, with NaN for missing values.

        The result for lists may be a view of the batch. Other columns are copied to a buffer, with 0 for unused
        features; the next call in the same thread overwrites it. The core accepts any strides.
        """
        columns = [batch.column(name) for name in self.names]
        if self._is_list:
            return self._of_lists(columns[0])
        n_rows = batch.num_rows
        buffer = getattr(self._thread, "buffer", None)
        if buffer is None or buffer.shape[1] < n_rows + _PADDING:
            buffer = self._thread.buffer = np.zeros((self.n_features, n_rows + _PADDING), self._dtype)
        for k, column in zip(self._positions, columns, strict=True):
            read = self._texts[k].codes if k in self._texts else _truths if k in self._truths else _floats
            buffer[k, :n_rows] = read(column)
            if k in self._looked_up:
                buffer[k, _rounded(column)] = math.inf  # the rounded number might be another category
        rows: npt.NDArray[Any] = buffer[:, :n_rows].T
        return rows

    def _of_lists(self, lists: Any) -> npt.NDArray[Any]:
        if pa.types.is_dictionary(lists.type):
            lists = lists.dictionary_decode()
        width, n_rows = self.n_features, len(lists)
        if pa.types.is_null(lists.type):
            return np.full((n_rows, width), np.nan)
        if pa.types.is_fixed_size_list(lists.type):
            starts = width * (lists.offset + np.arange(n_rows + 1))
        else:
            starts = lists.offsets.to_numpy()
        values = _floats(lists.values.slice(starts[0], starts[-1] - starts[0])).astype(self._dtype, copy=False)
        complete = np.diff(starts) == width
        if lists.null_count:
            complete &= lists.is_valid().to_numpy(zero_copy_only=False)
        if complete.all():
            return values.reshape(n_rows, width)
        rows = np.full((n_rows, width), np.nan, self._dtype)
        rows[complete] = values[(starts[:-1] - starts[0])[complete, np.newaxis] + np.arange(width)]
        return rows

    def fault(self, batch: Any, row: int, columns: RawColumns) -> str:
        """Describe why a row is rejected."""
        may_miss = set(columns.takes_null.tolist())
        for position, name in zip(self._positions, self.names, strict=True):
            value = batch.column(name)[row].as_py()
            if position in self._texts:
                words = self._texts[position].fault(value)
                if words and not (position in may_miss and words == "is null"):
                    return f"column {name!r} {words}"
                continue
            if isinstance(value, list) and len(value) != self.n_features:
                return f"column {name!r} has {len(value)} numbers, expected {self.n_features}"
            numbers = [(k, value[k]) for k in columns.used] if isinstance(value, list) else [(position, value)]
            for k, number in numbers:
                words = _fault_of_truth(number) if k in self._truths else _fault(number)
                if not words and k in self._looked_up and isinstance(number, int) and number != int(float(number)):
                    words = f"holds {number}, which float64 rounds"
                if words and not (k in may_miss and words in ("is null", "is NaN")):
                    return f"column {name!r} {words}"
        return "a number is beyond the range of the model"


def are_narrow(schema: Any, names: Features, dtypes: RowDtypes) -> bool:
    """Return whether the source computes in float32 for the columns; raise InputError for rejected column types.

    If some columns are float32, all other columns must have types that float32 represents exactly.
    """
    if not dtypes:
        return False
    positions = [k for k, name in enumerate(names) if name is not None]
    read = [name for name in names if name is not None]
    kinds = [numpy_dtype(schema.field(name).type) for name in read]
    is_list = len(read) == 1 and _is_list(_value_type(schema.field(read[0]).type))
    if not dtypes.check_columns(kinds, None if is_list else positions, read, "columns cast to float64"):
        return False
    for name, kind in zip(read, kinds, strict=True):
        given = schema.field(name).type
        if pa.types.is_decimal(given) or not (kind.kind == "O" or np.can_cast(kind, np.float32)):
            raise InputError(
                f"column {name!r} is {given}, but other columns are float32, in which the source computes: cast the "
                "latter to float64"
            )
    return True


class _CodeColumn:
    """Converts a string column to codes; a string that the source rejects becomes infinity, so its row is rejected."""

    def __init__(self, columns: RawColumns, position: int, parses: bool) -> None:
        self._known = columns.texts[position]
        self._values = pa.array(self._known.texts, pa.large_string())
        self._unknown = math.inf if UNKNOWN in columns.refused[position] else UNKNOWN
        self._null = math.inf if self._known.null in columns.refused[position] else self._known.null
        # Cells of a CSV file that mean a missing value, unless the cell's string is a category. If the empty string is
        # a category, an empty cell is ambiguous: pandas writes both empty strings and missing values as empty cells.
        missing = [text for text in MISSING_CELLS if text not in self._known.texts] if parses else []
        self._missing = pa.array(missing, pa.large_string())
        self._is_open = parses and "" in self._known.texts

    def codes(self, column: Any) -> npt.NDArray[np.float64]:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        texts = _large(column)
        positions = pc.index_in(texts, value_set=self._values)
        codes = np.asarray(positions.fill_null(-1).to_numpy(zero_copy_only=False), np.float64)
        codes[codes < 0] = self._unknown
        if len(self._missing):
            codes[pc.is_in(texts, value_set=self._missing).to_numpy(zero_copy_only=False)] = self._null
        codes[texts.is_null().to_numpy(zero_copy_only=False)] = math.inf if self._is_open else self._null
        return codes

    def fault(self, text: str | None) -> str:
        """Describe why a string is rejected; return an empty string if it is accepted."""
        if text is None and self._is_open:
            return "is empty, which may be missing or the text '': write the text in quotes, and NA for a missing value"
        if text is None or text in self._missing.to_pylist():
            return "is null"
        is_fine = text in self._known.texts or self._unknown == UNKNOWN
        return "" if is_fine else f"holds {text[:40]!r}, which is not a category of the model"


def _large(column: Any) -> Any:
    """Convert a column of any string type to large_string; nulls stay null."""
    try:
        return column.cast(pa.large_string())
    except pa.ArrowNotImplementedError:  # pyarrow 16 cannot cast views
        return pa.array(column.to_pylist(), pa.large_string())


def _fault(value: Any) -> str:
    if value is None or (isinstance(value, str) and value.strip() in MISSING_CELLS):
        return "is null"
    number = _number(value) if isinstance(value, str) else float(value)
    if isinstance(value, str) and math.isnan(number):
        return f"holds {value[:40]!r}, which is not a number"
    return "is NaN" if math.isnan(number) else "is infinite" if math.isinf(number) else ""


def _fault_of_truth(text: str | None) -> str:
    if text is None or text in MISSING_CELLS:
        return "is null"
    return "" if text in _TRUTHS.to_pylist() else f"holds {text[:40]!r}, but true or false in the first row"


def _value_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_list(kind: Any) -> bool:
    of_types = pa.types
    return bool(of_types.is_fixed_size_list(kind) or of_types.is_list(kind) or of_types.is_large_list(kind))


def _is_number(kind: Any) -> bool:
    of_types = pa.types
    return bool(
        of_types.is_integer(kind)
        or of_types.is_floating(kind)
        or of_types.is_boolean(kind)
        or of_types.is_decimal(kind)
        or of_types.is_null(kind)
    )


def _is_text(kind: Any) -> bool:
    """Return whether an Arrow type is a string type."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _floats(column: Any) -> npt.NDArray[Any]:
    """Convert a column to numbers, with NaN for null; later conversions to floats round as NumPy does."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if _is_text(column.type):
        column = _parsed(column)
    elif pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())  # booleans with nulls would become an object array
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.string()).cast(pa.float64())  # Arrow's direct cast rounds several times
    elif pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    numbers: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return numbers


def _truths(texts: Any) -> npt.NDArray[np.float64]:
    """Return 1 for true, 0 for false, NaN for missing values, and infinity for other strings."""
    found = pc.index_in(texts, value_set=_TRUTHS.cast(texts.type)).fill_null(-1).to_numpy(zero_copy_only=False)
    numbers = np.where(found < 0, math.inf, found >= _FIRST_TRUE).astype(np.float64)
    missing = pc.or_kleene(texts.is_null(), pc.is_in(texts, value_set=_MISSING.cast(texts.type)))
    numbers[missing.to_numpy(zero_copy_only=False)] = math.nan
    return numbers


def _rounded(column: Any) -> list[int]:
    """Return the indices of rows whose integers are not representable in float64."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not (pa.types.is_int64(column.type) or pa.types.is_uint64(column.type)):
        return []
    return rounded(column.fill_null(0).to_numpy(zero_copy_only=False))


def _parsed(texts: Any) -> Any:
    """Parse strings as float64: null for missing values, infinity for non-numbers, because NaN may be a valid value."""
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        pass
    texts = pc.utf8_trim_whitespace(texts)
    texts = pc.if_else(pc.is_in(texts, value_set=_MISSING.cast(texts.type)), None, texts)
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        numbers = [math.nan if text is None else _number(text) for text in texts.to_pylist()]
        given = zip(numbers, texts.to_pylist(), strict=True)
        return pa.array([math.inf if math.isnan(x) and text is not None else x for x, text in given], pa.float64())


def _number(text: str) -> float:
    """Parse a number, or return NaN; Python's underscores between digits are not accepted."""
    try:
        return float(text) if "_" not in text else math.nan
    except ValueError:
        return math.nan
