"""Outputs computed from decision values by the core; test_outputs.py compares them with the oracle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from libsvm.svmutil import svm_predict, svm_problem, svm_train
from sklearn.datasets import make_classification

from approxsvm.errors import ModelFormatError
from approxsvm.ir.outputs import (
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
from approxsvm.runtime.evaluator import native_outputs


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


CORE = Core()


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
def test_votes_count_as_libsvm_counts_them(n_classes):
    rng = np.random.default_rng(n_classes)
    values = rng.choice([-1.0, -0.0, 0.0, 0.5], size=(500, n_classes * (n_classes - 1) // 2))
    expected = [pairwise_by_hand(row, n_classes) for row in values]
    np.testing.assert_array_equal(CORE.predicted_class(Outputs(), values), expected)


def test_zero_votes_for_the_second_class_and_ties_for_the_first():
    for row, winner in ([0.0], 1), ([-0.0], 1), ([1.0, -1.0, 1.0], 0):  # one vote each
        assert CORE.predicted_class(Outputs(), np.array([row])) == winner
    values = np.array([[-1.0, 0.0, 0.0, 2.0, 3.0, 0.0]])  # class 1 of 4 beats 0, 2 and 3, so other pairs do not matter
    bounds = np.array([[0.1, np.inf, np.inf, 0.1, 0.1, np.inf]])
    winners, certified = CORE.certified_class(Outputs(), values, bounds)
    assert (winners.tolist(), certified.tolist()) == ([1], [True])


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_certified_winners_are_exactly_those_that_no_outcome_changes(n_classes):
    rng = np.random.default_rng(n_classes)
    n_pairs = n_classes * (n_classes - 1) // 2
    values = np.round(rng.normal(size=(400, n_pairs)), 1)
    bounds = rng.choice([0.0, 0.3, 1.0, np.inf, np.nan], size=values.shape, p=[0.4, 0.2, 0.2, 0.1, 0.1])
    winners, certified = CORE.certified_class(Outputs(), values, bounds)
    for row in range(len(values)):
        outcomes = [[v] if v > b or v <= -b else [-1.0, 1.0] for v, b in zip(values[row], bounds[row], strict=True)]
        possible = {pairwise_by_hand(outcome, n_classes) for outcome in itertools.product(*outcomes)}
        assert certified[row] == (len(possible) == 1)
        assert not certified[row] or possible == {winners[row]}
    assert certified.any()
    assert not certified.all()


def test_density_marks_are_libsvms():
    rows = data(2)[0]
    model = svm_train(svm_problem([1.0] * len(rows), rows.tolist()), "-s 2 -g 0.1 -b 1 -n 0.3 -q")
    _, _, values = svm_predict([], rows.tolist(), model, "-q")
    _, _, expected = svm_predict([], rows.tolist(), model, "-b 1 -q")
    marks = np.array(model.prob_density_marks[:10])
    found = CORE.probabilities(DensityMarks(marks), np.array(values))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-16)
    assert len(np.unique(found)) > 3
    # LIBSVM returns 0 for a value equal to the last mark, because it is neither above that mark nor below any mark.
    edges = CORE.probabilities(DensityMarks(marks), marks[:, np.newaxis])[:, 0]
    np.testing.assert_allclose(edges, [*np.arange(1, 10) / 10, 0.0])


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
        (lambda: PairwiseSigmoid(np.array([np.nan]), np.zeros(1)), "prob_a contains NaN"),
        (lambda: LaplaceNoise(-1.0), "laplace sigma is -1.0"),
        (lambda: DensityMarks(np.zeros(9)), "9 density marks, expected 10"),
        (lambda: DensityMarks(np.arange(10.0)[::-1]), "density marks must ascend"),
        (lambda: SigmoidCalibrator(np.inf, 0.0), "slope contains"),
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
