"""Least squares on random features beside the exact machine, as in the table of Rahimi and Recht 2007.

Fourier features of the Gaussian kernel and binning features of the Laplacian one, as many as in the paper, under ridge
regression (of labels -1 and 1 for classes), and the support vector machine of the Gaussian kernel. Two of the paper's
five data sets cannot be had (Census, KDDCUP99); CPU is LIBSVM's cpu_act.

The paper does not give its kernels' widths. Here each method's gamma and penalty are those with the least error on a
fifth of at most 5,000 training rows, from the same grid and with at most 500 features; then it trains on all its rows.
Seconds are of that last training, features included. Errors are shares of wrong labels, for CPU
||predicted - y|| / ||y||, in the mean over seeds of the features. Rows to train with are drawn at random, once. The
paper's figures are as remembered from it. Columns of the exact machine are its support vectors.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
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
from benchmarks import experiment
from benchmarks.experiment import Experiment, Run, number
from benchmarks.problems import ADULT, Source, split_rows
from benchmarks.timing import timed

Array: TypeAlias = npt.NDArray[np.float64]
Machine: TypeAlias = Callable[[Array], Array]  # rows to values

_BLOCK = 2_000  # rows whose dense features are held at once
_SEARCHED_ROWS = 5_000
_SEARCHED_FEATURES = 500
_GAMMAS = tuple(2.0**k for k in range(-8, 5, 2))  # times 1 / n_features
_RIDGES = (1e-6, 1e-4, 1e-2)  # times the number of rows
_PENALTIES = (1.0, 10.0, 100.0)


@dataclass(frozen=True)
class Table:
    """A row of the paper's table: how many features of both kinds, and what came of it, in percent."""

    name: str
    source: Source
    n_fourier: int
    n_binning: int
    paper: tuple[float, float, float]  # Fourier, binning, exact machine
    is_regression: bool = False
    positive: float = 1.0


_COVERTYPE = Source("Covertype", "covtype.data", n_train=522_911)
_TABLES = (
    Table("CPU", Source("CPU", "cpu_act", n_train=6_554), 300, 350, (3.6, 5.3, 11.0), is_regression=True),
    Table("Adult", ADULT, 500, 30, (14.9, 15.3, 15.1)),
    Table("Forest Cover", _COVERTYPE, 5_000, 50, (11.6, 2.2, 2.2), positive=2.0),
)


@dataclass(frozen=True, eq=False)
class Rows:
    """Standardized rows with what is to be predicted."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    is_regression: bool

    @classmethod
    def read(cls, table: Table, folder: Path, n_train: int) -> Rows:
        """At most `n_train` rows to train with, in random order."""
        X, y, X_test, y_test = split_rows(folder, table.source)
        kept = np.random.default_rng(0).permutation(len(y))[:n_train]
        if not table.is_regression:
            y, y_test = (np.where(labels == table.positive, 1.0, -1.0) for labels in (y, y_test))
        scaler = StandardScaler().fit(X[kept])
        return cls(scaler.transform(X[kept]), y[kept], scaler.transform(X_test), y_test, table.is_regression)

    def error(self, predict: Machine) -> float:
        """Share of wrong labels, or the relative error of a regression, on the test rows."""
        blocks = (self.X_test[i : i + _BLOCK] for i in range(0, len(self.X_test), _BLOCK))
        predicted = np.concatenate([predict(block) for block in blocks])
        if self.is_regression:
            return float(np.linalg.norm(predicted - self.y_test) / np.linalg.norm(self.y_test))
        return float(np.mean(np.where(predicted > 0, 1.0, -1.0) != self.y_test))

    def first(self, n_rows: int) -> Rows:
        """The first rows, which are at random."""
        return replace(self, X=self.X[:n_rows], y=self.y[:n_rows])

    def to_search(self) -> Rows:
        """A fifth of some training rows in place of the test rows."""
        n = min(_SEARCHED_ROWS, len(self.y))
        k = 4 * n // 5
        return replace(self.first(k), X_test=self.X[k:n], y_test=self.y[k:n])


def _ridge_regression(
    kind: Any, gamma: float, ridge: float, rows: Rows, n_components: int, seed: int
) -> tuple[Machine, int]:
    """Ridge regression on features of some kind, and their number. Dense features are only made by blocks of rows."""
    feature_map = kind(gamma=gamma, n_components=n_components, random_state=seed).fit(rows.X)
    mean, ridge = float(np.mean(rows.y)), ridge * len(rows.y)
    first = feature_map.transform(rows.X[:1])
    if issparse(first):
        features = feature_map.transform(rows.X)
        weights = lsqr(features, rows.y - mean, damp=np.sqrt(ridge), atol=1e-8, btol=1e-8)[0]
    else:
        gram = ridge * np.eye(first.shape[1])
        moments = np.zeros(first.shape[1])
        for i in range(0, len(rows.y), _BLOCK):
            block = feature_map.transform(rows.X[i : i + _BLOCK])
            gram += block.T @ block
            moments += block.T @ (rows.y[i : i + _BLOCK] - mean)
        weights = cho_solve(cho_factor(gram), moments)
    return (lambda X: feature_map.transform(X) @ weights + mean), len(weights)


def _exact_machine(gamma: float, penalty: float, rows: Rows, n_components: int, seed: int) -> tuple[Machine, int]:
    """The support vector machine of the Gaussian kernel, and how many support vectors it has."""
    kind = SVR if rows.is_regression else SVC
    machine = kind(C=penalty, gamma=gamma, cache_size=2000).fit(rows.X, rows.y)
    return (machine.predict if rows.is_regression else machine.decision_function), len(machine.support_)


def measure(run: Run, table: Table) -> experiment.Rows:
    """Fourier features, binning features and the exact machine, each with its best gamma and penalty."""
    rows, n_seeds = Rows.read(table, run.data, run.options.train_rows), run.options.seeds
    fourier, binning = (partial(_ridge_regression, kind) for kind in (RBFSampler, RandomBinningFeatures))
    methods: tuple[tuple[Any, ...], ...] = (
        (f"Fourier, {table.n_fourier}", fourier, _RIDGES, rows, table.n_fourier, n_seeds),
        (f"binning, {table.n_binning}", binning, _RIDGES, rows, table.n_binning, n_seeds),
        ("exact machine", _exact_machine, _PENALTIES, rows.first(run.options.svm_rows), 0, 1),
    )
    searched = rows.to_search()
    gammas = [factor / rows.X.shape[1] for factor in _GAMMAS]
    for (name, method, penalties, train, n, n_runs), paper in zip(methods, table.paper, strict=True):
        few = min(n, _SEARCHED_FEATURES)
        errors = {pair: searched.error(method(*pair, searched, few, 0)[0]) for pair in product(gammas, penalties)}
        gamma, penalty = min(errors, key=errors.__getitem__)
        runs = [timed(partial(method, gamma, penalty, train, n, seed)) for seed in range(n_runs)]
        error = 100 * statistics.mean(rows.error(machine) for (machine, _), _ in runs)
        click.echo(f"{table.name}, {name}: {error:.2f} %", err=True)
        row = {
            "data": table.name,
            "method": name,
            "training_rows": len(train.y),
            "gamma": gamma,
            "penalty": penalty,
            "columns": runs[-1][0][1],
            "seconds": statistics.median(seconds for _, seconds in runs),
            "error_percent": error,
            "paper_percent": paper,
        }
        yield "errors", row


_OPTIONS = [
    number("--train-rows", 600_000, "Of all data sets.", 500),
    number("--svm-rows", 40_000, "For the exact machine.", 500),
    number("--seeds", 3),
]
EXPERIMENT = Experiment("rahimi_recht", __doc__, measure, {table.name: table for table in _TABLES}, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()
