"""Estimators that train another estimator and compile it: scikit-learn's tools around them, and their sources."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

import approxsvm
from approxsvm import CompiledClassifier, CompiledOutlierDetector, CompiledRegressor
from approxsvm.errors import UnsupportedModelError

X, Y = make_classification(240, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
WEIGHTS = np.random.default_rng(0).uniform(0.2, 3.0, len(X))
TARGET = X[:, 0] - X[:, 1] ** 2
_OF_LIBSVM = "LIBSVM's weights do not equal repeated rows; scikit-learn expects the same failure of its SVC, SVR, ..."


def expected_failures(estimator):
    checks = {f"check_sample_weight_equivalence_on_{kind}_data": _OF_LIBSVM for kind in ("dense", "sparse")}
    if isinstance(estimator, CompiledRegressor) and estimator.mode == "certified":
        checks["check_methods_subset_invariance"] = "values of both calls are within the tolerance, but not equal"
    return checks


@parametrize_with_checks(
    [CompiledClassifier(), CompiledRegressor(), CompiledRegressor(mode="exact"), CompiledOutlierDetector()],
    expected_failed_checks=expected_failures,
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


# Each tool wraps the plain estimator and, in another object, the compiling one.
AROUND = {
    "alone": lambda e: e,
    "pipeline": lambda e: make_pipeline(StandardScaler(), e),
    "search": lambda e: GridSearchCV(
        e, {"estimator__C" if isinstance(e, CompiledClassifier) else "C": [0.5, 20.0]}, cv=3
    ),
    "votes": lambda e: VotingClassifier([("a", e), ("b", clone(e).set_params())], weights=[1, 2]),
    "stack": lambda e: StackingClassifier([("a", e)], cv=3),
    "bag": lambda e: BaggingClassifier(e, 3, random_state=0),
    "rest": lambda e: OneVsRestClassifier(e),
    "calibrated": lambda e: CalibratedClassifierCV(e, cv=3),
    "searched pipeline of calibrations": lambda e: GridSearchCV(
        make_pipeline(StandardScaler(), CalibratedClassifierCV(e, cv=2)),
        {"calibratedclassifiercv__method": ["sigmoid"]},
        cv=2,
    ),
}


@pytest.mark.parametrize("name", AROUND)
def test_tools_around_it_predict_the_same_and_compile(name):
    """Labels equal the plain estimator's, and `compile` finds the trained estimators inside."""
    plain = AROUND[name](SVC()).fit(X, Y)
    fast = AROUND[name](CompiledClassifier(SVC())).fit(X, Y)
    assert (fast.predict(X) == plain.predict(X)).all()
    if hasattr(plain, "predict_proba"):
        assert np.allclose(fast.predict_proba(X), plain.predict_proba(X), rtol=0, atol=1e-9)
    before = pickle.dumps(fast)
    whole = approxsvm.compile(fast, X, effort="low")
    assert (whole.predict(X) == plain.predict(X)).all()
    assert pickle.dumps(fast) == before  # copied, not changed
    if not whole.artifact.members:
        assert approxsvm.verify(whole, fast, X).kept


@pytest.mark.parametrize("name", ["votes", "stack", "bag", "calibrated"])
def test_weights_of_rows_reach_the_estimator_inside(name):
    plain = AROUND[name](SVC()).fit(X, Y, sample_weight=WEIGHTS)
    fast = AROUND[name](CompiledClassifier(SVC())).fit(X, Y, sample_weight=WEIGHTS)
    assert (fast.predict(X) == plain.predict(X)).all()
    assert (fast.predict(X) != AROUND[name](SVC()).fit(X, Y).predict(X)).any()


def test_scores_of_a_search_and_of_folds_are_the_plain_estimators():
    grid = {"C": [0.1, 30.0], "gamma": [0.05, "scale"]}
    plain = GridSearchCV(SVC(), grid, cv=5).fit(X, Y)  # 20 models
    fast = GridSearchCV(CompiledClassifier(SVC()), {f"estimator__{k}": v for k, v in grid.items()}, cv=5).fit(X, Y)
    for name in ("mean_test_score", *(f"split{k}_test_score" for k in range(5))):
        assert (fast.cv_results_[name] == plain.cv_results_[name]).all()
    assert len(set(plain.cv_results_["mean_test_score"])) > 1
    scores = [cross_validate(e, X, Y, scoring="f1_macro")["test_score"] for e in (SVC(), CompiledClassifier(SVC()))]
    assert (scores[0] == scores[1]).all()
    values = [cross_val_predict(e, X, Y, method="decision_function") for e in (SVC(), CompiledClassifier(SVC()))]
    assert np.allclose(*values, rtol=0, atol=1e-9)


@pytest.mark.parametrize("inner", [SVR(), KernelRidge(kernel="rbf"), make_pipeline(StandardScaler(), SVR(C=10))])
def test_regressions_keep_the_tolerance(inner):
    fast = CompiledRegressor(inner, tolerance=1e-4).fit(X, TARGET)
    assert np.abs(fast.predict(X) - clone(inner).fit(X, TARGET).predict(X)).max() <= 1e-4
    votes = VotingRegressor([("a", CompiledRegressor(inner, tolerance=0.5)), ("b", SVR())]).fit(X, TARGET)
    exact = VotingRegressor([("a", inner), ("b", SVR())]).fit(X, TARGET).predict(X)
    assert np.abs(approxsvm.compile(votes, mode="exact").predict(X) - exact).max() < 1e-9  # from the trained estimators


def test_the_source_judges_a_compiling_regression():
    """`verify` compares with the trained estimator, because the compiled one's values are only within a tolerance."""
    search = GridSearchCV(CompiledRegressor(SVR(), tolerance=0.5, mode="certified"), {"estimator__C": [1.0]}).fit(
        X, TARGET
    )
    assert approxsvm.verify(approxsvm.compile(search, X, tolerance=1e-6), search, X).kept


def test_a_verification_prints_as_a_table():
    exact = SVC().fit(X, Y)
    found = approxsvm.verify(approxsvm.compile(exact, mode="exact"), exact, X)
    lines = str(found).splitlines()
    assert [line.split("  ")[0] for line in lines] == [name for name, _ in found.rows()]
    assert lines[0].split() == ["n", "rows", "240"]


def test_attributes_methods_and_copies():
    frame = pd.DataFrame(X, columns=list("abcde"))
    names = np.array(["x", "y", "z"])[Y]
    calibrated = CalibratedClassifierCV(SVC(), ensemble=False)
    fast = CompiledClassifier(calibrated, mode="exact").fit(frame, names)
    assert fast.n_features_in_ == 5
    assert fast.feature_names_in_.tolist() == list("abcde")
    assert fast.classes_.tolist() == ["x", "y", "z"]
    assert type(fast.estimator_) is CalibratedClassifierCV
    assert fast.compiled_.summary.mode == "exact"
    assert np.allclose(fast.predict_proba(frame), fast.estimator_.predict_proba(frame), rtol=0, atol=1e-9)
    same = pickle.loads(pickle.dumps(fast))
    assert (same.predict(frame) == fast.predict(frame)).all()
    assert not hasattr(clone(fast), "compiled_")
    assert clone(fast).get_params(deep=False)["mode"] == "exact"
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        for one in (
            CompiledClassifier(SVC()),
            CompiledClassifier(SVC()).fit(X, Y),
            CompiledClassifier(calibrated),
            fast,
        ):
            assert hasattr(one, method) == hasattr(one.estimator, method)
    fast.fit(X, Y)  # without names
    assert not hasattr(fast, "feature_names_in_")
    detector = CompiledOutlierDetector(OneClassSVM(nu=0.2)).fit(X)
    exact = OneClassSVM(nu=0.2).fit(X)
    assert (detector.predict(X) == exact.predict(X)).all()
    assert np.allclose(detector.score_samples(X), exact.score_samples(X), rtol=0, atol=1e-9)
    assert detector.offset_ == exact.offset_
    assert (is_classifier(fast), is_regressor(CompiledRegressor()), is_outlier_detector(detector)) == (True,) * 3


def test_output_of_tools_around_it_has_names():
    stack = StackingClassifier([("svm", CompiledClassifier())], cv=2).set_output(transform="pandas").fit(X, Y)
    assert stack.transform(X).columns.tolist() == stack.get_feature_names_out().tolist()
    assert all("svm" in name for name in stack.get_feature_names_out())


def test_documents():
    texts = ["good film", "bad film", "good plot", "bad plot"] * 4
    inner = make_pipeline(TfidfVectorizer(), SVC())
    fast = CompiledClassifier(inner).fit(texts, [1, 0] * 8)
    assert fast.predict(["good", "bad"]).tolist() == [1, 0]
    assert approxsvm.compile(fast).predict(["good", "bad"]).tolist() == [1, 0]


@pytest.mark.parametrize("wanted", [True, False])
def test_metadata_routing(wanted):
    """The inner estimator's request decides whether weights are passed; a search passes them through."""
    with sklearn.config_context(enable_metadata_routing=True):
        inner = SVC().set_fit_request(sample_weight=wanted)
        compiling = CompiledClassifier(inner).set_score_request(sample_weight=False)
        search = GridSearchCV(compiling, {"estimator__C": [1.0]}, cv=2)
        if wanted:
            search.fit(X, Y, sample_weight=WEIGHTS)
        else:
            with pytest.raises(TypeError, match="sample_weight"):
                search.fit(X, Y, sample_weight=WEIGHTS)
            search.fit(X, Y)
        plain = SVC().fit(X, Y, sample_weight=WEIGHTS if wanted else None)
        assert np.array_equal(search.best_estimator_.estimator_.dual_coef_, plain.dual_coef_)


def test_parameters_of_fit_reach_a_pipeline():
    fast = CompiledClassifier(make_pipeline(StandardScaler(), SVC())).fit(X, Y, svc__sample_weight=WEIGHTS)
    plain = make_pipeline(StandardScaler(), SVC()).fit(X, Y, svc__sample_weight=WEIGHTS)
    assert (fast.predict(X) == plain.predict(X)).all()


def test_what_cannot_be_done_says_so():
    with pytest.raises(NotFittedError, match="CompiledClassifier"):
        approxsvm.compile(CompiledClassifier())
    with pytest.raises(UnsupportedModelError, match="kernel"):
        CompiledClassifier(SVC(kernel=lambda a, b: a @ b.T)).fit(X, Y)
    with pytest.raises(approxsvm.InputError, match="mode is 'fast'"):
        CompiledClassifier(mode="fast").fit(X, Y)


@pytest.mark.parametrize(
    "around",
    [
        lambda e: e,
        lambda e: FrozenEstimator(e),
        lambda e: VotingClassifier([("a", FrozenEstimator(e)), ("b", NuSVC(nu=0.2))], weights=[1, 2]).fit(
            X, Y, sample_weight=WEIGHTS
        ),
        lambda e: VotingClassifier([("a", e), ("b", SVC())]).fit(X, Y, sample_weight=WEIGHTS),
    ],
)
def test_compiled_models_are_not_compiled_again(around):
    """The `fit` method ignores weights, as in FrozenEstimator; `compile` of a wrapper asks for the source."""
    with pytest.raises(UnsupportedModelError, match=r"is already compiled.*around the source"):
        approxsvm.compile(around(approxsvm.compile(SVC().fit(X, Y), mode="exact")))
