"""The paper's Table 2 without files: seconds per row of every contender, and of single rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

import approxsvm
from benchmarks.answers import Answers
from benchmarks.cases import Case
from benchmarks.compiled import Models
from benchmarks.contenders import Contender, contenders_for, libsvm_baselines
from benchmarks.peers import IN_MEMORY, svc_from
from benchmarks.timing import Effort, latency, medians, seconds, warm_seconds


@dataclass(frozen=True)
class RowTime:
    """One contender on one model; None where it is not installed or the figure makes no sense for it.

    Attributes
    ----------
    speedup : float
        LIBSVM's time per row, on as many threads or on one if that is faster, over this one's.
    peak_share : float
        Of the float32 multiply-adds that the core can do, counting d (d + 1) / 2 per row and nothing else,
        although the time holds everything.
    """

    model: str
    n_features: int
    peer: str
    n_threads: int
    n_rows: int
    seconds_per_row: float | None
    speedup: float | None
    peak_share: float | None


@dataclass(frozen=True)
class Latency:
    """Median time of a call with one row, and how many times longer LIBSVM takes for a row."""

    model: str
    call: str
    seconds: float
    speedup: float | None


def measure_batches(
    case: Case,
    answers: Answers,
    models: Models,
    peak: Callable[[], float] | None,
    effort: Effort,
    all_threads: int,
) -> list[RowTime]:
    """Check all contenders, then time them: the exact ones, then the fast ones in turns with the yardstick."""
    contenders = contenders_for(IN_MEMORY, case, models, effort, all_threads)
    present = [x for x in contenders if x.peer is not None]
    with threadpool_limits(1):  # entered only now: it reaches the libraries that are loaded
        for x in present:
            x.check(answers)
        slow = {x: partial(seconds, x.predict) for x in present if x.kind.answer == "exact"}
        quick = {x: partial(warm_seconds, x.predict) for x in present if x.kind.answer == "expansion"}
        yardstick = {} if peak is None else {"peak": peak}
        times = medians(slow, effort.slow_rounds) | medians(yardstick | quick, effort.rounds)
    per_row = {x: times[x] / len(x.sample) for x in present}
    baselines = libsvm_baselines(per_row)
    return [_row_time(case, x, per_row.get(x), baselines.get(x.n_threads), times.get("peak")) for x in contenders]


def _row_time(case: Case, x: Contender, own: float | None, libsvm: float | None, peak: float | None) -> RowTime:
    multiply_adds = case.n_features * (case.n_features + 1) / 2
    share = None
    if own is not None and peak is not None and x.kind.counts_multiply_adds and x.n_threads == 1:
        share = multiply_adds / own / peak
    return RowTime(
        model=case.name,
        n_features=case.n_features,
        peer=x.kind.name,
        n_threads=x.n_threads,
        n_rows=len(x.sample),
        seconds_per_row=own,
        speedup=None if own is None or libsvm is None else libsvm / own,
        peak_share=share,
    )


def measure_single_rows(
    case: Case, answers: Answers, fast: approxsvm.CompiledSVC, libsvm_seconds: float | None, effort: Effort
) -> list[Latency]:
    """Time calls that predict one row, the first of the test rows."""
    rows = case.data.X_test[:1].toarray()
    rows32 = rows.astype(np.float32)
    svc = svc_from(case.model)
    answers.check_exact("SVC.predict, 1 row", svc.predict(rows), slice(1))
    answers.check_expansion("predict, 1 row", fast.predict(rows32), slice(1))
    answers.check_expansion("predict_one", np.array([fast.predict_one(rows32[0])]), slice(1))
    calls = {
        "SVC.predict(X), 1 x d float64": partial(svc.predict, rows),
        "predict(X), 1 x d float32": partial(fast.predict, rows32),
        "predict_one(x), float32": partial(fast.predict_one, rows32[0]),
    }
    with threadpool_limits(1):
        times = {name: latency(call, effort.rounds) for name, call in calls.items()}
    return [
        Latency(case.name, name, time, None if libsvm_seconds is None else libsvm_seconds / time)
        for name, time in times.items()
    ]
