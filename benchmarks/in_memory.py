"""The paper's Table 2 without files: seconds per row of every contender, and of single rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

import approxsvm
from benchmarks.answers import Answers
from benchmarks.cases import Case
from benchmarks.peers import IN_MEMORY, Answer, Libsvm, Peer, Sample, svc_from
from benchmarks.timing import Effort, latency, medians, seconds, spread, warm_seconds


@dataclass(frozen=True)
class RowTime:
    """One contender on one model; None where it is not installed or the figure makes no sense for it.

    Attributes
    ----------
    speedup : float
        LIBSVM's time per row over this one's.
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
    fast: approxsvm.CompiledSVC,
    peak: Callable[[], float] | None,
    effort: Effort,
) -> list[RowTime]:
    """Check all contenders, then time them: the exact ones, then the fast ones in turns with the yardstick.

    Libraries get one thread each: BLAS, and LIBSVM's build on PyPI, which uses OpenMP. Ours is told its number.
    """
    samples: dict[Answer, Sample] = {
        "exact": Sample(case, spread(case.n_rows, effort.slow_rows)),
        "expansion": Sample(case, spread(case.n_rows, None)),
    }
    peers = _installed_peers(case, fast, samples)
    with threadpool_limits(1):  # entered only now: it reaches the libraries that are loaded
        for peer in peers.values():
            check = answers.check_exact if peer.answer == "exact" else answers.check_expansion
            check(f"{case.name}: {peer.name}", peer.predict(), samples[peer.answer].numbers)
        slow = {name: partial(seconds, x.predict) for name, x in peers.items() if x.answer == "exact"}
        quick = {name: partial(warm_seconds, x.predict) for name, x in peers.items() if x.answer == "expansion"}
        yardstick = {} if peak is None else {"peak": peak}
        times = medians(slow, effort.slow_rounds) | medians(yardstick | quick, effort.rounds)
    per_row = {name: times[name] / len(samples[peer.answer]) for name, peer in peers.items()}
    return [_row_time(case, kind, len(samples[kind.answer]), per_row, times.get("peak")) for kind in IN_MEMORY]


def _installed_peers(case: Case, fast: approxsvm.CompiledSVC, samples: dict[Answer, Sample]) -> dict[str, Peer]:
    peers: dict[str, Peer] = {}
    for kind in IN_MEMORY:
        with suppress(ImportError):
            peers[kind.name] = kind(case, fast, samples[kind.answer])
    return peers


def _row_time(case: Case, kind: type[Peer], n_rows: int, per_row: dict[str, float], peak: float | None) -> RowTime:
    own, libsvm = per_row.get(kind.name), per_row.get(Libsvm.name)
    multiply_adds = case.n_features * (case.n_features + 1) / 2
    share = None
    if own is not None and peak is not None and kind.counts_multiply_adds:
        share = multiply_adds / own / peak
    return RowTime(
        model=case.name,
        n_features=case.n_features,
        peer=kind.name,
        n_threads=kind.n_threads,
        n_rows=n_rows,
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
