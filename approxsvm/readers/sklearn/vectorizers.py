"""Pipelines that begin with a vectorizer of texts: what it has learned, as data, and the pipeline behind it."""

from __future__ import annotations

from typing import Any

import numpy as np

from approxsvm.errors import ArtifactError, ModelFormatError, UnsupportedModelError
from approxsvm.readers.sklearn.known_types import class_name, name_of, recognise
from approxsvm.readers.sklearn.support_vector_machines import require_fitted
from approxsvm.text_columns import check_unicode
from approxsvm.text_rows import PARAMETERS, TextRows

_ANALYZERS = ("word", "char", "char_wb")


def split(source: Any) -> tuple[TextRows | None, Any]:
    """What makes rows of texts in front of an estimator, and what takes these rows: all of it where nothing does.

    Raises UnsupportedModelError: the vectorizer calls functions of somebody else, or reads files.
    """
    whole = source
    while (role := _role_and_name(whole))[0] == "search" or role[1] == "FrozenEstimator":
        whole = getattr(whole, "best_estimator_" if role[0] == "search" else "estimator", None)
    if not _begins_with_texts(whole):
        return None, source
    steps = [described(*whole.steps[0])]
    behind = whole[1:]
    if len(behind.steps) > 1 and _role_and_name(behind.steps[0][1]) == ("vectorizer", "TfidfTransformer"):
        steps.append(described(*behind.steps[0]))
        behind = behind[1:]
    texts = TextRows(tuple(steps))
    try:
        texts.rows([""])
    except ArtifactError as error:  # of parameters that were changed after `fit`
        raise ModelFormatError(f"scikit-learn does not take its vectorizer again: {error}") from None
    return texts, behind


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
    of_idf = vectorizer._tfidf if kind == "TfidfVectorizer" else vectorizer
    if kind == "TfidfVectorizer" and name_of(of_idf) != "TfidfTransformer":
        raise UnsupportedModelError(f"step {name!r} weighs its terms by a {class_name(of_idf)}")
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
        require_fitted(vectorizer, kind, "vocabulary_")
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
