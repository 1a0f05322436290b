"""Record of decision values in a graph, with bounds on their errors."""

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownValues:
    """Names of decision values and of their error bounds."""

    values: str  # shape (n_rows, n_decisions), float64, oriented as in LIBSVM
    # Upper bounds on |value - exact value|, with the same shape; NaN if unknown. None if bounds were not requested.
    bounds: str | None = None
