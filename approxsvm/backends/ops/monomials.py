"""Export of feature products (cpp/include/approxsvm/program/ops/products.h)."""

from typing import Final

import numpy as np

from approxsvm.backends.c99.device.ops import Before, OnDevice, Step
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, TINY, Mapped
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Monomials


def nodes(g: GraphBuilder, op: Monomials, x: str, error: str | None, is_source: bool) -> Mapped:
    """Compute all products together, one factor at a time; a column of ones is appended to the features."""
    with_one = _with_column(g, x, 1.0)
    errors = None if error is None else _with_column(g, error, 0.0)
    last, *others = op.factors.T[::-1]
    y = g.columns(with_one, last)
    grown = None if errors is None else g.columns(errors, last)
    for factors in others:
        other = g.columns(with_one, factors)
        product = g.op("Mul", y, other)
        own = g.op("Add", g.op("Mul", g.op("Abs", product), ROUNDING), TINY)
        if grown is not None and errors is not None:
            came = g.columns(errors, factors)
            both = g.op("Mul", came, g.op("Add", g.op("Abs", y), grown))
            own = g.op("Add", own, g.op("Add", g.op("Mul", g.op("Abs", other), grown), both))
        grown = g.op("Mul", own, UP)
        y = product
    return y, grown


def _with_column(g: GraphBuilder, x: str, number: float) -> str:
    column = g.op("Add", g.op("Mul", g.columns(x, np.array([0])), 0.0), number)
    return str(g.op("Concat", x, column, axis=1))


def _multiplied(op: Monomials, most: FloatArray) -> list[FloatArray]:
    with_one = np.append(most, 1.0)
    found = [with_one[op.factors[:, -1]]]
    for factor in op.factors.T[-2::-1]:
        found.append(found[-1] * with_one[factor])
    return found


def _factors(op: Monomials, before: Before) -> list[Step]:
    return [Step("monomials", integers=[op.factors], detail=op.factors.shape[1], begins_loop=True)]


ON_DEVICE: Final = OnDevice(_multiplied, _factors)
