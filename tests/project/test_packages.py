"""A missing optional package is named, with its install command, only when it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import GOLDEN

from approxsvm.errors import MissingPackageError
from approxsvm.system.packages import import_package

PROGRAM = """
import sys
for name in ("pyarrow", "pyspark", "dask", "duckdb", "pandas"):
    sys.modules[name] = None  # as if it were not installed
import approxsvm, importlib
predictor = approxsvm.Predictor(sys.argv[1])
predictor.predict([[0.5] * 30])
for name in approxsvm.__all__:
    getattr(approxsvm, name)
def told(call):
    try:
        call()
    except approxsvm.MissingPackageError as error:
        print(error)
told(lambda: predictor.predict_arrow([]))
told(lambda: approxsvm.score_dataset(predictor, "rows.csv", "answers.csv"))
for door in ("duckdb", "dask", "spark"):
    told(lambda: importlib.import_module(f"approxsvm.{door}"))
"""


def test_missing_packages_are_named():
    command = [sys.executable, "-c", PROGRAM, str(GOLDEN / "breast_cancer.asvm")]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert [line.partition("'")[2].partition("'")[0] for line in lines] == [
        "approxsvm[arrow]",
        "approxsvm[arrow]",
        "approxsvm[duckdb]",
        "approxsvm[dask]",
        "approxsvm[spark]",
    ]
    assert lines[0].startswith("scoring tables needs the package pyarrow, install it with pip install ")


@pytest.mark.parametrize(
    "path",
    [
        "arrow.predict_stream",
        "dask.score",
        "duckdb.register",
        "plots.ErrorBoundDisplay",
        "scoring.score_dataset",
        "spark.SVMTransformer",
    ],
)
def test_import_paths_of_users(path):
    module, name = path.split(".")
    assert name in pytest.importorskip(f"approxsvm.{module}", exc_type=MissingPackageError).__all__


def test_what_is_there_is_imported():
    assert import_package("json", "arrow", "a test") is sys.modules["json"]
    with pytest.raises(MissingPackageError, match=r"a test needs the package nowhere.*\[arrow\]"):
        import_package("nowhere.at_all", "arrow", "a test")
