"""Refused cells in a mixed table with missing values: every interface names the row and column."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from click.testing import CliRunner
from predict_tool import failure, libsvm_text, needs_tool
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer
from sklearn.svm import SVC
from test_steps import table

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import InputError, UnsupportedModelError

NAMES = ["age", "hours", "gain", "job", "school", "loss"]
BAD = "a known value is needed in column 3, got 9"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Return rows (numbers and a code that may be missing, a code that may not), the compiled model, and its file."""
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
    made = approxsvm.compile(make_pipeline(ColumnTransformer(columns), SVC(gamma=0.3)).fit(frame, y))
    path = tmp_path_factory.mktemp("mixed") / "mixed.asvm"
    made.save(path)
    return frame, made, path


def changed(frame, row, name, value):
    frame = frame.copy()
    frame.loc[row, name] = value
    return frame


def test_python(mixed):
    frame, made, _ = mixed
    with pytest.raises(InputError, match=f"row 2: {BAD}"):
        made.predict(changed(frame, 2, "job", 9.0))
    with pytest.raises(InputError, match=r"contains NaN. \(row 2, column 4\)"):
        made.predict(changed(frame, 2, "school", np.nan))


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # pandas 2.0 writes a NaN
def test_files_of_text(mixed, tmp_path):
    frame, _, path = mixed
    given, answers = tmp_path / "rows.csv", tmp_path / "answers.csv"
    for name, value, said in (
        ("age", "old", "column 'age' holds 'old', which is not a number"),
        ("job", 9.0, BAD),
    ):
        changed(frame.astype(object), 3, name, value).to_csv(given, index=False)
        told = CliRunner().invoke(main, ["score", str(path), str(given), "-o", str(answers)])
        assert told.exit_code == 1
        assert said in told.output


@needs_tool
def test_the_tool(mixed, tmp_path):
    frame, _, path = mixed
    rows, out = tmp_path / "rows.txt", tmp_path / "out.txt"
    for name, value, said in (("job", 9.0, f"line 3: {BAD}"), ("school", np.nan, "the value of feature 5 is nan")):
        rows.write_text(libsvm_text([0] * len(frame), csr_array(changed(frame, 2, name, value).to_numpy())))
        assert said in failure(rows, path, out)


def test_the_c_library(mixed):
    runtime_library = pytest.importorskip("runtime_library")
    frame, _, path = mixed
    model = runtime_library.Runtime(path)
    with pytest.raises(runtime_library.RuntimeLibraryError, match=f"row 2: {BAD}"):
        model.evaluate(changed(frame, 2, "job", 9.0).to_numpy(), "labels")
    with pytest.raises(runtime_library.RuntimeLibraryError, match="row 2, column 4 is NaN"):
        model.evaluate(changed(frame, 2, "school", np.nan).to_numpy(), "labels")


@pytest.mark.parametrize("category", [0.1, float(2**24 + 1)])
def test_categories_that_are_no_float32_are_refused_where_rows_are(category, tmp_path):
    """A graph for float64 rows matches such categories, which no float32 row could contain."""
    X = np.tile([[1.0], [category], [2.0]], (10, 1))
    pipeline = make_pipeline(OneHotEncoder(), SVC()).fit(X, X[:, 0] == category)
    compiled = approxsvm.compile(pipeline)
    graph = compiled.to_onnx(input_type="float64")
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    assert (session.run(["label"], {"X": X})[0] == (X[:, 0] == category)).all()
    refused = rf"column 0 has the value {category!r}, which float32 cannot .*: export with input_type='float64'"
    with pytest.raises(UnsupportedModelError, match=refused):
        compiled.to_onnx()
    with pytest.raises(UnsupportedModelError, match=r"which float32 cannot represent.*: train on numbers that are"):
        compiled.export_c(tmp_path / "model.h")
