"""Raw rows -> rows as the kernel sees them, in a graph, with what float64 may have done to them.

A graph has the operations of an input map one after the other, as the core has them
(cpp/include/approxsvm/artifact/stages), which derives the errors: with u = 2^-53 every operation errs by at most u
times its result, errors grow by |multiply / divide| and by the moduli of a projection's matrix, and limits do not let
them grow. The errors here are a few times as large, so that no order of summation and no fused operation exceeds them,
and no logarithm that is within 8 units. A number that leaves float64 or has no logarithm is NaN in the end, or has
an infinite or undefined error, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.steps import exported
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.steps import Interval, Piecewise, Step, Table, Waves

# Eight times the unit roundoff, for each operation.
ROUNDING: Final = 2.0**-50
# What underflow adds, even where a runtime takes denormal numbers for 0.
TINY: Final = 2.0**-1000

Mapped = tuple[str, str | None]  # numbers, and how far each may be off


@dataclass(frozen=True)
class GraphRows:
    """Names of mapped rows."""

    values: str  # shape (n_rows, n_features), float64
    # Shape (n_rows, 1): how far, in Euclidean distance, each may be from what is meant. None where they are that.
    error: str | None = None


def map_rows(
    g: GraphBuilder,
    raw: str,  # shape (n_rows, n_raw_features), float64
    input_map: InputMap | None,
    *,
    with_errors: bool,  # whether to return how far rows are off
) -> GraphRows:
    """Replay an input map."""
    if input_map is None:
        return GraphRows(raw)
    x, error, is_source = raw, None, True  # bit for bit, whatever operations a runtime fuses
    if not np.array_equal(input_map.columns, np.arange(input_map.n_raw_features)):
        x = g.columns(raw, input_map.columns)
    # 1 for rows that a step in front of a table, which may take NaN, has made NaN, or that have left float64 by then
    refused: str | None = None
    for k, stage in enumerate(input_map.stages):
        nodes, before = exported(stage, "nodes", "ONNX"), x
        if k > 0 and stage.hides_infinity:
            refused = _either(g, refused, g.op("IsInf", x))
        x, error = nodes(g, stage, x, error, is_source)
        is_source &= isinstance(stage, Interval | Table)
        if any(isinstance(later, Table) for later in input_map.stages[k + 1 :]):
            refused = _either(g, refused, _made_nan(g, stage, before, x))
    if refused is not None:
        x = g.op("Where", g.op("Greater", refused, 0.0), np.nan, x)
    if input_map.stages:  # as an infinite number has a kernel of 0
        x = g.op("Where", g.op("IsInf", x), np.nan, x)
    if error is None or not with_errors:
        return GraphRows(x)
    distance = g.op("Sqrt", g.rows_sum(g.op("Mul", error, error), keepdims=True))
    # Squares of errors that are too small for float64 are as nothing beside this.
    return GraphRows(x, g.op("Add", g.op("Mul", distance, UP), input_map.n_features * 2.0**-500))


def increasing(g: GraphBuilder, at: Callable[[str], tuple[str, str]], x: str, error: str | None) -> tuple[str, str]:
    """Map x by an increasing function, of which `at` gives values and their errors, as program/ball.h does."""
    y, own = at(x)
    if error is None:
        return y, g.op("Mul", own, UP)
    reach = g.op("Add", g.op("Mul", error, UP), g.op("Mul", g.op("Abs", x), ROUNDING))
    reach = g.op("Where", g.op("Greater", error, 0.0), reach, error)
    (low, of_low), (high, of_high) = (at(g.op(side, x, reach)) for side in ("Sub", "Add"))
    below, above = g.op("Sub", y, g.op("Sub", low, of_low)), g.op("Sub", g.op("Add", high, of_high), y)
    return y, g.op("Add", g.op("Mul", g.op("Max", below, above), UP), TINY)


def added(g: GraphBuilder, first: str | None, second: str) -> str:
    """Their sum, or the second alone."""
    return second if first is None else g.op("Add", first, second)


def _made_nan(g: GraphBuilder, stage: Step, x: str, y: str) -> str:
    """Which numbers the step has made NaN of numbers, or of NaN that it does not pass."""
    made = g.op("IsNaN", y)
    if stage.by_feature or isinstance(stage, Table | Waves | Piecewise):
        came = g.op("IsNaN", g.columns(x, stage.source) if isinstance(stage, Table | Waves | Piecewise) else x)
        if isinstance(stage, Table):
            came = g.op("And", came, np.array([np.isinf(steps.nan) for steps in stage.steps]))
        made = g.op("And", made, g.op("Not", came))
    return str(made)


def _either(g: GraphBuilder, refused: str | None, those: str) -> str:
    """The rows refused so far, and those of which any number is among `those`, shape (n_rows, 1)."""
    now = g.op("ReduceMax", g.cast(those, np.float64), axes=[1], keepdims=1)
    return str(now if refused is None else g.op("Max", refused, now))
