"""Files and tables of any size: scoring time, the fraction of it spent on prediction, and memory.

Rows are generated, similar to ijcnn1's: 22 float32 columns, ten of them one-hot; an SVC trained on 4,000 of them is
compiled as certified. The experiment measures Parquet in and out, labels alone, compared with a plain loop over batches
(read, predict on all threads, write, in sequence) and with pandas and scikit-learn on a sample; CSV and LIBSVM text;
then Dask and Spark with one and two workers, compared with the same job without prediction. Each run is a separate
process; its memory is the peak recorded by the kernel (VmHWM), minus the memory used before the work began. All labels
are compared with the output of `Predictor.predict`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import joblib
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from sklearn.svm import SVC

import approxsvm
from benchmarks.experiment import Experiment, MissingError, Rows, Run, WrongAnswerError, number
from benchmarks.record import Row

N_FEATURES = 22
NAMES = [f"f{k}" for k in range(N_FEATURES)]
_PIECE = 1 << 18
# Code around every program; it prints `result` with time and memory added.
_BEGIN = r"""
import json, re, sys, time
def held(what):
    return int(re.search(what + r":\s+(\d+) kB", open("/proc/self/status").read())[1]) / 1024
"""
_END = r"""
result.update(seconds=time.perf_counter() - start, mebibytes=held("VmHWM") - before)
print(json.dumps(result))
"""


def generated(first: int, n_rows: int) -> npt.NDArray[np.float32]:
    """Generate rows by index: they do not depend on the chunks, whose sizes are multiples of a block."""
    parts = []
    for block in range(first // _PIECE, -(-(first + n_rows) // _PIECE)):
        rng = np.random.default_rng(block)
        rows = np.zeros((_PIECE, N_FEATURES), np.float32)
        rows[np.arange(_PIECE), rng.integers(0, 10, _PIECE)] = 1.0
        rows[:, 10:] = np.tanh(rng.normal(size=(_PIECE, 12)) * 0.4)
        parts.append(rows)
    start = first % _PIECE
    return np.concatenate(parts)[start : start + n_rows]


def trained() -> SVC:
    rows = generated(0, 4000)
    truth = np.sin(3.0 * rows[:, 10]) * rows[:, 11] + rows[:, 12] ** 2 + 0.3 * rows[:, 0] > 0.25
    return SVC(gamma=0.25, C=10.0).fit(rows.astype(np.float64), np.where(truth, 1, -1))


def pieces(n_rows: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, n_rows, _PIECE):
        rows = generated(first, min(_PIECE, n_rows - first))
        columns = [pa.array(column) for column in rows.T.copy()]
        yield pa.RecordBatch.from_arrays([pa.array(np.arange(first, first + len(rows))), *columns], ["id", *NAMES])


def write_parquet(path: Path, n_rows: int, batches_per_group: int = 4) -> None:
    """Write row groups of a million rows."""
    with pq.ParquetWriter(path, next(pieces(1)).schema) as writer:
        group = []
        for batch in pieces(n_rows):
            group.append(batch)
            if len(group) == batches_per_group:
                writer.write_table(pa.Table.from_batches(group))
                group = []
        if group:
            writer.write_table(pa.Table.from_batches(group))


def write_csv(path: Path, n_rows: int) -> None:
    with pyarrow.csv.CSVWriter(path, next(pieces(1)).schema) as writer:
        for batch in pieces(n_rows):
            writer.write_batch(batch)


def write_libsvm(path: Path, n_rows: int) -> None:
    with open(path, "w") as file:
        for batch in pieces(n_rows):
            columns = [column.to_pylist() for column in batch.columns[1:]]
            for row in zip(*columns, strict=True):
                file.write("0 " + " ".join(f"{j}:{x!r}" for j, x in enumerate(row, 1) if x != 0.0) + "\n")


def in_a_process(program: str, *arguments: Any) -> dict[str, Any]:
    """Return a program's `result`, with seconds and MiB that exclude imports and opening the model."""
    begun, _, measured = program.partition("# --- measured\n")
    start = 'result, before, start = {}, held("VmRSS"), time.perf_counter()\n'
    command = [sys.executable, "-c", _BEGIN + begun + start + measured + _END, *map(str, arguments)]
    finished = subprocess.run(command, capture_output=True, text=True)
    if finished.returncode:
        raise RuntimeError(finished.stderr)
    figures: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return figures


SCORE = """
import approxsvm, pyarrow.parquet, pyarrow.csv
predictor = approxsvm.Predictor(sys.argv[1])
# --- measured
found = approxsvm.score_dataset(predictor, sys.argv[2], sys.argv[3])
result = dict(reading=found.seconds_reading, predicting=found.seconds_predicting, writing=found.seconds_writing)
"""
LOOP = """
import approxsvm, numpy as np, pyarrow as pa, pyarrow.parquet as pq
predictor = approxsvm.Predictor(sys.argv[1], n_jobs=-1)
# --- measured
spent = dict(reading=0.0, predicting=0.0, writing=0.0)
def spend(part, call, *arguments):
    start = time.perf_counter()
    done = call(*arguments)
    spent[part] += time.perf_counter() - start
    return done
def predict(batch):
    return predictor.predict(np.stack([column.to_numpy() for column in batch.columns], axis=1))
batches = pq.ParquetFile(sys.argv[2]).iter_batches(batch_size=65536, columns=[f"f{k}" for k in range(22)])
with pq.ParquetWriter(sys.argv[3], pa.schema([("label", pa.int64())])) as writer:
    while (batch := spend("reading", next, batches, None)) is not None:
        labels = pa.array(spend("predicting", predict, batch))
        spend("writing", writer.write_batch, pa.RecordBatch.from_arrays([labels], ["label"]))
result = spent
"""
PANDAS = """
import joblib, pandas as pd
svc = joblib.load(sys.argv[1])
# --- measured
frame = pd.read_parquet(sys.argv[2])
pd.DataFrame({"label": svc.predict(frame[[f"f{k}" for k in range(22)]].to_numpy())}).to_parquet(sys.argv[3])
"""
DASK = """
import approxsvm.dask, dask.dataframe as dd, distributed, warnings
warnings.simplefilter("ignore")
if __name__ == "__main__":
    cluster = distributed.LocalCluster(int(sys.argv[4]), threads_per_worker=1, dashboard_address=None)
    client = distributed.Client(cluster)
    frame = dd.read_parquet(sys.argv[2], split_row_groups=True)
    if sys.argv[5] == "score":
        job = approxsvm.dask.score(frame, sys.argv[1], keep=["id"])
    else:
        job = frame.map_partitions(lambda part: part[["id"]].assign(label=1), meta={"id": "i8", "label": "i8"})
    # --- measured
    job.to_parquet(sys.argv[3])
"""
SPARK = """
import approxsvm.spark, pyarrow as pa
from pyspark.sql import SparkSession
builder = SparkSession.builder.master(f"local[{sys.argv[4]}]").config("spark.ui.enabled", "false")
spark = builder.config("spark.log.level", "OFF").config("spark.driver.host", "127.0.0.1").getOrCreate()
frame = spark.read.parquet(sys.argv[2])
def same(batches):
    for batch in batches:
        label = pa.array([1], pa.int64()).take(pa.array([0] * batch.num_rows))
        yield pa.RecordBatch.from_arrays([batch.column("id"), label], ["id", "label"])
if sys.argv[5] == "score":
    job = approxsvm.spark.score(frame, sys.argv[1], keep=["id"])
else:
    job = frame.mapInArrow(same, "id long, label long")
spark.range(10).mapInArrow(lambda batches: batches, "id long").count()  # workers are there
# --- measured
job.write.parquet(sys.argv[3])
"""


WRITERS = {".parquet": write_parquet, ".csv": write_csv, ".libsvm": write_libsvm}


def opened(run: Run) -> tuple[Path, Any]:
    """Return the artifact, and a predictor on all threads; train the model once."""
    model = run.scratch / "model.asvm"
    if not model.exists():
        svc = trained()
        joblib.dump(svc, run.scratch / "svc.joblib")
        fast = approxsvm.compile(svc, generated(_PIECE, 4000).astype(np.float64))
        fast.save(model)
        run.record.add("model", {"n_sv": fast.summary.n_support_vectors, "plan": fast.summary.plan})
    return model, approxsvm.Predictor(model, n_jobs=-1)


def check(path: Path, predictor: Any, n_rows: int) -> None:
    """Require that all labels equal the output of predict, regardless of row order."""
    answers = pyarrow.csv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)
    if "id" in answers.schema.names:
        answers = answers.sort_by("id")
    labels, first = answers["label"].to_numpy(), 0
    if len(labels) != n_rows:
        raise WrongAnswerError(f"{path.name}: {len(labels)} labels of {n_rows} rows")
    for batch in pieces(n_rows):
        expected = predictor.predict(np.stack([column.to_numpy() for column in batch.columns[1:]], axis=1))
        if not np.array_equal(labels[first : first + len(expected)], expected):
            raise WrongAnswerError(f"{path.name}: labels differ between rows {first} and {first + len(expected)}")
        first += len(expected)


def row_of(what: str, n_rows: int, measured: dict[str, Any]) -> Row:
    """Build the row for a run, with the fraction of work spent on prediction if the times of all stages are known."""
    spent = [measured.get(part, 0.0) for part in ("reading", "predicting", "writing")]
    took = measured["seconds"]
    figures = {"what": what, "rows": n_rows, "seconds": took, "rows_per_second": n_rows / took}
    share = spent[1] / sum(spent) if sum(spent) else None
    return figures | {"prediction": share, "mebibytes": measured["mebibytes"]}


def of_files(run: Run) -> Rows:
    """Measure Parquet, a plain loop, pandas, CSV and LIBSVM text."""
    model, predictor = opened(run)
    svc, text_answers = run.scratch / "svc.joblib", run.scratch / "answers.csv"
    rows, answers = run.scratch / "rows.parquet", run.scratch / "answers.parquet"

    def scored(what: str, path: Path, n_rows: int, program: str = SCORE, by: Path = model, out: Path = answers) -> Rows:
        if not path.exists():
            WRITERS[path.suffix](path, n_rows)
        measured = in_a_process(program, by, path, out)
        check(out, predictor, n_rows)
        yield "runs", row_of(what, n_rows, measured)

    options = run.options
    yield from scored("Parquet, approxsvm score", rows, options.rows)
    yield from scored("Parquet, a plain loop", rows, options.rows, LOOP)
    few = run.scratch / "few.parquet"
    yield from scored("Parquet, pandas and scikit-learn", few, options.sample_rows, PANDAS, svc)
    for what, name in (("CSV", "rows.csv"), ("LIBSVM text", "rows.libsvm")):
        yield from scored(f"{what}, CSV out", run.scratch / name, options.text_rows, out=text_answers)


def of_cluster(name: str, program: str, run: Run) -> Rows:
    """Measure one and two workers, with and without prediction."""
    n_rows = run.options.cluster_rows
    model, predictor = opened(run)
    if name == "Spark" and shutil.which("java") is None:
        raise MissingError("no Java")
    write_parquet(run.scratch / "cluster.parquet", n_rows, 1)
    for n_workers in (1, 2):
        for what in ("nothing", "score"):
            output = run.scratch / f"{name}{n_workers}{what}"
            try:
                measured = in_a_process(program, model, run.scratch / "cluster.parquet", output, n_workers, what)
            except RuntimeError as error:
                raise MissingError(str(error).strip().splitlines()[-1]) from error
            if what == "score":
                check(output, predictor, n_rows)
            yield "runs", row_of(f"{name}, {n_workers} worker(s), {what}", n_rows, measured)


def cases(options: SimpleNamespace) -> dict[str, Callable[[Run], Rows]]:
    """Return the files and, if requested, the clusters."""
    clusters = {"Dask": partial(of_cluster, "Dask", DASK), "Spark": partial(of_cluster, "Spark", SPARK)}
    return {"files": of_files, **(clusters if options.cluster_rows else {})}


_OPTIONS = [
    number("--rows", 20_000_000, "Of Parquet."),
    number("--text-rows", 2_000_000, "Rows of CSV and LIBSVM text."),
    number("--sample-rows", 50_000, "Rows for pandas and scikit-learn."),
    number("--cluster-rows", 2_000_000, "Rows for Dask and Spark; 0 skips them.", least=0),
    click.Option(["--folder"], type=click.Path(file_okay=False), help="Folder for the files; by default temporary."),
]
EXPERIMENT = Experiment("scoring", __doc__, lambda run, case: case(run), cases, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()
