"""Regret of the planner: its plan's time relative to the best of a grid of forced plans.

For each model, three plans are compared by processor time per row, on one thread, in calls of `--call-rows` rows: the
planner's default choice, its choice by measuring (measure=True), and the fastest plan of all. The forced plans are the
exact engine alone, and expansions of degree 2 to 6 about 1 to 1,024 centers. With `--call-rows 1`, plans are also
chosen for calls of one row. Regret is a plan's time divided by the least time: 1 is a perfect choice. Plans with the
same centers and degree count as one.

Plans are chosen for the training rows. With `--sample test`, they are chosen for every second test row and timed on the
other test rows. This is what users get if they compile with rows that resemble those on which they predict.

APPROXSVM_TARGET chooses the instruction set. Forced plans are built in order of increasing cost, within `--seconds` of
processor time per model; `left_out` counts those that would have taken longer. They are the same for all targets:
`--plans` names a folder that keeps them for later runs.
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
_TARGET = os.environ.get("APPROXSVM_TARGET") or _native.runnable_targets()[0]
# Models and their scalers.
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
    "abalone, regression": ("standard",),
    "cpu_act, regression": ("standard",),
    "cpusmall, regression": ("minmax",),
}


def cases(options: SimpleNamespace) -> dict[str, Chosen]:
    """Return the 23 models."""
    return {
        f"{name}, {scaler}": Chosen(SOURCES[name], scaler, 10.0 if scaler == "none" else 1.0)
        for name, scalers in _MODELS.items()
        for scaler in scalers
    }


def measure(run: Run, case: Chosen) -> Rows:
    """Compare the planner's choices for one model with the best plan."""
    options, problem = run.options, case.problem(run.data, run.options)
    source, sample, X = problem.trained(), problem.X, problem.X_test
    if options.sample == "test":
        sample, X = X[::2], X[1::2]
    folder = (options.plans or run.scratch) / f"{problem.name}, {problem.scaler}"
    forced, n_left_out = _kept(folder, partial(forced_plans, source, problem.X, _GRID, options.seconds))
    is_alone = options.call_rows == 1
    compile = partial(approxsvm.compile, source, sample, rows_per_call=1 if is_alone else None)
    default, default_seconds = timed(compile)
    measured, measured_seconds = timed(partial(compile, measure=True))
    n_rows = _ROWS_ALONE if is_alone else options.call_rows
    rows = np.ascontiguousarray(X[np.resize(spread(X.shape[0], n_rows), n_rows)])
    call = partial(_one_by_one, list(rows)) if is_alone else partial(_together, rows)
    times = _times(
        [*map(approxsvm.load, forced), default, measured], call, n_rows, {plan_of(default), plan_of(measured)}
    )
    best = min(times, key=times.__getitem__)
    row: dict[str, Any] = {"model": problem.name, "scaler": problem.scaler, "target": _TARGET}
    row |= {"forced": len(forced), "left_out": n_left_out, "best": best, "best_microseconds": times[best]}
    for name, fast, taken in (("default", default, default_seconds), ("measured", measured, measured_seconds)):
        row |= {name: plan_of(fast), f"{name}_seconds": taken, f"{name}_regret": times[plan_of(fast)] / times[best]}
    click.echo(f"  regret {row['default_regret']:.2f}, measured {row['measured_regret']:.2f}", err=True)
    yield "models", row


def _kept(folder: Path, build: Callable[[], tuple[list[Any], int]]) -> tuple[list[Path], int]:
    """Return the files with the forced plans, and the number of plans left out."""
    note = folder / "left_out"
    if not note.exists():
        plans, n_left_out = build()
        folder.mkdir(parents=True, exist_ok=True)
        for k, plan in enumerate(plans):
            plan.save(folder / f"{k}.asvm")
        note.write_text(str(n_left_out))
    return sorted(folder.glob("*.asvm")), int(note.read_text())


def _times(plans: list[Any], call: Callable[[Any], object], n_rows: int, kept: set[str]) -> dict[str, float]:
    """Return each plan's microseconds per row, measured in turns; far slower plans run only twice, unless in `kept`."""
    runs = {plan_of(plan): partial(call, plan) for plan in plans}
    first = processor_microseconds(runs, n_rows, 2)
    hopeful = {name: run for name, run in runs.items() if first[name] < _HOPELESS * min(first.values()) or name in kept}
    return processor_microseconds(hopeful, n_rows, _ROUNDS)


def _together(rows: Any, plan: Any) -> None:
    plan.predict(rows)


def _one_by_one(rows: list[Any], plan: Any) -> None:
    for row in rows:
        plan.predict_one(row)


def summarize(record: Record) -> None:
    """Add the median and worst regret over all models."""
    models = record.tables["models"]
    for name in ("default", "measured"):
        regrets = sorted(row[f"{name}_regret"] for row in models)
        figures = {"median": statistics.median(regrets), "worst": regrets[-1], "third_worst": regrets[-3:][0]}
        figures["seconds"] = sum(row[f"{name}_seconds"] for row in models)
        record.add("all", {"plan": name, "models": len(regrets), **figures})


_OPTIONS = [
    number("--call-rows", 4_000, "Rows in a call."),
    number("--rows", 20_000, "Maximum test rows."),
    number("--train-rows", 10_000, "Maximum training rows.", least=100),
    click.Option(["--sample"], type=click.Choice(["train", "test"]), default="train", help="Rows that plans suit."),
    number("--seconds", 12, "Processor time to build the forced plans of a model."),
    click.Option(["--plans"], type=click.Path(file_okay=False, path_type=Path), help="Folder that keeps forced plans."),
]
EXPERIMENT = Experiment("regret", __doc__, measure, cases, _OPTIONS, summarize)

if __name__ == "__main__":
    EXPERIMENT.main()
