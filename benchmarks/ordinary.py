"""Ordinary models: scikit-learn's SVC with default options after scaling, sample rows = training rows.

    python -m benchmarks.ordinary [--only NAME] [--scaler standard|minmax|none] [--rows N] [-c C]

For each data set: what the planner chose, how many test rows the expansions certified, what it took to compile, and one
thread's time per row against scikit-learn, LIBSVM and our exact engine in the same run. Every label is compared with
the exact model's, and a wrong one ends the run. Two-class problems are one class against the rest; `10 classes` and
the like keep them all.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import click
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import approxsvm
from approxsvm.reports.verification import NEAR_TIE, exact_decision_values
from benchmarks.timing import medians, spread, warm_seconds

Rows: TypeAlias = Any  # ndarray or CSR matrix
_SCALERS: dict[str, Callable[[], Any]] = {
    "standard": StandardScaler,
    "minmax": MinMaxScaler,
    "none": FunctionTransformer,  # rows as they are
}
_BOTH = ("standard", "minmax")
_SLOW_ROWS = 400  # that scikit-learn and LIBSVM predict
_CHECKED_ROWS = 20_000  # whose labels are compared with a direct evaluation
_TIMED_ROWS = 300_000  # in all rounds together, at least five


@dataclass(frozen=True, eq=False)
class Problem:
    """Scaled rows and labels."""

    name: str
    X: Rows
    y: npt.NDArray[Any]
    X_test: Rows
    gamma: float | str = "scale"


@dataclass(frozen=True)
class Source:
    """Where a problem comes from: a LIBSVM file, with a test file or half of its rows held back."""

    name: str
    train: str
    test: str = ""
    positive: float | None = None  # the class that is set against the rest
    n_train: int | None = None
    gamma: float | str = "scale"  # or a number, and then no scaler


SOURCES = (
    Source("covtype", "covtype.data", positive=2, n_train=20_000),
    Source("pendigits, 0", "pendigits", "pendigits.t", positive=0),
    Source("usps, 1", "usps", "usps.t", positive=1),
    Source("phishing", "phishing"),
    Source("w8a", "w8a"),
    Source("ijcnn1", "ijcnn1", "ijcnn1.t"),
    Source("ijcnn1, gamma 2", "ijcnn1", "ijcnn1.t", gamma=2.0),
    Source("svmguide1", "svmguide1", "svmguide1.t"),
    Source("australian", "australian"),
    Source("german", "german.numer_scale"),
    Source("ionosphere", "ionosphere_scale"),
    Source("heart", "heart_scale"),
    Source("MNIST, 1", "mnist", positive=1),
    Source("pendigits, 10 classes", "pendigits", "pendigits.t"),
    Source("usps, 10 classes", "usps", "usps.t"),
    Source("svmguide2, 3 classes", "svmguide2"),
    Source("vehicle, 4 classes", "vehicle.scale"),
    Source("segment, 7 classes", "segment.scale"),
    Source("letter, 26 classes", "letter.scale", "letter.scale.t"),
    Source("covtype, 7 classes", "covtype.data", n_train=10_000),
    Source("MNIST, 10 classes", "mnist", n_train=10_000),
    Source("text of 20,000 words, generated", "text"),
)


def _read_text(folder: Path, name: str, n_features: int | None = None) -> tuple[Rows, npt.NDArray[Any]]:
    for suffix, opened in ((".bz2", bz2.open), (".xz", lzma.open)):
        path = folder / (name + suffix)
        if path.exists():
            with tempfile.NamedTemporaryFile() as file:
                file.write(opened(path).read())
                file.flush()
                X, y = approxsvm.read_libsvm_data(file.name, n_features=n_features)
            return X.toarray(), y
    raise FileNotFoundError(folder / name)


def libsvm_model(folder: Path, name: str, n_features: int) -> approxsvm.KernelModel:
    """One of the models beside the data, by LIBSVM."""
    with tempfile.NamedTemporaryFile(suffix=".model") as file:
        file.write(lzma.decompress((folder.parent / "models" / f"{name}.model.xz").read_bytes()))
        file.flush()
        return approxsvm.read_libsvm_model(file.name, n_features=n_features)


def _read_mnist(folder: Path, part: str) -> tuple[Rows, npt.NDArray[Any]]:
    images = gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((folder / f"{part}-labels-idx1-ubyte.gz").read_bytes())
    X = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784) / 255.0
    return X, np.frombuffer(labels, np.uint8, offset=8).astype(float)


def split_rows(folder: Path, source: Source) -> tuple[Rows, npt.NDArray[Any], Rows, npt.NDArray[Any]]:
    """Rows and labels to train with, and to test with, as they are in the files."""
    rng = np.random.default_rng(0)
    if source.train == "mnist":
        X, y = _read_mnist(folder, "train")
        X_test, y_test = _read_mnist(folder, "t10k")
        n = source.n_train or len(X)
        return X[:n], y[:n], X_test, y_test
    if source.train == "covtype.data":
        with lzma.open(folder / "covtype.data.xz", "rt") as file:
            table = np.loadtxt(file, delimiter=",", dtype=np.int16)
        X, y = table[:, :54].astype(float), table[:, 54]
    else:
        X, y = _read_text(folder, source.train)
    if source.test:
        return X, y, *_read_text(folder, source.test, X.shape[1])
    order = rng.permutation(len(X))
    n = source.n_train or len(X) // 2
    return X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]]


def _generated_text(n_rows: int, n_words: int, seed: int) -> tuple[Any, npt.NDArray[Any]]:
    """Sparse rows of two kinds: some 75 words each, by Zipf's law but for a quarter of them, weighted by tf-idf."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    usual = np.arange(1, n_words + 1) ** -0.8
    own = usual * np.random.default_rng(0).gamma(0.3, size=(2, n_words))
    lengths = np.maximum(rng.poisson(75, n_rows), 5)
    words = [
        np.concatenate([rng.choice(n_words, n // 4, p=own[k] / own[k].sum()), rng.choice(n_words, n - n // 4, p=share)])
        for n, k, share in ((n, k, usual / usual.sum()) for n, k in zip(lengths, y, strict=True))
    ]
    counts = csr_matrix(
        (np.ones(lengths.sum()), np.concatenate(words), np.concatenate([[0], np.cumsum(lengths)])),
        shape=(n_rows, n_words),
    )
    counts.sum_duplicates()
    return TfidfTransformer().fit_transform(counts), y


def problems(folder: Path, only: str, scalers: tuple[str, ...], n_test: int) -> Iterator[tuple[str, Problem]]:
    """Every problem whose name contains `only`, with every scaler."""
    for source in SOURCES:
        if only not in source.name:
            continue
        if source.train == "text":
            X, y = _generated_text(6_000, 20_000, 1)
            yield "none", Problem(source.name, X[:4_000], y[:4_000], X[4_000:])
            continue
        X, y, X_test, _ = split_rows(folder, source)
        if source.positive is not None:
            y = np.where(y == source.positive, 1, -1)
        X_test = X_test[spread(len(X_test), n_test)]
        if source.gamma != "scale":
            yield "none", Problem(source.name, X, y, X_test, source.gamma)
            continue
        for name in scalers:
            scaler = _SCALERS[name]().fit(X)
            yield name, Problem(source.name, scaler.transform(X), y, scaler.transform(X_test))


def _libsvm(model: approxsvm.KernelModel, svc: SVC, rows: Rows) -> Callable[[], Any] | None:
    """LIBSVM's own predictions, through libsvm-official where it is installed."""
    try:
        from libsvm import svm, svmutil
    except ImportError:
        return None
    with tempfile.NamedTemporaryFile("w", suffix=".model") as file:
        _write_libsvm_model(model, svc, file)
        file.flush()
        theirs = svmutil.svm_load_model(file.name)
    problem = svm.svm_problem(np.zeros(rows.shape[0]), csr_matrix(rows))
    nodes = [problem.x[i] for i in range(rows.shape[0])]
    return lambda: [svm.libsvm.svm_predict(theirs, node) for node in nodes]


def _write_libsvm_model(model: approxsvm.KernelModel, svc: SVC, file: Any) -> None:
    labels = range(len(model.labels))
    file.write("svm_type c_svc\nkernel_type rbf\n")
    file.write(f"gamma {model.gamma:.17g}\nnr_class {len(labels)}\ntotal_sv {model.n_sv}\n")
    file.write("rho " + " ".join(f"{-b:.17g}" for b in model.intercept) + "\n")
    file.write("label " + " ".join(map(str, labels)) + "\nnr_sv " + " ".join(map(str, svc.n_support_)) + "\nSV\n")
    for a, x in zip(model.dual_coef.T, model.dense_support_vectors(0, model.n_sv), strict=True):
        file.write(" ".join(f"{v:.17g}" for v in a) + " ")
        file.write(" ".join(f"{j}:{v:.9g}" for j, v in enumerate(x, 1) if v != 0.0) + "\n")


def microseconds(runs: list[Callable[[], Any]], n_rows: int, rounds: int) -> list[float]:
    """Median time per row of each, taking turns; the second of two calls counts."""
    found = medians({k: lambda run=run: warm_seconds(run) for k, run in enumerate(runs)}, rounds)
    return [seconds / n_rows * 1e6 for seconds in found.values()]


def _check(fast: Any, exact_engine: Any, svc: SVC, model: approxsvm.KernelModel, X: Rows) -> int:
    """Labels that differ: all from the exact engine's, some from a direct float64 evaluation or scikit-learn's."""
    wrong = int((fast.predict(X) != exact_engine.predict(X)).sum())
    rows = X[spread(X.shape[0], _CHECKED_ROWS)]
    if model.n_decisions > 1:
        return wrong + int((fast.predict(rows) != svc.predict(rows)).sum())
    exact = exact_decision_values(model, rows).reshape(rows.shape[0], -1)[:, 0]
    expected = np.where(exact > 0.0, *model.labels)
    clear = np.abs(exact) > NEAR_TIE * float(np.abs(model.coefficients(0)).sum())
    return wrong + int(((fast.predict(rows) != expected) & clear).sum())


def measure(problem: Problem, C: float) -> tuple[str, ...]:
    """One row of the table."""
    svc = SVC(C=C, gamma=problem.gamma, cache_size=1000).fit(problem.X, problem.y)
    model = approxsvm.read_model(svc)
    start = perf_counter()
    fast = approxsvm.compile(svc, problem.X)
    seconds = perf_counter() - start
    exact = approxsvm.compile(svc, mode="exact")
    X = problem.X_test
    n_rows = X.shape[0]
    fast.predict(X)
    certified = fast.summary.certified_fraction
    wrong = _check(fast, exact, svc, model, X)
    if wrong:
        raise SystemExit(f"wrong answer, nothing is reported: {problem.name}: {wrong} labels differ")
    rounds = min(max(_TIMED_ROWS // n_rows, 5), 101)
    ours, engine = microseconds([lambda: fast.predict(X), lambda: exact.predict(X)], n_rows, rounds)
    slow = X[spread(n_rows, _SLOW_ROWS)]
    theirs = _libsvm(model, svc, slow)
    with threadpool_limits(1):  # LIBSVM's build on PyPI uses OpenMP
        sklearn, *libsvm = microseconds([lambda: svc.predict(slow)] + ([theirs] if theirs else []), slow.shape[0], 3)
    return (
        f"{X.shape[1]}, {model.n_sv:,}",
        plan_of(fast),
        "-" if certified is None else f"{certified:.1%}",
        f"{fast.summary.n_bytes:,}",
        f"{seconds:.1f}",
        f"{ours:.3f}",
        f"{engine:.2f}, {engine / ours:.1f}",
        f"{sklearn:.0f}, {sklearn / ours:,.0f}",
        *([f"{x:.0f}, {x / ours:,.0f}" for x in libsvm] or ["-"]),
    )


def plan_of(fast: Any) -> str:
    """In a few words: coordinates of a subspace; or centers, degree, and how many features vary, where not all do."""
    artifact = fast.artifact
    if artifact.subspace_coordinates:
        return f"in {', '.join(map(str, artifact.subspace_coordinates))}"
    if artifact.mode == "exact":
        return "exact"
    part = f" in {artifact.n_varying}" if artifact.n_varying < artifact.n_features else ""
    return f"{artifact.n_centers:,} x degree {artifact.header['degree']}{part}"


def data_folder() -> Path | None:
    """Where the data sets are; None, and a word, where there are none."""
    root = Path(os.environ.get("APPROXSVM_DATA", Path(__file__).resolve().parent.parent.parent / "shared"))
    if not (root / "data").is_dir():
        click.echo(f"nothing measured: {root} has no data/; APPROXSVM_DATA names the folder that has")
        return None
    return root / "data"


def problem_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which problems, with which scalers and C, and how many test rows."""
    options = (
        click.option("--only", default="", help="Problems whose name contains this."),
        click.option(
            "--scaler",
            "scalers",
            type=click.Choice([*_SCALERS, "both"]),
            default="both",
            show_default=True,
            callback=lambda _context, _option, name: _BOTH if name == "both" else (name,),
        ),
        click.option("-c", "C", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True),
        click.option(
            "--rows", type=click.IntRange(min=1), default=100_000, show_default=True, help="Test rows at most."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@problem_options
def main(only: str, scalers: tuple[str, ...], C: float, rows: int) -> None:
    """Measure SVC models, default but for C, their rows scaled in either way."""
    folder = data_folder()
    if folder is None:
        return
    names = ("model", "scaler", "d, SV", "plan", "certified", "bytes", "compile s", "us/row")
    table = Table(*names, "exact engine us, times", "scikit-learn us, times", "LIBSVM us, times")
    for name, problem in problems(folder, only, scalers, rows):
        click.echo(f"{problem.name}, {name} ...", err=True)
        table.add_row(problem.name, name, *measure(problem, C))
    Console(width=190).print(table)


if __name__ == "__main__":
    main()
