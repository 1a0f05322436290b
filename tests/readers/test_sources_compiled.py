"""A matrix of sources and tasks, compiled: each predicts what its own library predicts, within what it promises."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model, svm
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM
from test_sources import (
    CLASSIFIERS,
    NYSTROEM,
    REGRESSORS,
    STEPS,
    data,
    rows_like,
    target,
)

import approxsvm
from approxsvm.errors import InputError
from approxsvm.model.ensemble import Ensemble
from approxsvm.model.kernel_model import KernelModel
from approxsvm.readers import read_any
from approxsvm.readers.sklearn import linear_models

MODES = ("certified", "exact")
# What the source itself rounds, as a share of its largest value.
SOURCE_ROUNDING = 1e-9


def sum_of_moduli(model):
    """The contract's unit of nearness to a boundary."""
    if isinstance(model, KernelModel):
        return max(np.abs(model.coefficients(k)).sum() for k in range(model.n_decisions))
    return np.abs(model.constant).max() + np.abs(model.linear).sum()


def is_near_tie(fitted, X, model):
    """Rows of which float64 cannot tell the label."""
    if isinstance(model, Ensemble) or model.outputs.label_rule == "probability":
        shares = np.sort(fitted.predict_proba(X), axis=1)
        return shares[:, -1] - shares[:, -2] < 1e-9
    values = fitted.decision_function(X)
    if values.ndim == 2:
        return np.zeros(len(X), bool)
    return np.abs(values) <= 1e-10 * sum_of_moduli(model)


def assert_labels(fitted, fast, X, model):
    clear = ~is_near_tie(fitted, X, model)
    assert clear.mean() > 0.9
    predicted, expected = fast.predict(X), fitted.predict(X)
    np.testing.assert_array_equal(predicted[clear], expected[clear])
    assert predicted.dtype == expected.dtype
    assert [fast.predict_one(row) for row in X[clear][:5]] == expected[clear][:5].tolist()


def assert_values(fitted, fast, X, tolerance):
    """Values within the tolerance, with as many columns in the same order."""
    expected = fitted.predict(X) if is_regressor(fitted) else fitted.decision_function(X)
    values = fast.predict(X) if is_regressor(fitted) else fast.decision_function(X)
    assert values.shape == expected.shape
    slack = SOURCE_ROUNDING * np.abs(expected).max()
    if tolerance is not None:  # a score of one class against the rest sums some values, with a slope of a third
        n_classes = values.shape[1] if values.ndim == 2 else 1
        np.testing.assert_allclose(values, expected, rtol=0, atol=tolerance * n_classes + slack)
    if values.ndim == 1:
        assert (np.abs(values - expected) <= fast.error_bound(X) + slack).all()


def assert_probabilities(fitted, fast, X, tolerance):
    expected, shares, bounds = fitted.predict_proba(X), fast.predict_proba(X), fast.probability_bound(X)
    assert shares.shape == expected.shape
    assert (np.abs(shares - expected) <= bounds + 1e-9).all()
    np.testing.assert_allclose(shares, expected, rtol=0, atol=1e-8 if tolerance is None else 1e-3)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.exp(fast.predict_log_proba(X)), shares, atol=1e-12)


def assert_compiled(fitted, X, tmp_path=None):
    model = read_any(fitted)
    for mode in MODES:
        for tolerance in (None, 1e-6 * (1 if isinstance(model, Ensemble) else sum_of_moduli(model))):
            choices = {"n_centers": 1} if mode == "certified" else {}  # planning takes most of the time here
            fast = approxsvm.compile(fitted, mode=mode, tolerance=tolerance, **choices)
            assert fast.artifact.n_raw_features == X.shape[1]
            if not is_regressor(fitted):
                assert_labels(fitted, fast, X, model)
            if hasattr(fitted, "predict_proba"):
                assert_probabilities(fitted, fast, X, tolerance)
            for method in ("predict_proba", "decision_function"):
                assert hasattr(fast, method) == hasattr(fitted, method)
            if not isinstance(model, Ensemble) and (is_regressor(fitted) or hasattr(fitted, "decision_function")):
                promised = tolerance
                if tolerance is None and is_regressor(fitted):
                    promised = fast.artifact.header["tolerance"]
                    promised = promised if np.isfinite(promised) else 0.0  # a quadratic form is exact
                assert_values(fitted, fast, X, promised)
    if tmp_path is not None:
        fast.save(tmp_path / "model.asvm")
        np.testing.assert_array_equal(approxsvm.load(tmp_path / "model.asvm").predict(X), fast.predict(X))
    return fast


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, n_classes, tmp_path):
    X, y = data(n_classes)
    labels = y if name < "b" else np.array(["red", "blue", "green"])[y]
    assert_compiled(clone(CLASSIFIERS[name]).fit(X, labels), rows_like(X), tmp_path)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name, tmp_path):
    X, _ = data()
    assert_compiled(clone(REGRESSORS[name]).fit(X, target(X)), rows_like(X), tmp_path)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_one_class(kernel, tmp_path):
    scaled = StandardScaler().fit_transform(data()[0])
    fitted = OneClassSVM(kernel=kernel, degree=2, nu=0.2, gamma=0.1).fit(scaled)
    rows = rows_like(scaled)
    fast = assert_compiled(fitted, rows, tmp_path)
    np.testing.assert_allclose(fast.score_samples(rows), fitted.score_samples(rows), atol=1e-4)
    np.testing.assert_allclose(fast.offset_, fitted.offset_)


@pytest.mark.parametrize("name", NYSTROEM)
def test_nystroem(name):
    X, y = data()
    steps = nystroem_steps(name)
    assert_compiled(steps.fit(X, np.array(["no", "yes"])[y]), rows_like(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", sorted(linear_models.NAMES - {"SGDOneClassSVM"}))  # whose labels are int32
def test_linear_models_alone(name, tmp_path):
    X, y = data()
    X = StandardScaler().fit_transform(X)
    made = getattr(svm, name) if name in ("LinearSVC", "LinearSVR") else getattr(linear_model, name)
    fitted = made().fit(X, target(X) if is_regressor(made()) else np.array(["no", "yes"])[y])
    fast = assert_compiled(fitted, rows_like(X), tmp_path)
    assert approxsvm.verify(fast, fitted, rows_like(X)).kept
    with pytest.raises(NotFittedError):
        approxsvm.compile(made())


@pytest.mark.parametrize("loss", ["log_loss", "modified_huber"])
def test_linear_models_with_probabilities_of_their_own(loss):
    X, y = data()
    assert_compiled(linear_model.SGDClassifier(loss=loss, random_state=0).fit(X, y), rows_like(X))


def in_two_dimensions():
    """Regressions, and whether they predict targets of shape (n_rows, 1) as such."""
    return {
        "KernelRidge": (KernelRidge(kernel="rbf", gamma=0.1), True),
        "KernelRidge cubic": (KernelRidge(kernel="poly", degree=3, gamma=0.01), True),
        "SVR": (SVR(), False),
        "LinearRegression": (linear_model.LinearRegression(), True),
        "Ridge": (linear_model.Ridge(), None),  # depends on the version of scikit-learn
        "GP": (GaussianProcessRegressor(RBF(3.0) + WhiteKernel(0.1), normalize_y=True, optimizer=None), False),
        "pipeline": (make_pipeline(StandardScaler(), KernelRidge(kernel="rbf", gamma=0.1)), True),
        "Nystroem": (make_pipeline(Nystroem(n_components=20, random_state=0), linear_model.LinearRegression()), True),
        "RBFSampler": (make_pipeline(RBFSampler(random_state=0), linear_model.LinearRegression()), True),
        "target": (TransformedTargetRegressor(SVR(), transformer=StandardScaler()), True),
        "target as it is": (TransformedTargetRegressor(linear_model.LinearRegression()), True),
        "SGD": (linear_model.SGDRegressor(random_state=0), False),
    }


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("name", in_two_dimensions())
def test_targets_of_one_column_are_predicted_as_they_were_fitted(name, tmp_path):
    X, _ = data()
    X = StandardScaler().fit_transform(X)
    estimator, is_column = in_two_dimensions()[name]
    for targets in (target(X), target(X)[:, np.newaxis]):
        fitted = clone(estimator).fit(X, targets)
        expected, rows = fitted.predict(X), X[:5]
        if is_column is not None:
            assert expected.ndim == 1 + (is_column and targets.ndim == 2)
        fast = approxsvm.compile(fitted, X)
        fast.save(tmp_path / "m.asvm")
        opened = (approxsvm.load(tmp_path / "m.asvm"), approxsvm.Predictor(tmp_path / "m.asvm"))
        for door in (fast, pickle.loads(pickle.dumps(fast)), *opened):
            values = door.predict(X)
            assert values.shape == door.error_bound(X).shape == expected.shape
            assert (np.abs(values - expected) <= door.error_bound(X) + SOURCE_ROUNDING * np.abs(expected).max()).all()
            assert door.predict(X[:0]).shape == expected[:0].shape
            assert door.predict(rows[:1]).shape == expected[:1].shape
            assert np.shape(door.predict_one(rows[0])) == expected[0].shape
        assert fast.score(X, targets) == pytest.approx(fitted.score(X, targets), rel=1e-4)
        assert approxsvm.verify(fast, fitted, X).kept
        report = fast.report(X, targets, against=fitted)
        assert report.evidence.predicted.shape == report.evidence.y.shape == (len(X),)


def test_targets_of_several_columns_are_restored_column_by_column():
    X, _ = data()
    targets = np.column_stack([target(X), 1e3 * X[:, 1] - 7, X[:, 2]])
    for scaler in (StandardScaler(), MinMaxScaler((2, 5)), MaxAbsScaler(), RobustScaler(), None):
        fitted = TransformedTargetRegressor(KernelRidge(kernel="rbf", gamma=0.01), transformer=scaler).fit(X, targets)
        fast = approxsvm.compile(fitted, tolerance=1e-3)
        assert (np.abs(fast.predict(X) - fitted.predict(X)) <= fast.error_bound(X) + 1e-6).all()
        assert fast.error_bound(X).max() <= 1e-3


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
def test_calibrated_classifiers_have_no_decision_function(method, n_classes):
    X, y = data(n_classes)
    fitted = CalibratedClassifierCV(SVC(), method=method, ensemble=False).fit(X, y)
    fast = approxsvm.compile(fitted, X, n_centers=1)
    alone = approxsvm.Predictor(fast.artifact)
    assert not hasattr(fitted, "decision_function")
    assert not hasattr(fast, "decision_function")
    with pytest.raises(InputError, match="without a decision function: take the probabilities"):
        alone.decision_function(X)
    # What is inside stays: bounds of the values inside, their comparison with the source's, the report.
    assert (alone.error_bound(X) == fast.error_bound(X)).all()
    assert approxsvm.verify(fast, fitted, X).kept
    assert fast.report(X, y, against=fitted).evidence.values is not None


def nystroem_steps(name):
    from sklearn.kernel_approximation import Nystroem

    return make_pipeline(StandardScaler(), Nystroem(gamma=0.2, n_components=25, random_state=0), clone(NYSTROEM[name]))


@pytest.mark.parametrize("ensemble", [False, True])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("inner", ["Nystroem", "LinearSVC", "pipeline"])
def test_calibrated(inner, method, ensemble, tmp_path):
    X, y = data()
    model = {
        "Nystroem": nystroem_steps("LogisticRegression"),
        "LinearSVC": make_pipeline(StandardScaler(), LinearSVC()),
        "pipeline": make_pipeline(StandardScaler(), SVC()),
    }[inner]
    fitted = CalibratedClassifierCV(model, method=method, ensemble=ensemble, cv=3).fit(X, y)
    assert_compiled(fitted, rows_like(X), tmp_path)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # SelectKBest on a regression
@pytest.mark.parametrize("final", ["SVC", "SVR", "linear"])
@pytest.mark.parametrize("name", STEPS)
def test_pipelines(name, final):
    X, y = data(3)
    steps = [step if step is None or isinstance(step, str) else clone(step) for step in STEPS[name]]
    if isinstance(steps[-1], SVC):
        steps.pop()
    model = {"SVC": SVC(gamma=0.01), "SVR": SVR(gamma=0.01), "linear": SVC(kernel="linear", C=0.01)}[final]
    pipeline = Pipeline([(f"step{i}", step) for i, step in enumerate([*steps, model])])
    assert_compiled(pipeline.fit(X, target(X) if final == "SVR" else y), rows_like(X) * 1.5)


def test_data_frames(tmp_path):
    from sklearn.compose import ColumnTransformer

    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    chosen = ColumnTransformer([("x", StandardScaler(), ["e", "a"]), ("y", "passthrough", ["c"])])
    for fitted in (
        make_pipeline(chosen, SVC()).fit(frame, y),
        SVC(kernel="linear").fit(frame, y),
        CalibratedClassifierCV(SVC(), cv=2).fit(frame, y),
    ):
        fast = approxsvm.compile(fitted)
        np.testing.assert_array_equal(fast.predict(frame), fitted.predict(frame))
        assert fast.feature_names_in_.tolist() == list("abcdef")
        fast.save(tmp_path / "model.asvm")
        same = approxsvm.load(tmp_path / "model.asvm")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(same.predict(frame), fitted.predict(frame))


@pytest.mark.parametrize("name", ["abalone_scale", "cpu_act"])
def test_regression_on_real_data_is_within_a_thousandth_of_the_targets_range(unpacked, name):
    X, y = approxsvm.read_libsvm_data(unpacked(f"data/{name}.bz2"))
    X = X.toarray()
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    train, test = order[:2000], order[2000:]
    fitted = make_pipeline(StandardScaler(), SVR(C=10)).fit(X[train], y[train])
    tolerance = 1e-3 * np.ptp(y)
    fast = approxsvm.compile(fitted, X[train], tolerance=tolerance, effort="low")
    expected = fitted.predict(X[test])
    for rows in (X[test], np.asfortranarray(X[test])):
        values, bounds = fast.predict(rows), fast.error_bound(rows)
        assert (np.abs(values - expected) <= tolerance).all()
        assert (np.abs(values - expected) <= bounds + SOURCE_ROUNDING * np.abs(expected).max()).all()
        assert (bounds <= tolerance).all()


def test_every_estimator_says_what_it_is():
    X, y = data()
    for name in ("SVC", "sigmoids", "linear"):
        assert is_classifier(approxsvm.compile(clone(CLASSIFIERS[name]).fit(X, y)))
