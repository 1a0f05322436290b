"""Remedies for estimators that cannot be compiled, one per class."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from approxsvm.errors import UnsupportedModelError
from approxsvm.frontends.sklearn.known_types import KNOWN, class_name, full_class_name, is_compiled, library_names

_MOST_PLACES: Final = 5
_DEEPEST: Final = 3
_VOTES: Final = "compile each of estimators_ and count their votes"
_MEAN: Final = "compile each of estimators_ and average their answers"
_BAG: Final = "each takes the columns estimators_features_"
_TARGETS: Final = "compile each of estimators_, one for each target"
_CHAIN: Final = (
    "compile each of estimators_; each takes the answers of those before it, in the order of order_, as columns"
)
_STACK: Final = "compile each of estimators_ and apply final_estimator_ to their answers"
_INNER: Final = "compile estimator_, which predicts for it"
_THRESHOLD: Final = "compile estimator_ and compare its probability or decision value with"
_SELECTOR: Final = "it selects columns and does not predict: compile a pipeline of it and an estimator"
_OUTLIERS: Final = "train a OneClassSVM, which can be compiled"
_TRAINED: Final = ("n_features_in_", "classes_", "estimators_")
# Roles of classes that predict.
_PREDICTING: Final = ("kernel machine", "linear", "pipeline", "wrapper", "search")
_KNOWN_NAMES: Final = {(known.library, known.name) for known in KNOWN if known.role.startswith(_PREDICTING)}
# The keys are names of scikit-learn classes, from which imbalanced-learn's classes derive.
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


def refuse_what_holds_estimators(candidate: Any, name: str) -> None:
    """Reject a class, or a container of estimators; in the message, `name` is the expression for the container.

    Raises UnsupportedModelError with a message that explains how to extract the estimators.
    """
    if isinstance(candidate, type):
        kind = class_name(candidate)
        raise UnsupportedModelError(f"{kind} is a class, not a fitted estimator: give {kind}(...).fit(X, y)")
    if not isinstance(candidate, (Mapping, list, tuple)):
        return
    places = list(islice(_estimators_in(candidate, name), _MOST_PLACES))
    what = f"cannot compile a {class_name(candidate)}"
    if not places:
        raise UnsupportedModelError(f"{what}, which holds no estimator")
    held = ", ".join(f"{class_name(one)} at {place.removeprefix(name)}" for place, one in places)
    before = [place for place, one in places if not hasattr(one, "predict")]
    last = [place for place, one in places if hasattr(one, "predict")] or before
    line = f"make_pipeline({', '.join([*before, last[0]])})" if before and len(last) == 1 else last[0]
    raise UnsupportedModelError(f"{what}, which holds {held}: compile {line}")


def _estimators_in(candidate: Any, place: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield each estimator that predicts or transforms, preceded by the code that extracts it."""
    if depth > _DEEPEST:
        return
    items: Iterable[tuple[Any, Any]] = candidate.items() if isinstance(candidate, Mapping) else enumerate(candidate)
    for key, one in items:
        position = f"{place}[{key!r}]"
        if isinstance(one, (Mapping, list, tuple)):
            yield from _estimators_in(one, position, depth + 1)
        elif not isinstance(one, type) and any(hasattr(one, method) for method in ("predict", "transform")):
            yield position, one


def refusal(estimator: Any, which: str = "") -> str:
    """Return the reason why an estimator cannot be compiled, and a remedy; `which` describes the rejected variant."""
    if is_compiled(estimator):
        return (
            f"a {class_name(estimator)} is already compiled: compile its source instead; build pipelines and ensembles "
            "around the source, or around CompiledClassifier(source), and compile the whole"
        )
    what = f"cannot compile a {full_class_name(estimator)}{which and f' {which}'}"
    for name in library_names(estimator):
        if name in REMEDIES:
            return f"{what}; {REMEDIES[name]}"
    if hasattr(estimator, "best_estimator_"):
        return f"{what}; compile best_estimator_"
    if held := _known_inside(estimator):
        return f"{what}; it holds {held}"
    if not hasattr(estimator, "predict") and any(hasattr(estimator, name) for name in ("transform", "fit_resample")):
        return f"{what}; it does not predict: compile a pipeline of it and an estimator"
    holds = "" if full_class_name(estimator).startswith(("sklearn.", "builtins.")) else ", and holds none"
    return f"{what}: it is no model that can be compiled{holds}; `approxsvm sources` lists them"


def _known_inside(wrapper: Any) -> str | None:
    """Describe the first known trained estimator inside another library's object, with the code that compiles it."""
    if full_class_name(wrapper).startswith("sklearn."):
        return None
    held = [(f".{name}", one) for name, one in getattr(wrapper, "__dict__", {}).items()]
    for place, one in held:
        if _is_known(one):
            return f"a trained {class_name(one)}: compile(model{place})"
        trained = [(where, inner) for where, inner in _estimators_inside(one, place) if _is_known(inner)]
        if len(trained) > 1 and isinstance(one, (list, tuple)):
            names = " and ".join(dict.fromkeys(class_name(inner) for _, inner in trained))
            return f"{len(trained)} trained estimators ({names}): [compile(one) for one in model{place}]"
        if trained:
            return f"a trained {class_name(trained[0][1])}: compile(model{trained[0][0]})"
    return None


def _is_known(candidate: Any) -> bool:
    library = full_class_name(candidate).partition(".")[0]
    is_listed = (library, class_name(candidate)) in _KNOWN_NAMES
    return is_listed and any(hasattr(candidate, name) for name in _TRAINED)


def _estimators_inside(many: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(many, (Mapping, list, tuple)):
        yield from _estimators_in(many, place)
