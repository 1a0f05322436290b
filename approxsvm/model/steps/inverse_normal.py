"""The inverse of the normal distribution function, feature by feature."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.model.compensated import FloatArray
from approxsvm.model.constants import INVERSE_NORMAL, LEAST_INVERSE_NORMAL, UNIT64
from approxsvm.model.steps.step import TINY, UP, Mapped, PerFeature, Stored

# Half the width of the middle range, and what is subtracted in the tails.
MIDDLE = 0.425
TAIL = 1.6
# Of y, relatively; and a little less than sqrt(2 / pi).
OWN_ERROR = 64.0 * UNIT64
STEEPEST = 0.797


@dataclass(frozen=True, eq=False)
class InverseNormal(PerFeature):
    """p -> y with P(Z < y) = p, of p limited to `LEAST_INVERSE_NORMAL` and 1 less it."""

    kind = "inverse_normal"
    neutral: ClassVar = {"taken": False}

    taken: npt.NDArray[np.bool_]  # shape (n_features,); the others stay as they are

    def __post_init__(self) -> None:
        self.check_numbers()
        if self.taken.dtype != np.bool_:
            raise ModelFormatError(f"the features that an input step takes are {self.taken.dtype}, expected bool")

    def run(self, x: FloatArray, errors: FloatArray | None) -> Mapped:
        """Change `x` in place, and `errors`.

        With t the smaller of p and 1 - p, which is exact where p is not below 1/2, |y| is a quotient of polynomials of
        degree 7 (cpp/include/approxsvm/artifact/stages/inverse_normal.hpp). Their terms have one sign, so that either
        errs by 15 roundings; the fit by less than one. In the middle q = 1/2 - t errs by a rounding, 0.425^2 - q^2 by
        one, which the quotient, whose logarithm has a slope below 3, makes three of; with division and product less
        than 40. In the tails s = sqrt(-log t) errs by 5.5 roundings, with 4 units of the library, and s - 1.6 by 2
        more; as dy / ds is 2 s t over the density at y, and that at least t y (Mills), they make (5.5 s + 2) 2 s / y^2
        of y, at most 17 (at t = 0.075), with all others less than 50. 64 are counted.

        The slope is one over the density, which is a concave function of p, symmetric, 0 at 0 and 1 / sqrt(2 pi) at
        1/2: at least t sqrt(2 / pi), and t y. So within an error e of p it is at most 1 over that at t - e.
        """
        taken = self.taken
        p = x[:, taken]
        with np.errstate(all="ignore"):
            t = np.minimum(p, 1.0 - p)
            limited = np.maximum(t, LEAST_INVERSE_NORMAL)
            q = 0.5 - limited
            middle = q * _ratio(INVERSE_NORMAL[0], MIDDLE**2 - q * q)
            y = np.where(q <= MIDDLE, middle, _ratio(INVERSE_NORMAL[1], np.sqrt(-np.log(limited)) - TAIL))
            x[:, taken] = np.where(p < 0.5, -y, y)
            if errors is not None:
                came = errors[:, taken]
                gap = np.maximum(t - came, LEAST_INVERSE_NORMAL)
                carried = np.where(came > 0, came / (gap * np.maximum(y, STEEPEST)), 0.0)
                errors[:, taken] = (carried + OWN_ERROR * y) * UP + TINY
        return x, errors

    def preimage(self, y: FloatArray) -> FloatArray:
        x = np.array(y)
        x[:, self.taken] = [[0.5 * math.erfc(-v / math.sqrt(2.0)) for v in row] for row in y[:, self.taken].tolist()]
        return x

    def stored(self) -> Stored:
        return 0, [self.taken.astype(np.uint32)]

    @classmethod
    def read(cls, reader: Any, parts: int, n_features: int, n_outputs: int) -> InverseNormal:
        return cls(reader.array("<u4", n_features) != 0)

    def in_words(self) -> str:
        return f"takes quantiles of the normal distribution, feature by feature ({int(self.taken.sum()):,})"


def _ratio(coefs: FloatArray, r: FloatArray) -> FloatArray:
    above, below = (np.full_like(r, numbers[-1]) for numbers in coefs)
    for k in range(coefs.shape[1] - 2, -1, -1):
        above, below = above * r + coefs[0, k], below * r + coefs[1, k]
    return np.asarray(above / below)
