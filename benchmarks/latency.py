"""What one row takes alone, from C++, C and Python, on one thread.

    python -m benchmarks.latency [--rows N] [--rounds N]

Four models: LIBSVM's of a9a (gamma 0.01) and of MNIST's digit 1 against the rest, an SVC of pendigits' ten digits,
and a pipeline of StandardScaler and SVC on australian; approximate with one center and degree 2, and certified by the
default plan. C++ is class Model, for the machine at hand, C the library of approxsvm.h, Python `predict_one` and
`predict` of `Predictor`. Rows are test rows as float32, one a call; medians over rounds. The share of the
FMA peak counts the d (d + 1) / 2 multiply-adds of one quadratic form, where the approximate model is just that.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from benchmarks.peak import find_peak
from benchmarks.problems import Source, data_folder, libsvm_model, split_rows
from benchmarks.timing import microseconds, spread

_SOURCE = Path(__file__).parent / "latency.cpp"


def models(folder: Path) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, source, rows to plan by and test rows."""
    X, _, X_test, _ = split_rows(folder, Source("a9a", "a9a", "a9a.t"))
    yield "a9a, gamma 0.01", libsvm_model(folder, "a9a_g0.01", 123), X, X_test
    X, _, X_test, _ = split_rows(folder, Source("MNIST", "mnist"))
    yield "MNIST, 1 against the rest", libsvm_model(folder, "mnist1_g1e-4", 784), X[:5000], X_test
    X, y, X_test, _ = split_rows(folder, Source("pendigits", "pendigits", "pendigits.t"))
    yield "pendigits, 10 classes", SVC().fit(X, y), X, X_test
    X, y, X_test, _ = split_rows(folder, Source("australian", "australian"))
    yield "australian, pipeline", make_pipeline(StandardScaler(), SVC()).fit(X, y), X, X_test


def build(scratch: Path) -> Path:
    """The program in C++, for this machine."""
    program = scratch / "latency"
    library = Path(approxsvm.get_cmake_dir()).parent.parent
    paths = [f"-I{approxsvm.get_include()}", f"-L{library}", f"-Wl,-rpath,{library}"]
    command = ["c++", "-std=c++17", "-O3", "-march=native", "-ffp-contract=off", *paths, _SOURCE, "-lapproxsvm"]
    subprocess.run([*map(str, command), "-o", str(program)], check=True)
    return program


@click.command()
@click.option("--rows", "n_rows", default=1000, show_default=True)
@click.option("--rounds", default=31, show_default=True)
def main(n_rows: int, rounds: int) -> None:
    """Measure all models."""
    folder = data_folder()
    if folder is None:
        return
    table = Table("model", "mode", "certified", "C++ ns", "C ns", "Predictor.predict_one ns", "predict ns", "of peak")
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        program, (peak, _) = build(scratch), find_peak(scratch)
        for name, source, X, X_test in models(folder):
            dense = X_test.toarray() if hasattr(X_test, "toarray") else np.asarray(X_test)
            rows = np.ascontiguousarray(dense[spread(len(dense), n_rows)], np.float32)
            rows.tofile(scratch / "rows")
            for mode in ("approximate", "certified"):
                options = {"degree": 2, "n_centers": 1} if mode == "approximate" else {}
                fast = approxsvm.compile(source, X, mode=mode, n_jobs=1, **options)
                fast.save(scratch / "model.asvm")
                command = [program, scratch / "model.asvm", scratch / "rows", rows.shape[1], rounds]
                printed = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout
                of_model, of_library = map(float, printed.split())
                predictor = approxsvm.Predictor(scratch / "model.asvm")
                one, whole = microseconds(
                    [
                        lambda predictor=predictor, rows=rows: [predictor.predict_one(row) for row in rows],
                        lambda predictor=predictor, rows=rows: [predictor.predict(row[np.newaxis]) for row in rows],
                    ],
                    len(rows),
                    rounds,
                )
                share = "-"
                if peak is not None and mode == "approximate" and fast.artifact.header["n_decisions"] == 1:
                    d = fast.artifact.n_features
                    share = f"{d * (d + 1) / 2 / (of_model * 1e-9) / peak():.1%}"
                certified = f"{fast.certified(rows).mean():.1%}"
                times = (f"{of_model:,.0f}", f"{of_library:,.0f}", f"{1e3 * one:,.0f}", f"{1e3 * whole:,.0f}")
                table.add_row(name, mode, certified, *times, share)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
