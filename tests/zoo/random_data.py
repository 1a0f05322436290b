"""Random rows and targets with many scales, dtypes and containers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from zoo.draw import Draw
from zoo.tables import Table, fitting, random_container, random_kinds

FloatArray = npt.NDArray[np.float64]
_WORDS = ("a", "b", "c", "ab", "aab", "abc", "x", "y")


@dataclass(frozen=True, eq=False)
class Data:
    """Rows for training and prediction."""

    table: Table  # training rows
    rows: Any  # numbers, and perhaps strings, for rows to predict, before dtypes are chosen
    middle: FloatArray  # median of each column's numbers
    is_symmetric: bool  # True if the second half of the training rows is the negative of the first

    @cached_property
    def X(self) -> Any:  # noqa: N802
        """The training rows."""
        return self.table.make()

    @cached_property
    def matrix(self) -> FloatArray:
        """The training rows' numbers, from which targets are made."""
        if self.table.container == "texts":
            return np.array([[len(text), text.count("a")] for text in self.table.values[:, 0]], np.float64)
        return np.asarray(np.nan_to_num(self.table.values[:, self.table.numeric].astype(np.float64)))

    @property
    def names(self) -> list[str]:
        """Names of the columns of finite numbers, if there are other columns."""
        return [n for n in self.table.names or () if n not in ("text", "holes", "date")]

    @property
    def has_strangers(self) -> bool:
        """True if columns contain strings, dates or non-finite numbers."""
        return "text" in (self.table.names or ())


def random_data(draw: Draw) -> Data:
    """Draw rows of any kind."""
    n_rows, n_features = 2 * draw.whole(9, 30), draw.whole(1, 6)
    container = "texts" if draw.maybe(0.04) else random_container(draw)
    if container == "texts":
        texts = [np.array([[" ".join(draw.some(_WORDS * 2))] for _ in range(n)], object) for n in (n_rows, 25)]
        return Data(Table(texts[0], ("text",), container), texts[1], np.zeros(1), False)
    is_symmetric = draw.maybe(0.12)
    kinds = random_kinds(draw, container, n_features)
    plain = set(kinds) == {"float64"}
    matrix = draw.one(_matrix, *([_matrix] * 2 if plain else [_small, _small]))(draw, n_rows, n_features)
    if is_symmetric:  # use few rows so that intercepts are sometimes exactly 0
        n_rows = 2 * draw.whole(3, 9)
        matrix = _small(draw, n_rows, n_features)
        matrix[n_rows // 2 :] = -matrix[: n_rows // 2]
    if container not in ("frame", "array", "Fortran order", "not contiguous", "read-only", "lists"):
        matrix[draw.rng.random(matrix.shape) < 0.5] = 0.0
    middle = np.median(matrix, axis=0)
    picked = draw.rng.integers(n_rows, size=draw.whole(8, 40))
    jitter = draw.one(0.0, 0.1, 0.5, 3.0, 3.0, 1e4) * matrix.std(axis=0)
    near = matrix[picked] + jitter * draw.rng.normal(size=(len(picked), n_features))
    ends = np.outer([0.0, 1e6], np.ones(n_features))
    rows = np.vstack([matrix, np.abs(near) if (matrix >= 0).all() else near, ends])
    if container != "frame":
        return Data(Table(fitting(matrix, kinds, middle), kinds, container), rows, middle, is_symmetric)
    pattern = draw.one("x{}", "größe {}", "a b{}", "{}")
    names: list[Any] = [pattern.format(j) for j in range(n_features)]
    if draw.maybe(0.12):
        names = draw.one([int(k) for k in draw.rng.permutation(n_features)], [f"x{k // 2}" for k in range(n_features)])
    elif draw.maybe(0.3):  # columns of strings, of NaN and infinity, and of dates, in any position
        order = draw.rng.permutation(n_features + 3)
        names, kinds = (
            [*names, "text", "holes", "date"],
            (*kinds, draw.one("text", "str", "category"), "float64", "datetime64[ns]"),
        )
        names, kinds = [names[k] for k in order], tuple(kinds[k] for k in order)
        matrix, rows, middle = (_with_strangers(part)[..., order] for part in (matrix, rows, middle[np.newaxis]))
        middle = middle[0]
    return Data(Table(fitting(matrix, kinds, middle), kinds, container, tuple(names)), rows, middle, is_symmetric)


def varied_data(draw: Draw, table: Table) -> Data:
    """Return a zoo entry's rows, often with other dtypes or in another container, together with rows near them."""
    width, values = len(table.kinds), table.values
    picked = values[draw.rng.integers(len(values), size=draw.whole(8, 40))]
    if len(table.numeric) < width:
        return Data(table, picked, np.zeros(width), False)
    matrix = values.astype(np.float64)
    middle, spread = np.nan_to_num(np.nanmedian(matrix, axis=0)), np.nan_to_num(np.nanstd(matrix, axis=0))
    rows = picked + draw.one(0.0, 0.1, 0.5, 3.0, 1e4) * spread * draw.rng.normal(size=picked.shape)
    if draw.maybe(0.6):
        container = random_container(draw, table.container)
        names = (table.names or tuple(f"x{j}" for j in range(width))) if container == "frame" else None
        kinds = random_kinds(draw, container, width)
        table = Table(fitting(matrix, kinds, middle), kinds, container, names)
    return Data(table, rows, middle, False)


def _with_strangers(numbers: FloatArray) -> Any:
    n = len(numbers)
    text, holes = np.resize(["ab", "c", "", "d"], n), np.resize([np.nan, np.inf, 1.0, -np.inf], n)
    date = pd.date_range("2020-01-01", periods=n).to_pydatetime()
    return np.column_stack([part.astype(object) for part in (numbers, text, holes, np.asarray(date))])


def _small(draw: Draw, n_rows: int, n_features: int) -> FloatArray:
    """Return numbers that most dtypes can represent: integers, or their halves, tenths or twelfths."""
    matrix = draw.rng.integers(draw.one(0, -12), draw.one(3, 12, 100), (n_rows, n_features)).astype(np.float64)
    return np.asarray(matrix / draw.one(1.0, 1.0, 2.0, 10.0, 12.0))


def _matrix(draw: Draw, n_rows: int, n_features: int) -> FloatArray:
    matrix = draw.rng.normal(size=(n_rows, n_features))
    if draw.maybe(0.5):
        matrix *= 10.0 ** draw.rng.uniform(-3, 3, n_features)
    if draw.maybe(0.4):
        matrix += matrix.std(axis=0) * draw.one(1.0, 10.0, 1e3, 1e6) * draw.rng.normal(size=n_features)
    if draw.maybe(0.25):
        matrix = np.abs(matrix) + 1e-3
    if draw.maybe(0.2):
        matrix[:, draw.whole(0, n_features - 1)] = draw.one(0.0, 1.0, -7.5, 1e6)
    if draw.maybe(0.2):
        matrix[:, draw.whole(0, n_features - 1)] = draw.rng.integers(0, 2, n_rows)
    if draw.maybe(0.2):
        matrix[draw.rng.integers(n_rows, size=n_rows // 3)] = matrix[draw.whole(0, n_rows - 1)]
    if draw.maybe(0.2):
        matrix[draw.rng.random(matrix.shape) < 0.4] = 0.0
    return matrix


# Class names: integers, strings and floats.
_LABELS: tuple[Sequence[Any], ...] = (
    [0, 1, 2, 3],
    [-1, 1, 0, 7],
    [-(2**62), 5, 2**62, 3],
    ["b", "a", "C", "Ä\u0301"],
    ["10", "9", "", "1e3"],
    ["x", "x ", " x", "x y"],
    [2.0, -1.0, 0.0, 1e6],
)


def random_labels(draw: Draw, matrix: FloatArray, n_classes: int, is_symmetric: bool = False) -> Any:
    """Draw labels, often of an unusual type."""
    z = (matrix - matrix.mean(axis=0)) / (matrix.std(axis=0) + 1e-300)
    score = np.sin(z).sum(axis=1) + 0.3 * z[:, 0] ** 2 + 0.5 * draw.rng.normal(size=len(z))
    codes = np.argsort(np.argsort(score)) * n_classes // len(score)
    if is_symmetric:
        codes[len(codes) // 2 :] = n_classes - 1 - codes[: len(codes) // 2]
    kind = draw.one(*["positions"] * 3, *["plain"] * 3, "typed", "frame", "uint64", "bool")
    if kind == "positions":
        return codes
    if kind == "bool" and n_classes == 2:
        return codes.astype(bool)
    if kind == "uint64":
        return np.array([2**63 + 5, 3, 2**64 - 1, 2**63], np.uint64)[codes]
    names = draw.one(*_LABELS)
    y = np.array([names[int(k)] for k in codes])
    if kind == "typed":
        return codes.astype(draw.one(np.int8, np.uint8, np.float32)) if y.dtype.kind == "i" else y.astype(object)
    if kind == "frame":
        return draw.one(pd.Series(y), pd.Series(y, dtype="category"), y.tolist(), pd.Series(y, dtype=object))
    return y


def random_target(draw: Draw, matrix: FloatArray, n_targets: int) -> Any:
    """Draw values at a random scale, of shape (n_rows, n_targets), or (n_rows,) if n_targets is 0."""
    z = (matrix - matrix.mean(axis=0)) / (matrix.std(axis=0) + 1e-300)
    phases = draw.rng.normal(size=max(n_targets, 1))
    y = np.column_stack([np.sin(z + phase).sum(axis=1) for phase in phases])
    y = draw.one(0.0, 100.0, -1e6) + draw.one(1.0, 1e-6, 300.0) * (y + 0.1 * draw.rng.normal(size=y.shape))
    if draw.maybe(0.03):
        y[:] = 5.0
    if n_targets == 0:
        return draw.one(y[:, 0], y[:, 0], y[:, 0].tolist(), pd.Series(y[:, 0]), y[:, 0].astype(np.float32))
    return y
