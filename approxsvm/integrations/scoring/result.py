"""Result and progress of a run on files."""

from collections.abc import Callable
from dataclasses import dataclass, field

# Called with the number of rows written and the fraction of the input processed so far (None if unknown).
Progress = Callable[[int, "float | None"], None]
_MAX_REASONS = 100  # maximum number of reported reasons for all files together


@dataclass
class Scoring:
    """Counts and times of a run of `score_dataset`.

    Attributes
    ----------
    n_rows : int
        Number of rows read.
    n_bad : int
        Number of rows without a prediction.
    bad_rows : list of str
        File, row and error of each of the first hundred bad rows.
    written : list of str
        Files written.
    n_kept : int
        Number of files that an earlier run had completed.
    seconds : float
        Duration of the run, in seconds.
    seconds_reading, seconds_predicting, seconds_writing : float
        Seconds spent in each stage, summed over threads; the stages overlap.
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

    @property
    def n_reasons_left(self) -> int:
        """Number of bad rows that can still be added to `bad_rows`."""
        return _MAX_REASONS - len(self.bad_rows)
