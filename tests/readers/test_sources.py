"""A matrix of sources and tasks: each model read predicts what its own library predicts, in slow float64."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from libsvm.svm import gen_svm_nodearray, libsvm, svm_problem
from libsvm.svmutil import svm_save_model, svm_train
from scipy.sparse import csr_matrix
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import RFE, RFECV, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from sklearn.impute import KNNImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler, SkewedChi2Sampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.metrics.pairwise import linear_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from zoo import class_numbers, oracle
from zoo.balls import Ball

import approxsvm
from approxsvm.errors import DataFormatError, ModelFormatError, UnsupportedModelError
from approxsvm.features import TaylorFeatures
from approxsvm.model import outputs
from approxsvm.model.ensemble import Ensemble
from approxsvm.model.kernel_model import KernelModel
from approxsvm.readers import libsvm as libsvm_reader
from approxsvm.readers import read_any
from approxsvm.readers.svm_scale import read_range_file, with_range_file
from approxsvm.reference import decision_values as reference

FEATURES = 6


def data(n_classes=2, n_rows=150, seed=0):
    X, y = make_classification(
        n_rows, FEATURES, n_informative=5, n_redundant=1, n_classes=n_classes, n_clusters_per_class=1, random_state=seed
    )
    return X * np.array([1, 5, 0.3, 2, 1, 10]) + np.array([0, 3, -1, 20, 0, 5]), y


def target(X):
    return 100 + 20 * np.sin(X[:, 0]) + X[:, 1]


def scaled_rows():
    return StandardScaler().fit_transform(data()[0])


def rows_like(X, n_rows=120):
    rng = np.random.default_rng(9)
    return X[rng.integers(len(X), size=n_rows)] + 0.3 * X.std(axis=0) * rng.normal(size=(n_rows, X.shape[1]))


def values_of(model, raw):
    return oracle.decision_values(model, raw)[0].astype(float)


def assert_same(fitted, X, raw=None, rtol=1e-9):
    """The model read from `fitted` answers as `fitted`: labels or values, scores, probabilities."""
    model = read_any(fitted)
    found = oracle.answers(model, X if raw is None else raw)
    for name, exact in found.items():
        if not hasattr(fitted, name):
            continue  # what is calibrated has no decision function
        expected = getattr(fitted, name)(X)
        if not isinstance(exact, Ball):
            np.testing.assert_array_equal(exact, expected)
            continue
        atol = 1e-10 if name == "predict_proba" else rtol * float(np.abs(exact.mid).max())
        np.testing.assert_allclose(exact.mid.astype(float).reshape(expected.shape), expected, rtol=0, atol=atol)
    assert hasattr(fitted, "predict_proba") == ("predict_proba" in found)
    return model


CLASSIFIERS = {
    "SVC": SVC(),
    "NuSVC": NuSVC(nu=0.3),
    "SVC ovo": SVC(decision_function_shape="ovo"),
    "SVC ties": SVC(break_ties=True),
    "SVC probability": SVC(probability=True, random_state=0),
    "NuSVC probability": NuSVC(nu=0.3, probability=True, random_state=0),
    "sigmoid": CalibratedClassifierCV(SVC(), ensemble=False),
    "isotonic": CalibratedClassifierCV(SVC(), ensemble=False, method="isotonic"),
    "temperature": CalibratedClassifierCV(SVC(), ensemble=False, method="temperature"),
    "sigmoids": CalibratedClassifierCV(SVC(), ensemble=True, cv=3),
    "isotonics": CalibratedClassifierCV(NuSVC(nu=0.3), ensemble=True, method="isotonic", cv=3),
    "temperatures": CalibratedClassifierCV(SVC(), ensemble=True, method="temperature", cv=3),
    "sigmoid of pairs": CalibratedClassifierCV(SVC(decision_function_shape="ovo"), ensemble=False),
    "calibrated pipeline": CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), ensemble=False),
    "pipeline": make_pipeline(StandardScaler(), SVC()),
    "pipeline of calibrated": make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(), cv=3)),
    "search": GridSearchCV(SVC(), {"C": [1.0, 10.0]}, cv=2),
    "quadratic": make_pipeline(StandardScaler(), SVC(kernel="poly", degree=2, coef0=1.0)),
    "affine": make_pipeline(StandardScaler(), SVC(kernel="poly", degree=1, coef0=0.5, gamma=0.3)),
    "linear": make_pipeline(StandardScaler(), SVC(kernel="linear")),
    "linear probability": make_pipeline(StandardScaler(), SVC(kernel="linear", probability=True, random_state=0)),
    "chosen": make_pipeline(StandardScaler(), RFE(SVC(kernel="linear"), n_features_to_select=4)),
    "chosen by folds": make_pipeline(
        StandardScaler(), RFECV(SVC(kernel="linear", probability=True, random_state=0), min_features_to_select=3, cv=2)
    ),
}


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize(("n_classes", "labels"), [(2, "str"), (3, "int"), (5, "str")])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, n_classes, labels):
    from sklearn.base import clone

    X, y = data(n_classes)
    y = y if labels == "int" else np.array(["red", "blue", "green", "amber", "pink"])[y]
    model = assert_same(clone(CLASSIFIERS[name]).fit(X, y), rows_like(X))
    assert model.labels.tolist() == sorted(set(y.tolist()))
    assert model.n_raw_features == FEATURES


@pytest.mark.parametrize("kernel", [None, 2.0 * RBF(3.0), 0.5 + 1.5 * RBF([1.0, 5, 0.5, 2, 1, 9])])
def test_gaussian_process_classifiers(kernel):
    """Labels of two classes are by the sign of the latent mean; the rest takes the variance (test_processes)."""
    X, y = data(2)
    labels = np.array(["red", "blue"])[y]
    source = GaussianProcessClassifier(kernel, optimizer=None).fit(X, labels)
    fast, rows = approxsvm.compile(source, X), rows_like(X)
    inner = source.base_estimator_
    latent = inner.kernel_(rows, inner.X_train_) @ (inner.y_train_ - inner.pi_)
    np.testing.assert_allclose(fast._evaluator.evaluate(rows), latent, atol=1e-9 * np.abs(inner.pi_).sum())
    np.testing.assert_array_equal(fast.predict(rows), source.predict(rows))
    assert approxsvm.verify(fast, source, rows).kept
    assert not hasattr(fast, "predict_proba")
    assert not hasattr(fast, "decision_function")
    # A row at which the value is exactly 0 is of the first class.
    far = np.full((1, FEATURES), 1e6)
    if kernel is None:
        np.testing.assert_array_equal(fast.predict(far), source.predict(far))


@pytest.mark.parametrize("members", [2, 3])
def test_labels_of_gaussian_processes_are_no_scores(members):
    """What wrappers ask for are probabilities, which differ from latent values where votes are equal."""
    X, y = data(3)
    process = make_pipeline(StandardScaler(), GaussianProcessClassifier(optimizer=None))
    with pytest.raises(UnsupportedModelError, match="OneVsOneClassifier takes values or probabilities of its"):
        approxsvm.compile(OneVsOneClassifier(process if members == 3 else process[-1]).fit(X, y))
    with pytest.raises(UnsupportedModelError, match="CalibratedClassifierCV takes values or probabilities"):
        approxsvm.compile(CalibratedClassifierCV(process, cv=members).fit(X, y > 0))
    search = GridSearchCV(process, {"gaussianprocessclassifier__max_iter_predict": [50, 100]}, cv=2).fit(X, y > 0)
    np.testing.assert_array_equal(approxsvm.compile(search).predict(X), search.predict(X))


REGRESSORS = {
    "SVR": SVR(C=100),
    "NuSVR": NuSVR(C=100),
    "KernelRidge": KernelRidge(kernel="rbf", gamma=0.1, alpha=0.1),
    "KernelRidge default gamma": KernelRidge(kernel="rbf"),
    "KernelRidge linear": KernelRidge(),
    "KernelRidge quadratic": KernelRidge(kernel="poly", degree=2),
    "GP": GaussianProcessRegressor(ConstantKernel(2.0) * RBF(3.0) + WhiteKernel(0.1), optimizer=None),
    "GP normalised": GaussianProcessRegressor(RBF(3.0) + WhiteKernel(0.1), normalize_y=True, optimizer=None),
    "GP with constant": GaussianProcessRegressor(
        ConstantKernel(0.5) + 2.0 * RBF(2.0) + WhiteKernel(1.0), optimizer=None
    ),
    "GP anisotropic": GaussianProcessRegressor(
        ConstantKernel(3.0) * RBF([1.0, 5, 0.5, 2, 1, 9]) + WhiteKernel(1.0), normalize_y=True, optimizer=None
    ),
    "GP fitted": GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel(), normalize_y=True, random_state=0),
    "GP anisotropic in a pipeline": make_pipeline(
        MinMaxScaler(),
        GaussianProcessRegressor(RBF([1.0, 5, 0.5, 2, 1, 9]) + WhiteKernel(1.0), optimizer=None),
    ),
    "target standardised": TransformedTargetRegressor(SVR(), transformer=StandardScaler()),
    "target in range": TransformedTargetRegressor(make_pipeline(StandardScaler(), SVR()), transformer=MinMaxScaler()),
    "target largest": TransformedTargetRegressor(SVR(kernel="linear", C=0.01), transformer=MaxAbsScaler()),
    "target robust": TransformedTargetRegressor(SVR(), transformer=RobustScaler()),
    "target as it is": TransformedTargetRegressor(SVR()),
    "linear": make_pipeline(StandardScaler(), SVR(kernel="linear")),
    "LinearSVR": make_pipeline(StandardScaler(), LinearSVR(random_state=0)),
    "Nystroem Ridge": make_pipeline(StandardScaler(), Nystroem(random_state=0, n_components=30), Ridge()),
    "Nystroem OLS": make_pipeline(Nystroem(gamma=0.01, random_state=0, n_components=30), LinearRegression()),
    "Nystroem search": make_pipeline(
        StandardScaler(), Nystroem(random_state=0, n_components=30), GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2)
    ),
    "Nystroem target": make_pipeline(
        FrozenEstimator(StandardScaler().fit(data()[0])),
        FrozenEstimator(Nystroem(random_state=0, gamma=0.1, n_components=30).fit(scaled_rows())),
        TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
    ),
    "RFE": RFE(SVR(kernel="linear", C=0.01), n_features_to_select=3),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name):
    from sklearn.base import clone

    X, _ = data()
    assert_same(clone(REGRESSORS[name]).fit(X, target(X)), rows_like(X), rtol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_one_class(kernel):
    X, _ = data()
    scaled = StandardScaler().fit_transform(X)
    fitted = OneClassSVM(kernel=kernel, degree=2, nu=0.2, gamma=0.1).fit(scaled)
    if kernel == "rbf":
        assert_same(fitted, rows_like(scaled))
    else:
        model = read_any(fitted)
        values = values_of(model, scaled)[:, 0]
        np.testing.assert_allclose(values, fitted.decision_function(scaled), rtol=1e-9, atol=1e-9)


NYSTROEM = {
    "LogisticRegression": LogisticRegression(),
    "LinearSVC": LinearSVC(),
    "RidgeClassifier": RidgeClassifier(),
    "SGD hinge": SGDClassifier(random_state=0),
    "SGD log": SGDClassifier(loss="log_loss", random_state=0),
    "SGD huber": SGDClassifier(loss="modified_huber", random_state=0),
    "calibrated": CalibratedClassifierCV(LinearSVC(), ensemble=False),
    "calibrated by three": CalibratedClassifierCV(LogisticRegression(), method="isotonic", cv=3),
    "search": GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
    "search of calibrated": GridSearchCV(CalibratedClassifierCV(LinearSVC(), ensemble=False), {"cv": [2, 3]}, cv=2),
    "pipeline": make_pipeline(None, RidgeClassifier()),
}


@pytest.mark.parametrize("name", NYSTROEM)
def test_nystroem_and_a_linear_classifier_are_a_sum_of_kernels(name):
    from sklearn.base import clone

    X, y = data()
    steps = make_pipeline(StandardScaler(), Nystroem(gamma=0.2, n_components=25, random_state=0), clone(NYSTROEM[name]))
    fitted = steps.fit(X, np.array(["no", "yes"])[y])
    model = assert_same(fitted, rows_like(X))
    assert all(member.n_sv == 25 for member in (model.members if isinstance(model, Ensemble) else [model]))
    # A value of 0 means classes_[0] to scikit-learn's linear models, unlike to LIBSVM.
    if not isinstance(model, Ensemble) and model.outputs.label_rule == "votes":
        assert model.labels[class_numbers.winner(np.zeros((1, 1)))[0]] == "no"


@pytest.mark.parametrize(
    "final", [SVC(), make_pipeline(StandardScaler(), LinearSVC()), RFE(LinearSVC()), GridSearchCV(SVC(), {}, cv=2)]
)
@pytest.mark.parametrize(
    "map_step", [Nystroem(n_components=9), RBFSampler(), SkewedChi2Sampler(skewedness=99), TaylorFeatures(gamma=0.1)]
)
def test_only_linear_models_are_read_behind_feature_maps(map_step, final):
    from sklearn.base import clone

    X, y = data()
    with pytest.raises(UnsupportedModelError, match=rf"step '{type(map_step).__name__.lower()}' .* cannot be folded"):
        read_any(make_pipeline(MinMaxScaler(), clone(map_step), clone(final)).fit(X, y))


def test_calibrated_nystroem_inside_is_read():
    X, y = data()
    inner = make_pipeline(StandardScaler(), Nystroem(n_components=25, random_state=0), LogisticRegression())
    for ensemble in (False, True):
        assert_same(CalibratedClassifierCV(inner, ensemble=ensemble, cv=3).fit(X, y), rows_like(X))
    assert_same(CalibratedClassifierCV(FrozenEstimator(inner.fit(X, y))).fit(X, y), rows_like(X))


def test_linear_models_alone_and_calibrated():
    X, y = data()
    scaled = StandardScaler().fit_transform(X)
    assert assert_same(LinearSVC().fit(scaled, y), scaled).degree == 1
    assert_same(LinearSVC().fit(scaled, y).sparsify(), scaled)
    assert_same(CalibratedClassifierCV(LinearSVC(), cv=3).fit(scaled, y), scaled)
    with pytest.raises(UnsupportedModelError, match="of one class, which is its answer to every row"):
        read_any(RidgeClassifier().fit(scaled, np.ones(len(X))))


def test_several_linear_functions():
    X, y = data(3)
    scaled = StandardScaler().fit_transform(X)
    assert assert_same(LinearSVC(max_iter=10_000).fit(scaled, y), scaled).n_decisions == 3
    with pytest.raises(UnsupportedModelError, match="a mean of 2 models"):
        approxsvm.read_model(make_pipeline(Nystroem(n_components=5), Ridge()).fit(X, np.column_stack([y, y])))
    several = read_any(KernelRidge(kernel="rbf").fit(X, np.column_stack([y, y])))
    assert isinstance(several, Ensemble)
    assert [member.task for member in several.members] == ["regression"] * 2


# Pipelines

STEPS = {
    "standard": [StandardScaler()],
    "centred": [StandardScaler(with_std=False), SVC(gamma=0.01)],
    "scaled": [StandardScaler(with_mean=False)],
    "range": [MinMaxScaler((-1, 3))],
    "clipped": [MinMaxScaler(clip=True)],
    "largest": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "robust centred": [RobustScaler(with_scaling=False)],
    "pca": [PCA(3)],
    "whitened": [StandardScaler(), PCA(4, whiten=True)],
    "scaled twice": [StandardScaler(), PCA(4), StandardScaler(), MinMaxScaler()],
    "projected twice": [PCA(5), StandardScaler(), PCA(3, whiten=True)],
    "clipped projection": [PCA(3), MinMaxScaler(clip=True)],
    "svd": [StandardScaler(), TruncatedSVD(4, random_state=0)],
    "nothing": ["passthrough", FunctionTransformer(), None, StandardScaler()],
    "chosen": [SelectKBest(k=3), StandardScaler()],
    "clip between": [StandardScaler(), MinMaxScaler((-0.5, 0.5), clip=True), StandardScaler()],
    "frozen": [FrozenEstimator(make_pipeline(StandardScaler(), PCA(4)).fit(data()[0])), MaxAbsScaler()],
    "frozen choice": [FrozenEstimator(FrozenEstimator(SelectKBest(k=3).fit(*data()))), StandardScaler()],
    "frozen columns": [
        ColumnTransformer([("a", FrozenEstimator(StandardScaler().fit(data()[0][:, [3, 1]])), [3, 1])]),
        FeatureUnion([("all", FrozenEstimator(StandardScaler().fit(data()[0][:, [3, 1]])))]),
    ],
    "nested": [make_pipeline(StandardScaler(), make_pipeline(PCA(4))), MaxAbsScaler()],
    "columns": [
        ColumnTransformer(
            [("a", StandardScaler(), [3, 1]), ("b", "drop", [0]), ("c", MinMaxScaler(clip=True), slice(4, 6))],
            remainder="passthrough",
        )
    ],
    "columns weighted": [
        ColumnTransformer(
            [("a", make_pipeline(StandardScaler(), PCA(2)), [0, 1, 2]), ("b", RobustScaler(), [3, 4])],
            transformer_weights={"a": 0.5},
        ),
        StandardScaler(),
    ],
    "mask": [make_column_transformer((StandardScaler(), np.array([True, False, True, True, False, False])))],
    "union": [FeatureUnion([("all", StandardScaler()), ("pca", PCA(2))], transformer_weights={"pca": 2.0})],
}


@pytest.mark.parametrize("name", STEPS)
def test_folded_steps(name):
    from sklearn.base import clone

    X, y = data(3)
    steps = [step if step is None or isinstance(step, str) else clone(step) for step in STEPS[name]]
    if not isinstance(steps[-1], SVC):
        steps.append(SVC())
    fitted = Pipeline([(f"step{i}", step) for i, step in enumerate(steps)]).fit(X, y)
    raw = rows_like(X) * 1.5
    model = assert_same(fitted, raw)
    assert model.n_raw_features == FEATURES
    mapped = fitted[:-1].transform(raw)
    np.testing.assert_allclose(model.input_map.apply(raw), mapped, rtol=1e-12, atol=1e-12 * np.abs(raw).max())
    given, errors = model.input_map.mapped_with_errors(raw)
    assert (np.linalg.norm(given - mapped, axis=1) <= errors + model.input_map.source_rounding(raw)).all()


def test_samplers_of_imbalanced_learn_do_nothing_when_predicting():
    imblearn = pytest.importorskip("imblearn", reason="imbalanced-learn is not installed")
    from imblearn.over_sampling import SMOTE
    from imblearn.under_sampling import TomekLinks

    X, y = make_classification(200, FEATURES, weights=[0.8], random_state=0)
    smote, tomek = SMOTE(random_state=0), TomekLinks()
    make = imblearn.pipeline.make_pipeline
    for steps in (
        make(StandardScaler(), smote, SVC()),
        make(smote, SVC()),
        make(smote, StandardScaler(), tomek, PCA(3), tomek, SVC()),
        make(StandardScaler(), smote, Nystroem(n_components=20, random_state=0), tomek, LinearSVC()),
        make_pipeline(StandardScaler(), make(PCA(4), smote, SVC())),
        CalibratedClassifierCV(make(StandardScaler(), smote, SVC()), ensemble=False),
        GridSearchCV(make(StandardScaler(), smote, SVC()), {"svc__C": [1.0, 2.0]}, cv=2),
    ):
        assert_same(steps.fit(X, y), rows_like(X))
    frame = pd.DataFrame(X, columns=list("abcdef"))
    assert read_any(make(smote, StandardScaler(), SVC()).fit(frame, y)).feature_names == tuple("abcdef")
    with pytest.raises(UnsupportedModelError, match=r"step 'smote' of the pipeline: .* it does not predict"):
        read_any(make(StandardScaler(), smote).fit(X, y))


class Resampling(StandardScaler):
    """Scikit-learn's pipelines ask a step to transform, whatever else it can."""

    def fit_resample(self, X, y):
        raise NotImplementedError


def test_steps_of_other_pipelines_that_can_resample_still_transform():
    X, y = data()
    assert_same(make_pipeline(Resampling(), SVC()).fit(X, y), rows_like(X))


def test_columns_by_name_of_data_frames():
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    chosen = ColumnTransformer([("x", StandardScaler(), ["e", "a"]), ("y", "passthrough", ["c"])])
    fitted = make_pipeline(chosen, SVC()).fit(frame, y)
    model = read_any(fitted)
    assert model.feature_names == tuple("abcdef")
    assert model.input_map.columns.tolist() == [4, 0, 2]
    assert_same(fitted, frame, raw=X)
    plain = read_any(make_pipeline(StandardScaler(), SVC()).fit(frame, y))
    assert plain.feature_names == tuple("abcdef")


def test_constant_features_are_scaled_by_one():
    X, y = data()
    X[:, 2] = 7.0
    for scaler in (StandardScaler(), MinMaxScaler(), RobustScaler()):
        assert_same(make_pipeline(scaler, SVC()).fit(X, y), rows_like(X))


def test_sparse_pipelines():
    X, y = data()
    X = csr_matrix(np.where(np.abs(X) > 1, X, 0))
    fitted = make_pipeline(MaxAbsScaler(), StandardScaler(with_mean=False), SVC()).fit(X, y)
    model = assert_same(fitted, X)
    assert not model.input_map.apply(np.zeros((1, FEATURES))).any()


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            [KNNImputer(), SVC()],
            r"'knnimputer' \(KNNImputer\) cannot be folded into the model; compile pipe\[-1\] and give it pipe",
        ),
        ([SplineTransformer(degree=8), SVC()], "SplineTransformer"),
        ([FunctionTransformer(np.sqrt), SVC()], "FunctionTransformer.*it calls 'sqrt'"),
        ([FunctionTransformer(np.log1p, kw_args={"dtype": np.float32}), SVC()], "it calls 'log1p' with 'dtype'"),
        (
            [make_pipeline(StandardScaler(), SplineTransformer(degree=8)), SVC()],
            r"step 'pipeline__splinetransformer'",
        ),
        (
            [make_column_transformer((SplineTransformer(degree=8), [0, 1])), SVC()],
            r"step 'splinetransformer'",
        ),
        (
            [StandardScaler(), GaussianNB()],
            "step 'gaussiannb' of the pipeline: cannot compile a sklearn.naive_bayes.GaussianNB; docs/sources.md says",
        ),
        (
            [StandardScaler(), SVC(kernel=linear_kernel)],
            "'svc' of the pipeline: the kernel of this SVC is the call",
        ),
        ([Nystroem(kernel="sigmoid", n_components=9), Ridge()], "kernel of this Nystroem is 'sigmoid'"),
        ([Nystroem(n_components=9), StandardScaler(), Ridge()], r"step 'nystroem' \(Nystroem\) cannot be folded"),
    ],
)
def test_steps_that_cannot_be_folded_are_named(steps, message):
    X, y = data()
    with pytest.raises(UnsupportedModelError, match=message):
        read_any(make_pipeline(*steps).fit(np.abs(X), y))


CUBES = FunctionTransformer(lambda X: X**3)


@pytest.mark.parametrize(
    "steps",
    [
        [CUBES, SVC()],
        [make_column_transformer((make_pipeline(StandardScaler(), CUBES), [0, 2]), remainder="passthrough"), SVC()],
        [StandardScaler(), make_pipeline(StandardScaler(), CUBES), MinMaxScaler(), SVC()],
        [Nystroem(n_components=9), StandardScaler(), LogisticRegression()],
    ],
)
def test_the_line_that_a_refused_step_names_works(steps):
    X, y = data()
    pipe = make_pipeline(*steps).fit(X, y)
    with pytest.raises(UnsupportedModelError, match="cannot be folded into the model") as caught:
        approxsvm.compile(pipe)
    behind, before = str(caught.value).rpartition("; compile ")[2].split(" and give it ")
    fast = approxsvm.compile(eval(behind, {"pipe": pipe}))
    np.testing.assert_array_equal(fast.predict(eval(before, {"pipe": pipe, "X": X})), pipe.predict(X))
    with pytest.raises(
        UnsupportedModelError, match="; compile the steps behind it alone, and keep this one and all be"
    ):
        approxsvm.compile(make_pipeline(StandardScaler(), make_pipeline(CUBES, SVC())).fit(X, y))


@pytest.mark.parametrize("vectorizer", [TfidfVectorizer(), CountVectorizer(), HashingVectorizer(n_features=8)])
def test_fitted_vectorizers_of_text_are_named(vectorizer):
    """They have no number of columns, which is no sign that nobody has fitted them."""
    texts, y = ["one word", "two words", "no word", "words and words"], [0, 1, 0, 1]
    name = type(vectorizer).__name__
    message = rf"step '{name.lower()}' \({name}\) cannot be folded into the model; compile pipe\[-1\] and give it"
    with pytest.raises(UnsupportedModelError, match=message):
        read_any(make_pipeline(vectorizer, SVC()).fit(texts, y))


def test_unfitted_sources_are_refused():
    for source in (
        make_pipeline(StandardScaler(), SVC()),
        CalibratedClassifierCV(SVC()),
        KernelRidge(kernel="rbf"),
        GaussianProcessRegressor(),
        TransformedTargetRegressor(SVR()),
        GridSearchCV(SVC(), {}),
        LinearSVC(),
    ):
        with pytest.raises(NotFittedError):
            read_any(source)


def test_kernels_of_gaussian_processes_that_are_no_single_rbf():
    X, _ = data()
    for kernel, message in (
        (RBF(1.0) * RBF(2.0), "several RBF parts"),
        (DotProduct() + RBF(), "supported are sums and products"),
        (WhiteKernel() + ConstantKernel(), "no RBF"),
    ):
        with pytest.raises(UnsupportedModelError, match=message):
            read_any(GaussianProcessRegressor(kernel, optimizer=None).fit(X, target(X)))


def test_break_ties_with_ovo_is_refused_as_scikit_learn_refuses_it():
    X, y = data(3)
    fitted = SVC(break_ties=True, decision_function_shape="ovo").fit(X, y)
    with pytest.raises(ValueError, match="break_ties must be False"):
        fitted.predict(X)
    with pytest.raises(UnsupportedModelError, match="break_ties must be False"):
        read_any(fitted)


def test_target_transformers_that_are_not_affine_are_named():
    X, _ = data()
    fitted = TransformedTargetRegressor(SVR(), func=np.log, inverse_func=np.exp).fit(X, target(X))
    with pytest.raises(UnsupportedModelError, match=r"target transformer .* is not affine"):
        read_any(fitted)


def test_an_ensemble_bounds_its_probabilities():
    X, y = data(3)
    model = read_any(CalibratedClassifierCV(SVC(), cv=3).fit(X, y))
    exact, _ = oracle.probabilities(model, X)
    for tolerance, widest in ((None, 1e-9), (1e-3, 0.05)):
        fast = approxsvm.compile(model, X, tolerance=tolerance)
        off = fast.probability_bound(X)
        assert (np.abs(fast.predict_proba(X) - exact) <= off + 1e-12).all()
        assert np.median(off) < widest
    with pytest.raises(UnsupportedModelError, match="mean of 3 models"):
        approxsvm.read_model(CalibratedClassifierCV(SVC(), cv=3).fit(X, y))
    with pytest.raises(ModelFormatError, match="has no class probabilities"):
        Ensemble((read_any(SVC().fit(X, y)),))


# LIBSVM files


def saved_by_libsvm(tmp_path, options, X, y):
    problem = svm_problem(y.tolist(), X.tolist())
    model = svm_train(problem, options + " -q")
    model.problem = problem  # the support vectors lie in its memory
    svm_save_model(str(tmp_path / "file.model"), model)
    return model, tmp_path / "file.model"


def libsvm_predictions(model, rows, probability):
    n_classes = model.get_nr_class()
    buffer = (ctypes.c_double * max(1, n_classes * n_classes))()
    call = libsvm.svm_predict_probability if probability else libsvm.svm_predict
    labels, shares = [], []
    for row in rows.tolist():
        nodes = gen_svm_nodearray(row)[0]
        labels.append(call(model, nodes, buffer) if probability else call(model, nodes))
        shares.append(list(buffer[:n_classes]))
    return np.array(labels), np.array(shares)


@pytest.mark.parametrize("kernel", ["-t 2 -g 0.1", "-t 0", "-t 1 -d 2 -g 0.2 -r 1", "-t 1 -d 1 -g 0.2 -r 0.3"])
@pytest.mark.parametrize("probability", [0, 1])
@pytest.mark.parametrize(("svm_type", "n_classes"), [(0, 2), (0, 4), (1, 2), (1, 3), (2, 2), (3, 2), (4, 2)])
def test_libsvm_files_of_every_type(tmp_path, svm_type, n_classes, probability, kernel):
    X, y = data(n_classes, n_rows=90)
    X = np.round(StandardScaler().fit_transform(X), 3)  # files have eight digits
    # Labels that are neither sorted nor consecutive: LIBSVM keeps the order of first appearance.
    y = np.array([7, -3, 20, 5])[y] if svm_type < 2 else X[:, 0] + X[:, 1]
    original, path = saved_by_libsvm(tmp_path, f"-s {svm_type} {kernel} -n 0.2 -b {probability}", X, y)
    model = libsvm_reader.read_libsvm(path)
    rows = np.round(rows_like(X), 3)
    values = values_of(model, rows)
    labels, _ = libsvm_predictions(original, rows, 0)
    if svm_type < 2:
        assert model.labels.tolist() == original.get_labels()
        np.testing.assert_array_equal(model.labels[class_numbers.winner(values)], labels)
    elif svm_type == 2:
        np.testing.assert_array_equal(np.where(values[:, 0] > 0, 1, -1), labels)
    else:
        np.testing.assert_allclose(values[:, 0], labels, rtol=1e-7, atol=1e-7)
    compiled = [approxsvm.compile(path, n_features=X.shape[1], mode=mode) for mode in ("certified", "exact")]
    for fast in compiled:
        if svm_type >= 3:
            promised = max(float(np.nan_to_num(fast.artifact.header["tolerance"], posinf=0.0)), 1e-9)
            np.testing.assert_allclose(fast.predict(rows), labels, rtol=0, atol=promised + 1e-9)
        else:
            np.testing.assert_array_equal(fast.predict(rows), labels)
            assert fast.certified(rows).mean() > 0.5 or fast is compiled[1] or n_classes > 2
    head = model.outputs.probability
    assert (head is not None) == bool(probability)
    if not probability:
        return
    if svm_type >= 3:
        assert isinstance(head, outputs.LaplaceNoise)
        assert head.sigma == pytest.approx(original.get_svr_probability(), rel=1e-12)
        return
    labels, shares = libsvm_predictions(original, rows, 1)
    if svm_type == 2:
        assert (np.abs(oracle.probabilities(model, rows)[0] - shares) < 1e-15).mean() > 0.99  # steps
        return
    for fast in compiled:
        in_order = shares[:, np.argsort(fast.artifact.labels)]
        np.testing.assert_allclose(fast.predict_proba(rows), in_order, rtol=0, atol=1e-6)
    exact, _ = oracle.probabilities(model, rows)
    np.testing.assert_allclose(exact.astype(float), shares, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(model.labels[exact.argmax(axis=1)], labels)


def test_probabilities_need_both_lists_as_libsvm_demands(tmp_path):
    head = "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.25\nlabel 1 -1\n"
    tail = "nr_sv 1 1\nSV\n1 1:1 2:0.5\n-1 1:-1\n"
    path = tmp_path / "file.model"
    path.write_text(head + "probA -2\n" + tail)
    assert read_any(path).outputs.probability is None
    path.write_text(head + "nr_sv 1 1\nprobA -2\nprobB 0.5\nSV\n1 1:1 2:0.5\n-1 1:-1\n")  # ThunderSVM's order
    head_read = read_any(path).outputs.probability
    assert (head_read.prob_a.tolist(), head_read.prob_b.tolist()) == ([-2.0], [0.5])


def test_one_class_of_labels_has_probability_one(tmp_path):
    path = tmp_path / "file.model"
    path.write_text("svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 1\ntotal_sv 0\nrho\nlabel 5\nnr_sv 0\nSV\n")
    model = read_any(path)
    assert model.labels[class_numbers.winner(values_of(model, np.zeros((3, 1))))].tolist() == [5, 5, 5]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("kernel_type polynomial\ndegree 7\ngamma 1\ncoef0 0", "polynomial of degree 7, only degrees 1 to 6"),
        ("kernel_type precomputed", "precomputed .it holds row numbers"),
    ],
)
def test_other_kernels_of_files_are_named(tmp_path, kernel, message):
    path = tmp_path / "file.model"
    path.write_text(f"svm_type epsilon_svr\n{kernel}\nnr_class 2\ntotal_sv 1\nrho 0\nSV\n1 0:1 1:1\n")
    with pytest.raises(UnsupportedModelError, match=message):
        read_any(path)


def write_libsvm(path, X, y):
    path.write_text(
        "".join(
            f"{label:.17g} " + " ".join(f"{j}:{v:.17g}" for j, v in enumerate(row, 1) if v) + "\n"
            for row, label in zip(X, y, strict=True)
        )
    )


@pytest.mark.parametrize("options", [[], ["-l", "0"], ["-l", "0.25", "-u", "0.75", "-y", "-1", "1"]])
def test_range_files_scale_as_svm_scale_does(tmp_path, options):
    import shutil

    if shutil.which("svm-scale") is None:
        pytest.skip("svm-scale is not installed")
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(60, 5)) * [1, 100, 1e-3, 1, 1], 6)
    X[:, 3] = 4.0  # one value only: not in the file, scaled to 0
    X[rng.uniform(size=X.shape) < 0.2] = 0.0
    X[:, 3] = 4.0
    y = np.round(target(np.pad(X, [(0, 0), (0, 1)])), 3)
    new = np.round(rng.normal(size=(40, 6)) * [2, 300, 1e-3, 5, 1, 1], 6)  # outside the range; an unseen sixth feature
    write_libsvm(tmp_path / "train", X, y)
    write_libsvm(tmp_path / "new", new, np.zeros(40))
    run = {"capture_output": True, "text": True, "check": True, "cwd": tmp_path}
    subprocess.run(["svm-scale", *options, "-s", "range", "train"], **run)
    scaled_text = subprocess.run(["svm-scale", "-r", "range", "new"], **run).stdout
    (tmp_path / "scaled").write_text(scaled_text)
    scaled, _ = approxsvm.read_libsvm_data(tmp_path / "scaled", n_features=6)
    scaling = read_range_file(tmp_path / "range")
    map_ = scaling.input_map(6)
    np.testing.assert_allclose(map_.apply(new), scaled.toarray(), rtol=2e-5, atol=1e-9)
    assert (scaling.target is None) == ("-y" not in options)
    # A model of fewer columns than the range file grows; a restored target is in raw units.
    plain = KernelModel(
        "regression", support_vectors=np.eye(3), dual_coef=[1, 2, 3], intercept=0.5, gamma=0.3, first_index=1
    )
    model = with_range_file(plain, tmp_path / "range")
    assert (model.n_features, model.n_raw_features) == (5, 5)
    expected = reference.decision_function(replace(plain, support_vectors=np.eye(3, 5)), scaled.toarray()[:, :5])
    np.testing.assert_allclose(values_of(model, new[:, :5]), expected, rtol=1e-4)
    if scaling.target is not None:
        restored = with_range_file(plain, tmp_path / "range", restore_target=True)
        low, high = y.min(), y.max()
        np.testing.assert_allclose(
            values_of(restored, new[:, :5]), low + (values_of(model, new[:, :5]) + 1) / 2 * (high - low), rtol=1e-9
        )
    else:
        with pytest.raises(UnsupportedModelError, match="no target to restore"):
            with_range_file(plain, tmp_path / "range", restore_target=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected x"),
        ("1 2 3\n", "line 1: expected x"),
        ("x\n-1\n", "line 2: expected 2 finite numbers"),
        ("x\n1 -1\n", "line 2: the upper limit -1.0 is not above"),
        ("x\n-1 1\n1 0\n", "line 3: expected 3 finite numbers"),
        ("x\n-1 1\n1 0 nan\n", "line 3: expected 3 finite numbers"),
        ("x\n-1 1\n1 0 1\n1 0 1\n", "line 4: 1 is not a new feature index"),
        ("x\n-1 1\n1.5 0 1\n", "line 3: 1.5 is not a new feature index"),
        ("x\n-1 1\n1 2 1\n", "line 3: the least value 2.0 is above"),
        ("y\n0 1\n", "line 3: expected 2 finite numbers"),
        ("y\n0 1\n5 5\nx\n0 1\n", "line 3: the limits of y do not ascend"),
    ],
)
def test_broken_range_files_are_refused_with_name_and_line(tmp_path, text, message):
    path = tmp_path / "range"
    path.write_text(text)
    with pytest.raises(DataFormatError, match=f"range, {message}"):
        read_range_file(path)


def test_range_files_of_any_tokens_are_maps_or_refused(tmp_path):
    tokens = ["y", "-1", "1", "-2", "7", "x", "-1", "1", "1", "0", "3", "2", "-1", "5", "7", "1e-3", "2e10"]
    odd = [
        "",
        "-1",
        "0",
        "1e999",
        "nan",
        "1_0",
        "1e308",
        "-1e308",
        "1e-320",
        "1048577",
        "2147483648",
        "1e300",
        "x",
        "\x00",
    ]
    breaks = {0, 2, 4, 5, 7, 10, 13, 16}
    rng, n_maps = np.random.default_rng(0), 0
    for _ in range(400):
        changed = [token + ("\n" if k in breaks else " ") for k, token in enumerate(tokens)]
        for _ in range(rng.integers(1, 4)):
            changed[rng.integers(len(changed))] = odd[rng.integers(len(odd))] + rng.choice(["\n", " "])
        (tmp_path / "range").write_text("".join(changed))
        try:
            mapped = read_range_file(tmp_path / "range").input_map(8).apply(np.ones((1, 8)))
        except (DataFormatError, ModelFormatError):
            continue
        assert mapped.shape == (1, 8)
        n_maps += 1
    assert n_maps > 10


# Arrays, and other libraries by attribute


def test_a_least_squares_machine_is_three_arrays_and_a_number():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)).astype(np.float32)
    y = np.sign(X[:, 0])
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2, dtype=np.float64))
    system = np.block([[np.zeros((1, 1)), np.ones((1, 30))], [np.ones((30, 1)), K + 0.1 * np.eye(30)]])
    solution = np.linalg.solve(system, np.r_[0.0, y])
    model = KernelModel(
        "classification",
        support_vectors=X.tolist(),
        dual_coef=solution[1:].astype(np.float32),
        intercept=solution[0],
        gamma=0.5,
        labels=["plus", "minus"],
    )
    assert model.dual_coef.dtype == model.support_vectors.dtype == np.float64
    predicted = model.labels[class_numbers.winner(values_of(model, X.astype(np.float64)))]
    np.testing.assert_array_equal(predicted, np.where(y > 0, "plus", "minus"))
    assert approxsvm.compile(model, mode="exact").predict(X.astype(np.float64)).tolist() == predicted.tolist()
    sparse = replace(model, support_vectors=csr_matrix(X))
    np.testing.assert_array_equal(values_of(sparse, X), values_of(model, X))
    with pytest.raises(ModelFormatError, match="0 support vector counts for 3 classes"):
        KernelModel("classification", np.eye(3), np.ones((2, 3)), np.zeros(3), 0.1, labels=[1, 2, 3])


class FakeDeviceArray:
    """What a GPU library returns: no NumPy array, but one on request."""

    def __init__(self, values):
        self.values = values

    def get(self):
        return self.values


@pytest.fixture
def fake_class(monkeypatch):
    """Make stand-ins, recognised as what a module holds: neither cuML nor ThunderSVM can be installed here."""

    def make(module, name, **attributes):
        stand_in = type(name, (), attributes | {"__module__": module})
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{name: stand_in}))
        return stand_in()

    return make


@pytest.mark.parametrize("probability", [False, True])
def test_cuml_classifiers_by_attribute(fake_class, probability):
    X, y = data()
    svc = SVC(gamma=0.05).fit(X, y)
    standin = fake_class(
        "cuml.svm.svc",
        "SVC",
        kernel="rbf",
        probability=probability,
        support_vectors_=FakeDeviceArray(svc.support_vectors_),
        dual_coef_=FakeDeviceArray(svc.dual_coef_),
        intercept_=FakeDeviceArray(svc.intercept_),
        classes_=FakeDeviceArray(svc.classes_),
        _gamma=svc._gamma,
        _probA=np.array([-2.0]),
        _probB=np.array([0.1]),
    )
    model = read_any(standin)
    values = values_of(model, X)
    np.testing.assert_allclose(values[:, 0], svc.decision_function(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.labels[class_numbers.winner(values)], svc.predict(X))
    assert model.source == "cuml SVC"
    if probability:
        shares = oracle.answers(model, X)["predict_proba"].mid.astype(float)
        np.testing.assert_allclose(shares[:, 1], 1 / (1 + np.exp(-2.0 * values[:, 0] + 0.1)), rtol=1e-12)
    else:
        assert model.outputs.probability is None
    with pytest.raises(UnsupportedModelError, match="several classes"):
        read_any(fake_class("cuml.svm.svc", "SVC", _multiclass=object()))


def test_cuml_regressors_by_attribute(fake_class):
    X, _ = data()
    svr = SVR(gamma=0.05).fit(X, target(X))
    names = ("support_vectors_", "dual_coef_", "intercept_", "_gamma", "kernel")
    model = read_any(fake_class("cuml.svm.svr", "SVR", **{name: getattr(svr, name) for name in names}))
    np.testing.assert_allclose(values_of(model, X)[:, 0], svr.predict(X), rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_thundersvm_estimators_through_the_file_they_write(fake_class, tmp_path, n_classes):
    X, y = data(n_classes)
    X = np.round(StandardScaler().fit_transform(X), 3)
    y = np.array([4, 1, 9])[y]
    original, path = saved_by_libsvm(tmp_path, "-g 0.1234567", X, y)
    exact = read_any(path)
    # ThunderSVM writes six digits of gamma and rho, keeps floats, and calls rho intercept_.
    lines = [
        line.split(" ")[0] + "".join(f" {float(v):g}" for v in line.split()[1:]) if line[:3] in ("rho", "gam") else line
        for line in path.read_text().splitlines()
    ]

    def save_to_file(self, name):
        with open(name, "w") as file:
            file.write("\n".join(lines) + "\n")

    standin = fake_class(
        "thundersvm.thundersvm",
        "SVC",
        support_vectors_=None,
        shape_fit_=X.shape,
        intercept_=-exact.intercept,
        _gamma=0.1234567,
        save_to_file=save_to_file,
    )
    model = read_any(standin)
    assert model.labels.tolist() == original.get_labels()
    assert (model.gamma, model.source) == (float(np.float32(0.1234567)), "thundersvm SVC")
    np.testing.assert_allclose(values_of(model, X), values_of(exact, X), rtol=1e-6, atol=1e-6)
    type(standin).intercept_ = exact.intercept + 1
    with pytest.raises(ModelFormatError, match="but the saved rho"):
        read_any(standin)


@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_intelex_by_its_base_classes():
    sklearnex = pytest.importorskip("sklearnex.svm")
    X, y = data(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = sklearnex.SVC().fit(X, y)
        model = read_any(fitted)
        values = values_of(model, X)
        np.testing.assert_array_equal(model.labels[class_numbers.winner(values)], fitted.predict(X))
    assert model.outputs.probability is None


def test_reading_imports_no_library_that_the_user_has_not_loaded():
    code = (
        "import sys, numpy as np\n"
        "from approxsvm.readers import read_any\n"
        "class SVC: pass\n"
        "try: read_any(SVC())\n"
        "except Exception as error: assert 'cannot compile' in str(error), error\n"
        "others = ('cuml', 'thundersvm', 'pandas', 'sklearn.pipeline', 'sklearn.svm')\n"
        "assert not [name for name in others if name in sys.modules]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")


# Quadratic forms


@pytest.mark.parametrize("degree", [1, 2])
def test_quadratic_forms_stay_within_their_rounding(degree):
    from fractions import Fraction

    rng = np.random.default_rng(degree)
    machine = KernelModel(
        "regression",
        support_vectors=rng.normal(size=(12, 3)) * 10.0 ** rng.integers(-2, 4, size=(12, 1)),
        dual_coef=rng.normal(size=12) * 10.0 ** rng.integers(-3, 4, size=12),
        intercept=0.7,
        gamma=0.1,
    )
    fast = approxsvm.compile(replace(machine, degree=degree, gamma=0.3, coef0=-1.1), mode="approximate")
    rows = rng.normal(size=(30, 3)) * 10.0 ** rng.integers(-3, 5, size=(30, 1))
    values, bounds = fast.predict(rows), fast.error_bound(rows)
    exactly = [[Fraction(float(v)) for v in x] for x in machine.support_vectors]
    gamma, coef0 = Fraction(0.3), Fraction(-1.1)
    for row, value, bound in zip(rows, values, bounds, strict=True):
        z = [Fraction(float(v)) for v in row]
        exact = Fraction(0.7) + sum(
            Fraction(float(a)) * (gamma * sum(p * q for p, q in zip(x, z, strict=True)) + coef0) ** degree
            for a, x in zip(machine.dual_coef[0], exactly, strict=True)
        )
        assert abs(Fraction(float(value)) - exact) <= Fraction(float(bound))


def test_terms_that_cancel_keep_the_rounding_of_their_sums():
    rng = np.random.default_rng(0)
    x, a = rng.normal(size=(2000, 1)), rng.normal(size=2000)
    order = rng.permutation(4000)
    machine = KernelModel("regression", np.r_[x, x][order], np.r_[a, -a][order], 0.0, 0.1)
    for degree in (1, 2):
        model = replace(machine, degree=degree, gamma=0.3, coef0=1.7)  # exactly 0 over the real numbers
        fast, rows = approxsvm.compile(model, mode="approximate"), np.array([[0.0], [1.0], [-30.0]])
        values, bounds = fast.predict(rows), fast.error_bound(rows)
        assert (np.abs(values) <= bounds).all()
        assert bounds.max() < 1e-6
        assert np.abs(values).max() > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"intercept": np.zeros(2)}, r"dual_coef has shape \(1, 1\), expected \(2, 1\)"),
        ({"support_vectors": np.full((1, 3), np.inf)}, "support_vectors holds NaN"),
        *(({"degree": degree}, "degree is") for degree in (-1, 7, 1.5)),
        *(({"coef0": x}, "coef0 is") for x in (np.nan, np.inf)),
        *(({"gamma": x}, "gamma is") for x in (np.nan, -np.inf)),
        *(({"coef_error": x}, "coef_error is") for x in (np.nan, -1e-16, 1.0)),
        ({"labels": np.array([1, 1]), "task": "classification"}, "not distinct"),
        ({"task": "ranking"}, "unknown task"),
        ({"feature_names": ("a",)}, "1 feature names for 3"),
    ],
)
def test_polynomial_models_are_validated_when_built(changes, message):
    arguments = {"task": "regression", "support_vectors": np.zeros((1, 3)), "dual_coef": np.ones(1), "intercept": 0.0}
    with pytest.raises(ModelFormatError, match=message):
        KernelModel(**(arguments | {"gamma": -1.0, "degree": 3} | changes))
