"""Every class that readers take, perturbed: what changes the source's answer changes that of the model, or is refused.

All is driven by the table itself (known_types.KNOWN), so a new class there is covered, or asks for an example.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import importlib
import pickle
import re
import sys
from collections import Counter
from functools import cache
from inspect import getattr_static
from itertools import chain
from types import FunctionType

import numpy as np
import pytest
from conftest import REPOSITORY
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, Sum, WhiteKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, MultiTaskLasso, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM
from sklearn.utils.metaestimators import available_if
from zoo import oracle
from zoo.balls import Ball

import approxsvm
from approxsvm.errors import ApproxSVMError, ModelFormatError, UnsupportedModelError
from approxsvm.readers import read_any
from approxsvm.readers.sklearn import known_types
from approxsvm.readers.sklearn.known_types import KNOWN

sys.path.append(str(REPOSITORY))  # docs are no part of the package

from docs import sources

pytestmark = pytest.mark.filterwarnings("ignore")  # of scikit-learn, about what is changed here

_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(40, 4)) * [1.0, 2.0, 0.5, 1.0] + [0.0, 1.0, 0.0, 3.0]
TARGET = np.sin(X[:, 0]) + 0.3 * X[:, 1]
TWO = np.array(["no", "yes"])[(np.median(TARGET) < TARGET).astype(int)]
THREE = np.digitize(TARGET, np.quantile(TARGET, [0.35, 0.7]))
LABELS = np.column_stack([X[:, 0] > 0, X[:, 1] > 1]).astype(int)
ROWS = X[::5] + 0.1 * _RNG.normal(size=(8, 4))
POSITIVE = np.abs(X) + 0.1
CODES = _RNG.integers(0, 4, size=X.shape).astype(float)
MISSING = np.where(_RNG.random(X.shape) < 0.2, np.nan, X)


class FirstColumns(SelectorMixin, BaseEstimator):
    """A selector of somebody's own, as scikit-learn's documentation shows one."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def _get_support_mask(self):
        return np.arange(self.n_features_in_) < 3


def calibrated(method, y, **options):
    return CalibratedClassifierCV(SVC(), method=method, cv=2, **options).fit(X, y)


def with_kernel(kernel):
    return GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True).fit(X, TARGET)


def transformed(step, source=SVC):
    return make_pipeline(step, source()).fit(X, TWO if source is SVC else TARGET)


def of_target(transformer):
    source = TransformedTargetRegressor(SVR(), transformer=transformer).fit(X, TARGET)
    return source, source.transformer_


def of_step(step):
    source = transformed(step)
    return source, source[0]


def of_machine(machine, y, rows=X):
    fitted = machine.fit(rows, y)
    return fitted, fitted


def of_last(*steps, y=TARGET, rows=X):
    source = make_pipeline(*steps).fit(rows, y)
    return source, source[-1]


def of_map(step, final=Ridge, y=TARGET, rows=X):
    source = make_pipeline(step, final()).fit(rows, y)
    return source, source[0]


def of_search(search):
    source = search.fit(X, TWO)
    return source, source


def examples_of_machines(name, cls):
    if name in ("SVC", "NuSVC"):
        yield of_machine(cls(probability=True, random_state=0), THREE)
        yield of_machine(cls(kernel="poly", degree=2, coef0=0.5, probability=True, random_state=0), TWO)
        if name == "SVC":
            yield of_machine(cls(decision_function_shape="ovo"), THREE)
            yield of_machine(cls(break_ties=True), THREE)
            yield of_machine(cls(kernel="linear"), TWO, csr_array(X))
    elif name == "GaussianProcessRegressor":
        source = with_kernel(ConstantKernel(2.0) * RBF(1.5) + WhiteKernel(0.1))
        yield source, source
        source = with_kernel(RBF([1.0, 2.0, 1.0, 3.0]) + WhiteKernel(0.1))
        yield source, source
        source = GaussianProcessRegressor(RBF(1.5), normalize_y=True, optimizer=None)
        yield of_machine(source, np.column_stack([TARGET, TARGET**2]))
    elif name == "GaussianProcessClassifier":
        yield of_machine(cls(2.0 * RBF(1.5), optimizer=None), TWO)
        yield of_machine(cls(ConstantKernel(0.5) + RBF([1.0, 2.0, 1.0, 3.0]), optimizer=None), TWO)
        yield of_machine(cls(2.0 * RBF(1.5), optimizer=None), THREE[:12], X[:12])
    elif name == "KernelDensity":
        yield of_machine(cls(bandwidth=0.7), None)
        yield of_machine(cls(kernel="gaussian", metric="euclidean", metric_params={}), None)
    elif name == "_BinaryGaussianProcessClassifierLaplace":
        source = GaussianProcessClassifier(ConstantKernel(0.5) * RBF(1.5), optimizer=None).fit(X, TWO)
        yield source, source.base_estimator_
        source = GaussianProcessClassifier(ConstantKernel(0.5) * RBF(1.5), optimizer=None).fit(X[:12], THREE[:12])
        yield source, source.base_estimator_.estimators_[0]
    elif name == "KernelRidge":
        yield of_machine(cls(kernel="rbf"), TARGET)
        yield of_machine(cls(kernel="polynomial", degree=2, gamma=0.3), TARGET)
        yield of_machine(cls(), np.column_stack([TARGET, TARGET**2]))
    else:
        yield of_machine(cls(), TARGET)
        yield of_machine(cls(kernel="poly", degree=3, coef0=1.0), TARGET)


def examples_of_kernels(name, cls):
    source = with_kernel(ConstantKernel(0.5) + ConstantKernel(2.0) * RBF(1.5) + WhiteKernel(0.1))
    all_kernels = [source.kernel_]
    for kernel in all_kernels:
        all_kernels += [getattr(kernel, key) for key in ("k1", "k2") if hasattr(kernel, key)]
    yield from ((source, kernel) for kernel in all_kernels if type(kernel) is cls)


def examples_of_steps(name, cls):
    if name == "FunctionTransformer":
        yield of_map(cls(np.log1p), SVC, TWO, POSITIVE)
        yield of_step(cls())
        yield of_target(cls())
    elif name == "ColumnTransformer":
        parts = [("a", StandardScaler(), [2, 0]), ("b", MinMaxScaler(), [3]), ("c", "drop", [1])]
        yield of_step(cls(parts, transformer_weights={"a": 2.0}))
    elif name == "FeatureUnion":
        yield of_step(cls([("a", StandardScaler()), ("b", MinMaxScaler())], transformer_weights={"a": 2.0}))
    elif name == "PCA":
        yield of_step(cls(3, whiten=True))
    elif name in ("TruncatedSVD", "FastICA", "GaussianRandomProjection", "SparseRandomProjection"):
        yield of_step(cls(3, random_state=0))
    elif name == "IncrementalPCA":
        yield of_step(cls(3, whiten=True))
    elif name == "LinearDiscriminantAnalysis":
        yield of_step(cls())
        yield of_step(cls(solver="eigen"))
    elif name == "FeatureAgglomeration":
        yield of_step(cls(3))
    elif name in ("CCA", "PLSCanonical", "PLSRegression"):  # whose fit_transform pipelines do not take
        source = make_pipeline(FrozenEstimator(cls(1).fit(X, TARGET)), SVC()).fit(X, TWO)
        yield source, source[0].estimator
    elif name == "KBinsDiscretizer":
        for encode in ("ordinal", "onehot"):
            yield of_step(cls(4, encode=encode))
    elif name == "OneHotEncoder":
        yield of_map(cls(drop="if_binary"), SVC, TWO, CODES)
        yield of_map(cls(max_categories=3, handle_unknown="infrequent_if_exist"), SVC, TWO, CODES)
    elif name == "OrdinalEncoder":
        yield of_map(cls(handle_unknown="use_encoded_value", unknown_value=-1), SVC, TWO, CODES)
    elif name == "TargetEncoder":
        yield of_map(cls(random_state=0, cv=2), SVC, TWO, CODES)
    elif name == "SimpleImputer":
        yield of_map(cls(add_indicator=True), SVC, TWO, MISSING)
        yield of_map(cls(missing_values=-1.0), SVC, TWO, CODES)
    elif name == "MissingIndicator":
        yield of_map(cls(), SVC, TWO, MISSING)
    elif name == "QuantileTransformer":
        yield of_step(cls(n_quantiles=9))
        yield of_step(cls(n_quantiles=9, output_distribution="normal"))
    elif name == "AdditiveChi2Sampler":
        yield of_map(cls(), SVC, TWO, POSITIVE)
        yield of_map(cls(sample_interval=0.3), SVC, TWO, POSITIVE)
    elif name == "PolynomialFeatures":
        yield of_step(cls())
    elif name == "SplineTransformer":
        yield of_step(cls())
        yield of_step(cls(extrapolation="continue", include_bias=False))
        yield of_step(cls(4, extrapolation="periodic"))
    elif name in ("Binarizer", "Normalizer", "PowerTransformer"):
        yield of_step(cls())
        source = transformed(FeatureUnion([("a", cls()), ("b", StandardScaler())]))
        yield source, source[0].transformer_list[0][1]
    else:
        yield of_step(cls())
        yield of_target(cls())
        source = transformed(FeatureUnion([("a", cls()), ("b", StandardScaler())]))
        yield source, source[0].transformer_list[0][1]
        if name == "MinMaxScaler":
            yield of_step(cls(clip=True))


def examples_of_selectors(name, cls):
    options = {
        "RFE": [LinearSVC()],
        "RFECV": [LinearSVC()],
        "SelectFromModel": [LinearSVC()],
        "SequentialFeatureSelector": [LinearSVC()],
        "SelectKBest": {"k": 2},
    }.get(name, {})
    if name == "SelectorMixin":
        cls = FirstColumns
    step = cls(**options) if isinstance(options, dict) else cls(*options)
    if name in ("RFE", "RFECV"):  # which predict by their estimator, too
        yield of_machine(cls(LinearSVC()), TWO)
    yield of_step(step)
    source = transformed(ColumnTransformer([("a", step, [3, 2, 0, 1])]))
    yield source, source[0].transformers_[0][1]


def shares():
    return CalibratedClassifierCV(SVC(), ensemble=False, cv=2)


COMMITTEES = {
    "SelfTrainingClassifier": lambda cls: [(cls(shares()), np.where(np.arange(len(X)) % 3, THREE, -1))],
    "MultiOutputRegressor": lambda cls: [
        (cls(SVR()), np.column_stack([TARGET, TARGET**2])),
        (cls(SVR()), TARGET[:, np.newaxis]),
    ],
    "VotingClassifier": lambda cls: [
        (cls([("a", shares()), ("b", LogisticRegression())], voting="soft"), TWO),
        (cls([("a", shares()), ("b", SVC(probability=True, random_state=0))], voting="soft", weights=[2, 1]), THREE),
        (cls([("a", SVC()), ("b", LinearSVC()), ("c", SVC(C=0.1))], weights=[2, 1, 1.5]), THREE),
    ],
    "BaggingClassifier": lambda cls: [
        (cls(shares(), 2, random_state=0), TWO),
        (cls(shares(), 3, max_features=3, random_state=0), THREE),
        (cls(SVC(), 3, max_features=3, random_state=0), THREE),
    ],
    "BalancedBaggingClassifier": lambda cls: [(cls(SVC(), n_estimators=3, random_state=0), THREE)],
    "RUSBoostClassifier": lambda cls: [(cls(SVC(C=0.1), n_estimators=3, random_state=0), THREE)],
    "VotingRegressor": lambda cls: [
        (cls([("a", SVR(gamma=0.3)), ("b", KernelRidge(kernel="rbf", gamma=0.3))], weights=[1, 3]), TARGET),
        (cls([("a", Ridge()), ("b", SVR())], weights=[1, 3]), TARGET),
    ],
    "BaggingRegressor": lambda cls: [
        (cls(SVR(gamma=0.3), 3, random_state=0), TARGET),
        (cls(LinearSVR(), 3, random_state=0), TARGET),
    ],
    "AdaBoostClassifier": lambda cls: [
        (cls(SVC(C=0.1), n_estimators=3, random_state=0), THREE),
        (cls(LogisticRegression(C=0.1), n_estimators=4), TWO),
    ],
    "StackingRegressor": lambda cls: [
        (cls([("a", SVR(gamma=0.3)), ("b", KernelRidge(kernel="rbf", gamma=0.3))], cv=2), TARGET),
        (cls([("a", SVR(gamma=0.3)), ("b", Ridge())], final_estimator=LinearSVR(), cv=2), TARGET),
        (cls([("a", SVR(gamma=0.3))], final_estimator=Ridge(), cv=2, passthrough=True), TARGET),
    ],
    "OneVsRestClassifier": lambda cls: [
        (cls(SVC(gamma=0.3)), THREE),
        (cls(shares()), THREE),
        (cls(LogisticRegression()), TWO),
        (cls(SVC()), LABELS),
    ],
    "MultiOutputClassifier": lambda cls: [(cls(SVC()), LABELS), (cls(shares()), np.column_stack([TWO, TWO[::-1]]))],
    "OutputCodeClassifier": lambda cls: [
        (cls(SVC(gamma=0.3), code_size=2, random_state=0), THREE),
        (cls(LinearSVC(), code_size=2, random_state=0), THREE),
    ],
    "StackingClassifier": lambda cls: [
        (cls([("a", SVC(gamma=0.3)), ("b", SVC(gamma=0.3, C=3.0))], cv=2), TWO),
        (cls([("a", SVC(gamma=0.3)), ("b", shares()), ("c", LinearSVC())], LinearSVC(), cv=2), TWO),
        (cls([("a", SVC(gamma=0.3)), ("b", shares())], cv=2, passthrough=True), THREE),
    ],
    "FixedThresholdClassifier": lambda cls: [
        (cls(SVC(), threshold=0.2, pos_label="no"), TWO),
        (cls(shares(), threshold=0.4, pos_label="no"), TWO),
    ],
    "TunedThresholdClassifierCV": lambda cls: [(cls(SVC(), cv=2), TWO), (cls(shares(), cv=2), TWO)],
    "OneVsOneClassifier": lambda cls: [(cls(SVC(gamma=0.3)), THREE), (cls(LinearSVC()), THREE)],
}


def examples_of_wrappers(name, cls):
    if name == "CalibratedClassifierCV":
        for method, y, options in (
            ("sigmoid", TWO, {"ensemble": False}),
            ("isotonic", THREE, {"ensemble": True}),
            ("temperature", THREE, {"ensemble": False}),
        ):
            source = calibrated(method, y, **options)
            yield source, source
    elif name == "TransformedTargetRegressor":
        yield of_search_of_target(cls)
    elif name == "_ConstantPredictor":
        source = OneVsRestClassifier(LogisticRegression()).fit(X, LABELS * [0, 1])
        yield source, source.estimators_[0]
    elif name in COMMITTEES:
        yield from (of_machine(source, y) for source, y in COMMITTEES[name](cls))
    else:
        yield of_machine(cls(make_pipeline(StandardScaler(), SVC()).fit(X, TWO)), TWO)


def of_search_of_target(cls):
    source = cls(SVR(), transformer=StandardScaler()).fit(X, TARGET)
    return source, source


def examples_of_calibrators(name, cls):
    method = {"IsotonicRegression": "isotonic", "_TemperatureScaling": "temperature"}.get(name, "sigmoid")
    for y in (TWO, THREE):
        source = calibrated(method, y, ensemble=False)
        inner = source.calibrated_classifiers_[0]
        yield source, (inner if name == "_CalibratedClassifier" else inner.calibrators[0])


def examples_of_encoders(name, cls):
    if name == "LabelBinarizer":
        for y in (THREE, TWO, LABELS):
            source = OneVsRestClassifier(SVC()).fit(X, y)
            yield source, source.label_binarizer_
        source = RidgeClassifier().fit(X, THREE)
        yield source, source._label_binarizer
    else:
        source = VotingClassifier([("a", SVC()), ("b", LinearSVC())]).fit(X, THREE)
        yield source, source.le_
        source = StackingClassifier([("a", SVC()), ("b", LinearSVC())], cv=2).fit(X, TWO)
        yield source, source._label_encoder


def examples_of_linear_models(name, cls, y):
    if name == "SGDClassifier":
        for loss in ("log_loss", "modified_huber"):
            yield of_last(Nystroem(n_components=8, random_state=0), cls(loss=loss, random_state=0), y=y)
    else:
        linear = cls(Cs=2, cv=2) if name == "LogisticRegressionCV" else cls()
        yield of_last(Nystroem(n_components=8, random_state=0), linear, y=y)
    if name in ("LinearSVC", "LinearSVR"):
        yield of_machine(cls(), y)


def examples_of_maps(name, cls):
    if name == "TaylorFeatures":
        yield of_map(cls(degree=2))
    elif name == "SkewedChi2Sampler":
        yield of_map(cls(n_components=8, random_state=0), LogisticRegression, TWO, POSITIVE)
    else:
        yield of_map(cls(n_components=8, random_state=0))
        if name == "Nystroem":
            yield of_map(cls(n_components=8, random_state=0, kernel_params={"gamma": 0.2}), LogisticRegression, TWO)


def examples_of_pipelines(name, cls):
    source = cls([("a", StandardScaler()), ("b", MinMaxScaler()), ("svc", SVC())]).fit(X, TWO)
    yield source, source
    source = Pipeline([("inner", cls([("a", StandardScaler()), ("b", MinMaxScaler())])), ("svc", SVC())]).fit(X, TWO)
    yield source, source[0]
    source = Pipeline([("a", StandardScaler()), ("inner", cls([("b", MinMaxScaler()), ("svc", SVC())]))]).fit(X, TWO)
    yield source, source[1]


def examples_of_searches(name, cls):
    values = {"C": [1.0, 2.0]}
    options = {"n_iter": 2, "random_state": 0} if name in ("BayesSearchCV", "RandomizedSearchCV") else {}
    yield of_search(cls(SVC(), values, cv=2, **options))


EXAMPLES = {
    "kernel machine": examples_of_machines,
    "kernel of Gaussian processes": examples_of_kernels,
    "linear classifier": lambda name, cls: chain(
        examples_of_linear_models(name, cls, TWO), examples_of_linear_models(name, cls, THREE)
    ),
    "linear regression": lambda name, cls: examples_of_linear_models(name, cls, TARGET),
    "linear one-class model": lambda name, cls: examples_of_linear_models(name, cls, None),
    "feature map": examples_of_maps,
    "pipeline": examples_of_pipelines,
    "step": examples_of_steps,
    "selector": examples_of_selectors,
    "wrapper": examples_of_wrappers,
    "search": examples_of_searches,
    "calibrator": examples_of_calibrators,
    "encoder of labels": examples_of_encoders,
}
# Not on PyPI for every machine; tests/readers/test_sources.py has stand-ins of both.
NOT_INSTALLABLE = ("cuml", "thundersvm")
# tests/predict/test_text_rows.py has vectorizers of texts, whose rows are none of these.
ELSEWHERE = ("unsupported feature map", "vectorizer")
READ = [k for k in KNOWN if k.role not in ELSEWHERE and k.library not in NOT_INSTALLABLE]


def class_of(known):
    pytest.importorskip(known.library, reason=f"{known.library} is not installed")
    return getattr(importlib.import_module(known.module), known.name)


@cache
def examples(known):
    """Fitted sources, and the object of the class in each."""
    return list(EXAMPLES[known.role](known.name, class_of(known)))


def of_each(records):
    return pytest.mark.parametrize("known", records, ids=lambda known: f"{known.library}-{known.name}")


METHODS = ("predict", "decision_function", "predict_proba", "score_samples")


def rows_for(source):
    rows = POSITIVE[::5] if needs_positive(source) else ROWS
    rows = of_kind(source) if of_kind(source) is not None else rows
    return csr_array(rows) if getattr(source, "_sparse", False) is True else rows


def of_kind(source):
    """Codes and missing values, for steps that take them."""
    first = source.steps[0][1] if isinstance(source, Pipeline) and source.steps else None
    if type(first).__name__ in ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder"):
        return CODES[::5]
    missing = getattr(first, "missing_values", None)
    return None if missing is None else MISSING[::5] if np.isnan(missing) else CODES[::5] - 1.0


def needs_positive(source):
    first = source.steps[0][1] if isinstance(source, Pipeline) and source.steps else None
    return type(first).__name__ in ("AdditiveChi2Sampler", "FunctionTransformer", "SkewedChi2Sampler")


def answers(source, rows):
    """By each method that answers at all."""
    found = {}
    for name in METHODS:
        with contextlib.suppress(Exception):  # whatever it does with an edited value, it answers nothing
            found[name] = np.asarray(getattr(source, name)(rows.copy()))
    if "predict" not in found and "score_samples" in found:  # a density
        return {"predict": found["score_samples"]}
    return found


def answers_of_model(model, rows):
    """By the oracle, rounded to float64."""
    found = oracle.answers(model, rows.toarray() if issparse(rows) else rows)
    if "predict" not in found:
        found["predict"] = found["score_samples"]
    numbers = {name: answer.mid.astype(float) for name, answer in found.items() if isinstance(answer, Ball)}
    return found | {name: one[:, 0] if one.shape[1] == 1 else one for name, one in numbers.items()}


def same(given, expected):
    """Whether numbers agree, and labels but for ties."""
    if given.shape != expected.shape and given.shape != expected.shape[:1] == (expected.size,):
        return False
    if given.size != expected.size:
        return False
    given = given.reshape(expected.shape)
    if given.dtype.kind in "fc" and expected.dtype.kind in "fc":
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=1e-300)
        return np.allclose(given, expected, rtol=0, atol=1e-8 * scale, equal_nan=True)
    return np.array_equal(given, expected)


def difference(ours, source):
    """What both answer and differ in."""
    shared = [name for name in METHODS if name in ours and name in source]
    assert "predict" in shared
    return [name for name in shared if not same(ours[name], source[name])]


@of_each(READ)
def test_examples_are_read_as_they_answer(known):
    for source, _ in examples(known):
        rows = rows_for(source)
        assert difference(answers_of_model(read_any(source), rows), answers(source, rows)) == []


def changes_of_array(value):
    yield value[::-1].copy()
    yield value[1:].copy()
    if value.ndim > 1:
        yield np.ascontiguousarray(value[:, ::-1])
        yield np.ascontiguousarray(value[:, 1:])
    if value.dtype.kind in "fiu":
        yield (value * 3) // 2 if value.dtype.kind in "iu" else value * 1.25
        yield -value
        yield np.zeros_like(value)
    if value.dtype.kind == "f" and value.size:
        hole = value.copy()
        hole.flat[0] = np.nan
        yield hole
    if value.dtype.kind in "fib" and len(value) > 1:
        yield np.roll(value, 1, axis=0)


def options_of(thing, name):
    """Other words that a parameter takes, as the class itself says."""
    constraints = getattr(type(thing), "_parameter_constraints", {}).get(name, [])
    return [word for c in constraints if hasattr(c, "options") for word in sorted(map(str, c.options))]


def changes(thing, name, value):
    """Other values for an attribute, of its own kind and of none."""
    if isinstance(value, (bool, np.bool_)):
        yield not value
    elif isinstance(value, (int, float, np.number)):
        yield from (value * 1.5, -value, value + 1, 0, type(value)(3), value - 1)
    elif isinstance(value, str):
        yield from (word for word in [*options_of(thing, name), "nonsense"] if word != value)
    elif isinstance(value, np.ndarray) and value.ndim:
        yield from changes_of_array(value)
    elif issparse(value):
        yield from (value * 1.25, value[::-1])
    elif isinstance(value, (list, tuple)):
        yield from (value[::-1], value[1:], value[:-1])
    elif isinstance(value, dict):
        yield {}
        yield from ({**value, key: other} for key in value for other in list(changes(thing, key, value[key]))[:2])
    elif value is None:
        yield from (0.5, 2, True, np.ones(3), np.log, *options_of(thing, name))
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__wrapped__")):  # np.float64, np.mean
        yield np.float32 if isinstance(value, type) else np.max
    elif known_types.recognise(value) is None and hasattr(value, "__dict__"):  # such as a binarizer of labels
        for inner, held in vars(value).items():
            for other in changes(value, inner, held):
                changed = copy.copy(value)
                vars(changed)[inner] = other
                yield changed
    elif name.startswith("k"):
        yield Matern()
    elif name == "estimator":
        yield from (LogisticRegression(), SVR(), "drop")
    yield None


ABSENT = object()


# n_jobs starts processes; within atol and rtol a density's tree stops, where ours is of the density itself.
UNTOUCHED = {"_sklearn_output_config", "_metadata_request", "n_jobs", "atol", "rtol"}
# By these of sparse rows scikit-learn's LIBSVM reads beyond its arrays, and crashes.
CRASHING = {"probability", "_effective_probability"}


def attributes(thing):
    parameters = thing.get_params(deep=False) if hasattr(thing, "get_params") else {}
    crashing = CRASHING if getattr(thing, "_sparse", False) is True else set()
    return sorted({*parameters, *vars(thing)} - UNTOUCHED - crashing)


def perturbed(known, thing):
    """Each attribute with another value, one at a time; then as it was."""
    state = {key: copied(held) for key, held in vars(thing).items()}
    parameters = thing.get_params(deep=False) if hasattr(thing, "get_params") else {}
    for name in attributes(thing):
        others = [*changes(thing, name, state[name]), ABSENT]
        is_tried = name in known.relies or name in parameters
        for other in others if is_tried else others[: 3 if known.role == "selector" else 2]:
            vars(thing).pop(name) if other is ABSENT else vars(thing).update({name: other})
            try:
                yield name, other
            finally:
                vars(thing).update({key: copied(held) for key, held in state.items()})
    yield from with_inner_parameters_set(thing)


def with_inner_parameters_set(thing):
    """Each parameter of what is inside, such as the template of members, with another value, as set_params sets it."""
    every = thing.get_params() if hasattr(thing, "get_params") else {}
    for name, value in every.items():
        holder, _, last = name.rpartition("__")
        holder = every[holder] if holder else thing
        if last in UNTOUCHED or (holder is thing and last in vars(thing)):
            continue
        for other in list(changes(holder, last, value))[:2]:
            put(holder, last, other)
            try:
                yield name, other
            finally:
                put(holder, last, value)


def put(holder, name, value):
    setattr(holder, name, value) if name in vars(holder) else holder.set_params(**{name: value})


def copied(held):
    return held.copy() if isinstance(held, dict) else held  # a Nystroem writes into its kernel_params


@cache
def found_by_perturbing(known):
    """How many changes of each attribute were refused or had which effect on the source; and those unnoticed by us."""
    found: dict[str, Counter[str]] = {}
    unnoticed = []
    for source, thing in examples(known):
        rows = rows_for(source)
        before = answers(source, rows)
        for name, other in perturbed(known, thing):
            counts = found.setdefault(name, Counter())
            try:
                model = read_any(source)
            except (ApproxSVMError, NotFittedError):
                counts["refused"] += 1
                continue
            if model.n_raw_features != rows.shape[1]:  # which its predict says
                counts["refused"] += 1
                continue
            after = answers(source, rows)
            if "predict" not in after:
                counts["no answer"] += 1
                continue
            counts["as before" if not difference(before, after) else "changed"] += 1
            differing = difference(answers_of_model(model, rows), after)
            if differing:
                unnoticed.append((name, "absent" if other is ABSENT else other, differing))
    return found, unnoticed


@of_each(READ)
def test_what_changes_the_answer_changes_ours_or_is_refused(known):
    found, unnoticed = found_by_perturbing(known)
    all_counts = sum(found.values(), Counter())
    print(f"{known.name}: {all_counts.total()} changes of {len(found)} attributes: {dict(all_counts)}")
    assert unnoticed == []


TEXTS = np.array(["the quick brown Fox", "über den lazy dog", "a lazy dog and the dog", "jumps over", "a café"] * 4)
TEXT_CHANGES = {"ngram_range": [(1, 2), (2, 2)], "stop_words": ["english", ["dog"]], "token_pattern": [r"\w+"]}


@of_each([known for known in KNOWN if known.role == "vectorizer"])
def test_vectorizers_whose_parameters_were_set_answer_as_the_source_or_are_refused(known):
    front = [CountVectorizer()] if known.name == "TfidfTransformer" else []
    source = make_pipeline(*front, class_of(known)(), SVC()).fit(TEXTS, np.arange(len(TEXTS)) % 3 > 0)
    step = source[-2]
    state, n_answered = dict(vars(step)), 0
    for name, value in step.get_params().items():
        for other in [*list(changes(step, name, value))[:3], *TEXT_CHANGES.get(name, ())]:
            if name == "n_features" and other == 0:
                continue  # scikit-learn crashes
            step.set_params(**{name: other})
            try:
                ours = approxsvm.compile(source, mode="exact").decision_function(TEXTS)
            except ApproxSVMError:
                continue
            finally:
                after = answers(source, TEXTS)
                vars(step).update(state)
            n_answered += 1
            np.testing.assert_allclose(ours, after["decision_function"], atol=1e-9, err_msg=f"{name}={other!r}")
    assert n_answered


@of_each([known for known in READ if known.role != "selector"])
def test_the_table_says_what_answers_depend_on(known):
    found, _ = found_by_perturbing(known)
    own = set().union(*(attributes(thing) for _, thing in examples(known)))
    matters = {name for name, counts in found.items() if counts["changed"]} & own
    assert matters <= set(known.relies)
    idle = {name for name in known.relies if name in found and set(found[name]) <= {"as before"}}
    assert not idle


# Methods of its own


def members_that_matter(cls):
    """Names of all that a class has, but for what may be anybody's own."""
    every = {name for base in cls.__mro__ for name in vars(base)} | set(known_types._ANSWERS)
    return sorted(every - {"__dict__", "__weakref__", "__class__"} - set(filter(harmless, every)))


def harmless(name):
    return known_types._HARMLESS.fullmatch(name) is not None


def own(*given, **named):
    raise AssertionError("was called")


def subclass_of(cls, **members):
    return type(cls)("Mine", (cls,), members)


@of_each(READ)
def test_no_object_with_a_method_of_its_own_is_read(known):
    """Wherever it stands; of a subclass, or set on the object."""
    for source, thing in examples(known):
        cls = type(thing)
        for name in members_that_matter(cls):
            if name not in known.own:
                thing.__class__ = subclass_of(cls, **{name: getattr_static(cls, name, own)})
                with pytest.raises(UnsupportedModelError, match=f"{re.escape(name)} of its own"):
                    read_any(source)
                thing.__class__ = cls
            if not name.startswith("__"):
                vars(thing)[name] = own
                with pytest.raises(UnsupportedModelError, match=f"{re.escape(name)} of its own, set on the object"):
                    read_any(source)
                del vars(thing)[name]


def helpers(thing):
    """Objects that an object holds as attributes or in lists, but for arrays, functions and templates of members."""
    others = (type, FunctionType, np.ndarray, np.ufunc, type(np.mean))
    for name, held in vars(thing).items():
        for inner in held if isinstance(held, (list, tuple)) else [held]:
            is_helper = hasattr(inner, "__dict__") and not issparse(inner) and not isinstance(inner, others)
            if is_helper and name not in ("estimator", "estimator_"):
                yield inner


def called(ask, rows):
    """Whether a method of its own is."""
    try:
        with contextlib.suppress(TypeError, ValueError, AttributeError, NotImplementedError):
            ask(rows.copy())
    except AssertionError:
        return True
    return False


@of_each(READ)
def test_no_helper_with_a_method_of_its_own_is_read(known):
    """A helper is what predict asks: encoders of labels, scalers, trees, splines. Most are in the table themselves."""
    for source, thing in examples(known):
        ask, rows = getattr(source, "predict", getattr(source, "score_samples", None)), rows_for(source)
        for inner in helpers(thing):
            cls = type(inner)
            for name in (name for name in members_that_matter(cls) if name == "__call__" or name[:2] != "__"):
                inner.__class__ = subclass_of(cls, **{name: own})
                if called(ask, rows):
                    with pytest.raises(ApproxSVMError):
                        read_any(source)
                inner.__class__ = cls


@of_each(READ)
def test_what_a_subclass_may_have_does_not_matter(known):
    """Its training, and other names: the source answers the same, and never calls what is harmless."""
    for source, thing in examples(known):
        cls, rows = type(thing), rows_for(source)
        before = answers(source, rows)
        names = {name for base in cls.__mro__[:-1] for name, value in vars(base).items() if callable(value)}
        called_by_checks = {"__sklearn_is_fitted__", "__init_subclass__", "__new__"}
        replaced = {name: own for name in names - called_by_checks if harmless(name)}
        thing.__class__ = subclass_of(cls, **replaced, note=1, plot=own, __doc__="Mine.")
        thing.remark = "mine"
        assert difference(answers(source, rows), before) == []
        assert difference(answers_of_model(read_any(source), rows), before) == []
        del thing.remark
        thing.__class__ = cls


@of_each(READ)
def test_no_class_with_a_replaced_method_is_read(known, monkeypatch):
    source, thing = examples(known)[0]
    for base in type(thing).__mro__[:-1]:
        if base.__module__.partition(".")[0] != known.library:
            continue
        functions = [name for name, value in vars(base).items() if callable(value) and not harmless(name)]
        for name in (*functions, "predict", "decision_function"):
            with monkeypatch.context() as context:
                context.setattr(base, name, own, raising=False)
                with pytest.raises(UnsupportedModelError, match=f"{name} has been replaced by code of"):
                    read_any(source)


def test_decorators_do_not_hide_whose_code_it_is(monkeypatch):
    source = SVC(probability=True).fit(X, TWO)
    wrapped = functools.wraps(SVC.predict)(lambda self, X: self.classes_[:1].repeat(len(X)))
    for value in (wrapped, property(own), staticmethod(own), available_if(lambda self: True)(own), np.sign):
        with monkeypatch.context() as context:
            context.setattr(SVC, "predict", value, raising=False)
            with pytest.raises(UnsupportedModelError, match="predict has been replaced by code of"):
                read_any(source)


def test_autologging_of_mlflow_is_no_method_of_somebodys_own(monkeypatch):
    """It replaces predict of every class by a function that calls the one which was there."""
    source, others = SVC().fit(X, TWO), {"__name__": "mlflow.utils", "predict": SVC.predict}
    patched = FunctionType((lambda self, X: predict(self, X)).__code__, others)  # noqa: F821
    monkeypatch.setattr(SVC, "predict", functools.wraps(SVC.predict)(patched))
    assert read_any(source).source == "sklearn SVC"


class Copied(SVC):
    """Of a module, so that it can be pickled."""


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing)), clone])
def test_a_subclass_whose_objects_were_copied_is_what_it_was(again):
    """Python leaves notes on a class whose objects it copies."""
    source = again(Copied().fit(X, TWO)).fit(X, TWO)
    assert read_any(source).source == "sklearn SVC"


class Meta(type(SVC)):
    """A metaclass of somebody's own."""


def same_attributes(self, name):
    return object.__getattribute__(self, name)


DISGUISES = [
    {"predict": own, "__module__": "sklearn.svm._classes"},
    {"predict": own, "__module__": "sklearnex.svm"},
    {"__getattribute__": same_attributes},
    {"__getattr__": same_attributes},
    {"__class__": property(lambda self: SVC)},
    {"__dict__": property(lambda self: {})},
    {"__call__": own},
    {"_impl": "nu_svc"},
    {"dual_coef_": property(own), "support_": property(own)},
]


@pytest.mark.parametrize("members", DISGUISES, ids=", ".join)
def test_disguises_are_seen_through(members):
    source = SVC().fit(X, TWO)
    for name in ("SVC", "Mine"):
        mine = object.__new__(type(SVC)(name, (SVC,), members))
        object.__getattribute__(mine, "__dict__").update(vars(source))
        with pytest.raises(UnsupportedModelError, match=r"of its own|cannot compile"):
            read_any(mine)


def test_metaclasses_and_mixins_are_seen_through():
    source = SVC().fit(X, TWO)
    mixin = type("Mixin", (), {"predict": own})
    behind = type("Behind", (ClassifierMixin,), {"_dense_predict": own})
    for cls, message in (
        (Meta("Mine", (SVC,), {}), "metaclass"),
        (type(SVC)("Mine", (mixin, SVC), {}), "Mixin has a predict of its own"),
        (type(SVC)("Mine", (SVC, behind), {}), "Behind has a _dense_predict of its own"),
    ):
        source.__class__ = cls
        with pytest.raises(UnsupportedModelError, match=message):
            read_any(source)


def test_a_class_that_its_library_derives_from_another_is_another():
    """Matern derives from RBF, MultiTaskLasso from Lasso: what they compute is not what these compute."""
    assert issubclass(Matern, RBF)
    assert known_types.recognise(Matern()) is None
    assert known_types.recognise(MultiTaskLasso()) is None
    known = known_types.recognise(FirstColumns())
    assert (known.name, known.role) == ("SelectorMixin", "selector")


def test_nothing_else_of_the_readers_looks_at_classes():
    """So that no reader takes an object which known_types has not seen: names of classes come from there alone."""
    folder = REPOSITORY / "approxsvm" / "readers" / "sklearn"
    forbidden = {"__mro__", "__class__", "__bases__", "__qualname__", "__name__", "__module__"}
    for path in sorted(folder.glob("*.py")):
        if path.name == "known_types.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.Attribute) and node.attr in forbidden), (path, node.lineno)
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            assert called not in ("type", "issubclass"), (path, node.lineno)
            if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "sklearn":
                assert node.module in ("sklearn", "sklearn.exceptions"), (path, node.lineno)


# What was compiled as something else, without a word


class OtherSelection(SelectKBest):
    def transform(self, X):
        return 2 * super().transform(X)


class OtherPipeline(Pipeline):
    def predict(self, X):
        return self.classes_[:1].repeat(len(X))


class OtherFunction(FunctionTransformer):
    def _transform(self, X, func=None, kw_args=None):
        return np.abs(X)


def trebled(kernel_class):
    def call(self, X, Y=None, eval_gradient=False):
        return 3.0 * kernel_class.__call__(self, X, Y)

    return subclass_of(kernel_class, __call__=call)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda: with_kernel(Matern(nu=0.5)), r"the kernel Matern.* cannot be compiled"),
        (lambda: with_kernel(trebled(RBF)() + WhiteKernel()), "__call__ of its own"),
        (lambda: with_kernel(WhiteKernel() + trebled(ConstantKernel)(2.0) * RBF()), "__call__ of its own"),
        (lambda: with_kernel(trebled(Sum)(RBF(), WhiteKernel())), "__call__ of its own"),
        (lambda: transformed(OtherSelection(k=2)), "OtherSelection has a transform of its own"),
        (
            lambda: transformed(ColumnTransformer([("a", OtherSelection(k=2), [0, 1, 2])])),
            "step 'a' of the pipeline: .*OtherSelection has a transform of its own",
        ),
        (lambda: transformed(OtherFunction()), "_transform of its own"),
        (
            lambda: make_pipeline(StandardScaler(), OtherPipeline([("svc", SVC())])).fit(X, TWO),
            "step 'otherpipeline' of the pipeline: .*predict of its own",
        ),
    ],
)
def test_what_is_not_its_base_class_is_refused_by_name(source, message):
    with pytest.raises(UnsupportedModelError, match=message):
        approxsvm.compile(source())


def calibrated_inside(method="sigmoid"):
    return CalibratedClassifierCV(SVC(), method=method, ensemble=False, cv=2)


@pytest.mark.parametrize(
    ("method", "y", "ensemble", "inside"),
    [
        ("sigmoid", TWO, True, calibrated_inside),
        ("sigmoid", THREE, False, calibrated_inside),
        ("isotonic", TWO, False, calibrated_inside),
        ("temperature", THREE, False, calibrated_inside),
        ("isotonic", TWO, False, lambda: make_pipeline(StandardScaler(), calibrated_inside())),
        ("sigmoid", TWO, True, lambda: GridSearchCV(calibrated_inside(), {"method": ["sigmoid"]}, cv=2)),
    ],
    ids=["sigmoid", "three sigmoids", "isotonic", "temperature", "pipeline", "search"],
)
def test_probabilities_that_are_calibrated_again_are_refused(method, y, ensemble, inside):
    """scikit-learn calibrates predict_proba of what has no decision_function."""
    fitted = CalibratedClassifierCV(inside(), method=method, ensemble=ensemble, cv=2).fit(X, y)
    frozen = CalibratedClassifierCV(FrozenEstimator(inside().fit(X, y)), method=method, cv=2).fit(X, y)
    for source in (fitted, frozen, make_pipeline(StandardScaler(), fitted).fit(X, y)):
        with pytest.raises(UnsupportedModelError, match="no decision_function because it is calibrated already"):
            approxsvm.compile(source)


@pytest.mark.parametrize("machine", [SVC(probability=True), LinearSVC(), SVC(decision_function_shape="ovo")])
def test_classes_in_another_order_are_refused(machine):
    y = TWO if isinstance(machine, LinearSVC) else THREE
    source = machine.fit(X, y)
    calibrated_source = CalibratedClassifierCV(machine, ensemble=False, cv=2).fit(X, y)
    inner = calibrated_source.calibrated_classifiers_[0].estimator
    for whole, changed in ((source, source), (calibrated_source, calibrated_source), (calibrated_source, inner)):
        ascending = changed.classes_
        changed.classes_ = ascending[::-1]
        with pytest.raises(ModelFormatError, match="which does not ascend"):
            approxsvm.compile(whole)
        changed.classes_ = ascending


def test_an_offset_that_predict_does_not_know_is_refused():
    source = OneClassSVM().fit(X)
    source.offset_ = source.offset_ + 1.0
    with pytest.raises(ModelFormatError, match=r"offset_ of this OneClassSVM is .*, but -intercept_"):
        approxsvm.compile(source)


@pytest.mark.parametrize("scaler", [StandardScaler, MinMaxScaler])
def test_rows_that_one_part_overwrites_for_another_are_refused(scaler):
    """scikit-learn hands the same array to all parts, of which one that does not copy changes it for the next."""
    inside, member = make_pipeline(scaler(copy=False), MinMaxScaler()), make_pipeline(scaler(copy=False), SVC())
    union = FeatureUnion([("a", "passthrough"), ("b", inside)])
    columns = ColumnTransformer([("a", scaler(copy=False), slice(0, 2)), ("b", MinMaxScaler(), slice(1, 4))])
    search = GridSearchCV(member, {}, cv=2)
    for source in (
        make_pipeline(union, SVC()),
        make_pipeline(columns, SVC()),
        CalibratedClassifierCV(member, cv=2),
        CalibratedClassifierCV(search, cv=2),
    ):
        with pytest.raises(UnsupportedModelError, match=r"overwrites \(copy=False\) what the other"):
            approxsvm.compile(source.fit(X.copy(), TWO))
    copied = ColumnTransformer([("a", scaler(copy=False), [0, 1]), ("b", MinMaxScaler(), [1, 2, 3])])
    for source in (member, CalibratedClassifierCV(member, ensemble=False, cv=2), make_pipeline(copied, SVC())):
        fast = approxsvm.compile(source.fit(X.copy(), TWO), mode="exact")
        np.testing.assert_array_equal(fast.predict(X), source.predict(X.copy()))


def test_a_logistic_regression_of_an_older_scikit_learn_answers_as_the_installed_one():
    """multi_class="multinomial" changed probabilities of two classes before 1.8, and is an idle attribute since."""
    source, final = of_last(Nystroem(n_components=8, random_state=0), LogisticRegression(), y=TWO)
    final.multi_class = "multinomial"
    fast = approxsvm.compile(source, mode="exact")
    np.testing.assert_allclose(fast.predict_proba(X), source.predict_proba(X), rtol=0, atol=1e-9)


def test_columns_of_arrays_and_of_frames_that_differ_are_refused():
    source = transformed(ColumnTransformer([("a", StandardScaler(), [2, 0]), ("b", "drop", slice(1, 2))]))
    source[0]._transformer_to_input_indices["a"] = [0, 2]
    with pytest.raises(ModelFormatError, match=r"step 'a' takes columns \[2, 0\] of arrays, \[0, 2\] of data frames"):
        approxsvm.compile(source)


# The documentation


@pytest.mark.slow
def test_the_page_of_sources_shows_the_tables():
    """python -m docs.sources writes them there."""
    assert sources.page() == sources.PAGE.read_text()


def test_every_kind_of_model_goes_through_every_export():
    """The table has no hole where files are written, and a reason in every other one."""
    text = sources.PAGE.read_text().partition("<!-- kinds: ")[2].partition("<!-- end of kinds -->")[0]
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in text.splitlines() if line[:1] == "|"]
    assert [row[0] for row in rows[2:]] == list(sources._models())
    for row in rows[2:]:
        assert row[-2:] == ["yes", "yes"]
        holes = [cell for cell in row[1:-2] if cell != "yes"]
        assert all(re.match("no: .*(compile it with mode=|needs a form)", hole) for hole in holes)
