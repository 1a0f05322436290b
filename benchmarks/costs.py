"""Constants of the planner's cost model (approxsvm/planning/cost.py), fitted on this machine and target.

Forced plans of two-class models are timed on calls of as many rows as the cost model assumes, by processor time. The
cost model is linear in its constants, which are fitted by non-negative least squares of relative errors. The times are
shown next to the predictions of the current constants. The same plans are timed on single rows, by predict_one, with
one more term for the call itself.
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
from approxsvm.planning.cost import CALL_ROWS, Constants, CostModel, Size, rows_in_engine
from benchmarks.experiment import Experiment, Rows, Run
from benchmarks.plans import forced_plans, plan_of, shares_of_stages
from benchmarks.problems import SOURCES, Chosen, scaled
from benchmarks.record import Record
from benchmarks.timing import processor_microseconds

_NAMES = ("pendigits, 0", "phishing", "ijcnn1", "svmguide1", "australian", "german", "ionosphere", "covtype")
_CASES = {
    f"{name}, {scaler}": Chosen(SOURCES[name], scaler, 1.0) for name in _NAMES for scaler in ("standard", "minmax")
}
_GRID = ((2, 1), (3, 1), (4, 1), (2, 4), (2, 16), (3, 16), (2, 64))
_ROUNDS = 9
_ROWS_ALONE = 1_000
# Terms in which costs are linear; `run` is not fitted.
_TERMS = ("row", "loaded", "direction", "degrees", "routing", "kernel")
_ALONE = ("coefficient", "product", "row", "routing", "kernel")
_NOTHING = Constants(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def measure(run: Run, case: Chosen) -> Rows:
    """Measure time, terms and current prediction, in multiply-adds, of every plan of one model."""
    problem = scaled(run.data, case.source, case.scaler, n_test=CALL_ROWS)
    source = problem.trained()
    X = np.tile(problem.X_test, (-(-CALL_ROWS // problem.X_test.shape[0]), 1))[:CALL_ROWS]
    model = approxsvm.read_model(source)
    some = list(X[:_ROWS_ALONE])
    plans = {plan_of(plan): plan for plan in forced_plans(source, problem.X, _GRID, max_bytes=1 << 26)[0]}
    shares = {name: shares_of_stages(plan, X) for name, plan in plans.items()}
    times = processor_microseconds({name: partial(plan.predict, X) for name, plan in plans.items()}, len(X), _ROUNDS)
    one = {name: partial(_one_by_one, plan.predict_one, some) for name, plan in plans.items()}
    times_alone = processor_microseconds(one, len(some), _ROUNDS)
    here, apart = Constants.here(), Constants.alone()
    bare, bare_alone = replace(_NOTHING, run=here.run), replace(_NOTHING, coefficient=0.0, product=0.0, width=0)
    for name, plan in plans.items():
        cost = partial(_cost, model, X, plan, shares[name])
        about = {"model": problem.name, "scaler": problem.scaler, "plan": name}
        multiply_adds = cost(bare)
        terms = {term: cost(_with(bare, term)) - multiply_adds for term in _TERMS}
        together = {"microseconds": times[name], "multiply-add": multiply_adds, **terms, "today": cost(here)}
        yield "plans", about | together
        terms = {term: cost(_with(bare_alone, term)) for term in _ALONE}
        yield "alone", about | {"microseconds": times_alone[name], "call": 1.0, **terms, "today": cost(apart)}


def _with(constants: Constants, term: str) -> Constants:
    one: dict[str, Any] = {term: 1.0}
    return replace(constants, **one)


def _cost(model: Any, X: Any, plan: Any, share: dict[str, float], constants: Constants) -> float:
    costs = CostModel.of(model, X, constants)
    if plan.artifact.mode == "exact":
        return costs.exact
    size = Size(plan.artifact.n_centers, plan.artifact.n_varying)
    degree, refined = int(plan.artifact.header["degree"]), 1.0 - share["expansion"]
    refining = refined * costs.refining(degree, size, share)
    return costs.expansion(degree, size) + refining + rows_in_engine(share) * costs.exact


def _one_by_one(predict: Callable[[Any], Any], rows: list[Any]) -> None:
    for row in rows:
        predict(row)


def summarize(record: Record) -> None:
    """Fit the constants; convert `today` and `fitted` of the plans to microseconds."""
    in_blocks = _fitted(record, "plans", ("multiply-add", *_TERMS), 0.0)
    _fitted(record, "alone", ("call", *_ALONE), in_blocks)


def _fitted(record: Record, table: str, names: tuple[str, ...], multiply_add: float) -> float:
    """Add constants and errors of a table; return the time of a multiply-add, the first term's if unknown."""
    plans = record.tables[table]
    times = np.array([plan["microseconds"] for plan in plans])
    terms = np.array([[plan[name] for name in names] for plan in plans])
    today = np.array([[float(multiply_add > 0.0), plan["today"]] for plan in plans])
    solution, of_today = (nnls(each / times[:, np.newaxis], np.ones(len(times)))[0] for each in (terms, today))
    multiply_add = multiply_add or solution[0]
    for name, value in zip(names, solution, strict=True):
        in_multiply_adds = value / multiply_add if multiply_add > 0 else None
        record.add(f"constants, {table}", {"term": name, "microseconds": value, "multiply_adds": in_multiply_adds})
    for name, values in {"today": today @ of_today, "fitted": terms @ solution}.items():
        record.add("errors", {"table": table, "constants": name, "factor": _factor(values, times)})
        for plan, value in zip(plans, values.tolist(), strict=True):
            plan[name] = value
    return float(multiply_add)


def _factor(predicted: npt.NDArray[np.float64], times: npt.NDArray[np.float64]) -> float:
    """Return the factor of prediction errors: the exponential of the root mean square of log ratios."""
    return float(np.exp(np.sqrt(np.mean(np.log(predicted / times) ** 2))))


EXPERIMENT = Experiment("costs", __doc__, measure, _CASES, summarize=summarize)

if __name__ == "__main__":
    EXPERIMENT.main()
