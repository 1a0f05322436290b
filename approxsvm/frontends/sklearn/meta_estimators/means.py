"""Ensembles that average the members' probabilities."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from approxsvm.errors import UnsupportedModelError
from approxsvm.frontends.sklearn.kernel_machines import rounded_float
from approxsvm.frontends.sklearn.known_types import class_name
from approxsvm.frontends.sklearn.meta_estimators.functions import with_class_labels
from approxsvm.frontends.sklearn.meta_estimators.members import flattened
from approxsvm.frontends.sklearn.pipeline import Model
from approxsvm.ir.ensembles.combination import Combination
from approxsvm.ir.ensembles.ensemble import Ensemble, mean_of
from approxsvm.ir.outputs import ClassProbability, IsotonicCalibrator, OneVsRestCalibration, Outputs
from approxsvm.ir.single_model import SingleModel


def mean_of_probabilities(estimator: Any, models: Sequence[Model], weights: Sequence[Fraction]) -> Model:
    """Combine members by their weighted mean probabilities, which determine the label."""
    name = class_name(estimator)
    members, weights, _ = flattened(estimator, models, weights)
    ordered = []
    for member in members:
        if not isinstance(member.outputs.probability, ClassProbability):
            raise UnsupportedModelError(f"a member of this {name} ({member.source}) has no probabilities")
        if member.outputs.label_rule != "probability":
            by_probability = replace(member.outputs, label_rule="probability", threshold=None, threshold_label=0)
            member = replace(member, outputs=by_probability)
        ordered.append(member)
    ordered = with_class_labels(estimator, ordered)
    return mean_of_members(ordered, weights, estimator.classes_)


def mean_of_members(members: Sequence[SingleModel], weights: Sequence[Fraction], classes: Any) -> Model:
    """Combine classifiers for some or all of `classes` by their weighted mean probabilities."""
    classes = all_classes(members, classes)
    if len(members) == 1 and classes is None:
        return members[0]
    return weighted_mean(members, weights, f"mean of {len(members)}: {members[0].source}", classes)


def weighted_mean(
    members: Sequence[SingleModel], weights: Sequence[Fraction], source: str, classes: Any = None
) -> Ensemble:
    """Build a weighted mean of the members' probabilities."""
    scale = Fraction(2) ** -int(np.frexp(float(max(weights)))[1])  # prevents products from underflowing
    numbers = [1.0 if len(set(weights)) == 1 else rounded_float(weight * scale) for weight in weights]
    outputs, combination = mean_of(members, members[0].labels if classes is None else classes, numbers)
    real_weights = (*weights, Fraction(0))
    return Ensemble(tuple(members), source, outputs, combination, classes, real_weights)


def class_sums(
    members: Sequence[SingleModel], sums: Sequence[Sequence[Fraction]], classes: Any, source: str
) -> Ensemble:
    """Build an ensemble whose class probabilities are proportional to weighted sums of the members' probabilities."""
    combination = Combination(weights=np.array([[*map(rounded_float, class_sum)] for class_sum in sums]))
    as_they_are = IsotonicCalibrator(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    probability = OneVsRestCalibration((as_they_are,) * len(classes), positive=0)
    return Ensemble(tuple(members), source, Outputs(probability, "probability", "each"), combination, classes)


def all_classes(members: Sequence[SingleModel], classes: Any) -> Any:
    """Return a meta-estimator's classes if a member knows only some of them, and None otherwise."""
    return None if all(len(member.labels) == len(classes) for member in members) else np.asarray(classes)
