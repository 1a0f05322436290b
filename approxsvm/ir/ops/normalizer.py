"""Normalizers: x / ||x||."""

from dataclasses import dataclass
from typing import Any

from approxsvm.errors import ModelFormatError
from approxsvm.ir.ops.op import IntArray, Op, Stored

NORMS = ("l1", "l2", "max")
# Whether the rows that the source normalizes are sparse: if the raw rows are, never, or always.
ROWS = ("as raw", "dense", "sparse")
# In dense rows, scikit-learn replaces norms below LEAST_NORM with 1 to avoid 0 / 0; in sparse rows, it replaces only 0.
# Sparse raw rows with a positive norm below LEAST_NORM are rejected, because the source might receive them as dense
# rows.
LEAST_NORM = 10.0 * 2.0**-52
LEAST_NORM_OF_SPARSE_ROWS = 2.0**-1074


@dataclass(frozen=True, eq=False)
class Normalizer(Op):
    """Normalization x -> x / ||x|| if the norm is at least `least`; otherwise x is unchanged."""

    kind = "normalizer"

    n_features: int
    norm: str
    rows: str = "as raw"

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise ModelFormatError(f"the norm of an input step is {self.norm!r}, expected one of {NORMS}")
        if self.rows not in ROWS:
            raise ModelFormatError(f"the rows of a normalizer are {self.rows!r}, expected one of {ROWS}")

    @property
    def n_outputs(self) -> int:
        return self.n_features

    @property
    def least(self) -> float:
        """Smallest norm by which exported models, which take dense rows, divide."""
        return LEAST_NORM_OF_SPARSE_ROWS if self.rows == "sparse" else LEAST_NORM

    def select(self, features: IntArray) -> None:
        """Return None, because the norm depends on all features."""
        return

    def stored(self) -> Stored:
        return NORMS.index(self.norm) + len(NORMS) * ROWS.index(self.rows), []

    @classmethod
    def read(cls, reader: Any, parts: int, first: int, n_features: int, n_outputs: int) -> "Normalizer":
        rows, norm = divmod(parts, len(NORMS))
        return cls(n_features, NORMS[norm], ROWS[rows], first=first)

    def in_words(self) -> str:
        return f"normalizes rows ({self.norm}, {self.n_features:,} features)"
