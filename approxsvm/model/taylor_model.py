"""Linear models on Taylor features: a Gaussian times a polynomial, which is an expansion without truncation error."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.model.input_map import InputMap
from approxsvm.model.kernel_model import FloatArray, Task
from approxsvm.model.outputs import Outputs

MAX_TAYLOR_DEGREE: Final = 6


@dataclass(frozen=True, eq=False)
class TaylorModel:
    """f(z) = intercept + exp(-gamma ||z||^2) sum_alpha weights_alpha sqrt((2 gamma)^|alpha| / alpha!) z^alpha.

    Parameters
    ----------
    task : {"classification", "regression"}
    weights : tuple of ndarray
        ``weights[k]`` are those of the monomials of degree k, from 0 to 6 at most, in the order of
        itertools.combinations_with_replacement; there are as many of degree 1 as columns.
    intercept : ndarray of shape (1,)
    gamma : float
        Above 0.
    labels : array of two labels, or empty for a regression
        A positive value means the first.
    source : str
        Where the model came from, for people.
    feature_names, input_map, outputs, value_error
        As in KernelModel.

    Raises
    ------
    ModelFormatError
        Sizes contradict each other, or a number is not finite.
    """

    task: Task
    weights: tuple[FloatArray, ...]
    intercept: FloatArray
    gamma: float
    labels: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0))
    source: str = "arrays"
    feature_names: tuple[str, ...] | None = None
    input_map: InputMap | None = None
    outputs: Outputs = field(default_factory=Outputs)
    value_error: FloatArray = field(default_factory=lambda: np.zeros(1))

    # What it has in common with every KernelModel of one decision function.
    n_decisions = 1
    n_sv = 0
    first_index = 1
    is_polynomial = False

    def __post_init__(self) -> None:
        """Check once."""
        if not 1 <= self.degree <= MAX_TAYLOR_DEGREE:
            raise ModelFormatError(f"degree is {self.degree}, but must be 1 to {MAX_TAYLOR_DEGREE}")
        for k, part in enumerate(self.weights):
            expected = math.comb(self.n_features + k - 1, k)
            if part.shape != (expected,):
                raise ModelFormatError(f"weights of degree {k} have shape {part.shape}, expected {(expected,)}")
        if len(self.labels) != (2 if self.task == "classification" else 0):
            raise ModelFormatError(f"a {self.task} model cannot have {len(self.labels)} labels")
        if not 0.0 < self.gamma < math.inf:
            raise ModelFormatError(f"gamma is {self.gamma}, but must be a positive number")
        if not all(np.isfinite(numbers).all() for numbers in (*self.weights, self.intercept, self.value_error)):
            raise ModelFormatError("weights, intercept or value_error hold NaN or infinity")
        self.outputs.check(self.task, len(self.labels))

    @property
    def degree(self) -> int:
        """The highest one."""
        return len(self.weights) - 1

    @property
    def n_features(self) -> int:
        """Columns of the rows whose features are taken."""
        return len(self.weights[1])

    def negated(self) -> TaylorModel:
        """The same two-class model with its labels in the other order: every value changes its sign."""
        weights = tuple(-part for part in self.weights)
        return replace(self, weights=weights, intercept=-self.intercept, labels=self.labels[::-1])

    @property
    def n_raw_features(self) -> int:
        """Columns of the rows that the source takes, before its input map."""
        return self.n_features if self.input_map is None else self.input_map.n_raw_features
