"""Typical pipelines of practitioners, before and around a kernel, on a typical table.

The table is generated: numbers with missing values, skewed numbers, texts with missing values, categories of text and
of number, and a sentence per row. Each pipeline is fitted on one part and compiled. Labels, values and probabilities
are then compared with the source on the other part (comparison.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
import pytest
from comparison import FAULTS, compare
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier, StackingClassifier, StackingRegressor, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDOneClassSVM
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM

Answers: TypeAlias = "str | list[str] | None"
_NUMBERS: Final = ["age", "income", "hours"]
_TEXTS: Final = ["city", "work", "grade"]
_WORDS: Final = ["fast", "slow", "red", "green", "old", "apple", "car", "tree", "house", "late", "good", "bad"]
_CLASSES: Final = np.array(["high", "low", "middle"])


def table(n_rows: int, seed: int) -> pd.DataFrame:
    """Rows with their answers: two classes ("bought"), three ("level"), a number ("paid") and two ("paid", "left")."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.normal(40, 12, n_rows).round(),
            "income": rng.lognormal(10, 1, n_rows),
            "hours": rng.uniform(0, 60, n_rows),
            "city": rng.choice(["Bonn", "Köln", "Ulm", "Trier"], n_rows, p=[0.5, 0.3, 0.19, 0.01]),
            "work": rng.choice(["none", "part", "full"], n_rows),
            "grade": rng.choice([1.0, 2.0, 3.0, 5.0], n_rows),
            "note": [" ".join(words) for words in rng.choice(_WORDS, (n_rows, 6))],
        }
    )
    score = X["age"] / 12 + 0.5 * np.log(X["income"]) + np.sin(X["hours"] / 9) + 2.0 * (X["city"] == "Bonn")
    score = score + 1.5 * X["note"].str.contains("apple") - X["grade"] + rng.normal(0, 0.5, n_rows)
    X["bought"] = np.where(score > score.median(), "yes", "no")
    X["level"] = _CLASSES[np.digitize(score, score.quantile([0.3, 0.7]))]
    X["paid"] = 10 * score + rng.normal(0, 1, n_rows)
    X["left"] = X["hours"] - score
    for name in ("age", "income", "city", "work"):
        X.loc[rng.random(n_rows) < 0.07, name] = None
    return X


def mixed(*numbers: Any, texts: Any = None) -> Any:
    """Numbers filled in and mapped, categories filled in and encoded: the columns of a table side by side."""
    numbers = numbers or (StandardScaler(),)
    encoded = OneHotEncoder(handle_unknown="ignore") if texts is None else texts
    return make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), *numbers), _NUMBERS),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), encoded), _TEXTS[:2]),
    )


def _plain() -> Any:
    """Numbers alone."""
    return make_column_transformer((make_pipeline(SimpleImputer(), StandardScaler()), _NUMBERS))


def _svc(**options: Any) -> Any:
    return make_pipeline(mixed(), SVC(**options))


def _with_indicator() -> Any:
    return make_column_transformer(
        (
            make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
            make_column_selector(dtype_include="float64"),
        ),
        (OneHotEncoder(drop="first", min_frequency=0.05, handle_unknown="infrequent_if_exist"), ["city", "work"]),
    )


# By name: an estimator, and the column of its answers.
PIPELINES: Final[Mapping[str, tuple[Any, Answers]]] = {
    "SimpleImputer, StandardScaler, OneHotEncoder, SVC": (_svc(), "bought"),
    "the same, three classes, probability": (_svc(probability=True), "level"),
    "GridSearchCV over it": (GridSearchCV(_svc(), {"svc__C": [0.5, 5.0]}, cv=2), "bought"),
    "RandomizedSearchCV over SVR": (
        RandomizedSearchCV(
            make_pipeline(mixed(), SVR()), {"svr__C": [1.0, 10.0, 50.0]}, n_iter=2, cv=2, random_state=0
        ),
        "paid",
    ),
    "missing indicators, infrequent categories": (make_pipeline(_with_indicator(), NuSVC(nu=0.3)), "bought"),
    "OrdinalEncoder, MinMaxScaler": (
        make_pipeline(
            mixed(texts=OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)), MinMaxScaler(), SVC()
        ),
        "level",
    ),
    "TargetEncoder": (make_pipeline(mixed(texts=TargetEncoder(random_state=0)), SVC()), "bought"),
    "KBinsDiscretizer": (
        make_pipeline(mixed(KBinsDiscretizer(5, quantile_method="averaged_inverted_cdf")), SVC()),
        "bought",
    ),
    "PolynomialFeatures": (make_pipeline(mixed(StandardScaler(), PolynomialFeatures()), SVC()), "bought"),
    "SplineTransformer": (make_pipeline(mixed(StandardScaler(), SplineTransformer()), SVR(C=10)), "paid"),
    "PowerTransformer": (make_pipeline(mixed(PowerTransformer()), SVC()), "level"),
    "QuantileTransformer": (
        make_pipeline(mixed(QuantileTransformer(n_quantiles=100, output_distribution="normal")), SVC()),
        "bought",
    ),
    "RobustScaler, Normalizer": (make_pipeline(mixed(RobustScaler()), Normalizer(), SVC()), "bought"),
    "Nystroem, SGDClassifier": (
        make_pipeline(mixed(), Nystroem(n_components=60, random_state=0), SGDClassifier(random_state=0)),
        "level",
    ),
    "RBFSampler, LogisticRegression": (
        make_pipeline(
            mixed(texts=OneHotEncoder(sparse_output=False)), RBFSampler(gamma=0.1, random_state=0), LogisticRegression()
        ),
        "level",
    ),
    "PCA, SVC": (
        make_pipeline(mixed(texts=OneHotEncoder(sparse_output=False)), PCA(4, random_state=0), SVC()),
        "level",
    ),
    "TruncatedSVD, SVC": (make_pipeline(mixed(), TruncatedSVD(5, random_state=0), StandardScaler(), SVC()), "bought"),
    "LinearDiscriminantAnalysis, SVC": (
        make_pipeline(mixed(texts=OneHotEncoder(sparse_output=False)), LinearDiscriminantAnalysis(), SVC()),
        "level",
    ),
    "SelectKBest, SVC": (make_pipeline(mixed(), SelectKBest(k=5), SVC()), "level"),
    "FeatureUnion of PCA and SelectKBest": (
        make_pipeline(_plain(), FeatureUnion([("pca", PCA(2)), ("best", SelectKBest(k=2))]), SVC()),
        "level",
    ),
    "StackingClassifier": (
        StackingClassifier([("svc", _svc()), ("wide", _svc(gamma=0.02))], LogisticRegression(), cv=2),
        "bought",
    ),
    "StackingClassifier, three classes": (
        StackingClassifier([("svc", _svc()), ("wide", _svc(gamma=0.02))], LogisticRegression(), cv=2),
        "level",
    ),
    "StackingRegressor": (
        StackingRegressor(
            [("svr", make_pipeline(mixed(), SVR(C=10))), ("ridge", make_pipeline(mixed(), Ridge()))], Ridge(), cv=2
        ),
        "paid",
    ),
    "BaggingClassifier behind a table": (make_pipeline(mixed(), BaggingClassifier(SVC(), 5, random_state=0)), "level"),
    "VotingClassifier of pipelines": (
        VotingClassifier(
            [("svc", _svc(C=5)), ("wide", _svc(gamma=0.02)), ("nu", make_pipeline(mixed(), NuSVC(nu=0.3)))]
        ),
        "bought",
    ),
    "soft VotingClassifier behind a table": (
        make_pipeline(
            mixed(),
            VotingClassifier([("svc", SVC(probability=True)), ("regression", LogisticRegression())], voting="soft"),
        ),
        "bought",
    ),
    "OneVsRestClassifier of SVC": (make_pipeline(mixed(), OneVsRestClassifier(SVC())), "level"),
    "MultiOutputRegressor of SVR": (make_pipeline(mixed(), MultiOutputRegressor(SVR(C=10))), ["paid", "left"]),
    "MultiOutputClassifier of SVC": (make_pipeline(mixed(), MultiOutputClassifier(SVC())), ["bought", "level"]),
    "TransformedTargetRegressor of KernelRidge": (
        TransformedTargetRegressor(
            make_pipeline(mixed(), KernelRidge(kernel="rbf", gamma=0.1)), transformer=StandardScaler()
        ),
        "paid",
    ),
    "CalibratedClassifierCV, isotonic": (CalibratedClassifierCV(_svc(), method="isotonic", cv=2), "bought"),
    "CalibratedClassifierCV of LinearSVC behind Nystroem": (
        make_pipeline(mixed(), Nystroem(n_components=50, random_state=0), CalibratedClassifierCV(LinearSVC(), cv=2)),
        "level",
    ),
    "TunedThresholdClassifierCV": (TunedThresholdClassifierCV(_svc(), cv=2), "bought"),
    "FixedThresholdClassifier": (FixedThresholdClassifier(_svc(probability=True), threshold=0.3), "bought"),
    "OneClassSVM behind a table": (make_pipeline(mixed(), OneClassSVM(nu=0.1)), None),
    "SGDOneClassSVM behind Nystroem": (
        make_pipeline(mixed(), Nystroem(n_components=50, random_state=0), SGDOneClassSVM(random_state=0)),
        None,
    ),
    "GaussianProcessClassifier": (make_pipeline(_plain(), GaussianProcessClassifier(optimizer=None)), "bought"),
    "GaussianProcessRegressor": (
        make_pipeline(_plain(), GaussianProcessRegressor(alpha=0.1, optimizer=None, normalize_y=True)),
        "paid",
    ),
    "TfidfVectorizer, SVC": (make_pipeline(TfidfVectorizer(), SVC()), "bought of note"),
    "CountVectorizer, TfidfTransformer, calibrated LinearSVC": (
        make_pipeline(
            CountVectorizer(ngram_range=(1, 2)), TfidfTransformer(), CalibratedClassifierCV(LinearSVC(), cv=2)
        ),
        "level of note",
    ),
    "GridSearchCV over TfidfVectorizer, TruncatedSVD, SVC": (
        GridSearchCV(
            make_pipeline(TfidfVectorizer(), TruncatedSVD(8, random_state=0), StandardScaler(), SVC()),
            {"tfidfvectorizer__sublinear_tf": [False, True], "svc__C": [1.0, 10.0]},
            cv=2,
        ),
        "bought of note",
    ),
    "VotingClassifier of pipelines with TfidfVectorizer": (
        VotingClassifier(
            [
                ("svc", make_pipeline(TfidfVectorizer(), SVC())),
                ("letters", make_pipeline(TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)), LinearSVC())),
                ("counts", make_pipeline(CountVectorizer(), LogisticRegression())),
            ]
        ),
        "bought of note",
    ),
    "CalibratedClassifierCV of a pipeline with TfidfVectorizer": (
        CalibratedClassifierCV(make_pipeline(TfidfVectorizer(), LinearSVC()), cv=2),
        "bought of note",
    ),
    "FeatureUnion of TfidfVectorizers": (
        make_pipeline(
            FeatureUnion(
                [("words", TfidfVectorizer()), ("letters", TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)))]
            ),
            SVC(),
        ),
        "bought of note",
    ),
    "TfidfVectorizer of a column beside numbers": (
        make_pipeline(
            make_column_transformer(
                (TfidfVectorizer(), "note"),
                (make_pipeline(SimpleImputer(), StandardScaler()), _NUMBERS),
                (OneHotEncoder(handle_unknown="ignore"), ["work"]),
            ),
            SVC(),
        ),
        "bought",
    ),
}
_REFUSED: Final = ("TfidfVectorizer of a column beside numbers",)
_ANSWERS: Final = ["bought", "level", "paid", "left"]


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.filterwarnings("ignore")  # of scikit-learn, on solvers and parameters
def test_answers_are_the_source_s(name: str) -> None:
    estimator, target = PIPELINES[name]
    rows = table(450, 0)
    is_test = np.arange(len(rows)) % 3 == 0
    X = rows.drop(columns=_ANSWERS)
    if isinstance(target, str) and target.endswith(" of note"):
        target, X = target.removesuffix(" of note"), X["note"]
    y = None if target is None else rows[target].to_numpy()[~is_test]
    finding = compare(clone(estimator).fit(X[~is_test], y), X[~is_test], X[is_test])
    assert (finding.verdict == "refused") == (name in _REFUSED), finding
    assert finding.verdict not in FAULTS, finding
