"""Pipelines of RBFSampler or SkewedChi2Sampler and a linear model: labels, values, bounds, through every door."""

from __future__ import annotations

import bz2
import io
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import stored
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_svmlight_file
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import RBFSampler, SkewedChi2Sampler
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR
from zoo import oracle

import approxsvm
from approxsvm.errors import InputError, ModelFormatError, UnsupportedModelError
from approxsvm.model.cosine_model import CosineModel
from approxsvm.readers import read_any
from approxsvm.reference.decision_values import decision_function


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 9)) * (rng.random((300, 9)) < 0.7) * 3.0 + 1.0
    return X, np.sin(X).sum(axis=1) > 0.5


def fitted(X, y, linear, *scalers, **options):
    sampler = RBFSampler(**{"gamma": 0.05, "n_components": 123, "random_state": 0, **options})
    return make_pipeline(*scalers, sampler, linear).fit(X, y)


def noise_of(pipeline, X):
    """What scikit-learn's own float64 may lose."""
    model = read_any(pipeline)
    mapped = X if model.input_map is None else model.input_map.apply(X)
    reach = model.slope * np.linalg.norm(mapped, axis=1) + model.sum_moduli
    return (model.n_features + model.n_terms + 64) * 2.0**-52 * reach


@pytest.mark.parametrize(
    "linear",
    [LinearSVC(), LogisticRegression(C=100.0), RidgeClassifier(), SGDClassifier(loss="log_loss", random_state=0)],
)
@pytest.mark.parametrize("scalers", [(), (StandardScaler(),), (MinMaxScaler(clip=True), PCA(5))])
def test_classifiers_compile(rows, linear, scalers):
    X, y = rows
    pipeline = fitted(X, np.array(["no", "yes"])[y * 1], linear, *scalers)
    fast = approxsvm.compile(pipeline, X)
    assert fast.artifact.mode == "exact"
    np.testing.assert_array_equal(fast.predict(X), pipeline.predict(X))
    values, noise = pipeline.decision_function(X), noise_of(pipeline, X)
    assert (np.abs(fast.decision_function(X) - values) <= fast.error_bound(X) + noise).all()
    assert fast.error_bound(X).max() < 1e-9 * read_any(pipeline).sum_moduli
    assert fast.certified(X).mean() > 0.95
    if hasattr(linear, "predict_proba"):
        np.testing.assert_allclose(fast.predict_proba(X), pipeline.predict_proba(X), atol=1e-9)
    again = approxsvm.Predictor(fast.artifact.data)
    for part in (X, X[:1], sp.csr_array(X), X.astype(np.float32).astype(np.float64)):
        np.testing.assert_array_equal(again.predict(part), fast.predict(part))


@pytest.mark.parametrize("linear", [Ridge(), LinearSVR(C=10.0, max_iter=100_000)])
def test_regressions_compile(rows, linear):
    X, _ = rows
    pipeline = fitted(X, X[:, 0], linear, StandardScaler())
    exact, close = approxsvm.compile(pipeline), approxsvm.compile(pipeline, tolerance=1e-2)
    for part in (X, X[:1], sp.csr_array(X)):
        dense = part.toarray() if sp.issparse(part) else part
        values, noise = pipeline.predict(dense), noise_of(pipeline, dense)
        assert (np.abs(exact.predict(part) - values) <= exact.error_bound(part) + noise).all()
        assert exact.error_bound(part).max() < 1e-8
        assert (np.abs(close.predict(part) - values) <= 1e-2 + noise).all()
    assert close.rows_per_stage["float32"] > 0.95 * 2 * len(X)
    assert exact.rows_per_stage["float64"] > 0.95 * 2 * len(X)


def test_estimators_around_pipelines_compile(rows):
    X, y = rows
    for ensemble in (False, True):
        pipeline = fitted(X, y, LinearSVC(), StandardScaler())
        source = CalibratedClassifierCV(pipeline, ensemble=ensemble, cv=2).fit(X, np.array(["no", "yes"])[y * 1])
        fast = approxsvm.compile(source)
        np.testing.assert_allclose(fast.predict_proba(X), source.predict_proba(X), atol=1e-9)
        np.testing.assert_array_equal(fast.predict(X), source.predict(X))
    target = 1e3 * X[:, 0] + 50.0
    regressor = make_pipeline(RBFSampler(gamma=0.05, random_state=0), Ridge())
    restored = TransformedTargetRegressor(regressor, transformer=StandardScaler()).fit(X, target)
    fast = approxsvm.compile(restored)
    assert (np.abs(fast.predict(X) - restored.predict(X)) <= fast.error_bound(X) + 1e-8).all()
    assert approxsvm.verify(fast, restored, X).kept


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
    assert np.isfinite(fast.predict(far)).all()  # the definition, in twice the precision
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
    with pytest.raises(UnsupportedModelError, match="read_any reads it"):
        approxsvm.read_model(pipeline)
    approxsvm.compile(pipeline)
    pipeline[0].random_offset_ = pipeline[0].random_offset_ + 10.0
    with pytest.raises(ModelFormatError, match=r"a phase is 1[0-9.]+ in modulus, but at most 8"):
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


@pytest.mark.parametrize("seed", range(6))
def test_no_bound_is_broken(seed, target):
    rng = np.random.default_rng(seed)
    d, n = int(rng.choice([1, 2, 7, 40])), int(rng.choice([1, 5, 16, 31]))
    model = random_model(rng, d, n, 10.0 ** rng.uniform(-8, 8), 10.0 ** rng.uniform(-20, 20))
    fast, loose = approxsvm.compile(model), approxsvm.compile(model, tolerance=1e-3 * model.sum_moduli)
    X = rng.normal(size=(8, d)) * 10.0 ** rng.uniform(-6, 9, (8, 1))
    X[rng.random((8, d)) < 0.3] = 0.0
    for form in (np.array, sp.csr_array, lambda dense: dense.astype(np.float32)):
        given = form(X)
        meant = np.asarray((given.toarray() if sp.issparse(given) else given).astype(np.float64))
        for compiled in (fast, loose):
            assert oracle.holds(model, meant, compiled.predict(given), compiled.error_bound(given)).all()
        alone = [fast.predict(given[i : i + 1])[0] for i in range(3)]
        assert oracle.holds(model, meant[:3], alone, fast.error_bound(given[:3])).all()
        assert fast.error_bound(given).max() <= 1e-10 * model.sum_moduli + 1e-14 * abs(model.intercept[0])


def test_float32_bounds_hold_and_are_not_far_too_large(target):
    """Where the range reduction works in float32, and where it does not any more."""
    rng = np.random.default_rng(1)
    model = random_model(rng, 10, 64, 0.05)
    fast = approxsvm.compile(model, tolerance=model.sum_moduli)
    X = rng.normal(size=(60, 10))
    X *= 10.0 ** np.linspace(-3, 9, 60)[:, np.newaxis]
    bound = fast.error_bound(X)
    assert oracle.holds(model, X, fast.predict(X), bound).all()
    stages = fast.rows_per_stage
    assert stages["float32"] > 30
    assert stages["float64"] > 5
    usual = np.linalg.norm(X, axis=1) < 100
    assert bound[usual].max() < 1e-3 * model.sum_moduli


@pytest.mark.attack
def test_no_label_about_the_boundary_is_wrong(target):
    """Rows that are moved onto the boundary by bisection, up to neighbours in float64."""
    rng = np.random.default_rng(2)
    n_open = 0
    for d, n, gamma in [(1, 3, 1.0), (4, 20, 0.1), (20, 30, 1e-3), (3, 17, 1e4)]:
        regression = random_model(rng, d, n, gamma)
        model = CosineModel(
            "classification",
            regression.frequencies,
            regression.phases,
            regression.coef,
            0.01 * regression.intercept,
            labels=np.array([1, -1]),
        )
        fast = approxsvm.compile(model)
        ends = rng.normal(size=(400, d)) / np.sqrt(gamma)
        values = decision_function(model, ends)[:, 0]
        above, below = ends[values > 0][:15], ends[values < 0][:15]
        size = min(len(above), len(below))
        above, below = above[:size].copy(), below[:size].copy()
        near = []
        for _ in range(60):
            middle = 0.5 * (above + below)
            positive = decision_function(model, middle) > 0
            above, below = np.where(positive, middle, above), np.where(positive, below, middle)
        for step in (0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-4):
            near += [above + step * (above - ends[0]), below + step * (below - ends[1])]
        X = np.concatenate(near)
        exact = oracle.decision_values(model, X)[0][:, 0]
        signs = np.where(exact > 0, 1, -1)
        # What the definition cannot tell, either, is nearer to the boundary than any bound is promised for.
        tied = np.abs(exact) <= 24 * 2.0**-53 * model.sum_moduli
        assert tied.mean() < 0.4
        labels = fast.predict(X)
        np.testing.assert_array_equal(labels[~tied], signs[~tied])
        n_open += fast.rows_per_stage["definition"]
    assert n_open > 15


def test_adult_has_the_labels_of_scikit_learn():
    with bz2.open(stored("data/a9a.bz2")) as file:
        X, y = load_svmlight_file(io.BytesIO(b"".join(islice(file, 4000))), n_features=123)
    pipeline = make_pipeline(
        RBFSampler(gamma=0.0125, n_components=300, random_state=0), LinearSVC(dual=False, C=1.0)
    ).fit(X, y)
    fast = approxsvm.compile(pipeline)
    for rows in (X, X.toarray()):
        labels = fast.predict(rows)
        clear = np.abs(pipeline.decision_function(rows)) > noise_of(pipeline, X.toarray())
        assert clear.mean() > 0.999
        np.testing.assert_array_equal(labels[clear], pipeline.predict(rows)[clear])
    assert fast.rows_per_stage["float32"] > 0.99 * 2 * X.shape[0]


@pytest.mark.parametrize("skewedness", [1e-3, 0.5, 40.0])
@pytest.mark.parametrize("scalers", [(), (MinMaxScaler(clip=True),)])
def test_skewed_chi2_features_compile(rows, skewedness, scalers):
    X, y = rows
    X = np.maximum(X, 0.0)
    sampler = SkewedChi2Sampler(skewedness=skewedness, n_components=90, random_state=0)
    pipeline = make_pipeline(*scalers, sampler, LinearSVC()).fit(X, y)
    fast, model = approxsvm.compile(pipeline), read_any(pipeline)
    values, noise = pipeline.decision_function(X), noise_of(pipeline, X)
    for form in (np.array, sp.csr_array):
        np.testing.assert_array_equal(fast.predict(form(X)), pipeline.predict(X))
        assert (np.abs(fast.decision_function(form(X)) - values) <= fast.error_bound(form(X)) + noise).all()
    assert fast.certified(X).mean() > 0.99
    assert approxsvm.verify(fast, pipeline, X).kept
    assert "takes logarithms, feature by feature (9)" in fast.report(X[:50], against=pipeline).html
    assert oracle.holds(model, X[:20], fast.decision_function(X[:20]), fast.error_bound(X[:20])).all()
    bad = X.copy()
    bad[5, 2] = -skewedness
    if not scalers:
        with pytest.raises(InputError, match=f"row 5: log needs a value above -{skewedness:.6g}, got -"):
            fast.predict(bad)
        with pytest.raises(ValueError, match="skewedness"):
            pipeline.predict(bad)
