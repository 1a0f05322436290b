"""Gain from each feature not covered by another experiment: the same model and rows are timed with and without it.

A feature is a part of the compiler or the core (a kind in docs/prices.md). Without the feature, the model is compiled
with the same plan, minus what the feature adds. The labels of both models must be equal. The models take turns, in
calls with all rows and row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import approxsvm
from approxsvm import Plan
from approxsvm.artifact import packing
from benchmarks.experiment import Experiment, Rows, Run, demand_labels, number
from benchmarks.plans import plan_of
from benchmarks.problems import SOURCES, scaled
from benchmarks.timing import microseconds, spread

_ROUNDS = 15
_ROWS_ALONE = 500


def toarray(matrix: Any) -> Any:
    """Return a matrix as a dense array."""
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


@dataclass(frozen=True)
class Kind:
    """A feature, the model that shows it, and how to compile without it."""

    source: str
    scaler: str
    without: Callable[[], AbstractContextManager[Any]] = nullcontext  # active while the model is compiled
    plan: Callable[[Any], Plan | None] = lambda plan: plan  # changes a compiled model's plan
    C: float = 1.0
    train_rows: int | None = None  # maximum number of training rows, instead of the option


def _no_dictionary() -> AbstractContextManager[Any]:
    return patch.object(packing, "_narrow", lambda x: (packing._FLOAT64, np.empty(0), x.astype("<f8").tobytes()))


def _no_columns() -> AbstractContextManager[Any]:
    return patch.object(packing, "pack", lambda model: packing._pack_dense(toarray(model.support_vectors)))


KINDS = {
    "few values": Kind("dna, generated", "none", _no_dictionary),
    "support vectors by columns": Kind("text of 20,000 words, generated", "none", _no_columns, train_rows=150),
    "guessed winner": Kind("usps, 10 classes", "none", plan=lambda plan: replace(plan, landmarks=None), C=10.0),
    "higher degrees": Kind("ijcnn1 0.05", "none", plan=lambda plan: replace(plan, degree=min(plan.degree, 2))),
    "many centers": Kind("covtype", "standard", plan=lambda plan: replace(plan, n_centers=1, varying=None)),
    "varying features": Kind("covtype", "standard", plan=lambda plan: replace(plan, varying=None)),
}


def measure(run: Run, case: tuple[str, Kind]) -> Rows:
    """Measure the gain from one feature."""
    name, kind = case
    n_train = kind.train_rows or run.options.train_rows
    problem = scaled(run.data, SOURCES[kind.source], kind.scaler, kind.C, n_train, run.options.rows)
    source = problem.trained()
    fast = approxsvm.compile(source, problem.X)
    with kind.without():
        bare = approxsvm.compile(source, problem.X, plan=kind.plan(fast.plan))
    X = problem.X_test
    demand_labels(name, fast.predict(X), bare.predict(X))
    some = list(toarray(X[spread(X.shape[0], _ROWS_ALONE)]))
    batches = {"with": partial(fast.predict, X), "without": partial(bare.predict, X)}
    times = microseconds(batches, X.shape[0], _ROUNDS)
    alone = {which: partial(_one_by_one, one.predict_one, some) for which, one in (("with", fast), ("without", bare))}
    single = microseconds(alone, len(some), _ROUNDS)
    yield "kinds", {
        "kind": name, "model": problem.name, "scaler": problem.scaler, "plan": plan_of(fast),
        "plan_without": plan_of(bare), "microseconds": times["with"], "microseconds_without": times["without"],
        "one_row": single["with"], "one_row_without": single["without"],
    }  # fmt: skip


def _one_by_one(predict: Callable[[Any], Any], rows: list[Any]) -> None:
    for row in rows:
        predict(row)


EXPERIMENT = Experiment(
    "prices",
    __doc__,
    measure,
    {name: (name, kind) for name, kind in KINDS.items()},
    [
        number("--rows", 100_000, "Maximum test rows."),
        number("--train-rows", None, "Maximum training rows.", least=100),
    ],
)

if __name__ == "__main__":
    EXPERIMENT.main()
