"""Empty cells in CSV files are missing values; empty strings are quoted, and ambiguous cells are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import InputError

pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")

RNG = np.random.default_rng(4)
N = 80


def fitted(texts: list[str | None], *encoders: Any) -> tuple[Any, pd.DataFrame, Any]:
    frame = pd.DataFrame(
        {"c": pd.Series(RNG.choice(np.array(texts, object), N), dtype=object), "x": RNG.normal(size=N)}
    )
    known = frame["c"].map(lambda text: texts.index(text))
    columns = make_column_transformer((make_pipeline(*encoders), ["c"]), (StandardScaler(), ["x"]))
    source = make_pipeline(columns, SVC(C=10)).fit(frame, (known % 2).to_numpy())
    return source, frame, approxsvm.compile(source, frame)


def scored(fast: Any, path: Path, output: str = "label", **options: Any) -> list[Any]:
    approxsvm.score_dataset(fast, path, path.with_name("answers.parquet"), outputs=[output], **options)
    return pd.read_parquet(path.with_name("answers.parquet"))[output].tolist()


def test_an_empty_cell_is_no_empty_text(tmp_path: Path) -> None:
    """In the reported case, rows with None got the labels for the empty string."""
    source, frame, fast = fitted(["", None, "x", "y"], OneHotEncoder())
    expected, path = source.predict(frame), tmp_path / "rows.csv"
    frame.to_parquet(tmp_path / "rows.parquet")
    assert scored(fast, tmp_path / "rows.parquet") == expected.tolist()
    frame.to_csv(path, index=False)  # both are empty cells
    with pytest.raises(InputError, match=r"row \d+: column 'c' is empty, which may be missing or the text ''.*quotes"):
        scored(fast, path)
    nulled = scored(fast, path, on_error="null")
    assert np.isnan(nulled).tolist() == frame["c"].isin(["", None]).tolist()
    named = frame["c"].notna()  # quoted strings are literal, in any column
    csv.write_csv(pa.Table.from_pandas(frame[named], preserve_index=False), path)
    assert scored(fast, path) == expected[named].tolist()
    marked = frame.assign(c=frame["c"].where(named, "NA"))
    csv.write_csv(pa.Table.from_pandas(marked, preserve_index=False), path)
    assert scored(fast, path) == expected.tolist()


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize(
    "encoders",
    [
        (OneHotEncoder(handle_unknown="ignore"),),
        (SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")),
    ],
    ids=["encoder", "imputer"],
)
def test_cells_are_missing_where_pandas_reads_them_so(tmp_path: Path, encoders: Any) -> None:
    """The source's users read the file with pandas."""
    source, _, fast = fitted(["x", "y", np.nan], *encoders)
    path = tmp_path / "rows.csv"
    odd = ["", '""', "NA", '"NA"', "n/a", "<NA>", "#N/A N/A", "null", "None", "NaN", "1.#QNAN", " NA", " ", "nil", "x"]
    path.write_text("c,x\n" + "".join(f"{cell},0.3\n" for cell in odd))
    expected = source.decision_function(pd.read_csv(path, dtype={"c": object}))
    np.testing.assert_allclose(scored(fast, path, "value"), expected, rtol=0, atol=1e-9)


def test_a_null_is_not_blamed_where_it_is_a_value(tmp_path: Path) -> None:
    """The error names the adjacent cell instead, in files and in tables."""
    _, _, fast = fitted(["x", "y", np.nan], OneHotEncoder())
    (tmp_path / "rows.csv").write_text("c,x\n,inf\n")
    with pytest.raises(InputError, match="row 0: column 'x' is infinite"):
        scored(fast, tmp_path / "rows.csv")
    with pytest.raises(InputError, match="row 0: column 'x' is infinite"):
        fast.predict_arrow(pa.table({"c": pa.array([None], pa.string()), "x": [np.inf]}))


def test_texts_that_are_empty(tmp_path: Path) -> None:
    texts = ["good day", "bad night", "good night", ""] * 10
    source = make_pipeline(TfidfVectorizer(), SVC(C=10)).fit(texts, [text.startswith("good") for text in texts])
    fast, path = approxsvm.compile(source, texts), tmp_path / "rows.csv"
    path.write_text('text\ngood day\n""\nbad night\n')
    assert scored(fast, path) == source.predict(["good day", "", "bad night"]).tolist()
    path.write_text("text,id\ngood day,1\n,2\nbad night,3\n")
    with pytest.raises(InputError, match="row 1: column 'text' is null"):
        scored(fast, path, columns=["text"])


def test_kept_cells_stay_what_they_are(tmp_path: Path) -> None:
    source, _, fast = fitted(["x", "y"], OneHotEncoder())
    (tmp_path / "rows.csv").write_text('id,c,x\n,x,0.5\n"",y,0.5\n007,x,0.25\n')
    approxsvm.score_dataset(fast, tmp_path / "rows.csv", tmp_path / "answers.parquet", keep=["id"])
    answers = pd.read_parquet(tmp_path / "answers.parquet")
    assert answers["id"].tolist() == ["", "", "007"]
    assert answers["label"].tolist() == source.predict(pd.DataFrame({"c": [*"xyx"], "x": [0.5, 0.5, 0.25]})).tolist()
