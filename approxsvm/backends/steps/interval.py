"""Splines that repeat, or end, in exported programs.

On a device full turns are taken off without rounding, by lengths times powers of two. What x - low loses is known
exactly, so that a first step has no error but that of low + rest. Of an x that is not the source's own nothing is known
where the reach of 2 e meets a full turn, and beyond an end in reach a row is refused.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.device_steps import IS_SOURCE, NOT_TAKEN, OnDevice, error_of, one_by_one
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, Mapped
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.steps import Interval


def nodes(g: GraphBuilder, stage: Interval, x: str, error: str | None, with_errors: bool, is_source: bool) -> Mapped:
    """What is refused is NaN; next to a full turn nothing is proven, unless it is the source's own number."""
    taken, low = stage.second < np.inf, stage.low
    second = np.where(taken, stage.second, 1.0)
    if stage.rule == "refuses":
        inside = g.op("And", g.op("Not", g.op("Less", x, low)), g.op("Not", g.op("Greater", x, second)))
        return str(g.op("Where", g.op("Or", inside, ~taken), x, np.nan)), error
    from_low = g.op("Sub", x, low)
    rest = g.op("Mod", from_low, second, fmod=1)
    rest = g.op("Where", g.op("Less", rest, 0.0), g.op("Add", rest, second), rest)
    y = g.op("Where", taken, g.op("Add", rest, low), x)
    if not with_errors:
        return y, None
    own = g.op("Add", g.op("Mul", g.op("Abs", from_low), ROUNDING), ROUNDING * second)
    off = own if error is None else g.op("Mul", g.op("Add", error, own), UP)
    moved = g.op("Add", off, g.op("Mul", g.op("Abs", y), ROUNDING))
    if not is_source:
        known = g.op("And", g.op("Greater", rest, off), g.op("Greater", g.op("Sub", second, rest), off))
        moved = g.op("Where", known, moved, np.inf)
    return y, g.op("Where", taken, moved, 0.0 if error is None else error)


def _within(stage: Interval, most: FloatArray) -> list[FloatArray]:
    taken = stage.second < np.inf
    if stage.rule == "refuses":
        return [most]
    moved = most + np.abs(stage.low)
    return [np.where(taken, moved, 0.0), np.where(taken, np.abs(stage.low) + stage.second, most)]


def _ends(stage: Interval) -> dict[str, npt.NDArray[Any]]:
    return {"low": stage.low, "second": np.where(stage.second < np.inf, stage.second.clip(max=1e300), NOT_TAKEN)}


def _turning(k: int, stage: Interval) -> list[str]:
    numbers = f"@low_{k}@@[j]", f"@second_{k}@@[j]", IS_SOURCE
    if stage.rule == "turns":
        return one_by_one(k, stage.n_features, "turned", *numbers)
    call = ", ".join(["x[j]", *numbers, error_of(k, "j")])
    return [f"for (j = 0; j < {stage.n_features}; ++j) x[j] = @ended@@({call});"]


_TURNED: Final = """\
/* x moved by whole turns to low or less than length above it; what it is off by is added to *off, infinite where it may
   be on either side of a turn. */
static inline double @turned@@(double x, double low, double length, int is_source, double error,
                               double *off) {
    const double from_low = x - low, back = from_low - x, lost = @modulus@@((x - (from_low - back)) + (-low - back));
    const double doubt = 2.000001 * error + 2.0 * lost;
    double rest = @modulus@@(from_low), turn = length;
    if (!(rest < 1e300)) return (double)@float_of@@(0x7FC00000u);
    if (length > 1e300) {
        *off += error;
        return x;
    }
    while (turn <= 0.5 * rest) turn *= 2.0;
    for (; turn >= length; turn *= 0.5) rest -= rest >= turn ? turn : 0.0;
    if (from_low < 0.0 && rest > 0.0) rest = length - rest;
    is_source |= doubt == 0.0 || (rest > doubt && length - rest > doubt);
    *off += is_source ? 0.0 : (double)@float_of@@(0x7F800000u);
    *off += doubt + 0x1p-51 * (length + @modulus@@(low));
    return low + rest;
}
"""
_ENDED: Final = """\
/* x, or NaN, which a row is refused for, where it may be beyond an end. */
static inline double @ended@@(double x, double low, double high, int is_source, double error) {
    const double beyond = is_source || error == 0.0 ? 0.0 : 2.000001 * error + 0x1p-50 * @modulus@@(x) + 1e-300;
    return high > 1e300 || (x - beyond >= low && x + beyond <= high) ? x : (double)@float_of@@(0x7FC00000u);
}
"""

ON_DEVICE: Final = OnDevice(
    _within,
    _ends,
    _turning,
    lambda stage: (_TURNED if stage.rule == "turns" else _ENDED,),
    in_place=True,
    refuses=lambda stage: stage.rule == "refuses",
    keeps=lambda stage: (stage.second == np.inf) | (stage.rule == "refuses"),
)
