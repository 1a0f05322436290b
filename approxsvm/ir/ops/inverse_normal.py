"""The inverse of the normal distribution function, feature by feature."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.ir.ops.op import PerFeature, Stored


@dataclass(frozen=True, eq=False)
class InverseNormal(PerFeature):
    """Quantile map p -> y with P(Z < y) = p for standard normal Z, after clipping p to [2^-24, 1 - 2^-24]."""

    kind = "inverse_normal"
    neutral: ClassVar = {"taken": False}

    taken: npt.NDArray[np.bool_]  # shape (n_features,); other features stay unchanged

    def __post_init__(self) -> None:
        self.check_numbers()
        if self.taken.dtype != np.bool_:
            raise ModelFormatError(f"the features that an input step takes are {self.taken.dtype}, expected bool")

    def stored(self) -> Stored:
        return 0, [self.taken.astype(np.uint32)]

    @classmethod
    def read(cls, reader: Any, parts: int, n_features: int, n_outputs: int) -> "InverseNormal":
        return cls(reader.array("<u4", n_features) != 0)

    def in_words(self) -> str:
        return f"takes quantiles of the normal distribution, feature by feature ({int(self.taken.sum()):,})"
