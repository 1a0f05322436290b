"""Cost profile for this machine and target (approxsvm/planning/costs/profiles.py), fitted to measured times.

The processor time of forced plans for two-class models is measured in calls with as many rows as the cost model
assumes. The cost model is linear in its constants, which are fitted by non-negative least squares on the relative
errors. The measured times are shown next to those that the first profile predicts. The same plans are timed on single
rows with predict_one, which adds a term for the call itself. `profile` lists the fitted constants in the form used by
the data module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import approxsvm
from approxsvm.planning.costs.cost import CALL_ROWS, CostModel, Products, Size, rows_in_engine
from approxsvm.planning.costs.profiles import Constants, Profile
from approxsvm.runtime.evaluator import Evaluator
from benchmarks.experiment import Experiment, Rows, Run
from benchmarks.plans import forced_plans, plan_of, shares_of_stages
from benchmarks.problems import SOURCES, Chosen, scaled
from benchmarks.profile import ALONE, BLOCKS, fit
from benchmarks.record import Record
from benchmarks.timing import processor_microseconds

_NAMES = ("pendigits, 0", "phishing", "ijcnn1", "svmguide1", "australian", "german", "ionosphere", "covtype")
_CASES = {
    f"{name}, {scaler}": Chosen(SOURCES[name], scaler, 1.0) for name in _NAMES for scaler in ("standard", "minmax")
}
_GRID = ((2, 1), (3, 1), (4, 1), (2, 4), (2, 16), (3, 16), (2, 64))
_ROUNDS = 9
_ROWS_ALONE = 1_000
_NOTHING = replace(Profile.all()[0].blocks, row=0.0, loaded=0.0, direction=0.0, degrees=0.0, routing=0.0, kernel=0.0)


def measure(run: Run, case: Chosen) -> Rows:
    """Measure every plan of one model: its time, and its terms and currently predicted cost in multiply-adds."""
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
    here, apart = Profile.all()[0].blocks, Profile.all()[0].alone
    bare, bare_alone = _NOTHING, replace(_NOTHING, coefficient=0.0, product=0.0, width=0)
    products, native = Products.of(model, X), Evaluator(plans["the exact engine"].artifact).native
    for name, plan in plans.items():
        cost = partial(_cost, model, products, native.few_values_work, plan, shares[name])
        about = {"model": problem.name, "scaler": problem.scaler, "plan": name}
        multiply_adds = cost(bare)
        terms = {term: cost(_with(bare, term)) - multiply_adds for term in BLOCKS[1:]}
        together = {"microseconds": times[name], "multiply-add": multiply_adds, **terms, "today": cost(here)}
        yield "plans", about | together
        terms = {term: cost(_with(bare_alone, term)) for term in ALONE[1:]}
        yield "alone", about | {"microseconds": times_alone[name], "call": 1.0, **terms, "today": cost(apart)}


def _with(constants: Constants, term: str) -> Constants:
    one: dict[str, Any] = {term: 1.0}
    return replace(constants, **one)


def _cost(
    model: Any, products: Products, few_work: float, plan: Any, share: dict[str, float], constants: Constants
) -> float:
    costs = CostModel.of(model, products, constants, few_work=few_work)
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
    """Fit the constants; convert the plans' `today` and `fitted` to microseconds."""
    for row in fit(record.tables):
        record.add("profile", row)


EXPERIMENT = Experiment("costs", __doc__, measure, _CASES, summarize=summarize)

if __name__ == "__main__":
    EXPERIMENT.main()
