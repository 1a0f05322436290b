"""Costs of plans under each profile for a given call size, in blocks or row by row, whichever is cheaper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np

from approxsvm.ir.kernel_model import FloatArray
from approxsvm.planning.costs.cost import CostModel, Size, rows_in_engine
from approxsvm.planning.costs.profiles import Constants, Profile
from approxsvm.planning.problem import Problem

# Maximum cost of a single row if `rows_per_call` is not given, as a multiple of the least cost of a single row.
MOST_ALONE: Final = 3.0
# Maximum predicted cost of a plan relative to the exact engine's cost; the exact engine replaces costlier plans.
WORTHWHILE: Final = 0.85
# Ratio up to which two costs count as equal.
SAME: Final = 1.05
# Additional weight of rows in the exact engine: the range of their fraction in which the weight applies, and the
# weight.
_TAIL: Final = (0.005, 0.02)
_TAIL_WEIGHT: Final = 9.0

C = TypeVar("C")


@dataclass(frozen=True, eq=False)
class Cost:
    """Average costs of a row under each profile."""

    asked: FloatArray  # cost in calls of the requested size
    alone: FloatArray  # cost in calls of one row
    tail: FloatArray | float = 0.0  # additional weight of the slowest rows

    @property
    def weighed(self) -> FloatArray:
        """Weighted cost by which plans are compared.

        Rows in the exact engine count tenfold in the range from 0.5% to 2% of all rows, because they determine the 99th
        percentile of the time per row. Above 2%, a plan cannot reduce this percentile.
        """
        return self.asked + self.tail

    def times(self, share: float) -> Cost:
        """Return this cost multiplied by a fraction of all rows."""
        return Cost(share * self.asked, share * self.alone, share * self.tail)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.asked + other.asked, self.alone + other.alone, self.tail + other.tail)

    def with_tail(self, share: float, exact: Cost) -> Cost:
        """Return the cost with the additional weight of rows in the exact engine, given their fraction."""
        weight = _TAIL_WEIGHT * max(min(share, _TAIL[1]) - _TAIL[0], 0.0)
        return Cost(self.asked, self.alone, weight * exact.asked)

    def is_slow_alone(self, least: FloatArray, rows_per_call: int | None) -> bool:
        """Return whether a single row costs far more than `least`, if `rows_per_call` is not given."""
        return rows_per_call is None and bool(np.any(self.alone > MOST_ALONE * least))

    def is_worthwhile(self, exact: Cost, rows_per_call: int | None) -> bool:
        """Return whether rows cost much less than in the exact engine: in batches, or on average over call sizes."""
        asked, alone = self.shares_of(exact)
        return min(asked, math.sqrt(asked * alone) if rows_per_call is None else math.inf) <= WORTHWHILE

    def shares_of(self, exact: Cost) -> tuple[float, float]:
        """Return mean ratios of this cost to another plan's cost, for calls of the requested size and of one row."""
        return _mean(self.asked / exact.asked), _mean(self.alone / exact.alone)

    def words(self, exact: Cost, rows_per_call: int | None) -> str:
        """Describe the cost relative to the exact engine's cost."""
        asked, alone = (f"{share:.1%}" for share in self.shares_of(exact))
        if rows_per_call == 1:
            return f"{alone} of the exact engine's time in calls of one row"
        calls = "batches" if rows_per_call is None else f"calls of {rows_per_call:,} rows"
        return f"{asked} of the exact engine's time in {calls}, {alone} in calls of one row"


def _mean(ratios: FloatArray) -> float:
    """Return the geometric mean of ratios."""
    return float(np.exp(np.mean(np.log(ratios)))) if np.size(ratios) > 1 else float(np.ravel(ratios)[0])


def ratios(costs: Iterable[FloatArray]) -> FloatArray:
    """Return the largest ratio, over all profiles, of each cost to the least cost."""
    table = np.array([np.atleast_1d(cost) for cost in costs])
    largest: FloatArray = (table / table.min(axis=0)).max(axis=1)
    return largest


def regrets(costs: Iterable[Cost]) -> FloatArray:
    """Return each plan's regret: the largest ratio, over all profiles, of its cost to the least cost of any plan.

    The weight of slow rows can increase the difference between two plans, but not the least cost in the denominator.
    """
    table = np.array([[np.atleast_1d(cost.weighed), np.atleast_1d(cost.asked)] for cost in costs])
    weighed, best = table[:, 0], table[:, 0].argmin(axis=0)
    profiles = np.arange(len(best))
    found: FloatArray = 1.0 + ((weighed - weighed[best, profiles]) / table[best, 1, profiles]).max(axis=1)
    return found


class Calls(NamedTuple):
    """Number of rows per call and per block."""

    n_rows: int | None  # number of rows per call; None for batches
    width: int  # number of rows that fill a block

    def cheaper(self, share: float, blocks: FloatArray, alone: FloatArray) -> FloatArray:
        """Return the cost of a row in a stage that gets a fraction of a call.

        A partly filled block costs as much as a full one.
        """
        if self.n_rows is None:
            return blocks
        return np.minimum(alone, blocks * max(1.0, self.width / max(share * self.n_rows, 1.0)))


@dataclass(frozen=True, eq=False)
class Costs(Generic[C]):
    """Cost models under each profile, for rows in blocks and for single rows."""

    models: tuple[tuple[C, C], ...]
    calls: Calls

    @classmethod
    def of(cls, make: Callable[[Constants], C], rows_per_call: int | None) -> Costs[C]:
        """Create the cost models under all profiles."""
        profiles = Profile.all()
        models = tuple((make(profile.blocks), make(profile.alone)) for profile in profiles)
        return cls(models, Calls(rows_per_call, profiles[0].blocks.width))

    def cost(self, of: Callable[[C], float], share: float = 1.0) -> Cost:
        """Return the cost of a row in a stage that gets a fraction of the rows in a call."""
        blocks, alone = np.array([[of(model) for model in pair] for pair in self.models]).T
        return Cost(self.calls.cheaper(share, blocks, alone), alone)


class ExpansionCosts:
    """Costs of rows in expansions of one model."""

    def __init__(self, problem: Problem) -> None:
        few_work = problem.exact.native.few_values_work if problem.mode == "certified" else 0.0
        n_rows = problem.limits.rows_per_call

        def make(constants: Constants) -> CostModel:
            return CostModel.of(problem.model, problem.products, constants, n_rows, few_work)

        self._costs = Costs.of(make, n_rows)

    @cached_property
    def exact(self) -> Cost:
        """Cost of a row in the exact engine."""
        cost = self._costs.cost(lambda model: model.exact)
        return cost.with_tail(1.0, cost)

    def expansion(self, degree: int, size: Size) -> Cost:
        """Return the cost of a row that the expansion certifies without refining."""
        return self._costs.cost(lambda model: model.expansion(degree, size), 1.0 / size.n_centers)

    def cascade(
        self, degree: int, size: Size, share: Mapping[str, float], lower: tuple[int, float] | None = None
    ) -> Cost:
        """Return the average cost of a row; `CostModel.refining` explains the parameters."""
        refined, engine = 1.0 - share["expansion"], rows_in_engine(share)
        refining = self._costs.cost(lambda model: model.refining(degree, size, share, lower), refined / size.n_centers)
        exact = self._costs.cost(lambda model: model.exact, engine)
        total = self.expansion(degree, size) + refining.times(refined) + exact.times(engine)
        return total.with_tail(engine, self.exact)
