"""Cost of a row in each stage, computed without timing anything.

The unit of cost is a multiply-add in a float32 microkernel at full speed. The constants that depend on the vector width
are in `Constants`, measured for each target by ``python -m benchmarks.costs``. The target selects them; nothing is
timed when a model is compiled.

* A row costs n_sv (n_terms + `kernel`) in the exact engine, for exp and the two sums. n_terms is the number of its
  features, or of its non-zeros if those are few. The cost is 1.5 x if the support vectors do not fit a second-level
  cache of 1 MB.
* `row` covers what a stage does once for a row, exp and the bound, and `loaded` is loading a feature of it.
* With many centers, a row costs `routing`, as it is loaded three times from scattered addresses, and n_features for
  every point that it is compared with, 5 sqrt(n_centers) on average.
* If support vectors are stored by columns (cpp/include/approxsvm/exact/sparse_columns.hpp), a shared non-zero costs 64
  instead, and in a frequent feature every support vector costs 4 (measured on a Xeon with AVX-512).
* The rows of a block share the coefficients: with vectors of w lanes, each of m rows costs max(1, 1.6 w / m) for every
  coefficient, and 1.9 w / m more if all coefficients together do not fit the cache. A call is taken to have 4,000 rows,
  divided among the centers.
* If support vectors and rows are on a grid of few values (cpp/include/approxsvm/predict/few_values/sums.hpp), each
  support vector costs the amount that the engine reports, 7 to 25, instead of n_terms + `kernel`. Finding each feature
  of a row on the grid costs `grid`.
* Above degree 2 coefficients come in runs, one for each monomial of the degree below, and a run costs at least `run`.
  With 10 features a form of degree 6 has 8,008 coefficients in 3,003 runs.
* Refining a row costs loading it again. At degree 2 it also costs `direction` and as many coefficients once more, for
  the bound that depends on the row's direction; above, `degrees` and the coefficients above degree 2. All rows of a
  block take a further degree if one of them is still undecided.
* With several classes or functions, each form costs 1,000 more, or 1.6 w / m times as much in smaller blocks. Degrees
  above 2 are evaluated only for the few classes that may win. In the exact engine, pairs of a speculated winner cost
  1.5 x for a support vector, as these are not contiguous, and 40 for each instead of `kernel` (measured on a Xeon with
  AVX-512).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.artifact.packing import reference_row
from approxsvm.ir.constants import FREQUENT_SHARE, MAX_FREQUENT
from approxsvm.ir.kernel_model import FloatArray, KernelModel

# Cost of each extra sum of the exact engine with several classes.
SUM_COST: Final = 5.0
# Pairs of a speculated winner, in float32: cost of exp, factor of the total cost, assumed share of wrong guesses.
_LISTED_COST: Final = 40.0
_LISTED_SHARE: Final = 1.5
_TYPICAL_MISSES: Final = 0.15
# Classes that may win if degree 2 leaves a row undecided: a fixed number plus a share of all classes.
_CONTENDERS: Final = 2.0
_SHARE_OF_CONTENDERS: Final = 0.125
_CACHE_BYTES: Final = 1 << 20
# Support vectors stored by columns: cost of a shared non-zero, and of a support vector in a frequent feature.
_ENTRY_COST: Final = 64.0
_FREQUENT_COST: Final = 4.0
# In vector widths: rows of a block needed to hide the loads of coefficients, most rows of a block, and the extra cost
# of coefficients that do not fit the cache.
_FULL_BLOCK: Final = 1.6
_REGISTERS: Final = 3
_SPILLED_COEFFICIENTS: Final = 1.9
# Slowdown of the exact engine if the support vectors do not fit the cache.
_SPILLED: Final = 1.5
# Additional slowdown of rows processed by their non-zeros: every multiply-add waits for a load (measured on a Xeon).
_SPILLED_NONZEROS: Final = 2.0
# Default number of rows of a call, such as a test set, a page of a table or a queue of requests.
CALL_ROWS: Final = 4_000


@dataclass(frozen=True)
class Constants:
    """Costs of a target other than multiply-adds, in units of a multiply-add."""

    row: float  # fixed cost of a row in a stage
    loaded: float  # loading a feature of a row
    direction: float  # refining a row by the bound that depends on its direction
    degrees: float  # refining a row by the bounds of higher degrees
    grid: float  # finding the value of a feature on a grid of few values
    routing: float  # sending a row to one of many centers
    kernel: float  # a support vector in the exact engine, in addition to its inner product
    run: float  # least cost of a run of coefficients above degree 2
    coefficient: float = 1.0  # least cost of a coefficient of an expansion; a single row waits for each to be loaded
    product: float = 1.0  # multiplying a row by a feature of a support vector or of a subspace's basis
    form: float = 1_000.0  # each of several classes about a center, in addition to its coefficients
    listed: float = 1.0  # a coefficient in the lists of a class or of a subspace
    width: int = 8  # rows that fill the lanes of a block; 0 for single rows
    on_grid: float = 1.0  # cost of a subspace coordinate of a support vector on a grid, relative to a float
    seconds: float = 14.5e-12  # time of a multiply-add at full speed

    @classmethod
    def here(cls) -> Constants:
        """Return the constants of the target that predicts on this machine, or that APPROXSVM_TARGET names."""
        return _of_target(_OF_TARGETS)

    @classmethod
    def alone(cls) -> Constants:
        """Return the constants for calls of one row."""
        return _of_target(_ALONE)

    @property
    def is_alone(self) -> bool:
        """Whether rows come one by one."""
        return self.width == 0


# Measured on a Zen 5, where a multiply-add at full speed takes 7.2 and 14.5 ps. On 14 models, they are off by a factor
# of 1.08. Grids also halve the cost with AVX2, but not on all CPUs of that target.
_OF_TARGETS: Final = {
    "avx512": Constants(
        1_400.0, 39.0, 5_200.0, 800.0, 200.0, 5_600.0, 27.0, 9.0, width=16, on_grid=0.5, seconds=7.2e-12
    ),
    "avx2": Constants(750.0, 33.0, 2_100.0, 200.0, 130.0, 3_100.0, 28.0, 8.0),
}
# Measured on a Zen 5. Constants of rows, coefficients, products and support vectors are fitted to the results of
# benchmarks.costs and are off by a factor of 1.07 on average. Constants of runs, routing, forms and lists have since
# been scaled by the ratio of the times of newer and older code.
_ALONE: Final = {
    "avx512": Constants(
        14_000.0, 8.0, 14_000.0, 14_000.0, 200.0, 10_000.0, 28.0, 90.0, 9.0, 6.5, 2_300.0, 15.0, 0, 0.5
    ),
    "avx2": Constants(6_400.0, 8.0, 6_400.0, 6_400.0, 130.0, 4_000.0, 45.0, 50.0, 6.0, 2.9, 1_200.0, 8.0, 0, 0.5),
}


def _of_target(constants: Mapping[str, Constants]) -> Constants:
    target = os.environ.get("APPROXSVM_TARGET") or _native.runnable_targets()[0]
    return constants.get(target, constants["avx2"])  # avx2 has the next narrower vectors


@dataclass(frozen=True)
class Size:
    """Number of centers, and number of features in the expansions."""

    n_centers: int
    n_varying: int

    def coefficients(self, degree: int) -> int:
        """Return the number of coefficients of one expansion."""
        return math.comb(self.n_varying + degree, degree)

    def runs(self, degree: int) -> int:
        """Return the number of runs, one for each monomial of the degree below; 0 up to degree 2."""
        return math.comb(self.n_varying + degree - 1, degree - 1) if degree > 2 else 0


@dataclass(frozen=True)
class Products:
    """Cost of the inner products of a row with the support vectors in the exact engine."""

    n_terms: float  # multiplications for a support vector: features, or those that differ from the reference if few
    cost: float  # cost of a row with all support vectors
    slower: float  # slowdown of the whole engine if the support vectors do not fit the cache
    by_columns: bool  # whether support vectors are stored by columns
    constants: Constants

    @classmethod
    def of(cls, model: KernelModel, rows: Any, constants: Constants | None = None) -> Products:
        """Estimate the products of rows like these, an ndarray or csr_array of shape (n_rows, n_features)."""
        constants = constants or Constants.here()
        n_sv, d = model.n_sv, model.n_features
        vectors: Any = model.support_vectors
        reference = reference_row(vectors) if isinstance(vectors, np.ndarray) else None
        of_rows, of_vectors = _differing(rows, reference), _differing(vectors, reference)
        is_compressed = 2 * of_vectors.sum() < n_sv * d
        if is_compressed and _native.are_few(int(of_vectors.sum()), n_sv, d):
            least = max(n_sv / FREQUENT_SHARE, np.sort(of_vectors)[:-MAX_FREQUENT].max(initial=1))
            share = of_rows / max(rows.shape[0], 1)
            each = np.where(of_vectors > least, _FREQUENT_COST * n_sv, _ENTRY_COST * of_vectors)
            return cls(float(share.sum()), float(share @ each), 1.0, True, constants)
        n_differing = float(of_rows.sum()) / max(rows.shape[0], 1)
        n_terms = n_differing if is_compressed and n_differing <= d / 3 else float(d)
        spilled = _SPILLED if 4 * n_sv * d > _CACHE_BYTES else 1.0
        return cls(n_terms, n_sv * n_terms, spilled, False, constants)

    def engine(self, n_sv: int) -> float:
        """Return the cost of a row in the exact engine of one decision function."""
        products = self.constants.product * self.cost
        return self.row + self.slower * (products + n_sv * self.constants.kernel)

    @property
    def row(self) -> float:
        """Fixed cost of a row in the engine."""
        return self.constants.row + self.constants.loaded * self.n_terms


def _differing(rows: Any, reference: FloatArray | None) -> npt.NDArray[np.intp]:
    """Count, for each feature, the rows that differ from the reference, or from zero."""
    if isinstance(rows, np.ndarray):
        return np.asarray(np.count_nonzero(rows if reference is None else rows != reference, axis=0))
    if reference is not None:
        return _differing(rows.toarray(), reference)
    return np.bincount(rows.indices, minlength=rows.shape[1])


@dataclass(frozen=True, eq=False)
class PairCosts:
    """Cost of a row in the exact engine of several classes, by all pairs or by the pairs of a speculated winner."""

    products: Products
    n_features: int
    counts: FloatArray  # (n_classes,): support vectors of each class
    listed: FloatArray  # (n_classes,): support vectors of other classes with a coefficient in their pair with each

    @classmethod
    def of(cls, model: KernelModel, rows: Any, constants: Constants | None = None) -> PairCosts:
        """Estimate the costs of rows like these, an ndarray or csr_array of shape (n_rows, n_features)."""
        n = len(model.labels)
        counts, starts = np.asarray(model.n_support), np.concatenate([[0], np.cumsum(np.asarray(model.n_support))])
        listed = np.zeros(n)
        for c in range(n):
            nonzeros = np.count_nonzero(model.dual_coef[:, starts[c] : starts[c + 1]], axis=1)
            listed[np.arange(n) != c] += nonzeros
        return cls(Products.of(model, rows, constants), model.n_features, counts.astype(np.float64), listed)

    @property
    def stays_sparse(self) -> bool:
        """Whether the engine of all pairs processes only the non-zeros of rows."""
        return self.products.by_columns or self.products.n_terms < self.n_features / 5

    @property
    def all_pairs(self) -> float:
        """Cost of the sums of all pairs in float64."""
        n_sv, constants = float(self.counts.sum()), self.products.constants
        products = constants.product * self.products.cost
        return self.products.slower * (products + n_sv * (constants.kernel + SUM_COST * len(self.counts)))

    def of_winner(self, frequency: FloatArray) -> float:
        """Return the average cost of the pairs of one class, if classes are speculated with these frequencies."""
        constants = self.products.constants
        if constants.is_alone:  # the kernel values of all support vectors first
            values = self.counts.sum() * (constants.product * self.n_features + constants.kernel)
            listed = self.counts * len(self.counts) + self.listed
            return float(self.products.slower * values + constants.listed * (frequency @ listed))
        own = self.counts * (self.n_features + _LISTED_COST + len(self.counts))
        return float(_LISTED_SHARE * (frequency @ (own + self.listed * (self.n_features + _LISTED_COST + 1.0))))

    def speculating(self, n_landmarks: int) -> float:
        """Return the cost of the network that speculates the winner."""
        n = len(self.counts)
        return float(n * self.n_features + _LISTED_SHARE * n_landmarks * (self.n_features + _LISTED_COST + n))

    @property
    def typical(self) -> float:
        """Cost of the cheaper method, all pairs or a speculated winner's; the network has no landmarks."""
        if self.stays_sparse:
            return self.all_pairs
        frequency = np.full(len(self.counts), 1.0 / len(self.counts))
        return min(self.all_pairs, self.speculating(0) + (1.0 + _TYPICAL_MISSES) * self.of_winner(frequency))


@dataclass(frozen=True, eq=False)
class SubspaceCosts:
    """Cost of a row in kernel sums in few coordinates, and in the exact engine after them."""

    n_features: int
    n_listed: FloatArray  # (n_groups,): support vectors of the functions of a class, or of the only one
    n_own: FloatArray  # (n_groups,): support vectors that all functions of the class share
    n_forms: int
    fixed: float  # fixed cost of a row: speculating its class
    behind: FloatArray  # (n_groups,): cost of a remaining row in the exact engine
    exact: float  # cost of a row by the exact engine alone
    misses: float  # share of rows whose class is speculated wrongly
    constants: Constants
    of_coordinate: float = 1.0  # cost of a support vector's coordinate, relative to a float

    @classmethod
    def of(
        cls, model: KernelModel, rows: Any, constants: Constants | None = None, few_work: float = 0.0
    ) -> SubspaceCosts:
        """Estimate the costs of rows like these, an ndarray or csr_array of shape (n_rows, n_features).

        `few_work` is described in `CostModel.of`.
        """
        few = by_few_values(model, few_work, constants)
        if model.n_decisions == 1:
            products = Products.of(model, rows, constants)
            exact = products.engine(model.n_sv)
            if products.n_terms < model.n_features and products.slower > 1.0:
                exact *= _SPILLED_NONZEROS
            exact = min(exact, few)
            n_sv = np.array([float(model.n_sv)])
            return cls(model.n_features, n_sv, n_sv, 1, 0.0, np.array([exact]), exact, 0.0, products.constants)
        pairs = PairCosts.of(model, rows, constants)
        n = len(pairs.counts)
        of_winners = np.array([pairs.of_winner(np.eye(n)[w]) for w in range(n)])
        behind = np.full(n, pairs.all_pairs) if pairs.stays_sparse else of_winners
        constants, listed = pairs.products.constants, pairs.counts + pairs.listed
        fixed, exact = pairs.products.row + pairs.speculating(0), min(pairs.products.row + pairs.typical, few)
        behind = np.minimum(behind, few)
        return cls(model.n_features, listed, pairs.counts, n - 1, fixed, behind, exact, _TYPICAL_MISSES, constants)

    def of_op(self, n_coordinates: int) -> FloatArray:
        """Return the cost of a row in one stage, for each group: loading, projection and sums."""
        constants = self.constants
        projected = self.n_features * (constants.product * n_coordinates + constants.loaded)
        products = self.of_coordinate * n_coordinates
        if constants.is_alone:
            values = self.n_listed * (constants.product * products + constants.kernel)
            sums = values + constants.listed * (self.n_own * self.n_forms + self.n_listed)
        else:
            sums = self.n_listed * (products + _LISTED_COST) + self.n_own * self.n_forms + self.n_listed
        found: FloatArray = constants.row + projected + sums
        return found

    def of_expansion(self, n_coordinates: int, degree: int) -> FloatArray:
        """Return the cost of a row in an expansion of the only function, which replaces its sums."""
        constants, size = self.constants, Size(1, n_coordinates)
        projected = self.n_features * (constants.product * n_coordinates + constants.loaded)
        form = constants.coefficient * size.coefficients(degree)
        if constants.is_alone:
            form = max(form, constants.run * size.runs(degree))
        return np.array([constants.row + projected + form])

    def at_best(self, n_coordinates: int) -> float:
        """Return the average cost of a row if a stage settled every row."""
        sums = float(self.of_op(n_coordinates).mean())
        return self.fixed + (sums if self.n_forms > 1 else min(sums, float(self.of_expansion(n_coordinates, 2)[0])))


def by_few_values(model: KernelModel, few_work: float, constants: Constants | None = None) -> float:
    """Return the cost of a row on a grid of few values; infinite if `few_work`, the cost of a support vector, is 0."""
    constants = constants or Constants.here()
    return constants.row + constants.grid * model.n_features + model.n_sv * few_work if few_work > 0.0 else math.inf


@dataclass(frozen=True)
class CostModel:
    """Costs of a row of one model."""

    n_features: int
    n_forms: int  # decision functions to expand for a row: with pairs of classes, those of one class
    n_refined: float  # number of functions that take further degrees if degree 2 leaves a row undecided
    exact: float  # cost in the exact engine
    constants: Constants
    call_rows: int = CALL_ROWS  # rows of a call

    @classmethod
    def of(
        cls,
        model: KernelModel,
        rows: Any,
        constants: Constants | None = None,
        call_rows: int = CALL_ROWS,
        few_work: float = 0.0,
    ) -> CostModel:
        """Estimate the costs of rows like these, an ndarray or csr_array of shape (n_rows, n_features).

        `few_work` is Predictor.few_values_work of the exact model.
        """
        constants = constants or Constants.here()
        n_forms, n_refined = model.n_decisions, float(model.n_decisions)
        if model.has_pairs:
            pairs, n_forms = PairCosts.of(model, rows, constants), len(model.labels) - 1
            exact = pairs.products.row + pairs.typical
        else:
            exact = Products.of(model, rows, constants).engine(model.n_sv)
            exact += SUM_COST * model.n_sv * n_forms if n_forms > 1 else 0.0
            if model.task == "classification":
                n_refined = min(_CONTENDERS + _SHARE_OF_CONTENDERS * n_forms, n_refined)
        exact = min(exact, by_few_values(model, few_work, constants))
        return cls(model.n_features, n_forms, n_refined, exact, constants, call_rows)

    def expansion(self, degree: int, size: Size) -> float:
        """Return the cost of a row that the expansion certifies at once."""
        routing = 0.0
        if size.n_centers > 1:
            points = 5.0 * self.n_features * math.sqrt(size.n_centers)
            routing = self.constants.routing + self.constants.coefficient * points
        n_forms = self.n_forms
        fewer = 1.0 if self.constants.is_alone else self._fewer(self._rows_together(size, 1.0))
        pairs = n_forms * self.constants.form * fewer if n_forms > 1 else 0.0
        at_once = min(degree, 2)
        loaded = self.constants.loaded * self.n_features
        return self.constants.row + loaded + routing + pairs + n_forms * self._forms(at_once, size, 1.0, degree)

    def refining(
        self, degree: int, size: Size, share: Mapping[str, float], lower: tuple[int, float] | None = None
    ) -> float:
        """Return the average cost of refining a row that its expansion does not settle at once.

        `share` is the share of the rows that each stage answers; `lower` is a lower degree above 2 and the share of
        rows that it settles.
        """
        if self.n_forms > 1:
            if degree <= 2:  # an exact engine is next
                return 0.0
            refined = max(1.0 - share["expansion"], 1e-9)
            return self.n_refined * self._forms(degree, size, 1.0, degree) * self._share_of_blocks(refined) / refined
        refined, constants = 1.0 - share["expansion"], self.constants
        loaded = constants.loaded * self.n_features
        if degree <= 2:
            return constants.direction + loaded + self._forms(2, size, refined, degree)
        begun = self._forms(2, size, refined, degree)
        further = self._forms(degree, size, refined, degree) - begun
        if lower is not None:
            lower_degree, certified = lower
            first = self._forms(lower_degree, size, refined, degree) - begun
            rest = max(self._forms(degree, size, refined, degree) - begun - first, 0.0)
            further = first + rest * self._share_of_blocks((1.0 - certified) / max(refined, 1e-9))
        return constants.degrees + loaded + max(further, 0.0)

    def _share_of_blocks(self, share: float) -> float:
        """Return the share of blocks with at least one of these rows: a degree is added for all rows of a block."""
        return 1.0 - (1.0 - min(share, 1.0)) ** max(_REGISTERS * self.constants.width, 1)

    def _forms(self, forms_degree: int, size: Size, share: float, degree: int) -> float:
        """Return the cost per row of all coefficients up to a degree, if this share of a call's rows needs them."""
        together = self._rows_together(size, share)
        n_bytes = 4 * size.coefficients(degree) * size.n_centers * self.n_forms
        if self.constants.is_alone:
            work = self.constants.coefficient * size.coefficients(forms_degree)
            return max(work, self.constants.run * size.runs(forms_degree))
        spilled = _SPILLED_COEFFICIENTS * self.constants.width / together if n_bytes > _CACHE_BYTES else 0.0
        work = max(size.coefficients(forms_degree), self.constants.run * size.runs(forms_degree))
        return work * (self._fewer(together) + spilled)

    def _fewer(self, together: float) -> float:
        """Return the factor by which a row costs more in a block of few rows."""
        return max(1.0, _FULL_BLOCK * self.constants.width / together)

    def _rows_together(self, size: Size, share: float) -> float:
        """Return the number of rows of a center evaluated together if this share of a call's rows is evaluated."""
        return min(max(share * self.call_rows / size.n_centers, 1.0), 48.0)


def rows_in_engine(share: Mapping[str, float]) -> float:
    """Return the average cost of a row in float32 rows of the exact engine, given the share that each stage answers."""
    return share["float32"] + 2.0 * (share["float64"] + share["definition"])
