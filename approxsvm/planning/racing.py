"""Race between plans: they predict held-out rows in turn, and their times on this machine are compared (`measure`)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter, process_time, thread_time
from typing import Any, Final, NamedTuple

import numpy as np

from approxsvm.artifact.views import Artifact
from approxsvm.ir.compilation import TriedPlan
from approxsvm.planning.building import part_of
from approxsvm.planning.costs.calls import MOST_ALONE, SAME
from approxsvm.planning.costs.cost import CALL_ROWS
from approxsvm.planning.request import Built, Request, Stopwatch
from approxsvm.runtime.evaluator import Evaluator

# Maximum number of plans in a race, and maximum estimated cost of a plan as a multiple of the least cost.
_MOST_PLANS: Final = 4
_WITHIN: Final = 1.5
# Processor time, in seconds, that is always allowed for building the plans for a race.
_ACCEPTABLE_SECONDS: Final = 0.5
# Maximum number of small calls in a turn, and maximum number of values in the rows of all calls.
_CALLS: Final = 300
_MAX_NUMBERS: Final = 1 << 24
# Minimum and maximum number of rounds, and number of runs in a turn. Plans slower than the fastest by more than the
# factor `_TOO_SLOW` are not timed after the first round.
_LEAST_ROUNDS: Final = 3
_MOST_ROUNDS: Final = 20
_CALLS_OF_A_TURN: Final = 2
_TOO_SLOW: Final = 2.0
# Processor time hardly depends on other programs, but Windows measures it in steps of 16 milliseconds.
_clock: Final = perf_counter if os.name == "nt" else thread_time


class Rival(NamedTuple):
    """Plan tried by the search."""

    tried: TriedPlan
    finish: Callable[[str], tuple[Artifact, float]]  # builds the plan, given a reason; also returns the sums' time
    seconds: float  # estimated processor time for building; infinite if options exclude the plan
    always: bool  # True if the plan takes part at any estimated cost


class Times(NamedTuple):
    """Least measured times per row."""

    asked: float  # seconds per row in calls of the requested size
    alone: float | None  # seconds per row in calls of one row; None if `rows_per_call` is above 1


def seconds(artifact: Artifact, answer: Callable[[], object]) -> float:
    """Call `answer` and return its time in this thread, in seconds; `compile` uses this as its stopwatch."""
    start = _clock()
    answer()
    return _clock() - start


def raced(rivals: Sequence[Rival], reason: str, rows: Any, request: Request, search_seconds: float) -> Built:
    """Build the plans with the least estimated costs, race them, and return the fastest.

    If the planner's choice is the only finalist, it is returned without a race, with the explanation `reason`. The
    winner's explanation contains no measured times, so the plan determines the artifact's bytes. The race takes about
    as much processor time as the search did.
    """
    limits, tried = request.limits, [rival.tried for rival in rivals]
    chosen = [k for k, plan in enumerate(tried) if plan.chosen]
    final = finalists(rivals, limits.rows_per_call, search_seconds) if rows.shape[0] else chosen
    built: dict[int, Artifact] = {}
    start = process_time()
    for k in final:
        certified = "" if tried[k].certified is None else f": certifies {tried[k].certified:.1%} of held-out rows"
        won = f"{tried[k].name}, the winner of a race on this machine{certified}"
        built[k], work = rivals[k].finish(won if len(final) > 1 else reason)
        tried[k] = replace(tried[k], work=tried[k].work + work)
    most_bytes = math.inf if limits.max_bytes is None else limits.max_bytes
    racers = [k for k in final if built[k].n_bytes <= most_bytes] or chosen
    winner = racers[0]
    if len(racers) > 1:
        position, times = race([built[k] for k in racers], rows, request, search_seconds - (process_time() - start))
        winner = racers[position]
        for k, (asked, alone) in zip(racers, times, strict=True):
            tried[k] = replace(tried[k], raced=asked, raced_alone=alone)
    return built[winner], tuple(replace(plan, chosen=k == winner) for k, plan in enumerate(tried))


def finalists(rivals: Sequence[Rival], rows_per_call: int | None, search_seconds: float) -> list[int]:
    """Choose at most four plans for a race; return their indices in ascending order.

    Plans whose field `always` is True take part. Any other plan takes part if its estimated cost is at most 1.5 times
    the least, building it takes no more time than the search and, without `rows_per_call`, a single row does not cost
    far more than with the best plan.
    """
    costs = {k: cost for k, rival in enumerate(rivals) if (cost := rival.tried.share_of_exact) is not None}
    alone = {k: rival.tried.share_alone or 0.0 for k, rival in enumerate(rivals)}
    left = max(search_seconds, _ACCEPTABLE_SECONDS)
    chosen = {k for k, rival in enumerate(rivals) if rival.always}
    for k in sorted(costs.keys() - chosen, key=lambda k: (costs[k], k)):
        if costs[k] > _WITHIN * min(costs.values()) or len(chosen) >= _MOST_PLANS:
            break
        is_slow = rows_per_call is None and alone[k] > MOST_ALONE * min(alone[j] for j in costs)
        if not is_slow and rivals[k].seconds <= left:
            chosen.add(k)
            left -= rivals[k].seconds
    return sorted(chosen)


def race(racers: Sequence[Artifact], rows: Any, request: Request, most_seconds: float) -> tuple[int, list[Times]]:
    """Return the winner's index and the times of all plans; the smallest plan within 5% of the fastest wins.

    Without `rows_per_call`, calls are large, and a plan that takes more than three times as long as another plan for a
    single row cannot win. Each timing takes 3 to 20 rounds, and ends once half of `most_seconds` has been spent.
    """
    assert request.stopwatch is not None
    rows_per_call, progress = request.limits.rows_per_call, partial(request.progress, "Racing")
    course = partial(_least_seconds, racers, rows, request.stopwatch, 0.5 * most_seconds)
    may_win, alone = list(range(len(racers))), None
    if rows_per_call is None:
        alone = course(may_win, 1, part_of(progress, 0.0, 0.5))
        may_win = [k for k in may_win if alone[k] <= MOST_ALONE * min(alone)]
    asked = course(may_win, rows_per_call or CALL_ROWS, part_of(progress, 0.5, 1.0))
    good = [k for k in may_win if asked[k] <= SAME * min(asked[j] for j in may_win)]
    winner = min(good, key=lambda k: (racers[k].n_bytes, asked[k]))
    alone = asked if rows_per_call == 1 else alone
    return winner, [Times(asked[k], None if alone is None else alone[k]) for k in range(len(racers))]


def _least_seconds(
    racers: Sequence[Artifact],
    rows: Any,
    stopwatch: Stopwatch,
    most_seconds: float,
    may_win: Sequence[int],
    call_rows: int,
    progress: Callable[[float], None],
) -> list[float]:
    """Return the least times per row in calls of the given size; plans that cannot win are timed in only one round."""
    calls = _calls(rows, call_rows)
    n_rows = len(calls) * (calls[0].shape[0] if calls[0].ndim > 1 else 1)
    runs = [partial(_answer_all, Evaluator(artifact), calls) for artifact in racers]
    least = [math.inf] * len(racers)
    spent = 0.0
    for n_done in range(_MOST_ROUNDS):
        if n_done >= _LEAST_ROUNDS and spent > most_seconds:
            break
        most = _TOO_SLOW * min(least[k] for k in may_win)
        for k in range(len(racers)) if n_done == 0 else [k for k in may_win if least[k] <= most]:
            for _ in range(_CALLS_OF_A_TURN):  # in the second run, coefficients and rows are in the cache
                taken = stopwatch(racers[k], runs[k])
                least[k], spent = min(least[k], taken), spent + taken
        progress((n_done + 1) / _MOST_ROUNDS)
    return [taken / n_rows for taken in least]


def _answer_all(evaluator: Evaluator, calls: list[Any]) -> None:
    """Compute the usual output: values if the artifact guarantees a tolerance, otherwise labels."""
    are_values = math.isfinite(evaluator.artifact.header["tolerance"])
    answer: Callable[[Any], object] = evaluator.evaluate if are_values else evaluator.predict
    if calls[0].ndim == 1:
        answer = evaluator.one
    for rows in calls:
        answer(rows)


def _calls(rows: Any, call_rows: int) -> list[Any]:
    """Return the rows for the calls of a turn, evenly spread over `rows`, or repeated if there are too few."""
    n_present, is_dense = rows.shape[0], isinstance(rows, np.ndarray)
    numbers_of_row = rows.shape[1] if is_dense else rows.nnz // n_present
    most = min(CALL_ROWS, max(_MAX_NUMBERS // max(numbers_of_row, 1), 1))
    size = min(call_rows, most)
    n = size * min(most // size, _CALLS)
    drawn = np.linspace(0, n_present - 1, n).astype(np.intp) if n <= n_present else np.arange(n) % n_present
    if call_rows == 1 and is_dense:
        return list(rows[drawn])  # one array per row, because programs pass single rows in this form
    return [rows[drawn[first : first + size]] for first in range(0, n, size)]
