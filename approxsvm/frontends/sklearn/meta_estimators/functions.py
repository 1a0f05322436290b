"""Conversion of members before they are combined: to the value of one class, to two classes, or to sorted labels."""

from collections.abc import Sequence
from dataclasses import replace
from inspect import unwrap
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.sklearn.known_types import class_name
from approxsvm.frontends.sklearn.meta_estimators.members import CONSTANT
from approxsvm.frontends.sklearn.support_vector_machines import ascending_classes
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.outputs import (
    ClassProbability,
    IsotonicCalibrator,
    OneVsRestCalibration,
    Outputs,
    PairwiseSigmoid,
    SigmoidCalibrator,
    TemperatureCalibration,
)
from approxsvm.ir.single_model import SingleModel


def binary_function(member: SingleModel) -> SingleModel:
    """Convert a binary classifier to a regressor whose positive values stand for label 1."""
    if member.task == "regression":
        return member
    signed = member if member.labels[0] == 1 else member.negated()
    changes: dict[str, Any] = {"task": "regression", "labels": np.empty(0), "outputs": Outputs()}
    if isinstance(signed, KernelModel):
        changes["n_support"] = np.empty(0, np.int64)
    return replace(signed, **changes)


def decision_value(estimator: Any, member: SingleModel) -> SingleModel:
    """Convert a binary classifier to a regressor whose value is the decision value in favour of the greater label."""
    if member.task == "regression" and member.n_decisions == 1:
        return member
    if member.task != "classification" or len(member.labels) != 2:
        raise UnsupportedModelError(f"a member of this {class_name(estimator)} is a {member.source}")
    return binary_function(replace(member, labels=np.argsort(np.argsort(member.labels))))


def value_calibrator(member: SingleModel) -> SigmoidCalibrator | IsotonicCalibrator | None:
    """Return the calibrator from the decision value to the probability of label 1, or None if it has no closed form."""
    calibration = member.outputs.probability
    if member.source == CONSTANT:
        return IsotonicCalibrator(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    if isinstance(calibration, TemperatureCalibration):
        return SigmoidCalibrator(-2.0 * calibration.inverse_temperature, 0.0)
    if isinstance(calibration, OneVsRestCalibration) and member.labels[calibration.positive] == 1:
        return calibration.calibrators[0]
    return None


def two_classes(
    member: SingleModel,
    classes: Any,
    calibrator: SigmoidCalibrator | IsotonicCalibrator | None,
    by_value: bool,
    *,
    of_half: bool = False,
) -> SingleModel:
    """Convert a member to a two-class classifier; a value above 0, or above 1/2, means the second of `classes`.

    A positive result selects the first label, which also wins ties in probability.
    """
    function, labels = binary_function(member), classes[::-1]
    probability = None if calibrator is None else OneVsRestCalibration((calibrator,), positive=0)
    if member.task == "regression" or of_half:  # the first class wins if -f >= -1/2
        outputs = Outputs(probability, label_rule="value_threshold", threshold=-0.5, threshold_label=1)
    elif by_value:
        outputs = Outputs(probability)
    else:
        assert probability is not None
        function, labels = function.negated(), classes
        outputs = Outputs(replace(probability, positive=1), "probability")
    return replace(function, task="classification", labels=labels, outputs=outputs)


def with_class_labels(estimator: Any, members: Sequence[SingleModel]) -> list[SingleModel]:
    """Replace the members' class indices by the meta-estimator's sorted labels, which some members already have."""
    name = class_name(estimator)
    classes = ascending_classes(estimator.classes_, name)
    every = range(len(classes))
    labelled = []
    for member in members:
        if member.task != "classification":
            raise UnsupportedModelError(f"a member of this {name} is a {member.source}")
        known = sorted(member.labels.tolist())
        if known == classes.tolist():
            known = np.searchsorted(classes, known).tolist()
        elif not all(isinstance(label, int) and label in every for label in known):
            raise ModelFormatError(f"a member of this {name} knows the classes {known}, not those of {len(classes)}")
        if member.labels.tolist() != sorted(member.labels.tolist()):  # two labels in descending order
            member = _with_labels_reversed(member, name)
        labelled.append(replace(member, labels=classes[known]))
    return labelled


def _with_labels_reversed(member: SingleModel, name: str) -> SingleModel:
    """Return a two-class classifier with the same predictions and its labels in reverse order."""
    outputs, probability = member.outputs, member.outputs.probability
    if isinstance(probability, PairwiseSigmoid) and not probability.couple_two_classes:
        probability = replace(probability, prob_b=-probability.prob_b)
    elif isinstance(probability, (OneVsRestCalibration, TemperatureCalibration)):
        probability = replace(probability, positive=1 - probability.positive)
    elif isinstance(probability, ClassProbability):
        raise UnsupportedModelError(f"a member of this {name} ({member.source}) has its labels in descending order")
    changed = replace(outputs, probability=probability)
    if outputs.label_rule == "votes":  # a value above 0 then means the second label, which was the first
        changed = replace(changed, label_rule="value_threshold", threshold=0.0)
    elif outputs.threshold is not None:
        changed = replace(changed, threshold_label=1 - outputs.threshold_label)
    return replace(member.negated(), outputs=changed)


def takes_last_of_ties(estimator: Any) -> bool:
    """Return whether ties go to the last value; newer scikit-learn reverses the members, so they go to the first."""
    return "reversed" not in unwrap(estimator.predict).__code__.co_names
