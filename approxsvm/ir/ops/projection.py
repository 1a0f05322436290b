"""Projections: x -> (x - center) @ matrix + bias."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError
from approxsvm.ir import compensated
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.ops.op import UP, IntArray, Op, Stored, check


@dataclass(frozen=True, eq=False)
class Projection(Op):
    """Projection x -> (x - center) @ matrix + bias."""

    kind = "projection"

    center: FloatArray  # shape (n_features,)
    matrix: FloatArray  # shape (n_features, n_outputs)
    # Arrays of shape (n_outputs,): the bias that the source adds, and a bound on its difference from the bias given by
    # the exact parameters
    bias: FloatArray
    bias_error: FloatArray

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2:
            raise ModelFormatError(f"the matrix of an input step has {self.matrix.ndim} dimensions instead of 2")
        check("center", self.center, (self.matrix.shape[0],))
        check("matrix", self.matrix, self.matrix.shape)
        check("bias", self.bias, (self.matrix.shape[1],))
        check("bias_error", self.bias_error, (self.matrix.shape[1],))
        if (self.bias_error < 0).any():
            raise ModelFormatError("an error of the bias of an input step is negative")

    @classmethod
    def about(cls, center: Any, matrix: Any, source_shift: Any = None) -> "Projection":
        """Build the map x -> (x - center) @ matrix for a source that computes x @ matrix - source_shift.

        `source_shift` is center @ matrix as rounded by the source. The bias compensates for this rounding, so that
        values match the source's; its absolute value therefore counts as an error with respect to exact arithmetic.
        """
        numbers = np.ascontiguousarray(matrix, dtype=np.float64)
        if numbers.ndim != 2:
            raise ModelFormatError(f"the matrix of an input step has {numbers.ndim} dimensions instead of 2")
        mean = np.broadcast_to(np.asarray(center, np.float64), len(numbers)).copy()
        bias, error = np.zeros((2, numbers.shape[1]))
        if source_shift is not None and np.isfinite(mean).all() and np.isfinite(numbers).all():
            exact, error = (part[0] for part in compensated.matmul(mean[np.newaxis], numbers))
            bias = exact - np.asarray(source_shift, np.float64)
            error = (error + np.abs(bias) + UNIT64 * np.abs(bias)) * UP
        return cls(mean, numbers, bias, error)

    @property
    def n_features(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def n_outputs(self) -> int:
        return int(self.matrix.shape[1])

    def select(self, features: IntArray) -> "tuple[Projection, None]":
        matrix = np.ascontiguousarray(self.matrix[:, features])
        return replace(self, matrix=matrix, bias=self.bias[features], bias_error=self.bias_error[features]), None

    def stored(self) -> Stored:
        return 0, [self.center, self.matrix, self.bias, self.bias_error]

    @classmethod
    def read(cls, reader: Any, parts: int, first: int, n_features: int, n_outputs: int) -> "Projection":
        center, matrix = reader.numbers(n_features), reader.numbers(n_features * n_outputs)
        biases = (reader.numbers(n_outputs) for _ in range(2))
        return cls(center, matrix.reshape(n_features, n_outputs), *biases, first=first)

    def in_words(self) -> str:
        return f"projects {self.n_features:,} features to {self.n_outputs:,}"
