"""Rows in other containers, with other columns or of other types than those of the fit: answered alike, or refused."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

import approxsvm
from approxsvm.errors import ApproxSVMError
from benchmarks.comparison import answers, compare_answers
from benchmarks.random_data import Data, Draw


def asked_otherwise(draw: Draw, source: Any, data: Data) -> list[str]:
    """Faults with rows that are not as those of the fit: what the source answers, and what it refuses."""
    if draw.maybe(0.6):
        return []
    way = draw.one(*_WAYS)
    rows = _WAYS[way](draw, copy.deepcopy(data.rows))
    if rows is None:
        return []
    try:
        fast = approxsvm.compile(source, mode="exact")
    except ApproxSVMError:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = answers(source, rows), answers(fast, rows)["predict"]
    their_answer = theirs["predict"]
    if isinstance(ours, Exception):
        if not isinstance(ours, (ValueError, TypeError)):
            return [f"{way}: {type(ours).__name__}: {ours}"]
        refuses_alone = not isinstance(their_answer, Exception) and way not in _MAY_BE_REFUSED
        return [f"{way}: refused, but not by the source: {type(ours).__name__}: {ours}"] * refuses_alone
    if isinstance(their_answer, Exception):
        return [f"{way}: an answer, but the source's {their_answer}"] * (way not in _MAY_BE_ANSWERED)
    found = compare_answers(source, fast, rows, theirs)
    return [f"{way}: {found.reason}"] * (found.verdict not in ("equal", "other methods", "refused"))


def _shuffled(draw: Draw, rows: Any) -> Any:
    if not isinstance(rows, pd.DataFrame) or rows.shape[1] < 2:
        return None
    return rows[[rows.columns[int(k)] for k in draw.rng.permutation(rows.shape[1])]]


def _with_a_column_more(draw: Draw, rows: Any) -> Any:
    if isinstance(rows, pd.DataFrame):
        rows.insert(draw.whole(0, rows.shape[1]), "more", draw.one("text", 1.0))
        return rows
    return np.insert(rows, draw.whole(0, rows.shape[1]), 1, axis=1) if isinstance(rows, np.ndarray) else None


def _without_a_column(draw: Draw, rows: Any) -> Any:
    if isinstance(rows, pd.DataFrame) and rows.shape[1] > 1:
        return rows.drop(columns=[draw.one(*rows.columns)])
    return rows[:, 1:] if isinstance(rows, np.ndarray) and rows.shape[1] > 1 else None


def _renamed(draw: Draw, rows: Any) -> Any:
    if isinstance(rows, pd.DataFrame):
        return rows.rename(columns={draw.one(*rows.columns): "other"})
    return pd.DataFrame(rows, columns=[f"y{j}" for j in range(rows.shape[1])]) if isinstance(rows, np.ndarray) else None


def _without_names(draw: Draw, rows: Any) -> Any:
    return rows.to_numpy() if isinstance(rows, pd.DataFrame) else None


def _of_type(kind: Any) -> Callable[[Draw, Any], Any]:
    def convert(draw: Draw, rows: Any) -> Any:
        return rows.astype(kind) if isinstance(rows, np.ndarray) else None

    return convert


def _with_a_hole(draw: Draw, rows: Any) -> Any:
    hole = draw.one(np.nan, np.inf)
    if isinstance(rows, pd.DataFrame):
        column = draw.one(*rows.columns)
        rows[column] = [hole, *rows[column].tolist()[1:]]
        return rows
    if isinstance(rows, np.ndarray) and rows.dtype.kind == "f":
        rows = rows.copy()
        rows[0, draw.whole(0, rows.shape[1] - 1)] = hole
        return rows
    return None


_WAYS: dict[str, Callable[[Draw, Any], Any]] = {
    "columns shuffled": _shuffled,
    "a column more": _with_a_column_more,
    "a column less": _without_a_column,
    "columns renamed": _renamed,
    "names taken away": _without_names,
    "lists": lambda draw, rows: rows.tolist() if isinstance(rows, np.ndarray) else None,
    "objects": _of_type(object),
    "text": _of_type(str),
    "CSR": lambda draw, rows: csr_array(rows) if isinstance(rows, np.ndarray) and rows.dtype.kind == "f" else None,
    "dense": lambda draw, rows: rows.toarray() if hasattr(rows, "toarray") else None,
    "one row": lambda draw, rows: rows[:1] if isinstance(rows, (np.ndarray, pd.DataFrame)) else None,
    "no row": lambda draw, rows: rows[:0] if isinstance(rows, (np.ndarray, pd.DataFrame)) else None,
    "one dimension": lambda draw, rows: rows[0] if isinstance(rows, np.ndarray) else None,
    "a hole": _with_a_hole,
}
# Ours take sparse rows, none at all and numbers as text wherever they can; holes need not be theirs.
_MAY_BE_ANSWERED = ("CSR", "no row", "dense", "text", "objects")
_MAY_BE_REFUSED = ("text", "a hole")
