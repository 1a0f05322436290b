"""What one row takes alone, from C++, C and Python, on one thread.

    python -m benchmarks.latency [--rows N] [--rounds N] [--only NAME]

Four models: LIBSVM's of a9a (gamma 0.01) and of MNIST's digit 1 against the rest, an SVC of pendigits' ten digits,
and a pipeline of StandardScaler and SVC on australian; approximate with one center and degree 2, and certified by the
default plan. C++ is class Model, for the machine at hand, C the library of approxsvm.h, Python `predict_one` and
`predict` of `Predictor`. Rows are test rows as float32, one a call; medians over rounds. The share of the
FMA peak counts the d (d + 1) / 2 multiply-adds of one quadratic form, where the approximate model is just that.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm.model.schema import Mode
from benchmarks.peak import FmaPeak, find_peak
from benchmarks.problems import Source, data_folder, libsvm_model, split_rows
from benchmarks.record import Record, results_option
from benchmarks.timing import microseconds, spread

_SOURCE = Path(__file__).parent / "latency.cpp"
MODES: tuple[Mode, ...] = ("approximate", "certified")
Model: TypeAlias = tuple[Any, Any, Any]  # source, rows to plan by, test rows


def _a9a(folder: Path) -> Model:
    X, _, X_test, _ = split_rows(folder, Source("a9a", "a9a", "a9a.t"))
    return libsvm_model(folder, "a9a_g0.01", 123), X, X_test


def _mnist(folder: Path) -> Model:
    X, _, X_test, _ = split_rows(folder, Source("MNIST", "mnist"))
    return libsvm_model(folder, "mnist1_g1e-4", 784), X[:5000], X_test


def _pendigits(folder: Path) -> Model:
    X, y, X_test, _ = split_rows(folder, Source("pendigits", "pendigits", "pendigits.t"))
    return SVC().fit(X, y), X, X_test


def _australian(folder: Path) -> Model:
    X, y, X_test, _ = split_rows(folder, Source("australian", "australian"))
    return make_pipeline(StandardScaler(), SVC()).fit(X, y), X, X_test


MODELS: dict[str, Callable[[Path], Model]] = {
    "a9a, gamma 0.01": _a9a,
    "MNIST, 1 against the rest": _mnist,
    "pendigits, 10 classes": _pendigits,
    "australian, pipeline": _australian,
}


def build(scratch: Path) -> None:
    """The program in C++, for this machine."""
    program = scratch / "latency"
    library = Path(approxsvm.get_cmake_dir()).parent.parent
    paths = [f"-I{approxsvm.get_include()}", f"-L{library}", f"-Wl,-rpath,{library}"]
    command = ["c++", "-std=c++17", "-O3", "-march=native", "-ffp-contract=off", *paths, _SOURCE, "-lapproxsvm"]
    subprocess.run([*map(str, command), "-o", str(program)], check=True)


def measure(
    name: str, model: Model, mode: Mode, n_rows: int, rounds: int, scratch: Path, peak: FmaPeak | None
) -> dict[str, Any]:
    """Nanoseconds of calls with one row."""
    source, X, X_test = model
    dense = X_test.toarray() if hasattr(X_test, "toarray") else np.asarray(X_test)
    rows = np.ascontiguousarray(dense[spread(len(dense), n_rows)], np.float32)
    rows.tofile(scratch / "rows")
    options: dict[str, Any] = {"degree": 2, "n_centers": 1} if mode == "approximate" else {}
    fast = approxsvm.compile(source, X, mode=mode, n_jobs=1, **options)
    fast.save(scratch / "model.asvm")
    command = [scratch / "latency", scratch / "model.asvm", scratch / "rows", rows.shape[1], rounds]
    printed = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout
    of_model, of_library = map(float, printed.split())
    predictor = approxsvm.Predictor(scratch / "model.asvm")

    def one_by_one() -> None:
        for row in rows:
            predictor.predict_one(row)

    def as_matrices() -> None:
        for row in rows:
            predictor.predict(row[np.newaxis])

    one, whole = microseconds([one_by_one, as_matrices], len(rows), rounds)
    share = None
    if peak is not None and mode == "approximate" and fast.artifact.header["n_decisions"] == 1:
        d = fast.artifact.n_features
        share = d * (d + 1) / 2 / (of_model * 1e-9) / peak()
    return {
        "model": name,
        "mode": mode,
        "certified": fast.certified(rows).mean(),
        "cpp_nanoseconds": of_model,
        "c_nanoseconds": of_library,
        "predict_one_nanoseconds": 1e3 * one,
        "predict_nanoseconds": 1e3 * whole,
        "share_of_peak": share,
    }


@click.command()
@click.option("--rows", "n_rows", default=1000, show_default=True)
@click.option("--rounds", default=31, show_default=True)
@click.option("--only", default="", help="Models whose name contains this.")
@results_option
def main(n_rows: int, rounds: int, only: str, results: Path) -> None:
    """Measure all models."""
    folder = data_folder()
    if folder is None:
        return
    record = Record.begin("latency")
    with tempfile.TemporaryDirectory(prefix="approxsvm-benchmarks-") as temporary:
        scratch = Path(temporary)
        build(scratch)
        peak, _ = find_peak(scratch)
        for name, read in MODELS.items():
            if only in name:
                model = read(folder)
                for mode in MODES:
                    record.add("calls", measure(name, model, mode, n_rows, rounds, scratch, peak))
    record.show()
    record.save(results)


if __name__ == "__main__":
    main()
