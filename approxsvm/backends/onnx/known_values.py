"""Decision values in a graph, with bounds on their errors."""

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownValues:
    """Names of decision values and their bounds."""

    values: str  # shape (n_rows, n_decisions), float64, oriented as in LIBSVM
    # Upper bounds of |value - exact value|, of the same shape; NaN if unknown. None if not requested.
    bounds: str | None = None
