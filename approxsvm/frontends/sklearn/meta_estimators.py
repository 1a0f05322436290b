"""scikit-learn's meta-estimators: their combination of members becomes one of the rules of an Ensemble.

Members that have the same kernel after the same map of rows are combined into one model with shared vectors, so each
kernel is evaluated once for all members: sums of regressions, functions of classes, and machines for pairs of classes.
Other combinations of members are rejected, with a remedy.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from inspect import unwrap
from itertools import combinations
from math import fsum
from sys import float_info
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.pairs import PairTerms, pair_block
from approxsvm.frontends.sklearn import linear_models
from approxsvm.frontends.sklearn.kernel_machines import restored, rounded_float
from approxsvm.frontends.sklearn.known_types import class_name, helper, name_of, recognise
from approxsvm.frontends.sklearn.pipeline import Model, Read, overwrites, with_input_map
from approxsvm.frontends.sklearn.remedies import refusal
from approxsvm.frontends.sklearn.support_vector_machines import (
    ascending_classes,
    feature_names,
    is_dropped,
)
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.ensemble import Ensemble
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.ops import Interval
from approxsvm.ir.outputs import (
    ClassProbability,
    DecisionShape,
    IsotonicCalibrator,
    MembersMean,
    OneVsRestCalibration,
    Outputs,
    PairwiseSigmoid,
    SigmoidCalibrator,
    SignAlone,
    TemperatureCalibration,
)
from approxsvm.ir.shared_kernels import difference, of_functions, shared_rows
from approxsvm.ir.single_model import SingleModel

_UP = 1.0 + 2.0**-30
_CONSTANT = "constant"
# Largest value of a member of output codes; rounding of distances grows with its square, and the bounds include it.
_MOST_CODED = 2.0**28
# Scores count a value of 0 for the first class of a pair. If a member then predicts the second, this is its intercept.
_BELOW_0 = -(2.0**-1074)
# Meta-estimators whose members know the class labels, not only their positions.
_BOOSTED = ("AdaBoostClassifier", "RUSBoostClassifier")


def read_self_training(estimator: Any, read: Read) -> Model:
    """Read a fitted SelfTrainingClassifier, which predicts with the estimator that it fitted last."""
    return read(estimator.estimator_)


def read_multi_output(estimator: Any, read: Read) -> Model:
    """Read a fitted MultiOutputRegressor: one regression for each target."""
    members = _members(estimator, read)
    for member in members:
        if member.task != "regression" or member.outputs.is_column:
            raise UnsupportedModelError(f"a member of this MultiOutputRegressor is a {member.source}")
    if len(members) == 1:
        return replace(members[0], outputs=replace(members[0].outputs, is_column=True))
    return Ensemble(tuple(members), source=f"{len(members)} targets: {members[0].source}")


def read_multi_output_classifier(estimator: Any, read: Read) -> Model:
    """Read a fitted MultiOutputClassifier: one classifier for each label."""
    members = _members(estimator, read)
    for member in members:
        if member.task != "classification":
            raise UnsupportedModelError(f"a member of this MultiOutputClassifier is a {member.source}")
    # The source joins all predictions in one NumPy array.
    if len({isinstance(label, str) for member in members for label in member.labels.tolist()}) > 1:
        raise UnsupportedModelError(refusal(estimator, "with labels that are partly texts and partly numbers"))
    dtype = np.result_type(*(member.labels for member in members))
    members = [replace(member, labels=member.labels.astype(dtype)) for member in members]
    if dtype.kind == "f":  # -0.0 becomes 0.0
        members = [replace(member, labels=member.labels + 0.0) for member in members]
    labels = np.unique(np.concatenate([member.labels for member in members]))
    # Values above 0 mean the second label, as for members that share their kernels.
    return _targets(members, members[0].labels[::-1] if len(labels) == 2 else labels)


def read_voting_classifier(estimator: Any, read: Read) -> Model:
    """Read a fitted VotingClassifier: a mean of probabilities, or votes, with weights."""
    models = _models(estimator, read)
    if not np.array_equal(helper(estimator.le_, "le_", "LabelEncoder").classes_, estimator.classes_):
        raise ModelFormatError("le_ and classes_ of this VotingClassifier have other classes")
    if estimator.voting not in ("soft", "hard"):
        raise ModelFormatError(f"voting of this VotingClassifier is {estimator.voting!r}")
    weights = _weights(estimator, len(models))
    chosen = [model for model, weight in zip(models, weights, strict=True) if weight]
    weights = [weight for weight in weights if weight]
    if estimator.voting == "hard":
        return _votes(estimator, _single(estimator, chosen), [float(weight) for weight in weights])
    return _mean_of_probabilities(estimator, chosen, weights)


def read_bagging_classifier(estimator: Any, read: Read) -> Model:
    """Read a fitted BaggingClassifier, which averages probabilities, or counts votes if members have none."""
    models = _bagged_models(estimator, read)
    have_probabilities = {hasattr(inner, "predict_proba") for inner in estimator.estimators_[: len(models)]}
    if len(have_probabilities) > 1:
        raise UnsupportedModelError(refusal(estimator, "with some members that have probabilities and some that vote"))
    if estimator.n_classes_ != len(estimator.classes_):
        raise ModelFormatError(
            f"n_classes_ of this {class_name(estimator)} is {estimator.n_classes_} of {len(estimator.classes_)}"
        )
    if have_probabilities == {True}:
        return _mean_of_probabilities(estimator, models, [Fraction(1)] * len(models))
    return _votes(estimator, _single(estimator, models), [1.0] * len(models))


def read_ada_boost(estimator: Any, read: Read) -> Model:
    """Read a fitted AdaBoostClassifier: votes have weights and partly also count against every other class."""
    members = _members(estimator, read)
    weights = np.asarray(estimator.estimator_weights_, np.float64)[: len(members)]
    if getattr(estimator, "algorithm", "SAMME") == "SAMME.R":
        raise UnsupportedModelError(refusal(estimator, "with algorithm='SAMME.R'"))
    if len(weights) != len(members) or estimator.estimator_weights_[len(members) :].any():
        raise ModelFormatError(
            f"this AdaBoostClassifier has {len(estimator.estimator_weights_)} weights for {len(members)} estimators_"
        )
    classes = ascending_classes(estimator.classes_, "AdaBoostClassifier")
    if estimator.n_classes_ != len(classes):
        raise ModelFormatError(f"n_classes_ of this AdaBoostClassifier is {estimator.n_classes_} of {len(classes)}")
    for inner in estimator.estimators_:
        if not np.array_equal(inner.classes_, classes):
            raise UnsupportedModelError(
                f"a member of this AdaBoostClassifier knows the classes {list(inner.classes_)} of {len(classes)}"
            )
    return _votes(estimator, members, weights.tolist(), -1 / max(len(classes) - 1, 1))


def read_voting_regressor(estimator: Any, read: Read) -> Model:
    """Read a fitted VotingRegressor: a weighted mean of values."""
    models = _models(estimator, read)
    weights = _weights(estimator, len(models), may_subtract=True)
    total = sum(weights)
    return _sum_of_values(estimator, *_flattened(estimator, models, [weight / total for weight in weights]))


def read_bagging_regressor(estimator: Any, read: Read) -> Model:
    """Read a fitted BaggingRegressor: a mean of values."""
    models = _bagged_models(estimator, read)
    return _sum_of_values(estimator, *_flattened(estimator, models, [Fraction(1, len(models))] * len(models)))


def read_stacking_regressor(estimator: Any, read: Read) -> Model:
    """Read a fitted StackingRegressor whose final model is linear: a weighted sum of its members' values."""
    models = _models(estimator, read)
    parts = _final_parts(estimator, len(models), "regression", 1)
    if parts.outputs.is_column:
        raise ModelFormatError("final_estimator_ has been fitted with a matrix of one target")
    weights = [Fraction(float(weight)) for weight in parts.coef[0, : len(models)]]
    if estimator.passthrough:
        models = [*models, _passthrough_model(estimator, parts.coef[:, len(models) :])]
        weights.append(Fraction(1))
    members, weights, addend = _flattened(estimator, models, weights)
    return _sum_of_values(estimator, members, weights, addend + Fraction(float(parts.intercept[0])))


def read_stacking_classifier(estimator: Any, read: Read) -> Model:
    """Read a fitted StackingClassifier whose final model is linear in its members' values, scores or probabilities."""
    models = _models(estimator, read)
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
        members, fractions, inner_addend = _flattened(estimator, [model], [weight])
        functions += [_stacked(estimator, member, method, labels) for member in members]
        counts += fractions
        addend += inner_addend
    return _sum_of_values(estimator, functions, counts, addend, labels, parts.outputs)


def _stack_of_several(estimator: Any, requested: Sequence[tuple[Model, str]], classes: Any) -> Ensemble:
    """Build a final function for each class: sums of the members' outputs, and of the rows with passthrough."""
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
    weights = np.array(
        [[*map(rounded_float, (*class_sum, addend))] for class_sum, addend in zip(sums, addends, strict=True)]
    )
    source = f"sums of {len(members)}: {members[0].source}"
    return Ensemble(tuple(members), source, replace(parts.outputs, weights=weights), classes)


def _columns(
    estimator: Any, model: Model, method: str, classes: Any
) -> tuple[int, list[tuple[SingleModel, list[int], Fraction]], Fraction]:
    """Return the number of columns of a final model that come from a member, and their composition.

    It is a list of models, the columns to which each of their numbers contributes, and its weight; plus an addend.
    """
    is_sign = isinstance(model.outputs.probability, SignAlone)
    if method == "predict" and model.task == "regression":
        parts, weights, addend = _flattened(estimator, [model], [Fraction(1)])
        if any(part.n_decisions != 1 for part in parts):
            raise UnsupportedModelError(f"a member of this {class_name(estimator)} is a {model.source}")
        return 1, [(part, [0], weight) for part, weight in zip(parts, weights, strict=True)], addend
    if model.task != "classification" or is_sign or len(model.labels) > len(classes):
        raise UnsupportedModelError(f"a member of this {class_name(estimator)} is a {model.source}")
    width, shape = len(model.labels), model.outputs.decision_shape
    if method == "predict_proba" and isinstance(model.outputs.probability, ClassProbability):
        parts, weights, _ = _flattened(estimator, [model], [Fraction(1)])
        return width, [_in_order(*part, classes) for part in zip(parts, weights, strict=True)], Fraction(0)
    of_functions = isinstance(model, Ensemble) and model.outputs.of_each_class and not model.outputs.of_sums
    if method == "decision_function" and isinstance(model, Ensemble) and of_functions:
        order = np.argsort(np.argsort(model.labels)).tolist()
        return width, [(one, [at], Fraction(1)) for one, at in zip(model.members, order, strict=True)], Fraction(0)
    if method == "decision_function" and not isinstance(model, Ensemble) and (width == 2 or shape != "ovo"):
        if width == 2:
            return 1, [(_value(estimator, model), [0], Fraction(1))], Fraction(0)
        scores = Outputs(label_rule="scores", decision_shape=shape)
        return width, [_in_order(replace(model, outputs=scores), Fraction(1), classes)], Fraction(0)
    raise UnsupportedModelError(refusal(estimator, f"that uses {method} of a {model.source}"))


def _in_order(member: SingleModel, weight: Fraction, classes: Any) -> tuple[SingleModel, list[int], Fraction]:
    """Return a classifier with as many of `classes` as it has labels, their ranks, and its weight."""
    order = np.argsort(np.argsort(member.labels))
    return replace(member, labels=classes[order]), order.tolist(), weight


def _flattened(
    estimator: Any, models: Sequence[Model], weights: Sequence[Fraction]
) -> tuple[list[SingleModel], list[Fraction], Fraction]:
    """Flatten a sum of models, which may be means or sums, to one sum: its members, weights and addend."""
    members: list[SingleModel] = []
    counts: list[Fraction] = []
    addend = Fraction(0)
    for model, weight in zip(models, weights, strict=True):
        if not isinstance(model, Ensemble):
            members.append(model)
            counts.append(weight)
            continue
        if not (model.averages or (model.task == "regression" and model.real_weights)):
            raise UnsupportedModelError(refusal(estimator, f"around a {model.source}"))
        *inner, inner_addend = model.real_weights or ((Fraction(1),) * len(model.members) + (Fraction(0),))
        total = sum(inner) if model.averages else Fraction(1)
        members += model.members
        counts += [weight * share / total for share in inner]
        addend += weight * inner_addend
    return members, counts, addend


def _passthrough_model(estimator: Any, coef: Any) -> KernelModel:
    """Build the regression of a final model on the rows themselves: linear functions of them."""
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


def read_output_code(estimator: Any, read: Read) -> Model:
    """Read a fitted OutputCodeClassifier: a row has the class with the nearest row of code_book_; ties go to the first.

    |f - c|^2 is |f|^2 - 2 f.c + |c|^2, and |c|^2 is equal for all code words c, whose entries are -1 and 1. So f.c is a
    function for each class, and the largest wins: a sum of the members' kernels. A class with the code word of an
    earlier one is put below that one, and never wins.

    The source rounds its squared distances, which the bounds include (`_rounding_of_distances`). If kernels are
    unbounded, rows are rejected for which a value may exceed `_MOST_CODED`.
    """
    classes = ascending_classes(estimator.classes_, "OutputCodeClassifier")
    constants = [name_of(inner) == "_ConstantPredictor" for inner in estimator.estimators_]
    if all(constants):
        raise UnsupportedModelError(refusal(estimator, "with only constant members"))
    members = _members(estimator, read, constants)
    for inner, member in zip(estimator.estimators_, members, strict=True):
        if member.task != "regression" and not hasattr(inner, "decision_function"):
            raise UnsupportedModelError(refusal(estimator, "with members without a decision_function"))
    book = np.asarray(estimator.code_book_, np.float64)
    if book.shape != (len(classes), len(members)) or not np.isin(book, [-1.0, 1.0]).all():
        raise ModelFormatError(
            f"code_book_ has shape {book.shape} for {len(classes)} classes, or other numbers than -1 and 1"
        )
    kept = np.unique(book, axis=0, return_index=True)[1].tolist()
    if len(kept) < 3:
        raise UnsupportedModelError(refusal(estimator, f"whose code_book_ distinguishes {len(kept)} classes"))
    functions = [_value(estimator, member) for member in members]
    varying = np.flatnonzero(~np.array(constants))
    machines = [one for one in (functions[k] for k in varying) if isinstance(one, KernelModel)]
    unlike = difference(machines) if len(machines) == len(varying) else "of members that are not all sums of kernels"
    if unlike:
        raise UnsupportedModelError(refusal(estimator, unlike))
    answers = {int(k): Fraction(float(np.ravel(estimator.estimators_[k].y_)[0])) for k in np.flatnonzero(constants)}
    constant = float(sum(map(abs, answers.values())))
    constant += fsum(abs(float(machine.intercept[0])) for machine in machines)
    relative, fixed = _rounding_of_distances(len(members), _MOST_CODED)
    if machines[0].is_polynomial:
        machines = _limit_values(estimator, machines)
        most, fixed = len(members) * _MOST_CODED, fixed + relative * constant
    else:  # a Gaussian and a sigmoid are at most 1
        most = (constant + fsum(float(machine.absolute_sums()[0]) for machine in machines)) * _UP
        relative, fixed = _rounding_of_distances(len(members), most)
        relative, fixed = 0.0, fixed + relative * most

    def of_class(c: int) -> KernelModel:
        signs = [Fraction(int(sign)) for sign in book[c].tolist()]
        addend = sum((signs[k] * answer for k, answer in answers.items()), Fraction(0))
        if c not in kept:
            addend -= Fraction(4.0 * (most + len(members)))
        one = _summed(machines, [signs[k] for k in varying], addend)
        coef_error = (one.coef_error + relative) * _UP
        return replace(one, value_error=(one.value_error + fixed) * _UP, coef_error=coef_error)

    source = f"output codes: {machines[0].source}"
    return replace(
        of_functions([of_class(c) for c in range(len(classes))]),
        task="classification",
        labels=classes,
        source=source,
        outputs=Outputs(SignAlone(), label_rule="scores", decision_shape="each"),
    )


def _rounding_of_distances(n: int, most: float) -> tuple[float, float]:
    """Bound the change of f.c by float64 in |f|^2 - 2 f.c + |c|^2: a multiple of m = sum_k |f_k|, and an addend.

    There are n values, none beyond `most`. An inner product, times 2, has an error of at most 2 n u m, with u = UNIT64.
    Each of two sums rounds a number of at most |f|^2 + 2 m + n. Two roots that become equal hide another 2 u of that
    number in each distance. |f|^2 is at most `most` times m. All classes share the rounding of |f|^2, with one
    exception: a distance that comes out below 0 counts as 0. In that case f is next to the code word, and n u |f|^2 is
    at most 2 n^2 u. The error of f.c is half of the sum of these terms.
    """
    return (2.0 * most + n + 4.0) * UNIT64 * _UP, (2.0 * n + n * n) * UNIT64 * _UP


def _limit_values(estimator: Any, machines: Sequence[KernelModel]) -> list[KernelModel]:
    """Restrict machines with polynomial kernels to rows so small that no value exceeds `_MOST_CODED`."""
    first = machines[0]
    reaches = [abs(first.gamma) * np.asarray(abs(machine.support_vectors).sum(axis=1)).ravel() for machine in machines]

    def fits(exponent: int) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):
            powers = [(reach * 2.0**exponent + abs(first.coef0)) ** first.degree for reach in reaches]
            values = [
                abs(float(one.intercept[0])) + float(np.abs(one.dual_coef[0]) @ power)
                for one, power in zip(machines, powers, strict=True)
            ]
        return bool(np.max(values) * _UP <= _MOST_CODED)  # False for NaN

    if not fits(-1000):
        raise UnsupportedModelError(refusal(estimator, f"with members whose values exceed {_MOST_CODED:.2g}"))
    low, high = -1000, 1000
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    ends = np.full(first.n_features, 2.0**low)
    maps = [one.input_map or InputMap.identity(one.n_features, one.feature_names) for one in machines]
    limited = [map_.then_op(Interval("refuses", -ends, ends)) for map_ in maps]
    return [replace(machine, input_map=map_) for machine, map_ in zip(machines, limited, strict=True)]


def read_one_vs_rest(estimator: Any, read: Read) -> Model:
    """Read a fitted OneVsRestClassifier, which predicts the label with the largest decision value, or several labels.

    For members without a decision_function, probabilities replace it.
    """
    binarizer = helper(estimator.label_binarizer_, "label_binarizer_", "LabelBinarizer")
    if binarizer.y_type_.startswith("multilabel"):
        return _multilabel(estimator, read)
    models, classes = _models(estimator, read), ascending_classes(estimator.classes_, "OneVsRestClassifier")
    expected = (0, 1, "multiclass" if len(classes) > 2 else "binary")
    actual = (binarizer.neg_label, binarizer.pos_label, binarizer.y_type_)
    if actual != expected or binarizer.sparse_input_ or not np.array_equal(binarizer.classes_, classes):
        raise ModelFormatError("label_binarizer_ of this OneVsRestClassifier is not as fit leaves it")
    if len(models) != (len(classes) if len(classes) > 2 else 1):
        raise ModelFormatError(f"this OneVsRestClassifier has {len(models)} estimators_ for {len(classes)} classes")
    by_probabilities = not any(hasattr(inner, "decision_function") for inner in estimator.estimators_)
    if by_probabilities and all(isinstance(model, Ensemble) and model.averages for model in models):
        return _one_vs_rest_means(estimator, models, classes)
    members = _single(estimator, models)
    _check_binary(members)
    by_value = all(hasattr(inner, "decision_function") for inner in estimator.estimators_)
    by_value = by_value or all(member.task == "regression" for member in members)
    calibrators = [_calibrator(member) for member in members]
    if not by_value and None in calibrators:
        raise UnsupportedModelError(
            refusal(estimator, "with members that have neither values nor calibrated probabilities")
        )
    known = tuple(calibrator for calibrator in calibrators if calibrator is not None)
    source = f"one against the rest: {members[0].source}"
    if len(classes) == 2:
        return replace(_two_classes(members[0], classes, calibrators[0], by_value), source=source)
    functions = [_function(member) for member in members]
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
    """Combine means of one-vs-rest probabilities, one for each class; with two classes, compare one with 1/2."""
    source = f"one against the rest: {models[0].source}"
    if len(classes) == 2:
        members, counts, _ = _flattened(estimator, models, [Fraction(1)])
        _check_binary(members)
        mean = _mean_of(_with_class_labels(estimator, members), counts, source)
        numbers = np.ones(len(members)) if mean.outputs.weights is None else mean.outputs.weights
        by_half = Outputs(MembersMean(), "probability_threshold", threshold=0.5, weights=numbers)
        return replace(mean, outputs=by_half)
    if takes_last_of_ties(estimator):
        models, classes = models[::-1], classes[::-1]
    seen: list[SingleModel] = []
    sums: list[list[Fraction]] = [[] for _ in classes]
    for c, model in enumerate(models):
        members, weights, _ = _flattened(estimator, [model], [Fraction(1)])
        _check_binary(members)
        seen += [replace(member, labels=classes[: len(member.labels)]) for member in members]
        for k, class_sum in enumerate(sums):
            for member, weight in zip(members, weights, strict=True):
                class_sum += [weight * int(k == c and label == 1) for label in member.labels.tolist()]
    return _class_sums(seen, sums, classes, source)


def _multilabel(estimator: Any, read: Read) -> Model:
    """Read a OneVsRestClassifier of an indicator matrix: a row has each label whose value is above 0.

    All values are compared with 1/2 instead if the first member is not a classifier, or has only probabilities.
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
    members = _members(estimator, read, constants)
    _check_binary(members)
    requested = [inner for inner, constant in zip(estimator.estimators_, constants, strict=True) if not constant]
    by_value = all(hasattr(inner, "decision_function") for inner in requested)
    by_value = by_value or all(member.task == "regression" for member in members)
    calibrators = [_calibrator(member) for member in members]
    if not by_value and (None in calibrators or any(hasattr(inner, "decision_function") for inner in requested)):
        raise UnsupportedModelError(
            refusal(estimator, "with members that have neither values nor calibrated probabilities")
        )
    labels, of_half = np.array([0, 1]), constants[0] and by_value
    known = [
        _two_classes(member, labels, calibrator, by_value or constant, of_half=of_half)
        for member, calibrator, constant in zip(members, calibrators, constants, strict=True)
    ]
    return _targets(known, labels, "ovr")


def _final_parts(estimator: Any, n_columns: int, task: str, n_functions: int) -> linear_models.LinearParts:
    """Return a linear final model of `n_columns` columns from members, and of the rows with passthrough."""
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
    """Return a member in the form that a final model uses: a value in favour of the first label, or its probability."""
    if method == "predict" and member.task == "regression":
        return member
    known = sorted(member.labels.tolist())
    if member.task != "classification" or len(known) != 2 or known not in ([0, 1], sorted(labels.tolist())):
        raise UnsupportedModelError(f"a member of this {class_name(estimator)} is a {member.source}")
    if method == "decision_function":
        return _value(estimator, member)
    if method != "predict_proba" or not isinstance(member.outputs.probability, ClassProbability):
        raise UnsupportedModelError(refusal(estimator, f"that uses {method} of a {member.source}"))
    names = labels if member.labels.tolist() == known[::-1] else labels[::-1]
    return replace(member, labels=names)


def _value(estimator: Any, member: SingleModel) -> SingleModel:
    """Convert a binary classifier to a regression, its decision value in favour of the greater label."""
    if member.task == "regression" and member.n_decisions == 1:
        return member
    if member.task != "classification" or len(member.labels) != 2:
        raise UnsupportedModelError(f"a member of this {class_name(estimator)} is a {member.source}")
    return _function(replace(member, labels=np.argsort(np.argsort(member.labels))))


def _targets(members: Sequence[SingleModel], labels: Any, shape: DecisionShape = "ovo") -> Ensemble:
    source = f"{len(members)} labels: {members[0].source}"
    return Ensemble(tuple(members), source, Outputs(label_rule="targets", decision_shape=shape), labels)


def _check_binary(members: Sequence[SingleModel]) -> None:
    for member in members:
        if member.task != "regression" and (member.task == "one_class" or sorted(member.labels.tolist()) != [0, 1]):
            raise UnsupportedModelError(f"a member of this OneVsRestClassifier is a {member.source}")


def _constant(estimator: Any, like: SingleModel) -> KernelModel:
    """Build the constant answer for a label that all or no training rows had, with another member's input map."""
    recognise(estimator)
    value = np.ravel(estimator.y_)
    if value.tolist() not in ([-1], [0], [1]):
        raise ModelFormatError(f"y_ of this {class_name(estimator)} is {value.tolist()}")
    return KernelModel(
        task="regression",
        support_vectors=np.zeros((1, like.n_features)),
        dual_coef=np.zeros((1, 1)),
        intercept=value.astype(np.float64),
        gamma=1.0,
        degree=1,
        source=_CONSTANT,
        feature_names=like.feature_names,
        input_map=like.input_map,
    )


def read_threshold(estimator: Any, read: Read) -> Model:
    """Read a fitted FixedThresholdClassifier or TunedThresholdClassifierCV.

    A row gets the positive class if the probability, or the decision value, of that class is at least the threshold.
    """
    name = class_name(estimator)
    if hasattr(estimator, "_curve_scorer"):
        inner, threshold = estimator.estimator_, estimator.best_threshold_
        positive = helper(estimator._curve_scorer, "_curve_scorer", "_CurveScorer")._get_pos_label()
    else:
        inner = getattr(estimator, "estimator_", estimator.estimator)
        threshold, positive = estimator.threshold, estimator.pos_label
    model = read(inner)
    labels = model.labels.tolist()
    if estimator.response_method not in ("auto", "predict_proba", "decision_function"):
        raise ModelFormatError(f"response_method of this {name} is {estimator.response_method!r}")
    if len(labels) != 2 or sorted(labels) != ascending_classes(inner.classes_, name).tolist():
        raise UnsupportedModelError(refusal(estimator, f"of the classes {labels}"))
    method = estimator.response_method
    if method == "auto":
        method = "predict_proba" if hasattr(inner, "predict_proba") else "decision_function"
    if isinstance(threshold, str):
        threshold = 0.5 if method == "predict_proba" else 0.0
    positive = inner.classes_[1] if positive is None else positive
    if positive not in labels:
        raise ModelFormatError(f"pos_label of this {name} is {positive!r}, none of the classes {labels}")
    numbers: dict[str, Any] = {"threshold": float(threshold), "threshold_label": labels.index(positive)}
    if method == "predict_proba":
        if not isinstance(model.outputs.probability, ClassProbability):
            raise UnsupportedModelError(refusal(estimator, f"by predict_proba of a {model.source}"))
        if not isinstance(model, Ensemble) and not hasattr(inner, "decision_function"):
            model = Ensemble((model,), model.source)  # a mean, which also has no decision values
        outputs = replace(model.outputs, label_rule="probability_threshold", **numbers)
        if isinstance(model, Ensemble) and outputs.weights is None:
            outputs = replace(outputs, weights=np.ones(len(model.members)))
        return replace(model, outputs=outputs)
    is_sum = isinstance(model, Ensemble) and model.labels_sum
    if (isinstance(model, Ensemble) and not is_sum) or not hasattr(inner, "decision_function"):
        raise UnsupportedModelError(refusal(estimator, f"by {method} of a {model.source}"))
    return replace(model, outputs=replace(model.outputs, label_rule="value_threshold", **numbers))


def read_one_vs_one(estimator: Any, read: Read) -> Model:
    """Read a fitted OneVsOneClassifier of more than two classes, which labels by scores like SVC with break_ties.

    Members whose kernels differ, such as those of SVC with gamma="scale", stay separate.
    """
    members = _members(estimator, read)
    classes = ascending_classes(estimator.classes_, "OneVsOneClassifier")
    pairs = list(combinations(range(len(classes)), 2))
    if len(classes) < 3:
        raise UnsupportedModelError(
            f"this OneVsOneClassifier has {len(classes)} classes; compile estimators_[0], whose labels are 0 and 1"
        )
    if estimator.pairwise_indices_ is not None or len(members) != len(pairs):
        raise ModelFormatError(f"this OneVsOneClassifier has {len(members)} estimators_ for {len(pairs)} pairs")
    for member in members:
        if member.task != "classification" or sorted(member.labels.tolist()) != [0, 1]:
            raise UnsupportedModelError(f"a member of this OneVsOneClassifier is a {member.source}")
        if member.outputs.label_rule != "votes":
            raise UnsupportedModelError(f"a member of this OneVsOneClassifier labels by {member.outputs.label_rule}")
    source, outputs = f"one against one: {members[0].source}", Outputs(label_rule="scores", decision_shape="ovr")
    machines = [member for member in members if isinstance(member, KernelModel)]
    if len(machines) < len(members) or difference(machines):
        return Ensemble(tuple(map(_for_first, members)), source, outputs, classes)
    signed = [machine if machine.labels[0] == 0 else machine.negated() for machine in machines]
    rows, where = shared_rows(signed)
    terms = [
        PairTerms(at, one.dual_coef[0], float(one.intercept[0] or (_BELOW_0 if one is machine else 0.0)))
        for at, one, machine in zip(where, signed, machines, strict=True)
    ]
    block = pair_block(len(classes), rows.shape[0], terms)
    return replace(
        machines[0],
        support_vectors=rows[block.order],
        dual_coef=block.dual_coef,
        intercept=block.intercept,
        labels=classes,
        n_support=block.n_support,
        source=source,
        feature_names=feature_names(estimator) or machines[0].feature_names,
        outputs=outputs,
        value_error=np.concatenate([machine.value_error for machine in signed]) - _BELOW_0,
        coef_error=max(machine.coef_error for machine in machines),
    )


def _for_first(member: SingleModel) -> SingleModel:
    """Return a pair's value in favour of its first class, label 0; it is below 0 if the member predicts the second."""
    function = _function(replace(member, labels=1 - member.labels))
    if member.labels[0] == 1:
        return function
    intercept = np.where(function.intercept == 0.0, _BELOW_0, function.intercept)
    return replace(function, intercept=intercept, value_error=function.value_error - _BELOW_0)


def _members(estimator: Any, read: Read, constants: Sequence[bool] = ()) -> list[SingleModel]:
    """Read the models of estimators_, none of which may be an ensemble."""
    models = _single(estimator, _models(estimator, read, constants))
    if not any(constants):
        return models
    rest = iter(models)
    of_each = zip(estimator.estimators_, constants, strict=True)
    return [_constant(inner, models[0]) if constant else next(rest) for inner, constant in of_each]


def _single(estimator: Any, models: Sequence[Model]) -> list[SingleModel]:
    for model in models:
        if isinstance(model, Ensemble):
            raise UnsupportedModelError(refusal(estimator, f"around a {model.source}"))
    return [model for model in models if not isinstance(model, Ensemble)]


def _models(estimator: Any, read: Read, constants: Sequence[bool] = ()) -> list[Model]:
    """Read the models of estimators_ except constant ones; none may change the rows that later members take."""
    if len(estimator.estimators_) == 0:
        raise ModelFormatError(f"estimators_ of this {class_name(estimator)} is empty")
    if any(overwrites(inner) for inner in estimator.estimators_[:-1]):
        raise UnsupportedModelError(
            f"a scaler in this {class_name(estimator)} overwrites (copy=False) the rows of the other members; refit "
            "with copy=True"
        )
    return [read(inner) for k, inner in enumerate(estimator.estimators_) if not (k < len(constants) and constants[k])]


def _weights(estimator: Any, n_members: int, *, may_subtract: bool = False) -> list[Fraction]:
    """Return the weights of the members of a VotingClassifier or VotingRegressor; 1 if none are given."""
    if estimator.weights is None:
        return [Fraction(1)] * n_members
    kept = [
        Fraction(float(weight))
        for (_, member), weight in zip(estimator.estimators, estimator.weights, strict=True)
        if not is_dropped(member)
    ]
    total = sum(kept)
    is_known = len(kept) == n_members and (may_subtract or min(kept) >= 0)
    if not is_known or total == 0 or abs(total) > float_info.max:
        raise ModelFormatError(
            f"weights of this {class_name(estimator)} are {[float(w) for w in kept]} for {n_members} estimators_"
        )
    return kept


def _bagged_models(estimator: Any, read: Read) -> list[Model]:
    """Read the members of a bag, each after a selection of the columns on which it was trained.

    A bag uses its first n_estimators members, and divides by that number.
    """
    name, n_asked = class_name(estimator), estimator.n_estimators
    n_members, n_chosen = len(estimator.estimators_), len(estimator.estimators_features_)
    if n_chosen != n_members:
        raise ModelFormatError(
            f"estimators_features_ of this {name} has {n_chosen} entries for {n_members} estimators_"
        )
    if not isinstance(n_asked, (int, np.integer)) or not 1 <= n_asked <= n_members:
        raise ModelFormatError(
            f"n_estimators of this {name} is {n_asked} for {n_members} estimators_; "
            f"set_params(n_estimators={n_members}) uses all of them"
        )
    members = _models(estimator, read)[:n_asked]
    n_raw, names = int(estimator.n_features_in_), feature_names(estimator)
    of_each = zip(members, estimator.estimators_features_[:n_asked], strict=True)
    return [with_input_map(member, InputMap.selection(n_raw, columns, names)) for member, columns in of_each]


def _mean_of_probabilities(estimator: Any, models: Sequence[Model], weights: Sequence[Fraction]) -> Model:
    """Combine members by their weighted mean probability, which determines the label."""
    name = class_name(estimator)
    members, weights, _ = _flattened(estimator, models, weights)
    ordered = []
    for member in members:
        if not isinstance(member.outputs.probability, ClassProbability):
            raise UnsupportedModelError(f"a member of this {name} ({member.source}) has no probabilities")
        if member.outputs.label_rule != "probability":
            by_probability = replace(member.outputs, label_rule="probability", threshold=None, threshold_label=0)
            member = replace(member, outputs=by_probability)
        ordered.append(member)
    ordered = _with_class_labels(estimator, ordered)
    return mean_of(ordered, weights, estimator.classes_)


def mean_of(members: Sequence[SingleModel], weights: Sequence[Fraction], classes: Any) -> Model:
    """Combine classifiers of `classes`, or of some of these, by their weighted mean probability."""
    source = f"mean of {len(members)}: {members[0].source}"
    if _all_classes(members, classes) is not None:
        total, of_each = sum(weights), zip(members, weights, strict=True)
        columns = [(label, weight / total) for member, weight in of_each for label in member.labels.tolist()]
        sums = [[share * int(label == c) for label, share in columns] for c in classes.tolist()]
        return _class_sums(members, sums, classes, source)
    return members[0] if len(members) == 1 else _mean_of(members, weights, source)


def _class_sums(
    members: Sequence[SingleModel], sums: Sequence[Sequence[Fraction]], classes: Any, source: str
) -> Ensemble:
    """Build a weighted sum of the members' probabilities for each class, proportional to its probability."""
    numbers = np.array([[*map(rounded_float, class_sum), 0.0] for class_sum in sums])
    as_they_are = IsotonicCalibrator(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    probability = OneVsRestCalibration((as_they_are,) * len(classes), positive=0)
    return Ensemble(tuple(members), source, Outputs(probability, "probability", "each", weights=numbers), classes)


def _mean_of(members: Sequence[SingleModel], weights: Sequence[Fraction], source: str) -> Ensemble:
    if len(set(weights)) == 1:
        return Ensemble(tuple(members), source)
    scale = Fraction(2) ** -int(np.frexp(float(max(weights)))[1])  # so that products do not underflow
    numbers = np.array([rounded_float(weight * scale) for weight in weights])
    outputs = Outputs(MembersMean(), "probability", weights=numbers)
    return Ensemble(tuple(members), source, outputs, real_weights=(*weights, Fraction(0)))


def _votes(estimator: Any, members: Sequence[SingleModel], weights: Sequence[float], against: float = 0.0) -> Model:
    """Combine members by votes alone; if sums of weights are equal, the first class wins."""
    ordered = _with_class_labels(estimator, members)
    shape: DecisionShape = "ovo" if name_of(estimator) == "VotingClassifier" else "ovr"  # without probabilities
    outputs = Outputs(decision_shape=shape, weights=np.array(weights), addend=against)
    source = f"votes of {len(ordered)}: {ordered[0].source}"
    return Ensemble(tuple(ordered), source, outputs, _all_classes(ordered, estimator.classes_))


def _all_classes(members: Sequence[SingleModel], classes: Any) -> Any:
    """Return the classes of a meta-estimator if some member does not know them all, else None."""
    return None if all(len(member.labels) == len(classes) for member in members) else np.asarray(classes)


def _with_class_labels(estimator: Any, members: Sequence[SingleModel]) -> list[SingleModel]:
    """Give classifiers the class labels of their meta-estimator, in its order; they know positions, or all labels."""
    name = class_name(estimator)
    classes = ascending_classes(estimator.classes_, name)
    every = range(len(classes))
    labelled = []
    for member in members:
        if member.task != "classification":
            raise UnsupportedModelError(f"a member of this {name} is a {member.source}")
        known = sorted(member.labels.tolist())
        if known == classes.tolist() or (name_of(estimator) in _BOOSTED and {*known} < {*classes.tolist()}):
            known = np.searchsorted(classes, known).tolist()
        elif not all(isinstance(label, int) and label in every for label in known):
            raise ModelFormatError(f"a member of this {name} knows the classes {known}, not those of {len(classes)}")
        if member.labels.tolist() != sorted(member.labels.tolist()):  # two labels, in the other order
            member = _with_labels_reversed(member, name)
        labelled.append(replace(member, labels=classes[known]))
    return labelled


def _with_labels_reversed(member: SingleModel, name: str) -> SingleModel:
    """Return the same classifier of two classes with its labels in the other order, and unchanged predictions."""
    outputs, probability = member.outputs, member.outputs.probability
    if isinstance(probability, PairwiseSigmoid) and not probability.couple_two_classes:
        probability = replace(probability, prob_b=-probability.prob_b)
    elif isinstance(probability, (OneVsRestCalibration, TemperatureCalibration)):
        probability = replace(probability, positive=1 - probability.positive)
    elif isinstance(probability, ClassProbability):
        raise UnsupportedModelError(f"a member of this {name} ({member.source}) has its labels in descending order")
    changed = replace(outputs, probability=probability)
    if outputs.label_rule == "votes":  # a value above 0 means the label that was first and is now second
        changed = replace(changed, label_rule="value_threshold", threshold=0.0)
    elif outputs.threshold is not None:
        changed = replace(changed, threshold_label=1 - outputs.threshold_label)
    return replace(member.negated(), outputs=changed)


def _function(member: SingleModel) -> SingleModel:
    """Convert a binary classifier to a regression whose value is positive for label 1."""
    if member.task == "regression":
        return member
    signed = member if member.labels[0] == 1 else member.negated()
    changes: dict[str, Any] = {"task": "regression", "labels": np.empty(0), "outputs": Outputs()}
    if isinstance(signed, KernelModel):
        changes["n_support"] = np.empty(0, np.int64)
    return replace(signed, **changes)


def _calibrator(member: SingleModel) -> SigmoidCalibrator | IsotonicCalibrator | None:
    """Return the calibrator from that value to the probability of label 1; None if it has no closed form."""
    calibration = member.outputs.probability
    if member.source == _CONSTANT:
        return IsotonicCalibrator(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    if isinstance(calibration, TemperatureCalibration):
        return SigmoidCalibrator(-2.0 * calibration.inverse_temperature, 0.0)
    if isinstance(calibration, OneVsRestCalibration) and member.labels[calibration.positive] == 1:
        return calibration.calibrators[0]
    return None


def _two_classes(
    member: SingleModel,
    classes: Any,
    calibrator: SigmoidCalibrator | IsotonicCalibrator | None,
    by_value: bool,
    *,
    of_half: bool = False,
) -> SingleModel:
    """Convert a binary classifier or a regression to a classifier of two classes, the second if above 0, or above 1/2.

    Positive values mean the first of the model's labels, which also wins if probabilities are equal.
    """
    function, labels = _function(member), classes[::-1]
    probability = None if calibrator is None else OneVsRestCalibration((calibrator,), positive=0)
    if member.task == "regression" or of_half:  # the first of the classes has -f >= -1/2
        outputs = Outputs(probability, label_rule="value_threshold", threshold=-0.5, threshold_label=1)
    elif by_value:
        outputs = Outputs(probability)
    else:
        assert probability is not None
        function, labels = function.negated(), classes
        outputs = Outputs(replace(probability, positive=1), "probability")
    return replace(function, task="classification", labels=labels, outputs=outputs)


def takes_last_of_ties(estimator: Any) -> bool:
    """Return whether ties go to the last value; newer versions of scikit-learn reverse members and take the first."""
    return "reversed" not in unwrap(estimator.predict).__code__.co_names


def _sum_of_values(
    estimator: Any,
    members: Sequence[SingleModel],
    weights: Sequence[Fraction],
    addend: Fraction = Fraction(0),
    classes: Any = None,
    outputs: Outputs | None = None,
) -> Model:
    """Combine regressions by a weighted sum over the real numbers, a single sum of kernels if they are the same.

    With two `classes`, the first where it is above 0, members may also be classifiers, which contribute probabilities.
    """
    for member in members:
        is_probability = member.task == "classification" and classes is not None
        if not is_probability and (member.task != "regression" or member.outputs.is_column or member.n_decisions != 1):
            raise UnsupportedModelError(f"a member of this {class_name(estimator)} is a {member.source}")
    counts = [(member, weight) for member, weight in zip(members, weights, strict=True) if weight]
    if not counts:
        raise UnsupportedModelError(refusal(estimator, "whose members all have weight 0"))
    chosen, weights = [member for member, _ in counts], [weight for _, weight in counts]
    machines = [m for m in chosen if isinstance(m, KernelModel) and m.task == "regression"]
    if len(machines) < len(chosen) or difference(machines):
        if outputs is not None:  # the second class has -f >= 0
            outputs = replace(outputs, label_rule="value_threshold", threshold=0.0, threshold_label=1)
        numbers = np.array([rounded_float(w) for w in weights])
        outputs = replace(outputs or Outputs(), weights=numbers, addend=rounded_float(addend))
        source = f"sum of {len(chosen)}: {chosen[0].source}"
        return Ensemble(tuple(chosen), source, outputs, classes, real_weights=(*weights, addend))
    one = _summed(machines, weights, addend)
    one = replace(one, feature_names=feature_names(estimator) or one.feature_names)
    return one if outputs is None else replace(one, task="classification", labels=classes, outputs=outputs)


def _summed(machines: Sequence[KernelModel], weights: Sequence[Fraction], addend: Fraction) -> KernelModel:
    """Combine regressions with one kernel to a weighted sum, as one of them."""
    parts = [restored(machine, weight, Fraction(0)) for machine, weight in zip(machines, weights, strict=True)]
    rows, where = shared_rows(machines)
    # The members' errors include the rounding of their intercepts; here these are summed exactly.
    exact = sum((Fraction(float(part.intercept[0])) for part in parts), addend)
    intercept = rounded_float(exact)
    error = fsum(float(part.value_error[0]) for part in parts) + UNIT64 * abs(intercept)
    terms: list[list[float]] = [[] for _ in range(rows.shape[0])]
    for at, part in zip(where, parts, strict=True):
        for k, a in zip(at.tolist(), part.dual_coef[0].tolist(), strict=True):
            terms[k].append(a)
    coef = np.array([fsum(some) for some in terms])  # rounded once, and a Gaussian is at most 1
    error += UNIT64 * float(np.abs(coef[[len(some) > 1 for some in terms]]).sum())
    return replace(
        parts[0],
        support_vectors=rows,
        dual_coef=coef,
        intercept=np.array([intercept]),
        source=f"mean of {len(parts)}: {machines[0].source}",
        value_error=np.array([error * _UP + 2.0**-1040]),
        coef_error=max(part.coef_error for part in parts),
    )
