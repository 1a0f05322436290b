"""Descriptions of compiled models, and the fraction of rows answered by each stage."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from time import process_time
from typing import Any

import approxsvm
from approxsvm.errors import ApproxSVMError


def plan_of(fast: Any) -> str:
    """Describe a plan by the coordinates of its subspaces, or by centers, degree and number of varying features."""
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
    """Return the fraction of a call's rows that each stage answered."""
    before = dict(fast.rows_per_stage)
    fast.predict(X)
    return {stage: (n - before[stage]) / X.shape[0] for stage, n in fast.rows_per_stage.items()}


def forced_plans(
    source: Any, X: Any, grid: Iterable[tuple[int, int]], seconds: float = math.inf, max_bytes: int = 1 << 27
) -> tuple[list[Any], int]:
    """Compile the exact engine, and the expansions with given degrees and numbers of centers that fit the time limit.

    Plans are sorted by cost. Also return the number of plans skipped because compiling them would have exceeded the
    limit, `seconds` of processor time.
    """
    model = approxsvm.read_model(source)
    work = {(degree, n): n * math.comb(model.n_features + degree, degree) ** 0.5 for degree, n in grid}
    plans, start, last, rate = [approxsvm.compile(source, mode="exact")], process_time(), 0.0, 0.0
    for n_done, (degree, n_centers) in enumerate(sorted(work, key=work.__getitem__)):
        if process_time() - start + rate * work[degree, n_centers] > seconds:
            return plans, len(work) - n_done
        last = process_time()
        with suppress(ApproxSVMError):  # more centers than support vectors, or too large
            plans.append(approxsvm.compile(source, X, degree=degree, n_centers=n_centers, max_bytes=max_bytes))
        rate = (process_time() - last) / work[degree, n_centers]
    return plans, 0
