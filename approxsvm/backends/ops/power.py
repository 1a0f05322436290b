"""Export of power transforms (cpp/include/approxsvm/program/ops/power.h)."""

from typing import Final

import numpy as np

from approxsvm.backends.c99.device.ops import Before, OnDevice, Step
from approxsvm.backends.onnx.graph_builder import GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, Mapped, increasing
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Power


def nodes(g: GraphBuilder, op: Power, x: str, error: str | None, is_source: bool) -> Mapped:
    """Compute powers by exp and log, which cancels digits near x^p = 1; values outside the domain become NaN."""
    return increasing(g, lambda at: _at(g, op, at), x, error)


def _at(g: GraphBuilder, op: Power, x: str) -> tuple[str, str]:
    """Return (t^p - 1) / p and its error: 1 unit for t, 8 for log, and the exponent times their sum for exp."""
    if op.method == "yeo-johnson":
        mirrored = g.op("Less", x, 0.0)
        p, t = g.op("Where", mirrored, 2.0 - op.powers, op.powers), g.op("Add", g.op("Abs", x), 1.0)
    else:
        p, t = g.constant(op.powers), g.op("Where", g.op("Greater", x, 0.0), x, np.nan)
    logarithm, is_log = g.op("Log", t), g.op("Equal", p, 0.0)
    divisor = g.op("Where", is_log, 1.0, p)
    power = g.op("Exp", g.op("Mul", p, logarithm))
    y = g.op("Where", is_log, logarithm, g.op("Div", g.op("Sub", power, 1.0), divisor))
    of_log = g.op("Add", g.op("Mul", g.op("Abs", logarithm), 2 * ROUNDING), ROUNDING)
    of_power = g.op("Mul", power, g.op("Add", g.op("Mul", g.op("Abs", p), of_log), 2 * ROUNDING))
    of_quotient = g.op("Div", g.op("Add", of_power, ROUNDING), g.op("Abs", divisor))
    own = g.op("Add", g.op("Where", is_log, of_log, of_quotient), g.op("Mul", g.op("Abs", y), 2 * ROUNDING))
    return (g.op("Where", mirrored, g.op("Neg", y), y) if op.method == "yeo-johnson" else y), own


def _powered(op: Power, most: FloatArray) -> list[FloatArray]:
    """Bound results at the extreme arguments. Above exp(650), errors are infinite, so the bound at exp(651) is used."""
    p = np.abs(op.powers)
    p = np.maximum(p, np.abs(2.0 - op.powers)) if op.method == "yeo-johnson" else p
    farthest = np.minimum(p * (np.log1p(most) if op.method == "yeo-johnson" else 745.0), 651.0)
    divisor = np.minimum(np.abs(op.powers), np.abs(2.0 - op.powers))
    return [(np.exp(farthest) + 1.0) / np.clip(divisor, 1e-12, 1.0) + 745.0]


def _taking_powers(op: Power, before: Before) -> list[Step]:
    kind = "power_of_number" if before.is_exact else "power"
    return [Step(kind, [op.powers], detail=int(op.method == "yeo-johnson"))]


ON_DEVICE: Final = OnDevice(_powered, _taking_powers, refuses=lambda _: True)
