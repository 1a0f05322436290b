"""Frontend for stacks, which apply a linear final model to the members' values, scores or probabilities."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.sklearn import linear_models
from approxsvm.frontends.sklearn.kernel_machines import rounded_float
from approxsvm.frontends.sklearn.known_types import class_name, helper, name_of
from approxsvm.frontends.sklearn.meta_estimators.functions import decision_value
from approxsvm.frontends.sklearn.meta_estimators.members import flattened, read_members
from approxsvm.frontends.sklearn.meta_estimators.sums import sum_of_values
from approxsvm.frontends.sklearn.pipeline import Model, Read
from approxsvm.frontends.sklearn.remedies import refusal
from approxsvm.frontends.sklearn.support_vector_machines import ascending_classes, feature_names
from approxsvm.ir.ensembles.combination import Combination
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.outputs import ClassProbability, Outputs, SignAlone
from approxsvm.ir.single_model import SingleModel


def read_stacking_regressor(estimator: Any, read: Read) -> Model:
    """Read a fitted StackingRegressor whose final model is linear, as a weighted sum of the members' values."""
    models = read_members(estimator, read)
    parts = _final_parts(estimator, len(models), "regression", 1)
    if parts.outputs.is_column:
        raise ModelFormatError("final_estimator_ has been fitted with a matrix of one target")
    weights = [Fraction(float(weight)) for weight in parts.coef[0, : len(models)]]
    if estimator.passthrough:
        models = [*models, _passthrough_model(estimator, parts.coef[:, len(models) :])]
        weights.append(Fraction(1))
    members, weights, addend = flattened(estimator, models, weights)
    return sum_of_values(estimator, members, weights, addend + Fraction(float(parts.intercept[0])))


def read_stacking_classifier(estimator: Any, read: Read) -> Model:
    """Read a fitted StackingClassifier whose final model is linear in its members' values, scores or probabilities."""
    models = read_members(estimator, read)
    if isinstance(estimator._label_encoder, list):
        raise UnsupportedModelError(refusal(estimator, "of several labels for each row"))
    classes = ascending_classes(estimator.classes_, "StackingClassifier")
    if not np.array_equal(helper(estimator._label_encoder, "_label_encoder", "LabelEncoder").classes_, classes):
        raise ModelFormatError("_label_encoder and classes_ of this StackingClassifier have other classes")
    if len(estimator.stack_method_) != len(models):
        raise ModelFormatError(f"stack_method_ has {len(estimator.stack_method_)} entries for {len(models)} members")
    requested = list(zip(models, estimator.stack_method_, strict=True))
    if len(classes) > 2:
        return _stack_of_several(estimator, requested, classes)
    parts = _final_parts(estimator, len(models), "classification", 1)
    if parts.labels.tolist() != [1, 0]:
        raise ModelFormatError(f"final_estimator_ knows the classes {parts.labels.tolist()} instead of 0 and 1")
    labels = classes[::-1]
    weights = [Fraction(float(weight)) for weight in parts.coef[0, : len(models)]]
    if estimator.passthrough:
        requested.append((_passthrough_model(estimator, parts.coef[:, len(models) :]), "predict"))
        weights.append(Fraction(1))
    functions, counts, addend = [], [], Fraction(float(parts.intercept[0]))
    for (model, method), weight in zip(requested, weights, strict=True):
        if isinstance(model, Ensemble) and model.averages and method != "predict_proba":
            raise UnsupportedModelError(refusal(estimator, f"that uses {method} of a {model.source}"))
        members, fractions, inner_addend = flattened(estimator, [model], [weight])
        functions += [_stacked(estimator, member, method, labels) for member in members]
        counts += fractions
        addend += inner_addend
    return sum_of_values(estimator, functions, counts, addend, labels, parts.outputs)


def _stack_of_several(estimator: Any, requested: Sequence[tuple[Model, str]], classes: Any) -> Ensemble:
    """Build one function per class: a weighted sum of the members' outputs and, with passthrough, of the features."""
    columns = [_columns(estimator, model, method, classes) for model, method in requested]
    n_columns = sum(width for width, _, _ in columns)
    parts = _final_parts(estimator, n_columns, "classification", len(classes))
    if parts.labels.tolist() != list(range(len(classes))):
        raise ModelFormatError(f"final_estimator_ knows the classes {parts.labels.tolist()} of {len(classes)}")
    coef = [[Fraction(number) for number in row] for row in parts.coef.tolist()]
    sums = [[] for _ in classes]  # type: list[list[Fraction]]
    addends, members, start = [Fraction(number) for number in parts.intercept.tolist()], [], 0
    for width, seen, addend in columns:
        for member, order, share in seen:
            members.append(member)
            for class_sum, row in zip(sums, coef, strict=True):
                class_sum += [row[start + at] * share for at in order]
        addends = [total + row[start] * addend for total, row in zip(addends, coef, strict=True)]
        start += width
    if estimator.passthrough:
        members.append(_passthrough_model(estimator, parts.coef[:, n_columns:]))
        for c, class_sum in enumerate(sums):
            class_sum += [Fraction(int(k == c)) for k in range(len(classes))]
    weights = np.array([[*map(rounded_float, class_sum)] for class_sum in sums])
    combination = Combination(weights=weights, addends=np.array([*map(rounded_float, addends)]))
    source = f"sums of {len(members)}: {members[0].source}"
    return Ensemble(tuple(members), source, parts.outputs, combination, classes)


def _columns(
    estimator: Any, model: Model, method: str, classes: Any
) -> tuple[int, list[tuple[SingleModel, list[int], Fraction]], Fraction]:
    """Return the number of columns that a member provides for the final model, and their composition.

    The composition is a list of models, each with the columns of its outputs and a weight, followed by an addend.
    """
    is_sign = isinstance(model.outputs.probability, SignAlone)
    if method == "predict" and model.task == "regression":
        parts, weights, addend = flattened(estimator, [model], [Fraction(1)])
        if any(part.n_decisions != 1 for part in parts):
            raise UnsupportedModelError(f"a member of this {class_name(estimator)} is a {model.source}")
        return 1, [(part, [0], weight) for part, weight in zip(parts, weights, strict=True)], addend
    if model.task != "classification" or is_sign or len(model.labels) > len(classes):
        raise UnsupportedModelError(f"a member of this {class_name(estimator)} is a {model.source}")
    width, shape = len(model.labels), model.outputs.decision_shape
    if method == "predict_proba" and isinstance(model.outputs.probability, ClassProbability):
        parts, weights, _ = flattened(estimator, [model], [Fraction(1)])
        return width, [_in_order(*part, classes) for part in zip(parts, weights, strict=True)], Fraction(0)
    of_functions = isinstance(model, Ensemble) and model.outputs.of_each_class and model.combination.weights is None
    if method == "decision_function" and isinstance(model, Ensemble) and of_functions:
        order = np.argsort(np.argsort(model.labels)).tolist()
        return width, [(one, [at], Fraction(1)) for one, at in zip(model.members, order, strict=True)], Fraction(0)
    if method == "decision_function" and not isinstance(model, Ensemble) and (width == 2 or shape != "ovo"):
        if width == 2:
            return 1, [(decision_value(estimator, model), [0], Fraction(1))], Fraction(0)
        scores = Outputs(label_rule="scores", decision_shape=shape)
        return width, [_in_order(replace(model, outputs=scores), Fraction(1), classes)], Fraction(0)
    raise UnsupportedModelError(refusal(estimator, f"that uses {method} of a {model.source}"))


def _in_order(member: SingleModel, weight: Fraction, classes: Any) -> tuple[SingleModel, list[int], Fraction]:
    """Replace a classifier's labels with the classes of the same ranks; return the result, the ranks and `weight`."""
    order = np.argsort(np.argsort(member.labels))
    return replace(member, labels=classes[order]), order.tolist(), weight


def _passthrough_model(estimator: Any, coef: Any) -> KernelModel:
    """Build a regressor from the linear functions that the final model applies directly to the input rows."""
    return KernelModel(
        task="regression",
        support_vectors=coef,
        dual_coef=np.eye(len(coef)),
        intercept=np.zeros(len(coef)),
        gamma=1.0,
        degree=1,
        source="passthrough",
        feature_names=feature_names(estimator),
    )


def _final_parts(estimator: Any, n_columns: int, task: str, n_functions: int) -> linear_models.LinearParts:
    """Return the final linear model; its inputs are the members' `n_columns` columns and, with passthrough, the row."""
    final = estimator.final_estimator_
    if name_of(final) not in linear_models.NAMES:
        raise UnsupportedModelError(refusal(estimator, f"whose final_estimator_ is a {class_name(final)}"))
    parts = linear_models.linear_parts(final, class_name(final))
    n_all = n_columns + (int(estimator.n_features_in_) if estimator.passthrough else 0)
    if parts.task != task or parts.coef.shape != (n_functions, n_all):
        raise ModelFormatError(
            f"final_estimator_ has coefficients of shape {parts.coef.shape} for {n_all} columns of estimators_"
        )
    return parts


def _stacked(estimator: Any, member: SingleModel, method: str, labels: Any) -> SingleModel:
    """Convert a member to a final-model input: a value in favour of the first label, or that label's probability."""
    if method == "predict" and member.task == "regression":
        return member
    known = sorted(member.labels.tolist())
    if member.task != "classification" or len(known) != 2 or known not in ([0, 1], sorted(labels.tolist())):
        raise UnsupportedModelError(f"a member of this {class_name(estimator)} is a {member.source}")
    if method == "decision_function":
        return decision_value(estimator, member)
    if method != "predict_proba" or not isinstance(member.outputs.probability, ClassProbability):
        raise UnsupportedModelError(refusal(estimator, f"that uses {method} of a {member.source}"))
    names = labels if member.labels.tolist() == known[::-1] else labels[::-1]
    return replace(member, labels=names)
