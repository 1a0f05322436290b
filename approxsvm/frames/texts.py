"""Documents as rows: scikit-learn's text vectorizers, stored as data.

An artifact contains the vectorizers' learned data (models/FORMAT.md, "vectorizers"), but no code. Vectorizers convert
documents to sparse rows. With common options, ngrams.py does so; with other options, scikit-learn must be installed.
"""

import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Final, TypeAlias

import numpy as np

from approxsvm.errors import ArtifactError, InputError, UnsupportedModelError
from approxsvm.frames.ngrams import CsrRows, UsualVectorizer, side_by_side
from approxsvm.system.packages import import_package

# Parameters of each class on which `transform` depends; Tfidf classes also have the idf parameters.
_IDF_PARAMETERS: Final = ("norm", "use_idf", "smooth_idf", "sublinear_tf")
_TEXT_PARAMETERS: Final = (
    "encoding",
    "decode_error",
    "strip_accents",
    "lowercase",
    "stop_words",
    "token_pattern",
    "ngram_range",
    "analyzer",
    "binary",
    "dtype",
)
PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "CountVectorizer": _TEXT_PARAMETERS,
    "TfidfVectorizer": (*_TEXT_PARAMETERS, *_IDF_PARAMETERS),
    "HashingVectorizer": (*_TEXT_PARAMETERS, "norm", "alternate_sign", "n_features"),
    "TfidfTransformer": _IDF_PARAMETERS,
}

# Substrings of the names of string dtypes in Arrow, pandas and Polars.
_TEXT_DTYPES: Final = ("object", "str", "categor")
_EXPECTED: Final = (
    "a list, an array or a column of texts, one for each row, or the sparse rows that the vectorizer makes"
)


Steps: TypeAlias = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class TextRows:
    """Conversion of documents to sparse rows."""

    # Vectorizers whose columns are concatenated. Each one is a sequence of steps with "class", "parameters" and the
    # learned data: "terms" (in column order) and "idf" (one weight per term), or "n_features" if the step takes rows.
    parts: tuple[Steps, ...]
    width: int | None = None  # number of columns that the model expects

    @classmethod
    def read(cls, content: bytes, width: int | None = None) -> "TextRows":
        """Read an artifact's section "vectorizers"."""
        try:
            section = json.loads(content)
            parts = tuple(map(tuple, section["side_by_side"] if "side_by_side" in section else [section["steps"]]))
            made = sum(map(width_of, parts))
            if len(section) != 1 or not parts:
                raise ValueError("it has neither steps nor parts side by side")
            if width not in (None, made):
                raise ValueError(f"it makes {made} columns, but the model takes {width}")
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
            raise ArtifactError(f"section vectorizers does not follow models/FORMAT.md: {error}") from None
        return cls(parts, width)

    def written(self) -> bytes:
        """Return the contents of an artifact's section "vectorizers"."""
        content = {"steps": self.parts[0]} if len(self.parts) == 1 else {"side_by_side": self.parts}
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the vectorizers' rows before `rows` converts them to float64."""
        dtypes = [np.dtype(steps[0]["parameters"]["dtype"]) for steps in self.parts]
        weighed = [
            np.result_type(dtype, np.float32) if len(steps) > 1 else dtype
            for dtype, steps in zip(dtypes, self.parts, strict=True)
        ]
        return np.result_type(*weighed)

    @cached_property
    def _fitted(self) -> list[list[Any]]:
        """Fitted scikit-learn objects, one list for each element of `parts`."""
        text = import_package("sklearn.feature_extraction.text", "train", "a model of texts takes sparse rows; a text")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `fit` has already warned about unmatched terms
            try:
                return [[_fitted(getattr(text, step["class"]), step) for step in steps] for steps in self.parts]
            except (ValueError, LookupError, TypeError, OverflowError, re.error) as error:
                raise ArtifactError(f"section vectorizers: {error}") from None

    @cached_property
    def _usual(self) -> list[UsualVectorizer | None]:
        """For each element of `parts`, a vectorizer that does not need scikit-learn, or None."""
        return [UsualVectorizer.of(steps, width_of(steps)) for steps in self.parts]

    def rows(self, texts: Any) -> Any:
        """Vectorize documents to a csr_array of float64; raise InputError if a document is not a str or bytes."""
        from scipy.sparse import csr_array, hstack

        arrays = [
            csr_array(part[:3], shape=part.shape) if isinstance(part, CsrRows) else part
            for part in self._rows_of_parts(texts)
        ]
        return arrays[0] if len(arrays) == 1 else hstack(arrays, format="csr")

    def row(self, text: str | bytes) -> Any:
        """Vectorize one document, without SciPy if all options are common."""
        made = self._rows_of_parts([text])
        return side_by_side(made) if all(isinstance(part, CsrRows) for part in made) else self.rows([text])

    def _rows_of_parts(self, texts: Any) -> list[Any]:
        given: Any = texts.to_pylist() if hasattr(texts, "to_pylist") else list(texts)
        for k, text in enumerate(given):
            if not isinstance(text, (str, bytes)):
                raise InputError(f"row {k}: a text is needed, got {text!r:.60}")
        try:
            made = [self._rows_of_part(k, given) for k in range(len(self.parts))]
        except UnicodeDecodeError as error:
            raise InputError(f"a text is not in the encoding of the vectorizer: {error}") from None
        width = sum(part.shape[1] for part in made)
        if self.width not in (None, width):
            raise ArtifactError(f"the vectorizer makes {width} columns of texts, but the model takes {self.width}")
        return made

    def _rows_of_part(self, k: int, texts: list[str | bytes]) -> Any:
        usual = self._usual[k]
        made = None if usual is None else usual.rows(texts)
        return self._by_scikit_learn(k, texts) if made is None else made

    def _by_scikit_learn(self, k: int, texts: list[str | bytes]) -> Any:
        from scipy.sparse import csr_array

        some = texts or [""]  # some vectorizers reject an empty list
        rows = reduce(lambda rows, step: step.transform(rows), self._fitted[k], some)
        return csr_array(rows, dtype=np.float64)[: len(texts)]

    def check(self) -> None:
        """Compare the rows of a document made of the vectorizer's terms with those from the installed scikit-learn.

        Raises ArtifactError if scikit-learn rejects the parameters, and UnsupportedModelError if the rows differ.
        """
        for k, usual in enumerate(self._usual):
            texts: list[str | bytes] = [""]
            if usual is not None:
                terms = self.parts[k][0].get("terms", [])
                texts += [" ".join([*terms[:1000], "Two  words:\n_1 ǅ, İ\u0301 ﬁ٣४ ß"])]
            expected, made = self._by_scikit_learn(k, texts), self._rows_of_part(k, texts)
            if not all(np.array_equal(getattr(made, x), getattr(expected, x)) for x in ("data", "indices", "indptr")):
                version = import_package("sklearn", "train", "a model of texts").__version__
                raise UnsupportedModelError(
                    f"scikit-learn {version} makes other rows of texts than known versions do; compile the steps "
                    "after the vectorizer alone: that compiled model takes the rows of its transform"
                )


def are_texts(X: Any) -> bool:
    """Return whether each row is a document rather than numbers; raise InputError for rows of any other type."""
    if hasattr(X, "tocsr"):
        return False
    if isinstance(X, (str, bytes)) or not hasattr(X, "__len__"):
        raise InputError(f"X is {X!r:.60}, but must be {_EXPECTED}")
    if hasattr(X, "to_pylist") or hasattr(X, "to_list"):  # Arrow, pandas and Polars
        kind = str(X.dtype if hasattr(X, "dtype") else getattr(X, "type", "")).lower()
        return any(name in kind for name in _TEXT_DTYPES)
    if getattr(X, "ndim", 1) == 1 and not hasattr(X, "columns"):
        if hasattr(X, "dtype"):
            return getattr(X.dtype, "kind", "O") not in "fiubc"
        first = X[0] if len(X) and isinstance(X, Sequence) else None
        if not isinstance(first, Sequence) or isinstance(first, (str, bytes)):
            return first is None or isinstance(first, (str, bytes))
    row = next(iter(np.asarray(X[:1], dtype=object)), ())
    if any(isinstance(value, (str, bytes)) for value in row):
        raise InputError(f"X has rows of several values, the first {list(row)!r:.60}, but must be {_EXPECTED}")
    return False


def width_of(steps: Steps) -> int:
    """Return the number of columns that these steps produce; raise ValueError if there is no consistent number."""
    for step in steps:
        if set(step["parameters"]) != {*PARAMETERS[step["class"]]}:
            raise ValueError("parameters are missing, or too many")
    made = [_checked_width(step, is_first=k == 0) for k, step in enumerate(steps)]
    if len(made) not in (1, 2):
        raise ValueError(f"there are {len(made)} steps, expected one or two")
    if len(set(made)) > 1:
        raise ValueError(f"the steps make {made[0]} and {made[1]} columns")
    return made[0]


def _checked_width(step: Mapping[str, Any], *, is_first: bool) -> int:
    """Return the number of columns that a step produces; raise ValueError unless it has the data of its class."""
    kind, parameters = step["class"], step["parameters"]
    if (kind == "TfidfTransformer") is is_first:
        raise ValueError(f"{kind} is in the wrong position")
    counts = kind in ("CountVectorizer", "TfidfVectorizer")
    weighs = bool(parameters.get("use_idf", False))
    wanted = {"class", "parameters"}
    wanted |= {"terms"} if counts else {"n_features"} if kind == "TfidfTransformer" else set()
    wanted |= {"idf"} if weighs else set()
    if set(step) != wanted:
        raise ValueError(f"{kind} has {sorted(step)}, expected {sorted(wanted)}")
    terms = step.get("terms", [])
    if not isinstance(terms, list) or any(type(term) is not str for term in terms):
        raise ValueError("terms are not a list of texts")
    made = len(terms) if counts else step["n_features"] if kind == "TfidfTransformer" else parameters["n_features"]
    if type(made) is not int:
        raise ValueError(f"{kind} makes {made!r:.60} columns")
    idf = step.get("idf", [])
    if weighs and not (
        isinstance(idf, list) and len(idf) == made and all(type(x) in (int, float) and math.isfinite(x) for x in idf)
    ):
        raise ValueError(f"idf is not a list of {made} finite numbers")
    if "ngram_range" in parameters:
        span = parameters["ngram_range"]
        if not (isinstance(span, list) and len(span) == 2 and all(type(n) is int for n in span)):
            raise ValueError(f"ngram_range is {span!r:.60}")
        if not isinstance(parameters["dtype"], str):
            raise ValueError(f"dtype is {parameters['dtype']!r:.60}")
        "".encode(parameters["encoding"])  # raises LookupError for an unknown encoding
    return made


def _fitted(cls: type, step: Mapping[str, Any]) -> Any:
    """Rebuild a fitted object: fit the class on an empty list, then insert the learned data."""
    from scipy.sparse import csr_array

    given = {name: tuple(value) if name == "ngram_range" else value for name, value in step["parameters"].items()}
    if "dtype" in given:
        given["dtype"] = np.dtype(given["dtype"]).type
    terms, idf, width = (step.get(name) for name in ("terms", "idf", "n_features"))
    if terms is not None:
        given["vocabulary"] = terms
    made = cls(**given)
    made.fit([""] if width is None else csr_array((1, width)))
    if idf is not None:
        made.idf_ = np.array(idf, np.float64)
    return made
