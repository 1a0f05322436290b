"""Row-by-row comparison of a compiled model with its source."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from approxsvm.analysis.source_answers import SourceAnswers, as_source_rows, doubt, rows_at, source_answers
from approxsvm.analysis.summary import shown
from approxsvm.artifact.views import Artifact
from approxsvm.errors import InputError
from approxsvm.frames.rows import check_sparse, with_global_row, zero_unused
from approxsvm.frontends import read_any
from approxsvm.frontends.sklearn.vectorizers import split
from approxsvm.ir.compilation import Compilation
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.single_model import SingleModel
from approxsvm.runtime.evaluator import BOUNDS, STAGE_NUMBERS, STAGES, VALUES, Evaluator, native_outputs
from approxsvm.system.error_state import in_own_error_state
from approxsvm.system.options import whole_number

_QUANTILES = (0.5, 0.9, 0.99, 1.0)
# Number of rows per call to `predict`, as in typical use; number of rows compared between two progress reports; and
# maximum number of errors stored for computing quantiles.
_PREDICTED_ROWS = 1 << 14
_COMPARED_ROWS = 1 << 11
_KEPT_ERRORS = 1 << 20
_LEAST_SECONDS = 1e-3  # minimum total time for which a speed is shown


class Compiled(Protocol):
    """Interface of compiled estimators as seen by reports; `estimators.CompiledModel` is in a higher layer."""

    artifact: Artifact
    n_jobs: int | None

    compilation: Compilation | None

    @property
    def n_features_in_(self) -> int:
        """Number of columns in a row."""

    @property
    def _evaluator(self) -> Evaluator: ...

    def _rows(self, X: Any) -> Any: ...

    def predict(self, X: Any) -> Any:
        """Return labels, or a regressor's values."""


@dataclass(frozen=True)
class Verification:
    """Result of ``verify``.

    Attributes
    ----------
    n_rows : int
        Number of compared rows.
    label_differences : int
        Number of labels that differ from the source's; None for a regressor.
    near_ties : int
        Number of rows so close to the decision boundary that float64 cannot determine the exact label. These rows do
        not count as differences. For a regressor, the number of rows whose value the source's rounding may change by
        more than a tenth of the range of values.
    bound_violations : int
        Number of rows whose error exceeds its bound. For a regressor, this includes rows whose prediction by the source
        is not the value of the function that was read.
    tolerance, tolerance_violations : float, int
        Guaranteed maximum error of values, and the number of rows that exceed it. If the source computes in float32,
        errors may exceed the tolerance, but not their bounds.
    largest_error_to_bound : float
        Largest ratio of an error to its bound; at most 1 if the bounds hold.
    error_quantiles, bound_quantiles : dict
        Quantiles of `|value - exact|` and of its bound. If there are more than a million values, an evenly spaced
        sample is used; the maximum is always exact.
    certified_fraction : float or None
        Fraction of the rows certified by the first stage's bound; None in "exact" mode, which has no such stage.
    rows_per_stage : dict
        Number of rows by the stage that determined their label or regression value.
    speed_ratio : float or None
        Time of the source's formula in float64 NumPy on one thread, divided by the compiled model's time in this run.
        None if the compiled model took less than a millisecond, which is too short to measure in one call.
    mode : str
        Mode of the compiled model.
    """

    n_rows: int
    label_differences: int | None
    near_ties: int
    bound_violations: int
    tolerance: float
    tolerance_violations: int
    largest_error_to_bound: float
    error_quantiles: dict[str, float]
    bound_quantiles: dict[str, float]
    certified_fraction: float | None
    rows_per_stage: dict[str, int]
    speed_ratio: float | None
    mode: str

    @property
    def kept(self) -> bool:
        """True if all guarantees hold: the bounds and, except in "approximate" mode, the labels and the tolerance."""
        labels_kept = self.mode == "approximate" or not self.label_differences
        return self.bound_violations == 0 and self.tolerance_violations == 0 and labels_kept

    @property
    def doubt(self) -> str | None:
        """Warning with advice if more than 1% of the rows are near ties, else None."""
        return doubt(self.near_ties, self.n_rows)

    def rows(self) -> list[tuple[str, str]]:
        """Return pairs of names and values to display, including the warning `doubt` if there is one."""
        known = {name: value for name, value in self.as_dict().items() if name != "doubt" or value is not None}
        texts = {name: shown(value) for name, value in known.items()}
        texts["speed_ratio"] = "too few rows to measure"
        if self.speed_ratio is not None:
            texts["speed_ratio"] = (
                f"{self.speed_ratio:,.1f} times as fast as the definition in NumPy, one thread, float64"
            )
        if self.label_differences is None:
            texts["label_differences"] = "not applicable: a regression"
        if not np.isfinite(self.tolerance):
            texts["tolerance"] = "none requested"
        if self.certified_fraction is None:
            texts["certified_fraction"] = "not applicable: every row is exact"
        return [(name.replace("_", " "), text) for name, text in texts.items()]

    def __str__(self) -> str:
        """Return a table with a name and a value on each line."""
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the verdict at the end; without a tolerance, its value is None."""
        finite = self.tolerance if np.isfinite(self.tolerance) else None
        return asdict(self) | {"tolerance": finite, "doubt": self.doubt, "kept": self.kept}


@in_own_error_state
def verify(
    compiled: Compiled,
    against: Any,
    X: Any,
    *,
    max_rows: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Verification:
    """Compare a compiled model with its source on the given rows.

    Parameters
    ----------
    compiled : CompiledSVC, CompiledSVR or CompiledOneClassSVM
    against : fitted estimator, KernelModel, or path
        The source model, evaluated by its definition in float64.
    X : array-like or sparse matrix of shape (n_rows, n_features)
    max_rows : int, optional
        Maximum number of rows to compare. Rows are drawn at random with a fixed seed. A limit is useful because
        evaluating the definition is slow.
    progress : callable, optional
        Called with the completed fraction of the work, from 0 to 1.

    Returns
    -------
    Verification

    Raises
    ------
    InputError
        There are no rows, `against` has a different task or different labels, or one of the two models is an ensemble.
    UnsupportedModelError
        `against` has a different number of columns than `compiled`.
    """
    tally = Tally(tolerance=float(compiled.artifact.header["tolerance"]))
    drawn = _drawn(X, max_rows)
    rows = zero_unused(compiled._rows(drawn), compiled.artifact.raw_columns)
    given = (
        rows if compiled.artifact.takes_texts else as_source_rows(drawn)
    )  # with vectorizers, the source receives the rows that they produce
    for comparison in compare(compiled, against, rows, given=given, progress=progress):
        tally.add(comparison)
    return tally.verification(compiled)


@dataclass(frozen=True, eq=False)
class Settled:
    """Predictions of a compiled model; each row's result is determined by the cheapest sufficient stage.

    Bounds are infinite for pairs of classes that were not evaluated. If expansions certify only labels, as they may for
    multiclass models, the exact engine computes values and bounds.
    """

    values: FloatArray  # (n_rows,) or (n_rows, n_decisions), like `bounds`
    bounds: FloatArray
    stages: npt.NDArray[np.uint8]  # (n_rows,): indices into ``evaluator.STAGES``
    certified: npt.NDArray[np.bool_]  # (n_rows,)
    seconds: float  # prediction time, excluding values that no label needs

    @classmethod
    def of(cls, evaluator: Evaluator, rows: Any) -> Settled:
        """Predict validated rows."""
        values_too = 0 if proves_labels_alone(evaluator.artifact) else VALUES | BOUNDS
        start = time.perf_counter()
        found = evaluator.evaluate(rows, values_too | STAGE_NUMBERS, "settled")
        seconds = time.perf_counter() - start
        values, bounds, stages = found if values_too else (*evaluator.evaluate(rows, VALUES | BOUNDS, "settled"), found)
        return cls(values, bounds, stages, evaluator.certified(rows), seconds)

    def part(self, few: slice) -> Settled:
        """Return the predictions for a slice of the rows."""
        share = len(self.stages[few]) / max(len(self.stages), 1)
        arrays = (self.values[few], self.bounds[few], self.stages[few], self.certified[few])
        return Settled(*arrays, share * self.seconds)


def proves_labels_alone(artifact: Artifact) -> bool:
    """Return whether expansions determine only labels, so that all values come from the exact engine."""
    return not artifact.members and artifact.header["majority_only"] == 1


@dataclass(frozen=True, eq=False)
class Comparison:
    """Predictions for a few rows, as in `Settled`, together with the source's results."""

    values: FloatArray  # (n_rows, n_decisions), like `bounds`
    bounds: FloatArray
    stages: npt.NDArray[np.uint8]
    certified: npt.NDArray[np.bool_]
    predicted: npt.NDArray[Any] | None  # labels; None for a regressor
    reference: SourceAnswers
    our_seconds: float
    promised: FloatArray | float  # guaranteed maximum error, for each value or for all values

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Mask of the evaluated values; multiclass models do not evaluate all pairs."""
        return np.isfinite(self.bounds)

    @property
    def errors(self) -> FloatArray:
        """Absolute errors |value - exact|, shape (n_rows, n_decisions)."""
        return np.asarray(np.abs(self.values - self.reference.values))

    @property
    def errors_beyond_rounding(self) -> FloatArray:
        """Errors minus the bounds on the exact values' rounding errors, clamped at 0."""
        return np.asarray(np.maximum(self.errors - self.reference.slack, 0.0))

    @property
    def differ(self) -> npt.NDArray[np.bool_]:
        """Mask of the labels that differ from the source's although float64 can determine them."""
        if self.reference.labels is None:
            return np.zeros(len(self.values), bool)
        return np.asarray((self.predicted != self.reference.labels) & self.reference.certain)


def compare(
    compiled: Compiled, against: Any, rows: Any, *, given: Any = None, progress: Callable[[float], None] | None = None
) -> Iterator[Comparison]:
    """Compare the predictions for validated rows with the source's, chunk by chunk; `verify` documents the parameters.

    `given` contains the same rows, as returned by `as_source_rows`, for the source's predictions.
    """
    if compiled.artifact.members:
        raise InputError("an ensemble has no decision values: verify its members one by one, or report on its labels")
    _, against = split(against)
    model = read_any(against, n_features=compiled.n_features_in_)
    if isinstance(model, Ensemble):
        raise InputError("the source model is an ensemble, but the compiled one is not")
    check_same_kind(compiled, model)
    if rows.shape[0] == 0:
        raise InputError("there are no rows to verify")
    for piece in _slices(rows.shape[0], _PREDICTED_ROWS):
        part = rows[piece]
        try:
            settled = Settled.of(compiled._evaluator, part)
        except InputError as error:
            raise with_global_row(error, piece.start) from None
        for few in _slices(part.shape[0], _COMPARED_ROWS):
            few_given = rows_at(given, slice(piece.start + few.start, piece.start + few.stop))
            yield _compare(compiled, against, model, part[few], settled.part(few), few_given)
            if progress is not None:
                progress((piece.start + few.stop) / rows.shape[0])


def _compare(
    compiled: Compiled, against: Any, model: SingleModel, rows: Any, settled: Settled, given: Any
) -> Comparison:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X (does not have valid|has) feature names")  # names were checked before
        reference = source_answers(against, model, rows, given=given)
        reference = replace(reference, certain=reference.certain & ~_undecided_in_float32(compiled, rows))
        predicted = None if reference.labels is None else compiled.predict(rows)
    values, bounds = (numbers.reshape(reference.values.shape) for numbers in (settled.values, settled.bounds))
    promised: Any = compiled.artifact.header["tolerance"]
    if _computes_in_float32(compiled, rows):  # bounds may exceed the default tolerance
        promised = np.maximum(promised, bounds)
    return Comparison(
        values, bounds, settled.stages, settled.certified, predicted, reference, settled.seconds, promised
    )


def _computes_in_float32(compiled: Compiled, rows: Any) -> bool:
    return compiled.artifact.row_dtypes.rounded is not None and rows.dtype == np.float32


def _undecided_in_float32(compiled: Compiled, rows: Any) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows whose labels, judged by the exact bounds, may differ in float32 arithmetic."""
    artifact = compiled.artifact
    if not _computes_in_float32(compiled, rows) or artifact.task == "regression":
        return np.zeros(rows.shape[0], np.bool_)
    numbers = compiled._evaluator.evaluate(rows, VALUES | BOUNDS)
    values, bounds = (part.reshape(rows.shape[0], -1) for part in numbers)
    if artifact.task == "one_class":
        return np.asarray(np.abs(values[:, 0]) <= bounds[:, 0])
    outputs = native_outputs(artifact.outputs, artifact.task, len(artifact.labels))
    return np.asarray(~outputs.certified_class(values, bounds)[1])


def _slices(n_rows: int, step: int) -> Iterator[slice]:
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def _drawn(X: Any, max_rows: int | None) -> Any:
    """Sample at most `max_rows` of the rows, in order."""
    if max_rows is None:
        return X
    X = check_sparse(X)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    positions = drawn_positions(n_rows, max_rows)
    return X if len(positions) == n_rows else rows_at(X, positions)


def drawn_positions(n_rows: int, max_rows: int | None) -> npt.NDArray[np.intp]:
    """Sample the indices of the rows to compare, in order, with a fixed seed."""
    n_drawn = n_rows if max_rows is None else min(n_rows, whole_number(max_rows, "max_rows", 1))
    if n_drawn == n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, n_drawn, replace=False))


class _Quantiles:
    """Quantiles of values that are added in chunks; if there are too many, only every 2nd, 4th, ... value is kept."""

    def __init__(self) -> None:
        self._parts: list[FloatArray] = []
        self._step = 1
        self._n_kept = 0
        self._n_seen = 0
        self._greatest = 0.0

    def add(self, values: FloatArray) -> None:
        self._greatest = max(self._greatest, float(values.max(initial=0.0)))
        self._parts.append(values[-self._n_seen % self._step :: self._step])
        self._n_kept += len(self._parts[-1])
        self._n_seen += len(values)
        while self._n_kept > _KEPT_ERRORS:
            self._parts = [np.concatenate(self._parts)[::2].copy()]
            self._n_kept, self._step = len(self._parts[0]), 2 * self._step

    def as_dict(self) -> dict[str, float]:
        kept = np.concatenate([np.empty(0), *self._parts])
        quantiles = {f"{q:.0%}": float(np.quantile(kept, q)) if len(kept) else 0.0 for q in _QUANTILES}
        return quantiles | {"100%": self._greatest}


@dataclass
class Tally:
    """Totals of all comparisons so far."""

    n_rows: int = 0
    label_differences: int = 0
    near_ties: int = 0
    bound_violations: int = 0
    tolerance_violations: int = 0
    largest_error_to_bound: float = 0.0
    n_proven: int = 0
    counts: npt.NDArray[np.intp] = field(default_factory=lambda: np.zeros(len(STAGES), np.intp))
    errors: _Quantiles = field(default_factory=_Quantiles)
    bounds: _Quantiles = field(default_factory=_Quantiles)
    our_seconds: float = 0.0
    their_seconds: float = 0.0
    tolerance: float = math.inf

    def add(self, few: Comparison) -> None:
        """Add the comparison of some rows."""
        reference, known, errors, bounds = few.reference, few.known, few.errors, few.bounds
        excess = np.where(known, few.errors_beyond_rounding / np.maximum(bounds, 2.0**-1000), 0.0)
        self.n_rows += len(errors)
        self.label_differences += int(few.differ.sum())
        self.near_ties += int((~reference.certain).sum())
        violations = np.asarray((known & (errors > bounds + reference.slack)).any(axis=1))
        if reference.labels is None:  # for a classifier, a misread row counts as a label difference
            violations = np.asarray(violations | reference.misread)
        self.bound_violations += int(violations.sum())
        self.tolerance_violations += int((errors > few.promised + reference.slack).any(axis=1).sum())
        self.largest_error_to_bound = max(self.largest_error_to_bound, float(np.max(excess)))
        self.errors.add(errors[known])
        self.bounds.add(bounds[known])
        self.n_proven += int(few.certified.sum())
        self.counts += np.bincount(few.stages, minlength=len(STAGES))
        self.our_seconds += few.our_seconds
        self.their_seconds += reference.seconds

    def verification(self, compiled: Compiled) -> Verification:
        """Return the totals as a Verification."""
        mode = compiled.artifact.mode
        return Verification(
            n_rows=self.n_rows,
            label_differences=None if compiled.artifact.task == "regression" else self.label_differences,
            near_ties=self.near_ties,
            bound_violations=self.bound_violations,
            tolerance=self.tolerance,
            tolerance_violations=self.tolerance_violations,
            largest_error_to_bound=self.largest_error_to_bound,
            error_quantiles=self.errors.as_dict(),
            bound_quantiles=self.bounds.as_dict(),
            certified_fraction=None if mode == "exact" else self.n_proven / self.n_rows,
            rows_per_stage={name: int(count) for name, count in zip(STAGES, self.counts, strict=True)},
            speed_ratio=None if self.our_seconds < _LEAST_SECONDS else self.their_seconds / self.our_seconds,
            mode=mode,
        )


def check_same_kind(compiled: Compiled, model: SingleModel | Ensemble) -> None:
    """Raise InputError if the task or the labels of the source and the compiled model differ."""
    if model.task != compiled.artifact.task:
        raise InputError(f"the source model is for {model.task}, but the compiled one for {compiled.artifact.task}")
    labels = compiled.artifact.labels.tolist()
    if model.labels.tolist() != labels:
        raise InputError(f"the source model has the labels {model.labels.tolist()}, but the compiled one {labels}")
