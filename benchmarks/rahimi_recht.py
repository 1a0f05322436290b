"""Least squares on random features beside the exact machine, as in the table of Rahimi and Recht 2007.

    python -m benchmarks.rahimi_recht [--only NAME] [--train-rows N] [--svm-rows N] [--seeds N] [--results FOLDER]

Fourier features of the Gaussian kernel and binning features of the Laplacian one, as many as in the paper, under ridge
regression (of labels -1 and 1 for classes), and the support vector machine of the Gaussian kernel. Two of the paper's
five data sets cannot be had (Census, KDDCUP99); CPU is LIBSVM's cpu_act.

The paper does not give its kernels' widths. Here each method's gamma and penalty are those with the least error on a
fifth of at most 5,000 training rows, from the same grid and with at most 500 features; then it trains on all its rows.
Seconds are of that last
training, features included. Errors are shares of wrong labels, for CPU ||predicted - y|| / ||y||, in the mean over
seeds of the features. Rows to train with are drawn at random, once. The paper's figures are as remembered from it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import click
import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import issparse
from scipy.sparse.linalg import lsqr
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from approxsvm.features import RandomBinningFeatures
from benchmarks.problems import Source, data_folder, split_rows
from benchmarks.record import Record, results_option

Array: TypeAlias = npt.NDArray[np.float64]
Machine: TypeAlias = Callable[[Array], Array]  # rows to values

_BLOCK = 2_000  # rows whose dense features are held at once
_SEARCHED_ROWS = 5_000
_SEARCHED_FEATURES = 500
_GAMMAS = tuple(2.0**k for k in range(-8, 5, 2))  # times 1 / n_features
_RIDGES = (1e-6, 1e-4, 1e-2)  # times the number of rows
_PENALTIES = (1.0, 10.0, 100.0)


@dataclass(frozen=True)
class Experiment:
    """A row of the paper's table: how many features of both kinds, and what came of it, in percent."""

    name: str
    source: Source
    n_fourier: int
    n_binning: int
    paper: tuple[float, float, float]  # Fourier, binning, exact machine
    is_regression: bool = False
    positive: float = 1.0


EXPERIMENTS = (
    Experiment("CPU", Source("CPU", "cpu_act", n_train=6_554), 300, 350, (3.6, 5.3, 11.0), is_regression=True),
    Experiment("Adult", Source("Adult", "a9a", "a9a.t"), 500, 30, (14.9, 15.3, 15.1)),
    Experiment(
        "Forest Cover", Source("Covertype", "covtype.data", n_train=522_911), 5_000, 50, (11.6, 2.2, 2.2), positive=2.0
    ),
)


@dataclass(frozen=True, eq=False)
class Rows:
    """Standardized rows with what is to be predicted."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    is_regression: bool

    def error(self, predict: Machine) -> float:
        """Share of wrong labels, or the relative error of a regression, on the test rows."""
        blocks = (self.X_test[i : i + _BLOCK] for i in range(0, len(self.X_test), _BLOCK))
        predicted = np.concatenate([predict(block) for block in blocks])
        if self.is_regression:
            return float(np.linalg.norm(predicted - self.y_test) / np.linalg.norm(self.y_test))
        return float(np.mean(np.where(predicted > 0, 1.0, -1.0) != self.y_test))

    def part(self, n_rows: int) -> Rows:
        """The first rows, which are at random."""
        return Rows(self.X[:n_rows], self.y[:n_rows], self.X_test, self.y_test, self.is_regression)

    def to_search(self) -> Rows:
        """A fifth of some training rows in place of the test rows."""
        n = min(_SEARCHED_ROWS, len(self.y))
        k = 4 * n // 5
        return Rows(self.X[:k], self.y[:k], self.X[k:n], self.y[k:n], self.is_regression)


@dataclass(frozen=True)
class Result:
    """One method on one data set, beside the paper's error; `columns` are support vectors of the exact machine."""

    data: str
    method: str
    training_rows: int
    gamma: float
    penalty: float
    columns: int
    seconds: float
    error_percent: float
    paper_percent: float


def read_rows(experiment: Experiment, folder: Path, n_train: int) -> Rows:
    """The experiment's rows, at most `n_train` to train with, in random order."""
    X, y, X_test, y_test = split_rows(folder, experiment.source)
    kept = np.random.default_rng(0).permutation(len(y))[:n_train]
    if not experiment.is_regression:
        y, y_test = (np.where(labels == experiment.positive, 1.0, -1.0) for labels in (y, y_test))
    scaler = StandardScaler().fit(X[kept])
    return Rows(scaler.transform(X[kept]), y[kept], scaler.transform(X_test), y_test, experiment.is_regression)


def ridge_regression(feature_map: Any, rows: Rows, ridge: float) -> tuple[Machine, int]:
    """Ridge regression on the features, and their number. Dense features are only made by blocks of rows."""
    mean = float(np.mean(rows.y))
    feature_map.fit(rows.X)
    first = feature_map.transform(rows.X[:1])
    if issparse(first):
        features = feature_map.transform(rows.X)
        weights = lsqr(features, rows.y - mean, damp=np.sqrt(ridge * len(rows.y)), atol=1e-8, btol=1e-8)[0]
    else:
        gram = ridge * len(rows.y) * np.eye(first.shape[1])
        moments = np.zeros(first.shape[1])
        for i in range(0, len(rows.y), _BLOCK):
            block = feature_map.transform(rows.X[i : i + _BLOCK])
            gram += block.T @ block
            moments += block.T @ (rows.y[i : i + _BLOCK] - mean)
        weights = cho_solve(cho_factor(gram), moments)
    return (lambda X: feature_map.transform(X) @ weights + mean), len(weights)


def exact_machine(gamma: float, rows: Rows, penalty: float) -> tuple[Machine, int]:
    """The support vector machine of the Gaussian kernel, and how many support vectors it has."""
    kind = SVR if rows.is_regression else SVC
    machine = kind(C=penalty, gamma=gamma, cache_size=2000).fit(rows.X, rows.y)
    return (machine.predict if rows.is_regression else machine.decision_function), len(machine.support_)


def measured(experiment: Experiment, rows: Rows, svm_rows: int, n_seeds: int) -> Iterator[Result]:
    """Fourier features, binning features and the exact machine, each with its best gamma and penalty."""

    def fourier(gamma: float, ridge: float, train: Rows, n: int, seed: int) -> tuple[Machine, int]:
        return ridge_regression(RBFSampler(gamma=gamma, n_components=n, random_state=seed), train, ridge)

    def binning(gamma: float, ridge: float, train: Rows, n: int, seed: int) -> tuple[Machine, int]:
        return ridge_regression(RandomBinningFeatures(gamma=gamma, n_components=n, random_state=seed), train, ridge)

    def svm(gamma: float, penalty: float, train: Rows, n: int, seed: int) -> tuple[Machine, int]:
        return exact_machine(gamma, train, penalty)

    n_fourier, n_binning = experiment.n_fourier, experiment.n_binning
    searched = rows.to_search()
    gammas = [factor / rows.X.shape[1] for factor in _GAMMAS]
    for (name, method, penalties, train, n, n_runs), paper in zip(
        (
            (f"Fourier, {n_fourier}", fourier, _RIDGES, rows, n_fourier, n_seeds),
            (f"binning, {n_binning}", binning, _RIDGES, rows, n_binning, n_seeds),
            ("exact machine", svm, _PENALTIES, rows.part(svm_rows), 0, 1),
        ),
        experiment.paper,
        strict=True,
    ):
        few = min(n, _SEARCHED_FEATURES)
        errors = {pair: searched.error(method(*pair, searched, few, 0)[0]) for pair in product(gammas, penalties)}
        gamma, penalty = min(errors, key=errors.__getitem__)
        taken, found, columns = [], [], 0
        for seed in range(n_runs):
            start = perf_counter()
            machine, columns = method(gamma, penalty, train, n, seed)
            taken.append(perf_counter() - start)
            found.append(rows.error(machine))
        seconds, error = statistics.median(taken), 100 * statistics.mean(found)
        yield Result(experiment.name, name, len(train.y), gamma, penalty, columns, seconds, error, paper)


@click.command()
@click.option("--only", default="", help="Data sets whose name contains this.")
@click.option("--train-rows", type=click.IntRange(min=500), default=600_000, show_default="all")
@click.option("--svm-rows", type=click.IntRange(min=500), default=40_000, show_default=True, help="For SVC alone.")
@click.option("--seeds", "n_seeds", type=click.IntRange(min=1), default=3, show_default=True)
@results_option
def main(only: str, train_rows: int, svm_rows: int, n_seeds: int, results: Path) -> None:
    """Repeat the table on the data sets that can be had."""
    folder = data_folder()
    if folder is None:
        return
    record = Record.begin("rahimi_recht")
    for experiment in EXPERIMENTS:
        if only in experiment.name:
            rows = read_rows(experiment, folder, train_rows)
            for result in measured(experiment, rows, svm_rows, n_seeds):
                click.echo(f"{result.data}, {result.method}: {result.error_percent:.2f} %", err=True)
                record.add("errors", result)
    record.show()
    record.save(results)


if __name__ == "__main__":
    main()
