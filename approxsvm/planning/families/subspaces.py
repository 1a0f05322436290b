"""Cost-based search for the numbers of subspace coordinates in kernel sums that precede the exact engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations, compress, pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.subspaces import subspace_sections
from approxsvm.artifact.views import Artifact
from approxsvm.artifact.writer import Expanded, Frame, build, input_scale_for
from approxsvm.errors import InputError
from approxsvm.expansion.gram import InOrder
from approxsvm.expansion.kernel_sums import mapped_in_order
from approxsvm.expansion.stack import expand_and_certify
from approxsvm.expansion.subspace import GroupInSubspace, Lists, SubspaceGroup, SubspaceStage
from approxsvm.ir.compilation import TriedPlan
from approxsvm.ir.kernel_model import FloatArray, KernelModel
from approxsvm.ir.plan import Plan
from approxsvm.planning.budget import Budget
from approxsvm.planning.costs.calls import SAME, WORTHWHILE, Cost, Costs, ratios
from approxsvm.planning.costs.cost import SubspaceCosts
from approxsvm.planning.costs.profiles import Constants
from approxsvm.planning.problem import Problem
from approxsvm.runtime.evaluator import BOUNDS, VALUES, Evaluator
from approxsvm.system.threads import all_threads

# Numbers of coordinates that may be tried, up to half the number of features.
_NUMBERS: Final = (16, 32, 64, 128, 256, 512)
# Number of coordinates that is most often useful. If work is limited, the numbers that differ from it by the largest
# factor are dropped first.
_MOST_OFTEN: Final = 90
# Degrees of expansions that may replace kernel sums.
_DEGREES: Final = (2, 3, 4)
_MAX_FEATURES: Final = 4_096
# Minimum number of features; with fewer, expansions in all features are usually better and quicker to find.
_MANY_FEATURES: Final = 64
# Maximum number of entries in the support vectors of a group, and maximum work for all stages.
_MAX_NUMBERS: Final = 1 << 25
_MOST_WORK: Final = {"low": 8e10, "normal": 2e12, "high": 2e13}
# Maximum number of rows for evaluating stages.
_MAX_ROWS: Final = 2_000
# With several classes, stages must reduce the cost of a row to at most this fraction of the exact engine's cost,
# because blocks are less full than predicted.
_WORTHWHILE_OF_CLASSES: Final = 0.7
# If stages may reduce the cost of a row to _MUCH_LESS times the exact engine's cost or less, the work of a trial may be
# _MORE_WORK times as much as otherwise.
_MUCH_LESS: Final = 0.2
_MORE_WORK: Final = 2.0
# No stages are tried if another plan costs less than this fraction of the exact engine's cost.
_GOOD_ENOUGH: Final = 0.1
# With more than _MANY_CLASSES classes, stages may exceed the size of the exact model by at most _MORE_BYTES bytes,
# because stages store vectors again for each pair.
_MANY_CLASSES: Final = 64
_MORE_BYTES: Final = 1 << 20
# Training keeps the training rows away from the decision boundary, so values for new rows are assumed to be smaller.
# Each key is a factor by which values are multiplied, and maps to the factor's probability.
_SHRUNK: Final = {1.0: 0.6, 0.75: 0.2, 0.5: 0.1, 0.25: 0.1}
# Maximum number of stages in a plan for one decision function, and for several classes.
_MOST_STAGES: Final = 3
_MOST_STAGES_OF_CLASSES: Final = 2
# Maximum number of classes for which stages are tried.
_MOST_JUDGED: Final = 3


@dataclass(frozen=True, eq=False)
class Subspaces:
    """Stages in a few coordinates, and the cost of rows with them."""

    sections: dict[str, bytes]  # sections of the artifact
    coordinates: tuple[int, ...]  # number of coordinates in each stage
    degree: int  # degree of the expansion that replaces the first sums, or 0
    basis: int  # number of coordinates in the basis
    cost: Cost  # average cost of a row, including the exact engine after the stages
    speculated_cost: FloatArray  # cost without speculating on the class
    reason: str  # explanation of the choice
    tried: TriedPlan  # figures for the choice

    @property
    def n_bytes(self) -> int:
        """Approximate size of the stages in an artifact, in bytes."""
        return sum(map(len, self.sections.values())) + len(self.reason) + 512


def goes_by_many_features(problem: Problem) -> bool:
    """Return whether rows have many features and the exact engine processes all of them, not only nonzeros."""
    model, rows = problem.model, problem.typical_rows
    if rows.shape[0] == 0 or model.n_features < _MANY_FEATURES:
        return False
    return problem.products.n_terms == model.n_features


def may_have_subspaces(problem: Problem) -> bool:
    """Return whether subspace stages can determine the model's results: values, or labels by votes."""
    return problem.mode == "certified" and (problem.model.n_decisions == 1 or problem.majority_only)


class SubspaceTrials:
    """Trials, on sample rows, of kernel sums over fewer and fewer coordinates, for one function or for votes."""

    def __init__(self, problem: Problem, budget: Budget) -> None:
        self._problem, self._model, self._budget = problem, problem.model, budget
        self._numbers: list[int] = []
        self._most = _WORTHWHILE_OF_CLASSES if self._model.n_decisions > 1 else WORTHWHILE
        self.best: Subspaces | None = None

    def hopeful_cost(self) -> Cost | None:
        """Return the lowest possible cost of a row; None if stages are impossible or cannot reduce the cost."""
        if not (self._budget.is_free and may_have_subspaces(self._problem) and self._has_rows):
            return None
        if self._budget.least.shares_of(self._costs.exact)[0] < _GOOD_ENOUGH:
            return None
        d = self._model.n_features
        self._numbers = [k for k in _NUMBERS if 2 * k <= d and self._may_pay(k)]
        if not (self._numbers and _have_sums(self._lists)):
            return None
        return self._at_best if max(len(group.members) for group in self._lists) * d <= _MAX_NUMBERS else None

    def work(self) -> float:
        """Return the work of the smallest trial; if stages may save very much, only part of this work counts."""
        return self._counted_work(self._numbers[:1])

    def run(self, progress: Callable[[float], None]) -> None:
        """Try as many numbers of coordinates as the budget allows; keep stages that reduce the cost of rows enough."""
        numbers, problem = self._numbers, self._problem
        most = min(self._budget.worth(self._at_best), _MOST_WORK[problem.limits.effort])
        while numbers and self._counted_work(numbers) > most:
            numbers.remove(max(numbers, key=lambda k: abs(math.log(k / _MOST_OFTEN))))
        if numbers:
            with (
                ThreadPoolExecutor(all_threads()) as pool,
                np.errstate(over="ignore", under="ignore", invalid="ignore"),
            ):
                trial = _Trial(problem, self._lists, self._costs, numbers[-1], partial(mapped_in_order, pool))
                found = self._found(trial, progress)
            if found is not None and found.n_bytes <= _most_bytes(problem):
                self._budget.record(found.cost, 0.0, 0.0)
                self.best = found

    def _found(self, trial: _Trial, progress: Callable[[float], None]) -> Subspaces | None:
        numbers, exact = self._numbers, self._costs.exact
        if not trial.draw_rows():
            return None
        for n_done, k in enumerate(reversed(numbers), 1):
            if not trial.run(k):
                return None
            progress(0.5 * n_done / len(numbers))
            # Sums over fewer coordinates determine the results of fewer rows.
            left = 1.0 - trial.decided_by_sums(k)
            if n_done == 1 and self._at_best.shares_of(exact)[0] + left > self._most:
                return None
            if not trial.pays(k):
                break
        best, cost = trial.best()
        is_slow = cost.is_slow_alone(self._budget.least.alone, self._problem.limits.rows_per_call)
        if is_slow or cost.shares_of(exact)[0] > self._most or not self._budget.may_win(cost, 1.0 / SAME):
            return None
        return trial.built(best, cost, lambda share: progress(0.5 + 0.5 * share))

    @cached_property
    def _costs(self) -> _Costs:
        return _Costs(self._problem)

    @cached_property
    def _lists(self) -> list[Lists]:
        return Lists.of(self._model)

    @property
    def _has_rows(self) -> bool:
        model = self._model
        return model.gamma > 0.0 and 0 < model.n_features <= _MAX_FEATURES and self._problem.typical_rows.shape[0] > 0

    def _may_pay(self, k: int) -> bool:
        cost = self._costs.at_best(k)
        pays = cost.shares_of(self._costs.exact)[0] <= self._most and self._budget.may_win(cost, 1.0 / SAME)
        return pays and _least_bytes(self._model, k) <= _most_bytes(self._problem)

    @property
    def _at_best(self) -> Cost:
        return min(map(self._costs.at_best, self._numbers), key=lambda cost: cost.shares_of(self._costs.exact)[0])

    def _counted_work(self, numbers: list[int]) -> float:
        saves_much = self._at_best.shares_of(self._costs.exact)[0] <= _MUCH_LESS
        return _work(self._lists, self._model.n_features, numbers) / (_MORE_WORK if saves_much else 1.0)


def _have_sums(lists: list[Lists]) -> bool:
    """Return whether every group has support vectors, and all coefficients in each list have the same sign."""
    return all(group.have_one_sign() and len(group.members) for group in lists)


def _most_bytes(problem: Problem) -> float:
    """Return the maximum size of the stages in bytes."""
    limit, exact = problem.limits.max_bytes, problem.exact.artifact.n_bytes
    most = math.inf if limit is None else limit - exact
    return min(most, exact + _MORE_BYTES) if len(problem.model.labels) > _MANY_CLASSES else most


def _least_bytes(model: KernelModel, n_coordinates: int) -> int:
    """Return the size in bytes of a stage's vectors, including vectors of other classes in each group's pairs."""
    listed = np.count_nonzero(model.dual_coef) if model.has_pairs else 0
    return 4 * n_coordinates * (model.n_sv + int(listed))


def build_subspaces(problem: Problem, plan: Plan, progress: Callable[[float], None]) -> dict[str, bytes]:
    """Build the sections of a given plan; raise InputError if its stages are impossible for the model."""
    model, lists = problem.model, Lists.of(problem.model)
    wrong = InputError(f"plan: subspaces is {list(plan.subspaces)}, but this model has no such sums: search again")
    is_possible = model.gamma > 0.0 and model.n_sv > 0 and problem.typical_rows.shape[0] > 0
    if not (is_possible and _have_sums(lists)):
        raise wrong
    with ThreadPoolExecutor(all_threads()) as pool, np.errstate(over="ignore", under="ignore", invalid="ignore"):
        trial = _Trial(problem, lists, _Costs(problem), plan.basis, partial(mapped_in_order, pool))
        groups = trial.groups(plan.subspaces, progress)
        expansion = None
        if plan.degree and groups is not None:
            trial.draw_rows()
            expansion = trial.expansion(plan.subspaces[0], plan.degree)
    if groups is None:
        raise wrong
    return subspace_sections(groups, expansion)


class _Costs:
    """Costs of rows in kernel sums over a few coordinates, and in the exact engine after them."""

    def __init__(self, problem: Problem) -> None:
        def make(constants: Constants) -> SubspaceCosts:
            return SubspaceCosts.of(problem.model, problem.products, constants, problem.exact.native.few_values_work)

        self._costs = Costs.of(make, problem.limits.rows_per_call)
        some = self._costs.models[0][0]
        self.n_listed, self.misses = some.n_listed, some.misses

    @cached_property
    def exact(self) -> Cost:
        """Cost of a row if only the exact engine is used."""
        return self._costs.cost(lambda costs: costs.exact)

    @property
    def fixed(self) -> Cost:
        """Fixed cost of a row."""
        return self._costs.cost(lambda costs: costs.fixed)

    def at_best(self, n_coordinates: int) -> Cost:
        """Return the average cost of a row if the first stage determined all results."""
        return self._costs.cost(lambda costs: costs.at_best(n_coordinates))

    def of_rows(self, share: float, step: _Step | None, frequency: FloatArray) -> Cost:
        """Return the cost of a row in a step that gets a fraction of the rows; None means the exact engine.

        `frequency` contains the fraction of each group in these rows.
        """
        return self._costs.cost(lambda costs: float(_of_step(costs, step) @ frequency), share / len(frequency))


def _of_step(costs: SubspaceCosts, step: _Step | None) -> FloatArray:
    if step is None:
        return costs.behind
    return costs.of_expansion(*step) if step.degree else costs.of_op(step.n_coordinates)


class _Trial:
    """Trial of stages for some groups on their rows."""

    def __init__(
        self,
        problem: Problem,
        lists: list[Lists],  # lists of all groups
        costs: _Costs,
        most: int,  # maximum number of coordinates in any stage
        in_order: InOrder,  # maps a function over arguments in parallel
    ) -> None:
        self._problem, self._model, self._lists, self._costs = problem, problem.model, lists, costs
        self._most, self._in_order = most, in_order
        self._input_scale = input_scale_for(self._model.gamma)
        # A few classes, with few to many support vectors, represent all classes.
        order, n = np.argsort(costs.n_listed, kind="stable"), min(_MOST_JUDGED, len(lists))
        self._judged = [int(order[(2 * k + 1) * len(lists) // (2 * n)]) for k in range(n)]
        self._stages: dict[int, dict[int, SubspaceStage]] = {}
        self._expansions: dict[_Step, Artifact] = {}
        self._certified: dict[_Step, npt.NDArray[np.bool_]] = {}

    def draw_rows(self) -> bool:
        """Draw rows of the evaluated groups; return whether there are any rows."""
        rows, are_support_vectors = self._problem.typical_rows, self._problem.rows is None
        random = np.random.default_rng(self._problem.limits.random_state)
        most = min(_MAX_ROWS, max(_MAX_NUMBERS // self._model.n_features, 1))
        rows = rows[np.sort(random.permutation(rows.shape[0])[:most])]
        classes = self._problem.winners(rows) if self._model.n_decisions > 1 else np.zeros(rows.shape[0], np.intp)
        in_groups = np.isin(classes, self._judged)
        rows, self._classes = rows[in_groups], classes[in_groups]
        shares, weights = ([1.0], [1.0]) if are_support_vectors else (list(_SHRUNK), list(_SHRUNK.values()))
        self._shrunk = random.choice(shares, size=rows.shape[0], p=weights)
        self._rows = (
            np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray(), np.float64)
            - self._problem.frame.center
        )
        return bool(in_groups.any())

    @cached_property
    def _groups(self) -> dict[int, GroupInSubspace]:
        return {w: self._group(w, self._most) for w in self._judged}

    def _group(self, w: int, n_coordinates: int) -> GroupInSubspace:
        return GroupInSubspace(
            self._model,
            self._lists[w],
            self._problem.frame.center,
            n_coordinates,
            self._problem.limits.random_state,
        )

    def run(self, k: int) -> bool:
        """Try sums and expansions in k coordinates; return whether all groups have a stage."""
        stages = {w: self._stage(group, k) for w, group in self._groups.items()}
        self._stages[k] = {w: stage for w, stage in stages.items() if stage is not None}
        if len(self._stages[k]) < len(stages):
            return False
        self._certified[_Step(k, 0)] = self._decided(k)
        for degree in self._degrees(k) if self.pays(k) else ():
            step, projected = _Step(k, degree), self._groups[0].projected(self._rows, k)
            expanded = self.expansion(k, degree)
            assert expanded is not None  # the group has a stage of sums
            self._expansions[step] = expanded
            self._certified[step] = self._decided(k, _values(expanded, projected))
            if float(self._certified[step].mean()) >= self.decided_by_sums(k) / SAME:
                break  # other rows are undecided because of the residual
        return True

    def decided_by_sums(self, k: int) -> float:
        """Return the fraction of rows whose labels or values are determined by the sums over k coordinates."""
        return float(self._certified[_Step(k, 0)].mean())

    def pays(self, k: int) -> bool:
        """Return whether sums over k coordinates cost less than evaluating the decided rows in the exact engine."""
        return self.decided_by_sums(k) > self._costs.at_best(k).shares_of(self._costs.exact)[0]

    def best(self) -> tuple[tuple[_Step, ...], Cost]:
        """Return, among the steps of about the lowest cost, those that are fastest for a single row, and their cost."""
        # With several classes, the few rows of a class that a stage leaves undecided do not fill blocks.
        most = _MOST_STAGES if self._model.n_decisions == 1 else _MOST_STAGES_OF_CLASSES
        tried = [
            chain for n in range(1, most + 1) for chain in combinations(sorted(self._certified), n) if _is_chain(chain)
        ]
        costs, requested = {chain: self._cost(chain) for chain in tried}, self._problem.limits.rows_per_call
        quickest = np.min([cost.alone for cost in costs.values()], axis=0)
        good = [chain for chain in tried if not costs[chain].is_slow_alone(quickest, requested)]
        asked, alone = (ratios(getattr(costs[chain], name) for chain in good) for name in ("asked", "alone"))
        best = good[int(np.where(asked <= SAME * asked.min(), alone, np.inf).argmin())]
        return best, costs[best]

    def built(self, steps: tuple[_Step, ...], cost: Cost, progress: Callable[[float], None]) -> Subspaces | None:
        """Build the stages of the given steps for all groups."""
        groups = self.groups([step.n_coordinates for step in steps], progress)
        if groups is None:
            return None
        decided = float(np.logical_or.reduce([self._certified[step] for step in steps]).mean())
        name = f"{', then '.join(step.name for step in steps)} of {self._model.n_features} coordinates"
        reason = (
            f"{name}, then the exact engine: should settle {decided:.1%} before it and "
            f"take {cost.words(self._costs.exact, self._problem.limits.rows_per_call)}"
        )
        asked, alone = cost.shares_of(self._costs.exact)
        tried, speculated = TriedPlan(name, asked, decided, share_alone=alone), cost.asked - self._costs.fixed.asked
        sections = subspace_sections(groups, self._expansions.get(steps[0]))
        coordinates = tuple(step.n_coordinates for step in steps)
        return Subspaces(sections, coordinates, steps[0].degree, self._most, cost, speculated, reason, tried)

    def groups(self, coordinates: Sequence[int], progress: Callable[[float], None]) -> list[SubspaceGroup] | None:
        """Build stages with the given numbers of coordinates for all groups; None if a stage is impossible."""
        built, n_groups = [], len(self._lists)
        for w in range(n_groups):
            group = self._groups.get(w) or self._group(w, coordinates[-1])
            candidates = [self._stages.get(k, {}).get(w) or self._stage(group, k) for k in coordinates]
            stages = [stage for stage in candidates if stage is not None]
            if len(stages) < len(coordinates):
                return None
            built.append(group.group(stages, self._input_scale))
            progress((w + 1) / n_groups)
        return built

    def expansion(self, k: int, degree: int) -> Artifact | None:
        """Expand the only function in k coordinates; None if the stage is impossible."""
        group = self._groups[0]
        stage = self._stages.get(k, {}).get(0) or self._stage(group, k)
        if stage is None:
            return None
        projected = group.projected(self._rows, k)
        typical_s = 2.0 * self._model.gamma * float(np.einsum("ij,ij->i", projected, projected).mean())
        return _expanded(group, stage, degree, self._model.gamma, typical_s)

    def _stage(self, group: GroupInSubspace, k: int) -> SubspaceStage | None:
        return group.stage(k, self._input_scale, self._in_order)

    def _degrees(self, k: int) -> list[int]:
        """Return the degrees for which an expansion of the only function could be cheaper than its sums."""
        if self._model.n_decisions > 1:
            return []
        costs, one = self._costs, np.ones(1)
        sums = costs.of_rows(1.0, _Step(k, 0), one)
        cheap = (costs.of_rows(1.0, _Step(k, degree), one).shares_of(sums)[0] <= WORTHWHILE for degree in _DEGREES)
        return list(compress(_DEGREES, cheap))

    def _decided(self, k: int, expanded: tuple[FloatArray, FloatArray] | None = None) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that can be predicted from sums over k coordinates, or from an expansion, alone.

        The rows' values are reduced as `_SHRUNK` assumes.
        """
        result = np.ones(len(self._rows), bool)
        for w, group in self._groups.items():
            in_group = self._classes == w
            for f, (sums, bounds) in enumerate(group.judged(self._stages[k][w], self._rows[in_group], expanded)):
                decided = bounds <= self._problem.tolerance
                if self._model.task != "regression":
                    values = sums + self._model.intercept[group.lists.decisions[f]]
                    decided &= self._shrunk[in_group] * np.abs(values) > bounds
                result[in_group] &= decided
        return result

    def _cost(self, steps: tuple[_Step, ...]) -> Cost:
        """Return the average cost of a row with the given steps."""
        undecided, total = np.ones(len(self._classes), bool), self._costs.exact.times(0.0)
        for step in (*steps, None):
            share = float(undecided.mean())
            if share == 0.0:
                break
            counts = np.bincount(self._classes[undecided], minlength=len(self._lists))
            total += self._costs.of_rows(share, step, counts / counts.sum()).times(share)
            if step is not None:
                undecided &= ~self._certified[step]
        total = self._costs.fixed + total.times(1.0 + self._costs.misses)
        return total.with_tail(float(undecided.mean()), self._costs.exact)


class _Step(NamedTuple):
    """Kernel sums over some coordinates, or an expansion of these sums if the degree is not 0."""

    n_coordinates: int
    degree: int

    @property
    def name(self) -> str:
        """Description of the step for messages."""
        what = f"an expansion of degree {self.degree}" if self.degree else "kernel sums"
        return f"{what} in {self.n_coordinates}"


def _is_chain(steps: tuple[_Step, ...]) -> bool:
    """Return whether the coordinates increase and no step after the first is an expansion."""
    ascends = all(a.n_coordinates < b.n_coordinates for a, b in pairwise(steps))
    return ascends and not any(step.degree for step in steps[1:])


def _expanded(group: GroupInSubspace, stage: SubspaceStage, degree: int, gamma: float, typical_s: float) -> Artifact:
    """Expand the function on a subspace about the center."""
    function = group.on_subspace(stage, gamma)
    origin = np.zeros(stage.n_coordinates, np.float32)
    result = expand_and_certify(function, origin[np.newaxis], degree, typical_s=np.array([typical_s]), directions=False)
    expanded = Expanded(origin[np.newaxis], degree, (result[0],), (result[1],))
    return build(function, "approximate", Frame.of(function, "origin"), expanded)


def _values(expansion: Artifact, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Evaluate an expansion at rows; return values and bounds."""
    values, bounds = Evaluator(expansion, n_jobs=-1).evaluate(np.ascontiguousarray(rows), VALUES | BOUNDS)
    return values.ravel(), bounds.ravel()


def _work(lists: list[Lists], d: int, numbers: list[int]) -> float:
    """Estimate the work of computing bases and stages."""
    matrix_work = sum(
        float(len(group.own) + len(other)) ** 2 * 2.0 * min(d, len(group.own) + len(other)) + 2.0 * d**2 * 50.0
        for group in lists
        for other in group.others
    )
    return 8.0 * matrix_work * (len(numbers) + 1)
