"""Stand-ins for two unavailable data sets from Claesen et al. 2014: generated rows of the same shape only.

SensIT Vehicle (combined) has 100 features and epsilon has 2,000, in rows of norm 1. The rows here have the same numbers
of features, and two classes that overlap so much that many rows become support vectors. Their contents are random, so
accuracies and plans do not apply to the real data. The kernel width is at the paper's bound, 1 / (4 max ||x||^2), at
which the expansion about the origin is still guaranteed to be close. Columns: the exact model's accuracy; the fraction
of labels changed by an expansion of degree 2, about the origin (as in the paper) and about the mean of the support
vectors; the planner's choice, and the fraction of labels that it proved without the exact engine; microseconds per row
on one thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import approxsvm
from benchmarks.experiment import Experiment, Rows, Run, demand_labels, number
from benchmarks.plans import plan_of
from benchmarks.timing import microseconds, spread, timed

_SLOW_ROWS = 200  # predicted by scikit-learn
_ENGINE_ROWS = 5_000  # predicted by our exact engine while it is timed
_ROUNDS = 7


@dataclass(frozen=True)
class Shape:
    """Shape of a data set: features, rows used here, and support vectors in the paper's model."""

    name: str
    n_features: int
    n_informative: int
    n_train: int
    n_sv_in_paper: int
    has_norm_1: bool = False


_SHAPES = (
    Shape("SensIT-shaped", 100, 20, 20_000, 25_722),
    Shape("epsilon-shaped", 2_000, 40, 6_000, 36_988, has_norm_1=True),
)


def measure(run: Run, shape: Shape) -> Rows:
    """Train, compile in four ways, compare the planned model's labels with the exact ones, and measure run times."""
    n_train, n_test = min(shape.n_train, run.options.train_rows or shape.n_train), run.options.test_rows
    X, y = make_classification(
        n_train + n_test,
        shape.n_features,
        n_informative=shape.n_informative,
        n_redundant=shape.n_features // 2,
        n_clusters_per_class=4,
        flip_y=0.1,
        random_state=0,
    )
    X = StandardScaler().fit_transform(X)
    X = normalize(X) if shape.has_norm_1 else X
    X, y, X_test, y_test = X[:n_train], y[:n_train], X[n_train:], y[n_train:]
    svc = SVC(gamma=0.25 / np.einsum("ij,ij->i", X, X).max(), cache_size=2000).fit(X, y)
    engine = approxsvm.compile(svc, mode="exact")
    approximate = partial(approxsvm.compile, svc, mode="approximate", degree=2, n_centers=1)
    origin, mean = approximate(center="origin"), approximate(center="mean")
    fast, compile_seconds = timed(partial(approxsvm.compile, svc, X))
    exact = engine.predict(X_test)
    demand_labels(shape.name, fast.predict(X_test), exact)
    certified = fast.summary.certified_fraction
    some, slow = X_test[spread(n_test, _ENGINE_ROWS)], X_test[spread(n_test, _SLOW_ROWS)]
    turns = {"plan": (fast, X_test), "expansion": (mean, X_test), "engine": (engine, some)}
    n_rows = {name: len(rows) for name, (_, rows) in turns.items()}
    times = microseconds({name: partial(model.predict, rows) for name, (model, rows) in turns.items()}, n_rows, _ROUNDS)
    with threadpool_limits(1):
        times |= microseconds({"sklearn": partial(svc.predict, slow)}, len(slow), 3)
    row = {
        "data": shape.name,
        "n_features": shape.n_features,
        "training_rows": n_train,
        "test_rows": n_test,
        "gamma": svc._gamma,
        "support_vectors": len(svc.support_),
        "support_vectors_in_paper": shape.n_sv_in_paper,
        "accuracy_percent": 100.0 * np.mean(exact == y_test),
        "changed_about_origin_percent": 100.0 * np.mean(origin.predict(X_test) != exact),
        "changed_about_mean_percent": 100.0 * np.mean(mean.predict(X_test) != exact),
        "plan": plan_of(fast),
        "certified_percent": 100.0 * (certified or 0.0),
        "compile_seconds": compile_seconds,
        "expansion_microseconds": times["expansion"],
        "microseconds": times["plan"],
        "engine_microseconds": times["engine"],
        "sklearn_microseconds": times["sklearn"],
    }
    yield "models", row


_OPTIONS = [number("--train-rows", None, "Maximum training rows.", 100), number("--test-rows", 20_000, least=100)]
EXPERIMENT = Experiment("stand_ins", __doc__, measure, {shape.name: shape for shape in _SHAPES}, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()
