"""Rules that combine functions, models or a threshold into a label: refusals, and effects of rounding.

The zoo compares their answers, including at ties and for values of exactly 0.
"""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, StackingRegressor, VotingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import InputError, ModelFormatError, UnsupportedModelError
from approxsvm.frontends import read_any
from approxsvm.ir.ensembles.combination import Combination
from approxsvm.ir.ensembles.ensemble import Ensemble, mean_of
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.outputs import Outputs, TemperatureCalibration

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
EACH = Outputs(label_rule="scores", decision_shape="each")


def edited(linear, seed=0):
    """Return the fitted linear model with coefficients set to small integers, so that values tie or are exactly 0."""
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


def in_onnx(fast, rows):
    session = onnxruntime.InferenceSession(
        fast.to_onnx(input_type="float64", certain=True).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["label", "certain"], {"X": rows})


SEVERAL = np.column_stack([X[:, 0] > 0, TARGET > 0.2, KINDS == 1, X[:, 2] > 1]).astype(int)


def voting(members, y, weights=None):
    source = VotingClassifier([(str(k), member) for k, member in enumerate(members)], weights=weights).fit(X, y)
    for seed, member in enumerate(source.estimators_):
        edited(member, seed)
    return source


def threshold(inner, y, positive, at):
    source = FixedThresholdClassifier(inner, threshold=at, pos_label=np.unique(y)[positive]).fit(X, y)
    edited(source.estimator_)
    return source


FOUR = [LinearSVC(), LogisticRegression(), Perceptron(), RidgeClassifier()]


def test_equal_plateaus():
    """Isotonic probabilities are often equal to each other or to the threshold."""
    inner = CalibratedClassifierCV(LinearSVC(), method="isotonic", ensemble=False, cv=2)
    assert_labels_are_the_source_s(OneVsRestClassifier(inner).fit(X, LABELS["texts"][KINDS]), X)
    y = LABELS["texts"][KINDS % 2]
    inner.fit(X, y)
    for positive in (0, 1):
        for plateau in np.unique(inner.predict_proba(X)[:, positive])[::3]:
            source = FixedThresholdClassifier(inner, threshold=plateau, pos_label=np.unique(y)[positive]).fit(X, y)
            source.estimator_ = inner
            assert_labels_are_the_source_s(source, X)


# --- bounds


def test_members_share_their_vectors():
    targets = np.column_stack([TARGET, TARGET**2, X[:, 0]])
    for source, y, n_functions in (
        (OneVsRestClassifier(SVC(gamma=0.5)), KINDS, 3),
        (OneVsRestClassifier(SVC(gamma=0.5)), SEVERAL, 4),
        (KernelRidge(kernel="rbf", gamma=0.5), targets, 3),
        (MultiOutputRegressor(SVR(gamma=0.5)), targets, 3),
    ):
        artifact = approxsvm.compile(source.fit(X, y), mode="exact").artifact
        (member,) = artifact.members or [artifact]
        assert member.n_decisions == n_functions
        assert member.header["n_support_vectors"] <= len(X)


def test_requests_that_rules_refuse():
    y = KINDS % 2
    stack = StackingClassifier([("a", LinearSVC()), ("b", SVC())], cv=2).fit(X, y)
    with pytest.raises(UnsupportedModelError, match="weighted sum of several models has no gradient"):
        approxsvm.compile(stack).gradient(X)
    with pytest.raises(UnsupportedModelError, match="cannot be promised for a weighted sum of 2 models"):
        approxsvm.compile(stack, tolerance=0.1)
    source = StackingRegressor([("a", Ridge()), ("b", make_pipeline(StandardScaler(), Ridge()))], Ridge(), cv=2)
    source.fit(X, TARGET).final_estimator_.coef_ = np.array([1.5e308, -1.5e308])
    with pytest.raises(InputError, match="exceeds the range of float64"):
        approxsvm.compile(source).predict(100 * X)
    one = approxsvm.compile(MultiOutputClassifier(SVC()).fit(X, y[:, np.newaxis]))
    for ask, error, message in (
        (lambda: one.score(X, y), InputError, "y has shape"),
        (lambda: one.certified_radius(X), UnsupportedModelError, "not an ensemble"),
        (lambda: one.gradient(X), UnsupportedModelError, "gradient|slope"),
        (lambda: one.report(X), InputError, "one label per row"),
    ):
        with pytest.raises(error, match=message):
            ask()
    votes = approxsvm.Predictor(approxsvm.compile(voting(FOUR, KINDS)).artifact.data)
    for method in ("decision_function", "error_bound", "predict_proba"):
        with pytest.raises(InputError):
            getattr(votes, method)(X)
    bag = approxsvm.compile(BaggingClassifier(SVC(), n_estimators=3).fit(X, y))
    for method in ("predict_proba", "decision_function"):
        assert hasattr(bag, method)
        with pytest.raises(InputError, match=r"only available from the estimators of compile\(\) and load\(\)"):
            getattr(approxsvm.Predictor(bag.artifact.data), method)(X)
    rest = approxsvm.compile(OneVsRestClassifier(SVC(probability=True)).fit(X, KINDS))
    with pytest.raises(AttributeError, match="the source has none, or none that can be read"):
        rest.predict_proba(X)


# --- stacks


@pytest.mark.parametrize(
    ("source", "y", "message"),
    [
        (StackingClassifier([("a", SVC(decision_function_shape="ovo"))], cv=2), KINDS, "uses decision_function"),
        (StackingClassifier([("a", SVC())], stack_method="predict", cv=2), KINDS, "uses predict of a sklearn SVC"),
        (
            make_pipeline(Nystroem(n_components=3), StackingClassifier([("a", LinearSVC())], passthrough=True, cv=2)),
            KINDS,
            "passthrough=True after it",
        ),
        (MultiOutputClassifier(CalibratedClassifierCV(SVC(), cv=2)), SEVERAL[:, :2], "around a mean of 2"),
        (OneVsRestClassifier(CalibratedClassifierCV(SVC(), cv=2)), SEVERAL, "around a mean of 2"),
        (StackingClassifier([("a", SVC())], SVC(), cv=2), KINDS % 2, "whose final_estimator_ is a SVC"),
        (StackingClassifier([("a", SVC())], stack_method="predict", cv=2), KINDS % 2, "uses predict of a sklearn SVC"),
        (OneVsRestClassifier(BaggingClassifier(LinearSVC(), 2)), KINDS, "around a votes of 2"),
        (OneVsRestClassifier(SVC()), csr_array(SEVERAL), "sparse indicator matrix"),
        (OneVsRestClassifier(SVC()), 0 * SEVERAL, "with only constant labels"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_of_these_is_refused(source, y, message):
    source.fit(X, y)
    with pytest.raises(UnsupportedModelError, match=message):
        read_any(source)


# --- invalid combinations


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


VOTERS = (machine(task="classification", labels=np.arange(2)),) * 2


def votes_of(weights, outputs=Outputs()):  # noqa: B008
    return Ensemble(VOTERS, outputs=outputs, combination=Combination("votes", weights))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mean_of(VOTERS, np.arange(2), [1.0, -1.0]), "weights of a mean must be at least 0"),
        (lambda: mean_of(VOTERS, np.arange(2), [0.0, 0.0]), "the total of the weights is 0.0"),
        (lambda: mean_of(VOTERS, np.arange(1), [1.0, 1.0]), r"members must have labels among \[0\], got 1"),
        (lambda: Ensemble(VOTERS), "has no numbers to combine"),
        (lambda: votes_of(np.ones((2, 3))), r"have 4 columns for weights of \(2, 3\)"),
        (lambda: votes_of(np.ones((3, 4))), "3 values of 2 members .* are not functions of 2 classes"),
        (lambda: votes_of(np.full((2, 4), np.inf)), "weights and addends must be finite"),
        (lambda: votes_of(np.ones(4)), "do not match"),
        (
            lambda: votes_of(np.ones((2, 4)), Outputs(label_rule="scores")),
            "votes cannot label by scores",
        ),
        (
            lambda: Ensemble((machine(),) * 2, outputs=EACH, classes=np.arange(3)),
            r"2 members .arrays. are not functions of 3 classes",
        ),
        (lambda: Ensemble((machine(),) * 3, outputs=EACH), "an ensemble of numbers cannot label by scores"),
        (
            lambda: Outputs(label_rule="value_threshold", threshold=0.0).check("classification", 3),
            "a threshold cannot separate 3 classes",
        ),
        (lambda: Outputs(label_rule="value_threshold"), "the threshold is None for labels by value_threshold"),
    ],
)
def test_rules_that_contradict_themselves(make, message):
    with pytest.raises(ModelFormatError, match=message):
        make()


# --- faults found by independent testers


def soft(weights):
    members = [("a", LogisticRegression()), ("b", LogisticRegression(C=1e-3)), ("c", LogisticRegression(C=0.1))]
    return VotingClassifier(members[: len(weights)], voting="soft", weights=weights).fit(X, KINDS % 2)


def test_means_by_subnormal_weights():
    source = soft([1e-323, 5e-324, 5e-324])
    fast = approxsvm.compile(source)
    members = [member.predict_proba(X) for member in source.estimators_]
    mean = (2 * members[0] + members[1] + members[2]) / 4
    np.testing.assert_allclose(fast.predict_proba(X), mean, rtol=0, atol=1e-15)
    certified = fast.certified(X)
    assert certified.any()
    np.testing.assert_array_equal(fast.predict(X)[certified], mean.argmax(axis=1)[certified])


@pytest.mark.parametrize("step", [None, Nystroem(gamma=0.5, n_components=9, random_state=0)], ids=str)
def test_probabilities_that_are_all_0(step):
    """In scikit-learn, they stay 0 in OneVsRestClassifier but become equal in a multiclass classifier."""
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


@pytest.mark.parametrize("rule", ["hard", "soft"])
def test_weights_that_overflow(rule):
    inner = [(name, LogisticRegression()) for name in "ab"]
    with pytest.raises(ModelFormatError, match="weights of this VotingClassifier are"):
        read_any(VotingClassifier(inner, voting=rule, weights=[1e308, 1e308]).fit(X, KINDS))


def test_inverse_temperatures_that_overflow():
    with pytest.raises(ModelFormatError, match=r"the inverse temperature is 1e\+308, but must be above 0 and at most"):
        TemperatureCalibration(1e308)
    rng, outputs = np.random.default_rng(1), Outputs(TemperatureCalibration(2.0**512), "probability", "each")
    numbers = {"support_vectors": rng.normal(size=(9, 3)), "labels": np.arange(3), "intercept": rng.normal(size=3)}
    for scale in (1e-150, 1.0, 1e250):
        coef = scale * rng.normal(size=(3, 9))
        model = machine(task="classification", degree=3, dual_coef=coef, outputs=outputs, **numbers)
        shares = approxsvm.compile(model).predict_proba(WHOLE)
        assert np.isfinite(shares).all()
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)


# --- labels by probability


def test_labels_by_probability_need_some():
    votes = VotingClassifier([("a", SVC()), ("b", LogisticRegression())]).fit(X, KINDS)
    for source in (SVC().fit(X, KINDS), SVR().fit(X, X[:, 0]), votes):
        with pytest.raises(UnsupportedModelError, match="labels='probability' needs a model with class probabilities"):
            approxsvm.compile(source, labels="probability")
    with pytest.raises(ValueError, match="labels is 'votes', but must be 'source' or 'probability'"):
        approxsvm.compile(SVC().fit(X, KINDS), labels="votes")
    logistic = LogisticRegression().fit(X, KINDS > 0)
    assert (approxsvm.compile(logistic, labels="probability").predict(WHOLE) == logistic.predict(WHOLE)).all()


def test_labels_by_probability_on_the_command_line(tmp_path):
    svmutil = pytest.importorskip("libsvm.svmutil")
    model = svmutil.svm_train(KINDS.astype(float).tolist(), X, "-b 1 -q")
    svmutil.svm_save_model(str(tmp_path / "m.model"), model)
    result = CliRunner().invoke(
        main, ["convert-model", str(tmp_path / "m.model"), "-o", str(tmp_path / "m.asvm"), "--labels-by", "probability"]
    )
    assert result.exit_code == 0, result.output
    again = svmutil.svm_load_model(str(tmp_path / "m.model"))
    own = np.array(svmutil.svm_predict([], WHOLE, again, "-b 1 -q")[0])
    assert (approxsvm.load(tmp_path / "m.asvm").predict(WHOLE) == own).all()
