"""Stand-ins for two data sets of Claesen et al. 2014 that cannot be had: generated rows of the same shape, no more.

    python -m benchmarks.stand_ins [--only NAME] [--train-rows N] [--test-rows N] [--results FOLDER]

SensIT Vehicle (combined) has 100 features and epsilon 2,000, in rows of norm 1. The rows here have as many, of two
classes that overlap so far that many rows become support vectors; what they mean is invented, and so accuracies and
plans say nothing of the real data. The width of the kernel is at the paper's bound, 1 / (4 max ||x||^2), where its
expansion about the origin still promises to be close. Columns: the exact model's accuracy; the share of labels that an
expansion of degree 2 changes, about the origin (as in the paper) and about the mean of the support vectors; what the
planner chose, and which labels it proved without the exact engine; microseconds per row on one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import approxsvm
from benchmarks.ordinary import plan_of
from benchmarks.record import Record, results_option
from benchmarks.timing import medians, microseconds, spread, warm_seconds

_SLOW_ROWS = 200  # that scikit-learn predicts
_ENGINE_ROWS = 5_000  # that our exact engine predicts while it is timed
_ROUNDS = 7

Rows = tuple[npt.NDArray[np.float64], npt.NDArray[Any]]


@dataclass(frozen=True)
class Shape:
    """Of a data set: how many features, how many rows here, and how many support vectors the paper's model had."""

    name: str
    n_features: int
    n_train: int
    n_sv_in_paper: int
    generate: Callable[[int], Rows]


@dataclass(frozen=True)
class Figures:
    """Of one stand-in; shares are of the test rows, times of one row on one thread."""

    data: str
    n_features: int
    training_rows: int
    test_rows: int
    gamma: float
    support_vectors: int
    support_vectors_in_paper: int
    accuracy_percent: float
    changed_about_origin_percent: float
    changed_about_mean_percent: float
    plan: str
    certified_percent: float
    compile_seconds: float
    expansion_microseconds: float
    microseconds: float
    engine_microseconds: float
    sklearn_microseconds: float


def _overlapping(n_rows: int, n_features: int, n_informative: int) -> Rows:
    X, y = make_classification(
        n_rows,
        n_features,
        n_informative=n_informative,
        n_redundant=n_features // 2,
        n_clusters_per_class=4,
        flip_y=0.1,
        random_state=0,
    )
    return StandardScaler().fit_transform(X), y


def _like_sensit(n_rows: int) -> Rows:
    return _overlapping(n_rows, 100, 20)


def _like_epsilon(n_rows: int) -> Rows:
    X, y = _overlapping(n_rows, 2_000, 40)
    return normalize(X), y


SHAPES = (
    Shape("SensIT-shaped", 100, 20_000, 25_722, _like_sensit),
    Shape("epsilon-shaped", 2_000, 6_000, 36_988, _like_epsilon),
)


def _seconds_per_row(model: Any, X: Any) -> float:
    return warm_seconds(partial(model.predict, X)) / len(X)


def measure(shape: Shape, n_train: int, n_test: int) -> Figures:
    """Train, compile in four ways, compare every label, take times."""
    X, y = shape.generate(n_train + n_test)
    X, y, X_test, y_test = X[:n_train], y[:n_train], X[n_train:], y[n_train:]
    longest = np.sqrt(np.einsum("ij,ij->i", X, X).max())
    svc = SVC(gamma=0.25 / longest**2, cache_size=2000).fit(X, y)
    engine = approxsvm.compile(svc, mode="exact")
    about = {
        center: approxsvm.compile(svc, mode="approximate", degree=2, n_centers=1, center=center)
        for center in ("origin", "mean")
    }
    fast = approxsvm.compile(svc, X)
    exact = engine.predict(X_test)
    if (fast.predict(X_test) != exact).any():
        raise SystemExit(f"wrong answer, nothing is reported: labels of {shape.name} differ")
    certified = fast.summary.certified_fraction
    some, slow = X_test[spread(n_test, _ENGINE_ROWS)], X_test[spread(n_test, _SLOW_ROWS)]
    timed = {"plan": (fast, X_test), "expansion": (about["mean"], X_test), "engine": (engine, some)}
    times = medians({name: partial(_seconds_per_row, *what) for name, what in timed.items()}, _ROUNDS)
    with threadpool_limits(1):
        (of_sklearn,) = microseconds([partial(svc.predict, slow)], len(slow), 3)
    history = fast.compilation
    assert history is not None
    return Figures(
        data=shape.name,
        n_features=shape.n_features,
        training_rows=n_train,
        test_rows=n_test,
        gamma=svc._gamma,
        support_vectors=len(svc.support_),
        support_vectors_in_paper=shape.n_sv_in_paper,
        accuracy_percent=100.0 * float(np.mean(exact == y_test)),
        changed_about_origin_percent=100.0 * float(np.mean(about["origin"].predict(X_test) != exact)),
        changed_about_mean_percent=100.0 * float(np.mean(about["mean"].predict(X_test) != exact)),
        plan=plan_of(fast),
        certified_percent=100.0 * (certified or 0.0),
        compile_seconds=history.seconds,
        expansion_microseconds=1e6 * times["expansion"],
        microseconds=1e6 * times["plan"],
        engine_microseconds=1e6 * times["engine"],
        sklearn_microseconds=of_sklearn,
    )


@click.command()
@click.option("--only", default="", help="Shapes whose name contains this.")
@click.option("--train-rows", type=click.IntRange(min=100), help="Rows to train with at most.")
@click.option("--test-rows", type=click.IntRange(min=100), default=20_000, show_default=True)
@results_option
def main(only: str, train_rows: int | None, test_rows: int, results: Path) -> None:
    """Measure models of the shapes of data sets that cannot be had."""
    record = Record.begin("stand_ins")
    for shape in SHAPES:
        if only in shape.name:
            click.echo(f"{shape.name} ...", err=True)
            record.add("models", measure(shape, min(shape.n_train, train_rows or shape.n_train), test_rows))
    record.show()
    record.save(results)


if __name__ == "__main__":
    main()
