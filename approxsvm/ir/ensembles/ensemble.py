"""Ensembles: several models whose predictions are combined into one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.ir.ensembles.combination import Combination, of_labels
from approxsvm.ir.kernel_model import Task
from approxsvm.ir.outputs import ClassProbability, MembersMean, Outputs, class_pairs
from approxsvm.ir.single_model import SingleModel


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Models with the same raw columns, and the rule that combines their predictions.

    Each member produces columns (see `Combination`): numbers, votes or labels. The ensemble's values are weighted sums
    of numbers, or the numbers themselves. `outputs` derives predictions from these values, as in a single model. The
    values are:

    * a sum of regressors, or the values for several regression targets;
    * the value of a classifier with two `classes`, whose label depends on a threshold or on probabilities;
    * decision functions of several `classes`, one per class (``decision_shape="each"``) or one per pair;
    * one sum of probabilities per class; the label is the class with the largest mean (``outputs.probability`` is a
      `MembersMean`), as in CalibratedClassifierCV, soft voting and bagging.

    If the members vote, the label with the largest sum of votes is predicted; in a tie, the first class wins. If they
    produce labels, these are the predictions, one per target.

    Parameters
    ----------
    members : tuple of KernelModel or FeatureModel
    source : str
        Origin of the models, for display.
    outputs : Outputs, optional
    combination : Combination, optional
        Default for regressors: their values side by side. Default for classifiers: the mean of their probabilities.
    classes : array of labels, optional
        For decision functions of classes, the labels in the order of the functions; for targets, all labels of any
        member; for one sum, the two labels; for votes and means, all labels if some members do not know all of them.
    real_weights : tuple of Fraction, optional
        For a mean or a sum, the exact weights and addend before rounding; needed if the ensemble is nested in another
        one.

    Raises
    ------
    ModelFormatError
        The members do not match.
    """

    members: tuple[SingleModel, ...]
    source: str = "members"
    outputs: Outputs = field(default_factory=Outputs)
    combination: Combination = field(default_factory=Combination)
    classes: npt.NDArray[Any] | None = None
    real_weights: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        if not self.members:
            raise ModelFormatError("an ensemble needs at least one member")
        for n in (member.n_raw_features for member in self.members):
            if n != self.n_raw_features:
                raise ModelFormatError(f"members must take the same rows, got {self.n_raw_features} and {n} features")
        has_default = self.combination.columns == "numbers" and self.combination.weights is None
        if has_default and self.classes is None and self.task == "classification":
            outputs, combination = mean_of(self.members, self.labels, [1.0] * len(self.members))
            object.__setattr__(self, "outputs", outputs)
            object.__setattr__(self, "combination", combination)
        self._check_members()
        self._check_values()

    def _check_members(self) -> None:
        columns, labels = self.combination.columns, self.labels.tolist()
        for member in self.members:
            classifies, head = member.task == "classification", member.outputs.probability
            if columns == "numbers":
                has_scores = head is None and len(member.labels) > 2 and not self.averages
                fits = not classifies or isinstance(head, ClassProbability) or has_scores
            else:
                fits = set(member.labels.tolist()) <= set(labels)
                fits = fits and (classifies or (columns == "labels" and len(labels) == 2))
            if member.task == "one_class" or (self.task == "regression" and classifies):
                raise ModelFormatError(f"an ensemble cannot have a {self.task} and a {member.task} member")
            if not fits:
                wanted = "labels" if columns != "numbers" else "numbers to combine"
                raise ModelFormatError(f"a member ({member.source}) has no {wanted} among {labels}")

    def _check_values(self) -> None:
        combination, outputs, n_labels = self.combination, self.outputs, len(self.labels)
        n_columns = sum(map(combination.n_columns_of, self.members))
        if combination.weights is not None and combination.weights.shape[1] != n_columns:
            raise ModelFormatError(f"the members have {n_columns} columns for weights of {combination.weights.shape}")
        if combination.columns != "numbers" or self.task == "regression":
            if outputs.probability is not None or outputs.label_rule != "votes":
                raise ModelFormatError(f"an ensemble of {combination.columns} cannot label by {outputs.label_rule}")
            expected = {n_labels} if combination.columns == "votes" else {self.n_values}
        else:
            outputs.check(self.task, n_labels)
            if outputs.label_rule == "votes" or (
                self.averages and outputs.label_rule.partition("_")[0] != "probability"
            ):
                raise ModelFormatError(f"an ensemble of numbers cannot label by {outputs.label_rule}")
            of_classes = self.averages or outputs.of_each_class
            expected = {n_labels if of_classes else len(class_pairs(n_labels))}
        if self.n_values not in expected:
            raise ModelFormatError(
                f"{self.n_values} values of {len(self.members)} members ({self.members[0].source}) are not functions "
                f"of {n_labels} classes"
            )

    @property
    def task(self) -> Task:
        """Task of the members, or "classification" if `classes` is given."""
        return self.members[0].task if self.classes is None else "classification"

    @property
    def labels(self) -> npt.NDArray[Any]:
        """Class labels in the members' order, or `classes`."""
        return self.members[0].labels if self.classes is None else self.classes

    @property
    def of_targets(self) -> bool:
        """True if the members' labels are predictions for several targets."""
        return self.combination.columns == "labels"

    @property
    def counts_votes(self) -> bool:
        """True if the members' labels are votes."""
        return self.combination.columns == "votes"

    @property
    def averages(self) -> bool:
        """True if the ensemble's probabilities are the means of the members' probabilities."""
        return isinstance(self.outputs.probability, MembersMean)

    @property
    def labels_sum(self) -> bool:
        """True if a weighted sum of the members' numbers determines one of two labels."""
        return self.classes is not None and self.n_decisions == 1 and self.combination.weights is not None

    @property
    def asks_for_signs(self) -> bool:
        """True if the members' values are needed either exactly, or only as precisely as the label requires."""
        return self.task == "classification" and self.n_decisions > 0 and not self.outputs.of_each_class

    @property
    def n_values(self) -> int:
        """Number of values from which predictions are computed; 0 for targets."""
        if self.of_targets:
            return 0
        weights = self.combination.weights
        return sum(map(self.combination.n_columns_of, self.members)) if weights is None else len(weights)

    @property
    def n_decisions(self) -> int:
        """Number of decision values: 0 for means, votes and targets."""
        return 0 if self.averages or self.counts_votes else self.n_values

    @property
    def n_raw_features(self) -> int:
        """Number of columns in raw rows."""
        return self.members[0].n_raw_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the raw columns, or None if the source has none."""
        return self.members[0].feature_names


def mean_of(
    members: Sequence[SingleModel], labels: npt.NDArray[Any], weights: Sequence[float]
) -> tuple[Outputs, Combination]:
    """Return the outputs and the combination for mean probabilities; a member may know only some of the labels."""
    if not all(weight >= 0 for weight in weights):
        raise ModelFormatError(f"weights of a mean must be at least 0, got {list(weights)}")
    *_, total = accumulate(weights)  # added one by one, as in the source
    return Outputs(MembersMean(total), "probability"), of_labels("numbers", members, labels, weights)
