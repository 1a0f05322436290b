"""How a model was compiled: the plans that were tried, with their predicted costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TriedPlan:
    """A plan that was looked at."""

    name: str  # for people
    # Predicted cost of a row, as a share of the exact engine's, in calls as asked for and of one row; None where
    # nothing was predicted
    share_of_exact: float | None = None
    certified: float | None = None  # share of held-out rows that it settled before the exact engine
    # Measured on these rows, in one call, with the centers that they belong to; None where it was not run
    seconds_per_row: float | None = None
    chosen: bool = False  # whether it was built
    share_alone: float | None = None


@dataclass(frozen=True)
class Compilation:
    """How a compiled model was made. It is not part of the artifact, so a loaded model has none."""

    seconds: float  # compile time, reading included
    options: tuple[tuple[str, str], ...]  # those with a value other than their default, as Python source
    n_sample_rows: int | None  # None if the support vectors were used instead
    # For each model, the only one or the members of an ensemble; not for polynomial kernels and Taylor features.
    plans: tuple[tuple[TriedPlan, ...], ...]
