"""Waves of the logarithm under a root: what AdditiveChi2Sampler makes of one feature each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.model.compensated import FloatArray
from approxsvm.model.constants import UNIT64
from approxsvm.model.steps.step import LIBRARY, UP, IntArray, Mapped, PerOutput, Stored, check, check_source


@dataclass(frozen=True, eq=False)
class Waves(PerOutput):
    """Output k is a sqrt(x) cos(w log x), or sin, of the feature source[k], x >= 0, and 0 of 0."""

    kind = "waves"

    sines: npt.NDArray[np.bool_]  # shape (n_outputs,); whether it is sin
    # shape (n_outputs,); each is rounded once; no amplitude is negative. Where it is infinite the output is the feature
    # itself.
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
        """Which outputs are features themselves, shape (n_outputs,)."""
        return np.isinf(self.amplitudes)

    def select(self, features: IntArray) -> tuple[Waves, IntArray]:
        used, source = np.unique(self.source[features], return_inverse=True)
        kept = self.amplitudes[features], self.frequencies[features]
        return Waves(len(used), source.astype(np.intp), self.sines[features], *kept), used

    def run(self, x: FloatArray, errors: FloatArray | None) -> Mapped:
        """All outputs, and their errors.

        The turn w log x errs by 4 units of the library and by two roundings, and the wave by no more than its turn,
        times its size, and by 4 units of its own, the roundings of a, of the root and of two products. The function has
        the slope a sqrt(1/4 + w^2) / sqrt(x) at most, which falls, and is within a sqrt(x) of 0: of numbers z within an
        error e that the source takes, those not below 0, it is off by a (sqrt(x) + sqrt(x + e)) at most.
        """
        return self._run(x, errors, 0.0)

    def run_as_source(self, x: FloatArray, errors: FloatArray | None) -> Mapped:
        """As `run`, of a source that has a from cosh(pi w), and the product of two numbers for w."""
        return self._run(x, errors, 4.0 * UNIT64)

    def _run(self, x: FloatArray, errors: FloatArray | None, more: float) -> Mapped:
        taken, a, w, passes = x[:, self.source], self.amplitudes, self.frequencies, self.passes
        with np.errstate(all="ignore"):
            size = a * np.sqrt(taken)
            turn = np.where(taken == 0, 0.0, w * np.log(taken))
            y = np.where(passes, taken, size * np.where(self.sines, np.sin(turn), np.cos(turn)))
            if errors is None:
                return y, None
            came = errors[:, self.source]
            path = np.abs(turn) * 1.01 * (LIBRARY + 2.0 * UNIT64 + more) + more * (2.0 + np.pi * np.abs(w))
            own = size * (path + LIBRARY + 4.0 * UNIT64)
            nearest = taken - came
            slope = np.where(nearest > 0, a * np.sqrt(0.25 + w * w) / np.sqrt(nearest), np.inf)
            moved = np.fmin(came * slope, size + a * np.sqrt(taken + came))
            grown = (np.where(came > 0, moved, 0.0) + own) * UP + 2.0**-500
        return y, np.where(passes, came, grown)

    def outside(self, x: FloatArray) -> npt.NDArray[np.bool_]:
        """Negative numbers, of features that waves are made of."""
        return (x < 0) & self.may_refuse()

    def may_refuse(self) -> npt.NDArray[np.bool_]:
        return np.isin(np.arange(self.n_features), self.source[~self.passes])

    def needs(self, feature: int, found: float) -> float:
        return 0.0

    def preimage(self, y: FloatArray) -> FloatArray:
        """Of every feature what the size of its waves says."""
        x = np.zeros((len(y), self.n_features))
        for j in range(self.n_features):
            waves = (self.source == j) & ~self.passes
            if not waves.any():
                x[:, j] = y[:, self.source == j].sum(axis=1)
                continue
            power = float((self.amplitudes[waves] ** 2 * np.where(self.frequencies[waves] == 0, 1.0, 0.5)).sum())
            x[:, j] = (y[:, waves] ** 2).sum(axis=1) / power if power > 0 else 0.0
        return x

    @classmethod
    def side_by_side(cls, stages: Sequence[Any], widths: Sequence[int]) -> Waves:
        first, blocks = 0, []
        for stage, n in zip(stages, widths, strict=True):
            own = stage or cls(n, np.arange(n), np.zeros(n, np.bool_), np.full(n, np.inf), np.zeros(n))
            blocks.append((own.source + first, own.sines, own.amplitudes, own.frequencies))
            first += n
        return cls(first, *map(np.concatenate, zip(*blocks, strict=True)))

    def stored(self) -> Stored:
        """Sources, which are sines, amplitudes, frequencies."""
        integers = [part.astype(np.uint32) for part in (self.source, self.sines)]
        return 0, [*integers, self.amplitudes, self.frequencies]

    @classmethod
    def read(cls, reader: Any, parts: int, n_features: int, n_outputs: int) -> Waves:
        source, sines = (reader.array("<u4", n_outputs) for _ in range(2))
        numbers = (reader.numbers(n_outputs) for _ in range(2))
        return cls(n_features, source.astype(np.intp), sines != 0, *numbers)

    def in_words(self) -> str:
        return f"makes {self.n_outputs:,} waves of {self.n_features:,} features"
