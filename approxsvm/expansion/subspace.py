"""Kernel sums on a low-dimensional subspace, and bounds on their distance from the whole decision function.

Fix a center and an orthonormal basis P of a subspace. The coordinates of a row in the subspace are y = P' (z - center)
sqrt(2 gamma), and the residual v is the component of (z - center) sqrt(2 gamma) orthogonal to the subspace. Let y_i and
v_i be the support vectors' coordinates and residuals, s = ||v||^2 and K(y_i, y) = exp(-||y_i - y||^2 / 2). The kernel
is the product of a kernel on the subspace and one on the residual:

    f(z) - intercept = sum_b f_b,    f_b = exp(-s / 2) sum_i c_i K(y_i, y) (v_i.v)^b / b!,
    c_i = a_i exp(-||v_i||^2 / 2)

f_0 is a kernel sum in few coordinates, with coefficients that decay with the support vectors' distance from the
subspace. The other f_b are bounded by Cauchy-Schwarz in the tensor product of two spaces: the space of K, where K(y, .)
has norm 1, and the space of b-fold tensors. For b = 1, 2, 3, one factor v is excluded from Cauchy-Schwarz, and the
bound assumes the worst direction of v:

    H_b = 1 / b! sum_ij c_i c_j K(y_i, y_j) (v_i.v_j)^(b-1) v_i v_j',    N_b^2 = the largest eigenvalue of H_b
    |f_b| <= N_b phi_b(s),    phi_b(s) = exp(-s/2) sqrt(s^b / b!),       b = 1, 2, 3
    sum_{b>=4} |f_b| <= T sqrt(P(4, s)),    T^2 = sum_ij c_i c_j K(y_i, y_j) (e^r - 1 - r - r^2/2 - r^3/6), r = v_i.v_j

P is the regularized incomplete gamma function; it bounds the sum because the phi_b^2 are Poisson probabilities. The sum
of the f_b with b >= 1 is at most W sqrt(2 - 2 exp(-s / 2)), the norm W of the whole function times the distance, in the
kernel's space, between z and its projection. The function on the subspace equals the whole function where v = 0, so its
norm is also at most W.

The basis, which determines the size of these bounds, consists of the leading eigenvectors of sum_ij a_i a_j K(x_i, x_j)
x_i x_j', summed over the functions that share the basis: the directions in which these functions vary most. For
handwritten digits, sums over 32 such coordinates suffice to certify 71% to 92% of the rows, while sums over the rows'
first 32 principal components suffice for 2% to 42%.

Every bound is rounded up. Let u64 = 2^-53, and let rho be the largest ||x_i - center|| sqrt(2 gamma).

* P is the orthonormal matrix nearest to the computed matrix; the computed P'P - I bounds their distance. Rows are
  projected with the stored float32 basis; the skew is its distance from P.
* The errors of y_i and v_i are at most e = ((d + k) sqrt(k) u64 4 + 4 ||P'P - I||) rho + 2^-64 sqrt(k).
* c_i, K and their products have a relative error of at most g = 8 rho (e + (d + k + 8) u64 rho), caused by the
  arguments of exp. Summing over all pairs adds (n_sv + 60) u64 to the relative error. With m_b = sum |c_i| (||v_i|| +
  e)^b, the error of H_b is at most (m_b^2 (g + (n_sv + 60) u64) + 2 b e m_b m_(b-1)) / b!, and so is the error of its
  largest eigenvalue.
* The error of r is at most 2 rho e. T^2 is W^2 minus four terms. Its error is at most (g + 2 rho e + (n_sv + 100) u64)
  times the sum of sum_ij |a_i a_j| K(x_i, x_j) and, for these terms, sum_b m_b^2 / b!. If g exceeds 2^-8, no norms are
  computed.
* The largest eigenvalue of H is at most the eighth root of the trace of H^8, which is a few percent too large if many
  eigenvalues are similar. The error of the first of the two matrix products is at most (d + 8) u64 ||H||_F^2. With the
  corresponding errors of later products, the total is at most 64 (d + 8) u64 ||H||_F^8.
* W^2 has the same error as in certificate.py, and A1 replaces W if rounding errors exceed the distances.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy import linalg
from scipy.special import gammainc

from approxsvm.expansion.gram import InOrder, one_by_one
from approxsvm.ir.constants import UNIT32, UNIT64
from approxsvm.ir.kernel_model import FloatArray, KernelModel
from approxsvm.ir.outputs import class_pairs
from approxsvm.ir.schema import LEAST_COEFFICIENT, MOST_COEFFICIENT

# Number of degrees in the residual for which separate norms are computed.
N_DEGREES: Final = 3
# Maximum number of support vectors from which a basis is computed; the bounds are valid for any basis.
_MOST_BASIS_VECTORS: Final = 3_000
# Maximum number of support vectors for which eigenvalues of H_3 are computed. With more vectors, or with several
# functions, the trace of H_3 replaces its largest eigenvalue.
_MANY_VECTORS: Final = 2_000
# Number of rows per strip of a matrix over pairs of support vectors.
_ROWS: Final = 512
# Entries of orthonormal vectors and coordinates are set to zero if they are below this magnitude, because subnormal
# numbers are slow to multiply.
_NOTHING: Final = 2.0**-64
# Largest error of exp's argument that may be used as the relative error of its value.
_MOST_IN_ARGUMENT: Final = 2.0**-8
# Value that replaces an overflowing norm; the bound with W then applies.
_UNKNOWN: Final = 1e300
# Largest slope of exp(-r^2 / 2): gaussian_slope(0.5), rounded up.
_SLOPE: Final = 0.6066


@dataclass(frozen=True, eq=False)
class Residual:
    """Norms of one decision function for a given number of coordinates (model_view.hpp, ResidualNumbers)."""

    total: float  # W, the norm of the whole function
    value_error: float  # bound on the change in any value due to rounded coordinates and coefficients
    norms: FloatArray  # (4,): N_1, N_2, N_3 and T


@dataclass(frozen=True, eq=False)
class SubspaceStage:
    """Kernel sums of a group's functions, for a given number of coordinates."""

    n_coordinates: int
    own: npt.NDArray[np.float32]  # (n_forms, n_own): coefficients c_i of the support vectors shared by all functions
    others: npt.NDArray[np.float32]  # (n_others,): coefficients of the other support vectors, function by function
    known: tuple[Residual, ...]  # each function's norms


@dataclass(frozen=True, eq=False)
class SubspaceGroup:
    """Decision functions of the pairs that include a class, or the only decision function, and a subspace for them."""

    basis: npt.NDArray[np.float32]  # (n_coordinates, n_features), as stored
    skew: float  # distance of the stored basis from an orthonormal basis
    counts: npt.NDArray[np.intp]  # (1 + n_forms,): numbers of shared support vectors and of each function's others
    vectors: npt.NDArray[np.float32]  # (sum of counts, n_coordinates): coordinates in the artifact's scale
    stages: tuple[SubspaceStage, ...]  # in increasing order of the number of coordinates


@dataclass(frozen=True, eq=False)
class Lists:
    """Support vectors and coefficients of a group's functions.

    `own` contains the indices of the support vectors shared by all functions: the support vectors of a class, or those
    with a positive coefficient. `others` contains, for each function, the indices of its other support vectors.
    """

    own: npt.NDArray[np.intp]
    own_coef: FloatArray  # (n_forms, n_own)
    others: tuple[npt.NDArray[np.intp], ...]
    others_coef: tuple[FloatArray, ...]
    decisions: tuple[int, ...]  # indices of the functions in ``model.intercept``

    @classmethod
    def of(cls, model: KernelModel) -> list[Lists]:
        """Create the lists for each class, or for the only decision function."""
        n = len(model.labels)
        if model.n_decisions == 1:
            coef = model.dual_coef[0]
            own, other = np.flatnonzero(coef > 0.0), np.flatnonzero(coef < 0.0)
            return [cls(own, coef[np.newaxis, own], (other,), (coef[other],), (0,))]
        pairs = {pair: k for k, pair in enumerate(class_pairs(n))}
        starts = np.concatenate([[0], np.cumsum(np.asarray(model.n_support))])
        lists = []
        for w in range(n):
            own = np.arange(starts[w], starts[w + 1])
            others, coefs, decisions = [], [], []
            for c in (c for c in range(n) if c != w):
                mine = np.arange(starts[c], starts[c + 1])
                coef = model.dual_coef[w if w < c else w - 1, mine]
                others.append(mine[coef != 0.0])
                coefs.append(coef[coef != 0.0])
                decisions.append(pairs[min(w, c), max(w, c)])
            lists.append(cls(own, model.dual_coef[:, own], tuple(others), tuple(coefs), tuple(decisions)))
        return lists

    @property
    def n_forms(self) -> int:
        """Number of functions."""
        return len(self.others)

    @property
    def counts(self) -> npt.NDArray[np.intp]:
        """Number of shared support vectors, then each function's number of other support vectors."""
        return np.array([len(self.own), *map(len, self.others)])

    @property
    def members(self) -> npt.NDArray[np.intp]:
        """Indices of all support vectors, list by list."""
        return np.concatenate([self.own, *self.others])

    def form(self, f: int) -> tuple[npt.NDArray[np.intp], FloatArray]:
        """Return one function's support vectors, as indices into `members`, and its coefficients."""
        starts = np.cumsum(self.counts)
        places = np.concatenate([np.arange(len(self.own)), np.arange(starts[f], starts[f + 1])])
        return places, np.concatenate([self.own_coef[f], self.others_coef[f]])

    def have_one_sign(self) -> bool:
        """Return whether the coefficients in each list have one sign; sums then also yield sums of absolute values."""
        lists = [*self.own_coef, *self.others_coef]
        return all((coef >= 0.0).all() or (coef <= 0.0).all() for coef in lists)


class GroupInSubspace:
    """A group's support vectors relative to the center, in units of 1 / sqrt(2 gamma), and a basis for its functions.

    The model must be Gaussian. If the basis is computed from only some of the support vectors, `random_state` breaks
    ties between equal weights.
    """

    def __init__(
        self,
        model: KernelModel,
        lists: Lists,
        center: npt.NDArray[np.float32],
        n_coordinates: int,
        random_state: int,
    ) -> None:
        self.lists = lists
        self._scale = math.sqrt(2.0 * model.gamma)
        vectors: Any = model.support_vectors[lists.members]
        dense = vectors if isinstance(vectors, np.ndarray) else vectors.toarray()
        self._x = (dense - center.astype(np.float64)) * self._scale
        self._rho = math.sqrt(float(np.einsum("ij,ij->i", self._x, self._x).max(initial=0.0))) * (1 + 1e-9)
        basis = self._gradient_basis(n_coordinates, random_state)
        basis[np.abs(basis) < _NOTHING] = 0.0
        self.stored = np.ascontiguousarray(basis.T, dtype=np.float32)
        gram = basis.T @ basis
        d = len(basis)
        self._loose = float(np.linalg.norm(gram - np.eye(len(gram)))) + 2.0 * d * len(gram) * UNIT64
        self.basis = basis
        self.skew = 1.01 * (float(np.linalg.norm(self.stored.T - basis)) + self._loose)
        self._y = self._x @ basis
        self._y[np.abs(self._y) < _NOTHING] = 0.0

    def _gradient_basis(self, n_coordinates: int, random_state: int) -> FloatArray:
        """Return the leading eigenvectors of the second moment of the functions' gradients."""
        d = self._x.shape[1]
        moment = np.zeros((d, d))
        for f in range(self.lists.n_forms):
            places, coef = self.lists.form(f)
            if len(places) > _MOST_BASIS_VECTORS:
                order = np.random.default_rng(random_state).permutation(len(places))
                largest = order[np.argsort(-np.abs(coef[order]), kind="stable")]
                chosen = np.sort(largest[:_MOST_BASIS_VECTORS])
                places, coef = places[chosen], coef[chosen]
            x = self._x[places]
            half_sq = 0.5 * np.einsum("ij,ij->i", x, x)
            unit = np.abs(coef).max(initial=0.0) or 1.0
            weighted = x * (coef / unit)[:, np.newaxis]
            kernel = np.exp(np.minimum(x @ x.T - half_sq[:, np.newaxis] - half_sq, 0.0))
            moment += (unit * unit) * (weighted.T @ (kernel @ weighted))
        moment = np.nan_to_num(moment / (np.abs(moment).max() or 1.0))
        _, vectors = linalg.eigh(moment + moment.T, subset_by_index=(d - n_coordinates, d - 1))
        # The Q factor is orthonormal to within a few units in the last place, regardless of the eigenvalues.
        basis: FloatArray = np.linalg.qr(vectors[:, ::-1])[0]
        return basis

    def stage(self, n_coordinates: int, input_scale: float, in_order: InOrder) -> SubspaceStage | None:
        """Compute coefficients and norms for the first coordinates of the basis; `in_order` does not affect the result.

        Returns None if coefficients are too large for float32, or if support vectors are so far from the center that
        rounding errors exceed the distances between them.
        """
        lists, k = self.lists, n_coordinates
        y, v, fading = self._split(k)
        n_sv, d = v.shape
        off = self._rho * (4.0 * (d + k) * math.sqrt(k) * UNIT64 + 4.0 * self._loose) + math.sqrt(k) * _NOTHING
        in_argument = 8.0 * self._rho * (off + (d + k + 8) * UNIT64 * self._rho)
        if not in_argument <= _MOST_IN_ARGUMENT:
            return None
        ratio = input_scale / self._scale
        with np.errstate(over="ignore"):
            stored = (y * ratio).astype(np.float32).astype(np.float64) / ratio
            moved = np.linalg.norm(stored - y, axis=1) * (1 + 1e-9) + (off + 4 * UNIT64 * self._rho)
        many = lists.n_forms > 1

        def form(f: int) -> tuple[npt.NDArray[np.float32], Residual] | None:
            places, coef = lists.form(f)
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                faded = coef * fading[places]
                moduli = np.abs(faded)
                if not (moduli <= 0.5 * MOST_COEFFICIENT).all():
                    return None
                dropped = moduli < LEAST_COEFFICIENT
                error = float((moduli * (_SLOPE * moved[places] + in_argument)).sum() + moduli[dropped].sum())
                kept = np.where(dropped, 0.0, faded).astype(np.float32)
                matter = _Pairs(y[places], v[places], coef, faded, off, in_argument, self._rho)
                n_sharp = N_DEGREES - (many or len(places) > _MANY_VECTORS)
                matter.sum_up(n_sharp, one_by_one if many else in_order)
                return kept, Residual(matter.total(), 1.01 * error * (1 + n_sv * UNIT64), matter.norms())

        forms = [found for _, found in (in_order if many else one_by_one)(form, range(lists.n_forms))]
        if any(found is None for found in forms):
            return None
        n_own = len(lists.own)
        own = np.array([found[0][:n_own] for found in forms if found is not None], np.float32)
        others = np.concatenate([found[0][n_own:] for found in forms if found is not None])
        known = tuple(found[1] for found in forms if found is not None)
        if not all(np.isfinite([r.total, r.value_error, *r.norms]).all() for r in known):
            return None
        return SubspaceStage(k, own, others, known)

    def on_subspace(self, stage: SubspaceStage, gamma: float) -> KernelModel:
        """Return a model of the only decision function on a stage's subspace, without the intercept."""
        y, _, fading = self._split(stage.n_coordinates)
        places, coef = self.lists.form(0)
        return KernelModel(
            task="regression",
            gamma=gamma,
            support_vectors=y[places] / self._scale,
            dual_coef=(coef * fading[places])[np.newaxis],
            intercept=np.zeros(1),
            source="subspace",
        )

    def _split(self, n_coordinates: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the support vectors' coordinates and residuals v_i, and the factors exp(-||v_i||^2 / 2)."""
        y = self._y[:, :n_coordinates]
        v = self._x - y @ self.basis[:, :n_coordinates].T
        return y, v, np.exp(-0.5 * np.einsum("ij,ij->i", v, v))

    def projected(self, rows: FloatArray, n_coordinates: int) -> FloatArray:
        """Compute the first coordinates of rows given relative to the center."""
        coordinates: FloatArray = rows @ self.basis[:, :n_coordinates]
        return coordinates

    def typical_s(self, n_coordinates: int) -> float:
        """Return the mean squared norm of the support vectors' coordinates."""
        y = self._y[:, :n_coordinates]
        return float(np.einsum("ij,ij->i", y, y).mean())

    def group(self, stages: Sequence[SubspaceStage], input_scale: float) -> SubspaceGroup:
        """Return the group as stored in an artifact, with the last stage's coordinates."""
        k = stages[-1].n_coordinates
        vectors = (self._y[:, :k] * (input_scale / self._scale)).astype(np.float32)
        return SubspaceGroup(self.stored[:k], self.skew, self.lists.counts, vectors, tuple(stages))

    def judged(
        self, stage: SubspaceStage, rows: FloatArray, expanded: tuple[FloatArray, FloatArray] | None = None
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield each function's values, without the intercept, and approximate error bounds.

        Rows are given relative to the center. The bounds only estimate float32 rounding: they are not proven, but show
        which stages are worthwhile. If `expanded` is given, it contains the values and bounds of an expansion of the
        function on the subspace, which replace the sums.
        """
        k = stage.n_coordinates
        z = rows * self._scale
        q = self.projected(z, k)
        s, s_in = np.einsum("ij,ij->i", z, z), np.einsum("ij,ij->i", q, q)
        outside = np.maximum(s - s_in, 0.0)
        gaussian = np.exp(-0.5 * outside)
        phis = [gaussian * np.sqrt(outside**b / math.factorial(b)) for b in range(1, N_DEGREES + 1)]
        table = np.array([*phis, np.sqrt(gammainc(N_DEGREES + 1, outside))])
        moved = UNIT32 * math.sqrt(k) * 60.0 * np.sqrt(s)
        others = np.split(stage.others, np.cumsum(self.lists.counts[1:-1]))
        for f, known in enumerate(stage.known):
            rest = np.minimum(known.norms @ table, known.total * np.sqrt(-2.0 * np.expm1(-0.5 * outside)))
            bound = 1.03 * rest + gaussian * (moved * known.total + known.value_error)
            if expanded is not None:
                yield gaussian * expanded[0], bound + gaussian * expanded[1]
                continue
            places, _ = self.lists.form(f)
            y = self._y[places, :k]
            kernel = np.exp(np.minimum(q @ y.T - 0.5 * s_in[:, np.newaxis] - 0.5 * np.einsum("ij,ij->i", y, y), 0.0))
            coef = np.concatenate([stage.own[f], others[f]]).astype(np.float64)
            yield gaussian * (kernel @ coef), bound


class _Pairs:
    """Sums over all pairs of one function's support vectors, strip by strip, and norms computed from these sums."""

    def __init__(
        self,
        y: FloatArray,
        v: FloatArray,
        coef: FloatArray,
        faded: FloatArray,
        off: float,
        in_argument: float,
        rho: float,
    ) -> None:
        self._rho = rho
        self._unit = 2.0 ** int(np.frexp(np.abs(coef).max(initial=0.0))[1])
        self._coef, self._faded = coef / self._unit, faded / self._unit
        self._y, self._v = y, v
        self._half_y, self._half_v = 0.5 * np.einsum("ij,ij->i", y, y), 0.5 * np.einsum("ij,ij->i", v, v)
        self._off, self._in_argument = off, in_argument

    def sum_up(self, n_sharp: int, in_order: InOrder) -> None:
        """Compute the sums, with matrices for the first `n_sharp` degrees; the results do not depend on `in_order`."""
        n_sv, d = self._v.shape
        # Rotate the residuals to a smaller basis if they do not span the whole space; inner products are preserved.
        u = np.asarray(np.linalg.qr(self._v.T, mode="r")).T if n_sv < 0.7 * d else self._v
        self._rotated = 0.0 if u is self._v else 8.0 * d * n_sv * UNIT64
        self._matrices = np.zeros((n_sharp, u.shape[1], u.shape[1]))
        self._tail = self._trace = self._total_sq = self._moduli_sq = 0.0

        def strip(first: int) -> tuple[float, float, float, float, FloatArray]:
            mine = slice(first, min(first + _ROWS, n_sv))
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                r = u[mine] @ u.T
                kernel = self._y[mine] @ self._y.T
                kernel -= self._half_y[mine, np.newaxis]
                kernel -= self._half_y
                whole = kernel + r
                whole -= self._half_v[mine, np.newaxis]
                whole -= self._half_v
                np.exp(np.minimum(whole, 0.0, out=whole), out=whole)
                total_sq = float(self._coef[mine] @ (whole @ self._coef))
                moduli_sq = float(np.abs(self._coef[mine]) @ (whole @ np.abs(self._coef)))
                np.exp(np.minimum(kernel, 0.0, out=kernel), out=kernel)
                kernel *= self._faded[mine, np.newaxis]
                kernel *= self._faded
                # The tail's terms are e^r times coefficients that may underflow, so the tail is computed as a
                # difference.
                tail = total_sq - float((kernel * (1.0 + r * (1.0 + r * (0.5 + r / 6.0)))).sum())
                matrices = np.empty_like(self._matrices)
                for b in range(len(matrices)):
                    matrices[b] = u[mine].T @ (kernel @ u) / math.factorial(b + 1)
                    kernel *= r
                trace = float((kernel * r).sum()) / math.factorial(N_DEGREES)
            return total_sq, moduli_sq, tail, trace, matrices

        for _, (total_sq, moduli_sq, tail, trace, matrices) in in_order(strip, range(0, n_sv, _ROWS)):
            self._total_sq += total_sq
            self._moduli_sq += moduli_sq
            self._tail += tail
            self._trace += trace
            self._matrices += matrices
        self._matrices = 0.5 * (self._matrices + self._matrices.transpose(0, 2, 1))

    def total(self) -> float:
        """Return W, rounded up, or A1 if rounding errors exceed the distances between support vectors."""
        moduli = float(np.abs(self._coef).sum())
        rotated = self._rotated * 4.0 * float(self._half_v.max(initial=0))
        error = self._in_argument + (len(self._coef) + 60) * UNIT64 + rotated
        upper = math.sqrt(max(self._total_sq, 0.0) + 1.001 * error * self._moduli_sq) if error < 2.0**-10 else math.inf
        return self._unit * min(upper, moduli) * (1 + 1e-12)

    def norms(self) -> FloatArray:
        """Return N_1, N_2, N_3 and T, rounded up; `_UNKNOWN` for an overflowing norm."""
        n_sv, found = len(self._coef), []
        lengths = np.sqrt(2.0 * self._half_v) * (1 + 1e-9)
        off = self._off + self._rotated * float(lengths.max(initial=0.0))
        relative = 1.01 * self._in_argument + (n_sv + 60) * UNIT64
        powers = np.array([np.abs(self._faded) @ (lengths + off) ** b for b in range(N_DEGREES + 1)]) * (1 + 1e-9)
        removed = 0.0
        for b in range(N_DEGREES + 1):
            removed += powers[b] ** 2 / math.factorial(b)
        for b in range(1, N_DEGREES + 1):
            error = (powers[b] ** 2 * relative + 2.02 * b * off * powers[b] * powers[b - 1]) / math.factorial(b)
            is_sharp = b <= len(self._matrices)
            largest = _largest_eigenvalue_above(self._matrices[b - 1]) if is_sharp else max(self._trace, 0.0)
            found.append(largest + error)
        of_terms = relative + 2.02 * self._rho * off + 40 * UNIT64
        found.append(max(self._tail, 0.0) + of_terms * (self._moduli_sq + removed) * (1 + 1e-9))
        norms = self._unit * np.sqrt(np.array(found)) * (1 + 1e-12)
        norms[~(norms < _UNKNOWN)] = _UNKNOWN
        known: FloatArray = norms
        return known


def _largest_eigenvalue_above(symmetric: FloatArray) -> float:
    """Bound a symmetric matrix's largest eigenvalue from above by the eighth root of the trace of its eighth power."""
    size = float(np.linalg.norm(symmetric))
    if size == 0.0 or not math.isfinite(size):
        return size
    square = (symmetric / size) @ (symmetric / size)
    fourth = square @ square
    eighth = float(np.einsum("ij,ij->", fourth, fourth)) + 64.0 * (len(symmetric) + 8) * UNIT64
    return float(size * eighth**0.125 * (1 + 1e-9))
