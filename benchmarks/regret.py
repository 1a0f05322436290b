"""How much faster the best plan of a grid is than the one that the planner chose.

    python -m benchmarks.regret [--only NAME] [--scaler standard|minmax|none|both] [--rows N] [-c C]

For each of the models of `benchmarks.ordinary`: the plan chosen, the fastest of the plans that can be forced (the exact
engine alone, and expansions of degree 2 and 3 about 1 to 256 centers), one thread's time per row of both, which take
turns, and regret, the first over the second. 1.00 is a perfect choice; where the chosen plan is none of the grid's and
faster than all of them, regret is below. What the planner took to choose stands beside what the chosen plan alone takes
to build.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import ApproxSVMError
from benchmarks.ordinary import plan_of
from benchmarks.problems import Problem, Selection, data_folder, problem_options
from benchmarks.record import Record, results_option
from benchmarks.timing import microseconds

_GRID = [(2, k) for k in (1, 4, 16, 64, 256)] + [(3, k) for k in (1, 16, 64)]
_ROUNDS = 11
_HOPELESS = 3.0  # times the time of the chosen plan: not measured again


def _forced(svc: SVC, problem: Problem) -> dict[str, Any]:
    """Compiled models by the names of their plans."""
    found: dict[str, Any] = {"exact": approxsvm.compile(svc, mode="exact")}
    for degree, n_centers in _GRID:
        try:
            plan = approxsvm.compile(svc, problem.X, degree=degree, n_centers=n_centers, max_bytes=1 << 28)
        except ApproxSVMError:  # more centers than support vectors, or too large
            continue
        found[plan_of(plan)] = plan
    return found


def _building(svc: SVC, problem: Problem, chosen: Any) -> float:
    """Seconds that the chosen plan takes where it is asked for."""
    artifact = chosen.artifact
    options: dict[str, Any] = {"mode": "exact"}
    if artifact.mode != "exact":
        options = {"degree": artifact.header["degree"], "n_centers": artifact.n_centers}
    start = perf_counter()
    approxsvm.compile(svc, problem.X, **options)
    return perf_counter() - start


def measure(problem: Problem) -> dict[str, Any]:
    """One row of the table."""
    svc = SVC(C=problem.C, gamma=problem.gamma, cache_size=1000).fit(problem.X, problem.y)
    start = perf_counter()
    chosen = approxsvm.compile(svc, problem.X)
    compiled_in = perf_counter() - start
    X = problem.X_test
    plans = {"chosen": chosen, **_forced(svc, problem)}
    runs: dict[str, Callable[[], Any]] = {name: partial(plan.predict, X) for name, plan in plans.items()}
    first = dict(zip(runs, microseconds(list(runs.values()), X.shape[0], 1), strict=True))
    names = ["chosen"] + [n for n in runs if n != "chosen" and first[n] < _HOPELESS * first["chosen"]]
    times = dict(zip(names, microseconds([runs[n] for n in names], X.shape[0], _ROUNDS), strict=True))
    best = min((n for n in names if n != "chosen"), key=times.__getitem__, default="chosen")
    return {
        "model": problem.name,
        "scaler": problem.scaler,
        "n_features": X.shape[1],
        "n_sv": len(svc.support_),
        "chosen": plan_of(chosen),
        "microseconds": times["chosen"],
        "best_forced": best,
        "best_microseconds": times[best],
        "regret": times["chosen"] / times[best],
        "compile_seconds": compiled_in,
        "build_seconds": _building(svc, problem, chosen),
    }


@click.command()
@results_option
@problem_options
def main(selection: Selection, results: Path) -> None:
    """Measure the planner's choices for SVC models, default but for C."""
    folder = data_folder()
    if folder is None:
        return
    record = Record.begin("regret")
    for problem in selection.of(folder):
        click.echo(f"{problem.name}, {problem.scaler} ...", err=True)
        record.add("models", measure(problem))
    regrets = [figure["regret"] for figure in record.tables.get("models", [])]
    if regrets:
        record.add("all", {"models": len(regrets), "median": statistics.median(regrets), "worst": max(regrets)})
    record.show()
    record.save(results)


if __name__ == "__main__":
    main()
