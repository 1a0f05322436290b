"""Reads off the constants of the planner's cost model (approxsvm/planning/cost.py) on the machine and target at hand.

Forced plans of two-class models are timed on calls of 10,000 rows, which the cost model assumes, and their times are
taken as a sum of what is done once for a row of a stage, on the way to one of many centers, for a support vector in the
exact engine, and of multiply-adds, among which runs of coefficients count as they do today: non-negative least squares
of relative errors. What the constants of today predict stands beside it.

The same plans are timed on rows alone, by predict_one: there what a call takes by itself, a coefficient of an expansion
and a product in the exact engine are terms of their own. Beside it stands what today's constants of rows alone predict,
with a time of a call and of a multiply-add that fit best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

import approxsvm
from approxsvm.planning.cost import Constants, CostModel, Size
from benchmarks.experiment import Experiment, Rows, Run
from benchmarks.plans import forced_plans, plan_of, shares_of_stages
from benchmarks.problems import SOURCES, Chosen, scaled
from benchmarks.record import Record
from benchmarks.timing import microseconds

_NAMES = ("pendigits, 0", "phishing", "ijcnn1", "svmguide1", "australian", "german", "ionosphere", "covtype")
_CASES = {
    f"{name}, {scaler}": Chosen(SOURCES[name], scaler, 1.0) for name in _NAMES for scaler in ("standard", "minmax")
}
_GRID = ((2, 1), (3, 1), (4, 1), (2, 4), (2, 16), (3, 16), (2, 64))
_CALL_ROWS = 10_000
_ROUNDS = 15
_TERMS = ("multiply-add", "row of a stage", "way to a center", "support vector")
_ALONE = ("call", "coefficient", "product", *_TERMS[1:])
_ROWS_ALONE = 1_000


def measure(run: Run, case: Chosen) -> Rows:
    """Time, terms and today's prediction, in multiply-adds, of every plan of one model."""
    problem = scaled(run.data, case.source, case.scaler, n_test=_CALL_ROWS)
    svc = problem.trained()
    X = np.tile(problem.X_test, (-(-_CALL_ROWS // problem.X_test.shape[0]), 1))[:_CALL_ROWS]
    model = approxsvm.read_model(svc)
    costs = CostModel.of(model, X)
    zero = CostModel.of(model, X, Constants(0.0, 0.0, 0.0, Constants.here().run))  # multiply-adds alone
    alone = CostModel.of(model, X, Constants(0.0, 0.0, 0.0, 0.0, width=0))
    costs_alone = CostModel.of(model, X, Constants.alone())
    some = list(X[:_ROWS_ALONE])
    plans = {plan_of(plan): plan for plan in forced_plans(svc, problem.X, _GRID, 1 << 26)}
    shares = {name: shares_of_stages(plan, X) for name, plan in plans.items()}
    times = microseconds({name: partial(plan.predict, X) for name, plan in plans.items()}, _CALL_ROWS, _ROUNDS)
    one = {name: partial(_one_by_one, plan.predict_one, some) for name, plan in plans.items()}
    times_alone = microseconds(one, len(some), _ROUNDS)
    for name, plan in plans.items():
        if plan.artifact.mode == "exact":
            terms, today, today_alone = (zero.exact, 1.0, 0.0, float(model.n_sv)), costs.exact, costs_alone.exact
            coefficients, products = 0.0, alone.exact
        else:
            share, degree = shares[name], plan.artifact.header["degree"]
            size = Size(plan.artifact.n_centers, plan.artifact.n_varying)
            engine = share["float32"] + 2.0 * (share["float64"] + share["definition"])
            rows = 1.0 + (1.0 - share["expansion"]) + engine
            terms = (zero.cascade(degree, size, share), rows, float(size.n_centers > 1), engine * model.n_sv)
            today, today_alone = (each.cascade(degree, size, share) for each in (costs, costs_alone))
            coefficients, products = replace(alone, exact=0.0).cascade(degree, size, share), engine * alone.exact
        about = {"model": problem.name, "scaler": problem.scaler, "plan": name, "microseconds": times[name]}
        yield "plans", about | dict(zip(_TERMS, terms, strict=True)) | {"today": today}
        found = (1.0, coefficients, products, *terms[1:])
        terms_alone = dict(zip(_ALONE, found, strict=True)) | {"today": today_alone}
        yield "alone", about | {"microseconds": times_alone[name]} | terms_alone


def _one_by_one(predict: Callable[[Any], Any], rows: list[Any]) -> None:
    for row in rows:
        predict(row)


def summarize(record: Record) -> None:
    """Fit the constants; `today` and `fitted` of the plans become microseconds."""
    plans = record.tables["plans"]
    times, today = (np.array([plan[key] for plan in plans]) for key in ("microseconds", "today"))
    terms = np.array([[plan[term] for term in _TERMS] for plan in plans])
    solution, _ = nnls(terms / times[:, np.newaxis], np.ones(len(times)))
    predicted = {"today": today * np.exp(np.median(np.log(times / today))), "fitted": terms @ solution}
    for k, plan in enumerate(plans):
        plan |= {name: float(values[k]) for name, values in predicted.items()}
    for term, value in zip(_TERMS, solution, strict=True):
        in_multiply_adds = value / solution[0] if solution[0] > 0 else None
        record.add("constants", {"term": term, "microseconds": value, "multiply_adds": in_multiply_adds})
    _summarize_alone(record, solution[0])
    for name, values in predicted.items():
        record.add("errors", {"constants": name, "factor": _factor(values, times)})


def _summarize_alone(record: Record, multiply_add: float) -> None:
    plans = record.tables["alone"]
    times = np.array([plan["microseconds"] for plan in plans])
    terms = np.array([[plan[term] for term in _ALONE] for plan in plans])
    today = np.array([[1.0, plan["today"]] for plan in plans])
    solution, of_today = (nnls(each / times[:, np.newaxis], np.ones(len(times)))[0] for each in (terms, today))
    for term, value in zip(_ALONE, solution, strict=True):
        in_multiply_adds = value / multiply_add if multiply_add > 0 else None
        record.add("constants alone", {"term": term, "microseconds": value, "multiply_adds": in_multiply_adds})
    for name, values in {"today, alone": today @ of_today, "fitted, alone": terms @ solution}.items():
        record.add("errors", {"constants": name, "factor": _factor(values, times)})


def _factor(predicted: npt.NDArray[np.float64], times: npt.NDArray[np.float64]) -> float:
    """By which predictions are off, in the root mean square of logarithms."""
    return float(np.exp(np.sqrt(np.mean(np.log(predicted / times) ** 2))))


EXPERIMENT = Experiment("costs", __doc__, measure, _CASES, summarize=summarize)

if __name__ == "__main__":
    EXPERIMENT.main()
