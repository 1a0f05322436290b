"""Export of projections (cpp/include/approxsvm/program/projection.h)."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.device_ops import Before, Gathers, OnDevice, float32_above
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, TINY, Mapped, added
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Projection


def nodes(g: GraphBuilder, op: Projection, x: str, error: str | None, is_source: bool) -> Mapped:
    """Multiply by the matrix; propagate errors through its absolute values."""
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


def _projection_arrays(op: Projection) -> dict[str, npt.NDArray[Any]]:
    of_bias = op.bias_error + 2.0 * UNIT64 * np.abs(op.bias) + (op.n_features + 2) * 2.0**-1070
    return {
        "center": op.center,
        "bias": op.bias,
        "matrix": np.ascontiguousarray(op.matrix.T),
        "column_norms": float32_above(_column_norms(op.matrix)),
        "of_bias": float32_above(of_bias * (1.0 + 2.0**-50)),
    }


def _column_norms(matrix: FloatArray) -> FloatArray:
    largest = np.abs(matrix).max(axis=0, initial=0.0)
    largest[largest == 0.0] = 1.0
    norms: FloatArray = largest * np.linalg.norm(matrix / largest, axis=0) * (1.0 + 1e-9)
    return norms


def _centering(k: int, op: Projection, before: Before) -> Gathers:
    """Compute the norm of the error of all inputs, which is all that the error of an output depends on."""
    last = [
        f"b.value -= @center_{k}@@[j];",
        f"b.radius = approxsvm_centered_radius(b.radius, b.value, {op.n_features});",
        "sum += b.radius * b.radius;",
    ]
    between = [f"reach = approxsvm_norm_above(sum, {op.n_features});", "sum = 0.0;"]
    norm, of_bias = f"(double)@column_norms_{k}@@[j]", f"(double)@of_bias_{k}@@[j]"
    after = [f"b.radius = approxsvm_projected_radius(reach, {norm}, {of_bias}, b.value);"]
    return Gathers(last, between, after=after, has_radii=False)


def _projecting(k: int, op: Projection, before: Before) -> list[str]:
    n = op.n_features
    return [f"b.value = @bias_{k}@@[j];", f"for (i = 0; i < {n}; ++i) b.value += x[i] * @matrix_{k}@@[j * {n} + i];"]


ON_DEVICE: Final = OnDevice(_projected, _projection_arrays, _projecting, gathers=_centering)
