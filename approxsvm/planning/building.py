"""Artifact construction: an artifact depends only on the model, the rows and the plan, not on the plan's origin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from approxsvm.artifact import writer
from approxsvm.artifact.views import Artifact
from approxsvm.artifact.writer import Expanded
from approxsvm.expansion.stack import USUAL_WORK, expand_and_certify
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.plan import Plan
from approxsvm.planning.families.placing import Placement, Points
from approxsvm.planning.families.subspaces import build_subspaces
from approxsvm.planning.families.winner import build_network
from approxsvm.planning.problem import Problem
from approxsvm.planning.request import Effort, Request

# Maximum work for the norms of a plan, at each level of effort.
NORM_WORK: Final[dict[Effort, float]] = {"low": 2e8, "normal": USUAL_WORK, "high": USUAL_WORK}


@dataclass(frozen=True, eq=False)
class Prepared:
    """Parts of an artifact already built by the search for the plan."""

    points: Points | None = None
    expanded: Expanded | None = None
    subspaces: dict[str, bytes] | None = None
    network: dict[str, bytes] | None = None  # section of the network that speculates on the winner


def build(
    model: KernelModel, problem: Problem, plan: Plan, request: Request, prepared: Prepared | None = None
) -> Artifact:
    """Build an artifact from a plan. `prepared` contains the parts built by the search; the others are built here."""
    done = prepared or Prepared()
    write = partial(writer.build, model, tolerance_asked=request.tolerance is not None, plan=plan)
    if plan.engine == "expansions":
        varying = None if plan.varying is None else np.array(plan.varying, np.intp)
        points = done.points or Placement(problem).points(plan.n_centers, varying)
        expanded = done.expanded or build_expanded(
            problem, points, plan.degree, partial(request.progress, "Expanding"), norm_work=plan.norm_work or USUAL_WORK
        )
        return write(problem.mode, problem.frame, expanded, tolerance=problem.tolerance)
    others: dict[str, bytes] = {}
    if plan.engine == "subspaces":
        others |= done.subspaces or build_subspaces(problem, plan, partial(request.progress, "Projecting"))
    if plan.landmarks is not None:
        others |= build_network(problem, plan.landmarks) if done.network is None else done.network
    return write("exact", problem.frame, others=others, tolerance=problem.tolerance)


def build_expanded(
    problem: Problem,
    points: Points,
    degree: int,
    progress: Callable[[float], None],
    *,
    norm_work: float,
    of_centers: int | None = None,
) -> Expanded:
    """Expand all functions, or only the pairs of majority classes, about the given centers, and certify the expansions.

    If the given centers are only some of the plan's centers, `of_centers` is the number of all the plan's centers.
    """
    model, expansions, certificates = problem.model, [], []
    forms = None
    if problem.majority_only:
        assert points.majority_classes is not None
        forms = writer.majority_forms(len(model.labels), points.majority_classes)
    decisions = range(model.n_decisions) if forms is None else np.unique(forms)
    for n_done, k in enumerate(decisions):
        mine = slice(None) if forms is None else (forms == k).any(axis=1)
        found = expand_and_certify(
            model,
            points.centers[mine],
            degree,
            decision=int(k),
            typical_s=points.typical_s[mine],
            varying=points.varying,
            directions=problem.mode == "certified" and model.n_decisions == 1,
            progress=part_of(progress, n_done / len(decisions), (n_done + 1) / len(decisions)),
            known=problem.known_sums,
            of_centers=of_centers,
            most_work=norm_work,
        )
        expansions.append(found[0])
        certificates.append(found[1])
    return Expanded(
        points.centers,
        degree,
        tuple(expansions),
        tuple(certificates),
        points.router,
        points.majority_classes,
        points.varying,
        forms,
    )


def part_of(progress: Callable[[float], None], first: float, last: float) -> Callable[[float], None]:
    """Return a function that maps the progress of one part, from 0 to 1, to the range from `first` to `last`."""
    return lambda share: progress(first + (last - first) * share)
