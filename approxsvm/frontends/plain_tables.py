"""Reader of delimited text with Python's csv module instead of pandas: numeric columns, and strings if needed."""

import csv
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from approxsvm.errors import DataFormatError
from approxsvm.frames.text_columns import MISSING_CELLS
from approxsvm.frontends.plain_numbers import plain_float

# Strings that pandas interprets as boolean values.
_TRUTH = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}


def read_cells(path: str | os.PathLike[str], delimiter: str | None, *, is_named: bool) -> list[list[str]]:
    """Return the cells of each line after the header; without a delimiter, cells are separated by whitespace.

    Raises DataFormatError if the number of cells in a line differs from the first line's.
    """
    name = os.fspath(path)
    with open(path, encoding="utf-8-sig", newline="") as file:
        if delimiter is None:
            lines = [(number, line.split()) for number, line in enumerate(file, 1)]
        else:
            reader = csv.reader(file, delimiter=delimiter)
            lines = [(reader.line_num, cells) for cells in reader]
    lines = [(number, cells) for number, cells in lines if cells]
    for number, cells in lines:
        if len(cells) != len(lines[0][1]):
            raise DataFormatError(f"{name}, line {number}: {len(cells)} columns, expected {len(lines[0][1])}")
    return [cells for _, cells in lines][is_named:]


def table_of(cells: Sequence[Sequence[str]], positions: Sequence[int]) -> Any:
    """Return columns as an array: float64 with NaN for missing cells, or objects if a column contains strings."""
    columns = [_column([row[k] for row in cells]) for k in positions]
    are_numbers = all(isinstance(column, np.ndarray) for column in columns)
    table = np.empty((len(cells), len(positions)), np.float64 if are_numbers else object)
    for k, column in enumerate(columns):
        table[:, k] = column
    return table


def numbers_of(cells: Sequence[str]) -> Any:
    """Return cells as float64, with NaN for missing and non-numeric cells."""
    return np.array([np.nan if (number := _number(cell)) is None else number for cell in cells])


def _column(cells: Sequence[str]) -> Any:
    """Return a numeric array or a list of strings, with NaN for missing cells."""
    known = [cell for cell in cells if cell not in MISSING_CELLS]
    if all(_number(cell) is not None for cell in known):
        return numbers_of(cells)
    if all(cell in _TRUTH for cell in known):
        return np.array([_TRUTH.get(cell, np.nan) for cell in cells])
    return [np.nan if cell in MISSING_CELLS else cell for cell in cells]


def _number(cell: str) -> float | None:
    try:
        return plain_float(cell)
    except ValueError:
        return None
