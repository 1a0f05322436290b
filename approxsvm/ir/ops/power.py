"""Power transforms: Box-Cox and Yeo-Johnson, feature by feature."""

from dataclasses import dataclass

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
    arrays = ("powers",)
    choice, choices = "method", METHODS

    method: str
    powers: FloatArray  # shape (n_features,)

    def __post_init__(self) -> None:
        self.check_numbers()
        if not (np.abs(self.powers) <= 1e300).all():
            raise ModelFormatError("a power of an input step is beyond 1e300")

    def may_refuse(self) -> npt.NDArray[np.bool_]:
        return np.full(self.n_features, self.method == "box-cox")

    def in_words(self) -> str:
        return f"takes powers ({self.method}), feature by feature ({self.n_features:,})"
