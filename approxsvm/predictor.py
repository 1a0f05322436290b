"""Compiled model for programs that only predict."""

from __future__ import annotations

import html
import os
from functools import partial
from typing import Any

import numpy as np

from approxsvm.artifact.views import Artifact
from approxsvm.errors import InputError
from approxsvm.frames.columns import check_exact, numpy_rows
from approxsvm.frames.rows import check_sparse, is_plain_matrix
from approxsvm.frames.texts import are_texts
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.methods.predicting import Predicting
from approxsvm.runtime.evaluator import Evaluator, read_artifact, with_one_index_type


class Predictor(Predicting):
    """Compiled model for programs that only predict; requires NumPy (and SciPy for batches of documents).

    Parameters
    ----------
    artifact : path, bytes, or artifact
        Path or contents of an .asvm file, or the ``artifact`` of a compiled estimator.
    n_jobs : int, optional
        Number of threads. Default: 1; -1 for all processors. Results do not depend on the number of threads.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels, sorted; empty unless the task is classification.
    n_features : int
        Required number of columns.
    feature_names : tuple of str, or None
        Column names on which the source was fitted.

    Raises
    ------
    ArtifactError
        The bytes violate models/FORMAT.md, or the check rows evaluate to different values on this machine.
    InputError
        `n_jobs` is not a valid number of threads.
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
        opened = artifact if isinstance(artifact, Artifact) else read_artifact(artifact)
        self.artifact = opened
        self._evaluator = Evaluator(opened, n_jobs)
        self.classes = np.sort(opened.labels)
        self.n_features = int(opened.n_raw_features)
        self.feature_names: tuple[str, ...] | None = opened.feature_names

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Predictor, n_jobs=self._evaluator.n_jobs), (self.artifact,)

    def __repr__(self) -> str:
        return repr(self.artifact).replace("Artifact", "Predictor", 1)

    def _repr_html_(self) -> str:
        from approxsvm.analysis.summary import summarize  # imported here because prediction does not need it

        summary = summarize(self.artifact, self.rows_per_stage, self._evaluator.exact_count)
        return f"<pre>{html.escape(repr(self))}</pre>{summary._repr_html_()}"

    def decision_function(self, X: Any) -> FloatArray:
        """Return the source's decision values, of shape (n_rows,), (n_rows, n_classes) or (n_rows, n_pairs).

        Raises
        ------
        InputError
            See `predict`; also raised if the source has no decision function (for example, a CalibratedClassifierCV).
        """
        if not self.artifact.has_decision_function:
            raise InputError(self.artifact.why_no_decision_function)
        return self._evaluator.decision_function(self._rows(X))

    def score_samples(self, X: Any) -> FloatArray:
        """Return a one-class model's decision values before the offset is subtracted, of shape (n_rows,).

        Raises
        ------
        InputError
            See `predict`; also raised if the model is not a one-class model, or is constant (gamma=0).
        """
        if self.artifact.offset is None:
            raise InputError(self.artifact.why_no_scores)
        return self._evaluator.decision_function(self._rows(X)) + self.artifact.offset

    def predict_proba(self, X: Any) -> FloatArray:
        """Return class probabilities, of shape (n_rows, n_classes), with columns in the order of `classes`.

        For a one-class model, the columns are inlier and outlier, as in LIBSVM.

        Raises
        ------
        InputError
            See `predict`; also raised if the model has no probabilities.
        """
        if not self._evaluator.has_probabilities:
            raise InputError(self.artifact.why_no_probabilities)
        return self._evaluator.predict_proba(self._rows(X))

    def probability_bound(self, X: Any) -> FloatArray:
        """Return an upper bound on the difference from the probabilities computed from exact decision values.

        Columns are in the order of `classes`.

        Raises
        ------
        InputError
            See `predict_proba`.
        """
        if not self._evaluator.has_probabilities:
            raise InputError(self.artifact.why_no_probabilities)
        return self._evaluator.probability_bound(self._rows(X))

    def error_bound(self, X: Any) -> FloatArray:
        """Return an upper bound on `|value - exact value|` for each row; an ensemble's values are probabilities."""
        return self._evaluator.error_bound(self._rows(X))

    def _rows(self, X: Any) -> Any:
        if is_plain_matrix(X, self.n_features):
            check_exact(X, self.artifact.raw_columns)
            return X
        return self._rows_in_dtype(X)

    def _converted(self, X: Any) -> Any:
        """Convert rows in any container other than a plain array."""
        if self.artifact.takes_texts and are_texts(X):
            return with_one_index_type(self.artifact.text_rows.rows(X))
        if not hasattr(X, "tocsr"):
            return numpy_rows(X, self.artifact.raw_columns, stacklevel=5)  # refers to the caller of a method
        rows = check_sparse(X, self.artifact.raw_columns)
        if rows.shape[1] != self.n_features:
            raise InputError(f"X has shape {rows.shape}, expected (n_rows, {self.n_features})")
        check_exact(rows, self.artifact.raw_columns)
        return with_one_index_type(rows)
