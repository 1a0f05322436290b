"""Several models as one: classifiers whose probabilities are averaged, or regressions side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.model.kernel_model import Task
from approxsvm.model.outputs import ClassProbability
from approxsvm.model.single_model import SingleModel


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The mean of classifiers' probabilities, or the values of regressions side by side.

    The former is scikit-learn's CalibratedClassifierCV with ensemble=True; it labels by the greatest mean, the first
    class of several. The latter is a regression with several targets.

    Parameters
    ----------
    members : tuple of KernelModel or TaylorModel
        Of the same task and raw columns: regressions, or classifiers of the same labels in the same order, each with
        class probabilities.
    source : str
        Where they came from, for people.

    Raises
    ------
    ModelFormatError
        The members do not match.
    """

    members: tuple[SingleModel, ...]
    source: str = "members"

    def __post_init__(self) -> None:
        """Check once."""
        if not self.members:
            raise ModelFormatError("an ensemble without members")
        for member in self.members:
            if member.task != self.task or self.task == "one_class":
                raise ModelFormatError(f"an ensemble has a {self.task} and a {member.task} as members")
            if self.task == "classification" and not isinstance(member.outputs.probability, ClassProbability):
                raise ModelFormatError(f"a member ({member.source}) has no class probabilities")
            if member.labels.tolist() != self.labels.tolist():
                raise ModelFormatError(f"members have the labels {self.labels.tolist()} and {member.labels.tolist()}")
            if member.n_raw_features != self.n_raw_features:
                raise ModelFormatError(f"members take {self.n_raw_features} and {member.n_raw_features} features")

    @property
    def task(self) -> Task:
        """That of every member."""
        return self.members[0].task

    @property
    def labels(self) -> npt.NDArray[Any]:
        """Class labels in the order of every member."""
        return self.members[0].labels

    @property
    def n_raw_features(self) -> int:
        """Number of columns of raw rows."""
        return self.members[0].n_raw_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the raw columns, where the source knew them."""
        return self.members[0].feature_names
