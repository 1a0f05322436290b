"""Members of an ensemble that the planner leaves to the exact engine, as one that computes each kernel once for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from approxsvm.ir.ensemble import Ensemble
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.outputs import Outputs
from approxsvm.ir.shared_kernels import difference, of_functions
from approxsvm.ir.single_model import SingleModel
from approxsvm.planning.cost import SUM_COST, Constants
from approxsvm.planning.gaussian import of_several
from approxsvm.planning.request import Built, Request
from approxsvm.runtime.evaluator import Evaluator


def shared(ensemble: Ensemble, built: Sequence[Built], request: Request) -> tuple[Ensemble, list[Built]]:
    """The same ensemble, in which neighbours that are alike are one model where that costs less; and what is built."""
    members: list[SingleModel] = []
    found: list[Built] = []
    constants = Constants.alone() if request.limits.rows_per_call == 1 else Constants.here()
    k = 0
    while k < len(built):
        run: list[KernelModel] = []
        for member, one_built in zip(ensemble.members[k:], built[k:], strict=True):
            machine = _machine(ensemble, member, one_built, request)
            if machine is None or difference([*run[:1], machine]):
                break
            run.append(machine)
        if run and ensemble.asks_for_signs:  # nobody asks for the values of one
            members.append(run[0])
            found.append((of_several(run[0], request, by_sign=True), ()))
            k += 1
            continue
        own = list(built[k : k + len(run)])
        one = of_functions(run) if len(run) > 1 else None
        if one is not None and _cost(one, constants) < sum(map(_cost, run, [constants] * len(run), own)):
            members.append(one)
            found.append((of_several(one, request, by_sign=ensemble.of_targets and request.tolerance is None), ()))
            k += len(run)
            continue
        many = max(1, len(run))
        members += ensemble.members[k : k + many]
        found += built[k : k + many]
        k += many
    return replace(ensemble, members=tuple(members)), found


def _machine(ensemble: Ensemble, member: SingleModel, built: Built, request: Request) -> KernelModel | None:
    """A member as a regression whose values are a target's, or above 0 for its label; None where it stays as it is."""
    if not isinstance(member, KernelModel) or member.kernel != "gaussian" or member.n_decisions > 1:
        return None
    may_be_exact = request.mode == "certified" and request.limits.degree == request.limits.n_centers == "auto"
    may_be_exact = may_be_exact and not ensemble.asks_for_signs and any(tried.chosen for tried in built[1])
    if not may_be_exact and (built[0].mode != "exact" or built[0].section("subspaces")):
        return None
    if member.task == "regression" and (ensemble.asks_for_signs or ensemble.is_plain):
        return member
    outputs = member.outputs
    by_sign = outputs.label_rule == "votes" and outputs.probability is None
    if not (ensemble.of_targets and by_sign and member.labels.tolist() == ensemble.labels[::-1].tolist()):
        return None
    return replace(member, labels=np.empty(0), n_support=np.empty(0, np.int64), outputs=Outputs(), task="regression")


def _cost(model: KernelModel, constants: Constants, built: Built | None = None) -> float:
    """Of a row in the exact engine, or by what the planner has chosen in its place."""
    of_vector = constants.product * model.n_features + constants.kernel
    if model.n_decisions > 1:
        of_vector += SUM_COST * model.n_decisions
    elif built is not None:
        few_work = Evaluator(built[0]).native.few_values_work
        of_vector = min(of_vector, few_work) if few_work > 0.0 else of_vector
        share = next((t.share_alone if constants.is_alone else t.share_of_exact for t in built[1] if t.chosen), 1.0)
        return (constants.row + model.n_sv * of_vector) * (1.0 if share is None else share)
    return constants.row + model.n_sv * of_vector
