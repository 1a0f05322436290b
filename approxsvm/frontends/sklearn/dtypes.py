"""Dtypes in which scikit-learn's steps compute: every step takes, computes in, and returns certain dtypes.

The compiled map (ir/input_map.py) does to float64 rows what the source does. This module follows float64 rows, and rows
of every other kind (frames/dtypes.py), through the source's objects. If a step returns float32 or integers, the source
computes in less than float64 even for float64 rows, and is rejected. The effects on other rows are stored for
predictions.

This traversal is separate from the readers: no map depends on it, and wrappers build their models in many ways.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm.errors import UnsupportedModelError
from approxsvm.frames.dtypes import EXTENDED, FLOAT32, NO_NUMBER, NOT_NONE, SPARSE, WIDE_SPARSE, Effect, RowDtypes
from approxsvm.frames.text_columns import is_nan
from approxsvm.frontends.sklearn.known_types import INSIDE, KNOWN, class_name, name_of, recognise
from approxsvm.frontends.sklearn.support_vector_machines import host_array, is_dropped

DType = np.dtype[Any]
_F64: Final = np.dtype(np.float64)
_F32: Final = np.dtype(np.float32)
_OBJECT: Final = np.dtype(object)
_PLAIN: Final = "float64"
# Dtypes of raw rows by kind. Other dtypes of a kind lose no more than these.
_RAW: Final[Mapping[str, tuple[DType, ...]]] = {
    _PLAIN: (_F64,),
    FLOAT32: (_F32,),
    "float16": (np.dtype(np.float16),),
    "small": (np.dtype(np.int8), np.dtype(np.int16)),  # combined with float16 the latter is float32
    "integer": (np.dtype(np.int64),),
    "bool": (np.dtype(bool),),
    "small_unsigned": (np.dtype(np.uint8), np.dtype(np.uint16)),
    "unsigned": (np.dtype(np.uint64),),
    NO_NUMBER: (_OBJECT,),
}
# Before NumPy 2, an operation of float32 numbers with a single float64 number is computed in float32.
_SCALARS_WIDEN: Final = (np.ones(1, np.float32) * np.float64(1.0)).dtype == _F64


def row_dtypes(estimator: Any, n_raw_features: int, given: Any = np.float64) -> RowDtypes:
    """Find the effects of each dtype of rows on the answers of a fitted estimator that has been read.

    `given` is the dtype of rows from a vectorizer before it. Raises UnsupportedModelError if a step computes in less
    than float64 although raw rows are float64.
    """
    findings = _Findings()
    raw = {**_RAW, _PLAIN: (np.dtype(given),)}
    arriving = {kind: dict.fromkeys(dtypes, "the vectorizer") for kind, dtypes in raw.items()}
    rows = _Rows(arriving, np.arange(n_raw_features), True)
    _follow(estimator, rows, findings, "")
    refused = {kind: findings.effect(kind, noted) for kind, noted in sorted(findings.refused.items())}
    _check_missing(refused)
    return RowDtypes(
        refused, None if findings.rounded is None else findings.effect(FLOAT32, findings.rounded), findings.by_column
    )


_Arriving = Mapping[DType, str]  # possible dtypes of rows, with the step that produced each


@dataclass(frozen=True, eq=False)
class _Rows:
    """Dtypes that arrive at a step, by the kind of raw rows."""

    dtypes: Mapping[str, _Arriving]
    columns: npt.NDArray[np.intp]  # raw columns from which the features come
    is_raw: bool  # whether these are columns of the raw rows, which may be a data frame


_Noted = tuple[str, list[npt.NDArray[np.intp]]]  # the first step in words, and the columns of each step


@dataclass
class _Findings:
    """Steps that compute differently: the first one, and the raw columns of all, by kind of raw rows."""

    refused: dict[str, _Noted] = field(default_factory=dict)
    rounded: _Noted | None = None
    by_column: bool = False

    def add(self, kind: str, computes: DType, is_op: bool, words: str, giver: str, rows: _Rows) -> None:
        """Record a step that does not compute in float64; float64 rows are then rejected at once."""
        if kind == _PLAIN:
            raise UnsupportedModelError(
                f"{words} would compute in {computes.name}, which {giver} returns: refit with dtype=np.float64 there"
            )
        if kind == FLOAT32 and computes == _F32 and is_op:
            self.rounded = self.rounded or (words, [])
            self.rounded[1].append(rows.columns)
        else:
            self.refuse(kind, words, rows)

    def refuse(self, kind: str, words: str, rows: _Rows) -> None:
        """Record a step for which rows of a kind have to be rejected."""
        self.refused.setdefault(kind, (words, []))[1].append(rows.columns)

    def effect(self, kind: str, noted: _Noted) -> Effect:
        """Convert a record to an Effect, with columns if they matter."""
        words, columns = noted
        matter = self.by_column or kind in (NO_NUMBER, NOT_NONE)
        return Effect(words, tuple(np.unique(np.concatenate(columns)).tolist()) if matter else None)


def _check_missing(refused: Mapping[str, Effect]) -> None:
    """Raise UnsupportedModelError if steps disagree whether None or NaN is the missing value of a column."""
    if NO_NUMBER in refused and NOT_NONE in refused:
        of_nan, of_none = refused[NO_NUMBER], refused[NOT_NONE]
        for column in sorted({*(of_nan.columns or ())} & {*(of_none.columns or ())}):
            raise UnsupportedModelError(
                f"None is a category of column {column} for {of_none.step}, but not the missing value of "
                f"{of_nan.step}; refit both on rows with NaN in place of None"
            )


class _Behaviour(NamedTuple):
    """Behaviour of a step for rows of a dtype: the dtype it returns, and the dtype in which it computes."""

    gives: DType
    computes: DType = _F64


_Rule = Callable[[Any, DType], _Behaviour]


def _follow(step: Any, rows: _Rows, findings: _Findings, name: str) -> _Rows:
    """Return the rows after a step or an estimator; inner estimators of it get the same rows."""
    if step is None or isinstance(step, str):  # "passthrough" or "drop"
        return rows
    known = recognise(step)
    if known is None:
        raise _unknown(step, name)
    kind = known.name
    if known.library in ("cuml", "thundersvm") or kind in _IN_FLOAT64:
        return rows
    if known.role == "pipeline":
        for inner_name, inner in _steps(step):
            rows = _follow(inner, rows, findings, f"{name}__{inner_name}" if name else inner_name)
        return rows
    if known.role == "selector":
        is_frame = rows.is_raw and _gives_frames(step)
        rows = replace(rows, columns=rows.columns[step.get_support()]) if is_frame else replace(rows, is_raw=False)
    if kind in INSIDE:
        given = replace(rows, is_raw=False) if kind in _CONVERTING_FRAMES else rows
        if kind == "OneVsRestClassifier" and _narrows_values(step):
            findings.refuse(EXTENDED, _words(step, name), rows)
        after = rows
        for inner in _inside(step, kind):
            after = _follow(inner, given, findings, name)
        return after if kind == "FrozenEstimator" else rows
    if kind in ("ColumnTransformer", "FeatureUnion"):
        return _side_by_side(step, kind, rows, findings, name)
    if known.role == "selector":
        return rows
    if kind not in _RULES:
        raise _unknown(step, name)
    return _after_step(step, _RULES[kind], rows, findings, name)


def _narrows_values(step: Any) -> bool:
    """Return whether a OneVsRestClassifier compares members' longdouble values with maxima that it keeps in float64."""
    if step.multilabel_ or len(step.classes_) == 2:
        return False
    last = [member[-1] if name_of(member) == "Pipeline" else member for member in step.estimators_]
    return any(name_of(member) not in (*_IN_FLOAT64, "CalibratedClassifierCV") for member in last)


def _unknown(step: Any, name: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"{_words(step, name)} may compute in any dtype: approxsvm has no rule for it; please report this"
    )


def _after_step(step: Any, rule: _Rule, rows: _Rows, findings: _Findings, name: str) -> _Rows:
    words = _words(step, name)
    dtypes: dict[str, _Arriving] = {}
    # Steps of the input map: the core's bounds include their operations in float32.
    is_op = recognise(step).role == "step"  # type: ignore[union-attr]  # it has a rule
    for raw, arriving in rows.dtypes.items():
        gives: dict[DType, str] = {}
        for dtype, giver in arriving.items():
            try:
                behaviour = rule(step, dtype)
            except UnsupportedModelError as error:
                raise UnsupportedModelError(f"{words}: {error}") from None
            gives.setdefault(behaviour.gives, giver if behaviour.gives == dtype else words)
            if behaviour.computes == _OBJECT:
                _note_objects(step, words, rows, findings)
            elif behaviour.computes != _F64:
                findings.add(raw, behaviour.computes, is_op, words, giver, rows)
        dtypes[raw] = gives
    for raw in _differs_if_sparse(step):
        findings.refuse(raw, words, rows)
    is_function = name_of(step) == "FunctionTransformer"
    if is_function and rows.is_raw and step.func is not None:
        findings.by_column = True  # a data frame becomes a data frame, column by column
    return replace(rows, dtypes=dtypes, is_raw=rows.is_raw and is_function)


def _note_objects(step: Any, words: str, rows: _Rows, findings: _Findings) -> None:
    """Record the columns in which a step, which gets objects as they are, tells None from NaN."""
    if not hasattr(step, "categories_"):
        findings.refuse(NO_NUMBER, words, rows)
        return
    for j, given in enumerate(step.categories_):
        categories = np.asarray(given).tolist()
        if any(isinstance(category, str) for category in categories):
            continue  # its column holds codes, which tell None from NaN
        own = replace(rows, columns=rows.columns[[j]]) if rows.is_raw else rows
        if any(map(is_nan, categories)):
            findings.refuse(NO_NUMBER, words, own)
        if None in categories and not rows.is_raw:
            raise UnsupportedModelError(f"{words}: None is a category of its column {j}; refit it with NaN there")
        if None in categories:
            findings.refuse(NOT_NONE, words, own)


def _side_by_side(step: Any, kind: str, rows: _Rows, findings: _Findings, name: str) -> _Rows:
    weights = step.transformer_weights or {}
    if kind == "ColumnTransformer":
        findings.by_column |= rows.is_raw
        places = step._transformer_to_input_indices
        given = [(part, inner, np.asarray(places[part], np.intp)) for part, inner, _ in step.transformers_]
        given = [(part, inner, at) for part, inner, at in given if len(at)]
    else:
        given = [(part, inner, np.empty(0, np.intp)) for part, inner in step.transformer_list]
    parts = []
    for part, inner, at in given:
        if is_dropped(inner):
            continue
        part_rows = replace(rows, columns=rows.columns[at]) if rows.is_raw and len(at) else rows
        part_rows = _follow(inner, part_rows, findings, part)
        if weights.get(part) is not None:
            part_rows = _after_step(step, _weighted(weights[part]), part_rows, findings, name)
        parts.append(part_rows)
    if not parts:
        return rows
    joined = _column_dtypes if _gives_frames(step) else _common
    dtypes = {raw: reduce(joined, [part_rows.dtypes[raw] for part_rows in parts]) for raw in rows.dtypes}
    return _Rows(dtypes, np.unique(np.concatenate([part_rows.columns for part_rows in parts])), False)


def _common(some: _Arriving, others: _Arriving) -> _Arriving:
    """Return the common dtypes of NumPy and SciPy."""
    common: dict[DType, str] = {}
    for (a, giver), (b, other) in product(some.items(), others.items()):
        dtype = np.result_type(a, b)
        common.setdefault(dtype, other if dtype == b else giver)
    return common


def _column_dtypes(some: _Arriving, others: _Arriving) -> _Arriving:
    """Return dtypes of a data frame's columns, any of which the next step may take, alone or together."""
    return {**some, **others, **_common(some, others)}


def _gives_frames(step: Any) -> bool:
    """Return whether set_output makes the step return data frames."""
    from sklearn import get_config

    config = getattr(step, "_sklearn_output_config", {}).get("transform")
    return bool((config or get_config()["transform_output"]) != "default")


def _steps(pipeline: Any) -> list[tuple[str, Any]]:
    """Return all steps of a pipeline, except imbalanced-learn's samplers, which predictions leave out."""
    is_sampling = recognise(pipeline).library == "imblearn"  # type: ignore[union-attr]  # it is a pipeline
    return [(name, step) for name, step in pipeline.steps if not (is_sampling and hasattr(step, "fit_resample"))]


# Classes that first convert a data frame to an array.
_CONVERTING_FRAMES: Final = frozenset(
    (
        *("BaggingClassifier", "BaggingRegressor", "BalancedBaggingClassifier"),
        *("OneVsOneClassifier", "SelfTrainingClassifier"),
    )
)
# Models that compute in float64 for every dtype of rows.
_IN_FLOAT64: Final = frozenset(("KernelDensity", "NuSVC", "NuSVR", "OneClassSVM", "SVC", "SVR", "_ConstantPredictor"))


def _inside(estimator: Any, kind: str) -> Sequence[Any]:
    attributes = vars(estimator)
    inner = attributes[INSIDE[kind] if INSIDE[kind] in attributes else "base_estimator"]  # before scikit-learn 1.2
    return inner if isinstance(inner, Sequence) else [inner]


def _words(step: Any, name: str) -> str:
    return f"step {name!r} ({class_name(step)})" if name else class_name(step)


def _checked_dtype(dtype: DType, *kept: Any) -> DType:
    """Return the dtype after scikit-learn's checks: float64 unless it is in `kept`; without `kept`, any is kept."""
    if dtype == _OBJECT or (kept and dtype not in kept):
        return _F64
    return dtype


_FLOATS: Final = (np.float64, np.float32, np.float16)
_WIDE: Final = (np.float64, np.float32)


def _in_place(step: Any, dtype: DType) -> _Behaviour:
    """Compute in place, in the given float dtype."""
    taken = _checked_dtype(dtype, *_FLOATS)
    return _Behaviour(taken, taken)


def _weighted(weight: int | float) -> _Rule:
    """Make a rule for products with a transformer's weight, in the dtype that NumPy gives them; integers wrap."""

    def rule(step: Any, dtype: DType) -> _Behaviour:
        try:
            gives = np.dtype((np.ones(1, dtype) * weight).dtype)
        except OverflowError:  # the dtype cannot hold the weight: the source fails
            return _Behaviour(dtype, dtype)
        if gives.kind not in "iu":
            return _Behaviour(gives, gives)
        most = 1.0 if dtype.kind == "b" else min(float(np.iinfo(dtype.name).max) + (weight < 0), 2.0**53)
        return _Behaviour(gives, _F64 if most * abs(weight) <= np.iinfo(gives.name).max else gives)

    return rule


def _product(*attributes: str, kept: Sequence[Any] = ()) -> _Rule:
    """Make a rule for sums and products with arrays, in their common dtype."""

    def rule(step: Any, dtype: DType) -> _Behaviour:
        arrays = [getattr(step, name) for name in attributes if getattr(step, name, None) is not None]
        common = np.result_type(_checked_dtype(dtype, *kept), *(np.dtype(host_array(array).dtype) for array in arrays))
        return _Behaviour(common, common)

    return rule


def _centered_in_place(mean: Callable[[Any], bool], product: str, *, kept: Sequence[Any]) -> _Rule:
    """Make a rule for steps that center in the rows' dtype first, then multiply like `_product`."""

    def rule(step: Any, dtype: DType) -> _Behaviour:
        taken = _checked_dtype(dtype, *kept)
        after = _product(product)(step, taken)
        return _Behaviour(after.gives, taken if mean(step) else after.computes)

    return rule


def _standard_scaler(step: Any, dtype: DType) -> _Behaviour:
    behaviour = _in_place(step, dtype)
    return behaviour if step.with_mean or step.with_std else _Behaviour(behaviour.gives)


def keeps_zeros(step: Any) -> bool:
    """Return whether a fitted step maps zeros to zeros."""
    return not np.any(step.transform(np.zeros((1, step.n_features_in_))))


def _differs_if_sparse(step: Any) -> tuple[str, ...]:
    """Return the kinds of sparse rows that a step silently treats differently from dense rows."""
    kind = name_of(step)
    if kind == "QuantileTransformer":  # zeros that are not stored stay zeros
        return () if keeps_zeros(step) else (SPARSE,)
    if kind == "RobustScaler" and step.with_centering:
        return (SPARSE,)
    scale = getattr(step, "scale_", None)
    # Dense rows are divided; sparse rows are multiplied by 1 / scale, in the dtype of the scale.
    return () if scale is None or np.asarray(scale).dtype == _F64 else (WIDE_SPARSE,)


def _power_transformer(step: Any, dtype: DType) -> _Behaviour:
    """Check the powers: even for float64 rows, 2 - lambda is computed in the dtype of the rows of fit."""
    powers = np.asarray(step.lambdas_)
    exact = 2.0 - powers.astype(np.float64) == (2 - powers).astype(np.float64)
    if step.method == "yeo-johnson" and powers.dtype != _F64 and not exact[np.isfinite(powers)].all():
        raise UnsupportedModelError(
            f"it was fitted on {powers.dtype.name} rows, and computes 2 - lambda in that dtype: refit it on "
            "X.astype(np.float64)"
        )
    return _in_place(step, dtype)


def _binarizer(step: Any, dtype: DType) -> _Behaviour:
    """Convert the threshold to the rows' dtype; a smaller result makes no difference."""
    taken = _checked_dtype(dtype)
    differs = taken.kind == "f" and float(taken.type(step.threshold)) > float(step.threshold)
    return _Behaviour(taken, taken if differs else _F64)


def _encoder(step: Any, dtype: DType) -> _Behaviour:
    given = _F64 if name_of(step) == "TargetEncoder" else np.dtype(step.dtype)
    return _Behaviour(given, dtype if dtype == _OBJECT or _fails_on_unknown(step, dtype) else _F64)


def _fails_on_unknown(step: Any, dtype: DType) -> bool:
    """Return whether an encoder raises an error for unknown numbers in rows of a dtype that it should accept.

    It replaces them by its first category, which the dtype may not hold. For bool rows, the replacement then has to be
    a category; for integer rows, only some encoders look it up.
    """
    looks_up = dtype.kind == "b" or name_of(step) == "TargetEncoder" or getattr(step, "_infrequent_enabled", False)
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


def _imputer(step: Any, dtype: DType) -> _Behaviour:
    """Compare the missing value with numbers of the rows' dtype, and convert the fill value to it."""
    fitted = getattr(step, "_fit_dtype", np.asarray(step.statistics_).dtype)  # missing before scikit-learn 1.0
    takes_any = step.strategy in ("constant", "most_frequent")
    if dtype == _OBJECT and (takes_any or fitted.kind == "O"):
        return _Behaviour(_OBJECT, _OBJECT)
    if fitted.kind == "O":
        return _Behaviour(_F64)
    taken = _checked_dtype(dtype) if takes_any else _checked_dtype(dtype, *_FLOATS)
    fill = getattr(step, "_fill_dtype", fitted)
    if taken.kind == "b" or (step.strategy == "constant" and not np.can_cast(fill, taken, "same_kind")):
        return _Behaviour(_F64, taken)  # the source rejects them
    numbers = _plain_numbers([step.missing_values])
    if not (taken.kind in "iu" and not numbers):  # integers are never NaN
        numbers += _plain_numbers(np.ravel(step.statistics_).tolist())
    return _Behaviour(taken, _F64 if all(_holds(taken, number) for number in numbers) else taken)


def _indicator(step: Any, dtype: DType) -> _Behaviour:
    if dtype == _OBJECT:
        return _Behaviour(np.dtype(bool), _OBJECT)
    taken = _checked_dtype(dtype)
    holds = taken.kind != "b" and all(_holds(taken, number) for number in _plain_numbers([step.missing_values]))
    return _Behaviour(np.dtype(bool), _F64 if holds else taken)


def _plain_numbers(values: Sequence[Any]) -> list[float]:
    """Return the numbers among values, without NaN."""
    return [float(value) for value in values if isinstance(value, (int, float, np.number)) and value == value]


def _holds(dtype: DType, number: float) -> bool:
    """Return whether a dtype can hold a number exactly."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return float(dtype.type(number)) == number
    return number.is_integer() and 0 <= number < 128


def _function(step: Any, dtype: DType) -> _Behaviour:
    if step.func is None:
        return _Behaviour(dtype)
    taken = _checked_dtype(dtype)
    with np.errstate(all="ignore"):
        made = step.func(np.ones(1, taken)).dtype
    return _Behaviour(made, made)


def _kernel_of(rows: str) -> _Rule:
    """Make a rule for kernels, which are computed in float32 if both sides are float32."""

    def rule(step: Any, dtype: DType) -> _Behaviour:
        side_dtype = np.dtype(host_array(getattr(step, rows)).dtype)
        return _Behaviour(_F64, _F32 if dtype == side_dtype == _F32 else _F64)

    return rule


def _gaussian_process(step: Any, dtype: DType) -> _Behaviour:
    """Divide rows by length scales, which are float64."""
    return _Behaviour(_F64, _F64 if _SCALARS_WIDEN or dtype.kind != "f" else dtype)


_RULES: Final[Mapping[str, _Rule]] = {
    "Binarizer": _binarizer,
    "FastICA": _centered_in_place(lambda step: bool(step.whiten), "components_", kept=_WIDE),
    "FeatureAgglomeration": lambda step, dtype: _Behaviour(_F64),
    "FunctionTransformer": _function,
    "KBinsDiscretizer": lambda step, dtype: _Behaviour(
        _checked_dtype(dtype, *_WIDE) if step.dtype is None else np.dtype(step.dtype)
    ),
    "KernelRidge": _kernel_of("X_fit_"),
    "LinearDiscriminantAnalysis": _product("xbar_", "scalings_"),
    "MissingIndicator": _indicator,
    "Nystroem": _kernel_of("components_"),
    "PowerTransformer": _power_transformer,
    "RBFSampler": _product("random_weights_"),
    "SimpleImputer": _imputer,
    "SkewedChi2Sampler": lambda step, dtype: _Behaviour(_F64, _checked_dtype(dtype, *_WIDE)),
    "StandardScaler": _standard_scaler,
    "TaylorFeatures": _product(kept=_WIDE),
    "TruncatedSVD": _product("components_"),
    **dict.fromkeys(
        ("CCA", "PLSCanonical", "PLSRegression"), _centered_in_place(lambda step: True, "x_rotations_", kept=_FLOATS)
    ),
    **dict.fromkeys(("GaussianProcessClassifier", "GaussianProcessRegressor"), _gaussian_process),
    **dict.fromkeys(("GaussianRandomProjection", "SparseRandomProjection"), _product("components_", kept=_WIDE)),
    **dict.fromkeys(("IncrementalPCA", "PCA"), _product("components_", kept=_WIDE)),
    **dict.fromkeys(("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "Normalizer"), _in_place),
    **dict.fromkeys(("OneHotEncoder", "OrdinalEncoder", "TargetEncoder"), _encoder),
    **dict.fromkeys(("PolynomialFeatures", "QuantileTransformer", "SplineTransformer"), _in_place),
    **dict.fromkeys((known.name for known in KNOWN if known.role.startswith("linear ")), _product("coef_")),
}
