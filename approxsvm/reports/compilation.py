"""How a model was compiled: the plans that were tried, with their predicted costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TriedPlan:
    """A plan that was considered."""

    name: str
    share_of_exact: float | None = None  # predicted cost of a row relative to the exact engine; None if not predicted
    certified: float | None = None  # share of held-out rows that the plan settled before the exact engine
    seconds_per_row: float | None = None  # measured on these rows, in one call, with their own centers; None if not run
    chosen: bool = False  # whether the artifact was built by it


@dataclass(frozen=True)
class Compilation:
    """How a compiled model was made. It is not part of the artifact, so a loaded model has none."""

    seconds: float  # compile time, reading included
    options: tuple[tuple[str, str], ...]  # those with a value other than their default, as Python source
    n_sample_rows: int | None  # None if the support vectors were used instead
    # For each model, the only one or the members of an ensemble; not for polynomial kernels and Taylor features.
    plans: tuple[tuple[TriedPlan, ...], ...]
