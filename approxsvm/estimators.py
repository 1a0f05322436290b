"""scikit-learn estimators around an artifact, fitted from the start; the only importer of the native predictor."""

from __future__ import annotations

import os
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from approxsvm import _native
from approxsvm.artifact import Artifact
from approxsvm.errors import InputError, UnsortedIndicesError
from approxsvm.expansion.validity import row_norms
from approxsvm.heads import (
    Probability,
    certified_class,
    certified_winner,
    class_pairs,
    one_vs_rest_scores,
    predicted_class,
    probabilities,
    probability_bounds,
)
from approxsvm.kernel_model import FloatArray
from approxsvm.quadratic_artifact import QuadraticArtifact
from approxsvm.quadratic_predictor import QuadraticPredictor
from approxsvm.report import EXPANSION_STAGES, STAGES, Summary, summarize
from approxsvm.rows import Row, as_row, check_finite, check_sparse, chunks, is_plain_matrix, of_the_whole, one_row
from approxsvm.threads import n_threads

Self = TypeVar("Self", bound="CompiledModel")
AnyArtifact = Artifact | QuadraticArtifact
# Which values and bounds are wanted (cpp/include/approxsvm/model_view.hpp): the exact ones, unless the model has a
# tolerance; those of the cheapest stage that settles the label; or exact ones whatever the tolerance.
Values = Literal["promised", "settled", "exact"]
_NATIVE_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


def proven(
    artifact: AnyArtifact, values: FloatArray, bounds: FloatArray, stages: npt.NDArray[np.uint8]
) -> npt.NDArray[np.bool_]:
    """Which rows the first stage's own bound proved, without falling back.

    In mode "approximate" there is nothing to fall back on: a label is proven when no value within the bounds of the
    decision values gives another.
    """
    first = {"certified": EXPANSION_STAGES, "exact": ("float32",)}.get(artifact.mode)
    if first is not None:
        return np.asarray(np.isin(stages, [STAGES.index(name) for name in first]))
    if values.ndim == 2:
        return certified_winner(values, bounds)[1]
    return np.asarray(np.isfinite(bounds) if artifact.task == "regression" else np.abs(values) > bounds)


class CompiledModel(BaseEstimator):  # type: ignore[misc]
    """What all compiled predictors share.

    Up to four rows are computed by other means than larger batches, for the sake of latency: the values of a row may
    then differ in what lies within their bounds, which covers either.

    Parameters
    ----------
    artifact : Artifact or QuadraticArtifact
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

    def __init__(self, artifact: Any, *, n_jobs: int | None = None) -> None:
        self.artifact = artifact
        self.n_jobs = n_jobs

    # --- what scikit-learn asks of a fitted estimator

    @property
    def n_features_in_(self) -> int:
        """Number of columns that rows must have."""
        return int(self.artifact.n_raw_features)

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
    def _predictor(self) -> Any:
        cached = self.__dict__.get("_predictor_cache")
        if cached is None or cached[0] is not self.artifact:
            cached = (self.artifact, self._make_predictor())
            self.__dict__["_predictor_cache"] = cached
        return cached[1]

    def _make_predictor(self) -> Any:
        if isinstance(self.artifact, QuadraticArtifact):
            return QuadraticPredictor(self.artifact.model, self.artifact.asked_tolerance)
        return _native.Predictor(self.artifact.data)

    def _rows(self, X: Any) -> Any:
        """Rows of real numbers, dense or CSR; dense ones of whatever type they have, which is converted in pieces."""
        width = self.artifact.n_raw_features
        plain = type(X) is np.ndarray and X.dtype in _NATIVE_DTYPES and X.shape[1:] == (width,)
        plain = plain or is_plain_matrix(X, width)
        if plain and type(X) is Row:
            return X.view(np.ndarray)
        if plain and self.artifact.feature_names is None:
            return X  # the common case, at a tenth of the cost; the core checks the rest
        if plain:
            validate_data(self, X, reset=False, skip_check_array=True)  # warns that names are missing
            return X
        rows = validate_data(
            self,
            check_sparse(X),
            reset=False,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,  # the core does
            ensure_min_samples=0,
        )
        if not isinstance(rows, np.ndarray) and rows.indices.dtype != rows.indptr.dtype:
            rows = rows.copy()
            rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
        return rows

    def _evaluate(self, X: Any, *, bounds: bool = False, labels: bool = False, values: Values = "promised") -> Any:
        """Decision values in LIBSVM's orientation; with bounds also error bounds and stages.

        With labels, the positions of the predicted labels by votes instead.
        """
        return self._evaluate_checked(self._rows(X), bounds=bounds, labels=labels, values=values)

    def _evaluate_checked(
        self, rows: Any, *, bounds: bool = False, labels: bool = False, values: Values = "promised"
    ) -> Any:
        """As `_evaluate`, of rows that `_rows` has let pass."""
        options = {"bounds": bounds, "labels": labels, "values": values}
        if self.artifact.input_map is None and rows.dtype in _NATIVE_DTYPES:
            return self._evaluate_rows(rows, options)
        pieces = chunks(rows.shape[0], max(self.n_features_in_, self.artifact.n_features))
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
        if rows.dtype not in _NATIVE_DTYPES:
            rows = rows.astype(np.float64)
        if self.artifact.input_map is None:
            return self._evaluate_rows(rows, options)
        return self._evaluate_mapped(rows, options)

    def _evaluate_mapped(self, rows: Any, options: dict[str, Any]) -> Any:
        """Rows as the source takes them: mapped in float64, what that may cost in accuracy in every bound.

        Where the error of a row's map could decide its label, or use up the tolerance, projections are summed again as
        if in twice the precision. Should even that leave a value out of its tolerance, there is no right answer.
        """
        input_map, tolerance = self.artifact.input_map, self.artifact.asked_tolerance
        check_finite(rows)
        mapped, errors = input_map.mapped_with_errors(rows)
        if input_map.has_projection:
            coarse = np.flatnonzero(self.artifact.feels_error(mapped, errors))
            if len(coarse):
                mapped[coarse], errors[coarse] = input_map.mapped_with_errors(rows[coarse], exactly=True)
        result = self._evaluate_rows(mapped, options | {"row_errors": errors})
        if np.isfinite(tolerance) and not options["labels"]:
            open_rows = np.flatnonzero(self.artifact.feels_error(mapped, errors))
            if len(open_rows):
                self._check_tolerance(mapped, errors, open_rows, tolerance)
        return result

    def _check_tolerance(self, mapped: FloatArray, errors: FloatArray, open_rows: Any, tolerance: float) -> None:
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
            return self._predictor.dense(rows, threads, **options)
        try:
            return self._predictor.csr(rows.indptr, rows.indices, rows.data, threads, **options)
        except UnsortedIndicesError:
            rows = rows.copy()
            rows.sum_duplicates()
            return self._predictor.csr(rows.indptr, rows.indices, rows.data, threads, **options)

    def _raw_decision_values(self, X: Any) -> FloatArray:
        """Decision values in LIBSVM's orientation: positive means the model's first label."""
        values: FloatArray = self._evaluate(X)
        return values

    def error_bound(self, X: Any) -> FloatArray:
        """What |value - exact value| never exceeds, for each row: truncation and rounding together.

        The value is that of `decision_function`, or the prediction of a regression; the exact value is that of the
        source model's decision function over the real numbers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,) or, of several classes, (n_rows, n_pairs), float64
            Pairs of classes in LIBSVM's order, (0, 1), (0, 2), ..., positions in ``artifact.labels``.
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
        return proven(self.artifact, *self._evaluate(X, bounds=True, values="settled"))

    @property
    def rows_per_stage(self) -> dict[str, int]:
        """How many rows each stage has answered since this estimator was made: what the promise costs in use.

        "expansion" (up to degree 2), "direction" (the same with a sharper bound), "higher_degree", "float32" and
        "float64" (the exact engine), "definition" (term after term in LIBSVM's order). Labels, and values within a
        tolerance, come from the cheapest stage that proves them. Exact values are what "float64" and "definition" are
        asked for at once: by ``decision_function`` without a tolerance and by probabilities. Single rows through
        ``predict_one`` are not counted.
        """
        return dict(zip(STAGES, self._predictor.counts, strict=True))

    @property
    def _exact_count(self) -> int:
        """How many of these rows went to the exact engine because their exact values were asked for."""
        return int(self._predictor.exact_count)

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
        rows = self._rows(X)
        check_finite(rows)
        if self.artifact.input_map is not None:
            rows = self.artifact.input_map.apply(rows)
        norms = row_norms(rows, self.artifact.center)
        return np.asarray(4.0 * header["gamma"] * header["max_sv_norm"] * norms < 1.0)

    # --- the artifact

    @property
    def summary(self) -> Summary:
        """What was chosen and how large the result is; print it."""
        return summarize(self.artifact, self.rows_per_stage, self._exact_count)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact to an .asvm file; `path` holds all of it or, should this fail, what it held before."""
        self.artifact.write(path)


class CompiledClassifier(ClassifierMixin, CompiledModel):  # type: ignore[misc]
    """What all classifiers have; parameters as in CompiledModel.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted, with the dtype of the source model.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = len(self.artifact.labels) > 2
        return tags

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Class labels, sorted."""
        return np.sort(self.artifact.labels)

    @property
    def _order(self) -> npt.NDArray[np.intp]:
        """Positions of the sorted labels among the model's own."""
        return np.argsort(self.artifact.labels, kind="stable")


class CompiledSVC(CompiledClassifier):
    """Compiled support vector classifier, one-vs-one where there are several classes; parameters as in CompiledModel.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted, with the dtype of the source model.
    """

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values as the source gives them.

        They are the source's own, by the exact engine in float64, to rank, threshold and calibrate with; `predict` does
        not need them and is faster. Where a tolerance was asked for at compilation, values are within it instead, and
        their signs the exact model's. In mode "approximate" they are the expansion's. `error_bound` says how close each
        is.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), (n_rows, n_classes) or (n_rows, n_pairs), float64
            Of two classes, positive means ``classes_[1]``, as everywhere in scikit-learn. Of several, a score for each
            class ("ovr": votes, and confidences to break ties), or, where the source says decision_function_shape="ovo"
            and for LIBSVM models, a value for each pair of ``classes_``, positive for the first.

        Raises
        ------
        ValueError
            X has another shape, or holds NaN or infinity; the latter is an InputError and names the place.
        """
        values = self._evaluate(X)
        labels = self.artifact.labels
        if values.ndim == 1:
            return np.asarray(values if labels[0] > labels[1] else -values)
        if self.artifact.heads.decision_shape == "ovr":
            return np.asarray(one_vs_rest_scores(values)[:, self._order])
        return _in_order(values, self._order)

    def predicted_classes(self, X: Any) -> npt.NDArray[np.intp]:
        """Positions of the predicted labels in ``artifact.labels``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), int
        """
        heads = self.artifact.heads
        if heads.label_rule != "votes":
            return self._classes_by_scores(X)
        return np.asarray(self._evaluate(X, labels=True), dtype=np.intp)

    def _classes_by_scores(self, X: Any) -> npt.NDArray[np.intp]:
        """By scores or probabilities; rows whose bounds leave their label open are evaluated exactly."""
        rows, heads = self._rows(X), self.artifact.heads
        values, bounds, _ = self._evaluate_checked(rows, bounds=True, values="settled")
        classes, certain = certified_class(heads, _columns(values), _columns(bounds))
        if self.artifact.mode == "approximate":
            return predicted_class(heads, _columns(values))
        open_rows = np.flatnonzero(~certain)
        if len(open_rows):
            exact = self._evaluate_checked(rows[open_rows], values="exact")
            classes[open_rows] = predicted_class(heads, _columns(exact))
        return classes

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
        return np.asarray(self.artifact.labels.take(self.predicted_classes(X)))

    def _has_probabilities(self) -> bool:
        if self.artifact.heads.probability is None:
            raise AttributeError("the source model was trained without probabilities")
        return True

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities by the source's own formula.

        They come from the exact decision values unless a tolerance was asked for, whose values then serve.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            Columns as in ``classes_``.
        """
        found = probabilities(self._probability_head, _columns(self._evaluate(X)))
        return np.asarray(found[:, self._order])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of `predict_proba`."""
        return np.asarray(np.log(self.predict_proba(X)))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def probability_bound(self, X: Any) -> FloatArray:
        """What |probability - that of the exact decision values| never exceeds.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            1 where several classes are coupled: only their decision values are bounded then.
        """
        values, bounds, _ = self._evaluate(X, bounds=True)
        found = probability_bounds(self._probability_head, _columns(values), _columns(bounds))
        return np.asarray(found[:, self._order])

    @property
    def _probability_head(self) -> Probability:
        self._has_probabilities()  # an AttributeError, for whoever looks at every name that dir() gives
        head: Probability = self.artifact.heads.probability
        return head

    def predict_one(self, row: npt.NDArray[Any]) -> Any:
        """Class label of a single row, with as little overhead as Python allows.

        Parameters
        ----------
        row : ndarray of shape (n_features,) or (1, n_features), float32 or float64, C-contiguous
            Lists and the like are converted first.

        Returns
        -------
        scalar
            One of ``classes_``.

        Raises
        ------
        InputError
            The row has another shape, type or layout, or holds NaN or infinity.
        """
        if self.artifact.input_map is not None or self.artifact.heads.label_rule != "votes":
            return self.predict(as_row(row))[0]
        return self.artifact.labels[int(self._predictor.one(one_row(row)))]


def _columns(values: FloatArray) -> FloatArray:
    return values if values.ndim == 2 else values[:, np.newaxis]


def _in_order(values: FloatArray, order: npt.NDArray[np.intp]) -> FloatArray:
    """Values of pairs of the model's labels -> of pairs of the sorted ones, positive for the first."""
    if (order == np.arange(len(order))).all():
        return values
    position = {pair: k for k, pair in enumerate(class_pairs(len(order)))}
    ordered = np.empty_like(values)
    for k, (i, j) in enumerate(class_pairs(len(order))):
        a, b = int(order[i]), int(order[j])
        ordered[:, k] = values[:, position[a, b]] if a < b else -values[:, position[b, a]]
    return ordered


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
        if self.artifact.input_map is not None:
            return float(self.predict(as_row(row))[0])
        value: float = self._predictor.one(one_row(row))
        return value


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
        """Decision values, shape (n_rows,); positive means an inlier.

        They are the source's own unless a tolerance was asked for; see `CompiledSVC.decision_function`.
        """
        return self._raw_decision_values(X)

    def score_samples(self, X: Any) -> FloatArray:
        """Decision values before the offset is subtracted, shape (n_rows,)."""
        return self._raw_decision_values(X) + self.offset_

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """1 for inliers and -1 for outliers, shape (n_rows,)."""
        return np.where(self._evaluate(X, labels=True) == 0, 1, -1)

    def predict_one(self, row: npt.NDArray[Any]) -> int:
        """1 or -1 for a single C-contiguous float32 or float64 row of shape (n_features,) or (1, n_features)."""
        if self.artifact.input_map is not None:
            return int(self.predict(as_row(row))[0])
        return 1 if self._predictor.one(one_row(row)) == 0 else -1


def estimator_for_one(artifact: AnyArtifact, *, n_jobs: int | None = None) -> Any:
    """The estimator class that suits an artifact's task, with its native predictor already checked and built."""
    classes: dict[str, type[CompiledModel]] = {
        "classification": CompiledSVC,
        "regression": CompiledSVR,
        "one_class": CompiledOneClassSVM,
    }
    estimator = classes[artifact.task](artifact, n_jobs=n_jobs)
    estimator._predictor  # noqa: B018  # replays the check rows now rather than at the first prediction
    return estimator


def estimator_for(artifact: Any, *, n_jobs: int | None = None) -> CompiledModel:
    """The estimator that suits an artifact of any kind."""
    from approxsvm.ensemble_artifact import EnsembleArtifact

    if not isinstance(artifact, EnsembleArtifact):
        found: CompiledModel = estimator_for_one(artifact, n_jobs=n_jobs)
        return found
    from approxsvm.ensemble_estimator import CompiledEnsemble

    estimator = CompiledEnsemble(artifact, n_jobs=n_jobs)
    estimator._predictor  # noqa: B018
    return estimator
