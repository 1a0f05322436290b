"""Combination rules, which convert the members' columns to the ensemble's values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.single_model import SingleModel

Columns = Literal["numbers", "votes", "labels"]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Combination:
    """Columns produced by the members, and the matrix that converts them to the ensemble's values.

    Parameters
    ----------
    columns : str
        "numbers": a regressor's values, and a classifier's probabilities or, if it has none, its scores. "votes": 1 for
        the label that a classifier predicts, and 0 for its other labels. "labels": the predicted label or, for each
        value of a regressor, the second of two labels if the value is positive and the first otherwise.
    weights : array of shape (n_values, n_columns), optional
        Matrix by which the columns are multiplied. Default: the columns themselves are the values or the labels.
    addends : array of shape (n_values,), optional
        Initial values of the sums, by default 0.
    """

    columns: Columns = "numbers"
    weights: FloatArray | None = None
    addends: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.weights is None:
            return
        if self.addends is None:
            object.__setattr__(self, "addends", np.zeros(len(self.weights)))
        assert self.addends is not None
        if self.weights.ndim != 2 or self.addends.shape != self.weights.shape[:1]:
            raise ModelFormatError(f"weights of shape {self.weights.shape} do not match {self.addends.shape} addends")
        if not (np.isfinite(self.weights).all() and np.isfinite(self.addends).all()):
            raise ModelFormatError("weights and addends must be finite numbers")

    def n_columns_of(self, member: Any) -> int:
        """Return the number of columns of a member, which is a model or a model's artifact."""
        if member.task == "regression":
            return int(member.n_decisions)
        return 1 if self.columns == "labels" else len(member.labels)

    def parts(self, members: Sequence[Any]) -> list[FloatArray]:
        """Return the weights of each member's columns, of shape (n_values, number of the member's columns)."""
        assert self.weights is not None
        ends = np.cumsum([self.n_columns_of(member) for member in members])
        return np.split(self.weights, ends[:-1], axis=1)

    def by_column(self) -> tuple[FloatArray, IntArray, IntArray]:
        """Return the nonzero weights by column, each column's start, and the index of each weight's ensemble value."""
        assert self.weights is not None
        columns, values = np.nonzero(self.weights.T)
        starts = np.searchsorted(columns, np.arange(self.weights.shape[1] + 1))
        return self.weights[values, columns], starts.astype(np.int64), values.astype(np.int64)


def label_positions(labels: npt.NDArray[Any], members: Sequence[Any]) -> list[IntArray]:
    """Return the indices of each member's labels in `labels`; the sign of a regressor's value represents two labels."""
    places = {label: place for place, label in enumerate(labels.tolist())}
    return [np.array([places[label] for label in one.labels.tolist()] or [0, 1], np.int64) for one in members]


def of_labels(columns: Columns, members: Sequence[SingleModel], labels: Any, weights: Sequence[float]) -> Combination:
    """Combine members by a weighted sum for each label; a classifier may know only some of the `labels`."""
    places = {label: place for place, label in enumerate(labels.tolist())}
    known = [(label, weight) for one, weight in zip(members, weights, strict=True) for label in one.labels.tolist()]
    matrix = np.zeros((len(places), len(known)))
    for c, (label, weight) in enumerate(known):
        if label not in places:
            raise ModelFormatError(f"members must have labels among {labels.tolist()}, got {label!r}")
        matrix[places[label], c] = weight
    return Combination(columns, matrix)
