"""Transformers of scikit-learn that look each number up: bins, thresholds, categories, missing values."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.model.input_map import InputMap
from approxsvm.model.steps.table import REFUSED, SAME, Steps, Table
from approxsvm.readers.sklearn.known_types import class_name, name_of
from approxsvm.readers.sklearn.support_vector_machines import require_fitted

Columns = list[tuple[int, Steps]]


def _then(map_: InputMap, columns: Columns) -> InputMap:
    return map_.then_stage(Table.of(map_.n_features, columns))


def _binarizer(map_: InputMap, step: Any) -> InputMap:
    above = Steps.of([np.nextafter(float(step.threshold), np.inf)], [0.0, 1.0])
    return _then(map_, [(j, above) for j in range(map_.n_features)])


def _bins(map_: InputMap, step: Any) -> InputMap:
    require_fitted(step, "KBinsDiscretizer", "bin_edges_")
    if step.dtype is not None and np.dtype(step.dtype) != np.float64:
        raise UnsupportedModelError(f"it rounds to {np.dtype(step.dtype)}; refit it with dtype=np.float64")
    columns: Columns = []
    for j, given in enumerate(step.bin_edges_):
        edges = np.asarray(given, np.float64)
        n_bins = len(edges) - 1
        if not (edges[1:] >= edges[:-1]).all():
            raise ModelFormatError(f"the edges of column {j} do not ascend")
        if step.encode != "ordinal" and not np.array_equal(step._encoder.categories_[j], np.arange(n_bins)):
            raise ModelFormatError(f"its encoder knows other bins of column {j} than 0 to {n_bins - 1}")
        # Of edges that are equal scikit-learn passes all at once.
        inner, first = np.unique(edges[1:-1][::-1], return_index=True)
        bins = np.append(0.0, n_bins - 1.0 - first)
        if step.encode == "ordinal":
            columns.append((j, Steps.of(inner, bins)))
        else:
            columns += [(j, Steps.of(inner, (bins == k).astype(np.float64))) for k in range(n_bins)]
    return _then(map_, columns)


def _imputer(map_: InputMap, step: Any) -> InputMap:
    require_fitted(step, "SimpleImputer", "statistics_")
    numbers = _as_numbers(step.statistics_)
    if numbers is None:
        raise UnsupportedModelError(f"it puts in {step.statistics_[0]!r}, which is no number")
    if step.keep_empty_features and np.isnan(numbers).any():
        raise UnsupportedModelError(f"it puts NaN into column {int(np.flatnonzero(np.isnan(numbers))[0])}")
    columns = [
        (j, _replaced(step.missing_values, [SAME], number)) for j, number in enumerate(numbers) if not np.isnan(number)
    ]
    if step.add_indicator:
        columns += _marks(step.indicator_)
    if isinstance(step.missing_values, float) and np.isnan(step.missing_values):
        # Columns that were empty are left out: nobody looks at them.
        used = sorted({j for j, _ in columns})
        return _then(map_.then_select(used), [(used.index(j), steps) for j, steps in columns])
    return _then(map_, columns)


def _indicator(map_: InputMap, step: Any) -> InputMap:
    require_fitted(step, "MissingIndicator", "features_")
    return _then(map_, _marks(step))


def _marks(step: Any) -> Columns:
    if name_of(step) != "MissingIndicator":
        raise UnsupportedModelError(f"its indicator is a {class_name(step)}")
    some = step.features == "missing-only" and len(step.features_) < step._n_features
    features = step.features_ if some else range(step._n_features)
    return [(int(j), _replaced(step.missing_values, [0.0], 1.0)) for j in features]


def _replaced(missing: Any, otherwise: list[float], number: float) -> Steps:
    """`number` in place of what is missing."""
    if isinstance(missing, (bool, str)) or not isinstance(missing, (int, float, np.number)):
        raise UnsupportedModelError(f"{missing!r} is missing for it, which is no number")
    if np.isnan(missing):
        return Steps.of([], otherwise, number)
    return Steps.equal([float(missing)], [number], otherwise[0])


def _encoder(map_: InputMap, step: Any) -> InputMap:
    """Categories that are numbers: the encoder itself says what becomes of each, and of one that it does not know."""
    kind = name_of(step)
    require_fitted(step, kind, "categories_")
    tables = [_numbers(categories, kind, j) for j, categories in enumerate(step.categories_)]
    base = np.array([[numbers[0] for numbers in tables]])
    widths = _widths(step, kind, base)
    at_base = _transformed(step, base)
    columns: Columns = []
    first = 0
    for j, numbers in enumerate(tables):
        block = slice(first, first + widths[j])
        first += widths[j]
        rows = np.repeat(base, len(numbers), axis=0)
        rows[:, j] = numbers
        found = _transformed(step, rows)
        if not (np.delete(found, block, axis=1) == np.delete(at_base, block, axis=1)).all():
            raise ModelFormatError(f"what it makes of column {j} is not in columns {block.start} to {block.stop - 1}")
        known = found[:, block]
        unknown = _of_unknown(step, base, j, numbers, block)
        is_nan = np.isnan(numbers)
        nan = known[is_nan][0] if is_nan.any() else _of_nan(step, base, j, block)
        if is_nan.any():
            nan = np.where(np.isnan(nan), SAME, nan)  # encoded_missing_value=nan: for an imputer behind
        known, numbers = known[~is_nan], numbers[~is_nan]
        for k in range(known.shape[1]):
            # Unknown categories are refused by the first output alone: tables would grow with the square of them.
            otherwise = float(unknown[k]) if k == 0 or not np.isnan(unknown[k]) else _most_frequent(known[:, k])
            odd = known[:, k] != otherwise
            columns.append((j, Steps.equal(numbers[odd], known[odd, k], otherwise, float(nan[k]))))
    return _then(map_, columns)


def _most_frequent(values: npt.NDArray[np.float64]) -> float:
    found, counts = np.unique(values, return_counts=True)
    return float(found[counts.argmax()])


def _numbers(categories: Any, kind: str, column: int) -> npt.NDArray[np.float64]:
    numbers = _as_numbers(categories)
    if numbers is None:
        raise UnsupportedModelError(
            f"the categories of column {column} are text; put the codes of an OrdinalEncoder into the table, and fit a "
            f"pipeline whose {kind} takes these"
        )
    pairs = zip(numbers.tolist(), np.asarray(categories).tolist(), strict=True)
    if any(number != category for number, category in pairs if number == number):
        raise UnsupportedModelError(f"a category of column {column} is no float64")
    return numbers


def _as_numbers(values: Any) -> npt.NDArray[np.float64] | None:
    """Of scikit-learn's arrays, which may hold objects; None where one of these is no number."""
    given = np.asarray(values)
    if given.dtype.kind == "O" and all(isinstance(value, (int, float, np.number)) for value in given.tolist()):
        given = given.astype(np.float64)
    return given.astype(np.float64) if given.dtype.kind in "fiub" else None


def _widths(step: Any, kind: str, base: npt.NDArray[np.float64]) -> list[int]:
    """Columns that come out for each column that goes in."""
    if kind == "OneHotEncoder":
        mappings = getattr(step, "_default_to_infrequent_mappings", None)
        if step._infrequent_enabled and len(mappings or ()) != base.shape[1]:
            raise ModelFormatError(f"it groups infrequent categories of {len(mappings or ())} columns")
        return [int(n) for n in step._n_features_outs]
    if kind == "TargetEncoder" and len(step.encodings_) != base.shape[1]:
        raise UnsupportedModelError(f"it has {len(step.encodings_)} encodings of {base.shape[1]} columns")
    n_outputs = _transformed(step, base).shape[1]
    if n_outputs != base.shape[1]:
        raise UnsupportedModelError(f"it makes {n_outputs} columns of {base.shape[1]}")
    return [1] * n_outputs


def _of_unknown(step: Any, base: Any, j: int, numbers: Any, block: slice) -> npt.NDArray[np.float64]:
    """What becomes of a number that is no category; REFUSED where the encoder refuses."""
    unknown = next(k + 0.5 for k in range(len(numbers) + 1) if k + 0.5 not in numbers)
    return _tried(step, base, j, unknown, block)


def _of_nan(step: Any, base: Any, j: int, block: slice) -> npt.NDArray[np.float64]:
    return _tried(step, base, j, np.nan, block)


def _tried(step: Any, base: Any, j: int, number: float, block: slice) -> npt.NDArray[np.float64]:
    rows = base.copy()
    rows[0, j] = number
    try:
        return _transformed(step, rows)[0, block]
    except ValueError:
        return np.full(block.stop - block.start, REFUSED)


def _transformed(step: Any, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unknown categories, and of columns without names
        found = step.transform(rows)
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found, np.float64)


FOLDERS: Final[dict[str, Callable[[InputMap, Any], InputMap]]] = {
    "Binarizer": _binarizer,
    "KBinsDiscretizer": _bins,
    "MissingIndicator": _indicator,
    "OneHotEncoder": _encoder,
    "OrdinalEncoder": _encoder,
    "SimpleImputer": _imputer,
    "TargetEncoder": _encoder,
}
