"""Raw rows -> rows as the kernel sees them, in a graph, with what float64 may have done to them.

The operations of an input map stand in the graph one after the other as they do in model/input_map.py, which derives
the errors: with u = 2^-53 every operation errs by at most u times its result, errors grow by |multiply / divide| and by
the moduli of a projection's matrix, and limits do not let them grow. The errors here are a few times as large, so that
no order of summation and no fused operation exceeds them, and no logarithm that is within 8 units. A number that leaves
float64 or has no logarithm has an infinite or undefined error, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from approxsvm.errors import UnsupportedModelError
from approxsvm.export.onnx.graph_builder import UP, GraphBuilder
from approxsvm.model.constants import INVERSE_NORMAL, LEAST_INVERSE_NORMAL
from approxsvm.model.input_map import InputMap
from approxsvm.model.kernel_model import FloatArray
from approxsvm.model.steps import (
    Affine,
    Interval,
    InverseNormal,
    Logarithm,
    Monomials,
    Normalizer,
    Piecewise,
    Power,
    Projection,
    Table,
    Waves,
)
from approxsvm.model.steps.inverse_normal import MIDDLE, OWN_ERROR, STEEPEST, TAIL
from approxsvm.model.steps.normalizer import LEAST_NORM

# Eight times the unit roundoff, for each operation.
_ROUNDING: Final = 2.0**-50
# Of one output of a table, each of which is two nodes.
_MOST_PIECES: Final = 256
# What underflow adds, even where a runtime takes denormal numbers for 0.
_TINY: Final = 2.0**-1000

Mapped = tuple[str, str | None]  # numbers, and how far each may be off


@dataclass(frozen=True)
class GraphRows:
    """Names of mapped rows."""

    values: str  # shape (n_rows, n_features), float64
    # Shape (n_rows, 1): how far, in Euclidean distance, each may be from what is meant. None where they are that.
    error: str | None = None


def map_rows(
    g: GraphBuilder,
    raw: str,  # shape (n_rows, n_raw_features), float64
    input_map: InputMap | None,
    *,
    with_errors: bool,  # whether anybody asks how far rows are off
) -> GraphRows:
    """Replay an input map."""
    if input_map is None:
        return GraphRows(raw)
    x, error = raw, None
    if not np.array_equal(input_map.columns, np.arange(input_map.n_raw_features)):
        x = g.columns(raw, input_map.columns)
    for stage in input_map.stages:
        if type(stage) not in _RUN:
            raise UnsupportedModelError(f"the ONNX export has no step of kind {stage.kind}")
        x, error = _RUN[type(stage)](g, stage, x, error, with_errors)
    if error is None:
        return GraphRows(x)
    distance = g.op("Sqrt", g.rows_sum(g.op("Mul", error, error), keepdims=True))
    # Squares of errors that are too small for float64 are as nothing beside this.
    return GraphRows(x, g.op("Add", g.op("Mul", distance, UP), input_map.n_features * 2.0**-500))


def _sum(g: GraphBuilder, first: str | None, second: str) -> str:
    return second if first is None else g.op("Add", first, second)


def _affine(g: GraphBuilder, stage: Affine, x: str, error: str | None, with_errors: bool) -> Mapped:
    gain = np.ones(stage.n_features)
    n_operations = 0
    for name, operation in (("subtract", "Sub"), ("multiply", "Mul"), ("divide", "Div")):
        numbers = getattr(stage, name)
        if numbers is not None:
            x = g.op(operation, x, numbers)
            if name == "multiply":
                gain = gain * np.abs(numbers)
            elif name == "divide":
                gain = gain / np.abs(numbers)
            n_operations += 1
    if with_errors:
        error = _affine_error(g, stage, x, error, gain, n_operations)
    if stage.add is not None:
        x = g.op("Add", x, stage.add)
        if error is not None:
            error = g.op("Add", error, g.op("Mul", g.op("Abs", x), _ROUNDING))
    for limits, operation in ((stage.low, "Max"), (stage.high, "Min")):
        x = x if limits is None else g.op(operation, x, limits)
    return x, error


def _affine_error(
    g: GraphBuilder, stage: Affine, x: str, error: str | None, gain: FloatArray, n_operations: int
) -> str:
    """Of what is scaled, before anything is added."""
    with np.errstate(over="ignore", divide="ignore"):
        tiny = _TINY * (1.0 + (0.0 if stage.divide is None else 1.0 / np.abs(stage.divide)))
    own: Any = g.op("Add", g.op("Mul", g.op("Abs", x), n_operations * _ROUNDING), np.broadcast_to(tiny, gain.shape))
    error = own if error is None else g.op("Add", g.op("Mul", error, gain * UP + _TINY), own)
    if stage.relative_error is None:
        return error
    of_parameters = g.op("Mul", g.op("Add", g.op("Abs", x), error), stage.relative_error)
    return g.op("Mul", g.op("Add", error, of_parameters), UP)


def _logarithm(g: GraphBuilder, stage: Logarithm, x: str, error: str | None, with_errors: bool) -> Mapped:
    """Logarithms; NaN, with an error of NaN, outside the domain."""
    taken = g.constant(stage.taken)
    offset = np.where(stage.taken, stage.offset, 0.0)
    shifted = g.op("Add", x, offset)
    logarithm = g.op("Where", g.op("Greater", x, -offset), g.op("Log", shifted), np.nan)
    mapped = g.op("Where", taken, logarithm, x)
    if not with_errors:
        return mapped, None
    # x + offset is rounded; around t an error e becomes e / (t - e) at most.
    off = _sum(g, error, g.op("Mul", g.op("Abs", shifted), _ROUNDING))
    nearest = g.op("Sub", g.op("Mul", shifted, 1.0 - 2.0**-48), off)
    carried = g.op("Where", g.op("Greater", nearest, 0.0), g.op("Div", off, nearest), np.inf)
    own = g.op("Add", g.op("Mul", g.op("Abs", logarithm), 2 * _ROUNDING), _TINY)
    of_logarithm = g.op("Mul", g.op("Add", carried, own), UP)
    return mapped, g.op("Where", taken, of_logarithm, 0.0 if error is None else error)


def _projection(g: GraphBuilder, stage: Projection, x: str, error: str | None, with_errors: bool) -> Mapped:
    x = g.op("Sub", x, stage.center)
    y = g.op("Add", g.op("MatMul", x, g.doubles(stage.matrix)), stage.bias)
    if not with_errors:
        return y, None
    path = _ROUNDING * (stage.n_features + 3)
    incoming = _sum(g, error, g.op("Mul", g.op("Abs", x), path))
    grown = g.op("MatMul", incoming, g.doubles(np.abs(stage.matrix)))
    of_bias = stage.bias_error + _ROUNDING * np.abs(stage.bias) + (stage.n_features + 2) * _TINY
    rounded = g.op("Add", g.op("Mul", g.op("Abs", y), _ROUNDING), of_bias)
    return y, g.op("Mul", g.op("Add", grown, rounded), UP)


def _table(g: GraphBuilder, stage: Table, x: str, error: str | None, with_errors: bool) -> Mapped:
    """Piece after piece of all outputs at once. What is refused is NaN; an error that meets an edge proves nothing."""
    n_pieces = max((len(steps.values) for steps in stage.steps), default=1)
    if n_pieces > _MOST_PIECES:
        raise UnsupportedModelError(
            f"a table of this pipeline has {n_pieces:,} pieces, but the ONNX export has {_MOST_PIECES} at most: "
            "apply that step in front of the graph, and compile and export what follows it"
        )
    picked = g.columns(x, stage.source)
    found = _looked_up(g, stage, picked, [steps.values for steps in stage.steps], n_pieces)
    nan = np.array([steps.nan for steps in stage.steps])
    found = g.op("Where", g.op("IsNaN", picked), nan, found)
    passes = g.op("Equal", found, np.inf)
    y = g.op("Where", passes, picked, found)
    if error is None:
        return y, None
    came = g.columns(error, stage.source)
    numbers = [np.arange(len(steps.values), dtype=np.float64) for steps in stage.steps]
    reach = g.op("Add", g.op("Mul", came, UP), g.op("Mul", g.op("Abs", picked), _ROUNDING))
    ends = [_looked_up(g, stage, g.op(side, picked, reach), numbers, n_pieces) for side in ("Sub", "Add")]
    settled = g.op("Where", passes, came, 0.0)
    certain = g.op("Or", g.op("Equal", *ends), g.op("Not", g.op("Greater", came, 0.0)))
    return y, g.op("Where", certain, settled, np.inf)


def _looked_up(g: GraphBuilder, stage: Table, x: str, values: list[FloatArray], n_pieces: int) -> str:
    """The values of pieces that numbers lie in."""
    found = g.op("Where", g.op("Less", x, np.inf), np.array([value[0] for value in values]), np.nan)
    for k in range(1, n_pieces):
        # x >= edge is x > the number below it; outputs of fewer pieces never come here.
        below = [np.nextafter(s.edges[k - 1], -np.inf) if len(s.edges) >= k else np.inf for s in stage.steps]
        now = [value[k] if len(value) > k else 0.0 for value in values]
        found = g.op("Where", g.op("Greater", x, np.array(below)), np.array(now), found)
    return str(found)


def _normalizer(g: GraphBuilder, stage: Normalizer, x: str, error: str | None, with_errors: bool) -> Mapped:
    """Group after group; a row whose squares leave float64 has an infinite error."""
    n_groups = int(stage.groups.max(initial=0))
    member = (stage.groups[:, np.newaxis] == np.arange(1, n_groups + 1)).astype(np.float64)
    spread = g.doubles(np.ascontiguousarray(member.T))

    def norms(numbers: str) -> str:
        if stage.norm == "l1":
            return g.op("MatMul", g.op("Abs", numbers), g.doubles(member))
        if stage.norm == "l2":
            return g.op("Sqrt", g.op("MatMul", g.op("Mul", numbers, numbers), g.doubles(member)))
        groups = [g.op("Abs", g.columns(numbers, np.flatnonzero(stage.groups == k + 1))) for k in range(n_groups)]
        return g.op("Concat", *[g.op("ReduceMax", x, axes=[1], keepdims=1) for x in groups], axis=1)

    length = norms(x)
    divided = g.op("Greater", length, np.nextafter(LEAST_NORM, 0.0))
    divisor = g.op(
        "Add", g.op("MatMul", g.op("Where", divided, length, 1.0), spread), (stage.groups == 0).astype(np.float64)
    )
    y = g.op("Div", x, divisor)
    if not with_errors:
        return y, None
    rounding = _ROUNDING * (stage.n_features + 3)
    off = g.op("Add", g.op("Mul", length, rounding), _TINY)
    if error is not None:
        off = g.op("Add", off, g.op("Mul", norms(error), 1.0 + rounding))
    least = g.op("Sub", length, off)
    doubtful = g.op("And", g.op("Less", least, LEAST_NORM), g.op("Greater", g.op("Add", length, off), LEAST_NORM / 2))
    # Of no norm to divide by the error is only what came.
    own = g.op("Where", divided, off, 0.0)
    own = g.op("Where", doubtful, np.inf, own)
    nearest = g.op(
        "Add", g.op("MatMul", g.op("Where", divided, least, 1.0), spread), (stage.groups == 0).astype(np.float64)
    )
    carried = g.op("Mul", g.op("Abs", y), g.op("MatMul", own, spread))
    incoming = carried if error is None else g.op("Add", carried, error)
    grown = g.op("Add", g.op("Div", incoming, nearest), g.op("Add", g.op("Mul", g.op("Abs", y), _ROUNDING), _TINY))
    return y, g.op("Mul", grown, UP)


def _power(g: GraphBuilder, stage: Power, x: str, error: str | None, with_errors: bool) -> Mapped:
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
    of_log = g.op("Add", g.op("Mul", g.op("Abs", logarithm), 2 * _ROUNDING), _ROUNDING)
    of_power = g.op("Mul", power, g.op("Add", g.op("Mul", g.op("Abs", p), of_log), 2 * _ROUNDING))
    of_quotient = g.op("Div", g.op("Add", of_power, _ROUNDING), g.op("Abs", divisor))
    own = g.op("Add", g.op("Where", is_log, of_log, of_quotient), g.op("Mul", g.op("Abs", y), 2 * _ROUNDING))
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


def _monomials(g: GraphBuilder, stage: Monomials, x: str, error: str | None, with_errors: bool) -> Mapped:
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
            own = g.op("Add", g.op("Mul", g.op("Abs", product), _ROUNDING), _TINY)
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


def _piecewise(g: GraphBuilder, stage: Piecewise, x: str, error: str | None, with_errors: bool) -> Mapped:
    """The piece by binary search, its coefficients by number. An error that meets an edge proves nothing."""
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
    own = g.op("Add", g.op("Mul", moduli, (3 * stage.degree + 2) * _ROUNDING), _TINY)
    if error is None:
        return y, own
    came = g.columns(error, stage.source)
    reach = g.op("Add", g.op("Mul", came, UP), g.op("Mul", g.op("Abs", picked), _ROUNDING))
    ends = [_piece(g, stage, g.op(side, picked, reach)) for side in ("Sub", "Add")]
    furthest = g.op("Add", g.op("Abs", t), reach)
    slope: str | None = None
    for k in range(stage.degree, 0, -1):
        term = g.op("Mul", g.op("Abs", coefs[k]), float(k))
        slope = term if slope is None else g.op("Add", g.op("Mul", slope, furthest), term)
    carried = own if slope is None else g.op("Add", own, g.op("Mul", reach, slope))
    certain = g.op("Or", g.op("Equal", *ends), g.op("Not", g.op("Greater", came, 0.0)))
    return y, g.op("Where", certain, g.op("Mul", carried, UP), np.inf)


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


def _interval(g: GraphBuilder, stage: Interval, x: str, error: str | None, with_errors: bool) -> Mapped:
    """What is refused is NaN; next to a full turn nothing is proven."""
    taken, low = stage.second < np.inf, stage.low
    second = np.where(taken, stage.second, 1.0)
    if stage.rule == "refuses":
        inside = g.op("And", g.op("Not", g.op("Less", x, low)), g.op("Not", g.op("Greater", x, second)))
        return str(g.op("Where", g.op("Or", inside, ~taken), x, np.nan)), error
    from_low = g.op("Sub", x, low)
    rest = g.op("Mod", from_low, second, fmod=1)
    rest = g.op("Where", g.op("Less", rest, 0.0), g.op("Add", rest, second), rest)
    y = g.op("Where", taken, g.op("Add", rest, low), x)
    if error is None:  # the source's own rows, bit for bit
        return y, None
    own = g.op("Add", g.op("Mul", g.op("Abs", from_low), _ROUNDING), _ROUNDING * second)
    off = g.op("Mul", g.op("Add", error, own), UP)
    known = g.op("And", g.op("Greater", rest, off), g.op("Greater", g.op("Sub", second, rest), off))
    moved = g.op("Where", known, g.op("Add", off, g.op("Mul", g.op("Abs", y), _ROUNDING)), np.inf)
    return y, g.op("Where", taken, moved, error)


def _inverse_normal(g: GraphBuilder, stage: InverseNormal, x: str, error: str | None, with_errors: bool) -> Mapped:
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
    grown = g.op("Add", g.op("Mul", y, 8.0 * OWN_ERROR), _TINY)
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


def _waves(g: GraphBuilder, stage: Waves, x: str, error: str | None, with_errors: bool) -> Mapped:
    """As model/steps/waves.py; of negative numbers NaN."""
    picked, passes = g.columns(x, stage.source), g.constant(stage.passes)
    amplitudes = np.where(stage.passes, 0.0, stage.amplitudes)
    size = g.op("Mul", g.op("Sqrt", picked), amplitudes)
    turn = g.op("Mul", g.op("Log", g.op("Where", g.op("Equal", picked, 0.0), 1.0, picked)), stage.frequencies)
    y = g.op("Mul", size, g.op("Where", stage.sines, g.op("Sin", turn), g.op("Cos", turn)))
    mapped = g.op("Where", passes, picked, y)
    if not with_errors:
        return mapped, None
    path = g.op("Add", g.op("Mul", g.op("Abs", turn), 4 * _ROUNDING), 4 * _ROUNDING)
    grown = g.op("Add", g.op("Mul", size, path), 2.0**-400)
    if error is None:
        return mapped, g.op("Where", passes, 0.0, grown)
    came = g.columns(error, stage.source)
    nearest = g.op("Sub", picked, came)
    slope = g.op("Div", amplitudes * np.sqrt(0.25 + stage.frequencies**2) * UP, g.op("Sqrt", nearest))
    whole = g.op("Add", size, g.op("Mul", g.op("Sqrt", g.op("Add", picked, came)), amplitudes * UP))
    carried = g.op("Where", g.op("Greater", nearest, 0.0), g.op("Min", g.op("Mul", came, slope), whole), whole)
    carried = g.op("Where", g.op("Greater", came, 0.0), carried, 0.0)
    return mapped, g.op("Where", passes, came, g.op("Mul", g.op("Add", grown, carried), UP))


_RUN: Final[dict[type, Callable[..., Mapped]]] = {
    Affine: _affine,
    Interval: _interval,
    InverseNormal: _inverse_normal,
    Logarithm: _logarithm,
    Monomials: _monomials,
    Normalizer: _normalizer,
    Piecewise: _piecewise,
    Power: _power,
    Projection: _projection,
    Table: _table,
    Waves: _waves,
}
