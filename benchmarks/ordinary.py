"""Ordinary models: scikit-learn's SVC with default options after scaling, sample rows = training rows.

    python -m benchmarks.ordinary [--published] [--only NAME] [--scaler standard|minmax|none|both] [--rows N] [-c C]

For each data set: what the planner chose, how many test rows it certified, what it took to compile, and one thread's
time per row against scikit-learn, LIBSVM, our exact engine, and, for two classes in dense rows, the other ways to the
same labels that there are. Every label of ours is compared with the exact model's, and a wrong one ends the run.
Two-class problems are one class against the rest; `10 classes` and the like keep them all. `--published` takes the
models that README and docs/benchmarks.md show.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import approxsvm
from approxsvm.planning.request import Effort
from approxsvm.reports.judgement import exact_decision_values
from approxsvm.reports.source_rounding import NEAR_TIE
from benchmarks.exact_peers import BlasScan, Karl, OnnxRuntime, ThunderSvm
from benchmarks.peers import Libsvm, Peer, Sample, SklearnIntelex
from benchmarks.problems import SOURCES, Problem, Rows, Selection, data_folder, problem_options
from benchmarks.record import Record, results_option
from benchmarks.timing import medians, microseconds, spread, warm_seconds

_SLOW_ROWS = 400  # that scikit-learn, LIBSVM and onnxruntime predict
_ENGINE_ROWS = 20_000  # that our exact engine predicts while it is timed
_PEER_ROWS = 2_000  # that peers predict which are faster than LIBSVM
_CHECKED_ROWS = 20_000  # whose labels are compared with a direct evaluation
_TIMED_ROWS = 300_000  # in all rounds together, at least five
_SLOW_ROUNDS = 3
_PEERS: tuple[type[Peer], ...] = (SklearnIntelex, OnnxRuntime, ThunderSvm, BlasScan, Karl)

# What README and docs/benchmarks.md show: table, source, scaler, C.
PUBLISHED = (
    ("two classes", "covtype", "standard", 1.0),
    ("two classes", "covtype", "minmax", 1.0),
    ("two classes", "ijcnn1", "minmax", 1.0),
    ("two classes", "ijcnn1, gamma 2", "none", 1.0),
    ("two classes", "phishing", "standard", 1.0),
    ("two classes", "phishing", "minmax", 1.0),
    ("two classes", "svmguide1", "minmax", 1.0),
    ("several classes", "letter, 26 classes", "none", 10.0),
    ("several classes", "pendigits, 10 classes", "none", 10.0),
    ("several classes", "segment, 7 classes", "none", 10.0),
    ("several classes", "vehicle, 4 classes", "none", 10.0),
    ("several classes", "svmguide2, 3 classes", "none", 10.0),
    ("wide, dense", "usps, 1", "standard", 1.0),
    ("wide, dense", "usps, 1", "minmax", 1.0),
    ("wide, dense", "usps, 10 classes", "standard", 1.0),
    ("wide, dense", "usps, 10 classes", "minmax", 1.0),
    ("wide, dense", "MNIST, 10 classes", "minmax", 1.0),
    ("wide, sparse", "text of 20,000 words, generated", "none", 1.0),
    ("wide, sparse", "w8a", "standard", 1.0),
)


@dataclass(frozen=True)
class Figures:
    """Of one model.

    Attributes
    ----------
    certified : float or None
        Share of the test rows that were settled before the exact engine; None where it is alone.
    microseconds, engine_microseconds, sklearn_microseconds, libsvm_microseconds : float
        Per row, on one thread: ours, our exact engine, theirs.
    """

    table: str
    model: str
    scaler: str
    C: float
    gamma: float
    n_classes: int
    n_features: int
    n_sv: int
    n_test_rows: int
    plan: str
    certified: float | None
    artifact_bytes: int
    compile_seconds: float
    microseconds: float
    engine_microseconds: float
    sklearn_microseconds: float
    libsvm_microseconds: float | None


@dataclass(frozen=True)
class PeerFigures:
    """Of another way to the same labels; `differ` counts labels other than the exact model's."""

    model: str
    scaler: str
    peer: str
    microseconds: float
    n_rows: int
    differ: int


@dataclass(frozen=True, eq=False)
class Fitted:
    """What peers are made of."""

    model: approxsvm.KernelModel
    model_path: Path


def _write_libsvm_model(model: approxsvm.KernelModel, path: Path) -> None:
    with path.open("w") as file:
        file.write("svm_type c_svc\nkernel_type rbf\n")
        file.write(f"gamma {model.gamma:.17g}\nnr_class {len(model.labels)}\ntotal_sv {model.n_sv}\n")
        file.write("rho " + " ".join(f"{-b:.17g}" for b in model.intercept) + "\n")
        file.write("label " + " ".join(str(int(label)) for label in model.labels) + "\n")
        file.write("nr_sv " + " ".join(map(str, np.asarray(model.n_support))) + "\nSV\n")
        for a, x in zip(model.dual_coef.T, model.dense_support_vectors(0, model.n_sv), strict=True):
            file.write(" ".join(f"{v:.17g}" for v in a) + " ")
            file.write(" ".join(f"{j + 1}:{x[j]:.17g}" for j in np.flatnonzero(x)) + "\n")


def _wrong_labels(fast: Any, engine: Any, svc: SVC, model: approxsvm.KernelModel, X: Rows) -> int:
    """Labels that differ: all from the exact engine's, some from a direct float64 evaluation or scikit-learn's."""
    wrong = int((fast.predict(X) != engine.predict(X)).sum())
    rows = X[spread(X.shape[0], _CHECKED_ROWS)]
    if model.n_decisions > 1:
        return wrong + int((fast.predict(rows) != svc.predict(rows)).sum())
    exact = exact_decision_values(model, rows).reshape(rows.shape[0], -1)[:, 0]
    expected = np.where(exact > 0.0, *model.labels)
    clear = np.abs(exact) > NEAR_TIE * float(np.abs(model.coefficients(0)).sum())
    return wrong + int(((fast.predict(rows) != expected) & clear).sum())


def measure(
    problem: Problem, table: str, scratch: Path, peers: tuple[type[Peer], ...] = _PEERS, effort: Effort = "normal"
) -> tuple[Figures, list[PeerFigures]]:
    """Train, compile, check, and take times."""
    svc = SVC(C=problem.C, gamma=problem.gamma, cache_size=1000).fit(problem.X, problem.y)
    model = approxsvm.read_model(svc)
    start = perf_counter()
    fast = approxsvm.compile(svc, problem.X, effort=effort)
    seconds = perf_counter() - start
    engine = approxsvm.compile(svc, mode="exact")
    X = problem.X_test
    n_rows = X.shape[0]
    fast.predict(X)
    certified = fast.summary.certified_fraction
    wrong = _wrong_labels(fast, engine, svc, model, X)
    if wrong:
        raise SystemExit(f"wrong answer, nothing is reported: {problem.name}: {wrong} labels differ")
    rounds = min(max(_TIMED_ROWS // n_rows, 5), 101)
    some, slow = X[spread(n_rows, _ENGINE_ROWS)], X[spread(n_rows, _SLOW_ROWS)]
    turns = {"ours": lambda: warm_seconds(lambda: fast.predict(X)) / n_rows}
    turns["engine"] = lambda: warm_seconds(lambda: engine.predict(some)) / some.shape[0]
    times = medians(turns, rounds)
    fitted = Fitted(model, scratch / "of_libsvm.model")
    _write_libsvm_model(model, fitted.model_path)
    with threadpool_limits(1):  # LIBSVM's build on PyPI uses OpenMP
        (of_sklearn,) = microseconds([lambda: svc.predict(slow)], slow.shape[0], _SLOW_ROUNDS)
        libsvm = list(_of_peers((Libsvm,), fitted, engine, X, problem))
        is_fair = model.n_decisions == 1 and not issparse(X)  # rows that those peers are made for
        others = list(_of_peers(peers, fitted, engine, X, problem)) if is_fair else []
    figures = Figures(
        table=table,
        model=problem.name,
        scaler=problem.scaler,
        C=problem.C,
        gamma=model.gamma,
        n_classes=len(model.labels),
        n_features=X.shape[1],
        n_sv=model.n_sv,
        n_test_rows=n_rows,
        plan=plan_of(fast),
        certified=certified,
        artifact_bytes=fast.summary.n_bytes,
        compile_seconds=seconds,
        microseconds=1e6 * times["ours"],
        engine_microseconds=1e6 * times["engine"],
        sklearn_microseconds=of_sklearn,
        libsvm_microseconds=libsvm[0].microseconds if libsvm else None,
    )
    return figures, others


def _of_peers(
    kinds: tuple[type[Peer], ...], fitted: Fitted, engine: Any, X: Rows, problem: Problem
) -> Iterator[PeerFigures]:
    """Those that are installed, each on as many rows as its speed deserves."""
    for kind in kinds:
        rows = csr_array(X[spread(X.shape[0], _SLOW_ROWS if kind.rows == "few" else _PEER_ROWS)])
        sample = Sample(rows, np.arange(rows.shape[0]))
        try:
            peer = kind(fitted, {}, sample, 1)
        except ImportError as error:
            click.echo(f"{kind.name} left out: {error}", err=True)
            continue
        expected = engine.predict(sample.float32 if kind.is_rounded else rows)
        differ = int((peer.predict() != expected).sum())
        (time,) = microseconds([peer.predict], len(sample), _SLOW_ROUNDS)
        yield PeerFigures(problem.name, problem.scaler, kind.name, time, len(sample), differ)


def plan_of(fast: Any) -> str:
    """In words: coordinates of a subspace; or centers, degree, and how many features vary, where not all do."""
    artifact = fast.artifact
    if artifact.subspace_coordinates:
        return f"in {', '.join(map(str, artifact.subspace_coordinates))} coordinates"
    if artifact.mode == "exact":
        return "the exact engine"
    centers = "one center" if artifact.n_centers == 1 else f"{artifact.n_centers:,} centers"
    part = f" in {artifact.n_varying} of {artifact.n_features} features"
    degree = f"degree {artifact.header['degree']}"
    return f"{centers}, {degree}{part if artifact.n_varying < artifact.n_features else ''}"


def _chosen(selection: Selection, folder: Path, published: bool) -> Iterator[tuple[str, Problem]]:
    if not published:
        for problem in selection.of(folder):
            yield "chosen", problem
        return
    sources = {source.name: source for source in SOURCES}
    for table, name, scaler, C in PUBLISHED:
        if selection.only in name:
            yield table, selection.problem(folder, sources[name], scaler, C)


@click.command()
@results_option
@click.option("--published", is_flag=True, help="The models that README and docs/benchmarks.md show.")
@problem_options
def main(selection: Selection, published: bool, results: Path) -> None:
    """Measure SVC models, default but for C, their rows scaled in either way."""
    folder = data_folder()
    if folder is None:
        return
    record = Record.begin("ordinary")
    with tempfile.TemporaryDirectory(prefix="approxsvm-benchmarks-") as scratch:
        for table, problem in _chosen(selection, folder, published):
            click.echo(f"{problem.name}, {problem.scaler} ...", err=True)
            figures, peers = measure(problem, table, Path(scratch))
            record.add("models", asdict(figures))
            for peer in peers:
                record.add("peers", peer)
    record.show()
    record.save(results)


if __name__ == "__main__":
    main()
