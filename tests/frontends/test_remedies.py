"""Messages for estimators that cannot be compiled: the suggested remedy works."""

from __future__ import annotations

import inspect
import re
from functools import cache, partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import (
    compose,
    covariance,
    ensemble,
    feature_selection,
    gaussian_process,
    linear_model,
    model_selection,
    multiclass,
    multioutput,
    neighbors,
    preprocessing,
)
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR
from sklearn.utils import all_estimators

import approxsvm
from approxsvm.errors import UnsupportedModelError
from approxsvm.frontends.sklearn import remedies
from approxsvm.frontends.sklearn.known_types import KNOWN

X, Y = make_classification(90, 5, n_redundant=0, random_state=0)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
TARGET = X[:, 0] + np.sin(X[:, 1])
BOTH = np.column_stack([Y, THREE])
svc, svr = SVC(C=10.0), SVR()
averaged = CalibratedClassifierCV(svc, cv=2)  # is itself an average
voting = ensemble.VotingClassifier([("a", svc), ("b", SVC(gamma=3.0))])
of_pairs = multiclass.OneVsRestClassifier(SVC(probability=True))  # its probabilities cannot be compiled

# One estimator of each class with advice, and its target.
REFUSED: dict[str, tuple[Any, Any]] = {
    "AdaBoostClassifier": (ensemble.AdaBoostClassifier(averaged, n_estimators=3, random_state=0), Y),
    "AdaBoostRegressor": (ensemble.AdaBoostRegressor(svr, n_estimators=3, random_state=0), TARGET),
    "BaggingClassifier": (ensemble.BaggingClassifier(voting, 3, random_state=0), Y),
    "BaggingRegressor": (ensemble.BaggingRegressor(KernelRidge(kernel="rbf"), 3, random_state=0), X[:, :2]),
    "ClassifierChain": (multioutput.ClassifierChain(svc), BOTH),
    "EllipticEnvelope": (covariance.EllipticEnvelope(random_state=0), None),
    "FixedThresholdClassifier": (model_selection.FixedThresholdClassifier(of_pairs, threshold=0.3), Y),
    "GaussianProcessClassifier": (gaussian_process.GaussianProcessClassifier(optimizer=None), THREE),
    "IsolationForest": (ensemble.IsolationForest(n_estimators=3, random_state=0), None),
    "LocalOutlierFactor": (neighbors.LocalOutlierFactor(novelty=True), None),
    "MultiOutputClassifier": (multioutput.MultiOutputClassifier(averaged), BOTH),
    "OneVsOneClassifier": (multiclass.OneVsOneClassifier(averaged), THREE),
    "OneVsRestClassifier": (multiclass.OneVsRestClassifier(svc), csr_array(np.eye(3, dtype=int)[THREE])),
    "OutputCodeClassifier": (multiclass.OutputCodeClassifier(averaged, code_size=1.5, random_state=6), THREE),
    "RANSACRegressor": (linear_model.RANSACRegressor(svr, min_samples=9, random_state=0), TARGET),
    "RegressorChain": (multioutput.RegressorChain(svr), BOTH),
    "SelectFromModel": (feature_selection.SelectFromModel(SVC(kernel="linear")), Y),
    "SequentialFeatureSelector": (feature_selection.SequentialFeatureSelector(svc, cv=2), Y),
    "StackingClassifier": (ensemble.StackingClassifier([("a", svc)], final_estimator=svc, cv=2), THREE),
    "StackingRegressor": (ensemble.StackingRegressor([("a", svr)], final_estimator=svr, cv=2), TARGET),
    "TunedThresholdClassifierCV": (model_selection.TunedThresholdClassifierCV(of_pairs, cv=2), Y),
    "VotingClassifier": (ensemble.VotingClassifier([("a", svc), ("b", averaged)]), Y),
}


@cache
def fitted(name: str) -> Any:
    estimator, y = REFUSED[name]
    return estimator.fit(X, y)


def refusal_of(estimator: Any) -> str:
    with pytest.raises(UnsupportedModelError) as refused:
        approxsvm.compile(estimator)
    return str(refused.value)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", sorted(remedies.REMEDIES))
def test_the_advice_names_what_the_estimator_has_and_parts_that_compile(name: str) -> None:
    estimator, advice = fitted(name), remedies.REMEDIES[name]
    text = refusal_of(estimator)
    assert text.startswith(f"cannot compile a {type(estimator).__module__}.{name}")
    assert text.endswith(f"; {advice}")
    assert len(text) < 320
    for attribute in re.findall(r"\b\w+_\b", advice):
        assert hasattr(estimator, attribute), attribute
    whole = "estimator_," in advice or "estimator_ " in advice
    parts = estimator.estimators_ if "each of estimators_" in advice else [estimator.estimator_] if whole else []
    for part in parts if name != "IsolationForest" else []:
        rows = np.random.default_rng(0).normal(size=(40, part.n_features_in_))
        compiled = approxsvm.compile(part, mode="exact")
        found, expected = compiled.predict(rows), part.predict(rows)
        assert np.allclose(found, expected) if expected.dtype.kind == "f" else (found == expected).all()


def test_advice_followed_gives_the_labels() -> None:
    """The labels of one-vs-rest and of a vote are reproduced from their parts, as the advice says."""
    source = fitted("OneVsRestClassifier")
    values = np.array([approxsvm.compile(part, X).decision_function(X) for part in source.estimators_])
    np.testing.assert_array_equal((values > 0.0).T.astype(int), source.predict(X).toarray())
    source = fitted("VotingClassifier")
    votes = np.array([approxsvm.compile(part, X).predict(X) for part in source.estimators_])
    winners = [np.bincount(column, minlength=len(source.classes_)).argmax() for column in votes.T]
    np.testing.assert_array_equal(source.classes_[winners], source.predict(X))


def test_every_estimator_around_others_is_read_or_has_its_advice() -> None:
    read = {known.name for known in KNOWN}
    around = {
        name
        for name, kind in all_estimators()
        if {"estimator", "estimators", "base_estimator", "regressor", "steps"} & {*inspect.signature(kind).parameters}
    }
    assert around - read <= set(remedies.REMEDIES)
    assert set(remedies.REMEDIES) == set(REFUSED)


class Found(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A third-party search."""

    best_estimator_ = svc

    def predict(self, X: Any) -> Any:
        return X


def test_strangers_get_a_short_sentence() -> None:
    class Mine(multiclass.OutputCodeClassifier):  # type: ignore[misc]
        pass

    assert refusal_of(Found()).endswith("Found; compile best_estimator_")
    assert refusal_of(Mine(averaged).fit(X, THREE)).endswith("; " + remedies.REMEDIES["OutputCodeClassifier"])
    assert refusal_of(KNeighborsClassifier().fit(X, Y)).endswith(
        ": it is no model that can be compiled; `approxsvm sources` lists them"
    )
    for thing, name in ((7, "builtins.int"), (None, "builtins.NoneType")):
        assert refusal_of(thing).startswith(f"cannot compile a {name}: it is no model that can be compiled")
    for transformer in (preprocessing.StandardScaler().fit(X), compose.ColumnTransformer([("a", "drop", [0])]).fit(X)):
        assert refusal_of(transformer).endswith("; it does not predict: compile a pipeline of it and an estimator")


SCALED = preprocessing.StandardScaler().fit(X)
FITTED = SVC().fit(SCALED.transform(X), Y)
HOLDERS: dict[str, tuple[Any, str]] = {
    "tuple": ((FITTED, 3), "cannot compile a tuple, which holds SVC at [0]"),
    "dict": (
        {"model": FITTED, "scaler": SCALED},
        "cannot compile a dict, which holds SVC at ['model'], StandardScaler at ['scaler']",
    ),
    "nested": ([{"a": (FITTED,)}], "cannot compile a list, which holds SVC at [0]['a'][0]"),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_holds_estimators_names_the_line_that_takes_them(name: str, tmp_path: Path) -> None:
    held, message = HOLDERS[name]
    path = tmp_path / "model.pkl"
    joblib.dump(held, path)
    with pytest.raises(UnsupportedModelError) as from_file:
        approxsvm.read_any(path, trust=True)
    for text, names in (
        (refusal_of(held), {"model": held}),
        (str(from_file.value), {"joblib": joblib}),
    ):
        said, line = text.split(": compile ")
        assert said == message
        compiled = approxsvm.compile(eval(line, {"make_pipeline": make_pipeline, **names}), mode="exact")
        rows = X if "scaler" in line else SCALED.transform(X)
        np.testing.assert_array_equal(compiled.predict(rows), FITTED.predict(SCALED.transform(X)))


def test_messages_of_what_is_no_fitted_estimator() -> None:
    assert refusal_of(SVC) == "SVC is a class, not a fitted estimator: give SVC(...).fit(X, y)"
    assert refusal_of([1, {"a": "b"}]) == "cannot compile a list, which holds no estimator"
    pipeline = make_pipeline(preprocessing.StandardScaler(), ensemble.IsolationForest(n_estimators=3, random_state=0))
    assert refusal_of(pipeline.fit(X)) == (
        "step 'isolationforest' of the pipeline: cannot compile a sklearn.ensemble._iforest.IsolationForest; "
        + remedies.REMEDIES["IsolationForest"]
    )
    search = model_selection.GridSearchCV(svc, {"C": [1.0, 2.0]}, cv=2, refit=False).fit(X, Y)
    assert refusal_of(search).startswith(
        "this GridSearchCV has no best_estimator_: it was fitted with refit=False; fit"
    )


class OfAnotherProgram:
    """A wrapper like those in PyOD (detector_), Orange (skl_model) and mne (estimators_)."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)

    def predict(self, X: Any) -> Any:
        raise NotImplementedError


_TRAINED = make_pipeline(preprocessing.StandardScaler(), SVC()).fit(*make_classification(random_state=0))


@pytest.mark.parametrize(
    ("held", "line"),
    [
        ({"detector_": _TRAINED[-1]}, "detector_"),
        ({"base": SVC(), "skl_model": _TRAINED}, "skl_model"),  # the first is not trained
        ({"estimators_": [_TRAINED[0], _TRAINED]}, "estimators_[1]"),
        ({"parts": {"svm": _TRAINED}}, "parts['svm']"),
        ({"estimators_": [_TRAINED, _TRAINED[-1]]}, "estimators_"),  # one estimator per time point, as in mne
    ],
)
def test_objects_of_other_programs_name_the_line_to_write(held: dict[str, Any], line: str) -> None:
    model = OfAnotherProgram(**held)
    with pytest.raises(UnsupportedModelError) as caught:
        approxsvm.compile(model)
    found = eval(f"model.{line}")
    code = f"[compile(one) for one in model.{line}]" if isinstance(found, list) else f"compile(model.{line})"
    assert str(caught.value).endswith(f": {code}")
    for one in found if isinstance(found, list) else [found]:
        assert approxsvm.read_any(one).n_raw_features == 20


def test_other_objects_hold_nothing_to_compile() -> None:
    with pytest.raises(
        UnsupportedModelError, match="no model that can be compiled, and holds none; `approxsvm sources` lists them"
    ):
        approxsvm.compile(OfAnotherProgram(cluster=KNeighborsClassifier().fit([[0.0], [1.0]], [0, 1]), base=SVC()))


def test_the_line_for_a_pipeline_looks_at_all_of_its_steps() -> None:
    """The suggested line once named only the first step that cannot be folded, and was itself refused."""
    binned = preprocessing.FunctionTransformer(np.abs)
    steps = (
        binned,
        preprocessing.StandardScaler(),
        preprocessing.FunctionTransformer(np.cbrt),
        preprocessing.MinMaxScaler(),
    )
    pipe = make_pipeline(*steps, SVC()).fit(X, Y)
    assert refusal_of(pipe).endswith("; compile pipe[3:] and give it pipe[:3].transform(X)")
    assert (approxsvm.compile(pipe[3:]).predict(pipe[:3].transform(X)) == pipe.predict(X)).all()


@pytest.mark.parametrize("kernel", [np.dot, partial(np.dot, out=None), lambda a, b: a @ b.T])
def test_a_callable_kernel_is_named(kernel: Any) -> None:
    text = refusal_of(SVC(kernel=lambda a, b: a @ b.T).fit(X, Y).set_params(kernel=kernel))
    assert re.search(r"the callable '(dot|<lambda>)'; only 'rbf'", text)
