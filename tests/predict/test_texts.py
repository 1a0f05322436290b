"""Text columns: in every interface, tables get scikit-learn's answers, and codes get the same answers."""

from __future__ import annotations

import re
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder
from sklearn.svm import SVC

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.frames.text_columns import NONE, UNKNOWN, TextColumn
from approxsvm.frontends.sklearn.steps import lookups

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is the extra arrow")
N = 400


def column(rng, values, missing):
    found = rng.choice(np.array(values, dtype=object), N)
    found[rng.random(N) < missing] = np.nan
    return found


def texts_only(step, *, missing=0.1, values=("a", "b", "ccc", "é")):
    """Return a source with an encoder for a text column and a numeric column, and its table."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"t": column(rng, values, missing), "x": rng.normal(size=N)}).astype({"t": object})
    labels = (frame["x"] + (frame["t"] == "a") - (frame["t"] == "b") > 0).to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = make_pipeline(ColumnTransformer([("t", step, ["t"]), ("x", "passthrough", ["x"])]), SVC(gamma=0.5))
        return source.fit(frame, labels), frame


def agrees(source, compiled, rows):
    """Check row by row that the compiled model refuses what the source refuses, and otherwise predicts its labels."""
    n_refused = 0
    for k in range(len(rows)):
        row = rows.iloc[[k]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wanted = source.predict(row)
            except (ValueError, TypeError):
                n_refused += 1
                with pytest.raises(InputError):
                    compiled.predict(row)
                continue
        assert compiled.predict(row).tolist() == wanted.tolist(), row
        map_ = compiled.artifact.input_map
        mapped = map_.apply(compiled._rows(row))
        own = source[:-1].transform(row)
        assert (mapped == (own.toarray() if hasattr(own, "toarray") else own)).all(), row
    return n_refused


FREQUENT = SimpleImputer(strategy="most_frequent")


def test_none_is_a_category_of_its_own_where_the_source_has_it_so():
    source, frame = texts_only(OneHotEncoder(handle_unknown="ignore"), missing=0.0)
    frame.loc[::7, "t"] = None
    source.fit(frame, frame["x"] > 0)
    compiled = approxsvm.compile(source)
    assert agrees(source, compiled, frame.iloc[:15]) == 0
    assert compiled.artifact.texts[0].null == NONE  # in tables, which have one kind of missing value
    nan = frame.iloc[[0]].assign(t=np.nan)
    assert (compiled.artifact.input_map.apply(compiled._rows(nan))[0, :5] == 0).all()
    arrow = pa.Table.from_pandas(frame)
    assert arrow["t"].null_count > 0
    labels = approxsvm.Predictor(compiled.artifact).predict_arrow(arrow)["label"].to_pylist()
    assert labels == source.predict(frame).tolist()


@pytest.mark.parametrize("none_rows", [slice(200, None, 2), slice(0, 100, 2)], ids=["late", "early"])
def test_nulls_of_members_of_which_one_saw_no_none(none_rows):
    source, frame = texts_only(OneHotEncoder(handle_unknown="ignore"), missing=0.0)
    frame.loc[frame.index[none_rows], "t"] = None
    labels = frame["t"].isna() ^ (frame["x"] > 1)
    ensemble = CalibratedClassifierCV(source, cv=KFold(4)).fit(frame, labels)
    compiled = approxsvm.compile(ensemble, frame)
    answers = approxsvm.Predictor(compiled.artifact).predict_arrow(pa.Table.from_pandas(frame))["label"].to_pylist()
    assert answers == ensemble.predict(frame).tolist()


@pytest.mark.parametrize(
    ("encoder", "every"),  # None is the most frequent value, or rare
    [(OneHotEncoder(), 3), (OneHotEncoder(handle_unknown="ignore"), 9), (TargetEncoder(), 9)],
    ids=str,
)
def test_nulls_are_none_behind_an_imputer_of_nan(encoder, every):
    source, frame = texts_only(make_pipeline(SimpleImputer(strategy="most_frequent"), encoder), missing=0.0)
    frame.loc[::every, "t"] = None
    source.fit(frame, frame["t"].isna() ^ (frame["x"] > 1))
    compiled = approxsvm.compile(source, frame)
    answers = approxsvm.Predictor(compiled.artifact).predict_arrow(pa.Table.from_pandas(frame))["label"].to_pylist()
    assert answers == source.predict(frame).tolist() == compiled.predict(frame).tolist()


def test_arrays_of_objects_and_lists():
    rng = np.random.default_rng(4)
    rows = np.empty((N, 3), dtype=object)
    rows[:, 0], rows[:, 1], rows[:, 2] = rng.choice(["x", "y"], N), rng.normal(size=N), rng.choice([None, "k", "l"], N)
    encoded = make_column_transformer((OneHotEncoder(), [0, 2]), remainder="passthrough")
    source = make_pipeline(encoded, SVC()).fit(rows, rows[:, 1] > 0)
    compiled = approxsvm.compile(source, rows)
    labels = source.predict(rows)
    predictor = approxsvm.Predictor(compiled.artifact)
    for given in (rows, rows.tolist()):
        assert (compiled.predict(given) == labels).all()
        assert (predictor.predict(given) == labels).all()
    assert [compiled.predict_one(row) for row in rows[:20]] == labels[:20].tolist()
    assert [predictor.predict_one(row.tolist()) for row in rows[:20]] == labels[:20].tolist()
    codes = compiled._rows(rows)
    assert (compiled.predict(codes) == labels).all()
    assert (compiled.predict(list(codes)) == labels).all()
    assert compiled.predict_one(codes[0]) == labels[0]
    for given in (codes.tolist(), codes.astype(object)):  # these contain values, and no category is a number
        with pytest.raises(InputError, match=r"row 0: a known category is needed in column 0, got [01]\.0"):
            compiled.predict(given)
        with pytest.raises(InputError, match=r"row 0: a known category is needed in column 0, got [01]\.0"):
            predictor.predict_one(given[0])
    with pytest.raises(InputError, match=r"row 2: a known category is needed in column 0, got 'q'"):
        compiled.predict([*rows[:2].tolist(), ["q", 1.0, "k"]])
    with pytest.raises(InputError, match=r"row 0: a known category is needed in column 2, got \[1\]"):
        compiled.predict([["x", 1.0, [1]]])


@pytest.mark.parametrize(
    ("by_column", "encoder"), [(True, OneHotEncoder(handle_unknown="ignore")), (False, OneHotEncoder())], ids=str
)
def test_texts_are_refused_where_numbers_are_categories(encoder, by_column):
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"k": rng.choice([0, 1, 2**53], N), "m": rng.choice([0, 1], N)})
    first = ColumnTransformer([("k", encoder, ["k", "m"])]) if by_column else encoder
    source = make_pipeline(first, SVC()).fit(frame, rng.integers(0, 2, N))
    compiled = approxsvm.compile(source, frame)
    predictor = approxsvm.Predictor(compiled.artifact)
    for value in ("1", " 1 ", "1.0", "nan", "\N{FULLWIDTH DIGIT ONE}", b"1", 2**53 + 1, np.int64(2**53 + 1)):
        odd = pd.DataFrame({"k": np.array([1, value], dtype=object), "m": [0, 1]})
        with pytest.raises(InputError, match=f"row 1: a number is needed in column 'k', got {re.escape(repr(value))}"):
            compiled.predict(odd)
        with pytest.raises(InputError, match="row 1: a number is needed in column 'k', got"):
            predictor.predict(odd)
        with pytest.raises(InputError, match="row 0: a number is needed in column 'k', got"):
            predictor.predict_one([value, 1])
    with pytest.raises(InputError, match="row 0: a number is needed in column 'k', got 9007199254740993"):
        compiled.predict(pd.DataFrame({"k": [2**53 + 1], "m": [0]}))
    with pytest.raises(InputError, match="row 0: a number of float64 is needed in column 'k', got 9007199254740993"):
        compiled.predict(csr_array(np.array([[2**53 + 1, 0]])))
    with pytest.raises(InputError, match="row 0: column 'k' holds 9007199254740993, which float64 rounds"):
        approxsvm.Predictor(compiled.artifact.data).predict_arrow(pa.table({"k": [2**53 + 1], "m": [0]}))
    objects = frame.astype(object)
    assert (compiled.predict(objects) == source.predict(frame)).all()
    assert (predictor.predict(objects.to_numpy().tolist()) == source.predict(frame)).all()


def test_refused_cells_are_named(tmp_path):
    source, frame = texts_only(OneHotEncoder(), missing=0.0)
    compiled = approxsvm.compile(source)
    predictor = approxsvm.Predictor(compiled.artifact)
    bad, said = frame.copy(), "column 't' holds 'Never', which is not a category of the model"
    bad.loc[3, "t"] = "Never"
    with pytest.raises(InputError, match=rf"row 3: {said}"):
        predictor.predict_arrow(pa.Table.from_pandas(bad))
    with pytest.raises(InputError, match=r"row 3: a known category is needed in column 't', got 'Never'"):
        compiled.predict(bad)
    with pytest.raises(InputError, match="column 't' is double, but the model takes texts there"):
        predictor.predict_arrow(pa.Table.from_pandas(frame.assign(t=1.5)))
    compiled.save(tmp_path / "model.asvm")
    bad.to_csv(tmp_path / "rows.csv", index=False)
    args = ["score", str(tmp_path / "model.asvm"), str(tmp_path / "rows.csv"), "-o", str(tmp_path / "out.csv")]
    told = CliRunner().invoke(main, args)
    assert told.exit_code == 1
    assert re.search(rf"row 3: {said}", " ".join(told.output.split()))
    codes = compiled._rows(frame)
    codes[5, 0] = UNKNOWN
    with pytest.raises(InputError, match=r"row 5: a known value is needed in column 0, got -1"):
        predictor.predict(codes)
    odd = frame.iloc[:3].astype({"x": object})
    for value in (pd.NA, pd.NaT, pd.Timestamp("2020-01-01"), 1j, "x"):
        odd.loc[2, "x"] = value
        for model in (compiled, predictor):
            with pytest.raises(InputError, match=r"row 2: a number is needed in column 'x', got "):
                model.predict(odd)


@pytest.mark.parametrize("handle", ["error", "ignore"])
def test_more_categories_than_an_encoder_is_asked_about_at_once(handle, monkeypatch):
    monkeypatch.setattr(lookups, "_PROBED_PER_CALL", 5)
    names = [f"id{k}" for k in range(32)]
    frame = pd.DataFrame({"t": pd.Series([*names, None], dtype=object), "x": np.linspace(-1, 1, 33)})
    columns = [("t", OneHotEncoder(handle_unknown=handle), ["t"]), ("x", "passthrough", ["x"])]
    source = make_pipeline(ColumnTransformer(columns), SVC()).fit(frame, frame["x"] > 0)
    compiled = approxsvm.compile(source, mode="exact")
    mapped = compiled.artifact.input_map.apply(compiled._rows(frame))
    assert (mapped == source[:-1].transform(frame)).all()


@pytest.mark.filterwarnings("ignore:Found unknown categories")
def test_pandas_na_is_missing_to_an_imputer_of_it_alone():
    odd = pd.DataFrame({"t": np.array([pd.NA, None, np.nan, "a"], dtype=object), "x": [0.1, 0.1, 0.1, 0.1]})
    options = {"handle_unknown": "use_encoded_value", "unknown_value": -3}
    for encoder in (
        OneHotEncoder(handle_unknown="ignore"),
        OneHotEncoder(),
        OrdinalEncoder(**options, encoded_missing_value=-7),
    ):
        source, _ = texts_only(encoder)
        agrees(source, approxsvm.compile(source), odd)
    imputer = SimpleImputer(missing_values=pd.NA, strategy="constant", fill_value="b")
    source, _ = texts_only(make_pipeline(imputer, OrdinalEncoder(**options)))
    assert agrees(source, approxsvm.compile(source), odd) == 0


def test_arrow_dictionaries_and_files_of_booleans(tmp_path):
    source, frame = texts_only(OneHotEncoder(), missing=0.0)
    frame["x"] = frame["x"] > 0
    labels = source.fit(frame, frame["x"] ^ (frame["t"] == "a")).predict(frame).tolist()
    compiled = approxsvm.compile(source)
    arrow = pa.Table.from_pandas(frame)
    coded = arrow.set_column(0, "t", arrow["t"].dictionary_encode())
    assert approxsvm.Predictor(compiled.artifact).predict_arrow(coded)["label"].to_pylist() == labels
    assert compiled.predict(arrow).tolist() == labels
    frame.to_csv(tmp_path / "rows.csv", index=False)  # True and False
    approxsvm.score_dataset(compiled, tmp_path / "rows.csv", tmp_path / "out.parquet")
    assert pd.read_parquet(tmp_path / "out.parquet")["label"].tolist() == labels


def test_cells_that_mean_missing_are_categories_where_the_source_has_them(tmp_path):
    source, frame = texts_only(make_pipeline(FREQUENT, OneHotEncoder(handle_unknown="ignore")), values=("NA", "b", "c"))
    compiled = approxsvm.compile(source)
    compiled.save(tmp_path / "model.asvm")
    frame.fillna("").to_csv(tmp_path / "rows.csv", index=False)
    args = ["score", str(tmp_path / "model.asvm"), str(tmp_path / "rows.csv"), "-o", str(tmp_path / "out.csv")]
    assert CliRunner().invoke(main, args).exit_code == 0
    assert pd.read_csv(tmp_path / "out.csv")["label"].tolist() == source.predict(frame).tolist()


def test_what_cannot_be_compiled_is_named():
    source, frame = texts_only(OneHotEncoder(), missing=0.0)
    source.fit(frame.assign(t=frame["t"].map(str.encode)), frame["x"] > 0)
    with pytest.raises(UnsupportedModelError, match="b'a' is a category of column 0"):
        approxsvm.compile(source)
    numbers = frame.assign(t=np.where(frame["x"] > 0, 0.5, 1.5))
    source = make_pipeline(ColumnTransformer([("t", SimpleImputer(), ["t"]), ("x", "passthrough", ["x"])]), SVC())
    source.fit(numbers, frame["x"] > 0)[0].transformers_[0][1].__dict__.update(
        vars(SimpleImputer(missing_values="?", strategy="most_frequent").fit(frame[["t"]]))
    )
    with pytest.raises(UnsupportedModelError, match="texts of column 0 are not looked up by any encoder"):
        approxsvm.compile(source)


def test_codes_and_texts_are_inverse():
    known = TextColumn().with_texts(["b", "a", "é", "\N{PILE OF POO}", "\N{FULLWIDTH TILDE}"])
    assert [text.encode() for text in known.texts] == sorted(text.encode() for text in known.texts)
    values = [*known.texts, None, np.nan, pd.NA, np.float32("nan"), "c", 1, b"a", [], np.str_("a")]
    codes = known.codes(values)
    assert codes.tolist()[:6] == [0, 1, 2, 3, 4, NONE]
    assert np.isnan(codes[[6, 8]]).all()
    assert codes[7] == UNKNOWN  # to encoders
    assert codes.tolist()[9:] == [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 0]
    assert [known.value(code) for code in codes[:6].tolist()] == values[:6]
    assert known.value(UNKNOWN) not in known.texts
    with pytest.raises(UnsupportedModelError, match="is no valid Unicode"):
        known.with_texts(["\ud800"])


@pytest.mark.parametrize("value", [pd.NA, pd.NaT, Decimal("NaN"), np.datetime64("NaT")], ids=repr)
def test_what_may_be_missing_or_unknown_is_refused(value):
    X = np.array([["x"], ["y"], [np.nan], ["z"]] * 20, dtype=object)
    y = X[:, 0] == "x"
    source = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"), SVC())
    compiled = approxsvm.compile(source.fit(X, y))
    X[3, 0] = value  # scikit-learn's imputer treats it as missing or fails, and its encoder treats it as unknown
    for model in (compiled, approxsvm.Predictor(compiled.artifact.data)):
        with pytest.raises(InputError, match="row 3: a text, None or NaN is needed in column 0, got "):
            model.predict(X)
    X[3, 0] = 5.0
    assert (compiled.predict(X) == source.predict(X)).all()


@pytest.mark.parametrize(
    ("encoder", "missing"),
    [
        (OneHotEncoder(handle_unknown="ignore"), {"fill_value": "missing"}),
        (OneHotEncoder(), {}),
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), {"add_indicator": True}),
    ],
    ids=["ignore", "error", "codes"],
)
def test_a_text_in_place_of_missing_values_of_texts_and_numbers_together(encoder, missing):
    """Pipelines for Titanic passengers do this because the passengers' class is a number."""
    rng = np.random.default_rng(0)

    def passengers(n_rows, has_gaps=False):
        port = rng.choice(np.array(["S", "C", "Q", None], object), n_rows)
        ticket = np.where(has_gaps & (rng.random(n_rows) < 0.2), np.nan, rng.integers(1, 4, n_rows))
        return pd.DataFrame({"fare": rng.exponential(30, n_rows), "port": port, "class": ticket})

    X = passengers(120).astype({"class": int})
    front = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["fare"]),
            ("texts", make_pipeline(SimpleImputer(strategy="constant", **missing), encoder), ["port", "class"]),
        ]
    )
    source = make_pipeline(front, SVC()).fit(X, (X["class"] == 3) ^ (X["port"] == "S"))
    fast = approxsvm.compile(source, X)
    for rows in (X, passengers(200), passengers(50, has_gaps=True)):
        if encoder.handle_unknown == "error" and rows["class"].isna().any():
            with pytest.raises(ValueError, match="unknown categories"):
                source.predict(rows)
            with pytest.raises(InputError, match="NaN"):
                fast.predict(rows)
        else:
            assert np.array_equal(fast.predict(rows), source.predict(rows))
            assert fast.certified(rows).mean() > 0.5
