"""Export of projections (cpp/include/approxsvm/program/ops/projection.h)."""

from typing import Final

import numpy as np

from approxsvm.backends.c99.device.ops import KEEPS_SUM, Before, OnDevice, Step, float32_above
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, TINY, Mapped, added
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Projection


def nodes(g: GraphBuilder, op: Projection, x: str, error: str | None, is_source: bool) -> Mapped:
    """Multiply rows by the matrix, and their errors by its absolute values."""
    x = g.op("Sub", x, op.center)
    y = g.op("Add", g.op("MatMul", x, g.doubles(op.matrix)), op.bias)
    path = ROUNDING * (op.n_features + 3)
    incoming = added(g, error, g.op("Mul", g.op("Abs", x), path))
    grown = g.op("MatMul", incoming, g.doubles(np.abs(op.matrix)))
    of_bias = op.bias_error + ROUNDING * np.abs(op.bias) + (op.n_features + 2) * TINY
    rounded = g.op("Add", g.op("Mul", g.op("Abs", y), ROUNDING), of_bias)
    return y, g.op("Mul", g.op("Add", grown, rounded), UP)


def _projected(op: Projection, most: FloatArray) -> list[FloatArray]:
    centered = most + np.abs(op.center)
    return [centered, centered @ np.abs(op.matrix) + np.abs(op.bias)]


def _column_norms(matrix: FloatArray) -> FloatArray:
    largest = np.abs(matrix).max(axis=0, initial=0.0)
    largest[largest == 0.0] = 1.0
    norms: FloatArray = largest * np.linalg.norm(matrix / largest, axis=0) * (1.0 + 1e-9)
    return norms


def _projecting(op: Projection, before: Before) -> list[Step]:
    """Center all inputs and sum the squares of their radii, because output errors depend only on this sum."""
    of_bias = op.bias_error + 2.0 * UNIT64 * np.abs(op.bias) + (op.n_features + 2) * 2.0**-1070
    errors = [float32_above(_column_norms(op.matrix)), float32_above(of_bias * (1.0 + 2.0**-50))]
    return [
        Step("centering", [op.center]),
        Step("projection", [op.bias, *errors, op.matrix.T], begins_loop=True, keeps=KEEPS_SUM),
    ]


ON_DEVICE: Final = OnDevice(_projected, _projecting)
