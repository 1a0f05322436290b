"""Projections in exported programs.

On a device one of n features, y = (x - c) M + b, makes of an error e at most

    ||M||_F e + 1.01 (n + 3) u ||M||_F |x - c|_1 + ||bias_error|| + 2 u (||b|| + |y|_1) + underflow.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.device_steps import NEXT_ERROR, UNDERFLOW, OnDevice, carried
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, TINY, Mapped, added
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.steps import Projection


def nodes(g: GraphBuilder, stage: Projection, x: str, error: str | None, with_errors: bool, is_source: bool) -> Mapped:
    """A product of matrices, with moduli for errors."""
    x = g.op("Sub", x, stage.center)
    y = g.op("Add", g.op("MatMul", x, g.doubles(stage.matrix)), stage.bias)
    if not with_errors:
        return y, None
    path = ROUNDING * (stage.n_features + 3)
    incoming = added(g, error, g.op("Mul", g.op("Abs", x), path))
    grown = g.op("MatMul", incoming, g.doubles(np.abs(stage.matrix)))
    of_bias = stage.bias_error + ROUNDING * np.abs(stage.bias) + (stage.n_features + 2) * TINY
    rounded = g.op("Add", g.op("Mul", g.op("Abs", y), ROUNDING), of_bias)
    return y, g.op("Mul", g.op("Add", grown, rounded), UP)


def _projected(stage: Projection, most: FloatArray) -> list[FloatArray]:
    centered = most + np.abs(stage.center)
    return [centered, centered @ np.abs(stage.matrix) + np.abs(stage.bias)]


def _projection_arrays(stage: Projection) -> dict[str, npt.NDArray[Any]]:
    return {"center": stage.center, "bias": stage.bias, "matrix": np.ascontiguousarray(stage.matrix.T)}


def _projecting(k: int, stage: Projection) -> list[str]:
    frobenius = _norm(stage.matrix)
    path = 1.01 * (stage.n_features + 3) * UNIT64
    fixed = _norm(stage.bias_error) + 2.0 * UNIT64 * _norm(stage.bias) + UNDERFLOW
    error = carried(frobenius, path * frobenius, 2.0 * UNIT64, fixed)
    return [*_PROJECTED.format(k=k, n=stage.n_features, m=stage.n_outputs).splitlines(), error]


def _norm(numbers: FloatArray) -> float:
    largest = float(np.abs(numbers).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(numbers / largest)) * (1.0 + 1e-9)


_PROJECTED: Final = """\
before = after = 0.0;
for (j = 0; j < {n}; ++j) {{
    x[j] -= @center_{k}@@[j];
    before += @modulus@@(x[j]);
}}
for (i = 0; i < {m}; ++i) {{
    double sum = @bias_{k}@@[i];
    for (j = 0; j < {n}; ++j) sum += x[j] * @matrix_{k}@@[i * {n} + j];
    y[i] = sum;
    after += @modulus@@(sum);
}}
for (i = 0; i < {m}; ++i) x[i] = y[i];"""

ON_DEVICE: Final = OnDevice(_projected, _projection_arrays, _projecting, lambda _: (NEXT_ERROR,))
