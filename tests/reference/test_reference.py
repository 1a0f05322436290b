"""The definitions of reference/ against forty digits: what they say of their own rounding holds."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb, factorial, prod
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.sparse import csr_array

from approxsvm.model.cosine_model import CosineModel
from approxsvm.model.kernel_model import KernelModel
from approxsvm.model.single_model import SingleModel
from approxsvm.model.taylor_model import TaylorModel
from approxsvm.reference.decision_values import decision_function
from approxsvm.reference.definition import GaussianDefinition, definition_of

mpf = mpmath.mpf


def dot(a: Any, b: Any) -> Any:
    return mpmath.fdot([mpf(float(x)) for x in a], [mpf(float(y)) for y in b])


def exact_value(model: SingleModel, decision: int, z: Any) -> Any:
    """In forty digits, by the formulas of the models' docstrings."""
    intercept = mpf(float(model.intercept[decision]))
    if isinstance(model, CosineModel):
        angles = [dot(w, z) + mpf(float(p)) for w, p in zip(model.frequencies, model.phases, strict=True)]
        return intercept + mpmath.fsum(
            mpf(float(c)) * mpmath.cos(t) for c, t in zip(model.coef[0], angles, strict=True)
        )
    gamma = mpf(float(model.gamma))
    if isinstance(model, TaylorModel):
        terms = []
        for k, weights in enumerate(model.weights):
            for weight, factors in zip(weights, combinations_with_replacement(range(len(z)), k), strict=True):
                alpha = prod(factorial(factors.count(i)) for i in set(factors))
                power = mpmath.fprod(mpf(float(z[i])) for i in factors)
                terms.append(mpf(float(weight)) * mpmath.sqrt((2 * gamma) ** k / alpha) * power)
        return intercept + mpmath.exp(-gamma * dot(z, z)) * mpmath.fsum(terms)
    kernels = []
    for x in model.dense_support_vectors(0, model.n_sv):
        if model.is_sigmoid:
            kernels.append(mpmath.tanh(gamma * dot(x, z) + mpf(float(model.coef0))))
        elif model.is_polynomial:
            kernels.append((gamma * dot(x, z) + mpf(float(model.coef0))) ** model.degree)
        else:
            off = [mpf(float(a)) - mpf(float(b)) for a, b in zip(x, z, strict=True)]
            kernels.append(mpmath.exp(-gamma * mpmath.fdot(off, off)))
    return intercept + mpmath.fdot([mpf(float(a)) for a in model.coefficients(decision)], kernels)


def some_models(seed: int) -> dict[str, SingleModel]:
    """One of each kind, near and far from the origin, with coefficients of many sizes."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 6)), 18
    vectors = rng.normal(size=(n, d)) + rng.choice([0.0, 10.0, 1e3])
    coef = rng.normal(size=(2, n)) * 10.0 ** rng.integers(-3, 4, size=(2, n))
    gamma = float(10.0 ** rng.uniform(-3, 1)) / d
    classes: dict[str, Any] = {"labels": np.arange(3), "n_support": np.array([6, 5, 7])}
    three = rng.normal(size=3)
    weights = tuple(rng.normal(size=comb(d + k - 1, k)) for k in range(4))
    phases = rng.uniform(0.0, 6.0, n)
    return {
        "gaussian": KernelModel("regression", vectors, coef[:1], three[:1], gamma),
        "gaussian, classes": KernelModel("classification", csr_array(vectors), coef, three, gamma, **classes),
        "polynomial": KernelModel("regression", vectors, coef[:1], three[:1], gamma, degree=3, coef0=-0.7),
        "polynomial, classes": KernelModel("classification", vectors, coef, three, gamma, degree=2, **classes),
        "sigmoid": KernelModel("regression", vectors, coef[:1], three[:1], gamma, coef0=-0.7, is_sigmoid=True),
        "taylor": TaylorModel("regression", weights, three[:1], gamma),
        "cosines": CosineModel("regression", rng.normal(size=(n, d)), phases, coef[0], three[:1]),
    }


@pytest.mark.parametrize("kind", some_models(0))
@pytest.mark.parametrize("seed", range(6))
def test_rounding_is_within_what_the_reference_says(kind: str, seed: int) -> None:
    model = some_models(seed)[kind]
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(3, model.n_features)) * 10.0 ** rng.integers(-1, 2, size=(3, 1))
    if isinstance(model, KernelModel):
        rows[1] = model.dense_support_vectors(3, 4)[0] + 1e-3
    definition, naive = definition_of(model), decision_function(model, rows)
    with mpmath.workdps(40):
        exact = [[exact_value(model, k, z) for k in range(model.n_decisions)] for z in rows]
        for values in (naive, definition.values(rows)):
            errors = np.vectorize(lambda value, true: float(abs(mpf(value) - true)))(values, np.array(exact, object))
            assert (errors <= definition.rounding(rows, values)).all()
        if isinstance(definition, GaussianDefinition):
            last, longest = model.n_decisions - 1, [float(definition.vector_norms.max())]
            for z, values in zip(rows, exact, strict=True):
                value, error = definition.by_norms(z, last, longest)
                assert abs(mpf(value) - values[last]) <= error
    np.testing.assert_array_equal(decision_function(model, rows, [0])[:, 0], naive[:, 0])
