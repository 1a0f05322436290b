"""Export of periodic features (cpp/include/approxsvm/program/periodic_features.h)."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.device_ops import NOT_TAKEN, Before, OnDevice, one_by_one
from approxsvm.backends.c99.device_router import smallest
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, Mapped
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import PeriodicFeatures


def nodes(g: GraphBuilder, op: PeriodicFeatures, x: str, error: str | None, is_source: bool) -> Mapped:
    """Compute waves with the core's algorithm; negative numbers give NaN."""
    picked, passes = g.columns(x, op.source), g.constant(op.passes)
    amplitudes = np.where(op.passes, 0.0, op.amplitudes)
    size = g.op("Mul", g.op("Sqrt", picked), amplitudes)
    turn = g.op("Mul", g.op("Log", g.op("Where", g.op("Equal", picked, 0.0), 1.0, picked)), op.frequencies)
    y = g.op("Mul", size, g.op("Where", op.sines, g.op("Sin", turn), g.op("Cos", turn)))
    mapped = g.op("Where", passes, picked, y)
    path = g.op("Add", g.op("Mul", g.op("Abs", turn), 4 * ROUNDING), 4 * ROUNDING)
    grown = g.op("Add", g.op("Mul", size, path), 2.0**-400)
    if error is None:
        return mapped, g.op("Where", passes, 0.0, grown)
    came = g.columns(error, op.source)
    nearest = g.op("Sub", picked, came)
    slope = g.op("Div", amplitudes * np.sqrt(0.25 + op.frequencies**2) * UP, g.op("Sqrt", nearest))
    whole = g.op("Add", size, g.op("Mul", g.op("Sqrt", g.op("Add", picked, came)), amplitudes * UP))
    carried = g.op("Where", g.op("Greater", nearest, 0.0), g.op("Min", g.op("Mul", came, slope), whole), whole)
    carried = g.op("Where", g.op("Greater", came, 0.0), carried, 0.0)
    # The error is infinite if x may be below 0. Underflow in the steps before can contribute less than this threshold.
    carried = g.op("Where", g.op("Less", nearest, -(2.0**-900)), np.inf, carried)
    return mapped, g.op("Where", passes, came, g.op("Mul", g.op("Add", grown, carried), UP))


def _waved(op: PeriodicFeatures, most: FloatArray) -> list[FloatArray]:
    taken = most[op.source]
    return [np.where(op.passes, taken, op.amplitudes.clip(max=1e300) * np.sqrt(taken))]


def _numbers(op: PeriodicFeatures) -> dict[str, npt.NDArray[Any]]:
    amplitudes = np.where(op.passes, NOT_TAKEN, op.amplitudes.clip(max=1e300))
    numbers = {"amplitudes": amplitudes, "frequencies": op.frequencies, "sines": op.sines.astype(np.uint8)}
    return {"source": smallest(op.source), **numbers}


def _waving(k: int, op: PeriodicFeatures, before: Before) -> list[str]:
    """Return statements for waves; numbers that the source may refuse are unbounded unless clipping excludes them."""
    a, w = f"@amplitudes_{k}@@[j]", f"@frequencies_{k}@@[j]"
    is_sure = before.is_source or before.is_exact or before.not_negative[op.source].all()
    return [
        f"const int of = (int)@source_{k}@@[j];",
        *before.picked("b", "of"),
        f"if ({a} < APPROXSVM_STAYS) {{",
        "    is_refused |= b.value < 0.0;",
        *([] if is_sure else ["    if (b.value < 2.0 * b.radius) b.radius = approxsvm_infinity();"]),
        f"    b = approxsvm_periodic(b, {a}, {w}, (int)@sines_{k}@@[j], approxsvm_real);",
        "}",
    ]


ON_DEVICE: Final = OnDevice(_waved, _numbers, _waving, gathers=one_by_one, refuses=lambda _: True)
