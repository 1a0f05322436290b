"""Compiled estimators: correct values for every kind of input on every target, and scikit-learn's conventions."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import second_order
from conftest import GOLDEN, random_model
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils.validation import check_is_fitted

import approxsvm
from approxsvm import _native
from approxsvm.errors import ApproxSVMError, InputError, TargetError, UnsupportedModelError


def compile(model, X=None, **options):
    """Compile in "approximate" mode by default: most tests here concern the expansion itself."""
    return approxsvm.compile(model, X, **{"mode": "approximate", **options})


def tolerance(model):
    """Return a tolerance for float32 arithmetic in a model with random numbers."""
    return 1e-5 * (np.abs(model.coefficients(0)).sum() + abs(model.intercept[0]))


def rows(seed=0, n=77, n_features=7, scale=1.0):
    return np.random.default_rng(seed).normal(size=(n, n_features), scale=scale)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 130),
    n_features=st.one_of(st.integers(1, 40), st.sampled_from([63, 64, 65, 122, 123, 130])),
    center=st.sampled_from(["mean", "origin"]),
    density=st.floats(0, 1),
    log_gamma=st.floats(-4, 1),
    offset=st.sampled_from([0.0, 1.0, 100.0]),
)
def test_any_model_and_rows_equal_the_reference(seed, n, n_features, center, density, log_gamma, offset):
    rng = np.random.default_rng(seed)
    gamma = 10.0**log_gamma
    vectors = rng.normal(size=(30, n_features)) + offset
    model = random_model(seed, n_sv=30, n_features=n_features, gamma=gamma, support_vectors=vectors)
    X = np.where(rng.random((n, n_features)) < density, rng.normal(size=(n, n_features)) + offset, 0.0)
    expansion = second_order.second_order(model, center)
    expected = second_order.evaluate(expansion, X)
    u = X - expansion.center.astype(float)
    s = 2 * gamma * (u**2).sum(axis=1)
    moduli = np.abs(expansion.constant) + np.abs(u) @ np.abs(expansion.linear)
    moduli += np.einsum("ij,jk,ik->i", np.abs(u), np.abs(expansion.quadratic), np.abs(u))
    allowed = 1e-6 * (1 + s) * np.exp(-s / 2) * moduli * (4 + n_features) + 1e-30 * moduli + 1e-13
    artifact = compile(model, center=center).artifact.data
    for name in _native.runnable_targets():
        predictor = _native.Predictor(artifact, name)
        assert (np.abs(predictor.dense(X, 1) - expected) <= allowed).all()
        sparse = csr_array(X)
        assert (np.abs(predictor.csr(sparse.indptr, sparse.indices, sparse.data, 1) - expected) <= allowed).all()


def test_values_depend_neither_on_threads_nor_on_neighbours(target):
    fast = compile(random_model(4, n_features=90, gamma=0.01))
    X = rows(5, 5003, 90)
    for matrix in (X, X.astype(np.float32), csr_array(X * (np.random.default_rng(1).random(X.shape) < 0.3))):
        expected = fast.set_params(n_jobs=1).decision_function(matrix)
        for n_jobs in (2, 7, -1, None):
            np.testing.assert_array_equal(fast.set_params(n_jobs=n_jobs).decision_function(matrix), expected)
        np.testing.assert_array_equal(fast.decision_function(matrix[57:203]), expected[57:203])


def test_wrong_shapes_name_both_numbers():
    fast = compile(random_model(1))
    for matrix in (rows(0, 5, 6), csr_array(rows(0, 5, 6)), rows(0, 5, 6).tolist()):
        with pytest.raises(ValueError, match=r"X has 6 features, but .* 7 features"):
            fast.predict(matrix)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        fast.predict(np.zeros(7))
    with pytest.raises(InputError, match=r"\(n_features,\) or \(1, n_features\)"):
        fast.predict_one(np.zeros((2, 7)))
    with pytest.raises(InputError, match="X has 6 features, but the model expects 7"):
        fast.predict_one(np.zeros(6))
    with pytest.raises(InputError, match="X has 6 features, but the model expects 7"):
        fast.predict_one(np.zeros(12, int)[::2])


def test_broken_csr_matrices_do_not_crash():
    predictor = _native.Predictor(compile(random_model(1)).artifact.data)
    data, indices = np.ones(3), np.array([0, 1, 2], np.int32)
    for indptr in ([0, 4], [-1, 3], [0, 2, 1], [5, 3]):
        with pytest.raises(InputError, match="indptr of the CSR matrix is broken at row"):
            predictor.csr(np.array(indptr, np.int32), indices, data, 1)
    with pytest.raises(InputError, match="not a CSR matrix"):
        predictor.csr(np.array([0, 2], np.int32), indices[:2], data, 1)
    with pytest.raises(InputError, match="both be int32"):
        predictor.csr(np.array([0, 2], np.int64), indices, data, 1)


def test_columns_never_seen_count_in_the_norm_only(target):
    """LIBSVM has the same rule for indices that occur in no support vector."""
    model = random_model(1, n_features=5)
    wider = replace(model, support_vectors=np.pad(model.support_vectors, ((0, 0), (0, 1))))
    X = np.hstack([rows(0, 20, 5), rows(1, 20, 1)])
    sparse = csr_array(X)
    predictor = _native.Predictor(compile(model).artifact.data)
    values = predictor.csr(sparse.indptr, sparse.indices, sparse.data, 1)
    expected = compile(wider).decision_function(X)  # labels (1, -1): LIBSVM's orientation
    np.testing.assert_allclose(values, expected, atol=tolerance(model))


def test_forced_targets(monkeypatch):
    model = random_model(1)
    for name in _native.runnable_targets():
        monkeypatch.setenv("APPROXSVM_TARGET", name)
        assert compile(model)._evaluator.native.target == name
    monkeypatch.setenv("APPROXSVM_TARGET", "avx1024")
    with pytest.raises(TargetError, match=r"APPROXSVM_TARGET asks for target 'avx1024', which was not built in"):
        compile(model)


# --- tasks and labels


WHOLE = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
LABELS = {
    "bool": np.array([False, True]),
    **{f"least and most of {kind}": np.array([np.iinfo(kind).min, np.iinfo(kind).max], kind) for kind in WHOLE},
    "beyond int64": np.array([2**63, 2**64 - 3, 2**64 - 1], np.uint64),
    "big-endian": np.array([2**63, 5], ">u8"),
    **{kind: np.array([-2.0, 0.0, 1.0], kind) for kind in ("f2", "f4", "f8")},
    "U": np.array(["", "a", "größer"]),
    "U, long": np.array(["a", "b" * 300]),
    "O, with a zero": np.array(["日本", "a\0"], object),
    "big-endian text": np.array(["a", "bb"], ">U2"),
    "O": np.array(["a", "bb"], object),
    "numpy's texts": np.array([np.str_("a"), np.str_("b")], object),
    "categories": pd.Series(["a", "b", "c"], dtype="category"),
    "strings": pd.Series(["a", "b", "c"], dtype="string"),
    "integers that may be missing": pd.Series([1, 2, 3], dtype="Int64"),
}


MODELS = [
    *((name, SVC()) for name in LABELS),
    *(("beyond int64", other) for other in (CalibratedClassifierCV(SVC(), cv=2), LogisticRegression())),
]


@pytest.mark.parametrize(("name", "model"), MODELS)
def test_every_type_of_labels_is_kept(name, model, tmp_path):
    X, _ = make_classification(150, 5, random_state=1)
    given = LABELS[name][:2] if isinstance(model, LogisticRegression) else LABELS[name]
    classes = np.digitize(X[:, 0], [-0.5, 0.5]) % len(given)
    source = clone(model).fit(X, given.iloc[classes] if isinstance(given, pd.Series) else given[classes])
    fast = compile(source, X, mode="exact")
    fast.save(tmp_path / "m.asvm")
    expected = source.predict(X)
    for interface in (fast, approxsvm.load(tmp_path / "m.asvm"), approxsvm.Predictor(tmp_path / "m.asvm")):
        np.testing.assert_array_equal(interface.predict(X), expected)
        assert interface.predict(X).dtype == expected.dtype
        assert [interface.predict_one(row) for row in X] == expected.tolist()
        found = interface.classes if isinstance(interface, approxsvm.Predictor) else interface.classes_
        np.testing.assert_array_equal(found, source.classes_)
        assert found.dtype == source.classes_.dtype


@pytest.mark.parametrize("labels", [np.array([1, 2], np.longdouble), np.array(["2020", "2021"], "M8[Y]")])
def test_labels_that_are_not_kept_are_refused_by_type(labels):
    if labels.dtype.itemsize == 8 and labels.dtype.kind == "f":
        pytest.skip("long double is double here")
    X, y = make_classification(150, 5, random_state=1)
    with pytest.raises(UnsupportedModelError, match=f"class labels of dtype {re.escape(str(labels.dtype))} cannot be"):
        compile(SVC().fit(X, labels[y]))


# --- scikit-learn's conventions


@pytest.fixture
def fitted():
    X, y = make_classification(150, 5, random_state=1)
    svc = SVC(gamma=0.01).fit(X, y)
    return X, y, svc, compile(svc)


def test_scikit_learns_manners(fitted):
    X, y, svc, fast = fitted
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), fast).fit(X, y)
    np.testing.assert_array_equal(pipeline.predict(X), fast.predict(X))
    assert cross_val_score(fast, X, y, cv=3, scoring="roc_auc").min() > 0.8
    assert fast.score(X, y) == pytest.approx(svc.score(X, y), abs=0.02)
    assert is_classifier(fast)
    assert is_regressor(compile(SVR().fit(X, y)))
    outliers = compile(OneClassSVM().fit(X))
    assert is_outlier_detector(outliers)
    np.testing.assert_allclose(outliers.score_samples(X) - outliers.offset_, outliers.decision_function(X))
    check_is_fitted(fast)
    assert len(pickle.dumps(fast)) < len(fast.artifact.data) + 1000
    assert set(fast.get_params()) == {"artifact", "n_jobs"}
    assert f": classification, 5 features, {fast.artifact.mode}, " in repr(fast)
    other = compile(random_model(1))
    np.testing.assert_array_equal(fast.set_params(artifact=other.artifact).predict(rows()), other.predict(rows()))


def test_within_gamma_bound_is_the_papers_test():
    model = random_model(1, n_features=6, gamma=0.01)
    for center in ("origin", "mean"):
        fast = compile(model, center=center)
        X = rows(0, 200, 6, scale=3.0)
        mu = fast.artifact.center.astype(float)
        radius = np.linalg.norm(model.support_vectors - mu, axis=1).max()
        expected = 4 * 0.01 * radius * np.linalg.norm(X - mu, axis=1) < 1
        np.testing.assert_array_equal(fast.within_gamma_bound(X), expected)
        np.testing.assert_array_equal(fast.within_gamma_bound(csr_array(X)), expected)
        assert 0 < expected.mean() < 1


def test_summary():
    summary = compile(random_model(1, gamma=0.25), center="origin").summary
    assert (summary.degree, summary.n_centers, summary.center, summary.gamma) == (2, 1, "origin", 0.25)
    assert (summary.n_features, summary.n_support_vectors) == (7, 40)
    radius = np.linalg.norm(random_model(1).support_vectors, axis=1).max()
    assert summary.gamma_max_support_vectors == pytest.approx(1 / (4 * radius**2))
    assert "n support vectors" in str(summary)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "guess"}, "mode is 'guess'"),
        ({"tolerance": 0.1}, "mode 'approximate' cannot promise a tolerance"),
        ({"mode": "certified", "tolerance": 1e-30}, "float64 cannot promise less than"),
        ({"mode": "exact", "tolerance": 1e-30}, "float64 cannot promise less than"),
        ({"degree": 7}, "degree is 7"),
        ({"center": "median"}, "center is 'median'"),
        ({"n_features": 3}, "the model has 7 features, but n_features is 3"),
    ],
)
def test_unknown_options_are_refused(options, message):
    with pytest.raises(ApproxSVMError, match=message):
        compile(random_model(1), **options)


def test_width_of_libsvm_models_comes_from_the_sample(tmp_path):
    (tmp_path / "m").write_text(
        "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 1 -1\nnr_sv 1 1\n"
        "SV\n1 1:1\n-1 2:1\n"
    )
    assert compile(tmp_path / "m").n_features_in_ == 2
    assert compile(tmp_path / "m", np.zeros((3, 5))).n_features_in_ == 5
    assert compile(tmp_path / "m", n_features=9).n_features_in_ == 9


def test_skops_asks_for_the_artifact_and_the_estimator(fitted):
    """Only two types need trust (docs/howto/mlflow.md): the compilation record, with its many types, is omitted."""
    skops = pytest.importorskip("skops.io")
    X, _, _, fast = fitted
    content = skops.dumps(fast)
    types = skops.get_untrusted_types(data=content)
    assert types == ["approxsvm.artifact.views.Artifact", "approxsvm.estimators.CompiledSVC"]
    np.testing.assert_array_equal(skops.loads(content, trusted=types).predict(X), fast.predict(X))


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "linear"])
def test_scores_of_constant_outlier_detectors(kernel):
    """With an RBF kernel and gamma=0, scores were once 0, unlike the source's."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    source = OneClassSVM(kernel=kernel, gamma=0.0, coef0=1.0).fit(X)
    fast = approxsvm.compile(source)
    np.testing.assert_allclose(fast.decision_function(X), source.decision_function(X), atol=1e-12)
    if kernel == "rbf":
        assert not hasattr(fast, "offset_")
        with pytest.raises(AttributeError, match="without its offset"):
            fast.score_samples(X)
    else:
        np.testing.assert_allclose(fast.score_samples(X), source.score_samples(X), atol=1e-12)
        assert fast.offset_ == pytest.approx(source.offset_[0])


@pytest.mark.parametrize("made", [approxsvm.load, approxsvm.Predictor])
def test_rows_of_unusual_kinds(made):
    """Objects that define only __array__ are read; anything that is not real numbers raises an InputError."""
    fast = made(GOLDEN / "iris_classes.asvm")
    X = np.array([[5.1, 3.5, 1.4, 0.2], [6.5, 3.0, 5.5, 1.8]])

    class Array:
        def __array__(self, dtype=None, copy=None):
            return np.asarray(X, dtype)

    np.testing.assert_array_equal(fast.predict(Array()), fast.predict(X))
    table = np.zeros(2, dtype=[(name, float) for name in "abcd"])
    for rows in (table, table.view(np.recarray), [[10**400, 1, 2, 3]], [[1j, 1, 2, 3]]):
        with pytest.raises(InputError):
            fast.predict(rows)
    with pytest.raises(ValueError, match="read-only"):
        fast.artifact.labels[0] = 7
    for what in (fast.artifact.header, approxsvm.load(GOLDEN / "iris_ensemble.asvm").artifact.members[0].header):
        with pytest.raises(TypeError, match="item assignment"):
            what["tolerance"] = 7.0
    with pytest.raises(InputError):
        approxsvm.compile(random_model(1), [[10**400] * 7])
