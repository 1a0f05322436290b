"""Combinations: how the columns of an ensemble's members become its values."""

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
    """The columns that members give, and the matrix that turns them into values.

    Parameters
    ----------
    columns : str
        "numbers": the values of a regression, and the probabilities of a classifier's labels, or their scores if it has
        no probabilities. "votes": 1 for the label that a classifier predicts, and 0 for its other labels. "labels": the
        label itself, and for each value of a regression the second of two labels if it is above 0.
    weights : array of shape (n_values, n_columns), optional
        Without weights, the columns are the values, or the labels.
    addends : array of shape (n_values,), optional
        Initial values of the sums, 0 by default.
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
        """Return the number of columns of a member: a model or its artifact."""
        if member.task == "regression":
            return int(member.n_decisions)
        return 1 if self.columns == "labels" else len(member.labels)

    def parts(self, members: Sequence[Any]) -> list[FloatArray]:
        """Return the weights of each member's columns, (n_values, its number of columns)."""
        assert self.weights is not None
        ends = np.cumsum([self.n_columns_of(member) for member in members])
        return np.split(self.weights, ends[:-1], axis=1)

    def by_column(self) -> tuple[FloatArray, IntArray, IntArray]:
        """Return the weights that are not 0, column by column; where each column starts; the value of each weight."""
        assert self.weights is not None
        columns, values = np.nonzero(self.weights.T)
        starts = np.searchsorted(columns, np.arange(self.weights.shape[1] + 1))
        return self.weights[values, columns], starts.astype(np.int64), values.astype(np.int64)


def label_positions(labels: npt.NDArray[Any], members: Sequence[Any]) -> list[IntArray]:
    """Return, for each member, the positions of its labels among `labels`; a regression has both, by its sign."""
    places = {label: place for place, label in enumerate(labels.tolist())}
    return [np.array([places[label] for label in one.labels.tolist()] or [0, 1], np.int64) for one in members]


def of_labels(columns: Columns, members: Sequence[SingleModel], labels: Any, weights: Sequence[float]) -> Combination:
    """Return the sum for each of `labels` over classifiers that know some of them, with a weight for each member."""
    places = {label: place for place, label in enumerate(labels.tolist())}
    known = [(label, weight) for one, weight in zip(members, weights, strict=True) for label in one.labels.tolist()]
    matrix = np.zeros((len(places), len(known)))
    for c, (label, weight) in enumerate(known):
        if label not in places:
            raise ModelFormatError(f"members must have labels among {labels.tolist()}, got {label!r}")
        matrix[places[label], c] = weight
    return Combination(columns, matrix)
