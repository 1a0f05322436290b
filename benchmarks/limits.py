"""Fraction of the machine's peak performance reached by planned models, which limits what could still be gained.

For each model in `benchmarks.ordinary --published`: the certified plan's time per row, in batches on one thread, and
the fraction of this time that the plan's unavoidable multiply-adds, exponentials and bytes would take at the peak
rates, which are measured between the rounds (peak.cpp). The share of the limit is their combined minimum time:
multiply-adds and exponentials share execution units, and bytes are read meanwhile. The rest of the time goes to bounds,
finding a center, grouping rows, Python and waiting.

Only work that certainly took place is counted, according to the stages that answered the rows. For one row, this
includes the coefficients of its expansion up to degree 2, and up to degree 3 if a direction or a higher degree decided
the row; its products with 2 sqrt(n_centers) points; sums, or the expansion, in the first few coordinates, and further
sums for undecided rows. In the exact engine, it includes an exponential per support vector and one product per feature
of the support vector (or per nonzero, if there are few); with more than two classes, only the pairs of one winner
count. Bytes are counted for the row, read from the L3 cache, and for coefficients and support vectors, read from the
L2 cache once per 48 rows. Support vectors on a grid of few values are read once per row, in their stored form, and
have no exponentials.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

import approxsvm
from approxsvm import KernelModel, read_model
from approxsvm.artifact.views import Artifact
from approxsvm.planning.costs.cost import Products, Size
from approxsvm.runtime.evaluator import Evaluator
from benchmarks.experiment import Experiment, Rows, Run
from benchmarks.ordinary import PUBLISHED_OPTION, cases
from benchmarks.pages import name_of
from benchmarks.peak import FIGURES, Peak
from benchmarks.plans import plan_of, shares_of_stages
from benchmarks.problems import PROBLEM_OPTIONS, Chosen
from benchmarks.timing import spread, warm_seconds

_ROUNDS = 15
_ROWS = 20_000
_ROWS_TOGETHER = 48
# Parts of `few_values_work`: estimated costs of a plane of 32 bits, a byte of codes, a function, and the remaining work
# for a support vector (bits_work in simd/bits.hpp, and few_values/layout.hpp).
_PLANE, _PART, _FEW_FUNCTION, _FEW_REST = 1.2, 0.35, 1.5, 5.0
_ENTRY_COST = 64.0  # as in planning/costs/cost.py: cost of one nonzero in the layout by columns


@dataclass(frozen=True)
class Work:
    """Work per row: float32 multiply-adds, exponentials, and bytes read from the L2 cache."""

    multiply_adds: float = 0.0
    exponentials: float = 0.0
    n_bytes: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    def __mul__(self, share: float) -> Work:
        return Work(*(share * a for a in vars(self).values()))


def measure(run: Run, case: Chosen) -> Rows:
    """Measure one model."""
    problem = case.problem(run.data, run.options)
    model, X, X_test = read_model(problem.trained()), problem.X, problem.X_test
    fast = approxsvm.compile(model, X)
    X = X_test[spread(X_test.shape[0], _ROWS)]
    work = work_of(fast, model, X)
    peak = Peak(run.scratch)
    figures = [peak.all() | {"seconds": warm_seconds(partial(fast.predict, X))} for _ in range(_ROUNDS)]
    # Take the minimum time and the maximum peaks: other programs can only slow a run down.
    measured = {name: (min if name == "seconds" else max)(x[name] for x in figures) for name in figures[0]}
    taken = measured["seconds"] / X.shape[0]
    row_bytes = (12.0 * X.nnz / X.shape[0]) if issparse(X) else float(X.itemsize * X.shape[1])
    multiply_adds, exponentials = work.multiply_adds / measured["fma"], work.exponentials / measured["exp"]
    # Narrow rows stay in the L2 cache.
    n_bytes = (
        work.n_bytes / measured["cache"]
        + row_bytes / measured["cache" if row_bytes * X.shape[0] < 1 << 20 else "third"]
    )
    row = {
        "model": name_of({"model": problem.name, "scaler": problem.scaler}),
        "plan": plan_of(fast),
        "microseconds": 1e6 * taken,
        "multiply_adds": work.multiply_adds,
        "exponentials": work.exponentials,
        "bytes": work.n_bytes + row_bytes,
        "share_of_multiply_adds": multiply_adds / taken,
        "share_of_exponentials": exponentials / taken,
        "share_of_bytes": n_bytes / taken,
        "share_of_limit": max(multiply_adds + exponentials, n_bytes) / taken,
    }
    yield "models", row
    yield "peaks", {"model": row["model"], **{name: measured[name] for name in FIGURES}}


def work_of(fast: Any, model: KernelModel, X: Any) -> Work:
    """Return the average work per row, according to the stages that answer such rows."""
    share, artifact = shares_of_stages(fast, X), fast.artifact
    left = share["float32"] + share["float64"] + share["definition"]
    engine = _of_engine(fast, model, X) * (left + share["float64"] + share["definition"])
    if artifact.subspace_coordinates:
        first, *further = artifact.subspace_coordinates
        sums = partial(_of_sums, X.shape[1], _of_winner(fast, model, X))
        done = sums(first)
        if inner := artifact.section("subspace_expansion"):
            coefficients = float(Size(1, first).coefficients(int(Artifact(inner).header["degree"])))
            done = Work(coefficients + X.shape[1] * first, 1.0, 4.0 * coefficients / _ROWS_TOGETHER)
        return sum((sums(n) * left for n in further), start=done) + engine
    if artifact.mode == "exact":
        return engine
    size, degree = Size(artifact.n_centers, artifact.n_varying), int(artifact.header["degree"])
    n_forms = len(model.labels) - 1 if model.n_decisions > 1 else 1
    together = min(max(X.shape[0] / size.n_centers, 1.0), _ROWS_TOGETHER)
    at_once, further = (float(n_forms * size.coefficients(r)) for r in (min(degree, 2), min(degree, 3)))
    refined = (further - at_once) * share["higher_degree"] + at_once * share["direction"]
    points = 2.0 * X.shape[1] * math.sqrt(size.n_centers) if size.n_centers > 1 else 0.0
    return Work(at_once + refined + points, 1.0, 4.0 * ((at_once + refined) / together + points)) + engine


def _of_sums(n_features: int, listed: float, n_coordinates: int) -> Work:
    n_products = (n_features + listed) * n_coordinates
    return Work(n_products + listed, listed, 4.0 * listed * n_coordinates / _ROWS_TOGETHER)


def _of_winner(fast: Any, model: KernelModel, X: Any) -> float:
    """Count the support vectors of the functions that decide a row: all of them, or only its class's pairs."""
    if model.n_decisions == 1:
        return float(model.n_sv)
    pairs = Products.of(model, X)
    classes = np.searchsorted(model.labels, fast.predict(X)) if np.all(np.diff(model.labels) > 0) else None
    n = len(model.labels)
    frequency = np.full(n, 1.0 / n) if classes is None else np.bincount(classes, minlength=n) / len(classes)
    return float(frequency @ (pairs.counts + pairs.listed))


def _of_engine(fast: Any, model: KernelModel, X: Any) -> Work:
    """Return the work for a row answered by the exact engine."""
    n_functions, n_sv = (len(model.labels) - 1 if model.n_decisions > 1 else 1), _of_winner(fast, model, X)
    few_work = Evaluator(fast.artifact).native.few_values_work
    if few_work > 0.0:
        codes = few_work - _FEW_REST - _FEW_FUNCTION * n_functions
        n_planes = -(-model.n_features // 32)
        n_bytes = 4.0 * n_planes if math.isclose(codes, _PLANE * n_planes) else codes / _PART
        return Work(float(model.n_sv * n_functions), 0.0, model.n_sv * (n_bytes + 4.0 * n_functions))
    products = Products.of(model, X)
    if products.by_columns:
        return Work(products.cost / _ENTRY_COST + n_sv * n_functions, n_sv, 8.0 * products.cost / _ENTRY_COST)
    n_products = n_sv * products.n_terms
    return Work(n_products + n_sv, n_sv, 4.0 * n_products / _ROWS_TOGETHER)


EXPERIMENT = Experiment("limits", __doc__, measure, cases, [PUBLISHED_OPTION, *PROBLEM_OPTIONS])

if __name__ == "__main__":
    EXPERIMENT.main()
