"""Linear and quadratic models and ensembles as estimators: bounds, near ties, and files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.svm import SVC, SVR, LinearSVC

import approxsvm
from approxsvm.artifact import writer
from approxsvm.errors import ArtifactError, InputError, UnsupportedModelError
from approxsvm.frontends import read_any
from approxsvm.ir.ensembles.ensemble import Ensemble


@pytest.fixture(scope="module")
def rows():
    return make_classification(150, 5, n_informative=4, n_redundant=0, random_state=1)


def sources(X, y):
    return {
        "linear": SVC(kernel="linear").fit(X, y),
        "several": SVC(kernel="poly", degree=2).fit(X, y + (X[:, 0] > 1)),
        "regression": SVR(kernel="linear", C=0.1).fit(X, X[:, 0]),
        "LinearSVC": LinearSVC().fit(X, np.array(["no", "yes"])[y]),
        "ensemble": CalibratedClassifierCV(SVC(kernel="linear"), cv=2).fit(X, y),
        "ensemble of RBF": CalibratedClassifierCV(SVC(), cv=2).fit(X, y),
    }


@pytest.mark.parametrize("kind", ["linear", "several", "regression", "LinearSVC", "ensemble", "ensemble of RBF"])
def test_values_beyond_float64_are_refused_by_row(rows, kind):
    """A value that overflows float64 is never NaN or infinity, but raises an error that names the row."""
    X, y = rows
    fast = approxsvm.compile(sources(X, y)[kind])
    beyond = np.tile(X[0], (40_000, 1))
    beyond[33_333] = [1.7e308, -1.7e308, 1.7e308, -1.7e308, 1.7e308]
    for method in ("predict", "decision_function", "predict_proba", "error_bound"):
        if not hasattr(fast, method):
            continue
        for given, row in ((beyond, 33_333), (csr_array(beyond), 33_333), (beyond[33_333:], 0)):
            with pytest.raises(InputError, match=f"value of row {row} of X, or a term of it, exceeds the range"):
                getattr(fast, method)(given)
    with pytest.raises(InputError, match="of row 0 of X"):
        fast.predict_one(beyond[33_333])


def test_verify_finds_another_model(rows):
    X, y = rows
    other = approxsvm.compile(SVC(gamma=0.2).fit(X, y + (X[:, 0] > 1)), mode="exact")
    assert not approxsvm.verify(other, SVC(gamma=0.1, C=0.1).fit(X, y + (X[:, 0] > 1)), X).kept


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


def test_members_that_do_not_match_are_refused(rows):
    X, y = rows
    sources = [CalibratedClassifierCV(LinearSVC(), ensemble=False).fit(X[:, :d], y) for d in (2, 3)]
    two = Ensemble((approxsvm.read_model(sources[0]),) * 2)
    with pytest.raises(ArtifactError, match="member 1: n_raw_features is 3, expected"):
        writer.build_ensemble([approxsvm.compile(source).artifact for source in sources], two)
    three = np.arange(len(X)) % 3  # classes in the same order with and without probabilities
    mean = Ensemble((approxsvm.read_model(CalibratedClassifierCV(LinearSVC(), ensemble=False).fit(X, three)),))
    with pytest.raises(ArtifactError, match="probability of section outputs is 0, expected 1 to 5"):
        writer.build_ensemble([approxsvm.compile(LinearSVC().fit(X, three)).artifact], mean)
