"""Logarithms: x -> log(x + offset), feature by feature."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.ops.op import PerFeature


@dataclass(frozen=True, eq=False)
class Logarithm(PerFeature):
    """Logarithm x -> log(x + offset), per feature."""

    kind = "logarithm"
    neutral: ClassVar = {"offset": np.inf}

    offset: FloatArray  # shape (n_features,); infinite for unchanged features

    def __post_init__(self) -> None:
        self.check_numbers()
        if not ((np.abs(self.offset) <= 1e300) | (self.offset == np.inf)).all():
            raise ModelFormatError("an offset of an input step is NaN, negative infinity or beyond 1e300")

    @classmethod
    def of(cls, n_features: int, offset: float) -> "Logarithm":
        """Build an op that takes log(x + offset) of every feature; `offset` must be finite."""
        if not np.isfinite(offset):
            raise ModelFormatError(f"the offset of a logarithm is {offset}, but must be finite")
        return cls(np.full(n_features, float(offset)))

    @property
    def taken(self) -> npt.NDArray[np.bool_]:
        """Mask of the features whose logarithm is taken, shape (n_features,)."""
        return self.offset < np.inf

    def may_refuse(self) -> npt.NDArray[np.bool_]:
        return self.taken

    def in_words(self) -> str:
        return f"takes logarithms, feature by feature ({int(self.taken.sum()):,})"
