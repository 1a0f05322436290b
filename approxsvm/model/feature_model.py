"""What linear models behind feature maps have in common: one decision function, no support vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.model.input_map import InputMap
from approxsvm.model.kernel_model import FloatArray, Task
from approxsvm.model.outputs import Outputs


@dataclass(frozen=True, eq=False)
class FeatureModel:
    """The part of a model that its features have nothing to do with.

    Parameters
    ----------
    task : {"classification", "regression"}
    labels : array of two labels, or empty for a regression
        A positive value means the first.
    source : str
        Where the model came from, for people.
    feature_names, input_map, outputs, value_error
        As in KernelModel.

    Raises
    ------
    ModelFormatError
        There are not as many labels as the task has.
    """

    task: Task
    labels: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0), kw_only=True)
    source: str = field(default="arrays", kw_only=True)
    feature_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    input_map: InputMap | None = field(default=None, kw_only=True)
    outputs: Outputs = field(default_factory=Outputs, kw_only=True)
    value_error: FloatArray = field(default_factory=lambda: np.zeros(1), kw_only=True)

    # What it has in common with every KernelModel of one decision function.
    n_decisions = 1
    n_sv = 0
    first_index = 1

    def __post_init__(self) -> None:
        """Check once."""
        if len(self.labels) != (2 if self.task == "classification" else 0):
            raise ModelFormatError(f"a {self.task} model cannot have {len(self.labels)} labels")
        self.outputs.check(self.task, len(self.labels))

    @property
    def n_features(self) -> int:
        """Columns of the rows whose features are taken."""
        raise NotImplementedError

    @property
    def n_raw_features(self) -> int:
        """Columns of the rows that the source takes, before its input map."""
        return self.n_features if self.input_map is None else self.input_map.n_raw_features
