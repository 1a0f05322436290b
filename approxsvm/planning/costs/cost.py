"""Cost of a row in each stage, computed without any timing.

The unit of cost is the time of a multiply-add in a float32 microkernel at full speed. Machine-dependent constants are
in profiles.py, measured by ``python -m benchmarks.costs``; nothing is timed when a model is compiled.

* In the exact engine, a row costs n_sv (n_terms + `kernel`), where `kernel` is the cost of exp and the two sums.
  n_terms is the number of features, or of the row's nonzeros if there are few. The cost is 1.5 times as high if the
  support vectors do not fit into an L2 cache of 1 MB.
* `row` is the fixed cost of a row in a stage, including exp and the bound, and `loaded` is the cost of loading one of
  the row's features.
* With many centers, a row also costs `routing`, because it is loaded three times from scattered addresses, and
  n_features for every point with which it is compared; there are 5 sqrt(n_centers) such points on average.
* If support vectors are stored by column (cpp/include/approxsvm/exact/sparse_columns.hpp), each shared nonzero costs
  64 instead, and each support vector costs 4 per frequent feature (measured on a Xeon with AVX-512).
* The rows of a block share the loading of coefficients. With vectors of w lanes, each of m rows costs max(1, 1.6 w / m)
  per coefficient, plus 1.9 w / m if all coefficients together do not fit into the cache. A call is assumed to have
  4,000 rows, divided among the centers.
* If support vectors and rows are on a grid of few values (cpp/include/approxsvm/predict/few_values/sums.hpp), each
  support vector costs the amount reported by the engine, 7 to 25, instead of n_terms + `kernel`. Finding the grid value
  of each feature of a row costs `grid`.
* Above degree 2, coefficients are stored in runs, one per monomial of a lower degree than the polynomial's, and each
  run costs at least `run`. With 10 features, a polynomial of degree 6 has 8,008 coefficients in 3,003 runs.
* Refining a row requires loading it again. At degree 2, refining also costs `direction` and the cost of all
  coefficients once more, for the bound that depends on the row's direction. Above degree 2, refining costs `degrees`
  and the coefficients above degree 2. A higher degree is evaluated for all rows of a block if any of them is undecided.
* With several classes or functions, each polynomial costs an additional 1,000, or 1.6 w / m times as much in smaller
  blocks. Degrees above 2 are evaluated only for the few classes that may win. In the exact engine, the support vectors
  in the pairs of a speculated winner cost 1.5 times as much, because they are not contiguous, and 40 each instead of
  `kernel` (measured on a Xeon with AVX-512).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.artifact.packing import reference_row
from approxsvm.ir.constants import FREQUENT_SHARE, MAX_FREQUENT
from approxsvm.ir.kernel_model import FloatArray, KernelModel
from approxsvm.planning.costs.profiles import Constants

# Cost per support vector of each additional sum in the exact engine, with several classes or functions.
SUM_COST: Final = 5.0
# Pairs of a speculated winner, in float32: cost of exp, factor on the total cost, and assumed fraction of wrong
# winners.
_LISTED_COST: Final = 40.0
_LISTED_SHARE: Final = 1.5
_TYPICAL_MISSES: Final = 0.15
# Number of classes that may win if degree 2 leaves a row undecided: a fixed number plus a fraction of all classes.
_CONTENDERS: Final = 2.0
_SHARE_OF_CONTENDERS: Final = 0.125
_CACHE_BYTES: Final = 1 << 20
# If support vectors are stored by column: cost of a shared nonzero, and of each support vector per frequent feature.
_ENTRY_COST: Final = 64.0
_FREQUENT_COST: Final = 4.0
# In units of the vector width: the number of rows in a block that hides coefficient loads, the maximum number of rows
# in a block, and the extra cost of coefficients that do not fit into the cache.
_FULL_BLOCK: Final = 1.6
_REGISTERS: Final = 3
_SPILLED_COEFFICIENTS: Final = 1.9
# Slowdown of the exact engine if the support vectors do not fit into the cache.
_SPILLED: Final = 1.5
# Additional slowdown for sparse rows, because every multiply-add waits for a load (measured on a Xeon).
_SPILLED_NONZEROS: Final = 2.0
# Default number of rows per call, for example a test set, a page of a table or a queue of requests.
CALL_ROWS: Final = 4_000


@dataclass(frozen=True)
class Size:
    """Number of centers and number of features in the expansions."""

    n_centers: int
    n_varying: int

    def coefficients(self, degree: int) -> int:
        """Return the number of coefficients of one expansion."""
        return math.comb(self.n_varying + degree, degree)

    def runs(self, degree: int) -> int:
        """Return the number of runs: one per monomial of a degree below `degree`, or 0 if `degree` is at most 2."""
        return math.comb(self.n_varying + degree - 1, degree - 1) if degree > 2 else 0


@dataclass(frozen=True, eq=False)
class Products:
    """Counts for a model and its rows that determine the cost of the exact engine."""

    n_sv: int
    n_terms: float  # multiplications per support vector: all features, or those that differ from the reference
    cost: float  # number of multiplications per row, with all support vectors
    slower: float  # slowdown of the whole engine if the support vectors do not fit into the cache
    by_columns: bool  # True if support vectors are stored by column
    # For each of several classes: the number of its support vectors, and the number of other support vectors in its
    # pairs.
    counts: FloatArray
    listed: FloatArray

    @classmethod
    def of(cls, model: KernelModel, rows: Any) -> Products:
        """Count for typical rows, an ndarray or csr_array of shape (n_rows, n_features)."""
        n_sv, d, lists = model.n_sv, model.n_features, _lists(model)
        vectors: Any = model.support_vectors
        reference = reference_row(vectors) if isinstance(vectors, np.ndarray) else None
        of_rows, of_vectors = _differing(rows, reference), _differing(vectors, reference)
        is_compressed = 2 * of_vectors.sum() < n_sv * d
        if is_compressed and _native.are_few(int(of_vectors.sum()), n_sv, d):
            least = max(n_sv / FREQUENT_SHARE, np.sort(of_vectors)[:-MAX_FREQUENT].max(initial=1))
            share = of_rows / max(rows.shape[0], 1)
            each = np.where(of_vectors > least, _FREQUENT_COST * n_sv, _ENTRY_COST * of_vectors)
            return cls(n_sv, float(share.sum()), float(share @ each), 1.0, True, *lists)
        n_differing = float(of_rows.sum()) / max(rows.shape[0], 1)
        n_terms = n_differing if is_compressed and n_differing <= d / 3 else float(d)
        spilled = _SPILLED if 4 * n_sv * d > _CACHE_BYTES else 1.0
        return cls(n_sv, n_terms, n_sv * n_terms, spilled, False, *lists)

    def engine(self, constants: Constants, n_functions: int) -> float:
        """Return the cost of a row in the exact engine for `n_functions` decision functions with shared kernels."""
        sums = SUM_COST * self.n_sv * n_functions if n_functions > 1 else 0.0
        return self.row(constants) + self.slower * self._kernels(constants) + sums

    def _kernels(self, constants: Constants) -> float:
        return constants.product * self.cost + self.n_sv * constants.kernel

    def row(self, constants: Constants) -> float:
        """Return the fixed cost of a row in the exact engine."""
        return constants.row + constants.loaded * self.n_terms


def _lists(model: KernelModel) -> tuple[FloatArray, FloatArray]:
    counts = np.asarray(model.n_support, np.float64)
    starts, n = np.concatenate([[0], np.cumsum(np.asarray(model.n_support, np.intp))]), len(counts)
    listed = np.zeros(n)
    for c in range(n) if model.has_pairs else ():
        nonzeros = np.count_nonzero(model.dual_coef[:, starts[c] : starts[c + 1]], axis=1)
        listed[np.arange(n) != c] += nonzeros
    return counts, listed


def _differing(rows: Any, reference: FloatArray | None) -> npt.NDArray[np.intp]:
    """Count, for each feature, the rows that differ from the reference, or from 0 if there is no reference."""
    if isinstance(rows, np.ndarray):
        return np.asarray(np.count_nonzero(rows if reference is None else rows != reference, axis=0))
    if reference is not None:
        return _differing(rows.toarray(), reference)
    return np.bincount(rows.indices, minlength=rows.shape[1])


@dataclass(frozen=True, eq=False)
class PairCosts:
    """Cost of a row in the multiclass exact engine, which evaluates all pairs or only the speculated winner's."""

    products: Products
    n_features: int
    constants: Constants

    @property
    def stays_sparse(self) -> bool:
        """True if the engine for all pairs processes only the nonzeros of rows."""
        return self.products.by_columns or self.products.n_terms < self.n_features / 5

    @property
    def all_pairs(self) -> float:
        """Cost of computing the sums for all pairs in float64."""
        products, constants = self.products, self.constants
        sums = products.n_sv * (constants.kernel + SUM_COST * len(products.counts))
        return products.slower * (constants.product * products.cost + sums)

    def of_winner(self, frequency: FloatArray) -> float:
        """Return the average cost of evaluating one class's pairs, if winners are speculated with these frequencies."""
        constants, counts, listed = self.constants, self.products.counts, self.products.listed
        if constants.is_alone:  # the kernel values of all support vectors are computed first
            values = counts.sum() * (constants.product * self.n_features + constants.kernel)
            sums = constants.listed * (frequency @ (counts * len(counts) + listed))
            return float(self.products.slower * values + sums)
        own = counts * (self.n_features + _LISTED_COST + len(counts))
        return float(_LISTED_SHARE * (frequency @ (own + listed * (self.n_features + _LISTED_COST + 1.0))))

    def speculating(self, n_landmarks: int) -> float:
        """Return the cost of the network that speculates on the winner."""
        n = len(self.products.counts)
        return float(n * self.n_features + _LISTED_SHARE * n_landmarks * (self.n_features + _LISTED_COST + n))

    @property
    def typical(self) -> float:
        """Cost of the cheaper method: all pairs, or the pairs of a winner speculated by a network without landmarks."""
        if self.stays_sparse:
            return self.all_pairs
        n = len(self.products.counts)
        frequency = np.full(n, 1.0 / n)
        return min(self.all_pairs, self.speculating(0) + (1.0 + _TYPICAL_MISSES) * self.of_winner(frequency))


@dataclass(frozen=True, eq=False)
class SubspaceCosts:
    """Cost of a row in kernel sums over a few coordinates, and in the exact engine after them."""

    n_features: int
    n_listed: FloatArray  # (n_groups,): number of support vectors in the functions of a class, or in the only function
    n_own: FloatArray  # (n_groups,): number of support vectors shared by all functions of the class
    n_forms: int
    fixed: float  # fixed cost of a row, including speculating on its class
    behind: FloatArray  # (n_groups,): cost of a remaining row in the exact engine
    exact: float  # cost of a row if only the exact engine is used
    misses: float  # fraction of rows whose class is speculated wrongly
    constants: Constants

    @classmethod
    def of(cls, model: KernelModel, products: Products, constants: Constants, few_work: float) -> SubspaceCosts:
        """Estimate the costs of a model; `few_work` is described in `CostModel.of`."""
        few, d = by_few_values(model, few_work, constants), model.n_features
        if model.n_decisions == 1:
            exact = products.engine(constants, 1)
            if products.n_terms < d and products.slower > 1.0:
                exact *= _SPILLED_NONZEROS
            exact = min(exact, few)
            n_sv = np.array([float(model.n_sv)])
            return cls(d, n_sv, n_sv, 1, 0.0, np.array([exact]), exact, 0.0, constants)
        pairs = PairCosts(products, d, constants)
        n, row = len(products.counts), products.row(constants)
        of_winners = np.array([pairs.of_winner(np.eye(n)[w]) for w in range(n)])
        behind = np.minimum(np.full(n, pairs.all_pairs) if pairs.stays_sparse else of_winners, few)
        listed, fixed = products.counts + products.listed, row + pairs.speculating(0)
        exact = min(row + pairs.typical, few)
        return cls(d, listed, products.counts, n - 1, fixed, behind, exact, _TYPICAL_MISSES, constants)

    def of_op(self, n_coordinates: int) -> FloatArray:
        """Return the cost of a row in one stage (loading, projection and sums) for each group."""
        constants = self.constants
        projected = self.n_features * (constants.product * n_coordinates + constants.loaded)
        if constants.is_alone:
            values = self.n_listed * (constants.product * n_coordinates + constants.kernel)
            sums = values + constants.listed * (self.n_own * self.n_forms + self.n_listed)
        else:
            sums = self.n_listed * (n_coordinates + _LISTED_COST) + self.n_own * self.n_forms + self.n_listed
        found: FloatArray = constants.row + projected + sums
        return found

    def of_expansion(self, n_coordinates: int, degree: int) -> FloatArray:
        """Return the cost per row of the expansion that replaces the sums of a model with one function."""
        constants, size = self.constants, Size(1, n_coordinates)
        projected = self.n_features * (constants.product * n_coordinates + constants.loaded)
        form = constants.coefficient * size.coefficients(degree)
        if constants.is_alone:
            form = max(form, constants.run * size.runs(degree))
        return np.array([constants.row + projected + form])

    def at_best(self, n_coordinates: int) -> float:
        """Return the average cost of a row if the stage determined the results of all rows."""
        sums = float(self.of_op(n_coordinates).mean())
        return self.fixed + (sums if self.n_forms > 1 else min(sums, float(self.of_expansion(n_coordinates, 2)[0])))


def by_few_values(model: KernelModel, few_work: float, constants: Constants) -> float:
    """Return a row's cost on a grid of few values, with `few_work` per support vector; infinite if `few_work` is 0."""
    return constants.row + constants.grid * model.n_features + model.n_sv * few_work if few_work > 0.0 else math.inf


@dataclass(frozen=True)
class CostModel:
    """Costs of a row for one model."""

    n_features: int
    n_forms: int  # number of functions expanded for a row: all, or the pairs of one class
    n_refined: float  # number of functions evaluated to higher degrees if degree 2 leaves a row undecided
    exact: float  # cost of a row in the exact engine
    constants: Constants
    call_rows: int = CALL_ROWS  # number of rows in a call

    @classmethod
    def of(
        cls,
        model: KernelModel,
        products: Products,
        constants: Constants,
        call_rows: int | None = None,
        few_work: float = 0.0,
    ) -> CostModel:
        """Estimate the costs of a model; `few_work` is `few_values_work` of the exact model's native predictor."""
        n_forms, n_refined = model.n_decisions, float(model.n_decisions)
        if model.has_pairs:
            n_forms = len(model.labels) - 1
            exact = products.row(constants) + PairCosts(products, model.n_features, constants).typical
        else:
            exact = products.engine(constants, n_forms)
            if model.task == "classification":
                n_refined = min(_CONTENDERS + _SHARE_OF_CONTENDERS * n_forms, n_refined)
        exact = min(exact, by_few_values(model, few_work, constants))
        return cls(model.n_features, n_forms, n_refined, exact, constants, call_rows or CALL_ROWS)

    def expansion(self, degree: int, size: Size) -> float:
        """Return the cost of a row that the expansion certifies without refining."""
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
        """Return the average cost of refining a row that its expansion does not certify at degree 2.

        `share` maps each stage to the fraction of rows whose results it determines. `lower` is a pair: a smaller
        degree, greater than 2, and the fraction of rows certified up to that degree.
        """
        if self.n_forms > 1:
            if degree <= 2:  # the exact engine is the next stage
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
        """Return the fraction of blocks that contain a row to refine, because whole blocks are refined."""
        return 1.0 - (1.0 - min(share, 1.0)) ** max(_REGISTERS * self.constants.width, 1)

    def _forms(self, forms_degree: int, size: Size, share: float, degree: int) -> float:
        """Return the cost per row of the coefficients up to a degree, if only some of a call's rows need them."""
        together = self._rows_together(size, share)
        n_bytes = 4 * size.coefficients(degree) * size.n_centers * self.n_forms
        if self.constants.is_alone:
            work = self.constants.coefficient * size.coefficients(forms_degree)
            return max(work, self.constants.run * size.runs(forms_degree))
        spilled = _SPILLED_COEFFICIENTS * self.constants.width / together if n_bytes > _CACHE_BYTES else 0.0
        work = max(size.coefficients(forms_degree), self.constants.run * size.runs(forms_degree))
        return work * (self._fewer(together) + spilled)

    def _fewer(self, together: float) -> float:
        """Return the factor by which the cost of a row increases in a block of few rows."""
        return max(1.0, _FULL_BLOCK * self.constants.width / together)

    def _rows_together(self, size: Size, share: float) -> float:
        """Return the average number of rows evaluated together about a center, for a fraction of the rows in a call."""
        return min(max(share * self.call_rows / size.n_centers, 1.0), 48.0)


def rows_in_engine(share: Mapping[str, float]) -> float:
    """Return the cost of an average row, relative to a float32 row in the exact engine, given each stage's share."""
    return share["float32"] + 2.0 * (share["float64"] + share["definition"])
