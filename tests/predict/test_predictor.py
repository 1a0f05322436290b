"""The predictor that needs only NumPy: the estimators' answers, without their libraries."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from conftest import GOLDEN, random_model
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import ArtifactError, InputError

X, KINDS = load_iris(return_X_y=True)
TWO = KINDS > 0


@pytest.fixture(scope="module")
def predictor():
    return approxsvm.Predictor(approxsvm.compile(SVC().fit(X, TWO), X).artifact)


def test_stages_and_threads(predictor):
    predictor.predict(X)
    assert sum(predictor.rows_per_stage.values()) == len(X)
    assert repr(predictor).startswith(
        f"<Predictor of sklearn SVC: classification, 4 features, {predictor.artifact.mode}, "
    )
    assert "<td " in predictor._repr_html_()
    assert "&lt;Predictor of sklearn SVC" in predictor._repr_html_()
    threads = approxsvm.Predictor(predictor.artifact.data, n_jobs=2)
    np.testing.assert_array_equal(threads.predict(X), predictor.predict(X))


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
def test_wrong_rows_are_refused(predictor, rows, message):
    with pytest.raises(InputError, match=message):
        predictor.predict(rows)


def test_what_a_model_does_not_have_is_refused():
    plain = approxsvm.Predictor(approxsvm.compile(random_model(0)).artifact)
    with pytest.raises(InputError, match="there are no probabilities"):
        plain.predict_proba(np.zeros((1, 7)))
    source = CalibratedClassifierCV(SVC(), cv=3).fit(X, KINDS)
    ensemble = approxsvm.Predictor(approxsvm.compile(source, X).artifact)
    with pytest.raises(InputError, match="labels are those of the largest probability, without a decision function"):
        ensemble.decision_function(X)


def test_predictors_can_be_pickled():
    """As when it is sent to other processes; the copy has the artifact and the threads."""
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
