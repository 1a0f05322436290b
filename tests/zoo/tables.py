"""Rows stored as values, column dtypes and a container, from which each call gets a new object; deliberate changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import bsr_array, coo_array, csc_matrix, csr_array, csr_matrix, issparse

from zoo.draw import Draw
from zoo.tampering import parts_of

_NUMPY = (
    *("float32", "float32", "float16", "longdouble", ">f8", "int64", "int32", "int16", "int8", "uint8", "uint16"),
    *("uint64", "bool", "object"),
)
NOT_SPARSE = ("float16", ">f8", "object")
_PANDAS = (
    *("Float64", "Float32", "Int64", "Int32", "Int8", "UInt8", "boolean", "double[pyarrow]", "float[pyarrow]"),
    *("halffloat[pyarrow]", "int64[pyarrow]", "int8[pyarrow]", "uint8[pyarrow]", "bool[pyarrow]"),
)
_LIKE_NUMPY = {"double": "float64", "float": "float32", "halffloat": "float16", "boolean": "bool", "object": "float64"}
# Object columns are "text", or "cells" if they contain numbers and values that may be mistaken for missing ones.
_NO_NUMBERS = ("text", "cells", "str", "category", "datetime64[ns]")
CELLS = (None, Decimal(1), Decimal("NaN"), np.datetime64("NaT"), pd.NaT, pd.NA, "nan", "1", np.nan)
_EDGES_PER_COLUMN = 60
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 5e-324, 1e-30, 1e38, 4e38, -1e300, 65520.0, 2.0**24 + 1, 2.0**53 + 2)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows, before conversion to an estimator's argument."""

    values: Any  # (n_rows, n_columns) float64, longdouble or object; the column dtypes can represent them
    kinds: tuple[str, ...]  # column dtypes; all equal except in frames
    container: str
    names: tuple[Any, ...] | None = None  # a frame's column names

    def make(self) -> Any:
        """Return a new object with these rows; all calls return equal objects."""
        with np.errstate(all="ignore"):  # the caller's error state is meant for the package
            return self._made()

    def _made(self) -> Any:
        if self.container == "texts":
            return self.values[:, 0].tolist()
        if self.container == "frame":
            frame = pd.concat([_series(self.values[:, j], kind) for j, kind in enumerate(self.kinds)], axis=1)
            frame.columns = list(self.names or ())
            return frame
        return _CONTAINERS[self.container](self.values.astype(object if self.kinds[0] == "cells" else self.kinds[0]))

    def take(self, rows: Any = slice(None), columns: Iterable[Any] | None = None) -> Table:
        """Return some of the rows, and columns by their indices."""
        kept = list(range(len(self.kinds)) if columns is None else columns)
        names, kinds = self.names and tuple(self.names[j] for j in kept), tuple(self.kinds[j] for j in kept)
        return replace(self, values=self.values[rows][:, kept], kinds=kinds, names=names)

    def joined(self, other: Table) -> Table:
        """Return these rows followed by the rows of another table, which has the same form."""
        return replace(self, values=np.concatenate([self.values, other.values]))

    @property
    def form(self) -> str:
        """Description of the container and the dtypes."""
        return f"{self.container} of {', '.join(sorted(set(self.kinds)))}"

    @property
    def family(self) -> str:
        """The kind of rows: "dense", "sparse", "frame" or "texts"."""
        if self.container in _CONTAINERS:
            return "dense" if self.container in _DENSE else "sparse"
        return self.container

    @property
    def numeric(self) -> list[int]:
        """Indices of the numeric columns."""
        return [j for j, kind in enumerate(self.kinds) if kind not in _NO_NUMBERS]

    @property
    def has_texts_alone(self) -> bool:
        """True if string columns contain only strings and missing values."""
        others = [j for j in range(len(self.kinds)) if j not in self.numeric]
        return all(isinstance(cell, str) or pd.isna(cell) for cell in self.values[:, others].ravel().tolist())

    def code(self) -> str:
        """Return Python code that makes the object, except for its strides."""
        made = self.make()
        with np.printoptions(threshold=1 << 30, floatmode="unique", linewidth=1 << 30):
            if isinstance(made, pd.DataFrame):
                columns = [(self.values[:, j].tolist(), str(dtype)) for j, dtype in enumerate(made.dtypes)]
                series = ", ".join(f"pd.Series({column!r}, dtype={dtype!r})" for column, dtype in columns)
                return f"pd.concat([{series}], axis=1).set_axis({list(made.columns)!r}, axis=1)"
            if issparse(made) and made.format in ("csr", "csc"):
                parts = f"{made.data!r}, {made.indices!r}, {made.indptr!r}"
                return f"{type(made).__name__}(({parts}), shape={made.shape})"
            return f"{type(made).__name__}({made.toarray()!r})" if issparse(made) else repr(made)


def _series(column: Any, kind: str) -> Any:
    if kind in _NO_NUMBERS:
        return pd.Series(column.tolist(), dtype="object" if kind in ("text", "cells") else kind)
    exact = column.astype(np.longdouble if kind == "longdouble" else np.float64)
    return pd.Series(exact.tolist() if kind == "object" else exact).astype(kind)


# --- dtypes and containers


def numpy_dtype(kind: str) -> Any:
    """Return the NumPy dtype of the numbers in a column of this kind."""
    plain = kind.removesuffix("[pyarrow]")
    return np.dtype(_LIKE_NUMPY.get(plain, plain.lower()))


def random_kinds(draw: Draw, container: str, n_columns: int) -> tuple[str, ...]:
    """Draw a dtype for each column; in about half of the cases, all are float64."""
    if draw.maybe(0.45):
        return ("float64",) * n_columns
    if container != "frame":
        return (draw.one(*(kind for kind in _NUMPY if container not in SPARSE or kind not in NOT_SPARSE)),) * n_columns
    few = [draw.one("float64", *_NUMPY, *_PANDAS) for _ in range(draw.one(1, 3))]
    return tuple(draw.one(*few) for _ in range(n_columns))


def _csr(values: Any, structure: str) -> Any:
    """Return CSR rows with unsorted or repeated entries, stored zeros, or int64 indices."""
    found = csr_array(values)
    data, indices, indptr = found.data, found.indices, found.indptr
    if structure == "with zeros":
        n_rows, n_columns = values.shape
        data, indices = values.ravel(), np.tile(np.arange(n_columns, dtype=np.int32), n_rows)
        indptr = np.arange(0, n_rows * n_columns + 1, n_columns, dtype=np.int32)
    elif structure == "repeated" and data.dtype.kind != "b":  # each entry is split into two addends
        part = (0.75 * data).astype(data.dtype)
        data, indices, indptr = np.column_stack([part, data - part]).ravel(), np.repeat(indices, 2), 2 * indptr
    elif structure == "unsorted":
        order = [k for first, last in pairwise(indptr) for k in range(last - 1, first - 1, -1)]
        data, indices = data[order], indices[order]
    made = csr_matrix((data, indices, indptr), shape=values.shape)
    if structure == "of int64":
        made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    return made


def _read_only(values: Any) -> Any:
    values.setflags(write=False)
    return values


SPARSE: dict[str, Callable[[Any], Any]] = {
    "CSR": csr_array,
    "CSC": csc_matrix,
    "BSR": bsr_array,
    "COO": lambda values: coo_array(_csr(values, "repeated")),
    "CSR unsorted": lambda values: _csr(values, "unsorted"),
    "CSR repeated": lambda values: _csr(values, "repeated"),
    "CSR with zeros": lambda values: _csr(values, "with zeros"),
    "CSR of int64": lambda values: _csr(values, "of int64"),
    "CSC unsorted": lambda values: _csr(values.T, "unsorted").T,
}
_DENSE: dict[str, Callable[[Any], Any]] = {
    "array": np.array,
    "Fortran order": np.asfortranarray,
    "not contiguous": lambda values: np.repeat(values, 2, axis=1)[:, ::2],
    "read-only": _read_only,
    "lists": lambda values: values.tolist(),
}
_CONTAINERS = _DENSE | SPARSE


def random_container(draw: Draw, like: str = "") -> str:
    """Draw a container, usually of the same family as `like`."""
    family = draw.one("array", "array", "dense", "sparse", "frame", "frame")
    if like and draw.maybe(0.7):
        family = "sparse" if like in SPARSE else "frame" if like == "frame" else draw.one("array", "array", "dense")
    return draw.one(*SPARSE) if family == "sparse" else draw.one(*_DENSE) if family == "dense" else family


def fitting(values: Any, kinds: Sequence[str], middle: Any = None) -> Any:
    """Return numbers that columns of these kinds can hold: integers within range, or 0 or 1 (above the middle)."""
    columns = []
    for j, kind in enumerate(kinds):
        column = values[:, j]
        if kind not in _NO_NUMBERS:
            dtype, column = numpy_dtype(kind), column.astype(np.longdouble)
            if dtype.kind != "f":
                missing = np.isnan(column)
                if dtype.kind == "b":
                    column = column > (0.5 if middle is None else middle[j])
                else:
                    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
                    column = np.clip(np.rint(column), max(least, -(2.0**62)), min(most, 2.0**62))
                column = np.where(missing, np.nan if kind in _PANDAS else 0.0, column)
            column = column.astype(dtype if dtype.kind == "f" else np.float64)
        columns.append(column)
    if all(column.dtype.kind == "f" for column in columns):
        return np.column_stack(
            [column.astype(np.longdouble if "longdouble" in kinds else np.float64) for column in columns]
        )
    return np.column_stack([column.astype(object) for column in columns])


# --- rows to predict on


def edges_of(source: Any, n_columns: int) -> list[list[float]]:
    """Return, for each column of a source's rows, numbers in the source at which its parts may change their answers."""
    edges: list[list[float]] = [[0.0] for _ in range(n_columns)]
    for _, part in parts_of(source):
        for value in vars(part).values():
            of_columns: list[Any] = []
            if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype == object):
                of_columns = list(value) if not isinstance(value, np.ndarray) or value.ndim else []
            elif isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.shape[-1:] == (n_columns,):
                of_columns = list(value.reshape(-1, n_columns).T)
            elif isinstance(value, (int, float)):
                of_columns = [np.array([value])] * n_columns
            for edge, column in zip(edges, of_columns, strict=False) if len(of_columns) == n_columns else ():
                if isinstance(column, np.ndarray) and column.dtype.kind in "fiu":
                    edge += [x for x in np.asarray(column, np.float64).ravel().tolist() if np.isfinite(x)]
    return [edge[:: -(-len(edge) // _EDGES_PER_COLUMN)] for edge in edges]


def with_edges(draw: Draw, table: Table, edges: list[list[float]]) -> Table:
    """Return rows with some numbers on a source's edges, or next to them in the columns' own dtype."""
    values = table.values.copy()
    for i, j in np.ndindex(len(values), len(edges)):
        if j in table.numeric and draw.maybe(0.35):
            dtype = numpy_dtype(table.kinds[j]).newbyteorder("=")
            with np.errstate(all="ignore"):
                number = np.asarray(draw.one(*edges[j], *_SPECIAL[: 1 + len(edges[j]) // 4]))
                number = number.astype(dtype if dtype.kind == "f" else np.float64)
                to = draw.one(None, None, -np.inf, np.inf)
                values[i, j] = number if to is None else np.nextafter(number, number.dtype.type(to))
    return replace(table, values=fitting(values, table.kinds))


def changed(draw: Draw, table: Table) -> Table:
    """Return rows with a missing value, with a non-numeric cell, with other columns, or without column names."""
    width, names = len(table.kinds), table.names or tuple(f"y{j}" for j in range(len(table.kinds)))
    order, place = [int(k) for k in draw.rng.permutation(width)], draw.whole(0, width - 1)
    way = draw.one(
        *("hole", "hole", "cell", "less", "more"),
        *(["shuffled"] * 2 + ["renamed", "unnamed"] if table.names else ["named"]),
    )
    if way == "hole":
        values = table.values[: draw.whole(1, 2)].copy()
        values[-1, place] = draw.one(np.nan, np.inf, -np.inf) if place in table.numeric else np.nan
        return replace(table, values=fitting(values, table.kinds))
    if way == "cell" and table.container in ("array", "lists", "frame") and place in table.numeric:
        values, is_frame = table.values[: draw.whole(1, 2)].astype(object), table.container == "frame"
        values[-1, place] = draw.one(*CELLS)
        kinds = tuple("cells" if j == place or not is_frame else kind for j, kind in enumerate(table.kinds))
        return replace(table, values=values, kinds=kinds)
    if way == "unnamed":
        kinds = table.kinds if len(set(table.kinds)) == 1 and table.kinds[0] in _NUMPY else ("object",) * width
        return replace(table, container="array", kinds=kinds, names=None)
    if way == "named":
        return replace(table, container="frame", names=names)
    if way == "renamed":
        return replace(table, names=(*names[:place], "other", *names[place + 1 :]))
    columns = {
        "cell": range(width),
        "less": order[1:] or order,
        "more": [*order[:place], place, *range(width)][-width - 1 :],
        "shuffled": order,
    }
    other = table.take(columns=columns[way])
    return (
        replace(other, names=("more", *other.names[1:])) if way == "more" and other.names and draw.maybe(0.8) else other
    )


def random_tables(draw: Draw, source: Any, train: Table, rows: Any, middle: Any) -> list[Table]:
    """Return tables to predict: like the training rows, with other dtypes, containers or columns, or on edges."""
    asked = [replace(train, values=fitting(rows, train.kinds, middle))]
    edges, width = edges_of(source, len(train.kinds)), len(train.kinds)
    for _ in range(0 if train.container == "texts" else 3):
        container, kinds = train.container, train.kinds
        if len(train.numeric) == width:
            container = random_container(draw, container)
        if container != train.container or draw.maybe(0.7):
            several = random_kinds(draw, container, width)
            kinds = tuple(several[j] if j in train.numeric else kind for j, kind in enumerate(kinds))
        names = (train.names or tuple(f"y{j}" for j in range(width))) if container == "frame" else None
        table = Table(fitting(rows, kinds, middle), kinds, container, names)
        if draw.maybe(0.6):
            table = with_edges(draw, table.take(slice(12)), edges)
        asked.append(changed(draw, table) if draw.maybe(0.35) else table)
    return asked
