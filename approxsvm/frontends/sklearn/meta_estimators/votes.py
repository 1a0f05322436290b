"""Frontend for meta-estimators that average their members' probabilities, or count votes if members have none."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.sklearn.known_types import class_name, helper, name_of
from approxsvm.frontends.sklearn.meta_estimators.functions import with_class_labels
from approxsvm.frontends.sklearn.meta_estimators.means import all_classes, mean_of_probabilities
from approxsvm.frontends.sklearn.meta_estimators.members import member_weights, read_bag, read_members, single_models
from approxsvm.frontends.sklearn.pipeline import Model, Read
from approxsvm.frontends.sklearn.remedies import refusal
from approxsvm.ir.ensembles.combination import of_labels
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.outputs import DecisionShape, Outputs
from approxsvm.ir.single_model import SingleModel


def read_voting_classifier(estimator: Any, read: Read) -> Model:
    """Read a fitted VotingClassifier, which predicts by weighted mean probabilities or weighted votes."""
    models = read_members(estimator, read)
    if not np.array_equal(helper(estimator.le_, "le_", "LabelEncoder").classes_, estimator.classes_):
        raise ModelFormatError("le_ and classes_ of this VotingClassifier have other classes")
    if estimator.voting not in ("soft", "hard"):
        raise ModelFormatError(f"voting of this VotingClassifier is {estimator.voting!r}")
    weights = member_weights(estimator, len(models))
    chosen = [model for model, weight in zip(models, weights, strict=True) if weight]
    weights = [weight for weight in weights if weight]
    if estimator.voting == "hard":
        return _votes(estimator, single_models(estimator, chosen), [float(weight) for weight in weights])
    return mean_of_probabilities(estimator, chosen, weights)


def read_bagging_classifier(estimator: Any, read: Read) -> Model:
    """Read a fitted BaggingClassifier, which averages probabilities, or counts votes if its members have none."""
    models = read_bag(estimator, read)
    have_probabilities = {hasattr(inner, "predict_proba") for inner in estimator.estimators_[: len(models)]}
    if len(have_probabilities) > 1:
        raise UnsupportedModelError(refusal(estimator, "with some members that have probabilities and some that vote"))
    if estimator.n_classes_ != len(estimator.classes_):
        raise ModelFormatError(
            f"n_classes_ of this {class_name(estimator)} is {estimator.n_classes_} of {len(estimator.classes_)}"
        )
    if have_probabilities == {True}:
        return mean_of_probabilities(estimator, models, [Fraction(1)] * len(models))
    return _votes(estimator, single_models(estimator, models), [1.0] * len(models))


def _votes(estimator: Any, members: Sequence[SingleModel], weights: Sequence[float]) -> Model:
    """Combine members by weighted votes alone; ties go to the first of the tied classes."""
    ordered = with_class_labels(estimator, members)
    shape: DecisionShape = "ovo" if name_of(estimator) == "VotingClassifier" else "ovr"  # without probabilities
    combination = of_labels("votes", ordered, estimator.classes_, weights)
    source = f"votes of {len(ordered)}: {ordered[0].source}"
    classes = all_classes(ordered, estimator.classes_)
    return Ensemble(tuple(ordered), source, Outputs(decision_shape=shape), combination, classes)
