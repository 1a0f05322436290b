"""The BLAS expansion compared with the naive one, and both with the exact decision function."""

from __future__ import annotations

import numpy as np
import pytest
import second_order
from conftest import random_model
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import approxsvm
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.expansion import taylor
from approxsvm.expansion.stack import expand_and_certify
from approxsvm.expansion.validity import limit, row_norms
from approxsvm.reference.definition import definition_of


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_sv=st.integers(0, 60),
    n_features=st.integers(1, 20),
    gamma=st.floats(1e-4, 10.0),
    choice=st.sampled_from(["mean", "origin"]),
    sparse=st.booleans(),
)
def test_blas_expansion_equals_the_naive_one(seed, n_sv, n_features, gamma, choice, sparse):
    model = random_model(seed, n_sv, n_features, gamma)
    if sparse:
        model = random_model(seed, n_sv, n_features, gamma, support_vectors=csr_array(model.support_vectors))
    center = taylor.choose_center(model, choice)
    expansions, _ = expand_and_certify(model, center[np.newaxis], 2)
    constant, linear, quadratic = second_order.expand(model, center.astype(float))
    form = quadratic + quadratic.T - np.diag(np.diag(quadratic))
    scale = np.abs(model.coefficients(0)).sum() + 1e-300
    np.testing.assert_allclose(expansions.constants[0], constant, rtol=0, atol=1e-13 * scale)
    np.testing.assert_allclose(expansions.parts[0][0], linear, rtol=0, atol=1e-12 * scale * (1 + gamma))
    upper = form[np.triu_indices(n_features)]
    np.testing.assert_allclose(expansions.parts[1][0], upper, rtol=0, atol=1e-12 * scale * (1 + gamma) ** 2)


@pytest.mark.parametrize("choice", ["mean", "origin"])
def test_expansion_converges_to_the_exact_decision_function(choice):
    """The remainder is of third order in gamma, so halving gamma divides it by eight."""
    X = np.random.default_rng(0).normal(size=(30, 4))
    errors = []
    for gamma in (0.004, 0.002):
        model = random_model(1, n_features=4, gamma=gamma)
        exact = definition_of(model).values(X)[:, 0]
        errors.append(np.abs(second_order.evaluate(second_order.second_order(model, choice), X) - exact).max())
    assert 6.5 < errors[0] / errors[1] < 9.5


def test_the_mean_is_a_better_center_than_the_origin_for_data_far_from_it():
    model = random_model(2, gamma=0.01)
    shifted = random_model(2, gamma=0.01, support_vectors=model.support_vectors + 5.0)
    X = np.random.default_rng(5).normal(size=(50, 7)) + 5.0
    exact = definition_of(shifted).values(X)[:, 0]
    by_center = [second_order.second_order(shifted, choice) for choice in ("mean", "origin")]
    mean, origin = (np.abs(second_order.evaluate(expansion, X) - exact).max() for expansion in by_center)
    assert mean < 1e-2 * origin


def test_center_beyond_float32_is_refused():
    model = random_model(0, n_features=3)
    vectors = model.support_vectors.copy()
    vectors[:, 1] = 1e300
    with pytest.raises(UnsupportedModelError, match=r"feature 1 .* is 1e\+300, beyond float32's"):
        taylor.choose_center(random_model(0, n_features=3, support_vectors=vectors), "mean")


def test_too_many_features_are_refused_before_memory_is_taken():
    with pytest.raises(UnsupportedModelError, match="2000000000 features, but at most 1048576"):
        random_model(0, support_vectors=csr_array((40, 2_000_000_000), dtype=np.float64))
    wide = random_model(0, support_vectors=csr_array((40, 1 << 20), dtype=np.float64))
    with pytest.raises(UnsupportedModelError, match="1048576 x 1048576 matrix; at most 11585"):
        expand_and_certify(wide, np.empty((1, 0), np.float32), 2)


def test_gamma_max_is_the_papers_formula():
    X = np.array([[3.0, 4.0], [1.0, 0.0]])
    X_test = np.array([[0.0, 2.0]])
    assert approxsvm.gamma_max(X) == pytest.approx(1 / (4 * 5 * 5))
    assert approxsvm.gamma_max(X, X_test) == pytest.approx(1 / (4 * 5 * 2))
    assert approxsvm.gamma_max(csr_array(X), csr_array(X_test)) == pytest.approx(1 / 40)
    assert approxsvm.gamma_max(np.zeros((2, 2))) == float("inf")


def test_gamma_max_from_the_mean():
    X = np.array([[10.0, 0.0], [12.0, 0.0]])
    assert approxsvm.gamma_max(X, center="mean") == pytest.approx(0.25)
    assert approxsvm.gamma_max(csr_array(X), center="mean") == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0]], [[1.0, 2.0]]), "X_test has 2 features, but X has 1"),
        (([[np.nan]],), "NaN"),
        ((np.empty((0, 3)),), "at least one row"),
        (([1.0, 2.0],), "shape \\(2,\\)"),
    ],
)
def test_gamma_max_refuses(arguments, message):
    with pytest.raises(InputError, match=message):
        approxsvm.gamma_max(*arguments)
    with pytest.raises(InputError, match="center is 'median'"):
        approxsvm.gamma_max([[1.0]], center="median")


def test_norms_of_sparse_rows_agree_with_dense_ones():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 6)) * (rng.random((20, 6)) < 0.4)
    center = rng.normal(size=6).astype(np.float32)
    np.testing.assert_allclose(row_norms(csr_array(X), center), row_norms(X, center), rtol=1e-12)
    assert limit(0.0, 1.0) == float("inf")


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint8, np.int64, np.float32])
def test_gamma_max_of_sparse_rows_of_any_type(dtype):
    """Squares of int8 once wrapped around, so the limit was 150 times too large."""
    rows = np.random.default_rng(0).integers(0, 120, (20, 5)).astype(dtype)
    assert approxsvm.gamma_max(csr_array(rows)) == pytest.approx(approxsvm.gamma_max(rows.astype(float)))
