"""Files and tables of any size: what scoring takes, of which how much is prediction, and what it takes of memory.

    python -m benchmarks.scoring [--rows N] [--text-rows N] [--cluster-rows N] [--folder FOLDER] [--results FOLDER]

Rows are generated, like those of ijcnn1: 22 columns of float32, ten of them one-hot; an SVC that is trained on 4,000 of
them is compiled, certified. Parquet in and out, labels alone, beside a plain loop over batches (read, predict on all
threads, write, one after the other) and beside pandas with scikit-learn on a sample; CSV and LIBSVM text; then Dask
and Spark with one and two workers, beside the same job without a prediction. Each run is a process of its own; its
memory is the kernel's record of it (VmHWM), less what it held before it began. Labels are compared with those of
`Predictor.predict`, all of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from sklearn.svm import SVC

import approxsvm
from benchmarks.record import Record, results_option

N_FEATURES = 22
NAMES = [f"f{k}" for k in range(N_FEATURES)]
_PIECE = 1 << 18
# What every process tells of itself, behind what it does to `result`.
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
    """Rows by their number: the same whatever the pieces, which are multiples of a block."""
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


def write_parquet(path: Path, n_rows: int) -> None:
    """Row groups of a million rows."""
    batches = pieces(n_rows)
    first = next(batches)
    with pq.ParquetWriter(path, first.schema) as writer:
        group = [first]
        for batch in batches:
            if len(group) == 4:
                writer.write_table(pa.Table.from_batches(group))
                group = []
            group.append(batch)
        writer.write_table(pa.Table.from_batches(group))


def write_csv(path: Path, n_rows: int) -> None:
    batches = pieces(n_rows)
    first = next(batches)
    with pyarrow.csv.CSVWriter(path, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


def write_libsvm(path: Path, n_rows: int) -> None:
    with open(path, "w") as file:
        for batch in pieces(n_rows):
            columns = [column.to_pylist() for column in batch.columns[1:]]
            for row in zip(*columns, strict=True):
                file.write("0 " + " ".join(f"{j}:{x!r}" for j, x in enumerate(row, 1) if x != 0.0) + "\n")


def in_a_process(program: str, *arguments: Any) -> dict[str, Any]:
    """What a program puts into `result`, with seconds and MiB, of which imports and the open model are none."""
    begun, _, measured = program.partition("# --- measured\n")
    start = 'result, before, start = {}, held("VmRSS"), time.perf_counter()\n'
    command = [sys.executable, "-c", _BEGIN + begun + start + measured + _END, *map(str, arguments)]
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode:
        raise RuntimeError(found.stderr)
    told: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return told


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
file = pq.ParquetFile(sys.argv[2])
batches = file.iter_batches(batch_size=65536, columns=[f"f{k}" for k in range(22)])
with pq.ParquetWriter(sys.argv[3], pa.schema([("label", pa.int64())])) as writer:
    while True:
        now = time.perf_counter()
        batch = next(batches, None)
        spent["reading"] += time.perf_counter() - now
        if batch is None:
            break
        now = time.perf_counter()
        labels = predictor.predict(np.stack([column.to_numpy() for column in batch.columns], axis=1))
        spent["predicting"] += time.perf_counter() - now
        now = time.perf_counter()
        writer.write_batch(pa.RecordBatch.from_arrays([pa.array(labels)], ["label"]))
        spent["writing"] += time.perf_counter() - now
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


def check(path: Path, predictor: Any, n_rows: int) -> None:
    """All labels are those of predict, whatever the order of the rows."""
    found = pyarrow.csv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)
    if "id" in found.schema.names:
        found = found.sort_by("id")
    labels, first = found["label"].to_numpy(), 0
    if len(labels) != n_rows:
        raise AssertionError(f"{len(labels)} labels of {n_rows} rows")
    for batch in pieces(n_rows):
        expected = predictor.predict(np.stack([column.to_numpy() for column in batch.columns[1:]], axis=1))
        if not np.array_equal(labels[first : first + len(expected)], expected):
            raise AssertionError(f"labels differ between rows {first} and {first + len(expected)}")
        first += len(expected)


def add(record: Record, name: str, n_rows: int, told: dict[str, Any]) -> None:
    """A run; the share of prediction is of the work, where it is known what that was."""
    spent = [told.get(part, 0.0) for part in ("reading", "predicting", "writing")]
    figure = {"what": name, "rows": n_rows, "seconds": told["seconds"], "rows_per_second": n_rows / told["seconds"]}
    share = spent[1] / sum(spent) if sum(spent) else None
    record.add("runs", figure | {"prediction": share, "mebibytes": told["mebibytes"]})


def files(record: Record, scratch: Path, predictor: Any, n_rows: int, text_rows: int, sample_rows: int) -> None:
    """Parquet, a plain loop, pandas, CSV and LIBSVM text."""
    model, output = scratch / "model.asvm", scratch / "answers.parquet"
    write_parquet(scratch / "rows.parquet", n_rows)
    add(record, "Parquet, approxsvm score", n_rows, in_a_process(SCORE, model, scratch / "rows.parquet", output))
    check(output, predictor, n_rows)
    add(record, "Parquet, a plain loop", n_rows, in_a_process(LOOP, model, scratch / "rows.parquet", output))
    check(output, predictor, n_rows)
    write_parquet(scratch / "sample.parquet", sample_rows)
    told = in_a_process(PANDAS, scratch / "svc.joblib", scratch / "sample.parquet", output)
    add(record, "Parquet, pandas and scikit-learn", sample_rows, told)
    check(output, predictor, sample_rows)
    for name, write in (("rows.csv", write_csv), ("rows.libsvm", write_libsvm)):
        write(scratch / name, text_rows)
        told = in_a_process(SCORE, model, scratch / name, scratch / "answers.csv")
        add(record, f"{'CSV' if name.endswith('csv') else 'LIBSVM text'}, CSV out", text_rows, told)
        check(scratch / "answers.csv", predictor, text_rows)


def clusters(record: Record, scratch: Path, predictor: Any, n_rows: int) -> None:
    """Dask and Spark, each with one and two workers, with a prediction and without."""
    source, model = scratch / "cluster.parquet", scratch / "model.asvm"
    with pq.ParquetWriter(source, next(pieces(1)).schema) as writer:
        for batch in pieces(n_rows):
            writer.write_batch(batch)
    for name, program in (("Dask", DASK), ("Spark", SPARK)):
        if name == "Spark" and shutil.which("java") is None:
            click.echo("no Java: Spark is left out", err=True)
            continue
        for n_workers in (1, 2):
            for what in ("nothing", "score"):
                output = scratch / f"{name}{n_workers}{what}"
                try:
                    told = in_a_process(program, model, source, output, n_workers, what)
                except RuntimeError as error:
                    click.echo(f"{name} is left out: {str(error).strip().splitlines()[-1]}", err=True)
                    break
                add(record, f"{name}, {n_workers} worker(s), {what}", n_rows, told)
                if what == "score":
                    check(output, predictor, n_rows)


@click.command()
@click.option("--rows", "n_rows", default=20_000_000, show_default=True, help="Of Parquet.")
@click.option("--text-rows", default=2_000_000, show_default=True, help="Of CSV and LIBSVM text.")
@click.option("--sample-rows", default=50_000, show_default=True, help="For pandas and scikit-learn.")
@click.option("--cluster-rows", default=2_000_000, show_default=True, help="For Dask and Spark; 0 leaves them out.")
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), help="Room for the files; a temporary one.")
@results_option
def main(n_rows: int, text_rows: int, sample_rows: int, cluster_rows: int, folder: Path | None, results: Path) -> None:
    """Measure everything."""
    import joblib

    record = Record.begin("scoring", os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        scratch = Path(temporary)
        svc = trained()
        joblib.dump(svc, scratch / "svc.joblib")
        fast = approxsvm.compile(svc, generated(_PIECE, 4000).astype(np.float64))
        fast.save(scratch / "model.asvm")
        record.add("model", {"n_sv": fast.summary.n_support_vectors, "plan": fast.summary.plan})
        predictor = approxsvm.Predictor(scratch / "model.asvm", n_jobs=-1)
        files(record, scratch, predictor, n_rows, text_rows, sample_rows)
        if cluster_rows:
            clusters(record, scratch, predictor, cluster_rows)
    record.show()
    record.save(results)


if __name__ == "__main__":
    main()
