"""Frontend for pipelines: the transformers become the input map of the last step's model."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np

from approxsvm.errors import ApproxSVMError, ModelFormatError, UnsupportedModelError
from approxsvm.frames.text_columns import is_na, is_nan
from approxsvm.frontends.sklearn import feature_maps, kernel_machines, linear_models
from approxsvm.frontends.sklearn.kernel_machines import parameter
from approxsvm.frontends.sklearn.known_types import Known, class_name, helper, name_of, recognise
from approxsvm.frontends.sklearn.steps import lookups
from approxsvm.frontends.sklearn.steps.record import Fold
from approxsvm.frontends.sklearn.support_vector_machines import feature_names, is_dropped
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.input_map import InputMap, same_texts
from approxsvm.ir.single_model import SingleModel

_CANNOT_FOLD: Final = "cannot be folded into the model"
Model = SingleModel | Ensemble
Read = Callable[[Any], Model]
ReadAround = Callable[[Any, Read], Model]


def read_pipeline(pipeline: Any, read: Read, around: Mapping[str, ReadAround]) -> Model:
    """Read a fitted Pipeline whose last step `read` supports; errors name the step and a remedy.

    After a feature map that approximates a kernel, the last step is a linear model or a wrapper around one; the
    functions in `around` read such wrappers.

    The reference is the last step's reference at the transformed rows. The preceding steps transform rows in float64,
    operation by operation; from the first projection or logarithm on, they transform rows in exact arithmetic
    (input_map.py).
    """
    steps = _flat(pipeline)
    if not steps or _is_nothing(steps[-1][1]):
        raise UnsupportedModelError("the last step of this pipeline is not an estimator")
    steps = flat_steps(pipeline)
    final_name, final = steps.pop()
    if steps and _name_of(steps[-1][1], steps[-1][0]) in feature_maps.NAMES:
        map_name, map_step = steps.pop()
        with _remedy_named(pipeline, [(map_name, map_step)]):
            model = _read_after_map(map_name, map_step, final, final_name, read, around)
    else:
        with _step_named(final_name):
            model = read(final)
    if not steps:
        return model
    # The first of `steps` provides the names, because the pipeline's own first step may be "passthrough".
    names = feature_names(steps[0][1])
    with _remedy_named(pipeline, steps):
        map_ = InputMap.identity(_n_features_in(steps[0][1], steps[0][0]), names)
    map_ = replace(map_, by_column=_checks_columns_alone([step for _, step in steps if not _is_unchecked(step)]))
    for k, (name, step) in enumerate(steps):
        with _remedy_named(pipeline, steps[k:]):
            map_ = fold(map_, step, name)
    return with_input_map(model, lookups.complete(map_))


def _is_unchecked(step: Any) -> bool:
    """Return whether a step returns all rows unchanged and unchecked, and does not name its output columns."""
    is_function = name_of(step) == "FunctionTransformer"
    return is_function and step.func is None and not step.validate and step.feature_names_out is None


def _checks_columns_alone(steps: Sequence[Any]) -> bool:
    """Return whether the first of these steps checks only the columns that it selects."""
    if steps and name_of(steps[0]) == "FeatureUnion":
        parts = [part for _, part in steps[0].transformer_list if not is_dropped(part)]
        return bool(parts) and all(_checks_columns_alone([part]) for part in parts)
    return bool(steps) and name_of(steps[0]) == "ColumnTransformer"


@contextmanager
def _remedy_named(pipeline: Any, steps: Sequence[tuple[str, Any]]) -> Iterator[None]:
    """If the first of these steps is rejected, add a remedy: how to compile the steps after the last rejected one."""
    try:
        yield
    except UnsupportedModelError as error:
        if _CANNOT_FOLD not in str(error):
            raise
        name = next((name for name, step in reversed(steps[1:]) if not _folds_alone(step, name)), steps[0][0])
        names, outer = [name for name, _ in pipeline.steps], name.split("__")[0]
        k = names.index(outer) + 1 if outer in names else len(names)
        after, before = ("pipe[-1]", "pipe[:-1]") if k == len(names) - 1 else (f"pipe[{k}:]", f"pipe[:{k}]")
        remedy = f"compile {after} and give it {before}.transform(X)"
        if k == len(names):  # the rejected step is inside an inner pipeline at the end
            remedy = "compile the steps after it alone, and apply this one and all before it to the rows first"
        raise UnsupportedModelError(f"{error}; {remedy}") from None


def _folds_alone(step: Any, name: str) -> bool:
    try:
        fold(InputMap.identity(_n_features_in(step, name)), step, name)
    except (ApproxSVMError, AttributeError):  # an unfitted step raises AttributeError
        return _is_nothing(step)
    return True


@contextmanager
def _step_named(name: str) -> Iterator[None]:
    """Add a step's name to the message if the step is rejected."""
    try:
        yield
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"step {name!r} of the pipeline: {error}") from None


def _read_after_map(
    map_name: str, map_step: Any, final: Any, final_name: str, read: Read, around: Mapping[str, ReadAround]
) -> Model:
    """Read a linear model, or estimators around linear models, that follow a feature map approximating a kernel."""

    def read_after(estimator: Any) -> Model:
        kind = _name_of(estimator, final_name)
        steps = flat_steps(estimator) if kind == "Pipeline" else []
        if len(steps) == 1:
            return read_after(steps[0][1])
        if kind in around:
            if getattr(estimator, "passthrough", False):  # the estimator would pass on mapped rows instead of raw ones
                raise UnsupportedModelError(f"{_cannot_fold(map_name, map_step)} (passthrough=True after it)")
            return around[kind](estimator, read_after)
        if kind not in linear_models.NAMES:
            with _step_named(final_name):
                read(estimator)  # raises a more specific error for an unknown estimator
            raise UnsupportedModelError(_cannot_fold(map_name, map_step))
        if name_of(map_step) == "Nystroem":
            return kernel_machines.read_nystroem(map_step, estimator, kind)
        return feature_maps.read_feature_map(map_step, map_name, estimator, kind)

    return read_after(final)


def with_input_map(model: Model, map_: InputMap) -> Model:
    """Return the model with `map_` as the map from raw rows to the model's current input rows."""
    if isinstance(model, Ensemble):
        members = [with_input_map(member, map_) for member in model.members]
        return replace(model, members=tuple(m for m in members if not isinstance(m, Ensemble)))
    whole = (map_ if model.input_map is None else map_.then(model.input_map)).with_few_checks()
    if model.n_raw_features != map_.n_features:
        raise ModelFormatError(
            f"the steps give {map_.n_features} features, but the final estimator takes {model.n_raw_features}"
        )
    return replace(model, input_map=None if whole.is_identity else whole, feature_names=map_.feature_names)


def with_same_texts(model: Model) -> Model:
    """Use the same codes for a column's strings in all maps of an ensemble."""
    if not isinstance(model, Ensemble):
        return model
    maps = [InputMap.identity(m.n_features) if m.input_map is None else m.input_map for m in model.members]
    if not any(map_.texts for map_ in maps):
        return model
    same = zip(model.members, same_texts(maps), strict=True)
    return replace(model, members=tuple(replace(member, input_map=map_) for member, map_ in same))


def fold(map_: InputMap, step: Any, name: str) -> InputMap:
    """Append a fitted transformer to a map; raise UnsupportedModelError if no op or selection can represent it."""
    step = _unfrozen(step, name)
    if _is_nothing(step):
        return map_
    try:
        known = recognise(step)
        if known is not None and known.role == "selector":
            _check_width(map_, step, name)
            return _selected(_with_checks(map_, step), step)
        folder = None if known is None else known.step.fold or _UNIONS.get(known.name)
        if known is None or folder is None:
            raise UnsupportedModelError(_cannot_fold(name, step))
        _check_width(map_, step, name)
        _check_helpers(step, known)
        folded = folder(_with_checks(map_, step), step)
        is_sparse, stays_sparse = (gives_sparse(step, before) for before in (map_.is_sparse, map_.stays_sparse))
        stays_unsorted = folded.is_unsorted and (is_sparse or stays_sparse) and not known.step.sorts
        is_unsorted = leaves_unsorted(step) or stays_unsorted
        return replace(folded, is_sparse=is_sparse, stays_sparse=stays_sparse, is_unsorted=is_unsorted)
    except UnsupportedModelError as error:
        if str(error).startswith("step "):
            raise  # the message already names this step or an inner one
        raise UnsupportedModelError(f"{_cannot_fold(name, step)} ({error})") from None


def _check_helpers(step: Any, known: Known) -> None:
    """Check the types of the objects that contribute to a step's output."""
    for attribute, cls in known.step.helpers:
        held = getattr(step, attribute, None)
        for one in held if isinstance(held, (list, tuple)) else [held]:
            if one is not None:
                helper(one, attribute, cls)


def _with_checks(map_: InputMap, step: Any) -> InputMap:
    """Add the checks that a step performs before its computation to the map."""
    known = recognise(step)
    if known is None or known.name in _UNIONS or not known.step.checks(step):
        return map_
    if known.step.takes_nan:
        missing = getattr(step, "missing_values", np.nan)
        return map_.looked_at(takes_nan=is_nan(missing) or is_na(missing))
    if known.role == "selector" and allows_nan(step):
        return map_  # the step also accepts infinity
    return map_.looked_at(takes_nan=False)


def allows_nan(step: Any) -> bool:
    """Return whether the scikit-learn tags of a step or an estimator allow NaN."""
    tags = getattr(step, "__sklearn_tags__", None)  # since scikit-learn 1.6
    return tags is not None and bool(tags().input_tags.allow_nan)


def gives_sparse(step: Any, is_sparse: bool) -> bool:
    """Return whether a transformer returns sparse rows; `is_sparse` is True if its input is sparse."""
    known = recognise(step)
    kind = "" if known is None else known.name
    if kind == "Pipeline":
        for _, inner in _flat(step):
            is_sparse = is_sparse if _is_nothing(inner) else gives_sparse(inner, is_sparse)
        return is_sparse
    if kind == "ColumnTransformer":
        return bool(step.sparse_output_)
    if kind == "FeatureUnion":
        parts = [t for _, t in step.transformer_list if not is_dropped(t)]
        return any(is_sparse if _is_nothing(t) else gives_sparse(t, is_sparse) for t in parts)
    if kind in _SELECTORS_OF_SPARSE:
        return is_sparse
    return known is not None and known.step.gives_sparse(step, is_sparse)


def leaves_unsorted(step: Any) -> bool:
    """Return whether a transformer may leave sparse rows with unsorted entries."""
    known = recognise(step)
    if known is None or known.name != "ColumnTransformer":
        return known is not None and known.step.leaves_unsorted(step)
    if not step.sparse_output_ or hasattr(step, "feature_names_in_"):
        return False
    return any(
        (np.diff(positions) < 0).any() for positions in map(np.ravel, step._transformer_to_input_indices.values())
    )


def _name_of(step: Any, name: str) -> str:
    """Return the name of a step's class in the table of known types; errors name the step."""
    with _step_named(name):
        return name_of(step)


def flat_steps(pipeline: Any) -> list[tuple[str, Any]]:
    """Return the steps except those that do nothing, with inner pipelines expanded."""
    return [(name, step) for name, step in _flat(pipeline) if not _is_nothing(step)]


def _flat(pipeline: Any) -> list[tuple[str, Any]]:
    """Return all steps of a pipeline except imbalanced-learn samplers, with inner pipelines expanded."""
    *given, last = [(name, _unfrozen(step, name)) for name, step in pipeline.steps]
    known = recognise(pipeline)
    if known is not None and known.library == "imblearn":
        given = [(name, step) for name, step in given if not hasattr(step, "fit_resample")]
    steps: list[tuple[str, Any]] = []
    for name, step in [*given, last]:
        if _name_of(step, name) == "Pipeline":
            steps += [(f"{name}__{inner}", inner_step) for inner, inner_step in _flat(step)]
        else:
            steps.append((name, step))
    return steps


def _unfrozen(step: Any, name: str) -> Any:
    """Return the estimator inside a FrozenEstimator, or the step itself."""
    while _name_of(step, name) == "FrozenEstimator":
        step = step.estimator
    return step


def _is_nothing(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step == "passthrough")


def _cannot_fold(name: str, step: Any) -> str:
    return f"step {name!r} ({class_name(step)}) {_CANNOT_FOLD}"


def _n_features_in(step: Any, name: str) -> int:
    count = getattr(step, "n_features_in_", None)
    if count is not None:
        return int(count)
    known = recognise(step)
    # Before scikit-learn 0.24, `n_features_in_` does not exist, but scalers store one value per column.
    learned = [vars(step).get(key) for key in _COLUMN_ATTRIBUTES] if known is not None and known.role == "step" else []
    widths = [np.shape(numbers)[-1] for numbers in learned if np.ndim(numbers) > 0]
    if widths:
        return int(widths[0])
    if known is not None and known.name == "FunctionTransformer":
        raise UnsupportedModelError(f"step {name!r} ({class_name(step)}) does not know its number of columns")
    if known is not None and known.role in ("step", "selector"):
        step.n_features_in_  # noqa: B018  # raises AttributeError if the step is not fitted
    raise UnsupportedModelError(_cannot_fold(name, step))  # text vectorizers read documents instead of columns


def _check_width(map_: InputMap, step: Any, name: str) -> None:
    count = getattr(step, "n_features_in_", map_.n_features)
    if count != map_.n_features:
        raise ModelFormatError(f"step {name!r} takes {count} features, but the steps before it give {map_.n_features}")


def _selected(map_: InputMap, step: Any) -> InputMap:
    support = np.asarray(step.get_support())  # `transform` also calls `get_support`
    return map_.then_select(np.flatnonzero(support) if support.dtype == bool else support)


def _inner_pipeline(map_: InputMap, step: Any) -> InputMap:
    for name, inner in _flat(step):
        map_ = fold(map_, inner, name)
    return map_


def _column_transformer(map_: InputMap, step: Any) -> InputMap:
    positions = step._transformer_to_input_indices
    for name, _, columns in step.transformers_:
        _check_columns(name, columns, np.asarray(positions[name]), map_.n_features)
    parts = [
        (name, transformer, positions[name])
        for name, transformer, _ in step.transformers_
        if not is_dropped(transformer) and len(positions[name])
    ]
    for name, transformer, _ in parts:
        _check_takes_no_whole_texts(transformer, name)
    if len(parts) > 1:  # a slice makes a view, any other selection makes a copy
        _check_overwriting((name, part) for name, part, columns in step.transformers_ if isinstance(columns, slice))
    return _concatenated(map_, parts, step.transformer_weights)


def _check_takes_no_whole_texts(step: Any, name: str) -> None:
    while _name_of(step, name) == "Pipeline" and step.steps:
        name, step = step.steps[0]
    known = recognise(step)
    if known is not None and known.role == "vectorizer":
        raise UnsupportedModelError(
            f"step {name!r} ({class_name(step)}) takes the whole texts of one of several columns, which no compiled "
            "model does; for a pipeline pipe, compile(pipe[-1]) predicts pipe[:-1].transform(X)"
        )


def _check_columns(name: str, columns: Any, positions: Any, n_features: int) -> None:
    """Raise ModelFormatError if a ColumnTransformer selects different columns from arrays than from data frames."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # scikit-learn 1.6 warns when the remaining columns are accessed
        given = [columns.start, columns.stop] if isinstance(columns, slice) else np.ravel(columns).tolist()
    if any(isinstance(column, str) for column in given):
        return  # only data frames have column names
    of_arrays = np.arange(n_features)[columns if isinstance(columns, slice) else given].tolist()
    if of_arrays != np.ravel(positions).tolist():
        raise ModelFormatError(
            f"step {name!r} takes columns {of_arrays} of arrays, {positions.tolist()} of data frames"
        )


def _feature_union(map_: InputMap, step: Any) -> InputMap:
    every = np.arange(map_.n_features)
    parts = [(name, t, every) for name, t in step.transformer_list if not is_dropped(t)]
    if len(parts) > 1:
        _check_overwriting((name, part) for name, part, _ in parts)
    return _concatenated(map_, parts, step.transformer_weights)


def overwrites(step: Any) -> bool:
    """Return whether a step, or one inside it, overwrites its input, which other steps may use later."""
    known = recognise(step)
    kind = "" if known is None else known.name
    if kind == "Pipeline":
        return any(overwrites(inner) for _, inner in step.steps)
    if kind == "FeatureUnion":
        return any(overwrites(inner) for _, inner in step.transformer_list)
    if kind == "ColumnTransformer":
        return any(overwrites(inner) for _, inner, _ in step.transformers_)
    if kind == "FrozenEstimator":
        return overwrites(step.estimator)
    if hasattr(step, "best_estimator_"):
        return overwrites(step.best_estimator_)
    return known is not None and "copy" in known.relies and not step.copy


def _check_overwriting(parts: Iterable[tuple[str, Any]]) -> None:
    for name, transformer in parts:
        if overwrites(transformer):
            raise UnsupportedModelError(
                f"its part {name!r} overwrites (copy=False) the rows of the others; refit with copy=True"
            )


def _concatenated(map_: InputMap, parts: Sequence[tuple[str, Any, Any]], weights: Any) -> InputMap:
    maps = []
    for name, transformer, columns in parts:
        part = fold(map_.then_select(columns), transformer, name)
        weight = (weights or {}).get(name)
        maps.append(part if weight is None else part.then_affine(multiply=parameter(weight, f"the weight of {name!r}")))
    if not maps:
        raise UnsupportedModelError("it keeps no column")
    return InputMap.concatenate(maps)


# Steps that consist of other steps, and pass rows to them unchecked.
_UNIONS: Final[Mapping[str, Fold]] = {
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _feature_union,
    "Pipeline": _inner_pipeline,
}
# Selectors that return sparse rows if their input is sparse.
_SELECTORS_OF_SPARSE: Final = {"SelectFromModel", "SelectKBest", "VarianceThreshold"}
# Attributes of scalers, imputers and projections whose last axis has one entry per column.
_COLUMN_ATTRIBUTES: Final = ("scale_", "center_", "mean_", "statistics_", "lambdas_", "components_")
