"""Conversion of number strings in other programs' files."""

from typing import Any


def plain_float(text: Any) -> float:
    """Convert a string like `float`, but reject syntax that only Python accepts: underscores and non-ASCII digits."""
    if isinstance(text, str) and ("_" in text or not text.isascii()):
        raise ValueError(f"could not convert string to float: {text[:40]!r}")
    return float(text)
