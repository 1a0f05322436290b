"""First lines of tables of text: names or numbers, and what delimits them."""

from __future__ import annotations

from collections.abc import Sequence

from approxsvm.errors import DataFormatError


def is_number(text: str) -> bool:
    """Whether Python reads it as one."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def refuse_other_delimiter(cells: Sequence[str], name: str) -> None:
    """Refuse a first line that a comma makes one cell of, in which another delimiter stands."""
    found = next((c for c in ";\t|" if len(cells) == 1 and c in cells[0]), None)
    if found is not None:
        raise DataFormatError(
            f"{name}: give --delimiter {found!r} (delimiter={found!r}), or ',' if there is one column: the first line "
            f"has no comma, {cells[0][:40]!r}"
        )
