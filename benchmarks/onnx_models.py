"""Compiled models as ONNX graphs: labels are compared with our engine's, and times with onnxruntime's SVMClassifier.

There are three models: a LIBSVM model for a9a (gamma 0.01), an SVC for the ten digits of pendigits, and a pipeline of a
scaler, PCA and an SVC for australian. Each is compiled in "approximate" and "certified" mode, the latter with and
without a fallback to the exact model inside the graph. Every contender predicts all test rows as float32; "differ"
counts labels that differ from our engine's on the same artifact; "certain" is the fraction of rows whose labels the
graph reports as proven. If a proven label differs from the exact model's, the run ends. Times are microseconds per row
on one thread in one run; contenders take turns, except the slow one, which gets fewer rows and rounds. The contenders
are the graph in onnxruntime, for labels alone and with certificates; our engine; and onnxruntime's SVMClassifier, as
written by skl2onnx (the slow one).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from benchmarks.experiment import Experiment, Rows, Run, demand_labels, number
from benchmarks.peers import onnx_session, svm_classifier
from benchmarks.problems import ADULT, SOURCES, libsvm_model, split_rows
from benchmarks.timing import microseconds, spread

# The source, rows for planning, test rows, and the source as an onnxruntime node.
Model: TypeAlias = tuple[Any, Any, Any, Any]


def _of_sklearn(model: Any) -> Any:
    from skl2onnx import to_onnx

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its warnings about scikit-learn versions
        return to_onnx(model, np.zeros((1, model.n_features_in_), np.float32), options={"zipmap": False})


def _a9a(folder: Path) -> Model:
    X, _, X_test, _ = split_rows(folder, ADULT)
    model = libsvm_model(folder, "a9a_g0.01", 123)
    return model, X, X_test, svm_classifier(model)


def _pendigits(folder: Path) -> Model:
    X, y, X_test, _ = split_rows(folder, SOURCES["pendigits, 10 classes"])
    scaler = StandardScaler().fit(X)
    digits = SVC().fit(scaler.transform(X), y.astype(int))
    return digits, scaler.transform(X), scaler.transform(X_test), _of_sklearn(digits)


def _australian(folder: Path) -> Model:
    X, y, X_test, _ = split_rows(folder, SOURCES["australian"])
    pipeline = make_pipeline(StandardScaler(), PCA(8), SVC(gamma=0.02)).fit(X, y.astype(int))
    return pipeline, X, X_test, _of_sklearn(pipeline)


_MODELS: dict[str, Callable[[Path], Model]] = {
    "a9a, gamma 0.01": _a9a,
    "pendigits, 10 classes": _pendigits,
    "australian, scaler, PCA, SVC": _australian,
}
_CASES = {
    f"{name}, {mode}{', fallback' if fallback else ''}": (name, mode, fallback)
    for name in _MODELS
    for mode, fallback in (("approximate", False), ("certified", False), ("certified", True))
}


def measure(run: Run, case: tuple[str, Any, bool]) -> Rows:
    """Measure one graph."""
    name, mode, fallback = case
    source, X_train, X_test, node = _MODELS[name](run.data)
    fast = approxsvm.compile(source, X_train, mode=mode)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", approxsvm.OpenAnswersWarning)  # intended here
        graph = fast.to_onnx(certain=True, fallback=fallback)
    ours, peer = onnx_session(graph), onnx_session(node)
    X = np.ascontiguousarray(X_test, np.float32)
    label, certain = ours.run(["label", "certain"], {"X": X})
    exact = approxsvm.compile(source, mode="exact").predict(X)
    demand_labels(f"{name}, {mode}: certain", label, exact, certain)
    numbers = spread(len(X), run.options.slow_rows)
    few = np.ascontiguousarray(X[numbers])
    turns = {
        "graph": partial(ours.run, ["label"], {"X": X}),
        "certain": partial(ours.run, ["label", "certain"], {"X": X}),
        "engine": partial(fast.predict, X),
    }
    times = microseconds(turns, len(X), run.options.rounds)
    times |= microseconds({"peer": partial(peer.run, None, {"X": few})}, len(few), max(3, run.options.rounds // 3))
    row = {
        "model": name,
        "mode": f"{mode} -> {fast.artifact.mode}" + (", fallback" if fallback else ""),
        "n_rows": len(X),
        "differ": int((label != fast.predict(X)).sum()),
        "certain": certain.mean(),
        "bytes": len(graph.SerializeToString()),
        "microseconds": times["graph"],
        "with_certain": times["certain"],
        "engine": times["engine"],
        "svm_classifier": times["peer"],
        "ratio": times["peer"] / times["graph"],
        "its_rows": len(few),
        "its_labels_differ": int((peer.run(None, {"X": few})[0] != exact[numbers]).sum()),
    }
    yield "models", row


_OPTIONS = [number("--rounds", 11), number("--slow-rows", 512, "For SVMClassifier.")]
EXPERIMENT = Experiment("onnx_models", __doc__, measure, _CASES, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()
