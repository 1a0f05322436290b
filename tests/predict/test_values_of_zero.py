"""Rows whose value is exactly 0, as far ones of machines without an intercept have: the side that the source takes."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from c_header import NEEDS_GCC, build
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, VotingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, OneClassSVM

import approxsvm

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2)) @ [[2.0, 0.0], [0.0, 0.5]] + RNG.choice([-1.0, 1.0], (80, 1))
FOUR = RNG.permutation(np.arange(80) % 4)
TWO = FOUR > 1
SEVERAL = np.c_[FOUR % 2, FOUR // 2]
FAR = np.array([[1e3, 1e3], [-1e3, 50.0], [60.0, -400.0], [1e6, 0.0], [0.0, 0.0]])


def svc(**options):
    return SVC(gamma=0.5, **options)


def behind_map(classifier):
    return make_pipeline(Nystroem(gamma=0.5, n_components=30, random_state=0), classifier)


SOURCES = {
    "two classes": (svc(), TWO),
    "votes": (svc(), FOUR),
    "scores": (svc(break_ties=True), FOUR),
    "one class": (OneClassSVM(gamma=0.5), None),
    "pairs": (OneVsOneClassifier(svc()), FOUR),
    "linear pairs": (OneVsOneClassifier(RidgeClassifier()), FOUR),
    "against the rest": (OneVsRestClassifier(svc()), FOUR),
    "several labels": (OneVsRestClassifier(svc()), SEVERAL),
    "several labels of linear ones": (behind_map(OneVsRestClassifier(RidgeClassifier())), SEVERAL),
    "targets": (MultiOutputClassifier(svc()), SEVERAL),
    "targets of texts": (MultiOutputClassifier(svc()), np.where(SEVERAL == 1, "b", "a")),
    "targets of linear ones": (behind_map(MultiOutputClassifier(RidgeClassifier())), SEVERAL),
    "linear": (behind_map(LogisticRegression()), TWO),
    "votes of two": (VotingClassifier([("a", svc()), ("b", SVC(gamma=1.0))]), TWO),
    "bag": (BaggingClassifier(svc(), 3, bootstrap=False), TWO),
    "boosted": (AdaBoostClassifier(svc(), n_estimators=1), TWO),
    "threshold": (FixedThresholdClassifier(svc(), threshold=0.0, response_method="decision_function"), TWO),
    "threshold of the other class": (
        FixedThresholdClassifier(svc(), threshold=0.0, pos_label=False, response_method="decision_function"),
        TWO,
    ),
}


def without_intercepts(estimator):
    """The fitted estimator, changed in place."""
    if hasattr(estimator, "_intercept_"):
        estimator._intercept_ = np.zeros_like(estimator._intercept_)
    if hasattr(estimator, "intercept_"):
        estimator.intercept_ = np.zeros_like(estimator.intercept_)
    if hasattr(estimator, "offset_"):
        estimator.offset_ = 0.0 * estimator.offset_
    inner = [step for _, step in getattr(estimator, "steps", [])] + list(getattr(estimator, "estimators_", []))
    for one in [*inner, *(getattr(estimator, name) for name in ("estimator_",) if hasattr(estimator, name))]:
        without_intercepts(one)
    return estimator


@pytest.fixture(scope="module", params=SOURCES)
def models(request):
    source, y = SOURCES[request.param]
    source = without_intercepts(source.fit(X) if y is None else source.fit(X, y))
    return source, approxsvm.compile(source, X)


def test_labels(models):
    source, fast = models
    assert fast.predict(FAR).tolist() == source.predict(FAR).tolist()
    assert fast.predict(X).tolist() == source.predict(X).tolist()


def test_graphs(models):
    source, fast = models
    expected = source.predict(FAR)
    graph = fast.to_onnx(input_type="float64")
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    assert session.run(["label"], {"X": FAR})[0].reshape(expected.shape).tolist() == expected.tolist()


@NEEDS_GCC
@pytest.mark.parametrize(
    "models", ["two classes", "votes", "several labels", "linear", "threshold of the other class"], indirect=True
)
def test_headers(models, tmp_path):
    source, fast = models
    labels = fast.artifact.labels if fast.artifact.task == "classification" else np.array([1, -1])
    assert labels[build(fast, tmp_path).answers(FAR).predicted].tolist() == source.predict(FAR).tolist()
