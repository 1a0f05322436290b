"""Artifact in, answers out, with NumPy alone; the only importer of the native predictor.

An `Evaluator` answers for one compiled model, an `EnsembleEvaluator` for the mean of several. Both take rows that have
been checked: arrays of real numbers or CSR matrices. `Predictor` stands before them for programs that only predict, and
the estimators (estimators.py) for those that use scikit-learn.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from approxsvm import _native, container
from approxsvm.artifact import Artifact, SealedBytes
from approxsvm.ensemble_artifact import EnsembleArtifact
from approxsvm.errors import ArtifactError, InputError, UnsortedIndicesError
from approxsvm.heads import ClassProbability, class_pairs
from approxsvm.kernel_model import FloatArray
from approxsvm.outputs import native_outputs, probability_bounds
from approxsvm.quadratic_artifact import QuadraticArtifact
from approxsvm.quadratic_predictor import QuadraticPredictor
from approxsvm.report import EXPANSION_STAGES, STAGES
from approxsvm.rows import as_row, check_finite, check_sparse, chunks, is_plain_matrix, of_the_whole, one_row
from approxsvm.threads import n_threads

# Which values and bounds are wanted (cpp/include/approxsvm/model_view.hpp): the exact ones, unless the model has a
# tolerance; those of the cheapest stage that settles the label; or exact ones whatever the tolerance.
Values = Literal["promised", "settled", "exact"]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
NATIVE_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


def read_artifact(source: str | os.PathLike[str] | bytes) -> Artifact | QuadraticArtifact | EnsembleArtifact:
    """Read and validate an .asvm file of any kind, or its bytes.

    Raises
    ------
    ArtifactError
        The bytes break a rule of models/FORMAT.md; of a file, the message names it.
    OSError
        The file cannot be read.
    """
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    kinds = {container.QUADRATIC_MAGIC: QuadraticArtifact, container.ENSEMBLE_MAGIC: EnsembleArtifact}
    try:
        found: Any = kinds.get(data[:8], Artifact)(data)
    except ArtifactError as error:
        if isinstance(source, bytes):
            raise
        raise ArtifactError(f"{os.fspath(source)}: {error}") from None
    return found  # type: ignore[no-any-return]


def evaluator_for(artifact: SealedBytes, n_jobs: int | None = None) -> Evaluator | EnsembleEvaluator:
    """What answers for an artifact of any kind; its check rows are replayed now."""
    if isinstance(artifact, EnsembleArtifact):
        return EnsembleEvaluator(artifact, n_jobs)
    assert isinstance(artifact, (Artifact, QuadraticArtifact))
    return Evaluator(artifact, n_jobs)


def proven(
    artifact: Artifact | QuadraticArtifact, values: FloatArray, bounds: FloatArray, stages: npt.NDArray[np.uint8]
) -> BoolArray:
    """Which rows the first stage's own bound proved, without falling back.

    In mode "approximate" there is nothing to fall back on: a label is proven when no value within the bounds of the
    decision values gives another.
    """
    first = {"certified": EXPANSION_STAGES, "exact": ("float32",)}.get(artifact.mode)
    if first is not None:
        return np.asarray(np.isin(stages, [STAGES.index(name) for name in first]))
    if artifact.task == "regression":
        return np.asarray(np.isfinite(bounds))
    outputs = native_outputs(artifact.heads, artifact.task, len(artifact.labels))
    return outputs.certified_class(_columns(values), _columns(bounds))[1]


class Evaluator:
    """Answers of one compiled model.

    Up to four rows are computed by other means than larger batches, for the sake of latency: the values of a row may
    then differ in what lies within their bounds, which covers either.

    Parameters
    ----------
    artifact : Artifact or QuadraticArtifact
    n_jobs : int, optional
        Threads, as in scikit-learn.
    """

    def __init__(self, artifact: Artifact | QuadraticArtifact, n_jobs: int | None = None) -> None:
        self.artifact = artifact
        self.n_jobs = n_jobs
        self.native: Any
        if isinstance(artifact, QuadraticArtifact):
            self.native = QuadraticPredictor(artifact.model, artifact.asked_tolerance)
        else:
            self.native = _native.Predictor(artifact.data)
        # What a single row's answer is looked up in where the core gives it at once: by position, or itself.
        self._by_position: Any = {"regression": None, "one_class": (1, -1)}.get(artifact.task, artifact.labels)
        self._has_detour = artifact.input_map is not None or artifact.heads.label_rule != "votes"

    # --- values

    def evaluate(self, rows: Any, *, bounds: bool = False, labels: bool = False, values: Values = "promised") -> Any:
        """Decision values in LIBSVM's orientation; with bounds also error bounds and stages.

        With labels, the positions of the predicted labels by votes instead.
        """
        options = {"bounds": bounds, "labels": labels, "values": values}
        if self.artifact.input_map is None and rows.dtype in NATIVE_DTYPES:
            return self._evaluate_rows(rows, options)
        pieces = chunks(rows.shape[0], max(self.artifact.n_raw_features, self.artifact.n_features))
        parts = [self._evaluate_slice(rows, piece, options) for piece in pieces]
        if bounds:
            return tuple(np.concatenate(same) for same in zip(*parts, strict=True))
        return np.concatenate(parts)

    def _evaluate_slice(self, rows: Any, piece: slice, options: dict[str, Any]) -> Any:
        try:
            return self._evaluate_piece(rows[piece], options)
        except InputError as error:
            raise of_the_whole(error, piece.start) from None

    def _evaluate_piece(self, rows: Any, options: dict[str, Any]) -> Any:
        if rows.dtype not in NATIVE_DTYPES:
            if rows.dtype.kind == "c":
                raise InputError(f"rows are {rows.dtype}, but must be real numbers")
            rows = rows.astype(np.float64)
        if self.artifact.input_map is None:
            return self._evaluate_rows(rows, options)
        return self._evaluate_mapped(rows, options)

    def _evaluate_mapped(self, rows: Any, options: dict[str, Any]) -> Any:
        """Rows as the source takes them: mapped in float64, what that may cost in accuracy in every bound.

        Where the error of a row's map could decide its label, or use up the tolerance, projections are summed again as
        if in twice the precision. Should even that leave a value out of its tolerance, there is no right answer.
        """
        artifact, tolerance = self.artifact, self.artifact.asked_tolerance
        assert artifact.input_map is not None
        check_finite(rows)
        mapped, errors = artifact.input_map.mapped_with_errors(rows)
        if artifact.input_map.has_projection:
            coarse = np.flatnonzero(artifact.feels_error(mapped, errors))
            if len(coarse):
                mapped[coarse], errors[coarse] = artifact.input_map.mapped_with_errors(rows[coarse], exactly=True)
        result = self._evaluate_rows(mapped, options | {"row_errors": errors})
        if np.isfinite(tolerance) and not options["labels"]:
            open_rows = np.flatnonzero(artifact.feels_error(mapped, errors))
            if len(open_rows):
                self._check_tolerance(mapped, errors, open_rows, tolerance)
        return result

    def _check_tolerance(self, mapped: FloatArray, errors: FloatArray, open_rows: IntArray, tolerance: float) -> None:
        options = {"bounds": True, "labels": False, "values": "exact", "row_errors": errors[open_rows]}
        bounds = self._evaluate_rows(mapped[open_rows], options)[1]
        bounds = bounds if bounds.ndim == 1 else bounds.max(axis=1)
        if (bounds > tolerance).any():
            worst = int(np.argmax(bounds))
            raise InputError(
                f"row {int(open_rows[worst])}: float64 scales it to within {errors[open_rows[worst]]:.3g} "
                f"only, so its value is certain to {bounds[worst]:.3g} and not to the tolerance of {tolerance:.3g}"
            )

    def _evaluate_rows(self, rows: Any, options: dict[str, Any]) -> Any:
        threads = n_threads(self.n_jobs)
        if isinstance(rows, np.ndarray):
            if any(stride % rows.itemsize for stride in rows.strides) or not rows.flags.aligned:
                rows = rows.copy(order="C")
            return self.native.dense(rows, threads, **options)
        try:
            return self.native.csr(rows.indptr, rows.indices, rows.data, threads, **options)
        except UnsortedIndicesError:
            rows = rows.copy()
            rows.sum_duplicates()
            return self.native.csr(rows.indptr, rows.indices, rows.data, threads, **options)

    # --- answers

    @property
    def order(self) -> IntArray:
        """Positions of the sorted labels among the model's own."""
        return np.argsort(self.artifact.labels, kind="stable")

    @property
    def has_probabilities(self) -> bool:
        """Whether the source gives classes probabilities."""
        return isinstance(self.artifact.heads.probability, ClassProbability)

    @property
    def _outputs(self) -> _native.Outputs:
        return native_outputs(self.artifact.heads, self.artifact.task, len(self.artifact.labels))

    def predict(self, rows: Any) -> npt.NDArray[Any]:
        """Labels; 1 for inliers and -1 for outliers; values of a regression."""
        task = self.artifact.task
        if task == "regression":
            return np.asarray(self.evaluate(rows))
        if task == "one_class":
            return np.where(self.evaluate(rows, labels=True) == 0, 1, -1)
        return np.asarray(self.artifact.labels.take(self.classes(rows)))

    def one(self, row: Any) -> Any:
        """The answer for a single row, with as little overhead as Python allows."""
        if self._has_detour:
            answer = self.predict(as_row(row))[0]
            return answer if self.artifact.task == "classification" else answer.item()
        found = self.native.one(row if type(row) is np.ndarray else one_row(row))
        return found if self._by_position is None else self._by_position[int(found)]

    def classes(self, rows: Any) -> IntArray:
        """Positions of the predicted labels among the model's own."""
        artifact, heads = self.artifact, self.artifact.heads
        if heads.label_rule == "votes":
            return np.asarray(self.evaluate(rows, labels=True), dtype=np.intp)
        # By scores or probabilities; rows whose bounds leave their label open are evaluated exactly.
        values, bounds, _ = self.evaluate(rows, bounds=True, values="settled")
        classes, certain = self._outputs.certified_class(_columns(values), _columns(bounds))
        if artifact.mode == "approximate":
            return self._outputs.predicted_class(_columns(values))
        open_rows = np.flatnonzero(~certain)
        if len(open_rows):
            exact = self.evaluate(rows[open_rows], values="exact")
            classes[open_rows] = self._outputs.predicted_class(_columns(exact))
        return classes

    def decision_function(self, rows: Any) -> FloatArray:
        """Decision values as the source gives them: scikit-learn's orientation, shape and order of classes."""
        values, labels = self.evaluate(rows), self.artifact.labels
        if self.artifact.task != "classification":
            return np.asarray(values)
        if values.ndim == 1:
            return np.asarray(values if labels[0] > labels[1] else -values)
        if self.artifact.heads.decision_shape == "ovr":
            return np.asarray(self._outputs.one_vs_rest_scores(values)[:, self.order])
        return _in_order(values, self.order)

    def error_bound(self, rows: Any) -> FloatArray:
        """Bounds of decision values, in the model's own order of pairs."""
        return np.asarray(self.evaluate(rows, bounds=True)[1])

    def certified(self, rows: Any) -> BoolArray:
        """Which rows the first stage proves."""
        return proven(self.artifact, *self.evaluate(rows, bounds=True, values="settled"))

    def predict_proba(self, rows: Any) -> FloatArray:
        """Class probabilities, columns as the sorted labels."""
        return np.asarray(self._outputs.probabilities(_columns(self.evaluate(rows)))[:, self.order])

    def probability_bound(self, rows: Any) -> FloatArray:
        """What |probability - that of the exact decision values| never exceeds."""
        values, bounds, _ = self.evaluate(rows, bounds=True)
        return np.asarray(probability_bounds(self._outputs, _columns(values), _columns(bounds))[:, self.order])

    @property
    def rows_per_stage(self) -> dict[str, int]:
        """How many rows each stage has answered so far."""
        return dict(zip(STAGES, self.native.counts, strict=True))

    @property
    def exact_count(self) -> int:
        """How many of these rows went to the exact engine because their exact values were asked for."""
        return int(self.native.exact_count)


class EnsembleEvaluator:
    """Answers of several compiled classifiers whose probabilities are averaged.

    Parameters
    ----------
    artifact : EnsembleArtifact
    n_jobs : int, optional
        Threads, as in scikit-learn.
    """

    has_probabilities = True

    def __init__(self, artifact: EnsembleArtifact, n_jobs: int | None = None) -> None:
        self.artifact = artifact
        self.n_jobs = n_jobs
        self.members = [Evaluator(member, n_jobs) for member in artifact.members]

    @property
    def order(self) -> IntArray:
        """Positions of the sorted labels among the model's own."""
        return np.argsort(self.artifact.labels, kind="stable")

    def predict(self, rows: Any) -> npt.NDArray[Any]:
        """Labels of the greatest mean probability; what the members' bounds leave open is evaluated exactly."""
        ensemble = self.artifact.ensemble
        values, bounds = self._values(rows, "settled")
        classes = ensemble.probabilities(values).argmax(axis=1)
        if self.artifact.mode != "approximate":
            open_rows = np.flatnonzero(~_certain(classes, *ensemble.probability_interval(values, bounds)))
            if len(open_rows):
                exact, _ = self._values(rows[open_rows], "exact")
                classes[open_rows] = ensemble.probabilities(exact).argmax(axis=1)
        return np.asarray(self.artifact.labels.take(classes))

    def one(self, row: Any) -> Any:
        """The label of a single row."""
        return self.predict(as_row(row))[0]

    def predict_proba(self, rows: Any) -> FloatArray:
        """Mean probabilities, columns as the sorted labels."""
        values, _ = self._values(rows)
        return np.asarray(self.artifact.ensemble.probabilities(values)[:, self.order])

    def probability_bound(self, rows: Any) -> FloatArray:
        """What |probability - that of the exact decision values| never exceeds."""
        values, bounds = self._values(rows)
        given = self.artifact.ensemble.probabilities(values)
        lowest, highest = self.artifact.ensemble.probability_interval(values, bounds)
        return np.asarray(np.maximum(highest - given, given - lowest)[:, self.order])

    def error_bound(self, rows: Any) -> FloatArray:
        """As `probability_bound`."""
        return self.probability_bound(rows)

    def certified(self, rows: Any) -> BoolArray:
        """Whether each label is proven by the members' values and bounds, without another evaluation."""
        values, bounds = self._values(rows, "settled")
        ensemble = self.artifact.ensemble
        classes = ensemble.probabilities(values).argmax(axis=1)
        return _certain(classes, *ensemble.probability_interval(values, bounds))

    @property
    def rows_per_stage(self) -> dict[str, int]:
        """How many rows each stage has answered, of all members together."""
        return {name: sum(member.rows_per_stage[name] for member in self.members) for name in STAGES}

    @property
    def exact_count(self) -> int:
        """How many of these rows went to the exact engine because their exact values were asked for."""
        return sum(member.exact_count for member in self.members)

    def _values(self, rows: Any, values: Values = "promised") -> tuple[list[FloatArray], list[FloatArray]]:
        """Decision values and bounds of every member, one column per pair."""
        found = []
        for member in self.members:
            member.n_jobs = self.n_jobs
            has_engine = member.artifact.mode != "approximate"
            which: Values = "promised" if values == "exact" and not has_engine else values
            found.append(member.evaluate(rows, bounds=True, values=which))
        return [_columns(v) for v, _, _ in found], [_columns(b) for _, b, _ in found]


class Predictor:
    """A compiled model for programs that only predict: it needs NumPy alone, no scikit-learn.

    Parameters
    ----------
    artifact : path, bytes, or artifact
        An .asvm file, its content, or the ``artifact`` of a compiled estimator.
    n_jobs : int, optional
        Threads: 1 when left out, -1 for all processors. Results do not depend on it.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels, sorted; empty for other tasks.
    n_features : int
        Number of columns that rows must have.

    Raises
    ------
    ArtifactError
        The bytes break a rule of models/FORMAT.md, or check rows give other values on this machine.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import approxsvm
    >>> predictor = approxsvm.Predictor("models/breast_cancer.asvm")
    >>> predictor.predict([[0.5] * 30]).tolist()
    [-1]
    """

    def __init__(self, artifact: str | os.PathLike[str] | bytes | SealedBytes, *, n_jobs: int | None = None) -> None:
        found: Any = artifact if isinstance(artifact, SealedBytes) else read_artifact(artifact)
        self.artifact = found
        self._evaluator = evaluator_for(found, n_jobs)
        self.classes = np.sort(found.labels)
        self.n_features = int(found.n_raw_features)

    def __repr__(self) -> str:
        return f"<Predictor: {self.artifact.task}, {self.n_features} features, {self.artifact.mode}>"

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class labels, values of a regression, or 1 and -1 for inliers and outliers.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            Raw rows, before any scaling: it is part of the artifact.

        Returns
        -------
        ndarray of shape (n_rows,)

        Raises
        ------
        InputError
            X has another shape, or holds NaN or infinity; the message names the place.
        """
        return self._evaluator.predict(self._rows(X))

    def predict_one(self, row: Any) -> Any:
        """The same for a single row of shape (n_features,), with as little overhead as Python allows."""
        return self._evaluator.one(row)

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values as the source gives them, shape (n_rows,), (n_rows, n_classes) or (n_rows, n_pairs).

        Raises
        ------
        InputError
            As for `predict`, or the model has none: it averages probabilities.
        """
        if isinstance(self._evaluator, EnsembleEvaluator):
            raise InputError("an ensemble averages probabilities, it has no decision function")
        return self._evaluator.decision_function(self._rows(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities, shape (n_rows, n_classes), columns as in `classes`.

        Raises
        ------
        InputError
            As for `predict`, or the source was trained without probabilities.
        """
        if not self._evaluator.has_probabilities:
            raise InputError("the source model was trained without probabilities")
        return self._evaluator.predict_proba(self._rows(X))

    def error_bound(self, X: Any) -> FloatArray:
        """What |value - exact value| never exceeds, for each row (of an ensemble, of probabilities)."""
        return self._evaluator.error_bound(self._rows(X))

    def certified(self, X: Any) -> BoolArray:
        """Whether each row is proven without falling back on the exact model, shape (n_rows,)."""
        return self._evaluator.certified(self._rows(X))

    @property
    def rows_per_stage(self) -> dict[str, int]:
        """How many rows each stage has answered so far."""
        return self._evaluator.rows_per_stage

    def _rows(self, X: Any) -> Any:
        if is_plain_matrix(X, self.n_features):
            return X
        names, columns = self.artifact.feature_names, getattr(X, "columns", None)
        if names is not None and columns is not None and tuple(map(str, columns)) != names:
            raise InputError(
                f"X has the columns {list(map(str, columns))}, but the model was fitted with {list(names)}"
            )
        if hasattr(X, "tocsr"):
            rows = check_sparse(X)
        else:
            try:
                rows = np.asarray(X)
                rows = rows if rows.dtype.kind in "fiubc" else rows.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise InputError(f"X is not an array of numbers: {error}") from None
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise InputError(f"X has shape {rows.shape}, expected (n_rows, {self.n_features})")
        return with_one_index_type(rows)


def with_one_index_type(rows: Any) -> Any:
    """CSR rows whose two index arrays have one type; arrays as they are."""
    if isinstance(rows, np.ndarray) or rows.indices.dtype == rows.indptr.dtype:
        return rows
    rows = rows.copy()
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


def _columns(values: FloatArray) -> FloatArray:
    return values if values.ndim == 2 else values[:, np.newaxis]


def _in_order(values: FloatArray, order: IntArray) -> FloatArray:
    """Values of pairs of the model's labels -> of pairs of the sorted ones, positive for the first."""
    if (order == np.arange(len(order))).all():
        return values
    position = {pair: k for k, pair in enumerate(class_pairs(len(order)))}
    ordered = np.empty_like(values)
    for k, (i, j) in enumerate(class_pairs(len(order))):
        a, b = int(order[i]), int(order[j])
        ordered[:, k] = values[:, position[a, b]] if a < b else -values[:, position[b, a]]
    return ordered


def _certain(classes: IntArray, lowest: FloatArray, highest: FloatArray) -> BoolArray:
    """Whether the least of each row's class exceeds the most of every other."""
    rows = np.arange(len(classes))
    others = highest.copy()
    others[rows, classes] = -np.inf
    return np.asarray(lowest[rows, classes] > others.max(axis=1, initial=-np.inf))
