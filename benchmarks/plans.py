"""What a compiled model is, in words, and which of its stages answers how many rows."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import approxsvm
from approxsvm.errors import ApproxSVMError


def plan_of(fast: Any) -> str:
    """In words: coordinates of a subspace; or centers, degree, and how many features vary, where not all do."""
    artifact = fast.artifact
    if artifact.subspace_coordinates:
        return f"in {', '.join(map(str, artifact.subspace_coordinates))} coordinates"
    if artifact.mode == "exact":
        return "the exact engine"
    centers = "one center" if artifact.n_centers == 1 else f"{artifact.n_centers:,} centers"
    part = f" in {artifact.n_varying} of {artifact.n_features} features"
    degree = f"degree {artifact.header['degree']}"
    return f"{centers}, {degree}{part if artifact.n_varying < artifact.n_features else ''}"


def shares_of_stages(fast: Any, X: Any) -> dict[str, float]:
    """Of the rows of a call, by the stage that answered them."""
    before = dict(fast.rows_per_stage)
    fast.predict(X)
    return {stage: (n - before[stage]) / X.shape[0] for stage, n in fast.rows_per_stage.items()}


def forced_plans(svc: Any, X: Any, grid: Iterable[tuple[int, int]], max_bytes: int) -> list[Any]:
    """The exact engine, and those expansions of some degree about some centers that can be had."""
    plans = [approxsvm.compile(svc, mode="exact")]
    for degree, n_centers in grid:
        with suppress(ApproxSVMError):  # more centers than support vectors, or too large
            plans.append(approxsvm.compile(svc, X, degree=degree, n_centers=n_centers, max_bytes=max_bytes))
    return plans
