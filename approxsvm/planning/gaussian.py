"""Compilation of models with a Gaussian kernel to expansions, to sums in subspaces, or to the exact engine alone."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from approxsvm.artifact import writer
from approxsvm.artifact.views import Artifact
from approxsvm.errors import InputError
from approxsvm.expansion.certificate import least_tolerance
from approxsvm.expansion.stack import USUAL_WORK, WORK_PER_SECOND, value_range
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.outputs import Outputs
from approxsvm.ir.plan import MAX_CENTERS, Plan
from approxsvm.planning import building
from approxsvm.planning.building import NORM_WORK, Prepared
from approxsvm.planning.families.expansions import Candidate
from approxsvm.planning.families.placing import held_out
from approxsvm.planning.families.subspaces import may_have_subspaces
from approxsvm.planning.families.winner import speculate
from approxsvm.planning.problem import Problem
from approxsvm.planning.racing import Rival, raced
from approxsvm.planning.request import Built, Lowering, Request
from approxsvm.planning.search import Choice, Found, search
from approxsvm.system.threads import one_thread_inside

# Default tolerance for the values of a regressor, as a fraction of their range.
DEFAULT_SHARE_OF_RANGE: Final = 1e-3
# Minimum default tolerance of several functions, as a multiple of their common float64 bound, which is computed from
# the largest coefficients of all functions. With a smaller tolerance, the definition would be evaluated for nearly all
# rows.
_OF_SHARED_MODULI: Final = 16.0
# Number of rows for estimating the float64 error of scaling.
_TYPICAL_ROWS: Final = 256


def build(model: KernelModel, request: Request) -> Built:
    """Plan, expand and certify a model, and create its artifact."""
    writer.input_scale_for(model.gamma)  # rejects values that the format cannot represent, before any arithmetic
    if request.plan is not None:
        limits = replace(request.limits, random_state=request.plan.seed)
        request = replace(request, center=request.plan.center, limits=limits)
    with one_thread_inside("blas"):
        if model.has_several and request.mode == "exact":
            return of_several(model, request), ()
        problem = _problem(model, request)
        if request.plan is not None:
            _check_plan(problem, request)
            return building.build(model, problem, request.plan, request), ()
        start = time.process_time()
        choice = search(problem, request.progress)
        finish = partial(_finished, model, problem, request)
        if request.stopwatch is not None and len(choice.tried) > 1:
            rows, rivals = held_out(problem, request.rows), _rivals(choice, finish, request)
            return raced(rivals, choice.reason, rows, request, time.process_time() - start)
        artifact, work = finish(choice.chosen, choice.reason)
        return artifact, tuple(replace(p, work=p.work + work) if p.chosen else p for p in choice.tried)


def _finished(
    model: KernelModel, problem: Problem, request: Request, found: Found, reason: str
) -> tuple[Artifact, float]:
    """Build the plan found by the search; return the artifact and the estimated time for its sums, in seconds."""
    before = problem.known_sums.work
    artifact = building.build(model, problem, *_plan_of(problem, found, reason, request))
    return artifact, (problem.known_sums.work - before) / WORK_PER_SECOND


def _rivals(choice: Choice, finish: Callable[..., tuple[Artifact, float]], request: Request) -> list[Rival]:
    """Return all plans that were tried, for a timed comparison of the best ones."""
    may_be_exact = request.limits.degree == request.limits.n_centers == "auto"
    rivals = []
    for tried, found in zip(choice.tried, choice.found, strict=True):
        seconds, always = 0.0, tried.chosen
        if found is None:
            seconds, always = (0.0, True) if may_be_exact else (math.inf, False)
        elif isinstance(found, Candidate) and found.expanded is None:  # the trial expanded only some centers
            seconds = found.seconds * len(found.points.centers) / max(found.n_probed, 1)
        rivals.append(Rival(tried, partial(finish, found), seconds, always))
    return rivals


def of_several(model: KernelModel, request: Request, *, by_sign: bool = False, n_functions: int = 1) -> Artifact:
    """Build only the exact engine, which computes each kernel value once for all functions.

    With `by_sign`, only the signs of values matter, because the signs determine the labels. No tolerance is then
    guaranteed, so the cheapest stage that determines the sign suffices. The functions may belong to `n_functions`
    members of an ensemble.
    """
    request.check_plan(model, "exact")
    reason = "the exact engine alone"
    if model.n_decisions > 1:
        reason += f": {model.n_decisions} functions of the same {model.n_sv:,} kernels"
    return writer.build(
        model,
        "exact",
        writer.Frame.of(model, request.center),
        tolerance=math.inf if by_sign else max(_promise(model, request), _least(model, request)),
        tolerance_asked=request.tolerance is not None,
        plan=request.plan_of(model, "exact", reason, n_functions=n_functions),
    )


def _least(model: KernelModel, request: Request) -> float:
    """Return the smallest tolerance to guarantee: by default, one that is cheap; if requested, the limit of float64."""
    return least_tolerance(model) * (_OF_SHARED_MODULI if model.has_several and request.tolerance is None else 1.0)


def _problem(model: KernelModel, request: Request) -> Problem:
    """Create the planning problem, with mapped rows and without feature names.

    With feature names, scikit-learn would warn that the rows have no names.
    """
    rows = request.rows
    tolerance = max(_promise(model, request), _least(model, request))
    if rows is not None and model.input_map is not None:
        rows = model.input_map.apply(rows)
    # To predict multiclass labels by votes, the winner's pairs suffice; values, and labels by scores, need all pairs.
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


def _plan_of(problem: Problem, found: Found, reason: str, request: Request) -> tuple[Plan, Request, Prepared]:
    """Return the plan as data, with the parts built by the search."""
    make = partial(request.plan_of, problem.model, reason=reason)
    if isinstance(found, Candidate):
        points, work = found.points, NORM_WORK[request.limits.effort]
        plan = make(
            "expansions",
            n_centers=min(points.n_requested, MAX_CENTERS) if len(points.centers) > 1 else 1,  # there may be fewer rows
            degree=found.degree,
            varying=None if points.varying is None else tuple(points.varying.tolist()),
            norm_work=None if work == USUAL_WORK else int(work),
        )
        return plan, request, Prepared(points, found.expanded)
    landmarks, network = None, None
    if problem.model.has_pairs and math.isinf(problem.tolerance):
        landmarks, network = speculate(problem, None if found is None else found.speculated_cost)
    if found is None:
        return make("exact", landmarks=landmarks), request, Prepared(network=network)
    plan = make("subspaces", subspaces=found.coordinates, degree=found.degree, basis=found.basis, landmarks=landmarks)
    return plan, request, Prepared(subspaces=found.sections, network=network)


def _check_plan(problem: Problem, request: Request) -> None:
    """Raise InputError if the plan does not fit the model."""
    plan, model = request.plan, problem.model
    assert plan is not None
    engines = {"approximate": ["expansions"], "exact": ["exact"], "certified": ["expansions", "exact"]}[request.mode]
    if request.mode == "certified" and may_have_subspaces(problem):
        engines.append("subspaces")
    request.check_plan(model, *engines)
    if plan.landmarks is not None and not (model.has_pairs and math.isinf(problem.tolerance)):
        raise InputError(
            f"plan: landmarks is {plan.landmarks}, but only the labels of several classes by votes are speculated"
        )
    if plan.engine == "subspaces" and plan.degree and model.n_decisions > 1:
        raise InputError(f"plan: degree is {plan.degree}, but only the sums of a single function are expanded")
    for name, numbers, most in (
        ("varying", plan.varying or (), model.n_features - 1),
        ("subspaces", plan.subspaces, model.n_features),
        ("basis", (plan.basis,), model.n_features),
    ):
        if any(number > most for number in numbers):
            raise InputError(f"plan: {name} has {max(numbers)}, but the model has {model.n_features} features")


def _promise(model: KernelModel, request: Request) -> float:
    """Return the guaranteed tolerance: the requested one or, by default, infinity or a share of a regressor's range.

    Infinity means that only labels are guaranteed.
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
    """Return the median of the input map's float64 error bound over sample rows.

    Without sample rows, the raw rows that the map scales to the support vectors are used; the result is 0 if the map
    does more than scale.
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
