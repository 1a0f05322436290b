"""Estimators that cannot be compiled: what to do instead, one record for each class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from approxsvm.errors import UnsupportedModelError
from approxsvm.frontends.sklearn.known_types import class_name, full_class_name, library_names

_MOST_PLACES: Final = 5
_DEEPEST: Final = 3
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
REMEDIES: Final = {
    "AdaBoostClassifier": f"{_VOTES}, weighted by estimator_weights_",
    "AdaBoostRegressor": "compile each of estimators_ and take their median, weighted by estimator_weights_",
    "BaggingClassifier": f"{_VOTES}, or average their probabilities; {_BAG}",
    "BaggingRegressor": f"{_MEAN}; {_BAG}",
    "ClassifierChain": _CHAIN,
    "EllipticEnvelope": _OUTLIERS,
    "FixedThresholdClassifier": f"{_THRESHOLD} threshold",
    "GaussianProcessClassifier": "its variances are no faster here: predict with the source itself, or train an SVC",
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
    return sorted(REMEDIES.items())


def refuse_what_holds_estimators(thing: Any, name: str) -> None:
    """Refuse a class, or a container, in which it looks for estimators; `name` is what stands for it in a line of code.

    Raises UnsupportedModelError, which says how to take what is inside.
    """
    if isinstance(thing, type):
        called = class_name(thing)
        raise UnsupportedModelError(f"{called} is a class, not a fitted estimator: give {called}(...).fit(X, y)")
    if not isinstance(thing, (Mapping, list, tuple)):
        return
    places = list(islice(_estimators_in(thing, name), _MOST_PLACES))
    what = f"cannot compile a {class_name(thing)}"
    if not places:
        raise UnsupportedModelError(f"{what}, which holds no estimator")
    held = ", ".join(f"{class_name(one)} at {place.removeprefix(name)}" for place, one in places)
    before = [place for place, one in places if not hasattr(one, "predict")]
    last = [place for place, one in places if hasattr(one, "predict")] or before
    line = f"make_pipeline({', '.join([*before, last[0]])})" if before and len(last) == 1 else last[0]
    raise UnsupportedModelError(f"{what}, which holds {held}: compile {line}")


def _estimators_in(thing: Any, place: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield what predicts or transforms, and the code that takes it."""
    if depth > _DEEPEST:
        return
    items: Iterable[tuple[Any, Any]] = thing.items() if isinstance(thing, Mapping) else enumerate(thing)
    for key, one in items:
        there = f"{place}[{key!r}]"
        if isinstance(one, (Mapping, list, tuple)):
            yield from _estimators_in(one, there, depth + 1)
        elif not isinstance(one, type) and any(hasattr(one, method) for method in ("predict", "transform")):
            yield there, one


def refusal(estimator: Any, which: str = "") -> str:
    """Why an estimator is not compiled, and what to do; `which` says it of those of a class that others are read of."""
    what = f"cannot compile a {full_class_name(estimator)}{which and f' {which}'}"
    for name in library_names(estimator):
        if name in REMEDIES:
            return f"{what}; {REMEDIES[name]}"
    if hasattr(estimator, "best_estimator_"):
        return f"{what}; compile best_estimator_"
    if not hasattr(estimator, "predict") and any(hasattr(estimator, name) for name in ("transform", "fit_resample")):
        return f"{what}; it does not predict: compile a pipeline of it and an estimator"
    return f"{what}; docs/sources.md says what can be compiled"
