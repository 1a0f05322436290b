"""Export of lookups; in C, only of those that follow other ops (cpp/include/approxsvm/program/ops/lookup.h)."""

from typing import Final

import numpy as np

from approxsvm.backends.c99.device.ops import Before, OnDevice, Step, reads_one_by_one
from approxsvm.backends.c99.lookups import most_looked_up, written
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, Mapped
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Lookup
from approxsvm.ir.ops.lookup import SAME

# Maximum number of pieces per output; each piece needs two nodes in a graph.
_MOST_PIECES: Final = 256


def nodes(g: GraphBuilder, op: Lookup, x: str, error: str | None, is_source: bool) -> Mapped:
    """Select the pieces of all outputs together. Rejected values become NaN, and errors that cross an edge infinite."""
    n_pieces = max((len(steps.values) for steps in op.steps), default=1)
    if n_pieces > _MOST_PIECES:
        raise UnsupportedModelError(
            f"a lookup of this pipeline has {n_pieces:,} pieces, but the ONNX export supports {_MOST_PIECES} at "
            "most: apply that step to the rows first, and compile and export the steps after it"
        )
    picked = g.columns(x, op.source)
    found = _looked_up(g, op, picked, [steps.values for steps in op.steps], n_pieces)
    nan = np.array([steps.nan for steps in op.steps])
    found = g.op("Where", g.op("IsNaN", picked), nan, found)
    passes = g.op("Equal", found, np.inf)
    y = g.op("Where", passes, picked, found)
    if error is None:
        return y, None
    came = g.columns(error, op.source)
    settled = g.op("Where", passes, came, 0.0)
    if is_source:
        return y, settled
    numbers = [np.arange(len(steps.values), dtype=np.float64) for steps in op.steps]
    reach = g.op("Add", g.op("Mul", came, UP), g.op("Mul", g.op("Abs", picked), ROUNDING))
    ends = [_looked_up(g, op, g.op(side, picked, reach), numbers, n_pieces) for side in ("Sub", "Add")]
    certain = g.op("Or", g.op("Equal", *ends), g.op("Not", g.op("Greater", came, 0.0)))
    return y, g.op("Where", certain, settled, np.inf)


def _looked_up(g: GraphBuilder, op: Lookup, x: str, values: list[FloatArray], n_pieces: int) -> str:
    """Return, for each element of x, the value of the piece that contains it."""
    found = g.op("Where", g.op("Less", x, np.inf), np.array([value[0] for value in values]), np.nan)
    for k in range(1, n_pieces):
        # x >= edge is equivalent to x > the float below edge; the edge is infinite for outputs with fewer pieces.
        below = [np.nextafter(s.edges[k - 1], -np.inf) if len(s.edges) >= k else np.inf for s in op.steps]
        now = [value[k] if len(value) > k else 0.0 for value in values]
        found = g.op("Where", g.op("Greater", x, np.array(below)), np.array(now), found)
    return str(found)


def _values(op: Lookup, most: FloatArray) -> list[FloatArray]:
    return [most_looked_up(op, most)]


def _looking_up(op: Lookup, before: Before) -> list[Step]:
    ends = np.cumsum([0, *(len(steps.edges) for steps in op.steps)])
    missing = [np.array([steps.nan for steps in op.steps], np.float64)]
    doubles = [*missing, *(steps.edges for steps in op.steps), *(steps.values for steps in op.steps)]
    in_place = reads_one_by_one(op)
    return [Step("lookup", list(map(written, doubles)), [op.source, ends], begins_loop=True, in_place=in_place)]


ON_DEVICE: Final = OnDevice(
    _values,
    _looking_up,
    refuses=lambda _: True,
    keeps_exact=lambda _: True,
    is_choice=lambda op: not any((steps.values == SAME).any() for steps in op.steps),
)
