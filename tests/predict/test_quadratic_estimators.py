"""Linear and quadratic models and ensembles as estimators: bounds, near ties, files and their bytes."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM

import approxsvm
from approxsvm.artifact import writer
from approxsvm.artifact.views import Artifact
from approxsvm.errors import ArtifactError, InputError, UnsupportedModelError
from approxsvm.model.ensemble import Ensemble
from approxsvm.model.kernel_model import KernelModel
from approxsvm.readers import read_any


@pytest.fixture(scope="module")
def rows():
    return make_classification(150, 5, n_informative=4, n_redundant=0, random_state=1)


def sources(X, y):
    return {
        "linear": SVC(kernel="linear").fit(X, y),
        "quadratic": SVC(kernel="poly", degree=2, coef0=1, gamma=0.5).fit(X, y),
        "several": SVC(kernel="poly", degree=2).fit(X, y + (X[:, 0] > 1)),
        "regression": SVR(kernel="linear", C=0.1).fit(X, X[:, 0]),
        "one class": OneClassSVM(kernel="linear", nu=0.3).fit(X + 3),
        "LinearSVC": LinearSVC().fit(X, np.array(["no", "yes"])[y]),
        "pipeline": make_pipeline(StandardScaler(), SVC(kernel="poly", degree=2)).fit(X, y),
        "ensemble": CalibratedClassifierCV(SVC(kernel="linear"), cv=2).fit(X, y),
        "ensemble of RBF": CalibratedClassifierCV(SVC(), cv=2).fit(X, y),
    }


KINDS = tuple(sources(*make_classification(60, 5, random_state=0)))


@pytest.mark.parametrize("mode", ["certified", "approximate", "exact"])
@pytest.mark.parametrize("kind", KINDS)
def test_estimators_survive_what_scikit_learn_does_with_them(rows, kind, mode, tmp_path):
    X, y = rows
    source = sources(X, y)[kind]
    fast = approxsvm.compile(source, mode=mode)
    expected = fast.predict(X)
    if mode != "approximate":
        np.testing.assert_allclose(expected, source.predict(X)) if kind == "regression" else (
            np.testing.assert_array_equal(expected, source.predict(X))
        )
    fast.save(tmp_path / "model.asvm")
    for same in (
        clone(fast),
        pickle.loads(pickle.dumps(fast)),
        copy.deepcopy(fast),
        approxsvm.load(tmp_path / "model.asvm"),
    ):
        np.testing.assert_array_equal(same.predict(X), expected)
        assert same.artifact == fast.artifact
        assert type(same) is type(fast)
    assert "bytes" in str(fast.summary)
    if kind != "ensemble of RBF":  # there the planner may prefer the exact engine
        assert fast.summary.mode == ("approximate" if mode == "approximate" else "certified")
    assert fast.within_gamma_bound(X).shape == (len(X),)
    assert sum(fast.rows_per_stage.values()) > 0


@pytest.mark.parametrize("kind", ["linear", "quadratic", "several", "regression", "pipeline"])
def test_bounds_hold_against_exact_arithmetic(rows, kind):
    """The source's function over the rational numbers."""
    X, y = rows
    model = read_any(sources(X, y)[kind])
    fast = approxsvm.compile(model)
    scale = 10.0 ** np.arange(-3, 4)
    Z = np.concatenate([X[:3] * factor for factor in scale])
    values, bounds, _ = fast._evaluate(Z, bounds=True)
    values, bounds = values.reshape(len(Z), -1), bounds.reshape(len(Z), -1)
    mapped = Z if model.input_map is None else model.input_map.apply(Z)
    vectors = [[Fraction(v) for v in x] for x in model.dense_support_vectors(0, model.n_sv)]
    for k in range(model.n_decisions):
        coefficients = [Fraction(a) for a in model.coefficients(k)]
        for row, z in enumerate(mapped):
            z = [Fraction(v) for v in z]
            total = Fraction(model.intercept[k])
            for a, x in zip(coefficients, vectors, strict=True):
                if a:
                    dot = sum(p * q for p, q in zip(x, z, strict=True))
                    total += a * (Fraction(model.gamma) * dot + Fraction(model.coef0)) ** model.degree
            assert abs(Fraction(values[row, k]) - total) <= Fraction(bounds[row, k])


def test_rows_on_the_boundary_are_summed_as_the_source_does():
    """Whole numbers: the exact value is 0, and the label a matter of the order of summation."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.integers(-3, 4, size=(40, 3)), np.zeros((1, 3))]).astype(float)
    y = (X[:, 0] > 0).astype(int)
    source = SVC(kernel="linear", C=1.0).fit(X, y)
    normal = np.array(source.coef_[0])
    Z = X - np.outer((X @ normal + source.intercept_[0]) / (normal @ normal), normal)
    fast = approxsvm.compile(source)
    fast.predict(Z)
    assert fast.rows_per_stage["definition"] > 10
    assert not fast.certified(Z).all()
    assert (np.abs(fast.decision_function(Z) - source.decision_function(Z)) <= 2 * fast.error_bound(Z)).all()
    same = approxsvm.compile(source, mode="approximate")
    assert len(same.artifact.data) < len(fast.artifact.data)
    assert len(same.artifact.support_vectors()) == 0


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pipeline"])
def test_values_beyond_float64_are_refused_by_row(rows, kind):
    """Never NaN and never infinity: a value that cannot be had is an error that says where."""
    X, y = rows
    fast = approxsvm.compile(sources(X, y)[kind])
    beyond = np.tile(X[0], (40_000, 1))
    beyond[33_333] = [1.7e308, -1.7e308, 1.7e308, -1.7e308, 1.7e308]
    fits = kind in ("regression", "LinearSVC", "ensemble of RBF")  # small weights, or kernels that vanish
    for method in ("predict", "decision_function", "predict_proba", "error_bound"):
        if not hasattr(fast, method):
            continue
        for given, row in ((beyond, 33_333), (csr_array(beyond), 33_333), (beyond[33_333:], 0)):
            if fits:
                found = getattr(fast, method)(given)
                assert found.dtype.kind == "U" or not np.isnan(found.astype(float)).any()
            else:
                with pytest.raises(InputError, match=f"value of row {row} of X, or a term of it, exceeds the range"):
                    getattr(fast, method)(given)
    if not fits:
        with pytest.raises(InputError, match="of row 0 of X"):
            fast.predict_one(beyond[33_333])


@pytest.mark.parametrize("exponent", [-300, -200, -150, 150, 153, 200, 300])
def test_bounds_hold_wherever_values_are_numbers(exponent):
    """Squares of such rows leave float64's range long before the values of a linear model do."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    w = rng.normal(size=5)
    model = KernelModel("regression", w[np.newaxis], np.ones(1), np.zeros(1), 1.0, degree=1)
    far = X * 10.0**exponent
    values, bounds, _ = approxsvm.compile(model)._evaluate(far, bounds=True)
    for row, value, bound in zip(far, values, bounds, strict=True):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(row, w, strict=True))
        assert abs(Fraction(value) - exact) <= Fraction(bound)
        assert bound <= 1e-13 * np.abs(row * w).sum() + 1e-300


@pytest.mark.parametrize("exponent", [100, 150])
def test_labels_far_away_are_the_sources(rows, exponent):
    X, y = rows
    for source in (SVC(kernel="linear").fit(X, y), SVC(kernel="poly", degree=2, coef0=1, gamma=0.5).fit(X, y)):
        far = X * 10.0**exponent
        np.testing.assert_array_equal(approxsvm.compile(source).predict(far), source.predict(far))


def test_an_ensemble_settles_labels_and_bounds_probabilities(rows):
    X, y = rows
    source = CalibratedClassifierCV(SVC(gamma=0.3), cv=3).fit(X, y)
    for tolerance in (None, 1e-2):
        fast = approxsvm.compile(source, tolerance=tolerance)
        np.testing.assert_array_equal(fast.predict(X), source.predict(X))
        errors = np.abs(fast.predict_proba(X) - source.predict_proba(X))
        assert (errors <= fast.probability_bound(X) + 1e-12).all()
        assert errors.max() < (1e-9 if tolerance is None else 1e-2)
        np.testing.assert_array_equal(fast.error_bound(X), fast.probability_bound(X))
        assert not hasattr(fast, "decision_function")
    with pytest.raises(InputError, match="an ensemble has no decision values"):
        approxsvm.verify(fast, source, X)
    assert [type(member).__name__ for member in fast.members] == ["CompiledSVC"] * 3


@pytest.mark.parametrize("kind", ["linear", "quadratic", "several", "regression", "one class", "LinearSVC", "pipeline"])
def test_verify(rows, kind):
    X, y = rows
    source = sources(X, y)[kind]
    found = approxsvm.verify(approxsvm.compile(source), source, X)
    assert found.kept
    assert found.certified_fraction > 0.9


def test_verify_takes_several_classes_and_pipelines(rows):
    X, y = rows
    for source in (SVC(gamma=0.1).fit(X, y + (X[:, 0] > 1)), make_pipeline(StandardScaler(), SVC()).fit(X, y)):
        for mode in ("certified", "exact", "approximate"):
            fast = approxsvm.compile(source, mode=mode)
            assert approxsvm.verify(fast, source, X).kept
    other = approxsvm.compile(SVC(gamma=0.2).fit(X, y + (X[:, 0] > 1)), mode="exact")
    found = approxsvm.verify(other, SVC(gamma=0.1, C=0.1).fit(X, y + (X[:, 0] > 1)), X)
    assert not found.kept


def test_options():
    X, y = make_classification(50, 4, random_state=0)
    source = SVC(kernel="linear").fit(X, y)
    with pytest.raises(UnsupportedModelError, match="max_bytes is 10"):
        approxsvm.compile(source, max_bytes=10)
    with pytest.raises(approxsvm.InputError, match="X has 3 features, but the model has 4"):
        approxsvm.compile(source, X[:, :3])
    strange = replace(read_any(source), labels=np.array([1 + 2j, 2]))
    with pytest.raises(UnsupportedModelError, match="complex128 cannot be stored"):
        approxsvm.compile(strange)


# Bytes


def files(rows):
    X, y = rows
    small = SVC(kernel="poly", degree=2).fit(X[:8, :2], y[:8])
    quadratic = approxsvm.compile(make_pipeline(StandardScaler(), small).fit(X[:8, :2], y[:8])).artifact
    ensemble = approxsvm.compile(CalibratedClassifierCV(LinearSVC(), cv=2).fit(X[:20, :2], y[:20])).artifact
    return {"quadratic": quadratic.data, "ensemble": ensemble.data}


@pytest.mark.parametrize("kind", ["quadratic", "ensemble"])
def test_broken_files_are_refused(rows, kind, tmp_path):
    data = files(rows)[kind]
    assert Artifact(data).data == data
    for size in range(0, len(data), 7):
        with pytest.raises(ArtifactError):
            Artifact(data[:size])
    for position in range(0, len(data), 5):
        changed = bytearray(data)
        changed[position] ^= 0x10
        with pytest.raises(ArtifactError):
            Artifact(bytes(changed))
    (tmp_path / "bad.asvm").write_bytes(data + b"\0")
    with pytest.raises(ArtifactError, match=r"bad\.asvm: file_bytes is"):
        approxsvm.load(tmp_path / "bad.asvm")


def test_members_that_do_not_match_are_refused(rows):
    X, y = rows
    sources = [CalibratedClassifierCV(LinearSVC(), ensemble=False).fit(X[:, :d], y) for d in (2, 3)]
    two = Ensemble((approxsvm.read_model(sources[0]),) * 2)
    with pytest.raises(ArtifactError, match="member 1: n_raw_features is 3, expected"):
        writer.build_ensemble([approxsvm.compile(source).artifact for source in sources], two)
    plain = approxsvm.compile(LinearSVC().fit(X, y)).artifact
    with pytest.raises(ArtifactError, match="probability of section outputs is 0, expected at least 1"):
        writer.build_ensemble([plain], Ensemble((replace(two.members[0], labels=plain.labels),)))


def test_regressions_side_by_side_are_one_model(rows):
    """Several decision functions in one file: values, bounds and stages of each, one row or many."""
    X, _ = rows
    targets = [X[:, 0] ** 2, np.sin(X[:, 1])]
    sources = [make_pipeline(StandardScaler(), SVR(C=10)).fit(X, target) for target in targets]
    members = [approxsvm.compile(source, tolerance=1e-3) for source in sources]
    ensemble = Ensemble(tuple(approxsvm.read_model(source) for source in sources), "two regressions")
    artifact = writer.build_ensemble([member.artifact for member in members], ensemble)
    together = approxsvm.Predictor(artifact)
    expected = np.column_stack([member.predict(X) for member in members])
    np.testing.assert_array_equal(together.predict(X), expected)
    np.testing.assert_array_equal(together.decision_function(csr_array(X)), expected)
    np.testing.assert_array_equal(
        together.error_bound(X), np.column_stack([member.error_bound(X) for member in members])
    )
    np.testing.assert_array_equal(together.certified(X), np.all([member.certified(X) for member in members], axis=0))
    assert np.abs(together.predict_one(X[0]) - expected[0]).max() <= 2e-3
    exact = np.column_stack([source.predict(X) for source in sources])
    assert np.abs(expected - exact).max() <= 1e-3


def test_artifacts_are_the_same_bytes_every_time(rows):
    X, y = rows
    model = read_any(SVC(kernel="poly", degree=2).fit(X, y))
    assert approxsvm.compile(model).artifact == approxsvm.compile(model).artifact


@pytest.mark.parametrize("kernel", [{"kernel": "rbf"}, {"kernel": "poly", "degree": 3}, {"kernel": "linear"}])
def test_several_targets_are_decision_functions_like_any_others(rows, kernel, tmp_path):
    X, _ = rows
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2, X.sum(axis=1)])
    source = make_pipeline(StandardScaler(), KernelRidge(alpha=0.1, **kernel)).fit(X, Y)
    fast = approxsvm.compile(source, X, tolerance=1e-6)
    values = fast.predict(X)
    assert values.shape == Y.shape
    assert np.abs(values - source.predict(X)).max() <= 1e-6
    assert (fast.error_bound(X) <= 1e-6).all()
    assert fast.within_gamma_bound(X).shape == (len(X),)
    fast.save(tmp_path / "three.asvm")
    np.testing.assert_array_equal(approxsvm.Predictor(tmp_path / "three.asvm").predict(csr_array(X)), fast.predict(X))
