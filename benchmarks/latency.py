"""Latency of single rows and small calls on one thread.

The models are LIBSVM models (a9a with gamma 0.01; MNIST, digit 1 vs. the rest), SVCs on standardized data (ijcnn1,
covtype, usps with one digit and with all ten, letter, pendigits), and a StandardScaler and SVC pipeline (australian).
They are compiled in three ways: in "approximate" mode with one center and degree 2; in "certified" mode with the
default plan; and in "certified" mode with the plan for calls of one row.

Each call gets one row, a different float32 test row every time. Each row's time is the median over the rounds; figures
are the median and the 99th percentile over the rows. C++ is class Model, compiled for this machine and, if it has
AVX-512, also for AVX2. C is the library declared in approxsvm.h with the same target, and the C++ wrapper is
approxsvm_runtime.hpp. Python is `predict_one` and `predict` of `Predictor`. The baselines, each called with one row at
a time, are LIBSVM's svm_predict, onnxruntime's SVMClassifier (about 5 us per call from Python) and KARL.

The fraction of the FMA peak counts the d (d + 1) / 2 multiply-adds of one quadratic form, for approximate models that
have only one. A second table lists the C++ time per row, in microseconds, for calls of 1 to 4,096 rows with the default
plan.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm import _native
from benchmarks.experiment import Experiment, Rows, Run, number
from benchmarks.karl import best_tree
from benchmarks.peers import Trained, onnx_session, svm_classifier, write_libsvm_model
from benchmarks.problems import ADULT, SOURCES, libsvm_model, scaled, split_rows
from benchmarks.timing import spread

_SOURCE = Path(__file__).parent / "latency.cpp"
_PLANS: dict[str, dict[str, Any]] = {
    "approximate": {"mode": "approximate", "degree": 2, "n_centers": 1},
    "certified": {},
    "certified, rows_per_call=1": {"rows_per_call": 1},
}
_FLAGS = {"avx512": "-march=native", "avx2": "-march=x86-64-v3"}
_SIZES = (1, 2, 4, 5, 8, 16, 24, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_PEER_ROWS = 200


class Model(NamedTuple):
    """A trained model, rows for planning and prediction, and whether to draw its curve over rows per call."""

    name: str
    source: Any
    X: Any
    X_test: Any
    is_drawn: bool = False


def _a9a(folder: Path) -> Model:
    X, _, X_test, _ = split_rows(folder, ADULT)
    return Model("a9a, gamma 0.01", libsvm_model(folder, "a9a_g0.01", 123), X, X_test)


def _mnist(folder: Path) -> Model:
    X, _, X_test, _ = split_rows(folder, SOURCES["MNIST, 1"])
    return Model("MNIST, 1 against the rest", libsvm_model(folder, "mnist1_g1e-4", 784), X[:5000], X_test, True)


def _australian(folder: Path) -> Model:
    X, y, X_test, _ = split_rows(folder, SOURCES["australian"])
    return Model("australian, pipeline", make_pipeline(StandardScaler(), SVC()).fit(X, y), X, X_test)


def _svc(folder: Path, name: str, C: float = 1.0, is_drawn: bool = True) -> Model:
    problem = scaled(folder, SOURCES[name], "standard", C)
    return Model(name, problem.trained(), problem.X, problem.X_test, is_drawn)


def measure(run: Run, read: Callable[[Path], Model]) -> Rows:
    """Measure nanoseconds per single-row call for every plan, then microseconds per row for calls of every size."""
    model, options, rows_path = read(run.data), run.options, run.scratch / "rows"
    rows = np.ascontiguousarray(model.X_test[spread(len(model.X_test), options.rows)], np.float32)
    rows.tofile(rows_path)
    for plan, choices in _PLANS.items():
        fast = approxsvm.compile(model.source, model.X, n_jobs=1, **choices)
        fast.save(run.scratch / "model.asvm")
        yield "calls", _calls(run, model, plan, fast, rows)
        sizes = [size for size in _SIZES if size <= min(options.most, len(rows))]
        if plan == "certified" and model.is_drawn:
            times = _printed(run, run.record.machine.target, rows.shape[1], *sizes)
            for size, time in zip(sizes, times, strict=True):
                yield "sizes", {"model": model.name, "rows": size, "microseconds": time}
    for peer, nanoseconds in _peers(model, rows[:_PEER_ROWS], run.scratch):
        yield "peers", {"model": model.name, "peer": peer, **_percentiles("one_row", nanoseconds)}


def _calls(run: Run, model: Model, plan: str, fast: Any, rows: npt.NDArray[np.float32]) -> dict[str, Any]:
    row: dict[str, Any] = {"model": model.name, "mode": plan, "certified": fast.certified(rows).mean()}
    here = run.record.machine.target
    built = set(_native.runnable_targets()) if here == "avx512" else set()  # the library may contain a single target
    for target in {here: None} | {target: None for target in _FLAGS if target in built}:
        suffix = "" if target == here else f"_{target}"
        times = _printed(run, target, rows.shape[1])
        keys = [f"{way}{figure}" for way in ("cpp", "c", "wrapper") for figure in ("_nanoseconds", "_p99_nanoseconds")]
        row |= {f"{key}{suffix}": time for key, time in zip(keys, times, strict=True)}
    predictor = approxsvm.Predictor(run.scratch / "model.asvm")
    calls: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
        "predict_one": (predictor.predict_one, list(rows)),
        "predict": (predictor.predict, list(rows[:, None])),
    }
    for name, (predict, each) in calls.items():
        row |= _percentiles(name, _one_by_one(predict, each, run.options.rounds))
    row["share_of_peak"] = None
    if run.peak is not None and plan == "approximate" and fast.artifact.header["n_decisions"] == 1:
        d = fast.artifact.n_features
        row["share_of_peak"] = d * (d + 1) / 2 / (row["cpp_nanoseconds"] * 1e-9) / run.peak()
    return row


def _peers(model: Model, rows: npt.NDArray[np.float32], scratch: Path) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """Yield the installed peers that support the model."""
    try:
        kernel_model = approxsvm.read_model(model.source)
        if kernel_model.input_map is not None:
            return
        two_classes = len(kernel_model.labels) == 2
        if two_classes:
            session = onnx_session(svm_classifier(kernel_model))
            each = [row[np.newaxis] for row in rows]
            yield "onnxruntime", _one_by_one(lambda row: session.run(["label"], {"X": row}), each, 3)
            _, tree = best_tree(kernel_model, rows)
            yield "KARL", _one_by_one(tree.positive, each, 3)
        from libsvm import svm, svmutil

        trained = Trained(kernel_model, scratch / "of_libsvm.model")
        write_libsvm_model(trained)
        read = svmutil.svm_load_model(os.fspath(trained.model_path))
        nodes = [svm.gen_svm_nodearray(dict(enumerate(row.tolist(), 1)))[0] for row in rows]
        yield "LIBSVM", _one_by_one(partial(svm.libsvm.svm_predict, read), nodes, 3)
    except ImportError:
        return


def _one_by_one(predict: Callable[[Any], Any], rows: list[Any], rounds: int) -> npt.NDArray[np.float64]:
    """Return nanoseconds per call for each row: the median over the rounds, minus the cost of reading the clock."""
    nanoseconds = np.empty((rounds, len(rows)))
    for of_round in nanoseconds:
        for k, row in enumerate(rows):
            start = perf_counter_ns()
            predict(row)
            of_round[k] = perf_counter_ns() - start
    clock = [perf_counter_ns() for _ in range(1001)]
    times: npt.NDArray[np.float64] = np.median(nanoseconds, axis=0) - float(np.median(np.diff(clock)))
    return times


def _percentiles(name: str, times: npt.NDArray[np.float64]) -> dict[str, float]:
    return {
        f"{name}_nanoseconds": float(np.median(times)),
        f"{name}_p99_nanoseconds": float(np.quantile(times, 0.99)),
    }


def _printed(run: Run, target: str, n_features: int, *sizes: int) -> list[float]:
    """Return the output of the C++ program, which is built once per target."""
    program = run.scratch / f"latency_{target}"
    if not program.exists():
        library = Path(approxsvm.get_cmake_dir()).parent.parent
        paths = [f"-I{approxsvm.get_include()}", f"-L{library}", f"-Wl,-rpath,{library}"]
        flags = ["-std=c++17", "-O3", _FLAGS.get(target, "-march=native"), "-ffp-contract=off"]
        command = ["c++", *flags, *paths, os.fspath(_SOURCE), "-lapproxsvm", "-o", os.fspath(program)]
        subprocess.run(command, check=True)
    arguments = [program, run.scratch / "model.asvm", run.scratch / "rows", n_features, run.options.rounds, *sizes]
    environment = os.environ | {"APPROXSVM_TARGET": target}
    printed = subprocess.run([*map(str, arguments)], check=True, capture_output=True, text=True, env=environment)
    return [float(number) for number in printed.stdout.split()]


_MODELS: dict[str, Callable[[Path], Model]] = {
    "a9a, gamma 0.01": _a9a,
    "MNIST, 1 against the rest": _mnist,
    "usps, 10 classes": partial(_svc, name="usps, 10 classes"),
    "usps, 1": partial(_svc, name="usps, 1", is_drawn=False),
    "letter, 26 classes": partial(_svc, name="letter, 26 classes", C=10.0),
    "pendigits, 10 classes": partial(_svc, name="pendigits, 10 classes"),
    "ijcnn1": partial(_svc, name="ijcnn1"),
    "covtype, 7 classes": partial(_svc, name="covtype, 7 classes"),
    "covtype": partial(_svc, name="covtype", is_drawn=False),
    "phishing": partial(_svc, name="phishing", is_drawn=False),
    "australian, pipeline": _australian,
}


EXPERIMENT = Experiment(
    "latency",
    __doc__,
    measure,
    _MODELS,
    [number("--rows", 10_000), number("--rounds", 5), number("--most", _SIZES[-1], "Rows in the largest calls.")],
)

if __name__ == "__main__":
    EXPERIMENT.main()
