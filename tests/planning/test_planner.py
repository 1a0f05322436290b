"""Default plans, their limits, and the reproducibility of artifacts."""

from __future__ import annotations

import dataclasses
import itertools
import re
from typing import Any

import numpy as np
import pytest
from conftest import random_model
from scipy.sparse import csr_array
from sklearn.datasets import make_classification
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.expansion import kernel_sums, stack
from approxsvm.expansion.stack import WORK_PER_SECOND
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.planning import gaussian, search
from approxsvm.planning.budget import ACCEPTABLE_WORK
from approxsvm.planning.costs.calls import Cost
from approxsvm.planning.families import expansions
from approxsvm.planning.families.expansions import Candidate, Expansions
from approxsvm.planning.families.placing import Points
from approxsvm.planning.problem import Problem
from approxsvm.planning.request import Limits
from approxsvm.reference.definition import definition_of
from approxsvm.runtime.evaluator import STAGES


@pytest.fixture(scope="module")
def gentle() -> tuple[SVC, Any]:
    """Return a model with many support vectors and a gamma so small that one center suffices, and rows."""
    X, y = make_classification(4000, 6, n_informative=5, n_redundant=0, flip_y=0.3, random_state=0)
    X = scale(X)
    return SVC(gamma=0.01).fit(X[:2500], y[:2500]), X[2500:]


@pytest.fixture(scope="module")
def steep() -> tuple[SVC, Any]:
    """Return a model with many support vectors and a gamma for which one center is not enough, and rows."""
    X, y = make_classification(3500, 3, n_informative=3, n_redundant=0, flip_y=0.3, random_state=1)
    X = scale(X)
    return SVC(gamma=2.0).fit(X[:2000], y[:2000]), X[2000:]


@pytest.fixture(scope="module")
def of_low_effort(steep: tuple[SVC, Any]) -> Any:
    """Return the steep model, compiled with low effort."""
    return approxsvm.compile(*steep, effort="low", n_jobs=1)


def header(fast: Any) -> tuple[str, int, int]:
    return fast.artifact.mode, fast.artifact.header["degree"], fast.artifact.n_centers


# --- requested plans -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["certified", "approximate"])
@pytest.mark.parametrize("degree", [1, 2, 3, 6])
@pytest.mark.parametrize("n_centers", [1, 7])
def test_what_is_forced_is_compiled(mode: Any, degree: int, n_centers: int) -> None:
    model = random_model(1, n_features=3)
    X = np.random.default_rng(0).normal(size=(500, 3))
    fast = approxsvm.compile(model, X, mode=mode, degree=degree, n_centers=n_centers)
    assert header(fast) == (mode, degree, n_centers)
    centers = "one center" if n_centers == 1 else "7 centers"
    assert fast.artifact.plan.startswith(f"{centers} of degree {degree}, as requested")
    assert fast.summary.degree == degree
    assert fast.summary.n_centers == n_centers


def test_one_of_both_is_forced(steep: tuple[SVC, Any]) -> None:
    svc, X = steep
    by_degree = approxsvm.compile(svc, X, degree=1, effort="low")
    assert header(by_degree)[1] == 1
    by_centers = approxsvm.compile(svc, X, n_centers=20)
    assert header(by_centers)[2] == 20
    assert header(by_centers)[0] == "certified"


def test_forced_plans_are_compiled_though_they_be_slow() -> None:
    model = random_model(1, n_sv=3, gamma=50.0)
    assert header(approxsvm.compile(model)) == ("exact", 0, 0)
    assert header(approxsvm.compile(model, degree=2)) == ("certified", 2, 1)
    assert header(approxsvm.compile(model, n_centers=1))[0] == "certified"


def test_fewer_centers_where_there_are_fewer_different_rows() -> None:
    model = random_model(1, n_features=2)
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], 40, axis=0)
    assert header(approxsvm.compile(model, X, degree=2, n_centers=50))[2] == 3
    assert header(approxsvm.compile(model, X[:1], degree=2, n_centers=50))[2] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": 0}, "degree is 0, but must be 'auto', or a whole number from 1 to 6"),
        ({"degree": 7}, "degree is 7, but must be 'auto', or a whole number from 1 to 6"),
        ({"degree": 2.0}, "degree is 2.0"),
        ({"degree": True}, "degree is True"),
        ({"n_centers": 0}, "n_centers is 0, but must be 'auto', or a whole number of at least 1"),
        ({"n_centers": "many"}, "n_centers is 'many'"),
        ({"effort": "none"}, "effort is 'none', but must be 'low', 'normal' or 'high'"),
        ({"mode": "exact", "degree": 2}, "mode 'exact' has no expansion"),
        ({"mode": "exact", "n_centers": 2}, "mode 'exact' has no expansion"),
        ({"target_error": 0.1}, "target_error needs mode 'approximate'"),
        ({"mode": "approximate", "target_error": 1.5}, "from 0 to 1; got 1.5"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        approxsvm.compile(random_model(1), **options)


# --- fastest plans ---------------------------------------------------------------------------------------------------


def test_a_gentle_model_gets_one_center(gentle: tuple[SVC, Any]) -> None:
    svc, X = gentle
    fast = approxsvm.compile(svc, X)
    mode, degree, n_centers = header(fast)
    assert (mode, n_centers) == ("certified", 1)
    assert degree >= 2
    assert "held-out sample rows" in fast.artifact.plan
    fast.predict(X)
    assert fast.summary.certified_fraction is not None
    assert fast.summary.certified_fraction > 0.9


def test_a_steep_model_gets_many_centers(steep: tuple[SVC, Any]) -> None:
    svc, X = steep
    fast = approxsvm.compile(svc, X)
    assert header(fast)[0] == "certified"
    assert header(fast)[2] >= 16
    np.testing.assert_array_equal(fast.predict(X), svc.predict(X))


def test_several_functions_are_expanded_about_common_centers() -> None:
    X = np.random.default_rng(0).normal(size=(4000, 3))
    y = np.digitize(np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1], [-0.7, 0.0, 0.7])
    of_kernels = Nystroem(gamma=0.1, n_components=400, random_state=0)
    for source in (OneVsRestClassifier(SVC(gamma=0.3, C=0.1)), make_pipeline(of_kernels, RidgeClassifier())):
        fast = approxsvm.compile(source.fit(X[:800], y[:800]), X[:800], effort="low", rows_expected=1_000_000_000)
        assert header(fast)[0] == "certified"
        np.testing.assert_array_equal(fast.predict(X), source.predict(X))
        assert fast.certified(X).mean() > 0.6


@pytest.mark.parametrize("degree", [2, 5])
def test_several_targets_are_within_a_tolerance_that_expansions_keep(degree: int) -> None:
    rng = np.random.default_rng(0)
    coef = rng.normal(size=(3, 80)) * [[1.0], [10.0], [0.0]]  # one target is constant
    model = KernelModel("regression", rng.normal(size=(80, 4)), coef, np.array([1.0, 2.0, 3.0]), 0.05)
    X = rng.normal(size=(500, 4))
    fast = approxsvm.compile(model, X, degree=degree, n_centers=20, tolerance=0.2)
    exact = definition_of(model).values(X)
    for part in (slice(None), slice(1), slice(17)):
        error, bound = np.abs(fast.predict(X[part]) - exact[part]), fast.error_bound(X[part])
        assert (error <= bound + 1e-12).all()
        assert bound.max() <= 0.2
    stages = fast.rows_per_stage
    assert stages["expansion"] > 0
    assert (stages["higher_degree"] > 0) == (degree > 2)


def test_never_slower_than_the_exact_engine(
    gentle: tuple[SVC, Any], steep: tuple[SVC, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A freely chosen plan's predicted cost is at most three quarters of the exact engine's."""
    plans: list[tuple[Cost, search.Choice]] = []
    original = search.Search.run

    def noted(self: search.Search, progress: Any) -> search.Choice:
        plans.append((self.exact, original(self, progress)))
        return plans[-1][1]

    monkeypatch.setattr(search.Search, "run", noted)
    models: list[tuple[Any, Any]] = [gentle, steep]
    models += [(random_model(k, n_sv=5 * 4**k, gamma=0.1 * 3**k, n_features=5), None) for k in range(4)]
    models += [(random_model(7, n_sv=300, n_features=200, gamma=0.01), None)]
    for model, X in models:
        fast = approxsvm.compile(model, X, effort="low")
        exact_cost, plan = plans[-1]
        if plan.chosen is None:
            assert fast.artifact.mode == "exact"
            assert plan.reason.startswith("the exact engine alone")
        else:
            assert fast.artifact.mode == "certified"
            assert isinstance(plan.chosen, Candidate)
            assert plan.chosen.costs.is_worthwhile(exact_cost, None)
        assert fast.artifact.plan == plan.reason
    assert {plan.chosen is None for _, plan in plans} == {True, False}


@pytest.mark.parametrize(
    ("costs", "tried", "chosen"),
    [
        ({1: 0.65, 16: 0.8, 64: 0.4, 256: 0.2, 1024: 0.195}, [1, 16, 64, 256], 256),  # like covtype
        ({1: 0.95, 16: 0.9, 64: 0.88, 256: 0.1}, [1, 16, 64], None),  # usps
        ({1: 0.9, 16: 0.3, 64: 0.29, 256: 0.4, 1024: 0.5}, [1, 16, 64], 16),
    ],
)
def test_more_centers_are_tried_while_they_may_help(
    monkeypatch: pytest.MonkeyPatch, costs: dict[int, float], tried: list[int], chosen: int | None
) -> None:
    """Costs are relative to the exact engine's."""
    seen: list[int] = []

    def known(self: Expansions, candidate: Candidate, *_: Any) -> Candidate:
        seen.append(len(candidate.points.centers))
        cost, exact = costs[seen[-1]], self._costs.exact
        share = dict.fromkeys(STAGES, 0.0) | {"expansion": 1.0 - cost, "float32": cost}
        found = Cost(cost * exact.asked, exact.alone)
        return dataclasses.replace(candidate, costs=found, certified=1.0 - cost, share=share)

    monkeypatch.setattr(Expansions, "_tried", known)
    rows = np.random.default_rng(0).normal(size=(8000, 4))
    fast = approxsvm.compile(random_model(3, n_sv=2500, n_features=4, gamma=0.5), rows)
    assert list(dict.fromkeys(seen)) == tried
    assert (fast.artifact.n_centers or None) == chosen


def test_the_fewest_bytes_of_about_the_best_are_chosen() -> None:
    points = {n: Points(np.zeros((n, 3), np.float32), None, np.zeros(n)) for n in (1, 60, 250)}

    def best(*plans: tuple[int, int, float, float]) -> tuple[int, int]:
        costs = [Cost(np.array([cost]), np.array([cost])) for _, _, cost, _ in plans]
        tried = [
            Candidate(k, points[n], cost, certified) for cost, (n, k, _, certified) in zip(costs, plans, strict=True)
        ]
        chosen = search.chosen(tried, lambda c: len(c.points.centers) * c.points.size.coefficients(c.degree))
        return len(chosen.points.centers), chosen.degree

    assert best((1, 2, 1.0, 0.9)) == (1, 2)
    assert best((1, 2, 1.0, 0.9), (1, 3, 0.96, 0.92)) == (1, 2)  # as good
    assert best((1, 2, 1.0, 0.9), (1, 3, 0.8, 0.92)) == (1, 3)
    assert best((1, 2, 1.0, 0.9), (1, 3, 1.1, 0.96)) == (1, 3)  # leaves less than half as many rows
    assert best((1, 2, 1.0, 0.9), (1, 3, 1.3, 0.96)) == (1, 2)
    assert best((1, 2, 1.0, 1.0), (1, 3, 1.0, 1.0)) == (1, 2)
    assert best((60, 2, 0.15, 0.88), (250, 2, 0.09, 0.95), (60, 4, 0.05, 0.99)) == (60, 4)  # ijcnn1, gamma 2
    assert best((250, 4, 0.034, 0.989), (60, 4, 0.037, 0.992), (60, 6, 0.033, 0.995)) == (60, 6)
    assert best((60, 6, 0.036, 0.995), (250, 3, 0.033, 0.985)) == (250, 3)  # 84 and 20 coefficients per center


def test_rows_that_judge_are_from_all_parts_of_the_sample() -> None:
    assert expansions._spread(np.arange(3)).tolist() == [0, 1, 2]
    assert expansions._spread(np.arange(0)).tolist() == []
    chosen = expansions._spread(np.arange(100_000))
    assert len(chosen) == len(set(chosen)) == 4_000
    assert (chosen[0], chosen[-1]) == (0, 99_999)


def test_higher_degrees_of_fewer_centers_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Degrees are tried as long as they are better, and only if they could beat the best by leaving few rows."""
    seen: list[tuple[int, int]] = []
    costs = {(1, 2): 2.0, (16, 2): 0.9, (64, 2): 0.5, (256, 2): 0.3, (256, 3): 0.25, (64, 3): 0.2, (64, 4): 0.15}

    def known(self: Expansions, candidate: Candidate, *_: Any) -> Candidate:
        seen.append((len(candidate.points.centers), candidate.degree))
        cost = costs.get(seen[-1], 1.0)
        certified = 1.0 - 0.1 * cost
        share = dict.fromkeys(STAGES, 0.0) | {"expansion": certified, "float32": 1.0 - certified}
        found = Cost(cost * self._costs.exact.asked, cost * self._costs.exact.asked)
        return dataclasses.replace(candidate, costs=found, certified=certified, share=share)

    monkeypatch.setattr(Expansions, "_tried", known)
    rows = np.random.default_rng(0).normal(size=(1500, 4))
    model = random_model(3, n_sv=4000, n_features=4, gamma=0.5)
    fast = approxsvm.compile(model, rows, rows_expected=1_000_000_000)
    many = [plan for plan in seen if plan[0] > 1]
    assert many[:6] == [(16, 2), (64, 2), (256, 2), (256, 3), (256, 4), (64, 3)]
    assert (64, 4) in many
    assert (16, 4) not in many
    assert (fast.artifact.n_centers, fast.artifact.header["degree"]) == (64, 4)


@pytest.mark.parametrize("certified", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("degrees", list(itertools.product((1, 2, 3), repeat=3)), ids=str)
def test_any_order_of_degrees_leaves_a_share_of_the_rows(degrees: tuple[int, int, int], certified: float) -> None:
    """Wide rows and many centers lower the degree that fits in an artifact."""
    *lower, degree = degrees
    points: Any = None  # not read
    plans = [Candidate(tried, points, certified=certified) for tried in lower]
    for n_plans in (1, 2):
        assert 0.0 <= expansions.hopeful_rest(degree, plans[-n_plans:]) <= 1.0


def test_a_small_model_is_not_worth_an_expansion() -> None:
    fast = approxsvm.compile(random_model(2, n_sv=4, gamma=5.0))
    assert header(fast) == ("exact", 0, 0)
    assert "the exact engine alone: " in fast.artifact.plan
    rows = np.random.default_rng(0).normal(size=(50, 7))
    exact = approxsvm.compile(random_model(2, n_sv=4, gamma=5.0), mode="exact")
    np.testing.assert_array_equal(fast.decision_function(rows), exact.decision_function(rows))


def test_a_tolerance_is_kept_by_any_plan(gentle: tuple[SVC, Any]) -> None:
    _, X = gentle
    svr = SVR(gamma=0.05, C=3.0).fit(X[:800], X[:800, 0] * X[:800, 1])
    for tolerance in (1.0, 1e-2, 1e-6):
        fast = approxsvm.compile(svr, X, tolerance=tolerance, effort="low")
        assert fast.artifact.header["tolerance"] == tolerance
        assert np.abs(fast.predict(X) - svr.predict(X)).max() <= tolerance
        assert fast.error_bound(X).max() <= tolerance


def test_effort_limits_the_centers(steep: tuple[SVC, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    svc, X = steep
    tried: list[int] = []
    original = Expansions._points
    monkeypatch.setattr(
        Expansions,
        "_points",
        lambda self, n: (tried.append(n), original(self, n))[1],  # type: ignore[func-returns-value]
    )
    most = {}
    for effort in ("low", "normal"):
        tried.clear()
        assert header(approxsvm.compile(svc, X, effort=effort))[2] <= max(tried)  # type: ignore[arg-type]
        assert tried == sorted(tried)
        most[effort] = max(tried)
    assert most["low"] <= 64
    assert most["low"] <= most["normal"]


# --- limits ----------------------------------------------------------------------------------------------------------


def test_max_bytes_is_kept(steep: tuple[SVC, Any], of_low_effort: Any) -> None:
    (svc, X), free = steep, of_low_effort
    exact = approxsvm.compile(svc, mode="exact")
    n_exact, n_free = len(exact.artifact.data), len(free.artifact.data)
    assert n_exact < n_free
    for limit in (n_free, (n_exact + n_free) // 2, n_exact + 1000):
        fast = approxsvm.compile(svc, X, max_bytes=limit, effort="low")
        assert len(fast.artifact.data) <= limit
        np.testing.assert_array_equal(fast.predict(X), svc.predict(X))


def test_max_bytes_that_nothing_fits_names_both_numbers(steep: tuple[SVC, Any]) -> None:
    svc, X = steep
    with pytest.raises(UnsupportedModelError, match=r"the artifact takes [\d,]+ bytes, but max_bytes is 1,000"):
        approxsvm.compile(svc, X, max_bytes=1000)
    with pytest.raises(UnsupportedModelError, match=r"max_bytes = 1,000"):
        approxsvm.compile(svc, X, max_bytes=1000, degree=2, n_centers=64)
    with pytest.raises(UnsupportedModelError, match=r"the artifact takes [\d,]+ bytes, but max_bytes is 1,000"):
        approxsvm.compile(svc, mode="exact", max_bytes=1000)


def test_target_error(steep: tuple[SVC, Any]) -> None:
    svc, X = steep
    expected = svc.predict(X)
    sizes = []
    for target in (0.2, 0.05, 0.01):
        fast = approxsvm.compile(svc, X, mode="approximate", target_error=target, effort="low")
        assert fast.artifact.mode == "approximate"
        assert "of labels wrong" in fast.artifact.plan
        assert (fast.predict(X) != expected).mean() <= 2.0 * target  # it was evaluated on other rows
        sizes.append(len(fast.artifact.data))
    assert sizes == sorted(sizes)
    forced = approxsvm.compile(svc, X, mode="approximate", target_error=1.0, degree=1, n_centers=1)
    assert header(forced) == ("approximate", 1, 1)
    with pytest.raises(UnsupportedModelError, match=r"error of at most 0; the best, .* has 0\.\d+"):
        approxsvm.compile(svc, X, mode="approximate", target_error=0.0, degree=1, n_centers=1)


def test_an_approximate_model_is_one_center_of_degree_2_by_default(steep: tuple[SVC, Any]) -> None:
    svc, X = steep
    fast = approxsvm.compile(svc, X, mode="approximate")
    assert header(fast) == ("approximate", 2, 1)
    assert fast.artifact.plan == "one center of degree 2, as requested or by default"


def test_no_center_of_an_approximate_model_is_a_row() -> None:
    """A mean of at least five rows discloses none of them."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    X[:4] += 100.0  # a cluster of four, and isolated rows
    X[4] -= 100.0
    X[5] -= 200.0
    fast = approxsvm.compile(random_model(1, n_features=3), X, mode="approximate", degree=2, n_centers=40)
    centers = fast.artifact.centers()
    assert len(centers) > 1
    nearest = ((X[:, np.newaxis] - centers) ** 2).sum(axis=2)
    assert nearest.min() > 1e-8
    assert (np.abs(centers) < 50.0).all()


# --- reproducibility
# ----------------------------------------------------------------------------------------------------


def test_the_same_input_gives_the_same_artifact(
    steep: tuple[SVC, Any], of_low_effort: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (svc, X), once = steep, of_low_effort.artifact
    assert approxsvm.compile(svc, X, effort="low", n_jobs=4).artifact == once
    assert approxsvm.compile(svc, X.tolist(), effort="low").artifact == once
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert approxsvm.compile(svc, X, effort="low").artifact == once
    other = approxsvm.compile(svc, X, effort="low", random_state=1).artifact
    assert other != once


def test_dense_sparse_and_named_rows_give_the_same_plan(steep: tuple[SVC, Any], of_low_effort: Any) -> None:
    pandas = pytest.importorskip("pandas")
    (svc, X), dense = steep, of_low_effort
    frame = approxsvm.compile(svc, pandas.DataFrame(X, columns=["a", "b", "c"]), effort="low")
    assert frame.artifact == dense.artifact
    narrow = X.astype(np.float32)
    of_narrow, of_wide = (approxsvm.compile(svc, rows, effort="low") for rows in (narrow, narrow.astype(float)))
    assert of_narrow.artifact == of_wide.artifact
    sparse = approxsvm.compile(svc, csr_array(X), effort="low")
    assert header(sparse)[:2] == header(dense)[:2]
    np.testing.assert_array_equal(sparse.predict(X), svc.predict(X))


def test_without_rows_the_reason_says_so(steep: tuple[SVC, Any], of_low_effort: Any) -> None:
    svc, X = steep
    fast = approxsvm.compile(svc, effort="low")
    assert "sample rows, X or --data, are better" in fast.artifact.plan
    assert "support vectors" in fast.artifact.plan
    assert "sample rows X" not in of_low_effort.artifact.plan
    np.testing.assert_array_equal(fast.predict(X), svc.predict(X))


def test_one_row_no_row_and_rows_of_another_width() -> None:
    model = random_model(1, n_sv=200, gamma=0.001)
    X = np.random.default_rng(0).normal(size=(3, 7))
    for rows in (X[:1], X):
        fast = approxsvm.compile(model, rows)
        assert fast.artifact.mode in ("certified", "exact")
    with pytest.raises(InputError, match="X"):
        approxsvm.compile(model, X[:0])
    with pytest.raises(UnsupportedModelError, match="the model has 7 features, but n_features is 6"):
        approxsvm.compile(model, X, n_features=6)
    with pytest.raises(InputError, match="X has 6 features, but the model has 7"):
        approxsvm.compile(model, X[:, :6])
    with pytest.raises(InputError, match="X has 6 features, but the model has 7"):
        approxsvm.compile(model, X[:, :6], n_features=7)
    with pytest.raises(InputError, match="X"):
        approxsvm.compile(model, np.full((3, 7), np.nan))


@pytest.mark.parametrize("changes", [{"gamma": 0.0}, {"n_sv": 1}, {"n_features": 1}, {"n_sv": 2, "gamma": 1e-9}])
@pytest.mark.parametrize("n_centers", ["auto", 5])
def test_degenerate_models(changes: dict[str, Any], n_centers: Any) -> None:
    model = random_model(1, **changes)
    X = np.random.default_rng(0).normal(size=(100, model.n_features))
    fast = approxsvm.compile(model, X, n_centers=n_centers)
    exact = approxsvm.compile(model, mode="exact")
    np.testing.assert_array_equal(fast.predict(X), exact.predict(X))


def test_limits_are_what_compile_passes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Limits] = []

    def found(problem: Problem, *_: Any) -> search.Choice:
        seen.append(problem.limits)
        return search.Choice(None, "because")

    monkeypatch.setattr(gaussian, "search", found)
    options: dict[str, Any] = {"degree": 3, "n_centers": 4, "max_bytes": 10**6, "effort": "high", "random_state": 5}
    fast = approxsvm.compile(random_model(1), **options)
    assert seen == [Limits(degree=3, n_centers=4, max_bytes=10**6, target_error=None, effort="high", random_state=5)]
    assert fast.artifact.plan == "because"


@pytest.mark.parametrize("n_rows", [1, 3])
def test_too_few_rows_to_judge_on(steep: tuple[SVC, Any], n_rows: int) -> None:
    """No rows were held out, so nothing was evaluated, and no share is reported."""
    svc, X = steep
    few = "sample rows are too few to judge expansions on"
    fast = approxsvm.compile(svc, X[:n_rows])
    assert fast.artifact.plan == f"the exact engine alone: {n_rows} {few}, at least 4 are needed"
    assert few in approxsvm.compile(svc, X[:n_rows], degree=2).artifact.plan
    with pytest.raises(UnsupportedModelError, match=few):
        approxsvm.compile(svc, X[:n_rows], mode="approximate", target_error=0.1)
    assert "too few" not in approxsvm.compile(svc, X[:4], effort="low").artifact.plan


def test_progress_never_stands_still_or_goes_back(steep: tuple[SVC, Any]) -> None:
    """Progress advances while expansions are certified, which takes nearly all the time."""
    svc, X = steep
    told: list[tuple[str, float]] = []
    approxsvm.compile(svc, X, effort="low", progress=lambda step, share: told.append((step, share)))
    planning = [share for step, share in told if step == "Planning"]
    assert planning == sorted(planning)
    assert planning[-1] == 1.0
    assert len(planning) > 10
    assert max(np.diff(planning[:-1])) < 0.15
    expanding = [share for step, share in told if step == "Expanding"]
    assert expanding == sorted(expanding)
    assert expanding[-1] == pytest.approx(1.0, abs=0.01)
    assert [step for step, _ in told] == sorted((step for step, _ in told), reverse=True)


# --- duration of the search -------------------------------------------------------------------------------------


def work_of_plans(source: Any, X: Any, **options: Any) -> tuple[int, float, float]:
    """Return the number of plans tried, core seconds by multiply-add counts, and seconds spent on rejected plans."""
    compilation = approxsvm.compile(source, X, **options).compilation
    assert compilation is not None
    plans = [plan for plan in compilation.plans[0] if plan.share_of_exact != 1.0]
    total = sum(plan.work for plan in plans)
    return len(plans), total, sum(plan.work for plan in plans if not plan.chosen)


def test_a_longer_search_needs_more_rows_to_pay(steep: tuple[SVC, Any]) -> None:
    searches = [work_of_plans(*steep, rows_expected=rows) for rows in (1, 10_000, 1_000_000)]
    numbers, totals, _ = zip(*searches, strict=True)
    assert numbers[0] == 0 < numbers[1] < numbers[2]
    assert totals[0] == 0.0 < totals[1] < totals[2]
    assert searches[2] == work_of_plans(*steep)  # the default is a million rows


def test_a_plan_that_few_rows_cannot_pay_for_is_not_looked_for(steep: tuple[SVC, Any]) -> None:
    svc, X = steep
    fast = approxsvm.compile(svc, X, rows_expected=1)
    assert fast.artifact.plan == "the exact engine alone: a search for expansions would take longer than 1 rows do"
    assert ("rows_expected", "1") in fast.compilation.options
    np.testing.assert_array_equal(fast.predict(X), svc.predict(X))


def test_most_of_the_work_is_for_the_plan_that_is_taken(steep: tuple[SVC, Any], gentle: tuple[SVC, Any]) -> None:
    for source, X in (steep, gentle):
        _, total, in_vain = work_of_plans(source, X)
        assert in_vain <= max(0.5 * total, ACCEPTABLE_WORK / WORK_PER_SECOND)


def test_low_effort_takes_less_work(steep: tuple[SVC, Any]) -> None:
    low, normal = (work_of_plans(*steep, effort=effort)[1] for effort in ("low", "normal"))
    assert 0.0 < low <= 0.5 * normal


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "many"])
def test_rows_expected_is_a_positive_integer(wrong: Any) -> None:
    with pytest.raises(InputError, match="rows_expected"):
        approxsvm.compile(random_model(1), rows_expected=wrong)


def test_one_pass_over_the_kernel_matrix_serves_two_plans(
    steep: tuple[SVC, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    svc, X = steep
    passes: list[int] = []
    original = stack.kernel_sums

    def counted(function: Any, n_centers: int, *arguments: Any, **options: Any) -> Any:
        passes.append(n_centers)
        return original(function, n_centers, *arguments, **options)

    monkeypatch.setattr(stack, "kernel_sums", counted)
    monkeypatch.setattr(kernel_sums, "_MOST_FOR_ALL_CONTRACTIONS", 0)
    fast = approxsvm.compile(svc, X)
    assert passes[0] == expansions.LEAST_PROBED_CENTERS  # W, and the first centers of the plan with sixteen
    assert 0 not in passes
    np.testing.assert_array_equal(fast.predict(X), svc.predict(X))
