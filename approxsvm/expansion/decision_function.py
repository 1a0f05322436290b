"""One decision function of a model, prepared for expansion: scaled coefficients, and support vectors in blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.ir.kernel_model import FloatArray, KernelModel

# Sparse support vectors with at most this many elements in total are converted to dense rows once, not in every pass.
_DENSE_ELEMENTS = 1 << 25
# Maximum number of elements in a dense block of larger matrices.
_BLOCK_ELEMENTS = 1 << 21
# Maximum fraction of nonzeros at which an inner product of sparse rows costs less than one of dense rows.
_SPARSE_SHARE = 1 / 16
_ROWS = 512


class DecisionFunction:
    """Sum of a_i K(x_i, z) over the support vectors with a_i != 0, ordered so that the a_i change sign at most once."""

    half_sq_offset = 0.0  # gamma times the largest squared distance from a support vector to the slice

    def __init__(self, model: KernelModel, decision: int) -> None:
        coef = model.coefficients(decision)
        vectors: Any = model.support_vectors
        if not coef.all():
            used = np.flatnonzero(coef)
            coef, vectors = coef[used], vectors[used]
        is_positive = coef > 0.0
        if np.count_nonzero(np.diff(is_positive)) > 1:  # trained classifiers have at most one change of sign
            order = np.argsort(~is_positive, kind="stable")
            coef, vectors, is_positive = coef[order], vectors[order], is_positive[order]
        # Number of support vectors before the change of sign.
        self.n_first = int(np.count_nonzero(is_positive == is_positive[:1]))
        if not isinstance(vectors, np.ndarray) and vectors.shape[0] * vectors.shape[1] <= _DENSE_ELEMENTS:
            vectors = vectors.toarray()
        self._vectors = vectors
        # True if an inner product of sparse rows is cheaper than one of dense rows. Slices use the same flag, because
        # dense rows are shifted by their mean, and the distances computed for a slice must not exceed those computed
        # for the whole function (certificate.py).
        n_dense = vectors.shape[0] * vectors.shape[1]
        self.is_sparse = not isinstance(vectors, np.ndarray) and vectors.nnz <= _SPARSE_SHARE * n_dense
        self._varying: Any = None
        # A power of two larger than every |a_i|, so that sums of squares cannot overflow; 1 if there are no support
        # vectors.
        self.unit = 2.0 ** min(int(np.frexp(np.abs(coef).max(initial=0.0))[1]), 1023)
        self.coef: FloatArray = coef / self.unit
        self.gamma = model.gamma
        self.scale = math.sqrt(2.0 * model.gamma)  # in scaled coordinates, K(x, z) = exp(-||x - z||^2 / 2)
        self.n_sv, self.n_features = int(vectors.shape[0]), model.n_features

    def on_slice(self, center: npt.NDArray[np.float32], varying: npt.NDArray[np.intp]) -> DecisionFunction:
        """Restrict the function to the slice through the center on which only the columns in `varying` vary.

        The columns are in increasing order. The restriction is again a sum of RBF kernels: each coefficient is
        multiplied by a factor that depends on its support vector's distance to the slice.
        """
        fixed = np.setdiff1d(np.arange(self.n_features), varying)
        half_sq_offset = np.empty(self.n_sv)
        found = copy(self)
        found._vectors = self._columns(varying)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # the writer rejects infinity and NaN
            for first, block in self.blocks_about(center, _ROWS):
                off = block[:, fixed]
                half_sq_offset[first : first + len(block)] = self.gamma * np.einsum("ij,ij->i", off, off)
            found.coef = self.coef * np.exp(-half_sq_offset)
        found.n_features = len(varying)
        found.half_sq_offset = float(half_sq_offset.max(initial=0.0))
        return found

    def _columns(self, varying: npt.NDArray[np.intp]) -> Any:
        """Return the support vectors' varying columns, which are the same for all slices."""
        if self._varying is None:
            self._varying = self._vectors[:, varying]
        return self._varying

    def sparse_rows(self, first: int, last: int) -> Any:
        """Return support vectors first, ..., last - 1 as sparse rows; requires `is_sparse`."""
        return self._vectors[first:last]

    def rows(self, first: int, last: int) -> FloatArray:
        """Return support vectors first, ..., last - 1 as dense rows."""
        rows = self._vectors[first:last]
        return rows if isinstance(rows, np.ndarray) else np.asarray(rows.toarray())

    def blocks_about(self, center: npt.NDArray[np.float32], n_rows: int) -> Iterator[tuple[int, FloatArray]]:
        """Yield blocks of at most `n_rows` support vectors relative to the center, each with the index of its first."""
        point = center.astype(np.float64)
        if not isinstance(self._vectors, np.ndarray):
            n_rows = max(1, min(n_rows, _BLOCK_ELEMENTS // self.n_features))
        for first in range(0, self.n_sv, n_rows):
            yield first, self.rows(first, min(first + n_rows, self.n_sv)) - point
