"""Costs of calls with few rows, and the plans chosen by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import random_model
from sklearn.svm import SVC

import approxsvm
from approxsvm import KernelModel
from approxsvm.artifact.writer import Frame
from approxsvm.errors import InputError
from approxsvm.planning.budget import Budget
from approxsvm.planning.costs.calls import Calls, Cost, ExpansionCosts, regrets
from approxsvm.planning.costs.cost import Size
from approxsvm.planning.costs.profiles import Profile
from approxsvm.planning.problem import Problem
from approxsvm.planning.request import Limits

NOTHING_OPEN = dict.fromkeys(("direction", "higher_degree", "float32", "float64", "definition"), 0.0) | {
    "expansion": 1.0
}
HALF_OPEN = NOTHING_OPEN | {"expansion": 0.5, "float32": 0.4, "float64": 0.1}


def cost_of(asked: float, alone: float) -> Cost:
    return Cost(np.array([asked]), np.array([alone]))


def costs_of(model: KernelModel, rows: Any, n_rows: int | None) -> ExpansionCosts:
    return ExpansionCosts(Problem(model, Frame.of(model, "mean"), rows, limits=Limits(rows_per_call=n_rows)))


def test_a_block_costs_the_same_with_fewer_rows() -> None:
    assert Calls(None, 16).cheaper(1.0, 10.0, 30.0) == 10.0
    assert Calls(16, 16).cheaper(1.0, 10.0, 30.0) == Calls(400, 16).cheaper(0.1, 10.0, 30.0) == 10.0
    assert Calls(8, 16).cheaper(1.0, 10.0, 30.0) == Calls(16, 16).cheaper(0.5, 10.0, 30.0) == 20.0
    assert Calls(2, 16).cheaper(1.0, 10.0, 30.0) == Calls(1, 16).cheaper(0.1, 10.0, 30.0) == 30.0


@pytest.mark.parametrize("target", ["avx512", "avx2"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_cost_less_in_larger_calls(target: str, n_classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPROXSVM_TARGET", target)
    model = random_model(0, n_sv=600)
    if n_classes > 2:
        X = np.random.default_rng(0).normal(size=(400, 7))
        model = approxsvm.read_model(SVC().fit(X, np.arange(400) % n_classes))
    rows = np.random.default_rng(1).normal(size=(50, 7))
    for degree, size, share in (
        (2, Size(1, 7), NOTHING_OPEN),
        (2, Size(64, 7), HALF_OPEN),
        (4, Size(16, 5), HALF_OPEN),
    ):
        found = [costs_of(model, rows, n).cascade(degree, size, share) for n in (1, 2, 8, 64, 1_000, 100_000)]
        for asked in np.transpose([cost.asked for cost in found]).tolist():
            assert asked == sorted(asked, reverse=True)
        np.testing.assert_allclose(found[0].asked, found[0].alone)
        assert len({tuple(cost.alone) for cost in found}) == 1
        batch = costs_of(model, rows, None).cascade(degree, size, share)
        assert (batch.asked < batch.alone).all()
    for profile in Profile.all():
        assert (profile.blocks.is_alone, profile.alone.is_alone) == (False, True)


def test_what_is_said_of_costs() -> None:
    cost, exact = cost_of(10.0, 60.0), cost_of(100.0, 200.0)
    assert cost.words(exact, None) == "10.0% of the exact engine's time in batches, 30.0% in calls of one row"
    assert cost.words(exact, 64) == "10.0% of the exact engine's time in calls of 64 rows, 30.0% in calls of one row"
    assert cost.words(exact, 1) == "30.0% of the exact engine's time in calls of one row"


def test_no_plan_is_three_times_as_slow_alone_unless_calls_are_large() -> None:
    least = np.array([10.0, 20.0])  # in two profiles
    for alone, rows_per_call, expected in (
        ([30.0, 60.0], None, False),
        ([30.1, 60.0], None, True),
        ([30.0, 60.1], None, True),
        ([99.0, 99.0], 1_000, False),
    ):
        assert Cost(least, np.array(alone)).is_slow_alone(least, rows_per_call) == expected


def test_half_to_two_percent_of_rows_in_the_engine_weigh_more() -> None:
    costs = costs_of(random_model(0, n_sv=600), np.random.default_rng(1).normal(size=(50, 7)), None)
    size, exact = Size(1, 7), costs.exact
    found = [
        costs.cascade(2, size, NOTHING_OPEN | {"expansion": 1.0 - k, "float32": k}) for k in (0.005, 0.01, 0.02, 0.3)
    ]
    for cost, tail in zip(found, (0.0, 0.045, 0.135, 0.135), strict=True):
        np.testing.assert_allclose(cost.weighed - cost.asked, tail * exact.asked, atol=1e-9)
    np.testing.assert_allclose(exact.weighed, 1.135 * exact.asked)


def test_plans_for_calls_of_one_row() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    svc = SVC(gamma=0.02).fit(X, X[:, 0] + 0.3 * rng.normal(size=400) > 0)
    fast, batches = approxsvm.compile(svc, X, rows_per_call=1), approxsvm.compile(svc, X)
    assert ("rows_per_call", "1") in fast.compilation.options
    assert "in calls of one row" in fast.artifact.plan
    assert "in batches" in batches.artifact.plan
    for plan in fast.compilation.plans[0]:
        assert plan.share_of_exact == pytest.approx(plan.share_alone)
    np.testing.assert_array_equal(fast.predict(X), svc.predict(X))
    assert [fast.predict_one(x) for x in X[:50]] == svc.predict(X[:50]).tolist()
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="rows_per_call"):
            approxsvm.compile(svc, X, rows_per_call=wrong)


def test_the_least_regret_is_on_the_worst_profile() -> None:
    costs = [Cost(np.array(asked), np.array(asked)) for asked in ([1.0, 3.0], [1.5, 1.5], [3.0, 1.0])]
    np.testing.assert_allclose(regrets(costs), [3.0, 1.5, 3.0])
    slow = Cost(costs[0].asked, costs[0].alone, np.array([0.4, 0.4]))  # as expensive as the second plan in one profile
    np.testing.assert_allclose(regrets([slow, costs[1]]), [1.0 + 1.9 / 1.5, 1.0 + 0.1])


def test_a_plan_is_tried_if_it_may_be_the_cheapest_on_any_machine() -> None:
    model = random_model(0)
    problem = Problem(model, Frame.of(model, "mean"), np.random.default_rng(1).normal(size=(50, 7)))
    exact = Cost(np.array([100.0, 100.0]), np.array([1.0, 1.0]))
    budget = Budget(problem, exact, np.array([1e-12, 1e-12]))
    assert budget.may_win(Cost(np.array([101.0, 99.0]), exact.alone))
    assert not budget.may_win(Cost(np.array([101.0, 100.0]), exact.alone))
    found = Cost(np.array([50.0, 90.0]), np.array([2.0, 0.5]))
    assert budget.saved(Cost(np.array([50.0, 100.0]), exact.alone)) == pytest.approx(
        0.5 * budget.saved(Cost(np.array([50.0, 50.0]), exact.alone))
    )
    budget.record(found, 1.0, 1.0)
    assert (budget.least.asked.tolist(), budget.least.alone.tolist()) == ([50.0, 90.0], [1.0, 0.5])
    assert not budget.may_win(Cost(np.array([60.0, 95.0]), exact.alone))
    assert budget.may_win(Cost(np.array([60.0, 95.0]), exact.alone), 1.25)
