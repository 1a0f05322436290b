"""scikit-learn transformers that become lookups: bins, thresholds, categories, missing values."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, vstack

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frames.text_columns import NONE, UNKNOWN, TextColumn, is_na, is_nan, unknown_text
from approxsvm.frontends.sklearn.steps.dtype_rules import (
    F64,
    FLOATS,
    OBJECT,
    WIDE,
    Behaviour,
    DType,
    checked_dtype,
)
from approxsvm.frontends.sklearn.steps.record import OTHER_DTYPE, OVERWRITES, Step, gives_sparse_as_asked, keeps_sparse
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.ops import Affine
from approxsvm.ir.ops.lookup import GIVES_NAN, REFUSED, SAME, Lookup, Steps

Columns = list[tuple[int, Steps]]
# Number of categories that an encoder transforms per call; with one output per category, memory use grows with its
# square.
_PROBED_PER_CALL: Final = 512


def _then(map_: InputMap, columns: Columns) -> InputMap:
    return map_.then_op(Lookup.of(map_.n_features, columns))


def _binarizer(map_: InputMap, step: Any) -> InputMap:
    _check_are_numbers(map_)
    above = Steps.of([np.nextafter(float(step.threshold), np.inf)], [0.0, 1.0])
    return _then(map_, [(j, above) for j in range(map_.n_features)])


def _bins(map_: InputMap, step: Any) -> InputMap:
    _check_are_numbers(map_)
    if step.dtype is not None and np.dtype(step.dtype) != np.float64:
        raise UnsupportedModelError(f"it rounds to {np.dtype(step.dtype)}; refit it with dtype=np.float64")
    counts = [len(edges) - 1 for edges in step.bin_edges_]
    if step.encode != "ordinal":
        _check_encoder_of_bins(step._encoder, counts)
    columns: Columns = []
    for j, given in enumerate(step.bin_edges_):
        edges = np.asarray(given, np.float64)
        n_bins = len(edges) - 1
        if not (edges[1:] >= edges[:-1]).all():
            raise ModelFormatError(f"the edges of column {j} do not ascend")
        # In scikit-learn, a value equal to several edges is in the bin above the last of them.
        inner, first = np.unique(edges[1:-1][::-1], return_index=True)
        bins = np.append(0.0, n_bins - 1.0 - first)
        if step.encode == "ordinal":
            columns.append((j, Steps.of(inner, bins)))
        else:
            columns += [(j, Steps.of(inner, (bins == k).astype(np.float64))) for k in range(n_bins)]
    return _then(map_, columns)


def _check_encoder_of_bins(encoder: Any, counts: list[int]) -> None:
    """Raise ModelFormatError unless the encoder maps each bin to a separate column and does nothing else."""
    bins = np.minimum(np.arange(max(counts))[:, np.newaxis], np.array(counts) - 1.0)
    expected = np.hstack([bins[:, [j]] == np.arange(count) for j, count in enumerate(counts)])
    if not np.array_equal(_transformed(encoder, bins), expected):
        raise ModelFormatError(f"its _encoder is not one of {counts} bins")


def _imputer(map_: InputMap, step: Any) -> InputMap:
    missing, statistics = step.missing_values, np.asarray(step.statistics_).tolist()
    filled_as = np.dtype(getattr(step, "_fill_dtype", np.float64))  # dtype of the training rows
    columns: Columns = []
    for j, statistic in enumerate(statistics):
        if statistic is None or isinstance(statistic, str):
            map_, codes = _with_codes(map_, j, [text for text in (statistic, missing) if isinstance(text, str)])
            columns.append(
                (j, _text_replacement(missing, codes, SAME, NONE if statistic is None else codes[statistic]))
            )
            continue
        number = _as_number(statistic)
        if number is None:
            raise UnsupportedModelError(f"it fills in {statistic!r}, which is neither a number nor a text")
        if np.isnan(number) and step.keep_empty_features:
            raise UnsupportedModelError(f"it fills NaN into column {j}")
        if not np.isnan(number):
            number = float(filled_as.type(number)) if filled_as.kind in "fiu" else number
            _check_is_no_text(map_, j)
            columns.append((j, _replacement(missing, [SAME], number)))
    if step.add_indicator:
        map_, marks = _marks(map_, step.indicator_)
        columns += marks
    if is_nan(missing):
        # Columns that were empty in training are dropped without a check.
        used = sorted({j for j, _ in columns})
        return _then(map_.then_select(used), [(used.index(j), steps) for j, steps in columns])
    return _then(map_, columns)


def _indicator(map_: InputMap, step: Any) -> InputMap:
    map_, columns = _marks(map_, step)
    if step.features == "all" or not step.error_on_new:
        return _then(map_, columns)
    new = sorted(set(range(map_.n_features)) - {j for j, _ in columns})
    if is_nan(step.missing_values):
        return _then(replace(map_, checked=map_.then_select(new).looked_at(takes_nan=False).checked), columns)
    guards = [(j, _replacement(step.missing_values, [0.0], REFUSED)) for j in new]
    return _then(map_, [*columns, *guards]).then_select(np.arange(len(columns)))


def _marks(map_: InputMap, step: Any) -> tuple[InputMap, Columns]:
    some = step.features == "missing-only" and len(step.features_) < step._n_features
    missing = step.missing_values
    columns: Columns = []
    for j in map(int, step.features_ if some else range(step._n_features)):
        if isinstance(missing, str):
            map_, codes = _with_codes(map_, j, [missing])
        if isinstance(missing, str) or _raw_text(map_, j) in map_.texts:
            columns.append((j, _text_replacement(missing, codes if isinstance(missing, str) else {}, 0.0, 1.0)))
        else:
            columns.append((j, _replacement(missing, [0.0], 1.0)))
    return map_, columns


def _check_as_source(map_: InputMap) -> None:
    """Reject an equality comparison after a step that rounds differently from the source."""
    if not all(op.as_source for op in map_.ops):
        raise UnsupportedModelError(
            "it compares numbers for equality, but a step before it is not replayed bit for bit"
        )


def _replacement(missing: Any, otherwise: list[float], number: float) -> Steps:
    """Return a step function that replaces the missing value with `number`."""
    if isinstance(missing, (bool, str)) or not isinstance(missing, (int, float, np.number)):
        raise UnsupportedModelError(f"its missing value is {missing!r}, which is not a number")
    if np.isnan(missing):
        return Steps.of([], otherwise, number)
    return Steps.equal([float(missing)], [number], otherwise[0])


def _text_replacement(missing: Any, codes: Mapping[str, float], otherwise: float, number: float) -> Steps:
    """Return a step function that replaces the missing value of a string column with `number`."""
    if isinstance(missing, str):
        return Steps.equal([codes[missing]], [number], otherwise)
    if missing is None:
        return Steps.equal([NONE], [number], otherwise)
    if is_nan(missing):
        return Steps.of([], [otherwise], number)
    if is_na(missing):  # for pandas.NA, scikit-learn calls pandas.isna, which also treats None and NaN as missing
        return Steps.equal([NONE], [number], otherwise, number)
    raise UnsupportedModelError(f"its missing value is {missing!r}, in a column of texts")


def _raw_text(map_: InputMap, feature: int) -> int | None:
    """Return the raw column whose values a feature contains, unchanged except for missing values, or None."""
    for op in reversed(map_.ops):
        before, output = op.before(feature), feature - op.first
        if before is not None:
            feature = before
        elif isinstance(op, Lookup) and (op.steps[output].values == SAME).any():
            feature = op.first + int(op.source[output])
        elif not (isinstance(op, Affine) and op.leaves(output)):
            return None
    return int(map_.columns[feature])


def _with_codes(map_: InputMap, feature: int, texts: Iterable[str]) -> tuple[InputMap, dict[str, float]]:
    """Add strings to a feature's known strings; return the map and the code of each string."""
    column = _raw_text(map_, feature)
    known = None if column is None else map_.texts.get(column)
    if column is None or (known is None and not _is_raw(map_, feature)):
        raise UnsupportedModelError(f"a step before it has changed column {feature}, whose values are texts")
    new = (known or TextColumn()).with_texts(texts)
    if known is None or known.texts != new.texts:
        map_ = map_.with_texts({**map_.texts, column: new})
    return map_, {text: float(k) for k, text in enumerate(new.texts)}


def _fitted_on_none(map_: InputMap, feature: int) -> InputMap:
    """Make None the missing value of a column whose encoder has a category None but no category NaN."""
    column = _raw_text(map_, feature)
    if column is None:
        return map_
    return replace(map_, texts={**map_.texts, column: replace(map_.texts[column], null=NONE)})


def _is_raw(map_: InputMap, feature: int) -> bool:
    """Return whether no op has changed a feature."""
    for op in reversed(map_.ops):
        before = op.before(feature)
        if before is not None:
            feature = before
        elif isinstance(op, Lookup):
            steps = op.steps[feature - op.first]
            if len(steps.edges) or steps.values[0] != SAME or steps.nan != SAME:
                return False
            feature = op.first + int(op.source[feature - op.first])
    return True


def _check_is_no_text(map_: InputMap, feature: int) -> None:
    column = _raw_text(map_, feature)
    if column is not None and column in map_.texts:
        raise UnsupportedModelError(f"it takes numbers in column {feature}, but a step before it takes texts")


def _check_are_numbers(map_: InputMap) -> None:
    """Raise UnsupportedModelError if a feature contains strings, because a step must not compute with their codes."""
    for j in range(map_.n_features):
        _check_is_no_text(map_, j)


def complete(map_: InputMap) -> InputMap:
    """Finish a pipeline's map: check that lookups replace all string codes, and reject any remaining NaNs."""
    ops = list(map_.ops)
    for k, op in enumerate(ops):
        if isinstance(op, Lookup) and op.gives_nan:
            if any(isinstance(later, Lookup) for later in ops[k + 1 :]):
                raise UnsupportedModelError("unknown categories become NaN, which a later step replaces")
            ops[k] = op.refusing_nan()
    map_ = replace(map_, ops=tuple(ops))
    known = {}
    for column, texts in map_.texts.items():
        if column not in map_.columns:
            continue
        for k in np.flatnonzero(map_.columns == column).tolist():
            _check_is_looked_up(map_, k)
        nan, none, unknown = (map_.reached(column, code) for code in (np.nan, NONE, UNKNOWN))
        # A missing value is known if a step replaces it or if it is a category. If neither None nor NaN is known and
        # the source rejects only NaN, nulls are rejected, because pandas reads them as NaN or None, depending on its
        # version.
        knows_none = not np.isnan(none).any() and none != unknown
        knows_nan = not np.isnan(nan).any() and nan != unknown
        known[column] = replace(texts, null=NONE if (knows_none and not knows_nan) or texts.null == NONE else np.nan)
    # String columns are not checked here, because unused strings must not be rejected.
    checked = {column: takes_nan for column, takes_nan in map_.checked.items() if column not in map_.texts}
    return replace(map_, texts=known, checked=checked)


def _check_is_looked_up(map_: InputMap, column: int) -> None:
    """Raise UnsupportedModelError if string codes reach an arithmetic step."""
    features = {column}
    for op in map_.ops:
        inside = {j - op.first for j in features if op.takes(j)}
        if isinstance(op, Lookup):
            kept = [k for k, steps in enumerate(op.steps) if (steps.values == SAME).any()]
            inside = {k for k in kept if int(op.source[k]) in inside}
        elif inside and not (isinstance(op, Affine) and all(op.leaves(j) for j in inside)):
            break
        features = {op.passed(j) for j in features if not op.takes(j)} | {op.first + j for j in inside}
    else:
        if not features:
            return
    if features:
        raise UnsupportedModelError(f"texts of column {int(map_.columns[column])} are not looked up by any encoder")


def _encoder(widths_of: Callable[[Any, npt.NDArray[Any]], list[int]], map_: InputMap, step: Any) -> InputMap:
    """Fold an encoder of numbers or strings: apply it to each category and one unknown value, and store the outputs."""
    tables = []
    for j, given in enumerate(step.categories_):
        map_, categories = _categories(map_, j, np.asarray(given).tolist())
        tables.append(categories)
    are_numbers = all(np.asarray(given).dtype.kind in "fiub" for given in step.categories_)
    _check_as_source(map_)
    base = np.array([[categories.values[0] for categories in tables]], np.float64 if are_numbers else object)
    widths = widths_of(step, base)
    at_base = _transformed(step, base)
    ends = np.cumsum([0, *widths]).tolist()
    columns: Columns = []
    guards: list[int] = []
    for j, categories in enumerate(tables):
        block = slice(ends[j], ends[j + 1])
        parts = []
        for first in range(0, len(categories.values), _PROBED_PER_CALL):
            probed = np.repeat(base, len(categories.values[first : first + _PROBED_PER_CALL]), axis=0)
            probed[:, j] = categories.values[first : first + _PROBED_PER_CALL]
            made = _transformed(step, probed)
            if not (np.delete(made, block, axis=1) == np.delete(at_base, block, axis=1)).all():
                raise ModelFormatError(f"its output for column {j} is not in columns {block.start} to {block.stop - 1}")
            parts.append(csc_array(made[:, block] if widths[j] else np.zeros((len(made), 1))))
        lookups = _steps_of(categories, vstack(parts, format="csc"), partial(_probe, step, base, j, block))
        if not widths[j]:  # the column has no outputs, but the encoder may reject values
            guards.append(len(columns))
        columns += [(j, steps) for steps in lookups]
    whole = _then(map_, columns)
    return whole.then_select(np.setdiff1d(np.arange(len(columns)), guards)) if guards else whole


def _steps_of(categories: "_Categories", made: csc_array[Any], probe: Callable[[Any], npt.NDArray[Any]]) -> list[Steps]:
    """Return a step function for each of a column's outputs; `made` contains the outputs for its categories."""
    # A later imputer may replace NaN outputs (unknown_value, encoded_missing_value).
    made.data[np.isnan(made.data)] = GIVES_NAN
    numbers, unknown = np.array(categories.numbers), probe(categories.unknown)
    nan_rows = np.flatnonzero(np.isnan(numbers))
    nan = made[nan_rows[:1]].toarray()[0] if len(nan_rows) else probe(categories.missing)
    nan = np.where(nan == GIVES_NAN, SAME, nan)
    if categories.are_texts and NONE not in numbers:
        numbers = np.append(numbers, NONE)
        made = vstack([made, csc_array(probe(None)[np.newaxis])], format="csc")
    ascending = numbers.argsort()[: len(numbers) - len(nan_rows)]  # argsort puts NaN last
    numbers = numbers[ascending]
    steps = []
    for k in range(made.shape[1]):
        known = made[:, [k]].toarray().ravel()[ascending]
        # Only the first output rejects unknown categories; if all did, the lookups' size would grow quadratically.
        otherwise = float(unknown[k]) if k == 0 or not np.isnan(unknown[k]) else _most_frequent(known)
        values = known if k == 0 else np.where(np.isnan(known), otherwise, known)
        odd = values != otherwise
        steps.append(Steps.equal(numbers[odd], values[odd], otherwise, float(nan[k])))
    return steps


class _Categories(NamedTuple):
    """Categories of one column: their codes or values in rows, the categories themselves, and an unknown value.

    `missing` is the value that the encoder receives for NaN in a row.
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
            raise UnsupportedModelError(f"column {j} has the category {odd[0]!r} in addition to texts")
        numbers = [NONE if value is None else codes[value] if isinstance(value, str) else np.nan for value in values]
        return map_, _Categories(numbers, values, unknown_text(texts), True)
    map_, missing = _imputed_numbers(map_, j)
    _check_is_no_text(map_, j)
    numbers = []
    for value in values:
        number = np.nan if value is None else _as_number(value)
        if number is None:
            raise UnsupportedModelError(f"{value!r} is a category of column {j}, which is neither a number nor a text")
        numbers.append(number)
    if sum(number != number for number in numbers) > 1:
        raise UnsupportedModelError(f"None and NaN are two categories of column {j}; refit it with one of them")
    pairs = zip(numbers, values, strict=True)
    if any(number != value for number, value in pairs if value is not None and number == number):
        raise UnsupportedModelError(f"a category of column {j} is not a float64")
    unknown = next(k + 0.5 for k in range(len(numbers) + 1) if k + 0.5 not in numbers)
    return map_, _Categories(numbers, values, unknown, False, missing)


def _imputed_numbers(map_: InputMap, feature: int) -> tuple[InputMap, Any]:
    """Return a map in which a feature's missing numbers remain NaN, and the string by which an imputer replaces NaN."""
    column, at = _raw_text(map_, feature), feature
    texts = () if column is None or column not in map_.texts else map_.texts[column].texts
    for k in reversed(range(len(map_.ops) if len(texts) == 1 else 0)):
        op = map_.ops[k]
        before, output = op.before(at), at - op.first
        if before is not None:
            at = before
        if before is not None or not isinstance(op, Lookup):
            continue
        steps = list(op.steps)
        if not len(steps[output].edges) and steps[output].nan == 0.0:  # NaN becomes code 0, other values are unchanged
            steps[output] = Steps.of([], [SAME], SAME)
            ops = (*map_.ops[:k], replace(op, steps=tuple(steps)), *map_.ops[k + 1 :])
            others = {j: known for j, known in map_.texts.items() if j != column}
            return replace(map_, ops=ops, texts=others), texts[0]
        at = op.first + int(op.source[output])
    return map_, np.nan


def _most_frequent(values: npt.NDArray[np.float64]) -> float:
    numbers, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return float(numbers[counts.argmax()])


def _as_number(value: Any) -> float | None:
    """Convert an array element, possibly of dtype object, to a float; return None if it is not a number."""
    return float(value) if isinstance(value, (int, float, np.number, np.bool_)) else None


def _one_hot_widths(step: Any, base: npt.NDArray[Any]) -> list[int]:
    """Return a one-hot encoder's number of output columns for each input column."""
    mappings = getattr(step, "_default_to_infrequent_mappings", None)
    if step._infrequent_enabled and len(mappings or ()) != base.shape[1]:
        raise ModelFormatError(f"it groups infrequent categories of {len(mappings or ())} columns")
    return [int(n) for n in step._n_features_outs]


def _widths_of_one(step: Any, base: npt.NDArray[Any]) -> list[int]:
    n_outputs = _transformed(step, base).shape[1]
    if n_outputs != base.shape[1]:
        raise UnsupportedModelError(f"it makes {n_outputs} columns from {base.shape[1]}")
    return [1] * n_outputs


def _target_widths(step: Any, base: npt.NDArray[Any]) -> list[int]:
    if len(step.encodings_) != base.shape[1]:
        raise UnsupportedModelError(f"it has {len(step.encodings_)} encodings of {base.shape[1]} columns")
    return _widths_of_one(step, base)


def _probe(step: Any, base: Any, j: int, block: slice, value: Any) -> npt.NDArray[np.float64]:
    """Return the outputs for a value in column j: REFUSED if the encoder rejects it, 0 if the column has no outputs."""
    width = max(block.stop - block.start, 1)
    rows = base.astype(object) if value is None or isinstance(value, str) else base.copy()
    rows[0, j] = value
    try:
        outputs = _transformed(step, rows)[0, block]
    except (ValueError, TypeError):
        return np.full(width, REFUSED)
    outputs = outputs if len(outputs) else np.zeros(1)
    return np.where(np.isnan(outputs), GIVES_NAN, outputs)


def _transformed(step: Any, rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about unknown categories and unnamed columns
        transformed = step.transform(rows)
    return np.asarray(transformed.toarray() if hasattr(transformed, "toarray") else transformed, np.float64)


# --- dtypes


def _binarizer_dtypes(step: Any, dtype: DType) -> Behaviour:
    """Return the behaviour of Binarizer, which converts the threshold to the rows' dtype; only its increase matters."""
    taken = checked_dtype(dtype)
    differs = taken.kind == "f" and float(taken.type(step.threshold)) > float(step.threshold)
    return Behaviour(taken, taken if differs else F64)


def _encoder_dtypes(step: Any, dtype: DType) -> Behaviour:
    fails = _fails_on_unknown(step, dtype, dtype.kind == "b" or getattr(step, "_infrequent_enabled", False))
    return Behaviour(np.dtype(step.dtype), dtype if dtype == OBJECT or fails else F64)


def _target_dtypes(step: Any, dtype: DType) -> Behaviour:
    return Behaviour(F64, dtype if dtype == OBJECT or _fails_on_unknown(step, dtype, looks_up=True) else F64)


def _fails_on_unknown(step: Any, dtype: DType, looks_up: bool) -> bool:
    """Return whether an encoder raises an error for unknown numbers in rows of a dtype that it should accept.

    The encoder replaces unknown numbers with its first category, which the dtype may be unable to represent. For bool
    rows, the converted replacement must then be a category; for integer rows, only some encoders look it up.
    """
    if getattr(step, "handle_unknown", "ignore") == "error" or dtype.kind not in "iub" or not looks_up:
        return False
    for categories in map(np.asarray, step.categories_):
        if categories.dtype.kind not in "iuf" or not len(categories):
            continue
        with np.errstate(invalid="ignore", over="ignore"):
            written = categories[:1].astype(dtype)
        if written not in categories if dtype.kind == "b" else written > categories[categories == categories].max():
            return True
    return False


def _imputer_dtypes(step: Any, dtype: DType) -> Behaviour:
    """Return the behaviour of SimpleImputer, which detects and fills missing values in the rows' dtype."""
    fitted = getattr(step, "_fit_dtype", np.asarray(step.statistics_).dtype)  # absent before scikit-learn 1.0
    takes_any = step.strategy in ("constant", "most_frequent")
    if dtype == OBJECT and (takes_any or fitted.kind == "O"):
        return Behaviour(OBJECT, OBJECT)
    if fitted.kind == "O":
        return Behaviour(F64)
    taken = checked_dtype(dtype) if takes_any else checked_dtype(dtype, *FLOATS)
    fill = getattr(step, "_fill_dtype", fitted)
    if taken.kind == "b" or (step.strategy == "constant" and not np.can_cast(fill, taken, "same_kind")):
        return Behaviour(F64, taken)  # the source rejects such rows
    numbers = _plain_numbers([step.missing_values])
    if not (taken.kind in "iu" and not numbers):  # integers are never NaN
        numbers += _plain_numbers(np.ravel(step.statistics_).tolist())
    return Behaviour(taken, F64 if all(_holds(taken, number) for number in numbers) else taken)


def _indicator_dtypes(step: Any, dtype: DType) -> Behaviour:
    if dtype == OBJECT:
        return Behaviour(np.dtype(bool), OBJECT)
    taken = checked_dtype(dtype)
    holds = taken.kind != "b" and all(_holds(taken, number) for number in _plain_numbers([step.missing_values]))
    return Behaviour(np.dtype(bool), F64 if holds else taken)


def _plain_numbers(values: Sequence[Any]) -> list[float]:
    """Return the numbers among `values` that are not NaN."""
    return [float(value) for value in values if isinstance(value, (int, float, np.number)) and value == value]


def _holds(dtype: DType, number: float) -> bool:
    """Return whether a dtype can represent a number exactly."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return float(dtype.type(number)) == number
    return number.is_integer() and 0 <= number < 128


_CATEGORIES: Final = "categories that are neither texts nor numbers, or that follow sums"


STEPS: Final = (
    Step(
        "Binarizer",
        "sklearn.preprocessing",
        "threshold copy",
        _binarizer,
        _binarizer_dtypes,
        refused=OVERWRITES,
        gives_sparse=keeps_sparse,
    ),
    Step(
        "KBinsDiscretizer",
        "sklearn.preprocessing",
        "bin_edges_ encode dtype _encoder",
        _bins,
        lambda step, dtype: Behaviour(checked_dtype(dtype, *WIDE) if step.dtype is None else np.dtype(step.dtype)),
        refused="dtype=np.float32",
        helpers=(("_encoder", "OneHotEncoder"),),
        gives_sparse=lambda step, is_sparse: bool(step.encode == "onehot"),
    ),
    Step(
        "OneHotEncoder",
        "sklearn.preprocessing",
        "categories_ handle_unknown _drop_idx_after_grouping _infrequent_enabled _default_to_infrequent_mappings "
        "_n_features_outs dtype",
        partial(_encoder, _one_hot_widths),
        _encoder_dtypes,
        refused=f"{_CATEGORIES}; {OTHER_DTYPE}",
        takes_nan=True,
        gives_sparse=gives_sparse_as_asked,
    ),
    Step(
        "OrdinalEncoder",
        "sklearn.preprocessing",
        "categories_ handle_unknown unknown_value dtype",
        partial(_encoder, _widths_of_one),
        _encoder_dtypes,
        refused=f"{_CATEGORIES}; {OTHER_DTYPE}",
        takes_nan=True,
    ),
    Step(
        "TargetEncoder",
        "sklearn.preprocessing",
        "categories_ encodings_ target_mean_",
        partial(_encoder, _target_widths),
        _target_dtypes,
        refused="categories that are neither texts nor numbers; more than two classes of the target",
        takes_nan=True,
    ),
    Step(
        "SimpleImputer",
        "sklearn.impute",
        "missing_values statistics_ strategy _fill_dtype _fit_dtype keep_empty_features add_indicator indicator_ copy",
        _imputer,
        _imputer_dtypes,
        refused=f"values that are neither texts nor numbers; {OVERWRITES}",
        helpers=(("indicator_", "MissingIndicator"),),
        takes_nan=True,
        gives_sparse=keeps_sparse,
        sorts=True,
    ),
    Step(
        "MissingIndicator",
        "sklearn.impute",
        "missing_values features features_ error_on_new",
        _indicator,
        _indicator_dtypes,
        refused="values that are neither texts nor numbers",
        takes_nan=True,
    ),
)
