"""Tables behind other steps in exported programs: categories, bins, missing values.

On a device, over the reach of 2 e of an x that is not the source's own, the table is compared with what it has for x: a
number that passes is off by e more than it is from that. Where any piece in reach refuses, the row is refused. What
numbers that no table takes up are off by is not carried on, but a row of which a step has refused one stays refused.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.device_router import smallest
from approxsvm.backends.c99.device_steps import IS_SOURCE, PIECE, SUMMED, OnDevice, error_of
from approxsvm.backends.c99.lookups import BETWEEN, LARGEST, REFUSES, most_looked_up, written
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, Mapped
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.steps import Table

# Of one output, each of which is two nodes in a graph.
_MOST_PIECES: Final = 256


def nodes(g: GraphBuilder, stage: Table, x: str, error: str | None, with_errors: bool, is_source: bool) -> Mapped:
    """Piece after piece of all outputs at once. What is refused is NaN; an error that meets an edge proves nothing."""
    n_pieces = max((len(steps.values) for steps in stage.steps), default=1)
    if n_pieces > _MOST_PIECES:
        raise UnsupportedModelError(
            f"a table of this pipeline has {n_pieces:,} pieces, but the ONNX export has {_MOST_PIECES} at most: "
            "apply that step in front of the graph, and compile and export what follows it"
        )
    picked = g.columns(x, stage.source)
    found = _looked_up(g, stage, picked, [steps.values for steps in stage.steps], n_pieces)
    nan = np.array([steps.nan for steps in stage.steps])
    found = g.op("Where", g.op("IsNaN", picked), nan, found)
    passes = g.op("Equal", found, np.inf)
    y = g.op("Where", passes, picked, found)
    if error is None:
        return y, None
    came = g.columns(error, stage.source)
    settled = g.op("Where", passes, came, 0.0)
    if is_source:
        return y, settled
    numbers = [np.arange(len(steps.values), dtype=np.float64) for steps in stage.steps]
    reach = g.op("Add", g.op("Mul", came, UP), g.op("Mul", g.op("Abs", picked), ROUNDING))
    ends = [_looked_up(g, stage, g.op(side, picked, reach), numbers, n_pieces) for side in ("Sub", "Add")]
    certain = g.op("Or", g.op("Equal", *ends), g.op("Not", g.op("Greater", came, 0.0)))
    return y, g.op("Where", certain, settled, np.inf)


def _looked_up(g: GraphBuilder, stage: Table, x: str, values: list[FloatArray], n_pieces: int) -> str:
    """The values of pieces that numbers lie in."""
    found = g.op("Where", g.op("Less", x, np.inf), np.array([value[0] for value in values]), np.nan)
    for k in range(1, n_pieces):
        # x >= edge is x > the number below it; outputs of fewer pieces never come here.
        below = [np.nextafter(s.edges[k - 1], -np.inf) if len(s.edges) >= k else np.inf for s in stage.steps]
        now = [value[k] if len(value) > k else 0.0 for value in values]
        found = g.op("Where", g.op("Greater", x, np.array(below)), np.array(now), found)
    return str(found)


def _values(stage: Table, most: FloatArray) -> list[FloatArray]:
    return [most_looked_up(stage, most)]


def _numbers(stage: Table) -> dict[str, npt.NDArray[Any]]:
    parts = {"edges": [steps.edges for steps in stage.steps], "found": [steps.values for steps in stage.steps]}
    numbers = {part: written(np.concatenate([np.zeros(0), *some])) for part, some in parts.items()}
    ends = np.cumsum([0, *(len(steps.edges) for steps in stage.steps)])
    missing = written(np.array([steps.nan for steps in stage.steps], np.float64))
    lost = {"lost": smallest(_lost(stage))} if len(_lost(stage)) else {}
    return {"source": smallest(stage.source), "ends": smallest(ends), "missing": missing, **numbers, **lost}


def _lost(stage: Table) -> npt.NDArray[np.intp]:
    """Features that nothing is made of: where a step before has refused one, so it stays."""
    return np.setdiff1d(np.arange(stage.n_features), stage.source)


def _looking_up(k: int, stage: Table) -> list[str]:
    return [
        "before = 0.0;",
        f"for (i = 0; i < {stage.n_outputs}; ++i) {{",
        f"    const int of = (int)@source_{k}@@[i], begin = (int)@ends_{k}@@[i], n = (int)@ends_{k}@@[i + 1] - begin;",
        f"    const int column = (int)@columns_{k}@@[of], is_missing = column >= 0 && row[column] != row[column];",
        f"    const double *const edges = @edges_{k}@@ + begin, *const found = @found_{k}@@ + begin + i;",
        f"    const double missing = is_missing ? @missing_{k}@@[i] : {REFUSES!r};",
        f"    y[i] = @tabled@@(edges, n, found, missing, x[of], {IS_SOURCE}, {error_of(k, 'of')}, &before);",
        "}",
        *(
            [f"for (i = 0; i < {len(_lost(stage))}; ++i) y[0] += x[@lost_{k}@@[i]] != x[@lost_{k}@@[i]] ? {NAN} : 0.0;"]
            if len(_lost(stage))
            else []
        ),
        f"for (i = 0; i < {stage.n_outputs}; ++i) x[i] = y[i];",
        SUMMED,
    ]


NAN: Final = "(double)@float_of@@(0x7FC00000u)"
_TABLED: Final = f"""\
/* What a table has for x, and what that is off by, added to *off, where x is by `error`; NaN, which a row is refused
   for, where it may have nothing. A missing value is NaN until it is replaced. */
static inline double @tabled@@(const double edges[], int n, const double found[], double missing, double x,
                               int is_source, double error, double *off) {{
    const double reach = error < 1e300 ? error : (double)@float_of@@(0x7F800000u);
    const double beyond = is_source || error == 0.0 ? 0.0 : 2.000001 * reach + 0x1p-50 * @modulus@@(x) + 1e-300;
    double y = x != x ? missing : found[@piece@@(edges, n, x)], most = 0.0;
    int i, last;
    if (y > {LARGEST!r}) y = y < {BETWEEN!r} ? x : (double)@float_of@@(0x7FC00000u);
    if (x != x) return y;
    last = @piece@@(edges, n, x + beyond);
    for (i = @piece@@(edges, n, x - beyond); i <= last; ++i) {{
        const double moved = found[i] > {LARGEST!r} ? @modulus@@(y - x) + reach : @modulus@@(y - found[i]);
        most = moved > most ? moved : most;
        if (found[i] > {BETWEEN!r}) y = (double)@float_of@@(0x7FC00000u);
    }}
    *off += most;
    return y;
}}
"""

ON_DEVICE: Final = OnDevice(
    _values,
    _numbers,
    _looking_up,
    lambda _: (PIECE, _TABLED),
    refuses=lambda _: True,
    keeps=lambda _: True,
)
