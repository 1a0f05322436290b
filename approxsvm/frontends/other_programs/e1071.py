"""Scale files of e1071, R's interface to LIBSVM: ``write.svm(model, svm.file, scale.file, yscale.file)``.

Each line contains a scaled column's center and scale: R's `scale` subtracts the center and divides by the scale. The
file does not name the columns, so it must contain a line for every column. R writes 15 digits.
"""

import os
from pathlib import Path

import numpy as np

from approxsvm.errors import DataFormatError, UnsupportedModelError
from approxsvm.frontends.plain_numbers import plain_float
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.input_map import InputMap


def is_scale_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file's first line consists of two numbers, unlike the range files written by svm-scale."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        tokens = file.readline(1000).split()
    try:
        return len([plain_float(token) for token in tokens]) == 2
    except ValueError:
        return False


def read_scale_file(path: str | os.PathLike[str]) -> FloatArray:
    """Read centers and scales as an array of shape (n_columns, 2); a DataFormatError names a malformed line."""
    rows = []
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, 1):
            try:
                row = [plain_float(token) for token in line.split()]
            except ValueError:
                row = []
            if len(row) != 2 or not np.isfinite(row).all() or row[1] == 0:
                raise DataFormatError(
                    f"{os.fspath(path)}, line {number}: expected a center and a scale other than 0, two finite numbers"
                )
            rows.append(row)
    return np.array(rows).reshape(-1, 2)


def input_map(path: str | os.PathLike[str], n_features: int) -> InputMap:
    """Return the map that scales raw rows for a model with at least `n_features` columns.

    Raises UnsupportedModelError if the file has fewer lines: then some columns were not scaled, and the file does not
    say which.
    """
    scales = read_scale_file(path)
    if len(scales) < n_features:
        raise UnsupportedModelError(
            f"{os.fspath(path)}: {len(scales)} columns are scaled, but the model has {n_features}, and the file does "
            "not say which; write a line '0 1' for each column that is not scaled, such as a column of a factor"
        )
    return InputMap.identity(len(scales)).then_affine(subtract=scales[:, 0], divide=scales[:, 1])


def target_scale(path: str | os.PathLike[str]) -> tuple[float, float]:
    """Read the target's center and scale from the single-line .yscale file with the same base name."""
    target_file = Path(path).with_suffix(".yscale")
    scales = read_scale_file(target_file)
    if len(scales) != 1:
        raise DataFormatError(f"{target_file}: {len(scales)} lines, expected 1")
    return float(scales[0, 0]), float(scales[0, 1])
