"""Estimators that cannot be compiled: what to do instead, one record for each class."""

from __future__ import annotations

from typing import Any, Final

from approxsvm.readers.sklearn.known_types import full_class_name, library_names

_VOTES: Final = "compile each of estimators_ and count their votes"
_MEAN: Final = "compile each of estimators_ and average their answers"
_BAG: Final = "each takes the columns estimators_features_"
_TARGETS: Final = "compile each of estimators_, one for each target"
_CHAIN: Final = (
    "compile each of estimators_; each takes the answers of those before it, in the order of order_, as columns"
)
_STACK: Final = "compile each of estimators_ and keep final_estimator_ behind their answers"
_INNER: Final = "compile estimator_, which predicts for it"
_THRESHOLD: Final = "compile estimator_ and compare its probability or decision value with"
_SELECTOR: Final = "it selects columns and does not predict: compile a pipeline of it and an estimator"
_OUTLIERS: Final = "train a OneClassSVM, which can be compiled"
# By the names of scikit-learn's classes; those of imbalanced-learn derive from them.
_INSTEAD: Final = {
    "AdaBoostClassifier": f"{_VOTES}, weighted by estimator_weights_",
    "AdaBoostRegressor": "compile each of estimators_ and take their median, weighted by estimator_weights_",
    "BaggingClassifier": f"{_VOTES}, or average their probabilities; {_BAG}",
    "BaggingRegressor": f"{_MEAN}; {_BAG}",
    "ClassifierChain": _CHAIN,
    "EllipticEnvelope": _OUTLIERS,
    "FixedThresholdClassifier": f"{_THRESHOLD} threshold",
    "GaussianProcessClassifier": "fit it with multi_class='one_vs_rest'",
    "IsolationForest": _OUTLIERS,
    "LocalOutlierFactor": _OUTLIERS,
    "MultiOutputClassifier": _TARGETS,
    "OneVsOneClassifier": f"{_VOTES}, or train an SVC, which is one against one by itself",
    "OneVsRestClassifier": "compile each of estimators_, which is above 0 for its label",
    "OutputCodeClassifier": "compile each of estimators_ and take the class with the nearest row of code_book_",
    "RANSACRegressor": _INNER,
    "RegressorChain": _CHAIN,
    "SelectFromModel": _SELECTOR,
    "SequentialFeatureSelector": _SELECTOR,
    "StackingClassifier": _STACK,
    "StackingRegressor": _STACK,
    "TunedThresholdClassifierCV": f"{_THRESHOLD} best_threshold_",
    "VotingClassifier": f"{_VOTES}, or average their probabilities; their labels are positions in classes_",
}


def advice() -> list[tuple[str, str]]:
    """What to do instead of compiling an estimator whole, by the name of its class."""
    return sorted(_INSTEAD.items())


def refusal(estimator: Any, which: str = "") -> str:
    """Why an estimator is not compiled, and what to do; `which` says it of those of a class that others are read of."""
    what = f"cannot compile a {full_class_name(estimator)}{which and f' {which}'}"
    for name in library_names(estimator):
        if name in _INSTEAD:
            return f"{what}; {_INSTEAD[name]}"
    if hasattr(estimator, "best_estimator_"):
        return f"{what}; compile best_estimator_"
    if not hasattr(estimator, "predict") and any(hasattr(estimator, name) for name in ("transform", "fit_resample")):
        return f"{what}; it does not predict: compile a pipeline of it and an estimator"
    return f"{what}; docs/sources.md says what can be compiled"
