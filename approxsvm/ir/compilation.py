"""Compilation record: the candidate plans and their predicted costs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TriedPlan:
    """A candidate plan."""

    name: str  # to display
    # Predicted cost of a row relative to the exact engine's, in calls of the requested size; None if not predicted.
    share_of_exact: float | None = None
    certified: float | None = None  # share of held-out rows decided before the exact engine
    # Measured on the held-out rows in one call, center assignment included; None if the plan was not run.
    seconds_per_row: float | None = None
    chosen: bool = False  # whether this plan was built
    share_alone: float | None = None  # as share_of_exact, for calls of one row
    # Estimated seconds of one core, by counts of multiply-adds, for the sums that only this plan needed: for its trial
    # and, if it was chosen, for building it.
    work: float = 0.0


@dataclass(frozen=True)
class Compilation:
    """Record of how a model was compiled. The artifact does not contain it, so a loaded model has none."""

    seconds: float  # compile time, including reading the source
    options: tuple[tuple[str, str], ...]  # options that differ from their defaults, as Python source
    n_sample_rows: int | None  # None if the support vectors were used instead
    # Plans of the model, or of each member of an ensemble; empty for polynomial kernels and Taylor features.
    plans: tuple[tuple[TriedPlan, ...], ...]
