"""Data shown in a report, computed once as arrays with one element per row."""

import os
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.analysis.source_answers import (
    as_source_rows,
    classes_of,
    combined,
    doubt,
    exact_decision_values,
    rows_at,
    source_answers,
    source_predictions,
    steps_that_round,
)
from approxsvm.analysis.verification import (
    Compiled,
    Settled,
    Tally,
    Verification,
    check_same_kind,
    compare,
    drawn_positions,
    proves_labels_alone,
)
from approxsvm.artifact.views import Artifact
from approxsvm.artifact.writer import Frame, build
from approxsvm.errors import InputError
from approxsvm.expansion.router import Search
from approxsvm.frames.rows import chunks, finite_rows, zero_unused
from approxsvm.frontends import read_any
from approxsvm.frontends.sklearn.vectorizers import split
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.outputs import class_pairs
from approxsvm.ir.single_model import SingleModel
from approxsvm.runtime.evaluator import (
    BOUNDS,
    CERTIFIED,
    EXPANSION_STAGES,
    STAGE_NUMBERS,
    STAGES,
    VALUES,
    Evaluator,
    native_outputs,
)
from approxsvm.system.error_state import in_own_error_state

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]

# Default limit on the work of the comparison, in multiply-adds of the definition; they take about a second.
_COMPARED_WORK: Final = 1.2e9
_WORK_OF_EXP: Final = 20
_LEAST_COMPARED: Final = 200
# Limits on a time measurement: seconds, repetitions, and rows.
_TIMED_SECONDS: Final = 0.15
_MAX_REPEATS: Final = 20
_FIRST_TIMED_ROWS: Final = 16
_LEAST_PROCESSOR_SHARE: Final = 0.7
_MAX_TIMED_ROWS: Final = 1 << 14
# Maximum number of rows that are timed in single-row calls, and number of calls per row.
_MAX_SINGLE_ROWS: Final = 500
_SINGLE_ROUNDS: Final = 3
# Maximum number of support vectors sampled for their distances to the centers.
_MAX_SUPPORT_VECTORS: Final = 2_000
_TINY: Final = 2.0**-1000


@dataclass(frozen=True)
class Speed:
    """Measured time per row in calls of `n_rows` rows."""

    seconds_per_row: float
    n_rows: int
    is_disturbed: bool = False  # True if other programs used the processor at the same time


@dataclass(frozen=True)
class SingleRows:
    """Measured times of single-row calls, in seconds; the fastest of several calls counts for each row."""

    median: float
    percentile_99: float
    slowest: float
    n_rows: int


@dataclass(frozen=True, eq=False)
class SourceComparison:
    """Comparison with the source on n_compared rows; unless noted, arrays have shape (n_compared,)."""

    errors: FloatArray  # error of the row's value closest to its bound, minus the source's rounding error
    bounds: FloatArray  # bound on the error of the same value
    answers: npt.NDArray[Any]  # the source's labels or values; (n_compared, n_targets) with several targets
    differ: BoolArray  # rows whose labels differ
    near_tie: BoolArray  # rows whose labels or values float64 cannot determine (`SourceAnswers.certain`)
    n_violations: int  # number of errors beyond their bounds, plus values outside the tolerance
    verification: Verification | None  # totals for the same rows; None for an ensemble

    @property
    def doubt(self) -> str | None:
        """Message from `source_answers.doubt`; None if rounding in the source can change at most a few labels."""
        return doubt(int(self.near_tie.sum()), len(self.near_tie))

    @property
    def ratios(self) -> FloatArray:
        """Ratio of each error to its bound; at most 1 if the bound holds."""
        return np.asarray(self.errors / np.maximum(self.bounds, _TINY))


@dataclass(frozen=True, eq=False)
class Against:
    """The source's results, for comparison with the compiled model."""

    positions: IntArray  # (n_compared,): indices of the compared rows among the rows of the evidence
    judged: SourceComparison  # public interface
    probabilities: FloatArray | None  # the source's probabilities, (n_compared, n_classes), by sorted labels
    speed: Speed
    speed_of: str  # name of the timed implementation
    is_definition: bool  # True if the definition in NumPy was timed (no estimator)
    exact_engine: Speed | None  # speed of the exact engine alone
    n_bytes: int | None  # size of the source's file or of the pickled estimator


@dataclass(frozen=True, eq=False)
class Evidence:
    """Predictions, bounds and times of a compiled model for n_rows rows; unless noted, arrays have shape (n_rows,).

    `values` contains decision values, which are positive for the second of two classes. For multiclass models
    (`are_leads`), it contains the predicted class's smallest margin over another class. `values` and `bounds` are None
    if the model has no decision values.
    """

    n_given: int  # number of input rows
    positions: IntArray  # indices of the finite rows; the source also rejects all others
    predicted: npt.NDArray[Any]  # labels or regression values; (n_rows, n_targets) with several targets
    values: FloatArray | None
    bounds: FloatArray | None
    are_leads: bool
    of_engine: bool  # True if all `values` come from the exact engine, because expansions prove only labels
    stages: npt.NDArray[np.uint8]  # stage that determined the label or the regression value
    certified: BoolArray  # True if the first stage's bound certifies the row's result
    distances: FloatArray | None  # distance of each row from the nearest center; None without centers
    sv_distances: FloatArray | None  # distances of support vectors from their nearest centers
    probabilities: FloatArray | None  # (n_rows, n_classes)
    y: npt.NDArray[Any] | None
    against: Against | None
    speed: Speed  # speed of `predict`
    single_rows: SingleRows  # times of `predict` for single rows

    @property
    def by_expansion(self) -> BoolArray:
        """Mask of the rows predicted without the exact engine."""
        return np.asarray(self.stages < len(EXPANSION_STAGES))

    @property
    def values_by_expansion(self) -> BoolArray:
        """Mask of the rows whose `values` and `bounds` come from stages before the exact engine."""
        return np.asarray(self.by_expansion & (not self.of_engine))

    @property
    def rows_per_stage(self) -> dict[str, int]:
        """Number of rows per stage, where a row counts for the stage that determined its result."""
        counts = np.bincount(self.stages, minlength=len(STAGES))
        return {name: int(count) for name, count in zip(STAGES, counts, strict=True)}

    @property
    def speed_ratio(self) -> float | None:
        """The source's prediction time divided by the compiled model's; None without a source."""
        return None if self.against is None else self.against.speed.seconds_per_row / self.speed.seconds_per_row


@in_own_error_state
def gather(
    compiled: Compiled,
    X: Any,
    y: Any = None,
    *,
    against: Any = None,
    max_rows: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Evidence:
    """Predict rows and compare the results with the source's; ``compiled.report`` explains the parameters.

    `progress` is called with the completed fraction of the work, from 0 to 1. Raises InputError if no row is finite, if
    `y` and `X` differ in length, or if `against` is a different kind of model.
    """
    if compiled.artifact.of_targets:
        raise InputError("a report needs one label per row: report on each of members, with its own source")
    given = zero_unused(compiled._rows(X), compiled.artifact.raw_columns)
    finite = finite_rows(given, compiled.artifact.raw_columns)
    if not finite.any():
        raise InputError(f"none of the {given.shape[0]:,} rows is finite: there is nothing to report")
    rows, positions = given[finite], np.flatnonzero(finite)
    if y is not None:
        y = np.asarray(y)
        if len(y) != len(finite):
            raise InputError(f"y has {len(y):,} entries, but X has {len(finite):,} rows")
        y = _flat(y[finite])
    evaluator, artifact = compiled._evaluator, compiled.artifact
    values, bounds, stages, certified = _evaluated(evaluator, rows)
    source_rows = rows if artifact.takes_texts else rows_at(as_source_rows(X), positions)  # as in `verify`
    distances, sv_distances = _distances(artifact, rows)
    return Evidence(
        n_given=len(finite),
        positions=positions,
        predicted=_flat(evaluator.predict(rows)),
        values=values,
        bounds=bounds,
        are_leads=values is not None and len(artifact.labels) > 2,
        of_engine=proves_labels_alone(artifact),
        stages=stages,
        certified=certified,
        distances=distances,
        sv_distances=sv_distances,
        probabilities=evaluator.predict_proba(rows) if evaluator.has_probabilities else None,
        y=y,
        against=None if against is None else _compared(compiled, against, rows, source_rows, max_rows, progress),
        speed=_timed(evaluator.predict, rows),
        single_rows=_timed_alone(evaluator.predict, rows),
    )


def _flat(targets: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Reshape targets of shape (n_rows, 1) to (n_rows,)."""
    return targets[:, 0] if targets.shape[1:] == (1,) else targets


def _evaluated(evaluator: Evaluator, rows: Any) -> tuple[Any, Any, npt.NDArray[np.uint8], BoolArray]:
    """Return each row's decisive value, the bound on its error, the stage, and a mask of the certified rows."""
    artifact = evaluator.artifact
    if artifact.n_decisions == 0:
        return None, None, *evaluator.evaluate(rows, STAGE_NUMBERS | CERTIFIED, "settled")
    settled = Settled.of(evaluator, rows)
    values, bounds, stages, certified = settled.values, settled.bounds, settled.stages, settled.certified
    if artifact.task == "regression":
        if values.ndim > 1:  # use the target with the largest bound
            worst = bounds.argmax(axis=1)[:, np.newaxis]
            values, bounds = (np.take_along_axis(array, worst, axis=1)[:, 0] for array in (values, bounds))
        return values, bounds, stages, certified
    if values.ndim == 1:
        flipped = artifact.task == "classification" and artifact.labels[0] < artifact.labels[1]
        return -values if flipped else values, bounds, stages, certified
    winners = evaluator.classes(rows)
    if artifact.outputs.of_each_class:
        return *_leads_of_each(values, bounds, winners), stages, certified
    return *_least_leads(values, bounds, winners, len(artifact.labels)), stages, certified


def _least_leads(
    values: FloatArray, bounds: FloatArray, winners: IntArray, n_classes: int
) -> tuple[FloatArray, FloatArray]:
    """Return the predicted class's smallest margin over another class in the evaluated pairs, and its error bound."""
    least, least_bounds = np.full(len(values), np.inf), np.zeros(len(values))
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        lead = np.where(winners == i, values[:, k], -values[:, k])
        less = ((winners == i) | (winners == j)) & np.isfinite(bounds[:, k]) & (lead < least)
        least[less], least_bounds[less] = lead[less], bounds[less, k]
    return least, least_bounds


def _leads_of_each(values: FloatArray, bounds: FloatArray, winners: IntArray) -> tuple[FloatArray, FloatArray]:
    """Given one function per class, return the winner's margin over the runner-up, and the margin's error bound."""
    at, rows = winners[:, np.newaxis], np.arange(len(values))
    leads, both = np.take_along_axis(values, at, axis=1) - values, np.take_along_axis(bounds, at, axis=1) + bounds
    leads[rows, winners] = np.inf
    nearest = leads.argmin(axis=1)
    return leads[rows, nearest], both[rows, nearest]


def _distances(artifact: Artifact, rows: Any) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the distances of mapped rows and of support vectors from their nearest centers."""
    if artifact.members or artifact.is_polynomial or artifact.mode == "exact":
        return None, None
    mapped = rows if artifact.input_map is None else artifact.input_map.apply(rows)
    vectors = artifact.support_vectors()
    few = vectors[:: max(1, len(vectors) // _MAX_SUPPORT_VECTORS)]
    return _to_nearest(artifact, mapped), _to_nearest(artifact, few) if len(few) else None


def _to_nearest(artifact: Artifact, rows: Any) -> FloatArray:
    centers = artifact.centers()
    search = Search(artifact.center, np.ones(artifact.n_features))
    nearest = search.nearest(rows, centers) if len(centers) > 1 else np.zeros(rows.shape[0], np.intp)
    distances = np.empty(rows.shape[0])
    for piece in chunks(rows.shape[0], rows.shape[1]):
        part = rows[piece] if isinstance(rows, np.ndarray) else rows[piece].toarray()
        with np.errstate(over="ignore"):
            distances[piece] = np.linalg.norm(part - centers[nearest[piece]], axis=1)
    return distances


def _compared(
    compiled: Compiled,
    against: Any,
    rows: Any,
    given: Any,
    max_rows: int | None,
    progress: Callable[[float], None] | None,
) -> Against:
    _, against = split(against)
    model = read_any(against, n_features=compiled.n_features_in_)
    check_same_kind(compiled, model)
    positions = drawn_positions(rows.shape[0], _affordable_rows(model) if max_rows is None else max_rows)
    few, few_given = rows[positions], rows_at(given, positions)
    is_ensemble = isinstance(model, Ensemble)
    if is_ensemble:
        comparison = _compare_members(compiled, against, model, few, few_given)
    else:
        comparison = _compare_single(compiled, against, few, few_given, progress)
    probabilities: FloatArray | None = None
    n_bytes: int | None
    is_definition = not hasattr(against, "predict")
    if not is_definition:
        speed_of, n_bytes = _name(against), len(pickle.dumps(against, pickle.HIGHEST_PROTOCOL))
        texts, takes_sparse = compiled.artifact.raw_columns.texts, compiled.artifact.takes_texts
        speed = _timed(lambda x: source_predictions(against, x, texts=texts, given=x if takes_sparse else None), few)
        if compiled.artifact.has_class_probabilities and hasattr(against, "predict_proba"):
            probabilities = source_predictions(against, few, "predict_proba", texts=texts, given=few_given)
    else:
        speed_of = "the definition in NumPy"
        n_bytes = os.path.getsize(against) if isinstance(against, (str, os.PathLike)) else None
        speed = _timed(lambda part: [exact_decision_values(member, part) for member in _members(model)], few)
    exact_engine = None if is_ensemble else _exact_engine(compiled, model, rows)
    return Against(positions, comparison, probabilities, speed, speed_of, is_definition, exact_engine, n_bytes)


def _name(estimator: Any) -> str:
    """Return an estimator's class name; a pipeline is named after its last step."""
    steps = getattr(estimator, "steps", None)
    return type(estimator).__name__ if steps is None else f"the {type(steps[-1][1]).__name__} pipeline"


def _members(model: SingleModel | Ensemble) -> tuple[SingleModel, ...]:
    return model.members if isinstance(model, Ensemble) else (model,)


def _affordable_rows(model: SingleModel | Ensemble) -> int:
    works = [member.work for member in _members(model)]
    work = sum(n_products + _WORK_OF_EXP * n_functions for n_products, n_functions in works)
    return max(_LEAST_COMPARED, int(_COMPARED_WORK / max(work, 1)))


def _compare_single(
    compiled: Compiled, against: Any, rows: Any, given: Any, progress: Callable[[float], None] | None
) -> SourceComparison:
    """Compare a single model with its source using `compare`, as `verify` does."""
    tally = Tally(tolerance=float(compiled.artifact.header["tolerance"]))
    parts = []
    for part in compare(compiled, against, rows, given=given, progress=progress):
        tally.add(part)
        bounds = np.where(part.known, part.bounds, np.inf)
        errors = np.where(part.known, part.errors_beyond_rounding, 0.0)
        worst = (errors / np.maximum(bounds, _TINY)).argmax(axis=1)[:, np.newaxis]
        answers = part.reference.values[:, 0] if part.reference.labels is None else part.reference.labels
        both = (np.take_along_axis(array, worst, axis=1)[:, 0] for array in (errors, bounds))
        parts.append((*both, answers, part.differ, ~part.reference.certain))
    errors, bounds, answers, differ, near_tie = (np.concatenate(same) for same in zip(*parts, strict=True))
    verification = tally.verification(compiled)
    n_violations = verification.bound_violations + verification.tolerance_violations
    return SourceComparison(errors, bounds, answers, differ, near_tie, n_violations, verification)


def _compare_members(compiled: Compiled, against: Any, ensemble: Any, rows: Any, given: Any) -> SourceComparison:
    """Compare an ensemble's values with the combination of its members' exact values, allowing for float64 rounding."""
    steps = [steps_that_round(against, member, k) for k, member in enumerate(ensemble.members)]
    of_members = [
        source_answers(member, member, rows, steps=used) for member, used in zip(ensemble.members, steps, strict=True)
    ]
    evaluator = compiled._evaluator
    predictions = source_predictions(against, rows, texts=compiled.artifact.raw_columns.texts, given=given)
    exact, slacks = ([getattr(comparison, name) for comparison in of_members] for name in ("values", "slack"))
    errors = bounds = np.zeros((rows.shape[0], 1))  # votes yield no values to compare
    if ensemble.n_decisions > 0:
        means, slack = combined(ensemble, exact, slacks)
        values, bounds = (a.reshape(means.shape) for a in evaluator.evaluate(rows, VALUES | BOUNDS, "settled"))
        errors = np.maximum(np.abs(values - means) - slack, 0.0)
        tolerances: Any = np.concatenate(
            [[member.header["tolerance"]] * member.n_decisions for member in compiled.artifact.members]
        )
        keeps = ensemble.combination.weights is None and ensemble.task == "regression"
        broken = ((errors > bounds) | (errors > (tolerances if keeps else np.inf))).any(axis=1)
    elif ensemble.averages:
        outputs = native_outputs(ensemble.outputs, ensemble.task, len(ensemble.labels))
        sums = map(np.ascontiguousarray, combined(ensemble, exact, slacks))
        low, high = (ends[:, evaluator.order] for ends in outputs.probability_interval(*sums))
        shares, bounds = evaluator.predict_proba(rows), evaluator.probability_bound(rows)
        errors = np.maximum(np.maximum(low - shares, shares - high), 0.0)
        broken = (errors > bounds + 2.0**-40).any(axis=1)
    else:
        broken = np.zeros(rows.shape[0], bool)
    if ensemble.task == "regression":
        answers, differ = means if predictions is None else predictions, np.zeros(rows.shape[0], bool)
        near_tie = np.asarray(~np.all([comparison.certain for comparison in of_members], axis=0))
    else:
        best, certain = classes_of(ensemble, exact, slacks)
        near_tie = ~certain
        answers = ensemble.labels[best] if predictions is None else predictions
        differ = (evaluator.predict(rows) != answers) & ~near_tie
    worst = (errors / np.maximum(bounds, _TINY)).argmax(axis=1)[:, np.newaxis]
    errors, bounds = (np.take_along_axis(array, worst, axis=1)[:, 0] for array in (errors, bounds))
    return SourceComparison(errors, bounds, answers, differ, near_tie, int(broken.sum()), None)


def _exact_engine(compiled: Compiled, model: Any, rows: Any) -> Speed | None:
    """Time an artifact with only the exact engine; None if this plan is impossible or is the model's own plan."""
    artifact = compiled.artifact
    if model.kind != "gaussian" or (artifact.mode == "exact" and not artifact.section("subspaces")):
        return None
    exact = build(model, "exact", Frame.of(model, "mean"), tolerance=artifact.header["tolerance"])
    return _timed(Evaluator(exact, compiled.n_jobs).predict, rows)


def _timed(predict: Callable[[Any], Any], rows: Any) -> Speed:
    """Return the shortest time of several calls, each with as many rows as take a fraction of a second."""
    start, processor_start = time.perf_counter(), time.process_time()
    n_rows = min(_FIRST_TIMED_ROWS, rows.shape[0])
    seconds = _seconds(predict, rows[:n_rows])
    seconds = min(seconds, _seconds(predict, rows[:n_rows]))  # the first call includes preparation
    most = min(rows.shape[0], _MAX_TIMED_ROWS)
    while n_rows < most and seconds < 0.25 * _TIMED_SECONDS:
        n_rows = min(most, 4 * n_rows)
        seconds = _seconds(predict, rows[:n_rows])
    part = rows[:n_rows]
    for _ in range(min(_MAX_REPEATS, int(_TIMED_SECONDS / max(seconds, 1e-9)))):
        seconds = min(seconds, _seconds(predict, part))
    share = (time.process_time() - processor_start) / (time.perf_counter() - start)
    return Speed(seconds / n_rows, n_rows, share < _LEAST_PROCESSOR_SHARE)


def _timed_alone(predict: Callable[[Any], Any], rows: Any) -> SingleRows:
    """Time single-row calls for rows evenly spread over the given rows."""
    n_rows = min(rows.shape[0], _MAX_SINGLE_ROWS)
    each = [rows[k : k + 1] for k in np.linspace(0, rows.shape[0] - 1, n_rows).astype(int)]
    seconds = np.min([[_seconds(predict, row) for row in each] for _ in range(_SINGLE_ROUNDS)], axis=0)
    median, percentile_99 = (float(np.quantile(seconds, share)) for share in (0.5, 0.99))
    return SingleRows(median, percentile_99, float(seconds.max()), n_rows)


def _seconds(predict: Callable[[Any], Any], rows: Any) -> float:
    start = time.perf_counter()
    predict(rows)
    return time.perf_counter() - start
