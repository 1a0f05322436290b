"""Exported C headers of every kind of model: bounds that hold against the exact function, in extended precision."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from c_header import C99, NEEDS_GCC, STRICT, build
from conftest import random_model
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler, Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM
from zoo import class_numbers, oracle
from zoo.balls import Ball, Extended

import approxsvm
from approxsvm.errors import UnsupportedModelError
from approxsvm.export.c99.device_steps import on_device
from approxsvm.export.c99.header import export_c
from approxsvm.export.c99.sums import sums_of
from approxsvm.model.cosine_model import CosineModel
from approxsvm.model.outputs import ClassProbability, DensityMarks, Outputs
from approxsvm.model.steps import Step

pytestmark = [pytest.mark.native, NEEDS_GCC]
# Without optimization, which takes most of the time under sanitizers, and changes no bit.
SANITIZED = ["gcc", "-std=c99", "-O0", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"]
FUSED = ["gcc", "-std=gnu99", "-O2", "-mfma", "-ffp-contract=fast"]


# --- what is proven


def assert_proven(model: Any, compiled: Any, program: Any, rows: Any, refused: int = 0) -> Any:
    """Values within their bounds, certain labels right; of the last rows `refused` get no answer."""
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
    """A model whose values are hard to bound: scales, cancelling coefficients; and rows at its boundary and beyond."""
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
    """Points where the first decision value changes its sign, by bisection between rows, and a little off them."""
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
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_no_bound_of_a_sum_is_broken(kind: str, seed: int, tmp_path: Path) -> None:
    model, rows = random_machine(kind, seed, n_labels=(2, 4)[seed % 2])
    compiled = approxsvm.compile(model, mode="exact")
    far = np.full((1, rows.shape[1]), 3e38, np.float32)
    program = build(compiled, tmp_path, *STRICT, compiler=(C99, SANITIZED, C99, FUSED)[seed])
    answers = assert_proven(model, compiled, program, np.concatenate([rows, far]), refused=1)
    assert answers.certain.mean() > 0.3
    assert not answers.certain.all()  # there are rows within rounding of the boundary


@pytest.mark.parametrize("mode", ["approximate", "certified"])
@pytest.mark.parametrize("kind", ["linear", "affine", "degree 2"])
def test_no_bound_of_a_form_is_broken(kind: str, mode: str, tmp_path: Path) -> None:
    for seed in range(10, 14):
        model, rows = random_machine(kind, seed, n_labels=(2, 3)[seed % 2])
        compiled = approxsvm.compile(model, mode=mode)
        answers = assert_proven(model, compiled, build(compiled, tmp_path / str(seed), *STRICT), rows)
        assert answers.certain.mean() > 0.3


@pytest.mark.parametrize("n_labels", [2, 3])
def test_no_bound_of_cosines_is_broken(n_labels: int, tmp_path: Path) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, d, k = int(rng.integers(1, 90)), int(rng.integers(1, 20)), 1 if n_labels == 2 else n_labels
        outputs = Outputs() if n_labels == 2 else Outputs(label_rule="scores", decision_shape="each")
        model = CosineModel(
            "classification",
            labels=np.arange(n_labels),
            outputs=outputs,
            frequencies=rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, (n, 1)),
            phases=rng.uniform(0, 2 * np.pi, n),
            coef=rng.normal(size=(k, n)),
            intercept=rng.normal(size=k),
            value_error=np.zeros(k),
        )
        X = rng.normal(size=(100, d)) * 10.0 ** rng.uniform(-3, 3, (100, 1))
        rows = np.concatenate([X, at_boundary(model, X[:, :] * 1e-2, rng), 0 * X[:1]]).astype(np.float32)
        compiled = approxsvm.compile(model)
        far = np.full((1, d), 1e17, np.float32)
        program = build(compiled, tmp_path / str(seed), *STRICT, compiler=(C99, SANITIZED)[seed % 2])
        answers = assert_proven(model, compiled, program, np.concatenate([rows, far]), refused=1)
        assert answers.certain.mean() > 0.3


def test_rows_at_jumps_prove_nothing_false(tmp_path: Path) -> None:
    """Scaled rows that lie on an edge of bins, or next to one, or where columns of few values make quantiles jump."""
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(200, 3)) * np.array([0.1, 1.0, 7.0]) + 0.3
    y = X.sum(axis=1) > 1.0
    bins = ("bins", KBinsDiscretizer(3, encode="onehot-dense"), [2])
    jumps = ColumnTransformer([("quantiles", QuantileTransformer(n_quantiles=30), [0, 1]), bins])
    source = make_pipeline(StandardScaler(), jumps, SVC(kernel="linear")).fit(X, y)
    edges = np.unique(X).astype(np.float32)
    near = [edges, np.nextafter(edges, np.float32(99)), np.nextafter(edges, np.float32(-99)), edges + np.float32(1e-4)]
    rows = np.concatenate([rng.choice(np.concatenate(near), size=(300, 3)), X]).astype(np.float32)
    model, compiled = approxsvm.read_any(source), approxsvm.compile(source)
    answers = assert_proven(model, compiled, build(compiled, tmp_path, *STRICT, compiler=SANITIZED), rows)
    assert 0.2 < (answers.bounds[:, 0] < 1e-3).mean() < 1.0


def test_bounds_are_of_the_size_of_rounding(tmp_path: Path) -> None:
    """What is proven is not proven by bounds that say nothing: errors come near them."""
    for kind in KINDS:
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
    return X.astype(np.float32).astype(float), y  # or else categories are none of float32 rows


def looked_up(*steps: Any) -> Any:
    """Bins, categories and scaled numbers, in front of other steps."""
    parts = [
        ("bins", KBinsDiscretizer(4, encode="onehot-dense"), [0, 2]),
        ("categories", OneHotEncoder(handle_unknown="ignore", max_categories=5, sparse_output=False), [1]),
        ("numbers", StandardScaler(), [3, 5, 8]),
    ]
    return make_pipeline(ColumnTransformer(parts), *steps)


def bent_features(*steps: Any) -> Any:
    """Normal quantiles, splines that repeat, waves and bins, in front of other steps."""
    parts = [
        ("quantiles", QuantileTransformer(n_quantiles=40, output_distribution="normal"), [0, 1]),
        ("splines", SplineTransformer(4, extrapolation="periodic"), [2, 3]),
        ("waves", make_pipeline(MinMaxScaler(clip=True), AdditiveChi2Sampler()), [4, 5]),
        ("bins", make_pipeline(StandardScaler(), KBinsDiscretizer(4, encode="ordinal"), StandardScaler()), [6]),
        ("numbers", StandardScaler(), [8]),
    ]
    return make_pipeline(ColumnTransformer(parts), *steps)


def projected(last: Any) -> Any:
    return make_pipeline(StandardScaler(), PCA(4, whiten=True), last)


VALUES = {
    "expansion behind PCA": (projected(SVC(gamma=0.1)), 3, "approximate"),
    "expansion behind two": (
        make_pipeline(StandardScaler(), PCA(6), MinMaxScaler(clip=True), TruncatedSVD(4), SVC(gamma=0.5)),
        2,
        "approximate",
    ),
    "several centers": (projected(SVC(gamma=0.3)), 2, "centers"),
    "Gaussians behind PCA": (projected(SVC(gamma=0.1)), 4, "exact"),
    "one class": (projected(OneClassSVM(gamma=0.1, nu=0.2)), 2, "exact"),
    "polynomial behind PCA": (projected(SVC(kernel="poly", coef0=1.0)), 2, "exact"),
    "form behind PCA": (projected(SVC(kernel="poly", degree=2)), 3, "approximate"),
    "sigmoid, scaled": (make_pipeline(StandardScaler(), SVC(kernel="sigmoid", gamma=0.05)), 2, "exact"),
    "sigmoid behind PCA": (projected(SVC(kernel="sigmoid", gamma=0.05)), 2, "exact"),
    "linear, clipped": (make_pipeline(MinMaxScaler(clip=True), SVC(kernel="linear")), 3, "exact"),
    "linear model": (make_pipeline(StandardScaler(), LinearSVC()), 2, "certified"),
    "linear regression": (make_pipeline(StandardScaler(), SVR(kernel="linear")), 2, "certified"),
    "cosines": (
        make_pipeline(StandardScaler(), RBFSampler(gamma=0.05, random_state=0), RidgeClassifier()),
        2,
        "certified",
    ),
    "cosines, each": (projected(make_pipeline(RBFSampler(gamma=0.05, random_state=0), LinearSVC())), 4, "certified"),
    "cosines, regression": (make_pipeline(StandardScaler(), RBFSampler(random_state=0), Ridge()), 2, "certified"),
    "tables": (looked_up(SVC(gamma=0.03)), 3, "approximate"),
    "tables, several centers": (looked_up(SVC(gamma=0.03)), 2, "centers"),
    "tables, Gaussians": (looked_up(SVC(gamma=0.2)), 2, "exact"),
    "tables, PCA": (looked_up(PCA(5), SVC(gamma=0.2)), 2, "approximate"),
    "tables, polynomial": (looked_up(SVC(kernel="poly", coef0=1.0)), 3, "exact"),
    "tables, PCA, polynomial": (looked_up(PCA(5), SVC(kernel="poly", coef0=1.0)), 2, "exact"),
    "tables, form": (looked_up(SVC(kernel="poly", degree=2)), 2, "approximate"),
    "tables, cosines": (looked_up(RBFSampler(gamma=0.05, random_state=0), LinearSVC()), 2, "certified"),
    "tables alone": (make_pipeline(KBinsDiscretizer(4, encode="onehot-dense"), SVC(kernel="poly")), 2, "exact"),
    "products": (make_pipeline(StandardScaler(), PolynomialFeatures(3), RidgeClassifier()), 2, "certified"),
    "products, expansion": (
        make_pipeline(StandardScaler(), PolynomialFeatures(2, interaction_only=True), PCA(5), SVC(gamma=0.1)),
        3,
        "approximate",
    ),
    "tables, PCA, products": (looked_up(PCA(4), PolynomialFeatures(2), SVC(gamma=0.03)), 3, "exact"),
    "splines, scaled": (
        make_pipeline(StandardScaler(), SplineTransformer(5, extrapolation="linear"), SVC(gamma=0.1)),
        3,
        "approximate",
    ),
    "splines behind PCA": (projected(make_pipeline(SplineTransformer(4, degree=2), SVC(kernel="poly"))), 2, "exact"),
    "quantiles": (make_pipeline(QuantileTransformer(n_quantiles=40), SVC(gamma=0.1)), 2, "approximate"),
    "quantiles, scaled": (
        make_pipeline(StandardScaler(), QuantileTransformer(n_quantiles=9), RBFSampler(random_state=0), LinearSVC()),
        2,
        "certified",
    ),
    "splines, products": (
        make_pipeline(SplineTransformer(2, degree=1), PolynomialFeatures(2), MinMaxScaler(clip=True), SVC()),
        2,
        "approximate",
    ),
    "powers": (make_pipeline(PowerTransformer(), SVC(gamma=0.05)), 2, "exact"),
    "powers behind PCA": (projected(make_pipeline(PowerTransformer(), SVC(kernel="poly", coef0=1.0))), 3, "exact"),
    "logarithms": (
        make_pipeline(MinMaxScaler((0.0, 1.0), clip=True), FunctionTransformer(np.log1p), SVC(gamma=1.0)),
        2,
        "approximate",
    ),
    "l2 norms": (make_pipeline(Normalizer(), SVC(gamma=20.0)), 2, "exact"),
    "l1 norms behind PCA": (projected(make_pipeline(Normalizer("l1"), SVC(kernel="poly", coef0=1.0))), 3, "exact"),
    "norms of some": (
        make_pipeline(
            StandardScaler(),
            ColumnTransformer([("a", Normalizer("max"), [0, 3]), ("b", Normalizer("max"), [5, 8])]),
            SVC(gamma=0.1),
        ),
        2,
        "approximate",
    ),
    "bent": (bent_features(SVC(gamma=0.3)), 2, "exact"),
    "bent, expansion": (bent_features(PCA(5), SVC(gamma=0.1)), 3, "approximate"),
    "Nystroem": (make_pipeline(StandardScaler(), Nystroem(gamma=0.05, n_components=20), LinearSVC()), 2, "exact"),
}


@pytest.mark.parametrize("name", VALUES)
def test_sources(name: str, tmp_path: Path) -> None:
    source, n_classes, mode = VALUES[name]
    X, y = table(n_classes)
    fitted = source.fit(X, y)
    options = {"mode": "approximate", "n_centers": 5, "degree": 2} if mode == "centers" else {"mode": mode}
    model, compiled = approxsvm.read_any(fitted), approxsvm.compile(fitted, X, **options)
    noise = np.random.default_rng(1).normal(size=X.shape)
    spread = X.std(axis=0)
    rows = np.concatenate(
        [X, X + spread * noise, X[:9] + 1e3 * spread, at_boundary(model, X, np.random.default_rng(2))]
    )
    program = build(compiled, tmp_path, *STRICT, compiler=SANITIZED)
    answers = assert_proven(model, compiled, program, rows.astype(np.float32))
    if compiled.artifact.task != "regression":
        sure = answers.certain[: len(rows)]
        assert sure.mean() > 0.2
        labels = np.array([1, -1]) if name == "one class" else compiled.artifact.labels
        predicted = labels[answers.predicted[: len(rows)][sure]]
        np.testing.assert_array_equal(predicted, fitted.predict(rows.astype(np.float32).astype(float))[sure])


@pytest.mark.parametrize("inputs", ["int16", "int8"])
@pytest.mark.parametrize(
    "name", ["sigmoid, scaled", "linear, clipped", "linear model", "cosines", "Gaussians", "cubic"]
)
def test_no_bound_is_broken_for_rows_of_codes(name: str, inputs: str, tmp_path: Path) -> None:
    """The exact value is that of the numbers before they were quantized, within half a step."""
    more = {"Gaussians": (SVC(gamma="scale"), 3, "exact"), "cubic": (SVC(kernel="poly", gamma=1e-3), 2, "exact")}
    source, n_classes, mode = (VALUES | more)[name]
    X, y = table(n_classes)
    fitted = source.fit(X, y)
    model, compiled = approxsvm.read_any(fitted), approxsvm.compile(fitted, X, mode=mode)
    program = build(compiled, tmp_path, *STRICT, inputs=inputs, X=X)
    rows = np.concatenate([X, at_boundary(model, X, np.random.default_rng(0))]).astype(np.float32)
    beyond = X[:5] + 3 * np.ptp(X, axis=0)
    answers = program.answers(np.concatenate([rows, beyond]))
    n = len(rows)
    exact, slack = oracle.decision_values(model, rows)
    assert (np.abs(answers.values[:n].astype(Extended) - exact) <= answers.bounds[:n] + slack).all()
    assert np.isinf(answers.bounds[n:]).all()
    right = exact[:, 0] <= 0 if n_classes == 2 else class_numbers.winner(exact)
    assert (answers.predicted[:n] == right)[answers.certain[:n]].all()
    assert not answers.certain[n:].any()
    assert inputs == "int8" or answers.certain.any()


# --- probabilities, and several models

SHARES = {
    "LIBSVM, two": (SVC(probability=True, gamma="scale", random_state=0), 2),
    "LIBSVM, three": (SVC(probability=True, gamma="scale", random_state=0), 3),
    **{
        f"{method}, {n}": (CalibratedClassifierCV(SVC(gamma="scale"), method=method, ensemble=False), n)
        for method in ("sigmoid", "isotonic", "temperature")
        for n in (2, 3, 5)
    },
    "linear": (make_pipeline(StandardScaler(), LogisticRegression()), 2),
    "cosines": (make_pipeline(StandardScaler(), RBFSampler(gamma=0.02, random_state=0), LogisticRegression()), 4),
    "ensemble": (make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(), cv=3)), 3),
    "ensemble behind PCA": (CalibratedClassifierCV(projected(SVC()), cv=2), 2),
    "ensemble behind tables": (CalibratedClassifierCV(looked_up(SVC()), cv=3), 3),
    "ensemble behind tables and PCA": (CalibratedClassifierCV(looked_up(PCA(4), SVC(kernel="poly")), cv=2), 2),
    "bagging": (BaggingClassifier(SVC(kernel="poly", probability=True, random_state=0), 3, random_state=0), 2),
}


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", SHARES)
def test_probabilities_are_within_their_bounds(name: str, tmp_path: Path) -> None:
    source, n_classes = SHARES[name]
    X, y = table(n_classes)
    fitted = source.fit(X, y)
    compiled = approxsvm.compile(fitted, X)
    noise = np.random.default_rng(1).normal(size=X.shape)
    rows = np.concatenate([X, X + X.std(axis=0) * noise, X[:9] + 1e4 * X.std(axis=0)]).astype(np.float32)
    exact, labels = fitted.predict_proba(rows.astype(float)), compiled.artifact.labels
    strange = np.full_like(rows[:1], np.nan)
    program = build(compiled, tmp_path, *STRICT, compiler=SANITIZED)
    answers = program.answers(np.concatenate([rows, strange]))
    n = len(rows)
    order = np.argsort(labels)
    assert (np.abs(answers.shares[:n, order] - exact) <= answers.share_bounds[:n, order] + 1e-9).all()
    assert (answers.share_bounds <= 1.0).all()
    assert np.isnan(answers.shares[n]).all()
    assert (answers.share_bounds[n] == 1.0).all()
    assert not answers.certain[n]
    sure = answers.certain[:n]
    right = fitted.predict(rows.astype(float))
    np.testing.assert_array_equal(labels[answers.predicted[:n][sure]], right[sure])
    is_coupled = name.startswith("LIBSVM, three")
    assert sure.any()
    assert is_coupled or (answers.share_bounds[:n][sure] < 0.3).any()
    if compiled.artifact.mode == "exact":
        np.testing.assert_allclose(answers.shares[:n, order], exact, atol=1e-3)


def half(source: Any) -> Any:
    """A source that sees some columns alone, so that members differ."""
    return make_pipeline(ColumnTransformer([("half", StandardScaler(), [0, 3, 4, 8])]), source)


def calibrated(source: Any) -> Any:
    return CalibratedClassifierCV(source, ensemble=False, cv=2)


MEMBERS = [("a", projected(SVC())), ("b", half(LogisticRegression())), ("c", half(SVC(kernel="poly")))]
TURNS = half(make_pipeline(RBFSampler(random_state=0), RidgeClassifier()))
RULES = {
    "votes": (VotingClassifier(MEMBERS), 3),
    "weighted votes": (VotingClassifier(MEMBERS, weights=[0.1, 0.2, 0.3]), 2),
    "votes by probability": (VotingClassifier([("a", calibrated(half(SVC()))), MEMBERS[2]]), 3),
    "boosted": (half(AdaBoostClassifier(SVC(C=0.1), n_estimators=4, random_state=0)), 3),
    "weighted means": (
        VotingClassifier([("a", calibrated(half(SVC()))), MEMBERS[1]], voting="soft", weights=[1, 3]),
        3,
    ),
    "means at least": (FixedThresholdClassifier(CalibratedClassifierCV(half(SVC()), cv=2), threshold=0.4), 2),
    "votes of some classes": (BaggingClassifier(half(SVC()), 6, max_samples=6, random_state=0), 3),
    "functions": (OneVsRestClassifier(TURNS), 3),
    "functions of pairs": (OneVsOneClassifier(half(SVC())), 3),
    "functions, calibrated": (OneVsRestClassifier(calibrated(TURNS)), 3),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_of_several_models(name: str, tmp_path: Path) -> None:
    """Proven labels are the source's, at the boundary of a member, too; probabilities are within their bounds."""
    source, n_classes = RULES[name]
    X, y = table(n_classes)
    fitted = source.fit(X, y)
    compiled, model = approxsvm.compile(fitted, X), approxsvm.read_any(fitted)
    rng = np.random.default_rng(1)
    spread = X.std(axis=0)
    rows = np.concatenate([X, X + spread * rng.normal(size=X.shape), at_boundary(model.members[0], X, rng), 9 * X[:9]])
    rows = rows.astype(np.float32)
    program = build(compiled, tmp_path, *STRICT, compiler=SANITIZED)
    used = compiled.artifact.raw_columns.used  # one of them, so that some members may know the row
    refused = np.repeat(rows[:1], len(used), axis=0)
    refused[range(len(used)), used] = np.nan
    answers, n = program.answers(np.concatenate([refused, rows])), len(used)
    assert (answers.if_certain[:n] == -1).all()
    assert not np.concatenate([answers.predicted[:n], answers.certain[:n]]).any()
    sure, labels = answers.certain[n:], compiled.artifact.labels[answers.predicted[n:]]
    right = fitted.predict(rows.astype(float))
    np.testing.assert_array_equal(labels[sure], right[sure])
    assert (labels == right)[: 2 * len(X)].mean() > 0.97  # at the boundary float32 decides
    assert sure.mean() > 0.3
    np.testing.assert_array_equal(answers.if_certain[n:], np.where(sure, answers.predicted[n:], -1))
    if answers.shares.size:
        exact = fitted.predict_proba(rows.astype(float))[:, np.argsort(np.argsort(compiled.artifact.labels))]
        assert (np.abs(answers.shares[n:] - exact) <= answers.share_bounds[n:] + 1e-9).all()
    if answers.values.size:
        exact = np.concatenate([oracle.decision_values(member, rows)[0] for member in model.members], axis=1)
        assert (np.abs(answers.values[n:] - exact) <= answers.bounds[n:] + 1e-12).all()


TWO = [("a", projected(SVC())), ("b", half(LogisticRegression())), ("c", half(calibrated(SVC(kernel="poly"))))]
LABELED = {
    "stack": (StackingClassifier(TWO, cv=2), "two"),
    "stack, inner": (StackingClassifier(TWO[1:], final_estimator=RidgeClassifier(), cv=2), "two"),
    "stack of several": (StackingClassifier(TWO, LinearSVC(), cv=2, passthrough=True), "three"),
    "targets": (MultiOutputClassifier(half(SVC())), "several"),
    "indicators": (OneVsRestClassifier(SVC(gamma="scale")), "indicators"),
}


@pytest.mark.parametrize("name", LABELED)
def test_labels_of_sums_and_of_targets(name: str, tmp_path: Path) -> None:
    """Proven labels are the source's; values and probabilities of a stack are within their bounds."""
    source, kind = LABELED[name]
    X, y = table(3)
    answer = {"two": y > 0, "three": y, "several": np.column_stack([y, y == 1]), "indicators": np.eye(3)[y]}[kind]
    fitted = source.fit(X, answer)
    compiled = approxsvm.compile(fitted, X)
    rng = np.random.default_rng(1)
    a, b = X[rng.integers(0, len(X), 200)], X[rng.integers(0, len(X), 200)]
    for _ in range(30):  # to where some label changes
        middle = (0.5 * (a + b)).astype(np.float32).astype(float)
        same = (fitted.predict(middle) == fitted.predict(a)).reshape(len(a), -1).all(axis=1)[:, np.newaxis]
        a, b = np.where(same, middle, a), np.where(same, b, middle)
    rows = np.concatenate([X, 3 * X[:20], a, b]).astype(np.float32)
    program = build(compiled, tmp_path, *STRICT)
    answers = program.answers(np.concatenate([rows, np.full_like(rows[:1], np.nan)]))
    assert not answers.certain[-1]
    assert (answers.if_certain[-1] == -1).all()
    right, labels = fitted.predict(rows.astype(float)), compiled.artifact.labels[answers.predicted[:-1]]
    sure = answers.if_certain[:-1] >= 0
    np.testing.assert_array_equal(labels[sure], right[sure])
    np.testing.assert_array_equal(answers.if_certain[:-1], np.where(sure, answers.predicted[:-1], -1))
    np.testing.assert_array_equal(answers.certain[:-1], sure.reshape(len(rows), -1).all(axis=1))
    assert sure[: len(X)].mean() > 0.5
    assert not sure.all()
    if kind in ("two", "three"):
        values = fitted.decision_function(rows.astype(float)).reshape(len(rows), -1)
        assert (np.abs(answers.values[:-1] - values) <= answers.bounds[:-1] + 1e-12).all()
    if answers.shares.size:
        exact = fitted.predict_proba(rows.astype(float))[:, np.argsort(np.argsort(compiled.artifact.labels))]
        assert (np.abs(answers.shares[:-1] - exact) <= answers.share_bounds[:-1] + 1e-9).all()


SUMS = {
    "weighted": VotingRegressor(
        [("a", half(SVR())), ("b", projected(SVR(kernel="poly"))), ("c", half(Ridge()))], weights=[2.0, -0.5, 1e-3]
    ),
    "stacked": StackingRegressor([("a", projected(SVR())), ("b", half(SVR(kernel="linear")))], cv=2),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_several_models(name: str, tmp_path: Path) -> None:
    X, _ = table(2)
    y = np.sin(X[:, 0] / X[:, 0].std()) + X[:, 3] / X[:, 3].std()
    fitted = SUMS[name].fit(X, y)
    model, compiled = approxsvm.read_any(fitted), approxsvm.compile(fitted, X)
    rows = np.concatenate([X, 5 * X[:30], np.full_like(X[:1], np.nan)]).astype(np.float32)
    answers = build(compiled, tmp_path, *STRICT, compiler=SANITIZED).answers(rows)
    values = [oracle.decision_values(member, rows[:-1])[0][:, 0] for member in model.members]
    exact = sum((Extended(w) * v for w, v in zip(model.outputs.weights, values, strict=True)), Extended(0))
    exact = exact + Extended(model.outputs.addend)
    np.testing.assert_allclose(exact[:60].astype(float), fitted.predict(rows[:60].astype(float)), rtol=1e-9, atol=1e-9)
    assert (np.abs(answers.values[:-1, 0].astype(Extended) - exact) <= answers.bounds[:-1, 0]).all()
    assert np.isnan(answers.values[-1]).all()
    assert np.isinf(answers.bounds[-1]).all()
    parts = []
    for k, artifact in enumerate(compiled.artifact.members):
        member = SimpleNamespace(artifact=artifact, export_c=partial(export_c, artifact))
        parts.append(build(member, tmp_path / str(k)).answers(rows))
    narrowed = [part.bounds[:-1] - 2.0**-22 * np.abs(part.values[:-1]) for part in parts]
    own = sum(abs(w) * bounds for w, bounds in zip(model.outputs.weights, narrowed, strict=True))
    assert (answers.bounds[:-1] >= 0.9999 * own).all()
    np.testing.assert_array_equal(answers.certain, np.isfinite(answers.bounds[:, 0]))
    assert (answers.bounds[:240, 0] < 1.0).mean() > 0.3


@pytest.mark.parametrize("threshold_label", [0, 1])
@pytest.mark.parametrize("rule", ["value_threshold", "probability_threshold", "one_class"])
def test_labels_by_a_threshold(rule: str, threshold_label: int, tmp_path: Path) -> None:
    """Rows whose value, or probability, is the threshold itself or next to it included."""
    X, y = table(2)
    if rule == "one_class" and threshold_label:
        pytest.skip("a threshold of one class is for inliers")
    source = make_pipeline(StandardScaler(), OneClassSVM(nu=0.3) if rule == "one_class" else LogisticRegression())
    model = approxsvm.read_any(source.fit(X, y))
    rows = np.concatenate([X, X[:20] + 1e3]).astype(np.float32)
    numbers = approxsvm.compile(model).decision_function(rows)
    if rule != "one_class":
        numbers = -numbers if model.labels[threshold_label] == min(model.labels) else numbers
    kinds = {"label_rule": "value_threshold" if rule == "one_class" else rule, "threshold_label": threshold_label}
    for k, one in enumerate(np.quantile(numbers, [0.1, 0.4, 0.8], method="nearest")):
        threshold = one if "probability" not in rule else 1 / (1 + np.exp(-one))
        chosen = replace(model, outputs=replace(model.outputs, threshold=float(threshold), **kinds))
        for mode in ("exact", "certified"):
            compiled = approxsvm.compile(chosen, X, mode=mode)
            answers = build(compiled, tmp_path / f"{k}{mode}", *STRICT).answers(rows)
            expected = np.where(numbers >= one, threshold_label, 1 - threshold_label)
            close = np.abs(numbers - one) <= 1e-4 * (1 + np.abs(one))
            np.testing.assert_array_equal(answers.predicted[answers.certain], expected[answers.certain])
            np.testing.assert_array_equal(answers.predicted[~close], expected[~close])
            assert not answers.certain[numbers == one].any()
            assert answers.certain.mean() > 0.5
            np.testing.assert_array_equal(answers.if_certain, np.where(answers.certain, answers.predicted, -1))


def test_probabilities_of_one_class(tmp_path: Path) -> None:
    X, _ = table(2)
    model = approxsvm.read_any(OneClassSVM(gamma="scale", nu=0.2).fit(X))
    values = approxsvm.compile(model).decision_function(X)
    marks = np.quantile(values, np.linspace(0.05, 0.95, 10))
    model = replace(model, outputs=Outputs(probability=DensityMarks(marks)))
    compiled = approxsvm.compile(model, X, mode="exact")
    answers = build(compiled, tmp_path, *STRICT).answers(X.astype(np.float32))
    exact, _ = oracle.probabilities(model, X.astype(np.float32))
    assert (np.abs(answers.shares - exact) <= answers.share_bounds + 1e-12).all()
    assert (answers.share_bounds < 1e-6).all(axis=1).mean() > 0.9
    assert len(np.unique(answers.shares[:, 0])) > 5


@pytest.mark.parametrize("kernel", ["rbf", "cubic", "cosine"])
def test_several_targets(kernel: str, tmp_path: Path) -> None:
    X, y = table(3)
    X = StandardScaler().fit_transform(X)
    targets = np.column_stack([y, X[:, 0], X @ np.arange(9.0)])
    sources = {
        "rbf": KernelRidge(kernel="rbf", gamma=0.05),
        "cubic": KernelRidge(kernel="poly", gamma=0.1, coef0=1.0),
        "cosine": make_pipeline(RBFSampler(gamma=0.02, random_state=0), Ridge()),
    }
    source = sources[kernel].fit(X, targets)
    compiled = approxsvm.compile(source, X, tolerance=1.0)
    rows = X.astype(np.float32)
    answers = build(compiled, tmp_path, *STRICT).answers(np.concatenate([rows, np.full_like(rows[:1], np.nan)]))
    exact = source.predict(rows.astype(float))
    scale = 1e-9 * np.abs(exact).max()
    assert (np.abs(answers.values[:-1] - exact) <= answers.bounds[:-1] + scale).all()
    assert np.isnan(answers.values[-1]).all()
    np.testing.assert_array_equal(answers.certain[:-1], (answers.bounds[:-1] <= 1.0).all(axis=1))
    assert answers.certain.any()
    assert not answers.certain[-1]


@pytest.mark.parametrize("last", [PowerTransformer(), SplineTransformer(4)])
def test_an_error_that_is_not_known_stays_so(last: Any, tmp_path: Path) -> None:
    """Scaled to 0 but for rounding, the first row may be divided by its norm or not."""
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


def test_steps_behind_others_replace_or_refuse(tmp_path: Path) -> None:
    """Missing values, ends of splines and negative numbers, of rows as they are and of scaled ones."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, size=(200, 6)).astype(float)
    imputed = make_pipeline(StandardScaler(), SimpleImputer(strategy="median", add_indicator=True))
    codes = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(sparse_output=False))
    parts = [
        ("imputed", imputed, [0]),
        ("codes", codes, [1]),
        ("splines", SplineTransformer(3, extrapolation="error"), [2]),
        ("scaled splines", make_pipeline(StandardScaler(), SplineTransformer(3, extrapolation="error")), [3]),
        ("repeats", SplineTransformer(4, extrapolation="periodic"), [4]),
        ("waves", AdditiveChi2Sampler(), [5]),
    ]
    X[:9, 0], X[5:19, 1] = np.nan, np.nan
    source = make_pipeline(ColumnTransformer(parts), SVC()).fit(X, np.nansum(X, axis=1) > 12)
    model, compiled = approxsvm.read_any(source), approxsvm.compile(source, mode="exact")
    model = replace(model, intercept=model.intercept + 1e3)
    program = build(approxsvm.compile(model, mode="exact"), tmp_path, *STRICT, compiler=SANITIZED)
    rows = np.concatenate([X, X + np.array([1e6, 0, 0, 0, 4e6, 1e6])])
    wrong = np.array([[1, 1, 1, 1, 1, 1]] * 8, np.float32)
    wrong[range(8), [0, 1, 1, 2, 2, 3, 4, 5]] = (np.inf, 2.5, np.inf, -1e-30, np.nan, 4.1, np.nan, -1e-45)
    answers = assert_proven(model, compiled, program, np.concatenate([rows, wrong]).astype(np.float32), refused=8)
    assert answers.certain[: len(rows)].all()
    assert answers.bounds[: len(X)].max() < 1e-2


@pytest.mark.parametrize("step", [FunctionTransformer(np.log), PowerTransformer("box-cox")])
@pytest.mark.parametrize("mode", ["exact", "approximate"])
def test_what_has_no_logarithm_is_refused(step: Any, mode: str, tmp_path: Path) -> None:
    """However large the intercept, and however wide the tolerance."""
    X = np.exp(np.random.default_rng(0).normal(size=(100, 2)))
    model = approxsvm.read_any(make_pipeline(step, SVC(gamma=0.3)).fit(X, X[:, 0] > 1.0))
    model = replace(model, intercept=model.intercept + 1e3)
    compiled = approxsvm.compile(model, X, mode=mode)
    rows = np.array([[1, 1], [1, 0], [-1, 1], [-5, -7]], np.float32)
    program = build(compiled, tmp_path, *STRICT, compiler=SANITIZED)
    assert assert_proven(model, compiled, program, rows, refused=3).certain[0]
    assert "or has what a step does not take" in (tmp_path / "m.h").read_text()


def test_powers_and_logarithms_share_a_header(tmp_path: Path) -> None:
    X, y = table(2)
    steps = PowerTransformer(), MinMaxScaler((1.0, 2.0), clip=True), FunctionTransformer(np.log), SVC()
    source = make_pipeline(*steps).fit(X, y)
    compiled = approxsvm.compile(source, mode="exact")
    assert_proven(approxsvm.read_any(source), compiled, build(compiled, tmp_path, *STRICT), X.astype(np.float32))


def test_one_target_that_is_refused_refuses_all(tmp_path: Path) -> None:
    """A row too long for the first target alone."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    near, far = SVR(gamma=0.5).fit(X, X[:, 0]), SVR(gamma=1e-38, C=1e3).fit(X, 1e6 + X[:, 1])
    source = MultiOutputRegressor(SVR()).fit(X, X)
    source.estimators_ = [near, far]
    compiled = approxsvm.compile(source, mode="exact")
    answers = build(compiled, tmp_path, *STRICT).answers(np.array([[1, 1], [6e18, 6e18]], np.float32))
    assert np.isfinite(answers.bounds[0]).all()
    assert np.isnan(answers.values[1]).all()
    assert np.isinf(answers.bounds[1]).all()


# --- what is refused


def test_what_a_header_has_not_is_refused_by_name(tmp_path: Path) -> None:
    X, y = table(2)
    cubic = approxsvm.compile(SVC(kernel="poly", gamma=1e-3).fit(X, y))
    with pytest.raises(UnsupportedModelError, match="int8 in expansions alone, but this header has polynomial"):
        cubic.export_c(tmp_path / "m.h", coefficients="int8")
    ensemble = approxsvm.compile(CalibratedClassifierCV(SVC(), cv=2).fit(X, y), X)
    with pytest.raises(UnsupportedModelError, match="rows of codes for one model alone"):
        ensemble.export_c(tmp_path / "m.h", inputs="int8", X=X)
    behind = approxsvm.compile(projected(SVC()).fit(X, y), X, mode="approximate")
    with pytest.raises(UnsupportedModelError, match="leave inputs='float32'"):
        behind.export_c(tmp_path / "m.h", inputs="int8", X=X)
    model = approxsvm.read_any(VotingRegressor([("a", SVR()), ("b", Ridge())]).fit(X, y))
    sums = approxsvm.compile(replace(model, outputs=replace(model.outputs, weights=np.array([1.0, 1e39]))))
    with pytest.raises(UnsupportedModelError, match=r"a weight or addend of 1e\+39 does not fit float32"):
        sums.export_c(tmp_path / "m.h")
    cubic.artifact.__dict__["outputs"] = SimpleNamespace(
        label_rule="votes", probability=type("Unheard", (ClassProbability,), {})()
    )
    with pytest.raises(UnsupportedModelError, match="the C export has no step of kind unheard: apply"):
        on_device(cast(Step, SimpleNamespace(kind="unheard")))
    with pytest.raises(UnsupportedModelError, match="no Unheard probabilities"):
        cubic.export_c(tmp_path / "m.h")
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
    """The last row that is evaluated stays within float32, and the next one is refused."""
    for kind in KINDS:
        model, _ = random_machine(kind, 3)
        compiled = approxsvm.compile(model, mode="exact")
        longest = sums_of(compiled.artifact).longest
        scale = float(compiled.artifact.header["input_scale"]) if kind == "gaussian" else 1.0
        direction = np.random.default_rng(0).normal(size=(1, model.n_features))
        row = direction / np.linalg.norm(direction) * longest / scale
        if kind == "gaussian":
            row = row + compiled.artifact.center
        program = build(compiled, tmp_path / kind, *STRICT, compiler=SANITIZED)
        answers = program.answers(np.concatenate([0.999 * row, 1.001 * row]).astype(np.float32))
        assert np.isfinite(answers.values[0]).all()
        assert np.isnan(answers.values[1]).all()
        exact, slack = oracle.decision_values(model, (0.999 * row).astype(np.float32))
        assert np.abs(answers.values[0] - exact) <= answers.bounds[0] + slack


def test_two_translation_units(tmp_path: Path) -> None:
    """Headers of several models, ensembles among them, in one program."""
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
    for compiler in ([*C99, "-o", "both"], ["g++", "-x", "c++", "-std=c++17", "-o", "both"]):
        if shutil.which(compiler[0]):
            subprocess.run([*compiler, *STRICT, "a.c", "b.c"], cwd=tmp_path, check=True)
            subprocess.run(["./both"], cwd=tmp_path, check=True)
    undefined = subprocess.run([*C99, "-c", "-o", "a.o", "a.c"], cwd=tmp_path, check=True)
    undefined = subprocess.run(["nm", "-u", "a.o"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert set(undefined.stdout.split()) <= {"U", "_GLOBAL_OFFSET_TABLE_"}  # nothing of libc
