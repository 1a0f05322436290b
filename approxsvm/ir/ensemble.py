"""Ensembles: several models whose answers are combined into one."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.ir.kernel_model import Task
from approxsvm.ir.outputs import BY_PROBABILITY, ClassProbability, MembersMean, Outputs, class_pairs
from approxsvm.ir.single_model import SingleModel


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Models of the same raw columns, and the rule that combines their answers.

    Classifiers with the same labels in the same order combine by

    * the mean of their probabilities; the label has the largest mean, ties going to the first class, or results from a
      threshold (``outputs.probability`` is a `MembersMean`): CalibratedClassifierCV, soft votes, bags;
    * the sum of their weighted votes, ties going to the first class (``label_rule="votes"``); with `classes`, members
      may know only some of the labels.

    Classifiers with any labels among `classes`, and regressions, whose positive values mean the second of two labels,
    combine by

    * stacking their labels, one per target (``label_rule="targets"``).

    Regressions, each with one function except possibly the first, combine by

    * stacking their values: several targets;
    * summing their values times `weights`, plus an addend;
    * taking them as functions of several classes, one per label (``decision_shape="each"``, with `classes`), or one per
      pair of labels (``label_rule="scores"``, ``decision_shape="ovr"``);
    * with weights, such functions are sums of all members' values; classifiers with some of these classes contribute
      their probabilities, or their scores if they have none;
    * taking that sum as the value of a classifier of two `classes`, by a threshold or by probabilities; member
      classifiers of these two classes contribute the probability of the first.

    Parameters
    ----------
    members : tuple of KernelModel or FeatureModel
    source : str
        Origin of the models, to display.
    outputs : Outputs, optional
        Default: the mean of probabilities, or stacked values.
    classes : array of labels, optional
        For functions of classes, the labels in the members' order; for targets, all labels of any member; for a sum,
        the two labels; for votes, all labels if not every member knows them all.
    real_weights : tuple of Fraction, optional
        For a mean or a sum, the exact weights and addend before rounding, in case the ensemble is nested in another.

    Raises
    ------
    ModelFormatError
        The members do not match.
    """

    members: tuple[SingleModel, ...]
    source: str = "members"
    outputs: Outputs = field(default_factory=Outputs)
    classes: npt.NDArray[Any] | None = None
    real_weights: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        if not self.members:
            raise ModelFormatError("an ensemble needs at least one member")
        for n in (member.n_raw_features for member in self.members):
            if n != self.n_raw_features:
                raise ModelFormatError(f"members must take the same rows, got {self.n_raw_features} and {n} features")
        if self.is_plain and self.task == "classification":
            object.__setattr__(self, "outputs", Outputs(MembersMean(), "probability"))
        if self.of_targets or self.labels_sum or self.outputs.of_sums:
            self._check_targets() if self.of_targets else self._check_sum()
            return
        if self.classes is not None and not self.counts_votes:
            self._check_functions()
        elif self.outputs.of_each_class:
            raise ModelFormatError("functions of each class need the classes")
        task = self.members[0].task
        for member in self.members:
            if member.task != task or task == "one_class":
                raise ModelFormatError(f"an ensemble cannot have a {task} and a {member.task} member")
            if task == "regression" and member.n_decisions != 1 and not self.is_plain:
                raise ModelFormatError(f"a member ({member.source}) has {member.n_decisions} targets, expected 1")
            if self.averages and not isinstance(member.outputs.probability, ClassProbability):
                raise ModelFormatError(f"a member ({member.source}) has no class probabilities")
            known = member.labels.tolist()
            every = (self.labels if self.counts_votes else self.members[0].labels).tolist()
            if known != every and not (self.counts_votes and {*known} <= {*every}):
                raise ModelFormatError(f"members must have the same labels, got {every} and {known}")
        self._check_outputs()

    def _check_targets(self) -> None:
        labels = self.labels.tolist()
        if self.outputs.probability is not None or self.outputs.weights is not None:
            raise ModelFormatError("an ensemble of targets cannot have probabilities or weights")
        for member in self.members:
            fits = len(labels) == 2 if member.task == "regression" else set(member.labels.tolist()) <= set(labels)
            if member.task == "one_class" or not fits:
                raise ModelFormatError(f"a member ({member.source}) has labels that are not among {labels}")

    def _check_sum(self) -> None:
        outputs, labels, of_sums = self.outputs, self.labels.tolist(), self.outputs.of_sums
        # Sums of several classes take all values of a member, or a number for each of its classes.
        counts = [len(one.labels) if one.task == "classification" else one.n_decisions for one in self.members]
        n_columns = sum(counts) if of_sums else len(self.members)
        assert outputs.weights is not None
        shape = (len(labels), n_columns + 1) if of_sums else (n_columns,)
        if outputs.weights.shape != shape or not np.isfinite([*outputs.weights.ravel(), outputs.addend]).all():
            raise ModelFormatError(f"weights must be {shape} finite numbers, got {outputs.weights.tolist()}")
        replace(outputs, weights=None).check("classification", len(labels))
        for member in self.members:
            head = member.outputs.probability
            if member.task == "classification":
                fits = set(member.labels.tolist()) <= set(labels) and (of_sums or len(labels) == 2)
                has_scores = of_sums and head is None and len(member.labels) > 2
                fits = fits and (isinstance(head, ClassProbability) or has_scores)
            else:
                fits = member.task == "regression" and (of_sums or member.n_decisions == 1)
            if not fits:
                raise ModelFormatError(f"a member ({member.source}) has no value for {labels} to sum")

    def _check_functions(self) -> None:
        n_labels = len(self.labels)
        n_functions = len(class_pairs(n_labels)) if self.of_pairs else n_labels
        if n_functions != len(self.members) or self.members[0].task != "regression":
            raise ModelFormatError(
                f"{len(self.members)} members ({self.members[0].source}) are not functions of {n_labels} classes"
            )
        if not (self.outputs.of_each_class or self.of_pairs):
            raise ModelFormatError("functions of classes need the decision shape 'each', or scores of pairs")
        self.outputs.check("classification", len(self.labels))

    def _check_outputs(self) -> None:
        outputs, weights = self.outputs, self.outputs.weights
        if self.classes is not None and not self.counts_votes:
            return
        if weights is not None and (weights.shape != (len(self.members),) or not np.isfinite(weights).all()):
            raise ModelFormatError(f"weights must be {len(self.members)} finite numbers, got {weights.tolist()}")
        if not np.isfinite(outputs.addend):
            raise ModelFormatError(f"the addend is {outputs.addend}, but must be finite")
        if self.task == "regression":
            return
        if self.averages != (outputs.label_rule in BY_PROBABILITY) or outputs.label_rule in (
            "scores",
            "value_threshold",
        ):
            raise ModelFormatError(f"an ensemble cannot label by {outputs.label_rule}")
        if outputs.label_rule == "probability_threshold" and len(self.labels) != 2:
            raise ModelFormatError(f"a threshold cannot separate {len(self.labels)} classes")
        if weights is None and outputs.label_rule != "probability":
            raise ModelFormatError("votes and thresholds need weights")
        if weights is not None and not ((weights >= 0).all() and 0 < sum(weights.tolist()) < np.inf):
            raise ModelFormatError(
                f"weights must be at least 0, not all 0, and have a finite sum, got {weights.tolist()}"
            )
        if outputs.addend != 0:
            raise ModelFormatError(f"the addend of votes and means is {outputs.addend}, but must be 0")

    @property
    def task(self) -> Task:
        """Task of every member, or "classification" if `classes` is given."""
        return self.members[0].task if self.classes is None else "classification"

    @property
    def labels(self) -> npt.NDArray[Any]:
        """Class labels in the order of the members, or `classes`."""
        return self.members[0].labels if self.classes is None else self.classes

    @property
    def of_targets(self) -> bool:
        """True if the members' labels are stacked, one per target."""
        return self.outputs.label_rule == "targets"

    @property
    def labels_sum(self) -> bool:
        """True if a weighted sum of the members' values determines the label."""
        outputs = self.outputs
        excluded = outputs.weights is None or outputs.of_each_class or self.counts_votes
        return self.classes is not None and not excluded

    @property
    def counts_votes(self) -> bool:
        """True if the members' labels are votes."""
        return self.task == "classification" and self.outputs.label_rule == "votes" and self.outputs.weights is not None

    @property
    def asks_for_signs(self) -> bool:
        """True if members' values are only needed as closely as a label requires, or exactly."""
        return self.labels_sum or self.of_pairs

    @property
    def of_pairs(self) -> bool:
        """True if members are functions of pairs of classes."""
        return self.classes is not None and self.outputs.label_rule == "scores" and not self.outputs.of_each_class

    @property
    def averages(self) -> bool:
        """True if the probabilities are the mean of the members'."""
        return isinstance(self.outputs.probability, MembersMean)

    @property
    def is_plain(self) -> bool:
        """True if the outputs are an ensemble's default."""
        return self.classes is None and self.outputs.weights is None

    @property
    def n_decisions(self) -> int:
        """Number of decision values: 0 for means, votes and targets."""
        has_none = not (self.outputs.of_each_class or self.of_pairs or self.labels_sum)
        if self.task == "classification" and has_none:
            return 0
        if self.outputs.of_sums:
            return len(self.labels)
        return 1 if self.outputs.weights is not None else sum(member.n_decisions for member in self.members)

    @property
    def n_raw_features(self) -> int:
        """Number of columns of raw rows."""
        return self.members[0].n_raw_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the raw columns; None if the source has none."""
        return self.members[0].feature_names
