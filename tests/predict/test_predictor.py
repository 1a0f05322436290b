"""The predictor, which needs only NumPy, gives the estimators' answers without their libraries."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from conftest import GOLDEN, random_model
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.svm import SVC, OneClassSVM

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
        ([["a"] * 4], "row 0: a number is needed in column 0, got 'a'"),
        (csr_array((2, 5)), r"X has shape \(2, 5\)"),
        ([[0.0, np.nan, 0.0, 0.0]], r"NaN.*row 0, column 1"),
        (X + 1j, r"row 0: a number is needed in column 0, got \(5\.1\+1j\)"),
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


def test_one_class_models_have_scores_and_libsvms_probabilities(tmp_path):
    svmutil = pytest.importorskip("libsvm.svmutil")
    model = svmutil.svm_train([1.0] * len(X), X.tolist(), "-s 2 -n 0.2 -b 1 -q")
    svmutil.svm_save_model(str(tmp_path / "inliers.model"), model)
    expected = np.array(svmutil.svm_predict([], X.tolist(), model, "-b 1 -q")[2])
    for tolerance in (None, 0.5):
        fast = approxsvm.compile(tmp_path / "inliers.model", X, tolerance=tolerance)
        predictor = approxsvm.Predictor(fast.artifact)
        for answering in (fast, predictor):
            found, bounds = answering.predict_proba(X), answering.probability_bound(X)
            assert (np.abs(found - expected) <= bounds + 1e-15).all()
            if tolerance is None:  # exact decision values
                np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(fast.predict_log_proba(X), np.log(fast.predict_proba(X)))
        np.testing.assert_array_equal(predictor.score_samples(X), predictor.decision_function(X) + fast.offset_)
    assert predictor.predict_one(X[0], outputs=["probability"])["probability"].tolist() == found[0].tolist()
    pytest.importorskip("pyarrow")
    table = predictor.predict_arrow(
        pd.DataFrame(X, columns=list("abcd")), outputs=["label", "probability"], columns=list("abcd")
    )
    assert table.column_names == ["label", "probability_1", "probability_-1"]


def test_scores_and_probabilities_that_a_model_lacks():
    inliers = approxsvm.compile(OneClassSVM().fit(X))
    assert not hasattr(inliers, "predict_proba")
    for predictor, message in (
        (approxsvm.Predictor(approxsvm.compile(SVC().fit(X, KINDS)).artifact), "only one-class models have scores"),
        (approxsvm.Predictor(approxsvm.compile(OneClassSVM(gamma=0).fit(X)).artifact), "with gamma=0 the artifact"),
    ):
        with pytest.raises(InputError, match=message):
            predictor.score_samples(X)
    with pytest.raises(InputError, match="the source has no probabilities; LIBSVM models of svm-train -s 2 -b 1"):
        approxsvm.Predictor(inliers.artifact).predict_proba(X)


def test_predictors_can_be_pickled():
    """A predictor is pickled when sent to another process; the copy has the same artifact and number of threads."""
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
