"""Polars data frames in every interface: the source's answers, columns by name, and files written by Polars."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import InputError

pl = pytest.importorskip("polars", reason="polars is not installed; it is part of the extra test")
pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is the extra arrow")

X, SPECIES = load_iris(return_X_y=True)
FEATURES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
NAMED = pl.DataFrame(X, schema=FEATURES)
TABLE = NAMED.with_columns(id=pl.int_range(pl.len()), name=pl.lit("flower of a name that is no short text"))
SOURCE = SVC().fit(NAMED, np.array(["setosa", "versicolor", "virginica"])[SPECIES])
FAST = approxsvm.compile(SOURCE, NAMED)
PREDICTOR = approxsvm.Predictor(FAST.artifact)
LABELS = SOURCE.predict(NAMED).tolist()


def test_columns_are_found_by_name_and_others_handed_on() -> None:
    for frame in (TABLE, TABLE.select(reversed(TABLE.columns)), TABLE.select(pl.all().shuffle(seed=0))):
        found = pl.from_arrow(PREDICTOR.predict_arrow(frame, outputs=["label", "error_bound"], keep=["id", "name"]))
        assert found.columns[:3] == ["id", "name", "label"]
        assert found["label"].to_list() == SOURCE.predict(frame.select(FEATURES)).tolist()
        assert found.select("id", "name").equals(frame.select("id", "name"))
        bounds = found.select(pl.selectors.starts_with("error_bound")).to_numpy()
        np.testing.assert_array_equal(bounds, PREDICTOR.error_bound(frame.select(FEATURES)))
    with pytest.raises(InputError, match="petal_width"):
        PREDICTOR.predict_arrow(TABLE.drop("petal_width"))


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_files_that_polars_writes_and_reads(ending: str, tmp_path: Any) -> None:
    write, read = {"parquet": ("write_parquet", "read_parquet"), "arrow": ("write_ipc", "read_ipc")}.get(
        ending, ("write_csv", "read_csv")
    )
    getattr(TABLE, write)(tmp_path / f"rows.{ending}")
    scored = approxsvm.score_dataset(
        PREDICTOR, tmp_path / f"rows.{ending}", tmp_path / f"answers.{ending}", keep=["id", "name"]
    )
    assert scored.n_rows == len(X)
    found = getattr(pl, read)(io.BytesIO((tmp_path / f"answers.{ending}").read_bytes()))
    assert found["label"].cast(pl.String).to_list() == LABELS
    assert found.select("id", "name").equals(TABLE.select("id", "name"))
