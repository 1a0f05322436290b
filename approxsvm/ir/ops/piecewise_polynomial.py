"""Piecewise polynomials of a single feature: splines and quantile interpolation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.ops.op import IntArray, Op, PerOutput, Stored, adjacent, check, check_source

MAX_DEGREE = 7


class Pieces(NamedTuple):
    """Piecewise polynomial: coefs[i] times the powers of x - origins[i] for edges[i - 1] <= x < edges[i]."""

    edges: FloatArray  # shape (n_pieces - 1,)
    origins: FloatArray  # shape (n_pieces,)
    coefs: FloatArray  # shape (n_pieces, degree + 1), in order of increasing powers; each is rounded once


@dataclass(frozen=True, eq=False)
class PiecewisePolynomial(PerOutput):
    """Piecewise polynomials: output k is pieces[k] at feature source[k]. All are stored with the same degree."""

    kind = "piecewise_polynomial"
    hides_infinity = True

    pieces: tuple[Pieces, ...]

    def __post_init__(self) -> None:
        check_source("a piecewise polynomial", self.source, len(self.pieces), self.n_features)
        for edges, origins, coefs in self.pieces:
            check("edges", edges, edges.shape)
            check("origins", origins, (len(edges) + 1,))
            check("coefs", coefs, (len(edges) + 1, self.degree + 1))
            if (edges[1:] <= edges[:-1]).any():
                raise ModelFormatError("the edges of a piecewise polynomial do not ascend")
        if self.degree > MAX_DEGREE:
            raise ModelFormatError(f"a piecewise polynomial has degree {self.degree}, the limit is {MAX_DEGREE}")

    @classmethod
    def of(cls, n_features: int, columns: Sequence[tuple[int, Pieces]], first: int = 0) -> "PiecewisePolynomial":
        """Build an op from a source feature and a piecewise polynomial for each output."""
        degree = max((pieces.coefs.shape[1] for _, pieces in columns), default=1)
        wide = tuple(
            pieces._replace(coefs=np.pad(pieces.coefs, ((0, 0), (0, degree - pieces.coefs.shape[1]))))
            for _, pieces in columns
        )
        return cls(n_features, np.array([j for j, _ in columns], np.intp), wide, first=first)

    @property
    def degree(self) -> int:
        """Largest degree of the pieces."""
        return self.pieces[0].coefs.shape[1] - 1 if self.pieces else 0

    def follow_nan(self, feature: int) -> int | None:
        """Return the only output that depends on a feature, or None; the output is NaN if the feature is NaN."""
        outputs = np.flatnonzero(self.source == feature)
        return int(outputs[0]) if len(outputs) == 1 else None

    def select(self, features: IntArray) -> "tuple[PiecewisePolynomial, IntArray]":
        used = np.unique(self.source[features])
        kept = [(int(np.searchsorted(used, self.source[k])), self.pieces[k]) for k in features]
        return PiecewisePolynomial.of(len(used), kept, self.first), used

    @classmethod
    def together(cls, ops: Sequence[Any]) -> Sequence[Op]:
        """Combine ops that take adjacent features."""
        combined = []
        for run in adjacent(ops):
            first = run[0].first
            sources = (op.source + op.first - first for op in run)
            columns = zip(np.concatenate(list(sources)).tolist(), (one for op in run for one in op.pieces), strict=True)
            combined.append(cls.of(run[-1].end - first, list(columns), first))
        return super().together(combined)

    def stored(self) -> Stored:
        """Return 8 * n_edges + degree, and the arrays: sources, end of each output's edges, edges, origins, coefs."""
        ends = np.cumsum([len(pieces.edges) for pieces in self.pieces], dtype=np.uint32)
        numbers: list[npt.NDArray[Any]] = [
            np.concatenate([np.zeros(0), *(getattr(pieces, part).ravel() for pieces in self.pieces)])
            for part in ("edges", "origins", "coefs")
        ]
        return 8 * len(numbers[0]) + self.degree, [self.source.astype(np.uint32), ends, *numbers]

    @classmethod
    def read(cls, reader: Any, parts: int, first: int, n_features: int, n_outputs: int) -> "PiecewisePolynomial":
        n_edges, degree = divmod(parts, 8)
        source, ends = (reader.array("<u4", n_outputs).astype(np.intp) for _ in range(2))
        edges, origins = reader.numbers(n_edges), reader.numbers(n_edges + n_outputs)
        coefs = reader.numbers((n_edges + n_outputs) * (degree + 1)).reshape(-1, degree + 1)
        starts = np.append(0, ends)
        pieces = []
        for k in range(n_outputs):
            own = slice(starts[k] + k, ends[k] + k + 1)
            pieces.append(Pieces(edges[starts[k] : ends[k]], origins[own], coefs[own]))
        return cls(n_features, source, tuple(pieces), first=first)

    def in_words(self) -> str:
        return f"makes {self.n_outputs:,} piecewise polynomials of {self.n_features:,} features"
