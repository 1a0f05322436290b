"""Every source that the frontends accept, by kind, for the tests and for the generator of random sources.

A group names the rows and the target on which its sources are fitted; each line defines one source. A source with
compile options is a pair ``(estimator, options)``. Files from other programs are in zoo/foreign.py.
"""

from __future__ import annotations

import functools
import importlib.util
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from forced_subspaces import in_subspaces
from sklearn import (
    calibration,
    compose,
    decomposition,
    ensemble,
    feature_extraction,
    feature_selection,
    gaussian_process,
    impute,
    kernel_approximation,
    linear_model,
    model_selection,
    multiclass,
    multioutput,
    neighbors,
    preprocessing,
    random_projection,
    semi_supervised,
    svm,
)
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import FeatureAgglomeration
from sklearn.cross_decomposition import CCA, PLSCanonical, PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline

import approxsvm
from approxsvm.estimators import estimator_for
from approxsvm.features import TaylorFeatures
from zoo import foreign
from zoo.specimens import Entry, Specimen
from zoo.tables import Table
from zoo.tampering import parts_of

# --- rows and targets, derived from one matrix

_RNG = np.random.default_rng(7)
_N, _WIDTH = 60, 4
_NUMBERS = np.round(_RNG.gamma(2.0, size=(_N, _WIDTH)) * [1.0, 3.0, 0.5, 2.0] + 0.001, 3)
_SIGNED = np.round(_NUMBERS - [2.0, 6.0, 1.0, 4.0], 3)
_SIGNED[::9] = _SIGNED[0]  # equal rows
_CODES = np.minimum(np.floor(_NUMBERS / [1.0, 3.0, 0.5, 2.0]), 4.0)
_MARKS = (_CODES[:, :, np.newaxis] == np.arange(5.0)).reshape(_N, -1).astype(float)
_HOLES = np.where(_RNG.random(_NUMBERS.shape) < 0.15, np.nan, _SIGNED)
_HOLES[0] = _SIGNED[0]
_SPARSE = np.where(_RNG.random(_NUMBERS.shape) < 0.4, 0.0, _SIGNED)
_GRID = np.round(_NUMBERS[:, [0, 1, 2, 3, 0, 1]] * [2.0, 1.0, 4.0, 1.0, -3.0, 2.0])
_SCALES = _SIGNED * [1e-150, 1e6, 1e-30, 1e12]  # huge and tiny
_WORDS = ("apple", "Pear", "plum", "the", "naïve", "über", "don't", "x", "2026", "a-b")
_TEXTS = [" ".join(_WORDS[int(k)] for k in row) for row in _CODES + np.arange(4)]
_MIXED = np.column_stack(
    [
        _HOLES[:, 0].astype(object),
        np.array(["Private", "State", "", "Straße", np.nan], object)[_CODES[:, 1].astype(int)],
        np.array(["F", "M"], object)[(_CODES[:, 2] > 1).astype(int)],
        _CODES[:, 3].astype(object),
        (_NUMBERS[:, 0] > 2.0).astype(object),
    ]
)
_MIRRORED = np.round(np.random.default_rng(29).normal(size=(6, _WIDTH)), 3)  # makes intercepts exactly 0
_MIRRORED = np.vstack([_MIRRORED, -_MIRRORED])
_WHOLE = np.indices((5, 5, 5)).reshape(3, -1).T[2::2] - 2.0
_NAMES = ("age", "work", "sex", "school", "married")
_VALUE = np.round(np.sin(_NUMBERS[:, 0]) + 0.3 * _NUMBERS[:, 1] - _NUMBERS[:, 2], 3)
_NTH = np.arange(_N)
_CLASS = np.digitize(_VALUE, np.quantile(_VALUE, [0.33, 0.67]))


def _floats(values: Any, kind: str = "float64", container: str = "array", names: Any = None) -> Table:
    return Table(values.astype(kind).astype(np.float64), (kind,) * values.shape[1], container, names)


ROWS: dict[str, Table] = {
    "numbers": _floats(_NUMBERS),  # positive
    "signed": _floats(_SIGNED),
    "float32": _floats(_SIGNED, "float32"),
    "float16": _floats(_SIGNED, "float16"),
    "int64": _floats(_GRID, "int64"),
    "grid": _floats(_GRID),
    "codes": _floats(_CODES),
    "one-hot": _floats(_MARKS),
    "slices": _floats(np.hstack([np.eye(2)[np.arange(_N) % 2], _SIGNED[:, :2]])),
    "wide": _floats(np.hstack([_SIGNED, _SIGNED[::-1], -_SIGNED])),
    "bool": _floats(_SIGNED > 0, "bool"),
    "constant": _floats(_SIGNED * [1.0, 1.0, 0.0, 1.0] + [0.0, 1e6, -7.5, 0.0]),
    "scales": _floats(_SCALES),
    "offset": _floats(np.add(_SIGNED, [1e12, 1e9, 1e15, 1e7])),
    "holes": _floats(_HOLES),
    "mirrored": _floats(_MIRRORED),
    "whole": _floats(_WHOLE[:_N]),
    "above 1": _floats(np.column_stack([1.0 + _NUMBERS[:, :2], np.ones(_N), 1.0 + _CODES[:, 0], 1.0 + _NUMBERS[:, 2]])),
    "empty column": _floats(np.column_stack([_HOLES, np.full(_N, np.nan)])),
    "large": _floats((2.0**23 + 1.0) * _WHOLE[:_N]),  # their squares are rounded
    "far": _floats(np.sign(_SIGNED) * 10.0 ** (3 + np.arange(_N) % 4)[:, np.newaxis]),
    "long": _floats(2.0**54 + 4.0 * _CODES),  # too large to have fractions
    "codes and numbers": _floats(np.hstack([_CODES[:, :2], _SIGNED[:, 2:]])),
    "bits": _floats(np.random.default_rng(31).integers(0, 2, (_N, 40))),  # for the engine for few values
    "one code": _floats(_CODES * [1.0, 1.0, 0.0, 1.0]),
    "CSR": _floats(_SPARSE, container="CSR"),
    "CSR repeated": _floats(_SPARSE, container="CSR repeated"),
    "frame": _floats(_SIGNED, container="frame", names=("b", "größe", "a b", "a")),
    "mixed": Table(_MIXED, ("float64", "text", "category", "int8", "bool"), "frame", _NAMES),
    "texts": Table(np.array(_TEXTS, object)[:, np.newaxis], ("text",), "texts"),
}
TARGETS: dict[str, Any] = {
    "two": np.where(np.median(_VALUE) < _VALUE, 5, -2),
    "yes or no": np.median(_VALUE) < _VALUE,
    "three": np.array(["red", "green", "blue"])[_CLASS],
    "five": np.digitize(_VALUE, np.quantile(_VALUE, [0.2, 0.4, 0.6, 0.8])),
    "rare": np.where((_NTH > 0) & (_NTH < 5), "a", np.array(["b", "c"])[_CLASS // 2]),
    "rare last": np.where((_NTH > 0) & (_NTH < 5), "c", np.array(["a", "b"])[_CLASS // 2]),
    "numbered": _CLASS * 3 - 1,
    "floats": np.array([0.0, -1.0, 1e6])[_CLASS],
    "beyond int64": np.array([3, 2**63, 2**64 - 1], np.uint64)[_CLASS],
    "half unknown": np.where(np.arange(_N) % 3 == 0, -1, _CLASS),
    "value": _VALUE,
    "column": _VALUE[:, np.newaxis],
    "values": np.column_stack([_VALUE, _NUMBERS[:, 0] ** 2]),
    "labels": (_SIGNED[:, :2] > 0).astype(int),
    "constant label": (_SIGNED[:, :2] > 0) * [1, 0],
    "one column": _CLASS[:, np.newaxis],
    "mirrored": np.repeat([0, 2, 1, 2], [5, 1, 5, 1]),
    "mirrored labels": np.column_stack([np.repeat([0, 1], 6), _MIRRORED[:, 1] > 0]).astype(int),
    "whole labels": (_WHOLE[:_N, :2] > 0).astype(int),
    "two columns": np.array(["no", "yes"])[(_SIGNED[:, :2] > 0).astype(int)],
}

# --- sources


_Calibrated = calibration.CalibratedClassifierCV


def _each(*kinds: Any, **options: Any) -> dict[str, Any]:
    """Return sources by class name; some of the classes are deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return {kind.__name__: kind(**options) for kind in kinds}


def _half(**options: Any) -> Any:
    """Return a classifier with probabilities but no decision function."""
    return _Calibrated(svm.SVC(**options), ensemble=False, cv=2)


def _small_bag(member: Any, share: float = 0.1) -> Any:
    """Return a bag in which some members saw no row of a rare class."""
    return ensemble.BaggingClassifier(member, 6, max_samples=share, random_state=0)


def _columns(step: Any, columns: Any = (0, 2), **options: Any) -> Any:
    return compose.ColumnTransformer([("some", step, list(columns))], **{"remainder": "passthrough", **options})


def _before(machine: Any, steps: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Return pipelines of a step (or a tuple of steps) and a machine, with compile options."""
    found = {name: step if isinstance(step, tuple) else (step,) for name, step in steps.items()}
    return {name: (make_pipeline(*some, machine), options) for name, some in found.items()}


class FirstColumns(feature_selection.SelectorMixin, BaseEstimator):
    """A user-defined selector."""

    def fit(self, X: Any, y: Any = None) -> FirstColumns:
        self.n_features_in_ = X.shape[1]
        return self

    def _get_support_mask(self) -> Any:
        return np.arange(self.n_features_in_) < 3


_P = preprocessing
_SVC, _SVR, _LinearSVC, _LinearSVR = svm.SVC, svm.SVR, svm.LinearSVC, svm.LinearSVR
_GPR, _GPC = gaussian_process.GaussianProcessRegressor, gaussian_process.GaussianProcessClassifier
_Logistic, _Ridge = linear_model.LogisticRegression, linear_model.Ridge
_Text = feature_extraction.text
_FREQUENT = impute.SimpleImputer(strategy="most_frequent")
_IGNORING = _P.OneHotEncoder(handle_unknown="ignore")
_UNKNOWN = {"handle_unknown": "use_encoded_value", "unknown_value": -3}
_FRONTS: dict[str, tuple[Any, ...]] = {
    "PCA": (_P.StandardScaler(), decomposition.PCA(3, whiten=True)),
    "bins": (_columns(_P.KBinsDiscretizer(4, encode="onehot-dense")), _P.StandardScaler()),
}
_APPROXIMATE = {"mode": "approximate"}
_IMPUTED = compose.make_column_transformer(
    (make_pipeline(_FREQUENT, _IGNORING), ["work", "sex"]),
    (make_pipeline(impute.SimpleImputer(), _P.PowerTransformer()), ["age", "school"]),
)
_LANDMARKS = kernel_approximation.Nystroem(gamma=0.1, n_components=12, random_state=0)
_WAVES = kernel_approximation.RBFSampler(gamma=0.1, n_components=40, random_state=0)
_FOLDS = model_selection.PredefinedSplit(np.where(TARGETS["five"] == 0, 0, _NTH % 3))
# fmt: off
_GROUPS: list[tuple[str, str, dict[str, Any]]] = [
    # Kernel machines
    ("signed", "two", {
        "SVC": _SVC(),
        "SVC, exact": (_SVC(), {"mode": "exact"}),
        "SVC, four centers": (_SVC(), {"n_centers": 4, "degree": 2}),
        "SVC about the origin": (_SVC(gamma=0.05), {"n_centers": 1, "degree": 4, "center": "origin"}),
        "SVC within a tolerance": (_SVC(), {"tolerance": 1e-4}),
        "SVC, approximate": (_SVC(gamma=0.02), {"mode": "approximate", "degree": 3}),
        "SVC, approximate by centers": (_SVC(gamma=0.05), {"mode": "approximate", "degree": 1, "n_centers": 5}),
        "SVC, narrow": _SVC(gamma=50.0),
        "SVC, wide": _SVC(gamma=1e-9, C=1e6),
        "SVC, linear": _SVC(kernel="linear"),
        "SVC, cubic": _SVC(kernel="poly", gamma=0.1),
        "SVC, quadratic, approximate": (_SVC(kernel="poly", degree=2, coef0=1.0), {"mode": "approximate"}),
        "SVC, sigmoid": _SVC(kernel="sigmoid", gamma=0.05, coef0=-0.5),
        "SVC, probability": _SVC(probability=True, random_state=0),
        "NuSVC": svm.NuSVC(nu=0.3),
    }),
    ("signed", "three", {
        "SVC of three": _SVC(),
        "SVC of three, exact": (_SVC(), {"mode": "exact"}),
        "SVC of three, centers": (_SVC(), {"n_centers": 3, "degree": 3}),
        "SVC of three, approximate": (_SVC(gamma=0.02), {"mode": "approximate"}),
        "SVC, ties": _SVC(break_ties=True),
        "SVC of three, degree 6": _SVC(kernel="poly", degree=6, coef0=1.0, gamma=0.05),
        "SVC of three, quadratic": _SVC(kernel="poly", degree=2, coef0=1.0),
        "SVC of three, sigmoid": _SVC(kernel="sigmoid", gamma=0.05),
        "SVC of three, linear": _SVC(kernel="linear", break_ties=True, probability=True, random_state=0),
        "SVC of three, affine": _SVC(kernel="poly", degree=1, coef0=0.5, gamma=0.3),
        "NuSVC, probability": svm.NuSVC(nu=0.3, kernel="poly", degree=3, coef0=1.0, probability=True, random_state=0),
    }),
    ("signed", "floats", {"SVC, pairs": _SVC(decision_function_shape="ovo")}),
    ("signed", "beyond int64", {"SVC beyond int64": _SVC()}),
    ("signed", "five", {"SVC of five": _SVC()}),
    ("signed", "yes or no", {"SVC, yes or no": _SVC()}),
    ("signed", "value", {
        "SVR": _SVR(),
        "SVR, exact": (_SVR(), {"mode": "exact"}),
        "SVR, approximate": (_SVR(gamma=0.02), {"mode": "approximate", "degree": 4}),
        "SVR within a tolerance": (_SVR(), {"tolerance": 1e-3}),
        "SVR, cubic": _SVR(kernel="poly", coef0=1.0, gamma=0.1),
        "SVR, sigmoid": _SVR(kernel="sigmoid", gamma=0.01),
        "NuSVR, linear": svm.NuSVR(kernel="linear", C=0.1),
        "OneClassSVM": svm.OneClassSVM(nu=0.3),
        "OneClassSVM, linear": svm.OneClassSVM(nu=0.3, kernel="linear"),
        "OneClassSVM, quadratic": svm.OneClassSVM(nu=0.3, kernel="poly", degree=2, gamma=0.1),
        "KernelRidge": KernelRidge(kernel="rbf", gamma=0.1),
        "KernelRidge, linear": KernelRidge(),
        "KernelRidge, sigmoid": KernelRidge(kernel="sigmoid", gamma=0.01, coef0=0.5, alpha=5.0),
        "KernelRidge, quadratic": KernelRidge(kernel="polynomial", degree=2, gamma=0.3),
        "process": _GPR(RBF([3.0, 9.0, 1.0, 6.0]) + WhiteKernel(0.1), optimizer=None),
        "process, normalized": _GPR(ConstantKernel(2.0) * RBF(3.0) + 0.5, alpha=0.1, optimizer=None, normalize_y=True),
        "density": neighbors.KernelDensity(bandwidth=0.7),
        "scaled density": make_pipeline(
            _P.StandardScaler(), decomposition.PCA(3), _P.MinMaxScaler(), neighbors.KernelDensity(bandwidth=0.2)),
    }),
    ("signed", "values", {
        "KernelRidge, two targets": KernelRidge(kernel="rbf", gamma=0.1),
        "KernelRidge, cubic, two targets": KernelRidge(kernel="poly", gamma=0.1),
        "waves, two targets": make_pipeline(_WAVES, _Ridge()),
        "process, two targets": _GPR(RBF(3.0), alpha=0.1, optimizer=None, normalize_y=True),
        "targets": multioutput.MultiOutputRegressor(_SVR()),
        "targets of waves": make_pipeline(_WAVES, multioutput.MultiOutputRegressor(_Ridge())),
        "scaled targets": compose.TransformedTargetRegressor(KernelRidge(gamma=0.1), transformer=_P.MinMaxScaler()),
        "restored targets": compose.TransformedTargetRegressor(
            make_pipeline(_WAVES, _Ridge()), transformer=_P.MinMaxScaler((-2, 5))),
    }),
    ("signed", "column", {
        "KernelRidge, one column": KernelRidge(kernel="rbf", gamma=0.1),
        "targets, one": multioutput.MultiOutputRegressor(_SVR()),
        "LinearRegression, one column": linear_model.LinearRegression(),
        "landmarks, one column": make_pipeline(_LANDMARKS, linear_model.LinearRegression()),
        "waves, one column": make_pipeline(_WAVES, linear_model.LinearRegression()),
        "process, one column": _GPR(RBF(3.0) + WhiteKernel(0.1), normalize_y=True, optimizer=None),
        "scaled target, one column": compose.TransformedTargetRegressor(_SVR(), transformer=_P.StandardScaler()),
        "target as it is, one column": compose.TransformedTargetRegressor(linear_model.LinearRegression()),
    }),
    ("signed", "two", {"process of two": _GPC(2.0 * RBF(1.5) + 0.5, optimizer=None)}),
    # Rows of other dtypes, containers and scales
    *((rows, target, {
        f"SVC of {rows}": _SVC(),
        f"StandardScaler, SVC of {rows}": (
            make_pipeline(_P.StandardScaler(with_mean=rows != "CSR"), _SVC()), {"n_centers": 3, "degree": 2}),
    }) for rows, target in (
        *(("float32", "two"), ("float16", "three"), ("int64", "three"), ("one-hot", "two"), ("bool", "two")),
        *(("constant", "three"), ("scales", "two"), ("CSR", "three"), ("frame", "three")),
    )),
    ("offset", "two", {
        "scalers of offset": make_pipeline(_P.RobustScaler(), _P.StandardScaler(), _SVC(C=9.0)),
        "MinMaxScaler of offset": (
            make_pipeline(_columns(_P.MinMaxScaler(clip=True), [1, 3], remainder="drop"), _SVC()), {"mode": "exact"}),
    }),
    ("offset", "value", {"SVR of offset": make_pipeline(_P.StandardScaler(), _SVR(C=3.0, epsilon=0.01)),
                         "process of offset": _GPR(RBF([1e3, 3.0, 1e3, 6.0]), alpha=0.1, optimizer=None)}),
    ("slices", "two", {"SVC of slices": (_SVC(gamma=0.1), {"n_centers": 9, "degree": 2})}),
    ("wide", "two", {"SVC of many values": _SVC(gamma=5.0)}),
    ("grid", "two", {"SVC of a grid": (_SVC(gamma=0.01, C=0.1), {"mode": "exact"})}),
    ("grid", "three", {"SVC of a grid, three": _SVC(gamma=0.01)}),
    ("bits", "two", {"SVC of bits": (_SVC(gamma=0.05), {"mode": "exact"})}),
    ("bits", "three", {"SVC of bits, three": _SVC(gamma=0.05)}),
    ("CSR", "three", {"products of CSR": make_pipeline(_P.PolynomialFeatures(2, include_bias=False), _SVC())}),
    ("numbers", "two", {"box-cox before an imputer": make_pipeline(
        _P.PowerTransformer("box-cox"), impute.SimpleImputer(), _SVC())}),
    ("CSR", "three", _before(_SVC(), {
        **{f"Normalizer of CSR, {norm}": (_P.MaxAbsScaler(), _P.Normalizer(norm)) for norm in ("l1", "l2", "max")},
        "Normalizer behind TruncatedSVD": (decomposition.TruncatedSVD(3, random_state=0), _P.Normalizer()),
    })),
    ("codes and numbers", "three", {f"Normalizer of sparse columns, {norm}": make_pipeline(
        compose.ColumnTransformer([("codes", _P.OneHotEncoder(handle_unknown="ignore"), [0, 1])],
                                  remainder="passthrough", sparse_threshold=1.0),
        _P.Normalizer(norm), _SVC()) for norm in ("l1", "l2", "max")}),
    ("CSR", "two", {"landmarks of CSR": make_pipeline(_LANDMARKS, _Logistic()),
                    "bag of landmarks of CSR": ensemble.BaggingClassifier(
                        make_pipeline(_LANDMARKS, _LinearSVC()), 2, random_state=0)}),
    ("CSR", "value", {"bag of CSR": ensemble.BaggingRegressor(_SVR(), 2, random_state=0)}),
    ("CSR", "value", {"SVR of CSR": _SVR(), "LinearSVR of CSR": _LinearSVR(random_state=0)}),
    ("float32", "value", {"SVR of float32": make_pipeline(_P.MinMaxScaler(), _SVR()), "Ridge of float32": _Ridge()}),
    # Linear models and feature maps
    ("signed", "two", {
        **_each(_LinearSVC, _Logistic, linear_model.Perceptron, linear_model.RidgeClassifier),
        "LogisticRegressionCV": linear_model.LogisticRegressionCV(Cs=2, cv=2),
        **_each(linear_model.PassiveAggressiveClassifier, random_state=0),
        "SGDClassifier": linear_model.SGDClassifier(loss="modified_huber", random_state=0),
        "landmarks, LogisticRegression": make_pipeline(_LANDMARKS, _Logistic()),
        "landmarks, LinearSVC, calibrated": make_pipeline(_LANDMARKS, _Calibrated(_LinearSVC(), ensemble=False, cv=2)),
        "landmarks, LogisticRegressions, calibrated": make_pipeline(_LANDMARKS, _Calibrated(_Logistic(), cv=2)),
        "calibrated landmarks": _Calibrated(make_pipeline(_P.StandardScaler(), _LANDMARKS, _Logistic()), cv=2),
        "landmarks, search": make_pipeline(_LANDMARKS, model_selection.GridSearchCV(
            _Calibrated(_LinearSVC(), ensemble=False), {"cv": [2, 3]}, cv=2)),
        "landmarks, pipeline": make_pipeline(_LANDMARKS, make_pipeline(None, linear_model.RidgeClassifier())),
        "waves, LinearSVC": make_pipeline(_WAVES, _LinearSVC(random_state=0)),
        "clipped waves": _Calibrated(make_pipeline(
            _P.MinMaxScaler(clip=True), decomposition.PCA(3), _WAVES, _LinearSVC(random_state=0)), cv=2),
        "Taylor features": (make_pipeline(TaylorFeatures(0.02, 3), _LinearSVC()), {"mode": "approximate"}),
        "calibrated Taylor features": (
            _Calibrated(make_pipeline(_P.StandardScaler(), TaylorFeatures(0.02, 2), _LinearSVC()), cv=2), _APPROXIMATE),
        "SGDOneClassSVM": linear_model.SGDOneClassSVM(nu=0.3, random_state=0),
        "waves, SGDOneClassSVM": make_pipeline(_WAVES, linear_model.SGDOneClassSVM(nu=0.3, random_state=0)),
        "landmarks, SGDOneClassSVM": make_pipeline(_LANDMARKS, linear_model.SGDOneClassSVM(nu=0.3, random_state=0)),
    }),
    ("signed", "three", {
        "LinearSVC of three": _LinearSVC(),
        "LogisticRegression of three": _Logistic(),
        "RidgeClassifierCV of three": linear_model.RidgeClassifierCV(),
        "SGDClassifier of three": linear_model.SGDClassifier(loss="log_loss", random_state=0),
        "landmarks, RidgeClassifier": make_pipeline(_LANDMARKS, linear_model.RidgeClassifier()),
        "waves, LogisticRegression": make_pipeline(_P.StandardScaler(), _WAVES, _Logistic()),
        "Taylor features of three": (make_pipeline(TaylorFeatures(0.02, 2), _Logistic()), {"mode": "approximate"}),
    }),
    ("signed", "value", {
        **_each(linear_model.ARDRegression, linear_model.BayesianRidge, linear_model.ElasticNet, linear_model.Lasso),
        **_each(linear_model.HuberRegressor, linear_model.LinearRegression, linear_model.QuantileRegressor, _Ridge),
        **_each(linear_model.PassiveAggressiveRegressor, linear_model.SGDRegressor, _LinearSVR, random_state=0),
        **_each(linear_model.TheilSenRegressor, random_state=0, max_subpopulation=100),
        **_each(linear_model.ElasticNetCV, linear_model.LassoCV, cv=2),
        **_each(linear_model.RidgeCV),
        "landmarks, Ridge": make_pipeline(_LANDMARKS, _Ridge()),
        "frozen landmarks, scaled target": make_pipeline(
            FrozenEstimator(clone(_LANDMARKS).fit(_SIGNED)),
            compose.TransformedTargetRegressor(_Ridge(), transformer=_P.StandardScaler())),
        "landmarks of other parameters": make_pipeline(
            kernel_approximation.Nystroem(kernel_params={"gamma": 0.2}, n_components=8, random_state=0), _LinearSVR()),
        "waves, Ridge": make_pipeline(_P.StandardScaler(), _WAVES, _Ridge()),
        "Taylor features, Ridge": (make_pipeline(TaylorFeatures(0.02, 4), _Ridge()), {"mode": "approximate"}),
        "scaled target of Taylor features": (compose.TransformedTargetRegressor(
            make_pipeline(TaylorFeatures(0.02, 2), _Ridge()), transformer=_P.StandardScaler()), _APPROXIMATE),
    }),
    ("numbers", "value", {"skewed waves, Ridge": make_pipeline(
        kernel_approximation.SkewedChi2Sampler(skewedness=20.0, n_components=30, random_state=0), _Ridge())}),
    ("numbers", "three", {"skewed waves, LinearSVC": make_pipeline(
        kernel_approximation.SkewedChi2Sampler(skewedness=2.0, n_components=30, random_state=0), _LinearSVC())}),
    # Steps that scale, project, select
    ("signed", "three", _before(_SVC(C=9.0), {
        "StandardScaler": _P.StandardScaler(),
        "StandardScaler of means": _P.StandardScaler(with_std=False),
        "MinMaxScaler": _P.MinMaxScaler((-1.0, 2.0)),
        "MinMaxScaler, clipped": _P.MinMaxScaler(clip=True),
        "MaxAbsScaler": _P.MaxAbsScaler(),
        "RobustScaler": _P.RobustScaler(),
        "scalers": (_P.RobustScaler(with_centering=False), _P.MinMaxScaler(), _P.StandardScaler()),
        "nothing": ("passthrough", _P.FunctionTransformer(), None),
        "projections": (decomposition.PCA(4), _P.StandardScaler(), decomposition.PCA(2), _P.MinMaxScaler(clip=True)),
        "PCA": decomposition.PCA(3, whiten=True),
        "IncrementalPCA": decomposition.IncrementalPCA(3, whiten=True),
        "TruncatedSVD": (_P.StandardScaler(), decomposition.TruncatedSVD(3, random_state=0)),
        "FastICA": decomposition.FastICA(3, random_state=0),
        "discriminants": LinearDiscriminantAnalysis(),
        "discriminants, eigen": LinearDiscriminantAnalysis(solver="eigen"),
        "GaussianRandomProjection": random_projection.GaussianRandomProjection(3, random_state=0),
        "SparseRandomProjection": random_projection.SparseRandomProjection(3, random_state=0),
        "FeatureAgglomeration": FeatureAgglomeration(3),
        **{kind.__name__: FrozenEstimator(kind(1).fit(_SIGNED, _VALUE)) for kind in (CCA, PLSCanonical, PLSRegression)},
        "columns": compose.ColumnTransformer(
            [("a", _P.StandardScaler(), [2, 0]), ("b", _P.MinMaxScaler(), [3]), ("c", "drop", [1])],
            transformer_weights={"a": 2.0}),
        "union": FeatureUnion(
            [("a", _P.StandardScaler()), ("b", decomposition.PCA(2)), ("c", "passthrough")],
            transformer_weights={"a": -1.0}),
        "masked columns": compose.make_column_transformer((_P.StandardScaler(), np.array([True, False, True, True]))),
        "frozen parts": (
            compose.ColumnTransformer([("a", FrozenEstimator(_P.StandardScaler().fit(_SIGNED[:, [3, 1]])), [3, 1])]),
            FeatureUnion([("b", FrozenEstimator(_P.StandardScaler().fit(_SIGNED[:, [3, 1]])))]),
            FrozenEstimator(feature_selection.SelectKBest(k=1).fit(_SIGNED[:, [3, 1]], _CLASS))),
        "nested": Pipeline([("a", Pipeline([("b", _columns(_P.RobustScaler()))])), ("c", "passthrough")]),
        "SelectKBest": (_P.StandardScaler(), feature_selection.SelectKBest(k=2)),
        "own selector": FirstColumns(),
        "selector behind an imputer": (impute.SimpleImputer(), feature_selection.SelectKBest(k=2)),
        "columns of a scaler": (
            _P.StandardScaler(), compose.make_column_transformer(("passthrough", [0, 1]))),
        "selector by what takes NaN": feature_selection.SelectFromModel(
            ensemble.RandomForestClassifier(5, random_state=0), max_features=2, threshold=-np.inf),
        **_each(feature_selection.SelectFdr, feature_selection.SelectFpr, feature_selection.SelectFwe),
        "SelectPercentile": feature_selection.SelectPercentile(percentile=60),
        "GenericUnivariateSelect": feature_selection.GenericUnivariateSelect(mode="k_best", param=2),
        **_each(feature_selection.VarianceThreshold),
        **_each(feature_selection.RFE, feature_selection.RFECV, estimator=_LinearSVC()),
        **_each(feature_selection.SelectFromModel, feature_selection.SequentialFeatureSelector, estimator=_LinearSVC()),
    }, n_centers=1, degree=3)),
    ("signed", "two", {"RFE, itself": feature_selection.RFE(_SVC(kernel="linear"), n_features_to_select=2),
                       "RFECV, itself": feature_selection.RFECV(_SVC(kernel="linear"), cv=2)}),
    # Nonlinear steps
    ("numbers", "three", _before(_SVC(), {
        "log": _P.FunctionTransformer(np.log),
        "log1p": (_P.FunctionTransformer(np.log1p), _P.StandardScaler()),
        "logs of some": compose.ColumnTransformer([
            ("a", _P.FunctionTransformer(np.log1p, validate=True), [3, 0]), ("b", decomposition.PCA(1), [1, 2]),
            ("c", make_pipeline(_P.FunctionTransformer(np.log, validate=True), _P.StandardScaler()), [3])]),
        "box-cox": _P.PowerTransformer("box-cox"),
    })),
    ("signed", "three", _before(_SVC(gamma=0.3), {
        "yeo-johnson": _P.PowerTransformer(),
        "yeo-johnson of some": _columns(_P.PowerTransformer(standardize=False)),
        "quantiles": _P.QuantileTransformer(n_quantiles=20),
        "normal quantiles": _P.QuantileTransformer(n_quantiles=9, output_distribution="normal"),
        "scaled quantiles": (_P.StandardScaler(), _P.QuantileTransformer(n_quantiles=9)),
        "products": (_P.StandardScaler(), _P.PolynomialFeatures(3, include_bias=False)),
        "interactions": _P.PolynomialFeatures((2, 3), interaction_only=True),
        "Normalizer, l1": _P.Normalizer("l1"),
        "Normalizer, l2": (_P.StandardScaler(), _P.Normalizer()),
        "Normalizer, max": _columns(_P.Normalizer("max")),
        "Normalizers": (
            compose.ColumnTransformer([("a", _P.Normalizer("l1"), [0, 1]), ("b", _P.Normalizer("l1"), [2, 3])]),
            feature_selection.SelectKBest(k=3)),
        **{f"splines, {rule}": _P.SplineTransformer(4, degree=2, extrapolation=rule)
           for rule in ("constant", "linear", "continue", "periodic", "error")},
        "splines of degree 1": _P.SplineTransformer(5, degree=1, knots="quantile", include_bias=False),
        "scaled splines": (_P.MinMaxScaler(), _P.SplineTransformer(extrapolation="periodic")),
        "bent": compose.ColumnTransformer([
            ("e", _P.QuantileTransformer(n_quantiles=20, output_distribution="normal"), [1, 2]),
            ("f", _P.SplineTransformer(extrapolation="periodic"), [3]),
            ("a", _P.SplineTransformer(degree=1), [0, 1]),
            ("c", _P.PolynomialFeatures(), [2, 0]),
            ("d", _P.KBinsDiscretizer(3), [3]),
        ]),
    }, n_centers=2, degree=2)),
    ("signed", "value", _before(_SVR(), {"splines, SVR": _P.SplineTransformer(3), "powers, SVR": _P.PowerTransformer(),
                                         "quantiles, SVR": _P.QuantileTransformer(n_quantiles=9)})),
    # Steps that refuse numbers in columns that a selector then removes completely
    ("above 1", "two", _before(make_pipeline(feature_selection.SelectKBest(k=2), _SVC()), {
        "scaled logarithm, chosen": (
            _P.StandardScaler(), _P.MinMaxScaler(feature_range=(1, 2)), _P.FunctionTransformer(np.log)),
        "box-cox, chosen": compose.make_column_transformer((_P.PowerTransformer("box-cox"), [0, 1, 4])),
        "bins, chosen": _P.KBinsDiscretizer(4, encode="ordinal", strategy="uniform"),
        "OrdinalEncoder, unknown, chosen": _P.OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1),
        "splines, error, chosen": compose.make_column_transformer(
            (_P.SplineTransformer(n_knots=3, extrapolation="error"), [0, 1, 4])),
        "imputer, chosen": (feature_selection.SelectKBest(k=3), impute.SimpleImputer()),
    })),
    ("above 1", "two", {
        **_before(_SVC(), {
            "constant, one-hot": compose.make_column_transformer(
                (_P.OneHotEncoder(drop="first", handle_unknown="ignore"), [2]), remainder="passthrough"),
            "known constant, one-hot": compose.make_column_transformer(
                (_P.OneHotEncoder(drop="first"), [2, 3]), remainder="passthrough"),
        }),
        "RFE behind an imputer": make_pipeline(
            impute.SimpleImputer(), feature_selection.RFE(_Logistic(), n_features_to_select=2)),
        "votes of selectors": make_pipeline(impute.SimpleImputer(), ensemble.VotingClassifier([
            (str(k), make_pipeline(_P.StandardScaler(), feature_selection.SelectKBest(k=k), _SVC())) for k in (1, 2)])),
    }),
    # Numbers that overflow float64 between steps although a later step would turn them into finite ones
    ("scales", "two", _before(_SVC(), {
        f"scaled by 1e150, {type(step).__name__}": (_P.StandardScaler(), step) for step in (
            _P.Binarizer(), _P.KBinsDiscretizer(4, strategy="uniform"), _P.MinMaxScaler(clip=True),
            _P.QuantileTransformer(n_quantiles=20), _P.SplineTransformer(n_knots=3), _P.PowerTransformer())})),
    # Steps that look up
    ("signed", "three", _before(_SVC(), {
        "Binarizer": _P.Binarizer(threshold=0.5),
        "scaled Binarizer": (_P.StandardScaler(), _P.Binarizer()),
        "bins": _P.KBinsDiscretizer(4, encode="ordinal", strategy="uniform"),
        "bins, one-hot": (_P.StandardScaler(), _P.KBinsDiscretizer(4)),
        "bins of equal edges": _P.KBinsDiscretizer(9, encode="onehot-dense", strategy="quantile"),
    })),
    ("codes", "two", _before(_SVC(), {
        "OneHotEncoder": _P.OneHotEncoder(),
        "OneHotEncoder, unknown": _P.OneHotEncoder(drop="first", handle_unknown="ignore", dtype=np.float32),
        "OneHotEncoder, infrequent": _P.OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist"),
        "OneHotEncoder, chosen": (_P.OneHotEncoder(drop="if_binary"), feature_selection.SelectKBest(k=5)),
        "splines of codes": _P.SplineTransformer(25, knots="quantile"),
        "splines of codes, continue": _P.SplineTransformer(6, degree=2, knots="quantile", extrapolation="continue"),
        **{f"{n} quantiles of codes": _P.QuantileTransformer(n_quantiles=n) for n in (1, 7, 60)},
        "OrdinalEncoder": _P.OrdinalEncoder(),
        "OrdinalEncoder, unknown": _P.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        "OrdinalEncoder, unknown to an imputer": (
            _P.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), impute.SimpleImputer()),
        "OrdinalEncoder, one-hot": _columns(make_pipeline(_P.OrdinalEncoder(), _P.OneHotEncoder()), remainder="drop"),
        "TargetEncoder": _columns(_P.TargetEncoder(random_state=0, cv=2)),
        "SimpleImputer of 0": impute.SimpleImputer(missing_values=0.0, strategy="most_frequent"),
    })),
    ("holes", "three", _before(_SVC(), {
        "SimpleImputer": impute.SimpleImputer(),
        "SimpleImputer, marked": (impute.SimpleImputer(strategy="median", add_indicator=True), _P.StandardScaler()),
        "SimpleImputer, constant": impute.SimpleImputer(strategy="constant", fill_value=-1.0, keep_empty_features=True),
        "scaled before": (_P.StandardScaler(), impute.SimpleImputer()),
        "powers of holes": (_P.PowerTransformer(), impute.SimpleImputer(add_indicator=True)),
        "MissingIndicator": impute.MissingIndicator(),
        "MissingIndicator beside": FeatureUnion(
            [("a", impute.SimpleImputer()), ("b", impute.MissingIndicator(features="all"))]),
    })),
    ("empty column", "three", _before(_SVC(), {"SimpleImputer of an empty column": impute.SimpleImputer()})),
    ("mixed", "two", _before(_SVC(gamma=0.3), {
        "census": compose.ColumnTransformer([
            ("texts", make_pipeline(_FREQUENT, _P.OneHotEncoder(handle_unknown="ignore")), ["work", "sex"]),
            ("numbers", make_pipeline(impute.SimpleImputer(), _P.StandardScaler()), ["age", "school"]),
            ("rest", "passthrough", ["married"])]),
        "census, ordinal": compose.ColumnTransformer([
            ("texts", _P.OrdinalEncoder(encoded_missing_value=-7), ["work"]),
            ("unknown", _P.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-3), ["sex"]),
            ("targets", _P.TargetEncoder(random_state=0, cv=2), ["work", "school"]),
            ("numbers", impute.SimpleImputer(add_indicator=True), ["age"])]),
        "census, ignored": compose.ColumnTransformer([
            ("missing", _P.OrdinalEncoder(**_UNKNOWN, encoded_missing_value=-7), ["work"]),
            ("replaced", make_pipeline(_P.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan),
                                       impute.SimpleImputer()), ["work"]),
            ("twice", make_pipeline(_P.OrdinalEncoder(**_UNKNOWN, encoded_missing_value=9), _IGNORING), ["work"]),
            ("both", make_pipeline(impute.SimpleImputer(strategy="constant", fill_value="State"), FeatureUnion(
                [("a", _IGNORING), ("b", _P.OrdinalEncoder(**_UNKNOWN))])), ["work"]),
            ("chosen", make_pipeline(_FREQUENT, _IGNORING, feature_selection.SelectKBest(k=2)), ["work"]),
            ("marked", FeatureUnion([("a", make_pipeline(_FREQUENT, _IGNORING)),
                                     ("b", impute.MissingIndicator(features="all"))]), ["work"]),
            ("text", make_pipeline(impute.SimpleImputer(missing_values="F", strategy="most_frequent"), _IGNORING),
             ["sex"]),
            ("number", "passthrough", ["school"])]),
        "census, known": compose.ColumnTransformer([
            ("all", _P.OneHotEncoder(), ["work"]), ("some", _P.OneHotEncoder(drop="first"), ["work", "sex"]),
            ("frequent", _P.OneHotEncoder(min_frequency=9), ["work"]), ("codes", _P.OrdinalEncoder(), ["sex"]),
            ("median", make_pipeline(_P.OrdinalEncoder(), impute.SimpleImputer(strategy="median")), ["work"]),
            ("constant", make_pipeline(impute.SimpleImputer(strategy="constant", fill_value="State"),
                                       _P.OrdinalEncoder()), ["work"]),
            ("number", "passthrough", ["school"])]),
        "census, infrequent": compose.ColumnTransformer([
            ("texts", _P.OneHotEncoder(min_frequency=9, handle_unknown="infrequent_if_exist"), ["work", "school"]),
            ("marks", impute.MissingIndicator(), ["age"]),
            ("text", make_pipeline(impute.SimpleImputer(strategy="constant", fill_value="none"), _P.OneHotEncoder(
                drop="first", handle_unknown="ignore")), ["work", "sex"])]),
    })),
    ("mixed", "two", {"calibrated census": _Calibrated(make_pipeline(_IMPUTED, _P.Normalizer(), _SVC()), cv=2)}),
    ("mixed", "three", {"stack of census": ensemble.StackingClassifier(
        [("a", make_pipeline(_IMPUTED, _P.Normalizer(), _SVC())), ("b", make_pipeline(_IMPUTED, _LinearSVC()))],
        cv=2)}),
    ("texts", "two", _before(_SVC(gamma=0.5), {
        "CountVectorizer": _Text.CountVectorizer(),
        "CountVectorizer of characters": _Text.CountVectorizer(binary=True, analyzer="char_wb", ngram_range=(2, 3)),
        "TfidfVectorizer": _Text.TfidfVectorizer(stop_words="english", ngram_range=(1, 2), sublinear_tf=True),
        "TfidfVectorizer of float32": _Text.TfidfVectorizer(dtype=np.float32, strip_accents="unicode", norm="l1"),
        "HashingVectorizer": _Text.HashingVectorizer(n_features=64, strip_accents="ascii"),
        "own stop words": _Text.TfidfVectorizer(stop_words=["the", "x"], strip_accents="unicode", norm="l1"),
        "no idf": _Text.TfidfVectorizer(use_idf=False, lowercase=False, token_pattern=r"(?u)\b\w+\b"),
        "own vocabulary": (_Text.CountVectorizer(vocabulary=["plum", "apple", "2026"]), _Text.TfidfTransformer()),
        "hashes and weights": (
            _Text.HashingVectorizer(n_features=32, alternate_sign=False, norm=None), _Text.TfidfTransformer()),
        "words, chosen": (_Text.TfidfVectorizer(), decomposition.TruncatedSVD(3, random_state=0)),
    })),
    ("texts", "two", {
        "votes of texts": ensemble.VotingClassifier([
            ("words", make_pipeline(_Text.TfidfVectorizer(), _SVC(gamma=0.5))),
            ("letters", make_pipeline(
                _Text.CountVectorizer(analyzer="char", binary=True), _Text.TfidfTransformer(), _LinearSVC())),
            ("words again", Pipeline([("a", make_pipeline(_Text.TfidfVectorizer())), ("b", _Logistic())]))]),
        "union of texts": _Calibrated(make_pipeline(FeatureUnion(
            [("words", make_pipeline(_Text.TfidfVectorizer(), decomposition.TruncatedSVD(3, random_state=0))),
             ("letters", _Text.HashingVectorizer(n_features=16, binary=True)), ("none", "drop")],
            transformer_weights={"letters": 0.25}), _SVC()), cv=2),
    }),
    ("texts", "three", {"words, LogisticRegression": make_pipeline(_Text.CountVectorizer(), _Logistic())}),
    # Other machines after steps
    ("signed", "two", {f"{front}, {name}": (make_pipeline(*_FRONTS[front], *steps), options)
                          for front, name, steps, options in (
        ("PCA", "exact", (_SVC(gamma=0.1),), {"mode": "exact"}),
        ("PCA", "centers", (_SVC(gamma=0.3),), {"mode": "approximate", "n_centers": 5, "degree": 2}),
        ("PCA", "cubic", (_SVC(kernel="poly", coef0=1.0),), {}),
        ("PCA", "quadratic", (_SVC(kernel="poly", degree=2),), {"mode": "approximate"}),
        ("PCA", "splines", (_P.SplineTransformer(4, degree=2), _SVC(kernel="poly")), {}),
        ("PCA", "waves", (_WAVES, _LinearSVC(random_state=0)), {}),
        ("PCA", "norms", (_P.Normalizer(), _SVC(kernel="sigmoid", gamma=0.05)), {}),
        ("bins", "centers", (_SVC(gamma=0.03),), {"mode": "approximate", "n_centers": 5, "degree": 2}),
        ("bins", "cubic", (decomposition.PCA(5), _SVC(kernel="poly", coef0=1.0)), {}),
        ("bins", "quadratic", (_SVC(kernel="poly", degree=2),), {"mode": "approximate"}),
        ("bins", "waves", (_WAVES, linear_model.RidgeClassifier()), {}),
        ("bins", "products", (decomposition.PCA(3), _P.PolynomialFeatures(2), _SVC(gamma=0.03)), {}),
    )}),
    ("signed", "three", {"bins, calibrated": _Calibrated(make_pipeline(*_FRONTS["bins"], _SVC()), cv=2)}),
    # Estimators that wrap one estimator
    *(("signed", target, {
        f"sigmoid of {target}": _half(),
        f"sigmoids of {target}": _Calibrated(make_pipeline(_P.StandardScaler(), _SVC()), cv=2),
        f"sigmoid of {target}, pairs": _half(decision_function_shape="ovo"),
        f"isotonic of {target}": _Calibrated(_SVC(), method="isotonic", ensemble=False, cv=2),
        f"isotonics of {target}": _Calibrated(svm.NuSVC(nu=0.2), method="isotonic", cv=2),
    }) for target in ("two", "three")),
    # For two classes other than 0 and 1, scikit-learn 1.9 sometimes reads past the ends of its arrays, and fails.
    *(("signed", target, {
        f"temperature of {n}": _Calibrated(_SVC(), method="temperature", ensemble=False, cv=2),
        f"temperatures of {n}": _Calibrated(_SVC(), method="temperature", cv=2),
    }) for n, target in (("two", "yes or no"), ("three", "three"))),
    ("signed", "two", {
        "threshold of values": model_selection.FixedThresholdClassifier(_SVC(), threshold=0.3, pos_label=-2),
        "threshold of probabilities": model_selection.FixedThresholdClassifier(_Logistic(), threshold=0.4),
        "threshold of means": model_selection.FixedThresholdClassifier(_Calibrated(_SVC(), cv=2), threshold=0.4),
        "tuned threshold": model_selection.TunedThresholdClassifierCV(_half(), cv=2),
        "frozen": FrozenEstimator(make_pipeline(_P.StandardScaler(), _SVC()).fit(_SIGNED, TARGETS["two"])),
        **{kind.__name__: kind(_SVC(), {"C": [1.0, 3.0]}, cv=2, **options) for kind, options in (
            (model_selection.GridSearchCV, {}), (model_selection.HalvingGridSearchCV, {"random_state": 0}),
            (model_selection.RandomizedSearchCV, {"n_iter": 2, "random_state": 0}),
            (model_selection.HalvingRandomSearchCV, {"random_state": 0}))},
    }),
    ("signed", "half unknown", {"SelfTrainingClassifier": semi_supervised.SelfTrainingClassifier(_half())}),
    ("signed", "value", {
        "target as it is": compose.TransformedTargetRegressor(_SVR(), transformer=_P.FunctionTransformer()),
        "largest target": compose.TransformedTargetRegressor(_SVR(kernel="linear"), transformer=_P.MaxAbsScaler()),
        "robust target": compose.TransformedTargetRegressor(_SVR(), transformer=_P.RobustScaler()),
        "RFE, SVR": feature_selection.RFE(_SVR(kernel="linear", C=0.01), n_features_to_select=2),
        "scaled target": compose.TransformedTargetRegressor(_SVR(), transformer=_P.StandardScaler()),
        "restored target": compose.TransformedTargetRegressor(
            make_pipeline(_P.RobustScaler(), _SVR()), transformer=_P.MinMaxScaler((-2, 5))),
    }),
    # Estimators that wrap several estimators
    ("signed", "two", {
        "soft votes": ensemble.VotingClassifier([("a", _half()), ("b", _Logistic())], voting="soft"),
        "votes of two": ensemble.VotingClassifier([("a", _SVC()), ("b", _LinearSVC())], weights=[1, 2]),
        "bag of means": ensemble.BaggingClassifier(_half(), 2, random_state=0),
        "stack": ensemble.StackingClassifier([("a", _SVC(gamma=0.3)), ("b", _half()), ("c", _LinearSVC())], cv=2),
        "stack, approximate": (ensemble.StackingClassifier(
            [("a", _SVC(gamma=0.02)), ("b", _SVC(probability=True, random_state=0))], cv=2), {"mode": "approximate"}),
        "rest of two": multiclass.OneVsRestClassifier(_SVC()),
        "rest of means": multiclass.OneVsRestClassifier(_Calibrated(_SVC(gamma=0.3), cv=2)),
        "threshold of a stack": model_selection.FixedThresholdClassifier(
            ensemble.StackingClassifier([("a", _SVC(gamma=0.3))], _Logistic(), cv=2), threshold=0.8),
    }),
    ("signed", "three", {
        "means of means": ensemble.VotingClassifier(
            [("a", _Calibrated(_SVC(), cv=2)),
             ("b", ensemble.BaggingClassifier(_Calibrated(_SVC(), cv=2), 2, random_state=0))],
            voting="soft", weights=[3, 7]),
        "rest of means of three": multiclass.OneVsRestClassifier(_Calibrated(_SVC(gamma=0.3), cv=2)),
        "weighted soft votes": ensemble.VotingClassifier(
            [("a", _Logistic()), ("b", _half())], voting="soft", weights=[0.3, 2]),
        "votes": ensemble.VotingClassifier([("a", _SVC()), ("b", _LinearSVC()), ("c", _half())]),
        "weighted votes": ensemble.VotingClassifier(
            [("a", _SVC()), ("b", _LinearSVC()), ("c", _SVC(C=0.1))], weights=[2, 1, 1.5]),
        "bag": ensemble.BaggingClassifier(_SVC(), 3, max_features=3, random_state=0),
        "bag of some classes": ensemble.BaggingClassifier(_SVC(), 5, max_samples=6, random_state=9),
        "bag of linear ones": ensemble.BaggingClassifier(_Logistic(), 3, random_state=0),
        "rest": multiclass.OneVsRestClassifier(_SVC(gamma=0.3)),
        "rest, calibrated": multiclass.OneVsRestClassifier(_half()),
        "rest of unlike ones": multiclass.OneVsRestClassifier(make_pipeline(_WAVES, _LinearSVC())),
        "pairs": multiclass.OneVsOneClassifier(_SVC(gamma=0.3)),
        "pairs of sigmoids": multiclass.OneVsOneClassifier(_SVC(kernel="sigmoid", gamma=0.05, coef0=-0.5)),
        "pairs of polynomials": multiclass.OneVsOneClassifier(_SVC(kernel="poly", degree=2, gamma=0.3, coef0=1.0)),
        "pairs of unlike kernels": multiclass.OneVsOneClassifier(_SVC()),
        "pairs of linear ones": make_pipeline(_P.StandardScaler(), multiclass.OneVsOneClassifier(_LinearSVC())),
        "stack of three": ensemble.StackingClassifier([("a", _SVC(gamma=0.3)), ("b", _half())], cv=2, passthrough=True),
    }),
    ("one code", "two", _before(_SVC(), {
        "OneHotEncoder of a constant": _P.OneHotEncoder(drop="first", handle_unknown="ignore")})),
    ("long", "two", _before(_SVC(), {
        "OneHotEncoder, long": _P.OneHotEncoder(handle_unknown="ignore"),
        "OrdinalEncoder, long": (
            _P.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), _P.StandardScaler())})),
    ("mirrored", "mirrored", {"pairs, mirrored": multiclass.OneVsOneClassifier(_SVC(gamma=0.3)),
                              "pairs of unlike kernels, mirrored": multiclass.OneVsOneClassifier(_SVC())}),
    ("mirrored", "mirrored labels", {"rest, mirrored": multiclass.OneVsRestClassifier(_SVC(gamma=0.3)),
                                     "targets, mirrored": multioutput.MultiOutputClassifier(_SVC(gamma=0.3))}),
    ("signed", "rare", {
        "bag without a class": _small_bag(_SVC()),
        "bag of pipelines without a class": _small_bag(make_pipeline(_P.StandardScaler(), _SVC())),
        "bag of linear ones without a class": _small_bag(make_pipeline(_P.StandardScaler(), _LinearSVC())),
        "bag of weighed ones without a class": _small_bag(_LinearSVC()),
        "mean without a class": _small_bag(make_pipeline(_P.StandardScaler(), _Logistic())),
        "mean of couples without a class": _small_bag(make_pipeline(_SVC(probability=True, random_state=0)), 0.2),
    }),
    ("signed", "five", {
        "folds without a class": _Calibrated(_SVC(), cv=_FOLDS),
        "folds of pairs without a class": _Calibrated(_SVC(decision_function_shape="ovo"), cv=_FOLDS)}),
    ("signed", "rare last", {"bag without the last class": _small_bag(_SVC())}),
    ("signed", "labels", {"rest of several labels": multiclass.OneVsRestClassifier(_SVC()),
                          "several labels, coarse": (multiclass.OneVsRestClassifier(_SVC(gamma=0.02)), {
                              "mode": "approximate", "degree": 2, "n_centers": 1})}),
    ("signed", "one column", {"several labels of one target": multioutput.MultiOutputClassifier(_SVC())}),
    ("signed", "constant label", {"rest of a constant": multiclass.OneVsRestClassifier(_Logistic())}),
    ("signed", "two columns", {"several labels": multioutput.MultiOutputClassifier(_SVC()),
                               "several probabilities": multioutput.MultiOutputClassifier(_half())}),
    ("signed", "value", {
        "mean": ensemble.VotingRegressor(
            [("a", _SVR(gamma=0.1)), ("b", KernelRidge(kernel="rbf", gamma=1.0)), ("c", _Ridge())],
            weights=[2, -0.5, 1e-3]),
        "mean of one kernel": ensemble.VotingRegressor(
            [("a", _SVR(gamma=0.3)), ("b", KernelRidge(kernel="rbf", gamma=0.3))]),
        "bag of values": ensemble.BaggingRegressor(_SVR(gamma=0.1), 3, random_state=0),
        "mean without one": ensemble.VotingRegressor(
            [("a", _SVR(gamma=0.3)), ("b", _SVR(kernel="sigmoid", gamma=0.01)), ("c", _SVR())], weights=[1, 3, 0]),
        "bag of linear values": ensemble.BaggingRegressor(_LinearSVR(random_state=0), 3, random_state=0),
        "stack of values": ensemble.StackingRegressor([("a", _SVR()), ("b", _Ridge())], cv=2),
        "stack, passed through": ensemble.StackingRegressor([("a", _SVR(gamma=0.3))], _Ridge(), cv=2, passthrough=True),
    }),
]
# Steps that also precede a linear machine, whose bound covers hardly anything except their errors.
_SHOWN = (
    "StandardScaler", "MinMaxScaler", "MinMaxScaler, clipped", "MaxAbsScaler", "RobustScaler", "PCA", "TruncatedSVD",
    "discriminants", "FastICA", "GaussianRandomProjection", "SparseRandomProjection", "FeatureAgglomeration", "log",
    "log1p", "Normalizer, l1", "Normalizer, l2", "Normalizer, max", "yeo-johnson of some", "box-cox", "quantiles",
    "normal quantiles", "splines, constant", "splines, linear", "splines, continue", "splines, periodic", "products",
    "bins", "Binarizer", "scaled Binarizer", "columns", "scaled before",
)
# The steps above that compute in float32 only if fitted on float32 rows.
_NARROW = (
    "PCA", "TruncatedSVD", "discriminants", "FastICA", "GaussianRandomProjection", "SparseRandomProjection",
    "FeatureAgglomeration", "StandardScaler",
)
_LINEAR = {"a": _LinearSVC(), "b": _Logistic(), "c": linear_model.Perceptron(), "d": linear_model.RidgeClassifier()}
_Stack, _Vote = ensemble.StackingClassifier, ensemble.VotingClassifier
_Fixed = model_selection.FixedThresholdClassifier
# Linear models whose coefficients are edited.
_TIES: list[tuple[str, dict[str, Any]]] = [
    ("two", {
        **_each(_LinearSVC, linear_model.Perceptron),
        "Logistic of two": _Logistic(),
        "rest of two": multiclass.OneVsRestClassifier(_LinearSVC()),
        "votes of two": _Vote([*_LINEAR.items()][:2], weights=[1, 1]),
        "threshold below": _Fixed(_LinearSVC(), threshold=-1, pos_label=-2),
        "threshold": _Fixed(_LinearSVC(), threshold=1, pos_label=5),
        "half": _Fixed(_Logistic(), threshold=0.5),
        "half of the first": _Fixed(_Logistic(), threshold=0.5, pos_label=-2),
        "stack of two": _Stack([*_LINEAR.items()][::3], _LinearSVC(), cv=2),
    }),
    ("three", {
        **{type(one).__name__ + " of three": one for one in _LINEAR.values()},
        "rest": multiclass.OneVsRestClassifier(_LinearSVC()),
        "rest of logistic ones": multiclass.OneVsRestClassifier(_Logistic()),
        "pairs": multiclass.OneVsOneClassifier(_LinearSVC()),
        **{f"votes of {weights}": _Vote([*_LINEAR.items()], weights=weights)
           for weights in (None, [0.1, 0.2, 0.3, 0.6], [3, 1, 1, 1], [0, 1, 1, 0])},
        "stack": _Stack([*_LINEAR.items()][::3], _LinearSVC(), cv=2, passthrough=True),
    }),
    ("whole labels", {
        f"several labels of {type(one).__name__}": multiclass.OneVsRestClassifier(one)
        for one in (_LinearSVC(), _Logistic(), _Ridge(), linear_model.RidgeClassifier())}),
    ("two", {"outliers": linear_model.SGDOneClassSVM(random_state=0)}),
]
# Machines without intercepts, whose kernel values are 0 far from the training rows.
_ZEROS: list[tuple[str, dict[str, Any]]] = [
    ("two", {
        "SVC": _SVC(), "OneClassSVM": svm.OneClassSVM(), "landmarks": make_pipeline(_LANDMARKS, _Logistic()),
        "votes of two": _Vote([("a", _SVC()), ("b", _SVC(gamma=1.0))]),
        "bag": ensemble.BaggingClassifier(_SVC(), 3, random_state=0),
        "threshold": _Fixed(_SVC(), threshold=0.0, response_method="decision_function"),
        "threshold of the first": _Fixed(_SVC(), threshold=0.0, pos_label=-2, response_method="decision_function"),
    }),
    ("three", {
        "SVC of three": _SVC(), "scores": _SVC(break_ties=True), "pairs": multiclass.OneVsOneClassifier(_SVC()),
        "rest": multiclass.OneVsRestClassifier(_SVC()),
    }),
    ("labels", {
        "several labels": multiclass.OneVsRestClassifier(_SVC()), "targets": multioutput.MultiOutputClassifier(_SVC()),
        "several labels of linear ones": make_pipeline(
            _LANDMARKS, multiclass.OneVsRestClassifier(linear_model.RidgeClassifier())),
    }),
    ("two columns", {"targets of linear ones": make_pipeline(
        _LANDMARKS, multioutput.MultiOutputClassifier(linear_model.RidgeClassifier()))}),
]
# Labels by probability that differ from the source's own.
_LIKELIEST: list[tuple[str, Any, str]] = [
    ("label by probability of two", _SVC(probability=True, random_state=0), "two"),
    ("label by probability of three", _SVC(probability=True, random_state=0), "three"),
    ("likelier side of a threshold", _Fixed(_Logistic(), threshold=0.8, pos_label=-2), "two"),
    ("likelier side of a mean", _Fixed(_Calibrated(_SVC(), cv=2), threshold=0.8), "two"),
    ("likelier rest", multiclass.OneVsRestClassifier(make_pipeline(_WAVES, _Logistic())), "two"),
    ("likelier class of a stack", _Stack([("a", _SVC(gamma=0.3)), ("b", _Logistic())], cv=2), "two"),
]
# fmt: on
if importlib.util.find_spec("imblearn"):
    from imblearn import ensemble as balanced
    from imblearn import over_sampling
    from imblearn import pipeline as sampling

    _GROUPS.append(
        (
            "signed",
            "three",
            {
                "BalancedBaggingClassifier": balanced.BalancedBaggingClassifier(_SVC(), n_estimators=3, random_state=0),
                "sampled": sampling.make_pipeline(
                    _P.StandardScaler(), over_sampling.RandomOverSampler(random_state=0), _SVC()
                ),
            },
        )
    )
if importlib.util.find_spec("skopt"):
    from skopt import BayesSearchCV

    search = BayesSearchCV(_SVC(), {"C": [1.0, 2.0]}, n_iter=2, cv=2, random_state=0)
    _GROUPS.append(("signed", "two", {"BayesSearchCV": search}))
# Classes that are known but refused.
REFUSED: dict[str, Any] = {
    "PolynomialCountSketch": make_pipeline(kernel_approximation.PolynomialCountSketch(random_state=0), _Ridge()),
}


class _LikeliestClass:
    """A classifier that predicts the most probable class, as compile(labels="probability") does."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.classes_, self.predict_proba = inner, inner.classes_, inner.predict_proba

    def predict(self, X: Any) -> Any:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _in_subspaces(source: Any, rows: Any, degree: int) -> Any:
    return estimator_for(in_subspaces(approxsvm.read_model(source), (2, 3), degree, X=rows))


def fitted(estimator: Any) -> Any:
    """Return a function that fits a copy of the estimator."""
    return lambda X, y: clone(estimator).fit(X, y)


def _on_an_edge(step: Any, X: Any, y: Any) -> Any:
    """Return a source that makes sparse columns, and compares them with a number that dense columns would exceed."""
    columns = compose.ColumnTransformer(
        [("codes", _P.OneHotEncoder(), [0, 1])], remainder="passthrough", sparse_threshold=1.0
    )
    step, made = clone(step), columns.fit_transform(X)
    sparse, dense = step.fit_transform(made).toarray(), step.transform(made.toarray())
    edge = sparse[(dense > sparse) & (sparse > 0)][0]
    return make_pipeline(columns, step, _P.Binarizer(threshold=edge), _SVC()).fit(X, y)


def _bag() -> Any:
    return ensemble.BaggingClassifier(_SVC(), 5, random_state=0)


def _of_a_tiny_pair(X: Any, y: Any) -> Any:
    """Return a source whose first class pair has tiny coefficients and no intercept."""
    source = _SVC(gamma=2.0).fit(X, y)
    n_first, n_second, _ = source.n_support_
    for coef in {id(coef): coef for coef in (source.dual_coef_, source._dual_coef_)}.values():
        coef[0, : n_first + n_second] *= 1e-32
    for intercept in {id(one): one for one in (source.intercept_, source._intercept_)}.values():
        intercept[0] = 0.0
    return source


def _without_weight(estimator: Any, label: str) -> Any:
    """Return a function that fits a copy of the estimator with weight 0 for one label."""
    return lambda X, y: clone(estimator).fit(X, y, sample_weight=(y != label) * 1.0)


def _tied(estimator: Any, seed: int) -> Any:
    """Return a function that fits a copy, with a few multiples of 1/2 as coefficients so that many values tie."""

    def fit(X: Any, y: Any) -> Any:
        source, rng = clone(estimator).fit(X, y), np.random.default_rng(seed)
        for _, part in parts_of(source):
            for name in ("coef_", "intercept_", "offset_"):
                if isinstance(getattr(part, name, None), (np.ndarray, float)):
                    part.__dict__[name] = rng.integers(-3, 4, np.shape(getattr(part, name))) / 2.0
        return source

    return fit


def _without_intercepts(estimator: Any, X: Any, y: Any) -> Any:
    """Return a source fitted on other rows, far from which its values are exactly 0."""
    source = clone(estimator).fit(_SIGNED, y)
    for _, part in parts_of(source):
        for name in ("_intercept_", "intercept_", "offset_"):
            if isinstance(vars(part).get(name), (np.ndarray, float)):
                part.__dict__[name] = 0.0 * part.__dict__[name]
    return source


def _exact_entries() -> Iterator[Entry]:
    """Yield sources that round nothing for their own rows, whose labels depend on ties and values of 0."""
    for seed, (target, sources) in enumerate(_TIES):
        for name, source in sources.items():
            yield Entry(f"{name}, tied", _tied(source, seed), "whole", target, is_exact=True)
    for target, sources in _ZEROS:
        for name, source in sources.items():
            fit = functools.partial(_without_intercepts, source)
            yield Entry(f"{name}, far away", fit, "far", target, is_exact=True)


def _entries() -> Iterator[Entry]:
    for rows, target, sources in _GROUPS:
        for name, made in sources.items():
            estimator, options = made if isinstance(made, tuple) else (made, {})
            yield Entry(name, fitted(estimator), rows, target, options)
            if name in _SHOWN:
                linear = make_pipeline(estimator[:-1], _SVC(kernel="linear"))
                yield Entry(f"{name}, linear kernel", fitted(linear), rows, "two")
            if name in _NARROW:
                yield Entry(f"{name}, float32", fitted(linear), "float32", "two")
    yield from _exact_entries()
    for name, estimator, target in _LIKELIEST:
        fit = lambda X, y, estimator=estimator: _LikeliestClass(clone(estimator).fit(X, y))  # noqa: E731
        inner = lambda source, _: source.inner  # noqa: E731
        yield Entry(name, fit, target=target, options={"labels": "probability"}, write=inner)
    for step in _P.StandardScaler(with_mean=False), _P.PolynomialFeatures(3, include_bias=False):
        name = type(step).__name__
        yield Entry(f"{name} of sparse columns on an edge", functools.partial(_on_an_edge, step), "codes and numbers")
    yield Entry("bag, some members", lambda X, y: _bag().fit(X, y).set_params(n_estimators=2), "signed", "three")
    yield Entry("SVC of bits, a pair of 1e-32", _of_a_tiny_pair, "bits", "three", {"mode": "exact"})
    votes = [("a", _SVC()), ("b", _LinearSVC())]
    yield Entry("votes without a class", _without_weight(ensemble.VotingClassifier(votes), "blue"), "signed", "three")
    for rows, target, degree in ("signed", "two", 0), ("signed", "two", 2), ("grid", "three", 0):
        compiled = functools.partial(_in_subspaces, degree=degree)
        yield Entry(f"SVC in subspaces of {rows}, {degree}", fitted(_SVC(gamma=0.05)), rows, target, compile=compiled)
    yield from foreign.ENTRIES


ENTRIES = tuple(_entries())
ZOO = {entry.name: entry for entry in ENTRIES}


def specimen(entry: Entry, folder: Path) -> Specimen:
    """Fit an entry's source."""
    table = ROWS[entry.rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Specimen(entry.name, entry.fit(table.make(), TARGETS[entry.target]), table, folder, entry)
