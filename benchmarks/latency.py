"""What one row takes alone, from C++, C and Python, on one thread.

Four models: LIBSVM's of a9a (gamma 0.01) and of MNIST's digit 1 against the rest, an SVC of pendigits' ten digits,
and a pipeline of StandardScaler and SVC on australian; approximate with one center and degree 2, and certified by the
default plan. C++ is class Model, for the machine at hand, C the library of approxsvm.h, Python `predict_one` and
`predict` of `Predictor`. Rows are test rows as float32, one a call; medians over rounds. The share of the
FMA peak counts the d (d + 1) / 2 multiply-adds of one quadratic form, where the approximate model is just that.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm.model.schema import Mode
from benchmarks.experiment import Experiment, Rows, Run, number
from benchmarks.problems import ADULT, SOURCES, libsvm_model, split_rows
from benchmarks.timing import microseconds, spread

_SOURCE = Path(__file__).parent / "latency.cpp"
_MODES: dict[Mode, dict[str, Any]] = {"approximate": {"degree": 2, "n_centers": 1}, "certified": {}}
Model: TypeAlias = tuple[str, Any, Any, Any]  # name, source, rows to plan by, test rows


def _a9a(folder: Path) -> Model:
    X, _, X_test, _ = split_rows(folder, ADULT)
    return "a9a, gamma 0.01", libsvm_model(folder, "a9a_g0.01", 123), X, X_test


def _mnist(folder: Path) -> Model:
    X, _, X_test, _ = split_rows(folder, SOURCES["MNIST, 1"])
    return "MNIST, 1 against the rest", libsvm_model(folder, "mnist1_g1e-4", 784), X[:5000], X_test


def _pendigits(folder: Path) -> Model:
    X, y, X_test, _ = split_rows(folder, SOURCES["pendigits, 10 classes"])
    return "pendigits, 10 classes", SVC().fit(X, y), X, X_test


def _australian(folder: Path) -> Model:
    X, y, X_test, _ = split_rows(folder, SOURCES["australian"])
    return "australian, pipeline", make_pipeline(StandardScaler(), SVC()).fit(X, y), X, X_test


def measure(run: Run, read: Callable[[Path], Model]) -> Rows:
    """Nanoseconds of calls with one row, in both modes."""
    name, source, X, X_test = read(run.data)
    n_rows, rounds, scratch = run.options.rows, run.options.rounds, run.scratch
    rows = np.ascontiguousarray(X_test[spread(len(X_test), n_rows)], np.float32)
    rows.tofile(scratch / "rows")
    for mode, options in _MODES.items():
        fast = approxsvm.compile(source, X, mode=mode, n_jobs=1, **options)
        fast.save(scratch / "model.asvm")
        command = [_program(scratch), scratch / "model.asvm", scratch / "rows", rows.shape[1], rounds]
        printed = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout
        of_model, of_library = map(float, printed.split())
        predictor = approxsvm.Predictor(scratch / "model.asvm")
        turns: dict[str, Callable[[], Any]] = {
            "predict_one": partial(_one_by_one, predictor.predict_one, rows),
            "predict": partial(_one_by_one, predictor.predict, rows[:, np.newaxis]),
        }
        times = microseconds(turns, len(rows), rounds)
        share = None
        if run.peak is not None and mode == "approximate" and fast.artifact.header["n_decisions"] == 1:
            d = fast.artifact.n_features
            share = d * (d + 1) / 2 / (of_model * 1e-9) / run.peak()
        row = {
            "model": name,
            "mode": mode,
            "certified": fast.certified(rows).mean(),
            "cpp_nanoseconds": of_model,
            "c_nanoseconds": of_library,
            "predict_one_nanoseconds": 1e3 * times["predict_one"],
            "predict_nanoseconds": 1e3 * times["predict"],
            "share_of_peak": share,
        }
        yield "calls", row


def _one_by_one(predict: Callable[[Any], Any], rows: Any) -> None:
    for row in rows:
        predict(row)


def _program(scratch: Path) -> Path:
    """The one in C++, for this machine; built once."""
    program = scratch / "latency"
    if not program.exists():
        library = Path(approxsvm.get_cmake_dir()).parent.parent
        paths = [f"-I{approxsvm.get_include()}", f"-L{library}", f"-Wl,-rpath,{library}"]
        command = ["c++", "-std=c++17", "-O3", "-march=native", "-ffp-contract=off", *paths, _SOURCE, "-lapproxsvm"]
        subprocess.run([*map(str, command), "-o", str(program)], check=True)
    return program


_MODELS = {
    "a9a, gamma 0.01": _a9a,
    "MNIST, 1 against the rest": _mnist,
    "pendigits, 10 classes": _pendigits,
    "australian, pipeline": _australian,
}
EXPERIMENT = Experiment("latency", __doc__, measure, _MODELS, [number("--rows", 1000), number("--rounds", 31)])

if __name__ == "__main__":
    EXPERIMENT.main()
