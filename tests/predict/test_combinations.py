"""Rules that make one label of several functions, models or a threshold, attacked: ties, exact hits, odd labels.

Coefficients are whole numbers or a few bits, so that sources and ours compute exactly: labels have to be the same in
every row, ties included, which scikit-learn's own objects decide.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnxruntime
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDOneClassSVM,
)
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from zoo import oracle

import approxsvm
from approxsvm.errors import InputError, ModelFormatError, UnsupportedModelError
from approxsvm.features.taylor import TaylorFeatures
from approxsvm.model.ensemble import Ensemble
from approxsvm.model.kernel_model import KernelModel
from approxsvm.model.outputs import MembersMean, Outputs, TemperatureCalibration
from approxsvm.readers import read_any
from approxsvm.reports.judgement import classes_of

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:Label .* is present in all"
)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
TARGET = np.sin(X[:, 0]) + X[:, 1]
KINDS = np.digitize(TARGET, np.quantile(TARGET, [0.3, 0.7]))
WHOLE = np.array(np.meshgrid(*[range(-3, 4)] * 3)).reshape(3, -1).T.astype(float)  # full of ties
LABELS = {
    "texts": np.array(["b", "c", "a"]),
    "negative": np.array([-5, 3, -7]),
    "floats": np.array([0.0, -1.0, 2.0]),
    "unsigned": np.array([3, 2**63, 1], np.uint64),
}
TWO_LABELS = {**{name: labels[:2] for name, labels in LABELS.items()}, "booleans": np.array([True, False])}
EACH = Outputs(label_rule="scores", decision_shape="each")


def edited(linear, seed=0):
    """A fitted linear model with small whole numbers for coefficients, so that values tie and are exactly 0."""
    rng = np.random.default_rng(seed)
    linear.coef_ = rng.integers(-2, 3, linear.coef_.shape).astype(float)
    linear.intercept_ = rng.integers(-1, 2, np.shape(linear.intercept_)).astype(float)
    return linear


def assert_labels_are_the_source_s(source, rows, **options):
    fast = approxsvm.compile(source, **options)
    expected = source.predict(rows)
    for part in (rows, rows[:3]):
        np.testing.assert_array_equal(fast.predict(part), expected[: len(part)])
    assert fast.predict(rows).dtype == expected.dtype
    np.testing.assert_array_equal(approxsvm.Predictor(fast.artifact.data).predict(rows), expected)
    return fast


LINEAR = [
    LinearSVC(),
    LogisticRegression(),
    Perceptron(),
    RidgeClassifier(),
    SGDClassifier(loss="modified_huber", random_state=0),
]


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("linear", LINEAR, ids=str)
def test_equal_values_of_several_classes(linear, labels):
    for seed in range(3):
        source = edited(linear.fit(X, LABELS[labels][KINDS]), seed)
        fast = assert_labels_are_the_source_s(source, WHOLE)
        values = np.sort(source.decision_function(WHOLE), axis=1)
        ties = values[:, -1] == values[:, -2]
        assert ties.any()
        np.testing.assert_array_equal(fast.certified(WHOLE), ~ties)
        np.testing.assert_array_equal(fast.decision_function(WHOLE), source.decision_function(WHOLE))
        if hasattr(source, "predict_proba"):
            np.testing.assert_allclose(fast.predict_proba(WHOLE), source.predict_proba(WHOLE), atol=1e-14)


@pytest.mark.parametrize("labels", LABELS)
def test_equal_values_against_the_rest(labels):
    for inner in (LinearSVC(), LogisticRegression()):
        source = OneVsRestClassifier(inner).fit(X, LABELS[labels][KINDS])
        for seed, member in enumerate(source.estimators_):
            edited(member, seed)
        fast = assert_labels_are_the_source_s(source, WHOLE)
        np.testing.assert_array_equal(fast.decision_function(WHOLE), source.decision_function(WHOLE))
        assert 0 < (~fast.certified(WHOLE)).sum() < len(WHOLE)


@pytest.mark.parametrize("labels", TWO_LABELS)
def test_values_of_0_against_the_rest_of_two(labels):
    source = OneVsRestClassifier(LinearSVC()).fit(X, TWO_LABELS[labels][KINDS % 2])
    edited(source.estimators_[0])
    assert (source.decision_function(WHOLE) == 0).any()
    assert_labels_are_the_source_s(source, WHOLE)


def test_equal_plateaus_against_the_rest():
    """Members without values are asked for probabilities, of which isotonic ones are often equal."""
    inner = CalibratedClassifierCV(LinearSVC(), method="isotonic", ensemble=False, cv=2)
    source = OneVsRestClassifier(inner).fit(X, LABELS["texts"][KINDS])
    fast = assert_labels_are_the_source_s(source, X)
    np.testing.assert_allclose(fast.predict_proba(X), source.predict_proba(X), atol=1e-12)


def voting(members, y, weights=None):
    source = VotingClassifier([(str(k), member) for k, member in enumerate(members)], weights=weights).fit(X, y)
    for seed, member in enumerate(source.estimators_):
        edited(member, seed)
    return source


@pytest.mark.parametrize("weights", [None, [1, 1, 1, 1], [0.1, 0.2, 0.3, 0.6], [3, 1, 1, 1], [0, 1, 1, 0]], ids=str)
@pytest.mark.parametrize("labels", LABELS)
def test_equal_votes(labels, weights):
    source = voting(
        [LinearSVC(), LogisticRegression(), Perceptron(), RidgeClassifier()], LABELS[labels][KINDS], weights
    )
    fast = assert_labels_are_the_source_s(source, WHOLE)
    assert not hasattr(fast, "predict_proba")
    assert not hasattr(fast, "decision_function")
    assert not hasattr(fast, "error_bound")
    if labels == "unsigned":
        return  # beyond int64, which ONNX classifiers do not have
    session = onnxruntime.InferenceSession(
        fast.to_onnx(input_type="float64", certain=True).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    label, certain = session.run(["label", "certain"], {"X": WHOLE})
    assert (label.astype(source.classes_.dtype) == source.predict(WHOLE))[certain].all()


@pytest.mark.parametrize("labels", TWO_LABELS)
def test_votes_of_members_whose_values_are_0(labels):
    y = TWO_LABELS[labels][KINDS % 2]
    assert_labels_are_the_source_s(voting([LinearSVC(), Perceptron(), RidgeClassifier()], y), WHOLE)
    assert_labels_are_the_source_s(voting([LinearSVC(), LogisticRegression()], y, [1, 1]), WHOLE)


def test_equal_weights_of_boosted_votes():
    """Sums of weights for and against, rounded in scikit-learn's order."""
    y = LABELS["texts"][KINDS % 2]
    source = AdaBoostClassifier(LogisticRegression(), n_estimators=6, random_state=0).fit(X, y)
    source.estimators_ = [edited(LogisticRegression().fit(X, y), seed) for seed in range(6)]
    source.estimator_weights_ = np.full(6, 0.1)
    ones = np.abs(source.decision_function(WHOLE)) < 1e-12
    assert ones.any()
    assert_labels_are_the_source_s(source, WHOLE)


@pytest.mark.parametrize("labels", TWO_LABELS)
@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("threshold", [-2, -1, 0, 1, 3])
def test_values_that_are_the_threshold(labels, positive, threshold):
    y = TWO_LABELS[labels][KINDS % 2]
    pos_label = np.unique(y)[positive]
    source = FixedThresholdClassifier(LinearSVC(), threshold=threshold, pos_label=pos_label).fit(X, y)
    edited(source.estimator_)
    hits = source.estimator_.decision_function(WHOLE) == (threshold if positive else -threshold)
    assert hits.any()
    fast = assert_labels_are_the_source_s(source, WHOLE)
    np.testing.assert_array_equal(fast.certified(WHOLE), ~hits)
    np.testing.assert_array_equal(fast.decision_function(WHOLE), source.decision_function(WHOLE))


@pytest.mark.parametrize("positive", [0, 1])
def test_probabilities_that_are_the_threshold(positive):
    y = LABELS["texts"][KINDS % 2]
    pos_label = np.unique(y)[positive]
    source = FixedThresholdClassifier(LogisticRegression(), threshold=0.5, pos_label=pos_label).fit(X, y)
    edited(source.estimator_)
    assert (source.estimator_.decision_function(WHOLE) == 0).any()
    assert_labels_are_the_source_s(source, WHOLE)
    inner = CalibratedClassifierCV(LinearSVC(), method="isotonic", ensemble=False, cv=2).fit(X, y)
    shares = inner.predict_proba(X)[:, positive]
    for plateau in np.unique(shares)[::3]:
        source = FixedThresholdClassifier(inner, threshold=plateau, pos_label=pos_label).fit(X, y)
        source.estimator_ = inner
        assert_labels_are_the_source_s(source, X)


def test_outliers_begin_below_0():
    source = SGDOneClassSVM(random_state=0).fit(X)
    source.coef_, source.offset_ = np.array([1.0, -1.0, 2.0]), np.array([1.0])
    assert (source.decision_function(WHOLE) == 0).any()
    fast = assert_labels_are_one_class(source)
    np.testing.assert_array_equal(fast.certified(WHOLE), source.decision_function(WHOLE) != 0)
    for step in (Nystroem(gamma=0.2, n_components=9, random_state=0), RBFSampler(gamma=0.2, random_state=0)):
        source = make_pipeline(step, SGDOneClassSVM(nu=0.3, random_state=0)).fit(X)
        fast = approxsvm.compile(source)
        np.testing.assert_array_equal(fast.predict(WHOLE), source.predict(WHOLE))
        np.testing.assert_allclose(fast.score_samples(WHOLE), source.score_samples(WHOLE), atol=1e-12)


def assert_labels_are_one_class(source):
    fast = approxsvm.compile(source)
    np.testing.assert_array_equal(fast.predict(WHOLE), source.predict(WHOLE))
    label = onnxruntime.InferenceSession(
        fast.to_onnx(input_type="float64").SerializeToString(), providers=["CPUExecutionProvider"]
    ).run(["label"], {"X": WHOLE})[0]
    np.testing.assert_array_equal(label.ravel(), source.predict(WHOLE))
    return fast


# --- what is certified holds


SOURCES = {
    "rest": lambda: OneVsRestClassifier(SVC(gamma=0.5)),
    "rest of unlike ones": lambda: OneVsRestClassifier(make_pipeline(StandardScaler(), RBFSampler(), LinearSVC())),
    "votes": lambda: VotingClassifier([("a", SVC(gamma=0.5)), ("b", SVC(gamma=2.0)), ("c", SVC(C=9.0))]),
    "weighted votes": lambda: VotingClassifier([("a", SVC(gamma=0.5)), ("b", SVC(gamma=2.0))], weights=[1, 1.5]),
    "bag": lambda: BaggingClassifier(SVC(gamma=0.5), 5, max_features=2, random_state=0),
    "boosted": lambda: AdaBoostClassifier(SVC(C=0.2), n_estimators=5, random_state=0),
    "weighted mean": lambda: VotingClassifier(
        [("a", LogisticRegression()), ("b", CalibratedClassifierCV(SVC(), ensemble=False, cv=2))],
        voting="soft",
        weights=[1, 3],
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_certified_is_the_source_s(name):
    """By expansions too coarse to prove much, without anything behind them, and with the exact model."""
    source = SOURCES[name]().fit(X, KINDS)
    rows = np.concatenate([WHOLE / 2, X])
    expected = source.predict(rows)
    exact = approxsvm.compile(source, X)
    np.testing.assert_array_equal(exact.predict(rows), expected)
    assert exact.certified(rows).mean() > 0.5
    model = read_any(source)
    members = model.members if isinstance(model, Ensemble) else (model,)
    if all(member.kernel == "gaussian" for member in members):
        coarse = approxsvm.compile(source, X, mode="approximate", degree=2, n_centers=1)
        certified = coarse.certified(rows)
        assert certified.any()
        np.testing.assert_array_equal(coarse.predict(rows)[certified], expected[certified])


def test_several_classes_behind_taylor_features():
    for linear in (LinearSVC(), LogisticRegression()):
        source = make_pipeline(TaylorFeatures(0.2, 3), linear).fit(X, LABELS["texts"][KINDS])
        fast = approxsvm.compile(source, mode="approximate")
        certified = fast.certified(WHOLE / 2)
        assert certified.mean() > 0.9
        np.testing.assert_array_equal(fast.predict(WHOLE / 2)[certified], source.predict(WHOLE / 2)[certified])
        error = np.abs(fast.decision_function(WHOLE / 2) - source.decision_function(WHOLE / 2))
        assert (error <= fast.error_bound(WHOLE / 2) + 1e-10).all()
        if hasattr(source, "predict_proba"):
            error = np.abs(fast.predict_proba(WHOLE / 2) - source.predict_proba(WHOLE / 2))
            assert (error <= fast.probability_bound(WHOLE / 2) + 1e-10).all()


def several_kernels(rng, n, n_sv=23, d=3, **options):
    kernels = {"gaussian": {}, "cubic": {"degree": 3, "coef0": 0.5}, "sigmoid": {"is_sigmoid": True, "coef0": -0.5}}
    coef = rng.normal(size=(n, n_sv)) * 2.0 ** rng.integers(-20, 21, (n, 1))
    coef[:, ::2] = coef[:1, ::2]
    return KernelModel(
        "classification",
        support_vectors=rng.normal(size=(n_sv, d)),
        dual_coef=coef,
        intercept=rng.normal(size=n),
        gamma=float(2.0 ** rng.integers(-4, 4)),
        labels=rng.permutation(n),
        outputs=EACH,
        **kernels[options["kernel"]],
    )


@pytest.mark.parametrize(
    ("kernel", "plan"),
    [
        ("gaussian", {"mode": "exact"}),
        ("gaussian", {"degree": 2, "n_centers": 1}),
        ("gaussian", {"degree": 4, "n_centers": 3}),
        ("cubic", {}),
        ("sigmoid", {}),
    ],
)
def test_bounds_of_several_functions_hold(kernel, plan):
    """Functions of sizes up to 2^20 apart, alike in half of their terms, at rows where they are close and far away."""
    rng = np.random.default_rng(5)
    for trial in range(4):
        model = several_kernels(rng, 3 + trial, kernel=kernel)
        tolerance = None if trial % 2 else 1e-3 * float(np.abs(model.dual_coef).sum())
        fast = approxsvm.compile(model, tolerance=tolerance, **plan)
        rows = rng.normal(size=(40, 3)) * 10.0 ** rng.integers(-6, 3, (40, 1))
        rows[:3] = model.support_vectors[:3]
        for part in (rows, rows[:1]):
            evaluator = fast._evaluator
            for values in ("promised", "settled", "exact"):
                assert oracle.holds(model, part, *evaluator.evaluate(part, 2 | 4, values)).all()
        labels = model.labels[oracle.decision_values(model, rows)[0].argmax(axis=1)]
        np.testing.assert_array_equal(fast.predict(rows), labels)
        certified = fast.certified(rows)
        np.testing.assert_array_equal(fast.predict(rows)[certified], np.array(labels)[certified])


@pytest.mark.parametrize("mode", ["certified", "exact"])
def test_weighted_sums_of_values(mode):
    members = [("a", SVR(gamma=0.3)), ("b", SVR(gamma=2.0)), ("c", Ridge())]
    for source in (VotingRegressor(members, weights=[0.1, 7, 3]), StackingRegressor(members, Ridge(), cv=2)):
        fast = approxsvm.compile(source.fit(X, TARGET), mode=mode)
        error = np.abs(fast.predict(WHOLE) - source.predict(WHOLE))
        assert (error <= fast.error_bound(WHOLE) + 1e-12).all()
        assert fast.predict(WHOLE).shape == (len(WHOLE),)
        assert len(fast.artifact.members) == 3
        with pytest.raises(UnsupportedModelError, match="cannot be promised for a weighted sum of 3 models"):
            approxsvm.compile(source, tolerance=0.1)


def test_members_against_the_rest_share_their_vectors():
    source = OneVsRestClassifier(SVC(gamma=0.5)).fit(X, KINDS)
    model = read_any(source)
    assert model.n_sv <= len(X) < sum(len(member.support_) for member in source.estimators_)
    assert approxsvm.compile(source).artifact.header["n_support_vectors"] == model.n_sv


# --- several labels for each row


SEVERAL = np.column_stack([X[:, 0] > 0, TARGET > 0.2, KINDS == 1, X[:, 2] > 1]).astype(int)
TARGETS = {
    "texts": np.column_stack([LABELS["texts"][KINDS], TWO_LABELS["texts"][KINDS % 2]]),
    "numbers": np.column_stack([KINDS, 7 - KINDS, KINDS % 2]),
    "booleans": SEVERAL.astype(bool),
}


@pytest.mark.parametrize("inner", [LinearSVC(), LogisticRegression(), Ridge(), RidgeClassifier()], ids=str)
def test_labels_whose_values_are_0_or_half(inner):
    """Of whole numbers, so that many values are what labels change at."""
    for y in (SEVERAL, SEVERAL * [0, 1, 1, 1], np.maximum(SEVERAL, [0, 0, 1, 0])):
        source = OneVsRestClassifier(inner).fit(X, y)
        of_half = isinstance(inner, Ridge) or not y[:, 0].any()  # the first member is no classifier
        for seed, member in enumerate(source.estimators_):
            if hasattr(member, "coef_"):
                edited(member, seed)
                member.intercept_ = member.intercept_ + 0.5 * of_half
        fast = assert_labels_are_the_source_s(source, WHOLE)
        certified = fast.certified(WHOLE)
        assert certified.shape == (len(WHOLE), 4)
        assert 0 < (~certified).sum() < certified.size
        assert fast.multilabel_
        np.testing.assert_array_equal(fast.classes_, source.classes_)
        np.testing.assert_array_equal(fast.predict_one(WHOLE[0]), source.predict(WHOLE[:1])[0])
        for name in ("decision_function", "predict_proba"):
            if all(hasattr(member, name) for member in source.estimators_):
                np.testing.assert_allclose(getattr(fast, name)(WHOLE), getattr(source, name)(WHOLE), atol=1e-12)


@pytest.mark.parametrize("labels", TARGETS)
@pytest.mark.parametrize("inner", [SVC(gamma=0.5), make_pipeline(StandardScaler(), LogisticRegression())], ids=str)
def test_several_targets(inner, labels):
    source = MultiOutputClassifier(inner).fit(X, TARGETS[labels])
    fast = assert_labels_are_the_source_s(source, np.concatenate([WHOLE, X]))
    assert is_classifier(fast)
    assert fast.score(X, TARGETS[labels]) == source.score(X, TARGETS[labels])
    for own, its in zip(fast.classes_, source.classes_, strict=True):
        np.testing.assert_array_equal(own, its)
    assert hasattr(fast, "predict_proba") == hasattr(source, "predict_proba")
    if hasattr(source, "predict_proba"):
        for own, its in zip(fast.predict_proba(X), source.predict_proba(X), strict=True):
            np.testing.assert_allclose(own, its, atol=1e-12)
    for absent in ("decision_function", "error_bound"):
        assert not hasattr(fast, absent)
    for refused in (lambda: fast.certified_radius(X), lambda: fast.gradient(X)):
        with pytest.raises(UnsupportedModelError):
            refused()
    with pytest.raises(InputError, match="one label for each row"):
        fast.report(X)


@pytest.mark.parametrize("mode", ["certified", "approximate", "exact"])
def test_certified_labels_of_several_are_the_source_s(mode):
    """By coarse expansions, with and without anything behind them, and by shared kernels; in ONNX and Arrow, too."""
    rows = np.concatenate([WHOLE / 2, X])
    for source in (OneVsRestClassifier(SVC(gamma=0.5)).fit(X, SEVERAL), MultiOutputClassifier(SVC()).fit(X, SEVERAL)):
        expected = source.predict(rows)
        fast = approxsvm.compile(source, mode=mode)
        certified, found = fast.certified(rows), fast.predict(rows)
        assert certified.any()
        np.testing.assert_array_equal(found[certified], expected[certified])
        if mode != "approximate":
            np.testing.assert_array_equal(found, expected)
        table = pa.table({f"f{j}": rows[:, j] for j in range(3)})
        columns = approxsvm.Predictor(fast.artifact).predict_arrow(table, outputs=["label", "certified"]).to_pydict()
        assert list(columns) == [f"{name}_{k}" for name in ("label", "certified") for k in range(4)]
        np.testing.assert_array_equal(np.column_stack(list(columns.values())), np.hstack([found, certified]))
        session = onnxruntime.InferenceSession(
            fast.to_onnx(input_type="float64", certain=True).SerializeToString(), providers=["CPUExecutionProvider"]
        )
        label, certain = session.run(["label", "certain"], {"X": rows})
        np.testing.assert_array_equal(label[certain], expected[certain])
        assert certain.any()


def test_labels_of_members_that_share_their_vectors():
    source = OneVsRestClassifier(SVC(gamma=0.5)).fit(X, SEVERAL)
    fast = approxsvm.compile(source, mode="exact")
    (member,) = fast.artifact.members
    assert (member.task, member.n_decisions) == ("regression", 4)
    assert member.header["n_support_vectors"] <= len(X) < sum(len(one.support_) for one in source.estimators_)
    np.testing.assert_allclose(fast.decision_function(X), source.decision_function(X), atol=1e-12)
    on_the_line = source.estimators_[0]  # a row on the boundary of one label, as near as float64 comes to it
    low, high = X[on_the_line.decision_function(X) < 0][0], X[on_the_line.decision_function(X) > 0][0]
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if on_the_line.decision_function([middle])[0] < 0 else (low, middle)
    assert fast.certified([low])[0].tolist()[0] is False


def test_targets_that_share_their_vectors():
    targets = np.column_stack([TARGET, TARGET**2, X[:, 0]])
    for source in (KernelRidge(kernel="rbf", gamma=0.5), MultiOutputRegressor(SVR(gamma=0.5))):
        source.fit(X, targets)
        fast = approxsvm.compile(source, mode="exact")
        assert [member.n_decisions for member in fast.artifact.members] == [3]
        error = np.abs(fast.predict(WHOLE) - source.predict(WHOLE))
        assert (error <= fast.error_bound(WHOLE) + 1e-12).all()
        assert fast.gradient(WHOLE[:2]).shape == (2, 3, 3)


# --- codes and stacks


@pytest.mark.parametrize("labels", LABELS)
def test_equal_distances_of_codes(labels):
    """The nearest row of a code book, of which some are alike, and members that all training rows agree on."""
    for book in ([[1, 1, -1], [-1, 1, 1], [-1, 1, -1]], [[1, -1, 1], [1, 1, -1], [-1, -1, -1]]):
        source = OutputCodeClassifier(LinearSVC(), code_size=1, random_state=0).fit(X, LABELS[labels][KINDS])
        source.code_book_ = np.array(book, float)
        source.estimators_ = [edited(LinearSVC().fit(X, k == KINDS), k) for k in range(3)]
        if book[0][1] == book[1][1]:
            source.estimators_[1] = OneVsRestClassifier(SVC()).fit(X, SEVERAL * [0, 1, 1, 1]).estimators_[0]
            source.estimators_[1].y_ = np.array([1])
        fast = assert_labels_are_the_source_s(source, WHOLE)
        assert 0 < (~fast.certified(WHOLE)).sum() < len(WHOLE)


def test_classes_with_one_code():
    """The later of two classes is never predicted."""
    y = np.digitize(TARGET, np.quantile(TARGET, [0.25, 0.5, 0.75]))
    source = OutputCodeClassifier(SVC(gamma=0.5), code_size=1, random_state=0).fit(X, y)
    source.code_book_[3] = source.code_book_[0] = [1, 1, 1, -1]
    source.code_book_[1:3] = [[1, -1, 1, 1], [-1, 1, -1, 1]]
    fast = assert_labels_are_the_source_s(source, np.concatenate([X, WHOLE]))
    assert fast.classes_.tolist() == source.classes_.tolist() == [0, 1, 2, 3]
    assert not hasattr(fast, "decision_function")
    assert not hasattr(source, "decision_function")
    with pytest.raises(AttributeError, match="all that is read of the source; if it is a Gaussian process"):
        fast.predict_proba(X)
    source.code_book_[2] = source.code_book_[1]
    with pytest.raises(UnsupportedModelError, match="tells 2 classes apart"):
        read_any(source)


def test_distances_of_codes_that_lose_the_code():
    """Squares of values leave no digits to the code words: such rows are uncertain, and far ones refused."""
    source = OutputCodeClassifier(LogisticRegression(), random_state=0, code_size=2)
    source.fit([[42.0], [32.0], [22.0]], [1, 3, 2])
    fast = approxsvm.compile(source, mode="exact")
    for size in 10.0 ** np.arange(25):
        rows = np.array([[-size], [size]])
        if size > 1e8:
            with pytest.raises(InputError, match="row 0: a value between its limits is needed"):
                fast.predict(rows)
        else:
            assert fast.certified(rows).all()
            np.testing.assert_array_equal(fast.predict(rows), source.predict(rows))
    for size in (1.0, 1e7):  # rows on boundaries
        source = OutputCodeClassifier(LinearSVC(), code_size=2, random_state=0).fit(X, np.digitize(TARGET, [-0.5, 0.5]))
        fast = approxsvm.compile(source, mode="exact")
        one, other = size * X, size * X[::-1]
        labels = source.predict(one)
        for _ in range(50):
            middle = (one + other) / 2
            here = source.predict(middle)
            assert (fast.predict(middle) == here)[fast.certified(middle)].all()
            same = (here == labels)[:, None]
            one, other = np.where(same, middle, one), np.where(same, other, middle)
    huge = OutputCodeClassifier(SVC(gamma=0.5), code_size=2, random_state=0).fit(X, KINDS)
    for member in (one for one in huge.estimators_ if isinstance(one, SVC)):
        member._dual_coef_ = member.dual_coef_ = member._dual_coef_ * 1e18
    fast = approxsvm.compile(huge, mode="exact")
    assert not fast.certified(X).any()


@pytest.mark.parametrize("labels", TWO_LABELS)
def test_stacked_values_of_0(labels):
    y = TWO_LABELS[labels][KINDS % 2]
    unlike = make_pipeline(StandardScaler(with_mean=False, with_std=False), LinearSVC())
    for second in (LinearSVC(), unlike):  # one model, and two
        source = StackingClassifier([("a", LinearSVC()), ("b", second)], LinearSVC(), cv=2).fit(X, y)
        for seed, member in enumerate(source.estimators_):
            edited(getattr(member, "steps", [(0, member)])[-1][1], seed)
        edited(source.final_estimator_, 2).coef_ = np.array([[1.0, -2.0]])
        assert (source.decision_function(WHOLE) == 0).any()
        fast = assert_labels_are_the_source_s(source, WHOLE)
        np.testing.assert_allclose(fast.decision_function(WHOLE), source.decision_function(WHOLE), atol=1e-12)
        assert 0 < (~fast.certified(WHOLE)).sum() < len(WHOLE)


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize(
    ("labels", "mode"), [*zip(TWO_LABELS, 2 * ("certified", "approximate", "exact"), strict=False)]
)
def test_stacks_of_values_and_probabilities(labels, mode):
    y = TWO_LABELS[labels][KINDS % 2]
    members = [
        ("values", SVC(gamma=0.5)),
        ("others", SVC(gamma=2.0)),
        ("shares", CalibratedClassifierCV(LinearSVC(), ensemble=False, cv=2)),
        ("logistic", LogisticRegression()),
        ("coupled", SVC(probability=True, random_state=0)),
    ]
    for chosen in (members[:4], members):
        source = StackingClassifier(chosen, cv=2).fit(X, y)
        fast = approxsvm.compile(source, mode=mode)
        expected, certified = source.predict(WHOLE), fast.certified(WHOLE)
        np.testing.assert_array_equal(fast.predict(WHOLE)[certified], expected[certified])
        error = np.abs(fast.decision_function(WHOLE) - source.decision_function(WHOLE))
        assert (error <= fast.error_bound(WHOLE) + 1e-9).all()
        error = np.abs(fast.predict_proba(WHOLE) - source.predict_proba(WHOLE))
        assert (error <= fast.probability_bound(WHOLE) + 1e-9).all()
        if mode != "approximate":
            np.testing.assert_array_equal(fast.predict(WHOLE), expected)
            assert error.max() < 1e-9
            assert certified.mean() > 0.9 or len(chosen) > 4  # coupling proves nothing
        judged = fast.report(X, y, against=source).evidence.against.judged
        assert judged.n_violations == judged.differ.sum() == 0 or mode == "approximate"
        with pytest.raises(UnsupportedModelError, match="weighted sum of several models has no gradient"):
            fast.gradient(X)
        with pytest.raises(UnsupportedModelError, match="cannot be promised for a weighted sum"):
            approxsvm.compile(source, tolerance=0.1)


def many(final=None, **options):
    """Members of every kind: scores of pairs, functions of classes, averaged, logistic."""
    members = [
        ("pairs", SVC(gamma=0.5)),
        ("functions", OneVsRestClassifier(make_pipeline(StandardScaler(), LinearSVC()))),
        ("mean", CalibratedClassifierCV(SVC(gamma=0.5), cv=2)),
        ("logistic", LogisticRegression()),
    ]
    return StackingClassifier(members, final, cv=2, **options)


@pytest.mark.parametrize("mode", ["certified", "approximate"])
@pytest.mark.parametrize("source", [many(), many(LinearSVC(), passthrough=True)], ids=["shares", "passthrough"])
def test_stacks_of_several_classes(source, mode):
    source.fit(X, LABELS["texts"][KINDS])
    fast = approxsvm.compile(source, mode=mode)
    rows = np.concatenate([WHOLE / 2, X, [[1e6, -1e6, 1e6]]])
    expected, certified, found = source.predict(rows), fast.certified(rows), fast.predict(rows)
    np.testing.assert_array_equal(found[certified], expected[certified])
    error = np.abs(fast.decision_function(rows) - source.decision_function(rows))
    assert (error <= fast.error_bound(rows) + 1e-9 * (1.0 + np.abs(rows).max(axis=1, keepdims=True))).all()
    assert hasattr(fast, "predict_proba") == hasattr(source, "predict_proba")
    if hasattr(source, "predict_proba"):
        error = np.abs(fast.predict_proba(rows) - source.predict_proba(rows))
        assert (error <= fast.probability_bound(rows) + 1e-9).all()
    if mode == "certified":
        np.testing.assert_array_equal(found, expected)
        assert certified.mean() > 0.9
        assert fast.report(X, source.classes_[KINDS], against=source).evidence.against.judged.n_violations == 0
        session = onnxruntime.InferenceSession(
            fast.to_onnx(input_type="float64", certain=True).SerializeToString(), providers=["CPUExecutionProvider"]
        )
        label, certain = session.run(["label", "certain"], {"X": rows[:-1]})
        assert certain.mean() > 0.9
        np.testing.assert_array_equal(label[certain], expected[:-1][certain])


@pytest.mark.parametrize("labels", LABELS)
def test_equal_sums_of_stacks(labels):
    """Whole numbers: a final model of functions of classes, of classifiers that know two of three, and of the rows."""
    y, two = LABELS[labels][KINDS], KINDS > 0
    members = [("a", LinearSVC().fit(X, y)), ("b", LinearSVC().fit(X[two], y[two])), ("c", Ridge().fit(X, TARGET))]
    for seed in range(3):
        source = StackingClassifier(members, LinearSVC(), cv="prefit", passthrough=True).fit(X, y)
        for k, member in enumerate(source.estimators_):
            edited(member, k)
        edited(source.final_estimator_, seed)
        fast = assert_labels_are_the_source_s(source, WHOLE)
        values = np.sort(source.decision_function(WHOLE), axis=1)
        np.testing.assert_array_equal(fast.certified(WHOLE), values[:, -1] != values[:, -2])
        np.testing.assert_array_equal(fast.decision_function(WHOLE), source.decision_function(WHOLE))
    source.final_estimator_.coef_ = source.final_estimator_.coef_ * 5e307
    with pytest.raises(InputError, match="exceeds the range of float64"):
        approxsvm.compile(source).predict(100 * WHOLE)


@pytest.mark.parametrize("labels", TWO_LABELS)
def test_stacks_of_rows_themselves(labels):
    y, members = TWO_LABELS[labels][KINDS % 2], [("a", SVC(gamma=0.5)), ("b", CalibratedClassifierCV(SVC(), cv=2))]
    source = StackingClassifier(members, cv=2, passthrough=True).fit(X, y)
    fast = assert_labels_are_the_source_s(source, WHOLE)
    assert (np.abs(fast.predict_proba(WHOLE) - source.predict_proba(WHOLE)) <= 1e-9).all()
    source = StackingRegressor([("a", SVR()), ("b", Ridge())], Ridge(), cv=2, passthrough=True).fit(X, TARGET)
    fast = approxsvm.compile(source)
    assert (np.abs(fast.predict(WHOLE) - source.predict(WHOLE)) <= fast.error_bound(WHOLE) + 1e-12).all()


def test_averages_of_averages():
    """One mean of all, by products of weights; against the rest of several classes a sum of each class."""
    calibrated, rows = CalibratedClassifierCV(SVC(gamma=0.5), cv=2), np.concatenate([WHOLE / 3, X])
    voted = VotingClassifier([("a", calibrated), ("b", LogisticRegression())], voting="soft", weights=[0.1, 0.7])
    nested = VotingClassifier([("a", voted), ("b", BaggingClassifier(calibrated, 2))], voting="soft", weights=[3, 7])
    y = LABELS["texts"][KINDS]
    for source, n_members in (
        (BaggingClassifier(voted, 2, max_features=2, random_state=0).fit(X, y), 6),
        (nested.fit(X, y), 7),
        (OneVsRestClassifier(calibrated).fit(X, y), 6),
        (OneVsRestClassifier(calibrated).fit(X, KINDS % 2), 2),
        (VotingClassifier([("a", OneVsRestClassifier(voted)), ("b", voted)], voting="soft").fit(X, KINDS % 2), 6),
    ):
        fast = assert_labels_are_the_source_s(source, rows)
        assert len(fast.artifact.members) == n_members
        assert fast.certified(rows).mean() > 0.9
        assert (np.abs(fast.predict_proba(rows) - source.predict_proba(rows)) <= 1e-14).all()
        assert not hasattr(fast, "decision_function")
    summed = VotingRegressor([("a", SVR(gamma=0.3)), ("b", StackingRegressor([("c", Ridge())], Ridge(), cv=2))])
    for source in (BaggingRegressor(summed, 2), VotingRegressor([("a", summed), ("b", SVR())], weights=[-1, 3])):
        fast = approxsvm.compile(source.fit(X, TARGET))
        assert (np.abs(fast.predict(rows) - source.predict(rows)) <= fast.error_bound(rows) + 1e-12).all()


@pytest.mark.parametrize(
    ("source", "y", "message"),
    [
        (StackingClassifier([("a", SVC(decision_function_shape="ovo"))], cv=2), KINDS, "for decision_function"),
        (StackingClassifier([("a", SVC())], stack_method="predict", cv=2), KINDS, "asks a sklearn SVC for predict"),
        (
            make_pipeline(Nystroem(n_components=3), StackingClassifier([("a", LinearSVC())], passthrough=True, cv=2)),
            KINDS,
            "passthrough=True behind it",
        ),
        (MultiOutputClassifier(CalibratedClassifierCV(SVC(), cv=2)), SEVERAL[:, :2], "around a mean of 2"),
        (OneVsRestClassifier(CalibratedClassifierCV(SVC(), cv=2)), SEVERAL, "around a mean of 2"),
        (StackingClassifier([("a", SVC())], SVC(), cv=2), KINDS % 2, "whose final_estimator_ is a SVC"),
        (StackingClassifier([("a", SVC())], stack_method="predict", cv=2), KINDS % 2, "asks a sklearn SVC for predict"),
        (OneVsRestClassifier(SVC()), csr_array(SEVERAL), "sparse indicator matrix"),
        (OneVsRestClassifier(SVC()), 0 * SEVERAL, "none of whose labels depends on rows"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_of_these_is_refused(source, y, message):
    source.fit(X, y)
    with pytest.raises(UnsupportedModelError, match=message):
        read_any(source)


# --- what does not fit together


def machine(**changes):
    return KernelModel(
        **{
            "task": "regression",
            "support_vectors": np.zeros((1, 2)),
            "dual_coef": np.ones(1),
            "intercept": 0.0,
            "gamma": 1.0,
        }
        | changes
    )


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (Outputs(weights=np.ones(3)), "the weights of 2 members"),
        (Outputs(weights=np.array([1.0, np.inf])), "the weights of 2 members"),
        (Outputs(weights=np.array([1.0, -1.0])), "must be at least 0"),
        (Outputs(weights=np.zeros(2)), "not all 0"),
        (Outputs(weights=np.ones(2), addend=0.5), "cannot count 0.5 times its weight"),
        (Outputs(MembersMean(), "probability", weights=np.ones(2), addend=-0.5), "no class probabilities"),
        (Outputs(label_rule="scores", weights=np.ones(2)), "cannot label by scores"),
    ],
)
def test_ensembles_that_contradict_themselves(outputs, message):
    members = (machine(task="classification", labels=np.arange(2)),) * 2
    with pytest.raises(ModelFormatError, match=message):
        Ensemble(members, outputs=outputs)


def test_functions_of_classes_that_do_not_match():
    with pytest.raises(ModelFormatError, match=r"2 members .arrays. are no functions of 3 classes"):
        Ensemble((machine(),) * 2, outputs=EACH, classes=np.arange(3))
    with pytest.raises(ModelFormatError, match="functions of each class need the classes"):
        Ensemble((machine(),) * 3, outputs=EACH)
    with pytest.raises(ModelFormatError, match="a threshold cannot tell 3 classes apart"):
        Outputs(label_rule="value_threshold", threshold=0.0).check("classification", 3)
    with pytest.raises(ModelFormatError, match="the threshold is None of labels by value_threshold"):
        Outputs(label_rule="value_threshold")


def test_labels_by_probability_of_rules():
    """Of whatever rule, where there are probabilities."""
    y = LABELS["texts"][KINDS % 2]
    averaged = CalibratedClassifierCV(SVC(), cv=2)
    for inner in (LogisticRegression(), averaged):
        source = FixedThresholdClassifier(inner, threshold=0.8, pos_label="b").fit(X, y)
        fast = approxsvm.compile(source, labels="probability")
        shares = source.predict_proba(X)
        np.testing.assert_array_equal(fast.predict(X), source.classes_[shares.argmax(axis=1)])
    stack = StackingClassifier([("a", SVC(gamma=0.5)), ("b", LogisticRegression())], cv=2).fit(X, y)
    fast = approxsvm.compile(stack, labels="probability")
    np.testing.assert_array_equal(fast.predict(X), stack.classes_[stack.predict_proba(X).argmax(axis=1)])
    for method, threshold in (("predict_proba", 0.8), ("decision_function", -1.5)):
        for pos_label in "bc":
            source = FixedThresholdClassifier(
                stack, threshold=threshold, pos_label=pos_label, response_method=method
            ).fit(X, y)
            fast = assert_labels_are_the_source_s(source, WHOLE)
            assert fast.certified(WHOLE).mean() > 0.5
            label, certain = onnxruntime.InferenceSession(
                fast.to_onnx(input_type="float64", certain=True).SerializeToString(), providers=["CPUExecutionProvider"]
            ).run(["label", "certain"], {"X": WHOLE})
            np.testing.assert_array_equal(label[certain], source.predict(WHOLE)[certain])
    source = OneVsRestClassifier(make_pipeline(RBFSampler(), LogisticRegression())).fit(X, KINDS)
    fast = approxsvm.compile(source, labels="probability")
    np.testing.assert_array_equal(fast.predict(X), source.predict_proba(X).argmax(axis=1))
    with pytest.raises(UnsupportedModelError, match="needs a model with class probabilities"):
        approxsvm.compile(SOURCES["votes"]().fit(X, KINDS), labels="probability")


def test_one_target_has_a_column():
    source = MultiOutputClassifier(SVC()).fit(X, KINDS[:, None])
    fast = approxsvm.compile(source)
    for answers in (fast.predict(X), fast.certified(X), approxsvm.Predictor(fast.artifact.data).predict(X)):
        assert answers.shape == (len(X), 1)
    assert fast.predict_one(X[0]).shape == (1,)
    assert fast.score(X, KINDS[:, None]) == source.score(X, KINDS[:, None])
    with pytest.raises(InputError, match="y has shape"):
        fast.score(X, KINDS)


def test_votes_have_no_numbers():
    fast = approxsvm.compile(SOURCES["votes"]().fit(X, KINDS))
    predictor = approxsvm.Predictor(fast.artifact.data)
    for method in ("decision_function", "error_bound", "predict_proba"):
        with pytest.raises(InputError):
            getattr(predictor, method)(X)


# --- what strangers found


def soft(weights, **options):
    members = [("a", LogisticRegression()), ("b", LogisticRegression(C=1e-3)), ("c", LogisticRegression(C=0.1))]
    return VotingClassifier(members[: len(weights)], voting="soft", weights=weights, **options).fit(X, KINDS % 2)


def test_thresholds_of_weighted_means():
    source = FixedThresholdClassifier(soft([1, 9]), threshold=0.5).fit(X, KINDS % 2)
    fast = assert_labels_are_the_source_s(source, X)
    np.testing.assert_allclose(fast.predict_proba(X), source.predict_proba(X), atol=1e-14)
    shares = approxsvm.compile(source, labels="probability")
    np.testing.assert_array_equal(shares.predict(X), source.predict_proba(X).argmax(axis=1))


def test_means_by_subnormal_weights():
    source = soft([1e-323, 5e-324, 5e-324])
    fast = approxsvm.compile(source)
    members = [member.predict_proba(X) for member in source.estimators_]
    mean = (2 * members[0] + members[1] + members[2]) / 4
    np.testing.assert_allclose(fast.predict_proba(X), mean, rtol=0, atol=1e-15)
    certified = fast.certified(X)
    assert certified.any()
    np.testing.assert_array_equal(fast.predict(X)[certified], mean.argmax(axis=1)[certified])


def test_boosting_that_ends_after_one_member_is_a_vote():
    y = (X[:, 0] > 0).astype(int)
    source = AdaBoostClassifier(LinearSVC()).fit(X + 8 * y[:, np.newaxis], y)
    assert len(source.estimators_) == 1
    fast = assert_labels_are_the_source_s(source, WHOLE)
    assert fast.artifact.has_labels_alone
    for outer in (OneVsRestClassifier(source), FixedThresholdClassifier(source, threshold=0.3)):
        with pytest.raises(UnsupportedModelError, match="votes of 1"):
            read_any(outer.fit(X + 8 * y[:, np.newaxis], y))


def test_sums_of_boosted_votes_that_rounding_tells_apart():
    """0.5 + 0.5 + 0.5 for one class and 0.7 + 0.1 + 0.7 for another: what is greater is up to rounding."""
    y = np.arange(len(X)) % 4
    source = AdaBoostClassifier(LinearSVC(), n_estimators=6).fit(X, y)
    source.estimators_ = []
    for winner in (0, 1, 0, 0, 1, 1):
        member = LinearSVC().fit(X, y)
        member.coef_, member.intercept_ = np.zeros((4, 3)), np.where(np.arange(4) == winner, 1.0, -1.0)
        source.estimators_.append(member)
    source.estimator_weights_ = np.array([0.5, 0.7, 0.5, 0.5, 0.1, 0.7])
    fast = assert_labels_are_the_source_s(source, WHOLE)
    assert not fast.certified(WHOLE).any()
    onnx = onnxruntime.InferenceSession(
        fast.to_onnx(input_type="float64", certain=True).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    label, certain = onnx.run(["label", "certain"], {"X": WHOLE})
    np.testing.assert_array_equal(label, source.predict(WHOLE))
    assert not certain.any()
    model = read_any(source)
    values = [np.tile(member.intercept, (5, 1)) for member in model.members]
    classes, certain = classes_of(model, values, [np.zeros((5, 1))] * 6)
    np.testing.assert_array_equal(classes, source.predict(WHOLE[:5]))
    assert not certain.any()
    plain = replace(model, outputs=replace(model.outputs, weights=np.ones(6), addend=0.0))
    assert classes_of(plain, values, [np.zeros((5, 1))] * 6)[1].all()  # three votes each: a tie that nothing rounds


def test_sums_of_values_beyond_float64():
    source = StackingRegressor([("a", Ridge()), ("b", make_pipeline(StandardScaler(), Ridge()))], Ridge(), cv=2).fit(
        X, TARGET
    )
    source.final_estimator_.coef_ = np.array([1.5e308, -1.5e308])
    with pytest.raises(InputError, match="exceeds the range of float64"):
        approxsvm.compile(source).predict(100 * X)


def test_several_labels_for_each_row_are_refused():
    several = np.eye(3, dtype=int)[KINDS]
    several[::3, 0] = 1
    with pytest.raises(UnsupportedModelError, match="several labels for each row"):
        read_any(RidgeClassifier().fit(X, several))


@pytest.mark.parametrize("step", [None, Nystroem(gamma=0.5, n_components=9, random_state=0)], ids=str)
def test_probabilities_that_are_all_0(step):
    """scikit-learn leaves them 0 against the rest, but makes those of a classifier of several classes alike."""
    linear = SGDClassifier(loss="modified_huber", random_state=0)
    rows = X if step is None else step.fit_transform(X)
    source = OneVsRestClassifier(linear).fit(rows, KINDS)
    plain = SGDClassifier(loss="modified_huber", random_state=0).fit(rows, KINDS)
    for member in source.estimators_:
        member.intercept_ = member.intercept_ - 0.5
    plain.intercept_ = plain.intercept_ - 0.5
    for fitted, share in ((source, 0.0), (plain, 1 / 3)):
        whole = fitted if step is None else make_pipeline(step, fitted)
        fast, expected = approxsvm.compile(whole), whole.predict_proba(X)
        empty = (expected == share).all(axis=1)
        assert 0 < empty.sum() < len(X)
        np.testing.assert_allclose(fast.predict_proba(X), expected, atol=1e-9)
        np.testing.assert_array_equal(fast.predict_proba(X)[empty], expected[empty])
        assert (np.abs(fast.predict_proba(X) - expected) <= fast.probability_bound(X) + 1e-12).all()
        onnx = onnxruntime.InferenceSession(
            fast.to_onnx(input_type="float64").SerializeToString(), providers=["CPUExecutionProvider"]
        )
        np.testing.assert_allclose(onnx.run(["probabilities"], {"X": X})[0], expected, atol=1e-9)


def test_what_the_source_has_not_is_not_there():
    y = KINDS % 2
    calibrated = CalibratedClassifierCV(SVC(gamma=0.5), ensemble=False, cv=2)
    for source in (
        FixedThresholdClassifier(calibrated, threshold=0.4),
        VotingClassifier([("a", SVC(gamma=0.5))]),
        VotingClassifier([("a", LogisticRegression()), ("b", "drop")]),
    ):
        fast = assert_labels_are_the_source_s(source.fit(X, y), WHOLE)
        assert fast.certified(WHOLE).mean() > 0.9
        for method in ("decision_function", "predict_proba"):
            assert hasattr(fast, method) == hasattr(source, method)
    bag = BaggingClassifier(SVC(gamma=0.5), 1, random_state=0).fit(X, y)
    values = approxsvm.compile(bag).decision_function(X)
    np.testing.assert_allclose(values, bag.decision_function(X), atol=1e-12)


def test_messages_say_what_is_not_read():
    y = KINDS % 2
    votes = approxsvm.compile(AdaBoostClassifier(LogisticRegression(), n_estimators=3).fit(X, y))
    for method in ("predict_proba", "decision_function"):
        assert hasattr(votes, method)
        with pytest.raises(InputError, match=r"from the estimators of compile\(\) and load\(\) alone"):
            getattr(approxsvm.Predictor(votes.artifact.data), method)(X)
    rest = approxsvm.compile(OneVsRestClassifier(SVC(probability=True)).fit(X, KINDS))
    with pytest.raises(AttributeError) as info:
        rest.predict_proba(X)
    assert "the source has none, or none that are read" in str(info.value)


def test_weights_that_subtract_or_overflow():
    members = [("a", SVR(gamma=0.3)), ("b", SVR(gamma=2.0)), ("c", Ridge())]
    for chosen, weights in ((members, [-0.5, 2, 0.25]), (members[:2], [3, -1]), (members[1:], [-3, 1])):
        source = VotingRegressor(chosen, weights=weights).fit(X, TARGET)
        fast = approxsvm.compile(source)
        error = np.abs(fast.predict(WHOLE) - source.predict(WHOLE))
        assert (error <= fast.error_bound(WHOLE) + 1e-12).all()
    for voting in ("hard", "soft"):
        inner = [(name, LogisticRegression()) for name in "ab"]
        source = VotingClassifier(inner, voting=voting, weights=[1e308, 1e308]).fit(X, KINDS)
        with pytest.raises(ModelFormatError, match="weights of this VotingClassifier are"):
            read_any(source)


def test_inverse_temperatures_that_overflow():
    with pytest.raises(ModelFormatError, match=r"the inverse temperature is 1e\+308, but must be above 0, and at most"):
        TemperatureCalibration(1e308)
    outputs = Outputs(TemperatureCalibration(2.0**512), "probability", "each")
    for scale in (1e-150, 1.0, 1e250):
        model = replace(several_kernels(np.random.default_rng(1), 3, kernel="cubic"), outputs=outputs)
        model = replace(model, dual_coef=model.dual_coef * scale)
        shares = approxsvm.compile(model).predict_proba(WHOLE)
        assert np.isfinite(shares).all()
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
