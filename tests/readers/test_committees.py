"""Estimators around several: means of probabilities, sums of kernels that become one, pairs of classes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

import approxsvm
from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.readers import read_any

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(160, 4)), 1.2 * RNG.normal(size=(600, 4))
THREE = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1] ** 2, [0.3, 1.2])]
TWO = THREE != "a"
TARGET = np.sin(X[:, 0]) + X[:, 1]


def shares():
    return CalibratedClassifierCV(SVC(gamma=0.3), ensemble=False, cv=2)


CLASSIFIERS = {
    "soft": (VotingClassifier([("a", shares()), ("b", SVC(probability=True, random_state=0))], voting="soft"), THREE),
    "soft, two": (
        VotingClassifier(
            [("a", shares()), ("b", LogisticRegression()), ("c", make_pipeline(StandardScaler(), shares()))],
            voting="soft",
            weights=[2, 2, 2],
        ),
        TWO,
    ),
    "bag": (BaggingClassifier(shares(), 3, max_features=3, random_state=0), THREE),
    "bag of linear ones": (BaggingClassifier(LogisticRegression(), 4, random_state=0), TWO),
    "self-training": (SelfTrainingClassifier(shares()), np.where(RNG.random(160) < 0.7, TWO, -1).astype(int)),
    "pairs": (OneVsOneClassifier(SVC(gamma=0.3)), THREE),
    "linear pairs": (make_pipeline(StandardScaler(), OneVsOneClassifier(LinearSVC())), THREE),
    "polynomial pairs": (OneVsOneClassifier(SVC(kernel="poly", degree=2, gamma=0.3, coef0=1.0)), THREE),
    "sigmoid pairs": (OneVsOneClassifier(SVC(kernel="sigmoid", gamma=0.1, coef0=-0.5)), THREE),
}
REGRESSIONS = {
    "bag": BaggingRegressor(SVR(gamma=0.3), 8, random_state=0),
    "linear bag": BaggingRegressor(LinearSVR(random_state=0, max_iter=100_000), 4, random_state=0),
    "vote": VotingRegressor(
        [("a", SVR(gamma=0.3)), ("b", KernelRidge(kernel="rbf", gamma=0.3)), ("c", SVR())], weights=[1, 3, 0]
    ),
    "sigmoid bag": BaggingRegressor(SVR(kernel="sigmoid", gamma=0.1, coef0=-0.5), 4, random_state=0),
    "linear vote": VotingRegressor(
        [("a", Ridge()), ("b", LinearSVR(random_state=0, max_iter=100_000)), ("c", SVR(kernel="linear"))]
    ),
    "targets": MultiOutputRegressor(SVR()),
}
pytestmark = pytest.mark.filterwarnings("ignore:The `probability` parameter", "ignore:Attribute `prob")


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name):
    source, y = CLASSIFIERS[name]
    source.fit(X, y)
    fast = approxsvm.compile(source, X)
    assert (fast.predict(Z) == source.predict(Z)).all()
    assert fast.classes_.tolist() == source.classes_.tolist()
    if hasattr(source, "predict_proba"):
        assert np.abs(fast.predict_proba(Z) - source.predict_proba(Z)).max() < 1e-8
    if "pairs" in name:
        assert np.abs(fast.decision_function(Z) - source.decision_function(Z)).max() < 1e-9


@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions(name):
    source = REGRESSIONS[name].fit(X, np.column_stack([TARGET, TARGET**2]) if name == "targets" else TARGET)
    found = approxsvm.compile(source, X, mode="exact").predict(Z)
    assert found.shape == source.predict(Z).shape
    assert np.abs(found - source.predict(Z)).max() < 1e-9


def test_members_share_their_vectors():
    bag = BaggingRegressor(SVR(gamma=0.3), 8, random_state=0).fit(X, TARGET)
    assert read_any(bag).n_sv <= len(X) < sum(len(member.support_) for member in bag.estimators_)
    pairs = OneVsOneClassifier(SVC(gamma=0.3)).fit(X, THREE)
    assert read_any(pairs).n_sv <= len(X) < sum(len(member.support_) for member in pairs.estimators_)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_rounding_of_the_mean_is_bounded(kernel):
    """Coefficients of every vector, in rational arithmetic; of Gaussians their errors are part of the value's."""
    members = [(str(k), SVR(kernel=kernel, gamma=0.3, C=10.0**k)) for k in range(-3, 4)]
    weights = [0.1, 0.7, 3.3, 1e-3, 0.2, 5.0, 0.9]
    vote = VotingRegressor(members, weights=weights).fit(X, TARGET)
    model, total = read_any(vote), sum(map(Fraction, weights))
    exact = {row.tobytes(): Fraction(0) for row in X}
    intercept = Fraction(0)
    for weight, member in zip(weights, vote.estimators_, strict=True):
        share = Fraction(weight) / total
        intercept += share * Fraction(float(member.intercept_[0]))
        for row, a in zip(member.support_vectors_, member.dual_coef_[0], strict=True):
            exact[row.tobytes()] += share * Fraction(float(a))
    for row, a in zip(model.support_vectors, model.dual_coef[0], strict=True):
        exact[row.tobytes()] -= Fraction(float(a))
    lost = sum(map(abs, exact.values()))
    off = abs(intercept - Fraction(float(model.intercept[0])))
    if kernel == "poly":
        assert off <= Fraction(float(model.value_error[0]))
        assert lost <= Fraction(model.coef_error) * Fraction(float(np.abs(model.dual_coef).sum()))
    else:
        assert 0 < lost + off <= Fraction(float(model.value_error[0]))


def test_sparse_members():
    bag = BaggingRegressor(SVR(gamma=0.3), 3, random_state=0).fit(csr_array(X), TARGET)
    found = approxsvm.compile(bag, mode="exact").predict(Z)
    assert np.abs(found - bag.predict(csr_array(Z))).max() < 1e-9


def test_behind_a_map_of_features():
    pipeline = make_pipeline(RBFSampler(gamma=0.2, random_state=0), MultiOutputRegressor(Ridge()))
    pipeline.fit(X, np.column_stack([TARGET, -TARGET]))
    assert np.abs(approxsvm.compile(pipeline, mode="exact").predict(Z) - pipeline.predict(Z)).max() < 1e-9


@pytest.mark.parametrize(
    ("source", "y", "what"),
    [
        (
            OneVsOneClassifier(make_pipeline(StandardScaler(), SVC(gamma=0.3))),
            THREE,
            "scale or choose columns in ways of their own",
        ),
        (OneVsOneClassifier(SVC()), THREE, "where one number for all makes them one model; compile each"),
        (
            FixedThresholdClassifier(OneVsRestClassifier(SVC(probability=True))),
            TWO,
            "by predict_proba of a one against the rest",
        ),
        (StackingRegressor([("a", SVR())], final_estimator=SVR(), cv=2), TARGET, "whose final_estimator_ is a SVR"),
        (OneVsOneClassifier(SVC(gamma=0.3)), TWO, r"has 2 classes; compile estimators_\[0\]"),
        (AdaBoostClassifier(CalibratedClassifierCV(SVC(), cv=2), n_estimators=2), TWO, "around a mean of 2"),
        (
            VotingRegressor([("a", make_pipeline(StandardScaler(copy=False), Ridge())), ("b", Ridge())]),
            TARGET,
            "overwrites",
        ),
    ],
)
def test_refusals(source, y, what):
    with pytest.raises(UnsupportedModelError, match=what):
        read_any(source.fit(X, y))


def test_contradictions():
    bag = BaggingRegressor(SVR(gamma=0.3), 3, random_state=0).fit(X, TARGET)
    bag.estimators_features_ = bag.estimators_features_[:2]
    with pytest.raises(ModelFormatError, match="2 entries for 3 estimators_"):
        read_any(bag)
    vote = VotingRegressor([("a", Ridge()), ("b", Ridge())]).fit(X, TARGET)
    for weights in ([-1, 1], [0, 0], [1, 2, 3], [1e308, 1e308]):
        vote.weights = weights
        with pytest.raises(ModelFormatError):
            read_any(vote)
    pairs = OneVsOneClassifier(SVC(gamma=0.3)).fit(X, THREE)
    pairs.estimators_ = pairs.estimators_[:2]
    with pytest.raises(ModelFormatError, match="2 estimators_ for 3 pairs"):
        read_any(pairs)
