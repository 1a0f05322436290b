"""Exported C headers for every kind of model: bounds hold relative to the exact function in extended precision."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from c_header import C99, NEEDS_GCC, STRICT, build
from conftest import random_model
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    VotingRegressor,
)
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC
from zoo import class_numbers, oracle
from zoo.balls import Ball, Extended

import approxsvm
from approxsvm.backends.c99.device.ops import on_device
from approxsvm.backends.c99.sums import sums_of
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.ensembles.combination import Combination
from approxsvm.ir.ops import Op

pytestmark = [pytest.mark.native, NEEDS_GCC]
# Without optimization, which takes most of the time under sanitizers, and changes no bits.
SANITIZED = ["gcc", "-std=c99", "-O0", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"]
FUSED = ["gcc", "-std=gnu99", "-O2", "-mfma", "-ffp-contract=fast"]


# --- proven values and labels


def assert_proven(model: Any, compiled: Any, program: Any, rows: Any, refused: int = 0) -> Any:
    """Assert that values are within their bounds, and certain labels correct; the last `refused` rows get no answer."""
    artifact = compiled.artifact
    strange = np.ones((3, rows.shape[1]), np.float32)
    strange[:, artifact.raw_columns.used[-1]] = (np.nan, np.inf, -np.inf)
    answers = program.answers(np.concatenate([rows, strange]))
    n = len(rows) - refused
    exact, slack = oracle.decision_values(model, rows[:n])
    assert np.isfinite(answers.values[:n]).all()
    error = np.abs(answers.values[:n].astype(Extended) - exact)
    broken = ~(error <= answers.bounds[:n].astype(Extended) + slack).all(axis=1)
    assert not broken.any(), (rows[:n][broken][0], answers.values[:n][broken][0], exact[broken][0])
    assert np.isnan(answers.values[n:]).all()
    assert np.isinf(answers.bounds[n:]).all()
    assert not answers.certain[n:].any()
    if artifact.task == "regression":
        assert artifact.n_decisions > 1 or np.array_equal(answers.predicted, answers.values[:, 0], equal_nan=True)
        return answers
    assert (answers.predicted[n:] == 0).all()
    expected = answers.predicted.copy()
    expected[~answers.certain] = -1
    np.testing.assert_array_equal(answers.if_certain, expected)
    if len(artifact.labels) <= 2:
        right, is_tie = exact[:, 0] <= 0, (np.abs(exact) <= slack).any(axis=1)
    elif artifact.outputs.of_each_class:
        best = np.sort(exact, axis=1)
        right, is_tie = exact.argmax(axis=1), best[:, -1] - best[:, -2] <= 2 * slack.max(axis=1)
    elif artifact.outputs.label_rule == "scores":
        scores = class_numbers.one_vs_rest_scores(Ball(exact, slack)).mid
        best = np.sort(scores, axis=1)
        right, is_tie = scores.argmax(axis=1), best[:, -1] - best[:, -2] < 1e-12
    else:
        assert artifact.outputs.label_rule == "votes"
        right, is_tie = class_numbers.winner(exact), (np.abs(exact) <= slack).any(axis=1)
    wrong = answers.certain[:n] & ~is_tie & (answers.predicted[:n] != right)
    assert not wrong.any(), rows[:n][wrong]
    return answers


# --- random models, adversarial rows

KINDS = {
    "linear": {"degree": 1, "coef0": 0.0},
    "affine": {"degree": 1, "coef0": -2.5},
    **{f"degree {degree}": {"degree": degree, "coef0": 0.7 * degree - 2.0} for degree in (2, 3, 4, 5, 6)},
    "sigmoid": {"is_sigmoid": True, "coef0": 0.3},
    "gaussian": {},
}


def random_machine(kind: str, seed: int, n_labels: int = 2) -> tuple[Any, Any]:
    """Return a model whose values are hard to bound, because terms cancel, and rows at its boundary and beyond."""
    rng = np.random.default_rng(seed)
    changes = dict(KINDS[kind])
    n_features, n_sv, scale = int(rng.integers(1, 25)), int(rng.integers(2 * n_labels, 50)), 10.0 ** rng.uniform(-3, 3)
    gamma = 10.0 ** rng.uniform(-1.5, 0.5) / n_features / scale**2
    vectors = scale * (rng.normal(size=(n_sv, n_features)) + float(rng.choice([0.0, 1.0, 30.0 * (kind == "gaussian")])))
    if n_labels == 2:
        coef = rng.normal(size=(1, n_sv)) * 10.0 ** rng.uniform(-2, 2, n_sv)
        changes |= {"dual_coef": coef, "intercept": 0.1 * rng.normal(size=1)}
    else:
        changes |= {"labels": np.arange(n_labels)[::-1].copy(), "n_support": np.bincount(np.arange(n_sv) % n_labels)}
        changes |= {"dual_coef": rng.normal(size=(n_labels - 1, n_sv))}
        changes |= {"intercept": 0.3 * rng.normal(size=n_labels * (n_labels - 1) // 2)}
    changes |= {"support_vectors": vectors, "gamma": gamma}
    model = random_model(0, n_sv=n_sv, n_features=n_features, **changes)
    X = vectors[rng.integers(0, n_sv, 80)] + scale * rng.normal(size=(80, n_features))
    rows = [X, vectors, 1e-3 * X, 30.0 * vectors[:8], 0.0 * X[:1], 1e-40 + 0.0 * X[:1], at_boundary(model, X, rng)]
    return model, np.concatenate(rows).astype(np.float32)


def at_boundary(model: Any, X: Any, rng: Any) -> Any:
    """Return points where the first decision value changes sign, found by bisecting between rows, and points nearby."""
    positive = oracle.decision_values(model, X)[0][:, 0] > 0
    if positive.all() or not positive.any():
        return X[:0]
    a, b = (X[rng.choice(np.flatnonzero(side), 40)] for side in (positive, ~positive))
    for _ in range(40):
        middle = 0.5 * (a + b)
        side = (oracle.decision_values(model, middle)[0][:, 0] > 0)[:, np.newaxis]
        a, b = np.where(side, middle, a), np.where(side, b, middle)
    near = [a, b, *(a + step * rng.normal(size=a.shape) * np.abs(a).max() for step in (1e-7, 1e-6, 1e-5))]
    return np.concatenate(near)


@pytest.mark.attack
@pytest.mark.parametrize("seed", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_no_bound_of_a_sum_is_broken(kind: str, seed: int, tmp_path: Path) -> None:
    model, rows = random_machine(kind, seed, n_labels=1 + seed)
    compiled = approxsvm.compile(model, mode="exact")
    far = np.full((1, rows.shape[1]), 3e38, np.float32)
    program = build(compiled, tmp_path, *STRICT, compiler=C99 if seed == 1 else FUSED)
    answers = assert_proven(model, compiled, program, np.concatenate([rows, far]), refused=1)
    assert answers.certain.mean() > 0.3
    assert not answers.certain.all()  # some rows are on the boundary, up to rounding


def test_bounds_are_of_the_size_of_rounding(tmp_path: Path) -> None:
    """Bounds are not uselessly large: some errors come close to them."""
    for kind in ("affine", "sigmoid", "gaussian"):
        model, rows = random_machine(kind, 5)
        compiled = approxsvm.compile(model, mode="exact")
        answers = build(compiled, tmp_path / kind).answers(rows)
        error = np.abs(answers.values - oracle.decision_values(model, rows)[0].astype(float))
        assert (error / answers.bounds).max() > 0.005


# --- scikit-learn's estimators and pipelines


def table(n_classes: int, n_features: int = 9) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 240)
    X = rng.normal(size=(240, n_features)) + 1.5 * np.eye(n_classes, n_features)[y]
    X = X * 10.0 ** rng.uniform(-2, 2, n_features) + 5.0
    return X.astype(np.float32).astype(float), y  # otherwise, no float32 row contains the categories


def projected(last: Any) -> Any:
    return make_pipeline(StandardScaler(), PCA(4, whiten=True), last)


# --- probabilities, and several models


@pytest.mark.parametrize("last", [PowerTransformer(), SplineTransformer(4)])
def test_an_error_that_is_not_known_stays_so(last: Any, tmp_path: Path) -> None:
    """The first row is scaled to 0 up to rounding, so it may or may not be divided by its norm."""
    X = np.random.default_rng(0).random((200, 3)) * [1.0, 0.7, 1.3] + [30001.0, 20000.3, 40000.7]
    X = X.astype(np.float32).astype(float)
    source = make_pipeline(MinMaxScaler(), Normalizer(), QuantileTransformer(n_quantiles=10), last, SVC(gamma=0.5))
    source = source.fit(X, (X - X.mean(axis=0)) @ [1.0, -1.5, 1.0] > 0.0)
    compiled = approxsvm.compile(source, mode="exact")
    rows = np.concatenate([X.min(axis=0, keepdims=True), X[:6]]).astype(np.float32)
    answers = build(compiled, tmp_path, *STRICT).answers(rows)
    assert answers.bounds[0, 0] >= np.abs(compiled.artifact.decision_coef()).sum()
    assert not answers.certain[0]
    assert answers.bounds[1:, 0].max() < 1.0


@pytest.mark.parametrize(
    ("step", "mode"), [(FunctionTransformer(np.log), "exact"), (PowerTransformer("box-cox"), "approximate")]
)
def test_what_has_no_logarithm_is_refused(step: Any, mode: str, tmp_path: Path) -> None:
    """Logarithms of such numbers are refused for any intercept and any tolerance."""
    X = np.exp(np.random.default_rng(0).normal(size=(100, 2)))
    model = approxsvm.read_any(make_pipeline(step, SVC(gamma=0.3)).fit(X, X[:, 0] > 1.0))
    model = replace(model, intercept=model.intercept + 1e3)
    compiled = approxsvm.compile(model, X, mode=mode)
    rows = np.array([[1, 1], [1, 0], [-1, 1], [-5, -7]], np.float32)
    program = build(compiled, tmp_path, *STRICT)
    assert assert_proven(model, compiled, program, rows, refused=3).certain[0]
    assert "or has a number that a step rejects" in (tmp_path / "m.h").read_text()


def test_one_target_that_is_refused_refuses_all(tmp_path: Path) -> None:
    """The row's norm is too large only for the first target."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    near, far = SVR(gamma=0.5).fit(X, X[:, 0]), SVR(gamma=1e-38, C=1e3).fit(X, 1e6 + X[:, 1])
    source = MultiOutputRegressor(SVR()).fit(X, X)
    source.estimators_ = [near, far]
    compiled = approxsvm.compile(source, mode="exact")
    answers = build(compiled, tmp_path, *STRICT).answers(np.array([[1, 1], [6e18, 6e18]], np.float32))
    assert np.isfinite(answers.bounds[0]).all()
    assert np.isnan(answers.values[1]).all()
    assert np.isinf(answers.bounds[1]).all()


# --- refusals


def test_what_a_header_has_not_is_refused_by_name(tmp_path: Path) -> None:
    X, y = table(2)
    cubic = approxsvm.compile(SVC(kernel="poly", gamma=1e-3).fit(X, y))
    with pytest.raises(UnsupportedModelError, match="int8 only in expansions, but this header has polynomial"):
        cubic.export_c(tmp_path / "m.h", coefficients="int8")
    ensemble = approxsvm.compile(CalibratedClassifierCV(SVC(), cv=2).fit(X, y), X)
    with pytest.raises(UnsupportedModelError, match="rows of codes only for a single model"):
        ensemble.export_c(tmp_path / "m.h", inputs="int8", X=X)
    behind = approxsvm.compile(projected(SVC()).fit(X, y), X, mode="approximate")
    with pytest.raises(UnsupportedModelError, match="use inputs='float32'"):
        behind.export_c(tmp_path / "m.h", inputs="int8", X=X)
    model = approxsvm.read_any(VotingRegressor([("a", SVR()), ("b", Ridge())]).fit(X, y))
    sums = approxsvm.compile(replace(model, combination=Combination(weights=np.array([[1.0, 1e39]]))))
    with pytest.raises(UnsupportedModelError, match=r"a weight or addend of 1e\+39 does not fit float32"):
        sums.export_c(tmp_path / "m.h")
    with pytest.raises(UnsupportedModelError, match="the C export does not support steps of kind unheard: apply"):
        on_device(cast(Op, SimpleNamespace(kind="unheard")))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("factor", [1e39, 1e200])
def test_numbers_beyond_float32_are_refused(factor: float, tmp_path: Path) -> None:
    for kind in KINDS:
        model, _ = random_machine(kind, 0)
        compiled = approxsvm.compile(replace(model, dual_coef=factor * model.dual_coef), mode="exact")
        with pytest.raises(UnsupportedModelError, match="float32"):
            compiled.export_c(tmp_path / "m.h")
    assert list(tmp_path.iterdir()) == []


def test_rows_as_long_as_allowed_have_values(tmp_path: Path) -> None:
    """The longest evaluated row does not overflow float32, and the next longer one is refused."""
    for kind in ("linear", "degree 3", "sigmoid", "gaussian"):
        model, _ = random_machine(kind, 3)
        compiled = approxsvm.compile(model, mode="exact")
        longest = sums_of(compiled.artifact).longest
        scale = float(compiled.artifact.header["input_scale"]) if kind == "gaussian" else 1.0
        direction = np.random.default_rng(0).normal(size=(1, model.n_features))
        row = direction / np.linalg.norm(direction) * longest / scale
        if kind == "gaussian":
            row = row + compiled.artifact.center
        program = build(compiled, tmp_path / kind, *STRICT)
        answers = program.answers(np.concatenate([0.999 * row, 1.001 * row]).astype(np.float32))
        assert np.isfinite(answers.values[0]).all()
        assert np.isnan(answers.values[1]).all()
        exact, slack = oracle.decision_values(model, (0.999 * row).astype(np.float32))
        assert np.abs(answers.values[0] - exact) <= answers.bounds[0] + slack


def test_two_translation_units(tmp_path: Path) -> None:
    """Headers for several models, including ensembles, are used in one program."""
    X, y = table(3)
    models = {
        "mean": CalibratedClassifierCV(SVC(), cv=2).fit(X, y),
        "cubic": SVC(kernel="poly", gamma=1e-3).fit(X, y),
        "turns": make_pipeline(RBFSampler(gamma=1e-4, random_state=0), LinearSVC()).fit(X, y),
    }
    for name, source in models.items():
        approxsvm.compile(source, X).export_c(tmp_path / f"{name}.h", name=name)
    includes = "".join(f'#include "{name}.h"\n' for name in (*models, "mean"))
    calls = " + ".join(f"{name}_predict(row)" for name in models)
    (tmp_path / "a.c").write_text(
        f"{includes}int f(const float *row);\nint f(const float *row) {{ return {calls}; }}\n"
    )
    main = f"const float row[9] = {{1.0f}};\n    return f(row) != {calls};\n}}\n"
    main = f"int f(const float *row);\nint main(void) {{\n    {main}"
    (tmp_path / "b.c").write_text(includes + main)
    subprocess.run([*C99, *STRICT, "-o", "both", "a.c", "b.c"], cwd=tmp_path, check=True)
    subprocess.run(["./both"], cwd=tmp_path, check=True)
