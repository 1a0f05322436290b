"""Timing: rounds in which every contender runs once, and the median over the rounds.

Because contenders take turns, a disturbance is spread over all of them instead of affecting only one.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter, process_time
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Name = TypeVar("Name")
Result = TypeVar("Result")


def spread(n_rows: int, wanted: int | None) -> npt.NDArray[np.intp]:
    """Return indices of at most `wanted` rows, evenly spread over `n_rows`; all of them if `wanted` is None."""
    return np.linspace(0, n_rows - 1, n_rows if wanted is None else min(wanted, n_rows)).astype(np.intp)


def timed(run: Callable[[], Result], clock: Callable[[], float] = perf_counter) -> tuple[Result, float]:
    """Return one call's result and its time in seconds, by default wall time."""
    start = clock()
    result = run()
    return result, clock() - start


def seconds(run: Callable[[], object]) -> float:
    """Return the wall time of one call, in seconds."""
    return timed(run)[1]


def warm_seconds(run: Callable[[], object], clock: Callable[[], float] = perf_counter) -> float:
    """Make two calls and return the second call's time in seconds; its rows are in the cache if they fit."""
    run()
    return timed(run, clock)[1]


def medians(
    contenders: Mapping[Name, Callable[[], float]],
    rounds: int,
    of: Callable[[list[float]], float] = statistics.median,
) -> dict[Name, float]:
    """Let the contenders take turns, each returning its figure, usually seconds; return the median for each.

    `of` may be `min` instead of the median, because other programs can only slow a run down.
    """
    figures: dict[Name, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, measure in contenders.items():
            figures[name].append(measure())
    return {name: of(values) for name, values in figures.items()}


def microseconds(
    runs: Mapping[Name, Callable[[], object]], n_rows: int | Mapping[Name, int], rounds: int
) -> dict[Name, float]:
    """Return each contender's median microseconds per row, measured in turns; only the second of two calls counts."""
    return _per_row(medians({name: partial(warm_seconds, run) for name, run in runs.items()}, rounds), n_rows)


def processor_microseconds(
    runs: Mapping[Name, Callable[[], object]], n_rows: int | Mapping[Name, int], rounds: int
) -> dict[Name, float]:
    """Return each contender's minimum processor time per row, in microseconds; other programs hardly change it."""
    turns = {name: partial(warm_seconds, run, process_time) for name, run in runs.items()}
    return _per_row(medians(turns, rounds, min), n_rows)


def _per_row(seconds: Mapping[Name, float], n_rows: int | Mapping[Name, int]) -> dict[Name, float]:
    return {name: 1e6 * t / (n_rows if isinstance(n_rows, int) else n_rows[name]) for name, t in seconds.items()}
