"""Frontend for meta-estimators with several targets and one member per target."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from approxsvm.errors import UnsupportedModelError
from approxsvm.frontends.sklearn.meta_estimators.members import single_members
from approxsvm.frontends.sklearn.pipeline import Model, Read
from approxsvm.frontends.sklearn.remedies import refusal
from approxsvm.ir.ensembles.combination import Combination
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.outputs import DecisionShape, Outputs
from approxsvm.ir.single_model import SingleModel


def read_multi_output(estimator: Any, read: Read) -> Model:
    """Read a fitted MultiOutputRegressor, which has one regressor per target."""
    members = single_members(estimator, read)
    for member in members:
        if member.task != "regression" or member.outputs.is_column:
            raise UnsupportedModelError(f"a member of this MultiOutputRegressor is a {member.source}")
    if len(members) == 1:
        return replace(members[0], outputs=replace(members[0].outputs, is_column=True))
    return Ensemble(tuple(members), source=f"{len(members)} targets: {members[0].source}")


def read_multi_output_classifier(estimator: Any, read: Read) -> Model:
    """Read a fitted MultiOutputClassifier, which has one classifier per target."""
    members = single_members(estimator, read)
    for member in members:
        if member.task != "classification":
            raise UnsupportedModelError(f"a member of this MultiOutputClassifier is a {member.source}")
    # The source returns all predictions in one NumPy array.
    if len({isinstance(label, str) for member in members for label in member.labels.tolist()}) > 1:
        raise UnsupportedModelError(refusal(estimator, "with labels that are partly texts and partly numbers"))
    dtype = np.result_type(*(member.labels for member in members))
    members = [replace(member, labels=member.labels.astype(dtype)) for member in members]
    if dtype.kind == "f":  # converts -0.0 to 0.0
        members = [replace(member, labels=member.labels + 0.0) for member in members]
    labels = np.unique(np.concatenate([member.labels for member in members]))
    # A value above 0 means the second label, as for members that share kernels.
    return targets_of(members, members[0].labels[::-1] if len(labels) == 2 else labels)


def targets_of(members: Sequence[SingleModel], labels: Any, shape: DecisionShape = "ovo") -> Ensemble:
    """Build an ensemble in which a separate member predicts the label of each target."""
    source = f"{len(members)} labels: {members[0].source}"
    return Ensemble(tuple(members), source, Outputs(decision_shape=shape), Combination("labels"), labels)
