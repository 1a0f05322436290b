"""Values that a step of the source refuses are refused, also where nothing of their column is left in the end."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from c_header import NEEDS_GCC, build
from sklearn.compose import make_column_transformer
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier, VotingClassifier
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC

import approxsvm

RNG = np.random.default_rng(0)
# Columns 0 and 1 say what the label is; 2 is a constant, 3 has three values, 4 is noise.
X = np.c_[RNG.uniform(1, 3, (120, 2)), np.ones(120), RNG.integers(1, 4, 120), RNG.uniform(1, 3, 120)]
Y = X[:, 0] + X[:, 1] > 4
VALUES = (np.nan, np.inf, -np.inf, 0.0, -1.0, 77.0)


def last(*steps):
    """The steps, a selector that keeps two columns, and a machine."""
    return make_pipeline(*steps, SelectKBest(k=2), SVC())


def missing(step):
    """Fitted on rows with a missing value in column 4."""
    given = X.copy()
    given[7, 4] = np.nan
    return step.fit(given, Y)


PIPELINES = {
    "selector": last(),
    "selector of anything": make_pipeline(VarianceThreshold(), SVC()),
    "selector by what takes NaN": make_pipeline(
        SelectFromModel(RandomForestClassifier(random_state=0), max_features=2, threshold=-np.inf), SVC()
    ),
    "constant, one-hot": make_pipeline(
        make_column_transformer((OneHotEncoder(drop="first", handle_unknown="ignore"), [2]), remainder="passthrough"),
        SVC(),
    ),
    "known constant, one-hot": make_pipeline(
        make_column_transformer((OneHotEncoder(drop="first"), [2, 3]), remainder="passthrough"), SVC()
    ),
    "scaled logarithm": last(StandardScaler(), MinMaxScaler(feature_range=(1, 2)), FunctionTransformer(np.log)),
    "Box-Cox": last(make_column_transformer((PowerTransformer("box-cox"), [0, 1, 4]))),
    "bins": last(KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf")),
    "codes": last(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)),
    "imputer": last(SimpleImputer()),
    "imputer behind a selector": make_pipeline(SelectKBest(k=3), SimpleImputer(), SVC()),
    "scaler": last(StandardScaler()),
    "columns of a scaler": make_pipeline(StandardScaler(), make_column_transformer(("passthrough", [0, 1])), SVC()),
    "splines": last(make_column_transformer((SplineTransformer(n_knots=3, extrapolation="error"), [0, 1, 4]))),
    "indicator": missing(make_pipeline(make_union(MissingIndicator(), SimpleImputer()), SVC())),
    "features of a machine": RFE(SVC(kernel="linear"), n_features_to_select=2),
    "scaled features of a machine": make_pipeline(SimpleImputer(), RFE(LogisticRegression(), n_features_to_select=2)),
    "votes of selectors": make_pipeline(
        SimpleImputer(),
        VotingClassifier([(str(k), make_pipeline(StandardScaler(), SelectKBest(k=k), SVC())) for k in (1, 2)]),
    ),
    "selector in front of boosting": make_pipeline(SelectKBest(k=2), AdaBoostClassifier(SVC(), n_estimators=1)),
}
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning", "ignore::FutureWarning")


def rows_of_all_values():
    """Rows with one value of VALUES in one column each."""
    rows = np.repeat(X[:1], X.shape[1] * len(VALUES), axis=0)
    for k, (column, value) in enumerate((j, v) for j in range(X.shape[1]) for v in VALUES):
        rows[k, column] = value
    return rows


def answers(predict, rows):
    """The label of each row, or None where it is refused."""
    found = []
    for row in rows:
        try:
            found.append(predict(row[np.newaxis]).tolist()[0])
        except ValueError:
            found.append(None)
    return found


@pytest.fixture(scope="module", params=PIPELINES)
def models(request):
    source = PIPELINES[request.param]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if request.param != "indicator":
            source.fit(X, Y)
        return source, approxsvm.compile(source, X)


def test_what_the_source_refuses(models):
    source, fast = models
    rows = rows_of_all_values()
    expected = answers(source.predict, rows)
    assert None in expected or source[0].__class__ is VarianceThreshold
    assert answers(fast.predict, rows) == expected
    bad = [label is None for label in expected]
    good = np.delete(rows, np.flatnonzero(bad), axis=0)
    assert fast.predict(good).tolist() == [label for label in expected if label is not None]


def test_graphs(models):
    source, fast = models
    rows = rows_of_all_values()
    refused = np.array([label is None for label in answers(source.predict, rows)])
    graph = fast.to_onnx(input_type="float64")
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    labels, certain = session.run(["label", "certain"], {"X": rows})
    assert not certain[refused].any()
    sure = certain & ~refused
    assert (labels[sure] == source.predict(rows[sure])).all()


@NEEDS_GCC
@pytest.mark.parametrize("models", ["selector", "known constant, one-hot", "imputer behind a selector"], indirect=True)
def test_headers(models, tmp_path: Path):
    source, fast = models
    rows = rows_of_all_values()
    refused = np.array([label is None for label in answers(source.predict, rows.astype(np.float32))])
    assert not build(fast, tmp_path).answers(rows).certain[refused].any()


def test_texts_of_which_nothing_is_left():
    """An encoder that ignores what it does not know takes anything there."""
    frame = pd.DataFrame({"a": X[:, 0], "constant": "same", "b": X[:, 1]})
    encoder = OneHotEncoder(drop="first", handle_unknown="ignore")
    columns = make_column_transformer((encoder, ["constant"]), remainder="passthrough")
    source = make_pipeline(columns, SVC()).fit(frame, Y)
    fast = approxsvm.compile(source, frame)
    for value in ("same", "other"):
        changed = frame.assign(constant=value)
        assert fast.predict(changed).tolist() == source.predict(changed).tolist()


@pytest.mark.parametrize(
    "step",
    [
        Binarizer(),
        KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"),
        MinMaxScaler(clip=True),
        QuantileTransformer(n_quantiles=20),
        SplineTransformer(n_knots=3),
        PowerTransformer(),
    ],
)
def test_numbers_that_leave_float64_on_their_way(step, tmp_path: Path):
    """The step would make a number of infinity, but the source's refuses it."""
    small = 1e-10 * X[:, :2]
    source = make_pipeline(StandardScaler(), step, SVC()).fit(small, Y)
    if isinstance(step, PowerTransformer):
        source[1].lambdas_[:] = -1.0
    fast = approxsvm.compile(source, small)
    rows = np.array([[1e300, 0.0], [0.0, -1e300], [1e-10, 1e-10]])
    assert (
        answers(fast.predict, rows) == answers(source.predict, rows) == [None, None, fast.predict(rows[2:]).tolist()[0]]
    )
    assert answers(fast.artifact.input_map.takes, rows) == [False, False, True]
    graph = fast.to_onnx(input_type="float64")
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    assert not session.run(["certain"], {"X": rows})[0][:2].any()
