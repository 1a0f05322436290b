"""What a source says of rows: its function by the definition, its own answers, and which labels float64 can tell."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from approxsvm.evaluator import native_outputs
from approxsvm.model.ensemble import Ensemble
from approxsvm.model.kernel_model import FloatArray
from approxsvm.model.single_model import SingleModel
from approxsvm.readers import read_any
from approxsvm.readers.sklearn import feature_maps
from approxsvm.readers.sklearn.known_types import name_of
from approxsvm.readers.sklearn.pipeline import flat_steps
from approxsvm.reference.definition import Definition, definition_of
from approxsvm.reports.source_rounding import NEAR_TIE, source_rounding
from approxsvm.rows import chunks

# Above this share of near ties, the source is said not to settle its rows: see `doubt`.
_MANY_NEAR_TIES: Final = 0.01
# A regression's value is a near tie where the source's rounding may change it by so much of the range: such bounds are
# hundreds of times what happens, so that about a thousandth does.
_MUCH_OF_RANGE: Final = 0.1
# Sample rows that are looked at for it, at most, and numbers in them.
_SAMPLED_ROWS: Final = 256
_SAMPLED_NUMBERS: Final = 1 << 24


def exact_decision_values(model: SingleModel, rows: Any, mapped: Any = None) -> FloatArray:
    """Decision values by the definition in float64: of Gaussians differences first, so that nothing cancels.

    Parameters
    ----------
    model : SingleModel
    rows : ndarray or sparse array of shape (n_rows, n_raw_features)
    mapped : ndarray or sparse array of shape (n_rows, n_features), optional
        The same rows as the kernel sees them; made by the model's own input map when left out.

    Returns
    -------
    ndarray of shape (n_rows, n_decisions), float64
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
class Judgement:
    """What the source says of some rows.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_decisions)
        Its decision values by the definition, at rows that its own transformers have made.
    slack : ndarray of shape (n_rows, n_decisions)
        What float64 may have changed in them.
    labels : ndarray of shape (n_rows,), or None
        By the source's own ``predict`` where it has one, else by the values; None for a regression.
    certain : ndarray of shape (n_rows,), bool
        Whether float64 can tell the label; of a regression, whether what it rounds is little beside the range.
    misread : ndarray of shape (n_rows,), bool
        Whether the source's own answer is not that of its parameters, as they were read.
    seconds : float
        What the definition took.
    """

    values: FloatArray
    slack: FloatArray
    labels: npt.NDArray[Any] | None
    certain: npt.NDArray[np.bool_]
    misread: npt.NDArray[np.bool_]
    seconds: float


def judge(against: Any, model: SingleModel, rows: Any, *, steps: Sequence[Any] | None = None) -> Judgement:
    """Ask the source itself: its own transformers and its own answers, and the exact function of its parameters.

    Parameters
    ----------
    against : fitted estimator, KernelModel, or path
    model : KernelModel
        What `against` was read as.
    rows : ndarray or sparse array of shape (n_rows, n_raw_features)
    steps : sequence of estimators, optional
        Whose arithmetic it is, as `own_steps` has them, where `against` is numbers that came from an estimator.

    Returns
    -------
    Judgement
    """
    steps = own_steps(against) if steps is None else steps
    pieces = chunks(rows.shape[0], rows.shape[1])  # every source takes dense rows, and some take no others
    parts = [_judge_dense(against, model, _dense(rows[piece]), steps) for piece in pieces]
    if len(parts) == 1:
        return parts[0]
    return Judgement(
        values=np.concatenate([part.values for part in parts]),
        slack=np.concatenate([part.slack for part in parts]),
        labels=None if parts[0].labels is None else np.concatenate([part.labels for part in parts]),
        certain=np.concatenate([part.certain for part in parts]),
        misread=np.concatenate([part.misread for part in parts]),
        seconds=sum(part.seconds for part in parts),
    )


def _judge_dense(against: Any, model: SingleModel, rows: FloatArray, steps: Sequence[Any] | None) -> Judgement:
    mapped = rows if model.input_map is None else _own_rows(against, model, rows)
    start = time.perf_counter()
    values = exact_decision_values(model, rows, mapped)
    seconds = time.perf_counter() - start
    definition = definition_of(model)
    noise = source_rounding(definition, model, steps, rows, mapped)
    slack = definition.rounding(mapped, values) + noise
    own = own_predictions(against, rows)
    labels, certain = _told_by_float64(definition, model, values, noise)
    if labels is None:
        misread = np.zeros(len(rows), bool)
        if own is not None:
            allowed = 64 * slack + float(model.value_error.max())
            misread = np.any(np.abs(own.reshape(values.shape) - values) > allowed + 1e-9 * np.abs(values), axis=1)
        return Judgement(values, slack, None, certain, misread, seconds)
    misread = np.zeros(len(rows), bool) if own is None else (own != labels) & certain
    return Judgement(values, slack, labels if own is None else own, certain, misread, seconds)


def _told_by_float64(
    definition: Definition, model: SingleModel, values: FloatArray, noise: FloatArray
) -> tuple[npt.NDArray[Any] | None, npt.NDArray[np.bool_]]:
    """Labels by the values, None of a regression; and in which rows noise leaves no doubt."""
    if model.task == "regression":
        return None, _is_close(definition, noise)
    near = NEAR_TIE * definition.scale + noise + np.zeros_like(values)
    if model.task == "one_class":
        return np.where(values[:, 0] > 0, 1, -1), np.abs(values[:, 0]) > near[:, 0]
    classes, certain = native_outputs(model.outputs, model.task, len(model.labels)).certified_class(values, near)
    return model.labels[classes], certain


def _is_close(definition: Definition, noise: FloatArray) -> npt.NDArray[np.bool_]:
    """In which rows of a regression noise is little beside the range of values."""
    if not noise.any():
        return np.ones(len(noise), bool)
    return np.asarray((noise <= _MUCH_OF_RANGE * definition.spread).all(axis=1))


# --- where the source itself cannot tell


def doubt(n_near_ties: int, n_rows: int) -> str | None:
    """What to say of a source whose own rounding leaves more than a few rows open, and what to do; else None."""
    if n_near_ties <= _MANY_NEAR_TIES * n_rows:
        return None
    return (
        f"the source's own arithmetic does not settle {n_near_ties:,} of {n_rows:,} rows: float64 may round as much in "
        "it as decides them, and its answers may differ from those of its formula, which is what is compiled; center "
        "or scale the rows and fit again, for example with a StandardScaler in front"
    )


def doubt_of_sample(source: Any, model: SingleModel | Ensemble, rows: Any) -> str | None:
    """The same of some of the rows that a model is compiled with, at little cost: nobody asks the source anything.

    Parameters
    ----------
    source : fitted estimator, KernelModel, or path
    model : SingleModel or Ensemble
        What it was read as.
    rows : ndarray or sparse array of shape (n_rows, n_raw_features)
    """
    most = min(_SAMPLED_ROWS, max(1, _SAMPLED_NUMBERS // rows.shape[1]))
    some = rows[:: -(-rows.shape[0] // most)]
    steps, members = own_steps(source), model.members if isinstance(model, Ensemble) else (model,)
    n_open = n_rows = 0
    for piece in chunks(*some.shape):
        part = _dense(some[piece])
        for member in members:
            part = part if member.input_map is None else part[member.input_map.takes(part)]
        with np.errstate(all="ignore"):
            n_open += _open_rows(members, steps, part)
        n_rows += len(part)
    return doubt(n_open, n_rows)


def _open_rows(members: Sequence[SingleModel], steps: Sequence[Any] | None, rows: FloatArray) -> int:
    """How many rows the source leaves open; those of a classifier are evaluated where its noise is unusual."""
    definitions = [definition_of(member) for member in members]
    all_mapped = [rows if one.input_map is None else one.input_map.apply(rows) for one in members]
    of_each = list(zip(definitions, members, all_mapped, strict=True))
    noises = [source_rounding(definition, one, steps, rows, mapped) for definition, one, mapped in of_each]
    noises = [np.where(np.isnan(noise), np.inf, noise) for noise in noises]  # beyond float64
    pairs = list(zip(definitions, noises, strict=True))
    if members[0].task == "regression":
        return int((~np.all([_is_close(*pair) for pair in pairs], axis=0)).sum())
    if all((noise <= NEAR_TIE * definition.scale).all() for definition, noise in pairs):
        return 0
    values = [definition.values(mapped) for definition, _, mapped in of_each]
    if len(members) > 1:
        certain = best_of(*mean_probabilities(members, values, noises))[1]
    else:
        certain = _told_by_float64(definitions[0], members[0], values[0], noises[0])[1]
    return int((~certain).sum())


def mean_probabilities(
    members: Sequence[SingleModel], values: Sequence[FloatArray], slacks: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Least and greatest mean probability of each class, where values are off by so much at most."""
    triples = zip(members, values, slacks, strict=True)
    intervals = [
        native_outputs(m.outputs, m.task, len(m.labels)).probability_interval(v, np.broadcast_to(s, v.shape).copy())
        for m, v, s in triples
    ]
    low, high = (np.mean(side, axis=0) for side in zip(*intervals, strict=True))
    return low, high


def best_of(low: FloatArray, high: FloatArray) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """The most probable class of each row by both ends of its probabilities, and whether no other may be that."""
    best = (low + high).argmax(axis=1)
    others = high.copy()
    np.put_along_axis(others, best[:, np.newaxis], -1.0, axis=1)
    return best, others.max(axis=1) < low[np.arange(len(low)), best] - 2.0**-40


def _dense(rows: Any) -> FloatArray:
    """A float64 copy: the source may overwrite what it is given (``copy=False``)."""
    return np.array(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


def own_predictions(
    against: Any, rows: Any, method: Literal["predict", "predict_proba"] = "predict"
) -> npt.NDArray[Any] | None:
    """What the source itself says of a dense copy of rows; None where it is numbers and not an estimator."""
    if not hasattr(against, method):
        return None
    return np.asarray(getattr(against, method)(_named(against, _dense(rows))))


def _own_rows(source: Any, model: SingleModel, rows: FloatArray) -> FloatArray:
    """Rows as the kernel of the source sees them, by its own transformers where it has some."""
    steps = own_steps(source)
    if steps is None:
        assert model.input_map is not None
        return model.input_map.apply(rows)
    if len(steps) > 1 and name_of(steps[-2]) in feature_maps.NAMES:
        own = feature_maps.own_map(steps[-2])
        steps = steps[:-2]
    else:
        kernel_machine = read_any(steps[-1])
        own = None if isinstance(kernel_machine, Ensemble) else kernel_machine.input_map
        steps = steps[:-1]
    mapped: Any = _named(steps[0], rows.copy()) if steps else rows
    for step in steps:
        mapped = step.transform(mapped)
    mapped = np.array(mapped.toarray() if hasattr(mapped, "toarray") else mapped, dtype=np.float64)
    return np.asarray(mapped if own is None else own.apply(mapped))


def own_steps(source: Any) -> list[Any] | None:
    """Transformers and final estimator of a source, one after the other; None where it is not an estimator."""
    for inner in ("best_estimator_", "regressor_"):
        if hasattr(source, inner):
            return own_steps(getattr(source, inner))
    if hasattr(source, "calibrated_classifiers_"):
        return own_steps(source.calibrated_classifiers_[0].estimator)
    if name_of(source) == "FrozenEstimator":
        return own_steps(source.estimator)
    if not hasattr(source, "predict"):
        return None
    if name_of(source) != "Pipeline":
        return [source]
    steps = [step for _, step in flat_steps(source)]
    return steps[:-1] + (own_steps(steps[-1]) or [])


def _named(estimator: Any, rows: Any) -> Any:
    """Rows with the column names that an estimator was fitted with."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:  # a pipeline asks its first step, which may be "passthrough"
        names = getattr((own_steps(estimator) or [None])[0], "feature_names_in_", None)
    if names is None:
        return rows
    from pandas import DataFrame  # the estimator has seen a data frame

    return DataFrame(rows, columns=names)
