"""How things are timed: rounds in which every contender runs once, and the median over the rounds.

Taking turns spreads a disturbance over all contenders instead of giving it to one of them.
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
    """Row numbers of at most `wanted` rows, evenly spread over `n_rows`; all of them if `wanted` is None."""
    return np.linspace(0, n_rows - 1, n_rows if wanted is None else min(wanted, n_rows)).astype(np.intp)


def timed(run: Callable[[], Result]) -> tuple[Result, float]:
    """What one call returns, and its wall-clock seconds."""
    start = perf_counter()
    result = run()
    return result, perf_counter() - start


def seconds(run: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    return timed(run)[1]


def warm_seconds(run: Callable[[], object]) -> float:
    """Wall-clock seconds of the second of two calls, which finds its rows in the cache if they fit."""
    run()
    return seconds(run)


def cores_used(run: Callable[[], object]) -> float:
    """Processor time of one call over its wall-clock time: how many threads really worked."""
    start = process_time()
    wall = seconds(run)
    return (process_time() - start) / wall


def medians(
    contenders: Mapping[Name, Callable[[], float]],
    rounds: int,
    of: Callable[[list[float]], float] = statistics.median,
) -> dict[Name, float]:
    """Let the contenders take turns and return each one's median.

    Parameters
    ----------
    contenders : mapping of name to callable
        Each runs once and returns its figure, usually seconds.
    rounds : int
    of : callable
        In place of the median: `min`, as whatever else runs can only slow down.

    Returns
    -------
    dict of name to median
    """
    figures: dict[Name, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, measure in contenders.items():
            figures[name].append(measure())
    return {name: of(values) for name, values in figures.items()}


def microseconds(
    runs: Mapping[Name, Callable[[], object]],
    n_rows: int | Mapping[Name, int],
    rounds: int,
    of: Callable[[list[float]], float] = statistics.median,
) -> dict[Name, float]:
    """Median time per row of each, taking turns; the second of two calls counts."""
    found = medians({name: partial(warm_seconds, run) for name, run in runs.items()}, rounds, of)
    return {name: 1e6 * t / (n_rows if isinstance(n_rows, int) else n_rows[name]) for name, t in found.items()}
