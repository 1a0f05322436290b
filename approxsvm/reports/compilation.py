"""What compiling looked at, carried by its result: the plans that were tried, and what they should have cost."""

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
    """How a compiled model came about. It is not part of the artifact: a saved one has lost it.

    Attributes
    ----------
    seconds : float
        What compiling took, reading included.
    options : tuple of (str, str)
        Options that were given another value than their default, as Python writes them.
    n_sample_rows : int or None
        Rows that the plan was made from; None where the support vectors stood in for them.
    plans : tuple of tuple of TriedPlan
        Of each model that was planned: one, or the members of an ensemble. Polynomial kernels and linear models on
        Taylor features are not.
    """

    seconds: float
    options: tuple[tuple[str, str], ...]
    n_sample_rows: int | None
    plans: tuple[tuple[TriedPlan, ...], ...]
