"""Logarithms in exported programs.

On a device a logarithm L of s is within 2^-48 (1 + |L|), and 2^-53 for the rounding of s; an error e of s makes
e / (s - e).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from approxsvm.export.c99.device_steps import LOG64, NOT_TAKEN, OnDevice, one_by_one
from approxsvm.export.onnx.graph_builder import UP, GraphBuilder
from approxsvm.export.onnx.rows_graph import ROUNDING, TINY, Mapped, added
from approxsvm.model.kernel_model import FloatArray
from approxsvm.model.steps import Logarithm


def nodes(g: GraphBuilder, stage: Logarithm, x: str, error: str | None, with_errors: bool, is_source: bool) -> Mapped:
    """Logarithms; NaN, with an error of NaN, outside the domain."""
    taken = g.constant(stage.taken)
    offset = np.where(stage.taken, stage.offset, 0.0)
    shifted = g.op("Add", x, offset)
    logarithm = g.op("Where", g.op("Greater", x, -offset), g.op("Log", shifted), np.nan)
    mapped = g.op("Where", taken, logarithm, x)
    if not with_errors:
        return mapped, None
    # x + offset is rounded; around t an error e becomes e / (t - e) at most.
    off = added(g, error, g.op("Mul", g.op("Abs", shifted), ROUNDING))
    nearest = g.op("Sub", g.op("Mul", shifted, 1.0 - 2.0**-48), off)
    carried = g.op("Where", g.op("Greater", nearest, 0.0), g.op("Div", off, nearest), np.inf)
    own = g.op("Add", g.op("Mul", g.op("Abs", logarithm), 2 * ROUNDING), TINY)
    of_logarithm = g.op("Mul", g.op("Add", carried, own), UP)
    return mapped, g.op("Where", taken, of_logarithm, 0.0 if error is None else error)


def _logarithmic(stage: Logarithm, most: FloatArray) -> list[FloatArray]:
    """A logarithm of a float64 is at most 745 in modulus."""
    shifted = most + np.abs(np.where(stage.taken, stage.offset, 0.0))
    return [shifted, np.where(stage.taken, 745.0, most)]


def _taking_logarithms(k: int, stage: Logarithm) -> list[str]:
    return one_by_one(k, stage.n_features, "logarithm", f"@offset_{k}@@[j]")


_LOGARITHM: Final = """\
/* log(x + offset), and what it is off by, added to *off; NaN, which a row is refused for, where there may be none. */
static inline double @logarithm@@(double x, double offset, double error, double *off) {
    const double sum = x + offset, nearest = sum * (1.0 - 0x1p-50) - error;
    double log;
    if (x != x) return x;
    if (offset > 1e300) {
        *off += error;
        return x;
    }
    if (!(nearest > 0.0 && sum < 1e305)) {
        *off += (double)@float_of@@(0x7F800000u);
        return (double)@float_of@@(0x7FC00000u);
    }
    log = @log64@@(sum);
    *off += 1.000001 * (error / nearest) + 0x1p-47 * (1.0 + @modulus@@(log));
    return log;
}
"""

ON_DEVICE: Final = OnDevice(
    _logarithmic,
    lambda stage: {"offset": np.where(stage.taken, stage.offset, NOT_TAKEN)},
    _taking_logarithms,
    lambda _: (LOG64, _LOGARITHM),
    in_place=True,
    keeps=lambda stage: ~stage.taken,
    refuses=lambda _: True,
)
