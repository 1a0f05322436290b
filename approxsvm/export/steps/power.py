"""Power transforms in exported programs.

On a device a power is (exp(p L) - 1) / p, L off by d. exp is within 2^-48, its argument t by |p| d + 2^-51 |t|; that is
less than 0.001 or nothing is known. So it errs by exp(t) (2^-47 + 1.01 (|p| d + 2^-51 |t|)) / |p| and by
2^-50 (1 / |p| + |y|). With |p| < 1e-12 it is L, off by |p| L^2. Its derivative is monotone: e grows by that of an end
of its reach.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from approxsvm.export.c99.device_steps import LOG64, NOT_TAKEN, OnDevice, one_by_one
from approxsvm.export.onnx.graph_builder import UP, GraphBuilder
from approxsvm.export.onnx.rows_graph import ROUNDING, Mapped
from approxsvm.model.kernel_model import FloatArray
from approxsvm.model.steps import Power


def nodes(g: GraphBuilder, stage: Power, x: str, error: str | None, with_errors: bool, is_source: bool) -> Mapped:
    """(t^p - 1) / p by exp and log, which lose the digits of 1 near 0; where a number is not taken, NaN."""
    taken = g.constant(stage.taken)
    powers = np.where(stage.taken, stage.powers, 1.0)
    if stage.method == "yeo-johnson":
        mirrored = g.op("Less", x, 0.0)
        p = g.op("Where", mirrored, 2.0 - powers, powers)
        t = g.op("Add", g.op("Abs", x), 1.0)
    else:
        p, t = g.constant(powers), g.op("Where", g.op("Greater", x, 0.0), x, np.nan)
    logarithm = g.op("Log", t)
    is_log = g.op("Equal", p, 0.0)
    divisor = g.op("Where", is_log, 1.0, p)
    power = g.op("Exp", g.op("Mul", p, logarithm))
    y = g.op("Where", is_log, logarithm, g.op("Div", g.op("Sub", power, 1.0), divisor))
    signed = g.op("Where", mirrored, g.op("Neg", y), y) if stage.method == "yeo-johnson" else y
    mapped = g.op("Where", taken, signed, x)
    if not with_errors:
        return mapped, None
    # t errs by its rounding, log by 8 units, exp by these times its argument and by 8 of its own.
    of_log = g.op("Add", g.op("Mul", g.op("Abs", logarithm), 2 * ROUNDING), ROUNDING)
    of_power = g.op("Mul", power, g.op("Add", g.op("Mul", g.op("Abs", p), of_log), 2 * ROUNDING))
    of_quotient = g.op("Div", g.op("Add", of_power, ROUNDING), g.op("Abs", divisor))
    own = g.op("Add", g.op("Where", is_log, of_log, of_quotient), g.op("Mul", g.op("Abs", y), 2 * ROUNDING))
    if error is not None:
        ends = [_slope(g, stage, powers, g.op(side, x, error)) for side in ("Sub", "Add")]
        slope = g.op("Mul", g.op("Max", *ends), UP)
        own = g.op("Add", own, g.op("Where", g.op("Greater", error, 0.0), g.op("Mul", error, slope), 0.0))
    own = g.op("Mul", own, UP)
    return mapped, g.op("Where", taken, own, 0.0 if error is None else error)


def _slope(g: GraphBuilder, stage: Power, powers: FloatArray, x: str) -> str:
    """The derivative, which is monotone, infinite where there is none."""
    if stage.method == "box-cox":
        slope = g.op("Exp", g.op("Mul", g.op("Log", x), powers - 1.0))
        return str(g.op("Where", g.op("Greater", x, 0.0), slope, np.inf))
    exponent = g.op("Where", g.op("Less", x, 0.0), 1.0 - powers, powers - 1.0)
    return str(g.op("Exp", g.op("Mul", g.op("Log", g.op("Add", g.op("Abs", x), 1.0)), exponent)))


def _powered(stage: Power, most: FloatArray) -> list[FloatArray]:
    """At its arguments' far ends; beyond exp(650) nothing is known, and the value is that of there."""
    p = np.where(stage.taken, stage.powers, 1.0)
    p = np.maximum(np.abs(p), np.abs(2.0 - p)) if stage.method == "yeo-johnson" else np.abs(p)
    farthest = np.minimum(p * (np.log1p(most) if stage.method == "yeo-johnson" else 745.0), 651.0)
    divisor = np.minimum(np.abs(stage.powers), np.abs(2.0 - stage.powers))
    largest = (np.exp(farthest) + 1.0) / np.clip(divisor, 1e-12, 1.0) + 745.0
    return [np.where(stage.taken, largest, most)]


def _taking_powers(k: int, stage: Power) -> list[str]:
    is_shifted = int(stage.method == "yeo-johnson")
    return one_by_one(k, stage.n_features, "powered", f"@power_{k}@@[j]", f"{is_shifted}")


_POWERED: Final = """\
/* Not below s^q, s > 0; infinite beyond exp(650). */
static inline double @power_above@@(double s, double q) {
    const double t = s > 0.0 && s < 1e305 ? q * @log64@@(s) : 1e300;
    return t < 650.0 ? 1.00001 * @exp64@@(t) : (double)@float_of@@(0x7F800000u);
}
/* (x^p - 1) / p; if shifted, that of 1 + x, and below 0 minus that of -x and 2 - p. What it is off by is added to *off,
   infinite where it is not known; NaN, which a row is refused for, where there may be none. */
static inline double @powered@@(double x, double power, int is_shifted, double error, double *off) {
    const int is_mirrored = is_shifted && x < 0.0;
    const double p = is_mirrored ? 2.0 - power : power, s = is_shifted ? 1.0 + @modulus@@(x) : x;
    const double beyond = 1.000001 * error + 0x1p-50 * @modulus@@(x);
    double log, moved, t, found, y, low, high;
    if (x != x) return x;
    if (power > 1e300) {
        *off += error;
        return x;
    }
    if (!(s > 0.0 && s < 1e305 && (is_shifted || x - beyond > 0.0))) {
        *off += (double)@float_of@@(0x7F800000u);
        return (double)@float_of@@(0x7FC00000u);
    }
    log = @log64@@(s);
    moved = 0x1p-47 * (1.0 + @modulus@@(log));
    t = p * log;
    if (@modulus@@(p) < 1e-12) {
        y = log;
        *off += moved + @modulus@@(p) * log * log;
    } else {
        moved = 1.01 * (@modulus@@(p) * moved + 0x1p-50 * @modulus@@(t));
        found = @exp64@@(t < 650.0 ? t : 650.0);
        y = (found - 1.0) / p;
        *off += (found * (0x1p-47 + moved) + 0x1p-50) / @modulus@@(p) + 0x1p-50 * @modulus@@(y);
    }
    if (!(t < 650.0 && moved < 0.001 && @modulus@@(p) < 65536.0)) *off += (double)@float_of@@(0x7F800000u);
    if (!(error == 0.0)) { /* NaN, where nothing is known, stays NaN */
        low = x - beyond;
        high = x + beyond;
        if (is_shifted) {
            low = @power_above@@(1.0 + @modulus@@(low), low < 0.0 ? 1.0 - power : power - 1.0);
            high = @power_above@@(1.0 + @modulus@@(high), high < 0.0 ? 1.0 - power : power - 1.0);
        } else {
            low = @power_above@@(low, power - 1.0);
            high = @power_above@@(high, power - 1.0);
        }
        *off += 1.000001 * error * (low > high ? low : high);
    }
    return is_mirrored ? -y : y;
}
"""

ON_DEVICE: Final = OnDevice(
    _powered,
    lambda stage: {"power": np.where(stage.taken, stage.powers.clip(-1e299, 1e299), NOT_TAKEN)},
    _taking_powers,
    lambda _: (LOG64, _POWERED),
    in_place=True,
    keeps=lambda stage: ~stage.taken,
    refuses=lambda stage: stage.method == "box-cox",
)
