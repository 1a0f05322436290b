"""Text pipelines: the artifact stores the vectorizer as data, and every interface accepts texts or sparse rows."""

from __future__ import annotations

import json
import re

import joblib
import numpy as np
import pandas as pd
import pytest
from artifact_changes import changed, content
from click.testing import CliRunner
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.svm import SVC, SVR, LinearSVC

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import ArtifactError, InputError, ModelFormatError, UnsupportedModelError
from approxsvm.frontends import read_any

WORDS = ["apple", "Pear", "plum", "the", "naïve", "car", "bus", "train", "über", "don't", "x", "2026", "a-b"]
RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice(WORDS, RNG.integers(1, 12))) for _ in range(120)]
Y = np.array(["car" in text or "bus" in text for text in TEXTS]).astype(str)
OTHERS = ["", "unknown words only", "Apple apple APPLE", "naive car", "a b c", "über\tBUS\n!", "car" * 300]


def compiled_pair(steps, y=Y):
    source = make_pipeline(*steps).fit(TEXTS, y)
    return source, approxsvm.compile(source, TEXTS)


def test_verify_and_reports_ask_behind_the_vectorizer_about_sparse_rows():
    words = ColumnTransformer([("some", Normalizer(), [0, 2])], sparse_threshold=1.0)  # it accepts no dense rows
    source, compiled = compiled_pair([TfidfVectorizer(), words, SVC()])
    assert approxsvm.verify(compiled, source, TEXTS[:5]).kept
    assert compiled.report(TEXTS[:5], against=source).evidence.against.judged.verification.kept


def test_tables():
    from approxsvm.duckdb import register

    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is the extra arrow")
    source, compiled = compiled_pair([TfidfVectorizer(), SVC()])
    predictor, labels = approxsvm.Predictor(compiled.artifact.data), source.predict(TEXTS).tolist()
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        table = pa.table({"id": range(len(TEXTS)), "text": pa.array(TEXTS, kind)})
        assert predictor.predict_arrow(table, columns=["text"])["label"].to_pylist() == labels
        for X in (table["text"], table["text"].combine_chunks(), pd.Series(TEXTS, dtype="category")):
            assert predictor.predict(X).tolist() == labels
    missing = pa.table({"text": [*TEXTS[:5], None, *TEXTS[6:]]})
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed; it is the extra duckdb")
    with duckdb.connect() as connection:
        register(connection, "svm", compiled)
        found = connection.sql("SELECT svm(text) FROM missing").fetchall()
    assert [label for (label,) in found] == [*labels[:5], None, *labels[6:]]
    with pytest.raises(InputError, match="row 5: column 'text' is null"):
        predictor.predict_arrow(missing)
    found = predictor.predict_arrow(missing, on_error="null")["label"].to_pylist()
    assert found == [*labels[:5], None, *labels[6:]]


def test_a_missing_text_is_none_behind_imputers():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is the extra arrow")
    _, compiled = compiled_pair([TfidfVectorizer(), SimpleImputer(), SVC()])
    with pytest.raises(InputError, match="row 1: column 'text' is null"):
        approxsvm.Predictor(compiled.artifact.data).predict_arrow(pa.table({"text": ["car", None]}))


def test_terms_and_weights_are_those_of_the_model_behind():
    """Models are refused if the width differs, or if weights that the vectorizer claims to have are missing."""
    source, _ = compiled_pair([CountVectorizer(), TfidfTransformer(use_idf=False), SVC()])
    source[1].set_params(use_idf=True)
    with pytest.raises(ModelFormatError, match="has use_idf, but no idf_"):
        approxsvm.compile(source)
    source, _ = compiled_pair([HashingVectorizer(n_features=64), SVC()])
    source[0].set_params(n_features=32)
    with pytest.raises(ModelFormatError, match="makes 32 columns, but the model takes 64"):
        approxsvm.compile(source)


def test_searches_and_regressions_behind_a_vectorizer(tmp_path):
    search = GridSearchCV(make_pipeline(CountVectorizer(), SVC()), {"svc__C": [1.0, 2.0]}, cv=2).fit(TEXTS, Y)
    assert (approxsvm.compile(search).predict(TEXTS) == search.predict(TEXTS)).all()
    lengths = np.array([float(len(text)) for text in TEXTS])
    source, _ = compiled_pair([CountVectorizer(analyzer="char"), SVR()], lengths)
    model, artifact = str(tmp_path / "model.joblib"), str(tmp_path / "m.asvm")
    joblib.dump(source, model)
    done = CliRunner().invoke(main, ["convert-model", model, "-o", artifact, "--trust"])
    assert done.exit_code == 0, done.output
    assert np.abs(approxsvm.load(artifact).predict(TEXTS) - source.predict(TEXTS)).max() < 1e-3


def test_what_else_looks_at_texts_is_refused():
    lengths = FunctionTransformer(lambda texts: np.array([[len(text)] for text in texts]))
    union = FeatureUnion([("words", CountVectorizer()), ("lengths", lengths)])
    with pytest.raises(UnsupportedModelError, match=r"some estimators inside this .*FeatureUnion take texts, others"):
        approxsvm.compile(make_pipeline(union, SVC()).fit(TEXTS, Y))
    table = pd.DataFrame({"text": TEXTS})
    beside = make_pipeline(ColumnTransformer([("words", CountVectorizer(), "text")]), SVC()).fit(table, Y)
    with pytest.raises(
        UnsupportedModelError, match=r"'words' .CountVectorizer. takes the whole texts of one of several columns"
    ):
        approxsvm.compile(beside)


@pytest.mark.parametrize(
    ("vectorizer", "message"),
    [
        (TfidfVectorizer(tokenizer=str.split, token_pattern=None), "tokenizer"),
        (CountVectorizer(preprocessor=str.lower), "preprocessor"),
        (HashingVectorizer(analyzer=str.split, n_features=8), "analyzer"),
    ],
)
def test_what_calls_functions_is_refused(vectorizer, message):
    source = make_pipeline(vectorizer, SVC()).fit(TEXTS, Y)
    words = f"has {message}=.*which no artifact can hold; compile the steps after it alone"
    with pytest.raises(UnsupportedModelError, match=words):
        approxsvm.compile(source)


def test_vectorizers_elsewhere_are_refused():
    inside = CalibratedClassifierCV(make_pipeline(CountVectorizer(), LinearSVC()), cv=2).fit(TEXTS, Y)
    for source in (inside, inside.calibrated_classifiers_[0].estimator):
        with pytest.raises(UnsupportedModelError, match=r"step 'countvectorizer' .*cannot be folded into the model"):
            read_any(source)

    beside = make_pipeline(ColumnTransformer([("texts", TfidfVectorizer(), 0), ("numbers", "passthrough", [1])]), SVC())
    table = np.column_stack([np.array(TEXTS, object), np.arange(len(TEXTS))])
    with pytest.raises(UnsupportedModelError, match=r"takes the whole texts of one of .* compile\(pipe\[-1\]\)"):
        read_any(beside.fit(table, Y))
    rows = beside[:-1].transform(table)
    assert np.array_equal(approxsvm.compile(beside[-1]).predict(rows), beside.predict(table))

    class Mine(CountVectorizer):
        def transform(self, texts):
            return super().transform(texts) * 2

    with pytest.raises(UnsupportedModelError, match="transform"):
        approxsvm.compile(make_pipeline(Mine(), SVC()).fit(TEXTS, Y))


def test_edited_attributes_are_told():
    source, _ = compiled_pair([TfidfVectorizer(), SVC()])
    source[0].vocabulary_ = {**source[0].vocabulary_, "apple": 99}
    with pytest.raises(ModelFormatError, match="the columns of vocabulary_ are not 0 to"):
        approxsvm.compile(source)
    source, _ = compiled_pair([TfidfVectorizer(), SVC()])
    source[0]._tfidf.idf_ = source[0].idf_[1:]
    with pytest.raises(ModelFormatError, match="idf_ has shape"):
        approxsvm.compile(source)
    source, before = compiled_pair([TfidfVectorizer(), SVC()])
    for name, value in (("binary", True), ("lowercase", False), ("ngram_range", (1, 2)), ("analyzer", "char")):
        setattr(source[0], name, value)
        compiled = approxsvm.compile(source)
        assert (compiled.predict(TEXTS + OTHERS) == source.predict(TEXTS + OTHERS)).all()
        assert compiled.artifact.text_rows.written() != before.artifact.text_rows.written()


def test_what_is_no_text_is_named():
    _, compiled = compiled_pair([TfidfVectorizer(), SVC()])
    for value in (None, np.nan, 5):
        with pytest.raises(InputError, match="row 2: a text is needed, got "):
            compiled.predict([*TEXTS[:2], value])
    table = pd.DataFrame({"id": 7, "text": TEXTS})
    for model in (compiled, approxsvm.Predictor(compiled.artifact.data)):
        for X, got in ((TEXTS[0], repr(TEXTS[0])[:60]), (None, "None"), (5, "5")):
            with pytest.raises(InputError, match=f"X is {re.escape(got)}, but must be a list, an array or a column"):
                model.predict(X)
        for X in (table, table.values, table.values.tolist()):
            with pytest.raises(
                InputError, match=r"X has rows of several values, the first \[7, '.*, but must be a list"
            ):
                model.predict(X)
        with pytest.raises(InputError, match="row 0: a text is needed, got None"):
            model.predict([None, TEXTS[0]])
        assert model.predict([]).tolist() == []
    with pytest.raises(InputError, match="X is 'one', but must be a list"):
        approxsvm.compile(make_pipeline(CountVectorizer(), SVC()).fit(TEXTS, Y), "one")


def test_broken_sections_are_told():
    _, compiled = compiled_pair([CountVectorizer(), SVC()])
    whole = json.loads(compiled.artifact.text_rows.written())
    known = whole["steps"][0]
    twice = {"side_by_side": [whole["steps"], whole["steps"]]}
    eval_ = {"steps": [{**known, "class": "eval"}]}
    for wrong in (b"", b"{}", b"[]", b'{"steps": []}', eval_, b'{"side_by_side": []}', twice, {**whole, **twice}):
        section = wrong if isinstance(wrong, bytes) else json.dumps(wrong).encode()
        broken = approxsvm.Predictor(changed(content({"vectorizers": section}), compiled.artifact))
        with pytest.raises(ArtifactError, match=r"section vectorizers does not follow models/FORMAT\.md"):
            broken.predict(TEXTS)
