"""Export of row normalization (cpp/include/approxsvm/program/normalizer.h)."""

from typing import Final

import numpy as np

from approxsvm.backends.c99.device_ops import Before, OnDevice, Step
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, TINY, Mapped
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Normalizer


def nodes(g: GraphBuilder, op: Normalizer, x: str, error: str | None, is_source: bool) -> Mapped:
    """Normalize each group; a row whose squares overflow or underflow float64 gets an infinite error."""
    n_groups = int(op.groups.max(initial=0))
    member = (op.groups[:, np.newaxis] == np.arange(1, n_groups + 1)).astype(np.float64)
    spread = g.doubles(np.ascontiguousarray(member.T))

    def norms(numbers: str) -> str:
        if op.norm == "l1":
            return g.op("MatMul", g.op("Abs", numbers), g.doubles(member))
        if op.norm == "l2":
            return g.op("Sqrt", g.op("MatMul", g.op("Mul", numbers, numbers), g.doubles(member)))
        groups = [g.op("Abs", g.columns(numbers, np.flatnonzero(op.groups == k + 1))) for k in range(n_groups)]
        return g.op("Concat", *[g.op("ReduceMax", x, axes=[1], keepdims=1) for x in groups], axis=1)

    length = norms(x)
    divided = g.op("Greater", length, np.nextafter(op.least, 0.0))
    divisor = g.op(
        "Add", g.op("MatMul", g.op("Where", divided, length, 1.0), spread), (op.groups == 0).astype(np.float64)
    )
    y = g.op("Div", x, divisor)
    rounding = ROUNDING * (op.n_features + 3)
    off = g.op("Add", g.op("Mul", length, rounding), _lost(op, op.n_features))
    if error is not None:
        off = g.op("Add", off, g.op("Mul", norms(error), 1.0 + rounding))
    least = g.op("Sub", length, off)
    doubtful = g.op("And", g.op("Less", least, op.least), g.op("Greater", g.op("Add", length, off), op.least / 2))
    # If no division takes place, the error is the incoming error alone.
    own = g.op("Where", divided, off, 0.0)
    own = g.op("Where", doubtful, np.inf, own)
    nearest = g.op(
        "Add", g.op("MatMul", g.op("Where", divided, least, 1.0), spread), (op.groups == 0).astype(np.float64)
    )
    carried = g.op("Mul", g.op("Abs", y), g.op("MatMul", own, spread))
    incoming = carried if error is None else g.op("Add", carried, error)
    grown = g.op("Add", g.op("Div", incoming, nearest), g.op("Add", g.op("Mul", g.op("Abs", y), ROUNDING), TINY))
    return y, g.op("Mul", grown, UP)


def _lost(op: Normalizer, n: int) -> float:
    """Bound what underflow removes from the norm of n numbers; dense rows are not divided by such small norms."""
    if op.rows != "sparse":
        return 0.0
    return n * 2.0**-536 if op.norm == "l2" else TINY


def _normalized(op: Normalizer, most: FloatArray) -> list[FloatArray]:
    """Bound the sums over all features of a vector; normalized features are then at most 1."""
    sums = (most**2 if op.norm == "l2" else most).sum(keepdims=True)
    return [sums, np.where(op.groups > 0, 1.0 + 2.0**-30, most)]


# As in program/normalizer.h and, for sparse rows, in exported/ops.h.
_NORMS: Final = {"l1": 0, "l2": 1, "max": 2}
_SPARSE: Final = 4


def _groups(op: Normalizer, before: Before) -> list[Step]:
    """Return the op with its groups of adjacent features: the number of groups; the first feature of each, its size."""
    members = [np.flatnonzero(op.groups == group) for group in range(1, int(op.groups.max(initial=0)) + 1)]
    groups = [len(members), *(number for features in members for number in (features[0], len(features)))]
    losses = [_lost(op, len(features)) for features in members]
    detail = _NORMS[op.norm] + _SPARSE * (op.rows == "sparse")
    macros = {"n_norms_": len(members)}
    return [Step("normalizer", [losses], [groups], detail, begins_loop=True, in_place=True, macros=macros)]


ON_DEVICE: Final = OnDevice(_normalized, _groups)
