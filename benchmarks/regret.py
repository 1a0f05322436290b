"""Regret of the planner: time of its plan relative to the best of a grid of forced plans.

For each model and each target that this machine can run: the plan chosen for calls of `--call-rows` rows, the one
chosen for calls of one row (rows_per_call=1), and the fastest forced plan (the exact engine alone, or an expansion of
degree 2 to 6 about 1 to 1,024 centers), by one thread's processor time per row in such calls. Regret is the first time
divided by the last: 1 is a perfect choice. If the chosen plan is not in the grid and faster than all of it, regret is
below 1. A plan in the grid with the chosen one's centers and degree shares its time.

Forced plans are the same for all targets and built once, the cheapest first, within `--seconds` of a processor per
model; `left_out` counts those that would have taken longer. `--plans` names a folder that keeps them for later runs.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np

import approxsvm
from approxsvm import _native
from benchmarks.experiment import Experiment, Rows, Run, number
from benchmarks.plans import forced_plans, plan_of
from benchmarks.problems import SOURCES, Chosen
from benchmarks.record import Record
from benchmarks.timing import processor_microseconds, spread, timed

_CENTERS = (1, 16, 64, 256, 1024)
_GRID = (
    *((degree, n) for degree in (2, 3) for n in _CENTERS),
    *((4, n) for n in _CENTERS[:4]),
    (5, 64),
    (5, 256),
    (6, 1),
)
_HOPELESS = 2.0  # multiple of the fastest plan's time beyond which a plan is not measured again
_ROUNDS = 25
_ROWS_ALONE = 300
_TARGETS = ("avx512", "avx2")
# Models and scalers.
_MODELS = {
    "ijcnn1, gamma 2": ("none",),
    "ijcnn1": ("minmax",),
    "phishing": ("standard", "minmax"),
    "pendigits, 0": ("standard",),
    "covtype": ("standard", "minmax"),
    "svmguide1": ("minmax",),
    "letter, 26 classes": ("none",),
    "pendigits, 10 classes": ("none",),
    "segment, 7 classes": ("none",),
    "vehicle, 4 classes": ("none",),
    "australian": ("standard",),
    "german": ("standard",),
    "usps, 1": ("standard", "minmax"),
    "usps, 10 classes": ("minmax",),
    "w8a": ("standard",),
    "a9a 0.01": ("none",),
    "a9a 0.1": ("none",),
}


def cases(options: SimpleNamespace) -> dict[str, Chosen]:
    """Return twenty models."""
    return {
        f"{name}, {scaler}": Chosen(SOURCES[name], scaler, 10.0 if scaler == "none" else 1.0)
        for name, scalers in _MODELS.items()
        for scaler in scalers
    }


def measure(run: Run, case: Chosen) -> Rows:
    """Compare the planner's choices for one model with the best forced plan."""
    options, problem = run.options, case.problem(run.data, run.options)
    source, X = problem.trained(), problem.X_test
    folder = (options.plans or run.scratch) / f"{problem.name}, {problem.scaler}"
    forced, n_left_out = _kept(folder, partial(forced_plans, source, problem.X, _GRID, options.seconds))
    rows = np.ascontiguousarray(X[spread(X.shape[0], options.call_rows)])
    rows = np.tile(rows, (-(-options.call_rows // len(rows)), 1))[: options.call_rows]
    together, alone = partial(_together, rows), partial(_one_by_one, list(rows[:_ROWS_ALONE]))
    for target in (target for target in _TARGETS if target in _native.runnable_targets()):
        os.environ["APPROXSVM_TARGET"] = target
        fast, compiled_in = timed(partial(approxsvm.compile, source, problem.X))
        quick = approxsvm.compile(source, problem.X, rows_per_call=1)
        row = {"model": problem.name, "scaler": problem.scaler, "target": target, "compile_seconds": compiled_in}
        row |= {"forced": len(forced), "left_out": n_left_out}
        row |= _best("", fast, forced, together, len(rows)) | _best("alone_", quick, forced, alone, _ROWS_ALONE)
        for calls in ("", "alone_"):
            chosen, best, regret = (row[f"{calls}{name}"] for name in ("chosen", "best", "regret"))
            click.echo(f"  {target}, {calls or 'together'}: {regret:.2f}, {chosen}; best {best}", err=True)
        yield "models", row
    del os.environ["APPROXSVM_TARGET"]


def _kept(folder: Path, build: Callable[[], tuple[list[Any], int]]) -> tuple[list[Path], int]:
    """Return the files of the forced plans, and the number left out."""
    note = folder / "left_out"
    if not note.exists():
        plans, n_left_out = build()
        folder.mkdir(parents=True, exist_ok=True)
        for k, plan in enumerate(plans):
            plan.save(folder / f"{k}.asvm")
        note.write_text(str(n_left_out))
    return sorted(folder.glob("*.asvm")), int(note.read_text())


def _best(prefix: str, chosen: Any, forced: list[Path], call: Callable[[Any], object], n_rows: int) -> dict[str, Any]:
    """Time the chosen plan and the fastest, taking turns; far slower plans run once."""
    plans = {plan_of(plan): plan for plan in map(approxsvm.load, forced)}
    plans[plan_of(chosen)] = chosen
    runs = {name: partial(call, plan) for name, plan in plans.items()}
    first = processor_microseconds(runs, n_rows, 2)
    hopeful = {name: run for name, run in runs.items() if first[name] < _HOPELESS * min(first.values())}
    times = processor_microseconds(hopeful | {plan_of(chosen): runs[plan_of(chosen)]}, n_rows, _ROUNDS)
    best = min(times, key=times.__getitem__)
    figures = {"chosen": plan_of(chosen), "microseconds": times[plan_of(chosen)], "best": best}
    figures |= {"best_microseconds": times[best], "regret": times[plan_of(chosen)] / times[best]}
    return {f"{prefix}{name}": value for name, value in figures.items()}


def _together(rows: Any, plan: Any) -> None:
    plan.predict(rows)


def _one_by_one(rows: list[Any], plan: Any) -> None:
    for row in rows:
        plan.predict_one(row)


def summarize(record: Record) -> None:
    """Add median and maximum of all, by target and size of calls."""
    models = record.tables["models"]
    for target in dict.fromkeys(row["target"] for row in models):
        for calls, key in (("many rows", "regret"), ("one row", "alone_regret")):
            regrets = [row[key] for row in models if row["target"] == target]
            figures = {"models": len(regrets), "median": statistics.median(regrets), "worst": max(regrets)}
            record.add("all", {"target": target, "calls": calls, **figures})


_OPTIONS = [
    number("--call-rows", 4_000, "Rows in a large call."),
    number("--rows", 20_000, "Maximum test rows."),
    number("--train-rows", 10_000, "Maximum training rows.", least=100),
    number("--seconds", 30, "Processor time to build the forced plans of a model."),
    click.Option(["--plans"], type=click.Path(file_okay=False, path_type=Path), help="Folder that keeps forced plans."),
]
EXPERIMENT = Experiment("regret", __doc__, measure, cases, _OPTIONS, summarize)

if __name__ == "__main__":
    EXPERIMENT.main()
