"""First lines of delimited rows: consecutive integers are names, as pandas writes them for an array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.svm import SVC

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import DataFormatError, InputError

X = np.random.default_rng(1).normal(size=(50, 3))
SOURCE = SVC().fit(X, X[:, 0] > X[:, 1])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("headers") / "m.asvm"
    approxsvm.compile(SOURCE, X).save(path)
    return path


def scored(model: Path, path: Path, **options: Any) -> list[str]:
    pytest.importorskip("pyarrow")
    approxsvm.score_dataset(model, path, path.with_name("answers.csv"), **options)
    return pd.read_csv(path.with_name("answers.csv"))["label"].tolist()


@pytest.mark.filterwarnings("ignore::approxsvm.errors.ColumnsByPositionWarning")
@pytest.mark.parametrize("first", [0, 1])
def test_the_header_of_an_array_is_no_row(model: Path, tmp_path: Path, first: int) -> None:
    path = tmp_path / "rows.csv"
    frame = pd.DataFrame(X).rename(columns=lambda k: k + first)
    frame.to_csv(path, index=False)
    assert scored(model, path) == SOURCE.predict(X).tolist()
    np.testing.assert_array_equal(approxsvm.read_rows(path), X)
    for delimiter in (",", " "):
        path = tmp_path / "dense.txt"
        frame.to_csv(path, index=False, sep=delimiter)
        dense = approxsvm.read_dense(path, delimiter=None if delimiter == " " else delimiter, labels=False)[0]
        np.testing.assert_array_equal(dense, X)


OPEN = {
    "one column": "0\n0.5\n0.25\n",
    "two columns": "1,2\n0.5,0.7\n",
    "whole numbers": "0,1,2\n3,4,5\n",
    "one line": "1,2,3\n",
    "with gaps": "0,1,2\n3,,5\n",
}


@pytest.mark.parametrize("name", OPEN)
def test_what_is_open_is_asked(model: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(OPEN[name])
    n_lines = OPEN[name].count("\n")
    asked = r"the first line, .*, may be names or a row: give --header or --no-header \(header=True or header=False\)"
    with pytest.raises(DataFormatError, match=asked):
        approxsvm.read_rows(path)
    with pytest.raises(DataFormatError, match=asked):
        approxsvm.read_dense(path, delimiter=",", labels=False)
    for header in (True, False):
        assert len(approxsvm.read_rows(path, header=header)) == n_lines - header
    if name in ("whole numbers", "one line"):
        pytest.importorskip("pyarrow")
        with pytest.raises(InputError, match=rf"rows\.csv: {asked}"):
            scored(model, path)
        with pytest.warns(approxsvm.errors.ColumnsByPositionWarning):
            assert len(scored(model, path, header=False)) == n_lines
    for header in (True, False):
        if name != "with gaps":
            dense = approxsvm.read_dense(path, delimiter=",", labels=False, header=header)[0]
            assert len(dense) == n_lines - header


@pytest.mark.filterwarnings("ignore::approxsvm.errors.ColumnsByPositionWarning")
def test_rows_that_do_not_count_up_are_rows(model: Path, tmp_path: Path) -> None:
    for k, line in enumerate(("0,1,3", "1,2,4", "2,3,4", "0.0,1.0,2.0", "1,1,1")):
        path = tmp_path / f"rows{k}.csv"
        path.write_text(f"{line}\n0.5,0.25,1.5\n")
        assert len(scored(model, path)) == len(approxsvm.read_rows(path)) == 2
    path.write_text("1,,0.5\n0.5,0.25,1.5\n")  # a row with a gap, not names
    assert len(approxsvm.read_rows(path)) == 2


def test_the_commands_ask(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("0,1,2\n3,4,5\n6,7,8\n")
    given = [str(model), "--c", str(tmp_path / "m.h"), "--inputs", "int8", "--data", str(path)]
    done = CliRunner().invoke(main, ["export", *given])
    assert "may be names or a row: give --header or --no-header" in done.stderr
    for answer in ("--header", "--no-header"):
        done = CliRunner().invoke(main, ["export", *given, answer])
        assert done.exit_code == 0, done.stderr
