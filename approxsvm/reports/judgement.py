"""What a source says of rows: its function by the definition, its own answers, and which labels float64 can tell."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from approxsvm.model.ensemble import Ensemble
from approxsvm.model.kernel_model import FloatArray
from approxsvm.model.single_model import SingleModel
from approxsvm.predictor import native_outputs
from approxsvm.readers import read_any
from approxsvm.readers.sklearn import feature_maps
from approxsvm.readers.sklearn.known_types import name_of
from approxsvm.readers.sklearn.pipeline import flat_steps
from approxsvm.reports.arithmetic import arithmetic_of
from approxsvm.rows import chunks

# Labels are promised where the exact value is further than this from zero, as a share of sum |a_i|: float64 rounding.
NEAR_TIE: Final = 1e-10


def exact_decision_values(model: SingleModel, rows: Any, mapped: Any = None) -> FloatArray:
    """Decision values by the definition in float64: of Gaussians differences first, so that nothing cancels.

    Parameters
    ----------
    model : KernelModel, TaylorModel or CosineModel
    rows : ndarray or sparse array of shape (n_rows, n_raw_features)
    mapped : ndarray or sparse array of shape (n_rows, n_features), optional
        The same rows as the kernel sees them; made by the model's own input map when left out.

    Returns
    -------
    ndarray of shape (n_rows, n_decisions), float64
    """
    arithmetic = arithmetic_of(model)
    values = np.empty((rows.shape[0], model.n_decisions))
    for piece in chunks(*rows.shape):
        part = _dense(rows[piece] if mapped is None else mapped[piece])
        if model.input_map is not None and mapped is None:
            part = model.input_map.apply(part)
        values[piece] = arithmetic.values(part)
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
        Whether float64 can tell the label.
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


def judge(against: Any, model: SingleModel, rows: Any) -> Judgement:
    """Ask the source itself: its own transformers and its own answers, and the exact function of its parameters.

    Parameters
    ----------
    against : fitted estimator, KernelModel, or path
    model : KernelModel
        What `against` was read as.
    rows : ndarray or sparse array of shape (n_rows, n_raw_features)

    Returns
    -------
    Judgement
    """
    pieces = chunks(rows.shape[0], rows.shape[1])  # every source takes dense rows, and some take no others
    parts = [_judge_dense(against, model, _dense(rows[piece])) for piece in pieces]
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


def _judge_dense(against: Any, model: SingleModel, rows: FloatArray) -> Judgement:
    mapped = rows if model.input_map is None else _own_rows(against, model, rows)
    start = time.perf_counter()
    values = exact_decision_values(model, rows, mapped)
    seconds = time.perf_counter() - start
    arithmetic = arithmetic_of(model)
    noise = arithmetic.noise(own_steps(against), mapped)
    if model.input_map is not None:
        noise = noise + arithmetic.moved(mapped, model.input_map.source_rounding(rows)[:, np.newaxis])
    slack = arithmetic.slack(values) + noise
    own = own_predictions(against, rows)
    if model.task == "regression":
        misread = np.zeros(len(rows), bool)
        if own is not None:
            allowed = 64 * slack + float(model.value_error.max())
            misread = np.any(np.abs(own.reshape(values.shape) - values) > allowed + 1e-9 * np.abs(values), axis=1)
        return Judgement(values, slack, None, np.ones(len(rows), bool), misread, seconds)
    near = NEAR_TIE * arithmetic.scale + noise + np.zeros_like(values)
    if model.task == "one_class":
        labels: npt.NDArray[Any] = np.where(values[:, 0] > 0, 1, -1)
        certain = np.abs(values[:, 0]) > near[:, 0]
    else:
        classes, certain = native_outputs(model.outputs, model.task, len(model.labels)).certified_class(values, near)
        labels = model.labels[classes]
    misread = np.zeros(len(rows), bool) if own is None else (own != labels) & certain
    return Judgement(values, slack, labels if own is None else own, certain, misread, seconds)


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
        own = feature_maps.logarithms(steps[-2])
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
