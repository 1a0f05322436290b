"""Expansions around many centers: parts compared with brute force, and bounds with higher-precision arithmetic.

Coefficients and rows are treated as real numbers here; test_certificate.py tests the float32 part of the bounds.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from conftest import random_model
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import gammainc, gammaln
from zoo import oracle
from zoo.balls import Extended

from approxsvm import _native
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.expansion import kernel_sums, monomials, stack
from approxsvm.expansion.decision_function import DecisionFunction
from approxsvm.expansion.stack import expand_and_certify
from approxsvm.ir.constants import UNIT32, UNIT64

GRAM = 0
# How norms are computed: from powers of the Gram matrix, or from moments this far beyond the degree.
SOURCES = {"gram": lambda degree: GRAM, "none": lambda degree: degree} | {
    f"moments {more}": lambda degree, more=more: min(degree + more, 8) for more in (1, 2, 4)
}

needs_extended = pytest.mark.skipif(np.finfo(Extended).nmant < 63, reason="long double has no more digits than float64")


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Any:
    def choose(name: str, limit: float = 0.0) -> None:  # infinity means in float32 and without energies
        monkeypatch.setattr(stack, "_last_moment", lambda *shape: SOURCES[name](shape[3]))
        monkeypatch.setattr(stack, "_NEGLIGIBLE", limit)
        monkeypatch.setattr(stack, "_IMPRECISE", limit)

    return choose


# --- the oracle -------------------------------------------------------------------------------------------------------


def exact_values(model: Any, X: Any, decision: int) -> Any:
    """Return the decision values without the intercept."""
    return oracle.decision_values(replace(model, intercept=0.0 * model.intercept), X)[0][:, decision]


def exponents(d: int, degree: int) -> Any:
    return list(itertools.combinations_with_replacement(range(d), degree))


def expanded_values(model: Any, expansions: Any, c: int, u: Any) -> Any:
    """Evaluate an expansion in extended precision, without the intercept, at rows u = z - center."""
    total = np.full(len(u), Extended(expansions.constants[c]))
    for k, part in enumerate(expansions.parts, 1):
        for coefficient, alpha in zip(part[c], exponents(u.shape[1], k), strict=True):
            total += Extended(coefficient) * np.prod(u[:, alpha], axis=1)
    return total * np.exp(-Extended(model.gamma) * (u**2).sum(axis=1))


def phi(k: int, s: Any) -> Any:
    return np.exp(-s / 2 + (k / 2 * np.log(s) if k else 0.0) - gammaln(k + 1) / 2)


def bounds_of(certificates: Any, degree: int, c: int, s: Any, v: Any = None) -> Any:
    """Evaluate the formula of `Certificates`; with v = sqrt(2 gamma) u, use each row's direction."""
    m, theta = certificates.first_remainder_degree, certificates.contractions[c]
    bound = certificates.remainders[c] * np.exp((1 / theta - 1) * s / 2) * np.sqrt(gammainc(m, s / theta))
    capped = np.minimum(bound, certificates.total * np.sqrt(gammainc(m, s)))
    bound = np.where(s < 1400, bound, capped) if v is None else capped
    norms = sum((certificates.norms[c, k] * phi(k, s) for k in range(degree + 1, m)), np.zeros_like(s))
    if v is not None and certificates.directions is not None:
        pairs = np.array([v[:, i] * v[:, j] for i, j in exponents(v.shape[1], 2)])
        form = certificates.directions[c] @ pairs + certificates.direction_errors[c] * s
        series = sum(2.0 ** (k - 3) * s ** (k - 1) / math.factorial(k) for k in range(3, m))
        # fmin: an unknown direction (infinite error) must not matter, even multiplied by 0
        norms = np.fmin(norms, np.exp(-s / 2) * np.sqrt(np.maximum(form, 0.0) * series))
    bound = bound + norms
    return bound * (1 + 1e-10) + certificates.coefficient_errors[c]


def worst_directions(model: Any, center: Any, degree: int, decision: int) -> Any:
    """Return directions in which the first dropped part is largest."""
    with np.errstate(all="ignore"):
        y = (model.dense_support_vectors(0, model.n_sv) - center) * math.sqrt(2 * model.gamma)
        w = model.coefficients(decision) * np.exp(-0.5 * (y * y).sum(axis=1))
        form = (w[:, None] * y).T @ (y @ y.T) ** degree @ (w[:, None] * y)
    if not (np.isfinite(form).all() and form.any()):
        return np.eye(model.n_features)[:1]
    return np.linalg.eigh(form)[1].T[[-1, 0]]


def judge(model: Any, centers: Any, degree: int, *, decision: int = 0, seed: int = 0, **options: Any) -> Any:
    """Assert that no row violates a bound, for any expansion center; return the largest ratio error / bound."""
    rng = np.random.default_rng(seed)
    expansions, certificates = expand_and_certify(model, centers, degree, decision=decision, **options)
    vectors = model.dense_support_vectors(0, model.n_sv)
    worst = 0.0
    for c, center in enumerate(centers.astype(float)):
        radii = np.sqrt(np.array([1e-6, 0.01, 0.1, 0.4, 1, 2, 4, 8, 20, 60]) / (2 * model.gamma or 1.0))
        directions = [*worst_directions(model, center, degree, decision), rng.normal(size=model.n_features)]
        steps = [sign * r * direction for direction in directions for r in radii for sign in (1, -1)]
        rows = np.concatenate([center + np.array(steps), vectors[:8], 0.5 * (vectors[-8:] + center), centers])
        u = rows.astype(Extended) - center
        exact, found = exact_values(model, rows, decision), expanded_values(model, expansions, c, u)
        s = (2 * model.gamma * (u**2).sum(axis=1)).astype(float)
        slack = (model.n_sv + 50) * 2.0**-62 * certificates.sum_moduli
        with np.errstate(all="ignore"):
            error = np.abs(found - exact)
            for v in (None, (math.sqrt(2 * model.gamma) * u).astype(float)):
                bound = bounds_of(certificates, degree, c, np.maximum(s, 1e-300), v)
                finite = np.isfinite(bound)
                broken = finite & ~(error <= bound + slack)
                assert not np.isnan(bound).any()
                assert not broken.any(), (c, s[broken], error[broken], bound[broken])
                ratios = (error - slack)[finite] / np.maximum(bound[finite], 1e-320)
                worst = max(worst, float(ratios.max(initial=0.0)))
    return worst


# --- parts -----------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), d=st.integers(1, 20), degree=st.integers(1, 6), n=st.integers(0, 40))
def test_moments_are_those_of_brute_force(seed, d, degree, n):
    degree = min(degree, 3) if d > 6 else degree
    rng = np.random.default_rng(seed)
    rows, weights = rng.normal(size=(n, d)), rng.normal(size=n)
    blocks = [(rows[i : i + 7], weights[i : i + 7]) for i in range(0, n, 7)]
    sums = monomials.moments(blocks, d, degree)
    for k, moment in enumerate(sums):
        brute = [weights @ np.prod(rows[:, alpha], axis=1) for alpha in exponents(d, k)]
        np.testing.assert_allclose(moment, brute, rtol=1e-10, atol=1e-10)
        gram = rows @ rows.T
        square = weights @ gram**k @ weights / math.factorial(k)
        assert monomials.sq_norm(moment, d, k) == pytest.approx(square, rel=1e-9, abs=1e-9)
        if k > 1:
            form = rows.T @ (np.outer(weights, weights) * gram ** (k - 1)) @ rows / math.factorial(k)
            np.testing.assert_allclose(monomials.spectrum(moment, d, k), form, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_tails_and_heads_of_every_length(degree, monkeypatch):
    rng = np.random.default_rng(degree)
    block = [(rng.normal(size=(9, 18)), rng.normal(size=9))]
    whole = monomials.moments(block, 18, degree)
    monkeypatch.setattr(monomials, "_MOST_TAILS", (1, 1))
    for mine, theirs in zip(monomials.moments(block, 18, degree), whole, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_parts_are_those_of_brute_force(degree, sparse):
    model = random_model(degree, n_sv=30, n_features=4, gamma=0.2)
    if sparse:
        model = random_model(degree, 30, 4, 0.2, support_vectors=csr_array(model.support_vectors))
    centers = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    expansions, _ = expand_and_certify(model, centers, degree)
    vectors, coef = model.dense_support_vectors(0, 30), model.coefficients(0)
    for c, center in enumerate(centers.astype(float)):
        x = vectors - center
        weights = coef * np.exp(-0.2 * (x * x).sum(axis=1))
        assert expansions.constants[c] == pytest.approx(weights.sum())
        assert expansions.max_sv_norms[c] == pytest.approx(np.linalg.norm(x, axis=1).max())
        for k, part in enumerate(expansions.parts, 1):
            brute = []
            for alpha in exponents(4, k):
                multiplicity = math.factorial(k) / math.prod(math.factorial(alpha.count(i)) for i in set(alpha))
                brute.append(0.4**k / math.factorial(k) * multiplicity * (weights @ np.prod(x[:, alpha], axis=1)))
            np.testing.assert_allclose(part[c], brute, rtol=1e-10, atol=1e-13)


def test_one_vs_one_pairs_leave_out_the_other_classes():
    rng = np.random.default_rng(0)
    model = random_model(
        0, n_sv=12, n_features=3, labels=np.arange(3), n_support=np.array([4, 4, 4]),
        dual_coef=rng.normal(size=(2, 12)), intercept=rng.normal(size=3),
    )  # fmt: skip
    centers = rng.normal(size=(2, 3)).astype(np.float32)
    for decision, others in enumerate([slice(8, 12), slice(4, 8), slice(0, 4)]):
        used = np.delete(np.arange(12), others)
        alone = random_model(
            0, n_sv=8, n_features=3, support_vectors=model.support_vectors[used],
            dual_coef=model.coefficients(decision)[None, used], intercept=np.zeros(1),
        )  # fmt: skip
        pair, single = expand_and_certify(model, centers, 2, decision=decision), expand_and_certify(alone, centers, 2)
        for part, expected in zip(pair[0].parts, single[0].parts, strict=True):
            np.testing.assert_array_equal(part, expected)
        np.testing.assert_array_equal(pair[1].norms, single[1].norms)
        judge(model, centers, 2, decision=decision)


def test_too_many_coefficients_are_refused():
    model = random_model(0, n_sv=2, n_features=800)
    with pytest.raises(UnsupportedModelError, match="degree 3 needs 85653600 coefficients for 800 features"):
        expand_and_certify(model, np.zeros((1, 800), np.float32), 3)


# --- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.attack
@pytest.mark.slow
@needs_extended
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_sv=st.integers(0, 40),
    d=st.integers(1, 6),
    degree=st.integers(1, 6),
    log_gamma=st.floats(-8, 4),
    offset=st.sampled_from([0.0, 0.0, 1.0, 1e4]),
    distance=st.sampled_from([0.0, 1.0, 10.0, 1e3, 1e20]),
    opposite=st.booleans(),
    unit_spread=st.booleans(),
    n_centers=st.integers(1, 3),
    name=st.sampled_from(sorted(SOURCES)),
    negligible=st.sampled_from([0.0, math.inf]),
    imprecise=st.sampled_from([0.0, math.inf]),
)
def test_no_bound_is_broken(
    seed, n_sv, d, degree, log_gamma, offset, distance, opposite, unit_spread, n_centers, name, negligible, imprecise
):
    rng = np.random.default_rng(seed)
    gamma = 10.0**log_gamma
    spread = 1.0 if unit_spread else 10.0 ** rng.uniform(-1, 0.7) / math.sqrt(2 * gamma * d)
    x, coef = spread * rng.normal(size=(n_sv, d)) + offset * spread, rng.normal(size=n_sv)
    if opposite:  # the sums cancel, as in a trained model
        x[n_sv // 2 :] = x[: n_sv - n_sv // 2] * (
            1 + 10.0 ** rng.uniform(-12, -1) * rng.normal(size=x[n_sv // 2 :].shape)
        )
        coef[n_sv // 2 :] = -coef[: n_sv - n_sv // 2]
    model = random_model(seed, n_sv, d, gamma, support_vectors=x, dual_coef=coef[None], intercept=np.zeros(1))
    centers = offset * spread + spread * rng.normal(size=(n_centers, d))
    centers[0] += distance * spread
    chosen = stack._last_moment, stack._NEGLIGIBLE, stack._IMPRECISE
    stack._last_moment = lambda *shape: SOURCES[name](shape[3])
    stack._NEGLIGIBLE, stack._IMPRECISE = negligible, imprecise
    try:
        judge(model, centers.astype(np.float32), degree, seed=seed, typical_s=10.0 ** rng.uniform(-3, 2, n_centers))
    finally:
        stack._last_moment, stack._NEGLIGIBLE, stack._IMPRECISE = chosen


@needs_extended
@pytest.mark.parametrize("name", sorted(SOURCES))
@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, 6])
def test_bounds_are_reached(degree, name, source):
    """With two support vectors of opposite or equal sign, little but the dropped degrees contributes to the error."""
    source(name)
    model = random_model(
        0, 2, 2, 0.5, support_vectors=np.array([[0.4, 0.0], [-0.4, 0.0]]),
        dual_coef=np.array([[1.0, 1.0 if degree % 2 else -1.0]]), n_support=np.array([1, 1]), intercept=np.zeros(1),
    )  # fmt: skip
    assert judge(model, np.zeros((2, 2), np.float32), degree, typical_s=np.full(2, 0.5)) > 0.9


@needs_extended
@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("name", sorted(SOURCES))
def test_coefficients_of_any_size(scale, name, source):
    source(name)
    coef = scale * np.round(3 * np.random.default_rng(1).normal(size=(1, 12)))
    model = random_model(1, 12, 3, 0.3, dual_coef=coef, intercept=np.zeros(1))
    centers = np.array([[0, 0, 0], [1, 0, 0], [50, 0, 0]], np.float32)
    expansions, certificates = expand_and_certify(model, centers, 2)
    assert np.isfinite(certificates.norms).all()
    assert certificates.total <= certificates.sum_moduli * (1 + 1e-9)
    if scale > 1e-300:
        judge(model, centers, 2)
    assert len(expansions.parts) == 2


@needs_extended
@pytest.mark.parametrize("name", sorted(SOURCES))
@pytest.mark.parametrize("n_sv", [0, 1, 30])
def test_constant_functions(n_sv, name, source):
    source(name)
    for gamma in (0.0, 1e-30):
        model = random_model(0, n_sv, 3, gamma, intercept=np.zeros(1))
        judge(model, np.array([[0, 0, 0], [1e30, 0, 0]], np.float32), 3)


@pytest.mark.parametrize("name", sorted(SOURCES))
@pytest.mark.parametrize("spread", [1e100, 1e160, 1e300])
def test_overflow_knows_nothing_and_is_never_nan(spread, name, source):
    source(name)
    vectors = spread * np.random.default_rng(0).normal(size=(20, 3))
    for gamma in (1e-60, 1.0, 1e60):
        model = random_model(0, 20, 3, gamma, support_vectors=vectors)
        _, certificates = expand_and_certify(model, np.zeros((2, 3), np.float32), 2)
        for numbers in (certificates.norms, certificates.remainders, certificates.coefficient_errors):
            assert (numbers >= 0).all()
        assert certificates.directions is None or np.isfinite(certificates.directions).all()


def test_support_vectors_far_from_a_center_do_not_spoil_its_bound():
    """Contracted norms help with two clusters ten units apart."""
    rng = np.random.default_rng(0)
    crowd = 0.3 * rng.normal(size=(40, 3))
    model = random_model(0, 80, 3, 0.5, support_vectors=np.concatenate([crowd, crowd + 10.0]))
    centers = np.array([crowd.mean(axis=0), crowd.mean(axis=0) + 10.0], np.float32)
    _, both = expand_and_certify(model, centers, 2, typical_s=np.full(2, 0.1))
    plain = both.total * np.sqrt(gammainc(both.first_remainder_degree, 0.1))
    assert (both.contractions < 1).all()
    assert bounds_of(both, 8, 0, np.array(0.1)) < 1e-2 * plain


# --- sums in higher precision ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.05, 1.0])
@pytest.mark.parametrize("name", sorted(SOURCES))
@pytest.mark.parametrize("varying", [None, np.array([0, 2, 4])], ids=["whole", "sliced"])
def test_norms_are_tight_upper_bounds(gamma, name, varying, source):
    """Compare N_k, T_theta, W, the traces, and W_theta for every theta with mpmath."""
    source(name)
    n, d, degree = 9, 3 if varying is None else 5, 2
    columns = np.arange(3) if varying is None else varying
    model = random_model(8, n, d, gamma)
    centers = np.random.default_rng(0).normal(size=(3, d)).astype(np.float32)
    _, certificates = expand_and_certify(model, centers, degree, varying=varying)
    source(name, math.inf)
    _, without_energies = expand_and_certify(model, centers, degree, varying=varying)
    function = DecisionFunction(model, 0)

    def local(c):
        on_slice = function if varying is None else function.on_slice(centers[c], varying)
        return kernel_sums.ExpansionPoint(on_slice, centers[c][columns])

    first = local(0).function
    sums = kernel_sums.kernel_sums(first, 3, local, contracted=True, progress=lambda _: None)
    m = certificates.first_remainder_degree - 1
    with mpmath.workdps(60):
        a = [mpmath.mpf(x) for x in model.coefficients(0)]
        pairs = list(itertools.product(range(n), range(n)))
        for c, center in enumerate(centers.astype(float).tolist()):
            y = mpmath.matrix([[mpmath.mpf(p) - mpmath.mpf(q) for p, q in zip(x, center, strict=True)]
                               for x in model.support_vectors.tolist()])  # fmt: skip
            whole = 2 * mpmath.mpf(gamma) * (y * y.T)
            w = [a[i] * mpmath.exp(-whole[i, i] / 2) for i in range(n)]
            total = mpmath.sqrt(sum(w[i] * w[j] * mpmath.exp(whole[i, j]) for i, j in pairs))
            on_slice = mpmath.matrix([[y[i, int(j)] for j in columns] for i in range(n)])
            gram = 2 * mpmath.mpf(gamma) * (on_slice * on_slice.T)
            squares = [sum(w[i] * w[j] * gram[i, j] ** k for i, j in pairs) / mpmath.factorial(k) for k in range(9)]
            energies = [sum(w[i] * w[j] * mpmath.exp(theta * gram[i, j]) for i, j in pairs)
                        for theta in kernel_sums.CONTRACTIONS]  # fmt: skip
            for column, energy in list(enumerate(energies))[0 if varying is None else 1 :]:
                excess = sums.contracted_sq[c, column] * function.unit**2 - float(energy)
                moduli = function.unit * sums.faded_moduli[c, column] if column else 0.0
                least = 2.1 * UNIT32 * moduli * math.sqrt(energy) + 1e-12 * float(energy)  # at_i in float32
                assert -least <= excess <= 1e-4 * moduli**2 + least

            def remainder_of(these, c=c, energies=energies, squares=squares):
                theta = float(these.contractions[c])
                energy = energies[kernel_sums.CONTRACTIONS.index(theta)]
                return mpmath.sqrt(energy - sum(mpmath.mpf(theta) ** k * squares[k] for k in range(m + 1)))

            assert without_energies.remainders[c] >= float(remainder_of(without_energies)) * (1 - 1e-15)
            remainder = remainder_of(certificates)
            found = [*certificates.norms[c, :3], certificates.remainders[c], certificates.total]
            expected = [*map(mpmath.sqrt, squares[:3]), remainder, total]
            if m >= 3:
                found.append(math.sqrt(certificates.direction_traces[c]))
                expected.append(mpmath.sqrt(sum(squares[k] / 2 ** (k - 3) for k in range(3, m + 1))))
                assert certificates.norms[c, 3] <= float(mpmath.sqrt(squares[3])) * (1 + 1e-6)
            slack = 3e-6 * float(expected[4])  # slack in a square is relatively larger for a small norm
            floors = np.full(len(found), slack)
            column = kernel_sums.CONTRACTIONS.index(float(certificates.contractions[c]))
            of_theta = function.unit * sums.faded_moduli[c, column] if column else 0.0
            floors[3] += math.sqrt(float(remainder) ** 2 + 1e-4 * of_theta**2) - float(remainder)  # sums in float32
            if varying is not None and not column:
                floors[3] = math.inf  # on a slice, the norm is only known to be at most W
            for mine, truth, floor in zip(found, expected, floors, strict=True):
                assert float(truth) * (1 - 1e-15) <= mine <= float(truth) * (1 + 1e-6) + floor


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SOURCES))
def test_threads_do_not_change_a_bit(name, source, monkeypatch):
    source(name)
    model = random_model(0, 1300, 5, 0.3)
    centers = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    results = []
    for n_threads in (1, 3):
        monkeypatch.setattr(stack, "all_threads", lambda n=n_threads: n)
        monkeypatch.setattr(kernel_sums, "all_threads", lambda n=n_threads: n)
        results.append([expand_and_certify(model, some, 2) for some in (centers, centers[:1])])
    for one, many in zip(*results, strict=True):
        for mine, theirs in zip(one, many, strict=True):
            for field, value in vars(mine).items():
                for x, y in zip(
                    *([v] if not isinstance(v, tuple) else v for v in (value, vars(theirs)[field])), strict=True
                ):
                    np.testing.assert_array_equal(x, y)


def test_many_centers_agree_with_each_alone():
    model = random_model(0, 50, 4, 0.1)
    centers = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    expansions, certificates = expand_and_certify(model, centers, 2)
    for c in range(3):
        alone, its = expand_and_certify(model, centers[c : c + 1], 2)
        np.testing.assert_array_equal(alone.parts[1][0], expansions.parts[1][c])
        np.testing.assert_allclose(its.norms[0], certificates.norms[c], rtol=1e-12)
        assert its.contractions[0] == 1.0


def numbers_of(certificates: Any) -> list[Any]:
    return [value for value in vars(certificates).values() if value is not None]


@pytest.mark.parametrize("varying", [None, np.array([0, 2])], ids=["whole", "slices"])
@pytest.mark.parametrize("name", sorted(SOURCES))
def test_known_sums_change_nothing(varying, name, source):
    """Some centers come first, with several degrees, and then all, for two functions, which must not be mixed up."""
    source(name)
    rng = np.random.default_rng(1)
    classes = {"labels": np.arange(3), "n_support": np.full(3, 20), "intercept": np.zeros(3)}
    model = random_model(0, 60, 4, 0.1, dual_coef=rng.normal(size=(2, 60)), **classes)
    centers = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    known = stack.KnownSums()
    for decision, degree, some in [(0, 2, centers[1:3]), (1, 2, centers[1:3]), (0, 4, centers[2:]), (0, 2, centers)]:
        options = {"decision": decision, "varying": varying, "of_centers": len(centers)}
        expansions, certificates = expand_and_certify(model, some, degree, known=known, **options)
        fresh, its = expand_and_certify(model, some, degree, **options)
        for mine, other in zip(numbers_of(certificates), numbers_of(its), strict=True):
            if mine is certificates.remainders:  # float32 products depend on matrix shapes
                np.testing.assert_allclose(mine**2, other**2, rtol=1e-7, atol=1e-5 * certificates.total**2)
            elif mine is not certificates.contractions:
                np.testing.assert_allclose(mine, other, rtol=1e-7)
        for mine, other in zip(expansions.parts, fresh.parts, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("n_sv", "n_centers", "varying"), [(60, 1, None), (60, 5, None), (60, 5, np.array([0, 2]))])
def test_work_is_what_was_estimated(n_sv, n_centers, varying, monkeypatch):
    monkeypatch.setattr(stack, "_NEGLIGIBLE", 0.0)
    model = random_model(0, n_sv, 4, 0.1)
    centers = np.random.default_rng(0).normal(size=(n_centers, 4)).astype(np.float32)
    known, d = stack.KnownSums(), 4 if varying is None else len(varying)
    expand_and_certify(model, centers, 2, varying=varying, known=known)
    expected = stack.work_of(n_sv, d, n_centers, 2, is_sliced=varying is not None)
    whole = stack.work_of(n_sv, 4, 1, 2, is_sliced=False).shared  # the pass that computes W
    of_slices = expected.shared if varying is not None else 0.0
    assert known.work_of_all == pytest.approx(whole)
    assert known.work == pytest.approx(of_slices + n_centers * expected.of_center)
    expand_and_certify(model, centers, 2, varying=varying, known=known)
    assert known.work == pytest.approx(of_slices + n_centers * expected.of_center)  # nothing more


def test_known_sums_are_not_computed_again(monkeypatch, source):
    source("moments 1")
    model = random_model(0, 60, 4, 0.1)
    centers = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    known = stack.KnownSums()
    first = expand_and_certify(model, centers, 2, known=known)[1]
    for of_module, name in ((stack, "kernel_sums"), (stack.taylor, "moments_about")):
        monkeypatch.setattr(of_module, name, lambda *arguments, **options: pytest.fail("computed again"))
    np.testing.assert_array_equal(expand_and_certify(model, centers, 2, known=known)[1].norms, first.norms)


@needs_extended
@pytest.mark.parametrize("name", sorted(SOURCES))
@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_on_a_slice_it_is_the_function_of_the_other_features(degree, name, source):
    source(name)
    rng = np.random.default_rng(degree)
    model = random_model(degree, 30, 5, 0.3, intercept=np.zeros(1))
    varying = np.array([0, 2, 3])
    centers = rng.normal(size=(3, 5)).astype(np.float32)
    expansions, certificates = expand_and_certify(model, centers, degree, varying=varying)
    whole = expand_and_certify(model, centers, degree)[1]
    for c, center in enumerate(centers.astype(float)):
        off = model.dense_support_vectors(0, 30)[:, [1, 4]] - center[[1, 4]]
        restricted = random_model(
            degree,
            30,
            3,
            0.3,
            support_vectors=model.dense_support_vectors(0, 30)[:, varying],
            dual_coef=model.dual_coef * np.exp(-0.3 * (off**2).sum(axis=1)),
            intercept=np.zeros(1),
        )
        alone, of_alone = expand_and_certify(restricted, centers[c : c + 1, varying], degree)
        np.testing.assert_allclose(expansions.constants[c], alone.constants[0], rtol=1e-12)
        for part, same in zip(expansions.parts, alone.parts, strict=True):
            np.testing.assert_allclose(part[c], same[0], rtol=1e-9, atol=1e-13)
        assert certificates.total == pytest.approx(whole.total, rel=1e-12)
        assert certificates.total >= of_alone.total
        # The bound at points of the slice, by the test's own formula.
        rows = np.tile(center, (40, 1))
        rows[:, varying] += rng.normal(size=(40, 3)) * 10.0 ** rng.uniform(-2, 0.5, (40, 1))
        exact = exact_values(model, rows, 0)
        u = (rows.astype(Extended) - center)[:, varying]
        found = expanded_values(restricted, expansions, c, u)
        bound = bounds_of(certificates, degree, c, (0.6 * (u**2).sum(axis=1)).astype(float))
        assert (np.abs(found - exact) <= bound + 1e-15).all()


def test_progress_rises_to_one():
    model = random_model(0, 600, 4, 0.1)
    for n_centers in (1, 5):
        told: list[float] = []
        expand_and_certify(model, np.zeros((n_centers, 4), np.float32), 2, progress=told.append)
        assert told == sorted(told)
        assert told[-1] == 1.0


# --- powers of the Gram matrix ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_rows", "n_columns"), [(1, 1), (3, 7), (8, 8), (37, 129), (256, 255)])
def test_powers_of_the_gram_matrix(n_rows: int, n_columns: int) -> None:
    """Powers agree with NumPy's, and are bit-identical on all targets."""
    rng = np.random.default_rng(n_columns)
    gram, left, right = rng.normal(size=(n_rows, n_columns)), rng.normal(size=n_rows), rng.normal(size=n_columns)
    series = np.array([0.0, 0.5, 0.0, 2.0, -1.0])
    found = []
    for target in _native.runnable_targets():
        powers = {k: np.full_like(gram, np.nan) for k in (0, 2, 3)}
        total = np.full_like(gram, np.nan)
        sums = _native.gram_powers(gram, left, right, powers, series, total, target)
        found.append(np.concatenate([sums, total.ravel(), *(power.ravel() for power in powers.values())]))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    moduli = np.abs(left) @ np.abs(gram) ** 4 @ np.abs(right) + np.abs(left).sum() * np.abs(right).sum()
    np.testing.assert_allclose(sums, [left @ gram**k @ right for k in range(5)], rtol=0, atol=1e-13 * moduli)
    np.testing.assert_allclose(total, sum(c * gram**k for k, c in enumerate(series)), rtol=1e-13, atol=1e-13)
    for k, power in powers.items():
        np.testing.assert_allclose(power, gram**k, rtol=1e-14)
    without = _native.gram_powers(gram, left, right, {}, series, None)
    np.testing.assert_array_equal(without, sums)


def test_powers_of_matrices_that_do_not_fit_are_refused() -> None:
    gram, one, series = np.ones((2, 3)), np.ones(2), np.ones(3)
    for arguments in (
        (gram, one, one, {}, series, None),
        (gram, one, np.ones(3), {1: np.ones((3, 2))}, series, None),
        (gram, one, np.ones(3), {3: np.ones((2, 3))}, series, None),
        (gram, one, np.ones(3), {}, series, np.ones(6)),
    ):
        with pytest.raises(InputError):
            _native.gram_powers(*arguments)
    with pytest.raises(TypeError):
        _native.gram_powers(gram.astype(np.float32), one, np.ones(3), {}, series, None)


# --- blocks of the kernel matrix --------------------------------------------------------------------------------------


@needs_extended
@pytest.mark.parametrize(("n_rows", "n_columns"), [(1, 32), (37, 64), (256, 256)])
@pytest.mark.parametrize("target", _native.runnable_targets())
def test_a_block_of_the_kernel_matrix(n_rows: int, n_columns: int, target: str) -> None:
    """Compare with NumPy's extended precision, for distances of 0 and far beyond the range of exp."""
    rng = np.random.default_rng(n_columns)
    left = rng.normal(size=(n_rows, 3)) * 10.0 ** rng.uniform(-3, 3, (n_rows, 1))
    right = rng.normal(size=(n_columns, 3)) * 10.0 ** rng.uniform(-3, 3, (n_columns, 1))
    right[0] = left[0]
    gram, norms = left @ right.T, [0.5 * (rows**2).sum(axis=1) for rows in (left, right)]
    coefs = rng.normal(size=n_rows), rng.normal(size=n_columns)
    exponent = np.minimum(gram - norms[0][:, np.newaxis] - norms[1], 0.0).astype(np.longdouble)
    for n_roots in (0, 3):
        remainders = [None if k == 1 else np.full_like(gram, np.nan, np.float32) for k in range(n_roots)]
        row_sums, column_sums = np.full(n_rows, np.nan), np.full(n_columns, np.nan)
        moduli = _native.kernel_block(gram, *norms, *coefs, remainders, row_sums, column_sums, target)
        kernel = np.exp(exponent)
        for found, expected, most in [
            (row_sums, kernel @ coefs[1], kernel @ np.abs(coefs[1])),
            (column_sums, coefs[0] @ kernel, np.abs(coefs[0]) @ kernel),
            (moduli, np.abs(coefs[0]) @ kernel @ np.abs(coefs[1]), 0.0),
        ]:
            error = (25 + n_rows + n_columns) * UNIT64 * (np.abs(expected) + most)
            assert (np.abs(found - expected) <= error + 1e-300).all()
        for k, remainder in enumerate(remainders):
            theta = np.longdouble(0.5) ** (k + 1)
            fades = [np.exp(-theta * of_side.astype(np.longdouble)) for of_side in norms]
            linear = np.outer(*fades) * (1 + theta * gram)
            if remainder is not None:
                expected = np.exp(theta * exponent) - linear
                error = np.abs(remainder - expected) - 1.01 * UNIT32 * np.abs(expected)
                assert (error <= 25 * UNIT64 + 2.0**-140).all()


def test_blocks_that_do_not_fit_are_refused() -> None:
    gram, left, right = np.zeros((2, 32)), np.zeros(2), np.zeros(32)
    fits = [gram, left, right, left, right, [np.zeros((2, 32), np.float32)], np.zeros(2), np.zeros(32)]
    _native.kernel_block(*fits)
    for at, wrong in [
        (0, np.zeros((2, 33))),
        (1, np.zeros(3)),
        (2, np.zeros(64)),
        (3, np.zeros(1)),
        (4, np.zeros(31)),
        (5, [np.zeros((32, 2), np.float32)]),
        (6, np.zeros(1)),
        (7, np.zeros(2)),
    ]:
        with pytest.raises(InputError):
            _native.kernel_block(*[wrong if k == at else array for k, array in enumerate(fits)])
    with pytest.raises(InputError, match="31 columns are no multiple of 32"):
        _native.kernel_block(gram[:, :31].copy(), left, right[:31], left, right[:31], [], np.zeros(2), np.zeros(31))
