"""Compilation of models with a Gaussian kernel: expansions, subspaces or the exact engine alone."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from approxsvm.analysis.compilation import TriedPlan
from approxsvm.artifact import writer
from approxsvm.artifact.views import Artifact
from approxsvm.errors import InputError
from approxsvm.expansion.certificate import least_tolerance
from approxsvm.expansion.stack import WORK_PER_SECOND, value_range
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.outputs import Outputs
from approxsvm.planning import planner
from approxsvm.planning.planner import Plan
from approxsvm.planning.problem import Problem
from approxsvm.planning.request import Built, Lowering, Progress, Request
from approxsvm.planning.subspaces import Subspaces, choose_subspaces, goes_by_many_features
from approxsvm.planning.winner import speculate
from approxsvm.system.threads import one_thread_inside

# Default tolerance of a regression model's values, as a share of their range.
DEFAULT_SHARE_OF_RANGE: Final = 1e-3
# The least tolerance in multiples of the shared float64 bound, which is computed from the largest coefficients of all
# functions. With less, nearly every row would be computed again from the definition.
_OF_SHARED_MODULI: Final = 16.0
# Rows that are used to estimate the float64 error of scaling.
_TYPICAL_ROWS: Final = 256


def build(model: KernelModel, request: Request) -> Built:
    """Plan, expand and certify a model, and write its artifact."""
    writer.input_scale_for(model.gamma)  # refuses what the format cannot hold, before any arithmetic
    with one_thread_inside("blas"):
        if model.has_several and request.mode == "exact":
            return of_several(model, request), ()
        problem = _problem(model, request)
        plan = _choose(problem, request.progress)
        before = problem.known_sums.work
        artifact = _written(model, problem, plan, request)
        seconds = (problem.known_sums.work - before) / WORK_PER_SECOND
        return artifact, tuple(replace(p, work=p.work + seconds) if p.chosen else p for p in plan.tried)


def of_several(model: KernelModel, request: Request, *, by_sign: bool = False) -> Artifact:
    """Build the exact engine alone, which computes each kernel value once for all functions.

    With `by_sign`, only the signs of values matter, as labels. No tolerance is then promised, so that the cheapest
    stage that determines the sign suffices.
    """
    plan = "the exact engine alone"
    if model.n_decisions > 1:
        plan += f": {model.n_decisions} functions of the same {model.n_sv:,} kernels"
    return writer.build(
        model,
        "exact",
        writer.Frame.of(model, request.center),
        tolerance=math.inf if by_sign else max(_promise(model, request), _least(model, request)),
        tolerance_asked=request.tolerance is not None,
        plan=plan,
    )


def _least(model: KernelModel, request: Request) -> float:
    """Return the tolerance to promise: by default one that costs little, else the smallest that float64 allows."""
    return least_tolerance(model) * (_OF_SHARED_MODULI if model.has_several and request.tolerance is None else 1.0)


def _problem(model: KernelModel, request: Request) -> Problem:
    """Create the planning problem, with rows that are already mapped and without feature names.

    With names, scikit-learn would warn that the rows lack them.
    """
    rows = request.rows
    tolerance = max(_promise(model, request), _least(model, request))
    if rows is not None and model.input_map is not None:
        rows = model.input_map.apply(rows)
    # Labels of several classes by votes need only the winner's pairs; values, and labels by scores, need all pairs.
    by_votes = model.has_pairs and math.isinf(tolerance) and model.outputs.label_rule == "votes"
    outputs = Outputs(label_rule="scores", decision_shape="each") if model.outputs.of_each_class else Outputs()
    return Problem(
        replace(model, input_map=None, outputs=outputs, feature_names=None),
        writer.Frame.of(model, request.center),
        rows,
        request.mode,
        tolerance,
        request.limits,
        by_votes and request.mode == "certified",
    )


def _choose(problem: Problem, progress: Progress) -> Plan:
    limits = problem.limits
    look_for = partial(choose_subspaces, problem, partial(progress, "Looking for subspaces"))
    # Subspaces settle labels by votes, and values. They suit rows with many non-zero features; for other rows,
    # expansions are tried first to show how much there is to gain.
    may_have_subspaces = (
        problem.mode == "certified"
        and limits.degree == limits.n_centers == "auto"
        and (problem.model.n_decisions == 1 or problem.majority_only)
    )
    come_first = may_have_subspaces and goes_by_many_features(problem)
    subspaces = look_for() if come_first else None
    plan = Plan(None, "")
    if problem.mode != "exact":
        cost = None if subspaces is None else subspaces.cost
        plan = planner.choose(problem, partial(progress, "Planning"), cost)
    if may_have_subspaces and not come_first:
        subspaces = look_for(None if plan.candidate is None else plan.candidate.costs)
    elif plan.candidate is not None and subspaces is not None:
        plan, subspaces = replace(plan, tried=(*plan.tried, subspaces.tried)), None
    if subspaces is not None:
        plan = _with_subspaces(plan, subspaces)
    if problem.mode == "certified":
        is_plan = plan.candidate is None and plan.subspaces is None
        plan = replace(
            plan, tried=(*plan.tried, TriedPlan("the exact engine alone", 1.0, chosen=is_plan, share_alone=1.0))
        )
    return plan


def _with_subspaces(plan: Plan, subspaces: Subspaces) -> Plan:
    others = tuple(replace(other, chosen=False) for other in plan.tried)
    return Plan(None, subspaces.reason, (*others, replace(subspaces.tried, chosen=True)), subspaces)


def _written(model: KernelModel, problem: Problem, plan: Plan, request: Request) -> Artifact:
    write = partial(writer.build, model, tolerance_asked=request.tolerance is not None, plan=plan.reason)
    if plan.candidate is not None:
        expanded = planner.build_expanded(problem, plan.candidate, partial(request.progress, "Expanding"))
        return write(problem.mode, problem.frame, expanded, tolerance=problem.tolerance)
    subspaces = plan.subspaces
    others = {} if subspaces is None else subspaces.sections
    if model.has_pairs and math.isinf(problem.tolerance):
        others |= speculate(problem, None if subspaces is None else subspaces.speculated_cost)
    return write("exact", problem.frame, others=others, tolerance=problem.tolerance)


def _promise(model: KernelModel, request: Request) -> float:
    """Return the tolerance to promise: the requested one or, by default, infinity or a share of a regression's range.

    Infinity means that only labels are promised.
    """
    if request.tolerance is not None:
        least = least_tolerance(model, _typical_row_error(model, request.rows))
        if not request.tolerance >= least:
            what = "this model" if model.input_map is None else "this model and the steps before it"
            raise InputError(
                f"tolerance is {request.tolerance}, but float64 cannot promise less than {least:.3g} for {what}"
            )
        return float(request.tolerance)
    if model.task != "regression" or request.mode == "approximate":
        return math.inf
    least = least_tolerance(model)
    if request.mode == "exact":
        return least
    narrowest = min(value_range(model, k) for k in range(model.n_decisions))
    return max(DEFAULT_SHARE_OF_RANGE * narrowest, least)


def _typical_row_error(model: KernelModel, rows: Any) -> float:
    """Return the median over sample rows of the float64 error bound of the input map.

    Without sample rows, rows that are scaled to support vectors are used; the result is 0 if the map does more.
    """
    if model.input_map is None:
        return 0.0
    if rows is None:
        rows = model.input_map.preimage(model.dense_support_vectors(0, min(model.n_sv, _TYPICAL_ROWS)))
        if rows is None:
            return 0.0
        rows = rows[model.input_map.takes(rows)]
    some = rows[:: max(1, rows.shape[0] // _TYPICAL_ROWS)]
    return float(np.median(model.input_map.mapped_with_errors(some, exactly=True)[1])) if some.shape[0] else 0.0


LOWERINGS: dict[str, Lowering] = {"gaussian": build}
