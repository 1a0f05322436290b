"""Rows of integer codes, for example from an A/D converter: what codes represent, and the error due to quantization.

Code q of feature j represents all values within half a step of offset_j + step_j q. The header decodes codes in float32
and then treats the result like any row. The exact value of the row before quantization may differ from the decoded
row's. If the distance between the two rows after the input map is r, their exact values differ by at most

    W sqrt(2 - 2 exp(-gamma r^2)) <= W sqrt(2 gamma) r,    and by at most A1 sqrt(2 gamma / e) r,

where W is the norm of the decision function and A1 the sum of the absolute values of its coefficients, because the
slope of a kernel is at most sqrt(2 gamma / e). A single r holds for all rows: the norm of the vector whose entry j is
half of step_j times the factor by which the input map scales feature j. Clipping never increases the distance between
values. The bound on the difference is thus a constant, which is added to every bound.

If an input map has no limits, the map and the decoding are combined into slope q + base in float32, so that a pipeline
needs no float64 arithmetic. The rounding error of slope q + base is small compared with half a step, the quantization
error.

A value outside the code range is clamped to the nearest code, and its row has no bound.
"""

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
from approxsvm.ir.ops import Affine

CodeType = Literal["int16", "int8"]


@dataclass(frozen=True, eq=False)
class InputCodes:
    """Quantization of rows: code q of a column represents offset + step q."""

    kind: CodeType
    offsets: npt.NDArray[np.float32]
    steps: npt.NDArray[np.float32]

    @property
    def largest(self) -> int:
        """Code for all values above the range; its negative is the code for values below the range."""
        return LARGEST[self.kind]

    def moved(
        self,
        artifact: Artifact,
        ops: Sequence[Affine],
        slope_and_base: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]] | None,
    ) -> float:
        """Return r, a bound on the distance between the mapped row and the mapped values before quantization.

        The error of each value is at most the sum of half a step, 1/128 of a step for three roundings of the quotient
        (at most 2^15) that is rounded to the code, and the roundings of a product, a sum, and their operands.
        `slope_and_base` is the result of `folded`, or None if the header does not use it.
        """
        errors = (0.5 + 2.0**-7) * self.steps.astype(np.float64)
        if slope_and_base is None:
            errors = errors + self._rounding(self.steps, self.offsets)
        if artifact.input_map is not None:
            errors = errors[artifact.input_map.columns]
        for op in ops:
            for part, combine in ((op.multiply, np.multiply), (op.divide, np.divide)):
                errors = errors if part is None else combine(errors, np.abs(part))
            if op.relative_error is not None:
                errors = errors * (1.0 + op.relative_error)
        if slope_and_base is not None:
            errors = errors + self._rounding(*slope_and_base)
        return math.sqrt(float((errors * errors).sum())) * (1.0 + 1e-9)

    def _rounding(self, slopes: npt.NDArray[np.float32], bases: npt.NDArray[np.float32]) -> FloatArray:
        """Bound the error of slope q + base in float32, including the rounding of the slope and the base."""
        moduli = self.largest * np.abs(slopes.astype(np.float64)) + np.abs(bases.astype(np.float64))
        return np.asarray(2.0**-22 * moduli + 2.0**-130)

    def folded(
        self, artifact: Artifact, ops: Sequence[Affine]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]] | None:
        """Return each mapped feature's slope and base, or None without a map, with limits, or for values above 1e37."""
        if artifact.input_map is None or any(op.low is not None or op.high is not None for op in ops):
            return None
        slopes, bases = [], []
        for j, column in enumerate(artifact.input_map.columns):
            slope, base = Fraction(float(self.steps[column])), Fraction(float(self.offsets[column]))
            for op in ops:
                subtract, multiply, divide, add = (
                    Fraction(otherwise if part is None else float(part[j]))
                    for part, otherwise in ((op.subtract, 0), (op.multiply, 1), (op.divide, 1), (op.add, 0))
                )
                slope, base = slope * multiply / divide, (base - subtract) * multiply / divide + add
            if max(abs(slope) * self.largest, abs(base)) > 10**37:
                return None
            slopes.append(float(slope))
            bases.append(float(base))
        return np.array(slopes, np.float32), np.array(bases, np.float32)


def input_codes(artifact: Artifact, kind: CodeType, X: Any) -> InputCodes:
    """Return codes that cover the range of each feature in X, plus a small margin."""
    if X is None:
        raise InputError(f"inputs of type {kind} need X: sample rows, whose range the codes will cover")
    columns = artifact.raw_columns
    rows = numpy_rows(X.toarray() if hasattr(X, "toarray") else X, columns, stacklevel=6)
    if len(rows) == 0:
        raise InputError(f"X has shape {rows.shape}, expected (n_rows, {columns.n_columns}) with a row or more")
    rows = zero_unused(rows.astype(np.float64), columns)
    low, high = rows.min(axis=0), rows.max(axis=0)
    if not (np.isfinite(low) & np.isfinite(high) & (np.maximum(-low, high) < 1e38)).all():
        raise InputError("X holds NaN, infinity or numbers beyond float32")
    offsets = (low + 0.5 * (high - low)).astype(np.float32)
    reach = np.maximum(high - offsets, offsets - low) * (1.0 + 1e-6)
    reach = np.maximum(reach, np.maximum(2.0**-20 * np.abs(offsets), 1e-30))  # positive even for constant features
    steps = np.nextafter((reach / (LARGEST[kind] - 1)).astype(np.float32), np.float32(np.inf))
    return InputCodes(kind, offsets, steps)
