"""Taylor against Fourier features: test error against cost, as in Cotter, Keshet and Srebro 2011.

    python -m benchmarks.cotter [--only NAME] [--train-rows N] [--test-rows N] [--degrees R ...] [--components D ...]
                                [--sigma2 S] [-c C] [--max-bytes B] [--results FOLDER]

For each of the paper's data sets that can be had (Adult, MNIST 8 against the rest, Covertype 1 against the rest; TIMIT
is not free) a linear support vector machine is trained on Taylor features of some degrees, and on random Fourier
features of some numbers, of the kernel exp(-||x - y||^2 / (2 sigma^2)); the kernel's own machine is the goal. Columns:

* columns and non-zeros: of the features, the latter for each row; training goes by the non-zeros;
* multiply-adds: what a row costs to map and to predict. A Taylor feature is one of a degree less times a number; a
  Fourier feature an inner product with the row's non-zeros and a cosine, which counts as one;
* kernel error: root mean square over pairs of test rows;
* Fourier, as many multiply-adds (non-zeros): test error of the best of the Fourier rows of the table that cost no more.

The paper's ordering: by the number of features Fourier features are better, by the cost of computing them Taylor
features are. The paper was not at hand when this was written: the widths and C are as remembered from it (Covertype's
width is uncertain), and options change them. Rows are taken at random; all of them is what the paper did, and takes
hours.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix, issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVC, LinearSVC

from approxsvm.features import TaylorFeatures
from benchmarks.charts import Lines
from benchmarks.problems import Source, data_folder, split_rows
from benchmarks.record import Record, results_option

_PAIRED_ROWS = 300  # all pairs of them
_MAX_ITERATIONS = 3000


@dataclass(frozen=True)
class Experiment:
    """One of the paper's: a class against the rest, the width of the kernel, and C."""

    name: str
    source: Source
    positive: float
    sigma2: float
    C: float = 1.0


EXPERIMENTS = (
    Experiment("Adult", Source("Adult", "a9a", "a9a.t"), 1, 40.0),
    Experiment("MNIST, 8", Source("MNIST, 8", "mnist"), 8, 25.0),
    Experiment("Covertype, 1", Source("Covertype, 1", "covtype.data", n_train=522_911), 1, 3.0),
)


@dataclass(frozen=True, eq=False)
class Rows:
    """Sparse rows and labels, -1 and 1."""

    X: Any
    y: npt.NDArray[Any]
    X_test: Any
    y_test: npt.NDArray[Any]


@dataclass(frozen=True)
class Result:
    """What one feature map led to; costs are per row."""

    name: str
    columns: int
    non_zeros: float
    multiply_adds: float
    map_seconds: float
    train_seconds: float
    kernel_error: float
    test_error: float
    has_converged: bool


def _rows(experiment: Experiment, folder: Any, n_train: int, n_test: int) -> Rows:
    X, y, X_test, y_test = split_rows(folder, experiment.source)
    rng = np.random.default_rng(0)
    train, test = (rng.permutation(len(labels))[:n] for labels, n in ((y, n_train), (y_test, n_test)))
    scaler = MaxAbsScaler().fit(X)
    signs = [np.where(labels == experiment.positive, 1, -1) for labels in (y[train], y_test[test])]
    return Rows(csr_matrix(scaler.transform(X[train])), signs[0], csr_matrix(scaler.transform(X_test[test])), signs[1])


def _result(name: str, feature_map: Any, multiply_adds: float, rows: Rows, gamma: float, C: float) -> Result:
    start = perf_counter()
    features = feature_map.fit_transform(rows.X)
    mapped = perf_counter()
    machine = LinearSVC(loss="hinge", C=C, max_iter=_MAX_ITERATIONS, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
        machine.fit(features, rows.y)
    trained = perf_counter()
    some = rows.X_test[:_PAIRED_ROWS]
    mapped_some = feature_map.transform(some)
    inner = mapped_some @ mapped_some.T
    inner = inner.toarray() if issparse(inner) else inner
    n_non_zeros = features.nnz if issparse(features) else features.size
    return Result(
        name,
        features.shape[1],
        n_non_zeros / len(rows.y),
        multiply_adds,
        (mapped - start) / len(rows.y),
        trained - mapped,
        float(np.sqrt(np.mean((inner - rbf_kernel(some, gamma=gamma)) ** 2))),
        float(np.mean(_predicted(feature_map, machine, rows.X_test) != rows.y_test)),
        machine.n_iter_ < _MAX_ITERATIONS,
    )


def _predicted(feature_map: Any, machine: Any, X: Any) -> npt.NDArray[Any]:
    return np.concatenate([machine.predict(feature_map.transform(X[i : i + 500])) for i in range(0, X.shape[0], 500)])


def found_by(
    rows: Rows, gamma: float, C: float, degrees: tuple[int, ...], components: tuple[int, ...], max_bytes: float
) -> Iterator[Result]:
    """Taylor features of all degrees, then Fourier features, as far as they fit into memory."""
    lengths = np.diff(rows.X.indptr).tolist()
    per_row = float(np.mean(lengths))
    for degree in degrees:
        n_non_zeros = sum(math.comb(n + degree, degree) for n in lengths)
        if 12 * n_non_zeros > max_bytes:
            click.echo(f"  degree {degree} left out: its features take {12 * n_non_zeros / 2**30:.1f} GB", err=True)
            continue
        # A product for each feature, and one with its weight.
        cost = 2.0 * n_non_zeros / len(lengths)
        yield _result(f"Taylor, degree {degree}", TaylorFeatures(gamma, degree), cost, rows, gamma, C)
    for n in components:
        if 8 * n * len(lengths) > max_bytes:
            click.echo(f"  {n} Fourier features left out: they take {8 * n * len(lengths) / 2**30:.1f} GB", err=True)
            continue
        sampler = RBFSampler(gamma=gamma, n_components=n, random_state=0)
        yield _result(f"Fourier, {n}", sampler, n * (per_row + 2.0), rows, gamma, C)


def _best_fourier(found: list[Result], name: str, limit: float) -> str:
    errors = [r.test_error for r in found if r.name.startswith("Fourier") and getattr(r, name) <= limit]
    return f"{100 * min(errors):.2f}" if errors else "-"


def table_of(found: list[Result], title: str) -> Table:
    """One row for each feature map."""
    table = Table(title=title)
    headings = ("columns", "non-zeros", "multiply-adds", "map us/row", "train s", "kernel error", "test error %")
    table.add_column("features", no_wrap=True)
    for heading in (*headings, "Fourier, as many multiply-adds", "as many non-zeros"):
        table.add_column(heading, justify="right")
    for r in found:
        is_taylor = r.name.startswith("Taylor")
        table.add_row(
            r.name,
            f"{r.columns:,}",
            f"{r.non_zeros:,.0f}",
            f"{r.multiply_adds:,.0f}",
            f"{1e6 * r.map_seconds:.1f}",
            f"{r.train_seconds:.1f}" + ("" if r.has_converged else "*"),
            f"{r.kernel_error:.2e}",
            f"{100 * r.test_error:.2f}",
            *(
                _best_fourier(found, name, getattr(r, name)) if is_taylor else ""
                for name in ("multiply_adds", "non_zeros")
            ),
        )
    table.caption = f"* stopped after {_MAX_ITERATIONS} iterations"
    return table


def chart(record: Record, data: str) -> Lines:
    """Test error against multiply-adds, as in the paper's figures; the exact machine is a level."""
    found = [r for r in record.tables["features"] if r["data"] == data]
    series = {
        kind: [(r["multiply_adds"], 100 * r["test_error"]) for r in found if r["name"].startswith(kind)]
        for kind in ("Taylor", "Fourier")
    }
    costs = [cost for points in series.values() for cost, _ in points]
    exact = next(100 * r["test_error"] for r in record.tables["exact"] if r["data"] == data)
    series["SVC"] = [(min(costs), exact), (max(costs), exact)]
    return Lines(f"{data}: test error against cost", "multiply-adds per row", "test error, %", series, y_scale="linear")


@click.command()
@click.option("--only", default="", help="Data sets whose name contains this.")
@click.option("--train-rows", type=click.IntRange(min=100), default=5_000, show_default=True)
@click.option("--test-rows", type=click.IntRange(min=100), default=10_000, show_default=True)
@click.option("--degrees", multiple=True, type=click.IntRange(1, 30), default=(1, 2, 3, 4), show_default=True)
@click.option(
    "--components",
    multiple=True,
    type=click.IntRange(min=1),
    default=(25, 50, 100, 200, 400, 800, 1600, 3200),
    show_default=True,
)
@click.option("--sigma2", type=click.FloatRange(min=0, min_open=True), help="In place of the data set's own.")
@click.option("-c", "C", type=click.FloatRange(min=0, min_open=True), help="In place of the data set's own.")
@click.option("--max-bytes", type=click.FloatRange(min=0), default=1e9, show_default=True, help="Features at most.")
@results_option
def main(
    only: str,
    train_rows: int,
    test_rows: int,
    degrees: tuple[int, ...],
    components: tuple[int, ...],
    sigma2: float | None,
    C: float | None,
    max_bytes: float,
    results: Path,
) -> None:
    """Compare Taylor with Fourier features under a linear support vector machine."""
    folder = data_folder()
    if folder is None:
        return
    record = Record.begin("cotter")
    for experiment in EXPERIMENTS:
        if only not in experiment.name:
            continue
        click.echo(f"{experiment.name} ...", err=True)
        width, penalty = sigma2 or experiment.sigma2, C or experiment.C
        gamma, rows = 0.5 / width, _rows(experiment, folder, train_rows, test_rows)
        svc = SVC(C=penalty, gamma=gamma, cache_size=1000).fit(rows.X, rows.y)
        exact = float(np.mean(svc.predict(rows.X_test) != rows.y_test))
        about = {"data": experiment.name, "training_rows": len(rows.y), "test_rows": len(rows.y_test)}
        about |= {"sigma2": width, "C": penalty}
        record.add("exact", about | {"support_vectors": len(svc.support_), "test_error": exact})
        found = list(found_by(rows, gamma, penalty, degrees, components, max_bytes))
        for result in found:
            record.add("features", about | asdict(result))
        title = (
            f"{experiment.name}: {len(rows.y):,} training and {len(rows.y_test):,} test rows, d = {rows.X.shape[1]}, "
            f"sigma^2 = {width:g}, C = {penalty:g}; SVC with this kernel: {100 * exact:.2f} %"
        )
        Console(width=170).print(table_of(found, title))
    record.save(results)


if __name__ == "__main__":
    main()
