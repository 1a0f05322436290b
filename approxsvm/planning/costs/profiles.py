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

# Least cost of a run of coefficients above degree 2, relative to a coefficient.
_RUN: Final = 9.0
# Cost of each of several classes about a center besides its coefficients: in blocks, and alone relative to `row`.
_FORM: Final = 1_000.0
_FORM_ALONE: Final = 1.0 / 6.0
# Cost of finding the value of a feature on a grid of few values, relative to the rows that fill the lanes of a block.
_GRID: Final = 14.0


@dataclass(frozen=True)
class Constants:
    """Costs of a target other than multiply-adds, in units of a multiply-add in a float32 microkernel at full speed."""

    row: float  # fixed cost of a row in a stage
    loaded: float  # loading a feature of a row
    direction: float  # refining a row by the bound that depends on its direction
    degrees: float  # refining a row by the bounds of higher degrees
    routing: float  # sending a row to one of many centers
    kernel: float  # a support vector in the exact engine, in addition to its inner product
    grid: float  # finding the value of a feature on a grid of few values
    width: int  # rows that fill the lanes of a block; 0 for single rows
    coefficient: float = 1.0  # least cost of a coefficient of an expansion; a single row waits for each to be loaded
    product: float = 1.0  # multiplying a row by a feature of a support vector or of a subspace's basis
    form: float = _FORM  # each of several classes about a center, in addition to its coefficients
    listed: float = 1.0  # a coefficient in the lists of a class or of a subspace

    @property
    def is_alone(self) -> bool:
        """Whether rows come one by one."""
        return self.width == 0

    @property
    def run(self) -> float:
        """Least cost of a run of coefficients above degree 2."""
        return _RUN * self.coefficient


@dataclass(frozen=True)
class Profile:
    """Costs of one machine and target."""

    machine: str
    seconds: float  # time of a multiply-add at full speed
    blocks: Constants  # rows in blocks
    alone: Constants  # rows one by one

    @classmethod
    def of(
        cls,
        machine: str,
        width: int,
        seconds: float,
        blocks: tuple[float, float, float, float, float, float],
        alone: tuple[float, float, float, float, float],
    ) -> Profile:
        """Return the profile with the constants that benchmarks.costs fits, in its order."""
        in_blocks = Constants(*blocks, _GRID * width, width)
        row, coefficient, product, routing, kernel = alone
        one_by_one = Constants(
            *(row, product, row, row, routing, kernel, _GRID * width, 0),
            coefficient=coefficient,
            product=product,
            form=_FORM_ALONE * row,
            listed=float(width),
        )
        return cls(machine, seconds, in_blocks, one_by_one)

    @classmethod
    def all(cls) -> tuple[Profile, ...]:
        """Return the profiles of the target that predicts on this machine, or that APPROXSVM_TARGET names."""
        target = os.environ.get("APPROXSVM_TARGET") or _native.runnable_targets()[0]
        return PROFILES.get(target, PROFILES["avx2"])  # avx2 has the next narrower vectors


# Rows that fill the lanes of a block; seconds of a multiply-add; in blocks: row, loaded, direction, degrees, routing,
# kernel; alone: row, coefficient, product, routing, kernel. `python -m benchmarks.costs` measures them on a machine,
# with APPROXSVM_TARGET=avx2 for that target. For the Xeon: `python -m benchmarks.profile costs_xeon.txt`.
_ZEN_5 = Profile.of("AMD Zen 5", 16, 7.2e-12, (1_400, 39, 5_200, 800, 5_600, 27), (14_000, 9, 6.5, 10_000, 28))
_ZEN_5_AVX2 = Profile.of("AMD Zen 5", 8, 14.5e-12, (750, 33, 2_100, 200, 3_100, 28), (6_400, 6, 2.9, 4_000, 45))
_XEON = Profile.of(
    "Intel Xeon, Sapphire Rapids", 16, 8.5e-12, (2_190, 117, 3_470, 0, 11_100, 34.7), (18_300, 11.6, 2.05, 17_300, 58)
)
PROFILES: Final[Mapping[str, tuple[Profile, ...]]] = {"avx512": (_ZEN_5, _XEON), "avx2": (_ZEN_5_AVX2,)}
