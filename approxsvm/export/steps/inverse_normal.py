"""Quantiles of the normal distribution in exported programs.

On a device the logarithm in the tails is within 2^-48 (1 + |log t|), at most 45 u of it as |log t| > 2.59, and the root
s within 3 units: s errs by less than 30 u s, which is 60 u s^2 / y^2 of y (model/steps/inverse_normal.py), at most
76 u. All other roundings are less than 50 u; 256 u are counted. An error e of p is carried on as there.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from approxsvm.export.c99.device_steps import LOG64, ROOT64, OnDevice, one_by_one
from approxsvm.export.onnx.graph_builder import UP, GraphBuilder
from approxsvm.export.onnx.rows_graph import TINY, Mapped
from approxsvm.model.constants import INVERSE_NORMAL, LEAST_INVERSE_NORMAL
from approxsvm.model.kernel_model import FloatArray
from approxsvm.model.steps import InverseNormal
from approxsvm.model.steps.inverse_normal import MIDDLE, OWN_ERROR, STEEPEST, TAIL


def nodes(
    g: GraphBuilder, stage: InverseNormal, x: str, error: str | None, with_errors: bool, is_source: bool
) -> Mapped:
    """As model/steps/inverse_normal.py, with eight times its error."""
    t = g.op("Min", x, g.op("Sub", np.ones(stage.n_features), x))
    limited = g.op("Max", t, LEAST_INVERSE_NORMAL)
    q = g.op("Sub", np.full(stage.n_features, 0.5), limited)
    middle = g.op("Mul", q, _ratio(g, INVERSE_NORMAL[0], g.op("Sub", MIDDLE**2, g.op("Mul", q, q))))
    tail = _ratio(g, INVERSE_NORMAL[1], g.op("Sub", g.op("Sqrt", g.op("Neg", g.op("Log", limited))), TAIL))
    y = g.op("Where", g.op("Greater", q, MIDDLE), tail, middle)
    mapped = g.op("Where", stage.taken, g.op("Where", g.op("Less", x, 0.5), g.op("Neg", y), y), x)
    if not with_errors:
        return mapped, None
    grown = g.op("Add", g.op("Mul", y, 8.0 * OWN_ERROR), TINY)
    if error is not None:
        gap = g.op("Max", g.op("Sub", t, error), LEAST_INVERSE_NORMAL)
        carried = g.op("Div", error, g.op("Mul", gap, g.op("Max", y, STEEPEST)))
        grown = g.op("Add", grown, g.op("Mul", carried, UP))
    return mapped, g.op("Where", stage.taken, grown, 0.0 if error is None else error)


def _ratio(g: GraphBuilder, coefs: FloatArray, r: str) -> str:
    sums = []
    for numbers in coefs.tolist():
        total = g.op("Add", g.op("Mul", r, numbers[-1]), numbers[-2])
        for number in numbers[-3::-1]:
            total = g.op("Add", g.op("Mul", total, r), number)
        sums.append(total)
    return str(g.op("Div", *sums))


def _quantiles(stage: InverseNormal, most: FloatArray) -> list[FloatArray]:
    return [most + 1.0, np.where(stage.taken, 6.0, most)]


def _inverting(k: int, stage: InverseNormal) -> list[str]:
    return one_by_one(k, stage.n_features, "quantile", f"@taken_{k}@@[j]", f"@ratios_{k}@@")


_QUANTILE: Final = f"""\
static inline double @ratio@@(const double c[], double r) {{
    double above = c[7], below = c[15];
    int k;
    for (k = 6; k >= 0; --k) {{
        above = above * r + c[k];
        below = below * r + c[k + 8];
    }}
    return above / below;
}}
/* The quantile of the normal distribution for p, and what it is off by, added to *off, where p is by `error`. */
static inline double @quantile@@(double p, int is_taken, const double ratios[], double error, double *off) {{
    const double other = 1.0 - p, inner = p < other ? p : other, nearest = (inner - error) * (1.0 - 0x1p-50);
    const double least = {LEAST_INVERSE_NORMAL!r}, t = inner > least ? inner : least;
    const double q = 0.5 - t, gap = nearest > least ? nearest : least;
    double y;
    if (p != p) return p;
    if (!is_taken) {{
        *off += error;
        return p;
    }}
    if (q <= {MIDDLE!r}) {{
        y = q * @ratio@@(ratios, {MIDDLE**2!r} - q * q);
    }} else {{
        y = @ratio@@(ratios + 16, @root64@@(-@log64@@(t)) - {TAIL!r});
    }}
    *off += 1.000001 * error / (gap * (y > {STEEPEST!r} ? y : {STEEPEST!r})) + 0x1p-45 * y;
    return p < 0.5 ? -y : y;
}}
"""

ON_DEVICE: Final = OnDevice(
    _quantiles,
    lambda stage: {"taken": stage.taken.astype(np.uint8), "ratios": INVERSE_NORMAL},
    _inverting,
    lambda _: (LOG64, ROOT64, _QUANTILE),
    in_place=True,
    keeps=lambda stage: ~stage.taken,
)
