"""Base class of linear models on feature maps; their functions share features and have no support vectors.

Each subclass adds its parameters, its definition, and a bound on the definition's rounding error.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.frames.dtypes import SAME, RowDtypes
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.kernel_model import FloatArray, Task
from approxsvm.ir.outputs import Outputs


@dataclass(frozen=True, eq=False)
class FeatureModel:
    """Fields common to all feature models."""

    task: Task
    # With two labels, a positive value means the first label. With more labels, there is one function per label.
    labels: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0), kw_only=True)
    source: str = field(default="arrays", kw_only=True)  # origin of the model, for display
    # As in KernelModel; the length of `value_error` is the number of functions
    feature_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    input_map: InputMap | None = field(default=None, kw_only=True)
    outputs: Outputs = field(default_factory=Outputs, kw_only=True)
    value_error: FloatArray = field(default_factory=lambda: np.zeros(1), kw_only=True)
    row_dtypes: RowDtypes = field(default=SAME, kw_only=True)

    # Attributes shared with KernelModel.
    kind: ClassVar[str]
    kernel: ClassVar[str]
    n_sv = 0
    first_index = 1

    def __post_init__(self) -> None:
        n_labels, n = len(self.labels), self.n_decisions
        if n_labels != (0 if self.task != "classification" else 2 if n == 1 else n) or (
            self.task == "one_class" and n != 1
        ):
            raise ModelFormatError(f"a {self.task} model with {n} functions cannot have {n_labels} labels")
        if self.outputs.of_each_class != (n_labels > 2):
            raise ModelFormatError(f"decision_shape is {self.outputs.decision_shape!r} for {n} functions")
        self.outputs.check(self.task, n_labels)

    @property
    def n_decisions(self) -> int:
        """Number of functions of the features."""
        return len(self.value_error)

    def values(self, mapped: FloatArray) -> FloatArray:
        """Compute decision values from the definition, term by term; see `Definition.values`."""
        raise NotImplementedError

    def rounding(self, mapped: FloatArray, values: FloatArray) -> FloatArray:
        """Bound the rounding error; see `Definition.rounding` in reference/definition.py."""
        raise NotImplementedError

    def moved(self, mapped: FloatArray, errors: FloatArray) -> FloatArray:
        """Bound the change of the values if each row moves by at most the distance given in `errors`."""
        raise NotImplementedError

    @property
    def spread(self) -> float:
        """Twice `scale`, because values differ from the intercept by at most `scale`."""
        return 2.0 * self.scale

    @property
    def scale(self) -> float:
        """Largest A1 of any function, or a substitute for it."""
        raise NotImplementedError

    @property
    def n_features(self) -> int:
        """Number of columns that the feature map accepts."""
        raise NotImplementedError

    @property
    def n_raw_features(self) -> int:
        """Number of columns that the source accepts, before the input map."""
        return self.n_features if self.input_map is None else self.input_map.n_raw_features
