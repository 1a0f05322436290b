"""Class scores and probabilities in extended precision, from decision values with known error bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from approxsvm.ir.outputs import (
    ClassProbability,
    DensityMarks,
    IsotonicCalibrator,
    OneVsRestCalibration,
    Outputs,
    PairwiseSigmoid,
    Probability,
    TemperatureCalibration,
    class_pairs,
    count_classes,
)
from approxsvm.ir.schema import MAX_EXCESS
from zoo.balls import Ball, Extended, quiet

# LIBSVM's constants in svm_predict_probability and multiclass_probability.
_LEAST = Extended(1e-7)
_COUPLING_TOLERANCE = 0.005
_LEAST_SWEEPS = 100


def has_probabilities(head: Probability | None) -> bool:
    """Return whether probabilities are computed from decision values."""
    return isinstance(head, (ClassProbability, DensityMarks))


def scores(outputs: Outputs, values: Ball) -> Ball:
    """Return each class's score: its own value, or its votes plus a function of the sum of its values."""
    return values if outputs.of_each_class else one_vs_rest_scores(values)


@quiet
def one_vs_rest_scores(values: Ball) -> Ball:
    """Return votes + s / (3 (|s| + 1)), where s sums the values in favor; 0 votes for the first class of its pair."""
    n_classes = count_classes(values.mid.shape[1])
    zeros = np.zeros(len(values.mid))
    votes, sums = [[Ball.of(zeros)] * n_classes for _ in range(2)]
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        value = values[:, k]
        open_vote = np.where(value.straddles_zero, 0.5, 0.0).astype(Extended)
        for_first = Ball(np.where(open_vote > 0, open_vote, ~(value.mid < 0)), open_vote)
        votes[i], votes[j] = votes[i] + for_first, votes[j] + (1 - for_first)
        sums[i], sums[j] = sums[i] + value, sums[j] - value
    found = [vote + s.steps(lambda t: t / (3 * (np.abs(t) + 1))) for vote, s in zip(votes, sums, strict=True)]
    return known(Ball.stack(found).where(~np.isnan(values.mid).any(axis=1, keepdims=True), np.nan))


def winner(values: Any) -> Any:
    """Return the class with the most votes; ties go to the first class; 0 votes for the second class of its pair."""
    n_classes = count_classes(values.shape[1])
    votes = np.zeros((len(values), n_classes), np.intp)
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        votes[:, i] += values[:, k] > 0
        votes[:, j] += ~(values[:, k] > 0)
    return votes.argmax(axis=1)


def predicted_class(outputs: Outputs, values: Ball, shares: Ball | None = None) -> Any:
    """Return the index of the class chosen by the label rule; `shares` contains probabilities, if known."""
    if outputs.label_rule == "votes":
        return winner(values.mid)
    if outputs.label_rule == "scores":
        return scores(outputs, values).mid.argmax(axis=1)
    if outputs.label_rule == "value_threshold":
        return by_numbers(outputs, np.hstack([values.mid, -values.mid]))
    return by_numbers(outputs, (probabilities(outputs, values) if shares is None else shares).mid)


def by_numbers(outputs: Outputs, numbers: Any) -> Any:
    """Return the class with the largest number (ties go to the first), or one of two classes by a threshold."""
    if outputs.threshold is None:
        return numbers.argmax(axis=1)
    label = outputs.threshold_label
    return np.where(numbers[:, label] >= outputs.threshold, label, 1 - label)


@quiet
def as_decision_function(model: Any, values: Ball) -> Ball:
    """Return values in the order (sorted labels) and sign of scikit-learn's decision_function."""
    labels = model.labels
    order = np.argsort(labels, kind="stable")
    if len(labels) < 2:
        return values
    if len(labels) == 2:
        return values if labels[0] > labels[1] else -values
    if model.outputs.decision_shape != "ovo":
        return scores(model.outputs, values)[:, order]
    place = {pair: k for k, pair in enumerate(class_pairs(len(labels)))}
    pairs = [(order[i], order[j]) for i, j in place]
    columns = [values[:, place[i, j]] if i < j else -values[:, place[j, i]] for i, j in pairs]
    return Ball.stack(columns)


def known(found: Any) -> Ball:
    """Return a ball after checking its type."""
    assert isinstance(found, Ball)
    return found


@quiet
def probabilities(outputs: Outputs, values: Ball) -> Ball:
    """Return class probabilities, or those for (normal, outlier), computed from decision values."""
    head, is_binary = outputs.probability, values.mid.shape[1] == 1
    if isinstance(head, PairwiseSigmoid):
        return _in_unit(_of_pairs(head, values))
    if isinstance(head, DensityMarks):
        normal = _density(head, values)
        return _in_unit(Ball.join([normal, 1 - normal]))
    assert isinstance(head, (OneVsRestCalibration, TemperatureCalibration))
    in_favour = values if head.positive == 0 else -values
    if isinstance(head, TemperatureCalibration):
        both = [-in_favour, in_favour] if head.positive else [in_favour, -in_favour]
        return _in_unit(
            _softmax((Ball.join(both) if is_binary else scores(outputs, values)) * head.inverse_temperature)
        )
    if is_binary:
        share = _calibrated(head.calibrators[0], in_favour)
        share = share.where(~((share.mid > 1) & (share.mid <= 1 + MAX_EXCESS)), 1.0)
        return _in_unit(Ball.join([1 - share, share] if head.positive else [share, 1 - share]))
    n = len(head.calibrators)
    inputs = scores(outputs, values) if outputs.of_each_class or head.decision_shape == "ovr" else values[:, :n]
    of_each = Ball.join([_calibrated(one, inputs[:, [k]]) for k, one in enumerate(head.calibrators)])
    return _in_unit(shares(of_each, of_nothing=head.positive / n))


def shares(of_each: Ball, of_nothing: float = 0.0) -> Ball:
    """Return each class's share of the sum, or `of_nothing` where the sum is 0."""
    total = of_each.sum()
    is_nothing = total.mid == 0
    return (of_each / total.where(~is_nothing, 1.0)).where(~is_nothing, of_nothing)


def _in_unit(found: Ball) -> Ball:
    """Limit radii to 1, because errors of probabilities cannot be larger."""
    return Ball(found.mid, np.minimum(found.rad, 1))


def _softmax(scores: Ball) -> Ball:
    powers = (scores - scores.mid.max(axis=1, keepdims=True)).exp()
    return powers / powers.sum()


def _calibrated(calibrator: Any, inputs: Ball) -> Ball:
    if not isinstance(calibrator, IsotonicCalibrator):
        return (-(inputs * calibrator.slope + calibrator.intercept)).logistic()
    knots, heights = calibrator.knots.astype(Extended), calibrator.heights.astype(Extended)
    if len(knots) == 1:
        return Ball.of(np.where(np.isnan(inputs.mid), np.nan, heights[0]))

    def interpolated(x: Any) -> Any:
        k = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
        t = np.clip((x - knots[k]) / (knots[k + 1] - knots[k]), 0, 1)
        return heights[k] + t * (heights[k + 1] - heights[k])

    return inputs.steps(interpolated)


def _density(head: DensityMarks, values: Ball) -> Ball:
    """Compute LIBSVM's predict_one_class_probability, including its 0 for a value equal to the last mark."""
    marks = head.marks.astype(Extended)

    def normal(x: Any) -> Any:
        k = np.searchsorted(marks, x, side="right")
        found = np.where(k == 0, 0.001, k / Extended(len(marks)))
        return np.where(x > marks[-1], 0.999, np.where(x == marks[-1], 0, found))

    low, high = values.ends
    at_last = (low <= marks[-1]) & (marks[-1] <= high) & (values.rad > 0)
    found = values.steps(normal, np.where(at_last, 1, 0))
    return found.where(~np.isnan(values.mid), np.nan)


def _of_pairs(head: PairwiseSigmoid, values: Ball) -> Ball:
    first = (-(values * head.prob_a + head.prob_b)).logistic().clip(_LEAST, 1 - _LEAST)
    n_classes = count_classes(values.mid.shape[1])
    if n_classes == 2 and not head.couple_two_classes:
        return Ball.join([first, 1 - first])
    pairwise = np.zeros((len(values.mid), n_classes, n_classes), Extended)
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        pairwise[:, i, j], pairwise[:, j, i] = first.mid[:, k], 1 - first.mid[:, k]
    found, is_known = _coupled(pairwise)
    # Within the radius, the number of sweeps may vary; one sweep changes a row by up to the tolerance.
    return Ball(found, np.where(is_known & (first.rad.max(axis=1) < 1e-12), 1e-12, 1.0)[:, np.newaxis] + 0 * found)


def _coupled(pairwise: Any) -> tuple[Any, Any]:
    """Return LIBSVM's multiclass_probability (Wu, Lin, Weng 2004, method 2), and rows whose sweep count is certain."""
    n, k = pairwise.shape[:2]
    Q = -pairwise.transpose(0, 2, 1) * pairwise
    Q[:, range(k), range(k)] = (pairwise**2).sum(axis=1)
    p, is_known, is_open = np.full((n, k), Extended(1) / k), np.ones(n, bool), np.ones(n, bool)
    for _ in range(max(_LEAST_SWEEPS, k)):
        Qp = (Q * p[:, np.newaxis]).sum(axis=2)
        pQp = (p * Qp).sum(axis=1)
        off = np.abs(Qp - pQp[:, np.newaxis]).max(axis=1) - _COUPLING_TOLERANCE / k
        is_known &= ~is_open | (np.abs(off) > 1e-12)
        is_open &= ~(off < 0)
        if not is_open.any():
            break
        old = p.copy()
        for t in range(k):
            diff = (pQp - Qp[:, t]) / Q[:, t, t]
            p[:, t] += diff
            pQp = (pQp + diff * (diff * Q[:, t, t] + 2 * Qp[:, t])) / (1 + diff) ** 2
            Qp, p = ((a / (1 + diff)[:, np.newaxis]) for a in (Qp + diff[:, np.newaxis] * Q[:, t], p))
        p = np.where(is_open[:, np.newaxis], p, old)
    return p, is_known
