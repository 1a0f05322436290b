"""Logarithms: x -> log(x + offset), feature by feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.model import compensated
from approxsvm.model.compensated import FloatArray
from approxsvm.model.constants import UNIT64
from approxsvm.model.steps.step import LIBRARY, UP, Mapped, PerFeature


@dataclass(frozen=True, eq=False)
class Logarithm(PerFeature):
    """x -> log(x + offset), per feature."""

    kind = "logarithm"
    neutral: ClassVar = {"offset": np.inf}

    offset: FloatArray  # shape (n_features,); infinite for features that stay as they are

    def __post_init__(self) -> None:
        self.check_numbers()
        if not (self.offset > -np.inf).all():
            raise ModelFormatError("an offset of an input step is NaN or negative infinity")

    @classmethod
    def of(cls, n_features: int, offset: float) -> Logarithm:
        """Of all features, each of them plus `offset`, a finite number."""
        if not np.isfinite(offset):
            raise ModelFormatError(f"the offset of a logarithm is {offset}, but must be finite")
        return cls(np.full(n_features, float(offset)))

    @property
    def taken(self) -> npt.NDArray[np.bool_]:
        """Of which features it is the logarithm, shape (n_features,)."""
        return self.offset < np.inf

    def run(self, x: FloatArray, errors: FloatArray | None) -> Mapped:
        """Change `x` in place, and `errors`, of the same shape, by what they become; the latter may be left out.

        What is lost where x + offset = s + lost is rounded comes back as log(s) + lost / s, off by the square of the
        second, so that 1 + x does not cost a small x its digits. Around t an error e becomes e / (t - e) at most.
        """
        return self._run(x, errors, 0.0)

    def _run(self, x: FloatArray, errors: FloatArray | None, lost_at_most: float) -> Mapped:
        taken = self.taken
        shifted, lost = compensated.two_sum(x[:, taken], self.offset[taken])
        with np.errstate(divide="ignore"):
            logarithms, correction = np.log(shifted), np.where(np.isfinite(shifted), lost / shifted, 0.0)
        x[:, taken] = logarithms + correction
        if errors is not None:
            off = errors[:, taken] + lost_at_most * shifted
            nearest = shifted * (1.0 - 2.0**-50) - off
            carried = np.where(nearest > 0, off / nearest, np.inf)
            own = LIBRARY * (np.abs(logarithms) + np.abs(correction)) + 2.0**-104
            errors[:, taken] = (carried + own) * UP
        return x, errors

    def run_as_source(self, x: FloatArray, errors: FloatArray | None) -> Mapped:
        """As `run`, with the errors of a source that rounds x + offset."""
        return self._run(x, errors, UNIT64)

    def outside(self, x: FloatArray) -> npt.NDArray[np.bool_]:
        """Which numbers of `x` have no logarithm, of its shape."""
        outside: npt.NDArray[np.bool_] = self.taken & (x <= -self.offset)
        return outside

    def may_refuse(self) -> npt.NDArray[np.bool_]:
        return self.taken

    def needs(self, feature: int, found: float) -> float:
        return float(0.0 - self.offset[feature])

    def preimage(self, y: FloatArray) -> FloatArray:
        x = np.array(y)
        with np.errstate(over="ignore"):
            x[:, self.taken] = np.exp(y[:, self.taken]) - self.offset[self.taken]
        return x

    def in_words(self) -> str:
        return f"takes logarithms, feature by feature ({int(self.taken.sum()):,})"
