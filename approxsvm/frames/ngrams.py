"""scikit-learn's text vectorizers with common options, computed without scikit-learn; the rows are bit-identical.

The native core finds and counts terms. scikit-learn's operations are then applied to the counts, in the same order.
"""

import platform
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.errors import ArtifactError

# Patterns whose tokens are runs of word characters, with each pattern's minimum run length.
_RUNS: Final = {rf"{flag}\b{run}\b": size for flag in ("(?u)", "") for run, size in ((r"\w\w+", 2), (r"\w+", 1))}
_FLOATS: Final = ("float64", "float32")
_DTYPES: Final = (*_FLOATS, "int64", "int32")
# On processors other than x86-64, compilers fuse multiplications and additions in scikit-learn's sums of squares.
_NORMS: Final = ("l1", "l2", None) if platform.machine().lower() in ("x86_64", "amd64") else ("l1", None)
_MAX_INT32: Final = 2**31 - 1
_MAX_IDF: Final = 1e20  # if a weight is larger, weight * count may be infinite in float32


# Conditions for parameter values that the core implements and scikit-learn accepts.
_USUAL: Final[Mapping[str, Callable[[Any], bool]]] = {
    "encoding": lambda value: isinstance(value, str),
    "decode_error": lambda value: value in ("strict", "ignore", "replace"),
    "strip_accents": lambda value: value in (None, "ascii", "unicode"),
    "stop_words": lambda value: value is None or (isinstance(value, list) and all(type(x) is str for x in value)),
    "token_pattern": lambda value: value is None or isinstance(value, str),
    "ngram_range": lambda value: 1 <= value[0] <= value[1] <= _MAX_INT32,
    "analyzer": lambda value: value in ("word", "char", "char_wb"),
    "dtype": lambda value: value in _DTYPES,
    "norm": lambda value: value in _NORMS,
    "n_features": lambda value: type(value) is int and 1 <= value < _MAX_INT32,
    **dict.fromkeys(
        ("lowercase", "binary", "use_idf", "smooth_idf", "sublinear_tf", "alternate_sign"),
        lambda value: type(value) is bool,
    ),
}


class CsrRows(NamedTuple):
    """Sparse rows in the format that the core accepts."""

    data: npt.NDArray[np.float64]
    indices: npt.NDArray[np.signedinteger[Any]]
    indptr: npt.NDArray[np.signedinteger[Any]]
    shape: tuple[int, int]

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """Dtype of the values."""
        return self.data.dtype


def side_by_side(rows: Sequence[CsrRows]) -> CsrRows:
    """Concatenate several single rows into one long row."""
    if len(rows) == 1:
        return rows[0]
    starts = np.cumsum([0, *(row.shape[1] for row in rows)])
    data = np.concatenate([row.data for row in rows])
    indices = np.concatenate([row.indices + start for row, start in zip(rows, starts[:-1], strict=True)])
    return CsrRows(data, indices, np.array([0, len(data)]), (1, int(starts[-1])))


class UsualVectorizer:
    """A vectorizer whose options are implemented by the core, possibly followed by a TfidfTransformer."""

    def __init__(self, steps: Sequence[Mapping[str, Any]], width: int) -> None:
        first, options = steps[0], steps[0]["parameters"]
        self._width = width
        self._hashes = first["class"] == "HashingVectorizer"
        self._weights = [
            (step["parameters"], np.array(step["idf"], np.float64) if "idf" in step else None) for step in steps
        ]
        self._dtype = options["dtype"] if options["dtype"] in _FLOATS else "float64"  # as scikit-learn does
        self._encoding = (options["encoding"], options["decode_error"])
        self._prepare: list[Callable[[str], str]] = [methodcaller("lower")] if options["lowercase"] else []
        if options["strip_accents"] is not None:
            self._prepare.append(_only_ascii if options["strip_accents"] == "ascii" else _without_accents)
        self._tokens: Callable[[str], list[str]] | None = None
        if options["analyzer"] == "word" and options["token_pattern"] not in _RUNS:
            self._tokens = re.compile(options["token_pattern"]).findall
        self._counter = _native.TermCounter(
            analyzer=options["analyzer"],
            min_n=options["ngram_range"][0],
            max_n=options["ngram_range"][1],
            min_token_size=_RUNS.get(options["token_pattern"], 0),
            stop_words=options["stop_words"] or [],
            terms=first.get("terms", []),
            n_hashes=width if self._hashes else 0,
            alternate_sign=options.get("alternate_sign", False),
        )

    @classmethod
    def of(cls, steps: Sequence[Mapping[str, Any]], width: int) -> "UsualVectorizer | None":
        """Create the vectorizer from the steps of an artifact; None if options are unusual or invalid."""
        hashes, sublinear = steps[0]["class"] == "HashingVectorizer", steps[-1]["parameters"].get("sublinear_tf")
        if width == 0 or (hashes and sublinear) or not all(map(_is_usual, steps)):  # hashed counts may be negative
            return None
        try:
            return cls(steps, width)
        except ArtifactError:  # a term is listed twice
            return None

    def rows(self, documents: Sequence[str | bytes]) -> CsrRows | None:
        """Convert documents to rows; None if a document has a lone surrogate, which scikit-learn cannot always hash.

        Raises UnicodeDecodeError for bytes that are not in the vectorizer's encoding.
        """
        texts: Any = [text.decode(*self._encoding) if isinstance(text, bytes) else text for text in documents]
        for function in self._prepare:
            texts = list(map(function, texts))
        if self._hashes and not all(map(str.isascii, texts)):
            try:
                "".join(texts).encode()
            except UnicodeEncodeError:
                return None
        if self._tokens is not None:
            texts = list(map(self._tokens, texts))
        counts, indices, indptr = self._counter.count(texts)
        data = counts.astype(self._dtype, copy=False)
        for options, idf in self._weights:
            _weigh(data, indices, indptr, options, idf)
        return CsrRows(data.astype(np.float64, copy=False), indices, indptr, (len(texts), self._width))


def _is_usual(step: Mapping[str, Any]) -> bool:
    options = step["parameters"]
    return (
        all(_USUAL[name](value) for name, value in options.items())
        and (step["class"] != "HashingVectorizer" or options["dtype"] in _FLOATS)
        and (options.get("analyzer") != "word" or _is_pattern(options["token_pattern"]))
        and np.abs(step.get("idf", [0.0])).max() <= _MAX_IDF
    )


def _is_pattern(pattern: str | None) -> bool:
    """Return whether a pattern compiles and all its matches are tokens."""
    try:
        return pattern is not None and re.compile(pattern).groups <= 1
    except (re.error, OverflowError, RecursionError):
        return False


def _weigh(data: Any, indices: Any, indptr: Any, options: Mapping[str, Any], idf: Any) -> None:
    """Apply the operations of one step to the values of CSR rows, in place."""
    if options.get("binary"):
        data.fill(1)
    if options.get("sublinear_tf"):
        np.log(data, data)
        data += 1.0
    if idf is not None:
        data *= idf[indices]
    if options.get("norm"):
        _native.normalize_rows(indptr, data, squares=options["norm"] == "l2")


def _only_ascii(text: str) -> str:
    """Strip accents as scikit-learn's strip_accents_ascii does."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _without_accents(text: str) -> str:
    """Strip accents as scikit-learn's strip_accents_unicode does."""
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
