"""Normalizers: x / ||x||, over neighbouring features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError
from approxsvm.model.compensated import FloatArray
from approxsvm.model.constants import UNIT64
from approxsvm.model.steps.step import TINY, UP, IntArray, Mapped, Step, Stored, check

NORMS = ("l1", "l2", "max")
# scikit-learn takes a smaller norm for 1, to divide no zero by zero.
LEAST_NORM = 10.0 * 2.0**-52


@dataclass(frozen=True, eq=False)
class Normalizer(Step):
    """x -> x / ||x||, where the norm is at least `LEAST_NORM`; else x stays as it is."""

    kind = "normalizer"

    norm: str
    # shape (n_features,); neighbouring features of one number, 1 or more and ascending, are one vector. Those of 0 stay
    # as they are.
    groups: IntArray

    def __post_init__(self) -> None:
        check("groups", self.groups, (self.groups.size,))
        if self.norm not in NORMS:
            raise ModelFormatError(f"the norm of an input step is {self.norm!r}, expected one of {NORMS}")
        before, greatest = 0, 0
        for group in self.groups.tolist():
            if group not in (0, greatest + 1) and group != before:
                raise ModelFormatError(f"group {group} of a normalizer follows group {before}")
            before, greatest = group, max(greatest, group)

    @classmethod
    def of(cls, n_features: int, norm: str) -> Normalizer:
        """Of all features."""
        return cls(norm, np.ones(n_features, np.intp))

    @property
    def n_features(self) -> int:
        return len(self.groups)

    @property
    def n_outputs(self) -> int:
        return len(self.groups)

    def origin(self, output: int) -> int | None:
        return output if self.groups[output] == 0 else None

    @property
    def group(self) -> Any:
        return type(self), self.norm

    def select(self, features: IntArray) -> None:
        """None: norms are of all features."""
        return

    def run(self, x: FloatArray, errors: FloatArray | None) -> Mapped:
        """Normalized rows.

        With an error E of the norm N, rounding included, and an error e of x, x / N is off by
        (e + |x / N| E) / (N - E), and by one rounding. A sum of n moduli or squares errs by gamma_(n + 3), in any
        order. Where the norm may be on either side of `LEAST_NORM`, nothing is known.
        """
        return self._run(x, errors, np.inf)

    def run_as_source(self, x: FloatArray, errors: FloatArray | None) -> Mapped:
        """As `run`; the source's own sums of squares may leave float64."""
        return self._run(x, errors, {"l1": 2.0**1000, "l2": 2.0**500, "max": np.inf}[self.norm] / self.n_features)

    def _run(self, x: FloatArray, errors: FloatArray | None, most: float) -> Mapped:
        for group in range(1, int(self.groups.max(initial=0)) + 1):
            (features,) = np.nonzero(self.groups == group)
            part = slice(int(features[0]), int(features[-1]) + 1)
            self._normalize(x[:, part], None if errors is None else errors[:, part], most)
        return x, errors

    def _normalize(self, x: FloatArray, errors: FloatArray | None, most: float) -> None:
        """In place."""
        n, norm = x.shape[1], self.norm
        largest = np.abs(x).max(axis=1, keepdims=True)
        # A power of two in front of rows so large that sums might leave float64.
        scale = np.where(largest > 2.0**490, 2.0**-600, 1.0)
        scaled = x * scale
        norms = _norms(scaled, norm)
        least = LEAST_NORM * scale
        divided = norms >= least
        if errors is not None:
            came = errors * scale
            rounding = 0.0 if norm == "max" else 1.01 * (n + 3) * UNIT64
            off = (_norms(came, norm) * (1.0 + rounding) + rounding * norms) * UP + TINY
            doubtful = (norms - off < least) & (norms + off >= least)
            nearest = norms - off
            y = np.abs(scaled) / np.where(divided, norms, 1.0)
            grown = ((came + y * off + TINY) / np.where(nearest > 0, nearest, 1.0) + UNIT64 * y + TINY) * UP
            grown = np.where(nearest > 0, grown, np.inf)
            errors[:] = np.where(doubtful | (largest > most), np.inf, np.where(divided, grown, errors))
        x[:] = np.where(divided, scaled / np.where(divided, norms, 1.0), x)

    def preimage(self, y: FloatArray) -> FloatArray:
        """Rows that are normalized already."""
        return y

    @classmethod
    def side_by_side(cls, stages: Sequence[Any], widths: Sequence[int]) -> Normalizer:
        groups, greatest = [], 0
        for stage, n in zip(stages, widths, strict=True):
            own = np.zeros(n, np.intp) if stage is None else np.where(stage.groups > 0, stage.groups + greatest, 0)
            greatest = max(greatest, int(own.max(initial=0)))
            groups.append(own)
        return cls(next(stage.norm for stage in stages if stage is not None), np.concatenate(groups))

    def stored(self) -> Stored:
        return NORMS.index(self.norm), [self.groups.astype(np.uint32)]

    @classmethod
    def read(cls, reader: Any, parts: int, n_features: int, n_outputs: int) -> Normalizer:
        return cls(NORMS[parts], reader.array("<u4", n_features).astype(np.intp))

    def in_words(self) -> str:
        return f"normalizes rows ({self.norm}, {int((self.groups > 0).sum()):,} features)"


def _norms(x: FloatArray, norm: str) -> FloatArray:
    if norm == "l1":
        return np.asarray(np.abs(x).sum(axis=1, keepdims=True))
    if norm == "l2":
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", x, x))[:, np.newaxis])
    return np.asarray(np.abs(x).max(axis=1, keepdims=True))
