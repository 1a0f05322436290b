"""Decision values in a graph, and how far they may be from the exact ones."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownValues:
    """Names of what is known of the decision values of rows."""

    values: str  # shape (n_rows, n_decisions), float64, oriented as in LIBSVM
    # Of the same shape: what |value - exact value| never exceeds; NaN where nothing is known. None where nobody asks.
    bounds: str | None = None
