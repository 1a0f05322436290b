"""Intervals that numbers are moved into by whole turns, or refused beyond: splines that repeat, or end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.model.compensated import FloatArray
from approxsvm.model.constants import UNIT64
from approxsvm.model.steps.step import UP, IntArray, Mapped, Step, Stored, check

RULES = ("turns", "refuses")


@dataclass(frozen=True, eq=False)
class Interval(Step):
    """x -> low + (x - low) % length ("turns"), or an error unless low <= x <= high ("refuses"), per feature.

    Parameters
    ----------
    rule : {"turns", "refuses"}
    low : ndarray of shape (n_features,), float64
    second : ndarray of shape (n_features,), float64
        The length, above 0, or high; infinite for features that stay as they are.

    Raises
    ------
    ModelFormatError
        The rule is none of these, low is not finite, or a length not positive.
    """

    kind = "interval"
    by_feature = True
    as_source = True

    rule: str
    low: FloatArray
    second: FloatArray

    def __post_init__(self) -> None:
        """Check once."""
        check("low", self.low, (self.low.size,))
        check("second", self.second, (self.low.size,), finite=False)
        if self.rule not in RULES:
            raise ModelFormatError(f"the rule of an input step is {self.rule!r}, expected one of {RULES}")
        if not (self.second >= (2.0**-1022 if self.rule == "turns" else -np.finfo(np.float64).max)).all():
            raise ModelFormatError(f"the end of an interval is {self.second.min()}")

    @property
    def n_features(self) -> int:
        """Number of features that go in."""
        return len(self.low)

    @property
    def n_outputs(self) -> int:
        """Number of features that come out."""
        return len(self.low)

    @property
    def group(self) -> Any:
        """Only those of one rule stand in one stage."""
        return type(self), self.rule

    def select(self, features: IntArray) -> tuple[Interval, IntArray]:
        """The stage of some of the features, by position."""
        return Interval(self.rule, self.low[features], self.second[features]), features

    def run(self, x: FloatArray, errors: FloatArray | None) -> Mapped:
        """Change `x` in place, and `errors`, by the roundings of two sums; next to a full turn nothing is known."""
        return self._run(x, errors, within=False)

    def run_on_source_rows(self, x: FloatArray, errors: FloatArray | None) -> Mapped:
        """As `run`, where the source's own number says which turn it is."""
        return self._run(x, errors, within=True)

    def _run(self, x: FloatArray, errors: FloatArray | None, within: bool) -> Mapped:
        if self.rule == "refuses":
            return x, errors
        taken = self.second < np.inf
        low, length = self.low[taken], self.second[taken]
        with np.errstate(all="ignore"):
            from_low = x[:, taken] - low
            rest = from_low % length
            y = x[:, taken] = low + rest
            if errors is not None:
                off = (errors[:, taken] + UNIT64 * (2.0 * np.abs(from_low) + length)) * UP
                known = within | ((rest > off) & (length - rest > off))
                errors[:, taken] = np.where(known, (off + UNIT64 * np.abs(y)) * UP, np.inf)
        return x, errors

    def outside(self, x: FloatArray) -> npt.NDArray[np.bool_] | None:
        """What "refuses" does not take."""
        if self.rule == "turns":
            return None
        outside: npt.NDArray[np.bool_] = (self.second < np.inf) & ((x < self.low) | (x > self.second))
        return outside

    def needs(self, feature: int, found: float) -> float:
        """The nearest number that it takes."""
        return float(self.low[feature] if found < self.low[feature] else self.second[feature])

    def preimage(self, y: FloatArray) -> FloatArray:
        """Numbers that are in the interval already."""
        return y

    @classmethod
    def side_by_side(cls, stages: Sequence[Any], widths: Sequence[int]) -> Interval:
        """Those of neighbouring features as one stage."""
        lows, seconds = [], []
        for stage, n in zip(stages, widths, strict=True):
            lows.append(np.zeros(n) if stage is None else stage.low)
            seconds.append(np.full(n, np.inf) if stage is None else stage.second)
        rule = next(stage.rule for stage in stages if stage is not None)
        return cls(rule, np.concatenate(lows), np.concatenate(seconds))

    def stored(self) -> Stored:
        """The rule, and two arrays."""
        return RULES.index(self.rule), [self.low, self.second]

    @classmethod
    def read(cls, reader: Any, parts: int, n_features: int, n_outputs: int) -> Interval:
        """What `stored` has written."""
        return cls(RULES[parts], reader.numbers(n_features), reader.numbers(n_features))

    def in_words(self) -> str:
        """The rule, and for how many features."""
        does = "repeats" if self.rule == "turns" else "refuses numbers beyond"
        return f"{does} the ranges of {int((self.second < np.inf).sum()):,} features"
