"""Cost profiles of machines: constants for estimating the time per row.

The planner times nothing. A plan's cost is the sum of counts, such as multiply-adds and rows, times a profile's
constants. Each target has a profile for every machine on which it was measured. The planner chooses the plan with the
least regret over these profiles (search.py). The same input therefore yields the same plan on all machines with the
same target.

``python -m benchmarks.costs`` measures the target in use on this machine and fits a profile;
``python -m benchmarks.profile FILE`` fits one to the output of that command on another machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from approxsvm import _native

# Minimum cost of a run of coefficients above degree 2, relative to the cost of a coefficient.
_RUN: Final = 9.0
# Cost of each of several functions about a center, in addition to the cost of coefficients: for blocks, and (as a
# multiple of `row`) for single rows.
_FORM: Final = 1_000.0
_FORM_ALONE: Final = 1.0 / 6.0
# Cost of finding a feature's value on a grid of few values, per row in the lanes of a block.
_GRID: Final = 14.0


@dataclass(frozen=True)
class Constants:
    """Costs of operations on a target, in units of a multiply-add in a float32 microkernel at full speed."""

    row: float  # fixed cost of a row in a stage
    loaded: float  # cost of loading a feature of a row
    direction: float  # cost of refining a row with the bound that depends on its direction
    degrees: float  # cost of refining a row with the bounds for higher degrees
    routing: float  # cost of finding a center for a row
    kernel: float  # cost of a support vector in the exact engine, in addition to its inner product
    grid: float  # cost of finding a feature's value on a grid of few values
    width: int  # number of rows that fill the lanes of a block; 0 for single rows
    coefficient: float = 1.0  # minimum cost of an expansion's coefficient; above 1 if single rows must wait for loads
    product: float = 1.0  # cost of a product with a coordinate of a support vector or of a subspace's basis
    form: float = _FORM  # cost of each of several functions about a center, without the cost of coefficients
    listed: float = 1.0  # cost of a coefficient in the lists of a class or of a subspace

    @property
    def is_alone(self) -> bool:
        """True if the constants are for single rows."""
        return self.width == 0

    @property
    def run(self) -> float:
        """Minimum cost of a run of coefficients above degree 2."""
        return _RUN * self.coefficient


@dataclass(frozen=True)
class Profile:
    """Cost constants of one machine and target."""

    machine: str
    seconds: float  # time of a multiply-add at full speed
    blocks: Constants  # constants for rows in blocks
    alone: Constants  # constants for single rows

    @classmethod
    def of(
        cls,
        machine: str,
        width: int,
        seconds: float,
        blocks: tuple[float, float, float, float, float, float],
        alone: tuple[float, float, float, float, float],
    ) -> Profile:
        """Create a profile from the constants fitted by benchmarks.costs, in its order."""
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
        """Return the profiles of the target used by this machine, or named by APPROXSVM_TARGET."""
        target = os.environ.get("APPROXSVM_TARGET") or _native.runnable_targets()[0]
        return PROFILES.get(target, PROFILES["avx2"])  # targets with narrower vectors have no profiles


# The arguments are the number of rows that fill the lanes of a block; the time of a multiply-add in seconds; for blocks
# `row`, `loaded`, `direction`, `degrees`, `routing` and `kernel`; for single rows `row`, `coefficient`, `product`,
# `routing` and `kernel`. `python -m benchmarks.costs` measures these constants, with APPROXSVM_TARGET=avx2 for the
# target avx2. The Xeon's constants come from `python -m benchmarks.profile costs_xeon.txt`.
_ZEN_5 = Profile.of("AMD Zen 5", 16, 7.2e-12, (1_400, 39, 5_200, 800, 5_600, 27), (14_000, 9, 6.5, 10_000, 28))
_ZEN_5_AVX2 = Profile.of("AMD Zen 5", 8, 14.5e-12, (750, 33, 2_100, 200, 3_100, 28), (6_400, 6, 2.9, 4_000, 45))
_XEON = Profile.of(
    "Intel Xeon, Sapphire Rapids", 16, 8.5e-12, (2_190, 117, 3_470, 0, 11_100, 34.7), (18_300, 11.6, 2.05, 17_300, 58)
)
PROFILES: Final[Mapping[str, tuple[Profile, ...]]] = {"avx512": (_ZEN_5, _XEON), "avx2": (_ZEN_5_AVX2,)}
