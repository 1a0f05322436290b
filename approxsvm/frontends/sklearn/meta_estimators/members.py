"""Readers of meta-estimators' members: models, weights and columns."""

from collections.abc import Sequence
from fractions import Fraction
from sys import float_info
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.sklearn.known_types import class_name, recognise
from approxsvm.frontends.sklearn.pipeline import Model, Read, overwrites, with_input_map
from approxsvm.frontends.sklearn.remedies import refusal
from approxsvm.frontends.sklearn.support_vector_machines import feature_names, is_dropped
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.single_model import SingleModel

CONSTANT = "constant"


def single_members(estimator: Any, read: Read, constants: Sequence[bool] = ()) -> list[SingleModel]:
    """Read the models in the attribute `estimators_`; raise an error if one of them is an ensemble."""
    models = single_models(estimator, read_members(estimator, read, constants))
    if not any(constants):
        return models
    rest = iter(models)
    of_each = zip(estimator.estimators_, constants, strict=True)
    return [constant_model(inner, models[0]) if constant else next(rest) for inner, constant in of_each]


def single_models(estimator: Any, models: Sequence[Model]) -> list[SingleModel]:
    """Return `models` after checking that none is an ensemble."""
    for model in models:
        if isinstance(model, Ensemble):
            raise UnsupportedModelError(refusal(estimator, f"around a {model.source}"))
    return [model for model in models if not isinstance(model, Ensemble)]


def read_members(estimator: Any, read: Read, constants: Sequence[bool] = ()) -> list[Model]:
    """Read the models in `estimators_` except constant ones; no member may overwrite the rows used by later members."""
    if len(estimator.estimators_) == 0:
        raise ModelFormatError(f"estimators_ of this {class_name(estimator)} is empty")
    if any(overwrites(inner) for inner in estimator.estimators_[:-1]):
        raise UnsupportedModelError(
            f"a scaler in this {class_name(estimator)} overwrites (copy=False) the rows of the other members; refit "
            "with copy=True"
        )
    return [read(inner) for k, inner in enumerate(estimator.estimators_) if not (k < len(constants) and constants[k])]


def member_weights(estimator: Any, n_members: int, *, may_subtract: bool = False) -> list[Fraction]:
    """Return the members' weights in a VotingClassifier or VotingRegressor; all are 1 if the estimator has none."""
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


def read_bag(estimator: Any, read: Read) -> list[Model]:
    """Read the members of a bagging estimator; each member first selects the columns on which it was trained.

    A bagging estimator uses its first `n_estimators` members, and divides their sum by this number.
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
    members = read_members(estimator, read)[:n_asked]
    n_raw, names = int(estimator.n_features_in_), feature_names(estimator)
    of_each = zip(members, estimator.estimators_features_[:n_asked], strict=True)
    return [with_input_map(member, InputMap.selection(n_raw, columns, names)) for member, columns in of_each]


def constant_model(estimator: Any, like: SingleModel) -> KernelModel:
    """Build a constant model for a label that all or none of the training rows have, using the input map of `like`."""
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
        source=CONSTANT,
        feature_names=like.feature_names,
        input_map=like.input_map,
    )


def check_binary(members: Sequence[SingleModel]) -> None:
    """Check that each member of a OneVsRestClassifier is a regressor or has the labels 0 and 1."""
    for member in members:
        if member.task != "regression" and (member.task == "one_class" or sorted(member.labels.tolist()) != [0, 1]):
            raise UnsupportedModelError(f"a member of this OneVsRestClassifier is a {member.source}")


def flattened(
    estimator: Any, models: Sequence[Model], weights: Sequence[Fraction]
) -> tuple[list[SingleModel], list[Fraction], Fraction]:
    """Flatten a weighted sum of models, which may themselves be means or sums, to members, weights and addend."""
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
