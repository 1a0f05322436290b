"""Requests and tables: rows with strings and gaps, as in services, compared with the source in the same run.

Pipelines for generated rows consist of an imputer and a scaler for numbers, an imputer and a OneHotEncoder for strings,
and an SVC. Some numbers and strings are missing. "one row" lists the microseconds per single-row call for each type of
row, with a different row every time. "tables" lists the microseconds per row in calls with many rows, for each type of
table. Codes are raw numeric rows in which strings are already encoded, so that no conversion is left. The source gets
data frames. All contenders take turns, on one thread. Times are minimum processor times over the rounds, because other
programs hardly change these. Labels are compared with the source's first.

"service" lists the wall time for a client of one uvicorn worker, if FastAPI is installed: one JSON object per request,
over a persistent connection.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection
from importlib.util import find_spec
from time import perf_counter, sleep
from typing import Any, Final, NamedTuple

import joblib
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import approxsvm
from benchmarks.experiment import Experiment, MissingError, Rows, Run, WrongAnswerError, number
from benchmarks.timing import processor_microseconds

_N_LEVELS: Final = (7, 16, 5, 2, 4, 12)
_SOURCE_ROWS: Final = 600  # rows of large tables for the source, whose time per row is constant


class Shape(NamedTuple):
    """Numbers of numeric columns, string columns and training rows, and whether the encoder returns dense rows."""

    n_numbers: int
    n_texts: int
    n_train: int
    is_dense: bool = False


_SHAPES: Final = {
    "census": Shape(4, 6, 8000),
    "Titanic": Shape(3, 2, 700),
    "Titanic, dense": Shape(3, 2, 700, True),
    "texts alone": Shape(0, 6, 4000),
}


def table(shape: Shape, n_rows: int, seed: int = 0) -> pd.DataFrame:
    """Generate rows with missing values; the last column is the label."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"number{k}": rng.normal(40, 12, n_rows).round(1) for k in range(shape.n_numbers)})
    for k, n_levels in enumerate(_N_LEVELS[: shape.n_texts]):
        frame[f"text{k}"] = pd.Series([f"level {level}" for level in rng.integers(n_levels, size=n_rows)])
    numbers = frame.iloc[:, : shape.n_numbers].sum(axis=1)
    score = np.sin(numbers / 40) + (frame.iloc[:, -1] == "level 1") + rng.normal(0, 0.3, n_rows)
    for name in frame.columns:
        frame.loc[rng.random(n_rows) < 0.04, name] = None
    frame["answer"] = np.where(score > score.median(), "yes", "no")
    return frame


def source_of(shape: Shape) -> Any:
    """Build the pipeline without fitting it."""
    numbers = [f"number{k}" for k in range(shape.n_numbers)]
    texts = [f"text{k}" for k in range(shape.n_texts)]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=not shape.is_dense)
    columns = [
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), encoder), texts),
    ]
    return make_pipeline(make_column_transformer(*(pair for pair in columns if pair[1])), SVC())


def measure(run: Run, shape: Shape) -> Rows:
    """Measure single rows, then tables."""
    name = next(name for name, one in _SHAPES.items() if one is shape)
    train = table(shape, shape.n_train)
    X, y = train.drop(columns="answer"), train["answer"]
    source = source_of(shape).fit(X, y)
    fast = approxsvm.compile(source, X)
    fast.save(run.scratch / "model.asvm")
    predictor = approxsvm.Predictor(run.scratch / "model.asvm")
    rows = table(shape, run.options.most, 1).drop(columns="answer")
    yield from _one_row(name, run, source, fast, predictor, rows)
    if name == "Titanic":
        yield from _service(run, source, rows)
    for n_rows in sorted({600, run.options.most}):
        yield from _tables(name, run, source, fast, predictor, rows[:n_rows])


def _one_row(name: str, run: Run, source: Any, fast: Any, predictor: Any, rows: Any) -> Rows:
    rows = rows[: run.options.rows]
    frames = [rows.iloc[k : k + 1] for k in range(len(rows))]
    records = [{key: value for key, value in row.items() if value == value} for row in rows.to_dict("records")]
    codes = fast._rows(rows)
    calls: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "source: frame": (source.predict, frames),
        "frame": (fast.predict, frames),
        "frame, Predictor": (predictor.predict, frames),
        "frame, predict_one": (predictor.predict_one, frames),
        "mapping": (predictor.predict_one, records),
        "mapping, 3 outputs": (partial(predictor.predict_one, outputs=["label", "value", "certified"]), records),
        "sequence": (predictor.predict_one, rows.astype(object).to_numpy().tolist()),
        "Series": (predictor.predict_one, [row for _, row in rows.iterrows()]),
        "codes": (predictor.predict_one, list(codes)),
    }
    calls |= {"frame of Polars": (predictor.predict, polars)} if (polars := _one_by_one_of_polars(rows)) else {}
    expected = source.predict(rows).tolist()
    for call, (predict, given) in calls.items():
        answers = [predict(one) for one in given]
        labels = [one["label"] if isinstance(one, dict) else np.ravel(one)[0] for one in answers]
        _check(f"{name}, {call}", labels, expected)
    runs = {call: partial(_each, predict, given) for call, (predict, given) in calls.items()}
    n_rows = {call: len(rows) for call in runs}
    yield from _of(name, "one row", processor_microseconds(runs, n_rows, run.options.rounds))


def _tables(name: str, run: Run, source: Any, fast: Any, predictor: Any, rows: Any) -> Rows:
    few = rows[:_SOURCE_ROWS]
    objects = rows.astype(dict.fromkeys(rows.columns[rows.dtypes != np.float64], object))
    given = {"frame": rows, "frame of objects": objects, **_foreign(rows)}
    expected = source.predict(few).tolist()
    runs: dict[str, Callable[[], Any]] = {"source: frame": partial(source.predict, few)}
    for container, table_ in given.items():
        runs[container] = partial(predictor.predict, table_)
    runs |= {"codes": partial(predictor.predict, fast._rows(rows)), "frame, load()": partial(fast.predict, rows)}
    for call, predict in runs.items():
        _check(f"{name}, {call}", predict()[: len(few)].tolist(), expected)
    n_rows = {call: len(few) if call.startswith("source") else len(rows) for call in runs}
    yield from _of(name, f"{len(rows)} rows", processor_microseconds(runs, n_rows, run.options.rounds))


_APP: Final = """
import joblib, pandas as pd, approxsvm
from fastapi import FastAPI
source, model, app = joblib.load("source.joblib"), approxsvm.Predictor("model.asvm"), FastAPI()

@app.post("/ours")
def ours(row: dict) -> str:
    return str(model.predict_one(row))

@app.post("/source")
def theirs(row: dict) -> str:
    return str(source.predict(pd.DataFrame([row]).reindex(columns=source.feature_names_in_))[0])
"""


def _service(run: Run, source: Any, rows: Any) -> Rows:
    """Time requests to one worker that serves both models, which take turns."""
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        return
    joblib.dump(source, run.scratch / "source.joblib")
    (run.scratch / "service.py").write_text(_APP)
    bodies = [json.dumps(row.dropna().to_dict()) for _, row in rows[: run.options.rows].iterrows()]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "service:app", "--port", str(port), "--log-level", "warning"]
    with subprocess.Popen(command, cwd=run.scratch) as server:
        try:
            client = _connected(port)
            times: dict[str, list[float]] = {"source": [], "ours": []}
            for _ in range(run.options.rounds):
                answers = {path: [_posted(client, path, body, times[path]) for body in bodies] for path in times}
                _check("service", answers["ours"], answers["source"])
        finally:
            server.terminate()
    for path, latencies in times.items():
        p50, p99 = (1e6 * float(q) for q in np.quantile(latencies, [0.5, 0.99]))
        second = {"p50_microseconds": p50, "p99_microseconds": p99, "requests_a_second": 1 / float(np.mean(latencies))}
        yield "service", {"model": path, **second}


def _connected(port: int) -> HTTPConnection:
    for _ in range(300):
        client = HTTPConnection("127.0.0.1", port)
        try:
            client.connect()
            return client
        except ConnectionRefusedError:
            sleep(0.1)
    raise MissingError("the service does not start")


def _posted(client: HTTPConnection, path: str, body: str, times: list[float]) -> str:
    start = perf_counter()
    client.request("POST", f"/{path}", body, {"Content-Type": "application/json"})
    answer = client.getresponse().read()
    times.append(perf_counter() - start)
    return str(json.loads(answer))


def _of(name: str, size: str, times: dict[str, float]) -> Rows:
    for call, time in times.items():
        ratios = {"times_source": times["source: frame"] / time, "of_codes": time / times["codes"]}
        yield "requests", {"pipeline": name, "size": size, "call": call, "microseconds_a_row": time, **ratios}


def _each(predict: Callable[[Any], Any], given: list[Any]) -> None:
    for one in given:
        predict(one)


def _foreign(rows: Any) -> dict[str, Any]:
    """Convert the rows to tables from other installed libraries."""
    tables = {}
    try:
        import pyarrow as pa

        tables["table of Arrow"] = pa.Table.from_pandas(rows, preserve_index=False)
        import polars as pl

        tables["frame of Polars"] = pl.from_arrow(tables["table of Arrow"])
    except ImportError:
        pass
    return tables


def _one_by_one_of_polars(rows: Any) -> list[Any]:
    whole = _foreign(rows).get("frame of Polars")
    return [] if whole is None else [whole[k : k + 1] for k in range(len(rows))]


def _check(what: str, answers: list[Any], expected: list[Any]) -> None:
    wrong = [k for k, (one, other) in enumerate(zip(answers, expected, strict=True)) if one != other]
    if wrong:
        raise WrongAnswerError(f"{what}: row {wrong[0]} is {answers[wrong[0]]}, expected {expected[wrong[0]]}")


EXPERIMENT = Experiment(
    "requests",
    __doc__,
    measure,
    _SHAPES,
    [number("--rows", 100), number("--rounds", 5), number("--most", 16_000, "Rows in the large tables.")],
)

if __name__ == "__main__":
    EXPERIMENT.main()
