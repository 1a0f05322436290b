"""Frontend for estimators that take documents; each is split into vectorizers and an estimator for vectorized rows."""

from copy import copy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from approxsvm.errors import ArtifactError, ModelFormatError, UnsupportedModelError
from approxsvm.frames.text_columns import check_unicode
from approxsvm.frames.texts import PARAMETERS, TextRows, width_of
from approxsvm.frontends.sklearn.dtypes import row_dtypes
from approxsvm.frontends.sklearn.known_types import INSIDE, class_name, helper, name_of, recognise
from approxsvm.frontends.sklearn.support_vector_machines import is_dropped, reporting_edits
from approxsvm.frontends.sklearn.trained_inside import trained_inside
from approxsvm.system.packages import import_package

_ANALYZERS = ("word", "char", "char_wb")


def split(source: Any) -> tuple[TextRows | None, Any]:
    """Split an estimator into vectorizers (None if it has none) and an estimator for the vectorized rows.

    Compiling estimators are replaced by the trained estimators inside them, whose predictions are the reference.

    The columns of vectorizers inside estimators and unions are concatenated, and each inner estimator selects its
    vectorizer's columns. Raises UnsupportedModelError if a vectorizer calls custom functions or reads files, and
    ModelFormatError if fitted attributes have been edited.
    """
    source = trained_inside(source)
    with reporting_edits(source):
        return _split(source)


def _split(source: Any) -> tuple[TextRows | None, Any]:
    whole = _unwrapped(source)
    if _begins_with_texts(whole):
        steps, rest = _describe_front(whole)
        texts = TextRows((steps,))
    else:
        places = _Places([], [])
        rest = places.without_texts(whole)
        if rest is None:
            return None, source
        places.choose_columns()
        texts = TextRows(tuple(places.parts))
    if texts.dtype != np.float64:  # later steps may compute in this dtype
        row_dtypes(rest, sum(map(width_of, texts.parts)), texts.dtype)
    try:
        texts.check()
    except ArtifactError as error:  # parameters were changed after `fit`
        raise ModelFormatError(f"scikit-learn rejects the parameters of its vectorizer: {error}") from None
    return texts, rest


def _unwrapped(source: Any) -> Any:
    """Return the estimator that predicts for a search or a FrozenEstimator, or else the source itself."""
    role, name = _role_and_name(source)
    if role != "search" and name != "FrozenEstimator":
        return source
    return _unwrapped(getattr(source, "best_estimator_" if role == "search" else "estimator", None))


def _describe_front(pipeline: Any) -> tuple[tuple[dict[str, Any], ...], Any]:
    """Return descriptions of a pipeline's vectorizing steps, and a pipeline of its other steps."""
    steps = [describe(*pipeline.steps[0])]
    rest = pipeline[1:]
    if rest.steps and _role_and_name(rest.steps[0][1]) == ("vectorizer", "TfidfTransformer"):
        steps.append(describe(*rest.steps[0]))
        rest = rest[1:]
    return tuple(steps), rest


# Classes that pass documents to inner estimators.
_PASSING: Final = frozenset(
    (
        *("CalibratedClassifierCV", "FixedThresholdClassifier", "FrozenEstimator", "MultiOutputClassifier"),
        *("MultiOutputRegressor", "OneVsRestClassifier", "StackingClassifier", "StackingRegressor"),
        *("TransformedTargetRegressor", "TunedThresholdClassifierCV", "VotingClassifier", "VotingRegressor"),
        "_CalibratedClassifier",
    )
)


@dataclass(frozen=True)
class _Places:
    """Distinct vectorizers inside an estimator, and the steps that select a vectorizer's columns."""

    parts: list[tuple[dict[str, Any], ...]]
    chosen: list[tuple[Any, int]]  # a selector, and the index of its vectorizer in `parts`

    def without_texts(self, estimator: Any) -> Any | None:
        """Return a copy that takes vectorized rows with all columns, or None if the estimator has no vectorizer."""
        role, name = _role_and_name(estimator)
        if role == "vectorizer" and name != "TfidfTransformer":
            return self._selector((describe(name.lower(), estimator),))
        if role == "pipeline" and estimator.steps:
            return self._pipeline(estimator)
        if role != "search" and name not in (*_PASSING, "FeatureUnion"):
            return None
        inside = "transformer_list" if name == "FeatureUnion" else INSIDE[name]
        inner = vars(estimator).get(inside)
        made = [self._inside(one) for one in inner] if isinstance(inner, list) else [self._inside(inner)]
        take_texts = {rest is not None for rest in made if not _is_dropped(rest)}
        if True not in take_texts:
            return None
        if False in take_texts:
            raise UnsupportedModelError(
                f"some estimators inside this {class_name(estimator)} take texts, others do not"
            )
        rest = copy(estimator)
        setattr(rest, inside, made if isinstance(inner, list) else made[0])
        return rest

    def _inside(self, one: Any) -> Any | None:
        if isinstance(one, tuple) and len(one) == 2:  # a (name, transformer) pair
            rest = self._inside(one[1])
            return None if rest is None else (one[0], rest)
        return one if _is_dropped(one) else self.without_texts(one)

    def _pipeline(self, pipeline: Any) -> Any | None:
        """Replace a pipeline's first step, the only one that receives documents."""
        if _begins_with_texts(pipeline):
            steps, rest = _describe_front(pipeline)
            first = ("texts", self._selector(steps))
        else:
            inner = self.without_texts(pipeline.steps[0][1])
            if inner is None:
                return None
            first, rest = (pipeline.steps[0][0], inner), pipeline[1:]
        whole = copy(pipeline)
        whole.steps = [first, *rest.steps]
        return whole

    def _selector(self, steps: tuple[dict[str, Any], ...]) -> Any:
        if steps not in self.parts:
            self.parts.append(steps)
        selection = import_package("sklearn.feature_selection", "train", "reading a vectorizer")
        self.chosen.append((selection.VarianceThreshold(), self.parts.index(steps)))
        return self.chosen[-1][0]

    def choose_columns(self) -> None:
        """Fit the selectors after all vectorizers have been collected."""
        widths = [width_of(steps) for steps in self.parts]
        ends = np.cumsum([0, *widths])
        for selector, k in self.chosen:
            selector.n_features_in_ = int(ends[-1])
            selector.variances_ = np.zeros(ends[-1])
            selector.variances_[ends[k] : ends[k + 1]] = 1.0


def _is_dropped(estimator: Any) -> bool:
    estimator = estimator[1] if isinstance(estimator, tuple) and len(estimator) == 2 else estimator
    return is_dropped(estimator)


def _begins_with_texts(source: Any) -> bool:
    if _role_and_name(source)[0] != "pipeline" or len(source.steps) < 2:
        return False
    role, name = _role_and_name(source.steps[0][1])
    return role == "vectorizer" and name != "TfidfTransformer"


def _role_and_name(estimator: Any) -> tuple[str, str]:
    try:
        known = recognise(estimator)
    except UnsupportedModelError:
        return "", ""
    return ("", "") if known is None else (known.role, known.name)


def describe(name: str, vectorizer: Any) -> dict[str, Any]:
    """Describe a fitted vectorizer as a dict of plain data."""
    kind = name_of(vectorizer)
    if kind != "TfidfTransformer":
        _check_calls(name, vectorizer)
    terms = _terms(name, vectorizer.vocabulary_) if kind in ("CountVectorizer", "TfidfVectorizer") else None
    tfidf = helper(vectorizer._tfidf, "_tfidf", "TfidfTransformer") if kind == "TfidfVectorizer" else vectorizer
    parameters: dict[str, Any] = {}
    for parameter in PARAMETERS[kind]:
        holder = tfidf if hasattr(tfidf, "use_idf") and hasattr(tfidf, parameter) else vectorizer
        value = getattr(holder, parameter)
        # Parameter searches set parameters to NumPy scalars, which JSON does not support.
        parameters[parameter] = value.item() if isinstance(value, np.generic) else value
    if "stop_words" in parameters:
        try:
            words = vectorizer.get_stop_words()  # the words are stored because scikit-learn's list may change
        except ValueError as error:
            raise ModelFormatError(f"step {name!r}: {error}") from None
        parameters["stop_words"] = None if words is None else sorted(_texts(name, "stop_words", words))
        parameters["dtype"] = np.dtype(parameters["dtype"]).name
        parameters["ngram_range"] = [int(n) for n in parameters["ngram_range"]]
    description: dict[str, Any] = {"class": kind, "parameters": parameters}
    if terms is not None:
        description["terms"] = terms
    if kind == "TfidfTransformer":
        description["n_features"] = int(vectorizer.n_features_in_)
    if getattr(tfidf, "use_idf", False) and not hasattr(tfidf, "idf_"):
        raise ModelFormatError(
            f"step {name!r} has use_idf, but no idf_: it was fitted without it, or by an older scikit-learn; refit it"
        )
    if hasattr(tfidf, "idf_"):
        idf = np.asarray(tfidf.idf_, np.float64)
        width = len(description["terms"]) if "terms" in description else description["n_features"]
        if idf.shape != (width,):
            raise ModelFormatError(f"step {name!r}: idf_ has shape {idf.shape}, but there are {width} terms")
        if not np.isfinite(idf).all():
            raise UnsupportedModelError(f"step {name!r} has an infinite idf_; refit it with smooth_idf=True")
        if not tfidf.use_idf:
            raise ModelFormatError(f"step {name!r} has idf_, but use_idf is False")
        description["idf"] = idf.tolist()
    return description


def _check_calls(name: str, vectorizer: Any) -> None:
    """Reject what an artifact cannot store: custom callables, and `input` other than 'content'."""
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
            "can hold; compile the steps after it alone: that compiled model takes the sparse rows of its transform"
        )


def _terms(name: str, vocabulary: Any) -> list[str]:
    """Return the terms in column order."""
    terms = sorted(_texts(name, "vocabulary_", vocabulary), key=vocabulary.get)
    if [int(vocabulary[term]) for term in terms] != list(range(len(terms))):
        raise ModelFormatError(f"step {name!r}: the columns of vocabulary_ are not 0 to {len(terms) - 1}")
    return terms


def _texts(name: str, what: str, values: Any) -> list[str]:
    """Check that all strings can be encoded as JSON in UTF-8, and return them as a list."""
    texts = list(values)
    for text in texts:
        if not isinstance(text, str):
            raise UnsupportedModelError(f"step {name!r}: {what} has {text!r:.60}, which is not a text")
        check_unicode(text)
    return [str(text) for text in texts]
