"""scikit-learn's estimators around several: what they make of their members is a mean, one sum of kernels, or pairs.

Means of probabilities are an Ensemble. Means of regressions and machines for pairs of classes become one model where
their members have the same kernel and the same rows in front of it, with vectors that they share once: kernels are
evaluated once for all members. Whatever else these estimators do is refused with what to do instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import fsum
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.model.constants import UNIT64
from approxsvm.model.ensemble import Ensemble
from approxsvm.model.input_map import InputMap
from approxsvm.model.kernel_model import FloatArray, KernelModel
from approxsvm.model.outputs import (
    ClassProbability,
    OneVsRestCalibration,
    Outputs,
    PairwiseSigmoid,
    TemperatureCalibration,
)
from approxsvm.model.single_model import SingleModel
from approxsvm.model.steps import Affine
from approxsvm.model.steps.affine import AFFINE_PARTS
from approxsvm.readers.pairs import PairTerms, pair_block
from approxsvm.readers.sklearn.instead import refusal
from approxsvm.readers.sklearn.kernel_machines import restored, rounded_float
from approxsvm.readers.sklearn.known_types import class_name
from approxsvm.readers.sklearn.pipeline import Model, Read, overwrites, with_input_map
from approxsvm.readers.sklearn.support_vector_machines import ascending_classes, feature_names, require_fitted

_UP = 1.0 + 2.0**-30


def read_self_training(estimator: Any, read: Read) -> Model:
    """Read a fitted SelfTrainingClassifier, which predicts by the estimator that it has fitted last."""
    require_fitted(estimator, "SelfTrainingClassifier", "estimator_")
    return read(estimator.estimator_)


def read_multi_output(estimator: Any, read: Read) -> Model:
    """Read a fitted MultiOutputRegressor: regressions side by side."""
    members = _members(estimator, read)
    for member in members:
        if member.task != "regression" or member.outputs.is_column:
            raise UnsupportedModelError(f"a member of this MultiOutputRegressor is a {member.source}")
    if len(members) == 1:
        return replace(members[0], outputs=replace(members[0].outputs, is_column=True))
    return Ensemble(tuple(members), source=f"{len(members)} targets: {members[0].source}")


def read_voting_classifier(estimator: Any, read: Read) -> Model:
    """Read a fitted VotingClassifier with voting="soft", and weights that are equal or not given."""
    members = _members(estimator, read)
    if not np.array_equal(estimator.le_.classes_, estimator.classes_):
        raise ModelFormatError("le_ and classes_ of this VotingClassifier have other classes")
    if estimator.voting != "soft":
        raise UnsupportedModelError(refusal(estimator, f"with voting={estimator.voting!r}"))
    weights = _weights(estimator, len(members))
    chosen = [member for member, weight in zip(members, weights, strict=True) if weight]
    if len({weight for weight in weights if weight}) != 1:
        raise UnsupportedModelError(refusal(estimator, f"with the weights {[float(w) for w in weights]}"))
    return _mean_of_probabilities(estimator, chosen)


def read_bagging_classifier(estimator: Any, read: Read) -> Model:
    """Read a fitted BaggingClassifier whose members have probabilities, which it averages."""
    members = _members(estimator, read)
    if not all(isinstance(member.outputs.probability, ClassProbability) for member in members):
        raise UnsupportedModelError(refusal(estimator, "of members without probabilities"))
    return _mean_of_probabilities(estimator, _of_chosen_columns(estimator, members))


def read_voting_regressor(estimator: Any, read: Read) -> Model:
    """Read a fitted VotingRegressor as one sum of kernels."""
    members = _members(estimator, read)
    return _mean_of_values(estimator, members, _weights(estimator, len(members)))


def read_bagging_regressor(estimator: Any, read: Read) -> Model:
    """Read a fitted BaggingRegressor as one sum of kernels."""
    members = _of_chosen_columns(estimator, _members(estimator, read))
    return _mean_of_values(estimator, members, [Fraction(1)] * len(members))


def read_one_vs_one(estimator: Any, read: Read) -> Model:
    """Read a fitted OneVsOneClassifier of more than two classes, which labels by scores as SVC with break_ties."""
    members = _members(estimator, read)
    classes = ascending_classes(estimator.classes_, "OneVsOneClassifier")
    pairs = list(combinations(range(len(classes)), 2))
    if len(classes) < 3:
        raise UnsupportedModelError(
            f"this OneVsOneClassifier has {len(classes)} classes; compile estimators_[0], whose labels are 0 and 1"
        )
    if estimator.pairwise_indices_ is not None or len(members) != len(pairs):
        raise ModelFormatError(f"this OneVsOneClassifier has {len(members)} estimators_ for {len(pairs)} pairs")
    machines = _alike(estimator, members)
    for machine in machines:
        if machine.task != "classification" or sorted(machine.labels.tolist()) != [0, 1]:
            raise UnsupportedModelError(f"a member of this OneVsOneClassifier is a {machine.source}")
        if machine.outputs.label_rule != "votes":
            raise UnsupportedModelError(f"a member of this OneVsOneClassifier labels by {machine.outputs.label_rule}")
    signed = [machine if machine.labels[0] == 0 else machine.negated() for machine in machines]
    rows, where = _shared_rows(signed)
    functions = [
        PairTerms(at, machine.dual_coef[0], float(machine.intercept[0]))
        for at, machine in zip(where, signed, strict=True)
    ]
    block = pair_block(len(classes), rows.shape[0], functions)
    return KernelModel(
        task="classification",
        support_vectors=rows[block.order],
        dual_coef=block.dual_coef,
        intercept=block.intercept,
        gamma=machines[0].gamma,
        labels=classes,
        n_support=block.n_support,
        source=f"one against one: {machines[0].source}",
        feature_names=feature_names(estimator) or machines[0].feature_names,
        outputs=Outputs(label_rule="scores", decision_shape="ovr"),
        input_map=machines[0].input_map,
        value_error=np.concatenate([machine.value_error for machine in signed]),
        degree=machines[0].degree,
        is_sigmoid=machines[0].is_sigmoid,
        coef0=machines[0].coef0,
        coef_error=max(machine.coef_error for machine in machines),
    )


def _members(estimator: Any, read: Read) -> list[SingleModel]:
    """The models of estimators_, none of which changes the rows that others take after it."""
    require_fitted(estimator, class_name(estimator), "estimators_")
    if len(estimator.estimators_) == 0:
        raise ModelFormatError(f"estimators_ of this {class_name(estimator)} is empty")
    if any(overwrites(inner) for inner in estimator.estimators_[:-1]):
        raise UnsupportedModelError(
            f"a scaler in this {class_name(estimator)} overwrites (copy=False) what the other members take; refit with "
            "copy=True"
        )
    members = []
    for inner in estimator.estimators_:
        model = read(inner)
        if isinstance(model, Ensemble):
            raise UnsupportedModelError(refusal(estimator, f"around a {model.source}"))
        members.append(model)
    return members


def _weights(estimator: Any, n_members: int) -> list[Fraction]:
    """Weights of the members of a VotingClassifier or VotingRegressor; all 1 where none are given."""
    if estimator.weights is None:
        return [Fraction(1)] * n_members
    kept = [
        Fraction(float(weight))
        for (_, member), weight in zip(estimator.estimators, estimator.weights, strict=True)
        if not (isinstance(member, str) and member == "drop")
    ]
    if len(kept) != n_members or min(kept) < 0 or not any(kept):
        raise ModelFormatError(
            f"weights of this {class_name(estimator)} are {[float(w) for w in kept]} for {n_members} estimators_"
        )
    return kept


def _of_chosen_columns(estimator: Any, members: Sequence[SingleModel]) -> list[SingleModel]:
    """Members of a bag in front of which are the columns that each was trained on."""
    n_raw, names = int(estimator.n_features_in_), feature_names(estimator)
    if len(estimator.estimators_features_) != len(members):
        raise ModelFormatError(
            f"estimators_features_ of this {class_name(estimator)} has {len(estimator.estimators_features_)} entries "
            f"for {len(members)} estimators_"
        )
    chosen = []
    for member, columns in zip(members, estimator.estimators_features_, strict=True):
        model = with_input_map(member, InputMap.selection(n_raw, columns, names))
        assert not isinstance(model, Ensemble)
        chosen.append(model)
    return chosen


def _mean_of_probabilities(estimator: Any, members: Sequence[SingleModel]) -> Model:
    """Members trained on the positions of classes, whose mean probability labels."""
    name = class_name(estimator)
    classes = ascending_classes(estimator.classes_, name)
    positions, ordered = np.arange(len(classes)), []
    for member in members:
        probability = member.outputs.probability
        if not isinstance(probability, ClassProbability):
            raise UnsupportedModelError(f"a member of this {name} ({member.source}) has no probabilities")
        if sorted(member.labels.tolist()) != positions.tolist():
            raise UnsupportedModelError(
                f"a member of this {name} knows the classes {sorted(member.labels.tolist())} of {len(classes)}; refit "
                "with samples that have all"
            )
        if member.labels.tolist() != positions.tolist():  # two, in the other order
            member, probability = member.negated(), _negated(probability)
        outputs = Outputs(probability, label_rule="probability", decision_shape=member.outputs.decision_shape)
        ordered.append(replace(member, labels=classes, outputs=outputs))
    if len(ordered) == 1:
        return ordered[0]
    return Ensemble(tuple(ordered), source=f"mean of {len(ordered)}: {ordered[0].source}")


def _negated(probability: ClassProbability) -> ClassProbability:
    """The same probabilities of classes, of the negated value and labels in the other order."""
    if isinstance(probability, PairwiseSigmoid):
        return replace(probability, prob_b=-probability.prob_b)
    assert isinstance(probability, (OneVsRestCalibration, TemperatureCalibration))
    return replace(probability, positive=1 - probability.positive)


def _mean_of_values(estimator: Any, members: Sequence[SingleModel], weights: Sequence[Fraction]) -> KernelModel:
    """The weighted mean of regressions, over the real numbers: one sum of kernels."""
    chosen = [(member, weight) for member, weight in zip(members, weights, strict=True) if weight]
    machines = _alike(estimator, [member for member, _ in chosen])
    total = sum(weights, Fraction(0))
    for machine in machines:
        if machine.task != "regression" or machine.outputs.is_column:
            raise UnsupportedModelError(f"a member of this {class_name(estimator)} is a {machine.source}")
    parts = [
        restored(machine, weight / total, Fraction(0)) for machine, (_, weight) in zip(machines, chosen, strict=True)
    ]
    rows, where = _shared_rows(machines)
    first = parts[0]
    # What the members' intercepts have lost to rounding is in their errors; here they are summed exactly.
    exact = sum((Fraction(float(part.intercept[0])) for part in parts), Fraction(0))
    intercept = rounded_float(exact)
    error = fsum(float(part.value_error[0]) for part in parts) + UNIT64 * abs(intercept)
    terms: list[list[float]] = [[] for _ in range(rows.shape[0])]
    for at, part in zip(where, parts, strict=True):
        for k, a in zip(at.tolist(), part.dual_coef[0].tolist(), strict=True):
            terms[k].append(a)
    coef = np.array([fsum(some) for some in terms])  # rounded once, and a Gaussian is at most 1
    error += UNIT64 * float(np.abs(coef[[len(some) > 1 for some in terms]]).sum())
    return KernelModel(
        task="regression",
        support_vectors=rows,
        dual_coef=coef,
        intercept=np.array([intercept]),
        gamma=first.gamma,
        source=f"mean of {len(parts)}: {machines[0].source}",
        feature_names=feature_names(estimator) or first.feature_names,
        input_map=first.input_map,
        value_error=np.array([error * _UP + 2.0**-1040]),
        degree=first.degree,
        coef0=first.coef0,
        is_sigmoid=first.is_sigmoid,
        coef_error=max(part.coef_error for part in parts),
    )


def _alike(estimator: Any, members: Sequence[SingleModel]) -> list[KernelModel]:
    """The members, which have one kernel, of one number, of rows that are made in one way."""
    machines = [member for member in members if isinstance(member, KernelModel)]
    if len(machines) < len(members):
        raise UnsupportedModelError(refusal(estimator, "of members that are not all sums of kernels"))
    first = machines[0]
    for machine in machines[1:]:
        for key in ("kernel", "degree", "gamma", "coef0"):
            mine, its = getattr(first, key), getattr(machine, key)
            if mine != its:
                number = ", where one number for all makes them one model" if key == "gamma" else ""
                raise UnsupportedModelError(
                    refusal(estimator, f"whose members have the {key} {mine} and {its}{number}")
                )
        if not _same_map(first.input_map, machine.input_map) or first.n_features != machine.n_features:
            raise UnsupportedModelError(
                refusal(
                    estimator, "whose members scale or choose columns in ways of their own; put what scales in front"
                )
            )
    return machines


def _same_map(one: InputMap | None, other: InputMap | None) -> bool:
    if one is None or other is None:
        return one is other
    return (
        one.n_raw_features == other.n_raw_features
        and np.array_equal(one.columns, other.columns)
        and len(one.stages) == len(other.stages)
        and all(map(_same_stage, one.stages, other.stages))
    )


def _same_stage(one: Any, other: Any) -> bool:
    if not (isinstance(one, Affine) and isinstance(other, Affine)):
        return False  # what has other stages is not compared
    parts = [(getattr(one, name), getattr(other, name)) for name in AFFINE_PARTS]
    return all(np.array_equal(a, b) if a is not None and b is not None else a is b for a, b in parts)


def _shared_rows(machines: Sequence[KernelModel]) -> tuple[Any, list[Any]]:
    """Support vectors of all machines, and where each one has its own.

    Gaussians of machines that share rows have them once. Rounding of summed coefficients is relative to the sum, which
    counts for polynomials by how large they are; so those keep theirs apart, and so do sparse rows, and the rows that
    one machine has twice.
    """
    stacked = [machine.support_vectors for machine in machines]
    ends = np.cumsum([rows.shape[0] for rows in stacked])
    apart = [np.arange(end - rows.shape[0], end) for end, rows in zip(ends, stacked, strict=True)]
    if not all(isinstance(rows, np.ndarray) for rows in stacked):
        from scipy.sparse import csr_array, vstack

        return csr_array(vstack([csr_array(rows) for rows in stacked])), apart
    dense: FloatArray = np.concatenate(stacked)
    if machines[0].kernel != "gaussian":
        return dense, apart
    positions: dict[tuple[bytes, int], int] = {}
    kept: list[int] = []
    where = []
    for own in apart:
        seen: dict[bytes, int] = {}
        at = []
        for k in own.tolist():
            row = (dense[k] + 0.0).tobytes()  # -0.0 is 0.0
            seen[row] = seen.get(row, -1) + 1
            if (row, seen[row]) not in positions:
                positions[row, seen[row]] = len(kept)
                kept.append(k)
            at.append(positions[row, seen[row]])
        where.append(np.array(at, np.intp))
    return dense[kept], where
