"""The core's limits on terms and their sums, compared with direct sums in extended precision."""

from __future__ import annotations

import numpy as np
import pytest

from approxsvm import _native
from approxsvm.reference.term_sums import term_sums

Extended = np.longdouble


@pytest.mark.parametrize("power", range(7))
@pytest.mark.parametrize("scale", [1e-40, 1.0, 1e40])
def test_moduli_are_sums_of_limits(power: int, scale: float) -> None:
    rng = np.random.default_rng(power)
    alphas, moduli = scale * rng.random(30), 10.0 ** rng.uniform(-3, 3, (2, 30))
    sums, r = term_sums(power, alphas, 0.7, moduli), rng.random(5) / scale
    reach = alphas.astype(Extended) * r[:, np.newaxis] + Extended(0.7)
    q = max(power, 1)
    for order, factor in enumerate((1, q)):
        exact = (moduli[:, np.newaxis] * factor * alphas.astype(Extended) ** order * reach ** (q - order)).sum(axis=2).T
        found = sums.moduli_at(r, order)
        assert (exact <= found * (1 + 1e-14)).all()
        assert (found <= exact * (1 + 1e-12)).all()
    polynomials = (sums.polynomials[:, np.newaxis] * r[:, np.newaxis] ** np.arange(q + 1)).sum(axis=2).T
    np.testing.assert_allclose(polynomials, sums.moduli_at(r), rtol=1e-12)
    errors, majorants = sums.errors(3.0, 5.0, sums.moduli_at(r)), sums.majorants(3.0, 5.0)
    np.testing.assert_allclose((majorants[:, np.newaxis] * r[:, np.newaxis] ** np.arange(q + 1)).sum(axis=2).T, errors)
    np.testing.assert_allclose(errors, (3.0 * q + 5.0 * bool(power)) * polynomials + 5.0 * (not power) * moduli.sum(1))


@pytest.mark.parametrize(
    ("power", "function"), [*((p, lambda t, p=p: t**p) for p in range(1, 7)), (0, np.tanh), (0, np.cos)]
)
def test_limits_of_derivatives(power: int, function: object) -> None:
    for reach in (0.3, 2.5):
        t = np.linspace(-reach, reach, 4001)
        derivative = function(t)  # type: ignore[operator]
        for order in range(3):
            limit = _native.term_limit(power, order, reach)
            assert np.abs(derivative).max() <= limit * (1 + 1e-4) + 1e-6
            if power:
                assert np.abs(derivative).max() >= 0.99 * limit
            derivative = np.gradient(derivative, t)
