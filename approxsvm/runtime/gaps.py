"""Predictions with gaps, for rows that the model rejects and for rows known to contain no data."""

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
    """Return the results for the accepted rows, their indices, and the reasons why the core rejects other rows.

    The array `candidates` contains the indices of the rows to predict, which must be finite where the model needs
    finite values. With `stop`, rows after the first rejected one may have neither a result nor a reason.
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
            # Continue in small batches, because the rows after a rejected row are copied and evaluated again.
            start, n_at_once = start + rejected + 1, _CAREFUL_ROWS
        if start >= len(candidates):
            break
    whole = {output: np.concatenate([part[output] for part in parts]) for output in outputs}
    return whole, np.concatenate(answered), reasons


def _until_rejected(
    evaluator: Evaluator, rows: Any, outputs: Sequence[str]
) -> tuple[dict[str, npt.NDArray[Any]], int | None, str]:
    """Return the results for the rows before the first rejected row, its index, and the reason."""
    try:
        return evaluator.answers(rows, outputs), None, ""
    except InputError as error:
        place = re.search(r"\brow (\d+)", str(error))
        if place is None:
            raise
        row, reason = int(place[1]), re.sub(r"\s*\brow \d+(?: of X)?:?", "", str(error), count=1).strip()
        # With several threads, an earlier row may also be invalid.
        before = _until_rejected(evaluator, rows[:row], outputs)
        return before if before[1] is not None else (before[0], row, reason)
