"""Export of row normalization (cpp/include/approxsvm/program/ops/normalizer.h)."""

from typing import Final

import numpy as np

from approxsvm.backends.c99.device.ops import Before, OnDevice, Step
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, TINY, Mapped
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Normalizer


def nodes(g: GraphBuilder, op: Normalizer, x: str, error: str | None, is_source: bool) -> Mapped:
    """Divide by the norm; if a row's squares overflow or underflow in float64, its error is infinite."""

    def norms(numbers: str) -> str:
        if op.norm == "l1":
            return g.rows_sum(g.op("Abs", numbers), keepdims=True)
        if op.norm == "l2":
            return str(g.op("Sqrt", g.rows_sum(g.op("Mul", numbers, numbers), keepdims=True)))
        return str(g.op("ReduceMax", g.op("Abs", numbers), axes=[1], keepdims=1))

    length = norms(x)
    divided = g.op("Greater", length, np.nextafter(op.least, 0.0))
    y = g.op("Div", x, g.op("Where", divided, length, 1.0))
    rounding = ROUNDING * (op.n_features + 3)
    off = g.op("Add", g.op("Mul", length, rounding), _lost(op, op.n_features))
    if error is not None:
        off = g.op("Add", off, g.op("Mul", norms(error), 1.0 + rounding))
    least = g.op("Sub", length, off)
    doubtful = g.op("And", g.op("Less", least, op.least), g.op("Greater", g.op("Add", length, off), op.least / 2))
    # Where a row is not divided, the output error equals the input error.
    own = g.op("Where", divided, off, 0.0)
    own = g.op("Where", doubtful, np.inf, own)
    nearest = g.op("Where", divided, least, 1.0)
    carried = g.op("Mul", g.op("Abs", y), own)
    incoming = carried if error is None else g.op("Add", carried, error)
    grown = g.op("Add", g.op("Div", incoming, nearest), g.op("Add", g.op("Mul", g.op("Abs", y), ROUNDING), TINY))
    return y, g.op("Mul", grown, UP)


def _lost(op: Normalizer, n: int) -> float:
    """Bound the change in the norm of n values due to underflow; dense rows are not divided by such small norms."""
    if op.rows != "sparse":
        return 0.0
    return n * 2.0**-536 if op.norm == "l2" else TINY


def _normalized(op: Normalizer, most: FloatArray) -> list[FloatArray]:
    """Bound the sums over all features, and the normalized features, which are at most 1 in absolute value."""
    sums = (most**2 if op.norm == "l2" else most).sum(keepdims=True)
    return [sums, np.full(op.n_outputs, 1.0 + 2.0**-30)]


# Codes of the norms, as in program/ops/normalizer.h, and the flag for sparse rows in exported/ops.h.
_NORMS: Final = {"l1": 0, "l2": 1, "max": 2}
_SPARSE: Final = 4


def _dividing(op: Normalizer, before: Before) -> list[Step]:
    detail = _NORMS[op.norm] + _SPARSE * (op.rows == "sparse")
    return [Step("normalizer", [_lost(op, op.n_features)], detail=detail, begins_loop=True, in_place=True)]


ON_DEVICE: Final = OnDevice(_normalized, _dividing)
