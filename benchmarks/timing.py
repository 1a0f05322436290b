"""How things are timed: rounds in which every contender runs once, and the median over the rounds.

Taking turns spreads a disturbance over all contenders instead of giving it to one of them.
"""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter, process_time
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Name = TypeVar("Name")


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes
    ----------
    rounds : int
        Repetitions of what is fast.
    import_rounds : int
        Repetitions of imports, each in a process of its own.
    slow_rounds : int
        Repetitions of exact predictors in memory.
    slow_rows : int or None
        Test rows, evenly spread, that LIBSVM and scikit-learn get in memory; None means all.
    engine_rows : int or None
        Test rows, evenly spread, that other exact predictors get in memory which are faster; None means all.
    compile_rounds : int
        Repetitions of compiling, in every mode.
    process_rounds : int
        Repetitions of our whole processes.
    process_rows : int or None
        Test rows, evenly spread, in the files for whole processes; None means all.
    """

    rounds: int
    import_rounds: int
    slow_rounds: int
    slow_rows: int | None
    engine_rows: int | None
    compile_rounds: int
    process_rounds: int
    process_rows: int | None


QUICK = Effort(
    rounds=5,
    import_rounds=3,
    slow_rounds=3,
    slow_rows=64,
    engine_rows=2048,
    compile_rounds=1,
    process_rounds=3,
    process_rows=512,
)
NORMAL = Effort(
    rounds=21,
    import_rounds=7,
    slow_rounds=5,
    slow_rows=512,
    engine_rows=4096,
    compile_rounds=1,
    process_rounds=5,
    process_rows=None,
)
FULL = replace(NORMAL, slow_rounds=1, slow_rows=None, engine_rows=None)


def spread(n_rows: int, wanted: int | None) -> npt.NDArray[np.intp]:
    """Row numbers of at most `wanted` rows, evenly spread over `n_rows`; all of them if `wanted` is None."""
    return np.linspace(0, n_rows - 1, n_rows if wanted is None else min(wanted, n_rows)).astype(np.intp)


def seconds(run: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    start = perf_counter()
    run()
    return perf_counter() - start


def warm_seconds(run: Callable[[], object]) -> float:
    """Wall-clock seconds of the second of two calls, which finds its rows in the cache if they fit."""
    run()
    return seconds(run)


def cores_used(run: Callable[[], object]) -> float:
    """Processor time of one call over its wall-clock time: how many threads really worked."""
    start = process_time()
    wall = seconds(run)
    return (process_time() - start) / wall


def medians(contenders: Mapping[Name, Callable[[], float]], rounds: int) -> dict[Name, float]:
    """Let the contenders take turns and return each one's median.

    Parameters
    ----------
    contenders : mapping of name to callable
        Each runs once and returns its figure, usually seconds.
    rounds : int

    Returns
    -------
    dict of name to median
    """
    figures: dict[Name, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, measure in contenders.items():
            figures[name].append(measure())
    return {name: statistics.median(values) for name, values in figures.items()}


def microseconds(runs: Sequence[Callable[[], object]], n_rows: int, rounds: int) -> list[float]:
    """Median time per row of each, taking turns; the second of two calls counts."""
    found = medians({k: partial(warm_seconds, run) for k, run in enumerate(runs)}, rounds)
    return [seconds / n_rows * 1e6 for seconds in found.values()]


def latency(run: Callable[[], object], rounds: int) -> float:
    """Median seconds per call of something so short that calls are timed in batches of about 2 ms."""
    timer = timeit.Timer(run)
    batch = max(1, int(2e-3 / timer.timeit(1)))
    return statistics.median(timer.timeit(batch) / batch for _ in range(rounds))
