"""Plan search for a model with a Gaussian kernel; plan families are tried in turn, within one work budget.

| family | its hopeful cost assumes that | a trial builds |
|---|---|---|
| expansions about 1, 16, 64, ... centers | each step leaves f^2 of the rows if the last left f of them | some centers |
| higher degrees about the same centers | each degree leaves f^2 of the rows if the last left f of them | some centers |
| kernel sums over a few coordinates | the cheapest sums decide all rows | some classes |
| the exact engine alone | its cost is known | nothing |

A trial builds what the last column lists and uses it to predict held-out rows.

A family is tried if its hopeful cost is less than the costs of the plans tried so far and the budget allows the trial's
work. The plan with the least regret is chosen. A plan's regret is the largest ratio, over all cost profiles, of its
cost to the least cost of all plans tried. The artifact is a function of the model, its rows and the plan (building.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from approxsvm.errors import UnsupportedModelError
from approxsvm.expansion.stack import WORK_PER_SECOND
from approxsvm.ir.compilation import TriedPlan
from approxsvm.planning.budget import ROWS_EXPECTED, Budget
from approxsvm.planning.building import part_of
from approxsvm.planning.costs.calls import SAME, Cost, ExpansionCosts, ratios, regrets
from approxsvm.planning.families.expansions import ABOUT, Candidate, Expansions, about_best
from approxsvm.planning.families.subspaces import Subspaces, SubspaceTrials, goes_by_many_features
from approxsvm.planning.problem import Problem
from approxsvm.planning.request import Progress

Found = Candidate | Subspaces | None  # None means only the exact engine


@dataclass(frozen=True, eq=False)
class Choice:
    """Chosen plan, and all plans that were tried."""

    chosen: Found
    reason: str
    tried: tuple[TriedPlan, ...] = ()
    found: tuple[Found, ...] = ()  # the plans in the order of `tried`


class Family(NamedTuple):
    """Family of plans."""

    hopeful: Callable[[], Cost | None]  # returns the least possible cost of a row; None if there is nothing to try
    work: Callable[[], float]  # returns the work of the smallest trial
    trial: Callable[[Callable[[float], None]], None]
    task: str = "Planning"


def search(problem: Problem, progress: Progress) -> Choice:
    """Choose the plan to build.

    Raises UnsupportedModelError if no requested plan fits into `max_bytes` or reaches the requested error.
    """
    if problem.mode == "exact":
        return Choice(None, "")
    limits = problem.limits
    if problem.mode == "approximate" and limits.target_error is None:
        degree = 2 if limits.degree == "auto" else limits.degree
        n_centers = 1 if limits.n_centers == "auto" else limits.n_centers
        problem = replace(problem, limits=replace(limits, degree=degree, n_centers=n_centers))
    return Search(problem).run(progress)


class Search:
    """Families of plans for one problem, and the plans that were tried."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._limits = problem, problem.limits
        self._costs = ExpansionCosts(problem)
        self.exact = self._costs.exact
        self.budget = Budget(problem, self.exact)
        self.expansions = Expansions(problem, self._costs, self.budget)
        self.subspaces = SubspaceTrials(problem, self.budget)

    def families(self) -> list[Family]:
        """List the families in the order in which they are tried."""
        expansions, subspaces = self.expansions, self.subspaces
        found = [
            Family(partial(expansions.hopeful_cost, n), partial(expansions.work, n), partial(expansions.try_centers, n))
            for n in expansions.numbers_of_centers
        ]
        found.append(Family(expansions.hopeful_degree, lambda: 0.0, expansions.try_higher_degrees))
        in_few = Family(subspaces.hopeful_cost, subspaces.work, subspaces.run, "Looking for subspaces")
        # Subspaces suit rows with many nonzero features. For other rows, expansions are tried first, because their
        # results limit the work on subspaces.
        return [in_few, *found] if goes_by_many_features(self._problem) else [*found, in_few]

    def run(self, progress: Progress) -> Choice:
        """Try each family that could still contain a better plan."""
        done = dict.fromkeys(("Planning", "Looking for subspaces"), 0.0)
        for family in self.families():
            hopeful = family.hopeful()
            if hopeful is None or not self.budget.allows(family.work(), hopeful):
                continue
            start = done[family.task]
            done[family.task] = 0.5 * (1.0 + start)  # half of the remaining progress bar
            family.trial(part_of(partial(progress, family.task), start, done[family.task]))
        progress("Planning", 1.0)
        return self._choice()

    # --- the choice

    def _choice(self) -> Choice:
        tried, subspaces = self.expansions.tried, self.subspaces.best
        if not tried:
            choice = self._without_candidates()
        else:
            is_approximate = self._problem.mode == "approximate"
            choice = self._best_approximate(tried) if is_approximate else self._best_certified(tried)
        if subspaces is not None:
            candidate = choice.chosen if isinstance(choice.chosen, Candidate) else None
            if candidate is None or regrets((candidate.costs, subspaces.cost)).argmin() == 1:
                choice = Choice(subspaces, subspaces.reason)
        found: list[Found] = [*tried] if subspaces is None else [*tried, subspaces]
        if self._problem.mode == "certified":
            found.append(None)
        return replace(choice, tried=tuple(self._noted(one, one is choice.chosen) for one in found), found=tuple(found))

    def _noted(self, found: Found, chosen: bool) -> TriedPlan:
        if found is None:
            return TriedPlan("the exact engine alone", 1.0, chosen=chosen, share_alone=1.0)
        if isinstance(found, Subspaces):
            return replace(found.tried, chosen=chosen)
        was_judged = bool(np.isfinite(found.costs.weighed).all())
        asked, alone = found.costs.shares_of(self.exact) if was_judged else (None, None)
        certified, work = found.certified if was_judged else None, found.work / WORK_PER_SECOND
        return TriedPlan(found.name, asked, certified, found.seconds_per_row, chosen, alone, work)

    def _best_certified(self, tried: list[Candidate]) -> Choice:
        n_tried, is_free, calls = len(tried), self.budget.is_free, self._limits.rows_per_call
        if not self.expansions.is_forced:
            tried = [c for c in tried if not c.costs.is_slow_alone(self.budget.least.alone, calls)] or tried
        best = chosen(tried, self.expansions.n_bytes)
        if self.expansions.is_forced:
            return Choice(best, f"{best.name}, as requested")
        least = min(zip(tried, regrets(c.costs for c in tried), strict=True), key=lambda pair: pair[1])[0]
        if not np.isfinite(least.costs.weighed).all():
            name = "the exact engine alone" if is_free else f"{best.name}, as far as requested"
            return Choice(None if is_free else best, f"{name}: {self._too_few}")
        if is_free and not least.costs.is_worthwhile(self.exact, calls):
            reason = (
                f"the exact engine alone: the best expansion tried, {least.name}, certifies {least.certified:.1%} and "
                f"would take {least.costs.shares_of(self.exact)[0]:.0%} of its time, {self._judgement}"
            )
            return Choice(None, reason)
        reason = (
            f"{best.name}{f', the fastest of {n_tried} plans tried' if n_tried > 1 else ''}: "
            f"certifies {best.certified:.1%} and should take {best.costs.words(self.exact, calls)}, {self._judgement}"
        )
        return Choice(best, reason)

    def _best_approximate(self, tried: list[Candidate]) -> Choice:
        target = self._limits.target_error
        if target is None:
            return Choice(tried[0], f"{tried[0].name}, as requested or by default")
        if self.expansions.sample.held_out.shape[0] == 0:
            raise UnsupportedModelError(f"target_error cannot be judged: {self._too_few}")
        good = [c for c in tried if c.error <= target]
        if not good:
            closest = min(tried, key=lambda c: c.error)
            raise UnsupportedModelError(
                f"no expansion tried has an error of at most {target:g}; the best, {closest.name}, has "
                f"{closest.error:.3g}, {self._judgement}"
            )
        best = min(good, key=self.expansions.n_bytes)
        return Choice(best, f"{best.name}, the smallest with at most {target:g} of labels wrong, {self._judgement}")

    def _without_candidates(self) -> Choice:
        limit, alone = self._limits.max_bytes, "the exact engine alone"
        if self.budget.was_too_little:
            rows = self._limits.rows_expected or ROWS_EXPECTED
            return Choice(None, f"{alone}: a search for expansions would take longer than {rows:,} rows do")
        if limit is None or not self.expansions.may_pay(1):
            return Choice(None, f"{alone}: an expansion would cost more even if it certified every row")
        if self._problem.mode == "certified" and self.budget.is_free:
            return Choice(None, f"{alone}: no expansion fits max_bytes = {limit:,}")
        raise UnsupportedModelError(f"no requested plan fits max_bytes = {limit:,}")

    @property
    def _judgement(self) -> str:
        sample = self.expansions.sample
        return f"measured on {sample.held_out.shape[0]:,} held-out {sample.name}"

    @property
    def _too_few(self) -> str:
        sample = self.expansions.sample
        rows = sample.name.partition(",")[0]
        return f"{sample.fit.shape[0]:,} {rows} are too few to judge expansions on, at least 4 are needed"


def chosen(tried: list[Candidate], n_bytes: Callable[[Candidate], int]) -> Candidate:
    """Choose the smallest of the candidates that are about as fast as the fastest one, or a better higher degree.

    A higher degree is better if it halves the number of uncertified rows.

    A candidate counts as about as fast only if it is also about as fast for single rows. A candidate whose average cost
    is far above the least is excluded, even if the weight of slow rows would favor it.
    """
    asked = ratios(c.costs.asked for c in tried)
    tried = [c for c, regret in zip(tried, asked, strict=True) if not regret > ABOUT * asked.min()]
    good = about_best(tried, SAME)
    quick = ABOUT * about_best(good, 1.0)[0].costs.alone
    best = min((c for c in good if np.all(c.costs.alone <= quick)), key=n_bytes)
    for candidate in about_best(tried, ABOUT):  # degrees are in ascending order
        is_higher = candidate.points is best.points and candidate.degree > best.degree
        if is_higher and 1.0 - candidate.certified < 0.5 * (1.0 - best.certified):
            best = candidate
    return best
