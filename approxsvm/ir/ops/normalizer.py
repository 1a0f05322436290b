"""Normalizers: x / ||x||, over groups of adjacent features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError
from approxsvm.ir.ops.op import IntArray, Op, Stored, check

NORMS = ("l1", "l2", "max")
# Whether the source's rows are sparse where it normalizes them: as raw rows are, never, or always.
ROWS = ("as raw", "dense", "sparse")
# scikit-learn replaces smaller norms by 1, which avoids 0 / 0; in sparse rows it replaces only 0. Sparse raw rows with
# a norm in between are rejected, because it is unknown whether the source would get them as sparse rows.
LEAST_NORM = 10.0 * 2.0**-52
LEAST_NORM_OF_SPARSE_ROWS = 2.0**-1074


@dataclass(frozen=True, eq=False)
class Normalizer(Op):
    """Normalization x -> x / ||x|| if the norm is at least `least`; otherwise x is unchanged."""

    kind = "normalizer"

    norm: str
    # shape (n_features,); adjacent features with the same positive group number form one vector; group numbers ascend
    # from 1. Features with number 0 are unchanged.
    groups: IntArray
    rows: str = "as raw"

    def __post_init__(self) -> None:
        check("groups", self.groups, (self.groups.size,))
        if self.norm not in NORMS:
            raise ModelFormatError(f"the norm of an input step is {self.norm!r}, expected one of {NORMS}")
        if self.rows not in ROWS:
            raise ModelFormatError(f"the rows of a normalizer are {self.rows!r}, expected one of {ROWS}")
        before, greatest = 0, 0
        for group in self.groups.tolist():
            if group not in (0, greatest + 1) and group != before:
                raise ModelFormatError(f"group {group} of a normalizer follows group {before}")
            before, greatest = group, max(greatest, group)

    @classmethod
    def of(cls, n_features: int, norm: str, rows: str = "as raw") -> "Normalizer":
        """Build an op that normalizes all features as one vector."""
        return cls(norm, np.ones(n_features, np.intp), rows)

    @property
    def n_features(self) -> int:
        return len(self.groups)

    @property
    def n_outputs(self) -> int:
        return len(self.groups)

    @property
    def least(self) -> float:
        """Smallest norm that exports divide by: they take dense rows."""
        return LEAST_NORM_OF_SPARSE_ROWS if self.rows == "sparse" else LEAST_NORM

    def origin(self, output: int) -> int | None:
        return output if self.groups[output] == 0 else None

    @property
    def group(self) -> Any:
        return type(self), self.norm, self.rows

    def select(self, features: IntArray) -> None:
        """Return None: a norm needs all features."""
        return

    @classmethod
    def side_by_side(cls, ops: Sequence[Any], widths: Sequence[int]) -> "Normalizer":
        groups, greatest = [], 0
        for op, n in zip(ops, widths, strict=True):
            own = np.zeros(n, np.intp) if op is None else np.where(op.groups > 0, op.groups + greatest, 0)
            greatest = max(greatest, int(own.max(initial=0)))
            groups.append(own)
        first = next(op for op in ops if op is not None)
        return cls(first.norm, np.concatenate(groups), first.rows)

    def stored(self) -> Stored:
        return NORMS.index(self.norm) + len(NORMS) * ROWS.index(self.rows), [self.groups.astype(np.uint32)]

    @classmethod
    def read(cls, reader: Any, parts: int, n_features: int, n_outputs: int) -> "Normalizer":
        rows, norm = divmod(parts, len(NORMS))
        return cls(NORMS[norm], reader.array("<u4", n_features).astype(np.intp), ROWS[rows])

    def in_words(self) -> str:
        return f"normalizes rows ({self.norm}, {int((self.groups > 0).sum()):,} features)"
