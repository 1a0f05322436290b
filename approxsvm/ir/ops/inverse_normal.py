"""Inverse of the normal distribution function, feature by feature."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from approxsvm.ir.ops.op import IntArray, Op, Stored, adjacent


@dataclass(frozen=True, eq=False)
class InverseNormal(Op):
    """Quantile map p -> y with P(Z < y) = p for a standard normal Z, after clipping p to [2^-24, 1 - 2^-24]."""

    kind = "inverse_normal"
    by_feature = True

    n_features: int

    @property
    def n_outputs(self) -> int:
        return self.n_features

    def select(self, features: IntArray) -> tuple[Op, IntArray]:
        return replace(self, n_features=len(features)), features

    @classmethod
    def together(cls, ops: Sequence[Any]) -> Sequence[Op]:
        """Combine ops that take adjacent features."""
        return [replace(run[0], n_features=run[-1].end - run[0].first) for run in adjacent(ops)]

    def stored(self) -> Stored:
        return 0, []

    @classmethod
    def read(cls, reader: Any, parts: int, first: int, n_features: int, n_outputs: int) -> "InverseNormal":
        return cls(n_features, first=first)

    def in_words(self) -> str:
        return f"takes quantiles of the normal distribution, feature by feature ({self.n_features:,})"
