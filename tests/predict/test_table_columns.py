"""Frames for a ColumnTransformer: columns are matched by name; dropped columns may contain text or NaN, or be absent.

Each frame is passed to every interface, and every answer is the source's.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import InputError, UnsupportedModelError

N_ROWS = 120
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "name": [f"passenger {k}" for k in range(N_ROWS)],
        "age": RNG.normal(40.0, 10.0, N_ROWS),
        "sex": np.where(np.arange(N_ROWS) % 3 == 0, "male", "female"),
        "fare": RNG.gamma(2.0, 10.0, N_ROWS),
        "deck": RNG.normal(size=N_ROWS),
    }
)
USED = ["age", "fare"]
Y = (FRAME["age"] / 10 + RNG.normal(size=N_ROWS) > FRAME["fare"] / 8).to_numpy()


def scaled(*steps: Any) -> Any:
    """Return a pipeline that scales two columns and drops the text and a numeric column."""
    return make_pipeline(ColumnTransformer([("scale", StandardScaler(), ["fare", "age"])]), *steps)


SOURCES = {
    "two columns": scaled(SVC()),
    "named to be dropped": make_pipeline(
        ColumnTransformer([("no", "drop", ["name", "sex", "deck"])], remainder=StandardScaler()), SVC()
    ),
    "behind a step that looks at nothing": make_pipeline(FunctionTransformer(), scaled(SVC())),
    "an ensemble": CalibratedClassifierCV(make_pipeline("passthrough", scaled(SVC())), cv=2),
    "a regression": make_pipeline(
        make_column_transformer((FunctionTransformer(np.log1p), ["fare"]), ("passthrough", [1]), (PCA(1), USED)), SVR()
    ),
}
# Frames that a source reads as the same rows.
FRAMES = {
    "as fitted": FRAME,
    "in another order": FRAME[FRAME.columns[::-1]],
    "with more columns": FRAME.assign(ticket="A/5", cabin=1)[["cabin", *FRAME.columns, "ticket"]],
    "without the others": FRAME[["fare", "age"]],
    "NaN and infinite": FRAME.assign(name=None, sex=np.nan, deck=[np.inf, -np.inf] * (N_ROWS // 2)),
    "integers": FRAME.assign(name=1, sex=2, deck=3),
}


@pytest.fixture(scope="module", params=SOURCES)
def fitted(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    source = SOURCES[request.param]
    source.fit(FRAME, FRAME["age"] if request.param == "a regression" else Y)
    return source, approxsvm.compile(source, FRAME)


def test_frames_that_the_source_takes(fitted: tuple[Any, Any], tmp_path: Path) -> None:
    """Check frames, Arrow tables and files: other columns are not read."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is the extra arrow")
    from pyarrow import parquet

    source, fast = fitted
    expected, numbers, bounds = source.predict(FRAME), fast.predict(FRAME), fast.error_bound(FRAME)
    predictor = approxsvm.Predictor(fast.artifact)
    output = "value" if fast.artifact.task == "regression" else "label"
    assert fast.feature_names_in_.tolist() == list(FRAME.columns)
    if output == "label":
        np.testing.assert_array_equal(numbers, expected)
    else:
        assert (np.abs(numbers - expected) <= bounds + 1e-9).all()
    for frame in FRAMES.values():
        np.testing.assert_array_equal(source.predict(frame), expected)
        for model in (fast, predictor):
            np.testing.assert_array_equal(model.predict(frame), numbers)
            np.testing.assert_array_equal(model.error_bound(frame), bounds)
            np.testing.assert_array_equal(model.certified(frame), fast.certified(FRAME))
        table = pa.Table.from_pandas(frame, preserve_index=False)
        assert predictor.predict_arrow(table)[output].to_pylist() == numbers.tolist()
        assert approxsvm.compile(source, frame).artifact.data == fast.artifact.data
    parquet.write_table(table, tmp_path / "rows.parquet")
    FRAMES["NaN and infinite"].to_csv(tmp_path / "rows.csv", index=False)
    for file in ("rows.parquet", "rows.csv"):
        approxsvm.score_dataset(fast, tmp_path / file, tmp_path / "answers.parquet")
        found = parquet.read_table(tmp_path / "answers.parquet")[output].to_pylist()
        assert found == numbers.tolist() if output == "label" else np.allclose(found, numbers)


@pytest.mark.parametrize("gap", ["no gap", np.nan, None])
@pytest.mark.parametrize("missing", [np.nan, "F"])
def test_nulls_of_texts(missing: Any, gap: Any) -> None:
    polars, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    texts = pd.Series(np.where(np.arange(60) % 3, "M", "F"), dtype=object)
    if gap != "no gap":
        texts[:7] = gap
    y = np.arange(60) % 2
    impute = SimpleImputer(missing_values=missing, strategy="most_frequent")
    encode = make_pipeline(impute, OneHotEncoder(handle_unknown="ignore"))
    source = make_pipeline(ColumnTransformer([("texts", encode, ["sex"])]), SVC())
    if missing == "F" and isinstance(gap, float):
        return  # the imputer refuses NaN
    fast = approxsvm.compile(source.fit(pd.DataFrame({"sex": texts}), y))
    values = {"sex": ["M", None, "F"]}
    frame = polars.DataFrame(values)  # scikit-learn reads it directly
    np.testing.assert_allclose(fast.decision_function(frame), source.decision_function(frame), rtol=1e-6)
    for rows in (frame[1:2], frame[:1]):
        np.testing.assert_allclose(fast.decision_function(rows), source.decision_function(rows), rtol=1e-6)
    if missing == "F" and gap == "no gap":  # either NaN, which it refuses, or None, which is another category
        with pytest.raises(InputError, match="NaN"):
            fast.decision_function(pa.table(values))
        with pytest.raises(InputError, match="column 'sex' is null"):
            fast.predict_arrow(pa.table(values))
        return
    own = None if gap is None else np.nan
    expected = source.decision_function(pd.DataFrame({"sex": pd.Series(["M", own, "F"], dtype=object)}))
    np.testing.assert_allclose(fast.decision_function(pa.table(values)), expected, rtol=1e-6)


def test_frames_that_the_source_refuses(fitted: tuple[Any, Any]) -> None:
    source, fast = fitted
    predictor = approxsvm.Predictor(fast.artifact)
    short = FRAME.drop(columns="age")
    for model in (fast, predictor):
        with pytest.raises(InputError, match="there is no column 'age', only 'name', 'sex'"):
            model.predict(short)
        with pytest.raises(InputError, match="several columns 'age'"):
            model.predict(pd.concat([FRAME, FRAME[["age"]]], axis=1))
        with pytest.raises(InputError, match=r"Input X contains NaN\. \(row 7, column 1\)"):
            model.predict(FRAME.assign(age=FRAME["age"].where(np.arange(N_ROWS) != 7)))
        with pytest.raises(InputError, match="row 0: a number is needed in column 'age', got 'old'"):
            model.predict(FRAME.assign(age="old"))
    with pytest.raises(ValueError, match=r"columns are missing: \{'age'\}"):
        source.predict(short)
    with pytest.raises(InputError, match="there is no column 'age'"):
        approxsvm.compile(source, short)
    with pytest.raises(InputError, match="row 0: a number is needed in column 'age', got 'old'"):
        approxsvm.compile(source, FRAME.assign(age="old"))
    with pytest.raises(InputError, match=r"Input X contains infinity\. \(row 0, column 1\)"):
        approxsvm.compile(source, FRAME.assign(age=np.inf))


def test_a_step_that_names_columns_by_position_needs_their_order() -> None:
    """With feature_names_out, a FunctionTransformer renames the columns of any frame."""
    numbers, other = FRAME[["age", "fare"]], FRAME[["fare", "age"]]
    source = make_pipeline(FunctionTransformer(feature_names_out="one-to-one"), scaled(SVC())).fit(numbers, Y)
    fast = approxsvm.compile(source, numbers)
    np.testing.assert_array_equal(fast.predict(numbers), source.predict(numbers))
    assert (source.predict(other) != source.predict(numbers)).any()
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        fast.predict(other)


def test_arrays_go_by_position() -> None:
    """As in scikit-learn, only the number of columns matters, and unused columns may contain anything."""
    rows = FRAME.to_numpy()
    source = make_pipeline(make_column_transformer((StandardScaler(with_mean=False), [3, 1])), SVC()).fit(rows, Y)
    expected = source.predict(rows).tolist()
    fast = approxsvm.compile(source, rows)
    predictor = approxsvm.Predictor(fast.artifact)
    numbers = np.zeros(rows.shape)
    numbers[:, [1, 3]] = rows[:, [1, 3]]
    strange = numbers.copy()
    strange[:, 0], strange[:, 2] = np.nan, np.inf
    for given in (rows, rows.tolist(), FRAME.set_axis(range(5), axis=1), numbers, strange, strange.astype(np.float32)):
        assert fast.predict(given).tolist() == expected
        assert predictor.predict(given).tolist() == expected
    for given in (csr_array(numbers), csr_array(strange)):
        assert fast.predict(given).tolist() == source.predict(given).tolist() == expected
        assert predictor.predict(given).tolist() == expected
    assert [predictor.predict_one(row) for row in strange] == [fast.predict_one(row) for row in strange] == expected
    assert fast.predict_one(["a text", *strange[0, 1:].tolist()]) == expected[0]
    for model, message in (
        (source, "X has feature names, but StandardScaler was fitted without"),
        (fast, "X has feature names, but CompiledSVC was fitted without"),
        (predictor, "by position, the columns 'name', 'age', 'sex', 'fare', 'deck' are taken for features 0 to 4"),
    ):
        with pytest.warns(UserWarning, match=message) as caught:
            assert model.predict(FRAME).tolist() == expected
        assert len(caught) == 1
    for model in (fast, predictor, source):
        with pytest.raises(ValueError, match="4"):
            model.predict(rows[:, :4])
    for wrong in (rows[0], rows[np.newaxis]):
        with pytest.raises(InputError, match="X has shape"):
            fast.predict(wrong)
    strange[5, 3] = np.nan
    for given in (strange, csr_array(strange), csr_array(strange).astype(np.float32)):
        for model in (fast, predictor):
            with pytest.raises(InputError, match=r"Input X contains NaN\. \(row 5, column 3\)"):
                model.predict(given)
    with pytest.raises(InputError, match="NaN or infinity"):
        fast.predict_one(strange[5])


def test_the_model_is_read_before_rows_are_looked_at() -> None:
    """The message names the unsupported step rather than its rows."""
    lengths = FunctionTransformer(lambda texts: np.vectorize(len)(np.asarray(texts, object)), validate=False)
    for step, rows in (
        (make_column_transformer((lengths, ["sex"]), ("passthrough", USED)), FRAME),
        (KNNImputer(), FRAME[USED].where(FRAME[USED] > 30).to_numpy()),
        (make_column_transformer((KNNImputer(), ["age"])), FRAME.assign(age=FRAME["age"].where(FRAME["age"] > 30))),
    ):
        source = make_pipeline(step, SVC()).fit(rows, Y)
        with pytest.raises(UnsupportedModelError, match=r"step '(functiontr|knnimputer).* cannot be folded"):
            approxsvm.compile(source, rows)


def test_the_command_line_takes_the_table(tmp_path: Path) -> None:
    import joblib

    source = scaled(SVC()).fit(FRAME, Y)
    joblib.dump(source, tmp_path / "model.joblib")
    FRAMES["with more columns"].to_csv(tmp_path / "rows.csv", index=False)
    FRAME[["fare", "age"]].to_csv(tmp_path / "few.csv", index=False)
    (tmp_path / "bare.csv").write_text("1.5,2.5\n3.5,4.5\n")
    model, artifact = str(tmp_path / "model.joblib"), str(tmp_path / "model.asvm")
    convert = ["convert-model", model, "--trust", "-o", artifact, "--data", str(tmp_path / "few.csv")]
    verify = ["verify", artifact, "--against", model, "--trust", "--data"]
    for command in (convert, [*verify, str(tmp_path / "rows.csv")]):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.stderr
    done = CliRunner().invoke(main, [*verify, str(tmp_path / "bare.csv")])
    assert (done.exit_code, done.stderr) == (1, "approxsvm: --data has shape (2, 2), expected (n_rows, 5)\n")


def test_the_command_line_finds_the_columns_of_a_model_without_names(tmp_path: Path) -> None:
    import joblib

    numbers = FRAME[USED].to_numpy()
    source = SVC(gamma=0.01).fit(numbers, Y)
    joblib.dump(source, tmp_path / "model.joblib")
    numbered = pd.DataFrame(numbers, columns=["f0", "f1"])
    numbered[["f1", "f0"]].to_csv(tmp_path / "numbered.csv", index=False)
    numbered.drop(columns="f1").assign(id=range(N_ROWS)).to_csv(tmp_path / "short.csv", index=False)
    FRAME[USED].to_csv(tmp_path / "named.csv", index=False)
    model, artifact = str(tmp_path / "model.joblib"), str(tmp_path / "model.asvm")

    def convert(name: str, *options: str) -> Any:
        data = str(tmp_path / name)
        command = ["convert-model", model, "--trust", "-o", artifact, "--data", data, *options]
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            return CliRunner().invoke(main, command)

    expected = approxsvm.compile(source, numbers).artifact.data
    for name, options, told in (
        ("numbered.csv", [], ""),
        (
            "named.csv",
            [],
            "approxsvm: warning: the model has no names for its features: by position, the columns 'age', 'fare' are",
        ),
        ("named.csv", ["--columns", "age,fare"], ""),
    ):
        done = convert(name, *options)
        assert done.exit_code == 0, done.stderr
        assert done.stderr.startswith(told)
        assert done.stderr.count("\n") == bool(told)
        assert Path(artifact).read_bytes() == expected
    done = convert("short.csv")
    message = "approxsvm: there is no column 'f1', but other features have such names; choose --columns\n"
    assert (done.exit_code, done.stderr) == (1, message)


def test_lists_with_anything_where_nobody_looks() -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is the extra arrow")
    fast = approxsvm.compile(scaled(SVC()).fit(FRAME, Y), FRAME)
    rows = np.full((N_ROWS, 5), np.nan)
    rows[:, [1, 3]] = FRAME[USED]
    rows[3, 3] = np.inf
    predictor = approxsvm.Predictor(fast.artifact)
    for kind in (pa.list_(pa.float64()), pa.list_(pa.float64(), 5)):
        table = pa.table({"v": pa.array(list(rows), kind)})
        found = predictor.predict_arrow(table, columns=["v"], on_error="skip")
        assert found["label"].to_pylist() == np.delete(fast.predict(FRAME), 3).tolist()
        with pytest.raises(InputError, match="row 3: column 'v' is infinite"):
            predictor.predict_arrow(table, columns=["v"])


def test_libsvm_text_with_unused_features(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is the extra arrow")
    fast = approxsvm.compile(scaled(SVC()).fit(FRAME, Y), FRAME)
    text = "".join(f"0 1:inf 2:{age!r} 3:nan 4:{fare!r}\n" for age, fare in FRAME[USED].to_numpy().tolist())
    (tmp_path / "rows.svm").write_text(text)
    scored = approxsvm.score_dataset(fast, tmp_path / "rows.svm", tmp_path / "a.csv", on_error="null")
    assert (scored.n_rows, scored.n_bad) == (N_ROWS, 0)
    (tmp_path / "rows.svm").write_text(text + "0 1:inf 2:nan 3:1\n")
    scored = approxsvm.score_dataset(fast, tmp_path / "rows.svm", tmp_path / "a.csv", on_error="null")
    assert scored.bad_rows == [f"{tmp_path / 'rows.svm'}, line {N_ROWS + 1}: the feature in column 1 is NaN"]


def test_a_saved_flag_says_which_models_take_frames_so(tmp_path: Path) -> None:
    """Every column is used here, and none is changed, so the models differ only in the flag."""
    frame = FRAME[["age", "fare"]]
    keep = make_column_transformer(("passthrough", ["age", "fare"]))
    source = make_pipeline(keep, SVC(gamma=0.01)).fit(frame, Y)
    plain = SVC(gamma=0.01).fit(frame, Y)
    for model, by_column in ((source, True), (plain, False)):
        approxsvm.compile(model, frame).save(tmp_path / "model.asvm")
        fast = approxsvm.load(tmp_path / "model.asvm")
        assert fast.artifact.raw_columns.by_column == by_column
        if by_column:
            assert fast.predict(frame[["fare", "age"]]).tolist() == model.predict(frame).tolist()
        else:
            with pytest.raises(ValueError, match="feature names should match"):
                fast.predict(frame[["fare", "age"]])
