"""Artifacts whose stages use given numbers of coordinates, even if such stages are not worthwhile."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from approxsvm.artifact.subspaces import subspace_sections
from approxsvm.artifact.views import Artifact
from approxsvm.artifact.writer import Frame, build, input_scale_for
from approxsvm.errors import UnsupportedModelError
from approxsvm.expansion.gram import one_by_one
from approxsvm.expansion.subspace import GroupInSubspace, Lists, SubspaceStage
from approxsvm.expansion.taylor import CenterChoice
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.planning.families.subspaces import _expanded
from approxsvm.planning.families.winner import speculate
from approxsvm.planning.problem import Problem


@lru_cache(maxsize=1)  # for several degrees
def _stages(
    model: KernelModel, numbers: tuple[int, ...], center: CenterChoice
) -> tuple[Frame, list[tuple[GroupInSubspace, list[SubspaceStage]]]]:
    """Return the groups of the model's functions, each with its stages."""
    frame, found = Frame.of(model, center), []
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for lists in Lists.of(model):
            group = GroupInSubspace(model, lists, frame.center, numbers[-1], random_state=0)
            candidates = [group.stage(k, input_scale_for(model.gamma), one_by_one) for k in numbers]
            stages = [stage for stage in candidates if stage is not None]
            if len(stages) < len(candidates):
                raise UnsupportedModelError(
                    "float32 cannot hold the coefficients or distances of kernel sums in few coordinates"
                )
            found.append((group, stages))
    return frame, found


def in_subspaces(
    model: KernelModel,
    numbers: tuple[int, ...],  # coordinates per stage, ascending
    degree: int = 0,  # degree of an expansion that replaces the first sums; 0 for none
    *,
    X: Any = None,  # (n_rows, n_features): sample rows, for predicting the likely class
    center: CenterChoice = "mean",
    tolerance: float = math.inf,  # guaranteed error of values; infinite if only labels matter
) -> Artifact:
    """Build an exact artifact with stages that use these numbers of coordinates, even if they are not worthwhile.

    Raises UnsupportedModelError if the sums overflow float32 or if the format cannot represent the model.
    """
    frame, found = _stages(model, numbers, center)
    problem = Problem(model, frame, X)
    scale, groups, expansion = input_scale_for(model.gamma), [], None
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for group, stages in found:
            groups.append(group.group(stages, scale))
            if degree:
                expansion = _expanded(group, stages[0], degree, model.gamma, group.typical_s(numbers[0]))
    others = subspace_sections(groups, expansion)
    if model.n_decisions > 1:
        others |= speculate(problem, speculated_cost=np.zeros(1))[1]
    return build(model, "exact", problem.frame, others=others, tolerance=tolerance)
