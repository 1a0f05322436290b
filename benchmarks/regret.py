"""How much faster the best plan of a grid is than the one that the planner chose.

For each of the models of `benchmarks.ordinary`: the plan chosen, the fastest of the plans that can be forced (the exact
engine alone, and expansions of degree 2 to 5 about 1 to 1,024 centers), one thread's time per row of both, which take
turns, and regret, the first over the second. 1.00 is a perfect choice; where the chosen plan is none of the grid's and
faster than all of them, regret is below. What the planner took to choose stands beside what the chosen plan alone takes
to build.
"""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import approxsvm
from benchmarks.experiment import Experiment, Rows, Run
from benchmarks.plans import forced_plans, plan_of
from benchmarks.problems import PROBLEM_OPTIONS, Chosen, chosen
from benchmarks.record import Record
from benchmarks.timing import microseconds, seconds, timed

_CENTERS = (1, 16, 64, 256, 1024)
_GRID = (*((2, n) for n in _CENTERS), *((3, n) for n in _CENTERS), *((4, n) for n in _CENTERS[1:4]), (5, 64), (5, 256))
_ROUNDS = 11
_HOPELESS = 3.0  # times the time of the chosen plan: not measured again


def measure(run: Run, case: Chosen) -> Rows:
    """The planner's choice for one model beside the best forced plan."""
    problem = case.problem(run.data, run.options)
    svc = problem.svc()
    fast, compiled_in = timed(partial(approxsvm.compile, svc, problem.X))
    X = problem.X_test
    forced = {plan_of(plan): plan for plan in forced_plans(svc, problem.X, _GRID, 1 << 28)}
    runs = {name: partial(plan.predict, X) for name, plan in {"chosen": fast, **forced}.items()}
    first = microseconds(runs, X.shape[0], 1)
    hopeful = {name: run for name, run in runs.items() if first[name] < _HOPELESS * first["chosen"]}
    times = microseconds(hopeful, X.shape[0], _ROUNDS)
    best = min((name for name in times if name != "chosen"), key=times.__getitem__, default="chosen")
    options: dict[str, Any] = {"mode": "exact"}
    if fast.artifact.mode != "exact":
        options = {"degree": fast.artifact.header["degree"], "n_centers": fast.artifact.n_centers}
    row = {
        "model": problem.name,
        "scaler": problem.scaler,
        "n_features": X.shape[1],
        "n_sv": len(svc.support_),
        "chosen": plan_of(fast),
        "microseconds": times["chosen"],
        "best_forced": best,
        "best_microseconds": times[best],
        "regret": times["chosen"] / times[best],
        "compile_seconds": compiled_in,
        "build_seconds": seconds(partial(approxsvm.compile, svc, problem.X, **options)),
    }
    yield "models", row


def summarize(record: Record) -> None:
    """Median and worst of all."""
    regrets = [row["regret"] for row in record.tables["models"]]
    record.add("all", {"models": len(regrets), "median": statistics.median(regrets), "worst": max(regrets)})


EXPERIMENT = Experiment("regret", __doc__, measure, chosen, PROBLEM_OPTIONS, summarize)

if __name__ == "__main__":
    EXPERIMENT.main()
