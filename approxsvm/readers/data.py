"""Files of rows -> matrices: LIBSVM text by our own parser, everything else by the libraries that people have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from approxsvm.errors import DataFormatError
from approxsvm.readers.libsvm import read_libsvm_data


def read_rows(path: str | os.PathLike[str], *, n_features: int | None = None) -> Any:
    """Read rows without labels.

    Parameters
    ----------
    path : str or path
        .npy (a 2-d array, mapped rather than read), .csv and .parquet (by pandas; all columns are features, and a first
        line of names is recognised), anything else LIBSVM text, whose labels are dropped.
    n_features : int, optional
        Number of columns that the rows must have; LIBSVM text may use fewer.

    Returns
    -------
    ndarray, csr_array or pandas.DataFrame of shape (n_rows, n_features)

    Raises
    ------
    DataFormatError
        The file is not what its name says, or has another number of columns; the message names it.
    OSError
        The file cannot be read.
    """
    name = os.fspath(path)
    suffix = Path(path).suffix.lower()
    if suffix not in (".npy", ".csv", ".parquet"):
        return read_libsvm_data(path, n_features=n_features)[0]
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False) if suffix == ".npy" else _table(path, suffix)
    except OSError:
        raise
    except Exception as error:  # every library has exceptions of its own for broken files
        raise DataFormatError(f"{name}: not a readable {suffix} file: {error}") from error
    if len(rows.shape) != 2:
        raise DataFormatError(f"{name}: expected rows and columns, but its shape is {rows.shape}")
    if n_features is not None and rows.shape[1] != n_features:
        raise DataFormatError(f"{name}: has {rows.shape[1]} columns, but the model has {n_features} features")
    return rows


def _table(path: str | os.PathLike[str], suffix: str) -> Any:
    try:
        import pandas
    except ImportError:
        raise DataFormatError(f"reading {suffix} files needs pandas: pip install pandas") from None
    if suffix == ".parquet":
        return pandas.read_parquet(path)
    with open(path, encoding="utf-8") as file:
        first = file.readline().strip().split(",")
    return pandas.read_csv(path, header=None if all(map(_is_number, first)) else "infer")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
