"""Record of a compilation: the candidate plans and their predicted costs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TriedPlan:
    """Candidate plan."""

    name: str  # name of the plan, for display
    # Predicted cost per row in calls of the requested size, relative to the exact engine; None if not predicted.
    share_of_exact: float | None = None
    certified: float | None = None  # fraction of held-out rows whose labels are certified without the exact engine
    # Time per row of one call with the held-out rows, including their assignment to centers; None if the plan was not
    # run.
    seconds_per_row: float | None = None
    chosen: bool = False  # True if this plan was built
    share_alone: float | None = None  # like `share_of_exact`, but for single-row calls
    # Time on one core, in seconds, for the sums that only this plan needed, in its trial and, if it was chosen, when it
    # was built. It is estimated from multiply-add counts.
    work: float = 0.0
    # Smallest times per row, in seconds, that compile(measure=True) measured in calls of the requested size and in
    # single-row calls. Each is None if there was no timed comparison, or if this plan was not timed in calls of that
    # size.
    raced: float | None = None
    raced_alone: float | None = None


@dataclass(frozen=True)
class Compilation:
    """Record of how a model was compiled. Artifacts do not contain it, so a loaded model has none."""

    seconds: float  # compile time, including reading the source
    options: tuple[tuple[str, str], ...]  # options that differ from the defaults, as Python source
    n_sample_rows: int | None  # None if the support vectors were used as sample rows
    # Plans of the model, or of each member of an ensemble; empty for polynomial kernels and Taylor features.
    plans: tuple[tuple[TriedPlan, ...], ...]

    @property
    def race(self) -> dict[str, float]:
        """Time per row, in seconds, of each plan in the timed comparison, by name; empty if there was no comparison."""
        several = len(self.plans) > 1
        return {
            f"member {k}: {plan.name}" if several else plan.name: plan.raced
            for k, plans in enumerate(self.plans, 1)
            for plan in plans
            if plan.raced is not None
        }
