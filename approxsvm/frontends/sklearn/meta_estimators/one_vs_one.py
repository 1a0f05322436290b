"""Frontend for OneVsOneClassifier, which has one function per pair of classes."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.pairs import PairTerms, pair_block
from approxsvm.frontends.sklearn.meta_estimators.functions import binary_function
from approxsvm.frontends.sklearn.meta_estimators.members import single_members
from approxsvm.frontends.sklearn.pipeline import Model, Read
from approxsvm.frontends.sklearn.support_vector_machines import ascending_classes, feature_names
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.ensembles.shared_kernels import difference, shared_rows
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.outputs import Outputs
from approxsvm.ir.single_model import SingleModel

# In scores, a value of 0 counts for the first class of a pair. `_BELOW_0` replaces an intercept of 0 if the member
# predicts the second class for a value of 0.
_BELOW_0 = -(2.0**-1074)


def read_one_vs_one(estimator: Any, read: Read) -> Model:
    """Read a fitted OneVsOneClassifier for more than two classes; it predicts by scores, like SVC with break_ties.

    Members with different kernels, such as SVC members with gamma="scale", are not merged.
    """
    members = single_members(estimator, read)
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
        return Ensemble(tuple(map(_for_first, members)), source, outputs, classes=classes)
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
    """Return a pair's function, whose value is negative if the member predicts the second class, label 1."""
    function = binary_function(replace(member, labels=1 - member.labels))
    if member.labels[0] == 1:
        return function
    intercept = np.where(function.intercept == 0.0, _BELOW_0, function.intercept)
    return replace(function, intercept=intercept, value_error=function.value_error - _BELOW_0)
