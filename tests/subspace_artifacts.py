"""Exact artifacts with kernel sums in few coordinates before the engine, whether they pay or not."""

from __future__ import annotations

from typing import Any

import numpy as np

from approxsvm import Artifact, KernelModel
from approxsvm.artifact.writer import Frame, build
from approxsvm.expansion import taylor
from approxsvm.planning.presumption import presume
from approxsvm.planning.subspaces import subspaces_in
from approxsvm.predictor import LABELS, Evaluator


def in_subspaces(
    model: KernelModel,
    numbers: tuple[int, ...],
    degree: int = 0,
    *,
    X: Any = None,
    center: taylor.CenterChoice = "mean",
    tolerance: float = np.inf,
) -> Artifact:
    """With stages of these coordinates, the first an expansion of that degree unless it is 0."""
    point = taylor.choose_center(model, center)
    frame = Frame(point, center, *taylor.sv_norms(model, point))
    groups, expansion = subspaces_in(model, point, numbers, degree)
    presumption = None
    if model.n_decisions > 1:
        exact = Evaluator(build(model, "exact", frame))
        presumption = presume(model, X, point, lambda rows: exact.evaluate(rows, LABELS), 0, presumed_cost=0.0)
        assert presumption is not None
    return build(
        model,
        "exact",
        frame,
        presumption=presumption,
        subspaces=groups,
        subspace_expansion=expansion,
        tolerance=tolerance,
    )
