"""Expansions of one decision function about many centers, with their certificates: which sums to take, and how."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.expansion import gram, taylor
from approxsvm.expansion.certificate import MAX_FEATURES_SHARPENED, CenterSums, Certificates, certificates
from approxsvm.expansion.decision_function import DecisionFunction
from approxsvm.expansion.gram import DIRECTION_CONTRACTION, LAST_DEGREE, InOrder, one_by_one
from approxsvm.expansion.kernel_sums import ExpansionPoint, KernelSums, kernel_sums, mapped_in_order
from approxsvm.expansion.monomials import n_monomials, spectrum, sq_norm
from approxsvm.expansion.taylor import Expansions
from approxsvm.model.constants import CONTRACTIONS, UNIT64
from approxsvm.model.kernel_model import FloatArray, KernelModel
from approxsvm.threads import all_threads

# Operations, some 4e10 a second and core, that norms beyond the degree may cost: all of them, and the first at need.
_WORK, _MOST_WORK = 2e11, 1e13
# Of the moments of one center; those of every thread are in memory at once.
_MOST_MOMENTS = 1 << 22
# 2 gamma ||z - center||^2 of a typical row near a center.
_TYPICAL_S = 0.3
_ROWS = 512


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
) -> tuple[Expansions, Certificates]:
    """Expand one decision function about every center, and bound what each expansion leaves out.

    The caller limits BLAS to one thread: the work is shared out to threads here, and the result does not depend on
    their number.

    Parameters
    ----------
    model : KernelModel
    centers : ndarray of shape (n_centers, n_features), float32
        Any points; rows should be near one of them.
    degree : int
        1 to 6.
    decision : int
        Position in ``model.intercept``.
    typical_s : ndarray of shape (n_centers,), optional
        2 gamma ||z - center||^2 of the rows to expect: where the bounds are to be small.
    varying : ndarray of shape (n_varying,), optional
        Columns, ascending: everything is said of rows whose other features are the center's.
    directions : bool
        Whether the form that knows the direction of a row is wanted; there is one for degree 2 only.
    progress : callable, optional
        Told the share of the work that is done, from 0 to 1.

    Returns
    -------
    Expansions
    Certificates

    Raises
    ------
    UnsupportedModelError
        An expansion would not fit in memory.
    """
    n_centers, d = len(centers), model.n_features if varying is None else len(varying)
    taylor.check_size(d, degree)
    directions = directions and degree == 2 and d <= MAX_FEATURES_SHARPENED
    function = DecisionFunction(model, decision)
    tell = progress or (lambda _: None)

    slices: dict[bytes, DecisionFunction] = {}

    def local(c: int) -> ExpansionPoint:
        if varying is None:
            return ExpansionPoint(function, centers[c])
        key = np.delete(centers[c], varying).tobytes()
        if key not in slices:
            slices[key] = function.on_slice(centers[c], varying)
        return ExpansionPoint(slices[key], centers[c][varying])

    in_one_pass = n_centers == 1 and varying is None and _one_pass_only(function, degree)
    last = 0 if in_one_pass else _last_moment(local(0).function, n_centers, degree)
    parts = [np.empty((n_centers, n_monomials(d, k))) for k in range(degree + 1)]

    def expand(c: int) -> tuple[ExpansionPoint, list[FloatArray]]:
        here = local(c)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # infinity and NaN: refused when written
            moments = taylor.moments_about(here.function, here.center, last or degree)
            coefficients = taylor.coefficients_of(here.function, moments[: degree + 1])
            for part, of_degree in zip(parts, coefficients, strict=True):
                part[c] = of_degree
        return here, moments

    def about(c: int, in_order: InOrder, tell: Callable[[float], None]) -> CenterSums:
        here, moments = expand(c)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            if last:
                return _from_moments(here, degree, directions, moments)
            return _from_gram(here, degree, directions, in_order, tell)

    with ThreadPoolExecutor(all_threads()) as pool:

        def side_by_side(f: Callable[[Any], Any], arguments: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
            return mapped_in_order(pool, f, arguments)

        if in_one_pass:
            expanded = pool.submit(expand, 0)
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                found, kernel = _from_one_pass(local(0), side_by_side, tell)
            expanded.result()
            sums = [found]
        else:
            kernel = _sums_over_kernel(function, n_centers, local, varying is not None, lambda x: tell(0.3 * x))
            if n_centers == 1:  # the threads share the center
                sums = [about(0, side_by_side, lambda x: tell(0.3 + 0.7 * x))]
            else:
                sums = []
                for c, center_sums in mapped_in_order(pool, lambda c: about(c, one_by_one, _ignore), range(n_centers)):
                    sums.append(center_sums)
                    tell(0.3 + 0.7 * (c + 1) / n_centers)
    directions = directions and all(center.direction is not None for center in sums)
    typical = np.full(n_centers, _TYPICAL_S) if typical_s is None else typical_s
    max_sv_norms = np.array([center.max_sv_norm for center in sums])
    expansions = Expansions(parts[0][:, 0], tuple(parts[1:]), max_sv_norms)
    return expansions, certificates(function, kernel, sums, degree, typical, n_varying=d, directions=directions)


def _sums_over_kernel(
    function: DecisionFunction,
    n_centers: int,
    local: Callable[[int], ExpansionPoint],
    sliced: bool,
    progress: Callable[[float], None],
) -> KernelSums:
    """W and the contracted energies; on slices these are of another kernel matrix."""
    if not sliced:
        return kernel_sums(function, n_centers, local, contracted=n_centers > 1, progress=progress)
    whole = kernel_sums(function, 0, local, contracted=False, progress=lambda share: progress(0.2 * share))
    slices = kernel_sums(
        local(0).function, n_centers, local, contracted=True, progress=lambda share: progress(0.2 + 0.8 * share)
    )
    return replace(whole, contracted_sq=slices.contracted_sq, faded_moduli=slices.faded_moduli)


def value_range(model: KernelModel, decision: int = 0) -> float:
    """Largest less smallest decision value at the support vectors; 0 where that overflows."""
    function = DecisionFunction(model, decision)
    if function.n_sv == 0:
        return 0.0

    def nowhere(_: int) -> ExpansionPoint:
        raise AssertionError("no center was asked for")

    values = kernel_sums(function, 0, nowhere, contracted=False, progress=_ignore).values
    found = float(np.ptp(values)) * function.unit
    return found if np.isfinite(found) else 0.0


def _ignore(share: float) -> None:
    """Progress that nobody asked for."""


def _sharpened(function: DecisionFunction, degree: int) -> tuple[int, ...]:
    """Degrees whose norm is sharpened by the largest eigenvalue: the first two that are dropped."""
    return (degree + 1, degree + 2) if function.n_features <= MAX_FEATURES_SHARPENED else ()


def _last_moment(function: DecisionFunction, n_centers: int, degree: int) -> int:
    """The highest degree of moments that is worth its price, or 0 where powers of the Gram matrix are."""
    d, n_sv = function.n_features, function.n_sv

    def work(last: int) -> float:  # per center; measured: 5.5 of the Gram matrix's operations for each moment
        return 5.5 * n_sv * n_monomials(d, last)

    gram_work = float(n_sv) ** 2 * (d * (1 + len(_sharpened(function, degree)) + (degree == 2)) + 150)
    highest = [
        last
        for last in range(degree + 1, min(degree + 2, LAST_DEGREE) + 1)
        if n_monomials(d, last) <= _MOST_MOMENTS and d <= MAX_FEATURES_SHARPENED
    ]
    if n_centers * gram_work <= _WORK or (highest and gram_work <= work(highest[0])):
        return 0
    affordable = [last for last in highest if n_centers * work(last) <= _WORK]
    if affordable:
        return affordable[-1]
    if highest and n_centers * work(highest[0]) <= _MOST_WORK:
        return highest[0]
    return 0 if n_centers == 1 or n_centers * gram_work <= _MOST_WORK else degree


def _from_gram(
    local: ExpansionPoint,
    degree: int,
    directed: bool,
    in_order: InOrder,
    progress: Callable[[float], None],
) -> CenterSums:
    sharpened = _sharpened(local.function, degree)
    return _center_sums(local, gram.gram_sums(local.function, local.center, sharpened, directed, in_order, progress))


def _one_pass_only(function: DecisionFunction, degree: int) -> bool:
    """Whether there is time for one pass over all pairs of support vectors alone.

    G then takes the place of the G_k, each of which is at most a multiple of it; it begins with degree 3.
    """
    d = function.n_features
    return degree >= 2 and d <= MAX_FEATURES_SHARPENED and gram.is_huge(function.n_sv, d)


def _from_one_pass(
    local: ExpansionPoint, in_order: InOrder, progress: Callable[[float], None]
) -> tuple[CenterSums, KernelSums]:
    function = local.function
    found = gram.gram_sums(function, local.center, (), True, in_order, progress, with_kernel=True)
    energies, moduli = np.full((2, 1, len(CONTRACTIONS)), np.inf)
    energies[:, 0], moduli[:, 0] = found.kernel_sq, np.abs(function.coef).sum()
    path = gram.sum_path(function.n_sv, function.n_features)
    kernel = KernelSums(
        found.kernel_sq, found.kernel_moduli_sq, np.empty(0), energies, moduli, found.half_sq_radius, path
    )
    return _center_sums(local, found), kernel


def _center_sums(local: ExpansionPoint, found: gram.GramSums) -> CenterSums:
    function = local.function
    moduli_sq, max_sv_norm = _moduli(local)
    path, terms = gram.sum_path(function.n_sv, function.n_features), np.zeros(len(found.degree_sq))
    return CenterSums(
        found.degree_sq,
        found.spectra,
        found.direction,
        path,
        terms,
        moduli_sq,
        max_sv_norm,
        function.half_sq_offset,
    )


def _from_moments(local: ExpansionPoint, degree: int, directed: bool, moments: list[FloatArray]) -> CenterSums:
    function, d = local.function, local.function.n_features
    moduli_sq, max_sv_norm = _moduli(local)
    spectra = {k: spectrum(moments[k], d, k) for k in _sharpened(function, degree) if k < len(moments)}
    parts = [DIRECTION_CONTRACTION ** (k - 3) * spectra[k] for k in range(3, len(moments))] if directed else []
    return CenterSums(
        degree_sq=np.array([sq_norm(moment, d, k) for k, moment in enumerate(moments)]),
        spectra=spectra,
        direction=np.sum(parts, axis=0) if parts else None,
        path=2 * function.n_sv + 2,
        terms=np.array([float(len(moment)) for moment in moments]),
        moduli_sq=moduli_sq,
        max_sv_norm=max_sv_norm,
        half_sq_offset=function.half_sq_offset,
    )


def _moduli(local: ExpansionPoint) -> tuple[FloatArray, float]:
    """(sum_i |w_i| (sqrt(2 gamma) ||xt_i||)^k)^2 / k! for k = 0, 1, ..., and max ||xt_i||, rounded up."""
    sums, largest = np.zeros(LAST_DEGREE + 1), 0.0
    function = local.function
    for first, block in function.blocks_about(local.center, _ROWS):
        sq_norm = np.einsum("ij,ij->i", block, block)
        largest = max(largest, float(sq_norm.max()))
        norm = np.sqrt(2.0 * function.gamma * sq_norm)
        weight = np.abs(function.coef[first : first + len(block)]) * np.exp(-0.5 * norm**2)
        for k in range(LAST_DEGREE + 1):
            sums[k] += float(weight @ norm**k)
    factorials = np.array([math.factorial(k) for k in range(LAST_DEGREE + 1)], float)
    max_sv_norm = math.sqrt(largest) * (1.0 + (function.n_features + 8) * 2.0 * UNIT64)
    return (sums * (1 + 1e-9)) ** 2 / factorials, max_sv_norm
