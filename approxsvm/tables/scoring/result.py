"""What a run over files tells, while it goes on and at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

# Rows that are written, and the share of the input that is, None where nobody knows.
Progress = Callable[[int, "float | None"], None]


@dataclass
class Scoring:
    """What became of the rows.

    Attributes
    ----------
    n_rows : int
        That were read.
    n_bad : int
        Those of them without an answer.
    bad_rows : list of str
        File, row and fault of the first hundred.
    written : list of str
        Files, whole.
    n_kept : int
        Parts of a folder that were there from an earlier run.
    seconds : float
        From the first to the last byte.
    seconds_reading, seconds_predicting, seconds_writing : float
        What each took, added up over threads; they overlap.
    """

    n_rows: int = 0
    n_bad: int = 0
    bad_rows: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    n_kept: int = 0
    seconds: float = 0.0
    seconds_reading: float = 0.0
    seconds_predicting: float = 0.0
    seconds_writing: float = 0.0
