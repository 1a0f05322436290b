"""Piecewise polynomials in exported programs.

On a device one of degree k, by Horner's rule in t = x - origin, rounds by (3 k + 2) u of the sum of its terms' moduli.
Over an error e of x that is not the source's own it moves to another piece at most where one begins within 2 e of x;
there it is compared with y at the point next to x, which all others that are meant are within 2 e of, and moves by 2 e
times the steepest slope of the piece, sum i |c_i| (|t| + 2 e)^(i - 1). Pieces that are reached are added up.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.device_router import smallest
from approxsvm.backends.c99.device_steps import IS_SOURCE, PIECE, SUMMED, OnDevice, error_of
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, TINY, Mapped
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.steps import Piecewise


def nodes(g: GraphBuilder, stage: Piecewise, x: str, error: str | None, with_errors: bool, is_source: bool) -> Mapped:
    """Piece by binary search, coefficients by number; next to an edge only what the source has there is proven."""
    picked = g.columns(x, stage.source)
    piece = _piece(g, stage, picked)
    starts = np.cumsum([0, *(len(pieces.origins) for pieces in stage.pieces[:-1])]).astype(np.int64)
    number = g.op("Add", piece, starts)

    def of_piece(numbers: list[FloatArray]) -> str:
        return str(g.op("Gather", g.doubles(np.concatenate(numbers)), number, axis=0))

    t = g.op("Sub", picked, of_piece([pieces.origins for pieces in stage.pieces]))
    coefs = [of_piece([pieces.coefs[:, k] for pieces in stage.pieces]) for k in range(stage.degree + 1)]
    y, moduli = coefs[-1], g.op("Abs", coefs[-1])
    for coef in coefs[-2::-1]:
        y = g.op("Add", g.op("Mul", y, t), coef)
        moduli = g.op("Add", g.op("Mul", moduli, g.op("Abs", t)), g.op("Abs", coef))
    if not with_errors:
        return y, None
    own = g.op("Add", g.op("Mul", moduli, (3 * stage.degree + 2) * ROUNDING), TINY)
    if error is None:
        return y, own
    came = g.columns(error, stage.source)
    reach = g.op("Add", g.op("Mul", came, UP), g.op("Mul", g.op("Abs", picked), ROUNDING))
    furthest = g.op("Add", g.op("Abs", t), reach)
    slope: str | None = None
    for k in range(stage.degree, 0, -1):
        term = g.op("Mul", g.op("Abs", coefs[k]), float(k))
        slope = term if slope is None else g.op("Add", g.op("Mul", slope, furthest), term)
    carried = own if slope is None else g.op("Add", own, g.op("Mul", reach, slope))
    grown = g.op("Mul", carried, UP)
    if is_source:
        return y, grown
    ends = [_piece(g, stage, g.op(side, picked, reach)) for side in ("Sub", "Add")]
    certain = g.op("Or", g.op("Equal", *ends), g.op("Not", g.op("Greater", came, 0.0)))
    return y, g.op("Where", certain, grown, np.inf)


def _piece(g: GraphBuilder, stage: Piecewise, x: str) -> str:
    """The number of the piece that each number lies in, int64; 0 for NaN."""
    n_bits = max(max(len(pieces.edges) for pieces in stage.pieces).bit_length(), 1)
    size = (1 << n_bits) - 1
    below = np.full((len(stage.pieces), size), np.inf)  # x >= edge is x > the number below it
    for row, pieces in zip(below, stage.pieces, strict=True):
        row[: len(pieces.edges)] = np.nextafter(pieces.edges, -np.inf)
    edges, first = g.doubles(below.ravel()), np.arange(len(stage.pieces), dtype=np.int64) * size
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


def _bent(stage: Piecewise, most: FloatArray) -> list[FloatArray]:
    found = np.zeros(stage.n_outputs)
    for k, (j, pieces) in enumerate(zip(stage.source, stage.pieces, strict=True)):
        low, high = np.append(-most[j], pieces.edges), np.append(pieces.edges, most[j])
        t = np.maximum(np.abs(low - pieces.origins), np.abs(high - pieces.origins))
        terms = np.abs(pieces.coefs) * t[:, np.newaxis] ** np.arange(stage.degree + 1)
        found[k] = np.where(pieces.coefs == 0, 0.0, terms).sum(axis=1).max()
    return [found]


def _pieces(stage: Piecewise) -> dict[str, npt.NDArray[Any]]:
    ends = np.cumsum([len(pieces.edges) for pieces in stage.pieces])
    parts = {part: [getattr(pieces, part).ravel() for pieces in stage.pieces] for part in ("edges", "origins", "coefs")}
    numbers = {part: np.concatenate([np.zeros(0), *some]) for part, some in parts.items()}
    return {"source": smallest(stage.source), "ends": smallest(np.append(0, ends)), **numbers}


def _kept(stage: Piecewise) -> npt.NDArray[np.bool_]:
    """Features in one piece, x itself."""
    itself = np.eye(1, stage.degree + 1, 1)
    return np.array([np.array_equal(p.coefs, itself) and not p.origins.any() for p in stage.pieces], np.bool_)


def _bending(k: int, stage: Piecewise) -> list[str]:
    m, degree = stage.n_outputs, stage.degree
    return [
        "before = 0.0;",
        f"for (i = 0; i < {m}; ++i) {{",
        f"    const int begin = (int)@ends_{k}@@[i], n = (int)@ends_{k}@@[i + 1] - begin;",
        f"    const double *const coefs = @coefs_{k}@@ + (begin + i) * {degree + 1};",
        f"    const int of = (int)@source_{k}@@[i];",
        f"    const double *const edges = @edges_{k}@@ + begin, *const origins = @origins_{k}@@ + begin + i;",
        f"    y[i] = @bent@@(edges, n, origins, coefs, {degree}, x[of], {IS_SOURCE}, {error_of(k, 'of')}, &before);",
        "}",
        f"for (i = 0; i < {m}; ++i) x[i] = y[i];",
        SUMMED,
    ]


_BENT: Final = """\
/* A polynomial at t, and what its rounding adds to *off. */
static inline double @horner@@(const double c[], int degree, double t, double *off) {
    double y = c[degree], moduli = @modulus@@(y);
    int k;
    for (k = degree - 1; k >= 0; --k) {
        y = y * t + c[k];
        moduli = moduli * @modulus@@(t) + @modulus@@(c[k]);
    }
    *off += (3.0 * (double)degree + 2.0) * 0x1.0001p-53 * moduli + 0x1p-1000;
    return y;
}
/* A piecewise polynomial at x, and what it is off by, added to *off, where x is by `error`. */
static inline double @bent@@(const double edges[], int n, const double origins[], const double coefs[], int degree,
                             double x, int is_source, double error, double *off) {
    const double reach = 2.000001 * error, beyond = is_source ? 0.0 : reach + 0x1p-50 * @modulus@@(x) + 1e-300;
    double y;
    int i = @piece@@(edges, n, x), k;
    if (x != x) return x;
    y = @horner@@(coefs + i * (degree + 1), degree, x - origins[i], off);
    if (error == 0.0) return y;
    if (!(error < 1e300)) { /* nothing is known; infinity makes NaN of errors on the way */
        *off += (double)@float_of@@(0x7F800000u);
        return y;
    }
    for (i = @piece@@(edges, n, x - beyond); i <= @piece@@(edges, n, x + beyond); ++i) {
        const double *const c = coefs + i * (degree + 1);
        const double z = i > 0 && x < edges[i - 1] ? edges[i - 1] : i < n && x > edges[i] ? edges[i] : x;
        const double t = 1.000001 * @modulus@@(z - origins[i]) + reach;
        double slope = 0.0;
        for (k = degree; k > 0; --k) slope = slope * t + (double)k * @modulus@@(c[k]);
        *off += @modulus@@(@horner@@(c, degree, z - origins[i], off) - y) + 1.000001 * reach * slope;
    }
    return y;
}
"""

ON_DEVICE: Final = OnDevice(_bent, _pieces, _bending, lambda _: (PIECE, _BENT), keeps=_kept)
