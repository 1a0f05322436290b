"""Estimators that take whole texts: what their vectorizers have learned, as data, and the estimator behind them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from approxsvm.errors import ArtifactError, ModelFormatError, UnsupportedModelError
from approxsvm.frames.text_columns import check_unicode
from approxsvm.frames.texts import PARAMETERS, TextRows, width_of
from approxsvm.frontends.sklearn.dtypes import row_dtypes
from approxsvm.frontends.sklearn.known_types import class_name, helper, name_of, recognise
from approxsvm.frontends.sklearn.support_vector_machines import edits_named, is_dropped, require_fitted
from approxsvm.system.packages import import_package

_ANALYZERS = ("word", "char", "char_wb")


def split(source: Any) -> tuple[TextRows | None, Any]:
    """What makes rows of texts in front of an estimator, and what takes these rows: all of it where nothing does.

    Of vectorizers inside of estimators and unions the columns stand side by side, and each place takes its own.
    Raises UnsupportedModelError: the vectorizer calls functions of somebody else, or reads files; and
    ModelFormatError: what the estimator has learned has been edited.
    """
    with edits_named(source):
        return _split(source)


def _split(source: Any) -> tuple[TextRows | None, Any]:
    whole = _unwrapped(source)
    if _begins_with_texts(whole):
        steps, behind = _described_front(whole)
        texts = TextRows((steps,))
    else:
        places = _Places([], [])
        behind = places.without_texts(whole)
        if behind is None:
            return None, source
        places.choose_columns()
        texts = TextRows(tuple(places.parts))
    if texts.dtype != np.float64:  # which steps behind may compute in
        row_dtypes(behind, sum(map(width_of, texts.parts)), texts.dtype)
    try:
        texts.check()
    except ArtifactError as error:  # of parameters that were changed after `fit`
        raise ModelFormatError(f"scikit-learn does not take its vectorizer again: {error}") from None
    return texts, behind


def _unwrapped(source: Any) -> Any:
    """What predicts in a search or behind a FrozenEstimator."""
    role, name = _role_and_name(source)
    if role != "search" and name != "FrozenEstimator":
        return source
    return _unwrapped(getattr(source, "best_estimator_" if role == "search" else "estimator", None))


def _described_front(pipeline: Any) -> tuple[tuple[dict[str, Any], ...], Any]:
    """The steps of a pipeline that make rows of texts, and what is behind."""
    steps = [described(*pipeline.steps[0])]
    behind = pipeline[1:]
    if behind.steps and _role_and_name(behind.steps[0][1]) == ("vectorizer", "TfidfTransformer"):
        steps.append(described(*behind.steps[0]))
        behind = behind[1:]
    return tuple(steps), behind


# Where estimators keep those that get the same rows as they do.
_INSIDE: Final[Mapping[str, str]] = {
    "CalibratedClassifierCV": "calibrated_classifiers_",
    "FeatureUnion": "transformer_list",
    "FixedThresholdClassifier": "estimator_",
    **dict.fromkeys(("FrozenEstimator", "_CalibratedClassifier"), "estimator"),
    "TransformedTargetRegressor": "regressor_",
    "TunedThresholdClassifierCV": "estimator_",
    **dict.fromkeys(("StackingClassifier", "StackingRegressor", "VotingClassifier", "VotingRegressor"), "estimators_"),
    **dict.fromkeys(("MultiOutputClassifier", "MultiOutputRegressor"), "estimators_"),
    "OneVsRestClassifier": "estimators_",
}


@dataclass(frozen=True)
class _Places:
    """The vectorizers inside of an estimator, each different one once, and the steps that take their columns."""

    parts: list[tuple[dict[str, Any], ...]]
    chosen: list[tuple[Any, int]]  # a selector, and the position of its part

    def without_texts(self, thing: Any) -> Any | None:
        """A copy that takes rows of all columns; None where there is no vectorizer inside."""
        role, name = _role_and_name(thing)
        if role == "vectorizer" and name != "TfidfTransformer":
            return self._selector((described(name.lower(), thing),))
        if role == "pipeline" and thing.steps:
            return self._pipeline(thing)
        inside = "best_estimator_" if role == "search" else _INSIDE.get(name)
        if inside is None:
            return None
        found = vars(thing).get(inside)
        made = [self._inside(one) for one in found] if isinstance(found, list) else [self._inside(found)]
        takes_texts = {behind is not None for behind in made if not _is_dropped(behind)}
        if True not in takes_texts:
            return None
        if False in takes_texts:
            raise UnsupportedModelError(
                f"some of what is inside of this {class_name(thing)} takes texts, some does not"
            )
        behind = copy(thing)
        setattr(behind, inside, made if isinstance(found, list) else made[0])
        return behind

    def _inside(self, one: Any) -> Any | None:
        if isinstance(one, tuple) and len(one) == 2:  # a name and a transformer
            behind = self._inside(one[1])
            return None if behind is None else (one[0], behind)
        return one if _is_dropped(one) else self.without_texts(one)

    def _pipeline(self, pipeline: Any) -> Any | None:
        """Of a pipeline the first step alone gets texts."""
        if _begins_with_texts(pipeline):
            steps, behind = _described_front(pipeline)
            first = ("texts", self._selector(steps))
        else:
            inner = self.without_texts(pipeline.steps[0][1])
            if inner is None:
                return None
            first, behind = (pipeline.steps[0][0], inner), pipeline[1:]
        whole = copy(pipeline)
        whole.steps = [first, *behind.steps]
        return whole

    def _selector(self, steps: tuple[dict[str, Any], ...]) -> Any:
        if steps not in self.parts:
            self.parts.append(steps)
        selection = import_package("sklearn.feature_selection", "train", "reading a vectorizer")
        self.chosen.append((selection.VarianceThreshold(), self.parts.index(steps)))
        return self.chosen[-1][0]

    def choose_columns(self) -> None:
        """Fit the selectors, when all parts are known."""
        widths = [width_of(steps) for steps in self.parts]
        ends = np.cumsum([0, *widths])
        for selector, k in self.chosen:
            selector.n_features_in_ = int(ends[-1])
            selector.variances_ = np.zeros(ends[-1])
            selector.variances_[ends[k] : ends[k + 1]] = 1.0


def _is_dropped(thing: Any) -> bool:
    thing = thing[1] if isinstance(thing, tuple) and len(thing) == 2 else thing
    return is_dropped(thing)


def _begins_with_texts(source: Any) -> bool:
    if _role_and_name(source)[0] != "pipeline" or len(source.steps) < 2:
        return False
    role, name = _role_and_name(source.steps[0][1])
    return role == "vectorizer" and name != "TfidfTransformer"


def _role_and_name(thing: Any) -> tuple[str, str]:
    try:
        known = recognise(thing)
    except UnsupportedModelError:
        return "", ""
    return ("", "") if known is None else (known.role, known.name)


def described(name: str, vectorizer: Any) -> dict[str, Any]:
    """A fitted vectorizer as data."""
    kind = name_of(vectorizer)
    if kind != "TfidfTransformer":
        _check_calls(name, vectorizer)
    if kind in ("CountVectorizer", "TfidfVectorizer"):
        require_fitted(vectorizer, kind, "vocabulary_")
    of_idf = helper(vectorizer._tfidf, "_tfidf", "TfidfTransformer") if kind == "TfidfVectorizer" else vectorizer
    parameters: dict[str, Any] = {}
    for parameter in PARAMETERS[kind]:
        holder = of_idf if hasattr(of_idf, "use_idf") and hasattr(of_idf, parameter) else vectorizer
        value = getattr(holder, parameter)
        # Searches set parameters to numbers of NumPy, which JSON has not.
        parameters[parameter] = value.item() if isinstance(value, np.generic) else value
    if "stop_words" in parameters:
        try:
            words = vectorizer.get_stop_words()  # of scikit-learn's own list, too, which may change
        except ValueError as error:
            raise ModelFormatError(f"step {name!r}: {error}") from None
        parameters["stop_words"] = None if words is None else sorted(_texts(name, "stop_words", words))
        parameters["dtype"] = np.dtype(parameters["dtype"]).name
        parameters["ngram_range"] = [int(n) for n in parameters["ngram_range"]]
    found: dict[str, Any] = {"class": kind, "parameters": parameters}
    if kind in ("CountVectorizer", "TfidfVectorizer"):
        found["terms"] = _terms(name, vectorizer.vocabulary_)
    if kind == "TfidfTransformer":
        require_fitted(vectorizer, kind, "n_features_in_")
        found["n_features"] = int(vectorizer.n_features_in_)
    if getattr(of_idf, "use_idf", False) and not hasattr(of_idf, "idf_"):
        raise ModelFormatError(
            f"step {name!r} has use_idf, but no idf_: it was fitted without, or by an older scikit-learn; refit it"
        )
    if hasattr(of_idf, "idf_"):
        idf = np.asarray(of_idf.idf_, np.float64)
        width = len(found["terms"]) if "terms" in found else found["n_features"]
        if idf.shape != (width,):
            raise ModelFormatError(f"step {name!r}: idf_ has shape {idf.shape}, but there are {width} terms")
        if not np.isfinite(idf).all():
            raise UnsupportedModelError(f"step {name!r} has an infinite idf_; refit it with smooth_idf=True")
        if not of_idf.use_idf:
            raise ModelFormatError(f"step {name!r} has idf_, but use_idf is False")
        found["idf"] = idf.tolist()
    return found


def _check_calls(name: str, vectorizer: Any) -> None:
    """Refuse what is no data."""
    wrong = next((p for p in ("preprocessor", "tokenizer") if getattr(vectorizer, p) is not None), None)
    if wrong is None and not (isinstance(vectorizer.analyzer, str) and vectorizer.analyzer in _ANALYZERS):
        wrong = "analyzer"
    if wrong is None and callable(vectorizer.strip_accents):
        wrong = "strip_accents"
    if wrong is None and vectorizer.input != "content":
        wrong = "input"
    if wrong is not None:
        raise UnsupportedModelError(
            f"step {name!r} ({class_name(vectorizer)}) has {wrong}={getattr(vectorizer, wrong)!r}, which no artifact "
            "can hold; compile the steps behind it alone, whose compiled model takes the sparse rows of its transform"
        )


def _terms(name: str, vocabulary: Any) -> list[str]:
    """In the order of their columns."""
    terms = sorted(_texts(name, "vocabulary_", vocabulary), key=vocabulary.get)
    if [int(vocabulary[term]) for term in terms] != list(range(len(terms))):
        raise ModelFormatError(f"step {name!r}: the columns of vocabulary_ are not 0 to {len(terms) - 1}")
    return terms


def _texts(name: str, what: str, values: Any) -> list[str]:
    """Texts that JSON and UTF-8 can hold."""
    texts = list(values)
    for text in texts:
        if not isinstance(text, str):
            raise UnsupportedModelError(f"step {name!r}: {what} has {text!r:.60}, which is no text")
        check_unicode(text)
    return [str(text) for text in texts]
