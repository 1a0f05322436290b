"""Which dtypes scikit-learn's steps compute in: dtype is part of what a step takes and gives.

The map that is compiled (ir/input_map.py) is what the source does to float64 rows. This follows float64 rows and
those of each other kind (frames/dtypes.py) through the same objects. A source that computes in less than float64 for
float64 rows, because one of its steps gives float32 or integers, is refused here; what other rows do is stored for
predictions.

It is a walk of its own beside the readers: no map depends on it, and wrappers build their models in many ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm.errors import UnsupportedModelError
from approxsvm.frames.dtypes import EXTENDED, FLOAT32, SAME, SPARSE, WIDE_SPARSE, Effect, RowDtypes
from approxsvm.frontends.sklearn.known_types import KNOWN, class_name, name_of, recognise
from approxsvm.frontends.sklearn.support_vector_machines import host_array, is_dropped

DType = np.dtype[Any]
_F64: Final = np.dtype(np.float64)
_F32: Final = np.dtype(np.float32)
_OBJECT: Final = np.dtype(object)
_PLAIN: Final = "float64"
# What comes in. Those of a kind that are not here lose no more than these.
_RAW: Final[Mapping[str, tuple[DType, ...]]] = {
    _PLAIN: (_F64,),
    FLOAT32: (_F32,),
    "float16": (np.dtype(np.float16),),
    "small": (np.dtype(np.int8), np.dtype(np.int16)),  # beside float16 the latter is float32
    "integer": (np.dtype(np.int64),),
    "bool": (np.dtype(bool),),
    "small_unsigned": (np.dtype(np.uint8), np.dtype(np.uint16)),
    "unsigned": (np.dtype(np.uint64),),
}
# Before NumPy 2 an operation of float32 numbers with one number of float64 is one of float32.
_NUMBERS_COUNT: Final = (np.ones(1, np.float32) * np.float64(1.0)).dtype == _F64


def row_dtypes(estimator: Any, n_raw_features: int, given: Any = np.float64) -> RowDtypes:
    """Find what rows of each dtype do to the answers of a fitted estimator that has been read.

    `given` is the dtype that a vectorizer in front of it makes of texts. UnsupportedModelError: a step computes in less
    than float64 although raw rows are float64.
    """
    found = _Found()
    raw = {**_RAW, _PLAIN: (np.dtype(given),)}
    arriving = {kind: dict.fromkeys(dtypes, "the vectorizer") for kind, dtypes in raw.items()}
    rows = _Rows(arriving, np.arange(n_raw_features), True)
    _follow(estimator, rows, found, "")
    if not (found.refused or found.rounded):
        return SAME
    refused = {kind: found.effect(noted) for kind, noted in sorted(found.refused.items())}
    return RowDtypes(refused, None if found.rounded is None else found.effect(found.rounded), found.by_column)


_Arriving = Mapping[DType, str]  # dtypes that rows may have, and who gave each


@dataclass(frozen=True, eq=False)
class _Rows:
    """What arrives at a step, by the kind of raw rows."""

    dtypes: Mapping[str, _Arriving]
    columns: npt.NDArray[np.intp]  # raw columns that the features come from
    is_raw: bool  # whether these are columns of the raw rows, which may be a data frame


_Noted = tuple[str, list[npt.NDArray[np.intp]]]  # the first step in words, and the columns of each


@dataclass
class _Found:
    """Steps that compute otherwise: by kind of raw rows the first one, and the raw columns that any does so with."""

    refused: dict[str, _Noted] = field(default_factory=dict)
    rounded: _Noted | None = None
    by_column: bool = False

    def add(self, kind: str, computes: DType, is_stage: bool, words: str, giver: str, rows: _Rows) -> None:
        """Note a step that computes in another dtype than float64; of float64 rows that is refused at once."""
        if kind == _PLAIN:
            raise UnsupportedModelError(
                f"{words} would compute in {computes.name}, as {giver} gives that: refit with dtype=np.float64 there"
            )
        if kind == FLOAT32 and computes == _F32 and is_stage:
            self.rounded = self.rounded or (words, [])
            self.rounded[1].append(rows.columns)
        else:
            self.refuse(kind, words, rows)

    def refuse(self, kind: str, words: str, rows: _Rows) -> None:
        """Note a step for which rows of a kind have to be refused."""
        self.refused.setdefault(kind, (words, []))[1].append(rows.columns)

    def effect(self, noted: _Noted) -> Effect:
        """The same with columns where they matter."""
        words, columns = noted
        return Effect(words, tuple(np.unique(np.concatenate(columns)).tolist()) if self.by_column else None)


class _Does(NamedTuple):
    """What a step does with rows of a dtype: what it gives, and in which dtype it computes, float64 if in none."""

    gives: DType
    computes: DType = _F64


_Rule = Callable[[Any, DType], _Does]


def _follow(step: Any, rows: _Rows, found: _Found, name: str) -> _Rows:
    """Rows behind a step, or an estimator, whatever is inside of which gets the same rows."""
    if step is None or isinstance(step, str):  # "passthrough", or "drop"
        return rows
    known = recognise(step)
    if known is None:
        raise _unknown(step, name)
    kind = known.name
    if known.library in ("cuml", "thundersvm") or kind in _IN_FLOAT64:
        return rows
    if known.role == "pipeline":
        for inner_name, inner in _steps(step):
            rows = _follow(inner, rows, found, f"{name}__{inner_name}" if name else inner_name)
        return rows
    if known.role == "selector":
        is_frame = rows.is_raw and _gives_frames(step)
        rows = replace(rows, columns=rows.columns[step.get_support()]) if is_frame else replace(rows, is_raw=False)
    if kind in _INSIDE:
        given = replace(rows, is_raw=False) if kind in _OF_ARRAYS else rows
        if kind == "OneVsRestClassifier" and _narrows_values(step):
            found.refuse(EXTENDED, _words(step, name), rows)
        after = rows
        for inner in _inside(step, kind):
            after = _follow(inner, given, found, name)
        return after if kind == "FrozenEstimator" else rows
    if kind in ("ColumnTransformer", "FeatureUnion"):
        return _side_by_side(step, kind, rows, found, name)
    if known.role == "selector":
        return rows
    if kind not in _RULES:
        raise _unknown(step, name)
    return _behind(step, _RULES[kind], rows, found, name)


def _narrows_values(step: Any) -> bool:
    """Whether a OneVsRestClassifier looks for longdouble values of members among maxima that it keeps in float64."""
    if step.multilabel_ or len(step.classes_) == 2:
        return False
    last = [member[-1] if name_of(member) == "Pipeline" else member for member in step.estimators_]
    return any(name_of(member) not in (*_IN_FLOAT64, "CalibratedClassifierCV") for member in last)


def _unknown(step: Any, name: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"{_words(step, name)} may compute in any dtype: approxsvm has no rule for it; report it"
    )


def _behind(step: Any, rule: _Rule, rows: _Rows, found: _Found, name: str) -> _Rows:
    words = _words(step, name)
    dtypes: dict[str, _Arriving] = {}
    # Stages of the input map, whose operations in float32 the core's bounds count.
    is_stage = recognise(step).role == "step"  # type: ignore[union-attr]  # it has a rule
    for raw, arriving in rows.dtypes.items():
        gives: dict[DType, str] = {}
        for dtype, giver in arriving.items():
            try:
                does = rule(step, dtype)
            except UnsupportedModelError as error:
                raise UnsupportedModelError(f"{words}: {error}") from None
            gives.setdefault(does.gives, giver if does.gives == dtype else words)
            if does.computes != _F64:
                found.add(raw, does.computes, is_stage, words, giver, rows)
        dtypes[raw] = gives
    for raw in _differs_if_sparse(step):
        found.refuse(raw, words, rows)
    is_function = name_of(step) == "FunctionTransformer"
    if is_function and rows.is_raw and step.func is not None:
        found.by_column = True  # of a data frame it makes a data frame, column by column
    return replace(rows, dtypes=dtypes, is_raw=rows.is_raw and is_function)


def _side_by_side(step: Any, kind: str, rows: _Rows, found: _Found, name: str) -> _Rows:
    weights = step.transformer_weights or {}
    if kind == "ColumnTransformer":
        found.by_column |= rows.is_raw
        places = step._transformer_to_input_indices
        given = [(part, inner, np.asarray(places[part], np.intp)) for part, inner, _ in step.transformers_]
        given = [(part, inner, at) for part, inner, at in given if len(at)]
    else:
        given = [(part, inner, np.empty(0, np.intp)) for part, inner in step.transformer_list]
    parts = []
    for part, inner, at in given:
        if is_dropped(inner):
            continue
        own = replace(rows, columns=rows.columns[at]) if rows.is_raw and len(at) else rows
        own = _follow(inner, own, found, part)
        if weights.get(part) is not None:
            own = _behind(step, _in_own, own, found, name)
        parts.append(own)
    if not parts:
        return rows
    joined = _any_of if _gives_frames(step) else _common
    dtypes = {raw: reduce(joined, [own.dtypes[raw] for own in parts]) for raw in rows.dtypes}
    return _Rows(dtypes, np.unique(np.concatenate([own.columns for own in parts])), False)


def _common(some: _Arriving, others: _Arriving) -> _Arriving:
    """NumPy's and SciPy's common dtypes."""
    found: dict[DType, str] = {}
    for (a, giver), (b, other) in product(some.items(), others.items()):
        dtype = np.result_type(a, b)
        found.setdefault(dtype, other if dtype == b else giver)
    return found


def _any_of(some: _Arriving, others: _Arriving) -> _Arriving:
    """Those of columns of a data frame, any of which the next step may take, alone or together."""
    return {**some, **others, **_common(some, others)}


def _gives_frames(step: Any) -> bool:
    """Whether set_output has it make data frames."""
    from sklearn import get_config

    own = getattr(step, "_sklearn_output_config", {}).get("transform")
    return bool((own or get_config()["transform_output"]) != "default")


def _steps(pipeline: Any) -> list[tuple[str, Any]]:
    """All steps of a pipeline; samplers of imbalanced-learn's are left out of predictions."""
    is_sampling = recognise(pipeline).library == "imblearn"  # type: ignore[union-attr]  # it is a pipeline
    return [(name, step) for name, step in pipeline.steps if not (is_sampling and hasattr(step, "fit_resample"))]


# Where estimators keep those that get the same rows as they do.
_INSIDE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("AdaBoostClassifier", "BaggingClassifier", "BaggingRegressor"), "estimators_"),
    **dict.fromkeys(("BalancedBaggingClassifier", "RUSBoostClassifier"), "estimators_"),
    **dict.fromkeys(("MultiOutputClassifier", "MultiOutputRegressor"), "estimators_"),
    **dict.fromkeys(("OneVsOneClassifier", "OneVsRestClassifier", "OutputCodeClassifier"), "estimators_"),
    **dict.fromkeys(("StackingClassifier", "StackingRegressor", "VotingClassifier", "VotingRegressor"), "estimators_"),
    **dict.fromkeys(("FixedThresholdClassifier", "TunedThresholdClassifierCV", "SelfTrainingClassifier"), "estimator_"),
    **dict.fromkeys(("RFE", "RFECV"), "estimator_"),
    **dict.fromkeys(("GridSearchCV", "HalvingGridSearchCV"), "best_estimator_"),
    **dict.fromkeys(("BayesSearchCV", "HalvingRandomSearchCV", "RandomizedSearchCV"), "best_estimator_"),
    "CalibratedClassifierCV": "calibrated_classifiers_",
    "FrozenEstimator": "estimator",
    "TransformedTargetRegressor": "regressor_",
    "_CalibratedClassifier": "estimator",
}
# Of these, those that make an array of a data frame first.
_OF_ARRAYS: Final = frozenset(
    (
        *("AdaBoostClassifier", "BaggingClassifier", "BaggingRegressor", "BalancedBaggingClassifier"),
        *("OneVsOneClassifier", "RUSBoostClassifier", "SelfTrainingClassifier"),
    )
)
# Models that compute in float64, whatever the dtype of rows is.
_IN_FLOAT64: Final = frozenset(("KernelDensity", "NuSVC", "NuSVR", "OneClassSVM", "SVC", "SVR", "_ConstantPredictor"))


def _inside(estimator: Any, kind: str) -> Sequence[Any]:
    own = vars(estimator)
    found = own[_INSIDE[kind]] if _INSIDE[kind] in own else own["base_estimator"]  # before scikit-learn 1.2
    if isinstance(found, np.ndarray):
        return list(found.ravel())
    return found if isinstance(found, Sequence) else [found]


def _words(step: Any, name: str) -> str:
    return f"step {name!r} ({class_name(step)})" if name else class_name(step)


# --- what each class does


def _taken(dtype: DType, *kept: Any) -> DType:
    """What scikit-learn's checks make of rows: float64 unless their dtype is one that is kept, any without a list."""
    if dtype == _OBJECT or (kept and dtype not in kept):
        return _F64
    return dtype


_FLOATS: Final = (np.float64, np.float32, np.float16)
_WIDE: Final = (np.float64, np.float32)


def _in_own(step: Any, dtype: DType) -> _Does:
    """In place, in whatever float comes."""
    taken = _taken(dtype, *_FLOATS)
    return _Does(taken, taken)


def _product(*attributes: str, kept: Sequence[Any] = ()) -> _Rule:
    """Sums and products with arrays, in their common dtype."""

    def rule(step: Any, dtype: DType) -> _Does:
        arrays = [getattr(step, name) for name in attributes if getattr(step, name, None) is not None]
        common = np.result_type(_taken(dtype, *kept), *(np.dtype(host_array(array).dtype) for array in arrays))
        return _Does(common, common)

    return rule


def _centered_in_place(mean: Callable[[Any], bool], product: str, *, kept: Sequence[Any]) -> _Rule:
    """In the rows' own dtype first, then as `_product`."""

    def rule(step: Any, dtype: DType) -> _Does:
        taken = _taken(dtype, *kept)
        after = _product(product)(step, taken)
        return _Does(after.gives, taken if mean(step) else after.computes)

    return rule


def _standard_scaler(step: Any, dtype: DType) -> _Does:
    does = _in_own(step, dtype)
    return does if step.with_mean or step.with_std else _Does(does.gives)


def keeps_zeros(step: Any) -> bool:
    """Whether a fitted step makes zeros of zeros."""
    return not np.any(step.transform(np.zeros((1, step.n_features_in_))))


def _differs_if_sparse(step: Any) -> tuple[str, ...]:
    """Which sparse rows a step does something else with than with dense ones, in silence."""
    kind = name_of(step)
    if kind == "QuantileTransformer":  # zeros that are not stored stay zeros
        return () if keeps_zeros(step) else (SPARSE,)
    if kind not in ("MaxAbsScaler", "RobustScaler", "StandardScaler"):
        return ()
    if kind == "RobustScaler" and step.with_centering:
        return (SPARSE,)
    scale = getattr(step, "scale_", None)
    # Dense rows are divided; sparse ones are multiplied by 1 / scale, in the dtype of the scale.
    return () if scale is None or np.asarray(scale).dtype == _F64 else (WIDE_SPARSE,)


def _power_transformer(step: Any, dtype: DType) -> _Does:
    """Of float64 rows, too, 2 - lambda is computed in the dtype of lambda, that of the rows of fit."""
    powers = np.asarray(step.lambdas_)
    exact = 2.0 - powers.astype(np.float64) == (2 - powers).astype(np.float64)
    if step.method == "yeo-johnson" and powers.dtype != _F64 and not exact[np.isfinite(powers)].all():
        raise UnsupportedModelError(
            f"it was fitted on {powers.dtype.name} rows, and computes 2 - lambda in that: refit it on "
            "X.astype(np.float64)"
        )
    return _in_own(step, dtype)


def _binarizer(step: Any, dtype: DType) -> _Does:
    """The threshold becomes a number of the rows' dtype; one below it makes no difference."""
    taken = _taken(dtype)
    differs = taken.kind == "f" and float(taken.type(step.threshold)) > float(step.threshold)
    return _Does(taken, taken if differs else _F64)


def _k_bins(step: Any, dtype: DType) -> _Does:
    return _Does(_taken(dtype, *_WIDE) if step.dtype is None else np.dtype(step.dtype))


def _encoder(step: Any, dtype: DType) -> _Does:
    given = _F64 if name_of(step) == "TargetEncoder" else np.dtype(step.dtype)
    return _Does(given, dtype if _fails_on_unknown(step, dtype) else _F64)


def _fails_on_unknown(step: Any, dtype: DType) -> bool:
    """Whether an encoder raises an error for unknown numbers in rows of a dtype, which it means to take.

    It writes its first category in their place, which the dtype may not hold. Of bool rows that has to be a category
    then, of integers its place is looked up by some encoders alone.
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


def _imputer(step: Any, dtype: DType) -> _Does:
    """What is missing is compared with numbers of the rows' dtype, and what is put in becomes one."""
    fitted = getattr(step, "_fit_dtype", np.asarray(step.statistics_).dtype)  # not before scikit-learn 1.0
    if fitted.kind == "O":
        return _Does(_F64)
    taken = _taken(dtype) if step.strategy in ("constant", "most_frequent") else _taken(dtype, *_FLOATS)
    if taken.kind == "b":
        return _Does(taken, taken)  # the source refuses them
    if step.strategy == "constant" and not np.can_cast(getattr(step, "_fill_dtype", fitted), taken, "same_kind"):
        return _Does(taken, taken)  # the source refuses them
    numbers = _plain_numbers([step.missing_values])
    if not (taken.kind in "iu" and not numbers):  # integers are never NaN
        numbers += _plain_numbers(np.ravel(step.statistics_).tolist())
    return _Does(taken, _F64 if all(_holds(taken, number) for number in numbers) else taken)


def _indicator(step: Any, dtype: DType) -> _Does:
    taken = _taken(dtype)
    holds = taken.kind != "b" and all(_holds(taken, number) for number in _plain_numbers([step.missing_values]))
    return _Does(np.dtype(bool), _F64 if holds else taken)


def _plain_numbers(values: Sequence[Any]) -> list[float]:
    """Numbers among values, NaN left out."""
    return [float(value) for value in values if isinstance(value, (int, float, np.number)) and value == value]


def _holds(dtype: DType, number: float) -> bool:
    """Whether a dtype has a number as it is."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return float(dtype.type(number)) == number
    return number.is_integer() and 0 <= number < 128


def _function(step: Any, dtype: DType) -> _Does:
    if step.func is None:
        return _Does(dtype)
    taken = _taken(dtype)
    with np.errstate(all="ignore"):
        made = step.func(np.ones(1, taken)).dtype
    return _Does(made, made)


def _chi2(step: Any, dtype: DType) -> _Does:
    """It writes roots into an array of the rows' dtype."""
    taken = _taken(dtype)
    return _Does(taken, taken)


def _agglomeration(step: Any, dtype: DType) -> _Does:
    return _Does(_F64)


def _kernel_of(rows: str) -> _Rule:
    """Kernels are computed in float32 where both sides are."""

    def rule(step: Any, dtype: DType) -> _Does:
        own = np.dtype(host_array(getattr(step, rows)).dtype)
        return _Does(_F64, _F32 if dtype == own == _F32 else _F64)

    return rule


def _process(step: Any, dtype: DType) -> _Does:
    """Rows are divided by length scales, which are float64."""
    return _Does(_F64, _F64 if _NUMBERS_COUNT or dtype.kind != "f" else dtype)


def _log_of_sum(step: Any, dtype: DType) -> _Does:
    taken = _taken(dtype, *_WIDE)
    return _Does(_F64, taken)


def _in_wide(step: Any, dtype: DType) -> _Does:
    taken = _taken(dtype, *_WIDE)
    return _Does(taken, taken)


_RULES: Final[Mapping[str, _Rule]] = {
    "AdditiveChi2Sampler": _chi2,
    "Binarizer": _binarizer,
    "FastICA": _centered_in_place(lambda step: bool(step.whiten), "components_", kept=_WIDE),
    "FeatureAgglomeration": _agglomeration,
    "FunctionTransformer": _function,
    "KBinsDiscretizer": _k_bins,
    "KernelRidge": _kernel_of("X_fit_"),
    "LinearDiscriminantAnalysis": _product("xbar_", "scalings_"),
    "MissingIndicator": _indicator,
    "Nystroem": _kernel_of("components_"),
    "PowerTransformer": _power_transformer,
    "RBFSampler": _product("random_weights_"),
    "SimpleImputer": _imputer,
    "SkewedChi2Sampler": _log_of_sum,
    "StandardScaler": _standard_scaler,
    "TaylorFeatures": _in_wide,
    "TruncatedSVD": _product("components_"),
    **dict.fromkeys(
        ("CCA", "PLSCanonical", "PLSRegression"), _centered_in_place(lambda step: True, "x_rotations_", kept=_FLOATS)
    ),
    **dict.fromkeys(("GaussianProcessClassifier", "GaussianProcessRegressor"), _process),
    **dict.fromkeys(("GaussianRandomProjection", "SparseRandomProjection"), _product("components_", kept=_WIDE)),
    **dict.fromkeys(("IncrementalPCA", "PCA"), _product("components_", kept=_WIDE)),
    **dict.fromkeys(("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "Normalizer"), _in_own),
    **dict.fromkeys(("OneHotEncoder", "OrdinalEncoder", "TargetEncoder"), _encoder),
    **dict.fromkeys(("PolynomialFeatures", "QuantileTransformer", "SplineTransformer"), _in_own),
    **dict.fromkeys((known.name for known in KNOWN if known.role.startswith("linear ")), _product("coef_")),
}
