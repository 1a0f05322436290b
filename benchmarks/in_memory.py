"""The paper's Table 2 without files: what a row costs every contender, on one thread and on all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import click
from threadpoolctl import threadpool_limits

from approxsvm.evaluator import EXPANSION_STAGES
from benchmarks.answers import Answers
from benchmarks.cases import Case
from benchmarks.experiment import Rows
from benchmarks.peers import EXACT, EXPANSIONS, LIBSVM, Peer, Predict, Sample
from benchmarks.plans import shares_of_stages
from benchmarks.record import Row
from benchmarks.timing import cores_used, medians, seconds, spread, warm_seconds


def measure(case: Case, answers: Answers, effort: Any, all_threads: int) -> Rows:
    """Check all contenders, then let exact ones take turns, and expansions; a wrong label of ours is an error.

    Columns: `cores` is processor time over wall-clock time of one call, `libsvm_ratio` LIBSVM's time per row, on as
    many threads or on one if that is faster, over this one's, `first_stage` the share of rows that expansions certified
    in mode "certified", and `differ` counts labels other than the exact model's. None: not installed, or no sense.
    """
    samples = {
        "few": Sample(case.X_test, spread(case.n_rows, effort.slow_rows)),
        "many": Sample(case.X_test, spread(case.n_rows, effort.engine_rows)),
        "all": Sample(case.X_test, spread(case.n_rows, None)),
    }
    kinds = (*EXACT, *EXPANSIONS)
    parallel = [(kind, all_threads) for kind in kinds if kind.is_parallel and all_threads > 1]
    calls: dict[tuple[Peer, int], Predict | None] = {}
    for kind, n_threads in [*((kind, 1) for kind in kinds), *parallel]:
        try:
            calls[kind, n_threads] = kind.prepare(case, samples[kind.rows], n_threads)
        except ImportError as error:
            click.echo(f"{kind.name} left out: {error}", err=True)
            calls[kind, n_threads] = None
    present = {key: call for key, call in calls.items() if call is not None}
    # One thread for libraries, but peers that can raise it; entered now: it reaches those that are loaded.
    with threadpool_limits(1):
        checked = {key: _checked(key[0], call, case, answers, samples) for key, call in present.items()}
        # Who takes a microsecond for a row is slower where the rows have left the cache; LIBSVM never notices.
        clocks = {k: partial(seconds if k[0].rows == "few" else warm_seconds, call) for k, call in present.items()}
        times = medians({k: clock for k, clock in clocks.items() if k[0] in EXACT}, effort.slow_rounds)
        times |= medians({k: clock for k, clock in clocks.items() if k[0] in EXPANSIONS}, effort.rounds)
    per_row = {key: time / len(samples[key[0].rows]) for key, time in times.items()}
    yield from _rows(case, calls, samples, per_row, checked)


def _checked(
    kind: Peer, predict: Predict, case: Case, answers: Answers, samples: dict[str, Sample]
) -> dict[str, float | None]:
    """What is known of a contender before it is timed."""
    sample = samples[kind.rows]
    own = answers.for_rounded_rows() if kind.is_rounded else answers
    labels = predict()
    own.check(kind.answer, f"{case.name}: {kind.name}", labels, sample.numbers)
    stages = None
    if kind.mode == "certified":
        shares = shares_of_stages(case.compiled["certified"], sample.float32 if kind.is_rounded else sample.csr)
        stages = sum(shares[name] for name in EXPANSION_STAGES)
    return {"first_stage": stages, "differ": own.differing(labels, sample.numbers), "cores": cores_used(predict)}


def _rows(
    case: Case,
    calls: dict[tuple[Peer, int], Predict | None],
    samples: dict[str, Sample],
    per_row: dict[tuple[Peer, int], float],
    checked: dict[tuple[Peer, int], dict[str, float | None]],
) -> Iterator[tuple[str, Row]]:
    for kind, n_threads in calls:
        own = per_row.get((kind, n_threads))
        libsvm = min(per_row[LIBSVM, 1], per_row.get((LIBSVM, n_threads), per_row[LIBSVM, 1]))
        row = {
            "model": case.name,
            "peer": kind.name,
            "n_threads": n_threads,
            "n_rows": len(samples[kind.rows]),
            "seconds_per_row": own,
            "libsvm_ratio": libsvm / own if own else None,
        }
        missing = dict.fromkeys(("first_stage", "differ", "cores"))
        known = checked.get((kind, n_threads), missing)
        yield "exact labels" if kind in EXACT else "expansion alone", row | known
