"""Export of periodic and bounded splines (cpp/include/approxsvm/program/interval.h)."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.device_ops import NOT_TAKEN, Before, OnDevice
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, Mapped
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Interval


def nodes(g: GraphBuilder, op: Interval, x: str, error: str | None, is_source: bool) -> Mapped:
    """Map refused numbers to NaN; near a full period the error is infinite unless x is the source's own number."""
    taken, low = op.second < np.inf, op.low
    second = np.where(taken, op.second, 1.0)
    if op.rule == "refuses":
        inside = g.op("And", g.op("Not", g.op("Less", x, low)), g.op("Not", g.op("Greater", x, second)))
        return str(g.op("Where", g.op("Or", inside, ~taken), x, np.nan)), error
    from_low = g.op("Sub", x, low)
    rest = g.op("Mod", from_low, second, fmod=1)
    rest = g.op("Where", g.op("Less", rest, 0.0), g.op("Add", rest, second), rest)
    y = g.op("Where", taken, g.op("Add", rest, low), x)
    own = g.op("Add", g.op("Mul", g.op("Abs", from_low), ROUNDING), ROUNDING * second)
    off = own if error is None else g.op("Mul", g.op("Add", error, own), UP)
    moved = g.op("Add", off, g.op("Mul", g.op("Abs", y), ROUNDING))
    if not is_source:
        known = g.op("And", g.op("Greater", rest, off), g.op("Greater", g.op("Sub", second, rest), off))
        moved = g.op("Where", known, moved, np.inf)
    return y, g.op("Where", taken, moved, 0.0 if error is None else error)


def _within(op: Interval, most: FloatArray) -> list[FloatArray]:
    taken = op.second < np.inf
    if op.rule == "refuses":
        return [most]
    moved = most + np.abs(op.low)
    return [np.where(taken, moved, 0.0), np.where(taken, np.abs(op.low) + op.second, most)]


def _ends(op: Interval) -> dict[str, npt.NDArray[Any]]:
    return {"low": op.low, "second": np.where(op.second < np.inf, op.second.clip(max=1e300), NOT_TAKEN)}


def _turning(k: int, op: Interval, before: Before) -> list[str]:
    low, second, is_source = f"@low_{k}@@[j]", f"@second_{k}@@[j]", int(before.is_source)
    if op.rule == "turns":
        return [f"b = approxsvm_turned(b, {low}, {second}, {is_source});"]
    refused = f"is_refused |= {second} < APPROXSVM_STAYS && approxsvm_beyond(b.value, {low}, {second}) > 0.0;"
    between = f"b = approxsvm_between(b, {low}, {second}, {is_source});"
    return [refused] if before.is_source or before.is_exact else [refused, between]


ON_DEVICE: Final = OnDevice(
    _within, _ends, _turning, refuses=lambda op: op.rule == "refuses", keeps_exact=lambda op: op.rule == "refuses"
)
