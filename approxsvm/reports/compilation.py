"""How a model was compiled: the plans that were tried, with their predicted costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TriedPlan:
    """A plan that was considered.

    Attributes
    ----------
    name : str
        Shown in reports.
    share_of_exact : float or None
        Predicted cost of a row relative to the exact engine; None if it was not predicted.
    certified : float or None
        Share of held-out rows that the plan settled before the exact engine.
    seconds_per_row : float or None
        Measured on these rows, in one call, with their own centers; None if the plan was not run.
    chosen : bool
        Whether the artifact was built by it.
    """

    name: str
    share_of_exact: float | None = None
    certified: float | None = None
    seconds_per_row: float | None = None
    chosen: bool = False


@dataclass(frozen=True)
class Compilation:
    """How a compiled model was made. It is not part of the artifact, so a loaded model has none.

    Attributes
    ----------
    seconds : float
        Compile time, reading included.
    options : tuple of (str, str)
        Options with a value other than their default, as Python source.
    n_sample_rows : int or None
        Sample rows for planning; None if the support vectors were used instead.
    plans : tuple of tuple of TriedPlan
        Plans of each model: one, or the members of an ensemble. Polynomial kernels and linear models on Taylor features
        have no plans.
    """

    seconds: float
    options: tuple[tuple[str, str], ...]
    n_sample_rows: int | None
    plans: tuple[tuple[TriedPlan, ...], ...]
