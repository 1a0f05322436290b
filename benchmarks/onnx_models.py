"""Compiled models as ONNX graphs: labels against our own engine's, time against onnxruntime's SVMClassifier.

    python -m benchmarks.onnx_models [--rounds N] [--slow-rows N]

Three models: LIBSVM's of a9a (gamma 0.01), an SVC of the ten digits of pendigits, and a pipeline of a scaler, PCA and
SVC on australian. Each is compiled in mode "approximate" and certified, the latter without and with a fallback on the
exact model inside the graph. Labels are those of all test rows as float32, which every contender gets; "differ" counts
labels that are not our engine's on the same artifact, "certain" is the share of rows whose label the graph says is
proven, and "wrong" how many of these labels are not the exact model's. Times are microseconds per row of one thread in
one run, contenders taking turns but for the slow one, which gets fewer rows: the graph in onnxruntime for labels alone
and with what is certain, our engine, and onnxruntime's own SVMClassifier, as skl2onnx writes it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from benchmarks.exact_peers import onnx_session, svm_classifier
from benchmarks.problems import SOURCES, Source, data_folder, libsvm_model, split_rows
from benchmarks.record import Record, results_option
from benchmarks.timing import microseconds, spread

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Case:
    """A model, rows to choose a plan by, test rows, and the source as onnxruntime's own node."""

    name: str
    model: Any
    X: Array
    X_test: Array
    peer: Any


def _rows(name: str) -> tuple[Array, Array, Array]:
    (source,) = (source for source in SOURCES if source.name == name)
    folder = data_folder()
    assert folder is not None
    X, y, X_test, _ = split_rows(folder, source)
    return X, y, X_test


def _of_sklearn(model: Any) -> Any:
    from skl2onnx import to_onnx

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it thinks of scikit-learn's versions
        return to_onnx(model, np.zeros((1, model.n_features_in_), np.float32), options={"zipmap": False})


def _cases(folder: Path) -> list[Case]:
    X, _, X_test, _ = split_rows(folder, Source("a9a", "a9a", "a9a.t"))
    a9a = libsvm_model(folder, "a9a_g0.01", 123)
    found = [Case("a9a, gamma 0.01", a9a, X, X_test, svm_classifier(a9a))]
    X, y, X_test = _rows("pendigits, 10 classes")
    scaler = StandardScaler().fit(X)
    digits = SVC().fit(scaler.transform(X), y.astype(int))
    found.append(
        Case("pendigits, 10 classes", digits, scaler.transform(X), scaler.transform(X_test), _of_sklearn(digits))
    )
    X, y, X_test = _rows("australian")
    pipeline = make_pipeline(StandardScaler(), PCA(8), SVC(gamma=0.02)).fit(X, y.astype(int))
    found.append(Case("australian, scaler, PCA, SVC", pipeline, X, X_test, _of_sklearn(pipeline)))
    return found


def measure(case: Case, mode: Any, fallback: bool, rounds: int, slow_rows: int) -> dict[str, Any]:
    """One row of the table."""
    fast = approxsvm.compile(case.model, case.X, mode=mode)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", approxsvm.OpenAnswersWarning)  # that is what is measured
        graph = fast.to_onnx(certain=True, fallback=fallback)
    ours, peer = onnx_session(graph), onnx_session(case.peer)
    X = np.ascontiguousarray(case.X_test, np.float32)
    label, certain = ours.run(["label", "certain"], {"X": X})
    exact = approxsvm.compile(case.model, mode="exact").predict(X)
    wrong = int((label != exact)[certain].sum())
    few = np.ascontiguousarray(X[spread(len(X), slow_rows)])
    peers_differ = int((peer.run(None, {"X": few})[0] != exact[spread(len(X), slow_rows)]).sum())
    runs: list[Callable[[], Any]] = [
        lambda: ours.run(["label"], {"X": X}),
        lambda: ours.run(["label", "certain"], {"X": X}),
        lambda: fast.predict(X),
    ]
    of_graph, with_certain, of_engine = microseconds(runs, len(X), rounds)
    (of_peer,) = microseconds([lambda: peer.run(None, {"X": few})], len(few), max(3, rounds // 3))
    if wrong:
        raise click.ClickException(f"{case.name}, {mode}: {wrong} labels that are said to be certain are wrong")
    return {
        "model": case.name,
        "mode": f"{mode} -> {fast.artifact.mode}" + (", fallback" if fallback else ""),
        "n_rows": len(X),
        "differ": int((label != fast.predict(X)).sum()),
        "certain": certain.mean(),
        "wrong": wrong,
        "bytes": len(graph.SerializeToString()),
        "microseconds": of_graph,
        "with_certain": with_certain,
        "engine": of_engine,
        "svm_classifier": of_peer,
        "ratio": of_peer / of_graph,
        "its_rows": len(few),
        "its_labels_differ": peers_differ,
    }


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=11, show_default=True)
@click.option("--slow-rows", type=click.IntRange(min=1), default=512, show_default=True, help="For SVMClassifier.")
@results_option
def main(rounds: int, slow_rows: int, results: Path) -> None:
    """Measure compiled models in onnxruntime."""
    folder = data_folder()
    if folder is None:
        return
    record = Record.begin("onnx_models")
    for case in _cases(folder):
        for mode, fallback in (("approximate", False), ("certified", False), ("certified", True)):
            click.echo(f"{case.name}, {mode} ...", err=True)
            record.add("models", measure(case, mode, fallback, rounds, slow_rows))
    record.show()
    record.save(results)


if __name__ == "__main__":
    main()
