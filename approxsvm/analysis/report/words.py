"""Conversion of numbers and sizes to text."""

from typing import Final

_MOST_CHARACTERS: Final = 160


def count(n: int, one: str, many: str) -> str:
    """Format a count with its noun."""
    return f"{n:,} {one if n == 1 else many}"


def cut(text: str) -> str:
    """Truncate a string to `_MOST_CHARACTERS` characters."""
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def short(ratio: float) -> str:
    """Format a ratio with few digits."""
    return f"{ratio:,.0f}" if ratio >= 10.0 else f"{ratio:.1f}"


def speedup(ratio: float) -> tuple[str, str]:
    """Describe a ratio of times in two parts, such as "3.0 times" and "faster than", or "slower than" below 1."""
    if ratio < 1.0:
        return f"{short(1.0 / max(ratio, 1e-9))} times", "slower than"
    return f"{short(ratio)} times", "faster than"


def time_text(seconds: float) -> str:
    """Format a time with a suitable unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1.0:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def bytes_text(n_bytes: int) -> str:
    """Format a size with a suitable unit."""
    if n_bytes < 10_000:
        return f"{n_bytes:,} bytes" if n_bytes < 1_000 else f"{n_bytes / 1e3:.1f} KB"
    return f"{n_bytes / 1e3:,.0f} KB" if n_bytes < 1_000_000 else f"{n_bytes / 1e6:,.1f} MB"
