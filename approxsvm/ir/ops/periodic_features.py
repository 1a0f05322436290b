"""PeriodicFeatures in log(x) with amplitude proportional to sqrt(x): the features of AdditiveChi2Sampler."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.ops.op import IntArray, PerOutput, Stored, check, check_source


@dataclass(frozen=True, eq=False)
class PeriodicFeatures(PerOutput):
    """Waves a sqrt(x) cos(w log x), or with sin, of feature source[k] for each output k; x >= 0, and 0 maps to 0."""

    kind = "periodic_features"

    sines: npt.NDArray[np.bool_]  # shape (n_outputs,); True for sin
    # shape (n_outputs,); each number is rounded once; no amplitude is negative. An infinite amplitude means that the
    # output is the feature itself.
    amplitudes: FloatArray
    frequencies: FloatArray

    def __post_init__(self) -> None:
        check_source("a wave", self.source, len(self.source), self.n_features)
        for name in ("sines", "amplitudes", "frequencies"):
            check(name, getattr(self, name), (len(self.source),), finite=name != "amplitudes")
        if not (self.amplitudes >= 0).all():
            raise ModelFormatError(f"the amplitude of a wave is {self.amplitudes.min()}, but must be at least 0")

    @property
    def passes(self) -> npt.NDArray[np.bool_]:
        """Mask of the outputs that are unchanged features, shape (n_outputs,)."""
        return np.isinf(self.amplitudes)

    def select(self, features: IntArray) -> "tuple[PeriodicFeatures, IntArray]":
        used, source = np.unique(self.source[features], return_inverse=True)
        kept = self.amplitudes[features], self.frequencies[features]
        return PeriodicFeatures(len(used), source.astype(np.intp), self.sines[features], *kept), used

    def may_refuse(self) -> npt.NDArray[np.bool_]:
        return np.isin(np.arange(self.n_features), self.source[~self.passes])

    @classmethod
    def side_by_side(cls, ops: Sequence[Any], widths: Sequence[int]) -> "PeriodicFeatures":
        first, blocks = 0, []
        for op, n in zip(ops, widths, strict=True):
            own = op or cls(n, np.arange(n), np.zeros(n, np.bool_), np.full(n, np.inf), np.zeros(n))
            blocks.append((own.source + first, own.sines, own.amplitudes, own.frequencies))
            first += n
        return cls(first, *map(np.concatenate, zip(*blocks, strict=True)))

    def stored(self) -> Stored:
        """Return the arrays: sources, sine flags, amplitudes, frequencies."""
        integers = [part.astype(np.uint32) for part in (self.source, self.sines)]
        return 0, [*integers, self.amplitudes, self.frequencies]

    @classmethod
    def read(cls, reader: Any, parts: int, n_features: int, n_outputs: int) -> "PeriodicFeatures":
        source, sines = (reader.array("<u4", n_outputs) for _ in range(2))
        numbers = (reader.numbers(n_outputs) for _ in range(2))
        return cls(n_features, source.astype(np.intp), sines != 0, *numbers)

    def in_words(self) -> str:
        return f"computes {self.n_outputs:,} periodic functions of {self.n_features:,} features"
