"""Waves of logarithms in exported programs.

On a device the logarithm L is within 2^-48 (1 + |L|), the root within 3 units and cos(t) within 2^-46 and 2^-52 (|t| +
8) of its argument t = w L, so that a wave of the size s = a sqrt(x) errs by less than s (2^-44 + 2^-46 |w| (1 + |L|));
the root of what is next to 0 is 0, which is less than 1e-145 off. An error e of x is carried on as in
cpp/include/approxsvm/artifact/stages/waves.hpp. Where the source's number, which rounds as x does, may be below 0, the
row is refused, unless limits have just kept it from that.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.device_router import smallest
from approxsvm.backends.c99.device_steps import IS_SOURCE, NOT_TAKEN, SUMMED, OnDevice, error_of
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, Mapped
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.steps import Waves


def nodes(g: GraphBuilder, stage: Waves, x: str, error: str | None, with_errors: bool, is_source: bool) -> Mapped:
    """Make waves as the core does; NaN of negative numbers."""
    picked, passes = g.columns(x, stage.source), g.constant(stage.passes)
    amplitudes = np.where(stage.passes, 0.0, stage.amplitudes)
    size = g.op("Mul", g.op("Sqrt", picked), amplitudes)
    turn = g.op("Mul", g.op("Log", g.op("Where", g.op("Equal", picked, 0.0), 1.0, picked)), stage.frequencies)
    y = g.op("Mul", size, g.op("Where", stage.sines, g.op("Sin", turn), g.op("Cos", turn)))
    mapped = g.op("Where", passes, picked, y)
    if not with_errors:
        return mapped, None
    path = g.op("Add", g.op("Mul", g.op("Abs", turn), 4 * ROUNDING), 4 * ROUNDING)
    grown = g.op("Add", g.op("Mul", size, path), 2.0**-400)
    if error is None:
        return mapped, g.op("Where", passes, 0.0, grown)
    came = g.columns(error, stage.source)
    nearest = g.op("Sub", picked, came)
    slope = g.op("Div", amplitudes * np.sqrt(0.25 + stage.frequencies**2) * UP, g.op("Sqrt", nearest))
    whole = g.op("Add", size, g.op("Mul", g.op("Sqrt", g.op("Add", picked, came)), amplitudes * UP))
    carried = g.op("Where", g.op("Greater", nearest, 0.0), g.op("Min", g.op("Mul", came, slope), whole), whole)
    carried = g.op("Where", g.op("Greater", came, 0.0), carried, 0.0)
    # Of what may be below 0; what underflow might add, as to features that other steps take, is less.
    carried = g.op("Where", g.op("Less", nearest, -(2.0**-900)), np.inf, carried)
    return mapped, g.op("Where", passes, came, g.op("Mul", g.op("Add", grown, carried), UP))


def _waved(stage: Waves, most: FloatArray) -> list[FloatArray]:
    taken = most[stage.source]
    return [np.where(stage.passes, taken, stage.amplitudes.clip(max=1e300) * np.sqrt(taken))]


def _numbers(stage: Waves) -> dict[str, npt.NDArray[Any]]:
    amplitudes = np.where(stage.passes, NOT_TAKEN, stage.amplitudes.clip(max=1e300))
    numbers = {"amplitudes": amplitudes, "frequencies": stage.frequencies, "sines": stage.sines.astype(np.uint8)}
    return {"source": smallest(stage.source), **numbers}


def _waving(k: int, stage: Waves) -> list[str]:
    m = stage.n_outputs
    return [
        "before = 0.0;",
        f"for (i = 0; i < {m}; ++i) {{",
        f"    const int of = (int)@source_{k}@@[i], is_limited = @limited_{k}@@[of];",
        f"    const double a = @amplitudes_{k}@@[i], w = @frequencies_{k}@@[i];",
        f"    y[i] = @wave@@(x[of], a, w, @sines_{k}@@[i], is_limited | {IS_SOURCE}, {error_of(k, 'of')}, &before);",
        "}",
        f"for (i = 0; i < {m}; ++i) x[i] = y[i];",
        SUMMED,
    ]


_WAVE: Final = """\
/* a sqrt(x) cos(w log(x)), or sin, and what it is off by, added to *off, where x is by `error`; NaN, which a row is
   refused for, where x may be below 0. */
static inline double @wave@@(double x, double a, double w, int is_sine, int is_limited, double error, double *off) {
    const double nearest = x - 2.000001 * error, size = a * approxsvm_root(x);
    const double log = x > 1e-290 && x < 1e300 ? approxsvm_log(x, 0.0) : 0.0;
    double turn = w * log, moved, whole;
    if (a > 1e300) {
        *off += error;
        return x;
    }
    if (!(x >= 0.0 && (error == 0.0 || is_limited || nearest > 0.0))) {
        *off += (double)@float_of@@(0x7F800000u);
        return (double)@float_of@@(0x7FC00000u);
    }
    *off += size * (0x1p-44 + 0x1p-46 * @modulus@@(w) * (1.0 + @modulus@@(log))) + 1e-144 * a;
    if (!(@modulus@@(turn) < 0x1p40)) {
        turn = 0.0;
        *off += (double)@float_of@@(0x7F800000u);
    }
    if (!(error == 0.0)) {
        moved = 1e301;
        if (nearest > 1e-280) moved = 1.000001 * a * error * approxsvm_root(0.25 + w * w) / approxsvm_root(nearest);
        whole = 1.000001 * (size + a * approxsvm_root(x + error)) + 1e-144 * a;
        *off += moved < whole ? moved : whole;
    }
    return size * @cos@@(is_sine ? turn - 1.5707963267948966 : turn);
}
"""

ON_DEVICE: Final = OnDevice(
    _waved,
    _numbers,
    _waving,
    lambda _: (_WAVE,),
    refuses=lambda _: True,
    keeps=lambda stage: stage.passes,
    program="functions.h",
)
