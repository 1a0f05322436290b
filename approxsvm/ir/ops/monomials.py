"""Products of features, as computed by PolynomialFeatures."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError
from approxsvm.ir.ops.op import IntArray, Op, Stored


@dataclass(frozen=True, eq=False)
class Monomials(Op):
    """Products of features; each product is computed from the last factor to the first, as in the source."""

    kind = "monomials"
    as_source = True

    n_features: int
    factors: IntArray  # shape (n_outputs, degree); feature indices, or n_features for the constant 1

    def __post_init__(self) -> None:
        if self.factors.ndim != 2 or self.factors.shape[1] < 1:
            raise ModelFormatError(f"factors of an input step have shape {self.factors.shape}")
        worst = int(self.factors.max(initial=0)) if int(self.factors.min(initial=0)) >= 0 else int(self.factors.min())
        if not 0 <= worst <= self.n_features:
            raise ModelFormatError(f"a product takes feature {worst} of {self.n_features}")

    @classmethod
    def of_powers(cls, powers: Any) -> "Monomials":
        """Build an op from the power of each feature in each output, an array of shape (n_outputs, n_features)."""
        powers = np.asarray(powers)
        n, degree = powers.shape[1], max(int(powers.sum(axis=1).max(initial=0)), 1)
        factors = np.full((len(powers), degree), n, np.intp)
        for row, of_features in zip(factors, powers, strict=True):
            chosen = np.repeat(np.arange(n), of_features)
            row[: len(chosen)] = chosen
        return cls(n, factors)

    @property
    def n_outputs(self) -> int:
        return len(self.factors)

    def select(self, features: IntArray) -> "tuple[Monomials, None]":
        return replace(self, factors=self.factors[features]), None

    def stored(self) -> Stored:
        """Return the maximum number of factors in a product, and the factors of each product."""
        return self.factors.shape[1], [self.factors.astype(np.uint32)]

    @classmethod
    def read(cls, reader: Any, parts: int, first: int, n_features: int, n_outputs: int) -> "Monomials":
        factors = reader.array("<u4", parts * n_outputs).astype(np.intp)
        return cls(n_features, factors.reshape(n_outputs, parts), first=first)

    def in_words(self) -> str:
        return f"multiplies {self.n_features:,} features into {self.n_outputs:,} products"
