"""Checks of the rows to predict, and their division into chunks."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import InputError
from approxsvm.frames.columns import real_rows
from approxsvm.frames.raw_columns import RawColumns

_CHUNK_ROWS = 1 << 15
_CHUNK_NUMBERS = 1 << 22


def sparse_sq_distances(rows: Any, point: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute ||x - point||^2 for sparse rows from nonzeros; digits cancel for large norms; overflow yields NaN."""
    rows = rows.astype(np.float64, copy=False)  # squares of integers would overflow and wrap
    sq_norm = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return np.maximum(sq_norm - 2.0 * np.asarray(rows @ point).ravel() + point @ point, 0.0)


def one_row(row: Any) -> Any:
    """Convert the argument of ``predict_one`` to an array; arrays are returned unchanged."""
    if type(row) is np.ndarray:
        return row
    try:
        array = real_rows(np.asarray(row))
        # float32 rows stay float32, as in the source.
        kind = array.dtype if isinstance(row, np.ndarray) or array.dtype == np.float32 else np.float64
        return np.ascontiguousarray(array, dtype=kind)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"the row is not an array of numbers: {error}") from None


def as_row(row: Any) -> Any:
    """Return one row as a matrix for `predict`; raise InputError if it has another shape."""
    array = one_row(row)
    if array.ndim > 2 or (array.ndim == 2 and len(array) != 1):
        raise InputError(f"expected one row, of shape (n_features,) or (1, n_features), but its shape is {array.shape}")
    return array.reshape(1, -1)


def chunks(n_rows: int, n_features: int) -> Iterator[slice]:
    """Yield slices that cover the rows, each at most 32 MB in float64; without rows, yield one empty slice."""
    step = max(1, min(_CHUNK_ROWS, _CHUNK_NUMBERS // max(n_features, 1)))
    for first in range(0, max(n_rows, 1), step):
        yield slice(first, min(first + step, n_rows))


def is_plain_matrix(X: Any, n_features: int) -> bool:
    """Return whether X is a plain two-dimensional NumPy array of real numbers with `n_features` columns."""
    return (
        isinstance(X, np.ndarray)
        and not isinstance(X, (np.matrix, np.ma.MaskedArray))
        and X.dtype.kind in "fiub"
        and X.shape[1:] == (n_features,)
    )


def check_sparse(X: Any, columns: RawColumns | None = None) -> Any:
    """Check a sparse matrix; return it as CSR with sorted columns. Other objects are returned unchanged.

    The arrays of a sparse matrix can be modified after construction, and neither SciPy nor scikit-learn checks them
    again. The InputError for an invalid index, array or row states its position. `columns` are the columns of the
    model, whose predictions may depend on the order of entries.
    """
    from scipy.sparse import issparse

    if not issparse(X):
        return X
    if len(X.shape) != 2:
        raise InputError(f"X is sparse with shape {X.shape}, expected rows and columns")
    if X.format not in ("csr", "csc", "bsr", "coo"):
        X = X.tocsr()
    if X.format == "coo":
        _check_triplets(X)
    else:
        _check_compressed(X)
    return _in_order(X.tocsr(), columns)


def _check_triplets(X: Any) -> None:
    rows, columns = _indices(X.row, "row indices"), _indices(X.col, "column indices")
    if not len(rows) == len(columns) == len(X.data):
        raise InputError(f"X has {len(rows)} row indices, {len(columns)} column indices and {len(X.data)} values")
    for position in _outside(rows, X.shape[0]) or _outside(columns, X.shape[1]):
        raise InputError(_out_of_place(rows[position], columns[position], X.shape))


def _check_compressed(X: Any) -> None:
    """Check a CSR, CSC or BSR matrix; `indptr` divides the major axis: rows, columns, or rows of blocks."""
    height, width = X.data.shape[1:] if X.format == "bsr" and np.ndim(X.data) == 3 else (1, 1)
    n_major, n_minor = (X.shape[0] // height, X.shape[1] // width) if X.format != "csc" else X.shape[::-1]
    indptr, indices = _indices(X.indptr, "indptr"), _indices(X.indices, "indices")
    if len(indptr) != n_major + 1 or indptr[0] != 0:
        raise InputError(f"indptr of X has {len(indptr)} numbers, expected {n_major + 1}, the first of them 0")
    line = "column" if X.format == "csc" else "row"
    falling = np.flatnonzero(indptr[1:] < indptr[:-1])
    if len(falling):
        raise InputError(f"indptr of X descends at {line} {int(falling[0]) * height}")
    if indptr[-1] > len(indices) or len(indices) != len(X.data):
        raise InputError(
            f"{line} {X.shape[X.format == 'csc'] - 1} of X ends at entry {indptr[-1]}, but there are {len(indices)} "
            f"indices and {len(X.data)} values"
        )
    for position in _outside(indices[: indptr[-1]], n_minor):
        major = int(np.searchsorted(indptr, position, side="right")) - 1
        place = (major * height, int(indices[position]) * width)
        raise InputError(_out_of_place(*(place[::-1] if X.format == "csc" else place), X.shape))


def _indices(values: Any, name: str) -> Any:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"{name} of X are {array.dtype} of shape {array.shape}, expected integers in one dimension")
    return array


def _outside(indices: Any, limit: int) -> list[int]:
    """Return a list with the position of the first index that is negative or too large, or an empty list."""
    if len(indices) == 0 or (int(indices.min()) >= 0 and int(indices.max()) < limit):
        return []
    return [int(np.flatnonzero((indices < 0) | (indices >= limit))[0])]


def _out_of_place(row: int, column: int, shape: tuple[int, ...]) -> str:
    return f"X has an entry at row {row}, column {column}, but {shape[0]} rows and {shape[1]} columns"


def _in_order(X: Any, columns: RawColumns | None) -> Any:
    """Sort the columns of CSR rows and reject duplicates; SciPy's flags for these properties are not trusted."""
    row = first_row_out_of_order(X)
    if row is None:
        return X
    n_entries = int(X.indptr[-1])
    ordered = type(X)((X.data[:n_entries], X.indices[:n_entries], X.indptr), shape=X.shape, copy=True)
    ordered.has_sorted_indices = ordered.has_canonical_format = False
    ordered.sort_indices()
    twice = first_row_out_of_order(ordered)
    if twice is not None:
        raise InputError(
            f"row {twice} of X has several entries in one column, which not every step and estimator of scikit-learn "
            "adds up; add them up first: X.sum_duplicates()"
        )
    if X.has_sorted_indices:
        raise InputError(
            f"the entries of row {row} of X are not in the order of their columns, but X.has_sorted_indices says that "
            "they are, which scikit-learn believes: sort them by X.has_sorted_indices = False; X.sort_indices()"
        )
    if columns is not None and columns.multiplies:
        raise InputError(
            f"the entries of row {row} of X are not in the order of their columns, and scikit-learn's "
            "PolynomialFeatures confuses such rows; sort them: X.sort_indices()"
        )
    return ordered


def first_row_out_of_order(X: Any) -> int | None:
    """Return the index of the first row of a CSR matrix whose column indices are not strictly increasing, or None."""
    n_entries = int(X.indptr[-1])
    ascends = np.empty(n_entries, np.bool_)
    np.less(X.indices[: max(n_entries - 1, 0)], X.indices[1:n_entries], out=ascends[1:])
    starts = X.indptr[:-1]
    ascends[starts[starts < n_entries]] = True
    if ascends.all():
        return None
    return int(np.searchsorted(X.indptr, np.flatnonzero(~ascends)[0], side="right")) - 1


def with_global_row(error: InputError, first_row: int) -> InputError:
    """Change the row number in a chunk's error message to the number in the whole input."""
    text = re.sub(r"\brow (\d+)", lambda place: f"row {int(place[1]) + first_row}", str(error), count=1)
    return type(error)(text)


def check_finite(rows: Any, columns: RawColumns) -> None:
    """Raise InputError for NaN and infinity where they are not valid; the error states the first position."""
    stored = rows if isinstance(rows, np.ndarray) else rows.data
    if not np.isfinite(stored).all():
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        bad = np.argwhere(~columns.are_taken(dense, np.arange(dense.shape[1])))
        if not len(bad):
            return
        row, column = map(int, bad[0])
        what = "NaN" if np.isnan(dense[row, column]) else "infinity"
        raise InputError(f"Input X contains {what}. (row {row}, column {column})")


def zero_unused(rows: Any, columns: RawColumns) -> Any:
    """Replace non-finite values with zeros in the columns that the model does not use."""
    stored = rows if isinstance(rows, np.ndarray) else rows.data
    bad = np.zeros(0, np.bool_) if columns.uses_all else ~np.isfinite(stored)
    if not bad.any():
        return rows
    unused = np.ones(columns.n_columns, np.bool_)
    unused[columns.used] = False
    rows = rows.copy()
    if isinstance(rows, np.ndarray):
        rows[bad & unused] = 0.0
    else:
        rows.data[bad & unused[rows.indices]] = 0.0
    return rows


def finite_rows(rows: Any, columns: RawColumns) -> npt.NDArray[np.bool_]:
    """Return, as an array of shape (n_rows,), whether each row is finite except for NaN where NaN is valid."""
    if isinstance(rows, np.ndarray):
        return np.asarray(columns.are_taken(rows, np.arange(rows.shape[1])).all(axis=1))
    finite = np.ones(rows.shape[0], np.bool_)
    bad = np.flatnonzero(~columns.are_taken(rows.data, rows.indices))
    finite[np.searchsorted(rows.indptr, bad, side="right") - 1] = False
    return finite
