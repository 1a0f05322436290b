"""Numbers in files of other programs."""

from __future__ import annotations

from typing import Any


def plain_float(text: Any) -> float:
    """As `float` reads it, but for what only Python takes for a number: underscores between digits, other scripts'."""
    if isinstance(text, str) and ("_" in text or not text.isascii()):
        raise ValueError(f"could not convert string to float: {text[:40]!r}")
    return float(text)
