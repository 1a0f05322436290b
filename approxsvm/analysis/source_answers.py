"""Results of the source: its exact function, its predictions, and the labels that float64 can determine."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from approxsvm.analysis.source_rounding import NEAR_TIE, source_rounding
from approxsvm.frames.rows import chunks
from approxsvm.frames.text_columns import TextColumn, decoded
from approxsvm.frontends import read_any
from approxsvm.frontends.sklearn import feature_maps
from approxsvm.frontends.sklearn.known_types import name_of
from approxsvm.frontends.sklearn.pipeline import flat_steps
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.ensembles.combination import label_positions
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.kernel_model import FloatArray, KernelModel
from approxsvm.ir.single_model import SingleModel
from approxsvm.reference.definition import Definition, definition_of
from approxsvm.runtime.evaluator import native_outputs

# Maximum fraction of near ties for which `doubt` returns no message.
_MANY_NEAR_TIES: Final = 0.01
# A regression value is a near tie if the bound on the source's rounding error exceeds this fraction of the range of
# values. Such bounds are hundreds of times the actual error, which is about a thousandth of the range.
_MUCH_OF_RANGE: Final = 0.1
# Maximum number of sample rows to check, and of entries in them.
_SAMPLED_ROWS: Final = 256
_SAMPLED_NUMBERS: Final = 1 << 24


def exact_decision_values(model: SingleModel, rows: Any, mapped: Any = None) -> FloatArray:
    """Compute decision values of shape (n_rows, n_decisions) by the formula, in float64 and without cancellation.

    `rows` contains raw rows, shape (n_rows, n_raw_features). `mapped` contains the mapped rows, shape (n_rows,
    n_features); by default they are computed with the model's input map.
    """
    definition = definition_of(model)
    values = np.empty((rows.shape[0], model.n_decisions))
    for piece in chunks(*rows.shape):
        part = _dense(rows[piece] if mapped is None else mapped[piece])
        if model.input_map is not None and mapped is None:
            part = model.input_map.apply(part)
        values[piece] = definition.values(part)
    return values


@dataclass(frozen=True, eq=False)
class SourceAnswers:
    """Results of the source for n_rows rows."""

    values: FloatArray  # (n_rows, n_decisions): values by definition, at rows mapped by the source
    slack: FloatArray  # (n_rows, n_decisions): bounds on their float64 errors
    labels: npt.NDArray[Any] | None  # labels from the source's `predict`, else from the values; None for a regressor
    certain: npt.NDArray[np.bool_]  # True if float64 determines the label or, for a regressor, is accurate
    misread: npt.NDArray[np.bool_]  # True if the source's prediction contradicts the parameters read from it
    seconds: float  # evaluation time of the definition


def source_answers(
    against: Any, model: SingleModel, rows: Any, *, steps: Sequence[Any] | None = None, given: Any = None
) -> SourceAnswers:
    """Compute the source's results, both with its own transformers and predictions and with the exact function.

    `model` is the model read from `against`. `rows` contains raw rows, and `given` the same rows as returned by
    `as_source_rows`. If `against` is a model that was read from an estimator, `steps` lists the steps whose rounding
    counts (see `steps_that_round`).
    """
    steps = steps_that_round(against, model) if steps is None else steps
    pieces = chunks(rows.shape[0], rows.shape[1])
    parts = [_answers_part(against, model, rows[piece], steps, rows_at(given, piece)) for piece in pieces]
    if len(parts) == 1:
        return parts[0]
    return SourceAnswers(
        values=np.concatenate([part.values for part in parts]),
        slack=np.concatenate([part.slack for part in parts]),
        labels=None if parts[0].labels is None else np.concatenate([part.labels for part in parts]),
        certain=np.concatenate([part.certain for part in parts]),
        misread=np.concatenate([part.misread for part in parts]),
        seconds=sum(part.seconds for part in parts),
    )


def _answers_part(
    against: Any, model: SingleModel, own_rows: Any, steps: Sequence[Any] | None, given: Any
) -> SourceAnswers:
    rows = _dense(own_rows)
    mapped = rows if model.input_map is None else _source_rows(against, model, own_rows, given)
    start = time.perf_counter()
    values = exact_decision_values(model, rows, mapped)
    seconds = time.perf_counter() - start
    definition = definition_of(model)
    noise = source_rounding(definition, model, steps, rows, mapped)
    slack = definition.rounding(mapped, values) + noise
    texts = None if model.input_map is None else model.input_map.texts
    predictions = source_predictions(against, own_rows, texts=texts, given=given)
    if isinstance(model, KernelModel) and model.task == "classification":  # distances from output codes are rounded
        noise = noise + model.coef_error / UNIT64 * slack + model.value_error
    labels, certain = _labels_in_float64(definition, model, values, noise)
    if labels is None:
        misread = np.zeros(len(rows), bool)
        if predictions is not None:
            allowed = 64 * slack + float(model.value_error.max())
            misread = np.any(
                np.abs(predictions.reshape(values.shape) - values) > allowed + 1e-9 * np.abs(values), axis=1
            )
        return SourceAnswers(values, slack, None, certain, misread, seconds)
    misread = np.zeros(len(rows), bool) if predictions is None else (predictions != labels) & certain
    return SourceAnswers(values, slack, labels if predictions is None else predictions, certain, misread, seconds)


def _labels_in_float64(
    definition: Definition, model: SingleModel, values: FloatArray, noise: FloatArray
) -> tuple[npt.NDArray[Any] | None, npt.NDArray[np.bool_]]:
    """Return the labels implied by the values (None for a regressor), and a mask of labels that noise cannot change."""
    if model.task == "regression":
        return None, _is_close(definition, noise)
    near = NEAR_TIE * definition.scale + noise + np.zeros_like(values)
    if model.task == "one_class":
        return np.where(values[:, 0] > 0, 1, -1), np.abs(values[:, 0]) > near[:, 0]
    classes, certain = native_outputs(model.outputs, model.task, len(model.labels)).certified_class(values, near)
    return model.labels[classes], certain


def _is_close(definition: Definition, noise: FloatArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows for which the noise is small relative to the range of a regressor's values."""
    if not noise.any():
        return np.ones(len(noise), bool)
    return np.asarray((noise <= _MUCH_OF_RANGE * definition.spread).all(axis=1))


def doubt(n_near_ties: int, n_rows: int) -> str | None:
    """Return a warning with advice if rounding in the source leaves more than a few rows undecided, else None."""
    if n_near_ties <= _MANY_NEAR_TIES * n_rows:
        return None
    return (
        f"float64 rounding inside the source leaves {n_near_ties:,} of {n_rows:,} rows undecided: their answers may "
        "differ from those of its formula, which approxsvm compiles; center or scale the rows and fit again, for "
        "example with a StandardScaler as the first step"
    )


def doubt_of_sample(source: Any, model: SingleModel | Ensemble, rows: Any) -> str | None:
    """Return the warning from `doubt` for a sample of `rows`, without calling the source's predict.

    `model` is the model read from `source`; `rows` contains raw rows.
    """
    members = model.members if isinstance(model, Ensemble) else (model,)
    most = min(_SAMPLED_ROWS, max(1, _SAMPLED_NUMBERS // rows.shape[1]))
    some = rows[:: -(-rows.shape[0] // most)]
    steps = [steps_that_round(source, member, k) for k, member in enumerate(members)]
    n_undecided = n_rows = 0
    for piece in chunks(*some.shape):
        part = _dense(some[piece])
        for member in members:
            part = part if member.input_map is None else part[member.input_map.takes(part)]
        with np.errstate(all="ignore"):
            n_undecided += _count_undecided(model, members, steps, part)
        n_rows += len(part)
    return doubt(n_undecided, n_rows)


def _count_undecided(
    model: SingleModel | Ensemble, members: Sequence[SingleModel], steps: Sequence[list[Any] | None], rows: FloatArray
) -> int:
    """Count rows whose results rounding in the source may change; classifiers are evaluated only if it is large."""
    definitions = [definition_of(member) for member in members]
    all_mapped = [rows if one.input_map is None else one.input_map.apply(rows) for one in members]
    of_each = list(zip(definitions, members, steps, all_mapped, strict=True))
    noises = [source_rounding(definition, one, used, rows, mapped) for definition, one, used, mapped in of_each]
    noises = [np.where(np.isnan(noise), np.inf, noise) for noise in noises]  # NaN results from overflow
    pairs = list(zip(definitions, noises, strict=True))
    if model.task == "regression":
        return int((~np.all([_is_close(*pair) for pair in pairs], axis=0)).sum())
    if all((noise <= NEAR_TIE * definition.scale).all() for definition, noise in pairs):
        return 0
    values = [definition.values(mapped) for definition, _, _, mapped in of_each]
    if isinstance(model, Ensemble):
        certain = classes_of(model, values, noises)[1]
        certain = np.asarray(certain if certain.ndim == 1 else certain.all(axis=1))
    else:
        certain = _labels_in_float64(definitions[0], model, values[0], noises[0])[1]
    return int((~certain).sum())


def classes_of(
    ensemble: Ensemble, values: Sequence[FloatArray], slacks: Sequence[FloatArray]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return each row's class by an ensemble's rule, and a mask of classes that errors up to `slacks` cannot change.

    With several targets, both results are matrices with one column per target.
    """
    of_members = list(zip(ensemble.members, values, slacks, strict=True))
    if ensemble.of_targets:
        pairs = [_labels_of(*of_member) for of_member in of_members]
        known = label_positions(ensemble.labels, ensemble.members)
        best = [positions[classes] for positions, (classes, _) in zip(known, pairs, strict=True)]
        return np.column_stack(best), np.column_stack([certain for _, certain in pairs])
    if not ensemble.counts_votes:
        outputs = native_outputs(ensemble.outputs, ensemble.task, len(ensemble.labels))
        return outputs.certified_class(*map(np.ascontiguousarray, combined(ensemble, values, slacks)))
    sums, centers, reach = np.zeros((3, len(values[0]), len(ensemble.labels)))
    n_open = np.zeros(len(values[0]))
    for of_member, part in zip(of_members, ensemble.combination.parts(ensemble.members), strict=True):
        classes, certain = _labels_of(*of_member)
        votes = (np.arange(part.shape[1]) == classes[:, np.newaxis]).astype(np.float64)
        sums += votes @ part.T
        centers += np.where(certain[:, np.newaxis], votes, 0.5) @ part.T
        reach += np.where(certain[:, np.newaxis], 0.0, 0.5 * np.ones_like(votes)) @ np.abs(part.T)
        n_open += ~certain
    best = sums.argmax(axis=1)[:, np.newaxis]
    low, high = centers - reach, centers + reach
    beaten = np.take_along_axis(low, best, axis=1) > high + 2.0**-40 * np.abs(high).max(axis=1, keepdims=True)
    beaten |= (n_open == 0.0)[:, np.newaxis] | (np.arange(len(ensemble.labels)) == best)
    return best[:, 0], beaten.all(axis=1)


def _labels_of(
    member: SingleModel, values: FloatArray, slack: FloatArray
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return a member's label indices, or the signs of several targets, and a mask of the certain results."""
    if member.task == "regression":
        return (values > 0).astype(np.intp), np.abs(values) > slack
    outputs = native_outputs(member.outputs, member.task, len(member.labels))
    return outputs.certified_class(values, np.ascontiguousarray(np.broadcast_to(slack, values.shape)))


def combined(
    ensemble: Ensemble, values: Sequence[FloatArray], slacks: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return an ensemble's values (the members' columns, or weighted sums of them) and bounds on their errors."""
    slacks = [np.broadcast_to(slack, value.shape) for slack, value in zip(slacks, values, strict=True)]
    numbers = [_columns(*of_member) for of_member in zip(ensemble.members, values, slacks, strict=True)]
    columns, errors = (np.column_stack(same) for same in zip(*numbers, strict=True))
    weights, addends = ensemble.combination.weights, ensemble.combination.addends
    if weights is None or addends is None:
        return columns, errors
    absolute = np.abs(columns) @ np.abs(weights.T) + np.abs(addends)
    rounding = (len(weights.T) + 6) * UNIT64 * absolute
    return columns @ weights.T + addends, errors @ np.abs(weights.T) + rounding


def _columns(member: SingleModel, values: FloatArray, slack: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a member's columns (values, or its labels' probabilities or scores) and bounds on their errors."""
    if member.task == "regression" or (member.outputs.probability is None and member.outputs.of_each_class):
        return values, slack
    outputs = native_outputs(member.outputs, member.task, len(member.labels))
    find = outputs.one_vs_rest_interval if member.outputs.probability is None else outputs.probability_interval
    low, high = find(values, slack.copy())
    return (low + high) / 2, (high - low) / 2


def _dense(rows: Any, dtype: Any = np.float64) -> Any:
    """Copy rows to a dense array, because the source may overwrite its input; dtype=None keeps the rows' dtype."""
    return np.array(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=dtype)


def as_source_rows(X: Any) -> Any:
    """Return rows with the user's dtypes in a container that `rows_at` accepts; None if X is another object."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    is_frame = hasattr(X, "columns") and hasattr(X, "dtypes")
    return X if is_frame or isinstance(X, (np.ndarray, list)) else None


def rows_at(X: Any, positions: Any) -> Any:
    """Select rows from any container that scikit-learn accepts; return None for None."""
    from sklearn.utils import _safe_indexing

    return None if X is None else _safe_indexing(X, positions)


def source_predictions(
    against: Any,
    rows: Any,
    method: Literal["predict", "predict_proba"] = "predict",
    *,
    texts: Mapping[int, TextColumn] | None = None,
    given: Any = None,
) -> npt.NDArray[Any] | None:
    """Return the source's predictions for the rows as `given`, if known; None if the source is not an estimator.

    If `given` is None or rejected, the source receives a dense copy with the rows' dtype, with strings instead of
    codes.
    """
    if not hasattr(against, method):
        return None
    return np.asarray(_answer(getattr(against, method), against, rows, texts, given))


def _answer(
    ask: Callable[[Any], Any], estimator: Any, rows: Any, texts: Mapping[int, TextColumn] | None, given: Any
) -> Any:
    """Call an estimator's method `ask` with the rows."""
    if given is not None:
        try:
            return ask(
                copy(given) if isinstance(given, list) else given.clone() if hasattr(given, "clone") else given.copy()
            )
        except (TypeError, ValueError):
            pass  # the method rejects this container, or NaN in cells that the model ignores
    return ask(_named(estimator, _dense(rows, None), texts))


def _source_rows(source: Any, model: SingleModel, rows: Any, given: Any) -> FloatArray:
    """Map rows as the source does, using its transformers if it has any."""
    steps = source_steps(source)
    if steps is None:
        assert model.input_map is not None
        return model.input_map.apply(_dense(rows))
    if len(steps) > 1 and name_of(steps[-2]) in feature_maps.NAMES:
        inner_map = feature_maps.own_map(steps[-2])
        steps = steps[:-2]
    else:
        kernel_machine = read_any(steps[-1])
        inner_map = None if isinstance(kernel_machine, Ensemble) else kernel_machine.input_map
        steps = steps[:-1]
    texts = model.input_map.texts if model.input_map is not None else None

    def through(mapped: Any) -> Any:
        for step in steps:
            mapped = step.transform(mapped)
        return mapped

    mapped = _dense(_answer(through, steps[0], rows, texts, given) if steps else rows)
    return np.asarray(mapped if inner_map is None else inner_map.apply(mapped))


def source_steps(source: Any, member: int = 0) -> list[Any] | None:
    """List a source's transformers and its final estimator, in order; None if it is not an estimator.

    A calibrated classifier has one list per fold; `member` is the fold's index.
    """
    for inner in ("best_estimator_", "regressor_"):
        if hasattr(source, inner):
            return source_steps(getattr(source, inner), member)
    if hasattr(source, "calibrated_classifiers_"):
        folds = source.calibrated_classifiers_
        return source_steps(folds[min(member, len(folds) - 1)].estimator, member)
    if name_of(source) == "FrozenEstimator":
        return source_steps(source.estimator, member)
    if not hasattr(source, "predict"):
        return None
    if name_of(source) != "Pipeline":
        return [source]
    steps = [step for _, step in flat_steps(source)]
    return steps[:-1] + (source_steps(steps[-1], member) or [])


def steps_that_round(source: Any, member: SingleModel, position: int = 0) -> list[Any] | None:
    """List the steps that compute a member's values: the inner estimator's, if one has the member's vectors.

    `position` is the member's index in the ensemble.
    """
    steps = source_steps(source, position)
    inner = (steps for steps in _steps_inside(steps) if isinstance(member, KernelModel) and _has_vectors(steps, member))
    return next(inner, steps)


def _steps_inside(steps: list[Any] | None) -> Iterator[list[Any]]:
    """Yield the `source_steps` of each fitted estimator inside the last step."""
    for inner in ("estimators_", "estimator_"):
        fitted = getattr(steps[-1], inner, ()) if steps else ()
        fitted = fitted.ravel().tolist() if isinstance(fitted, np.ndarray) else fitted
        for estimator in fitted if isinstance(fitted, (list, tuple)) else [fitted]:
            inside = source_steps(estimator)
            if inside:
                yield inside
                yield from _steps_inside(inside)


def _has_vectors(steps: list[Any], model: KernelModel) -> bool:
    """Return whether the estimator that computes kernels (it may be unfitted) has the model's support vectors."""
    if len(steps) > 1 and name_of(steps[-2]) == "Nystroem":
        components = getattr(steps[-2], "components_", None)
        if components is None or np.shape(components)[1] != model.n_features:
            return False
        landmarks, vectors = _dense(components) + 0.0, model.dense_support_vectors(0, model.n_sv) + 0.0  # removes -0.0
        if not model.has_pairs:
            return np.array_equal(landmarks, vectors)
        return {row.tobytes() for row in vectors} <= {row.tobytes() for row in landmarks}
    x: Any = getattr(steps[-1], "X_fit_", None) if name_of(steps[-1]) == "KernelRidge" else None
    return bool(np.shape(x) == (model.n_sv, model.n_features))


def _named(estimator: Any, rows: Any, texts: Mapping[int, TextColumn] | None) -> Any:
    """Return rows with strings instead of codes, and with the column names on which the estimator was fitted."""
    values = decoded(rows, texts) if texts else rows
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:  # a pipeline takes the names from its first step, which may be "passthrough"
        names = getattr((source_steps(estimator) or [None])[0], "feature_names_in_", None)
    if names is None:
        return values
    from pandas import DataFrame  # pandas is installed, because the estimator was fitted on a data frame

    if not texts:
        return DataFrame(values, columns=names)
    return DataFrame({name: values[:, j] if j in texts else rows[:, j] for j, name in enumerate(names)}, dtype=None)
