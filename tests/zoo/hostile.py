"""Rows that stress a given source: on its edges and boundary, far away, equal, or with special or missing values."""

from __future__ import annotations

import contextlib
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from zoo.draw import Draw
from zoo.executors import is_drawn
from zoo.specimens import Specimen
from zoo.tables import Table, edges_of, fitting, numpy_dtype, random_container, random_kinds, with_edges
from zoo.tampering import parts_of

_N_ROWS, _N_PAIRS, _N_PIECES, _MOST_CUTS, _TRIES = 24, 8, 16, 16, 4
_FAR = (1e6, -1e6, 1e15, 1e30, -1e30, 1e300)
_NO_NUMBERS = (np.nan, np.inf, -np.inf)
_UNKNOWN = (2.5, -1.0, 2.0**53 + 2, 2.0**54 + 4, 1e17, -7.0)
_TEXTS = ("unseen", "", " a", "nan", "None", "a\0", "Straße", "\N{PILE OF POO}", np.nan)
_NO_TEXTS = (None, 1.0, True)  # also found in object columns of strings


def hostile_tables(specimen: Specimen, seed: int, share: float = 1.0) -> Iterator[Table]:
    """Yield tables of up to a few dozen rows: the first with the training rows, and this share of the others.

    They may contain rows that the source refuses; properties.py tests them one by one.
    """
    draw, table = Draw(seed, zlib.crc32(specimen.name.encode())), specimen.table
    yield table
    if table.container == "texts":
        yield _texts(draw, table)
        return
    some = table.take(draw.rng.permutation(len(table.values))[:_N_ROWS])
    edges = _edges(specimen.source, len(table.kinds))
    ways: list[Callable[[], Iterable[Table]]] = [
        lambda: [with_edges(draw, some, edges)],
        lambda: [_special(draw, some)],
        lambda: _at_boundary(draw, specimen),
        lambda: [_with_cells(draw, some, _FAR)],
        lambda: [_with_cells(draw, some, _NO_NUMBERS)],
        lambda: [_with_cells(draw, some, _UNKNOWN, _TEXTS)],
        lambda: [_with_cells(draw, some, _UNKNOWN, _NO_TEXTS)] if "text" in table.kinds else [],
        *[lambda: [with_edges(draw, _in_other_form(draw, specimen, some.take(slice(12))), edges)]] * 2,
        lambda: _in_float32(draw, specimen, some, edges),
    ]
    for k, make in enumerate(ways):
        if share >= 1.0 or is_drawn(f"table {k} of {specimen.name}", share, seed):
            yield from make()


# --- numbers inside a source


def _edges(source: Any, width: int) -> list[list[float]]:
    """Return the numbers, in the units of a source's columns, at which its parts change their answers."""
    edges = edges_of(source, width)
    for _, part in parts_of(source):
        found: list[tuple[int, list[float]]] = []
        if isinstance(part, Pipeline):
            found = _behind_steps(part, width)
        elif hasattr(part, "transformers_"):  # not an ensemble's unfitted templates
            for name, step, _ in part.transformers_:
                places = part._transformer_to_input_indices.get(name, [])
                found += zip(places, _edges(step, len(places)), strict=True)
        else:
            knots = [piece.t for piece in getattr(part, "bsplines_", [])]
            found = [(j, t.tolist()) for j, t in enumerate(knots if len(knots) == width else [])]
        for j, more in found:
            if j < width:
                edges[j] += [x for x in more if isinstance(x, (int, float)) and np.isfinite(x)]
    return edges


def _behind_steps(pipeline: Pipeline, width: int) -> list[tuple[int, list[float]]]:
    """Return numbers from later steps, mapped back through the earlier steps if possible."""
    found = []
    for k in range(1, len(pipeline.steps)):
        inner = _edges(pipeline[k], width)
        numbers = np.column_stack([np.resize(column, max(map(len, inner))) for column in inner])
        with (
            contextlib.suppress(AttributeError, IndexError, ValueError),
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
        ):
            warnings.simplefilter("ignore")
            found += list(enumerate(np.asarray(pipeline[:k].inverse_transform(numbers)).T.tolist()))
    return found


# --- rows


def _numbers(table: Table) -> Any:
    return table.values[:, table.numeric].astype(np.longdouble)


def _with_numbers(table: Table, numbers: Any) -> Table:
    """Return the rows with other numbers, rounded to the columns' dtypes."""
    values = table.values.astype(object)
    with np.errstate(all="ignore"):
        values[:, table.numeric] = numbers
        return replace(table, values=fitting(values, table.kinds))


def _special(draw: Draw, table: Table) -> Table:
    """Return rows that are integral, one-hot, constant, tiny, subnormal, large or equal, with zeros of both signs."""
    x = _numbers(table)
    n, width = x.shape
    one_hot = np.eye(max(width, 1), dtype=np.longdouble)[draw.rng.integers(max(width, 1), size=n)][:, :width]
    ways = [
        *(0.0 * x, -0.0 * np.abs(x), np.sign(x), np.rint(x), 0.5 * np.rint(2.0 * x), one_hot, one_hot * x, np.abs(x)),
        *(x * 0.0 + x[:, :1], 1e-17 * x, 1e-30 * x, 1e-160 * x, 5e-324 * np.sign(x), 1e3 * x, x[[0] * n], -x),
        x[:, ::-1],
    ]
    picked = np.array([ways[i % len(ways)][i] for i in range(n)])
    return _with_numbers(table, np.where(np.isnan(x) | np.isnan(picked), x, picked))


def _with_cells(draw: Draw, table: Table, numbers: Any, texts: Any = ()) -> Table:
    """Return rows with one odd cell each, except that all cells of the first row are odd."""
    table = table.take(slice(max(len(numbers), len(texts))))
    values, kinds = table.values.astype(object), table.kinds
    for i, row in enumerate(values):
        columns = range(len(kinds)) if i == 0 else [draw.whole(0, len(kinds) - 1)]
        for j in columns:
            if j in table.numeric:
                row[j] = numbers[i % len(numbers)]
            elif texts:
                row[j] = (texts if kinds[j] == "text" else _TEXTS)[i % len(texts)]
    with np.errstate(all="ignore"):
        return replace(table, values=fitting(values, kinds))


def _in_float32(draw: Draw, specimen: Specimen, table: Table, edges: list[list[float]]) -> Iterator[Table]:
    """Yield the rows as float32, for which most sources compute differently, if the source accepts them."""
    kinds = tuple("float32" if j in table.numeric else kind for j, kind in enumerate(table.kinds))
    with contextlib.suppress(Exception), np.errstate(all="ignore"):  # whatever sources and steps raise
        narrow = replace(table, values=fitting(table.values, kinds), kinds=kinds)
        _labels(specimen, narrow)
        yield with_edges(draw, narrow, edges)


def _in_other_form(draw: Draw, specimen: Specimen, table: Table) -> Table:
    """Return the rows in another container and with other dtypes that the source accepts."""
    for _ in range(_TRIES):
        other = _of_random_form(draw, table, getattr(specimen.fast, "feature_names_in_", None))
        with contextlib.suppress(Exception):  # whatever sources and steps raise
            _labels(specimen, other)
            return other
    return table


def _of_random_form(draw: Draw, table: Table, names: Any) -> Table:
    container, width = table.container, len(table.kinds)
    if len(table.numeric) == width:
        container = random_container(draw, container)
    several = random_kinds(draw, container, width)
    if len(table.numeric) < width:  # next to strings, the behavior of pandas' own missing values is accidental
        several = tuple("float64" if kind[0].isupper() or "pyarrow" in kind else kind for kind in several)
    kinds = tuple(several[j] if j in table.numeric else kind for j, kind in enumerate(table.kinds))
    names = table.names or (tuple(f"y{j}" for j in range(width)) if names is None else tuple(names))
    with np.errstate(all="ignore"):
        return Table(fitting(table.values, kinds), kinds, container, names if container == "frame" else None)


def _texts(draw: Draw, table: Table) -> Table:
    """Return texts of known and unknown words, an empty text, a text with all words, and Unicode characters."""
    words = [
        *" ".join(table.values[:, 0]).split(),
        "unknown",
        "ÜBER",
        "naive",
        "a",
        "x" * 300,
        "don\u2019t",
        "\t",
        "e\u0301",
    ]
    found = ["", "unknown words only", " ".join(words), *(" ".join(draw.some(words[-20:])) for _ in range(20))]
    return replace(table, values=np.array(found, object)[:, np.newaxis])


# --- the boundary


def _at_boundary(draw: Draw, specimen: Specimen) -> list[Table]:
    """Return rows between which the source's label changes, found by repeated division, and rows one ulp away."""
    table, n = specimen.table, len(specimen.table.values)
    if specimen.artifact.task == "regression" or not table.numeric:
        return []
    labels = _labels(specimen, table)
    first, second = draw.rng.integers(n, size=(2, 8 * _N_PAIRS))
    differ = np.flatnonzero((labels[first] != labels[second]).any(axis=1))[:_N_PAIRS]
    if len(differ) == 0:
        return []
    a = table.take(first[differ])
    x, z = _numbers(a), _numbers(table.take(second[differ]))
    b = _with_numbers(a, np.where(np.isnan(x) | np.isnan(z), x, z))
    kept = (labels[first[differ]] != _labels(specimen, b)).any(axis=1)  # strings are the first endpoint's
    a, b, of_a = a.take(kept), b.take(kept), labels[first[differ]][kept]
    with contextlib.suppress(ValueError):  # from steps that refuse most numbers
        shares = np.linspace(0, 1, _N_PIECES, endpoint=False, dtype=np.longdouble)[1:, np.newaxis, np.newaxis]
        places = np.arange(len(a.values))
        for _ in range(_MOST_CUTS if kept.any() else 0):
            x, z = _numbers(a), _numbers(b)
            inner = _with_numbers(a.take(np.tile(places, len(shares))), np.concatenate(x + shares * (z - x)))
            with_a = (_labels(specimen, inner).reshape(len(shares), *of_a.shape) == of_a).all(axis=2)
            points = np.stack([x, *np.split(_numbers(inner), len(shares)), z])
            k = np.vstack([~with_a, np.ones_like(places, bool)]).argmax(axis=0)  # the label changes in this piece
            a, b = (_with_numbers(a, points[k + end, places]) for end in (0, 1))
            if np.array_equal(_numbers(a), x, equal_nan=True) and np.array_equal(_numbers(b), z, equal_nan=True):
                break
    ends = [a.values, b.values, _beside(draw, a).values, _beside(draw, b).values]
    return [replace(a, values=np.concatenate(ends))] if kept.any() else []


def _labels(specimen: Specimen, table: Table) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        predict = getattr(specimen.source, "predict", None) or specimen.source.score_samples  # for a density
        return np.asarray(predict(table.make())).reshape(len(table.values), -1)


def _beside(draw: Draw, table: Table) -> Table:
    """Return rows with one number moved by one unit in the last place of its column's dtype, or an integer by 1."""
    values = table.values.copy()
    for row in values:
        j = table.numeric[draw.whole(0, len(table.numeric) - 1)]
        dtype, up = numpy_dtype(table.kinds[j]).newbyteorder("="), draw.maybe(0.5)
        number = np.asarray(row[j], dtype if dtype.kind == "f" else np.float64)
        ends = number.dtype.type(np.inf if up else -np.inf)
        row[j] = np.nextafter(number, ends) if dtype.kind == "f" else number + (1 if up else -1)
    return replace(table, values=fitting(values, table.kinds))
