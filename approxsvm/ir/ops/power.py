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

    def in_words(self) -> str:
        return f"takes powers ({self.method}), feature by feature ({int(self.taken.sum()):,})"
