"""Band divisors that GRASS GIS saves next to a model, in the file ``rescale`` of i.svm.train's signature folder.

The lines contain the bands' divisors, in the order of the imagery group; i.svm.predict divides each cell by it in
float64. The file ``sig`` in that folder is the LIBSVM model.
"""

import os

import numpy as np

from approxsvm.errors import DataFormatError
from approxsvm.frontends.plain_numbers import plain_float
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.input_map import InputMap


def is_rescale_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file's first line is a single number, unlike in other programs' scale files."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        tokens = file.readline(1000).split()
    try:
        return len([plain_float(token) for token in tokens]) == 1
    except ValueError:
        return False


def read_rescale_file(path: str | os.PathLike[str]) -> FloatArray:
    """Read the divisors as an array of shape (n_bands,); raise a DataFormatError that names a malformed line."""
    divisors = []
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, 1):
            try:
                (divisor,) = map(plain_float, line.split())
            except ValueError:
                divisor = 0.0
            if not (np.isfinite(divisor) and divisor > 0):
                raise DataFormatError(f"{os.fspath(path)}, line {number}: expected the divisor of a band, above 0")
            divisors.append(divisor)
    return np.array(divisors)


def input_map(path: str | os.PathLike[str], n_features: int) -> InputMap:
    """Return the map that divides raw cells; raise DataFormatError if the model uses more bands than the file lists."""
    divisors = read_rescale_file(path)
    if len(divisors) < n_features:
        raise DataFormatError(
            f"{os.fspath(path)}: has the divisors of {len(divisors)} bands, but the model uses {n_features} features"
        )
    return InputMap.identity(len(divisors)).then_affine(divide=divisors)
