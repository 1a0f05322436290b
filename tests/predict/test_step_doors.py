"""A mixed table with missing values: NaN is a value where a step replaces it, and refused by name elsewhere."""

from __future__ import annotations

import csv

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from click.testing import CliRunner
from predict_tool import failure, needs_tool, predict
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer
from sklearn.svm import SVC
from test_steps import EXACT, ROUNDED, WITH_NAN, table

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import InputError, UnsupportedModelError

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is the extra arrow")
NAMES = ["age", "hours", "gain", "job", "school", "loss"]
BAD = "a known value is needed in column 3, got 9"


@pytest.fixture(scope="module")
def mixed():
    """Of numbers that may be missing, a code that may, and one that may not; rows, and rows that nobody takes."""
    X, y = table(missing=True)
    X[:, 4] = np.nan_to_num(X[:, 4])
    frame = pd.DataFrame(X, columns=NAMES)
    numbers = make_pipeline(SimpleImputer(add_indicator=True), PowerTransformer())
    codes = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    columns = [
        ("a", numbers, ["age", "hours", "gain", "loss"]),
        ("b", codes, ["job"]),
        ("c", "passthrough", ["school"]),
    ]
    pipeline = make_pipeline(ColumnTransformer(columns), SVC(gamma=0.3)).fit(frame, y)
    return pipeline, frame, pipeline.predict(frame)


@pytest.fixture(scope="module")
def compiled(mixed, tmp_path_factory):
    made = approxsvm.compile(mixed[0], mixed[1])
    path = tmp_path_factory.mktemp("mixed") / "mixed.asvm"
    made.save(path)
    return made, path


def changed(frame, row, name, value):
    frame = frame.copy()
    frame.loc[row, name] = value
    return frame


def test_frames_and_arrays(mixed, compiled):
    _, frame, labels = mixed
    made, path = compiled
    assert (made.predict(frame) == labels).all()
    assert (approxsvm.Predictor(path).predict(frame.to_numpy()) == labels).all()
    with pytest.raises(InputError, match=f"row 2: {BAD}"):
        made.predict(changed(frame, 2, "job", 9.0))
    with pytest.raises(InputError, match=r"contains NaN. \(row 2, column 4\)"):
        made.predict(changed(frame, 2, "school", np.nan))


def test_arrow_nulls(mixed, compiled):
    _, frame, labels = mixed
    arrow = pa.Table.from_pandas(frame)
    assert arrow["age"].null_count > 0
    predictor = approxsvm.Predictor(compiled[1])
    assert predictor.predict_arrow(arrow)["label"].to_pylist() == labels.tolist()
    bad = changed(changed(frame, 2, "job", 9.0), 5, "school", np.nan)
    found = predictor.predict_arrow(pa.Table.from_pandas(bad), on_error="null")["label"].to_pylist()
    assert (found[2], found[5]) == (None, None)
    assert found[:2] + found[6:] == labels[:2].tolist() + labels[6:].tolist()
    with pytest.raises(InputError, match="column 'school' is null"):
        predictor.predict_arrow(pa.Table.from_pandas(changed(frame, 5, "school", np.nan)))


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # pandas 2.0 writes a NaN
def test_files_of_text(mixed, compiled, tmp_path):
    _, frame, labels = mixed
    given, answers = tmp_path / "rows.csv", tmp_path / "answers.csv"

    def scored(rows):
        rows.to_csv(given, index=False)
        return CliRunner().invoke(main, ["score", str(compiled[1]), str(given), "-o", str(answers)])

    assert scored(frame).exit_code == 0
    assert pd.read_csv(answers)["label"].tolist() == labels.tolist()
    text = scored(changed(frame.astype(object), 3, "age", "old"))
    assert text.exit_code == 1
    assert "column 'age' holds 'old', which is not a number" in text.output
    assert BAD in scored(changed(frame, 3, "job", 9.0)).output


def test_duckdb_nulls(mixed, compiled):
    duckdb = pytest.importorskip("duckdb")
    from approxsvm.duckdb import register

    _, frame, labels = mixed
    with duckdb.connect() as connection:
        connection.register("rows", pa.Table.from_pandas(changed(frame, 5, "school", np.nan)))
        register(connection, "mixed", compiled[1])
        query = f"SELECT mixed({', '.join(NAMES)}) FROM rows"
        found = [row[0] for row in connection.sql(query).fetchall()]
        register(connection, "mixed", compiled[1], on_error="null")
        assert [row[0] for row in connection.sql(query).fetchall()] == found
    assert found == [None if k == 5 else label for k, label in enumerate(labels.tolist())]


def test_reports_of_rows_with_nan(mixed, compiled, tmp_path):
    pipeline, frame, labels = mixed
    report = compiled[0].report(frame, labels, against=pipeline, max_rows=50)
    report.save(tmp_path / "report.html")
    assert "looks 6 features up in tables" in (tmp_path / "report.html").read_text()


@needs_tool
def test_the_tool_takes_nan(mixed, compiled, tmp_path):
    _, frame, labels = mixed
    rows, out = tmp_path / "rows.txt", tmp_path / "out.txt"

    def write(values):
        with rows.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([0, *row] for row in values.to_numpy().tolist())

    write(frame)
    predict("--dense", rows, compiled[1], out)
    assert out.read_text().split() == labels.astype(str).tolist()
    write(changed(frame, 2, "job", 9.0))
    assert failure("--dense", rows, compiled[1], out).endswith(f"line 3: {BAD}")
    write(changed(frame, 2, "school", np.nan))
    assert "the value of feature 5 is nan" in failure("--dense", rows, compiled[1], out)


def test_the_c_library(mixed, compiled):
    runtime_library = pytest.importorskip("runtime_library")
    _, frame, labels = mixed
    model = runtime_library.Runtime(compiled[1])
    assert [model.label(k) for k in model.evaluate(frame.to_numpy(), "labels")[0].ravel()] == labels.tolist()
    with pytest.raises(runtime_library.RuntimeLibraryError, match=f"row 2: {BAD}"):
        model.evaluate(changed(frame, 2, "job", 9.0).to_numpy(), "labels")
    with pytest.raises(runtime_library.RuntimeLibraryError, match="row 2, column 4 is NaN"):
        model.evaluate(changed(frame, 2, "school", np.nan).to_numpy(), "labels")


STEPS = {
    **{f"exact: {name}": (step, False) for name, step in EXACT.items()},
    **{f"missing: {name}": (step, True) for name, step in WITH_NAN.items()},
    **{f"rounded: {name}": (step, False) for name, step in ROUNDED.items()},
}


@pytest.mark.parametrize("category", [0.1, float(2**24 + 1)])
def test_categories_that_are_no_float32_are_refused_where_rows_are(category, tmp_path):
    """A graph of float64 rows finds them; a row of float32 could not."""
    X = np.tile([[1.0], [category], [2.0]], (10, 1))
    pipeline = make_pipeline(OneHotEncoder(), SVC()).fit(X, X[:, 0] == category)
    compiled = approxsvm.compile(pipeline)
    graph = compiled.to_onnx(input_type="float64")
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    assert (session.run(["label"], {"X": X})[0] == (X[:, 0] == category)).all()
    refused = rf"column 0 has the value {category!r}, which is no float32.*: export with input_type='float64'"
    with pytest.raises(UnsupportedModelError, match=refused):
        compiled.to_onnx()
    with pytest.raises(UnsupportedModelError, match=r"which is no float32.*: train on numbers that are"):
        compiled.export_c(tmp_path / "model.h")
