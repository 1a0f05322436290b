"""Linear models on Taylor features: a Gaussian times a polynomial, which is an expansion without truncation error."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, Final

import numpy as np

from approxsvm.errors import ModelFormatError
from approxsvm.ir.constants import UNIT64, gaussian_slope
from approxsvm.ir.feature_model import FeatureModel
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.schema import LAST_NORM_DEGREE

MAX_TAYLOR_DEGREE: Final = 6


@dataclass(frozen=True, eq=False)
class TaylorModel(FeatureModel):
    """f(z) = intercept + exp(-gamma ||z||^2) sum_alpha weights_alpha sqrt((2 gamma)^|alpha| / alpha!) z^alpha."""

    # weights[k] contains the weights of the monomials of degree k, from 0 to at most 6, in the order of
    # itertools.combinations_with_replacement; the number of degree-1 weights is the number of columns.
    weights: tuple[FloatArray, ...]
    intercept: FloatArray  # shape (1,)
    gamma: float  # positive
    kind = "taylor"
    kernel = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.degree <= MAX_TAYLOR_DEGREE:
            raise ModelFormatError(f"degree is {self.degree}, but must be 1 to {MAX_TAYLOR_DEGREE}")
        for k, part in enumerate(self.weights):
            expected = math.comb(self.n_features + k - 1, k)
            if part.shape != (expected,):
                raise ModelFormatError(f"weights of degree {k} have shape {part.shape}, expected {(expected,)}")
        if not 0.0 < self.gamma < math.inf:
            raise ModelFormatError(f"gamma is {self.gamma}, but must be a positive number")
        if not all(np.isfinite(numbers).all() for numbers in (*self.weights, self.intercept, self.value_error)):
            raise ModelFormatError("weights, intercept or value_error hold NaN or infinity")

    @property
    def degree(self) -> int:
        """Highest degree of the monomials."""
        return len(self.weights) - 1

    def values(self, mapped: FloatArray) -> FloatArray:
        """Compute decision values monomial by monomial."""
        with np.errstate(over="ignore", under="ignore"):
            gaussian = np.exp(-self.gamma * (mapped**2).sum(axis=1))
            columns = np.where(gaussian > 0.0, mapped.T, 0.0) * math.sqrt(2.0 * self.gamma)
        values = np.zeros(len(mapped))
        for k, weights in enumerate(self.weights):
            for weight, factors in zip(weights, combinations_with_replacement(range(self.n_features), k), strict=True):
                factorials = math.prod(math.factorial(factors.count(i)) for i in set(factors))
                values += weight / math.sqrt(factorials) * gaussian * columns[list(factors)].prod(axis=0)
        return (values + self.intercept)[:, np.newaxis]

    def rounding(self, mapped: FloatArray, values: FloatArray) -> FloatArray:
        """Bound the rounding errors of the features and of the sum.

        Here, s = 2 gamma ||z||^2 is rounded n_features times, and s phi_k(s) < 8 (expansion/taylor_features.py).
        """
        roundings = sum(map(len, self.weights)) + 8 * self.n_features + 64
        return np.asarray(roundings * 2.0 * UNIT64 * self.scale + 8.0 * UNIT64 * np.abs(values))

    def moved(self, mapped: FloatArray, errors: FloatArray) -> FloatArray:
        """Bound the change of the values as for a Gaussian kernel (expansion/taylor_features.py)."""
        return np.asarray(self.scale * np.minimum(gaussian_slope(self.gamma) * errors, 1.0))

    @property
    def n_features(self) -> int:
        return len(self.weights[1])

    @property
    def work(self) -> tuple[int, int]:
        """Numbers of multiply-adds and of calls to functions like exp per row; each feature costs about one call."""
        return 0, sum(map(len, self.weights))

    def times(self, factor: float, rounding: float) -> tuple[dict[str, Any], float]:
        """Return the scaled fields (no intercepts), and the sum of absolute values by which to multiply `rounding`."""
        weights = tuple(part * factor for part in self.weights)
        return {"weights": weights}, sum(float(np.abs(part).sum()) for part in weights)

    @cached_property
    def norms(self) -> FloatArray:
        """Norms N_k of the degree-k weights, for k from 0 to 8, rounded up."""
        norms = np.zeros(LAST_NORM_DEGREE + 1)
        with np.errstate(over="ignore", under="ignore"):
            norms[: self.degree + 1] = [_norm_above(weights) for weights in self.weights]
        return norms

    @property
    def total(self) -> float:
        """W, the norm of all weights, rounded up; may be infinite."""
        with np.errstate(over="ignore", under="ignore"):
            return _norm_above(self.norms)

    @property
    def scale(self) -> float:
        """sqrt(e) W, rounded up, which replaces the A1 of a kernel sum (expansion/taylor_features.py)."""
        return self.total * 1.6488

    def negated(self) -> "TaylorModel":
        """Return the two-class model with swapped labels and negated values."""
        weights = tuple(-part for part in self.weights)
        return replace(self, weights=weights, intercept=-self.intercept, labels=self.labels[::-1])


def _norm_above(numbers: FloatArray) -> float:
    """Return the Euclidean norm, rounded up; the elements are scaled to prevent overflow."""
    unit = 2.0 ** min(int(np.frexp(np.abs(numbers).max())[1]), 1023)
    return float(np.linalg.norm(numbers / unit)) * unit * (1.0 + (len(numbers) + 8) * UNIT64) + 2.0**-1000
