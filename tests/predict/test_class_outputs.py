"""Outputs from decision values: votes, scores and probabilities against LIBSVM's and scikit-learn's own.

Tests of values run on the core's functions and on the oracle's; tests/predict/test_outputs.py compares the two.
"""

from __future__ import annotations

import ctypes
import itertools
from functools import cache

import numpy as np
import pytest
from libsvm.svm import gen_svm_nodearray, libsvm, svm_problem
from libsvm.svmutil import svm_train
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.svm import SVC
from sklearn.utils.multiclass import _ovr_decision_function
from zoo import class_numbers
from zoo.balls import Ball

from approxsvm.errors import ModelFormatError
from approxsvm.evaluator import native_outputs
from approxsvm.model.outputs import (
    DensityMarks,
    IsotonicCalibrator,
    LaplaceNoise,
    OneVsRestCalibration,
    Outputs,
    PairwiseSigmoid,
    SigmoidCalibrator,
    TemperatureCalibration,
    count_classes,
)

COUPLING_TOLERANCE = 0.005  # LIBSVM's


class Core:
    """The core's functions."""

    def __call__(self, rule, values):
        if isinstance(rule.probability, DensityMarks):
            return native_outputs(rule, "one_class", 0)
        return native_outputs(rule, "classification", count_classes(values.shape[1]))

    def one_vs_rest_scores(self, values):
        return self(Outputs(), values).one_vs_rest_scores(values)

    def one_vs_rest_interval(self, values, bounds):
        return self(Outputs(), values).one_vs_rest_interval(values, bounds)

    def predicted_class(self, rule, values):
        return self(rule, values).predicted_class(values)

    def certified_class(self, rule, values, bounds):
        return self(rule, values).certified_class(values, bounds)

    def probabilities(self, head, values):
        return self(Outputs(head), values).probabilities(values)

    def probability_interval(self, head, values, bounds):
        return self(Outputs(head), values).probability_interval(values, bounds)

    def probability_bounds(self, head, values, bounds):
        given, (lowest, highest) = self.probabilities(head, values), self.probability_interval(head, values, bounds)
        return np.maximum(highest - given, given - lowest)


class Oracle:
    """The oracle's functions of the same names, rounded to float64."""

    def one_vs_rest_scores(self, values):
        return class_numbers.one_vs_rest_scores(Ball.of(values)).mid.astype(float)

    def predicted_class(self, rule, values):
        return class_numbers.predicted_class(rule, Ball.of(values))

    def probabilities(self, head, values):
        return class_numbers.probabilities(Outputs(head), Ball.of(values)).mid.astype(float)


CORE = Core()


@pytest.fixture(params=["core", "oracle"])
def outputs(request):
    return CORE if request.param == "core" else Oracle()


def data(n_classes, n_rows=240, seed=0):
    return make_classification(
        n_rows, 8, n_informative=6, n_classes=n_classes, n_clusters_per_class=1, random_state=seed
    )


def pairwise_by_hand(values, n_classes):
    count = [0] * n_classes
    for value, (i, j) in zip(values, itertools.combinations(range(n_classes), 2), strict=True):
        count[i if value > 0 else j] += 1
    return count.index(max(count))


@pytest.mark.parametrize("n_classes", [2, 3, 4, 7])
def test_votes_count_as_libsvm_counts_them(n_classes, outputs):
    rng = np.random.default_rng(n_classes)
    values = rng.choice([-1.0, -0.0, 0.0, 0.5], size=(500, n_classes * (n_classes - 1) // 2))
    expected = [pairwise_by_hand(row, n_classes) for row in values]
    np.testing.assert_array_equal(outputs.predicted_class(Outputs(), values), expected)


def test_zero_votes_for_the_second_class_and_ties_for_the_first(outputs):
    for row, winner in ([0.0], 1), ([-0.0], 1), ([1.0, -1.0, 1.0], 0):  # one vote each
        assert outputs.predicted_class(Outputs(), np.array([row])) == winner
    assert class_numbers.winner(np.empty((2, 0))).tolist() == [0, 0]  # a single class


def test_values_that_are_no_pairs_are_refused():
    with pytest.raises(ModelFormatError, match="5 decision values"):
        class_numbers.winner(np.zeros((1, 5)))


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
def test_certified_winners_are_exactly_those_that_no_outcome_changes(n_classes):
    rng = np.random.default_rng(n_classes)
    n_pairs = n_classes * (n_classes - 1) // 2
    values = np.round(rng.normal(size=(400, n_pairs)), 1)
    values[rng.random(values.shape) < 0.03] = np.nan
    bounds = rng.choice([0.0, 0.3, 1.0, np.inf, np.nan], size=values.shape, p=[0.4, 0.2, 0.2, 0.1, 0.1])
    winners, certified = CORE.certified_class(Outputs(), values, bounds)
    for row in range(len(values)):
        outcomes = [[v] if v > b or v <= -b else [-1.0, 1.0] for v, b in zip(values[row], bounds[row], strict=True)]
        possible = {pairwise_by_hand(outcome, n_classes) for outcome in itertools.product(*outcomes)}
        assert certified[row] == (len(possible) == 1)
        assert not certified[row] or possible == {winners[row]}
    assert certified.any()
    assert not certified.all()


def test_a_class_that_wins_all_its_pairs_needs_no_other():
    values = np.array([[-1.0, 0.0, 0.0, 2.0, 3.0, 0.0]])  # class 1 of 4 beats 0, 2 and 3
    bounds = np.array([[0.1, np.inf, np.inf, 0.1, 0.1, np.inf]])
    winners, certified = CORE.certified_class(Outputs(), values, bounds)
    assert (winners.tolist(), certified.tolist()) == ([1], [True])


@pytest.mark.parametrize("n_classes", [3, 5])
def test_scores_are_scikit_learns(n_classes, outputs):
    rng = np.random.default_rng(1)
    values = rng.normal(size=(300, n_classes * (n_classes - 1) // 2)) * 10.0 ** rng.integers(-3, 3, size=(300, 1))
    values[:20] = 0.0
    expected = _ovr_decision_function(values < 0, -values, n_classes)
    np.testing.assert_allclose(outputs.one_vs_rest_scores(values), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("break_ties", [False, True])
def test_predicted_classes_are_scikit_learns(break_ties, outputs):
    X, y = data(5)
    svc = SVC(gamma=2.0, break_ties=break_ties).fit(X, y)
    rows = np.random.default_rng(0).normal(size=(2000, 8)) * 3
    pairs = SVC.decision_function(svc.set_params(decision_function_shape="ovo"), rows)
    svc.set_params(decision_function_shape="ovr")
    rule = Outputs(label_rule="scores" if break_ties else "votes")
    np.testing.assert_array_equal(outputs.predicted_class(rule, pairs), svc.predict(rows))


@pytest.mark.parametrize("n_classes", [3, 4])
def test_score_intervals_hold_every_score_the_bounds_allow(n_classes):
    rng = np.random.default_rng(0)
    n_pairs = n_classes * (n_classes - 1) // 2
    values = rng.normal(size=(500, n_pairs))
    bounds = np.abs(rng.normal(size=values.shape)) * rng.choice([1e-12, 1e-3, 0.3], size=values.shape)
    lowest, highest = CORE.one_vs_rest_interval(values, bounds)
    winners, certified = CORE.certified_class(Outputs(label_rule="scores"), values, bounds)
    for corner in itertools.product([-1.0, 0.2, 1.0], repeat=n_pairs):
        scores = CORE.one_vs_rest_scores(values + bounds * np.array(corner))
        assert (scores >= lowest).all()
        assert (scores <= highest).all()
        assert (scores.argmax(axis=1) == winners)[certified].all()
    assert certified.any()
    tight = CORE.one_vs_rest_interval(values, np.full_like(values, 1e-9))
    assert (tight[1] - tight[0]).max() < 1e-8
    unknown = CORE.one_vs_rest_interval(values, np.full_like(values, np.inf))
    assert (unknown[0] <= 0).all()
    assert (unknown[1] >= n_classes - 1).all()


def train_libsvm(options, n_classes, seed=0):
    X, y = data(n_classes, seed=seed)
    problem = svm_problem(y.tolist(), X.tolist())
    model = svm_train(problem, options + " -q")
    model.problem = problem  # the support vectors lie in its memory
    return model


def libsvm_outputs(model, rows, probability):
    """Labels with decision values or probabilities, by the C functions: svm_predict of Python gives svm_predict_values
    too short a buffer for nu_svc of several classes."""
    n_classes = model.get_nr_class()
    classification = model.get_svm_type() in (0, 1)
    n_decisions = n_classes * (n_classes - 1) // 2 if classification else 1
    buffer = (ctypes.c_double * (n_classes if probability else n_decisions))()
    call = libsvm.svm_predict_probability if probability else libsvm.svm_predict_values
    labels, values = [], []
    for row in rows.tolist():
        labels.append(call(model, gen_svm_nodearray(row)[0], buffer))
        values.append(list(buffer))
    return np.array(labels), np.array(values)


@cache
def libsvm_answers(options, n_classes, n_rows):
    """A model, and of random rows values, labels with probabilities, and these."""
    model = train_libsvm(options, n_classes)
    rows = np.random.default_rng(0).normal(size=(n_rows, 8)) * 2
    return model, libsvm_outputs(model, rows, 0)[1], *libsvm_outputs(model, rows, 1)


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("svm_type", [0, 1])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_probabilities_are_libsvms_to_the_last_bit_or_nearly(n_classes, svm_type, outputs):
    model, values, labels, expected = libsvm_answers(f"-s {svm_type} -g 0.1 -b 1 -n 0.2", n_classes, 300)
    n_pairs = values.shape[1]
    head = PairwiseSigmoid(np.array(model.probA[:n_pairs]), np.array(model.probB[:n_pairs]))
    given = outputs.probabilities(head, values)
    np.testing.assert_allclose(given, expected, rtol=0, atol=1e-12)
    rule = Outputs(probability=head, label_rule="probability")
    np.testing.assert_array_equal(np.array(model.get_labels())[outputs.predicted_class(rule, values)], labels)


def test_density_marks_are_libsvms(outputs):
    model, values, labels, expected = libsvm_answers("-s 2 -g 0.1 -b 1 -n 0.3", 2, 400)
    marks = np.array(model.prob_density_marks[:10])
    head = DensityMarks(marks)
    np.testing.assert_allclose(outputs.probabilities(head, values), expected, rtol=0, atol=1e-16)
    assert len(np.unique(expected[:, 0])) > 3
    np.testing.assert_array_equal(np.where(values[:, 0] > 0, 1, -1), labels)
    # LIBSVM gives 0 to a value that equals the last mark: it is neither above it nor below any.
    edges = outputs.probabilities(head, marks[:, np.newaxis])[:, 0]
    np.testing.assert_allclose(edges, [*np.arange(1, 10) / 10, 0.0])


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_probabilities_are_those_of_scikit_learns_own_libsvm(n_classes, outputs):
    X, y = data(n_classes)
    svc = SVC(probability=True, random_state=0, decision_function_shape="ovo").fit(X, y)
    rows = np.random.default_rng(0).normal(size=(500, 8)) * 2
    values = svc.decision_function(rows).reshape(len(rows), -1)
    raw = -values if n_classes == 2 else values
    head = PairwiseSigmoid(svc._probA, svc._probB, couple_two_classes=True)
    np.testing.assert_allclose(outputs.probabilities(head, raw), svc.predict_proba(rows), rtol=0, atol=1e-12)
    if n_classes == 2:  # where LIBSVM itself would take the sigmoid
        plain = outputs.probabilities(PairwiseSigmoid(svc._probA, svc._probB), raw)
        assert 1e-5 < np.abs(plain - svc.predict_proba(rows)).max() < COUPLING_TOLERANCE


def test_two_coupled_classes_stop_within_the_stated_distance(outputs):
    logits = np.linspace(-17, 17, 200_001)
    head = PairwiseSigmoid(np.array([-1.0]), np.array([0.0]), couple_two_classes=True)
    plain = PairwiseSigmoid(np.array([-1.0]), np.array([0.0]))
    off = np.abs(outputs.probabilities(head, logits[:, None]) - outputs.probabilities(plain, logits[:, None]))
    assert off.max() < COUPLING_TOLERANCE


def calibration_of(fitted):
    """Outputs by hand from what scikit-learn fitted (the readers do the same)."""
    method, calibrators = fitted.method, fitted.calibrators
    if method == "temperature":
        return TemperatureCalibration(float(calibrators[0].beta_))
    if method == "sigmoid":
        return OneVsRestCalibration(tuple(SigmoidCalibrator(c.a_, c.b_) for c in calibrators))
    return OneVsRestCalibration(tuple(IsotonicCalibrator(c.X_thresholds_, c.y_thresholds_) for c in calibrators))


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_calibration_is_scikit_learns(method, n_classes, outputs):
    X, y = data(n_classes)
    fitted = CalibratedClassifierCV(SVC(), method=method, ensemble=False).fit(X, y)
    rows = np.random.default_rng(0).normal(size=(500, 8)) * 2
    inner = fitted.calibrated_classifiers_[0]
    inner.estimator.set_params(decision_function_shape="ovo")
    values = inner.estimator.decision_function(rows).reshape(len(rows), -1)
    inner.estimator.set_params(decision_function_shape="ovr")
    raw = -values if n_classes == 2 else values
    head = calibration_of(inner)
    np.testing.assert_allclose(outputs.probabilities(head, raw), fitted.predict_proba(rows), rtol=0, atol=1e-12)
    rule = Outputs(probability=head, label_rule="probability")
    np.testing.assert_array_equal(outputs.predicted_class(rule, raw), fitted.predict(rows))


def some_heads(n_classes):
    rng = np.random.default_rng(3)
    n_pairs = n_classes * (n_classes - 1) // 2
    n = 1 if n_classes == 2 else n_classes
    knots = np.sort(rng.normal(size=(n, 9)), axis=1) * (1 if n_classes == 2 else n_classes / 2)
    steps = np.sort(rng.uniform(size=(n, 9)), axis=1)
    yield PairwiseSigmoid(rng.normal(size=n_pairs) - 3, rng.normal(size=n_pairs))
    yield PairwiseSigmoid(rng.normal(size=n_pairs) - 3, rng.normal(size=n_pairs), couple_two_classes=True)
    yield OneVsRestCalibration(tuple(SigmoidCalibrator(-3.0 * rng.uniform(), rng.normal()) for _ in range(n)))
    yield OneVsRestCalibration(tuple(SigmoidCalibrator(0.0, 0.3) for _ in range(n)), positive=0)
    yield OneVsRestCalibration(tuple(IsotonicCalibrator(k, s) for k, s in zip(knots, steps, strict=True)))
    yield TemperatureCalibration(1.7)
    if n_classes > 2:
        yield OneVsRestCalibration(
            tuple(IsotonicCalibrator(k, s) for k, s in zip(knots, steps, strict=True)), decision_shape="ovo"
        )
    else:
        yield TemperatureCalibration(0.6, positive=0)
        yield DensityMarks(np.sort(rng.normal(size=10)))


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_probability_bounds_hold_and_certified_labels_too(n_classes):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, n_classes * (n_classes - 1) // 2))
    bounds = np.abs(rng.normal(size=values.shape)) * rng.choice([0.0, 1e-9, 1e-3, 0.5], size=(400, 1))
    for head in some_heads(n_classes):
        given, off = CORE.probabilities(head, values), CORE.probability_bounds(head, values, bounds)
        rule = None
        if not isinstance(head, DensityMarks):
            rule = Outputs(probability=head, label_rule="probability")
            winners, certified = CORE.certified_class(rule, values, bounds)
        for _ in range(200):
            exact = values + bounds * rng.choice([-1.0, -0.5, 0.3, 1.0], size=values.shape)
            assert (np.abs(CORE.probabilities(head, exact) - given) <= off).all(), head
            if rule is not None:
                assert (CORE.predicted_class(rule, exact) == winners)[certified].all()
        lowest, highest = CORE.probability_interval(head, values, np.full_like(values, np.inf))
        assert ((lowest <= given) & (given <= highest)).all()
        if isinstance(head, (PairwiseSigmoid, DensityMarks)):
            continue
        tight = CORE.probability_bounds(head, values, np.full_like(values, 1e-12))
        assert tight.max() < 1e-9, head


def test_two_class_bounds_stay_within_the_slope():
    values = np.linspace(-3, 3, 1001)[:, np.newaxis]
    bounds = np.full_like(values, 1e-3)
    off = CORE.probability_bounds(PairwiseSigmoid(np.array([-2.5]), np.array([0.3])), values, bounds)
    assert (off <= 2.5 / 4 * 1e-3 + 1e-13).all()
    assert off.max() > 0.99 * 2.5 / 4 * 1e-3


def test_several_coupled_classes_are_not_bounded():
    head = PairwiseSigmoid(np.full(3, -2.0), np.zeros(3))
    values = np.random.default_rng(0).normal(size=(5, 3))
    given = CORE.probabilities(head, values)
    off = CORE.probability_bounds(head, values, np.zeros_like(values))
    np.testing.assert_array_equal(off, np.maximum(given, 1 - given))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PairwiseSigmoid(np.zeros(2), np.zeros(3)), "prob_a has shape"),
        (lambda: PairwiseSigmoid(np.zeros(2), np.zeros(2)), "2 decision values"),
        (lambda: PairwiseSigmoid(np.array([np.nan]), np.zeros(1)), "prob_a holds NaN"),
        (lambda: LaplaceNoise(-1.0), "laplace sigma is -1.0"),
        (lambda: DensityMarks(np.zeros(9)), "9 density marks instead of 10"),
        (lambda: DensityMarks(np.arange(10.0)[::-1]), "density marks .* do not ascend"),
        (lambda: SigmoidCalibrator(np.inf, 0.0), "slope holds"),
        (lambda: IsotonicCalibrator(np.zeros(2), np.zeros(2)), "knots do not ascend"),
        (lambda: IsotonicCalibrator(np.arange(3.0), np.array([0.0, 1.0, 0.5])), "not monotone"),
        (lambda: IsotonicCalibrator(np.arange(2.0), np.array([1.0, 0.0])), "not monotone"),
        (lambda: IsotonicCalibrator(np.arange(2.0), np.array([-0.1, 1.0])), "goes from -0.1 to 1.0"),
        (lambda: IsotonicCalibrator(np.arange(2.0), np.array([0.0, 1.1])), "goes from 0.0 to 1.1"),
        (lambda: IsotonicCalibrator(np.array([0.0, 5e-324]), np.array([0.0, 1.0])), "too steep"),
        (lambda: IsotonicCalibrator(np.array([-1e308, 1e308]), np.array([0.0, 1.0])), "too flat"),
        (lambda: OneVsRestCalibration(()), "0 calibrators"),
        (lambda: TemperatureCalibration(0.0), "inverse temperature is 0.0"),
        (lambda: Outputs(label_rule="probability"), "need class probabilities"),
        (lambda: Outputs(label_rule="dice"), "unknown label rule 'dice'"),
        (lambda: Outputs(decision_shape="ovx"), "decision_shape is 'ovx'"),
        (
            lambda: Outputs(probability=LaplaceNoise(1.0)).check("classification", 2),
            "cannot have probabilities by Laplace",
        ),
        (
            lambda: Outputs(probability=PairwiseSigmoid(np.zeros(1), np.zeros(1))).check("classification", 3),
            "1 pairwise",
        ),
        (lambda: Outputs(label_rule="scores").check("one_class", 0), "one_class model cannot label by scores"),
    ],
)
def test_heads_are_validated_when_built(build, message):
    with pytest.raises(ModelFormatError, match=message):
        build()
