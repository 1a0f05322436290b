"""The kinds of ops that make up an input map, one per file."""

from typing import Final

from approxsvm.ir.ops.affine import Affine
from approxsvm.ir.ops.interval import Interval
from approxsvm.ir.ops.inverse_normal import InverseNormal
from approxsvm.ir.ops.logarithm import Logarithm
from approxsvm.ir.ops.lookup import Lookup
from approxsvm.ir.ops.monomials import Monomials
from approxsvm.ir.ops.normalizer import Normalizer
from approxsvm.ir.ops.op import Op
from approxsvm.ir.ops.periodic_features import PeriodicFeatures
from approxsvm.ir.ops.piecewise_polynomial import PiecewisePolynomial
from approxsvm.ir.ops.power import Power
from approxsvm.ir.ops.projection import Projection
from approxsvm.ir.schema import number_of

__all__ = [
    "OPS",
    "OP_KINDS",
    "Affine",
    "Interval",
    "InverseNormal",
    "Logarithm",
    "Lookup",
    "Monomials",
    "Normalizer",
    "Op",
    "PeriodicFeatures",
    "PiecewisePolynomial",
    "Power",
    "Projection",
]

# Ops that come next in parallel maps are placed in this order.
OPS: Final[tuple[type[Op], ...]] = (
    Lookup,
    Affine,
    Logarithm,
    Power,
    Interval,
    PiecewisePolynomial,
    InverseNormal,
    PeriodicFeatures,
    Monomials,
    Projection,
    Normalizer,
)
# Sorted by their numbers in artifacts.
OP_KINDS: Final = tuple(sorted(OPS, key=lambda op: number_of("op_kind", op.kind)))
