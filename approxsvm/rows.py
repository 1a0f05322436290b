"""Rows to predict: what must hold of them, and how many are taken at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from approxsvm.errors import InputError

_CHUNK_ROWS = 1 << 15
_CHUNK_NUMBERS = 1 << 22


def chunks(n_rows: int, n_features: int) -> Iterator[slice]:
    """Slices that cover the rows, each of at most 32 MB of float64; one empty slice when there are none."""
    step = max(1, min(_CHUNK_ROWS, _CHUNK_NUMBERS // max(n_features, 1)))
    for first in range(0, max(n_rows, 1), step):
        yield slice(first, min(first + step, n_rows))


def is_plain_matrix(X: Any, n_features: int) -> bool:
    """Whether X is an array of real numbers of NumPy's own, of two dimensions and so many columns."""
    return (
        isinstance(X, np.ndarray)
        and not isinstance(X, (np.matrix, np.ma.MaskedArray))
        and X.dtype.kind in "fiub"
        and X.shape[1:] == (n_features,)
    )


def check_finite(rows: Any, first_row: int = 0) -> None:
    """Refuse NaN and infinity, naming the first place; rows are counted from `first_row`.

    Raises
    ------
    InputError
    """
    stored = rows if isinstance(rows, np.ndarray) else rows.data
    bad = ~np.isfinite(stored)
    if bad.any():
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        row, column = map(int, np.argwhere(~np.isfinite(dense))[0])
        what = "NaN" if np.isnan(dense[row, column]) else "infinity"
        raise InputError(f"Input X contains {what}. (row {first_row + row}, column {column})")
