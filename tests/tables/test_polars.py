"""Polars data frames by every door: the source's answers, columns by name, and files that Polars writes and reads."""

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


def labels_of(frame: Any, **options: Any) -> list[Any]:
    found = pl.from_arrow(PREDICTOR.predict_arrow(frame, **options))
    return found["label"].to_list()


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


@pytest.mark.parametrize(
    "frame",
    [
        pl.concat([TABLE[:40], TABLE[40:41], TABLE[41:]], rechunk=False),
        pl.concat([TABLE, TABLE])[75:225].vstack(TABLE[:0]),
        TABLE.lazy().filter(pl.col("id") >= 0).collect(),
    ],
    ids=["chunks", "a slice", "collected"],
)
def test_layouts(frame: Any) -> None:
    expected = SOURCE.predict(frame.select(FEATURES)).tolist()
    assert labels_of(frame) == expected
    assert FAST.predict(frame.select(FEATURES)).tolist() == expected


def test_nulls_and_nan() -> None:
    bad = TABLE.with_columns(
        sepal_width=pl.when(pl.col("id") == 3).then(None).otherwise(pl.col("sepal_width")),
        petal_width=pl.when(pl.col("id") == 5).then(np.nan).otherwise(pl.col("petal_width")),
    )
    with pytest.raises(InputError, match=r"sepal_width.*row 3|row 3.*sepal_width"):
        PREDICTOR.predict_arrow(bad)
    assert labels_of(bad, on_error="null") == [None if k in (3, 5) else one for k, one in enumerate(LABELS)]
    left = pl.from_arrow(PREDICTOR.predict_arrow(bad, on_error="skip", keep=["id"]))
    assert left["id"].to_list() == [k for k in range(len(X)) if k not in (3, 5)]
    with pytest.raises(ValueError, match=r"NaN.*\(row 3, column 1\)"):
        FAST.predict(bad.select(FEATURES))


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
