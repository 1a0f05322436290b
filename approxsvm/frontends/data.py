"""Readers of rows: LIBSVM text is read by our parser, other files by the usual libraries."""

import math
import os
import zipfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import numpy as np

from approxsvm.errors import DataFormatError, InputError
from approxsvm.frames.columns import quoted
from approxsvm.frames.first_line import first_cells, has_names, refuse_other_delimiter
from approxsvm.frames.rows import check_sparse
from approxsvm.frontends.libsvm import read_libsvm_data
from approxsvm.frontends.plain_tables import numbers_of, read_cells, table_of

_MAX_DEFLATE_RATIO = 1032  # maximum compression ratio: deflate encodes at most 258 bytes in two bits
_MAX_EMPTY_ROWS = 1 << 20  # maximum number of empty rows in a sparse matrix
_MAX_CELLS_PER_BYTE = 64  # limit for text files; every nonempty cell takes at least two bytes


def read_rows(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    columns: Sequence[str] | None = None,
    target: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
) -> Any:
    """Read rows without labels.

    Parameters
    ----------
    path : str or path
        A .npy file (a 2-d array, memory-mapped rather than read), a .npz file (one 2-d array, or a sparse matrix saved
        by scipy.sparse.save_npz), or a .csv or .parquet file (read by pandas; a header line is recognised). Any other
        file is read as LIBSVM text, and its labels are dropped.
    n_features : int, optional
        Required number of columns; LIBSVM text may use fewer.
    columns : sequence of str, optional
        Names of the feature columns, in the model's order. Default: all columns. Columns of a .csv file without column
        names are called "1", "2", ...
    target : str, optional
        Name of a column to exclude from the features.
    delimiter : str, optional
        Character between columns of a .csv file. Default: a comma.
    header : bool, optional
        True if the first line of a .csv file contains column names. Default: determined by `has_names`.

    Returns
    -------
    ndarray, csr_array or pandas.DataFrame of shape (n_rows, n_features)
        The rows. If pandas is not installed, a .csv file is read into an array, without column names.

    Raises
    ------
    DataFormatError
        The file's contents do not match its extension, a column is missing, or the number of columns is wrong.
    OSError
        The file cannot be read.
    """
    name = os.fspath(path)
    suffix = Path(path).suffix.lower()
    if (columns is not None or target is not None) and suffix not in (".csv", ".parquet"):
        raise DataFormatError(f"{name}: columns are chosen by name in .csv and .parquet files only")
    if delimiter is not None and suffix != ".csv":
        raise DataFormatError(f"{name}: a delimiter is for .csv files; read_dense (--dense) reads other text")
    _check_delimiter(delimiter)
    if suffix not in _READERS:
        return read_libsvm_data(path, n_features=n_features)[0]
    try:
        _check_some(path)
        if suffix == ".csv" and not _has_pandas():
            rows = _plain_csv(path, delimiter, header, columns, target)
            columns = target = None
        else:
            rows = _csv(path, delimiter, header) if suffix == ".csv" else _READERS[suffix](path)
    except (OSError, DataFormatError):
        raise
    except InputError as error:
        raise DataFormatError(f"{name}: {error}") from None
    except Exception as error:  # libraries raise various exceptions for damaged files
        raise DataFormatError(f"{name}: not a readable {suffix} file: {' '.join(str(error).split())}") from error
    if len(rows.shape) != 2:
        raise DataFormatError(f"{name}: expected rows and columns, but its shape is {rows.shape}")
    if columns is not None or target is not None:
        rows = _select_columns(rows, columns, target, name)
    if n_features is not None and rows.shape[1] != n_features:
        choose = "; --columns and --target choose" if suffix in (".csv", ".parquet") else ""
        named = f" ({quoted(list(map(str, rows.columns)))})" if hasattr(rows, "columns") else ""
        raise DataFormatError(
            f"{name}: has {rows.shape[1]} columns{named}, but the model has {n_features} features{choose}"
        )
    return rows


def _select_columns(table: Any, columns: Sequence[str] | None, target: str | None, name: str) -> Any:
    """Select the feature columns of a table."""
    return table[[table.columns[k] for k in _positions(list(map(str, table.columns)), columns, target, name)]]


def _positions(names: list[str], columns: Sequence[str] | None, target: str | None, name: str) -> list[int]:
    """Return the indices of the feature columns; raise DataFormatError if a requested column is missing."""
    places = {column: k for k, column in enumerate(names)}
    for wanted in [*(columns or ()), *([] if target is None else [target])]:
        if wanted not in places:
            raise DataFormatError(f"{name}: has no column {wanted!r}, only {quoted(names)}")
    return [places[column] for column in (places if columns is None else columns) if column != target]


def _npy(path: str | os.PathLike[str]) -> Any:
    with open(path, "rb") as file:
        _check_array(file, os.path.getsize(path), os.fspath(path))
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _npz(path: str | os.PathLike[str]) -> Any:
    """Read a sparse matrix or a single array; reject contents that would have to be unpickled."""
    name, n_bytes, n_numbers = os.fspath(path), os.path.getsize(path), 0
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            _check_entry(entry, n_bytes, name)
            with archive.open(entry) as file:
                n_numbers += _check_array(file, entry.file_size, f"{name}, {entry.filename}")
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
        names = arrays.files
        if len(names) == 1:
            return arrays[names[0]]
        if "format" not in names:
            raise DataFormatError(
                f"{name}: holds the arrays {', '.join(map(repr, names))}, expected one array or a sparse matrix "
                "(scipy.sparse.save_npz)"
            )
        n_rows = int(arrays["shape"][0])
    if n_rows > _MAX_EMPTY_ROWS + n_numbers:  # in CSR form, even an empty row takes memory
        raise DataFormatError(f"{name}: claims {n_rows} rows, but holds {n_numbers} numbers")
    from scipy.sparse import csr_array, load_npz

    return csr_array(check_sparse(load_npz(path)))


def _check_array(file: IO[bytes], n_bytes: int, name: str) -> int:
    """Return the number of values in a .npy file of `n_bytes`; reject truncated files before NumPy allocates memory."""
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if dtype.hasobject:
        raise DataFormatError(f"{name}: not a readable array: it holds Python objects, expected numbers")
    n_numbers, n_left = math.prod(shape), n_bytes - file.tell()
    if n_numbers * dtype.itemsize > n_left or min(shape, default=0) < 0:
        raise DataFormatError(
            f"{name}: claims an array of shape {shape}, {n_numbers * dtype.itemsize} bytes, but holds {n_left} bytes"
        )
    return n_numbers


def _check_entry(entry: zipfile.ZipInfo, n_bytes: int, name: str) -> None:
    """Reject zip entries that NumPy never writes, so that memory use is at most about 1000 times `n_bytes`."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataFormatError(
            f"{name}: {entry.filename} is compressed by method {entry.compress_type}, expected 0 or 8"
        )
    most = _MAX_DEFLATE_RATIO * min(entry.compress_size + 64, n_bytes)
    if entry.file_size > most:
        raise DataFormatError(
            f"{name}: {entry.filename} claims {entry.file_size} bytes, but its compressed data hold at most {most}"
        )


def _parquet(path: str | os.PathLike[str]) -> Any:
    return _pandas(path).read_parquet(path)


def _exact_numbers(pandas: Any) -> dict[str, Any]:
    """Return the option that makes older pandas versions parse float64 values exactly, as newer ones do by default."""
    version = tuple(map(int, pandas.__version__.split(".")[:2]))
    return {"float_precision": "round_trip"} if version < (3, 1) else {}


def csv_names(
    path: str | os.PathLike[str], delimiter: str | None = None, header: bool | None = None
) -> list[str] | None:
    """Return the column names in a .csv file, or None if it has no header."""
    first, second = first_cells(path, delimiter or ",")
    if delimiter is None:
        refuse_other_delimiter(first, os.fspath(path))
    _check_cells(path, len(first))
    return first if has_names(first, second, header) else None


def _csv(path: str | os.PathLike[str], delimiter: str | None = None, header: bool | None = None) -> Any:
    pandas = _pandas(path)
    is_named = csv_names(path, delimiter, header) is not None
    names = {} if is_named else {"header": None}
    table = pandas.read_csv(path, sep=delimiter or ",", **names, **_exact_numbers(pandas))
    return table if is_named else table.rename(columns=lambda column: column + 1)


def _plain_csv(
    path: str | os.PathLike[str],
    delimiter: str | None,
    header: bool | None,
    columns: Sequence[str] | None,
    target: str | None,
) -> Any:
    """Read the chosen columns of a .csv file without pandas."""
    is_named = csv_names(path, delimiter, header) is not None
    cells = read_cells(path, delimiter or ",", is_named=False)
    names = cells.pop(0) if is_named else [str(k + 1) for k in range(len(cells[0]))]
    return table_of(cells, _positions(names, columns, target, os.fspath(path)))


def _check_some(path: str | os.PathLike[str]) -> None:
    """Reject empty files, for which libraries raise various errors, and pipes, which can be read only once."""
    if os.path.getsize(path) == 0:
        raise ValueError("the file is empty" if os.path.isfile(path) else "tables are read from files, not from pipes")


def _check_cells(path: str | os.PathLike[str], n_columns: int) -> None:
    """Reject a table that would be mostly empty, because pandas pads every line to the length of the longest."""
    n_bytes, n_lines = os.path.getsize(path), 1
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            n_lines += block.count(b"\n")
    if n_lines * n_columns > _MAX_CELLS_PER_BYTE * n_bytes:
        raise DataFormatError(
            f"{os.fspath(path)}: {n_lines} lines of {n_columns} columns are more than {n_bytes} bytes can hold"
        )


def _has_pandas() -> bool:
    return find_spec("pandas") is not None


def _pandas(path: str | os.PathLike[str]) -> Any:
    try:
        import pandas
    except ImportError:
        raise DataFormatError(f"{os.fspath(path)}: reading tables needs pandas: pip install pandas") from None
    return pandas


_READERS: dict[str, Callable[[Any], Any]] = {".npy": _npy, ".npz": _npz, ".csv": _csv, ".parquet": _parquet}


def read_dense(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    labels: bool = True,
    n_features: int | None = None,
    header: bool | None = None,
) -> tuple[Any, Any]:
    """Read dense text, where each line contains a row's label followed by a value for every column.

    Parameters
    ----------
    path : str or path
    delimiter : str, optional
        Character between columns. Default: any sequence of spaces and tabs.
    labels : bool
        True if the first column contains labels, as in LIBSVM text.
    n_features : int, optional
        Required number of columns, not counting the label.
    header : bool, optional
        True if the first line contains column names. Default: determined by `has_names`.

    Returns
    -------
    X : ndarray of shape (n_rows, n_features), float64
    y : ndarray of shape (n_rows,), float64, or None

    Raises
    ------
    DataFormatError
        A value is missing or not a finite number (the message names the line), or the number of columns is wrong.
    OSError
        The file cannot be read.
    """
    name = os.fspath(path)
    _check_delimiter(delimiter)
    table, first_line = _dense_table(path, name, delimiter, header)
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        line, column = int(bad[0, 0]) + first_line, int(bad[0, 1]) + 1
        raise DataFormatError(f"{name}, line {line}, column {column}: not a finite number, or missing")
    n_columns = table.shape[1] - labels
    if n_columns < 1 or n_features not in (None, n_columns):
        wanted = "at least 1" if n_features is None else str(n_features)
        remedy = ": --no-labels (labels=False) if there is no label" if labels and n_features == table.shape[1] else ""
        raise DataFormatError(f"{name}: has {n_columns} columns besides the label, expected {wanted}{remedy}")
    if not labels:
        return table, None
    return np.ascontiguousarray(table[:, 1:]), table[:, 0]


def _check_delimiter(delimiter: str | None) -> None:
    if delimiter is not None and len(delimiter) != 1:
        raise DataFormatError(f"the delimiter is {delimiter!r}, but must be one character")


def _dense_table(
    path: str | os.PathLike[str], name: str, delimiter: str | None, header: bool | None
) -> tuple[Any, int]:
    """Return all columns as float64, with NaN for non-numeric cells, and the line number of the first row."""
    try:
        _check_some(path)
        first, second = first_cells(path, delimiter)
        _check_cells(path, len(first))
        is_named = has_names(first, second, header)
        if not _has_pandas():
            columns = zip(*read_cells(path, delimiter, is_named=is_named), strict=True)
            return np.column_stack([numbers_of(column) for column in columns]), 2 if is_named else 1
        import pandas

        separator = {"sep": delimiter} if delimiter is not None else {"sep": r"\s+"}
        table = pandas.read_csv(
            path,
            header=0 if is_named else None,
            skip_blank_lines=False,
            compression=None,
            **separator,
            **_exact_numbers(pandas),
        )
        numbers = table.apply(pandas.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    except OSError:
        raise
    except InputError as error:
        raise DataFormatError(f"{name}: {error}") from None
    except Exception as error:  # pandas raises various exceptions for damaged files
        raise DataFormatError(f"{name}: not dense text: {' '.join(str(error).split())}") from error
    return numbers, 2 if is_named else 1
