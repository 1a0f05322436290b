"""Export of periodic features (cpp/include/approxsvm/program/periodic_features.h)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.device_router import smallest
from approxsvm.backends.c99.device_steps import NOT_TAKEN, Before, OnDevice, one_by_one
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, Mapped
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.steps import Waves


def nodes(g: GraphBuilder, stage: Waves, x: str, error: str | None, is_source: bool) -> Mapped:
    """Compute waves with the core's algorithm; negative numbers give NaN."""
    picked, passes = g.columns(x, stage.source), g.constant(stage.passes)
    amplitudes = np.where(stage.passes, 0.0, stage.amplitudes)
    size = g.op("Mul", g.op("Sqrt", picked), amplitudes)
    turn = g.op("Mul", g.op("Log", g.op("Where", g.op("Equal", picked, 0.0), 1.0, picked)), stage.frequencies)
    y = g.op("Mul", size, g.op("Where", stage.sines, g.op("Sin", turn), g.op("Cos", turn)))
    mapped = g.op("Where", passes, picked, y)
    path = g.op("Add", g.op("Mul", g.op("Abs", turn), 4 * ROUNDING), 4 * ROUNDING)
    grown = g.op("Add", g.op("Mul", size, path), 2.0**-400)
    if error is None:
        return mapped, g.op("Where", passes, 0.0, grown)
    came = g.columns(error, stage.source)
    nearest = g.op("Sub", picked, came)
    slope = g.op("Div", amplitudes * np.sqrt(0.25 + stage.frequencies**2) * UP, g.op("Sqrt", nearest))
    whole = g.op("Add", size, g.op("Mul", g.op("Sqrt", g.op("Add", picked, came)), amplitudes * UP))
    carried = g.op("Where", g.op("Greater", nearest, 0.0), g.op("Min", g.op("Mul", came, slope), whole), whole)
    carried = g.op("Where", g.op("Greater", came, 0.0), carried, 0.0)
    # The error is infinite if x may be below 0. Underflow in the steps before can contribute less than this threshold.
    carried = g.op("Where", g.op("Less", nearest, -(2.0**-900)), np.inf, carried)
    return mapped, g.op("Where", passes, came, g.op("Mul", g.op("Add", grown, carried), UP))


def _waved(stage: Waves, most: FloatArray) -> list[FloatArray]:
    taken = most[stage.source]
    return [np.where(stage.passes, taken, stage.amplitudes.clip(max=1e300) * np.sqrt(taken))]


def _numbers(stage: Waves) -> dict[str, npt.NDArray[Any]]:
    amplitudes = np.where(stage.passes, NOT_TAKEN, stage.amplitudes.clip(max=1e300))
    numbers = {"amplitudes": amplitudes, "frequencies": stage.frequencies, "sines": stage.sines.astype(np.uint8)}
    return {"source": smallest(stage.source), **numbers}


def _waving(k: int, stage: Waves, before: Before) -> list[str]:
    """Return statements for waves; numbers that the source may refuse are unbounded unless clipping excludes them."""
    a, w = f"@amplitudes_{k}@@[j]", f"@frequencies_{k}@@[j]"
    is_sure = before.is_source or before.is_exact or before.not_negative[stage.source].all()
    return [
        f"const int of = (int)@source_{k}@@[j];",
        *before.picked("b", "of"),
        f"if ({a} < APPROXSVM_STAYS) {{",
        "    is_refused |= b.value < 0.0;",
        *([] if is_sure else ["    if (b.value < 2.0 * b.radius) b.radius = approxsvm_infinity();"]),
        f"    b = approxsvm_periodic(b, {a}, {w}, (int)@sines_{k}@@[j], approxsvm_real);",
        "}",
    ]


ON_DEVICE: Final = OnDevice(
    _waved, _numbers, _waving, "periodic_features.h", gathers=one_by_one, refuses=lambda _: True
)
