"""Products of features in exported programs.

On a device a product p x of a partial product p with an error d becomes one with |x| d + e (|p| + d) + u |p x|.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.device_router import smallest
from approxsvm.backends.c99.device_steps import SUMMED, OnDevice
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, TINY, Mapped
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.steps import Monomials


def nodes(g: GraphBuilder, stage: Monomials, x: str, error: str | None, with_errors: bool, is_source: bool) -> Mapped:
    """Factor after factor of all products at once; 1 stands behind the features."""
    with_one = _with_column(g, x, 1.0)
    errors = None if error is None else _with_column(g, error, 0.0)
    last, *others = stage.factors.T[::-1]
    y = g.columns(with_one, last)
    grown = None if errors is None else g.columns(errors, last)
    for factors in others:
        other = g.columns(with_one, factors)
        product = g.op("Mul", y, other)
        if with_errors:
            own = g.op("Add", g.op("Mul", g.op("Abs", product), ROUNDING), TINY)
            if grown is not None and errors is not None:
                came = g.columns(errors, factors)
                both = g.op("Mul", came, g.op("Add", g.op("Abs", y), grown))
                own = g.op("Add", own, g.op("Add", g.op("Mul", g.op("Abs", other), grown), both))
            grown = g.op("Mul", own, UP)
        y = product
    return y, grown


def _with_column(g: GraphBuilder, x: str, number: float) -> str:
    column = g.op("Add", g.op("Mul", g.columns(x, np.array([0])), 0.0), number)
    return str(g.op("Concat", x, column, axis=1))


def _multiplied(stage: Monomials, most: FloatArray) -> list[FloatArray]:
    with_one = np.append(most, 1.0)
    found = [with_one[stage.factors[:, -1]]]
    for factor in stage.factors.T[-2::-1]:
        found.append(found[-1] * with_one[factor])
    return found


def _factors(stage: Monomials) -> dict[str, npt.NDArray[Any]]:
    return {"factors": smallest(stage.factors)}


def _multiplying(k: int, stage: Monomials) -> list[str]:
    m, degree = stage.factors.shape
    return [
        "before = 0.0;",
        f"for (i = 0; i < {m}; ++i) {{",
        "    double product = 1.0, off = 0.0;",
        f"    for (j = {degree} - 1; j >= 0; --j) {{",
        f"        const int of = (int)@factors_{k}@@[i * {degree} + j];",
        f"        if (of < {stage.n_features}) product = @times@@(product, x[of], error, &off);",
        "    }",
        "    y[i] = product;",
        "    before += off;",
        "}",
        f"for (i = 0; i < {m}; ++i) x[i] = y[i];",
        SUMMED,
    ]


_TIMES: Final = """\
/* A product, and what it is off by where its first factor is by *off, and x by `error`. */
static inline double @times@@(double product, double x, double error, double *off) {
    const volatile double own = product * x; /* fused with no sum */
    const double found = own;
    *off = @modulus@@(x) * *off + error * (@modulus@@(product) + *off) + 0x1p-53 * @modulus@@(found) + 0x1p-1000;
    return found;
}
"""

ON_DEVICE: Final = OnDevice(_multiplied, _factors, _multiplying, lambda _: (_TIMES,))
