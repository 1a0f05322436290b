"""Intervals that numbers are moved into by whole turns, or refused beyond: splines that repeat, or end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.model.compensated import FloatArray
from approxsvm.model.constants import UNIT64
from approxsvm.model.steps.step import UP, Mapped, PerFeature

RULES = ("turns", "refuses")


@dataclass(frozen=True, eq=False)
class Interval(PerFeature):
    """x -> low + (x - low) % length ("turns"), or an error unless low <= x <= high ("refuses"), per feature."""

    kind = "interval"
    as_source = True
    neutral: ClassVar = {"low": 0.0, "second": np.inf}
    choice, choices = "rule", RULES

    rule: str
    low: FloatArray  # shape (n_features,)
    second: FloatArray  # shape (n_features,); the length, above 0, or high; infinite for features that stay as they are

    def __post_init__(self) -> None:
        self.check_numbers()
        if not (self.second >= (2.0**-1022 if self.rule == "turns" else -np.finfo(np.float64).max)).all():
            raise ModelFormatError(f"the end of an interval is {self.second.min()}")

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

    def may_refuse(self) -> npt.NDArray[np.bool_]:
        return (self.second < np.inf) & (self.rule == "refuses")

    def needs(self, feature: int, found: float) -> float:
        return float(self.low[feature] if found < self.low[feature] else self.second[feature])

    def preimage(self, y: FloatArray) -> FloatArray:
        """Numbers that are in the interval already."""
        return y

    def in_words(self) -> str:
        does = "repeats" if self.rule == "turns" else "refuses numbers beyond"
        return f"{does} the ranges of {int((self.second < np.inf).sum()):,} features"
