"""The native term counter and scikit-learn's vectorizers give bit-identical rows."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.feature_extraction import text as sklearn_text
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.frames.texts import TextRows
from approxsvm.frontends.sklearn.vectorizers import describe

# Word characters of many scripts, unusual digits, marks, ligatures, characters whose length changes with their case,
# spaces, zero-width characters and halves of surrogate pairs.
LETTERS = [
    *"abcXYZ_09",
    *"İıẞßſﬁǅΣςÅÅé",
    *"٣४²Ⅷ𝟘",
    *"\u0301\u0345\u20dd",
    *"你日กхاद",
    *"𝒜𐐀😀",
    *"\u200b\u200d\ufeff\u00ad",
]
SPACES = [*" \t\n\r\x0b\x1c\x1f\x85\xa0\u2009\u2028\u3000", "  ", ", ", "-", "", "_"]
HALVES = [*"\ud800\udfff"]
WORDS = ["the", "The", "cat", "x_y", "it's", "naïve", "über", "a", "2026"]


def texts_of(rng: np.random.Generator, n: int, letters: list[str]) -> list[str]:
    def word() -> str:
        if rng.random() < 0.4:
            return str(rng.choice(WORDS))
        return "".join(rng.choice(letters, rng.integers(0, 7)))

    return ["", *("".join(word() + str(rng.choice(SPACES)) for _ in range(rng.integers(0, 15))) for _ in range(n - 1))]


VECTORIZERS = {
    "words": [TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", sublinear_tf=True)],
    "pairs of words": [TfidfVectorizer(ngram_range=(1, 3), stop_words=["the", "über"], norm="l1", use_idf=False)],
    "float32": [TfidfVectorizer(dtype=np.float32, strip_accents="unicode", sublinear_tf=True)],
    "float32, absolute": [CountVectorizer(dtype=np.float32, ngram_range=(2, 2)), TfidfTransformer(norm="l1")],
    "another pattern": [CountVectorizer(token_pattern=r"(?i)([a-z]*)\w?", binary=True, ngram_range=(1, 2))],
    "characters": [TfidfVectorizer(analyzer="char", ngram_range=(1, 4), lowercase=False)],
    "characters in words": [CountVectorizer(analyzer="char_wb", ngram_range=(2, 5), strip_accents="ascii")],
    "characters, weighed": [
        CountVectorizer(analyzer="char_wb", ngram_range=(3, 3)),
        TfidfTransformer(smooth_idf=False),
    ],
    "hashes": [HashingVectorizer(n_features=97, ngram_range=(1, 2))],
    "hashes of characters": [HashingVectorizer(n_features=2**20, analyzer="char", ngram_range=(2, 3), norm="l1")],
    "few hashes": [HashingVectorizer(n_features=3, binary=True, norm=None, dtype=np.float32), TfidfTransformer()],
}


@pytest.mark.parametrize("name", VECTORIZERS)
def test_rows_are_the_same_bits(name):
    rng = np.random.default_rng([len(name), *name.encode()])
    source = make_pipeline(*VECTORIZERS[name]).fit(texts_of(rng, 60, LETTERS))
    rows = TextRows((tuple(describe("step", step) for _, step in source.steps),))
    rows.check()
    (usual,) = rows._usual
    assert usual is not None
    hashes = isinstance(VECTORIZERS[name][0], HashingVectorizer)
    asked = [
        *texts_of(rng, 400, LETTERS if hashes else LETTERS + HALVES),
        "investigation need records",
    ]  # hashes of -2**31
    asked[7:9] = [text.encode("utf-8", "ignore") for text in asked[7:9]]
    expected = source.transform(asked).tocsr()
    made = usual.rows(asked)
    assert made.shape == expected.shape
    assert made.data.tobytes() == expected.data.astype(np.float64).tobytes()
    for ours, theirs in ((made.indices, expected.indices), (made.indptr, expected.indptr)):
        np.testing.assert_array_equal(ours, theirs)
    one = rows.row(asked[20])
    np.testing.assert_array_equal(one.data, made.data[made.indptr[20] : made.indptr[21]])


@pytest.mark.parametrize(
    "vectorizer",
    [
        CountVectorizer(dtype=np.int8),
        CountVectorizer(ngram_range=(0, 2)),
        HashingVectorizer(n_features=9, dtype=np.int64),
    ],
)
def test_other_options_are_scikit_learns(vectorizer):
    rows = TextRows(((describe("step", vectorizer.fit(WORDS)),),))
    assert (rows.rows(WORDS) != vectorizer.transform(WORDS)).nnz == 0
    assert rows._usual == [None]


def test_rows_of_several_vectorizers_stand_side_by_side():
    union = make_union(CountVectorizer(), HashingVectorizer(n_features=2**31 - 2), TfidfVectorizer(analyzer="char"))
    rows = TextRows(tuple((describe("step", step),) for _, step in union.fit(WORDS).transformer_list))
    expected, made = rows.rows(["the über-cat"]), rows.row("the über-cat")
    assert made.shape == expected.shape
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(made, name), getattr(expected, name))


def test_faults_are_the_sources():
    hashes = TextRows(((describe("step", HashingVectorizer(n_features=9, token_pattern=r"\S+")),),))
    with pytest.raises(UnicodeEncodeError):
        hashes.rows(["\ud800"])
    words = TextRows(((describe("step", CountVectorizer().fit(WORDS)),),))
    with pytest.raises(InputError, match="a text is not in the encoding of the vectorizer"):
        words.row(b"\xff")
    with pytest.raises(InputError, match="row 1: a text is needed, got nan"):
        words.rows(["cat", np.nan])
    assert words.rows([]).shape == (0, 7)


def test_another_scikit_learn_is_refused(monkeypatch):
    source = make_pipeline(TfidfVectorizer(), SVC()).fit(WORDS, np.arange(len(WORDS)) % 2)
    monkeypatch.setattr(sklearn_text, "normalize", lambda X, **options: X * (1.0 + 2.0**-52))
    with pytest.raises(UnsupportedModelError, match="makes other rows of texts than known versions do"):
        approxsvm.compile(source)


def test_one_text_needs_neither_scikit_learn_nor_scipy(tmp_path):
    source = make_pipeline(TfidfVectorizer(), SVC()).fit(WORDS * 3, np.arange(3 * len(WORDS)) % len(WORDS))
    approxsvm.compile(source).save(tmp_path / "model.asvm")
    program = (
        "import sys, approxsvm\n"
        "predictor = approxsvm.Predictor(sys.argv[1])\n"
        "print([int(predictor.predict_one(word)) for word in sys.argv[2:]])\n"
        "assert not {'sklearn', 'scipy'} & set(sys.modules)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "model.asvm"), *WORDS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(source.predict(WORDS).tolist())
