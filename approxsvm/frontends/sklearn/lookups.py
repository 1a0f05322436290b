"""Transformers of scikit-learn that look each value up: bins, thresholds, categories, missing values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, vstack

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frames.text_columns import NONE, UNKNOWN, TextColumn, is_na, is_nan, unknown_text
from approxsvm.frontends.sklearn.known_types import helper, name_of
from approxsvm.frontends.sklearn.support_vector_machines import require_fitted
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.steps import Affine
from approxsvm.ir.steps.table import GIVES_NAN, REFUSED, SAME, Steps, Table

Columns = list[tuple[int, Steps]]
# Categories that an encoder is asked about in one call: with an output of each, answers grow with the square of them.
_PROBED_TOGETHER: Final = 512


def _then(map_: InputMap, columns: Columns) -> InputMap:
    return map_.then_stage(Table.of(map_.n_features, columns))


def _binarizer(map_: InputMap, step: Any) -> InputMap:
    _check_are_numbers(map_)
    above = Steps.of([np.nextafter(float(step.threshold), np.inf)], [0.0, 1.0])
    return _then(map_, [(j, above) for j in range(map_.n_features)])


def _bins(map_: InputMap, step: Any) -> InputMap:
    require_fitted(step, "KBinsDiscretizer", "bin_edges_")
    _check_are_numbers(map_)
    if step.dtype is not None and np.dtype(step.dtype) != np.float64:
        raise UnsupportedModelError(f"it rounds to {np.dtype(step.dtype)}; refit it with dtype=np.float64")
    if step.encode != "ordinal":
        _check_encoder_of_bins(
            helper(step._encoder, "_encoder", "OneHotEncoder"), [len(e) - 1 for e in step.bin_edges_]
        )
    columns: Columns = []
    for j, given in enumerate(step.bin_edges_):
        edges = np.asarray(given, np.float64)
        n_bins = len(edges) - 1
        if not (edges[1:] >= edges[:-1]).all():
            raise ModelFormatError(f"the edges of column {j} do not ascend")
        # Of edges that are equal scikit-learn passes all at once.
        inner, first = np.unique(edges[1:-1][::-1], return_index=True)
        bins = np.append(0.0, n_bins - 1.0 - first)
        if step.encode == "ordinal":
            columns.append((j, Steps.of(inner, bins)))
        else:
            columns += [(j, Steps.of(inner, (bins == k).astype(np.float64))) for k in range(n_bins)]
    return _then(map_, columns)


def _check_encoder_of_bins(encoder: Any, counts: list[int]) -> None:
    """Raise ModelFormatError unless the encoder gives each bin its own column and does nothing else."""
    bins = np.minimum(np.arange(max(counts))[:, np.newaxis], np.array(counts) - 1.0)
    expected = np.hstack([bins[:, [j]] == np.arange(count) for j, count in enumerate(counts)])
    if not np.array_equal(_transformed(encoder, bins), expected):
        raise ModelFormatError(f"its _encoder is not one of {counts} bins")


def _imputer(map_: InputMap, step: Any) -> InputMap:
    require_fitted(step, "SimpleImputer", "statistics_")
    missing, statistics = step.missing_values, np.asarray(step.statistics_).tolist()
    filled_as = np.dtype(getattr(step, "_fill_dtype", np.float64))  # that of the rows it was fitted on
    columns: Columns = []
    for j, statistic in enumerate(statistics):
        if statistic is None or isinstance(statistic, str):
            map_, codes = _with_codes(map_, j, [text for text in (statistic, missing) if isinstance(text, str)])
            columns.append((j, _replaced_text(missing, codes, SAME, NONE if statistic is None else codes[statistic])))
            continue
        number = _as_number(statistic)
        if number is None:
            raise UnsupportedModelError(f"it puts in {statistic!r}, which is no number and no text")
        if np.isnan(number) and step.keep_empty_features:
            raise UnsupportedModelError(f"it puts NaN into column {j}")
        if not np.isnan(number):
            number = float(filled_as.type(number)) if filled_as.kind in "fiu" else number
            _check_is_no_text(map_, j)
            columns.append((j, _replaced(missing, [SAME], number)))
    if step.add_indicator:
        map_, marks = _marks(map_, helper(step.indicator_, "indicator_", "MissingIndicator"))
        columns += marks
    if is_nan(missing):
        # Columns that were empty are left out: nobody looks at them.
        used = sorted({j for j, _ in columns})
        return _then(map_.then_select(used), [(used.index(j), steps) for j, steps in columns])
    return _then(map_, columns)


def _indicator(map_: InputMap, step: Any) -> InputMap:
    require_fitted(step, "MissingIndicator", "features_")
    map_, columns = _marks(map_, step)
    if step.features == "all" or not step.error_on_new:
        return _then(map_, columns)
    new = sorted(set(range(map_.n_features)) - {j for j, _ in columns})
    if is_nan(step.missing_values):
        return _then(replace(map_, checked=map_.then_select(new).looked_at(takes_nan=False).checked), columns)
    guards = [(j, _replaced(step.missing_values, [0.0], REFUSED)) for j in new]
    return _then(map_, [*columns, *guards]).then_select(np.arange(len(columns)))


def _marks(map_: InputMap, step: Any) -> tuple[InputMap, Columns]:
    some = step.features == "missing-only" and len(step.features_) < step._n_features
    missing = step.missing_values
    columns: Columns = []
    for j in map(int, step.features_ if some else range(step._n_features)):
        if isinstance(missing, str):
            map_, codes = _with_codes(map_, j, [missing])
        if isinstance(missing, str) or _raw_text(map_, j) in map_.texts:
            columns.append((j, _replaced_text(missing, codes if isinstance(missing, str) else {}, 0.0, 1.0)))
        else:
            columns.append((j, _replaced(missing, [0.0], 1.0)))
    return map_, columns


def _check_as_source(map_: InputMap) -> None:
    """Refuse to look for equal numbers where a step in front rounds otherwise than the source."""
    if not all(stage.as_source for stage in map_.stages):
        raise UnsupportedModelError(
            "it looks for equal numbers, and a step in front of it is not replayed bit for bit: which are is chance"
        )


def _replaced(missing: Any, otherwise: list[float], number: float) -> Steps:
    """`number` in place of what is missing."""
    if isinstance(missing, (bool, str)) or not isinstance(missing, (int, float, np.number)):
        raise UnsupportedModelError(f"{missing!r} is missing for it, which is no number")
    if np.isnan(missing):
        return Steps.of([], otherwise, number)
    return Steps.equal([float(missing)], [number], otherwise[0])


# --- texts


def _replaced_text(missing: Any, codes: Mapping[str, float], otherwise: float, number: float) -> Steps:
    """`number` in place of a text, or of None or NaN, that is missing."""
    if isinstance(missing, str):
        return Steps.equal([codes[missing]], [number], otherwise)
    if missing is None:
        return Steps.equal([NONE], [number], otherwise)
    if is_nan(missing):
        return Steps.of([], [otherwise], number)
    if is_na(missing):  # pandas.NA: pandas.isna decides for it, of which None and NaN are, too
        return Steps.equal([NONE], [number], otherwise, number)
    raise UnsupportedModelError(f"{missing!r} is missing for it, in a column of texts")


def _raw_text(map_: InputMap, feature: int) -> int | None:
    """The raw column whose values a feature holds, as they are or with other texts for missing ones."""
    for stage in reversed(map_.stages):
        if isinstance(stage, Table) and (stage.steps[feature].values == SAME).any():
            feature = int(stage.source[feature])
        elif not (isinstance(stage, Affine) and stage.leaves(feature)):
            return None
    return int(map_.columns[feature])


def _with_codes(map_: InputMap, feature: int, texts: Iterable[str]) -> tuple[InputMap, dict[str, float]]:
    """The map with these texts known in a feature, and the code of each there."""
    column = _raw_text(map_, feature)
    known = None if column is None else map_.texts.get(column)
    if column is None or (known is None and not _is_raw(map_, feature)):
        raise UnsupportedModelError(f"a step before it has changed column {feature}, whose values are texts")
    new = (known or TextColumn()).with_texts(texts)
    if known is None or known.texts != new.texts:
        map_ = map_.with_texts({**map_.texts, column: new})
    return map_, {text: float(k) for k, text in enumerate(new.texts)}


def _fitted_on_none(map_: InputMap, feature: int) -> InputMap:
    """The map, None being the missing value of this column: the source was fitted with it, whatever becomes of NaN."""
    column = _raw_text(map_, feature)
    if column is None:
        return map_
    return replace(map_, texts={**map_.texts, column: replace(map_.texts[column], null=NONE)})


def _is_raw(map_: InputMap, feature: int) -> bool:
    """Whether nothing has changed a feature."""
    for stage in reversed(map_.stages):
        if isinstance(stage, Table):
            steps = stage.steps[feature]
            if len(steps.edges) or steps.values[0] != SAME or steps.nan != SAME:
                return False
            feature = int(stage.source[feature])
    return True


def _check_is_no_text(map_: InputMap, feature: int) -> None:
    column = _raw_text(map_, feature)
    if column is not None and column in map_.texts:
        raise UnsupportedModelError(f"it takes numbers in column {feature}, where a step before it takes texts")


def _check_are_numbers(map_: InputMap) -> None:
    """Raise UnsupportedModelError if a feature holds texts: codes of these are not what a step of numbers takes."""
    for j in range(map_.n_features):
        _check_is_no_text(map_, j)


def finished(map_: InputMap) -> InputMap:
    """The map of a whole pipeline: codes of texts have been looked up, and NaN that nothing replaces is refused."""
    stages = list(map_.stages)
    for k, stage in enumerate(stages):
        if isinstance(stage, Table) and stage.gives_nan:
            if any(isinstance(behind, Table) for behind in stages[k + 1 :]):
                raise UnsupportedModelError("unknown categories become NaN, which a step further behind replaces")
            stages[k] = stage.refusing_nan()
    map_ = replace(map_, stages=tuple(stages))
    known = {}
    for column, texts in map_.texts.items():
        if column not in map_.columns:
            continue
        for k in np.flatnonzero(map_.columns == column).tolist():
            _check_is_looked_up(map_, k)
        nan, none, unknown = (map_.reached(column, code) for code in (np.nan, NONE, UNKNOWN))
        # The source knows its own missing value: a step replaces it, or it is a category. Where it knows neither, and
        # refuses NaN alone, a null is refused: pandas makes NaN of it or None, by its version.
        knows_none = not np.isnan(none).any() and none != unknown
        knows_nan = not np.isnan(nan).any() and nan != unknown
        known[column] = replace(texts, null=NONE if (knows_none and not knows_nan) or texts.null == NONE else np.nan)
    # Of texts that nothing is made of nothing is refused.
    checked = {column: takes_nan for column, takes_nan in map_.checked.items() if column not in map_.texts}
    return replace(map_, texts=known, checked=checked)


def _check_is_looked_up(map_: InputMap, column: int) -> None:
    """Raise UnsupportedModelError where codes of texts get as far as a step that computes with numbers."""
    features = {column}
    for stage in map_.stages:
        if isinstance(stage, Table):
            kept = [k for k, steps in enumerate(stage.steps) if (steps.values == SAME).any()]
            features = {k for k in kept if int(stage.source[k]) in features}
        elif not (isinstance(stage, Affine) and all(stage.leaves(j) for j in features)):
            break
    else:
        if not features:
            return
    if features:
        raise UnsupportedModelError(f"texts of column {int(map_.columns[column])} are not looked up by any encoder")


# --- categories


def _encoder(map_: InputMap, step: Any) -> InputMap:
    """Numbers or texts: the encoder itself says what becomes of each, and of one that it does not know."""
    kind = name_of(step)
    require_fitted(step, kind, "categories_")
    tables = []
    for j, given in enumerate(step.categories_):
        map_, found = _categories(map_, j, np.asarray(given).tolist())
        tables.append(found)
    are_numbers = all(np.asarray(given).dtype.kind in "fiub" for given in step.categories_)
    _check_as_source(map_)
    base = np.array([[found.values[0] for found in tables]], np.float64 if are_numbers else object)
    widths = _widths(step, kind, base)
    at_base = _transformed(step, base)
    ends = np.cumsum([0, *widths]).tolist()
    columns: Columns = []
    guards: list[int] = []
    for j, found in enumerate(tables):
        block = slice(ends[j], ends[j + 1])
        parts = []
        for first in range(0, len(found.values), _PROBED_TOGETHER):
            probed = np.repeat(base, len(found.values[first : first + _PROBED_TOGETHER]), axis=0)
            probed[:, j] = found.values[first : first + _PROBED_TOGETHER]
            made = _transformed(step, probed)
            if not (np.delete(made, block, axis=1) == np.delete(at_base, block, axis=1)).all():
                raise ModelFormatError(
                    f"what it makes of column {j} is not in columns {block.start} to {block.stop - 1}"
                )
            parts.append(csc_array(made[:, block] if widths[j] else np.zeros((len(made), 1))))
        own = _steps_of(found, vstack(parts, format="csc"), partial(_tried, step, base, j, block))
        if not widths[j]:  # nothing comes out, but what the encoder refuses is refused
            guards.append(len(columns))
        columns += [(j, steps) for steps in own]
    whole = _then(map_, columns)
    return whole.then_select(np.setdiff1d(np.arange(len(columns)), guards)) if guards else whole


def _steps_of(found: _Categories, made: csc_array[Any], tried: Callable[[Any], npt.NDArray[Any]]) -> list[Steps]:
    """Of each output of a column what the encoder makes of its categories, and of all else; 0 where it has none."""
    # NaN that comes out is for an imputer behind (unknown_value, encoded_missing_value).
    made.data[np.isnan(made.data)] = GIVES_NAN
    numbers, unknown = np.array(found.numbers), tried(found.unknown)
    nan_rows = np.flatnonzero(np.isnan(numbers))
    nan = made[nan_rows[:1]].toarray()[0] if len(nan_rows) else tried(found.missing)
    nan = np.where(nan == GIVES_NAN, SAME, nan)
    if found.are_texts and NONE not in numbers:
        numbers = np.append(numbers, NONE)
        made = vstack([made, csc_array(tried(None)[np.newaxis])], format="csc")
    ascending = numbers.argsort()[: len(numbers) - len(nan_rows)]  # NaN is last
    numbers = numbers[ascending]
    steps = []
    for k in range(made.shape[1]):
        known = made[:, [k]].toarray().ravel()[ascending]
        # Unknown categories are refused by the first output alone: tables would grow with the square of them.
        otherwise = float(unknown[k]) if k == 0 or not np.isnan(unknown[k]) else _most_frequent(known)
        values = known if k == 0 else np.where(np.isnan(known), otherwise, known)
        odd = values != otherwise
        steps.append(Steps.equal(numbers[odd], values[odd], otherwise, float(nan[k])))
    return steps


class _Categories(NamedTuple):
    """Of one column: what stands for each category in rows, the category itself, and a value that is none of them.

    `missing` is what the encoder gets where a row has NaN.
    """

    numbers: list[float]
    values: list[Any]
    unknown: Any
    are_texts: bool
    missing: Any = np.nan


def _categories(map_: InputMap, j: int, values: list[Any]) -> tuple[InputMap, _Categories]:
    texts = [value for value in values if isinstance(value, str)]
    if texts:
        map_, codes = _with_codes(map_, j, texts)
        if None in values and not any(map(is_nan, values)):
            map_ = _fitted_on_none(map_, j)
        odd = [value for value in values if not (isinstance(value, str) or value is None or is_nan(value))]
        if odd:
            raise UnsupportedModelError(f"{odd[0]!r} is a category of column {j} beside texts")
        numbers = [NONE if value is None else codes[value] if isinstance(value, str) else np.nan for value in values]
        return map_, _Categories(numbers, values, unknown_text(texts), True)
    map_, missing = _imputed_numbers(map_, j)
    _check_is_no_text(map_, j)
    numbers = []
    for value in values:
        number = np.nan if value is None else _as_number(value)
        if number is None:
            raise UnsupportedModelError(f"{value!r} is a category of column {j}, which is no number and no text")
        numbers.append(number)
    if sum(number != number for number in numbers) > 1:
        raise UnsupportedModelError(f"None and NaN are two categories of column {j}; refit it with one of them")
    pairs = zip(numbers, values, strict=True)
    if any(number != value for number, value in pairs if value is not None and number == number):
        raise UnsupportedModelError(f"a category of column {j} is no float64")
    unknown = next(k + 0.5 for k in range(len(numbers) + 1) if k + 0.5 not in numbers)
    return map_, _Categories(numbers, values, unknown, False, missing)


def _imputed_numbers(map_: InputMap, feature: int) -> tuple[InputMap, Any]:
    """The map, and the text that an imputer puts in place of missing numbers of a feature, which stay NaN here."""
    column, at = _raw_text(map_, feature), feature
    texts = () if column is None or column not in map_.texts else map_.texts[column].texts
    for k in reversed(range(len(map_.stages) if len(texts) == 1 else 0)):
        stage = map_.stages[k]
        if not isinstance(stage, Table):
            continue
        steps = list(stage.steps)
        if not len(steps[at].edges) and steps[at].nan == 0.0:  # the code of that text, and all else as it is
            steps[at] = Steps.of([], [SAME], SAME)
            stages = (*map_.stages[:k], replace(stage, steps=tuple(steps)), *map_.stages[k + 1 :])
            others = {j: known for j, known in map_.texts.items() if j != column}
            return replace(map_, stages=stages, texts=others), texts[0]
        at = int(stage.source[at])
    return map_, np.nan


def _most_frequent(values: npt.NDArray[np.float64]) -> float:
    found, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return float(found[counts.argmax()])


def _as_number(value: Any) -> float | None:
    """Of a value of scikit-learn's arrays, which may hold objects; None of one that is no number."""
    return float(value) if isinstance(value, (int, float, np.number, np.bool_)) else None


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


def _tried(step: Any, base: Any, j: int, block: slice, value: Any) -> npt.NDArray[np.float64]:
    """What becomes of a value in column j: REFUSED where the encoder refuses it; 0 where nothing comes out of it."""
    width = max(block.stop - block.start, 1)
    rows = base.astype(object) if value is None or isinstance(value, str) else base.copy()
    rows[0, j] = value
    try:
        found = _transformed(step, rows)[0, block]
    except (ValueError, TypeError):
        return np.full(width, REFUSED)
    found = found if len(found) else np.zeros(1)
    return np.where(np.isnan(found), GIVES_NAN, found)


def _transformed(step: Any, rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
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
