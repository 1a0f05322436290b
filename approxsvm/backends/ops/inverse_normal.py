"""Export of normal quantiles (cpp/include/approxsvm/program/ops/inverse_normal.h)."""

from typing import Final

import numpy as np

from approxsvm.backends.c99.device.ops import OnDevice, Step
from approxsvm.backends.onnx.graph_builder import GraphBuilder
from approxsvm.backends.onnx.rows_graph import Mapped, increasing
from approxsvm.ir.constants import INVERSE_NORMAL, LEAST_INVERSE_NORMAL, UNIT64
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import InverseNormal

# Half-width of the algorithm's central interval, and the offset that it subtracts in the tails.
_MIDDLE: Final = 0.425
_TAIL: Final = 1.6


def nodes(g: GraphBuilder, op: InverseNormal, x: str, error: str | None, is_source: bool) -> Mapped:
    """Compute normal quantiles with the core's algorithm."""
    return increasing(g, lambda at: _at(g, op.n_features, at), x, error)


def _at(g: GraphBuilder, n: int, p: str) -> tuple[str, str]:
    """Return quantiles, and eight times the core's error bounds for them."""
    t = g.op("Max", g.op("Min", p, g.op("Sub", np.ones(n), p)), LEAST_INVERSE_NORMAL)
    q = g.op("Sub", np.full(n, 0.5), t)
    middle = g.op("Mul", q, _ratio(g, INVERSE_NORMAL[0], g.op("Sub", _MIDDLE**2, g.op("Mul", q, q))))
    tail = _ratio(g, INVERSE_NORMAL[1], g.op("Sub", g.op("Sqrt", g.op("Neg", g.op("Log", t))), _TAIL))
    y = g.op("Where", g.op("Greater", q, _MIDDLE), tail, middle)
    return g.op("Where", g.op("Less", p, 0.5), g.op("Neg", y), y), g.op("Mul", y, 512.0 * UNIT64)


def _ratio(g: GraphBuilder, coefs: FloatArray, r: str) -> str:
    sums = []
    for numbers in coefs.tolist():
        total = g.op("Add", g.op("Mul", r, numbers[-1]), numbers[-2])
        for number in numbers[-3::-1]:
            total = g.op("Add", g.op("Mul", total, r), number)
        sums.append(total)
    return str(g.op("Div", *sums))


ON_DEVICE: Final = OnDevice(
    lambda op, most: [most + 1.0, np.full(op.n_outputs, 6.0)],
    lambda op, before: [Step("inverse_normal")],
)
