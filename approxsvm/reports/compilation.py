"""How a model was compiled: the plans that were tried, with their predicted costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TriedPlan:
    """A plan that was looked at.

    Attributes
    ----------
    name : str
        For people.
    share_of_exact, share_alone : float or None
        Predicted cost of a row, as a share of the exact engine's, in calls as asked for and of one row; None where
        nothing was predicted.
    certified : float or None
        Share of held-out rows that it settled before the exact engine.
    seconds_per_row : float or None
        Measured on these rows, in one call, with the centers that they belong to; None where it was not run.
    chosen : bool
        Whether it was built.
    """

    name: str
    share_of_exact: float | None = None
    certified: float | None = None
    seconds_per_row: float | None = None
    chosen: bool = False
    share_alone: float | None = None


@dataclass(frozen=True)
class Compilation:
    """How a compiled model was made. It is not part of the artifact, so a loaded model has none."""

    seconds: float  # compile time, reading included
    options: tuple[tuple[str, str], ...]  # those with a value other than their default, as Python source
    n_sample_rows: int | None  # None if the support vectors were used instead
    # For each model, the only one or the members of an ensemble; not for polynomial kernels and Taylor features.
    plans: tuple[tuple[TriedPlan, ...], ...]
