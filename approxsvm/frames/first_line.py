"""First lines of delimited files: names or numbers, and the delimiter."""

import os
from collections.abc import Sequence

from approxsvm.errors import DataFormatError, InputError
from approxsvm.frames.text_columns import MISSING_CELLS


def first_cells(path: str | os.PathLike[str], delimiter: str | None) -> tuple[list[str], list[str]]:
    """Split the first two lines of a file into cells."""
    with open(path, encoding="utf-8-sig") as file:
        first, second = ([cell.strip() for cell in file.readline().strip("\n").split(delimiter)] for _ in range(2))
    return first, second


def has_names(first: Sequence[str], second: Sequence[str], header: bool | None = None) -> bool:
    """Return whether the first line of delimited rows contains names, according to the cells of the first two lines.

    The first line contains names unless all its cells are numbers or missing. Consecutive integers that start at 0 or 1
    are also names, because pandas writes such a line for an array. If there are fewer than three columns, or if the
    second line contains only integers, consecutive integers may also be a row, and InputError is raised unless `header`
    is given.
    """
    if header is not None:
        return header
    if not all(_is_number(cell) or cell.strip() in MISSING_CELLS for cell in first):
        return True
    counted = list(first[1:] if first[0] == "" else first)  # pandas writes an empty name for its index
    if not counted or counted not in ([str(k + start) for k in range(len(counted))] for start in (0, 1)):
        return False
    if len(first) > 2 and not all(cell in MISSING_CELLS or cell.strip('-" ').isdigit() for cell in second):
        return True
    shown = ", ".join(first[:5]) + (", ..." if len(first) > 5 else "")
    raise InputError(
        f"the first line, {shown}, may be names or a row: give --header or --no-header (header=True or header=False)"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def refuse_other_delimiter(cells: Sequence[str], name: str) -> None:
    """Reject a first line that has no comma but contains another delimiter."""
    delimiter = next((c for c in ";\t|" if len(cells) == 1 and c in cells[0]), None)
    if delimiter is not None:
        raise DataFormatError(
            f"{name}: give --delimiter {delimiter!r} (delimiter={delimiter!r}), or ',' if there is one column: the "
            f"first line has no comma, {cells[0][:40]!r}"
        )
