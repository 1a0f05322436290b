"""Reads off the constants of the planner's cost model (approxsvm/planning/cost.py) on the machine and target at hand.

    [APPROXSVM_TARGET=avx2] python -m benchmarks.costs [--only NAME]

Forced plans of two-class models are timed on calls of 10,000 rows, which the cost model assumes, and their times are
taken as a sum of what is done once for a row of a stage, on the way to one of many centers, for a support vector in the
exact engine, and of multiply-adds, among which runs of coefficients count as they do today: non-negative least squares
of relative errors. What the constants of today predict stands beside it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import ApproxSVMError
from approxsvm.planning.cost import Constants, CostModel, Size
from benchmarks.problems import Problem, Selection, data_folder
from benchmarks.record import Record, results_option
from benchmarks.timing import microseconds

_NAMES = ("pendigits, 0", "phishing", "ijcnn1", "svmguide1", "australian", "german", "ionosphere", "covtype")
_PLANS = [(2, 1), (3, 1), (4, 1), (2, 4), (2, 16), (3, 16), (2, 64)]
_CALL_ROWS = 10_000
_ROUNDS = 15
_TERMS = ("multiply-add", "row of a stage", "way to a center", "support vector")


def _call(X: Any) -> Any:
    return np.tile(X, (-(-_CALL_ROWS // X.shape[0]), 1))[:_CALL_ROWS]


def _shares(plan: Any, X: Any) -> dict[str, float]:
    """Of the rows of a call, by the stage that answered them."""
    before = dict(plan.rows_per_stage)
    plan.predict(X)
    return {stage: (n - before[stage]) / X.shape[0] for stage, n in plan.rows_per_stage.items()}


def measure(problem: Problem) -> list[tuple[str, float, npt.NDArray[np.float64], float]]:
    """Name, time, terms and today's prediction in multiply-adds, of every plan."""
    svc = SVC(gamma=problem.gamma, cache_size=1000).fit(problem.X, problem.y)
    model = approxsvm.read_model(svc)
    X = _call(problem.X_test)
    costs = CostModel.of(model, X)
    zero = CostModel.of(model, X, Constants(0.0, 0.0, 0.0, Constants.here().run))  # multiply-adds alone
    plans: dict[str, tuple[Any, Any]] = {"exact": (approxsvm.compile(svc, mode="exact"), None)}
    for degree, n_centers in _PLANS:
        try:
            plan = approxsvm.compile(svc, problem.X, degree=degree, n_centers=n_centers, max_bytes=1 << 26)
        except ApproxSVMError:
            continue
        size = Size(plan.artifact.n_centers, plan.artifact.n_varying)
        plans[f"{size.n_centers} x {degree}"] = (plan, (degree, size))
    shares = {name: _shares(plan, X) for name, (plan, _) in plans.items()}
    times = microseconds([partial(plan.predict, X) for plan, _ in plans.values()], X.shape[0], _ROUNDS)
    found = []
    for (name, (_, forced)), time in zip(plans.items(), times, strict=True):
        if forced is None:
            terms = np.array([zero.exact, 1.0, 0.0, float(model.n_sv)])
            found.append((name, time, terms, costs.exact))
            continue
        degree, size = forced
        share = shares[name]
        engine = share["float32"] + 2.0 * (share["float64"] + share["definition"])
        rows = 1.0 + (1.0 - share["expansion"]) + engine
        terms = np.array([zero.cascade(degree, size, share), rows, float(size.n_centers > 1), engine * model.n_sv])
        found.append((name, time, terms, costs.cascade(degree, size, share)))
    return found


@click.command()
@click.option("--only", default="", help="Problems whose name contains this.")
@results_option
def main(only: str, results: Path) -> None:
    """Time forced plans and fit the constants of the cost model."""
    folder = data_folder()
    if folder is None:
        return
    record = Record.begin("costs")
    rows: list[tuple[str, ...]] = []
    times, terms, today = [], [], []
    for name in _NAMES:
        if only not in name:
            continue
        for problem in Selection(name, n_test=_CALL_ROWS).of(folder):
            if problem.name != name:  # but has it in its name
                continue
            click.echo(f"{problem.name}, {problem.scaler} ...", err=True)
            for plan, time, of_plan, predicted in measure(problem):
                rows.append((problem.name, problem.scaler, plan))
                times.append(time)
                terms.append(of_plan)
                today.append(predicted)
    y, A, units = np.array(times), np.array(terms), np.array(today)
    solution, _ = nnls(A / y[:, np.newaxis], np.ones(len(y)))
    fitted = A @ solution
    units *= np.exp(np.median(np.log(y / units)))
    for row, time, old, new in zip(rows, y, units, fitted, strict=True):
        names = dict(zip(("model", "scaler", "plan"), row, strict=True))
        record.add("plans", {**names, "microseconds": time, "today": old, "fitted": new})
    for name, value in zip(_TERMS, solution, strict=True):
        units_of_it = value / solution[0] if solution[0] > 0 else None
        record.add("constants", {"term": name, "microseconds": value, "multiply_adds": units_of_it})
    for name, values in (("today", units), ("fitted", fitted)):
        factor = np.exp(np.sqrt(np.mean(np.log(values / y) ** 2)))
        record.add("errors", {"constants": name, "factor": factor})
    record.show()
    record.save(results)


if __name__ == "__main__":
    main()
