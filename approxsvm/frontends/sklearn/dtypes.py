"""Analysis of the dtypes in which scikit-learn steps receive, compute and return rows.

The compiled map (ir/input_map.py) transforms float64 rows as the source does. This module traces float64 rows, and rows
of every other dtype kind (frames/dtypes.py), through the source's objects. A source is rejected if, for float64 rows, a
step would not compute in float64 because an earlier step returns float32 or integers. The effects on rows of other
kinds are stored in the artifact for use at prediction time.

The analysis is separate from the readers because no map depends on dtypes, and wrappers build their models in many
ways.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from approxsvm.errors import UnsupportedModelError
from approxsvm.frames.dtypes import EXTENDED, FLOAT32, NO_NUMBER, NOT_NONE, Effect, RowDtypes
from approxsvm.frames.text_columns import is_nan
from approxsvm.frontends.sklearn.host_arrays import host_array
from approxsvm.frontends.sklearn.known_types import INSIDE, KNOWN, Known, class_name, name_of, recognise
from approxsvm.frontends.sklearn.steps.dtype_rules import (
    F32,
    F64,
    OBJECT,
    WIDE,
    Behaviour,
    DType,
    Rule,
    checked_dtype,
    in_common_dtype,
)
from approxsvm.frontends.sklearn.support_vector_machines import is_dropped

_PLAIN: Final = "float64"
# Dtypes of raw rows by kind. Other dtypes of the same kind lose no more precision than those in this table.
_RAW: Final[Mapping[str, tuple[DType, ...]]] = {
    _PLAIN: (F64,),
    FLOAT32: (F32,),
    "float16": (np.dtype(np.float16),),
    "small": (np.dtype(np.int8), np.dtype(np.int16)),  # combining int16 and float16 gives float32
    "integer": (np.dtype(np.int64),),
    "bool": (np.dtype(bool),),
    "small_unsigned": (np.dtype(np.uint8), np.dtype(np.uint16)),
    "unsigned": (np.dtype(np.uint64),),
    NO_NUMBER: (OBJECT,),
}
# Before NumPy 2, operations between a float32 array and a float64 scalar are computed in float32.
_SCALARS_WIDEN: Final = (np.ones(1, np.float32) * np.float64(1.0)).dtype == F64


def row_dtypes(estimator: Any, n_raw_features: int, given: Any = np.float64) -> RowDtypes:
    """Find the effect of each row dtype on the predictions of a fitted estimator that has already been read.

    `given` is the dtype of the rows returned by a vectorizer before the estimator. Raises UnsupportedModelError if a
    step computes in lower precision than float64 although the raw rows are float64.
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


_Arriving = Mapping[DType, str]  # possible row dtypes, each with the step that produced it


@dataclass(frozen=True, eq=False)
class _Rows:
    """Possible dtypes of a step's input rows, for each kind of raw rows."""

    dtypes: Mapping[str, _Arriving]
    columns: npt.NDArray[np.intp]  # raw columns from which the features are computed
    is_raw: bool  # True if the rows are unchanged columns of the raw rows, which may be a data frame


_Noted = tuple[str, list[npt.NDArray[np.intp]]]  # description of the first recorded step, and the columns of each one


@dataclass
class _Findings:
    """For each kind of raw rows, the first step that does not compute in float64, and the columns of all such steps."""

    refused: dict[str, _Noted] = field(default_factory=dict)
    rounded: _Noted | None = None
    by_column: bool = False

    def add(self, kind: str, computes: DType, is_op: bool, words: str, giver: str, rows: _Rows) -> None:
        """Record a step that does not compute in float64; raise UnsupportedModelError if the raw rows are float64."""
        if kind == _PLAIN:
            raise UnsupportedModelError(
                f"{words} would compute in {computes.name}, which {giver} returns: refit with dtype=np.float64 there"
            )
        if kind == FLOAT32 and computes == F32 and is_op:
            self.rounded = self.rounded or (words, [])
            self.rounded[1].append(rows.columns)
        else:
            self.refuse(kind, words, rows)

    def refuse(self, kind: str, words: str, rows: _Rows) -> None:
        """Record that a step requires raw rows of some kind to be rejected."""
        self.refused.setdefault(kind, (words, []))[1].append(rows.columns)

    def effect(self, kind: str, noted: _Noted) -> Effect:
        """Convert a record to an Effect, with column indices if the effect depends on the column."""
        words, columns = noted
        matter = self.by_column or kind in (NO_NUMBER, NOT_NONE)
        return Effect(words, tuple(np.unique(np.concatenate(columns)).tolist()) if matter else None)


def _check_missing(refused: Mapping[str, Effect]) -> None:
    """Raise UnsupportedModelError if steps disagree on whether None or NaN is a column's missing value."""
    if NO_NUMBER in refused and NOT_NONE in refused:
        of_nan, of_none = refused[NO_NUMBER], refused[NOT_NONE]
        for column in sorted({*(of_nan.columns or ())} & {*(of_none.columns or ())}):
            raise UnsupportedModelError(
                f"None is a category of column {column} for {of_none.step}, but not the missing value of "
                f"{of_nan.step}; refit both on rows with NaN in place of None"
            )


def _follow(step: Any, rows: _Rows, findings: _Findings, name: str) -> _Rows:
    """Return the rows after a step or an estimator; an estimator's inner estimators receive the same rows."""
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
    rule = rule_of(known)
    if rule is None:
        raise _unknown(step, name)
    return _after_step(step, rule, rows, findings, name)


def _narrows_values(step: Any) -> bool:
    """Return whether a OneVsRestClassifier compares its members' longdouble values with float64 maxima."""
    if step.multilabel_ or len(step.classes_) == 2:
        return False
    last = [member[-1] if name_of(member) == "Pipeline" else member for member in step.estimators_]
    return any(name_of(member) not in (*_IN_FLOAT64, "CalibratedClassifierCV") for member in last)


def _unknown(step: Any, name: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"{_words(step, name)} may compute in any dtype: approxsvm has no rule for it; please report this"
    )


def _after_step(step: Any, rule: Rule, rows: _Rows, findings: _Findings, name: str) -> _Rows:
    words = _words(step, name)
    dtypes: dict[str, _Arriving] = {}
    known = cast(Known, recognise(step))  # never None, because the class has a rule
    is_op = known.role == "step"  # the core's bounds include float32 operations of the input map
    for raw, arriving in rows.dtypes.items():
        gives: dict[DType, str] = {}
        for dtype, giver in arriving.items():
            try:
                behaviour = rule(step, dtype)
            except UnsupportedModelError as error:
                raise UnsupportedModelError(f"{words}: {error}") from None
            gives.setdefault(behaviour.gives, giver if behaviour.gives == dtype else words)
            if behaviour.computes == OBJECT:
                _note_objects(step, words, rows, findings)
            elif behaviour.computes != F64:
                findings.add(raw, behaviour.computes, is_op, words, giver, rows)
        dtypes[raw] = gives
    for raw in known.step.differs_if_sparse(step):
        findings.refuse(raw, words, rows)
    is_function = known.name == "FunctionTransformer"
    if is_function and rows.is_raw and step.func is not None:
        findings.by_column = True  # such a step maps a data frame's columns separately, and returns a data frame
    return replace(rows, dtypes=dtypes, is_raw=rows.is_raw and is_function)


def _note_objects(step: Any, words: str, rows: _Rows, findings: _Findings) -> None:
    """Record the columns in which a step distinguishes None from NaN because it receives unconverted objects."""
    if not hasattr(step, "categories_"):
        findings.refuse(NO_NUMBER, words, rows)
        return
    for j, given in enumerate(step.categories_):
        categories = np.asarray(given).tolist()
        if any(isinstance(category, str) for category in categories):
            continue  # such a column contains codes, which distinguish None from NaN
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
    """Return the common dtypes to which NumPy and SciPy convert concatenated blocks of columns."""
    common: dict[DType, str] = {}
    for (a, giver), (b, other) in product(some.items(), others.items()):
        dtype = np.result_type(a, b)
        common.setdefault(dtype, other if dtype == b else giver)
    return common


def _column_dtypes(some: _Arriving, others: _Arriving) -> _Arriving:
    """Return the dtypes of a data frame's columns; the next step may read them separately or together."""
    return {**some, **others, **_common(some, others)}


def _gives_frames(step: Any) -> bool:
    """Return whether set_output makes the step return data frames."""
    from sklearn import get_config

    config = getattr(step, "_sklearn_output_config", {}).get("transform")
    return bool((config or get_config()["transform_output"]) != "default")


def _steps(pipeline: Any) -> list[tuple[str, Any]]:
    """Return all steps of a pipeline except imbalanced-learn samplers, which are skipped during prediction."""
    is_sampling = recognise(pipeline).library == "imblearn"  # type: ignore[union-attr]  # it is a pipeline
    return [(name, step) for name, step in pipeline.steps if not (is_sampling and hasattr(step, "fit_resample"))]


# Classes that begin by converting data frames to arrays.
_CONVERTING_FRAMES: Final = frozenset(
    (
        *("BaggingClassifier", "BaggingRegressor", "BalancedBaggingClassifier"),
        *("OneVsOneClassifier", "SelfTrainingClassifier"),
    )
)
# Models that compute in float64 for rows of any dtype.
_IN_FLOAT64: Final = frozenset(("KernelDensity", "NuSVC", "NuSVR", "OneClassSVM", "SVC", "SVR", "_ConstantPredictor"))


def _inside(estimator: Any, kind: str) -> Sequence[Any]:
    attributes = vars(estimator)
    inner = attributes[INSIDE[kind] if INSIDE[kind] in attributes else "base_estimator"]  # before scikit-learn 1.2
    return inner if isinstance(inner, Sequence) else [inner]


def _words(step: Any, name: str) -> str:
    return f"step {name!r} ({class_name(step)})" if name else class_name(step)


def _weighted(weight: int | float) -> Rule:
    """Make a rule for products with a transformer's weight, in NumPy's result dtype; integer products may overflow."""

    def rule(step: Any, dtype: DType) -> Behaviour:
        try:
            gives = np.dtype((np.ones(1, dtype) * weight).dtype)
        except OverflowError:  # the source fails, because the dtype cannot represent the weight
            return Behaviour(dtype, dtype)
        if gives.kind not in "iu":
            return Behaviour(gives, gives)
        most = 1.0 if dtype.kind == "b" else min(float(np.iinfo(dtype.name).max) + (weight < 0), 2.0**53)
        return Behaviour(gives, F64 if most * abs(weight) <= np.iinfo(gives.name).max else gives)

    return rule


def _kernel_of(rows: str) -> Rule:
    """Make a rule for kernels, which are computed in float32 if both the rows and the fitted rows are float32."""

    def rule(step: Any, dtype: DType) -> Behaviour:
        side_dtype = np.dtype(host_array(getattr(step, rows)).dtype)
        return Behaviour(F64, F32 if dtype == side_dtype == F32 else F64)

    return rule


def _gaussian_process(step: Any, dtype: DType) -> Behaviour:
    """Apply the rule for division by the length scales, which are float64."""
    return Behaviour(F64, F64 if _SCALARS_WIDEN or dtype.kind != "f" else dtype)


# Rules for models and feature maps; the rule for a step is in the record of its class.
_RULES: Final[Mapping[str, Rule]] = {
    "KernelRidge": _kernel_of("X_fit_"),
    "Nystroem": _kernel_of("components_"),
    "RBFSampler": in_common_dtype("random_weights_"),
    "SkewedChi2Sampler": lambda step, dtype: Behaviour(F64, checked_dtype(dtype, *WIDE)),
    "TaylorFeatures": in_common_dtype(kept=WIDE),
    **dict.fromkeys(("GaussianProcessClassifier", "GaussianProcessRegressor"), _gaussian_process),
    **dict.fromkeys((known.name for known in KNOWN if known.role.startswith("linear ")), in_common_dtype("coef_")),
}


def rule_of(known: Known) -> Rule | None:
    """Return the rule for a class, or None if neither `_RULES` nor its record contains one."""
    return _RULES.get(known.name, known.step.rule)
