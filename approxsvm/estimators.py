"""scikit-learn estimators around an artifact, fitted from the start; the only importer of the native predictor."""

from __future__ import annotations

import os
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils.validation import validate_data

from approxsvm import _native
from approxsvm.artifact import Artifact
from approxsvm.errors import UnsortedIndicesError
from approxsvm.expansion.validity import row_norms
from approxsvm.kernel_model import FloatArray
from approxsvm.report import Summary, summarize
from approxsvm.threads import n_threads

Self = TypeVar("Self", bound="CompiledModel")
# What can answer a row, in the order of the native enumeration (cpp/include/approxsvm/model_view.hpp).
STAGES = ("expansion", "direction", "higher_degree", "float32", "float64", "definition")
_NATIVE_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


def proven(
    artifact: Artifact, values: FloatArray, bounds: FloatArray, stages: npt.NDArray[np.uint8]
) -> npt.NDArray[np.bool_]:
    """Which rows the first stage's own bound proved, without falling back.

    In mode "approximate" there is nothing to fall back on: a label is proven when its value exceeds its bound.
    """
    first = {"certified": ("expansion", "direction", "higher_degree"), "exact": ("float32",)}.get(artifact.mode)
    if first is not None:
        return np.asarray(np.isin(stages, [STAGES.index(name) for name in first]))
    return np.asarray(np.isfinite(bounds) if artifact.task == "regression" else np.abs(values) > bounds)


class CompiledModel(BaseEstimator):  # type: ignore[misc]
    """What all compiled predictors share.

    Up to four rows are computed by other means than larger batches, for the sake of latency: the values of a row may
    then differ in what lies within their bounds, which covers either.

    Parameters
    ----------
    artifact : Artifact
        The compiled model. Being a parameter, it survives ``clone``: a clone predicts like its original.
    n_jobs : int, optional
        Threads, as in scikit-learn: 1 when left out, -1 for all processors. Results do not depend on it.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns that rows must have.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names; present only when the source model was fitted on a data frame.
    """

    def __init__(self, artifact: Artifact, *, n_jobs: int | None = None) -> None:
        self.artifact = artifact
        self.n_jobs = n_jobs

    # --- what scikit-learn asks of a fitted estimator

    @property
    def n_features_in_(self) -> int:
        """Number of columns that rows must have."""
        return self.artifact.n_features

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Column names of the data frame that the source model was fitted on."""
        names = self.artifact.feature_names
        if names is None:
            raise AttributeError(f"this {type(self).__name__} has no feature names")
        return np.array(names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self: Self, X: Any = None, y: Any = None) -> Self:
        """Ignore the data and return self: a compiled model is fitted for good, like sklearn.frozen.FrozenEstimator."""
        self._predictor  # noqa: B018  # built now, so that predictions leave the estimator as it is
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_predictor_cache", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.requires_fit = False
        return tags

    # --- prediction

    @property
    def _predictor(self) -> _native.Predictor:
        cached = self.__dict__.get("_predictor_cache")
        if cached is None or cached[0] is not self.artifact:
            cached = (self.artifact, _native.Predictor(self.artifact.data))
            self.__dict__["_predictor_cache"] = cached
        predictor: _native.Predictor = cached[1]
        return predictor

    def _rows(self, X: Any) -> Any:
        """Rows in a form that the native core takes as it is: float32 or float64, dense or CSR."""
        fits = type(X) is np.ndarray and X.dtype in _NATIVE_DTYPES and X.shape[1:] == (self.artifact.n_features,)
        if fits and self.artifact.feature_names is None:
            return X  # the common case, at a tenth of the cost; the native core checks the rest
        rows = validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,  # the native core does
            ensure_min_samples=0,
        )
        if not isinstance(rows, np.ndarray) and rows.indices.dtype != rows.indptr.dtype:
            rows = rows.copy()
            rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
        return rows

    def _evaluate(self, X: Any, *, bounds: bool = False) -> Any:
        """Decision values in LIBSVM's orientation; with bounds also error bounds and stages."""
        rows = self._rows(X)
        threads = n_threads(self.n_jobs)
        if isinstance(rows, np.ndarray):
            if any(stride % rows.itemsize for stride in rows.strides) or not rows.flags.aligned:
                rows = rows.copy(order="C")
            return self._predictor.dense(rows, threads, bounds)
        try:
            return self._predictor.csr(rows.indptr, rows.indices, rows.data, threads, bounds)
        except UnsortedIndicesError:
            rows = rows.copy()
            rows.sum_duplicates()
            return self._predictor.csr(rows.indptr, rows.indices, rows.data, threads, bounds)

    def _raw_decision_values(self, X: Any) -> FloatArray:
        """Decision values in LIBSVM's orientation: positive means the model's first label."""
        values: FloatArray = self._evaluate(X)
        return values

    def error_bound(self, X: Any) -> FloatArray:
        """What |value - exact value| never exceeds, for each row: truncation and rounding together.

        The exact value is that of the source model's decision function over the real numbers. A row that a later stage
        answered has that stage's bound.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), float64
        """
        bounds: FloatArray = self._evaluate(X, bounds=True)[1]
        return bounds

    def certified(self, X: Any) -> npt.NDArray[np.bool_]:
        """Whether each row is proven by the first stage's own bound, without falling back on the exact model.

        In mode "certified" the labels of the other rows equal the exact model's all the same: they are computed by it.
        In mode "approximate" they may differ.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), bool
        """
        return proven(self.artifact, *self._evaluate(X, bounds=True))

    @property
    def rows_per_stage(self) -> dict[str, int]:
        """How many rows each stage has answered since this estimator was made: what the promise costs in use.

        "expansion" (up to degree 2), "direction" (the same with a sharper bound), "higher_degree", "float32" and
        "float64" (the exact engine), "definition" (term after term in LIBSVM's order). Single rows through
        ``predict_one`` are not counted.
        """
        return dict(zip(STAGES, self._predictor.counts, strict=True))

    def within_gamma_bound(self, X: Any) -> npt.NDArray[np.bool_]:
        """Whether each row passes the paper's validity test at run time (Claesen et al. 2014, Eq. 3.11).

        Where it does, 4 gamma max||x_i - center|| ||z - center|| < 1, and every term of the expansion is within
        3.05 % of its exponential. It says nothing about their sum: terms of opposite sign may cancel.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), bool
        """
        header = self.artifact.header
        norms = row_norms(self._rows(X), self.artifact.center)
        return np.asarray(4.0 * header["gamma"] * header["max_sv_norm"] * norms < 1.0)

    # --- the artifact

    @property
    def summary(self) -> Summary:
        """What was chosen and how large the result is; print it."""
        return summarize(self.artifact, self.rows_per_stage)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact to an .asvm file; `path` holds all of it or, should this fail, what it held before."""
        self.artifact.write(path)


class CompiledSVC(ClassifierMixin, CompiledModel):  # type: ignore[misc]
    """Compiled two-class support vector classifier; parameters as in CompiledModel.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Class labels, sorted, with the dtype of the source model.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Class labels, sorted."""
        return np.sort(self.artifact.labels)

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values; positive means ``classes_[1]``, as everywhere in scikit-learn.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), float64

        Raises
        ------
        ValueError
            X has another shape, or holds NaN or infinity; the latter is an InputError and names the place.
        """
        values = self._raw_decision_values(X)
        labels = self.artifact.labels
        return values if labels[0] > labels[1] else -values

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)

        Raises
        ------
        ValueError
            X has another shape, or holds NaN or infinity; the latter is an InputError and names the place.
        """
        # LIBSVM's rule: a positive value is the first label, zero the second.
        second = ~(self._raw_decision_values(X) > 0.0)
        return np.asarray(self.artifact.labels.take(second.view(np.int8)))

    def predict_one(self, row: npt.NDArray[Any]) -> Any:
        """Class label of a single row, with as little overhead as Python allows.

        Parameters
        ----------
        row : ndarray of shape (n_features,) or (1, n_features), float32 or float64, C-contiguous

        Returns
        -------
        scalar
            One of ``classes_``.

        Raises
        ------
        InputError
            The row has another shape, type or layout, or holds NaN or infinity.
        """
        return self.artifact.labels[0 if self._predictor.one(row) > 0.0 else 1]


class CompiledSVR(RegressorMixin, CompiledModel):  # type: ignore[misc]
    """Compiled support vector regressor; parameters as in CompiledModel."""

    def predict(self, X: Any) -> FloatArray:
        """Regression values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), float64

        Raises
        ------
        ValueError
            X has another shape, or holds NaN or infinity; the latter is an InputError and names the place.
        """
        return self._raw_decision_values(X)

    def predict_one(self, row: npt.NDArray[Any]) -> float:
        """Value of a single C-contiguous float32 or float64 row of shape (n_features,) or (1, n_features)."""
        return self._predictor.one(row)


class CompiledOneClassSVM(OutlierMixin, CompiledModel):  # type: ignore[misc]
    """Compiled one-class support vector machine; parameters as in CompiledModel.

    Attributes
    ----------
    offset_ : float
        ``score_samples(X) - offset_ == decision_function(X)``.
    """

    @property
    def offset_(self) -> float:
        """What separates scores from decision values."""
        return -float(self.artifact.decision_numbers()["intercept"][0])

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values, shape (n_rows,); positive means an inlier."""
        return self._raw_decision_values(X)

    def score_samples(self, X: Any) -> FloatArray:
        """Decision values before the offset is subtracted, shape (n_rows,)."""
        return self._raw_decision_values(X) + self.offset_

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """1 for inliers and -1 for outliers, shape (n_rows,)."""
        return np.where(self._raw_decision_values(X) > 0.0, 1, -1)

    def predict_one(self, row: npt.NDArray[Any]) -> int:
        """1 or -1 for a single C-contiguous float32 or float64 row of shape (n_features,) or (1, n_features)."""
        return 1 if self._predictor.one(row) > 0.0 else -1


def estimator_for(artifact: Artifact, *, n_jobs: int | None = None) -> CompiledModel:
    """The estimator class that suits an artifact's task, with its native predictor already checked and built."""
    classes: dict[str, type[CompiledModel]] = {
        "classification": CompiledSVC,
        "regression": CompiledSVR,
        "one_class": CompiledOneClassSVM,
    }
    estimator = classes[artifact.task](artifact, n_jobs=n_jobs)
    estimator._predictor  # noqa: B018  # replays the check rows now rather than at the first prediction
    return estimator
