"""Evaluation of an artifact with NumPy alone; this is the only module that imports the native predictor.

An `Evaluator` predicts with one artifact. Its rows have already been checked: they are arrays of real numbers or CSR
matrices. `Predictor` (predictor.py) wraps an `Evaluator` for programs that only predict, and the estimators
(estimators.py) wrap one for programs that use scikit-learn.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.artifact.outputs import pack_outputs
from approxsvm.artifact.views import Artifact
from approxsvm.errors import InputError, UnsortedIndicesError
from approxsvm.frames.columns import check_exact, known_rows, numpy_rows
from approxsvm.frames.dtypes import FLOAT32, NO_NUMBER, NOT_NONE, SPARSE, WIDE_SPARSE, check_extended
from approxsvm.frames.known_frames import KnownFrames, row_reader
from approxsvm.frames.named_rows import is_one_row_frame, row_by_name
from approxsvm.frames.rows import as_row, chunks, one_row, with_global_row
from approxsvm.ir.constants import UNIT32
from approxsvm.ir.kernel_model import FloatArray, Task
from approxsvm.ir.outputs import Outputs, class_pairs
from approxsvm.ir.schema import TASKS
from approxsvm.system.threads import n_threads

# Kinds of values and bounds to compute (cpp/include/approxsvm/model_view.hpp). "promised": exact values, or values
# within the model's tolerance, if any; "settled": values of the cheapest stage that determines the label; "exact":
# always exact values.
Values = Literal["promised", "settled", "exact"]
# Outputs to compute (cpp/python/register_predictor.cpp), combined with |; several outputs form a tuple in this order.
LABELS, VALUES, BOUNDS, STAGE_NUMBERS, CERTIFIED, PROBABILITIES, PROBABILITY_BOUNDS = (1 << k for k in range(7))
# User-visible output names, and the corresponding outputs of the core.
OUTPUTS = ("label", "value", "probability", "error_bound", "certified")
_BITS = dict(zip(OUTPUTS, (LABELS, VALUES, PROBABILITIES, BOUNDS, CERTIFIED), strict=True))
# The stages, in the order of the native enumeration (cpp/include/approxsvm/model_view.hpp).
STAGES = ("expansion", "direction", "higher_degree", "subspace", "float32", "float64", "definition")
# Stages that do not need the exact model.
EXPANSION_STAGES = STAGES[:4]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
NATIVE_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
ARRAY = np.ndarray  # looking up a global name is faster than looking up an attribute
_FLOAT64 = np.dtype(np.float64)
_PYTHON_ROWS = (dict, list, tuple)  # row types that the core reads
_NAMELESS = (ARRAY, list, tuple)  # row types without names; subclasses may have them


def read_artifact(source: str | os.PathLike[str] | bytes) -> Artifact:
    """Read and validate an .asvm file or its bytes; raise ArtifactError if they violate models/FORMAT.md."""
    if isinstance(source, bytes):
        return Artifact(source)
    return Artifact.read(source)


def native_outputs(outputs: Outputs, task: Task, n_classes: int) -> _native.Outputs:
    """Return the core's functions from decision values and bounds to scores, probabilities and (certified) labels."""
    return _native.Outputs(pack_outputs(outputs), TASKS.index(task), n_classes)


class Evaluator:
    """Predictions of one compiled model, with `n_jobs` threads as in scikit-learn.

    To reduce latency, batches of up to four rows per center use different code from larger batches. The values of a row
    in a small and in a large batch may differ, but the bounds hold for both.
    """

    def __init__(self, artifact: Artifact, n_jobs: int | None = None) -> None:
        n_threads(n_jobs)  # rejects an invalid number before the model is unpacked
        self.artifact = artifact
        self.n_jobs = n_jobs
        self._dtypes = artifact.row_dtypes
        self.native = _native.Predictor(artifact.native, float32_unit=UNIT32 if self._dtypes.rounded else 0.0)
        self._task = artifact.task
        self._is_column = artifact.outputs.is_column
        n_answers = artifact.n_decisions if self._task == "regression" else artifact.n_targets
        self._has_one_answer = not (self._is_column or artifact.of_targets) and n_answers == 1
        self._takes_one = self._task != "regression" and self._has_one_answer and FLOAT32 not in self._dtypes.refused
        # Rows in containers other than numeric arrays may contain values that are not numbers.
        columns = artifact.raw_columns
        self._reads_texts = columns.has_categories or not columns.uses_all or artifact.takes_texts
        # The core takes only float32 and float64, and lists of integers are converted to float64.
        looks_at_dtypes = not {*self._dtypes.refused} <= {"float16", SPARSE, WIDE_SPARSE, NO_NUMBER, NOT_NONE}
        self._reads_values = self._reads_texts or looks_at_dtypes
        self._looks_at_dtypes = looks_at_dtypes
        self._labels: Any = labels_of(artifact)
        # Labels by index, for a single row; None if predictions are values. A list, unlike an array, already contains
        # Python objects.
        by_position = {"regression": None, "one_class": [1, -1]}
        self._by_position: Any = by_position[self._task] if self._task in by_position else list(self._labels)

    @cached_property
    def _reader(self) -> _native.RowReader:
        """The core's reader for rows of Python values."""
        return row_reader(self.artifact.native, self.artifact.raw_columns, needs_real=self._looks_at_dtypes)

    @cached_property
    def frames(self) -> KnownFrames:
        """Layouts of previously converted data frames."""
        return KnownFrames(lambda: self._reader, self.artifact.raw_columns)

    def evaluate(self, rows: Any, want: int = VALUES, values: Values = "promised", as_part: bool = False) -> Any:
        """Compute the outputs in `want` for raw rows; decision values have LIBSVM's orientation, labels are indices.

        With `as_part`, the results are identical to those for the same rows in a large batch.
        """
        if rows.dtype == _FLOAT64:
            return self._evaluate_rows(rows, want, values, as_part)
        self._dtypes.check_dtype(rows.dtype)
        if rows.dtype in NATIVE_DTYPES:
            return self._evaluate_rows(rows, want, values, as_part)
        if rows.dtype.kind == "c":
            raise InputError(f"rows are {rows.dtype}, but must be real numbers")
        check_extended(rows)
        parts = []
        native = np.float32 if rows.dtype.newbyteorder("=") == np.float32 else np.float64
        for piece in chunks(rows.shape[0], self.artifact.n_raw_features):  # convert one chunk at a time
            try:
                parts.append(self._evaluate_rows(rows[piece].astype(native), want, values, as_part))
            except InputError as error:
                raise with_global_row(error, piece.start) from None
        if isinstance(parts[0], tuple):
            return tuple(np.concatenate(same) for same in zip(*parts, strict=True))
        return np.concatenate(parts)

    def _evaluate_rows(self, rows: Any, want: int, values: Values, as_part: bool) -> Any:
        threads = n_threads(self.n_jobs)
        if isinstance(rows, np.ndarray):
            flags, strides, size = rows.flags, rows.strides, rows.itemsize
            # A single row counts as contiguous, whatever the stride of its first axis.
            if not (flags.aligned and strides[0] % size == 0 and (flags.c_contiguous or strides[1] % size == 0)):
                rows = rows.copy(order="C")
            return self.native.dense(rows, threads, want, values, as_part)
        try:
            return self.native.csr(rows.indptr, rows.indices, rows.data, threads, want, values, as_part)
        except UnsortedIndicesError:
            rows = rows.copy()
            rows.sum_duplicates()
            return self.native.csr(rows.indptr, rows.indices, rows.data, threads, want, values, as_part)

    @property
    def order(self) -> IntArray:
        """Indices that sort the model's labels; for a one-class model, the indices of inlier and outlier."""
        return np.arange(2) if self._task == "one_class" else np.argsort(self.artifact.labels, kind="stable")

    @property
    def has_probabilities(self) -> bool:
        """True if the source has probabilities, of classes or of inliers and outliers."""
        return self.artifact.has_probabilities

    def predict(self, rows: Any) -> npt.NDArray[Any]:
        """Predict labels (one column per target), 1 and -1 for inliers and outliers, or regression values."""
        if rows.shape[0] == 1 and type(rows) is np.ndarray and self._takes_one:
            try:
                position = self.native.one(rows)
            except InputError:
                position = None  # the general path below names the invalid value
            if position is not None:
                return np.array(self._labels[position : position + 1])
        if self._task == "regression":
            return self._in_shape(self.evaluate(rows))
        classes = self.evaluate(rows, LABELS)
        labels: npt.NDArray[Any] = self._labels[self._of_targets(classes)]
        return labels

    def _of_targets(self, answers: Any) -> Any:
        """Return predictions with one column per target, even if the model has only one target."""
        return answers.reshape(len(answers), self.artifact.n_targets) if self.artifact.of_targets else answers

    def one(self, row: npt.NDArray[Any]) -> Any:
        """Predict a single row, given as a plain array, with as little Python overhead as possible."""
        if self._reads_values and row.dtype != _FLOAT64:
            row = self._encoded(row)
        answer = self.native.one(row) if self._has_one_answer else None
        if answer is None:
            return self.predict(self._one_row(row))[0]
        return answer if self._by_position is None else self._by_position[answer]

    def _one_row(self, row: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Convert an array to a one-row matrix of real numbers."""
        rows = as_row(row)
        return rows if rows.dtype.kind in "fiub" else numpy_rows(rows, self.artifact.raw_columns, stacklevel=4)

    def one_of_any_kind(self, row: Any, outputs: Sequence[str] | None, rows_of: Callable[[Any], Any]) -> Any:
        """Predict a single row in any container; `outputs` requests a dict of results; `rows_of` converts frames."""
        if self.artifact.takes_texts and isinstance(row, (str, bytes)):
            rows = self.artifact.text_rows.row(row)
        elif type(row) in _PYTHON_ROWS and not self.artifact.takes_texts:
            if outputs is None and self._has_one_answer:
                answer = self.native.one_of(self._reader, row)
                if answer is not None:
                    return answer if self._by_position is None else self._by_position[answer]
            rows = self._reader.row(row)
        else:
            rows = self.frames.rows(row)
        if rows is None or rows.shape[0] != 1:
            rows = None
            if type(row) not in _NAMELESS:
                row = known_rows(row)
                rows = self._by_name(row, rows_of)
            if rows is None:
                row = one_row(self._encoded(row) if self._reads_values else row)
                if outputs is None:
                    return self.one(row)
                rows = self._one_row(row)
        if outputs is None:
            return self.predict(rows)[0]
        for output in outputs:
            check_output(self.artifact, output)
        answers = self.answers(rows, outputs)
        if "label" in answers:
            answers["label"] = self._labels[self._of_targets(answers["label"])]
        return {output: answers[output][0] for output in outputs}

    def _by_name(self, row: Any, rows_of: Callable[[Any], Any]) -> Any:
        """Convert a row with column names to numbers; return None if it has no names."""
        if self.artifact.takes_texts and isinstance(row, Mapping):
            raise InputError("the model takes a text, not a row of columns: pass the text itself")
        return rows_of(row) if is_one_row_frame(row) else row_by_name(row, self.artifact.raw_columns)

    def _encoded(self, row: Any) -> Any:
        """Convert a row of values, which may be strings, to numbers; numeric arrays already contain codes."""
        self._dtypes.check(row, self.artifact.raw_columns.names)
        if not self._reads_texts:
            return row
        if isinstance(row, np.ndarray) and row.dtype.kind in "fiub":
            columns = self.artifact.raw_columns
            if columns.looked_up and np.shape(row)[-1:] == (columns.n_columns,):
                check_exact(np.asarray(row).reshape(-1, columns.n_columns), columns)
            return row
        return numpy_rows(as_row(np.asarray(row, dtype=object)), self.artifact.raw_columns, stacklevel=4)[0]

    def classes(self, rows: Any) -> IntArray:
        """Return the indices of the predicted labels in the model's labels."""
        return np.asarray(self.evaluate(rows, LABELS), dtype=np.intp)

    def decision_function(self, rows: Any) -> FloatArray:
        """Return decision values with scikit-learn's orientation, shape and class order."""
        return self._in_shape(self._in_source_order(self.evaluate(rows)))

    def _in_shape(self, values: FloatArray) -> FloatArray:
        return values[:, np.newaxis] if self._is_column else values

    def _in_source_order(self, values: FloatArray) -> FloatArray:
        labels = self.artifact.labels
        if self.artifact.task != "classification":
            return np.asarray(values)
        if values.ndim == 1:
            return np.asarray(values if labels[0] > labels[1] else -values)
        if self.artifact.outputs.of_each_class:
            return np.asarray(values[:, self.order])
        if self.artifact.outputs.decision_shape == "ovr":
            outputs = native_outputs(self.artifact.outputs, self.artifact.task, len(labels))
            return np.asarray(outputs.one_vs_rest_scores(values)[:, self.order])
        return pairs_in_order(values, self.order)

    def error_bound(self, rows: Any) -> FloatArray:
        """Return error bounds for decision values (pairs in the model's label order) or for probabilities."""
        if self.artifact.averages:
            return self.probability_bound(rows)
        if self.artifact.has_labels_alone:
            raise InputError("the model has only labels, no values to bound; certified tells which labels are proven")
        return self._in_shape(self.evaluate(rows, BOUNDS))

    def certified(self, rows: Any) -> BoolArray:
        """Return whether the first stage's bound proves each row's result or, with several targets, each label."""
        return np.asarray(self._of_targets(self.evaluate(rows, CERTIFIED)))

    def predict_proba(self, rows: Any) -> FloatArray:
        """Return probabilities with one column per label, in sorted order, or with columns for inlier and outlier."""
        return np.asarray(self.evaluate(rows, PROBABILITIES)[:, self.order])

    def probability_bound(self, rows: Any) -> FloatArray:
        """Return upper bounds on the differences from the probabilities at the exact decision values."""
        return np.asarray(self.evaluate(rows, PROBABILITY_BOUNDS)[:, self.order])

    def answers(self, rows: Any, outputs: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """Compute the outputs for part of a larger batch in one call to the core.

        The artifact must have the outputs (`check_output`). Labels are indices into ``artifact.labels``, or into (1,
        -1) for a one-class model.
        """
        bits = _BITS | ({"error_bound": PROBABILITY_BOUNDS} if self.artifact.averages else {})
        together = sorted({bits[output] for output in outputs})
        if not together:
            return {}
        answers = self.evaluate(rows, sum(together), as_part=True)
        by_bit = dict(zip(together, answers if len(together) > 1 else [answers], strict=True))
        return {output: self._finished(output, by_bit[bits[output]]) for output in outputs}

    def _finished(self, output: str, answer: Any) -> npt.NDArray[Any]:
        """Reorder the core's results to the class order that users see."""
        if output == "value":
            return self._in_source_order(answer)
        if output == "probability" or (output == "error_bound" and self.artifact.averages):
            return np.asarray(answer[:, self.order])
        return np.asarray(answer)

    @property
    def rows_per_stage(self) -> dict[str, int]:
        """Number of rows that each stage has predicted so far."""
        return dict(zip(STAGES, self.native.counts, strict=True))

    @property
    def exact_count(self) -> int:
        """Number of rows in `rows_per_stage` that the exact engine predicted because exact values were requested."""
        return int(self.native.exact_count)


def available_outputs(artifact: Artifact) -> tuple[str, ...]:
    """Return the names of a model's outputs, in the order of `OUTPUTS`."""
    has = {
        "label": artifact.task != "regression",
        "value": artifact.has_decision_function,
        "probability": artifact.has_probabilities,
        "error_bound": not artifact.has_labels_alone,
        "certified": True,
    }
    return tuple(output for output in OUTPUTS if has[output])


def check_output(artifact: Artifact, output: str) -> None:
    """Raise InputError if a model does not have an output."""
    if output not in OUTPUTS:
        raise InputError(f"there is no output {output!r}, only {', '.join(OUTPUTS)}")
    why = {
        "label": "a regression has values and no labels",
        "value": artifact.why_no_decision_function,
        "probability": artifact.why_no_probabilities,
        "error_bound": "the model has only labels, no values to bound",
    }
    if output not in available_outputs(artifact):
        raise InputError(f"the model has no output {output!r}: {why[output]}")


def labels_of(artifact: Artifact) -> npt.NDArray[Any]:
    """Return labels in the order of their indices: the model's labels, or 1 and -1 for inliers and outliers."""
    return np.array([1, -1]) if artifact.task == "one_class" else artifact.labels


def artifact_of(model: Any) -> Artifact:
    """Return the artifact of a path, bytes, a predictor, an estimator or an artifact; raise InputError otherwise."""
    if isinstance(model, (str, bytes, os.PathLike)):
        return read_artifact(model)
    artifact = getattr(model, "artifact", model)
    if not isinstance(artifact, Artifact):
        raise InputError(f"expected an artifact or its path, got {type(model).__name__}")
    return artifact


def open_evaluators(model: Any) -> dict[str, Evaluator]:
    """Create single-threaded evaluators for a model or for a mapping from names to models."""
    models = model if isinstance(model, Mapping) else {"model": model}
    return {str(name): Evaluator(artifact_of(one)) for name, one in models.items()}


def with_one_index_type(rows: Any) -> Any:
    """Convert the two index arrays of CSR rows to the same type; arrays are returned unchanged."""
    if isinstance(rows, np.ndarray) or rows.indices.dtype == rows.indptr.dtype:
        return rows
    rows = rows.copy()
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


def pairs_in_order(values: FloatArray, order: IntArray) -> FloatArray:
    """Reorder pairwise values from the model's labels to sorted labels; positive values mean a pair's first label."""
    if (order == np.arange(len(order))).all():
        return values
    position = {pair: k for k, pair in enumerate(class_pairs(len(order)))}
    ordered = np.empty_like(values)
    for k, (i, j) in enumerate(class_pairs(len(order))):
        a, b = int(order[i]), int(order[j])
        ordered[:, k] = values[:, position[a, b]] if a < b else -values[:, position[b, a]]
    return ordered
