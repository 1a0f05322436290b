"""Export of piecewise polynomials (cpp/include/approxsvm/program/ops/piecewise_polynomial.h)."""

from typing import Any, Final

import numpy as np

from approxsvm.backends.c99.device.ops import Before, OnDevice, Step, reads_one_by_one
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, TINY, Mapped
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import PiecewisePolynomial


def nodes(g: GraphBuilder, op: PiecewisePolynomial, x: str, error: str | None, is_source: bool) -> Mapped:
    """Find pieces by binary search and gather their coefficients; near edges, errors are finite only if `is_source`."""
    picked = g.columns(x, op.source)
    piece = _piece(g, op, picked)
    starts = np.cumsum([0, *(len(pieces.origins) for pieces in op.pieces[:-1])]).astype(np.int64)
    number = g.op("Add", piece, starts)

    def of_piece(numbers: list[FloatArray]) -> str:
        return str(g.op("Gather", g.doubles(np.concatenate(numbers)), number, axis=0))

    t = g.op("Sub", picked, of_piece([pieces.origins for pieces in op.pieces]))
    coefs = [of_piece([pieces.coefs[:, k] for pieces in op.pieces]) for k in range(op.degree + 1)]
    y, moduli = coefs[-1], g.op("Abs", coefs[-1])
    for coef in coefs[-2::-1]:
        y = g.op("Add", g.op("Mul", y, t), coef)
        moduli = g.op("Add", g.op("Mul", moduli, g.op("Abs", t)), g.op("Abs", coef))
    own = g.op("Add", g.op("Mul", moduli, (3 * op.degree + 2) * ROUNDING), TINY)
    if error is None:
        return y, own
    came = g.columns(error, op.source)
    reach = g.op("Add", g.op("Mul", came, UP), g.op("Mul", g.op("Abs", picked), ROUNDING))
    furthest = g.op("Add", g.op("Abs", t), reach)
    slope: str | None = None
    for k in range(op.degree, 0, -1):
        term = g.op("Mul", g.op("Abs", coefs[k]), float(k))
        slope = term if slope is None else g.op("Add", g.op("Mul", slope, furthest), term)
    carried = own if slope is None else g.op("Add", own, g.op("Mul", reach, slope))
    grown = g.op("Mul", carried, UP)
    if is_source:
        return y, grown
    ends = [_piece(g, op, g.op(side, picked, reach)) for side in ("Sub", "Add")]
    certain = g.op("Or", g.op("Equal", *ends), g.op("Not", g.op("Greater", came, 0.0)))
    return y, g.op("Where", certain, grown, np.inf)


def _piece(g: GraphBuilder, op: PiecewisePolynomial, x: str) -> str:
    """Return, for each value, the index (int64) of the piece that contains it, or 0 for NaN."""
    n_bits = max(max(len(pieces.edges) for pieces in op.pieces).bit_length(), 1)
    size = (1 << n_bits) - 1
    below = np.full((len(op.pieces), size), np.inf)  # x >= edge is equivalent to x > the float below edge
    for row, pieces in zip(below, op.pieces, strict=True):
        row[: len(pieces.edges)] = np.nextafter(pieces.edges, -np.inf)
    edges, first = g.doubles(below.ravel()), np.arange(len(op.pieces), dtype=np.int64) * size
    found: str | None = None
    for bit in range(n_bits - 1, -1, -1):
        step = 1 << bit
        if found is None:
            edge: Any = below[:, step - 1]
        else:
            edge = g.op("Gather", edges, g.op("Add", found, first + (step - 1)), axis=0)
        beyond = g.op("Mul", g.cast(g.op("Greater", x, edge), np.int64), np.array(step, np.int64))
        found = beyond if found is None else g.op("Add", found, beyond)
    return str(found)


def _bent(op: PiecewisePolynomial, most: FloatArray) -> list[FloatArray]:
    found = np.zeros(op.n_outputs)
    for k, (j, pieces) in enumerate(zip(op.source, op.pieces, strict=True)):
        low, high = np.append(-most[j], pieces.edges), np.append(pieces.edges, most[j])
        t = np.maximum(np.abs(low - pieces.origins), np.abs(high - pieces.origins))
        terms = np.abs(pieces.coefs) * t[:, np.newaxis] ** np.arange(op.degree + 1)
        found[k] = np.where(pieces.coefs == 0, 0.0, terms).sum(axis=1).max()
    return [found]


def _pieces(op: PiecewisePolynomial, before: Before) -> list[Step]:
    ends = np.cumsum([0, *(len(pieces.edges) for pieces in op.pieces)])
    doubles = [getattr(pieces, part) for part in ("edges", "origins", "coefs") for pieces in op.pieces]
    in_place = reads_one_by_one(op)
    return [Step("piecewise_polynomial", doubles, [op.source, ends], op.degree, begins_loop=True, in_place=in_place)]


ON_DEVICE: Final = OnDevice(_bent, _pieces)
