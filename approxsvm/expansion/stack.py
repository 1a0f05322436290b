"""Certified expansions of one decision function about many centers, and the choice of methods for norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.expansion import gram, taylor
from approxsvm.expansion.certificate import (
    MAX_FEATURES_SHARPENED,
    CenterSums,
    Certificates,
    certificates,
    float32_error,
    tails_of,
)
from approxsvm.expansion.decision_function import DecisionFunction
from approxsvm.expansion.gram import DIRECTION_CONTRACTION, LAST_DEGREE, InOrder, one_by_one
from approxsvm.expansion.kernel_sums import (
    ExpansionPoint,
    KernelSums,
    energy_work,
    is_large,
    kernel_sums,
    mapped_in_order,
    pass_work,
)
from approxsvm.expansion.monomials import n_monomials, spectrum, sq_norm
from approxsvm.expansion.taylor import Expansions
from approxsvm.ir.constants import CONTRACTIONS, UNIT64
from approxsvm.ir.kernel_model import FloatArray, KernelModel
from approxsvm.system.threads import all_threads

# Limits on the number of operations (about 4e10 per second and core) for norms of degrees above the expansion's degree:
# the usual limit, and a higher one, which applies to the first of these norms if the usual limit excludes all of them.
USUAL_WORK, _MOST_WORK = 2e11, 1e13
# Work that one core does per second.
WORK_PER_SECOND: Final = 4e10
# Moments replace affordable powers of the Gram matrix if the powers take at least this many times the moments' work.
_CHEAPER: Final = 4.0
# A center's energies are omitted if the bound from the triangle inequality is at most _NEGLIGIBLE times the bounds on
# the other parts. For a large model, all energies are omitted if this ratio, averaged over the fraction _USUAL of the
# centers that have the smallest ratios, is at most _NEGLIGIBLE. Unknown norms are estimated as _CANCELLED times sums of
# absolute values.
_NEGLIGIBLE: Final = 0.03
_USUAL: Final = 0.9
_CANCELLED: Final = 0.1
# Moments are recomputed in float64 if the error of the float32 moments exceeds this fraction of the largest norm.
_IMPRECISE: Final = 0.002
# Maximum number of moments per center, because every thread keeps one center's moments in memory.
_MOST_MOMENTS = 1 << 22
# 2 gamma ||z - center||^2 for a typical row near a center.
_TYPICAL_S = 0.3
_ROWS = 512
# Maximum size, in bytes, of the sums kept for later expansions.
_MOST_KNOWN = 256 << 20


class KnownSums:
    """Cache of the sums over a model's support vectors, for later expansions about the same centers.

    The planner tries some centers at several degrees in turn, and finally expands all centers. Sums over the kernel
    matrix are the same for all degrees, and sums about a center need not be computed again. An expansion uses a cached
    sum only if it would compute exactly the same sum, so the last bits of its result do not depend on earlier
    expansions.
    """

    def __init__(self) -> None:
        self._of: dict[tuple[int, bytes], _OfFunction] = {}
        self.wholes: dict[int, KernelSums] = {}  # sums over the kernel matrix of all features, by decision function
        # Estimated work so far, in the unit of `Work`: for W, which all expansions need, and for other sums.
        self.work_of_all, self.work = 0.0, 0.0

    def of(self, decision: int, varying: npt.NDArray[np.intp] | None) -> _OfFunction:
        """Return one decision function's cache for the slices along which the given columns vary."""
        return self._of.setdefault((decision, b"" if varying is None else varying.tobytes()), _OfFunction())


class Work(NamedTuple):
    """Estimated work for expansions, in multiply-adds of a large matrix product (about 4e10 per second and core)."""

    shared: float  # work for all centers together
    of_center: float


class _Moments(NamedTuple):
    """Moments about one center, by degree."""

    sums: list[FloatArray]
    in_float64: int  # number of degrees, starting at 0, whose moments were summed in float64


class _OfFunction:
    """Sums for one decision function, keyed by the center's bytes; a single center needs no contracted norms."""

    def __init__(self) -> None:
        self.energies: dict[bytes, tuple[FloatArray, FloatArray]] = {}  # rows of contracted_sq and faded_moduli
        self.moments: dict[tuple[bytes, int, int], _Moments] = {}  # moments by center, degree and highest moment
        self.gram: dict[tuple[bytes, int, bool], CenterSums] = {}  # sums by center, degree and directions
        self._n_bytes = 0

    def has_room(self, *arrays: FloatArray | None) -> bool:
        """Return whether these arrays fit into the cache; if so, add their size to the total."""
        n_bytes = sum(array.nbytes for array in arrays if array is not None)
        if self._n_bytes + n_bytes > _MOST_KNOWN:
            return False
        self._n_bytes += n_bytes
        return True


def expand_and_certify(
    model: KernelModel,
    centers: npt.NDArray[np.float32],
    degree: int,
    *,
    decision: int = 0,
    typical_s: FloatArray | None = None,
    varying: npt.NDArray[np.intp] | None = None,
    directions: bool = True,
    progress: Callable[[float], None] | None = None,
    known: KnownSums | None = None,
    of_centers: int | None = None,
    most_work: float = USUAL_WORK,
) -> tuple[Expansions, Certificates]:
    """Expand a decision function about centers, and bound the expansion errors.

    `decision` is the function's index in ``model.intercept``. The caller must limit BLAS to one thread, because this
    function starts its own threads; the result does not depend on their number. `centers`, of shape (n_centers,
    n_features) in float32, may be any points, but every row should be near one. The bounds are optimized for
    `typical_s`, of shape (n_centers,): 2 gamma ||z - center||^2 for typical rows. With `varying`, column indices in
    increasing order, the expansions are valid for rows that agree with the center in all other features. `directions`
    requests the form G, which takes a row's direction into account and exists only for degree 2. `progress` is called
    with the completed fraction of the work, from 0 to 1. `known` contains the sums of other expansions of the model,
    and this call adds new ones to it. If the centers are only some of a larger set, `of_centers` is the size of that
    set, for which the methods for norms are chosen. `most_work` is the usual limit on the work for norms, in the unit
    of `Work`; with a lower limit, fewer norms are computed, and the bounds are larger. Raises UnsupportedModelError if
    an expansion would not fit in memory.
    """
    n_centers, d = len(centers), model.n_features if varying is None else len(varying)
    taylor.check_size(d, degree)
    directions = directions and degree == 2 and d <= MAX_FEATURES_SHARPENED
    function = DecisionFunction(model, decision)
    tell = progress or (lambda _: None)

    slices: dict[bytes, DecisionFunction] = {}

    def point_of(c: int) -> ExpansionPoint:
        if varying is None:
            return ExpansionPoint(function, centers[c])
        key = np.delete(centers[c], varying).tobytes()
        if key not in slices:
            slices[key] = function.on_slice(centers[c], varying)
        return ExpansionPoint(slices[key], centers[c][varying])

    known = known or KnownSums()
    mine, names = known.of(decision, varying), [center.tobytes() for center in centers]
    typical = np.full(n_centers, _TYPICAL_S) if typical_s is None else typical_s
    in_one_pass = n_centers == 1 and varying is None and _one_pass_only(function.n_sv, d, degree)
    last = 0 if in_one_pass else _last_moment(function.n_sv, d, of_centers or n_centers, degree, most_work)
    if n_centers > 1 and last > degree:
        median = int(np.argsort(typical, kind="stable")[n_centers // 2])
        last = _enough_moments(point_of(median), last, degree, float(typical[median]))
    of_center = _center_work(function.n_sv, d, last, degree)
    parts = [np.empty((n_centers, n_monomials(d, k))) for k in range(degree + 1)]

    def dropped_moments(here: ExpansionPoint, dtype: Any) -> list[FloatArray]:
        return taylor.moments_about(here.function, here.center, last, degree + 1, dtype) if last > degree else []

    def expand(c: int) -> tuple[ExpansionPoint, _Moments]:
        here = point_of(c)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # the writer rejects infinity and NaN
            moments = mine.moments.get((names[c], degree, last))
            if moments is None:
                kept = taylor.moments_about(here.function, here.center, degree)
                moments = _Moments(kept + dropped_moments(here, np.float32), degree + 1)
            coefficients = taylor.coefficients_of(here.function, moments.sums[: degree + 1])
            for part, of_degree in zip(parts, coefficients, strict=True):
                part[c] = of_degree
        return here, moments

    def about(c: int, in_order: InOrder, tell: Callable[[float], None]) -> tuple[CenterSums, _Moments]:
        here, moments = expand(c)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            if not last:
                found = mine.gram.get((names[c], degree, directions))
                return found or _from_gram(here, degree, directions, in_order, tell), moments
            sums = _from_moments(here, degree, directions, moments)
            if not sums.float32_errors.max() <= _IMPRECISE * math.sqrt(sums.degree_sq[degree + 1 :].max(initial=0.0)):
                moments = _Moments(moments.sums[: degree + 1] + dropped_moments(here, np.float64), last + 1)
                sums = _from_moments(here, degree, directions, moments)
            return sums, moments

    def keep(c: int, found: CenterSums, moments: _Moments) -> None:
        """Store the sums in the cache for later expansions."""
        if last:
            if (names[c], degree, last) not in mine.moments:
                known.work += of_center
                if mine.has_room(*moments.sums):
                    mine.moments[names[c], degree, last] = moments
            return
        name = (names[c], degree, directions)
        if name not in mine.gram:
            known.work += of_center
            if mine.has_room(found.direction, *found.spectra.values()):
                mine.gram[name] = found

    with ThreadPoolExecutor(all_threads()) as pool:

        def side_by_side(f: Callable[[Any], Any], arguments: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
            return mapped_in_order(pool, f, arguments)

        if in_one_pass:
            expanded = pool.submit(expand, 0)
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                center_sums, kernel = _from_one_pass(point_of(0), side_by_side, tell)
            expanded.result()
            sums = [center_sums]
            known.work += _one_pass_work(function.n_sv, d)
        else:
            if n_centers == 1:  # all threads share the work for this center
                found, moments = about(0, side_by_side, lambda x: tell(0.7 * x))
                keep(0, found, moments)
                sums = [found]
            else:
                sums = []
                all_of_them = mapped_in_order(pool, lambda c: about(c, one_by_one, _ignore), range(n_centers))
                for c, (found, moments) in all_of_them:
                    keep(c, found, moments)
                    sums.append(found)
                    tell(0.7 * (c + 1) / n_centers)
            needed = _centers_with_energies(function.n_sv, sums, degree, typical) if n_centers > 1 else []
            kernel = _sums_over_kernel(
                function,
                decision,
                names,
                needed,
                point_of,
                varying is not None,
                known,
                mine,
                lambda x: tell(0.7 + 0.3 * x),
            )
    directions = directions and all(center.direction is not None for center in sums)
    max_sv_norms = np.array([center.max_sv_norm for center in sums])
    expansions = Expansions(parts[0][:, 0], tuple(parts[1:]), max_sv_norms)
    return expansions, certificates(function, kernel, sums, degree, typical, n_varying=d, directions=directions)


def _sums_over_kernel(
    function: DecisionFunction,
    decision: int,
    names: list[bytes],
    needed: list[int],
    point_of: Callable[[int], ExpansionPoint],
    sliced: bool,
    known: KnownSums,
    mine: _OfFunction,
    progress: Callable[[float], None],
) -> KernelSums:
    """Compute W, unless it is known, and the `needed` centers' energies (on slices, from another kernel matrix)."""
    whole = known.wholes.get(decision)
    if sliced and whole is None:
        whole = kernel_sums(function, 0, point_of, contracted=False, progress=lambda share: progress(0.2 * share))
        known.work_of_all += pass_work(function.n_sv, function.n_features)
    missing = [c for c in needed if names[c] not in mine.energies]
    if missing or whole is None:
        of_centers = point_of(0).function if sliced else function
        found = kernel_sums(
            of_centers,
            len(missing),
            lambda k: point_of(missing[k]),
            contracted=bool(missing),
            progress=lambda share: progress(0.2 + 0.8 * share if sliced else share),
        )
        of_pass = pass_work(function.n_sv, of_centers.n_features)
        known.work_of_all += of_pass if whole is None else 0.0
        known.work += (of_pass if whole is not None else 0.0) + len(missing) * energy_work(function.n_sv)
        whole = whole or found
        mine.energies.update((names[c], (found.contracted_sq[k], found.faded_moduli[k])) for k, c in enumerate(missing))
    known.wholes.setdefault(decision, whole)
    contracted_sq, faded_moduli = np.full((2, len(names), len(CONTRACTIONS)), np.inf)
    for c in needed:
        contracted_sq[c], faded_moduli[c] = mine.energies[names[c]]
    contracted_sq[:, 0], faded_moduli[:, 0] = whole.total_sq, np.abs(function.coef).sum()
    return replace(whole, contracted_sq=contracted_sq, faded_moduli=faded_moduli)


def sum_ahead(
    model: KernelModel,
    centers: npt.NDArray[np.float32],
    known: KnownSums,
    progress: Callable[[float], None],
) -> None:
    """Compute the norms of the only decision function in one pass, for later expansions about any of these centers."""
    function, names = DecisionFunction(model, 0), [center.tobytes() for center in centers]
    mine, everywhere = known.of(0, None), list(range(len(names)))

    def point_of(c: int) -> ExpansionPoint:
        return ExpansionPoint(function, centers[c])

    _sums_over_kernel(function, 0, names, everywhere, point_of, False, known, mine, progress)


def work_of(
    n_sv: float, n_features: int, n_centers: int, degree: int, *, is_sliced: bool, most_work: float = USUAL_WORK
) -> Work:
    """Estimate the work for expanding a decision function about `n_centers` centers, without any known sums."""
    n = int(n_sv)
    if n_centers == 1 and not is_sliced and _one_pass_only(n, n_features, degree):
        return Work(_one_pass_work(n, n_features), 0.0)
    last = _last_moment(n, n_features, n_centers, degree, most_work)
    of_center = _center_work(n, n_features, last, degree)
    if n_centers > 1 and is_sliced and degree < last < LAST_DEGREE and _may_replace_energies(n, n_features, last):
        return Work(0.0, _moment_work(n, n_features, last + 1))
    return Work(pass_work(n_sv, n_features), of_center + (energy_work(n_sv) if n_centers > 1 else 0.0))


def value_range(model: KernelModel, decision: int = 0) -> float:
    """Return the range of the decision values at the support vectors; 0 if it overflows."""
    function = DecisionFunction(model, decision)
    if function.n_sv == 0:
        return 0.0

    def nowhere(_: int) -> ExpansionPoint:
        raise AssertionError("no center was requested")

    values = kernel_sums(function, 0, nowhere, contracted=False, progress=_ignore).values
    spread = float(np.ptp(values)) * function.unit
    return spread if np.isfinite(spread) else 0.0


def _ignore(share: float) -> None:
    """Do nothing with the completed fraction."""


def _sharpened(n_features: int, degree: int) -> tuple[int, ...]:
    """Return the degrees whose norms are sharpened by the largest eigenvalue: the first two dropped degrees."""
    return (degree + 1, degree + 2) if n_features <= MAX_FEATURES_SHARPENED else ()


def _last_moment(n_sv: int, d: int, n_centers: int, degree: int, most_work: float) -> int:
    """Return the highest affordable degree of moments; 0 if powers of the Gram matrix are cheaper."""
    gram_work = _gram_work(n_sv, d, degree)
    fitting = [
        last
        for last in range(degree + 1, LAST_DEGREE + 1)
        if n_monomials(d, last) <= _MOST_MOMENTS and d <= MAX_FEATURES_SHARPENED
    ]
    highest = [last for last in fitting if last <= degree + 2]
    if n_centers * gram_work <= most_work or (highest and gram_work <= _moment_work(n_sv, d, highest[0])):
        # With several centers, the energies compensate for missing norms of the highest degrees.
        cheap = [last for last in fitting if _CHEAPER * _moment_work(n_sv, d, last) <= gram_work]
        return cheap[-1] if n_centers > 1 and cheap and cheap[-1] >= degree + 2 else 0
    most = max(most_work, 0.25 * _one_pass_work(n_sv, d)) if n_centers == 1 else most_work
    affordable = [last for last in highest if n_centers * _moment_work(n_sv, d, last) <= most]
    if affordable:
        return affordable[-1]
    if highest and n_centers * _moment_work(n_sv, d, highest[0]) <= _MOST_WORK:
        return highest[0]
    return 0 if n_centers == 1 or n_centers * gram_work <= _MOST_WORK else degree


def _enough_moments(point: ExpansionPoint, last: int, degree: int, s: float) -> int:
    """Return the degree up to which moments probably replace energies, if that is cheaper; otherwise `last`."""
    for m in range(last, LAST_DEGREE + 1):
        if m > last and not _may_replace_energies(point.function.n_sv, point.function.n_features, last, m - last):
            break
        with np.errstate(all="ignore"):
            moduli_sq, tails, _ = _moduli(point, m + 1)
        if _tail(tails, m + 1, s) <= _NEGLIGIBLE * _CANCELLED * _dropped(moduli_sq[: m + 1], degree, s):
            return m
    return last


def _may_replace_energies(n_sv: int, d: int, last: int, n_more: int = 1) -> bool:
    """Return whether `n_more` further degrees of moments take at most half the work for a center's energies."""
    more = _moment_work(n_sv, d, last + n_more) - _moment_work(n_sv, d, last)
    return n_monomials(d, last + n_more) <= _MOST_MOMENTS and more <= 0.5 * energy_work(n_sv)


def _centers_with_energies(n_sv: int, sums: list[CenterSums], degree: int, typical: FloatArray) -> list[int]:
    """Return the centers whose bounds could be reduced noticeably by energies.

    For a large model, a pass takes long, so energies are omitted if only a few centers need them.
    """
    shares = np.array(
        [_share_of_tail(of_center, degree, s) for of_center, s in zip(sums, typical.tolist(), strict=True)]
    )
    usual = np.sort(shares)[: max(1, int(_USUAL * len(shares)))]
    if is_large(n_sv) and usual.mean() <= _NEGLIGIBLE:
        return []
    return np.flatnonzero(~(shares <= _NEGLIGIBLE)).tolist()


def _share_of_tail(sums: CenterSums, degree: int, s: float) -> float:
    """Return the ratio of the triangle-inequality bound to the bounds on the other parts, at a squared distance s."""
    parts_sq, tail = sums.degree_sq.copy(), _tail(sums.tails, len(sums.degree_sq), s)
    if tail <= _dropped(parts_sq, degree, s):
        for k, sharpened_sq in sums.sharpened_sq.items():
            parts_sq[k] = sharpened_sq
    dropped = _dropped(parts_sq, degree, s)
    return tail / dropped if dropped > 0.0 else math.inf


def _tail(tails: FloatArray, first: int, s: float) -> float:
    """Return the triangle-inequality bound, at a squared distance s, on the parts of degrees `first` and higher."""
    factors = (float(_native.remainder_factor(first, theta, s)) for theta in CONTRACTIONS)
    return min(float(tail) * factor for tail, factor in zip(tails, factors, strict=True))


def _dropped(parts_sq: FloatArray, degree: int, s: float) -> float:
    """Return the bound, at a squared distance s, on the parts above `degree`, given their N_k^2."""
    s = min(s, 700.0)  # larger distances do not change the result, and their powers could overflow
    poisson = [math.exp(-s) * s**k / math.factorial(k) for k in range(len(parts_sq))]
    return sum(math.sqrt(max(float(parts_sq[k]), 0.0) * poisson[k]) for k in range(degree + 1, len(parts_sq)))


def _gram_work(n_sv: int, d: int, degree: int) -> float:
    """Return the work for powers of the Gram matrix about one center."""
    return float(n_sv) ** 2 * (d * (1 + len(_sharpened(d, degree)) + (degree == 2)) + 150)


def _moment_work(n_sv: int, d: int, last: int) -> float:
    """Return the work for moments about one center (measured for 10 to 54 features and degrees 3 to 6)."""
    return n_sv * (2.7 * n_monomials(d + 1, last) + 9_000)


def _center_work(n_sv: int, d: int, last: int, degree: int) -> float:
    """Return the work for the norms about one center, given the result of `_last_moment`."""
    return _moment_work(n_sv, d, last) if last else _gram_work(n_sv, d, degree)


def _one_pass_work(n_sv: int, d: int) -> float:
    """Return the work for one pass over the pairs of support vectors."""
    return 0.5 * float(n_sv) ** 2 * (2 * d + 150)


def _from_gram(
    point: ExpansionPoint,
    degree: int,
    directed: bool,
    in_order: InOrder,
    progress: Callable[[float], None],
) -> CenterSums:
    sharpened = _sharpened(point.function.n_features, degree)
    return _center_sums(point, gram.gram_sums(point.function, point.center, sharpened, directed, in_order, progress))


def _one_pass_only(n_sv: int, d: int, degree: int) -> bool:
    """Return whether the norms about a single center are computed in one pass over all pairs of support vectors.

    One pass is used for huge models, unless moments of degree 4 or higher take much less work. G, which starts at
    degree 3, then bounds each G_k.
    """
    last = max(degree + 1, 4)
    by_moments = n_monomials(d, last) <= _MOST_MOMENTS and _moment_work(n_sv, d, last) <= 0.25 * _one_pass_work(n_sv, d)
    return degree >= 2 and d <= MAX_FEATURES_SHARPENED and gram.is_huge(n_sv, d) and not by_moments


def _from_one_pass(
    point: ExpansionPoint, in_order: InOrder, progress: Callable[[float], None]
) -> tuple[CenterSums, KernelSums]:
    function = point.function
    sums = gram.gram_sums(function, point.center, (), True, in_order, progress, with_kernel=True)
    energies, moduli = np.full((2, 1, len(CONTRACTIONS)), np.inf)
    energies[:, 0], moduli[:, 0] = sums.kernel_sq, np.abs(function.coef).sum()
    path = gram.sum_path(function.n_sv, function.n_features)
    kernel = KernelSums(sums.kernel_sq, sums.kernel_moduli_sq, np.empty(0), energies, moduli, sums.half_sq_radius, path)
    return _center_sums(point, sums), kernel


def _center_sums(point: ExpansionPoint, sums: gram.GramSums) -> CenterSums:
    function = point.function
    moduli_sq, tails, max_sv_norm = _moduli(point, len(sums.degree_sq))
    path, terms = gram.sum_path(function.n_sv, function.n_features), np.zeros(len(sums.degree_sq))
    return CenterSums(
        sums.degree_sq,
        sums.spectra,
        sums.direction,
        path,
        terms,
        moduli_sq,
        np.zeros(len(terms)),
        tails,
        max_sv_norm,
        function.half_sq_offset,
    )


def _from_moments(point: ExpansionPoint, degree: int, directed: bool, moments: _Moments) -> CenterSums:
    function, d = point.function, point.function.n_features
    known = len(moments.sums)
    moduli_sq, tails, max_sv_norm = _moduli(point, known)
    sharpened = range(degree + 1, known) if d <= MAX_FEATURES_SHARPENED else ()
    spectra = {k: spectrum(moments.sums[k], d, k) for k in sharpened}
    parts = [DIRECTION_CONTRACTION ** (k - 3) * spectra[k] for k in range(3, known)] if directed else []
    float32_errors, max_r = np.zeros(known), 2.0 * function.gamma * max_sv_norm**2
    for k in range(moments.in_float64, known):
        float32_errors[k] = float32_error(k, float(moduli_sq[k]), function.n_sv, max_r)
    return CenterSums(
        degree_sq=np.array([sq_norm(moment, d, k) for k, moment in enumerate(moments.sums)]),
        spectra=spectra,
        direction=np.sum(parts, axis=0) if parts else None,
        path=2 * function.n_sv + 2,
        terms=np.array([float(len(moment)) for moment in moments.sums]),
        moduli_sq=moduli_sq,
        float32_errors=float32_errors,
        tails=tails,
        max_sv_norm=max_sv_norm,
        half_sq_offset=function.half_sq_offset,
    )


def _moduli(point: ExpansionPoint, first: int) -> tuple[FloatArray, FloatArray, float]:
    """Return sums of absolute values (rounded up), the sums from `tails_of` (not rounded up) and the largest ||xt_i||.

    The first array contains (sum_i |w_i| (sqrt(2 gamma) ||xt_i||)^k)^2 / k! for k = 0, 1, ... The largest ||xt_i|| is
    rounded up.
    """
    sums, tails, largest = np.zeros(LAST_DEGREE + 1), np.zeros(len(CONTRACTIONS)), 0.0
    function = point.function
    for start, block in function.blocks_about(point.center, _ROWS):
        sq_norm = np.einsum("ij,ij->i", block, block)
        largest = max(largest, float(sq_norm.max()))
        r, coef = 2.0 * function.gamma * sq_norm, function.coef[start : start + len(block)]
        norm = np.sqrt(r)
        weight = np.abs(coef) * np.exp(-0.5 * r)
        for k in range(LAST_DEGREE + 1):
            sums[k] += float(weight.sum())
            weight *= norm
        tails += tails_of(coef, r, first)
    factorials = np.array([math.factorial(k) for k in range(LAST_DEGREE + 1)], float)
    max_sv_norm = math.sqrt(largest) * (1.0 + (function.n_features + 8) * 2.0 * UNIT64)
    return (sums * (1 + 1e-9)) ** 2 / factorials, tails, max_sv_norm
