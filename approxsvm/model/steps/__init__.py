"""The kinds of steps that an input map consists of, each in a file of its own."""

from __future__ import annotations

from typing import Final

from approxsvm.model.schema import number_of
from approxsvm.model.steps.affine import Affine
from approxsvm.model.steps.interval import Interval
from approxsvm.model.steps.inverse_normal import InverseNormal
from approxsvm.model.steps.logarithm import Logarithm
from approxsvm.model.steps.monomials import Monomials
from approxsvm.model.steps.normalizer import Normalizer
from approxsvm.model.steps.pieces import Piecewise
from approxsvm.model.steps.power import Power
from approxsvm.model.steps.projection import Projection
from approxsvm.model.steps.step import Step
from approxsvm.model.steps.table import Table
from approxsvm.model.steps.waves import Waves

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

# In the order in which stages that come next in maps side by side go first.
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
# By their numbers in artifacts.
STEP_KINDS: Final = tuple(sorted(STEPS, key=lambda step: number_of("stage_kind", step.kind)))
