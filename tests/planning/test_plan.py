"""Plans as data: JSON, validation, and rebuilding without a search."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import GOLDEN, random_model
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm import Plan
from approxsvm.cli import main
from approxsvm.errors import InputError
from approxsvm.expansion import stack
from approxsvm.expansion.decision_function import DecisionFunction
from approxsvm.expansion.kernel_sums import ExpansionPoint, kernel_sums
from approxsvm.planning import gaussian
from approxsvm.system.threads import one_thread_inside

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 6))
Y = (np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)
CLASSES = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-1.0, 0.0, 1.0])
ONE_HOT = np.hstack([X[:, :3], np.eye(4)[RNG.integers(0, 4, 900)], np.eye(5)[RNG.integers(0, 5, 900)]])
IN_FEW = np.hstack([4.0 * X, 0.01 * RNG.normal(size=(900, 90))])

DIGITS, DIGIT = (part[::3] for part in load_digits(return_X_y=True))

PLANS = {
    "expansions": Plan("expansions", n_centers=64, degree=2, varying=(0, 3), norm_work=10, n_features=6, n_classes=2),
    "subspaces": Plan("subspaces", subspaces=(16, 32), degree=2, basis=64, landmarks=16, seed=7, reason="é"),
    "form": Plan("form", kernel="polynomial", mode="approximate"),
    "ensemble": Plan("ensemble", members=(Plan("exact", n_functions=3), Plan("expansions", n_centers=1, degree=3))),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_json_gives_the_plan_back(plan: Plan) -> None:
    again = Plan.from_json(plan.to_json())
    assert (again, again.reason) == (plan, plan.reason)
    assert hash(again) == hash(plan)
    assert "\n" not in repr(plan) + plan.to_json()
    assert again != replace(plan, seed=8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        (b"\xff", "not JSON"),
        ("[]", "must be an object, got list"),
        ('{"engine":"exact"}', "format is None, but must be 1"),
        ('{"format":2,"engine":"exact"}', "format is 2, but must be 1"),
        ('{"format":1}', "engine is missing"),
        ('{"format":1,"engine":"exact","engine":"exact"}', "a field is repeated"),
        ('{"format":1,"engine":"fast"}', "engine is 'fast'"),
        ('{"format":1,"engine":["exact"]}', "engine is "),
        ('{"format":1,"engine":"exact","mode":"quick"}', "mode is 'quick'"),
        ('{"format":1,"engine":"exact","speed":1}', "unknown field 'speed'"),
        ('{"format":1,"engine":"exact","seed":-1}', "seed is -1"),
        ('{"format":1,"engine":"exact","seed":true}', "seed is True"),
        ('{"format":1,"engine":"exact","seed":null}', "seed is None"),
        ('{"format":1,"engine":"exact","n_functions":0}', "n_functions is 0"),
        ('{"format":1,"engine":"exact","kernel":1}', "kernel is 1"),
        ('{"format":1,"engine":"exact","degree":2}', "degree is 2, but must be 0"),
        ('{"format":1,"engine":"exact","n_centers":2}', "n_centers is 2, but must be absent"),
        ('{"format":1,"engine":"expansions","degree":2}', "n_centers is 0, but must be present"),
        ('{"format":1,"engine":"expansions","n_centers":2.5,"degree":2}', "n_centers is 2.5"),
        ('{"format":1,"engine":"expansions","n_centers":2,"degree":7}', "degree is 7"),
        ('{"format":1,"engine":"expansions","n_centers":2}', "degree is 0"),
        ('{"format":1,"engine":"expansions","n_centers":2,"degree":2,"mode":"exact"}', "mode is 'exact'"),
        ('{"format":1,"engine":"expansions","n_centers":2,"degree":2,"varying":[2,1]}', "varying is .*ascending"),
        ('{"format":1,"engine":"expansions","n_centers":1,"degree":2,"varying":[1]}', "varying is .*absent"),
        ('{"format":1,"engine":"subspaces"}', "subspaces is .*present"),
        ('{"format":1,"engine":"subspaces","subspaces":16}', "subspaces is 16, but must be a list"),
        ('{"format":1,"engine":"subspaces","subspaces":[16]}', "basis is 0"),
        ('{"format":1,"engine":"ensemble"}', "members is 0"),
        ('{"format":1,"engine":"exact","members":[{"engine":"exact"}]}', "members is 1"),
        ('{"format":1,"engine":"ensemble","members":[{"engine":"ensemble","members":[]}]}', "members is "),
        ('{"format":1,"engine":"ensemble","members":[3]}', "members is "),
    ],
)
def test_what_is_no_plan_is_named(text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=f"plan: .*{message}"):
        Plan.from_json(text)


SOURCES: dict[str, Callable[[], tuple[Any, Any, dict[str, Any]]]] = {
    "one center": lambda: (SVC(gamma=0.05).fit(X, Y), X, {}),
    "centers": lambda: (SVC(gamma=0.3, C=10.0).fit(X, Y), X, {"n_centers": 16, "degree": 3, "random_state": 3}),
    "slices": lambda: (SVC(gamma=0.3).fit(ONE_HOT, Y), ONE_HOT, {"n_centers": 40, "degree": 2}),
    "few rows": lambda: (SVC(gamma=0.3).fit(X, Y), X[:3], {"n_centers": 16, "degree": 2}),
    "origin": lambda: (
        SVC(gamma=0.05).fit(X, Y),
        None,
        {"center": "origin", "effort": "low", "degree": 2, "n_centers": 1},
    ),
    "classes": lambda: (SVC(gamma=0.1).fit(X, CLASSES), X, {"n_centers": 5, "degree": 2}),
    "winner's pairs": lambda: (SVC().fit(DIGITS, DIGIT), DIGITS, {"rows_expected": 1}),
    "calibrated": lambda: (CalibratedClassifierCV(SVC(gamma=0.1), ensemble=False).fit(X, CLASSES), X, {}),
    "members": lambda: (CalibratedClassifierCV(SVC(gamma=0.1), cv=2).fit(X, Y), X, {}),
    "in few coordinates": lambda: (SVC(gamma=0.1).fit(IN_FEW, Y), IN_FEW, {}),
    "regression": lambda: (SVR(gamma=0.1).fit(X, np.sin(X[:, 0])), X, {"tolerance": 0.01}),
    "approximate": lambda: (SVC(gamma=0.05).fit(X, Y), X, {"mode": "approximate", "target_error": 0.5}),
    "exact": lambda: (SVC(gamma=0.05).fit(X, CLASSES), X, {"mode": "exact"}),
    "form": lambda: (SVC(kernel="poly", degree=2).fit(X, Y), X, {}),
    "sigmoid": lambda: (SVC(kernel="sigmoid").fit(X, Y), X, {}),
    "cosines": lambda: (make_pipeline(RBFSampler(random_state=0), LogisticRegression()).fit(X, Y), X, {}),
    "targets": lambda: (MultiOutputRegressor(SVR(gamma=0.1)).fit(X, X[:, :2] ** 2), X, {}),
}
OF_BUILDING = ("mode", "tolerance", "labels", "max_bytes")


@cache
def searched(name: str) -> tuple[Any, Any, dict[str, Any], Any]:
    """Return a fitted source, rows, options, and the model compiled with them."""
    source, rows, options = SOURCES[name]()
    return source, rows, options, approxsvm.compile(source, rows, **options)


@pytest.mark.parametrize("name", SOURCES)
def test_building_a_plan_again_gives_the_same_bytes(name: str) -> None:
    """The search first tries other plans, with other centers and degrees."""
    source, rows, options, fast = searched(name)
    plan = Plan.from_json(fast.plan.to_json())
    kept = {name: value for name, value in options.items() if name in OF_BUILDING}
    again = approxsvm.compile(source, rows, plan=plan, **kept)
    assert again.artifact.data == fast.artifact.data
    assert (again.plan, again.plan.reason) == (fast.plan, fast.plan.reason)
    assert not any(again.compilation.plans)


def test_engines_of_the_searches_above() -> None:
    plans = {name: searched(name)[3].plan for name in SOURCES}
    engines = {name: plan.engine for name, plan in plans.items()}
    assert engines["one center"] == engines["slices"] == engines["classes"] == "expansions"
    assert engines["in few coordinates"] == "subspaces"
    assert (engines["form"], engines["targets"]) == ("form", "ensemble")
    assert plans["slices"].varying is not None
    assert plans["winner's pairs"].landmarks is not None
    assert plans["targets"].members[0].n_functions == 2


@pytest.mark.parametrize("name", ["one center", "slices", "in few coordinates", "winner's pairs", "targets"])
def test_a_plan_suits_a_model_trained_again(name: str) -> None:
    """No search runs, and labels are the new source's."""
    source, rows, _, fast = searched(name)
    plan = fast.plan
    some = np.arange(len(rows)) % 4 > 0
    target = X[:, :2] ** 2 if name == "targets" else DIGIT if name == "winner's pairs" else Y
    later = clone(source).fit(rows[some], target[some])
    with pytest.MonkeyPatch.context() as patch:
        for searching in ("search", "speculate"):
            patch.setattr(gaussian, searching, lambda *_: pytest.fail("searched"))
        fast = approxsvm.compile(later, rows[some], plan=plan)
    assert fast.plan == plan
    expected = later.predict(rows)
    if name == "targets":
        assert (np.abs(fast.predict(rows) - expected) <= fast.error_bound(rows) + 1e-9).all()
    else:
        np.testing.assert_array_equal(fast.predict(rows), expected)


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"n_features": 7}, {}, "made for n_features 7, but the model has 6"),
        ({"n_classes": 3}, {}, "made for n_classes 3, but the model has 2"),
        ({"kernel": "sigmoid"}, {}, "made for kernel 'sigmoid', but the model has 'gaussian'"),
        ({"mode": "approximate"}, {}, "made for mode 'approximate', but the option mode is 'certified'"),
        ({}, {"mode": "approximate"}, "made for mode 'certified', but the option mode is 'approximate'"),
        ({"engine": "form", "n_centers": 0, "degree": 0}, {}, "engine is 'form', but must be 'expansions' or"),
        ({"landmarks": 3}, {}, "landmarks is 3, but"),
        ({"n_centers": 5, "varying": (2, 6)}, {}, "varying has 6, but the model has 6 features"),
        ({}, {"degree": 2}, "degree is 2, but the plan replaces it"),
        ({}, {"effort": "high"}, "effort is 'high', but the plan replaces it"),
        ({}, {"random_state": 1}, "random_state is 1, but the plan replaces it"),
    ],
)
def test_a_plan_that_does_not_fit(changes: dict[str, Any], options: dict[str, Any], message: str) -> None:
    source, rows, *_ = searched("one center")
    plan = replace(Plan("expansions", n_centers=1, degree=2, n_features=6, n_classes=2), **changes)
    with pytest.raises(InputError, match=message):
        approxsvm.compile(source, rows, plan=plan, **options)


def test_sums_of_several_functions_are_not_expanded() -> None:
    source, rows, *_ = searched("winner's pairs")
    plan = Plan("subspaces", subspaces=(2,), basis=2, degree=2)
    with pytest.raises(InputError, match="degree is 2, but only the sums of a single function are expanded"):
        approxsvm.compile(source, rows, plan=plan)


def test_plans_of_ensembles_fit_their_members() -> None:
    source, rows, *_ = searched("targets")
    single = searched("one center")
    exact = Plan("exact")
    for plan, message in (
        (exact, "members are for 0 models, but the ensemble has 2"),
        (Plan("ensemble", members=(exact,)), "members are for 1 models, but the ensemble has 2"),
        (Plan("ensemble", members=(exact, replace(exact, n_features=9))), "made for n_features 9"),
    ):
        with pytest.raises(InputError, match=message):
            approxsvm.compile(source, rows, plan=plan)
    apart = approxsvm.compile(source, rows, plan=Plan("ensemble", members=(exact, exact)))
    assert len(apart.artifact.members) == 2
    with pytest.raises(InputError, match="engine is 'ensemble'"):
        approxsvm.compile(single[0], single[1], plan=Plan("ensemble", members=(exact, exact)))
    with pytest.raises(InputError, match=r"plan is 'exact', but must be a Plan"):
        approxsvm.compile(single[0], single[1], plan="exact")  # type: ignore[arg-type]


def test_a_plan_written_by_hand() -> None:
    source, rows, *_ = searched("one center")
    fast = approxsvm.compile(source, rows, plan=Plan("expansions", n_centers=4, degree=3))
    assert (fast.artifact.n_centers, fast.artifact.header["degree"]) == (4, 3)
    np.testing.assert_array_equal(fast.predict(rows), source.predict(rows))


def test_artifacts_contain_their_plan(tmp_path: Path) -> None:
    fast = searched("one center")[3]
    fast.save(tmp_path / "model.asvm")
    assert approxsvm.load(tmp_path / "model.asvm").plan == fast.plan
    assert approxsvm.Predictor(tmp_path / "model.asvm").plan == fast.plan
    sections = {name: fast.artifact.section(name) for name in ("build_plan", "plan")}
    assert json.loads(sections["build_plan"])["engine"] == fast.plan.engine
    assert "reason" not in json.loads(sections["build_plan"])
    assert approxsvm.load(GOLDEN / "digits_classes.asvm").plan is None  # its stages were forced


def test_the_command_builds_plans(tmp_path: Path) -> None:
    def run(*arguments: object) -> Any:
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    source, first, again = GOLDEN / "breast_cancer.model", tmp_path / "first.asvm", tmp_path / "again.asvm"
    assert run("convert-model", source, "-o", first, "--centers", 2, "--degree", 3).exit_code == 0
    facts = json.loads(run("inspect", first, "--json").stdout)
    assert facts["tolerance"] is None
    assert facts["reason"] == "2 centers of degree 3, as requested"
    written = tmp_path / "plan.json"
    written.write_text(json.dumps(facts["plan"]))
    assert Plan.from_json(written.read_text()) == approxsvm.load(first).plan
    for plan in (written, first):
        assert run("convert-model", source, "-o", again, "--plan", plan).exit_code == 0
        assert again.read_bytes() == first.read_bytes()
    written.write_text('{"format":1,"engine":"exact","n_features":3}')
    without = GOLDEN / "digits_classes.asvm"
    for plan, options, message in (
        (written, (), "made for n_features 3, but the model has 30"),
        (first, ("--degree", 3), "is 3, but the plan replaces it"),
        (without, (), f"{without}: the artifact has no plan"),
        (source, (), f"{source}: plan: not JSON"),
    ):
        refused = run("convert-model", source, "-o", again, "--plan", plan, *options)
        assert (refused.exit_code, message in " ".join(refused.stderr.split())) == (1, True), refused.stderr


# --- sums that do not depend on earlier computations


def test_energies_do_not_depend_on_other_centers() -> None:
    function = DecisionFunction(random_model(3, n_sv=700, n_features=6), 0)
    centers = RNG.normal(size=(40, 6)).astype(np.float32)

    def energies(numbers: list[int], *, contracted: bool = True) -> Any:
        def point_of(k: int) -> ExpansionPoint:
            return ExpansionPoint(function, centers[numbers[k]])

        with one_thread_inside("blas"):
            return kernel_sums(function, len(numbers), point_of, contracted=contracted, progress=lambda _: None)

    everywhere = energies(list(range(40)))
    for numbers in ([7], [39, 3], list(range(19))):
        some = energies(numbers)
        np.testing.assert_array_equal(some.contracted_sq, everywhere.contracted_sq[numbers])
        np.testing.assert_array_equal(some.faded_moduli, everywhere.faded_moduli[numbers])
    nowhere = energies([], contracted=False)
    assert (nowhere.total_sq, nowhere.moduli_sq) == (everywhere.total_sq, everywhere.moduli_sq)


def test_certificates_do_not_depend_on_earlier_expansions() -> None:
    model = random_model(3, n_sv=700, n_features=6)
    centers, known = RNG.normal(size=(20, 6)).astype(np.float32), stack.KnownSums()
    with one_thread_inside("blas"):
        for n, degree in ((3, 4), (20, 3), (5, 2)):
            stack.expand_and_certify(model, centers[:n], degree, known=known, of_centers=20)
        found = [stack.expand_and_certify(model, centers, 2, known=k)[1] for k in (known, stack.KnownSums())]
    for name in ("total", "norms", "remainders", "contractions", "coefficient_errors"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name))
