"""Records with strings, in C: rows equal Python's, refusals, and the documentation's program."""

from __future__ import annotations

import re
import subprocess
from ctypes import byref, c_double
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import GOLDEN, REPOSITORY
from runtime_library import LIB, LIBRARY_FOLDER, Error, Field, Runtime, RuntimeLibraryError, built
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from test_runtime import CODES, STRICT, compiler

import approxsvm

N = 200
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"age": RNG.normal(40, 12, N).round(), "city": RNG.choice(["Bonn", "Köln", "", "Ulm"], N)})
FRAME = FRAME.astype({"city": object})
Y = np.where(FRAME["age"] / 40 + (FRAME["city"] == "Bonn") > 1.3, "yes", "no")
ENCODERS = {
    "ignores": OneHotEncoder(handle_unknown="ignore"),
    "imputes": make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")),
    "refuses": OneHotEncoder(),
}


def trained(encoder: Any) -> Any:
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    source = make_pipeline(make_column_transformer((numbers, ["age"]), (encoder, ["city"])), SVC())
    return approxsvm.compile(source.fit(FRAME, Y), FRAME)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_records_are_what_mappings_are(encoder: str) -> None:
    fast = trained(ENCODERS[encoder])
    predictor, model = approxsvm.Predictor(fast.artifact), Runtime(fast.artifact.data)
    assert [model.feature_name(k) for k in range(3)] == ["age", "city", ""]
    n_refused = 0
    for age in (41.0, np.nan, None, 0.0):
        for city in ("Bonn", "Köln", "", "Ulm", "Ko", "Kölner", None):
            row = {"city": city, "age": age}
            for given in (row, {k: v for k, v in row.items() if v is not None}):
                row_of_numbers = model.row_of_record(list(given.items()))
                try:
                    expected = predictor.predict_one(given)
                except approxsvm.InputError:
                    n_refused += 1
                    with pytest.raises(RuntimeLibraryError, match="row 0") as caught:
                        model.evaluate(row_of_numbers, "labels")
                    assert caught.value.code in (CODES["NOT_FINITE"], CODES["OUTSIDE_DOMAIN"])
                    continue
                (label,) = model.evaluate(row_of_numbers, "labels")
                assert model.label_text(int(label[0, 0])) == expected, given
    assert (n_refused > 0) == (encoder == "refuses")
    by_position = model.row_of_record([(None, 41.0), (None, "Ulm")])
    np.testing.assert_array_equal(by_position, model.row_of_record([("city", "Ulm"), ("age", 41.0)]))


@pytest.mark.parametrize("votes", [False, True])
def test_ignored_columns_take_texts(votes: bool) -> None:
    """Columns dropped by the ColumnTransformers of all ensemble members are not read."""
    frame = FRAME.assign(note="a, b", code=1)[["note", "age", "code", "city"]]
    columns = make_column_transformer((StandardScaler(), ["age"]), (ENCODERS["ignores"], ["city"]))
    source = make_pipeline(columns, SVC())
    wide = make_pipeline(make_column_transformer((StandardScaler(), ["age", "code"])), SVC())
    source = VotingClassifier([("a", source), ("b", wide), ("c", source)]) if votes else source
    fast = approxsvm.compile(source.fit(frame.fillna({"age": 0.0}), Y), frame)
    model, predictor = Runtime(fast.artifact.data), approxsvm.Predictor(fast.artifact)
    for row in (
        {"note": "x", "age": 41.0, "code": 2.0, "city": "Ulm"},
        {"note": 1.0, "age": 3.0, "code": 0.0, "city": ""},
    ):
        for fields in (list(row.items()), [(None, value) for value in row.values()]):
            (label,) = model.evaluate(model.row_of_record(fields), "labels")
            assert model.label_text(int(label[0, 0])) == predictor.predict_one(row)
    code = [("note", "x"), ("age", 1.0), ("code", "A1"), ("city", "Ulm")]
    if votes:  # a member uses it
        with pytest.raises(RuntimeLibraryError, match=r"^field 2, code: a number is needed$"):
            model.row_of_record(code)
    else:
        assert model.evaluate(model.row_of_record(code), "labels")[0].size == 1


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ([("age", 1.0), ("agee", 1.0)], "WRONG_FIELD", "^field 1, agee: there is no such column$"),
        ([("age", 1.0), ("age", 1.0)], "WRONG_FIELD", "^field 1, age: another field has this name$"),
        ([("age", "old")], "WRONG_FIELD", "^field 0, age: a number is needed$"),
        ([("city", 1.0)], "WRONG_FIELD", "^field 0, city: a text is needed$"),
        ([("age", 1.0), (None, 1.0)], "WRONG_FIELD", "^field 1, : some fields have no name$"),
        ([(None, 1.0)], "WRONG_ROW_SIZE", "^1 fields without names, expected 2$"),
    ],
)
def test_records_that_are_refused(fields: Any, code: str, message: str) -> None:
    model = Runtime(trained(ENCODERS["ignores"]).artifact.data)
    with pytest.raises(RuntimeLibraryError, match=message) as caught:
        model.row_of_record(fields)
    assert caught.value.code == CODES[code]


def test_arguments_that_are_refused() -> None:
    model, error, row = Runtime(GOLDEN / "iris_classes.asvm"), Error(), (c_double * 4)()
    with pytest.raises(RuntimeLibraryError, match=r"^field 0, age: the model has no names for its columns$"):
        model.row_of_record([("age", 1.0)])
    with pytest.raises(RuntimeLibraryError, match=r"^0 fields without names, expected 4$"):
        model.row_of_record([])
    numbers = [(None, 1.0)] * 4
    assert model.row_of_record(numbers).tolist() == [[1.0] * 4]
    fields = (Field * 4)()
    make = LIB.approxsvm_row_of_record
    assert make(None, fields, 4, row, 4, byref(error)) == CODES["INVALID_ARGUMENT"]
    assert make(model.handle, None, 4, row, 4, byref(error)) == CODES["INVALID_ARGUMENT"]
    assert make(model.handle, fields, 4, None, 4, byref(error)) == CODES["INVALID_ARGUMENT"]
    assert make(model.handle, fields, 4, row, 3, byref(error)) == CODES["BUFFER_TOO_SMALL"]
    fields[2].kind = 3
    assert make(model.handle, fields, 4, row, 4, byref(error)) == CODES["WRONG_FIELD"]
    assert b"kind must be" in error.message


def test_the_program_of_the_documentation(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "howto" / "serve.md").read_text()
    (program,) = re.findall(r"^```c\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "record.c").write_text(program)
    flags = ["-std=c99", *STRICT, "-fsanitize=address,undefined", f"-I{approxsvm.get_include()}", f"-L{LIBRARY_FOLDER}"]
    link = ["-lapproxsvm", f"-Wl,-rpath,{LIBRARY_FOLDER}"]
    built([compiler("cc"), *flags, tmp_path / "record.c", *link, "-o", tmp_path / "record"])
    fast = trained(ENCODERS["ignores"])
    fast.save(tmp_path / "model.asvm")
    ran = subprocess.run([tmp_path / "record", tmp_path / "model.asvm"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, f"{fast.predict_one({'city': 'Köln', 'age': 41.0})}\n"), ran.stderr
