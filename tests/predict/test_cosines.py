"""Pipelines of RBFSampler or SkewedChi2Sampler and a linear model: bounds, tolerances, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.kernel_approximation import RBFSampler, SkewedChi2Sampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from zoo import oracle

import approxsvm
from approxsvm.errors import InputError, ModelFormatError, UnsupportedModelError
from approxsvm.frontends import read_any
from approxsvm.ir.cosine_model import CosineModel
from approxsvm.ir.outputs import Outputs, PairwiseSigmoid

EACH = Outputs(label_rule="scores", decision_shape="each")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 9)) * (rng.random((300, 9)) < 0.7) * 3.0 + 1.0
    return X, np.sin(X).sum(axis=1) > 0.5


def fitted(X, y, linear, *scalers, **options):
    sampler = RBFSampler(**{"gamma": 0.05, "n_components": 123, "random_state": 0, **options})
    return make_pipeline(*scalers, sampler, linear).fit(X, y)


def noise_of(pipeline, X):
    """Bound the rounding errors of scikit-learn's own float64 computation."""
    model = read_any(pipeline)
    mapped = X if model.input_map is None else model.input_map.apply(X)
    reach = model.slope * np.linalg.norm(mapped, axis=1) + model.scale
    return (model.n_features + model.n_terms + 64) * 2.0**-52 * reach


def test_tolerances_choose_the_arithmetic(rows):
    X, _ = rows
    pipeline = fitted(X, X[:, 0], Ridge(), StandardScaler())
    exact, close = approxsvm.compile(pipeline), approxsvm.compile(pipeline, tolerance=1e-2)
    assert exact.artifact.mode == "exact"
    assert exact.error_bound(X).max() < 1e-8
    assert (np.abs(close.predict(X) - pipeline.predict(X)) <= 1e-2 + noise_of(pipeline, X)).all()
    assert close.rows_per_stage["float32"] > 0.95 * len(X)
    assert exact.rows_per_stage["float64"] > 0.95 * len(X)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_verification_knows_cosines(rows, task, tmp_path):
    X, y = rows
    linear, target = (LinearSVC(), y) if task == "classification" else (Ridge(), X[:, 0])
    pipeline = fitted(X, target, linear, StandardScaler())
    fast = approxsvm.compile(pipeline)
    fast.save(tmp_path / "cosines.asvm")
    for compiled in (fast, approxsvm.load(tmp_path / "cosines.asvm")):
        found = approxsvm.verify(compiled, pipeline, X)
        assert found.kept
        assert found.largest_error_to_bound < 1.0
    other = fitted(X, np.roll(target, 1), linear, StandardScaler())
    assert approxsvm.verify(fast, other, X).bound_violations > 0
    assert fast.summary.kernel == "123 cosines"
    assert "123 cosines" in fast.report(X[:50], against=pipeline).html


def test_rows_that_break_a_tolerance_are_refused(rows):
    X, _ = rows
    fast = approxsvm.compile(fitted(X, X[:, 0], Ridge()), tolerance=1e-6)
    far = X.copy()
    far[7] *= 1e16
    assert (np.abs(fast.predict(X) - fitted(X, X[:, 0], Ridge()).predict(X)) <= 1.1e-6).all()
    assert np.isfinite(fast.predict(far)).all()  # the definition, in double-double arithmetic
    far[7] *= 1e30
    with pytest.raises(InputError, match="row 7"):
        fast.predict(far)


def test_frequencies_at_the_end_of_float64_compile():
    model = CosineModel("regression", np.array([[1.7e308]]), np.ones(1), np.array([0.5]), np.ones(1))
    fast = approxsvm.compile(model)
    X = np.array([[0.0], [1e-308]])
    assert oracle.holds(model, X, fast.predict(X), fast.error_bound(X)).all()
    assert fast.error_bound(X).max() < 1e-14
    with pytest.raises(InputError, match="row 1"):
        fast.predict(np.array([[0.0], [1.0]]))


def test_what_does_not_compile_is_named(rows):
    X, y = rows
    pipeline = fitted(X, y, LinearSVC())
    with pytest.raises(UnsupportedModelError, match="has no expansion: compile it with mode='certified'"):
        approxsvm.compile(pipeline, mode="approximate")
    with pytest.raises(UnsupportedModelError, match="has no expansion"):
        approxsvm.compile(pipeline, degree=2)
    with pytest.raises(ValueError, match="tolerance is -1"):
        approxsvm.compile(pipeline, tolerance=-1.0)
    with pytest.raises(UnsupportedModelError, match="max_bytes is 1,000"):
        approxsvm.compile(pipeline, max_bytes=1000)
    with pytest.raises(UnsupportedModelError, match="use read_any"):
        approxsvm.read_model(pipeline)
    approxsvm.compile(pipeline)
    pipeline[0].random_offset_ = pipeline[0].random_offset_ + 10.0
    with pytest.raises(ModelFormatError, match=r"the largest absolute phase is 1[0-9.]+, but at most 8"):
        approxsvm.compile(pipeline)
    pipeline[0].n_components = 5
    with pytest.raises(ModelFormatError, match="123 random offsets, but n_components is 5"):
        approxsvm.compile(pipeline)


def random_model(rng, d, n, gamma, scale=1.0):
    coef = rng.normal(size=n) * scale
    coef[1:][rng.random(n - 1) < 0.1] = 0.0
    return CosineModel(
        "regression",
        frequencies=rng.normal(size=(n, d)) * np.sqrt(2 * gamma),
        phases=rng.uniform(0, 2 * np.pi, n),
        coef=coef,
        intercept=rng.normal(size=1) * scale,
    )


def test_float32_bounds_hold_and_are_not_far_too_large(target):
    """Rows are inside the range in which float32 range reduction works, and outside it."""
    rng = np.random.default_rng(1)
    model = random_model(rng, 10, 64, 0.05)
    fast = approxsvm.compile(model, tolerance=model.scale)
    X = rng.normal(size=(60, 10))
    X *= 10.0 ** np.linspace(-3, 9, 60)[:, np.newaxis]
    bound = fast.error_bound(X)
    assert oracle.holds(model, X, fast.predict(X), bound).all()
    stages = fast.rows_per_stage
    assert stages["float32"] > 30
    assert stages["float64"] > 5
    usual = np.linalg.norm(X, axis=1) < 100
    assert bound[usual].max() < 1e-3 * model.scale


def test_skewed_chi2_features_are_explained(rows):
    X, y = rows
    X = np.maximum(X, 0.0)
    pipeline = make_pipeline(SkewedChi2Sampler(skewedness=0.5, n_components=90, random_state=0), LinearSVC()).fit(X, y)
    fast = approxsvm.compile(pipeline)
    assert "takes logarithms, feature by feature (9)" in fast.report(X[:50], against=pipeline).html
    X[5, 2] = -0.5
    with pytest.raises(InputError, match=r"row 5: log needs a value above -0.5, got -"):
        fast.predict(X)


def model_of_classes(rng, n_classes):
    """Return a model with one function per class."""
    coef = rng.normal(size=(n_classes, 37)) * 2.0 ** rng.integers(-3, 4, (n_classes, 1))
    labels, nothing = rng.permutation(n_classes), np.zeros(n_classes)
    return CosineModel(
        "classification",
        frequencies=rng.normal(size=(37, 5)),
        phases=rng.uniform(-6.0, 6.0, 37),
        coef=coef,
        intercept=rng.normal(size=n_classes),
        labels=labels,
        outputs=EACH,
        value_error=nothing,
    )


def test_the_first_of_equal_values_wins(target):
    """If functions are equal, or differ by less than any bound, no bound decides; the first class then wins."""
    rng = np.random.default_rng(0)
    model = model_of_classes(rng, 4)
    coef, intercept = model.coef.copy(), model.intercept.copy()
    coef[1:3], intercept[1:3] = coef[1], 100.0
    tied = replace(model, coef=coef, intercept=intercept)
    rows = rng.normal(size=(70, 5))
    fast = approxsvm.compile(tied)
    for part in (rows, rows[:1], csr_array(rows)):
        assert (fast.predict(part) == tied.labels[1]).all()
        assert not fast.certified(part).any()
    assert fast.rows_per_stage["definition"] > 0
    intercept[2] = np.nextafter(100.0, 200.0)
    closer = replace(tied, intercept=intercept)
    assert (approxsvm.compile(closer).predict(rows) == closer.labels[2]).mean() > 0.9  # after rounding of the sum
    intercept[2] = 100.0 + 1e-11
    assert (approxsvm.compile(replace(tied, intercept=intercept)).predict(rows) == tied.labels[2]).all()


def test_functions_that_do_not_fit_are_named(rows):
    X, _ = rows
    fast = approxsvm.compile(fitted(X, np.digitize(X[:, 0], [0.0, 1.0]), LinearSVC()))
    assert not hasattr(fast, "predict_proba")
    with pytest.raises(
        AttributeError, match=r"^this CompiledSVC has no predict_proba: .* CalibratedClassifierCV\(source, en"
    ):
        fast.predict_proba(X)
    with pytest.raises(InputError, match="expected"):
        approxsvm.Predictor(fast.artifact).predict(X[:, :3])
    model = model_of_classes(np.random.default_rng(0), 3)
    with pytest.raises(ModelFormatError, match="a classification model with 3 functions cannot have 2 labels"):
        replace(model, labels=np.arange(2))
    with pytest.raises(ModelFormatError, match="decision_shape is 'ovr' for 3 functions"):
        replace(model, outputs=Outputs(label_rule="scores", decision_shape="ovr"))
    with pytest.raises(ModelFormatError, match="allow no votes or pairwise sigmoids"):
        replace(model, outputs=Outputs(decision_shape="each"))
    with pytest.raises(ModelFormatError, match="allow no votes or pairwise sigmoids"):
        replace(model, outputs=replace(EACH, probability=PairwiseSigmoid(np.ones(3), np.ones(3))))
    with pytest.raises(ModelFormatError, match=r"coef has shape \(2, 37\), expected \(3, 37\)"):
        replace(model, coef=model.coef[:2])
    with pytest.raises(ModelFormatError, match=r"intercept has shape \(2,\), expected \(3,\)"):
        replace(model, intercept=np.zeros(2))
