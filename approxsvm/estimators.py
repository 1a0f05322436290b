"""scikit-learn estimators that wrap an artifact: fitted from the start, with scikit-learn's conventions and checks."""

from __future__ import annotations

import os
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from approxsvm.analysis.summary import Summary, summarize
from approxsvm.errors import InputError
from approxsvm.frames.columns import check_exact, frame_names, real_rows, rows_by_column
from approxsvm.frames.rows import check_sparse, is_plain_matrix
from approxsvm.frames.texts import are_texts
from approxsvm.ir.compilation import Compilation
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.methods.explaining import Explaining
from approxsvm.methods.exporting import Exporting
from approxsvm.methods.predicting import Predicting
from approxsvm.runtime.evaluator import NATIVE_DTYPES, Evaluator, read_artifact, with_one_index_type
from approxsvm.system.availability import available_if
from approxsvm.system.threads import n_threads

Self = TypeVar("Self", bound="CompiledModel")
# Row dtypes that are not converted; the evaluator rejects longdouble values that float64 would round.
_DTYPES = [np.float64, np.float32, np.longdouble]


class CompiledModel(Predicting, Explaining, Exporting, BaseEstimator):  # type: ignore[misc]
    """Base class of the compiled estimators.

    Batches of up to four rows per center use different code than larger batches, to reduce latency. A row's values may
    differ between a small and a large batch, but the bounds hold for both.

    scikit-learn steps compute in the dtype of their input rows. If the source's results for float32 rows differ from
    its results for the same rows in float64, either float32 rows raise InputError, or the bounds include the source's
    float32 rounding.

    Parameters
    ----------
    artifact : Artifact
        The compiled model. Because the artifact is a parameter, a ``clone`` predicts like the original.
    n_jobs : int, optional
        Number of threads, as in scikit-learn. Default: 1; -1 for all processors. Results do not depend on the number of
        threads.

    Attributes
    ----------
    n_features_in_ : int
        Required number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names, if the source model was fitted on a data frame. If the source's first step is a ColumnTransformer,
        data-frame columns are matched by name, in any order, and extra columns are ignored; columns that it drops may
        have any contents or be missing. Otherwise, a data frame must have the same columns in the same order.
    compilation : Compilation or None
        The plans that were tried, and the compile time; None if the model was loaded from a file, unpickled or cloned.
    """

    compilation: Compilation | None = None

    def __init__(self, artifact: Any, *, n_jobs: int | None = None) -> None:
        self.artifact = artifact
        self.n_jobs = n_jobs

    @property
    def n_features_in_(self) -> int:
        """Required number of columns."""
        return int(self.artifact.n_raw_features)

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Column names of the data frame on which the source model was fitted."""
        names = self.artifact.feature_names
        if names is None:
            raise AttributeError(f"this {type(self).__name__} has no feature names")
        return np.array(names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self: Self, X: Any = None, y: Any = None, *args: Any, **fit_params: Any) -> Self:
        """Do nothing and return self: a compiled model stays fitted, like sklearn.frozen.FrozenEstimator.

        Sample weights and other parameters are accepted and ignored.
        """
        self._evaluator  # noqa: B018  # built here, so that predictions do not change the estimator
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_evaluator_cache", None)
        state.pop("compilation", None)  # not pickled, because skops would ask the user to trust its classes
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = len(self.artifact.raw_columns.takes_nan) > 0
        tags.requires_fit = False
        return tags

    @property
    def members(self) -> list[Any]:
        """Compiled models of an ensemble's members; one member may serve several targets.

        A member of a target may be a regressor whose positive values stand for the second of two labels.
        """
        return [estimator_for(artifact, n_jobs=self.n_jobs) for artifact in self.artifact.members]

    @property
    def _evaluator(self) -> Evaluator:
        attributes = self.__dict__
        cached: Evaluator | None = attributes.get("_evaluator_cache")
        if cached is None or cached.artifact is not attributes["artifact"]:
            cached = attributes["_evaluator_cache"] = Evaluator(self.artifact)
        cached.n_jobs = attributes["n_jobs"]
        return cached

    def _rows(self, X: Any) -> Any:
        """Return rows as real numbers, dense or CSR; plain arrays keep their dtype, which the evaluator checks."""
        width = self.artifact.n_raw_features
        plain = type(X) is np.ndarray and X.dtype in NATIVE_DTYPES and X.shape[1:] == (width,)
        plain = plain or is_plain_matrix(X, width)
        if plain and self.artifact.raw_columns.looked_up:
            check_exact(X, self.artifact.raw_columns)
        if plain and self.artifact.feature_names is None:
            return X  # the usual case, ten times as fast; the core checks the values
        if plain:
            validate_data(self, X, reset=False, skip_check_array=True)  # warns about missing names
            return X
        return self._rows_in_dtype(X)

    def _converted(self, X: Any) -> Any:
        """Convert rows in any container other than a plain array to floating point."""
        width = self.artifact.n_raw_features
        if self.artifact.takes_texts and are_texts(X):
            return with_one_index_type(self.artifact.text_rows.rows(X))
        raw = self.artifact.raw_columns
        if (raw.by_column or raw.has_categories) and not hasattr(X, "tocsr"):
            rows, is_named = rows_by_column(X, raw, _as_numbers), frame_names(X) is not None
            if not (is_named and raw.names and raw.by_column):  # scikit-learn warns about missing names, as above
                validate_data(self, X if is_named else rows, reset=False, skip_check_array=True)
            return rows
        given = check_sparse(X, raw)
        if hasattr(given, "tocsr") and given.shape[1] == width:
            check_exact(given, raw)
        rows = validate_data(
            self,
            real_rows(given),
            reset=False,
            accept_sparse="csr",
            dtype=_DTYPES,
            ensure_all_finite=False,  # the core checks for finite values
            ensure_min_samples=0,
        )
        return with_one_index_type(rows)

    def _has_numbers(self) -> bool:
        if self.artifact.has_labels_alone:
            raise AttributeError("a model with only labels, from votes or for several targets, has no values to bound")
        return True

    @available_if(_has_numbers)
    def error_bound(self, X: Any) -> FloatArray:
        """Return an upper bound on `|value - exact value|` for each row, including truncation and rounding.

        The value is the result of `decision_function`, or of `predict` for a regressor. The exact value is the source
        model's decision function in real arithmetic. For a calibrated classifier, the bounds hold for the inner
        classifier's values; `probability_bound` bounds the errors of the probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,) or, with several classes, (n_rows, n_pairs), float64
            For a regressor, the bounds have the shape of the predictions. Class pairs are in LIBSVM's order: (0, 1),
            (0, 2), ..., as indices into ``artifact.labels``.
        """
        return self._evaluator.error_bound(self._rows(X))

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self.summary._repr_html_()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self.summary._repr_html_()
        return bundle

    @property
    def summary(self) -> Summary:
        """Printable summary of the compiled model's source, plan and size."""
        race = None if self.compilation is None else self.compilation.race
        return summarize(self.artifact, self.rows_per_stage, self._evaluator.exact_count, race)


class WithProbabilities(CompiledModel):
    """Base class of compiled models that may provide probabilities, with the parameters of CompiledModel."""

    def _has_probabilities(self) -> bool:
        if not self._evaluator.has_probabilities:
            raise AttributeError(self.artifact.why_no_probabilities)
        return True

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return class probabilities, computed with the source's formula.

        They are computed from exact decision values or, if a tolerance is set, from approximations within the
        tolerance.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            Columns are in the order of ``classes_``. For a one-class model, they are inlier and outlier, as in LIBSVM.
        """
        return np.asarray(self._evaluator.predict_proba(self._rows(X)))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):  # the logarithm of 0 is -infinity
            return np.asarray(np.log(self.predict_proba(X)))

    @available_if(_has_probabilities)
    def probability_bound(self, X: Any) -> FloatArray:
        """Return an upper bound on the difference from the probabilities computed from exact decision values.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            The bound is 1 if several classes are coupled, because only their decision values are bounded.
        """
        return np.asarray(self._evaluator.probability_bound(self._rows(X)))


class ClassifierModel(ClassifierMixin, WithProbabilities):  # type: ignore[misc]
    """Base class of compiled classifiers, with the parameters of CompiledModel."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = len(self.artifact.labels) > 2
        return tags

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Class labels, sorted, with the dtype of the source model's labels; shape (n_classes,)."""
        return np.sort(self.artifact.labels)


class CompiledSVC(ClassifierModel):
    """Compiled support vector classifier (one-vs-one if multiclass), with the parameters of CompiledModel."""

    def _has_decision_function(self) -> bool:
        if not self.artifact.has_decision_function:
            raise AttributeError(self.artifact.why_no_decision_function)
        return True

    @available_if(_has_decision_function)
    def decision_function(self, X: Any) -> FloatArray:
        """Return the source's decision values; a CalibratedClassifierCV has none.

        By default, they are exact and computed by the float64 engine, for ranking, thresholds and calibration;
        `predict` does not need them and is therefore faster. If the model was compiled with a tolerance, they are
        within the tolerance of the exact values and have the same signs. In "approximate" mode, they come from the
        expansion. `error_bound` bounds the error of each value.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), (n_rows, n_classes) or (n_rows, n_pairs), float64
            With two classes, a positive value is a vote for ``classes_[1]``, as in scikit-learn. With more classes,
            there is one score per class ("ovr": votes, with ties broken by confidences) or, with
            decision_function_shape="ovo" and for LIBSVM models, one value per pair of ``classes_``, positive for the
            first class of the pair.

        Raises
        ------
        ValueError
            X has the wrong shape, or contains NaN or infinity; in the latter case, an InputError names the position.
        """
        return self._evaluator.decision_function(self._rows(X))


class CompiledSVR(RegressorMixin, CompiledModel):  # type: ignore[misc]
    """Compiled support vector regressor, with the parameters of CompiledModel."""


class CompiledDensity(CompiledSVR):
    """Compiled kernel density estimator, with the parameters of CompiledModel.

    `predict` returns the mean of the kernel values, weighted by the sample weights: the density up to a constant
    factor. The artifact represents this mean, and all other interfaces return it.
    """

    def score_samples(self, X: Any, *, return_bound: bool = False) -> Any:
        """Return the log density at each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        return_bound : bool
            If True, also return bounds.

        Returns
        -------
        log_density : ndarray of shape (n_rows,), float64
        bound : ndarray of shape (n_rows,), float64
            Upper bound on the difference from the log density in real arithmetic, returned only with `return_bound`.
            The density is therefore off by a factor of at most ``exp(bound)``. The bound includes the source's float32
            rounding. For rows in the tails, it is infinite in "approximate" mode and if the source computes in float32.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.neighbors import KernelDensity
        >>> import approxsvm
        >>> X, _ = load_iris(return_X_y=True)
        >>> fast = approxsvm.compile(KernelDensity(bandwidth=0.5).fit(X))
        >>> log_density, bound = fast.score_samples(X[:2], return_bound=True)
        >>> log_density.round(4)
        array([-2.4942, -2.6807])
        >>> bool((bound < 1e-8).all())
        True
        """
        from approxsvm.runtime.density import log_densities  # imported here because prediction does not need it

        logs, bounds = log_densities(self._evaluator, self._rows(X))
        return (logs, bounds) if return_bound else logs

    def score(self, X: Any, y: Any = None) -> float:
        """Return the total log-likelihood of the rows, as KernelDensity does."""
        return float(np.sum(self.score_samples(X)))


class CompiledOneClassSVM(OutlierMixin, WithProbabilities):  # type: ignore[misc]
    """Compiled one-class support vector machine, with the parameters of CompiledModel.

    Models trained with LIBSVM's ``svm-train -s 2 -b 1`` provide probabilities in the columns inlier and outlier.

    Attributes
    ----------
    offset_ : float
        ``score_samples(X) - offset_ == decision_function(X)``.
    """

    def _has_scores(self) -> bool:
        if self.artifact.offset is None:
            raise AttributeError(self.artifact.why_no_scores)
        return True

    @property
    def offset_(self) -> float:
        """Difference between scores and decision values; raises AttributeError for an RBF kernel with gamma=0."""
        self._has_scores()
        return float(self.artifact.offset)

    def decision_function(self, X: Any) -> FloatArray:
        """Return decision values, of shape (n_rows,); they are positive for inliers.

        The values are exact unless the model was compiled with a tolerance; see `CompiledSVC.decision_function`.
        """
        return self._evaluator.decision_function(self._rows(X))

    @available_if(_has_scores)
    def score_samples(self, X: Any) -> FloatArray:
        """Return the decision values before the offset is subtracted, of shape (n_rows,)."""
        return self.decision_function(X) + self.offset_


class CompiledEnsemble(ClassifierModel):
    """Compiled classifiers with combined votes or averaged probabilities, as in CalibratedClassifierCV(ensemble=True).

    An ensemble that averages probabilities has no decision function, and `error_bound` bounds the errors of its
    probabilities. If the members' bounds do not determine a row's label, the row is evaluated exactly, except in
    "approximate" mode. Parameters are the same as for CompiledModel.

    An ensemble that votes provides BaggingClassifier's probabilities and decision values, computed here from the
    members' predictions: each class's fraction of the votes, and the mean decision values.
    """

    def _votes(self, X: Any) -> FloatArray:
        """Return each class's fraction of the votes, of shape (n_rows, n_classes)."""
        rows = self._rows(X)  # members cannot vectorize strings
        artifact = self.artifact
        labels = [member._evaluator.predict(rows)[:, np.newaxis] for member in self.members]
        votes = [
            (label == member.labels) @ part.T
            for label, member, part in zip(
                labels, artifact.members, artifact.combination.parts(artifact.members), strict=True
            )
        ]
        sums = np.sum(votes, axis=0)[:, np.argsort(artifact.labels, kind="stable")]
        return np.asarray(sums / sums[:1].sum())

    def _has_vote_probabilities(self) -> bool:
        has_votes = self.artifact.counts_votes and self.artifact.outputs.decision_shape == "ovr"
        return has_votes or self._has_probabilities()

    @available_if(_has_vote_probabilities)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return class probabilities, of shape (n_rows, n_classes), with columns in the order of ``classes_``."""
        if not self.artifact.counts_votes:
            return np.asarray(self._evaluator.predict_proba(self._rows(X)))
        return self._votes(X)

    @available_if(_has_vote_probabilities)
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _has_values(self) -> bool:
        members, n_labels = self.artifact.members, len(self.artifact.labels)
        from_all = all(member.has_decision_function and len(member.labels) == n_labels for member in members)
        if not (self.artifact.counts_votes and self._has_vote_probabilities() and from_all):
            raise AttributeError(self.artifact.why_no_decision_function)
        return True

    @available_if(_has_values)
    def decision_function(self, X: Any) -> FloatArray:
        """Return means of the members' decision values.

        The shape is the same as in the source: (n_rows,) for two classes, otherwise one column per class or class pair.
        If a step of the source transforms float32 rows in float32, the means are accurate up to the rounding of that
        step.
        """
        rows = self._rows(X)
        return np.asarray(np.mean([member._evaluator.decision_function(rows) for member in self.members], axis=0))


class CompiledMultiOutput(ClassifierMixin, CompiledModel):  # type: ignore[misc]
    """Compiled classifiers that predict several labels per row; every label has a certificate.

    The source is a MultiOutputClassifier, or a OneVsRestClassifier fitted with an indicator matrix. Parameters are the
    same as for CompiledModel. ``predict_proba`` and ``decision_function`` return the members' results if all members
    have the method.

    Attributes
    ----------
    classes_ : list of ndarray, or ndarray of shape (n_targets,)
        Each target's labels. For a OneVsRestClassifier, these are the classes 0, 1, ..., and a row may belong to
        several of them or to none.
    """

    @property
    def multilabel_(self) -> bool:
        """True if each label states whether the row belongs to one of several classes."""
        return bool(self.artifact.outputs.decision_shape == "ovr")

    @property
    def classes_(self) -> Any:
        """Sorted labels of each target, or the classes of a OneVsRestClassifier."""
        if self.multilabel_:
            return np.arange(self.artifact.n_targets)
        sorted_labels = np.sort(self.artifact.labels)
        return [
            labels
            for member in self.artifact.members
            for labels in (
                [sorted_labels] * member.n_decisions if member.task == "regression" else [np.sort(member.labels)]
            )
        ]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the fraction of rows whose labels are all correct."""
        predicted, y = self.predict(X), y.toarray() if hasattr(y, "toarray") else np.asarray(y)
        if y.shape != predicted.shape:
            raise InputError(f"y has shape {y.shape}, but must have a label for each row and target, {predicted.shape}")
        return float(np.average((predicted == y).all(axis=1), weights=sample_weight))

    def _have_probabilities(self) -> bool:
        if not all(member.has_class_probabilities for member in self.artifact.members):
            raise AttributeError(self.artifact.why_no_probabilities)
        return True

    @available_if(_have_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return a list of each target's class probabilities, or a matrix with one column per class."""
        return self._from_members(X, "predict_proba")

    @available_if(_have_probabilities)
    def probability_bound(self, X: Any) -> Any:
        """Bound the difference from probabilities computed from exact decision values; shaped like `predict_proba`.

        The bound is 1 if several classes are coupled, because only their decision values are bounded.
        """
        return self._from_members(X, "probability_bound")

    def _from_members(self, X: Any, method: str) -> Any:
        rows = self._rows(X)  # members cannot vectorize strings
        answers = [np.asarray(getattr(member._evaluator, method)(rows)) for member in self.members]
        return np.column_stack([columns[:, 1] for columns in answers]) if self.multilabel_ else answers

    def _have_values(self) -> bool:
        members = self.artifact.members
        if not (self.multilabel_ and all(m.task == "regression" or m.has_decision_function for m in members)):
            raise AttributeError(self.artifact.why_no_decision_function)
        return True

    @available_if(_have_values)
    def decision_function(self, X: Any) -> FloatArray:
        """Return each class's decision values, of shape (n_rows, n_targets): exact, or within the tolerance.

        If a step of the source transforms float32 rows in float32, their values are accurate up to the rounding of that
        step.
        """
        rows = self._rows(X)
        values = [
            member._evaluator.predict(rows)
            if member.artifact.task == "regression"
            else member._evaluator.decision_function(rows)
            for member in self.members
        ]
        return np.column_stack(values)


def _as_numbers(columns: Any) -> Any:
    """Convert some columns of a table to floats; the core checks for finite values."""
    return check_array(real_rows(columns), dtype=_DTYPES, ensure_all_finite=False, ensure_min_samples=0)


def estimator_for(artifact: Any, *, n_jobs: int | None = None) -> CompiledModel:
    """Return the estimator for an artifact, after evaluating its check rows."""
    of_classes = CompiledEnsemble if artifact.n_decisions == 0 else CompiledSVC
    classes: dict[str, type[CompiledModel]] = {
        "classification": CompiledMultiOutput if artifact.of_targets else of_classes,
        "regression": CompiledDensity if artifact.is_density else CompiledSVR,
        "one_class": CompiledOneClassSVM,
    }
    n_threads(n_jobs)  # this rejects an invalid number; `set_params` accepts any number, as in scikit-learn
    estimator = classes[artifact.task](artifact, n_jobs=n_jobs)
    estimator._evaluator  # noqa: B018  # built here, not at the first prediction
    return estimator


def load(path: str | os.PathLike[str], *, n_jobs: int | None = None) -> CompiledModel:
    """Load a compiled model from an .asvm file.

    Parameters
    ----------
    path : str or path
    n_jobs : int, optional
        Number of threads for predictions. Default: 1; -1 for all processors.

    Returns
    -------
    CompiledSVC, CompiledSVR, CompiledOneClassSVM or CompiledEnsemble

    Raises
    ------
    ArtifactError
        The file violates models/FORMAT.md, or its check rows evaluate to different values on this machine.
    InputError
        `n_jobs` is not a valid number of threads.
    OSError
        The file cannot be read.
    """
    return estimator_for(read_artifact(path), n_jobs=n_jobs)
