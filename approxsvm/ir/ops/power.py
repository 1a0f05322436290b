"""Power transforms: Box-Cox and Yeo-Johnson, feature by feature."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.ops.op import PerFeature

METHODS = ("box-cox", "yeo-johnson")


@dataclass(frozen=True, eq=False)
class Power(PerFeature):
    """Box-Cox, g(x; p): (x^p - 1) / p, or log(x) if p = 0. Yeo-Johnson: g(1 + x; p), or -g(1 - x; 2 - p) if x < 0."""

    kind = "power"
    hides_infinity = True
    neutral: ClassVar = {"powers": np.inf}
    choice, choices = "method", METHODS

    method: str
    powers: FloatArray  # shape (n_features,); infinite for unchanged features

    def __post_init__(self) -> None:
        self.check_numbers()
        if not ((np.abs(self.powers) <= 1e300) | (self.powers == np.inf)).all():
            raise ModelFormatError("a power of an input step is NaN, negative infinity or beyond 1e300")

    @property
    def taken(self) -> npt.NDArray[np.bool_]:
        """Mask of the features that are transformed, shape (n_features,)."""
        return self.powers < np.inf

    def may_refuse(self) -> npt.NDArray[np.bool_]:
        return self.taken & (self.method == "box-cox")

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
