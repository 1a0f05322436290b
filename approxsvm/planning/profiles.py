"""Cost profiles of machines: what a row's work costs on each, as data.

The planner times nothing. A plan's cost is a sum of counts, such as multiply-adds and rows, times the constants of a
profile. Each target has the profiles of all machines that it was measured on, and the plan with the least regret over
these is chosen (search.py), so that the same input gives the same plan on every machine with the same target.

``python -m benchmarks.costs`` measures this machine on the target in use and fits its profile;
``python -m benchmarks.profile FILE`` fits one to the output of that command on another machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from approxsvm import _native


@dataclass(frozen=True)
class Constants:
    """Costs of a target other than multiply-adds, in units of a multiply-add in a float32 microkernel at full speed."""

    row: float  # fixed cost of a row in a stage
    loaded: float  # loading a feature of a row
    direction: float  # refining a row by the bound that depends on its direction
    degrees: float  # refining a row by the bounds of higher degrees
    grid: float  # finding the value of a feature on a grid of few values
    routing: float  # sending a row to one of many centers
    kernel: float  # a support vector in the exact engine, in addition to its inner product
    run: float  # least cost of a run of coefficients above degree 2
    coefficient: float = 1.0  # least cost of a coefficient of an expansion; a single row waits for each to be loaded
    product: float = 1.0  # multiplying a row by a feature of a support vector or of a subspace's basis
    form: float = 1_000.0  # each of several classes about a center, in addition to its coefficients
    listed: float = 1.0  # a coefficient in the lists of a class or of a subspace
    width: int = 8  # rows that fill the lanes of a block; 0 for single rows
    on_grid: float = 1.0  # cost of a subspace coordinate of a support vector on a grid, relative to a float
    seconds: float = 14.5e-12  # time of a multiply-add at full speed

    @property
    def is_alone(self) -> bool:
        """Whether rows come one by one."""
        return self.width == 0


@dataclass(frozen=True)
class Profile:
    """Costs of one machine and target."""

    machine: str
    blocks: Constants  # rows in blocks
    alone: Constants  # rows one by one

    @classmethod
    def all(cls) -> tuple[Profile, ...]:
        """Return the profiles of the target that predicts on this machine, or that APPROXSVM_TARGET names."""
        target = os.environ.get("APPROXSVM_TARGET") or _native.runnable_targets()[0]
        return PROFILES.get(target, PROFILES["avx2"])  # avx2 has the next narrower vectors


# Grids also halve the cost with AVX2, but not on all CPUs of that target.
PROFILES: Final[Mapping[str, tuple[Profile, ...]]] = {
    "avx512": (
        Profile(
            "AMD Zen 5",
            Constants(1_400.0, 39.0, 5_200.0, 800.0, 200.0, 5_600.0, 27.0, 9.0, width=16, on_grid=0.5, seconds=7.2e-12),
            Constants(14_000.0, 8.0, 14_000.0, 14_000.0, 200.0, 10_000.0, 28.0, 90.0, 9.0, 6.5, 2_300.0, 15.0, 0, 0.5),
        ),
    ),
    "avx2": (
        Profile(
            "AMD Zen 5",
            Constants(750.0, 33.0, 2_100.0, 200.0, 130.0, 3_100.0, 28.0, 8.0),
            Constants(6_400.0, 8.0, 6_400.0, 6_400.0, 130.0, 4_000.0, 45.0, 50.0, 6.0, 2.9, 1_200.0, 8.0, 0, 0.5),
        ),
    ),
}
