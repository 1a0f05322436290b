"""Raw rows -> rows as the kernel sees them, in a graph, with what float64 may have done to them.

The operations of an input map stand in the graph one after the other as they do in model/input_map.py, which derives
the errors: with u = 2^-53 every operation errs by at most u times its result, errors grow by |multiply / divide| and by
the moduli of a projection's matrix, and limits do not let them grow. The errors here are a few times as large, so that
no order of summation and no fused operation exceeds them, and no logarithm that is within 8 units. A number that leaves
float64 or has no logarithm has an infinite or undefined error, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from approxsvm.export.onnx.graph_builder import UP, GraphBuilder
from approxsvm.model.input_map import Affine, InputMap, Logarithm, Projection
from approxsvm.model.kernel_model import FloatArray

# Eight times the unit roundoff, for each operation.
_ROUNDING: Final = 2.0**-50
# What underflow adds, even where a runtime takes denormal numbers for 0.
_TINY: Final = 2.0**-1000


@dataclass(frozen=True)
class GraphRows:
    """Names of mapped rows.

    Attributes
    ----------
    values : str
        Shape (n_rows, n_features), float64.
    error : str, optional
        Shape (n_rows, 1): how far, in Euclidean distance, each may be from what is meant. None where they are that.
    """

    values: str
    error: str | None = None


def map_rows(g: GraphBuilder, raw: str, input_map: InputMap | None, *, with_errors: bool) -> GraphRows:
    """Replay an input map.

    Parameters
    ----------
    g : GraphBuilder
    raw : str
        Shape (n_rows, n_raw_features), float64.
    input_map : InputMap, optional
    with_errors : bool
        Whether anybody asks how far rows are off.
    """
    if input_map is None:
        return GraphRows(raw)
    x, error = raw, None
    if not np.array_equal(input_map.columns, np.arange(input_map.n_raw_features)):
        x = g.columns(raw, input_map.columns)
    for stage in input_map.stages:
        x, error = _RUN[type(stage)](g, stage, x, error, with_errors)
    if error is None:
        return GraphRows(x)
    distance = g.op("Sqrt", g.rows_sum(g.op("Mul", error, error), keepdims=True))
    # Squares of errors that are too small for float64 are as nothing beside this.
    return GraphRows(x, g.op("Add", g.op("Mul", distance, UP), input_map.n_features * 2.0**-500))


def _sum(g: GraphBuilder, first: str | None, second: str) -> str:
    return second if first is None else g.op("Add", first, second)


def _affine(g: GraphBuilder, stage: Affine, x: str, error: str | None, with_errors: bool) -> tuple[str, str | None]:
    gain = np.ones(stage.n_features)
    n_operations = 0
    for name, operation in (("subtract", "Sub"), ("multiply", "Mul"), ("divide", "Div")):
        numbers = getattr(stage, name)
        if numbers is not None:
            x = g.op(operation, x, numbers)
            if name == "multiply":
                gain = gain * np.abs(numbers)
            elif name == "divide":
                gain = gain / np.abs(numbers)
            n_operations += 1
    if with_errors:
        error = _affine_error(g, stage, x, error, gain, n_operations)
    if stage.add is not None:
        x = g.op("Add", x, stage.add)
        if error is not None:
            error = g.op("Add", error, g.op("Mul", g.op("Abs", x), _ROUNDING))
    for limits, operation in ((stage.low, "Max"), (stage.high, "Min")):
        x = x if limits is None else g.op(operation, x, limits)
    return x, error


def _affine_error(
    g: GraphBuilder, stage: Affine, x: str, error: str | None, gain: FloatArray, n_operations: int
) -> str:
    """Of what is scaled, before anything is added."""
    with np.errstate(over="ignore", divide="ignore"):
        tiny = _TINY * (1.0 + (0.0 if stage.divide is None else 1.0 / np.abs(stage.divide)))
    own: Any = g.op("Add", g.op("Mul", g.op("Abs", x), n_operations * _ROUNDING), np.broadcast_to(tiny, gain.shape))
    error = own if error is None else g.op("Add", g.op("Mul", error, gain * UP + _TINY), own)
    if stage.relative_error is None:
        return error
    of_parameters = g.op("Mul", g.op("Add", g.op("Abs", x), error), stage.relative_error)
    return g.op("Mul", g.op("Add", error, of_parameters), UP)


def _logarithm(
    g: GraphBuilder, stage: Logarithm, x: str, error: str | None, with_errors: bool
) -> tuple[str, str | None]:
    """Where a number is none that has a logarithm, NaN, and so is its error."""
    taken = g.constant(stage.taken)
    offset = np.where(stage.taken, stage.offset, 0.0)
    shifted = g.op("Add", x, offset)
    logarithm = g.op("Where", g.op("Greater", x, -offset), g.op("Log", shifted), np.nan)
    mapped = g.op("Where", taken, logarithm, x)
    if not with_errors:
        return mapped, None
    # x + offset is rounded; around t an error e becomes e / (t - e) at most.
    off = _sum(g, error, g.op("Mul", g.op("Abs", shifted), _ROUNDING))
    nearest = g.op("Sub", g.op("Mul", shifted, 1.0 - 2.0**-48), off)
    carried = g.op("Where", g.op("Greater", nearest, 0.0), g.op("Div", off, nearest), np.inf)
    own = g.op("Add", g.op("Mul", g.op("Abs", logarithm), 2 * _ROUNDING), _TINY)
    of_logarithm = g.op("Mul", g.op("Add", carried, own), UP)
    return mapped, g.op("Where", taken, of_logarithm, 0.0 if error is None else error)


def _projection(
    g: GraphBuilder, stage: Projection, x: str, error: str | None, with_errors: bool
) -> tuple[str, str | None]:
    x = g.op("Sub", x, stage.center)
    y = g.op("Add", g.op("MatMul", x, g.doubles(stage.matrix)), stage.bias)
    if not with_errors:
        return y, None
    path = _ROUNDING * (stage.n_features + 3)
    incoming = _sum(g, error, g.op("Mul", g.op("Abs", x), path))
    grown = g.op("MatMul", incoming, g.doubles(np.abs(stage.matrix)))
    of_bias = stage.bias_error + _ROUNDING * np.abs(stage.bias) + (stage.n_features + 2) * _TINY
    rounded = g.op("Add", g.op("Mul", g.op("Abs", y), _ROUNDING), of_bias)
    return y, g.op("Mul", g.op("Add", grown, rounded), UP)


_RUN: Final[dict[type, Callable[..., tuple[str, str | None]]]] = {
    Affine: _affine,
    Logarithm: _logarithm,
    Projection: _projection,
}
