"""Frontend for meta-estimators that sum or average the values of regressors."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import fsum
from typing import Any

import numpy as np

from approxsvm.errors import UnsupportedModelError
from approxsvm.frontends.sklearn.kernel_machines import restored, rounded_float
from approxsvm.frontends.sklearn.known_types import class_name
from approxsvm.frontends.sklearn.meta_estimators.members import flattened, member_weights, read_bag, read_members
from approxsvm.frontends.sklearn.pipeline import Model, Read
from approxsvm.frontends.sklearn.remedies import refusal
from approxsvm.frontends.sklearn.support_vector_machines import feature_names
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.ensembles.combination import Combination
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.ensembles.shared_kernels import difference, shared_rows
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.outputs import Outputs
from approxsvm.ir.single_model import SingleModel

_UP = 1.0 + 2.0**-30


def read_voting_regressor(estimator: Any, read: Read) -> Model:
    """Read a fitted VotingRegressor, which predicts a weighted mean of values."""
    models = read_members(estimator, read)
    weights = member_weights(estimator, len(models), may_subtract=True)
    total = sum(weights)
    return sum_of_values(estimator, *flattened(estimator, models, [weight / total for weight in weights]))


def read_bagging_regressor(estimator: Any, read: Read) -> Model:
    """Read a fitted BaggingRegressor, which predicts a mean of values."""
    models = read_bag(estimator, read)
    return sum_of_values(estimator, *flattened(estimator, models, [Fraction(1, len(models))] * len(models)))


def sum_of_values(
    estimator: Any,
    members: Sequence[SingleModel],
    weights: Sequence[Fraction],
    addend: Fraction = Fraction(0),
    classes: Any = None,
    outputs: Outputs | None = None,
) -> Model:
    """Combine regressors by a weighted sum, which becomes a single kernel sum if they all have the same kernel.

    With two `classes`, a sum above 0 means the first class, and members may also be classifiers, which contribute
    probabilities.
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
        if outputs is not None:  # the second class wins if -f >= 0
            outputs = replace(outputs, label_rule="value_threshold", threshold=0.0, threshold_label=1)
        # A classifier contributes the probability of its first class.
        numbers = [
            rounded_float(weight) * (label is None or label == classes[0])
            for member, weight in zip(chosen, weights, strict=True)
            for label in member.labels.tolist() or [None]
        ]
        combination = Combination(weights=np.array([numbers]), addends=np.array([rounded_float(addend)]))
        source = f"sum of {len(chosen)}: {chosen[0].source}"
        return Ensemble(tuple(chosen), source, outputs or Outputs(), combination, classes, (*weights, addend))
    one = summed(machines, weights, addend)
    one = replace(one, feature_names=feature_names(estimator) or one.feature_names)
    return one if outputs is None else replace(one, task="classification", labels=classes, outputs=outputs)


def summed(machines: Sequence[KernelModel], weights: Sequence[Fraction], addend: Fraction) -> KernelModel:
    """Combine regressors with the same kernel into a single regressor, their weighted sum."""
    parts = [restored(machine, weight, Fraction(0)) for machine, weight in zip(machines, weights, strict=True)]
    rows, where = shared_rows(machines)
    # The members' errors include the rounding of their intercepts; here, the intercepts are summed exactly.
    exact = sum((Fraction(float(part.intercept[0])) for part in parts), addend)
    intercept = rounded_float(exact)
    error = fsum(float(part.value_error[0]) for part in parts) + UNIT64 * abs(intercept)
    terms: list[list[float]] = [[] for _ in range(rows.shape[0])]
    for at, part in zip(where, parts, strict=True):
        for k, a in zip(at.tolist(), part.dual_coef[0].tolist(), strict=True):
            terms[k].append(a)
    coef = np.array([fsum(some) for some in terms])  # each sum is rounded once, and a Gaussian is at most 1
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
