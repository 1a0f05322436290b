"""Intervals: values outside an interval are wrapped into it (periodic splines) or rejected (bounded splines)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.ops.op import PerFeature

RULES = ("turns", "refuses")


@dataclass(frozen=True, eq=False)
class Interval(PerFeature):
    """Per feature, the map x -> low + (x - low) % length ("turns"), or a check that low <= x <= high ("refuses")."""

    kind = "interval"
    as_source = True
    arrays = ("low", "second")
    choice, choices = "rule", RULES

    rule: str
    low: FloatArray  # shape (n_features,)
    second: FloatArray  # shape (n_features,); the length, which is positive, or the upper limit `high`

    def __post_init__(self) -> None:
        self.check_numbers()
        if not (self.second >= (2.0**-1022 if self.rule == "turns" else -1e300)).all():
            raise ModelFormatError(f"the end of an interval is {self.second.min()}")
        if not (self.second <= 1e300).all():
            raise ModelFormatError(f"the end of an interval is {self.second.max()}, but must be up to 1e300")

    def may_refuse(self) -> npt.NDArray[np.bool_]:
        return np.full(self.n_features, self.rule == "refuses")

    def in_words(self) -> str:
        does = "repeats" if self.rule == "turns" else "refuses numbers beyond"
        return f"{does} the ranges of {self.n_features:,} features"
