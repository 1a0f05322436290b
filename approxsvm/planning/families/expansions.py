"""Trials of expansions about increasing numbers of centers, and of higher degrees about the same centers.

A trial expands and certifies functions about some of the centers. Then the actual predictor predicts held-out rows,
which were not used to place the centers, and counts the rows whose results each stage determines. A row's cost is the
sum of the costs of the stages that process it (cost.py). Measured times do not influence the choice, so the same input
always yields the same plan; the times are only recorded for the report.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.artifact import writer
from approxsvm.artifact.writer import Expanded
from approxsvm.expansion.kernel_sums import energy_work, is_large, pass_work
from approxsvm.expansion.monomials import n_monomials
from approxsvm.expansion.router import route
from approxsvm.expansion.stack import sum_ahead, work_of
from approxsvm.expansion.taylor import MAX_FEATURES_DEGREE_2
from approxsvm.expansion.validity import row_norms
from approxsvm.ir.outputs import class_pairs
from approxsvm.ir.schema import MAX_DEGREE
from approxsvm.planning.budget import ACCEPTABLE_WORK, SHARE_OF_SAVINGS, Budget
from approxsvm.planning.building import NORM_WORK, build_expanded, part_of
from approxsvm.planning.costs.calls import SAME, WORTHWHILE, Cost, ExpansionCosts, regrets
from approxsvm.planning.costs.cost import Size
from approxsvm.planning.families.centers import PLACING_WORK, varying_features
from approxsvm.planning.families.placing import PROBE_ROWS, Placement, Points
from approxsvm.planning.problem import Problem
from approxsvm.planning.request import Effort
from approxsvm.runtime.evaluator import EXPANSION_STAGES, VALUES, Evaluator

# Numbers of centers to try at each level of effort.
EFFORTS: Final[dict[Effort, tuple[int, ...]]] = {
    "low": (1, 64),
    "normal": (1, 16, 64, 256),
    "high": (1, 16, 64, 256, 1024, 4096),
}
# Minimum and maximum number of centers to expand in a trial. A twentieth of all centers is also a minimum, and a
# quarter of all centers replaces the maximum if it is larger. Between these limits, the budget determines the number.
LEAST_PROBED_CENTERS: Final = 8
_PROBED_CENTERS: Final = 32
# Factor by which a trial of a single center may exceed the work allowed for a trial, because such a trial also builds
# the plan.
_FOR_BUILDING: Final = 4.0
# Factor by which building a large model with several centers may exceed the work that the plan may save.
_FOR_MORE_CENTERS: Final = 6.0
# Fixed work of an expansion, in the unit of `Work`.
_WORK_OF_ANY: Final = 4e7
_GOLDEN_RATIO: Final = (math.sqrt(5.0) - 1.0) / 2.0
# Minimum number of rows per center; with fewer, k-means would return the rows themselves.
_ROWS_PER_CENTER: Final = 4
# Maximum number of coefficients of an expansion about a center, and maximum total size of all expansions, in bytes.
MAX_COEFFICIENTS: Final = 1 << 16
MAX_EXPANSION_BYTES: Final = 64 << 20
# Factor up to which costs are treated as equal if more rows are certified or fewer centers need to be tried.
ABOUT: Final = 1.15
# Fraction of certified support vectors above which more centers hardly help, because support vectors are nearer to the
# decision boundary than other rows.
_ENOUGH_SUPPORT_VECTORS: Final = 0.9
# Degree 1 is not tried if the bound on degree 2 is at least _FAR_ABOVE times the absolute value for all rows but a
# fraction smaller than _HOPELESS_SHARE.
_FAR_ABOVE: Final = 8.0
_HOPELESS_SHARE: Final = 0.02
_UNKNOWN_COST: Final = Cost(np.array(math.inf), np.array(math.inf))


@dataclass(frozen=True, eq=False)
class Candidate:
    """Centers and a degree, with results on the held-out rows if the candidate has been tried."""

    degree: int
    points: Points
    costs: Cost = _UNKNOWN_COST
    certified: float = 0.0
    error: float = 1.0
    seconds_per_row: float | None = None
    expanded: Expanded | None = None  # the expansions, if the trial has expanded all centers
    share: Mapping[str, float] | None = None  # fraction of held-out rows, by the stage that determined the result
    n_probed: int = 0  # number of centers expanded in the trial
    work: float = 0.0  # work of the trial
    seconds: float = 0.0  # processor time of the expansions in the trial

    @property
    def name(self) -> str:
        """Description of the candidate for messages."""
        n, n_features = self.points.centers.shape
        n_varying = self.points.size.n_varying
        part = f" in {n_varying} of {n_features} features" if n_varying < n_features else ""
        return f"{'one center' if n == 1 else f'{n:,} centers'} of degree {self.degree}{part}"


def about_best(tried: list[Candidate], about: float) -> list[Candidate]:
    """Return the candidates with a regret of at most `about` times the least; all candidates if no costs are known."""
    found = regrets(c.costs for c in tried)
    return [c for c, regret in zip(tried, found, strict=True) if not regret > about * found.min()]


class Expansions:
    """Candidate expansions for a problem, and their trials on a sample of rows."""

    def __init__(self, problem: Problem, costs: ExpansionCosts, budget: Budget) -> None:
        self._problem, self._costs, self._budget = problem, costs, budget
        self._model, self._mode, self._limits = problem.model, problem.mode, problem.limits
        self._placement = Placement(problem)
        self.sample = self._placement.sample
        self.tried: list[Candidate] = []
        self._ahead: dict[int, Points] = {}  # centers of later plans whose sums have been computed in advance
        self._varying_for: dict[int, npt.NDArray[np.intp] | None] = {}

    # --- families

    @cached_property
    def numbers_of_centers(self) -> tuple[int, ...]:
        """Numbers of centers that may be tried."""
        asked = self._limits.n_centers
        if asked != "auto":
            return (asked,)
        most = self.sample.fit.shape[0] // _ROWS_PER_CENTER
        numbers = [n for n in EFFORTS[self._limits.effort] if n == 1 or n <= most]
        return tuple(n for n, finer in zip(numbers, [*numbers[1:], 0], strict=True) if not self._is_quicker(finer, n))

    def hopeful_cost(self, n_centers: int) -> Cost | None:
        """Return the lowest possible cost of a row with `n_centers` centers; None if no such plan is worth trying."""
        size = self._size(n_centers)
        if self._cannot_improve() or not all(self.may_pay(n) for n in self.numbers_of_centers if n <= n_centers):
            return None
        at_best = self._costs.expansion(self._degrees(size)[0], size)
        if self._mode == "approximate":
            return at_best
        lower = [c for c in self.tried if c.points.size.n_centers > 1][-2:]
        hopeful = self._hopeful_cost(self._degrees(size)[0], size, lower)
        return at_best if self._budget.may_win(hopeful, 1.0 / SAME) and self._is_worth_building(size, hopeful) else None

    def work(self, n_centers: int) -> float:
        """Return the work of placing `n_centers` centers, and of trying the first degree about some of them."""
        if n_centers in self._ahead:
            return 0.0
        size = self._size(n_centers)
        placing = PLACING_WORK * self._model.n_features * n_centers**2 if n_centers > 1 else 0.0
        return self._work_of_trial(size, self._degrees(size)[0], placing)

    def try_centers(self, n_centers: int, progress: Callable[[float], None]) -> None:
        """Try the first degree about `n_centers` centers; about a single center, also try quick higher degrees."""
        if n_centers == 1:
            further = [n for n in self.numbers_of_centers if n > 1]
            self._sum_ahead(further, part_of(progress, 0.0, 0.5))
            progress = part_of(progress, 0.5, 1.0)
        points = self._ahead.get(n_centers) or self._points(n_centers)
        if self.tried and len(points.centers) <= max(len(c.points.centers) for c in self.tried):
            return  # there are too few distinct rows for more centers
        degrees = self._degrees(points.size)
        waits = len(points.centers) > 1 or (len(degrees) > 1 and self._takes_long(points.size, degrees[1]))
        self.tried += self._try_degrees(points, degrees[:1] if waits else degrees, progress, [])

    def hopeful_degree(self) -> Cost | None:
        """Return the lowest possible cost of a row with a higher degree; None if no higher degree is left to try."""
        waiting = self._waiting
        if not waiting:
            return None
        degrees = self._degrees(waiting[0].points.size)
        return self._hopeful_cost(degrees[1], waiting[0].points.size, waiting[:1]) if len(degrees) > 1 else None

    def try_higher_degrees(self, progress: Callable[[float], None]) -> None:
        """Try higher degrees, and continue with fewer centers as long as the best cost decreases."""
        waiting = self._waiting
        for k, candidate in enumerate(waiting):
            before, degrees = self._budget.best, self._degrees(candidate.points.size)[1:]
            part = part_of(progress, k / len(waiting), (k + 1) / len(waiting))
            self.tried += self._try_degrees(candidate.points, degrees, part, [candidate])
            if k > 0 and self._budget.best is before:
                break

    @property
    def _waiting(self) -> list[Candidate]:
        """Candidates with untried degrees, in descending order of their number of centers.

        The list begins with the fewest centers whose cost is close to the best. Fewer centers follow, because
        increasing the degree by one often has the same effect as four times as many centers.
        """
        if not self.tried:
            return []
        best = min(about_best(self.tried, ABOUT), key=lambda c: c.points.size.n_centers)
        waiting = sorted(filter(self._has_waiting_degrees, self.tried), key=lambda c: -c.points.size.n_centers)
        return waiting[waiting.index(best) :] if best in waiting else []

    def _has_waiting_degrees(self, candidate: Candidate) -> bool:
        """Return whether trials of higher degrees about these centers were deferred."""
        size, degrees = candidate.points.size, self._degrees(candidate.points.size)
        return size.n_centers > 1 or (
            candidate.degree == degrees[0] and len(degrees) > 1 and self._takes_long(size, degrees[1])
        )

    def _takes_long(self, size: Size, degree: int) -> bool:
        """Return whether trying a degree about a single center takes long; False if work is not limited."""
        work = self._work(size, degree, 1) - self._work(size, degree, 0)
        return self._is_rationed and work > SHARE_OF_SAVINGS * ACCEPTABLE_WORK

    def _try_degrees(
        self, points: Points, degrees: tuple[int, ...], progress: Callable[[float], None], lower: list[Candidate]
    ) -> list[Candidate]:
        """Try the given degrees about centers; `lower` lists candidates already tried about the same centers."""
        candidates = [Candidate(degree, points) for degree in degrees]
        limit = self._limits.max_bytes
        fitting = [c for c in candidates if limit is None or self.n_bytes(c) <= limit]
        if self.is_forced and self._limits.target_error is None:
            return fitting
        tried: list[Candidate] = []
        for k, candidate in enumerate(fitting):
            before = [*lower, *tried]
            hopeful = self._hopeful_cost(candidate.degree, points.size, before)
            if not self._may_win(candidate, hopeful, before) or not self._is_worth_trying(candidate, hopeful, before):
                continue
            part = part_of(progress, k / len(fitting), (k + 1) / len(fitting))
            last = tried[-1] if tried else None
            # Expand as many centers as for the next lower degree, so that the comparison is fair
            n_probed = before[-1].n_probed if before else self._n_probed(candidate, hopeful)
            found = self._tried(replace(candidate, n_probed=n_probed), last, part)
            tried.append(found)
            if found.share is not None:
                self._budget.record(found.costs, found.work, self._work(points.size, found.degree, None))
            costs = [c.costs for c in before[-1:] + tried[-1:]]
            if self._budget.is_free and lower and regrets(costs).argmin() == 0:
                break  # a higher degree would cost more than it would save
        return tried

    # --- hopes

    def _hopeful_cost(self, degree: int, size: Size, lower: list[Candidate]) -> Cost:
        """Return the cost of a row if a plan leaves as few rows undecided as earlier trials suggest at best.

        `lower` lists plans already tried with lower degrees about the same centers, or with fewer centers.
        """
        last = lower[-1] if lower else None
        if last is None or last.share is None:
            return self._costs.expansion(degree, size)
        left = hopeful_rest(degree, lower)
        share = {stage: part if stage in EXPANSION_STAGES else left * part for stage, part in last.share.items()}
        if size.n_centers > last.points.size.n_centers:  # more rows are certified without refining
            share["expansion"] += 1.0 - sum(share.values())
        below = None if last.degree <= 2 or last.degree == degree else (last.degree, last.certified)
        return self._costs.cascade(degree, size, share, below)

    def _may_win(self, candidate: Candidate, hopeful: Cost, lower: list[Candidate]) -> bool:
        """Return whether a candidate of cost `hopeful` may win; one that halves the undecided rows may cost more."""
        if not self._budget.is_free or not lower or lower[-1].share is None:
            return True
        slack = ABOUT if hopeful_rest(candidate.degree, lower) < 0.5 else 1.0
        return self._budget.may_win(hopeful, slack)

    def _cannot_improve(self) -> bool:
        """Return whether more centers cannot improve the results, regardless of their cost."""
        tried = self.tried
        if not tried:
            return False
        if self._mode == "approximate":
            return any(c.error <= (self._limits.target_error or 0.0) for c in tried)
        return self.sample.are_support_vectors and max(c.certified for c in tried) >= _ENOUGH_SUPPORT_VECTORS

    def may_pay(self, n_centers: int) -> bool:
        """Return whether expansions that certified every row would be worthwhile; True if expansions are requested."""
        if self._mode == "approximate" or not self._budget.is_free:
            return True
        size = self._size(n_centers)
        degrees = self._degrees(size)
        costs = (self._costs.expansion(degree, size).shares_of(self._to_beat)[0] for degree in degrees)
        return min(costs) <= WORTHWHILE and not (degrees == (1,) and self._is_hopelessly_curved)

    @cached_property
    def _to_beat(self) -> Cost:
        """Least cost before the first trial of expansions: of the exact engine, or of subspaces if tried first."""
        return self._budget.least

    @cached_property
    def _is_hopelessly_curved(self) -> bool:
        """True if a fast estimate shows that the part of degree 2 about a single center far exceeds nearly all values.

        N_2^2 is a double sum over the support vectors (certificate.py). If support vectors have little in common, as in
        wide data, the diagonal terms make up nearly the whole sum.
        """
        model, rows = self._model, self.sample.held_out
        if self._mode != "certified" or rows.shape[0] == 0:
            return False
        decision = 0  # index of the function for the two largest classes, or 0
        if model.has_pairs:
            largest = set(np.argsort(model.n_support)[-2:].tolist())
            decision = next(k for k, pair in enumerate(class_pairs(len(model.labels))) if set(pair) == largest)
        half_theta_sq = 2.0 * model.gamma * row_norms(model.support_vectors, self._problem.frame.center) ** 2
        weight = model.coefficients(decision) * np.exp(-0.5 * half_theta_sq)
        n_2 = math.sqrt(0.5 * float(np.square(weight * half_theta_sq).sum()))
        s = 2.0 * model.gamma * row_norms(rows, self._problem.frame.center) ** 2
        least = n_2 * np.exp(-0.5 * s) * s / math.sqrt(2.0) / _FAR_ABOVE
        values = np.asarray(self._problem.exact.evaluate(rows, VALUES, values="settled"))
        of_decision = values.reshape(rows.shape[0], -1)[:, decision]
        return float(np.mean(np.abs(of_decision) > least)) < _HOPELESS_SHARE

    # --- work

    @property
    def _is_rationed(self) -> bool:
        """True if the work of a trial is limited to the work that the plan could save."""
        return self._budget.is_free and self._mode == "certified"

    def _n_probed(self, candidate: Candidate, hopeful: Cost) -> int:
        """Return the number of centers to expand in a trial, for half of the work that the candidate may save."""
        size, degree = candidate.points.size, candidate.degree
        if self._is_ahead(candidate.points):
            return _least_probed(size)
        shared = self._work(size, degree, 0)
        n_probed = (0.5 * self._budget.worth(hopeful) - shared) / (self._work(size, degree, 1) - shared)
        most = min(max(_PROBED_CENTERS, size.n_centers // 4), size.n_centers)
        return int(min(max(n_probed, _least_probed(size)), most))

    def _is_worth_trying(self, candidate: Candidate, hopeful: Cost, lower: list[Candidate]) -> bool:
        """Return whether a trial about placed centers takes no more work than the plan may save."""
        size, degree = candidate.points.size, candidate.degree
        known = -self._work(size, degree, 0) if lower or self._is_ahead(candidate.points) else 0.0
        return self._budget.allows(self._work_of_trial(size, degree, known), hopeful)

    def _work_of_trial(self, size: Size, degree: int, other: float) -> float:
        work = self._work(size, degree, _least_probed(size)) + other
        return work / (_FOR_BUILDING if size.n_centers == 1 else 1.0)

    def _is_worth_building(self, size: Size, hopeful: Cost) -> bool:
        """Return whether building a large model's plan takes at most a few times the work that the plan may save."""
        work = self._work(size, self._degrees(size)[0], None)
        most = _FOR_MORE_CENTERS * max(self._budget.saved(hopeful), ACCEPTABLE_WORK)
        return not self._has_long_passes or work <= most

    def _work(self, size: Size, degree: int, n_probed: int | None) -> float:
        """Estimate the work of expanding every decision function about `n_probed` centers, or about all centers."""
        model, n_forms = self._model, self._n_forms
        n = size.n_centers if n_probed is None else n_probed
        is_sliced = size.n_varying < model.n_features
        work = work_of(
            self._n_sv_of_form,
            size.n_varying,
            size.n_centers,
            degree,
            is_sliced=is_sliced,
            most_work=NORM_WORK[self._limits.effort],
        )
        return n_forms * (work.shared + n * (work.of_center + _WORK_OF_ANY))

    @cached_property
    def _n_sv_of_form(self) -> float:
        """Root mean square over decision functions of the number of support vectors; work grows with its square."""
        model = self._model
        if model.has_pairs:
            counts = np.asarray(model.n_support, np.float64)
            return math.sqrt(np.mean([(counts[i] + counts[j]) ** 2 for i, j in class_pairs(len(counts))]))
        return np.count_nonzero(model.dual_coef) / model.n_decisions if model.has_several else float(model.n_sv)

    def _sum_ahead(self, numbers: list[int], progress: Callable[[float], None]) -> None:
        """Place the centers of later trials, and compute their sums in the first plan's pass over the kernel matrix.

        A small model's sums are not computed in advance, because its passes take little time. The first number of
        centers is always included; further numbers are included if all sums together take at most half the time of
        another pass.
        """
        if not self._has_long_passes:
            return
        model = self._model
        some: list[npt.NDArray[np.float32]] = []
        n_most = 0.5 * pass_work(model.n_sv, model.n_features) / energy_work(model.n_sv)
        for n_centers in numbers:
            if self._varying(n_centers) is not None or not self.may_pay(n_centers):
                break
            points = self._points(n_centers)
            candidate = Candidate(self._degrees(points.size)[0], points)
            hopeful = self._costs.expansion(candidate.degree, points.size)
            if len(points.centers) == 1 or not self._is_worth_trying(candidate, hopeful, []):
                break
            probed = self._probe(points, _least_probed(points.size))[1].centers
            if some and sum(map(len, some)) + len(probed) > n_most:
                break
            self._ahead[n_centers] = points
            some.append(probed)
        if some:
            sum_ahead(model, np.concatenate(some), self._problem.known_sums, progress)

    @property
    def _has_long_passes(self) -> bool:
        """True if work is limited and passes over the kernel matrix of a single function take long."""
        return self._is_rationed and self._model.n_decisions == 1 and is_large(self._model.n_sv)

    def _is_ahead(self, points: Points) -> bool:
        return any(points is placed for placed in self._ahead.values())

    @property
    def is_forced(self) -> bool:
        """True if the degree and the number of centers are given."""
        return self._limits.degree != "auto" and self._limits.n_centers != "auto"

    # --- sizes

    def _is_quicker(self, finer: int, n_centers: int) -> bool:
        """Return whether trials with `finer` centers are quicker than with `n_centers`, because fewer features vary."""
        if not 1 < n_centers < finer:
            return False
        few, many = self._size(n_centers), self._size(finer)
        work = [self._work(size, self._degrees(size)[0], _least_probed(size)) for size in (few, many)]
        return many.n_varying < few.n_varying and work[1] <= work[0]

    def _size(self, n_centers: int) -> Size:
        """Return the size of an expansion about `n_centers` centers, before they are placed."""
        varying = self._varying(n_centers)
        return Size(n_centers, self._model.n_features if varying is None else len(varying))

    def _varying(self, n_centers: int) -> npt.NDArray[np.intp] | None:
        """Find the columns that vary on slices; None for a single center, or without an exact engine for other rows."""
        if n_centers == 1 or self._mode != "certified":
            return None
        if n_centers not in self._varying_for:
            self._varying_for[n_centers] = varying_features(self.sample.fit, n_centers)
        return self._varying_for[n_centers]

    def _degrees(self, size: Size) -> tuple[int, ...]:
        asked = self._limits.degree
        if asked != "auto":
            return (asked,)
        most = MAX_EXPANSION_BYTES // (4 * size.n_centers * self._n_forms)
        if size.n_varying > MAX_FEATURES_DEGREE_2 or size.coefficients(2) > most:
            return (1,)
        if (
            self._mode != "certified"
            or self._model.has_pairs
            or (self._limits.effort == "low" and self._budget.is_free)
        ):
            return (2,)
        most = min(most, MAX_COEFFICIENTS)
        return (2, *(r for r in range(3, MAX_DEGREE + 1) if size.coefficients(r) <= most))

    def _points(self, n_centers: int) -> Points:
        return self._placement.points(n_centers, self._varying(n_centers))

    def n_bytes(self, candidate: Candidate) -> int:
        """Estimate the size of the artifact in bytes."""
        points, size = candidate.points, candidate.points.size
        d, n = self._model.n_features, size.n_centers
        coefficients = (size.coefficients(candidate.degree) + 40) * self._n_forms
        if self._mode == "certified" and candidate.degree == 2 and self._model.n_decisions == 1:
            coefficients += n_monomials(size.n_varying, 2)
        listed = sum(map(len, points.router.members)) + 16 * len(points.router.members) if points.router else 0
        exact = 0 if self._mode == "approximate" else self._problem.exact.artifact.n_bytes
        return 4 * n * (coefficients + d) + 4 * (d + 2) * listed + exact + 1024

    # --- trials

    def _tried(self, candidate: Candidate, before: Candidate | None, progress: Callable[[float], None]) -> Candidate:
        """Expand about some of the candidate's centers, and predict the rows near them with the actual predictor.

        `before` is the candidate with the same centers and the next lower degree; higher degrees are evaluated only for
        rows that `before` does not certify.
        """
        rows, points = self._probe(candidate.points, candidate.n_probed)
        if rows.shape[0] == 0:
            return candidate
        n_centers, known = len(candidate.points.centers), self._problem.known_sums
        work_before, start = known.work, time.process_time()
        expanded = build_expanded(
            self._problem,
            points,
            candidate.degree,
            progress,
            norm_work=NORM_WORK[self._limits.effort],
            of_centers=n_centers,
        )
        whole = expanded if points is candidate.points else None
        seconds = time.process_time() - start
        candidate = replace(candidate, expanded=whole, work=known.work - work_before, seconds=seconds)
        artifact = writer.build(
            self._model,
            self._mode,
            self._problem.frame,
            expanded,
            tolerance=self._problem.tolerance,
            exact=self._problem.exact_sections,
        )
        evaluator = Evaluator(artifact)
        values_count = math.isfinite(self._problem.tolerance) and artifact.outputs.label_rule == "votes"
        n_rows, start = rows.shape[0], time.perf_counter()
        answers = evaluator.evaluate(rows) if values_count else evaluator.predict(rows)
        candidate = replace(candidate, seconds_per_row=(time.perf_counter() - start) / n_rows)
        if self._mode == "approximate":
            return replace(candidate, error=self._error(answers, rows))
        # One additional row counts as undecided, because a few certified rows do not prove that nearly all are.
        share = {stage: count / (n_rows + 1) for stage, count in evaluator.rows_per_stage.items()}
        share["float32"] += 1 / (n_rows + 1)
        lower = None if before is None or before.degree <= 2 else (before.degree, before.certified)
        costs = self._costs.cascade(candidate.degree, candidate.points.size, share, lower)
        certified = sum(share[stage] for stage in EXPANSION_STAGES)
        return replace(candidate, costs=costs, certified=float(certified), share=share)

    @property
    def _n_forms(self) -> int:
        return len(self._model.labels) - 1 if self._problem.majority_only else self._model.n_decisions

    def _error(self, answers: npt.NDArray[Any], rows: Any) -> float:
        """Return the fraction of predictions with a wrong label, or with an error above 1/1000 of the values' range."""
        exact = self._problem.exact.predict(rows)
        if self._model.task != "regression":
            return float(np.mean(answers != exact))
        return float(np.mean(np.abs(answers - exact) > 1e-3 * np.ptp(exact, axis=0)))

    def _probe(self, points: Points, most: int) -> tuple[Any, Points]:
        """Choose at most `most` centers; return the held-out rows near them, and the centers with their router."""
        rows, centers = self.sample.held_out, points.centers
        if points.router is None:
            return rows[_spread(np.arange(rows.shape[0]))], points
        nearest = route(points.router, centers, rows)
        # The chosen centers are evenly spaced in the order of their rows' distances, because bounds depend most on
        # these distances. Every smaller selection is a subset of the larger ones.
        present = np.unique(nearest)
        ordered = present[np.argsort(points.typical_s[present], kind="stable")]
        probed = ordered[np.argsort(np.argsort((np.arange(len(ordered)) * _GOLDEN_RATIO + 0.5) % 1.0))][:most]
        if len(probed) == 1 and len(centers) > 1:  # an artifact with one center uses the frame's center
            probed = np.append(probed, (probed[0] + 1) % len(centers))
        chosen = _spread(np.flatnonzero(np.isin(nearest, probed)))
        everything = np.arange(len(probed), dtype=np.uint32)
        router = replace(points.router, groups=centers[probed[:1]], members=(everything,)) if len(probed) > 1 else None
        majority_classes = None if points.majority_classes is None else points.majority_classes[probed]
        varying = points.varying if len(probed) > 1 else None  # rows of a single center may be on other slices
        return rows[chosen], Points(centers[probed], router, points.typical_s[probed], majority_classes, varying)


def _least_probed(size: Size) -> int:
    """Return the minimum number of centers to expand in a trial."""
    return min(max(LEAST_PROBED_CENTERS, size.n_centers // 20), size.n_centers)


def _spread(rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Choose rows for a trial, evenly spread over the data, because the data may change with time."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), PROBE_ROWS)).astype(np.intp)]


def hopeful_rest(degree: int, lower: list[Candidate]) -> float:
    """Return the fraction of the last plan's undecided rows that another plan leaves undecided in the best case.

    If the previous step left the fraction f of the rows that it received undecided, the next step is assumed, in the
    best case, to leave the fraction f^2. The first degree counts as a step from no plan at all. The effect of the first
    number of centers is unknown, so the next number may leave no rows. A lower degree about more centers, used if
    higher degrees do not fit, is not a step.
    """
    last, more_degrees = lower[-1], max(degree - lower[-1].degree, 0)
    before = lower[-2] if len(lower) > 1 else None
    if before is None or (more_degrees and before.degree >= last.degree):  # there was no step between degrees
        return (1.0 - last.certified) ** (2.0 * more_degrees) if more_degrees else 0.0
    ratio = (1.0 - last.certified) / max(1.0 - before.certified, 1e-9)
    steps = more_degrees / (last.degree - before.degree) if more_degrees else 1.0
    return float(min(ratio, 1.0) ** (2.0 * steps))
