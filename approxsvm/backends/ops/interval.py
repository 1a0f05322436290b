"""Export of intervals, for periodic and bounded splines (cpp/include/approxsvm/program/ops/interval.h)."""

from typing import Final

import numpy as np

from approxsvm.backends.c99.device.ops import Before, OnDevice, Step
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, Mapped
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Interval


def nodes(g: GraphBuilder, op: Interval, x: str, error: str | None, is_source: bool) -> Mapped:
    """Map rejected values to NaN; near the ends of a period, errors are infinite unless `is_source`."""
    low, second = op.low, op.second
    if op.rule == "refuses":
        inside = g.op("And", g.op("Not", g.op("Less", x, low)), g.op("Not", g.op("Greater", x, second)))
        return str(g.op("Where", inside, x, np.nan)), error
    from_low = g.op("Sub", x, low)
    rest = g.op("Mod", from_low, second, fmod=1)
    rest = g.op("Where", g.op("Less", rest, 0.0), g.op("Add", rest, second), rest)
    y = g.op("Add", rest, low)
    own = g.op("Add", g.op("Mul", g.op("Abs", from_low), ROUNDING), ROUNDING * second)
    off = own if error is None else g.op("Mul", g.op("Add", error, own), UP)
    moved = g.op("Add", off, g.op("Mul", g.op("Abs", y), ROUNDING))
    if not is_source:
        known = g.op("And", g.op("Greater", rest, off), g.op("Greater", g.op("Sub", second, rest), off))
        moved = g.op("Where", known, moved, np.inf)
    return y, moved


def _within(op: Interval, most: FloatArray) -> list[FloatArray]:
    if op.rule == "refuses":
        return [most]
    return [most + np.abs(op.low), np.abs(op.low) + op.second]


def _ends(op: Interval, before: Before) -> list[Step]:
    return [Step(op.rule, [op.low, op.second])]


ON_DEVICE: Final = OnDevice(
    _within, _ends, refuses=lambda op: op.rule == "refuses", keeps_exact=lambda op: op.rule == "refuses"
)
