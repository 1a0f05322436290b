"""Rows mapped by a model's input map in extended precision, independent of the package's arithmetic.

Pieces and periods are looked up at the source's own numbers as long as all earlier steps can be replayed bit for bit;
after any other step, they are looked up at the exact numbers.
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

# From models/FORMAT.md: normal quantiles clamp smaller probabilities, and dense rows with smaller norms are unchanged.
_LEAST_PROBABILITY = 2.0**-24
_LEAST_NORM = 10 * 2.0**-52
# Table value that stands for the feature itself.
_SAME = np.inf

Array = Any


class _Rows:
    """A step's input: exact numbers, the source's own numbers if all are known, and a mask of the refused rows."""

    def __init__(self, x: Ball, own: Array | None, refused: Array) -> None:
        self.x, self.own, self.refused = x, own, refused

    @property
    def at(self) -> Array:
        """Numbers that determine the piece."""
        return self.x.mid if self.own is None else self.own

    def refuse(self, outside: Array) -> None:
        self.refused |= outside.any(axis=1)

    def find(self, j: int, edges: Array, side: str = "right") -> tuple[Array, Array]:
        """Return the first and last intervals between edges that may contain feature j."""
        ends = (self.own[:, j],) * 2 if self.own is not None else self.x[:, j].ends
        first, last = (np.searchsorted(edges.astype(end.dtype), end, side=side) for end in ends)
        return first, np.maximum(first, last)


@quiet
def mapped(map_: InputMap | None, rows: Any) -> Ball:
    """Return the mapped rows; rows that the source refuses become NaN."""
    dense = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
    if map_ is None:
        x = Ball.of(dense)
        return x.where(np.isfinite(dense).all(axis=1, keepdims=True), np.nan)
    own = np.array(dense[:, map_.columns], np.float64)
    x, is_own = Ball.of(own), np.ones(len(map_.columns), bool)
    found = _Rows(x, own, np.zeros(len(own), bool))
    found.refuse(np.isinf(own))
    for column, takes_nan in map_.checked.items():
        bad = np.isinf(dense[:, [column]]) if takes_nan else ~np.isfinite(dense[:, [column]])
        found.refuse(bad)
    for op in map_.ops:
        some = slice(op.first, op.first + op.n_features)
        y, of_source = _STEPS[type(op)](
            op, _Rows(x[:, some], own[:, some] if is_own[some].all() else None, found.refused)
        )
        x = Ball.join([x[:, : some.start], y, x[:, some.stop :]])
        numbers = np.full(y.mid.shape, np.nan) if of_source is None else of_source
        own = np.concatenate([own[:, : some.start], numbers, own[:, some.stop :]], axis=1)
        outputs = np.full(y.mid.shape[1], of_source is not None)
        is_own = np.concatenate([is_own[: some.start], outputs, is_own[some.stop :]])
    found.refuse(np.isnan(x.mid))
    return x.where(~found.refused[:, np.newaxis], np.nan)


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
    x, at, length = rows.x, rows.at, op.second
    if op.rule == "refuses":
        rows.refuse((at < op.low) | (at > op.second))
        return x, rows.own
    low = op.low.astype(at.dtype)
    own = low + (at - low) % length
    # fmod is exact, and so is the product with the few periods by which the source may differ.
    moved = x - low
    turned = Ball(np.fmod(moved.mid, length.astype(Extended)), moved.rad) + low
    turned = turned - Ball.of(length) * np.rint((turned.mid - own) / length.astype(Extended))
    # After steps with other arithmetic, a row near a full period may be on either side of it.
    near = np.minimum(np.abs(turned.mid - low), np.abs(low + length - turned.mid)) <= turned.rad
    if rows.own is None:
        turned = Ball(turned.mid, np.where(near, np.inf, turned.rad))
    return turned, None if rows.own is None else own


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
    y = p.where(is_low, 1 - p).clip(_LEAST_PROBABILITY, 0.5).normal_quantiles()
    return y.where(is_low, -y), None


def _logarithm(op: Logarithm, rows: _Rows) -> tuple[Ball, Array | None]:
    rows.refuse(rows.at <= -op.offset)
    return (rows.x + op.offset).log(), None


def _power(op: Power, rows: _Rows) -> tuple[Ball, Array | None]:
    is_shifted = op.method == "yeo-johnson"
    if not is_shifted:
        rows.refuse(rows.at <= 0)
    mirrored = (rows.x.mid < 0) & is_shifted
    powers = op.powers.astype(Extended)
    p = np.where(mirrored, 2 - powers, powers)
    x = rows.x.where(~mirrored, -rows.x)
    log = x.log1p() if is_shifted else x.log()
    y = log.where(p == 0, (log * p).expm1() / np.where(p == 0, 1, p))
    return y.where(~mirrored, -y), None


def _normalizer(op: Normalizer, rows: _Rows) -> tuple[Ball, Array | None]:
    x, sizes = rows.x, rows.x.abs()
    if op.norm == "max":
        norm = Ball(sizes.mid.max(axis=1, keepdims=True), sizes.rad.max(axis=1, keepdims=True))
    else:
        norm = sizes.sum() if op.norm == "l1" else sizes.norms()
    least = Extended(2.0**-1074 if op.rows == "sparse" else _LEAST_NORM)
    divided = x.where(norm.mid < least, x / norm.where(norm.mid >= least, 1.0))
    doubtful = np.abs(norm.mid - least) <= norm.rad
    return Ball(divided.mid, np.where(doubtful, np.inf, divided.rad)), None


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
