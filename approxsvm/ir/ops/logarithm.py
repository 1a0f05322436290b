"""Logarithms: x -> log(x + offset), feature by feature."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.ops.op import PerFeature


@dataclass(frozen=True, eq=False)
class Logarithm(PerFeature):
    """Logarithm x -> log(x + offset) of each feature."""

    kind = "logarithm"
    arrays = ("offset",)

    offset: FloatArray  # shape (n_features,)

    def __post_init__(self) -> None:
        self.check_numbers()
        if not (np.abs(self.offset) <= 1e300).all():
            raise ModelFormatError("an offset of an input step is beyond 1e300")

    @classmethod
    def of(cls, n_features: int, offset: float) -> "Logarithm":
        """Build an op that computes log(x + offset) for every feature; `offset` must be finite."""
        if not np.isfinite(offset):
            raise ModelFormatError(f"the offset of a logarithm is {offset}, but must be finite")
        return cls(np.full(n_features, float(offset)))

    def may_refuse(self) -> npt.NDArray[np.bool_]:
        return np.ones(self.n_features, np.bool_)

    def in_words(self) -> str:
        return f"takes logarithms, feature by feature ({self.n_features:,})"
