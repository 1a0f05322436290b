"""Merging of ensemble members that use the exact engine, so that common kernel values are computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from approxsvm.artifact.views import Artifact
from approxsvm.errors import InputError
from approxsvm.ir.compilation import TriedPlan
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.ensembles.shared_kernels import difference, of_functions
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.outputs import Outputs
from approxsvm.ir.single_model import SingleModel
from approxsvm.planning.costs.cost import SUM_COST
from approxsvm.planning.costs.profiles import Constants, Profile
from approxsvm.planning.gaussian import of_several
from approxsvm.planning.request import Built, Lowering, Request
from approxsvm.runtime.evaluator import Evaluator


def shared(ensemble: Ensemble, built: Sequence[Built], request: Request) -> tuple[Ensemble, list[Built]]:
    """Merge consecutive members with common kernels if this is cheaper; return the new ensemble with its artifacts."""
    members: list[SingleModel] = []
    results: list[Built] = []
    profile = Profile.all()[0]
    constants = profile.alone if request.limits.rows_per_call == 1 else profile.blocks
    k = 0
    while k < len(built):
        run: list[KernelModel] = []
        for member, one_built in zip(ensemble.members[k:], built[k:], strict=True):
            machine = _machine(ensemble, member) if _may_merge(ensemble, one_built, request) else None
            if machine is None or difference([*run[:1], machine]):
                break
            run.append(machine)
        if run and ensemble.asks_for_signs:  # values of single members are not needed
            members.append(run[0])
            results.append((of_several(run[0], request, by_sign=True), ()))
            k += 1
            continue
        separate = list(built[k : k + len(run)])
        one = of_functions(run) if len(run) > 1 else None
        if one is not None and _cost(one, constants) < sum(map(_cost, run, [constants] * len(run), separate)):
            members.append(one)
            results.append((_merged(ensemble, one, request, len(run)), ()))
            k += len(run)
            continue
        many = max(1, len(run))
        members += ensemble.members[k : k + many]
        results += built[k : k + many]
        k += many
    return replace(ensemble, members=tuple(members)), results


def replayed(ensemble: Ensemble, request: Request, build: Lowering) -> tuple[Ensemble, list[Built]]:
    """Build and merge the members according to the request's plan; raise InputError if the plan does not fit."""
    plan = request.plan
    assert plan is not None
    n_planned = sum(member.n_functions for member in plan.members)
    if n_planned != len(ensemble.members):
        raise InputError(f"plan: members are for {n_planned} models, but the ensemble has {len(ensemble.members)}")
    members: list[SingleModel] = []
    results: list[Built] = []
    k = 0
    for planned in plan.members:
        run, mine = ensemble.members[k : k + planned.n_functions], replace(request, plan=planned, center=planned.center)
        k += planned.n_functions
        machines = [machine for member in run if (machine := _machine(ensemble, member)) is not None]
        of_machines = planned.engine == "exact" and len(machines) == len(run)
        if of_machines and ensemble.asks_for_signs and len(run) == 1:
            members.append(machines[0])
            results.append((of_several(machines[0], mine, by_sign=True), ()))
        elif len(run) == 1:
            members.append(run[0])
            results.append(build(run[0], mine))
        else:
            differ = not of_machines or any(difference([machines[0], machine]) for machine in machines[1:])
            one = None if differ else of_functions(machines)
            if one is None:
                raise InputError(f"plan: n_functions is {len(run)}, but these members have no kernels in common")
            members.append(one)
            results.append((_merged(ensemble, one, mine, len(run)), ()))
    return replace(ensemble, members=tuple(members)), results


def _merged(ensemble: Ensemble, one: KernelModel, request: Request, n_functions: int) -> Artifact:
    by_sign = ensemble.of_targets and request.tolerance is None
    return of_several(one, request, by_sign=by_sign, n_functions=n_functions)


def _may_merge(ensemble: Ensemble, built: Built, request: Request) -> bool:
    """Return whether the exact engine could replace the plan used to build a member."""
    may_be_exact = request.mode == "certified" and request.limits.degree == request.limits.n_centers == "auto"
    may_be_exact = may_be_exact and not ensemble.asks_for_signs and any(tried.chosen for tried in built[1])
    return may_be_exact or (built[0].mode == "exact" and not built[0].section("subspaces"))


def _machine(ensemble: Ensemble, member: SingleModel) -> KernelModel | None:
    """Convert a member to a regressor of the target's value, or of the decision value; return None if impossible."""
    if not isinstance(member, KernelModel) or member.kernel != "gaussian" or member.n_decisions > 1:
        return None
    side_by_side = ensemble.task == "regression" and ensemble.combination.weights is None
    if member.task == "regression" and (ensemble.asks_for_signs or side_by_side):
        return member
    outputs = member.outputs
    by_sign = outputs.label_rule == "votes" and outputs.probability is None
    if not (ensemble.of_targets and by_sign and member.labels.tolist() == ensemble.labels[::-1].tolist()):
        return None
    return replace(member, labels=np.empty(0), n_support=np.empty(0, np.int64), outputs=Outputs(), task="regression")


def _cost(model: KernelModel, constants: Constants, built: Built | None = None) -> float:
    """Return the cost of a row in the exact engine, or with the plan of `built`."""
    vector_cost = constants.product * model.n_features + constants.kernel
    if model.n_decisions > 1:
        vector_cost += SUM_COST * model.n_decisions
    elif built is not None:
        few_work = Evaluator(built[0]).native.few_values_work
        vector_cost = min(vector_cost, few_work) if few_work > 0.0 else vector_cost
        return (constants.row + model.n_sv * vector_cost) * _share_of_exact(built[1], constants)
    return constants.row + model.n_sv * vector_cost


def _share_of_exact(tried: Sequence[TriedPlan], constants: Constants) -> float:
    """Return the measured or predicted cost of the chosen plan, relative to the exact engine's cost."""
    chosen = next((plan for plan in tried if plan.chosen), None)
    if chosen is None:
        return 1.0
    engine = next((plan for plan in tried if plan.share_of_exact == 1.0), chosen)
    if chosen.raced is not None and engine.raced is not None:
        return chosen.raced / engine.raced
    share = chosen.share_alone if constants.is_alone else chosen.share_of_exact
    return 1.0 if share is None else share
