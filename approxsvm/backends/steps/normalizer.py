"""Norms of rows in exported programs.

On a device a vector of n features and of the norm N, which is off by E <= g e + (n + 6) u N, g = sqrt(n) for l1 and 1
for other norms, becomes one that is off by (e + E |x|_1 / N) / (N - E) + u |x|_1 / N. Where N may be on either side of
the least norm that is divided by, nothing is known.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from approxsvm.backends.c99.device_steps import ROUNDED_UP, UNDERFLOW, OnDevice
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, TINY, Mapped
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.steps import Normalizer
from approxsvm.ir.steps.normalizer import LEAST_NORM


def nodes(g: GraphBuilder, stage: Normalizer, x: str, error: str | None, with_errors: bool, is_source: bool) -> Mapped:
    """Group after group; a row whose squares leave float64 has an infinite error."""
    n_groups = int(stage.groups.max(initial=0))
    member = (stage.groups[:, np.newaxis] == np.arange(1, n_groups + 1)).astype(np.float64)
    spread = g.doubles(np.ascontiguousarray(member.T))

    def norms(numbers: str) -> str:
        if stage.norm == "l1":
            return g.op("MatMul", g.op("Abs", numbers), g.doubles(member))
        if stage.norm == "l2":
            return g.op("Sqrt", g.op("MatMul", g.op("Mul", numbers, numbers), g.doubles(member)))
        groups = [g.op("Abs", g.columns(numbers, np.flatnonzero(stage.groups == k + 1))) for k in range(n_groups)]
        return g.op("Concat", *[g.op("ReduceMax", x, axes=[1], keepdims=1) for x in groups], axis=1)

    length = norms(x)
    divided = g.op("Greater", length, np.nextafter(LEAST_NORM, 0.0))
    divisor = g.op(
        "Add", g.op("MatMul", g.op("Where", divided, length, 1.0), spread), (stage.groups == 0).astype(np.float64)
    )
    y = g.op("Div", x, divisor)
    if not with_errors:
        return y, None
    rounding = ROUNDING * (stage.n_features + 3)
    off = g.op("Add", g.op("Mul", length, rounding), TINY)
    if error is not None:
        off = g.op("Add", off, g.op("Mul", norms(error), 1.0 + rounding))
    least = g.op("Sub", length, off)
    doubtful = g.op("And", g.op("Less", least, LEAST_NORM), g.op("Greater", g.op("Add", length, off), LEAST_NORM / 2))
    # Of no norm to divide by the error is only what came.
    own = g.op("Where", divided, off, 0.0)
    own = g.op("Where", doubtful, np.inf, own)
    nearest = g.op(
        "Add", g.op("MatMul", g.op("Where", divided, least, 1.0), spread), (stage.groups == 0).astype(np.float64)
    )
    carried = g.op("Mul", g.op("Abs", y), g.op("MatMul", own, spread))
    incoming = carried if error is None else g.op("Add", carried, error)
    grown = g.op("Add", g.op("Div", incoming, nearest), g.op("Add", g.op("Mul", g.op("Abs", y), ROUNDING), TINY))
    return y, g.op("Mul", grown, UP)


def _normalized(stage: Normalizer, most: FloatArray) -> list[FloatArray]:
    """Of all features of a vector together; then those that are divided are at most 1."""
    sums = (most**2 if stage.norm == "l2" else most).sum(keepdims=True)
    return [sums, np.where(stage.groups > 0, 1.0 + 2.0**-30, most)]


def _normalizing(k: int, stage: Normalizer) -> list[str]:
    """A call for each vector; features of none keep their error."""
    lines = [f"after = {'0.0' if stage.groups.all() else 'error'};"]
    for group in range(1, int(stage.groups.max(initial=0)) + 1):
        (features,) = np.nonzero(stage.groups == group)
        n = len(features)
        gain = math.sqrt(n) * ROUNDED_UP if stage.norm == "l1" else 1.0
        lines.append(f"after += @normalize_{stage.norm}@@(x + {features[0]}, {n}, error, {gain!r} * error);")
    return [*lines, f"error = 1.000000001 * after + {UNDERFLOW!r};"]


def _texts(stage: Normalizer) -> tuple[str, ...]:
    add = {
        "l1": "norm += modulus;",
        "l2": "norm += modulus * modulus;",
        "max": "norm = modulus > norm ? modulus : norm;",
    }
    root = "    norm = approxsvm_root(norm);\n" if stage.norm == "l2" else ""
    text = _NORMALIZE.format(norm=stage.norm, add=add[stage.norm], root=root, least=LEAST_NORM)
    return (text,)


_NORMALIZE: Final = """\
/* Divides x by its norm, unless that is next to nothing; what it is off by then, where x was by `error`, its norm by
   `of_norm`. */
static inline double @normalize_{norm}@@(double x[], int n, double error, double of_norm) {{
    double norm = 0.0, moduli = 0.0, off;
    int j;
    for (j = 0; j < n; ++j) {{
        const double modulus = @modulus@@(x[j]);
        moduli += modulus;
        {add}
    }}
{root}    off = 1.000000001 * of_norm + (double)(n + 6) * 0x1.0001p-53 * norm + 1e-300;
    if (norm + off < {least!r}) return error;
    for (j = 0; j < n && norm >= {least!r}; ++j) x[j] /= norm;
    if (!(norm - off >= {least!r})) return (double)@float_of@@(0x7F800000u);
    moduli /= norm;
    return (error + moduli * off) / (norm - off) + 0x1p-53 * moduli;
}}
"""

ON_DEVICE: Final = OnDevice(
    _normalized,
    lambda _: {},
    _normalizing,
    _texts,
    in_place=True,
    keeps=lambda stage: stage.groups == 0,
    program="functions.h",
)
