"""How the cost of a row grows: with support vectors, with features, with gamma; and what centers certify.

    python -m benchmarks.growth [--quick] [--only TABLE]

Models are SVCs trained on generated rows: mixtures of six factors with noise, two classes by a curved boundary, a tenth
of the labels flipped, so that most rows become support vectors. Each is measured as `benchmarks.ordinary` does, with
KARL, but planned with effort "low": the largest would take many minutes to compile otherwise. Centers are those of
degree-2 plans for two real models, compiled with as many centers as asked for. The share of the FMA peak counts the
multiply-adds of what is asked for and nothing else: d (d + 1) / 2 of a quadratic form, d for each support vector in the
exact engine, whose exponentials come on top.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from sklearn.svm import SVC

import approxsvm
from benchmarks.exact_peers import Karl
from benchmarks.ordinary import measure
from benchmarks.peak import find_peak
from benchmarks.problems import Problem, Source, data_folder, libsvm_model, scaled, split_rows
from benchmarks.record import Record, results_option
from benchmarks.timing import medians, microseconds, spread, warm_seconds

TABLES = ("support vectors", "features", "gamma", "centers", "peak")
N_FACTORS = 6
FLIPPED = 0.1
_N_FEATURES = 10
_TRAIN_ROWS = 3_000  # of the tables where their number stays
_TEST_ROWS = 2_000
# Rows to train with: some 0.8 of them become support vectors at C = 0.1.
_SIZES = (640, 2_000, 6_300, 20_000, 63_000)
_DIMENSIONS = (4, 8, 16, 32, 64, 128, 256, 512)
_GAMMAS = tuple(10.0 ** (k / 2 - 3) for k in range(11))  # times scikit-learn's "scale"
_CENTERS = (1, 4, 16, 64, 256, 1024, 4096)
_CENTER_ROWS = 20_000
_ROUNDS = 11


def generated(n_rows: int, n_features: int, seed: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Rows and labels, -1 and 1; all seeds share one distribution."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n_rows, N_FACTORS))
    loadings = np.random.default_rng(0).standard_normal((N_FACTORS, n_features)) / np.sqrt(N_FACTORS)
    X = factors @ loadings + 0.3 * rng.standard_normal((n_rows, n_features))
    is_positive = np.sin(1.5 * factors[:, 0]) + factors[:, 1] * factors[:, 2] > 0
    is_positive ^= rng.random(n_rows) < FLIPPED
    return X, np.where(is_positive, 1, -1)


def _problem(n_rows: int, n_features: int, C: float = 1.0, factor: float = 1.0) -> Problem:
    X, y = generated(n_rows, n_features, 1)
    X_test, _ = generated(_TEST_ROWS, n_features, 2)
    name = f"generated, {n_rows} x {n_features}, gamma x {factor:g}"
    return Problem(name, "none", X, y, X_test, factor / (n_features * float(X.var())), C)


def problems(table: str, quick: bool) -> Iterator[Problem]:
    """Those of one table, from small to large."""
    n_rows = 500 if quick else _TRAIN_ROWS
    if table == "support vectors":
        for size in _SIZES[: 2 if quick else None]:
            yield _problem(size, _N_FEATURES, C=0.1)
    if table == "features":
        for n_features in _DIMENSIONS[: 3 if quick else None]:
            yield _problem(n_rows, n_features)
    if table == "gamma":
        for factor in _GAMMAS[:: 4 if quick else 1]:
            yield _problem(n_rows, _N_FEATURES, factor=factor)


def _of_real_data(folder: Path, quick: bool) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, model, rows to plan by and test rows."""
    X, _, X_test, _ = split_rows(folder, Source("ijcnn1", "ijcnn1", "ijcnn1.t"))
    yield "ijcnn1, gamma 2", libsvm_model(folder, "ijcnn1_g2", 22), X, X_test
    if not quick:
        covtype = scaled(folder, Source("covtype", "covtype.data", positive=2, n_train=10_000), "minmax")
        yield "covtype", SVC(cache_size=1000).fit(covtype.X, covtype.y), covtype.X, covtype.X_test


def centers(folder: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """What plans of degree 2 about more and more centers certify, cost and take."""
    for name, model, X, X_test in _of_real_data(folder, quick):
        rows = X_test[spread(len(X_test), 1_000 if quick else _CENTER_ROWS)]
        for n_centers in _CENTERS[: 3 if quick else None]:
            start = perf_counter()
            fast = approxsvm.compile(model, X, degree=2, n_centers=n_centers, max_bytes=1 << 30)
            seconds = perf_counter() - start
            (time,) = microseconds([partial(fast.predict, rows)], len(rows), _ROUNDS)
            yield {
                "model": name,
                "n_centers": n_centers,
                "certified": fast.certified(rows).mean(),
                "microseconds": time,
                "artifact_bytes": fast.summary.n_bytes,
                "compile_seconds": seconds,
            }


def peak_shares(scratch: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """What our kernels do of the multiply-adds that one core can do, by the number of features."""
    peak, reason = find_peak(scratch)
    if peak is None:
        click.echo(f"no share of the peak: {reason}", err=True)
        return
    for d in _DIMENSIONS[: 3 if quick else None]:
        X, y = generated(1_000, d, 1)
        rows = generated(_TEST_ROWS, d, 2)[0].astype(np.float32)
        svc = SVC().fit(X, y)
        form = approxsvm.compile(svc, mode="approximate", degree=2, n_centers=1)
        engine = approxsvm.compile(svc, mode="exact")
        turns: dict[str, Callable[[], float]] = {
            "peak": peak,
            "form": partial(warm_seconds, partial(form.predict, rows)),
            "engine": partial(warm_seconds, partial(engine.predict, rows)),
        }
        found = medians(turns, _ROUNDS)
        n_sv = len(svc.support_)
        yield {
            "n_features": d,
            "peak": found["peak"],
            "quadratic_form": d * (d + 1) / 2 * len(rows) / found["form"] / found["peak"],
            "exact_engine": d * n_sv * len(rows) / found["engine"] / found["peak"],
        }


@click.command()
@click.option("--quick", is_flag=True, help="Small models, few of them: a try.")
@click.option("--only", type=click.Choice(TABLES), help="One table.")
@results_option
def main(quick: bool, only: str | None, results: Path) -> None:
    """Measure growth."""
    folder = data_folder()
    record = Record.begin("growth")
    tables = TABLES if only is None else (only,)
    with tempfile.TemporaryDirectory(prefix="approxsvm-benchmarks-") as temporary:
        scratch = Path(temporary)
        for table in tables:
            click.echo(f"{table} ...", err=True)
            for problem in problems(table, quick):
                figures, peers = measure(problem, table, scratch, (Karl,), "low")
                record.add("models", figures)
                for peer in peers:
                    record.add("peers", peer)
        if "centers" in tables and folder is not None:
            for figure in centers(folder, quick):
                record.add("centers", figure)
        if "peak" in tables:
            for figure in peak_shares(scratch, quick):
                record.add("peak", figure)
    record.show()
    record.save(results)


if __name__ == "__main__":
    main()
