"""Frontend for OneVsRestClassifier, which has one function per class."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.sklearn.known_types import helper, name_of
from approxsvm.frontends.sklearn.meta_estimators.functions import (
    binary_function,
    takes_last_of_ties,
    two_classes,
    value_calibrator,
    with_class_labels,
)
from approxsvm.frontends.sklearn.meta_estimators.means import class_sums, weighted_mean
from approxsvm.frontends.sklearn.meta_estimators.members import (
    check_binary,
    flattened,
    read_members,
    single_members,
    single_models,
)
from approxsvm.frontends.sklearn.meta_estimators.targets import targets_of
from approxsvm.frontends.sklearn.pipeline import Model, Read
from approxsvm.frontends.sklearn.remedies import refusal
from approxsvm.frontends.sklearn.support_vector_machines import ascending_classes, feature_names
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.ensembles.shared_kernels import difference, of_functions
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.outputs import OneVsRestCalibration, Outputs
from approxsvm.ir.single_model import SingleModel


def read_one_vs_rest(estimator: Any, read: Read) -> Model:
    """Read a fitted OneVsRestClassifier, either multiclass (the largest decision value wins) or multilabel.

    If members have no `decision_function` method, probabilities replace decision values.
    """
    binarizer = helper(estimator.label_binarizer_, "label_binarizer_", "LabelBinarizer")
    if binarizer.y_type_.startswith("multilabel"):
        return _multilabel(estimator, read)
    models, classes = read_members(estimator, read), ascending_classes(estimator.classes_, "OneVsRestClassifier")
    expected = (0, 1, "multiclass" if len(classes) > 2 else "binary")
    actual = (binarizer.neg_label, binarizer.pos_label, binarizer.y_type_)
    if actual != expected or binarizer.sparse_input_ or not np.array_equal(binarizer.classes_, classes):
        raise ModelFormatError("label_binarizer_ of this OneVsRestClassifier is not as fit leaves it")
    if len(models) != (len(classes) if len(classes) > 2 else 1):
        raise ModelFormatError(f"this OneVsRestClassifier has {len(models)} estimators_ for {len(classes)} classes")
    by_probabilities = not any(hasattr(inner, "decision_function") for inner in estimator.estimators_)
    if by_probabilities and all(isinstance(model, Ensemble) and model.averages for model in models):
        return _one_vs_rest_means(estimator, models, classes)
    members = single_models(estimator, models)
    check_binary(members)
    by_value = all(hasattr(inner, "decision_function") for inner in estimator.estimators_)
    by_value = by_value or all(member.task == "regression" for member in members)
    calibrators = [value_calibrator(member) for member in members]
    if not by_value and None in calibrators:
        raise UnsupportedModelError(
            refusal(estimator, "with members that have neither values nor calibrated probabilities")
        )
    known = tuple(calibrator for calibrator in calibrators if calibrator is not None)
    source = f"one against the rest: {members[0].source}"
    if len(classes) == 2:
        return replace(two_classes(members[0], classes, calibrators[0], by_value), source=source)
    functions = [binary_function(member) for member in members]
    if takes_last_of_ties(estimator):
        functions, classes, known = functions[::-1], classes[::-1], known[::-1]
    probability = OneVsRestCalibration(known, positive=0) if len(known) == len(members) else None
    outputs = Outputs(probability, label_rule="scores" if by_value else "probability", decision_shape="each")
    names = feature_names(estimator) or members[0].feature_names
    machines = [function for function in functions if isinstance(function, KernelModel)]
    if len(machines) < len(functions) or difference(machines):
        return Ensemble(tuple(functions), source=source, outputs=outputs, classes=classes)
    one = replace(of_functions(machines), source=source, feature_names=names)
    return replace(one, task="classification", labels=classes, outputs=outputs)


def _one_vs_rest_means(estimator: Any, models: Sequence[Model], classes: Any) -> Ensemble:
    """Combine the mean one-vs-rest probabilities of all classes; with two classes, compare a single mean with 1/2."""
    source = f"one against the rest: {models[0].source}"
    if len(classes) == 2:
        members, counts, _ = flattened(estimator, models, [Fraction(1)])
        check_binary(members)
        mean = weighted_mean(with_class_labels(estimator, members), counts, source)
        return replace(mean, outputs=replace(mean.outputs, label_rule="probability_threshold", threshold=0.5))
    if takes_last_of_ties(estimator):
        models, classes = models[::-1], classes[::-1]
    seen: list[SingleModel] = []
    sums: list[list[Fraction]] = [[] for _ in classes]
    for c, model in enumerate(models):
        members, weights, _ = flattened(estimator, [model], [Fraction(1)])
        check_binary(members)
        seen += [replace(member, labels=classes[: len(member.labels)]) for member in members]
        for k, class_sum in enumerate(sums):
            for member, weight in zip(members, weights, strict=True):
                class_sum += [weight * int(k == c and label == 1) for label in member.labels.tolist()]
    return class_sums(seen, sums, classes, source)


def _multilabel(estimator: Any, read: Read) -> Model:
    """Read a OneVsRestClassifier trained on an indicator matrix, which predicts every label whose value is above 0.

    All values are compared with 1/2 instead of 0 if the first member is not a classifier or has only probabilities.
    """
    binarizer, n_labels = estimator.label_binarizer_, len(estimator.classes_)
    if (binarizer.neg_label, binarizer.pos_label) != (0, 1) or len(estimator.estimators_) != n_labels:
        raise ModelFormatError(
            f"this OneVsRestClassifier has {len(estimator.estimators_)} members of {n_labels} labels"
        )
    if binarizer.sparse_input_:
        raise UnsupportedModelError(refusal(estimator, "with a sparse indicator matrix, which it also predicts"))
    constants = [name_of(inner) == "_ConstantPredictor" for inner in estimator.estimators_]
    if all(constants):
        raise UnsupportedModelError(refusal(estimator, "with only constant labels"))
    members = single_members(estimator, read, constants)
    check_binary(members)
    requested = [inner for inner, constant in zip(estimator.estimators_, constants, strict=True) if not constant]
    by_value = all(hasattr(inner, "decision_function") for inner in requested)
    by_value = by_value or all(member.task == "regression" for member in members)
    calibrators = [value_calibrator(member) for member in members]
    if not by_value and (None in calibrators or any(hasattr(inner, "decision_function") for inner in requested)):
        raise UnsupportedModelError(
            refusal(estimator, "with members that have neither values nor calibrated probabilities")
        )
    labels, of_half = np.array([0, 1]), constants[0] and by_value
    known = [
        two_classes(member, labels, calibrator, by_value or constant, of_half=of_half)
        for member, calibrator, constant in zip(members, calibrators, constants, strict=True)
    ]
    return targets_of(known, labels, "ovr")
