"""Random rows and targets of many scales, types and containers, for benchmarks/reader_attack.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import csc_matrix, csr_array

T = TypeVar("T")
FloatArray = npt.NDArray[np.float64]


class Draw:
    """Random choices, all from one seed."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, *options: T) -> T:
        """One of these."""
        return options[int(self.rng.integers(len(options)))]

    def maybe(self, share: float) -> bool:
        """Whether something that happens in this share of the cases does."""
        return bool(self.rng.random() < share)

    def whole(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def power(self, low: float, high: float) -> float:
        """Ten to some power between these."""
        return float(10.0 ** self.rng.uniform(low, high))

    def some(self, things: Sequence[T], least: int = 0) -> list[T]:
        """Some of these, in random order."""
        count = self.whole(min(least, len(things)), len(things))
        return [things[int(k)] for k in self.rng.permutation(len(things))[:count]]


@dataclass(frozen=True, eq=False)
class Data:
    """Rows to train on and to predict."""

    # In the same container
    X: Any
    rows: Any
    matrix: FloatArray  # (n_rows, n_features): the numbers of X, those of its columns that are numbers
    names: list[str] | None  # of these columns, where X is a data frame
    has_strangers: bool  # whether X has columns besides that are no finite numbers
    form: str  # what X is, in words


def random_data(draw: Draw) -> Data:
    """Rows of any kind."""
    n_rows, n_features = draw.whole(18, 60), draw.whole(1, 6)
    matrix = _matrix(draw, n_rows, n_features)
    picked = draw.rng.integers(n_rows, size=draw.whole(8, 40))
    jitter = draw.one(0.0, 0.1, 0.5, 3.0, 3.0, 1e4) * matrix.std(axis=0)
    near = matrix[picked] + jitter * draw.rng.normal(size=(len(picked), n_features))
    rows = np.vstack([matrix, np.abs(near) if (matrix > 0).all() else near])
    form = draw.one(*(name for name, share in _FORMS.items() for _ in range(share)))
    narrowed = _NUMBERS.get(form, _as_they_are)
    matrix, rows = narrowed(matrix), narrowed(rows)
    if form in ("float32", "booleans"):  # the fit is in float32 or float16; scikit-learn predicts float64 as float64
        rows = rows.astype(np.float64)
    if "frame" not in form:
        make = _CONTAINERS.get(form, _as_they_are)
        return Data(make(matrix.copy()), make(rows.copy()), matrix.astype(np.float64), None, False, form)
    if form in ("frame with numbers as names", "frame with a name twice"):
        columns: list[Any] = [int(k) for k in draw.rng.permutation(n_features)]
        if form == "frame with a name twice":
            columns = [f"x{k // 2}" for k in range(n_features)]
        frames = [pd.DataFrame(part, columns=columns) for part in (matrix, rows)]
        return Data(frames[0], frames[1], matrix, None, False, form)
    names = [draw.one("x{}", "größe {}", "a b{}", "{}").format(j) for j in range(n_features)]
    frames = [pd.DataFrame(part, columns=names) for part in (matrix, rows)]
    if form == "frame of mixed types":
        kinds = {name: draw.one(np.float32, "Float64", object, np.float64) for name in names}
        frames = [frame.astype(kinds) for frame in frames]
        matrix = frames[0].to_numpy(np.float64)
        frames[1] = frames[1].astype({name: np.float64 for name, kind in kinds.items() if kind is np.float32})
    strangers = form == "frame with strangers"
    if strangers:
        order = [int(k) for k in draw.rng.permutation(n_features + 3)]
        frames = [_with_strangers(frame, order) for frame in frames]
    return Data(frames[0], frames[1], matrix.astype(np.float64), names, strangers, form)


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


def _as_they_are(values: Any) -> Any:
    return values


def _read_only(values: Any) -> Any:
    values.setflags(write=False)
    return values


def _with_strangers(frame: Any, order: list[int]) -> Any:
    """The same with a column of text, one of NaN and infinity, and one of dates, anywhere."""
    n = len(frame)
    strange = {
        "text": np.resize(np.array(["ab", "c", ""], dtype=object), n),
        "holes": np.resize(np.array([np.nan, np.inf, 1.0, -np.inf]), n),
        "date": pd.date_range("2020-01-01", periods=n),
    }
    whole = frame.assign(**strange)
    return whole[[whole.columns[k] for k in order]]


# Containers, by how often they come.
_FORMS = {
    "float64": 6,
    "Fortran order": 1,
    "not contiguous": 1,
    "read-only": 1,
    "float32": 1,
    "integers": 1,
    "booleans": 1,
    "lists": 1,
    "CSR": 2,
    "CSC": 1,
    "frame": 3,
    "frame of mixed types": 1,
    "frame with numbers as names": 1,
    "frame with a name twice": 1,
    "frame with strangers": 2,
}
_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "float32": lambda values: values.astype(np.float32),
    "integers": lambda values: np.clip(np.rint(3 * values), -(2**40), 2**40).astype(np.int64),
    "booleans": lambda values: values > np.median(values),
}
_CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "Fortran order": np.asfortranarray,
    "not contiguous": lambda values: np.repeat(values, 2, axis=1)[:, ::2],
    "read-only": _read_only,
    "lists": lambda values: values.tolist(),
    "CSR": csr_array,
    "CSC": csc_matrix,
}

# Names of classes: whole numbers, text, booleans, and what is beyond int64.
_LABELS: tuple[Sequence[Any], ...] = (
    [0, 1, 2, 3],
    [-1, 1, 0, 7],
    [-(2**62), 5, 2**62, 3],
    ["b", "a", "C", "Ä\u0301"],
    ["10", "9", "", "1e3"],
    ["x", "x ", " x", "x y"],
    [2.0, -1.0, 0.0, 1e6],
)


def random_labels(draw: Draw, matrix: FloatArray, n_classes: int) -> Any:
    """Labels of some odd type, each at least five times."""
    z = (matrix - matrix.mean(axis=0)) / (matrix.std(axis=0) + 1e-300)
    score = np.sin(z).sum(axis=1) + 0.3 * z[:, 0] ** 2 + 0.5 * draw.rng.normal(size=len(z))
    codes = np.argsort(np.argsort(score)) * n_classes // len(score)
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
    """Values of some scale; of shape (n_rows, n_targets) where that is not 0."""
    z = (matrix - matrix.mean(axis=0)) / (matrix.std(axis=0) + 1e-300)
    phases = draw.rng.normal(size=max(n_targets, 1))
    y = np.column_stack([np.sin(z + phase).sum(axis=1) for phase in phases])
    y = draw.one(0.0, 100.0, -1e6) + draw.one(1.0, 1e-6, 300.0) * (y + 0.1 * draw.rng.normal(size=y.shape))
    if draw.maybe(0.03):
        y[:] = 5.0
    if n_targets == 0:
        return draw.one(y[:, 0], y[:, 0], y[:, 0].tolist(), pd.Series(y[:, 0]), y[:, 0].astype(np.float32))
    return y
