"""scikit-learn estimators that train another estimator and compile it; all predictions use the compiled model."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar, Literal, TypeVar

from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, OutlierMixin, RegressorMixin, clone
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from approxsvm.compiler import compile
from approxsvm.expansion.taylor import CenterChoice
from approxsvm.ir.schema import Mode
from approxsvm.planning.request import Effort

Self = TypeVar("Self", bound="CompilingEstimator")


def _answers(method: str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for a method that the estimator and, after `fit`, the compiled model must have."""

    def has_method(self: Any) -> bool:
        is_fitted = "compiled_" in vars(self)
        for answering in (self.estimator_, self.compiled_) if is_fitted else (self._template(),):
            getattr(answering, method)  # getattr raises an AttributeError that gives the reason
        return True

    decorate: Callable[[Callable[..., Any]], Any] = available_if(has_method)
    return decorate


class CompilingEstimator(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of estimators that train another estimator and compile it.

    The object can replace the inner estimator in scikit-learn's tools: pipelines, searches over ``estimator__C``,
    cross-validation, voting, stacking and calibration. All of them then predict with the compiled model. `compile`
    accepts the object itself, or a pipeline, search or ensemble that contains such objects; it compiles the trained
    estimators.

    Parameters
    ----------
    estimator : estimator, optional
        Any estimator that `compile` accepts after training. `fit` trains a clone.
    mode, degree, n_centers, center, tolerance, labels, target_error, max_bytes, effort, random_state : optional
        Options of `compile`.
    rows_per_call, rows_expected, measure, n_jobs : optional
        Options of `compile`.
    verbose : bool, optional
        If True, show a progress bar for each compilation. Default: False.

    Attributes
    ----------
    estimator_ : estimator
        The trained clone.
    compiled_ : CompiledSVC, CompiledSVR, CompiledOneClassSVM or CompiledEnsemble
        The compiled model, which can be saved; see its methods `certified` and `error_bound` and its property
        `summary`.
    n_features_in_, feature_names_in_
        Attributes of the trained estimator, if it has them.
    """

    _default: ClassVar[type[BaseEstimator]]
    # The inner estimator determines how weights are routed, as it does without this wrapper.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": UNUSED}

    def __init__(
        self,
        estimator: Any = None,
        *,
        mode: Mode = "certified",
        degree: int | Literal["auto"] = "auto",
        n_centers: int | Literal["auto"] = "auto",
        center: CenterChoice = "mean",
        tolerance: float | None = None,
        labels: Literal["source", "probability"] = "source",
        target_error: float | None = None,
        max_bytes: int | None = None,
        effort: Effort = "normal",
        random_state: int = 0,
        rows_per_call: int | None = None,
        rows_expected: int | None = None,
        measure: bool = False,
        n_jobs: int | None = None,
        verbose: bool | None = False,
    ) -> None:
        self.estimator = estimator
        self.mode = mode
        self.degree = degree
        self.n_centers = n_centers
        self.center = center
        self.tolerance = tolerance
        self.labels = labels
        self.target_error = target_error
        self.max_bytes = max_bytes
        self.effort = effort
        self.random_state = random_state
        self.rows_per_call = rows_per_call
        self.rows_expected = rows_expected
        self.measure = measure
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _template(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    def fit(self: Self, X: Any, y: Any = None, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Train a clone of the estimator and compile it, with the training rows as sample rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Training rows.
        y : array-like of shape (n_rows,), optional
            Labels or targets.
        sample_weight : array-like of shape (n_rows,), optional
            Passed to the estimator's `fit` if given.
        **fit_params : dict
            Passed to the estimator's `fit`, such as ``svc__sample_weight`` for a pipeline. With scikit-learn's metadata
            routing, the estimator's requests determine which parameters are passed.

        Returns
        -------
        self

        Raises
        ------
        UnsupportedModelError
            The trained estimator cannot be compiled; the message says why.
        InputError
            An option of `compile` is invalid.
        """
        given = {"sample_weight": sample_weight} if sample_weight is not None else {}
        given |= fit_params
        if given and get_config()["enable_metadata_routing"]:
            given = process_routing(self, "fit", **given).estimator.fit
        estimator = clone(self._template()).fit(X, y, **given)
        options = {name: value for name, value in self.get_params(deep=False).items() if name != "estimator"}
        self.compiled_: Any = compile(estimator, X, **options)
        self.estimator_ = estimator
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
            else:
                self.__dict__.pop(name, None)  # set by an earlier call to `fit`
        return self

    def predict(self, X: Any) -> Any:
        """Predict with the compiled model: the trained estimator's labels, or its values to within the tolerance."""
        check_is_fitted(self)
        return self.compiled_.predict(X)

    @_answers("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Return the compiled model's decision values."""
        check_is_fitted(self)
        return self.compiled_.decision_function(X)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return this object's metadata requests (for `score`) and the estimator's (for `fit`)."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add_self_request(self).add(estimator=self._template(), method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = deepcopy(get_tags(self._template()))
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        if tags.classifier_tags is not None and inner.classifier_tags is not None:
            tags.classifier_tags = inner.classifier_tags
        if tags.regressor_tags is not None and inner.regressor_tags is not None:
            tags.regressor_tags = inner.regressor_tags
        tags.non_deterministic = inner.non_deterministic
        return tags


class CompiledClassifier(ClassifierMixin, CompilingEstimator):  # type: ignore[misc]
    """Classifier that trains another classifier and compiles it; see CompilingEstimator for further parameters.

    Parameters
    ----------
    estimator : classifier, optional
        Default: ``SVC()``.
    **options
        Options of `compile`: mode, degree, n_centers, center, tolerance, labels, target_error, max_bytes, effort,
        random_state, rows_per_call, rows_expected, measure, n_jobs and verbose.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels of the trained estimator.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import SVC
    >>> import approxsvm
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(approxsvm.CompiledClassifier(SVC()), {"estimator__C": [1, 10]}, cv=3).fit(X, y)
    >>> search.best_params_
    {'estimator__C': 10}
    >>> bool((search.predict(X) == search.best_estimator_.estimator_.predict(X)).all())
    True
    """

    _default = SVC

    @_answers("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Return the compiled model's class probabilities, of shape (n_rows, n_classes)."""
        check_is_fitted(self)
        return self.compiled_.predict_proba(X)

    @_answers("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of `predict_proba`."""
        check_is_fitted(self)
        return self.compiled_.predict_log_proba(X)


class CompiledRegressor(RegressorMixin, CompilingEstimator):  # type: ignore[misc]
    """Regressor that trains another regressor and compiles it; see CompilingEstimator for further parameters.

    Parameters
    ----------
    estimator : regressor, optional
        Default: ``SVR()``.
    **options
        Options of `compile`. Predictions differ from the estimator's by at most `tolerance`, by default a thousandth of
        the range of the estimator's values.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.svm import SVR
    >>> import approxsvm
    >>> X, y = load_diabetes(return_X_y=True)
    >>> scores = cross_val_score(approxsvm.CompiledRegressor(SVR(C=100)), X, y, cv=3)
    >>> bool(abs(scores - cross_val_score(SVR(C=100), X, y, cv=3)).max() < 1e-4)
    True
    """

    _default = SVR


class CompiledOutlierDetector(OutlierMixin, CompilingEstimator):  # type: ignore[misc]
    """Outlier detector that trains another detector and compiles it; see CompilingEstimator for further parameters.

    Parameters
    ----------
    estimator : outlier detector, optional
        Default: ``OneClassSVM()``.
    **options
        Options of `compile`.

    Attributes
    ----------
    offset_ : float
        ``score_samples(X) - offset_ == decision_function(X)``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import OneClassSVM
    >>> import approxsvm
    >>> X, _ = load_iris(return_X_y=True)
    >>> detector = approxsvm.CompiledOutlierDetector(OneClassSVM(nu=0.1)).fit(X)
    >>> bool((detector.predict(X) == OneClassSVM(nu=0.1).fit(X).predict(X)).all())
    True
    """

    _default = OneClassSVM

    @property
    def offset_(self) -> float:
        """Difference between scores and decision values."""
        check_is_fitted(self)
        return float(self.compiled_.offset_)

    @_answers("score_samples")
    def score_samples(self, X: Any) -> Any:
        """Return the decision values before the offset is subtracted, of shape (n_rows,)."""
        check_is_fitted(self)
        return self.compiled_.score_samples(X)
