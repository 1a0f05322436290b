"""The kinds of steps that make up an input map, one per file."""

from __future__ import annotations

from typing import Final

from approxsvm.ir.schema import number_of
from approxsvm.ir.steps.affine import Affine
from approxsvm.ir.steps.interval import Interval
from approxsvm.ir.steps.inverse_normal import InverseNormal
from approxsvm.ir.steps.logarithm import Logarithm
from approxsvm.ir.steps.monomials import Monomials
from approxsvm.ir.steps.normalizer import Normalizer
from approxsvm.ir.steps.pieces import Piecewise
from approxsvm.ir.steps.power import Power
from approxsvm.ir.steps.projection import Projection
from approxsvm.ir.steps.step import Step
from approxsvm.ir.steps.table import Table
from approxsvm.ir.steps.waves import Waves

__all__ = [
    "STEPS",
    "STEP_KINDS",
    "Affine",
    "Interval",
    "InverseNormal",
    "Logarithm",
    "Monomials",
    "Normalizer",
    "Piecewise",
    "Power",
    "Projection",
    "Step",
    "Table",
    "Waves",
]

# Stages that come next in parallel maps are placed in this order.
STEPS: Final[tuple[type[Step], ...]] = (
    Table,
    Affine,
    Logarithm,
    Power,
    Interval,
    Piecewise,
    InverseNormal,
    Waves,
    Monomials,
    Projection,
    Normalizer,
)
# Sorted by their numbers in artifacts.
STEP_KINDS: Final = tuple(sorted(STEPS, key=lambda step: number_of("stage_kind", step.kind)))
