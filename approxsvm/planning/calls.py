"""Costs of rows in calls of a given size: stage by stage, in blocks or row by row, whichever is cheaper."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from approxsvm.expansion.stack import WORK_PER_SECOND
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.planning.cost import Constants, CostModel, Size, rows_in_engine
from approxsvm.planning.request import Effort

# Maximum cost of a single row without rows_per_call, as a multiple of the cost of the best plan.
MOST_ALONE: Final = 3.0
# A plan must be predicted to cost at most this share of the exact engine; otherwise the exact engine is the plan.
WORTHWHILE: Final = 0.85
# Costs within this factor count as equal.
SAME: Final = 1.05
# Shares of rows between which rows in the exact engine weigh more, and by how much.
_TAIL: Final = (0.005, 0.02)
_TAIL_WEIGHT: Final = 9.0


# Number of rows that a model is expected to answer, by default.
ROWS_EXPECTED: Final = 1_000_000
# Processors that a search is assumed to share, so that plans do not depend on the machine; one thread answers rows.
_THREADS: Final = 2.0
# Factors of the work that a search is worth, at each level of effort.
EFFORT: Final[dict[Effort, float]] = {"low": 0.2, "normal": 1.0, "high": 10.0}


def work_of_cost(rows_expected: int | None, constants: Constants) -> float:
    """Return the work that takes as long as a unit of cost in all expected rows."""
    return (rows_expected or ROWS_EXPECTED) * constants.seconds * WORK_PER_SECOND * _THREADS


class Cost(NamedTuple):
    """Average costs of a row."""

    asked: float  # in calls of the requested size
    alone: float  # in calls of one row
    tail: float = 0.0  # additional weight of the slowest rows

    @property
    def weighed(self) -> float:
        """Cost by which plans are compared.

        Rows in the exact engine count ten times while they are 0.5 to 2 % of all, as they decide the 99th percentile of
        one row's time. Beyond, it is out of reach.
        """
        return self.asked + self.tail

    def is_slow_alone(self, least: float, rows_per_call: int | None) -> bool:
        """Return whether rows_per_call is not given and a single row costs far more than by another plan."""
        return rows_per_call is None and self.alone > MOST_ALONE * least

    def is_worthwhile(self, exact: Cost, rows_per_call: int | None) -> bool:
        """Return whether rows cost much less than in the exact engine, in batches or on average of these and alone."""
        asked, alone = self.asked / exact.asked, self.alone / exact.alone
        return min(asked, math.sqrt(asked * alone) if rows_per_call is None else math.inf) <= WORTHWHILE

    def share_of(self, exact: Cost, rows_per_call: int | None) -> str:
        """Describe the cost relative to the exact engine's."""
        alone = f"{self.alone / exact.alone:.1%}"
        if rows_per_call == 1:
            return f"{alone} of the exact engine's time in calls of one row"
        calls = "batches" if rows_per_call is None else f"calls of {rows_per_call:,} rows"
        return f"{self.asked / exact.asked:.1%} of the exact engine's time in {calls}, {alone} in calls of one row"


def tail_of(share: float, cost: float) -> float:
    """Return the additional weight of rows in the exact engine, given their share and the engine's cost."""
    return _TAIL_WEIGHT * max(min(share, _TAIL[1]) - _TAIL[0], 0.0) * cost


class Calls(NamedTuple):
    """Size of calls."""

    n_rows: int | None  # rows per call; None for batches
    width: int  # rows that fill a block

    def cheaper(self, share: float, blocks: float, alone: float) -> float:
        """Return the cost of a row in a stage that gets this share of a call; a partly filled block costs as much."""
        if self.n_rows is None:
            return blocks
        return min(alone, blocks * max(1.0, self.width / max(share * self.n_rows, 1.0)))

    def exact(self, blocks: float, alone: float) -> Cost:
        """Return the cost of a row if the exact engine computes all of them."""
        asked = self.cheaper(1.0, blocks, alone)
        return Cost(asked, alone, tail_of(1.0, asked))


@dataclass(frozen=True, eq=False)
class CallCosts:
    """Costs of a row of one model."""

    # In blocks of rows, and row by row
    blocks: CostModel
    alone: CostModel
    calls: Calls

    @classmethod
    def of(cls, model: KernelModel, rows: Any, n_rows: int | None, few_work: float = 0.0) -> CallCosts:
        """Build from rows like these, an ndarray or csr_array (n_rows, n_features); `few_work` as in CostModel."""
        blocks = CostModel.of(model, rows, few_work=few_work)
        if n_rows is not None:
            blocks = replace(blocks, call_rows=n_rows)
        alone = CostModel.of(model, rows, Constants.alone(), few_work=few_work)
        return cls(blocks, alone, Calls(n_rows, blocks.constants.width))

    @property
    def exact(self) -> Cost:
        """Cost in the exact engine."""
        return self.calls.exact(self.blocks.exact, self.alone.exact)

    def expansion(self, degree: int, size: Size) -> Cost:
        """Return the cost of a row that the expansion certifies at once."""
        blocks, alone = (costs.expansion(degree, size) for costs in (self.blocks, self.alone))
        return Cost(self.calls.cheaper(1.0 / size.n_centers, blocks, alone), alone)

    def cascade(
        self, degree: int, size: Size, share: Mapping[str, float], lower: tuple[int, float] | None = None
    ) -> Cost:
        """Return the average cost of a row. Parameters as in `CostModel.refining`."""
        at_once, refined, engine = self.expansion(degree, size), 1.0 - share["expansion"], rows_in_engine(share)
        blocks, alone = (costs.refining(degree, size, share, lower) for costs in (self.blocks, self.alone))
        asked = at_once.asked + refined * self.calls.cheaper(refined / size.n_centers, blocks, alone)
        asked += engine * self.calls.cheaper(engine, self.blocks.exact, self.alone.exact)
        alone = at_once.alone + refined * alone + engine * self.alone.exact
        return Cost(asked, alone, tail_of(engine, self.exact.asked))
