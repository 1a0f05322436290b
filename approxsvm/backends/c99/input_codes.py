"""Rows as whole numbers, as a converter or a buffer holds them: what a code stands for, and how far a row may be moved.

Code q of feature j stands for every number within half a step of offset_j + step_j q. The header decodes it in float32
and goes on as with any row. Where the row was before it was quantized, the exact value may be another: over a distance
of r, measured behind the input map, it changes by at most

    W sqrt(2 - 2 exp(-gamma r^2)) <= W sqrt(2 gamma) r,    and by at most A1 sqrt(2 gamma / e) r,

W being the norm of the decision function and A1 the sum of its coefficients' moduli, for the slope of a kernel is at
most sqrt(2 gamma / e). r is the same for all rows: the norm of half the steps, each times what the input map multiplies
its feature by; limits only bring numbers nearer to each other. So it is a constant, and part of every bound.

An input map without limits is one step with the decoding, slope q + base in float32, so that a pipeline costs no
float64 arithmetic: codes are not the source's rows anyway, and what this rounds is small beside half a step.

A number beyond the codes gets the last one, and with it no bound at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99.coefficients import LARGEST
from approxsvm.errors import InputError
from approxsvm.frames.columns import numpy_rows
from approxsvm.frames.rows import zero_unused
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.steps import Affine

CodeType = Literal["int16", "int8"]


@dataclass(frozen=True, eq=False)
class InputCodes:
    """How rows are quantized.

    Attributes
    ----------
    kind : {"int16", "int8"}
    offsets, steps : ndarray of shape (n_raw_features,), float32
        A code q stands for offset + step q.
    """

    kind: CodeType
    offsets: npt.NDArray[np.float32]
    steps: npt.NDArray[np.float32]

    @property
    def largest(self) -> int:
        """The code of whatever is beyond the others, as its negative is."""
        return LARGEST[self.kind]

    def moved(
        self,
        artifact: Artifact,
        stages: Sequence[Affine],
        slope_and_base: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]] | None,
    ) -> float:
        """r: how far the mapped row may be from that of the numbers that were quantized.

        Of each number half a step; a 128th of one for the quotient that the code was rounded from, three roundings of
        numbers up to 2^15; and the roundings of a product and a sum, with those of their factors. `slope_and_base` are
        those of `folded`, where the header has them.
        """
        errors = (0.5 + 2.0**-7) * self.steps.astype(np.float64)
        if slope_and_base is None:
            errors = errors + self._rounding(self.steps, self.offsets)
        if artifact.input_map is not None:
            errors = errors[artifact.input_map.columns]
        for stage in stages:
            for part, combine in ((stage.multiply, np.multiply), (stage.divide, np.divide)):
                errors = errors if part is None else combine(errors, np.abs(part))
            if stage.relative_error is not None:
                errors = errors * (1.0 + stage.relative_error)
        if slope_and_base is not None:
            errors = errors + self._rounding(*slope_and_base)
        return math.sqrt(float((errors * errors).sum())) * (1.0 + 1e-9)

    def _rounding(self, slopes: npt.NDArray[np.float32], bases: npt.NDArray[np.float32]) -> FloatArray:
        """What slope q + base in float32 errs by, both being rounded themselves."""
        moduli = self.largest * np.abs(slopes.astype(np.float64)) + np.abs(bases.astype(np.float64))
        return np.asarray(2.0**-22 * moduli + 2.0**-130)

    def folded(
        self, artifact: Artifact, stages: Sequence[Affine]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]] | None:
        """Slope and base of each mapped feature; None without an input map, or where limits or float32 forbid it."""
        if artifact.input_map is None or any(stage.low is not None or stage.high is not None for stage in stages):
            return None
        slopes, bases = [], []
        for j, column in enumerate(artifact.input_map.columns):
            slope, base = Fraction(float(self.steps[column])), Fraction(float(self.offsets[column]))
            for stage in stages:
                subtract, multiply, divide, add = (
                    Fraction(otherwise if part is None else float(part[j]))
                    for part, otherwise in ((stage.subtract, 0), (stage.multiply, 1), (stage.divide, 1), (stage.add, 0))
                )
                slope, base = slope * multiply / divide, (base - subtract) * multiply / divide + add
            if max(abs(slope) * self.largest, abs(base)) > 10**37:
                return None
            slopes.append(float(slope))
            bases.append(float(base))
        return np.array(slopes, np.float32), np.array(bases, np.float32)


def input_codes(artifact: Artifact, kind: CodeType, X: Any) -> InputCodes:
    """Codes that cover the rows of X, feature by feature, and a little more.

    Raises
    ------
    InputError
        X is not there, has another shape, or holds NaN or infinity or what float32 cannot hold.
    """
    if X is None:
        raise InputError(f"inputs as {kind} need X: rows like those to predict, whose range the codes are to cover")
    columns = artifact.raw_columns
    rows = numpy_rows(X.toarray() if hasattr(X, "toarray") else X, columns, stacklevel=5)
    if len(rows) == 0:
        raise InputError(f"X has shape {rows.shape}, expected (n_rows, {columns.n_columns}) with a row or more")
    rows = zero_unused(rows.astype(np.float64), columns)
    low, high = rows.min(axis=0), rows.max(axis=0)
    if not (np.isfinite(low) & np.isfinite(high) & (np.maximum(-low, high) < 1e38)).all():
        raise InputError("X holds NaN, infinity or numbers beyond float32")
    offsets = (low + 0.5 * (high - low)).astype(np.float32)
    reach = np.maximum(high - offsets, offsets - low) * (1.0 + 1e-6)
    reach = np.maximum(reach, np.maximum(2.0**-20 * np.abs(offsets), 1e-30))  # of a feature that is constant
    steps = np.nextafter((reach / (LARGEST[kind] - 1)).astype(np.float32), np.float32(np.inf))
    return InputCodes(kind, offsets, steps)
