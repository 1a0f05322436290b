"""Raw rows in, answers out: a compiled model for programs that only predict."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.errors import InputError
from approxsvm.evaluator import BoolArray, Evaluator, read_artifact, with_one_index_type
from approxsvm.model.kernel_model import FloatArray
from approxsvm.rows import check_sparse, is_plain_matrix
from approxsvm.table_columns import numpy_rows


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
    InputError
        `n_jobs` is not a number of threads.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import approxsvm
    >>> predictor = approxsvm.Predictor("models/breast_cancer.asvm")
    >>> predictor.predict([[0.5] * 30]).tolist()
    [-1]
    """

    def __init__(self, artifact: str | os.PathLike[str] | bytes | Artifact, *, n_jobs: int | None = None) -> None:
        found = artifact if isinstance(artifact, Artifact) else read_artifact(artifact)
        self.artifact = found
        self._evaluator = Evaluator(found, n_jobs)
        self.classes = np.sort(found.labels)
        self.n_features = int(found.n_raw_features)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Predictor, n_jobs=self._evaluator.n_jobs), (self.artifact,)

    def __repr__(self) -> str:
        return f"<Predictor: {self.artifact.task}, {self.n_features} features, {self.artifact.mode}>"

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class labels, values of a regression, or 1 and -1 for inliers and outliers.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            Raw rows, before any scaling: it is part of the artifact. A data frame has the columns that the source was
            fitted with, in their order; where that begins with a ColumnTransformer they are found by name. For a model
            without names they are found as `predict_arrow` does.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_targets) where a regression was fitted with targets of two dimensions

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
            As for `predict`, or the source has none: it is a CalibratedClassifierCV.
        """
        if not self.artifact.has_decision_function:
            raise InputError("a calibrated classifier gives or averages probabilities, it has no decision function")
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
        """What `|value - exact value|` never exceeds, for each row (of an ensemble, of probabilities)."""
        return self._evaluator.error_bound(self._rows(X))

    def certified(self, X: Any) -> BoolArray:
        """Whether each row is proven without falling back on the exact model, shape (n_rows,)."""
        return self._evaluator.certified(self._rows(X))

    def predict_arrow(
        self,
        data: Any,
        *,
        outputs: Sequence[str] | None = None,
        keep: Sequence[str] = (),
        columns: Sequence[str] | None = None,
        on_error: Literal["fail", "null", "skip"] = "fail",
    ) -> Any:
        """Answers for Arrow columns: tables in, a table out, nothing by way of Python objects.

        Columns are found by the names that the model was fitted with, in any order, among others. A model without names
        takes the columns f0, f1, ... where all are there, and refuses a table where some are. Else it takes those that
        are not kept by their position, and says so by a `ColumnsByPositionWarning`: they must be as many as it has
        features, and not be numbered in another way (x0, x2), or be one column of lists of that fixed size. Columns
        that the model does not use, as those that a ColumnTransformer drops, are not read: they may hold anything, and
        where the model has names they may be missing. Columns that lie side by side at equal distances in memory, as in
        Arrow files and lists of a fixed size, are not copied; others are once, into a buffer that is used again.

        Parameters
        ----------
        data : pyarrow.Table, RecordBatch, a reader or iterable of batches, or whatever exports an Arrow stream
            Polars and DuckDB do, and so does pandas. Features are numbers of any type, booleans, dictionaries of them.
        outputs : sequence of {"label", "value", "probability", "error_bound", "certified"}, optional
            What is wanted; "label" when left out, of a regression "value". Answers of several columns have the class,
            or the pair of classes, behind the name: "probability_setosa".
        keep : sequence of str
            Columns that are handed on, in front.
        columns : sequence of str, optional
            The columns that are features, in the model's order.
        on_error : {"fail", "null", "skip"}
            What becomes of rows with a null, NaN, infinity, or a number beyond the model's range.

        Returns
        -------
        pyarrow.Table
            As many rows as went in, unless some are skipped; the same numbers as `predict` and its kin give for many
            rows, however few these are and however they come.

        Raises
        ------
        InputError
            A column is missing or is no number, an output does not exist; a row is bad, which the message names.
        MissingPackageError
            pyarrow is not installed: ``pip install 'approxsvm[arrow]'``.
        """
        from approxsvm.tables.arrow.batches import predict_stream  # here, as it brings pyarrow along

        return predict_stream(self._evaluator, data, outputs=outputs, keep=keep, columns=columns, on_error=on_error)

    @property
    def rows_per_stage(self) -> dict[str, int]:
        """How many rows each stage has answered so far."""
        return self._evaluator.rows_per_stage

    def _rows(self, X: Any) -> Any:
        if is_plain_matrix(X, self.n_features):
            return X
        if not hasattr(X, "tocsr"):
            return numpy_rows(X, self.artifact.raw_columns, stacklevel=3)  # whoever calls a method
        rows = check_sparse(X)
        if rows.shape[1] != self.n_features:
            raise InputError(f"X has shape {rows.shape}, expected (n_rows, {self.n_features})")
        return with_one_index_type(rows)
