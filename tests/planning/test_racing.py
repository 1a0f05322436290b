"""The race of `measure=True`: here, a stopwatch passed in decides, and never real time."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import GOLDEN
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import approxsvm
from approxsvm import Plan
from approxsvm.artifact.views import Artifact
from approxsvm.cli import main
from approxsvm.compiler import _compiled
from approxsvm.errors import InputError
from approxsvm.ir.compilation import TriedPlan
from approxsvm.planning.racing import Rival, finalists, race
from approxsvm.planning.request import Limits, Request, Stopwatch
from approxsvm.system.error_state import in_own_error_state

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 6))
Y = (np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)
CLASSES = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-1.0, 0.0, 1.0])
IN_FEW = np.hstack([4.0 * X[:400], 0.01 * RNG.normal(size=(400, 90))])

BINARY = SVC(gamma=0.1).fit(X, Y)
# Source, rows, options, and the artifact that should win: the largest, or the smallest (the exact engine's).
SOURCES: dict[str, Callable[[], tuple[Any, Any, dict[str, Any], str]]] = {
    "binary": lambda: (make_pipeline(StandardScaler(), SVC(gamma=0.1)).fit(X, Y), X, {}, "largest"),
    "one row": lambda: (BINARY, X, {"rows_per_call": 1}, "largest"),
    "calls of 1,000 rows": lambda: (BINARY, csr_array(X), {"rows_per_call": 1000}, "smallest"),
    "values": lambda: (BINARY, X, {"tolerance": 0.1}, "largest"),
    "degree": lambda: (BINARY, X, {"degree": 2}, "largest"),
    "in few coordinates": lambda: (SVC(gamma=0.1).fit(IN_FEW, Y[:400]), IN_FEW, {}, "largest"),
    "classes": lambda: (SVC(gamma=0.1).fit(X, CLASSES), X, {}, "smallest"),
    "calibrated": lambda: (CalibratedClassifierCV(SVC(gamma=0.1), ensemble=False).fit(X, Y), X, {}, "largest"),
    "members": lambda: (CalibratedClassifierCV(SVC(gamma=0.1), cv=2).fit(X, Y), X, {}, "largest"),
    "regression": lambda: (SVR(gamma=0.03, epsilon=0.01).fit(X, np.sin(X[:, 0])), X, {"tolerance": 0.05}, "smallest"),
    "one class": lambda: (OneClassSVM(nu=0.3, gamma=0.2).fit(X), X, {}, "largest"),
}


def compiled(source: Any, rows: Any, stopwatch: Stopwatch | None, **options: Any) -> Any:
    """Compile with a race timed by this stopwatch."""
    others = {name: options.pop(name) for name in ("mode", "tolerance") if name in options}
    request = Request(
        others.get("mode", "certified"),
        "mean",
        others.get("tolerance"),
        Limits(**options),
        lambda *_: None,
        stopwatch=stopwatch,
    )
    return in_own_error_state(_compiled)(source, rows, None, request, "source", None)[0]


class Clock:
    """A stopwatch by which favored artifacts take 1 s and all others 2 s; it records which ran."""

    def __init__(self, favourite: Callable[[Artifact], bool]) -> None:
        self.favourite, self.ran = favourite, list[Artifact]()

    def __call__(self, artifact: Artifact, answer: Callable[[], object]) -> float:
        if artifact not in self.ran[-9:]:
            answer()
        self.ran.append(artifact)
        return 1.0 if self.favourite(artifact) else 2.0


def same_answers(fast: Any, source: Any, rows: Any) -> None:
    rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
    if isinstance(fast, approxsvm.CompiledSVR) or fast.artifact.of_targets:
        assert (np.abs(fast.predict(rows) - source.predict(rows)) <= fast.error_bound(rows) + 1e-9).all()
    else:
        np.testing.assert_array_equal(fast.predict(rows), source.predict(rows))


@pytest.mark.parametrize("name", SOURCES)
def test_a_plan_that_wins_is_like_others(name: str) -> None:
    source, rows, options, winner = SOURCES[name]()
    first = Clock(lambda artifact: artifact.mode == "certified")
    compiled(source, rows, first, **options)
    racers = sorted(set(first.ran), key=lambda artifact: artifact.n_bytes)
    plans = [artifact.build_plan for artifact in racers]
    assert ("exact" in {plan.engine for plan in plans}) == ("degree" not in options)
    plan = plans[-1 if winner == "largest" else 0]
    fast = compiled(source, rows, Clock(lambda artifact: artifact.build_plan == plan), **options)
    assert plan in (fast.plan, *fast.plan.members)
    same_answers(fast, source, rows)
    for tried in fast.compilation.plans:
        times = {one.raced: one.chosen for one in tried if one.raced is not None}
        assert len(times) == 2
        assert times[min(times)]
    kept = {name: value for name, value in options.items() if name == "tolerance"}
    again = approxsvm.compile(source, rows, plan=Plan.from_json(fast.plan.to_json()), **kept)
    assert again.artifact.data == fast.artifact.data


@pytest.mark.parametrize("is_exact_faster", [True, False])
def test_members_are_merged_by_the_times_of_their_races(is_exact_faster: bool) -> None:
    source = MultiOutputRegressor(SVR(gamma=0.03, epsilon=0.01)).fit(X, np.sin(X[:, :2]))
    fast = compiled(source, X, Clock(lambda artifact: (artifact.mode == "exact") == is_exact_faster))
    same_answers(fast, source, X)
    assert fast.plan.members[0].n_functions == (2 if is_exact_faster else 1)


def test_ties_go_to_the_smaller_artifact_and_slow_plans_leave() -> None:
    def winner(seconds: list[float], alone: list[float], rows_per_call: int | None = None) -> tuple[str, list[int]]:
        """Return the plan that wins with these times, and how often each plan is timed in large calls."""
        n_runs = [0] * 3

        def stopwatch(artifact: Artifact, answer: Any) -> float:
            k, is_alone = names.index(artifact.plan), answer.args[1][0].ndim == 1
            n_runs[k] += not is_alone
            return (alone if is_alone else seconds)[k]

        request = Request("certified", "mean", None, Limits(rows_per_call=rows_per_call), print, stopwatch=stopwatch)
        position, times = race(plans, X, request, most_seconds=1e3)
        assert [time.asked for time in times] == [taken / 4000 for taken in seconds]
        assert [time.alone for time in times] == [None if rows_per_call else taken / 300 for taken in alone]
        return names[position], n_runs

    choices = ({"n_centers": 4}, {"n_centers": 16}, {"n_centers": 64})
    plans = [approxsvm.compile(BINARY, X, degree=2, **choice).artifact for choice in choices]
    few, some, many = names = [artifact.plan for artifact in plans]
    assert plans[0].n_bytes < plans[1].n_bytes < plans[2].n_bytes
    equal = [1.0, 1.0, 1.0]
    assert winner([1.04, 1.02, 1.0], equal) == (few, [40, 40, 40])
    assert winner([1.06, 1.02, 1.0], equal) == (some, [40, 40, 40])
    assert winner([2.1, 2.1, 1.0], equal) == (many, [2, 2, 40])
    assert winner([2.0, 2.0, 1.0], [1.0, 2.9, 3.1]) == (few, [40, 40, 2])
    assert winner([2.0, 2.0, 1.0], [1.0, 2.9, 3.1], 1000) == (many, [40, 40, 40])


@pytest.mark.parametrize(
    ("shares", "alone", "seconds", "rows_per_call", "expected"),
    [
        ([0.5, 0.4, 0.61, 1.0], [0.5] * 4, [0.0] * 4, None, {0, 1, 3}),
        ([0.5, 0.4, 0.59, 0.45, 0.48, 1.0], [0.5] * 6, [0.0] * 6, None, {0, 1, 3, 5}),
        ([0.5, 0.4, 0.42, 1.0], [0.5, 1.51, 1.49, 1.0], [0.0] * 4, None, {0, 2, 3}),
        ([0.5, 0.4, 0.42, 1.0], [0.5, 1.51, 1.49, 1.0], [0.0] * 4, 1000, {0, 1, 2, 3}),
        ([0.5, 0.4, 0.42, 1.0], [0.5] * 4, [0.0, 9.0, 7.0, 0.0], None, {0, 2, 3}),  # the search took 8 s
        ([0.5, 0.4, 0.42, 1.0], [0.5] * 4, [0.0, 7.0, 7.0, 0.0], None, {0, 1, 3}),
        ([0.5, 0.4, 0.42, 1.0], [0.5] * 4, [0.0, np.inf, 7.0, 0.0], None, {0, 2, 3}),
        ([None, None, 1.0], [None, None, 1.0], [0.0] * 3, None, {0, 2}),
    ],
)
def test_finalists(shares: Any, alone: Any, seconds: list[float], rows_per_call: Any, expected: set[int]) -> None:
    """The first plan is the planner's choice, and the last is the exact engine."""
    n = len(shares)
    rivals = [
        Rival(TriedPlan("", shares[k], share_alone=alone[k]), pytest.fail, seconds[k], k in (0, n - 1))
        for k in range(n)
    ]
    assert finalists(rivals, rows_per_call, 8.0) == sorted(expected)


@pytest.mark.parametrize(
    ("source", "rows", "options"),
    [
        (BINARY, X, {"mode": "exact"}),
        (BINARY, X, {"mode": "approximate", "target_error": 0.5}),
        (BINARY, X, {"n_centers": 3, "degree": 2}),
        (BINARY, X[:3], {}),
        (BINARY, X, {"rows_expected": 1, "max_bytes": 40_000}),
        (SVC(kernel="poly", degree=2).fit(X, Y), X, {}),
        (SVC(kernel="sigmoid").fit(X, Y), X, {}),
        (SVC(gamma=100.0).fit(X[:30], Y[:30]), X, {}),
    ],
    ids=["exact", "approximate", "forced", "few rows", "bytes", "form", "sigmoid", "only the exact engine"],
)
def test_without_a_choice_nothing_is_timed(source: Any, rows: Any, options: dict[str, Any]) -> None:
    fast = compiled(source, rows, lambda *_: pytest.fail("timed"), **options)
    assert fast.artifact.data == approxsvm.compile(source, rows, **options).artifact.data
    assert fast.summary.race == {}


def test_a_plan_above_max_bytes_does_not_race() -> None:
    free = Clock(lambda artifact: artifact.n_bytes == max(one.n_bytes for one in free.ran))
    compiled(BINARY, X, free)
    largest = max(artifact.n_bytes for artifact in free.ran)
    limited = Clock(lambda artifact: artifact.n_centers > 1)
    compiled(BINARY, X, limited, max_bytes=largest - 1)
    assert limited.ran
    assert all(artifact.n_bytes < largest for artifact in limited.ran)


@pytest.mark.usefixtures("unmeasured")
def test_the_option() -> None:
    steps: list[str] = []
    fast = approxsvm.compile(BINARY, X, measure=True, progress=lambda step, _: steps.append(step))
    assert "Racing" in steps
    assert ("measure", "True") in fast.compilation.options
    assert approxsvm.compile(BINARY, X, plan=fast.plan).artifact.data == fast.artifact.data
    same_answers(fast, BINARY, X)
    assert "the exact engine alone" in fast.summary.race
    assert "the exact engine alone" in dict(fast.summary.rows())["race"]
    assert "raced, per row" in fast.report(X[:200], against=BINARY).html
    raced = approxsvm.CompiledClassifier(SVC(gamma=0.3), measure=True).fit(X, Y)
    assert raced.compiled_.summary.race
    np.testing.assert_array_equal(raced.predict(X), raced.estimator_.predict(X))
    for options, message in (
        ({"measure": "yes"}, "measure is 'yes', but must be True or False"),
        ({"measure": 1}, "measure is 1, but must be True or False"),
        ({"measure": True}, "measure is True, but there are no rows to measure on: pass sample rows X"),
        ({"measure": True, "X": X, "plan": fast.plan}, "measure is True, but the plan replaces it: leave it out"),
    ):
        with pytest.raises(InputError, match=message):
            approxsvm.compile(BINARY, **options)


def test_the_command(tmp_path: Path) -> None:
    def run(*options: object) -> Any:
        arguments = ["convert-model", GOLDEN / "breast_cancer.model", "-o", tmp_path / "model.asvm", *options]
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    assert "--measure needs --data" in run("--measure").stderr
    rows = tmp_path / "rows.npy"
    np.save(rows, RNG.normal(size=(400, 30)))
    result = run("--measure", "--data", rows)
    assert result.exit_code == 0, result.stderr
    shown = [line for line in result.stdout.splitlines() if line.startswith("race: ")]
    assert all("the exact engine alone" in line for line in shown)
    assert len(shown) == ("a race on this machine" in result.stdout)
    assert list(itertools.islice(tmp_path.glob("*.asvm"), 2)) == [tmp_path / "model.asvm"]
