"""Graphs of input maps, which transform raw rows into mapped rows and bound their float64 errors.

A graph performs an input map's operations in the core's order (cpp/include/approxsvm/artifact/ops, which derives the
errors). With u = 2^-53, every operation has a relative error of at most u. Errors are multiplied by |multiply / divide|
and by the absolute values of a projection's matrix; clipping does not increase them. The errors used here are a few
times larger, to cover any order of summation, fused operations, and logarithms with errors of up to 8 units in the last
place. A value that overflows or has no logarithm becomes NaN, or its error becomes infinite or NaN, so the row is not
certain.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.ops import exported
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.ops import Interval, Lookup, Op
from approxsvm.ir.ops.op import PerOutput

# Relative error of an operation: eight times the unit roundoff.
ROUNDING: Final = 2.0**-50
# Bound on underflow errors, even if a runtime flushes subnormal numbers to 0.
TINY: Final = 2.0**-1000

Mapped = tuple[str, str | None]  # values, and bounds on their errors


@dataclass(frozen=True)
class GraphRows:
    """Names of mapped rows and of the bounds on their errors."""

    values: str  # shape (n_rows, n_features), float64
    # Shape (n_rows, 1): bound on the Euclidean distance of each row from its exact position; None if the distance is 0.
    error: str | None = None


def map_rows(
    g: GraphBuilder,
    raw: str,  # shape (n_rows, n_raw_features), float64
    input_map: InputMap | None,
    *,
    with_errors: bool,  # whether to return error bounds
) -> GraphRows:
    """Apply the ops of an input map to raw rows."""
    if input_map is None:
        return GraphRows(raw)
    x, error, is_source = raw, None, True  # is_source: bit-identical to the source's, even if operations are fused
    if not np.array_equal(input_map.columns, np.arange(input_map.n_raw_features)):
        x = g.columns(raw, input_map.columns)
    # 1 for rows in which an op before a lookup produces infinity or NaN, which the lookup might accept; else 0
    refused: str | None = None
    n_features = len(input_map.columns)
    for k, op in enumerate(input_map.ops):
        nodes, (taken, came) = exported(op, "nodes", "ONNX"), (x, error)
        if op.n_features < n_features:
            inputs = np.arange(op.first, op.end)
            taken, came = g.columns(x, inputs), None if error is None else g.columns(error, inputs)
        if k > 0 and op.hides_infinity:
            refused = _either(g, refused, g.op("IsInf", taken))
        made, grown = nodes(g, op, taken, came, is_source)
        x, error = _replaced(g, op, n_features, (x, error), (made, grown))
        n_features += op.n_outputs - op.n_features
        is_source &= isinstance(op, Interval | Lookup)
        if any(isinstance(later, Lookup) for later in input_map.ops[k + 1 :]):
            refused = _either(g, refused, _made_nan(g, op, taken, made))
    if refused is not None:
        x = g.op("Where", g.op("Greater", refused, 0.0), np.nan, x)
    if input_map.ops:  # with an infinite coordinate, the kernel value would be 0
        x = g.op("Where", g.op("IsInf", x), np.nan, x)
    if error is None or not with_errors:
        return GraphRows(x)
    distance = g.op("Sqrt", g.rows_sum(g.op("Mul", error, error), keepdims=True))
    # The added constant exceeds the error due to underflow of squares.
    return GraphRows(x, g.op("Add", g.op("Mul", distance, UP), input_map.n_features * 2.0**-500))


def _replaced(g: GraphBuilder, op: Op, n_features: int, row: Mapped, outputs: Mapped) -> Mapped:
    """Return a row in which the op's outputs replace the features that it reads."""
    if op.n_features == n_features:
        return outputs
    ends = [np.arange(op.first), np.arange(op.end, n_features)]

    def joined(before: str, made: str) -> str:
        parts = [g.columns(before, features) if len(features) else "" for features in ends]
        return str(g.op("Concat", *(name for name in (parts[0], made, parts[1]) if name), axis=1))

    (x, error), (y, grown) = row, outputs
    if grown is not None:  # if no errors are recorded for the row, they are 0
        padding = np.array([0, len(ends[0]), 0, len(ends[1])])
        grown = g.op("Pad", grown, padding) if error is None else joined(error, grown)
    return joined(x, y), grown


def increasing(g: GraphBuilder, at: Callable[[str], tuple[str, str]], x: str, error: str | None) -> tuple[str, str]:
    """Map x and its error by an increasing function, as in program/ball.h; `at` computes values and their errors."""
    y, value_error = at(x)
    if error is None:
        return y, g.op("Mul", value_error, UP)
    reach = g.op("Add", g.op("Mul", error, UP), g.op("Mul", g.op("Abs", x), ROUNDING))
    reach = g.op("Where", g.op("Greater", error, 0.0), reach, error)
    (low, low_error), (high, high_error) = (at(g.op(side, x, reach)) for side in ("Sub", "Add"))
    below, above = g.op("Sub", y, g.op("Sub", low, low_error)), g.op("Sub", g.op("Add", high, high_error), y)
    return y, g.op("Add", g.op("Mul", g.op("Max", below, above), UP), TINY)


def added(g: GraphBuilder, first: str | None, second: str) -> str:
    """Return the sum of two terms, or the second term if the first is None."""
    return second if first is None else g.op("Add", first, second)


def _made_nan(g: GraphBuilder, op: Op, x: str, y: str) -> str:
    """Return a mask of the NaN outputs that an op creates, excluding NaN that it passes on feature by feature."""
    made = g.op("IsNaN", y)
    if op.by_feature or isinstance(op, PerOutput):
        came = g.op("IsNaN", g.columns(x, op.source) if isinstance(op, PerOutput) else x)
        if isinstance(op, Lookup):
            came = g.op("And", came, np.array([np.isinf(steps.nan) for steps in op.steps]))
        made = g.op("And", made, g.op("Not", came))
    return str(made)


def _either(g: GraphBuilder, refused: str | None, mask: str) -> str:
    """Return the rejected rows, shape (n_rows, 1), extended by the rows in which `mask` is true anywhere."""
    now = g.op("ReduceMax", g.cast(mask, np.float64), axes=[1], keepdims=1)
    return str(now if refused is None else g.op("Max", refused, now))
