"""Answers for rows of which some have none: the model rejects them, or the caller knows that they hold no data."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import InputError
from approxsvm.runtime.evaluator import Evaluator, IntArray

_CAREFUL_ROWS = 1 << 9  # batch size after the core has rejected a row of a batch


def answers_with_gaps(
    evaluator: Evaluator, rows: Any, candidates: IntArray, outputs: Sequence[str], *, stop: bool = False
) -> tuple[dict[str, npt.NDArray[Any]], IntArray, dict[int, str]]:
    """Return the answers for some of the rows, the rows that they belong to, and why the core rejects the others.

    `candidates` are the rows to answer, which must be finite where the model needs it. With `stop`, rows after the
    first rejected one may have neither an answer nor a reason.
    """
    parts, answered, reasons = [], [], {}
    start, n_at_once = 0, len(candidates)
    while True:
        left = candidates[start : start + n_at_once]
        part, rejected, reason = _until_rejected(evaluator, rows[left], outputs)
        parts.append(part)
        answered.append(left[:rejected])
        if rejected is None:
            start += len(left)
        else:
            reasons[int(left[rejected])] = reason
            if stop:
                break
            # Continue in small batches: the rows after a rejected one are copied and evaluated again.
            start, n_at_once = start + rejected + 1, _CAREFUL_ROWS
        if start >= len(candidates):
            break
    whole = {output: np.concatenate([part[output] for part in parts]) for output in outputs}
    return whole, np.concatenate(answered), reasons


def _until_rejected(
    evaluator: Evaluator, rows: Any, outputs: Sequence[str]
) -> tuple[dict[str, npt.NDArray[Any]], int | None, str]:
    """Return the answers for rows before the first that the core rejects, its position, and the reason."""
    try:
        return evaluator.answers(rows, outputs), None, ""
    except InputError as error:
        place = re.search(r"\brow (\d+)", str(error))
        if place is None:
            raise
        row, reason = int(place[1]), re.sub(r"\s*\brow \d+(?: of X)?:?", "", str(error), count=1).strip()
        # An earlier row may also be bad if there are several threads.
        before = _until_rejected(evaluator, rows[:row], outputs)
        return before if before[1] is not None else (before[0], row, reason)
