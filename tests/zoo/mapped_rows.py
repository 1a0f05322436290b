"""Rows after the input map of a model in extended precision, independent of the package's arithmetic.

Pieces and turns are looked up at the source's own numbers as long as all earlier steps are replayed bit for bit, and at
the real numbers after other steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from approxsvm.ir.input_map import InputMap
from approxsvm.ir.ops import (
    Affine,
    Interval,
    InverseNormal,
    Logarithm,
    Lookup,
    Monomials,
    Normalizer,
    PiecewisePolynomial,
    Power,
    Projection,
)
from zoo.balls import Ball, Extended, quiet

# models/FORMAT.md: normal quantiles are of no smaller probability, and dense rows of no smaller norm are divided.
_LEAST_PROBABILITY = 2.0**-24
_LEAST_NORM = 10 * 2.0**-52
# A number of a table that stands for the feature itself.
_SAME = np.inf

Array = Any


class _Rows:
    """Mapped rows up to some step: real numbers, the source's own while these are known, and rows that it refuses."""

    def __init__(self, numbers: Array) -> None:
        self.x = Ball.of(numbers)
        self.own: Array | None = np.array(numbers, np.float64)
        self.refused = np.zeros(len(numbers), bool)

    @property
    def at(self) -> Array:
        """Numbers that say which piece is meant."""
        return self.x.mid if self.own is None else self.own

    def refuse(self, outside: Array) -> None:
        self.refused |= outside.any(axis=1)

    def find(self, j: int, edges: Array, side: str = "right") -> tuple[Array, Array]:
        """Return the first and the last interval between edges that feature j may be in."""
        ends = (self.own[:, j],) * 2 if self.own is not None else self.x[:, j].ends
        first, last = (np.searchsorted(edges.astype(end.dtype), end, side=side) for end in ends)
        return first, np.maximum(first, last)


@quiet
def mapped(map_: InputMap | None, rows: Any) -> Ball:
    """Return mapped rows; those that the source refuses are NaN."""
    dense = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
    if map_ is None:
        x = Ball.of(dense)
        return x.where(np.isfinite(dense).all(axis=1, keepdims=True), np.nan)
    found = _Rows(dense[:, map_.columns])
    found.refuse(np.isinf(dense[:, map_.columns]))
    for column, takes_nan in map_.checked.items():
        bad = np.isinf(dense[:, [column]]) if takes_nan else ~np.isfinite(dense[:, [column]])
        found.refuse(bad)
    for op in map_.ops:
        found.x, found.own = _STEPS[type(op)](op, found)
    found.refuse(np.isnan(found.x.mid))
    return found.x.where(~found.refused[:, np.newaxis], np.nan)


def _affine(op: Affine, rows: _Rows) -> tuple[Ball, Array | None]:
    x, own = rows.x, rows.own
    for name, operation in (
        ("subtract", lambda a, b: a - b),
        ("multiply", lambda a, b: a * b),
        ("divide", lambda a, b: a / b),
        ("add", lambda a, b: a + b),
    ):
        numbers = getattr(op, name)
        if numbers is not None:
            x, own = operation(x, numbers), None if own is None else operation(own, numbers)
    low = -np.inf if op.low is None else op.low
    high = np.inf if op.high is None else op.high
    return x.clip(low, high), None if own is None else np.clip(own, low, high)


def _table(op: Lookup, rows: _Rows) -> tuple[Ball, Array | None]:
    columns, own = [], []
    for j, (edges, values, nan) in zip(op.source, op.steps, strict=True):
        first, last = rows.find(j, edges)
        x = rows.x[:, j]
        found = np.where(np.isnan(rows.at[:, j]), nan, values[first])
        known = np.where(first == last, 0.0, np.inf)
        rows.refuse(np.isnan(found)[:, np.newaxis])
        passes = found == _SAME
        columns.append(x.where(passes & (known == 0), Ball(np.where(passes, x.mid, found), known.astype(Extended))))
        own.append(np.where(passes, rows.at[:, j], found))
    return Ball.stack(columns), None if rows.own is None else np.stack(own, axis=1)


def _interval(op: Interval, rows: _Rows) -> tuple[Ball, Array | None]:
    x, at, taken = rows.x, rows.at, op.second < np.inf
    if op.rule == "refuses":
        rows.refuse(taken & ((at < op.low) | (at > op.second)))
        return x, rows.own
    length = np.where(taken, op.second, 1.0)
    low = op.low.astype(at.dtype)
    own = low + (at - low) % length
    # fmod is exact, and so is a ball's product with the few turns that the source may differ by.
    moved = x - low
    turned = Ball(np.fmod(moved.mid, length.astype(Extended)), moved.rad) + low
    turned = turned - Ball.of(length) * np.rint((turned.mid - own) / length.astype(Extended))
    # After steps of other arithmetic, a row next to a full turn may be on either side of it.
    near = np.minimum(np.abs(turned.mid - low), np.abs(low + length - turned.mid)) <= turned.rad
    if rows.own is None:
        turned = Ball(turned.mid, np.where(near, np.inf, turned.rad))
    return turned.where(taken, x), None if rows.own is None else np.where(taken, own, at)


def _monomials(op: Monomials, rows: _Rows) -> tuple[Ball, Array | None]:
    ones = np.ones((len(rows.at), 1))
    with_one = Ball.join([rows.x, Ball.of(ones)])
    own = None if rows.own is None else np.concatenate([rows.own, ones], axis=1)
    last = op.factors[:, -1]
    y, own_y = with_one[:, last], None if own is None else own[:, last]
    for factor in op.factors.T[-2::-1]:
        y = (y * with_one[:, factor]).where(factor != op.n_features, y)
        own_y = None if own is None else own_y * own[:, factor]
    return y, own_y


def _piecewise(op: PiecewisePolynomial, rows: _Rows) -> tuple[Ball, Array | None]:
    columns = []
    for j, (edges, origins, coefs) in zip(op.source, op.pieces, strict=True):
        first, last = rows.find(j, edges)
        values = []
        for piece in (first, last):
            t, y = rows.x[:, j] - origins[piece], Ball.of(coefs[piece, -1])
            for k in range(coefs.shape[1] - 2, -1, -1):
                y = y * t + coefs[piece, k]
            values.append(y)
        apart = np.abs(values[0].mid - values[1].mid) + values[1].rad
        apart = np.where(last - first > 1, np.inf, np.where(last > first, apart, 0))
        columns.append(Ball(values[0].mid, np.maximum(values[0].rad, apart)))
    return Ball.stack(columns), None


def _inverse_normal(op: InverseNormal, rows: _Rows) -> tuple[Ball, Array | None]:
    p = rows.x
    is_low = p.mid < 0.5
    # Features that stay as they are need not be probabilities.
    t = p.where(is_low, 1 - p).where(op.taken, 0.5).clip(_LEAST_PROBABILITY, 0.5)
    y = t.normal_quantiles()
    return y.where(is_low, -y).where(op.taken, p), None


def _logarithm(op: Logarithm, rows: _Rows) -> tuple[Ball, Array | None]:
    taken, offset = op.taken, np.where(op.taken, op.offset, 0.0)
    rows.refuse(taken & (rows.at <= -offset))
    return (rows.x + offset).where(taken, 1.0).log().where(taken, rows.x), None


def _power(op: Power, rows: _Rows) -> tuple[Ball, Array | None]:
    taken, is_shifted = op.taken, op.method == "yeo-johnson"
    if not is_shifted:
        rows.refuse(taken & (rows.at <= 0))
    mirrored = (rows.x.mid < 0) & is_shifted
    powers = np.where(taken, op.powers, 1.0).astype(Extended)
    p = np.where(mirrored, 2 - powers, powers)
    x = rows.x.where(~mirrored, -rows.x)
    log = x.log1p() if is_shifted else x.where(taken, 1.0).log()
    y = log.where(p == 0, (log * p).expm1() / np.where(p == 0, 1, p))
    return y.where(~mirrored, -y).where(taken, rows.x), None


def _normalizer(op: Normalizer, rows: _Rows) -> tuple[Ball, Array | None]:
    x, norms = rows.x, np.ones_like(rows.x.mid)
    norm = Ball.of(norms)
    for group in range(1, int(op.groups.max(initial=0)) + 1):
        some = op.groups == group
        part = x[:, some].abs()
        if op.norm == "max":
            of_part = Ball(part.mid.max(axis=1, keepdims=True), part.rad.max(axis=1, keepdims=True))
        else:
            of_part = part.sum() if op.norm == "l1" else part.norms()
        norm = norm.where(~some, of_part)
    least = Extended(2.0**-1074 if op.rows == "sparse" else _LEAST_NORM)
    divided = x.where(norm.mid < least, x / norm.where(norm.mid >= least, 1.0))
    doubtful = (np.abs(norm.mid - least) <= norm.rad) & (op.groups > 0)
    return Ball(divided.mid, np.where(doubtful, np.inf, divided.rad)).where(op.groups > 0, x), None


def _projection(op: Projection, rows: _Rows) -> tuple[Ball, Array | None]:
    x = rows.x - op.center
    products = (x[:, [j]] * coefs for j, coefs in enumerate(op.matrix))
    return sum(products, Ball.of(np.zeros((len(x.mid), op.n_outputs)))) + op.bias, None


_STEPS: dict[type, Callable[[Any, _Rows], tuple[Ball, Array | None]]] = {
    Affine: _affine,
    Lookup: _table,
    Interval: _interval,
    Monomials: _monomials,
    PiecewisePolynomial: _piecewise,
    InverseNormal: _inverse_normal,
    Logarithm: _logarithm,
    Power: _power,
    Normalizer: _normalizer,
    Projection: _projection,
}
