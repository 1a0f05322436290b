"""What a row costs in each stage: arithmetic alone.

The unit of cost is a multiply-add in a float32 microkernel at its full speed (a 16th of an AVX-512 instruction, half a
cycle). The constants were read off the tables of ``python -m benchmarks`` on a Zen 5 machine with AVX-512:

* a row of the exact engine costs n_sv (n_terms + 30): 30 for exp and the two sums, n_terms its features, or its
  non-zeros where those are few; half as much again where the support vectors do not fit a second-level cache of 1 MB;
* 3,000 for everything that is done once for a row of an expansion: loading it, exp, the bound;
* the way to one of many centers costs 12,000, for its rows are loaded three times and lie apart, and n_features for
  every point that is looked at, 5 sqrt(n_centers) of them on average;
* coefficients are shared by the rows of a block: with m rows together each costs 25 / m of a multiply-add for every
  coefficient where that is more than 1, and 30 / m in addition where all of them together do not fit the cache. Of
  calls with 10,000 rows, each center gets its share;
* a row that is refined costs 3,000 and its coefficients, once more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from approxsvm.model.kernel_model import KernelModel

_ROW_COST: Final = 3_000.0
_ROUTING_COST: Final = 12_000.0
_KERNEL_COST: Final = 30.0
# Of several classes: another sum of the exact engine, another form about a center.
_SUM_COST: Final = 5.0
_PAIR_COST: Final = 500.0
_CACHE_BYTES: Final = 1 << 20
_CALL_ROWS: Final = 10_000


@dataclass(frozen=True)
class Size:
    """How many centers, and how many features their expansions are in."""

    n_centers: int
    n_varying: int

    def coefficients(self, degree: int) -> int:
        """Of one expansion."""
        return math.comb(self.n_varying + degree, degree)


@dataclass(frozen=True)
class CostModel:
    """Costs of a row of one model.

    Attributes
    ----------
    n_features, n_classes, n_decisions : int
        Of the model; no classes where it is not a classifier.
    exact : float
        In the exact engine.
    """

    n_features: int
    n_classes: int
    n_decisions: int
    exact: float

    @classmethod
    def of(cls, model: KernelModel, rows: Any) -> CostModel:
        """For rows like these, an ndarray or csr_array of shape (n_rows, n_features)."""
        d = model.n_features
        n_nonzero = (rows.nnz if hasattr(rows, "nnz") else np.count_nonzero(rows)) / max(rows.shape[0], 1)
        sparse = not isinstance(model.support_vectors, np.ndarray) or np.count_nonzero(model.support_vectors) < (
            model.support_vectors.size // 2
        )
        n_terms = n_nonzero if sparse and n_nonzero <= d / 3 else float(d)
        spilled = 1.5 if 4 * model.n_sv * d > _CACHE_BYTES else 1.0
        sums = _SUM_COST * len(model.labels) if model.n_decisions > 1 else 0.0
        exact = _ROW_COST + spilled * model.n_sv * (n_terms + _KERNEL_COST + sums)
        return cls(d, len(model.labels), model.n_decisions, float(exact))

    def expansion(self, degree: int, size: Size) -> float:
        """Of a row that the expansion certifies at once."""
        routing = _ROUTING_COST + 5.0 * self.n_features * math.sqrt(size.n_centers) if size.n_centers > 1 else 0.0
        n_forms = self.n_classes - 1 if self.n_decisions > 1 else 1
        pairs = n_forms * _PAIR_COST if n_forms > 1 else 0.0
        return _ROW_COST + routing + pairs + n_forms * self._forms(min(degree, 2), size, 1.0, degree)

    def cascade(
        self, degree: int, size: Size, share: Mapping[str, float], lower: tuple[int, float] | None = None
    ) -> float:
        """Of a row on average.

        Parameters
        ----------
        degree : int
            Of the expansion.
        size : Size
        share : mapping
            How many of the rows each stage answers.
        lower : tuple of int and float, optional
            A lower degree above 2, and the share of rows that need no further one.
        """
        refined = 1.0 - share["expansion"]
        further = _ROW_COST + self._forms(max(degree, 2), size, refined, degree)
        if lower is not None:
            lower_degree, certified = lower
            first = self._forms(lower_degree, size, refined, degree)
            rest = self._forms(degree, size, 1.0 - certified, degree) - first
            further = _ROW_COST + first + max(rest, 0.0) * min((1.0 - certified) / max(refined, 1e-9), 1.0)
        if self.n_decisions > 1:  # the pairs of one class more
            further = self.n_classes * (further + _PAIR_COST)
        engine = share["float32"] + 2.0 * (share["float64"] + share["definition"])
        return self.expansion(degree, size) + refined * further + engine * self.exact

    def _forms(self, forms_degree: int, size: Size, share: float, degree: int) -> float:
        """Of all coefficients up to a degree, for each of the share of a call's rows that needs them."""
        n_coefficients = size.coefficients(forms_degree)
        together = min(max(share * _CALL_ROWS / size.n_centers, 1.0), 48.0)
        n_bytes = 4 * size.coefficients(degree) * size.n_centers * self.n_decisions
        spilled = 30.0 / together if n_bytes > _CACHE_BYTES else 0.0
        return n_coefficients * (max(1.0, 25.0 / together) + spilled)
