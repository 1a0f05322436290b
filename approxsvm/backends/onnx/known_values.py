"""Decision values in a graph, and how far they may be from the exact ones."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownValues:
    """Names of what is known of the decision values of rows."""

    values: str  # shape (n_rows, n_decisions), float64, oriented as in LIBSVM
    # Upper bounds of |value - exact value|, of the same shape; NaN if unknown. None if not requested.
    bounds: str | None = None
