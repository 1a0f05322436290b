"""Meta-estimators: averages of probabilities, kernel sums merged into one, and one-vs-one models."""

from __future__ import annotations

import sys
from copy import copy
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends import read_any

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(160, 4)), 1.2 * RNG.normal(size=(600, 4))
THREE = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1] ** 2, [0.3, 1.2])]
TARGET = np.sin(X[:, 0]) + X[:, 1]


@pytest.mark.parametrize(
    ("name", "base", "made"),
    [
        ("skopt.searchcv.BayesSearchCV", GridSearchCV, (SVC(), {"C": [0.5, 2.0]})),
        ("imblearn.ensemble._bagging.BalancedBaggingClassifier", BaggingClassifier, (SVC(), 4)),
    ],
)
def test_classes_of_other_libraries_that_train_otherwise(name, base, made, monkeypatch):
    """Stand-ins replace optional packages; tests/frontends/test_known_types.py perturbs the real ones if installed."""
    module, _, name = name.rpartition(".")
    cls = type(name, (base,), {"__module__": module})
    cls._get_param_names = classmethod(lambda cls: base._get_param_names())
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{name: cls}))
    source = cls(*made).fit(X, THREE)
    assert np.array_equal(approxsvm.compile(source, X).predict(Z), source.predict(Z))
    cls.predict = lambda self, X: self.classes_[:1].repeat(len(X))
    with pytest.raises(UnsupportedModelError, match="predict has been replaced by code of"):
        read_any(source)


@pytest.mark.parametrize("method", ["isotonic", "temperature"])
def test_folds_that_cannot_be_averaged_are_refused(method):
    y = np.where(np.arange(160) < 4, "d", THREE)
    folds = PredefinedSplit(np.where(y == "d", 0, np.arange(160) % 2))
    source = CalibratedClassifierCV(SVC(), cv=folds, method=method).fit(X, y)
    with pytest.raises(UnsupportedModelError, match="knows 3 of the 4 classes; refit with folds that have all"):
        read_any(source)


def test_isotonic_calibrators_of_float32_rows_are_refused_with_a_remedy():
    """If fitted on float32 rows, isotonic calibrators round values and probabilities to float32."""
    rows = X.astype(np.float32)
    source = CalibratedClassifierCV(LogisticRegression(), method="isotonic", cv=2).fit(rows, THREE)
    with pytest.raises(UnsupportedModelError, match=r"computes in float32.* refit it with X.astype\(np.float64\)"):
        read_any(source)
    source.fit(X, THREE)
    assert np.array_equal(approxsvm.compile(source, X).predict(Z), source.predict(Z))


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_rounding_of_the_mean_is_bounded(kernel):
    """Coefficients are checked in rational arithmetic; for Gaussians, their errors are part of the value's error."""
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


def test_contradictions():
    bag = BaggingRegressor(SVR(gamma=0.3), 3, random_state=0).fit(X, TARGET)
    with pytest.raises(ModelFormatError, match=r"n_estimators of this BaggingRegressor is 4 .* set_params\(n_estimat"):
        read_any(copy(bag).set_params(n_estimators=4))
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
