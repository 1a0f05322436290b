"""Definitions of all kinds of models, evaluated in float64, and bounds on their rounding errors.

`definition_of` chooses a class for each kernel; feature models define themselves. The rounding bounds hold for any
summation order of the terms if the intercept is added last: both for the `values` method, which sums by blocks, and for
a source that evaluates the same terms. Let u = 2^-53 and A1 = sum |a_i|.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np

from approxsvm.frames.rows import sparse_sq_distances
from approxsvm.ir.compensated import norms_above
from approxsvm.ir.constants import UNIT64, gaussian_slope
from approxsvm.ir.feature_model import FeatureModel
from approxsvm.ir.kernel_model import FloatArray, KernelModel
from approxsvm.ir.schema import MAX_OUTPUT_SCALE
from approxsvm.ir.single_model import SingleModel
from approxsvm.reference.term_sums import TermSums, term_sums

# Maximum numbers of rows and support vectors in a block of kernel values, and of elements in a dense block of support
# vectors.
_BLOCK_ROWS: Final = 512
_BLOCK_VECTORS: Final = 4096
_BLOCK_NUMBERS: Final = 1 << 23
# Approximate number of support vectors at which values are computed to estimate their spread.
_SOME_VECTORS: Final = 64
# A function counts as constant if its relative spread is below this value.
_CONSTANT: Final = 1e-6


class Definition(Protocol):
    """Definition of one model; `mapped` contains rows after the input map, of shape (n_rows, n_features)."""

    @property
    def scale(self) -> float:
        """Largest A1 of all decision functions, or a substitute for it."""

    @property
    def spread(self) -> float:
        """Approximate range of the values at some support vectors, or a substitute for it."""

    def values(self, mapped: FloatArray) -> FloatArray:
        """Compute decision values, of shape (n_rows, n_decisions)."""

    def rounding(self, mapped: FloatArray, values: FloatArray) -> FloatArray:
        """Bound the float64 rounding error of `values`, in an array that broadcasts to the shape of `values`."""

    def moved(self, mapped: FloatArray, errors: FloatArray) -> FloatArray:
        """Bound the change in values if each row moves by at most its distance in `errors`, of shape (n_rows, 1)."""


def definition_of(model: SingleModel) -> Definition:
    """Return a model's definition; for a feature model, this is the model itself."""
    definition: Definition = model if isinstance(model, FeatureModel) else _BY_KERNEL[model.kernel](model)
    return definition


@dataclass(frozen=True, eq=False)
class _OfKernels:
    model: KernelModel

    @cached_property
    def scale(self) -> float:
        return float(self.model.absolute_sums().max())  # infinite coefficients are rejected earlier

    @property
    def spread(self) -> float:
        vectors: Any = self.model.support_vectors[:: max(1, self.model.n_sv // _SOME_VECTORS)]
        some = vectors if isinstance(vectors, np.ndarray) else vectors.toarray()
        values = self.values(some)
        largest = max(np.abs(values).max(initial=0.0), np.abs(self.model.intercept).max())
        return float(max(np.ptp(values) if len(some) else 0.0, _CONSTANT * largest))

    def values(self, mapped: FloatArray, decisions: Sequence[int] | None = None) -> FloatArray:
        chosen = list(range(self.model.n_decisions) if decisions is None else decisions)
        coefficients = np.column_stack([self.model.coefficients(k) for k in chosen])
        return self.sums(mapped, coefficients) + self.model.intercept[chosen]

    def sums(self, mapped: FloatArray, coefficients: FloatArray) -> FloatArray:
        """Multiply kernel values by coefficients of shape (n_sv, n); return sums of shape (n_rows, n)."""
        model, step = self.model, _block_vectors(self.model)
        sums = np.zeros((len(mapped), coefficients.shape[1]))
        for start in range(0, len(mapped), _BLOCK_ROWS):
            rows = mapped[start : start + _BLOCK_ROWS]
            for first in range(0, model.n_sv, step):
                last = min(first + step, model.n_sv)
                with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                    kernels = self.kernels(rows, self.vectors(first, last))
                    sums[start : start + len(rows)] += kernels @ coefficients[first:last]
        return sums

    def vectors(self, first: int, last: int) -> Any:
        """Return support vectors first, ..., last - 1 in the format that `kernels` accepts."""
        return self.model.dense_support_vectors(first, last)

    def kernels(self, rows: FloatArray, vectors: Any) -> FloatArray:
        """Compute the kernel value of each pair of a row and a vector."""
        raise NotImplementedError

    @cached_property
    def vector_norms(self) -> FloatArray:
        """Upper bounds on the norms of the support vectors, of shape (n_sv,)."""
        return norms_above(self.model.support_vectors)


class GaussianDefinition(_OfKernels):
    """Definition of a model with a Gaussian kernel; distances are sums of squared differences, so no digits cancel."""

    def kernels(self, rows: FloatArray, vectors: Any) -> FloatArray:
        """Compute kernel values from coordinate differences."""
        from scipy.spatial.distance import cdist

        return np.asarray(np.exp(-self.model.gamma * cdist(rows, vectors, "sqeuclidean")))

    @property
    def of_sum(self) -> float:
        """Bound on the rounding error of the sum without the intercept.

        The argument h of exp has an error of at most (n_features + 3) u h, and h exp(-h) is at most 1/e. The bound
        includes the roundings of exp, of the products and of n_sv additions. The result is twice the bound in
        cpp/include/approxsvm/predict/stages/definition.hpp.
        """
        return (self.model.n_sv + self.model.n_features + 20) * 2.0 * UNIT64 * self.scale

    def rounding(self, mapped: FloatArray, values: FloatArray) -> FloatArray:
        """Return `of_sum` plus the rounding error of adding the intercept."""
        return np.asarray(self.of_sum + 8.0 * UNIT64 * np.abs(values))

    def moved(self, mapped: FloatArray, errors: FloatArray) -> FloatArray:
        """Bound the change by the kernel's steepest slope; kernel values are between 0 and 1."""
        return np.asarray(self.scale * np.minimum(gaussian_slope(self.model.gamma) * errors, 1.0))

    def by_norms(self, row: FloatArray, decision: int, longest: Sequence[float]) -> tuple[float, float]:
        """Return a decision value, and an error bound for distances computed from norms: ||x||^2 - 2 x.z + ||z||^2.

        Digits cancel in this difference of norms. For rows within distance R of the norms' reference point, the error
        of the argument of exp is at most 4 (n_features + 8) u gamma R^2 (cpp/include/approxsvm/bounds/kernel_sums.hpp,
        EngineBound), and the error of a kernel value is at most 1. The bound here is many times larger than these
        errors. `longest` contains, for each possible reference point, the distance to the farthest support vector.
        """
        model, coef = self.model, self.model.coefficients(decision)
        intercept, furthest_sq = float(model.intercept[decision]), 0.0
        value = intercept
        for first, sq_distance in _sq_distances(model, row):
            value += float(coef[first : first + len(sq_distance)] @ np.exp(-model.gamma * sq_distance))
            furthest_sq = max(furthest_sq, float(sq_distance.max(initial=0.0)))
        reach = model.gamma * sum(longest, np.sqrt(furthest_sq)) ** 2
        relative = (model.n_sv + 4 * model.n_features + 64) * (1.0 + min(16.0 * reach, 1e15)) * 2.0 * UNIT64
        return value, min(relative, 1.0) * float(np.abs(coef).sum()) + 32.0 * UNIT64 * abs(intercept)


class ProductDefinition(_OfKernels):
    """Definition of a model with a polynomial or sigmoid kernel, a function of inner products."""

    def kernels(self, rows: FloatArray, vectors: Any) -> FloatArray:
        """Compute kernel values from inner products."""
        arguments = self.model.gamma * (rows @ vectors.T) + self.model.coef0
        return np.asarray(np.tanh(arguments) if self.model.is_sigmoid else arguments**self.model.degree)

    def vectors(self, first: int, last: int) -> Any:
        """Return support vectors first, ..., last - 1; sparse vectors stay sparse."""
        return self.model.support_vectors[first:last]

    def _term_sums(self, decisions: Sequence[int]) -> TermSums:
        # This bound exceeds the underflow error, including a final multiplication by gamma.
        underflow = 2.0**-1000 * (1.0 + abs(self.model.gamma))
        with np.errstate(over="ignore"):
            alphas = abs(self.model.gamma) * self.vector_norms + underflow
        moduli = np.abs([self.model.coefficients(k) for k in decisions])
        return term_sums(self.model.degree, alphas, abs(self.model.coef0) + underflow, moduli)

    def rounding(self, mapped: FloatArray, values: FloatArray, decisions: Sequence[int] | None = None) -> FloatArray:
        """Return four times the bound in cpp/include/approxsvm/exact/polynomial_kernel.hpp; infinite near overflow.

        `decisions` are the decision functions in the columns of `values`, by default all of them.
        """
        model, power = self.model, self.model.degree
        chosen = list(range(model.n_decisions) if decisions is None else decisions)
        of_arguments, of_terms = model.n_features + 8.0, model.n_sv + (16.0 if power else 32.0)
        of_intercept = power * of_arguments + of_terms if power else 1.0
        sums = self._term_sums(chosen)
        moduli = sums.moduli_at(norms_above(mapped))
        of_sums = sums.errors(of_arguments, of_terms, moduli) + of_intercept * np.abs(model.intercept[chosen])
        of_underflow = 2.0**-1000 + 2.0**-1040 * sums.sums  # underflow of the values, and of the kernel values
        return np.where(moduli < MAX_OUTPUT_SCALE, 4.0 * UNIT64 * of_sums + of_underflow, np.inf)

    def moved(self, mapped: FloatArray, errors: FloatArray) -> FloatArray:
        """Bound the change to first order, by M's slope at the row's norm; errors are tiny relative to this norm."""
        sums = self._term_sums(range(self.model.n_decisions))
        moved = errors * sums.moduli_at(norms_above(mapped), 1) * (1.0 + 1e-6)
        return np.asarray(moved if self.model.degree else np.minimum(moved, 2.0 * sums.sums))


def _block_vectors(model: KernelModel) -> int:
    return max(1, min(_BLOCK_VECTORS, _BLOCK_NUMBERS // model.n_features))


def _sq_distances(model: KernelModel, row: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """Yield squared distances from a row to blocks of support vectors, with the index of each block's first vector."""
    vectors: Any = model.support_vectors
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(vectors, np.ndarray):
            step = _block_vectors(model)
            for first in range(0, model.n_sv, step):
                yield first, np.square(vectors[first : first + step] - row).sum(axis=1)
        elif model.n_sv:  # fewer digits cancel in this difference than in the engine's
            distances = sparse_sq_distances(vectors, row)
            yield 0, np.where(np.isnan(distances), np.inf, distances)


_BY_KERNEL: Final[dict[str, Any]] = {
    "gaussian": GaussianDefinition,
    "polynomial": ProductDefinition,
    "sigmoid": ProductDefinition,
}
