"""Linear models on random Fourier features: sums of cosines."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError
from approxsvm.ir.compensated import norms_above
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.feature_model import FeatureModel
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.schema import MAX_PHASE


@dataclass(frozen=True, eq=False)
class CosineModel(FeatureModel):
    """f_k(z) = intercept_k + sum_j coef_kj cos(frequencies_j . z + phases_j), for classification or regression."""

    frequencies: FloatArray  # shape (n_terms, n_features)
    phases: FloatArray  # shape (n_terms,); absolute values of at most 8, which allows 0 to 2 pi
    coef: FloatArray  # shape (n_decisions, n_terms), or (n_terms,) for one function
    intercept: FloatArray  # shape (n_decisions,)
    kind = kernel = "cosine"
    # Kernel parameters, which this model does not use.
    gamma = 0.0
    degree = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.frequencies.ndim != 2 or 0 in self.frequencies.shape:
            raise ModelFormatError(f"frequencies have shape {self.frequencies.shape}, expected rows of numbers")
        if self.coef.ndim == 1:
            object.__setattr__(self, "coef", self.coef[np.newaxis])
        n_terms = len(self.frequencies)
        for name, expected in (
            ("phases", (n_terms,)),
            ("coef", (self.n_decisions, n_terms)),
            ("intercept", (self.n_decisions,)),
        ):
            if getattr(self, name).shape != expected:
                raise ModelFormatError(f"{name} has shape {getattr(self, name).shape}, expected {expected}")
        numbers = (self.frequencies, self.phases, self.coef, self.intercept, self.value_error)
        if not all(np.isfinite(array).all() for array in numbers):
            raise ModelFormatError("frequencies, phases, coef, intercept or value_error hold NaN or infinity")
        largest = float(np.abs(self.phases).max())
        if largest > MAX_PHASE:
            raise ModelFormatError(f"the largest absolute phase is {largest}, but at most {MAX_PHASE} is allowed")

    def values(self, mapped: FloatArray) -> FloatArray:
        """Compute decision values row by row."""
        values = [self.coef @ np.cos(self.frequencies @ z + self.phases) + self.intercept for z in mapped]
        return np.array(values).reshape(len(mapped), self.n_decisions)

    def rounding(self, mapped: FloatArray, values: FloatArray) -> FloatArray:
        """Return twice the bound of backends/onnx/exact_graph.py: (n_features + 8) u S ||z|| + (n_terms + 40) u A1.

        The phase is added to the argument last, so it is rounded only once. The resulting error, at most 8 u A1, is
        included in 40 u A1.
        """
        angle_error = (self.n_features + 8) * norms_above(mapped)[:, np.newaxis] * self.slope
        sum_error = (self.n_terms + 40) * self.scale + np.abs(values)
        return np.asarray(2.0 * UNIT64 * (angle_error + sum_error) + 2.0**-1000)

    def moved(self, mapped: FloatArray, errors: FloatArray) -> FloatArray:
        """Bound the change of the values by means of the cosines' slopes."""
        return np.minimum(self.slope * errors, 2.0 * self.scale)

    @property
    def n_terms(self) -> int:
        """Number of cosines."""
        return len(self.frequencies)

    @property
    def n_features(self) -> int:
        return int(self.frequencies.shape[1])

    @property
    def all_moduli(self) -> FloatArray:
        """A1 of each function: the sum of its coefficients' absolute values, rounded up; may be infinite."""
        with np.errstate(over="ignore"):
            return np.asarray(np.abs(self.coef).sum(axis=1) * self._up)

    @property
    def all_slopes(self) -> FloatArray:
        """S of each function: the sum over j of |coef_kj| times the norm of frequencies_j, rounded up; may be infinite.

        If a row moves by e, the function's value changes by at most e S.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = np.abs(self.coef) @ norms_above(self.frequencies) * self._up + 2.0**-1000
        return np.where(np.isnan(slopes), math.inf, slopes)

    @property
    def scale(self) -> float:
        """Largest A1 among the functions."""
        return float(self.all_moduli.max())

    @property
    def slope(self) -> float:
        """Largest S among the functions."""
        return float(self.all_slopes.max())

    @property
    def _up(self) -> float:
        """Factor that turns a rounded sum of n_terms terms, in any order, into an upper bound on the exact sum."""
        return 1.0 + (self.n_terms + 8) * 2.0 * UNIT64

    @property
    def work(self) -> tuple[int, int]:
        """Numbers of multiply-adds and of calls to functions like exp needed to evaluate the definition for one row."""
        return self.n_terms * self.n_features, self.n_terms

    def times(self, factor: float, rounding: float) -> tuple[dict[str, Any], float]:
        """Return the scaled fields (no intercepts), and the sum of absolute values by which to multiply `rounding`."""
        coef = self.coef * factor
        return {"coef": coef}, float(np.abs(coef).sum(axis=1).max())

    def negated(self) -> "CosineModel":
        """Return the two-class model with swapped labels and negated values."""
        return replace(self, coef=-self.coef, intercept=-self.intercept, labels=self.labels[::-1])
