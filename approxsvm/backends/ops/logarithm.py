"""Export of logarithms (cpp/include/approxsvm/program/ops/logarithm.h)."""

from typing import Final

import numpy as np

from approxsvm.backends.c99.device.ops import OnDevice, Step
from approxsvm.backends.onnx.graph_builder import GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, Mapped, increasing
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Logarithm


def nodes(g: GraphBuilder, op: Logarithm, x: str, error: str | None, is_source: bool) -> Mapped:
    """Compute logarithms; outside the domain, the value and the error are NaN."""

    def at(x: str) -> tuple[str, str]:
        """Return logarithms and their errors: 1 unit in the last place for x + offset, and 8 for the logarithm."""
        y = g.op("Where", g.op("Greater", x, -op.offset), g.op("Log", g.op("Add", x, op.offset)), np.nan)
        return y, g.op("Add", g.op("Mul", g.op("Abs", y), 2 * ROUNDING), ROUNDING)

    return increasing(g, at, x, error)


def _logarithmic(op: Logarithm, most: FloatArray) -> list[FloatArray]:
    """Return bounds on x + offset and its logarithm, which is at most 745 in absolute value in float64."""
    return [most + np.abs(op.offset), np.full(op.n_outputs, 745.0)]


ON_DEVICE: Final = OnDevice(_logarithmic, lambda op, before: [Step("logarithm", [op.offset])], refuses=lambda _: True)
