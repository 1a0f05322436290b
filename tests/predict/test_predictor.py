"""The predictor that needs NumPy alone: the estimators' answers, without their libraries."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from conftest import GOLDEN, random_model
from scipy.sparse import csc_array, csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM

import approxsvm
from approxsvm.errors import ArtifactError, InputError

X, KINDS = load_iris(return_X_y=True)
TWO = KINDS > 0
NAMES = np.array(["setosa", "versicolor", "virginica"])[KINDS]


def sources():
    """A source of every kind that there is an artifact of, and rows for it."""
    return {
        "two classes": SVC().fit(X, TWO),
        "texts": SVC().fit(X, NAMES),
        "pairs": SVC(decision_function_shape="ovo").fit(X, KINDS),
        "break ties": SVC(break_ties=True).fit(X, KINDS),
        "pipeline": make_pipeline(StandardScaler(), PCA(3), SVC()).fit(X, NAMES),
        "regression": make_pipeline(MinMaxScaler(), SVR()).fit(X, X[:, 0]),
        "one class": OneClassSVM(nu=0.2).fit(X),
        "linear": LinearSVC().fit(X, TWO),
        "quadratic": SVC(kernel="poly", degree=2).fit(X, KINDS),
        "calibrated": CalibratedClassifierCV(SVC(), ensemble=False).fit(X, KINDS),
        "isotonic": CalibratedClassifierCV(SVC(), method="isotonic", ensemble=False).fit(X, TWO),
        "ensemble": CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), cv=3).fit(X, NAMES),
    }


@pytest.fixture(scope="module", params=sources())
def pair(request, tmp_path_factory):
    """A source, what it compiles to, and a predictor of its file."""
    source = sources()[request.param]
    fast = approxsvm.compile(source, X)
    path = tmp_path_factory.mktemp("saved") / "model.asvm"
    fast.save(path)
    return source, fast, approxsvm.Predictor(path)


def test_answers_are_the_estimators(pair):
    source, fast, predictor = pair
    rows = X + 0.1
    np.testing.assert_array_equal(predictor.predict(rows), fast.predict(rows))
    np.testing.assert_array_equal(predictor.error_bound(rows), fast.error_bound(rows))
    np.testing.assert_array_equal(predictor.certified(rows), fast.certified(rows))
    assert predictor.predict(rows).dtype == fast.predict(rows).dtype
    if hasattr(source, "classes_"):
        np.testing.assert_array_equal(predictor.predict(rows), source.predict(rows))
        np.testing.assert_array_equal(predictor.classes, source.classes_)
    for name in ("decision_function", "predict_proba"):
        if hasattr(fast, name):
            np.testing.assert_array_equal(getattr(predictor, name)(rows), getattr(fast, name)(rows))
    for row in rows[:3]:
        assert predictor.predict_one(row) == fast.predict_one(row) == fast.predict(row[np.newaxis])[0]
    assert sum(predictor.rows_per_stage.values()) > 0
    assert "features" in repr(predictor)


def test_rows_of_every_form(pair):
    _, fast, predictor = pair
    expected = predictor.predict(X)
    for same in (X.tolist(), csr_array(X), csc_array(X), np.asfortranarray(X), X.astype(object)):
        np.testing.assert_array_equal(predictor.predict(same), expected)
    threads = approxsvm.Predictor(fast.artifact, n_jobs=2)
    np.testing.assert_array_equal(threads.predict(X), expected)
    np.testing.assert_array_equal(approxsvm.Predictor(fast.artifact.data).predict(X), expected)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((2, 3)), r"X has shape \(2, 3\), expected \(n_rows, 4\)"),
        (np.zeros(4), r"X has shape \(4,\)"),
        ([["a"] * 4], "X is not an array of numbers"),
        (csr_array((2, 5)), r"X has shape \(2, 5\)"),
        ([[0.0, np.nan, 0.0, 0.0]], r"NaN.*row 0, column 1"),
        (X + 1j, "rows are complex128, but must be real numbers"),
        (csr_array(X + 1j), "rows are complex128"),
    ],
)
def test_wrong_rows_are_refused(pair, rows, message):
    with pytest.raises(InputError, match=message):
        pair[2].predict(rows)


def test_what_a_model_does_not_have_is_refused():
    plain = approxsvm.Predictor(approxsvm.compile(random_model(0)).artifact)
    with pytest.raises(InputError, match="there are no probabilities"):
        plain.predict_proba(np.zeros((1, 7)))
    ensemble = approxsvm.Predictor(approxsvm.compile(sources()["ensemble"], X).artifact)
    with pytest.raises(InputError, match="labels are those of the greatest probability, without a decision function"):
        ensemble.decision_function(X)


def test_columns_in_another_order_are_refused():
    frame = pd.DataFrame(X, columns=list("abcd"))
    predictor = approxsvm.Predictor(approxsvm.compile(SVC().fit(frame, TWO)).artifact)
    np.testing.assert_array_equal(predictor.predict(frame), predictor.predict(X))
    with pytest.raises(InputError, match=r"columns \['b', 'a', 'c', 'd'\], but the model was fitted with \['a'"):
        predictor.predict(frame[list("bacd")])


def test_predictors_can_be_pickled():
    """As those who send them to other processes do; the copy has the artifact and the threads."""
    predictor = approxsvm.Predictor(GOLDEN / "iris_classes.asvm", n_jobs=2)
    copy = pickle.loads(pickle.dumps(predictor))
    assert copy.artifact == predictor.artifact
    assert copy._evaluator.n_jobs == 2
    np.testing.assert_array_equal(copy.predict(X), predictor.predict(X))


def test_broken_files_are_named(tmp_path):
    path = tmp_path / "broken.asvm"
    path.write_bytes(b"RIFF and so on")
    with pytest.raises(ArtifactError, match=r"broken\.asvm: not an approxsvm artifact"):
        approxsvm.Predictor(path)
    with pytest.raises(ArtifactError, match=r"^not an approxsvm artifact"):
        approxsvm.Predictor(b"RIFF and so on")
    with pytest.raises(FileNotFoundError):
        approxsvm.Predictor(tmp_path / "absent.asvm")
