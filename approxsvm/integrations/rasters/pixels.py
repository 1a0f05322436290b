"""Predictions for pixels, some of which have no data."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.errors import InputError
from approxsvm.frames.columns import check_exact
from approxsvm.frames.rows import zero_unused
from approxsvm.runtime.evaluator import BoolArray, Evaluator, IntArray, available_outputs, check_output
from approxsvm.runtime.gaps import answers_with_gaps
from approxsvm.system.options import real_number

_MAX_REASONS = 20  # maximum number of reasons reported for one block


@dataclass(frozen=True)
class Answered:
    """Predictions for some pixels of a block."""

    answers: dict[str, npt.NDArray[Any]]  # one array of shape (n_pixels, n_columns) per output
    pixels: IntArray | None  # indices of the pixels with a prediction; None means all pixels
    reasons: dict[int, str] = field(default_factory=dict)  # why pixels with data have no prediction


class PixelModel:
    """Model as a function of pixels; can be pickled and uses one thread per call.

    The default output is "label", or "value" for a regressor. Raises InputError if the model lacks a requested output
    or takes strings.
    """

    def __init__(self, artifact: Artifact, outputs: str | Sequence[str] | None = None) -> None:
        if artifact.takes_texts:
            raise InputError("the model takes texts, which pixels are not")
        self.artifact = artifact
        outputs = [outputs] if isinstance(outputs, str) else outputs
        self.outputs = available_outputs(artifact)[:1] if outputs is None else tuple(dict.fromkeys(outputs))
        if not self.outputs:
            raise InputError("outputs is empty")
        for output in self.outputs:
            check_output(artifact, output)
        self.columns = artifact.raw_columns
        self._evaluator = Evaluator(artifact)

    def __reduce__(self) -> tuple[Any, ...]:
        return PixelModel, (self.artifact, self.outputs)

    def answer(self, rows: Any, has_data: BoolArray | None) -> Answered:
        """Predict the pixels in `rows`, of shape (n_pixels, n_bands), that have data; `has_data` is None if all do.

        NaN means no data in a band for which the model does not accept NaN. A pixel gets no prediction if it has no
        data in some band that the model uses, or is NaN in all of them.
        """
        check_exact(rows, self.columns)
        has_data, infinite = self._finite(rows, has_data)
        rows = zero_unused(rows, self.columns)
        if has_data is None:
            try:
                return Answered(_columns(self._evaluator.answers(rows, self.outputs)), None)
            except InputError:
                has_data = np.ones(len(rows), np.bool_)  # the rejected pixels and their reasons are found below
        answers, pixels, reasons = answers_with_gaps(self._evaluator, rows, np.flatnonzero(has_data), self.outputs)
        for pixel in infinite[:_MAX_REASONS].tolist():
            reasons[pixel] = "a band is infinite"
        return Answered(_columns(answers), pixels, reasons)

    def _finite(self, rows: Any, has_data: BoolArray | None) -> tuple[BoolArray | None, IntArray]:
        """Return a mask of valid pixels (finite, or NaN if the model accepts it), and the indices of infinite ones."""
        none = np.empty(0, np.intp)
        if rows.dtype.kind != "f" or np.isfinite(rows).all():
            return has_data, none
        used = rows[:, self.columns.used]
        missing = np.isnan(used)
        accepts = np.isin(self.columns.used, self.columns.takes_nan)
        finite = ~(missing & ~accepts).any(axis=1) & ~missing.all(axis=1)
        is_infinite = np.isinf(used).any(axis=1)
        known = finite if has_data is None else finite & has_data
        return known & ~is_infinite, np.flatnonzero(known & is_infinite)


def _columns(answers: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    return {output: answer[:, np.newaxis] if answer.ndim == 1 else answer for output, answer in answers.items()}


def nodata_number(value: Any) -> int | float | None:
    """Return a no-data value as a number, or None for NaN, which always means no data; raise InputError if invalid."""
    if value is None or (isinstance(value, (float, np.floating)) and np.isnan(value)):
        return None
    number = real_number(value, "nodata")
    return int(value) if isinstance(value, (int, np.integer)) else number


def differs(pixels: npt.NDArray[Any], number: float, dtype: np.dtype[Any]) -> Any:
    """Return a mask of the pixels that differ from a number rounded to `dtype`; True means all pixels."""
    if np.isnan(number):
        return True  # the model determines whether NaN is valid
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return pixels != pixels.dtype.type(dtype.type(number))
    limits = np.iinfo(dtype if dtype.kind in "iu" else np.uint8)
    if np.isinf(number) or int(number) != number or not limits.min <= int(number) <= limits.max:
        return True
    return pixels != pixels.dtype.type(int(number))


def in_bands(text: str) -> str:
    """Convert a sentence about a table's columns to one about an image's bands."""
    return re.sub(r"\bcolumn(s?)\b", r"band\1", text.replace("the table", "the file"))
