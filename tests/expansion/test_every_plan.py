"""For any degree and number of centers, no bound is violated, and no guaranteed label is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attacks import COEFFICIENTS, TARGETS, VECTORS, judge_artifact, random_attack
from conftest import EVERYTHING, random_model
from hypothesis import given, settings
from hypothesis import strategies as st
from zoo import class_numbers, oracle
from zoo.balls import Extended

import approxsvm
from approxsvm import KernelModel, _native
from approxsvm.runtime.evaluator import LABELS

pytestmark = pytest.mark.skipif(np.finfo(Extended).nmant < 63, reason="long double has no more digits than float64")


@pytest.mark.attack
@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_sv=st.integers(1, 40),
    n_features=st.integers(1, 12),
    scaled_gamma=st.floats(-6, 2),
    offset=st.sampled_from([0.0, 0.0, 1.0, 1e4]),
    vectors=st.sampled_from(VECTORS),
    coefficients=st.sampled_from(COEFFICIENTS),
    degree=st.integers(1, 6),
    n_centers=st.integers(1, 8),
    n_categories=st.sampled_from([0, 0, 2, 3]),
    balanced=st.booleans(),
    precise=st.booleans(),
)
def test_no_bound_is_broken(degree: int, n_features: int, **attack: Any) -> None:
    random_attack(degree=degree, n_features=min(n_features, 5) if degree > 4 else n_features, **attack)


@pytest.mark.parametrize("n_centers", [1, 20, 60])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_trained_model_keeps_its_promises(degree: int, n_centers: int) -> None:
    """Check labels of ordinary rows, with several groups of centers."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 6))
    alphas = rng.uniform(0.1, 1.0, 80) * np.repeat([1, -1], 40)
    model = random_model(9, n_sv=80, n_features=6, gamma=0.4, support_vectors=X[:80], dual_coef=alphas[np.newaxis])
    artifact = approxsvm.compile(model, X, degree=degree, n_centers=n_centers).artifact
    judge_artifact(model, artifact, X[80:], 5)
    judge_artifact(model, artifact, 3.0 * X[80:], 5)


# --- several classes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize(("n_centers", "n_categories"), [(1, 0), (6, 0), (8, 2)])
def test_no_bound_of_several_classes_is_broken(degree: int, n_centers: int, n_categories: int) -> None:
    rng = np.random.default_rng([degree, n_centers])
    n_classes, d, counts = 4, 3 + n_categories, np.array([7, 5, 9, 6])

    def rows(n: int) -> Any:
        continuous = rng.normal(size=(n, 3))
        return (
            np.hstack([np.eye(n_categories)[rng.integers(0, n_categories, n)], continuous])
            if n_categories
            else continuous
        )

    model = KernelModel(
        "classification",
        support_vectors=rows(counts.sum()),
        dual_coef=rng.normal(size=(n_classes - 1, counts.sum())),
        intercept=0.2 * rng.normal(size=6),
        gamma=0.3,
        labels=np.arange(n_classes),
        n_support=counts,
    )
    X = rows(300)
    judged = np.concatenate([X, X + 0.4 * rng.normal(size=X.shape), 3.0 * X, np.zeros((1, d)), np.full((1, d), 1e30)])
    exact, slack = oracle.decision_values(model, judged)
    assert (np.abs(exact) > 1e-9).all()  # no row is too close to a boundary
    for mode in ("approximate", "certified"):
        artifact = approxsvm.compile(model, X, mode=mode, degree=degree, n_centers=n_centers).artifact
        assert (artifact.n_varying < d) == (n_categories > 0 and mode == "certified")
        for target in TARGETS:
            predictor = _native.Predictor(artifact.data, target)
            for some in (slice(None), slice(0, 3)):
                for which in ("settled", "promised"):
                    values, bounds, _ = predictor.dense(judged[some], 1, EVERYTHING, values=which)
                    assert (np.abs(values - exact[some]) <= bounds + slack[some]).all()
                if mode == "certified":
                    assert bounds.max() <= 1e-9 * np.abs(model.dual_coef).sum()
                if mode == "certified":
                    winners = predictor.dense(judged[some], 1, LABELS)
                    np.testing.assert_array_equal(winners, class_numbers.winner(exact[some]))
