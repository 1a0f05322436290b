"""Kinds of ops in an input map, one file per kind."""

from typing import Final

from approxsvm.ir.ops.affine import Affine as Affine
from approxsvm.ir.ops.interval import Interval as Interval
from approxsvm.ir.ops.inverse_normal import InverseNormal as InverseNormal
from approxsvm.ir.ops.logarithm import Logarithm as Logarithm
from approxsvm.ir.ops.lookup import Lookup as Lookup
from approxsvm.ir.ops.monomials import Monomials as Monomials
from approxsvm.ir.ops.normalizer import Normalizer as Normalizer
from approxsvm.ir.ops.op import Op as Op
from approxsvm.ir.ops.piecewise_polynomial import PiecewisePolynomial as PiecewisePolynomial
from approxsvm.ir.ops.power import Power as Power
from approxsvm.ir.ops.projection import Projection as Projection
from approxsvm.ir.schema import number_of

# Order in which op kinds are combined when parallel maps are concatenated.
OPS: Final[tuple[type[Op], ...]] = (
    Lookup,
    Affine,
    Logarithm,
    Power,
    Interval,
    PiecewisePolynomial,
    InverseNormal,
    Monomials,
    Projection,
    Normalizer,
)
# Op kinds, sorted by their numbers in artifacts.
OP_KINDS: Final = tuple(sorted(OPS, key=lambda op: number_of("op_kind", op.kind)))
