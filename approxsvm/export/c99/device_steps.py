"""The steps of an input map on a device: a record for each kind, with the error of the row that it leaves.

Where anything but scaling is done the whole row is mapped, in float64, and a bound e of the Euclidean distance to the
source's row over the real numbers is carried along, u = 2^-53:

* a scaler with the factors m_j, y = (x - s) m / d, then y + a, makes of e at most

      max |m_j / d_j| e + (4 u + rho) |y|_1 + rho max |m_j / d_j| e + u |y + a|_1 + underflow,

  rho being the largest relative_error; limits, which come last, bring no two rows further apart;
* a projection of n features, y = (x - c) M + b, makes of it at most

      ||M||_F e + 1.01 (n + 3) u ||M||_F |x - c|_1 + ||bias_error|| + 2 u (||b|| + |y|_1) + underflow;

* a product p x of a partial product p with an error d becomes one with |x| d + e (|p| + d) + u |p x|, as no feature is
  off by more than e; a sum of what products are off by is no less than their distance;
* a piecewise polynomial of degree k, by Horner's rule in t = x - origin, rounds by (3 k + 2) u of the sum of its terms'
  moduli. Over an error e of x it moves to another piece at most where one begins within e of x; there it is compared
  with y at the point next to x, which all others that are meant are within 2 e of, and moves by 2 e times the steepest
  slope of the piece, sum i |c_i| (|t| + 2 e)^(i - 1). Pieces that are reached are added up. A first step has e = 0;
* a vector of n features and of the norm N, which is off by E <= g e + (n + 6) u N, g = sqrt(n) for l1 and 1 for other
  norms, becomes one that is off by (e + E |x|_1 / N) / (N - E) + u |x|_1 / N. Where N may be on either side of the
  least norm that is divided by, nothing is known;
* a logarithm L of s is within 2^-48 (1 + |L|), and 2^-53 for the rounding of s; an error e of s makes e / (s - e);
* a power (exp(p L) - 1) / p, L off by d: exp is within 2^-48, its argument t by |p| d + 2^-51 |t|, which is less than
  0.001 or nothing is known, so that it errs by exp(t) (2^-47 + 1.01 (|p| d + 2^-51 |t|)) / |p| + 2^-50 (1 / |p| + |y|).
  With |p| < 1e-12 it is L, off by |p| L^2. Its derivative is monotone: e grows by that of an end of its reach;

as in model/steps, where each is derived feature by feature; sums of moduli, which need no root, are no less than norms.

Where a logarithm, or a power that is not shifted, may have no value within e, x becomes NaN, which later steps keep and
every function refuses: such a row has no label, whatever bound all values have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm.errors import UnsupportedModelError
from approxsvm.export.c99.device_router import smallest
from approxsvm.model.constants import UNIT64
from approxsvm.model.kernel_model import FloatArray
from approxsvm.model.steps import Affine, Logarithm, Monomials, Normalizer, Piecewise, Power, Projection, Step
from approxsvm.model.steps.normalizer import LEAST_NORM

Arrays = Iterator[tuple[str, npt.NDArray[Any]]]

# Numbers on the way through an input map must stay below this for every float32 row.
_MOST_ON_THE_WAY: Final = 1e300
_UP: Final = 1.0 + 2.0**-30
_UNDERFLOW: Final = 2.0**-500


class _OnDevice(NamedTuple):
    """A kind of step.

    Attributes
    ----------
    on_the_way : function of (stage, most)
        The largest moduli after each of its operations, of features up to `most`, limits aside; the last are what it
        leaves.
    arrays : function of (stage,)
        What it works with; names get its number.
    lines : function of (k, stage)
        Statements that change x and `error`.
    functions : function of (stage,)
        The texts of what these call, each of which a header has once.
    in_place : bool
        Or else they need room for y.
    """

    on_the_way: Callable[[Any, FloatArray], list[FloatArray]]
    arrays: Callable[[Any], dict[str, npt.NDArray[Any]]]
    lines: Callable[[int, Any], list[str]]
    functions: Callable[[Any], tuple[str, ...]]
    in_place: bool = False


def largest_after(stage: Step, most: FloatArray) -> FloatArray:
    """The largest moduli that a stage leaves of features up to `most`.

    Raises
    ------
    UnsupportedModelError
        It is of a kind that devices have not, or a float32 row may leave float64 on its way.
    """
    if type(stage) not in _BY_KIND:
        raise UnsupportedModelError(
            f"the C export has no {stage.on_device}: apply that step on the device, and compile and export what "
            "follows it"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        on_the_way = _BY_KIND[type(stage)].on_the_way(stage, most)
    largest = max(float(numbers.max(initial=0.0)) for numbers in on_the_way)
    if not largest < _MOST_ON_THE_WAY:
        raise UnsupportedModelError(f"mapping a float32 row may give {largest:.3g}, but the C export allows 1e300")
    return on_the_way[-1]


def step_arrays(k: int, stage: Step) -> Arrays:
    """The numbers of stage k."""
    yield from ((f"{part}_{k}_", numbers) for part, numbers in _BY_KIND[type(stage)].arrays(stage).items())


def step_functions(stages: Sequence[Step]) -> str:
    """What the statements of all stages call."""
    return "".join(dict.fromkeys(text for stage in stages for text in _BY_KIND[type(stage)].functions(stage)))


def step_lines(k: int, stage: Step) -> list[str]:
    """Statements of stage k."""
    return _BY_KIND[type(stage)].lines(k, stage)


def has_domain(stage: Step) -> bool:
    """Whether some numbers have no value."""
    return isinstance(stage, Logarithm) or (isinstance(stage, Power) and stage.method == "box-cox")


def room_for(stages: Sequence[Step]) -> int:
    """How many numbers come out of a step beside those that go in, at most."""
    return max((stage.n_outputs for stage in stages if not _BY_KIND[type(stage)].in_place), default=0)


# --- scalers


def affine_arrays(stage: Affine) -> dict[str, npt.NDArray[Any]]:
    """The numbers that a stage works with, in the order of its operations; limits that are infinite never act."""
    found = {}
    largest = np.finfo(np.float64).max
    for name in ("subtract", "multiply", "divide", "add", "low", "high"):
        numbers = getattr(stage, name)
        if numbers is not None and not (name in ("low", "high") and np.isinf(numbers).all()):
            found[name] = numbers.clip(-largest, largest)
    return found


def operations(k: int, parts: Sequence[str], x: str) -> list[str]:
    """Statements that change the number x, feature j of stage k."""
    lines = []
    for part in parts:
        number = f"@{part}_{k}@@[j]"
        compare = {"low": "<", "high": ">"}.get(part)
        operator = {"subtract": "-=", "multiply": "*=", "divide": "/=", "add": "+="}.get(part)
        change = f"= {x} {compare} {number} ? {number} : {x};" if compare else f"{operator} {number};"
        lines.append(f"{x} {change}")
    return lines


def _scaled(stage: Affine, most: FloatArray) -> list[FloatArray]:
    found = [most]
    for name, combine in (("subtract", np.add), ("multiply", np.multiply), ("divide", np.divide), ("add", np.add)):
        values = getattr(stage, name)
        if values is not None:
            found.append(combine(found[-1], np.abs(values)))
    return found


def _scaling(k: int, stage: Affine) -> list[str]:
    parts = list(affine_arrays(stage))
    limits = [part for part in parts if part in ("low", "high")]
    first = [part for part in parts if part not in ("add", *limits)]
    steps = [
        *operations(k, first, "x[j]"),
        "before += @modulus@@(x[j]);",
        *operations(k, [part for part in parts if part == "add"], "x[j]"),
        "after += @modulus@@(x[j]);",
        *operations(k, limits, "x[j]"),
    ]
    ones = np.ones(stage.n_features)
    divide = ones if stage.divide is None else np.abs(stage.divide)
    with np.errstate(over="ignore"):
        gain = float(((ones if stage.multiply is None else np.abs(stage.multiply)) / divide).max(initial=0.0))
        lost = _UNDERFLOW * (1.0 + float((1.0 / divide).max(initial=0.0)))
    relative = 0.0 if stage.relative_error is None else float(stage.relative_error.max(initial=0.0))
    return [
        "before = after = 0.0;",
        f"for (j = 0; j < {stage.n_features}; ++j) {{",
        *(f"    {step}" for step in steps),
        "}",
        _carried(gain * (1.0 + relative), 4.0 * UNIT64 + relative, UNIT64, lost),
    ]


def _carried(gain: float, of_before: float, of_after: float, fixed: float) -> str:
    """What becomes of an error, gain e + of_before |before|_1 + of_after |after|_1 + fixed; numbers rounded up."""
    numbers = [number * _UP + 2.0**-1000 for number in (gain, of_before, of_after, fixed)]
    if not all(number < _MOST_ON_THE_WAY for number in numbers):
        raise UnsupportedModelError("the errors of a step in front of the model are beyond float64 in the C export")
    return f"error = @next_error@@(error, before, after, {', '.join(map(repr, numbers))});"


_NEXT_ERROR: Final = """\
/* What a step makes of an error, from the sums of moduli before and after its last addition. */
static inline double @next_error@@(double error, double before, double after, double gain, double of_before,
                                   double of_after, double fixed) {
    return 1.000000001 * (gain * error + of_before * before + of_after * after + fixed);
}
"""


# --- projections


def _projected(stage: Projection, most: FloatArray) -> list[FloatArray]:
    centered = most + np.abs(stage.center)
    return [centered, centered @ np.abs(stage.matrix) + np.abs(stage.bias)]


def _projection_arrays(stage: Projection) -> dict[str, npt.NDArray[Any]]:
    return {"center": stage.center, "bias": stage.bias, "matrix": np.ascontiguousarray(stage.matrix.T)}


def _projecting(k: int, stage: Projection) -> list[str]:
    frobenius = _norm(stage.matrix)
    path = 1.01 * (stage.n_features + 3) * UNIT64
    fixed = _norm(stage.bias_error) + 2.0 * UNIT64 * _norm(stage.bias) + _UNDERFLOW
    carried = _carried(frobenius, path * frobenius, 2.0 * UNIT64, fixed)
    return [*_PROJECTED.format(k=k, n=stage.n_features, m=stage.n_outputs).splitlines(), carried]


def _norm(numbers: FloatArray) -> float:
    largest = float(np.abs(numbers).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(numbers / largest)) * (1.0 + 1e-9)


_PROJECTED: Final = """\
before = after = 0.0;
for (j = 0; j < {n}; ++j) {{
    x[j] -= @center_{k}@@[j];
    before += @modulus@@(x[j]);
}}
for (i = 0; i < {m}; ++i) {{
    double sum = @bias_{k}@@[i];
    for (j = 0; j < {n}; ++j) sum += x[j] * @matrix_{k}@@[i * {n} + j];
    y[i] = sum;
    after += @modulus@@(sum);
}}
for (i = 0; i < {m}; ++i) x[i] = y[i];"""


# --- products


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
        _SUMMED,
    ]


_SUMMED: Final = f"error = 1.000000001 * before + {_UNDERFLOW!r};"
_TIMES: Final = """\
/* A product, and what it is off by where its first factor is by *off, and x by `error`. */
static inline double @times@@(double product, double x, double error, double *off) {
    const double found = product * x;
    *off = @modulus@@(x) * *off + error * (@modulus@@(product) + *off) + 0x1p-53 * @modulus@@(found) + 0x1p-1000;
    return found;
}
"""


# --- piecewise polynomials


def _bent(stage: Piecewise, most: FloatArray) -> list[FloatArray]:
    found = np.zeros(stage.n_outputs)
    for k, (j, pieces) in enumerate(zip(stage.source, stage.pieces, strict=True)):
        low, high = np.append(-most[j], pieces.edges), np.append(pieces.edges, most[j])
        t = np.maximum(np.abs(low - pieces.origins), np.abs(high - pieces.origins))
        found[k] = (np.abs(pieces.coefs) * t[:, np.newaxis] ** np.arange(stage.degree + 1)).sum(axis=1).max()
    return [found]


def _pieces(stage: Piecewise) -> dict[str, npt.NDArray[Any]]:
    ends = np.cumsum([len(pieces.edges) for pieces in stage.pieces])
    parts = {part: [getattr(pieces, part).ravel() for pieces in stage.pieces] for part in ("edges", "origins", "coefs")}
    numbers = {part: np.concatenate([np.zeros(0), *some]) for part, some in parts.items()}
    return {"source": smallest(stage.source), "ends": smallest(np.append(0, ends)), **numbers}


def _bending(k: int, stage: Piecewise) -> list[str]:
    m, degree = stage.n_outputs, stage.degree
    return [
        "before = 0.0;",
        f"for (i = 0; i < {m}; ++i) {{",
        f"    const int begin = (int)@ends_{k}@@[i], n = (int)@ends_{k}@@[i + 1] - begin;",
        f"    const double *const coefs = @coefs_{k}@@ + (begin + i) * {degree + 1}, of = x[(int)@source_{k}@@[i]];",
        f"    const double *const edges = @edges_{k}@@ + begin, *const origins = @origins_{k}@@ + begin + i;",
        f"    y[i] = @bent@@(edges, n, origins, coefs, {degree}, of, error, &before);",
        "}",
        f"for (i = 0; i < {m}; ++i) x[i] = y[i];",
        _SUMMED,
    ]


_BENT: Final = """\
/* Which of n + 1 pieces x lies in. */
static inline int @piece@@(const double edges[], int n, double x) {
    int low = 0;
    while (n > 0) {
        const int half = n / 2;
        if (edges[low + half] <= x) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}
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
                             double x, double error, double *off) {
    const int own = @piece@@(edges, n, x);
    const double y = @horner@@(coefs + own * (degree + 1), degree, x - origins[own], off);
    const double reach = 2.000001 * error, beyond = 1.000001 * error + 0x1p-50 * @modulus@@(x) + 1e-300;
    int i, k;
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

# --- norms of rows


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
        gain = math.sqrt(n) * _UP if stage.norm == "l1" else 1.0
        lines.append(f"after += @normalize_{stage.norm}@@(x + {features[0]}, {n}, error, {gain!r} * error);")
    return [*lines, f"error = 1.000000001 * after + {_UNDERFLOW!r};"]


def _normalizer(stage: Normalizer) -> tuple[str, ...]:
    add = {
        "l1": "norm += modulus;",
        "l2": "norm += modulus * modulus;",
        "max": "norm = modulus > norm ? modulus : norm;",
    }
    root = "    norm = @root64@@(norm);\n" if stage.norm == "l2" else ""
    text = _NORMALIZE.format(norm=stage.norm, add=add[stage.norm], root=root, least=LEAST_NORM)
    return (_ROOT64, text) if stage.norm == "l2" else (text,)


# Five steps of Newton's method, from a number that is within a tenth.
_ROOT64: Final = """\
/* The root of x >= 0 within 3 units, 0 of what is next to it; infinity and NaN stay what they are. */
static inline double @root64@@(double x) {
    double scale = 1.0, root;
    int k;
    if (!(x > 1e-290 && x < 1e305)) return x > 1.0 || x != x ? x : 0.0;
    for (; x > 0x1p64; x *= 0x1p-64) scale *= 0x1p32;
    for (; x < 0x1p-64; x *= 0x1p64) scale *= 0x1p-32;
    root = (double)@float_of@@((@bits_of@@((float)x) >> 1) + 0x1FC00000u);
    for (k = 0; k < 5; ++k) root = 0.5 * (root + x / root);
    return scale * root;
}
"""
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

# --- logarithms and powers

# In place of infinity, for features that stay as they are.
_NOT_TAKEN: Final = 1e301


def _logarithmic(stage: Logarithm, most: FloatArray) -> list[FloatArray]:
    """A logarithm of a float64 is at most 745 in modulus."""
    shifted = most + np.abs(np.where(stage.taken, stage.offset, 0.0))
    return [shifted, np.where(stage.taken, 745.0, most)]


def _taking_logarithms(k: int, stage: Logarithm) -> list[str]:
    return _one_by_one(f"@logarithm@@(x[j], @offset_{k}@@[j], error, &after)", stage.n_features)


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
    return _one_by_one(f"@powered@@(x[j], @power_{k}@@[j], {is_shifted}, error, &after)", stage.n_features)


def _one_by_one(call: str, n: int) -> list[str]:
    return [
        "after = 0.0;",
        f"for (j = 0; j < {n}; ++j) x[j] = {call};",
        f"error = 1.000000001 * after + {_UNDERFLOW!r};",
    ]


_LOG64: Final = """\
/* log(x), 0 < x < 1e305, within 2^-48 (1 + |log(x)|): x = m 2^n, log(m) by the series of (m - 1) / (m + 1). */
static inline double @log64@@(double x) {
    double n = 0.0, s, sum = 0.0;
    int e, k;
    for (; x > 0x1p100; x *= 0x1p-100) n += 100.0;
    for (; x < 0x1p-100; x *= 0x1p100) n -= 100.0;
    e = (int)(@bits_of@@((float)x) >> 23) - 127;
    x *= @double_of@@((uint64_t)(1023 - e) << 52);
    n += (double)e;
    if (x > 1.4142135623730951) {
        x *= 0.5;
        n += 1.0;
    }
    s = (x - 1.0) / (x + 1.0);
    for (k = 27; k > 0; k -= 2) sum = sum * (s * s) + 1.0 / (double)k;
    return n * 0.6931471805599453 + 2.0 * s * sum;
}
"""
_LOGARITHM: Final = """\
/* log(x + offset), and what it is off by, added to *off; NaN, which a row is refused for, where there may be none. */
static inline double @logarithm@@(double x, double offset, double error, double *off) {
    const double sum = x + offset, nearest = sum * (1.0 - 0x1p-50) - error;
    double log;
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

_BY_KIND: Final[dict[type[Step], _OnDevice]] = {
    Affine: _OnDevice(_scaled, affine_arrays, _scaling, lambda _: (_NEXT_ERROR,), in_place=True),
    Projection: _OnDevice(_projected, _projection_arrays, _projecting, lambda _: (_NEXT_ERROR,)),
    Monomials: _OnDevice(_multiplied, _factors, _multiplying, lambda _: (_TIMES,)),
    Piecewise: _OnDevice(_bent, _pieces, _bending, lambda _: (_BENT,)),
    Logarithm: _OnDevice(
        _logarithmic,
        lambda stage: {"offset": np.where(stage.taken, stage.offset, _NOT_TAKEN)},
        _taking_logarithms,
        lambda _: (_LOG64, _LOGARITHM),
        in_place=True,
    ),
    Power: _OnDevice(
        _powered,
        lambda stage: {"power": np.where(stage.taken, stage.powers.clip(-1e299, 1e299), _NOT_TAKEN)},
        _taking_powers,
        lambda _: (_LOG64, _POWERED),
        in_place=True,
    ),
    Normalizer: _OnDevice(_normalized, lambda _: {}, _normalizing, _normalizer, in_place=True),
}
