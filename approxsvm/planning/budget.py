"""Common work budget for all trials of a search: a trial may take as much work as the plan could later save."""

from __future__ import annotations

from typing import Final

import numpy as np

from approxsvm.expansion.stack import WORK_PER_SECOND
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.planning.costs.calls import Cost
from approxsvm.planning.costs.profiles import Profile
from approxsvm.planning.problem import Problem
from approxsvm.planning.request import Effort

# Default number of rows that a model is expected to predict.
ROWS_EXPECTED: Final = 1_000_000
# Assumed number of threads in a search, fixed so that plans do not depend on the machine; one thread predicts rows.
_THREADS: Final = 2.0
# Factor, for each level of effort, on the work allowed for a trial.
_EFFORT: Final[dict[Effort, float]] = {"low": 0.2, "normal": 1.0, "high": 10.0}
# Work on rejected plans that is always allowed, and fraction of the possible savings that a trial may always take.
ACCEPTABLE_WORK: Final = 2.0 * WORK_PER_SECOND
SHARE_OF_SAVINGS: Final = 0.125


class Budget:
    """Work done by the search so far, least cost of a row so far, and the work that another trial may take."""

    def __init__(self, problem: Problem, exact: Cost, seconds: FloatArray | None = None) -> None:
        limits = problem.limits
        self.is_free = limits.degree == limits.n_centers == "auto"
        self._is_rationed = self.is_free and problem.mode == "certified"
        self._known, self._effort = problem.known_sums, _EFFORT[limits.effort]
        if seconds is None:  # time of a multiply-add in seconds, under each profile
            seconds = np.array([profile.seconds for profile in Profile.all()])
        self._work_of_cost = (limits.rows_expected or ROWS_EXPECTED) * seconds * WORK_PER_SECOND * _THREADS
        # Least costs over all plans so far, and the weighted costs of the best plan.
        self.least = exact
        self.best: FloatArray = exact.weighed if self.is_free else np.full_like(exact.weighed, np.inf)
        self._least = self.best
        self._spent = self._spent_on_best = self._to_build_best = 0.0
        self.was_too_little = False

    def may_win(self, hopeful: Cost, slack: float = 1.0) -> bool:
        """Return whether a plan with the cost `hopeful` would be cheaper than all plans so far, under any profile."""
        return bool(np.any(hopeful.weighed < slack * self._least))

    def saved(self, hopeful: Cost) -> float:
        """Return the work that a plan of this cost would save for all expected rows, averaged over the profiles."""
        return float(np.mean(np.maximum(self._least - hopeful.weighed, 0.0) * self._work_of_cost))

    def worth(self, hopeful: Cost) -> float:
        """Return the work that a trial of a plan may take if a row may cost as little as `hopeful`.

        This work is at most the work that the plan would save for all expected rows. Trials of plans other than the
        best so far may together take as much work as the best plan itself, including the sums needed by all plans, or a
        fixed amount of work, whichever is more. Thus, at most half of all work is wasted. A trial may always take a
        small fraction of the possible savings.
        """
        if not self._is_rationed:
            return np.inf
        saved = self.saved(hopeful)
        if self._to_build_best:
            of_best = self._spent_on_best + self._to_build_best + self._known.work_of_all
            in_vain = self._spent - self._spent_on_best
            saved = min(saved, max(of_best - in_vain, ACCEPTABLE_WORK - in_vain, SHARE_OF_SAVINGS * saved))
        return saved * self._effort

    def allows(self, work: float, hopeful: Cost) -> bool:
        """Return whether a trial may take this work if a row may cost as little as `hopeful`."""
        is_worth = work <= self.worth(hopeful)
        self.was_too_little |= not is_worth
        return is_worth

    def record(self, cost: Cost, work: float, to_build: float) -> None:
        """Record the cost of a row found by a trial, the trial's work, and the work of building the plan."""
        self._spent += work
        least = np.minimum(self._least, cost.weighed)
        if (cost.weighed / least).max() < (self.best / least).max():
            self.best, self._spent_on_best, self._to_build_best = cost.weighed, work, to_build
        self._least = least
        self.least = Cost(np.minimum(self.least.asked, cost.asked), np.minimum(self.least.alone, cost.alone))
