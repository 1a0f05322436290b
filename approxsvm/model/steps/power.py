"""Power transforms: Box-Cox and Yeo-Johnson, feature by feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.model.compensated import FloatArray
from approxsvm.model.constants import UNIT64
from approxsvm.model.steps.step import LIBRARY, TINY, UP, Mapped, PerFeature

METHODS = ("box-cox", "yeo-johnson")


@dataclass(frozen=True, eq=False)
class Power(PerFeature):
    """Box-Cox: x -> (x^p - 1) / p, log(x) where p is 0. Yeo-Johnson: that of 1 + x, and below 0 -g(-x) with 2 - p."""

    kind = "power"
    neutral: ClassVar = {"powers": np.inf}
    choice, choices = "method", METHODS

    method: str
    powers: FloatArray  # shape (n_features,); infinite for features that stay as they are

    def __post_init__(self) -> None:
        self.check_numbers()
        if not (self.powers > -np.inf).all():
            raise ModelFormatError("a power of an input step is NaN or negative infinity")

    @property
    def hides_infinity(self) -> bool:
        return True

    @property
    def taken(self) -> npt.NDArray[np.bool_]:
        """Which features it changes, shape (n_features,)."""
        return self.powers < np.inf

    def run(self, x: FloatArray, errors: FloatArray | None) -> Mapped:
        """Change `x` in place, and `errors`.

        With a = |x| it is expm1(p L) / p, L = log1p(a) or log(a). L errs by 4 units of the library, p L by a rounding
        more (two of 2 - p), and expm1 by exp(p L) times that and by 4 units of its own. The derivative is monotone on
        the whole line, so that an error of x grows by at most the greater one at the two ends of its reach.
        """
        return self._run(x, errors, 0.0)

    def run_as_source(self, x: FloatArray, errors: FloatArray | None) -> Mapped:
        """As `run`, of a source that has 1 + x and x^p - 1 rounded."""
        return self._run(x, errors, 16.0 * UNIT64)

    def _run(self, x: FloatArray, errors: FloatArray | None, as_power: float) -> Mapped:
        taken = self.taken
        t = x[:, taken]
        mirrored = t < 0 if self.method == "yeo-johnson" else np.zeros(t.shape, np.bool_)
        p = np.where(mirrored, 2.0 - self.powers[taken], self.powers[taken])
        a = np.where(mirrored, -t, t)
        with np.errstate(all="ignore"):
            logarithm = np.log1p(a) if self.method == "yeo-johnson" else np.log(a)
            divisor = np.where(p == 0, 1.0, p)
            power = np.expm1(p * logarithm)
            y = np.where(p == 0, logarithm, power / divisor)
            x[:, taken] = np.where(mirrored, -y, y)
            if errors is None:
                return x, None
            of_power = (np.abs(power) + 1.0) * (np.abs(p * logarithm) * 1.01 * (LIBRARY + 2.0 * UNIT64) + as_power)
            own = (of_power + LIBRARY * np.abs(power) + TINY) / np.abs(divisor) + 2.0 * UNIT64 * np.abs(y)
            own = np.where(p == 0, LIBRARY * np.abs(logarithm) + as_power, own) + TINY
            came = errors[:, taken]
            slope = np.maximum(self._slope(t - came), self._slope(t + came))
            # What rounding the two ends changes in it; of powers beyond all sense nothing is known.
            p = np.abs(self.powers[taken])
            rounded = np.where(p < 2.0**40, (1.0 + 2.0**-30) * (1.0 + 2.0**-50 * (p + 1.0)), np.inf)
            carried = np.where(came > 0, came * slope * rounded, 0.0)
            errors[:, taken] = np.where(np.isnan(carried + own), np.inf, (carried + own) * UP)
        return x, errors

    def _slope(self, t: FloatArray) -> FloatArray:
        """The derivative, infinite where there is none."""
        p = self.powers[self.taken]
        if self.method == "box-cox":
            return np.where(t > 0, np.where(t > 0, t, 1.0) ** (p - 1.0), np.inf)
        return np.asarray((1.0 + np.abs(t)) ** np.where(t < 0, 1.0 - p, p - 1.0))

    def outside(self, x: FloatArray) -> npt.NDArray[np.bool_] | None:
        """Box-Cox takes numbers above 0."""
        return None if self.method == "yeo-johnson" else self.taken & (x <= 0)

    def may_refuse(self) -> npt.NDArray[np.bool_]:
        return self.taken & (self.method == "box-cox")

    def needs(self, feature: int, found: float) -> float:
        return 0.0

    def preimage(self, y: FloatArray) -> FloatArray:
        x = np.array(y)
        t = y[:, self.taken]
        mirrored = t < 0 if self.method == "yeo-johnson" else np.zeros(t.shape, np.bool_)
        p = np.where(mirrored, 2.0 - self.powers[self.taken], self.powers[self.taken])
        with np.errstate(all="ignore"):
            a = np.where(mirrored, -t, t)
            logarithm = np.where(p == 0, a, np.log1p(np.maximum(p * a, -0.999)) / np.where(p == 0, 1.0, p))
            found = np.expm1(logarithm) if self.method == "yeo-johnson" else np.exp(logarithm)
        x[:, self.taken] = np.where(mirrored, -found, found)
        return x

    def in_words(self) -> str:
        return f"takes powers ({self.method}), feature by feature ({int(self.taken.sum()):,})"
