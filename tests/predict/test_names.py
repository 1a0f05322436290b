"""Column names in every interface: named columns are matched by name or refused, but never matched by position."""

from __future__ import annotations

import sqlite3
import warnings
from collections import namedtuple
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm.errors import InputError

N = 80
RNG = np.random.default_rng(3)
NUMBERS = pd.DataFrame(RNG.normal([0, 2, -1], [1, 3, 0.3], (N, 3)), columns=["age", "fare", "deck"])
TEXTS = NUMBERS.assign(sex=RNG.choice(["f", "m"], N), port=RNG.choice(["q", "s", None], N).astype(object))
SCALED = make_column_transformer((StandardScaler(), [*NUMBERS]))
Y = (NUMBERS["age"] * 2 > NUMBERS["fare"] - 2).to_numpy()
# For each kind of model: the source and its training frame.
SOURCES = {
    "matched by the source": (make_pipeline(SCALED, SVC()), NUMBERS),
    "with texts": (
        make_pipeline(
            make_column_transformer(
                (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "fare"]),
                (OneHotEncoder(handle_unknown="ignore"), ["sex", "port"]),
            ),
            SVC(),
        ),
        TEXTS,
    ),
    "in order": (make_pipeline(StandardScaler(), SVC()), NUMBERS),
    "encoded in order": (make_pipeline(OrdinalEncoder(), SVC()), TEXTS[["sex"]].assign(cabin=Y * 1.0)),
    "a regression": (make_pipeline(SCALED, SVR()), NUMBERS),
    "votes": (VotingClassifier([("a", make_pipeline(SCALED, SVC()))]), NUMBERS),
    "several targets": (MultiOutputClassifier(make_pipeline(SCALED, SVC())), NUMBERS),
}
BY_NAME = [name for name in SOURCES if "in order" not in name]


@cache
def fitted(name: str) -> tuple[Any, pd.DataFrame, Any]:
    source, frame = SOURCES[name]
    y = {"a regression": NUMBERS["age"], "several targets": np.c_[Y, ~Y]}.get(name, Y)
    source.fit(frame, y)
    return source, frame, approxsvm.compile(source, frame)


def from_sqlite(row: pd.Series) -> sqlite3.Row:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    return connection.execute(f"select {', '.join(f'? as {name}' for name in row.index)}", tuple(row)).fetchone()


# Everything that `predict_one` matches by name, made from a row of a frame (a Series of objects).
ROWS: dict[str, Callable[[pd.Series], Any]] = {
    "Series": lambda row: row,
    "numbers": lambda row: row if any(isinstance(value, str) for value in row) else row.astype(float),
    "mapping": dict,
    "pandas": lambda row: row.to_frame().T.infer_objects(),
    "Polars": lambda row: pytest.importorskip("polars").DataFrame([dict(row)]),
    "Arrow table": lambda row: pytest.importorskip("pyarrow").Table.from_pylist([dict(row)]),
    "Arrow batch": lambda row: pytest.importorskip("pyarrow").RecordBatch.from_pylist([dict(row)]),
    "Arrow scalar": lambda row: pytest.importorskip("pyarrow").scalar(dict(row)),
    "named tuple": lambda row: namedtuple("Row", list(row.index))(*row),
    "SQLite": from_sqlite,
}


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("name", SOURCES)
def test_a_row_with_names_is_taken_by_name(name: str, kind: str) -> None:
    _, frame, fast = fitted(name)
    is_frame = kind in ("pandas", "Polars", "Arrow table", "Arrow batch")
    for model in (fast, approxsvm.Predictor(fast.artifact)):
        expected = fast.predict(frame).tolist()
        for k in range(3):
            row = frame.iloc[k].astype(object)
            for given in (row, row[::-1]):
                if is_frame and name not in BY_NAME and given is not row:
                    with pytest.raises(ValueError, match=r"feature names|X has the columns"):
                        model.predict_one(ROWS[kind](given))
                else:
                    assert model.predict_one(ROWS[kind](given)) == pytest.approx(expected[k], abs=1e-6)
        more = pd.concat([pd.Series({"more": 7}), row])
        if name in BY_NAME:
            assert model.predict_one(ROWS[kind](more)) == pytest.approx(expected[k], abs=1e-6)
        else:
            with pytest.raises(ValueError, match=r"more"):
                model.predict_one(ROWS[kind](more))
        if kind not in ("mapping", "Arrow scalar"):  # absent keys are missing values
            with pytest.raises(ValueError, match=row.index[0]):
                model.predict_one(ROWS[kind](row[1:]))


def test_rows_of_frames_whose_columns_stand_in_another_order() -> None:
    _, frame, fast = fitted("matched by the source")
    reordered, labels = frame[frame.columns[::-1]], fast.predict(frame).tolist()
    assert reordered.apply(fast.predict_one, axis=1).tolist() == labels
    assert [fast.predict_one(row) for row in reordered.itertuples(index=False)] == labels
    assert [fast.predict_one(row) for row in reordered.itertuples()] == labels
    table = pytest.importorskip("pyarrow").Table.from_pandas(reordered, preserve_index=False)
    assert fast.predict_arrow(table)["label"].to_pylist() == labels
    replaced = NUMBERS.set_axis(["age (years)", "fare (GBP)", "deck no."], axis=1)  # names that pandas replaces
    fast = approxsvm.compile(make_pipeline(StandardScaler(), SVC()).fit(replaced, Y), replaced)
    with pytest.raises(InputError, match=r"there is no column 'age \(years\)'.*only '_0', '_1', '_2'"):
        fast.predict_one(next(replaced.itertuples(index=False)))


def test_a_list_of_rows_with_names_is_refused() -> None:
    """Such a list would be read by position, as scikit-learn does."""
    for name in ("matched by the source", "in order"):
        _, frame, fast = fitted(name)
        reordered = frame[frame.columns[::-1]]
        rows = (
            [row for _, row in reordered.iterrows()],
            list(reordered.itertuples(index=False)),
            reordered.to_dict("records"),
        )
        for model in (fast, approxsvm.Predictor(fast.artifact)):
            for given in rows:
                with pytest.raises(InputError, match=r"list of rows that have names: pass pandas\.DataFrame\(X\)"):
                    model.predict(given)
            if name in BY_NAME:
                assert model.predict(pd.DataFrame(rows[1])).tolist() == fast.predict(frame).tolist()


def test_what_a_mapping_lacks_is_missing_where_that_is_a_value() -> None:
    source, frame, fast = fitted("with texts")
    for model in (fast, approxsvm.Predictor(fast.artifact)):
        for k in range(4):
            row = dict(frame.iloc[k])
            for lacking in ("age", "port", "fare"):
                less = {name: value for name, value in row.items() if name != lacking}
                null = None if lacking == "port" else np.nan
                expected = source.predict(frame.iloc[[k]].assign(**{lacking: [null]}))[0]
                assert model.predict_one(less) == model.predict_one({**less, lacking: None}) == expected
    _, frame, fast = fitted("in order")
    for model in (fast, approxsvm.Predictor(fast.artifact)):
        with pytest.raises(InputError, match="there is no column 'fare' and no 'deck', only 'age'"):
            model.predict_one({"age": 1.0})
        with pytest.raises(InputError, match=r"contains NaN|NaN or infinity"):
            model.predict_one({"age": 1.0, "fare": None, "deck": 1.0})


def test_names_that_say_nothing_are_refused_or_go_by_position() -> None:
    _, frame, fast = fitted("matched by the source")
    labels, row = fast.predict(frame), frame.iloc[0]
    plain = fitted("in order")[2]
    nameless = approxsvm.compile(make_pipeline(StandardScaler(), SVC()).fit(frame.to_numpy(), Y), frame.to_numpy())
    for compiled in (fast, plain, nameless):
        for model in (compiled, approxsvm.Predictor(compiled.artifact)):
            for given in (np.array(row), row.tolist(), pd.Series(row.to_numpy()), tuple(row)):
                assert model.predict_one(given) == labels[0]
    for compiled in (fast, plain):
        for model in (compiled, approxsvm.Predictor(compiled.artifact)):
            for wrong in (pd.Series(row.to_numpy(), index=[2, 1, 0]), {0: 1.0, 1: 1.0, 2: 1.0}):
                with pytest.raises(InputError, match="names"):
                    model.predict_one(wrong)
            with pytest.raises(InputError, match="several columns 'age'"):
                model.predict_one(pd.concat([row, row[["age"]]]))
            with pytest.raises(InputError, match=r"one row|has 2 rows"):
                model.predict_one(frame[:2])
    for model in (nameless, approxsvm.Predictor(nameless.artifact)):
        numbered = {"f2": row["deck"], "f0": row["age"], "f1": row["fare"]}
        assert model.predict_one(numbered) == labels[0]
        assert model.predict_one(row) == labels[0]
        with pytest.raises(InputError, match="the model has no names"):
            model.predict_one(dict(row))
        with pytest.raises(InputError, match="the columns 'f2', 'f1', 'f0' are numbered, but not in order"):
            model.predict_one(row[::-1].set_axis(["f2", "f1", "f0"]))


def test_a_value_that_is_no_number_is_named() -> None:
    fast = fitted("matched by the source")[2]
    for model in (fast, approxsvm.Predictor(fast.artifact)):
        for value in (10**400, "much", 1j, [1.0], pd.Timestamp("2020-01-01"), pd.NA):
            with pytest.raises(InputError, match="a number is needed in column 'fare', got"):
                model.predict_one({"age": 1.0, "fare": value, "deck": 3.0})
        with pytest.raises(InputError, match="number"):
            model.predict_one([1.0, 10**400, 3.0])


OUTPUTS = {
    "in order": ["label", "value", "error_bound", "certified"],
    "a regression": ["value", "error_bound", "certified"],
    "several targets": ["label", "certified"],
    "votes": ["label", "certified"],
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_one_call_gives_all_that_is_asked(name: str) -> None:
    _, frame, fast = fitted(name)
    methods = {"label": "predict", "value": "decision_function", "error_bound": "error_bound", "certified": "certified"}
    if name == "a regression":
        methods["value"] = "predict"
    for model in (fast, approxsvm.Predictor(fast.artifact)):
        for given in (dict(frame.iloc[3]), np.array(frame.iloc[3]), frame[3:4], frame.iloc[3].tolist()):
            found = model.predict_one(given, outputs=OUTPUTS[name])
            assert list(found) == OUTPUTS[name]
            for output, answer in found.items():
                np.testing.assert_allclose(answer, getattr(fast, methods[output])(frame)[3], rtol=1e-9)
        with pytest.raises(InputError, match="there is no output 'labels', only label, value, probability"):
            model.predict_one(given, outputs=["labels"])
        with pytest.raises(InputError, match="the model has no output 'probability'"):
            model.predict_one(given, outputs=["probability"])


# --- frames

METHODS = (
    "predict",
    "decision_function",
    "error_bound",
    "certified",
    "certified_radius",
    "gradient",
    "within_gamma_bound",
)
INTERFACES: dict[str, Callable[[Any, Any, Path], Any]] = {
    **{name: lambda fast, rows, _, name=name: getattr(fast, name)(rows) for name in METHODS},
    **{
        f"Predictor.{name}": lambda fast, rows, _, name=name: getattr(approxsvm.Predictor(fast.artifact), name)(rows)
        for name in METHODS[:4]
    },
    "predict_one": lambda fast, rows, _: [fast.predict_one(rows[k : k + 1]) for k in range(N)],
    "verify": lambda fast, rows, _: approxsvm.verify(fast, fitted_source(fast), rows).label_differences,
    "compile": lambda fast, rows, _: approxsvm.compile(fitted_source(fast), rows).artifact.data,
    "report": lambda fast, rows, _: fast.report(rows).evidence.predicted,
    "export_c": lambda fast, rows, path: (
        fast.export_c(path / "m.h", inputs="int8", X=rows) and (path / "m.h").read_text()
    ),
    "predict_arrow": lambda fast, rows, _: approxsvm.Predictor(fast.artifact).predict_arrow(rows).to_pylist(),
    "score, CSV": lambda fast, rows, path: scored(fast, rows, path / "rows.csv"),
    "score, Parquet": lambda fast, rows, path: scored(fast, rows, path / "rows.parquet"),
}


def fitted_source(fast: Any) -> Any:
    return next(fitted(name)[0] for name in SOURCES if fitted(name)[2] is fast)


def scored(fast: Any, rows: pd.DataFrame, path: Path) -> Any:
    pytest.importorskip("pyarrow")
    rows.to_csv(path, index=False) if path.suffix == ".csv" else rows.to_parquet(path)
    approxsvm.score_dataset(fast, path, path.with_name("answers.csv"))
    return path.with_name("answers.csv").read_text()


# Changes to the training frame, and whether its columns are then matched by name.
BY_ARROW = ("predict_arrow", "score, CSV", "score, Parquet")
CHANGES: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "reordered": (lambda frame: frame[frame.columns[::-1]], "by name"),
    "more": (lambda frame: frame.assign(more=1.0)[["more", *frame.columns]], "by name"),
    "fewer": (lambda frame: frame[frame.columns[1:]], "no"),
    "twice": (lambda frame: pd.concat([frame.iloc[:, 1:2] * 0, frame], axis=1), "no"),
    "whole numbers": (lambda frame: frame[frame.columns[::-1]].set_axis(range(3), axis=1), "no"),
    "of several kinds": (lambda frame: frame.rename(columns={"age": 7}), "no"),
}
IN_WORDS = r"features|age|fare|deck|column|feature names|names"


@pytest.mark.filterwarnings(
    "ignore::approxsvm.errors.SourceAccuracyWarning", "ignore:The DataFrame has column names of mixed"
)
@pytest.mark.parametrize("interface", INTERFACES)
def test_frames_are_taken_by_name_or_refused(interface: str, tmp_path: Path) -> None:
    ask, method = INTERFACES[interface], interface.rpartition(".")[2]
    strict = interface.startswith("Predictor") or interface == "export_c" or interface in BY_ARROW
    for name, (change, (make, taken)) in product(("matched by the source", "in order"), CHANGES.items()):
        _, frame, fast = fitted(name)
        if method in METHODS and not hasattr(fast, method):
            continue
        if interface == "score, Parquet" and change in ("twice", "whole numbers", "of several kinds"):
            continue  # pandas cannot write such a Parquet file
        (path := tmp_path / name / change).mkdir(parents=True)
        if taken == "by name" and (name in BY_NAME or interface in BY_ARROW):
            expected = ask(fast, frame, path)
            np.testing.assert_array_equal(ask(fast, make(frame), path), expected)
        elif change == "whole numbers" and name == "in order" and not strict:
            # scikit-learn ignores such names, with a warning
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                ask(fast, make(frame), path)
            assert interface in ("verify", "compile", "report") or "names" in str(caught[0].message)
        else:
            with pytest.raises((ValueError, TypeError), match=IN_WORDS):
                ask(fast, make(frame), path)
