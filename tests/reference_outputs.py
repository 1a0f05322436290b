"""Votes, scores and probabilities of each source in slow and obvious float64: the judge of the core's outputs.

Values are as model/outputs.py says, and bounds of their shape: what |approximate - exact| never exceeds, or infinite,
NaN, negative where nothing was evaluated. Numbers of classes are (n_rows, n_classes), in the model's label order;
(normal, outlier) for DensityMarks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import erf

from approxsvm.errors import ModelFormatError
from approxsvm.model.outputs import (
    DensityMarks,
    FloatArray,
    IsotonicCalibrator,
    OneVsRestCalibration,
    Outputs,
    PairwiseSigmoid,
    Probability,
    SigmoidCalibrator,
    TemperatureCalibration,
    class_pairs,
    count_classes,
)
from approxsvm.model.schema import MAX_EXCESS

IntArray = npt.NDArray[np.intp]

# LIBSVM's constants of svm_predict_probability and multiclass_probability.
MIN_PROBABILITY = 1e-7
COUPLING_TOLERANCE = 0.005
MIN_COUPLING_SWEEPS = 100
_UNIT_ROUNDOFF = 2.0**-53
_MAX_SUM = 1e300  # of values, beyond which scores may overflow


# Votes and scores


def votes(values: FloatArray) -> IntArray:
    """Votes of each class."""
    n_classes = count_classes(values.shape[1])
    counts = np.zeros((len(values), n_classes), np.intp)
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        counts[:, i] += values[:, k] > 0
        counts[:, j] += ~(values[:, k] > 0)
    return counts


def winner(values: FloatArray) -> IntArray:
    """Class with the most votes, the first one of several, as LIBSVM and scikit-learn predict it."""
    return _first_best(votes(values))


def certified_winner(values: FloatArray, bounds: FloatArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Winner by votes, and whether it is the same for every outcome of the pairs that the bounds leave open.

    With lo = certain votes and hi = certain votes and open pairs of a class, the winner w is certified iff for every
    other class c lo[w] > hi[c], or lo[w] = hi[c] and w precedes c. One consistent outcome attains this. A value of
    minus its bound is certain: the exact value is at most 0, a vote for the second class.
    """
    n_classes = count_classes(values.shape[1])
    known = (bounds >= 0) & np.isfinite(values)
    lo = np.zeros((len(values), n_classes), np.intp)
    hi = np.full((len(values), n_classes), n_classes - 1, np.intp)
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        for_first = known[:, k] & (values[:, k] > bounds[:, k])
        for_second = known[:, k] & (values[:, k] <= -bounds[:, k])
        lo[:, i] += for_first
        hi[:, j] -= for_first
        lo[:, j] += for_second
        hi[:, i] -= for_second
    winners = winner(values)
    return winners, _beats_all(winners, lo, hi)


def one_vs_rest_scores(values: FloatArray) -> FloatArray:
    """scikit-learn's decision_function_shape='ovr' of more than two classes: votes + s / (3 (|s| + 1)).

    s sums the decision values in favour of the class. Here a value of exactly 0 votes for the first class of the pair,
    unlike in `winner`; scikit-learn does the same (``_ovr_decision_function(dec < 0, -dec, n_classes)``).
    """
    n_classes = count_classes(values.shape[1])
    counts = np.zeros((len(values), n_classes))
    sums = np.zeros((len(values), n_classes))
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        sums[:, i] += values[:, k]
        sums[:, j] -= values[:, k]
        counts[:, i] += ~(values[:, k] < 0)
        counts[:, j] += values[:, k] < 0
    return counts + sums / (3 * (np.abs(sums) + 1))


def one_vs_rest_interval(values: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where the scores of the exact decision values can lie, this function's own rounding included.

    Open pairs may cast their vote either way, so a class with one has an interval about 1 wide; with all its pairs
    certain it is at most (sum of their bounds) * 2/3 wide, as the slope of s / (3 (|s| + 1)) is at most 1/3.
    """
    n_classes = count_classes(values.shape[1])
    bounds = np.where(bounds >= 0, bounds, np.inf)
    certain = np.abs(values) > bounds
    lo_votes, hi_votes = np.zeros((2, len(values), n_classes))
    sums, spread, moduli = np.zeros((3, len(values), n_classes))
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        value, bound = values[:, k], bounds[:, k]
        for c, sign in ((i, 1.0), (j, -1.0)):
            sums[:, c] += sign * value
            spread[:, c] += bound
            moduli[:, c] += np.abs(value)
            lo_votes[:, c] += certain[:, k] & (sign * value > 0)
            hi_votes[:, c] += ~(certain[:, k] & (sign * value < 0))
    # Summation errs by at most n_classes roundings of the moduli, scores by a few roundings of numbers <= n_classes.
    spread = spread * (1 + 4 * n_classes * _UNIT_ROUNDOFF) + 4 * n_classes * _UNIT_ROUNDOFF * moduli
    slack = 8 * n_classes * _UNIT_ROUNDOFF
    lowest = lo_votes + _confidence(sums - spread, -1 / 3) - slack
    highest = hi_votes + _confidence(sums + spread, 1 / 3) + slack
    known = moduli <= _MAX_SUM
    return np.where(known, lowest, -np.inf), np.where(known, highest, np.inf)


def certified_score_winner(values: FloatArray, bounds: FloatArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Class with the best one-vs-rest score (scikit-learn's break_ties=True), and whether the bounds prove it.

    Parameters and returns as for `certified_winner`.
    """
    winners = _first_best(one_vs_rest_scores(values))
    return winners, _beats_all(winners, *one_vs_rest_interval(values, bounds))


def _first_best(scores: npt.NDArray[Any]) -> IntArray:
    """Class of the greatest score, the first one of several."""
    return scores.argmax(axis=1)


def _beats_all(winners: IntArray, lo: npt.NDArray[Any], hi: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether the least of each winner exceeds the most of every other class, or equals it and comes first."""
    rows = np.arange(len(winners))
    least = lo[rows, winners][:, np.newaxis]
    others = np.arange(lo.shape[1])
    beaten = (least > hi) | ((least == hi) & (winners[:, np.newaxis] < others))
    beaten[rows, winners] = True
    return beaten.all(axis=1)


def _confidence(sums: FloatArray, limit: float) -> FloatArray:
    """Transforms sums s at one end of an interval to s / (3 (|s| + 1)), or to its limit where that may overflow."""
    known = np.abs(sums) <= _MAX_SUM
    inner = np.where(known, sums, 0.0)
    return np.where(known, inner / (3 * (np.abs(inner) + 1)), limit)


# Probabilities


def sigmoid(values: FloatArray, a: float, b: float) -> FloatArray:
    """1 / (1 + exp(a f + b)) without overflow or cancellation, in the two branches of LIBSVM's sigmoid_predict."""
    exponent = values * a + b
    small = np.exp(-np.abs(exponent))
    return np.where(exponent >= 0, small / (1.0 + small), 1.0 / (1.0 + small))


def couple(pairwise: FloatArray) -> FloatArray:
    """Class probabilities from pairwise ones, by the iteration of Wu, Lin and Weng (2004, method 2) as LIBSVM runs it.

    Sums run in LIBSVM's order, so that a row stops after the same sweep.
    """
    n_rows, k = pairwise.shape[:2]
    Q = np.zeros((n_rows, k, k))
    for t in range(k):
        for j in range(k):
            if j != t:
                Q[:, t, t] += pairwise[:, j, t] * pairwise[:, j, t]
                Q[:, t, j] = -pairwise[:, j, t] * pairwise[:, t, j]
    result = np.full((n_rows, k), 1.0 / k)
    active = np.arange(n_rows)
    for _ in range(max(MIN_COUPLING_SWEEPS, k)):
        q, p = Q[active], result[active]
        Qp, pQp = np.zeros((len(active), k)), np.zeros(len(active))
        for t in range(k):
            for j in range(k):
                Qp[:, t] += q[:, t, j] * p[:, j]
            pQp += p[:, t] * Qp[:, t]
        unfinished = ~(np.abs(Qp - pQp[:, np.newaxis]).max(axis=1, initial=0.0) < COUPLING_TOLERANCE / k)
        active, q, p, Qp, pQp = (a[unfinished] for a in (active, q, p, Qp, pQp))
        if len(active) == 0:
            break
        for t in range(k):
            diff = (-Qp[:, t] + pQp) / q[:, t, t]
            p[:, t] += diff
            pQp = (pQp + diff * (diff * q[:, t, t] + 2 * Qp[:, t])) / (1 + diff) / (1 + diff)
            Qp = (Qp + diff[:, np.newaxis] * q[:, t]) / (1 + diff)[:, np.newaxis]
            p /= (1 + diff)[:, np.newaxis]
        result[active] = p
    return result


def class_scores(outputs: Outputs, values: FloatArray) -> FloatArray:
    """A score for each of several classes: its own value, or of the values of pairs."""
    return values if outputs.of_each_class else one_vs_rest_scores(values)


def probabilities(head: Probability, values: FloatArray, scores: FloatArray | None = None) -> FloatArray:
    """Probabilities from decision values."""
    if isinstance(head, PairwiseSigmoid):
        return _pairwise_probabilities(head, values)
    if isinstance(head, OneVsRestCalibration):
        calibrated = _calibrated(head, _calibration_inputs(head, values) if scores is None else scores)
        if calibrated.shape[1] == 1:
            return _two_columns(calibrated[:, 0], head.positive)
        total = calibrated.sum(axis=1, keepdims=True)
        of_nothing = np.full_like(calibrated, head.positive / calibrated.shape[1])
        shares: FloatArray = np.divide(calibrated, total, out=of_nothing, where=total != 0)
        return _clip_excess(shares)
    if isinstance(head, TemperatureCalibration):
        return _softmax(head.inverse_temperature * (_temperature_scores(head, values) if scores is None else scores))
    if isinstance(head, DensityMarks):
        return _normal_and_outlier(_density_steps(head.marks, values[:, 0]))
    raise ModelFormatError(f"a {type(head).__name__} gives no probabilities")


def probability_interval(head: Probability, values: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where `probabilities` of the exact decision values can lie.

    All outputs but one are monotone in each score, so an interval of scores gives an interval of probabilities; for two
    classes and a sigmoid it reaches at most |slope|/4 times the bound of the value to either side. The coupling of
    three and more classes stops after a number of sweeps that small changes can change: nothing better than [0, 1] is
    claimed for it, only its decision values are bounded. Two classes, coupled, stop within 0.005 of the sigmoid.
    """
    bounds = np.where((bounds >= 0) & np.isfinite(values), bounds, np.inf)
    values = np.where(np.isfinite(values), values, 0.0)  # anything, anywhere
    shape = (len(values), 2 if isinstance(head, DensityMarks) else count_classes(values.shape[1]))
    if shape[1] == 1:
        return np.ones(shape), np.ones(shape)
    if isinstance(head, PairwiseSigmoid) and shape[1] > 2:
        return np.zeros(shape), np.ones(shape)
    with np.errstate(invalid="ignore"):  # 0 * inf, where a calibrator is constant and a bound infinite
        lo, hi = _monotone_interval(head, values, bounds)
    # The ends are as rounded as the probabilities: a few units in the last place of numbers of at most 1.
    slack = (16 + 4 * shape[1]) * _UNIT_ROUNDOFF
    if isinstance(head, PairwiseSigmoid) and head.couple_two_classes:
        slack += COUPLING_TOLERANCE
    lowest: FloatArray = np.clip(np.where(np.isnan(lo), 0.0, lo - slack), 0.0, 1.0)
    highest: FloatArray = np.clip(np.where(np.isnan(hi), 1.0, hi + slack), 0.0, 1.0)
    return lowest, highest


def probability_bounds(head: Probability, values: FloatArray, bounds: FloatArray) -> FloatArray:
    """What |probabilities(values) - probabilities(exact values)| never exceeds; up to 1 where nothing is known."""
    given = probabilities(head, values)
    lowest, highest = probability_interval(head, values, bounds)
    return np.maximum(highest - given, given - lowest)


def predicted_class(outputs: Outputs, values: FloatArray) -> IntArray:
    """Class that the source predicts, by its label rule."""
    if outputs.label_rule == "votes":
        return winner(values)
    if outputs.label_rule == "scores":
        return _first_best(class_scores(outputs, values))
    if outputs.label_rule == "value_threshold":
        return by_threshold(outputs, np.column_stack([values, -values]))
    assert outputs.probability is not None  # checked when built
    return predicted_by(outputs, probabilities(outputs.probability, values, values if outputs.of_each_class else None))


def predicted_by(outputs: Outputs, shares: FloatArray) -> IntArray:
    """Class by the probabilities of all, (n_rows, n_classes)."""
    return _first_best(shares) if outputs.threshold is None else by_threshold(outputs, shares)


def by_threshold(outputs: Outputs, numbers: FloatArray) -> IntArray:
    """Of two classes, the one that a threshold is for where its number, of (n_rows, 2), is at least that."""
    label = outputs.threshold_label
    return np.where(numbers[:, label] >= outputs.threshold, label, 1 - label)


def process_share(mean: FloatArray, functions: FloatArray, prior: float) -> FloatArray:
    """Of a Gaussian process for one of several classes, by its mean and the functions of its variance."""
    variance = np.maximum(0.0, prior - (functions**2).sum(axis=1))
    scales = np.array([0.41, 0.4, 0.37, 0.44, 0.39])
    factors = np.array([-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654])
    terms = erf(scales * mean[:, np.newaxis] / np.sqrt(1.0 + 2.0 * scales**2 * variance[:, np.newaxis]))
    return (1.0 + terms) @ factors / 2.0


def vote_of_members(outputs: Outputs, classes: Sequence[IntArray], n_classes: int) -> IntArray:
    """Class with the greatest sum of weights, the first of several, by each member's classes of the rows."""
    assert outputs.weights is not None
    sums = np.zeros((len(classes[0]), n_classes))
    for weight, chosen in zip(outputs.weights.tolist(), classes, strict=True):
        sums += np.where(np.arange(n_classes) == chosen[:, np.newaxis], weight, outputs.addend * weight)
    return _first_best(sums)


def certified_class(outputs: Outputs, values: FloatArray, bounds: FloatArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Class by the label rule, and whether the bounds prove that the exact values give the same.

    Parameters and returns as for `certified_winner`.
    """
    if outputs.label_rule == "votes":
        return certified_winner(values, bounds)
    if outputs.label_rule == "scores":
        return certified_score_winner(values, bounds)
    assert outputs.probability is not None  # checked when built
    rows = np.arange(len(values))
    winners = _first_best(probabilities(outputs.probability, values))
    lowest, highest = probability_interval(outputs.probability, values, bounds)
    highest[rows, winners] = -np.inf
    # Equal up to rounding is not certain, so a strict comparison and no rule for ties.
    certified: npt.NDArray[np.bool_] = lowest[rows, winners] > highest.max(axis=1, initial=-np.inf)
    return winners, certified


def _pairwise_probabilities(head: PairwiseSigmoid, values: FloatArray) -> FloatArray:
    n_classes = count_classes(values.shape[1])
    pairwise = np.zeros((len(values), n_classes, n_classes))
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        first = _clipped_sigmoid(head, k, values[:, k])
        pairwise[:, i, j] = first
        pairwise[:, j, i] = 1 - first
    if n_classes == 2 and not head.couple_two_classes:
        return np.column_stack([pairwise[:, 0, 1], pairwise[:, 1, 0]])
    return couple(pairwise)


def _clipped_sigmoid(head: PairwiseSigmoid, pair: int, values: FloatArray) -> FloatArray:
    raw = sigmoid(values, float(head.prob_a[pair]), float(head.prob_b[pair]))
    return np.clip(raw, MIN_PROBABILITY, 1 - MIN_PROBABILITY)


def _calibration_inputs(head: OneVsRestCalibration, values: FloatArray) -> FloatArray:
    """One column per calibrator, oriented as scikit-learn's decision_function."""
    if values.shape[1] == 1:
        return values if head.positive == 0 else -values
    if head.decision_shape == "ovr":
        return one_vs_rest_scores(values)
    return values[:, : len(head.calibrators)]


def _calibrated(head: OneVsRestCalibration, inputs: FloatArray) -> FloatArray:
    return np.column_stack([_calibrate(c, inputs[:, k]) for k, c in enumerate(head.calibrators)])


def _calibrate(calibrator: SigmoidCalibrator | IsotonicCalibrator, values: FloatArray) -> FloatArray:
    if isinstance(calibrator, SigmoidCalibrator):
        return sigmoid(values, calibrator.slope, calibrator.intercept)
    return np.interp(values, calibrator.knots, calibrator.heights)


def _two_columns(positive_share: FloatArray, positive: int) -> FloatArray:
    share = _clip_excess(positive_share)
    columns = [1.0 - share, share]
    return np.column_stack(columns if positive == 1 else columns[::-1])


def _clip_excess(shares: FloatArray) -> FloatArray:
    shares[(shares > 1.0) & (shares <= 1.0 + MAX_EXCESS)] = 1.0
    return shares


def _temperature_scores(head: TemperatureCalibration, values: FloatArray) -> FloatArray:
    if values.shape[1] == 1:
        f = values if head.positive == 0 else -values
        columns = [-f, f] if head.positive == 1 else [f, -f]
        return np.hstack(columns)
    return one_vs_rest_scores(values)


def _softmax(scores: FloatArray) -> FloatArray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _density_steps(marks: FloatArray, values: FloatArray) -> FloatArray:
    """LIBSVM's predict_one_class_probability, its 0 for a value of exactly the last mark included."""
    result = np.zeros(len(values))
    for i in range(len(marks) - 1, 0, -1):
        result[values < marks[i]] = i / len(marks)
    result[values < marks[0]] = 0.001
    result[values > marks[-1]] = 0.999
    return result


def _normal_and_outlier(normal: FloatArray) -> FloatArray:
    return np.column_stack([normal, 1 - normal])


def _monotone_interval(head: Probability, values: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends of an interval that holds the probabilities of the exact values, up to rounding."""
    lowest, highest = values - bounds * (1 + 2 * _UNIT_ROUNDOFF), values + bounds * (1 + 2 * _UNIT_ROUNDOFF)
    # One more rounding of the ends themselves; it matters to the step functions.
    lowest, highest = np.nextafter(lowest, -np.inf), np.nextafter(highest, np.inf)
    if isinstance(head, PairwiseSigmoid):
        ends = np.column_stack([_clipped_sigmoid(head, 0, end[:, 0]) for end in (lowest, highest)])
        return _complementary(ends.min(axis=1), ends.max(axis=1), 0)
    if isinstance(head, DensityMarks):
        lo, hi = (_density_steps(head.marks, end[:, 0]) for end in (lowest, highest))
        at_last = (lowest[:, 0] <= head.marks[-1]) & (head.marks[-1] <= highest[:, 0])
        hi = np.where(at_last, np.maximum(hi, 0.9), hi)
        return _complementary(np.where(at_last, 0.0, lo), hi, 0)
    if values.shape[1] == 1:
        assert isinstance(head, (OneVsRestCalibration, TemperatureCalibration))
        positive_ends = np.column_stack([probabilities(head, end)[:, head.positive] for end in (lowest, highest)])
        return _complementary(positive_ends.min(axis=1), positive_ends.max(axis=1), head.positive)
    if isinstance(head, TemperatureCalibration):
        beta = head.inverse_temperature
        scores = [beta * end for end in one_vs_rest_interval(values, bounds)]
        top = scores[1].max(axis=1, keepdims=True)
        lo_share, hi_share = (np.exp(end - top) for end in scores)
        return _share_interval(lo_share, hi_share)
    assert isinstance(head, OneVsRestCalibration)
    if head.decision_shape == "ovr":
        inputs = one_vs_rest_interval(values, bounds)
    else:
        inputs = (lowest[:, : len(head.calibrators)], highest[:, : len(head.calibrators)])
    first, second = (_calibrated(head, end) for end in inputs)
    return _share_interval(np.minimum(first, second), np.maximum(first, second))


def _complementary(lo: FloatArray, hi: FloatArray, column: int) -> tuple[FloatArray, FloatArray]:
    """Intervals of a share and of one minus it, the share in `column`."""
    lowest, highest = [lo, 1 - hi], [hi, 1 - lo]
    if column == 1:
        lowest, highest = lowest[::-1], highest[::-1]
    return np.column_stack(lowest), np.column_stack(highest)


def _share_interval(lo: FloatArray, hi: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Interval of x_c / sum(x) for x between lo and hi; where the sum may be 0 it is [0, 1]."""
    # Not differences of sums: what is left may be tiny.
    others_lo, others_hi = np.zeros_like(lo), np.zeros_like(hi)
    for c in range(lo.shape[1]):
        others_lo[:, c] = np.delete(lo, c, axis=1).sum(axis=1)
        others_hi[:, c] = np.delete(hi, c, axis=1).sum(axis=1)
    possible_zero = lo.sum(axis=1, keepdims=True) == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        lowest = np.where(possible_zero | (lo == 0), 0.0, lo / (lo + others_hi))
        highest = np.where(possible_zero | (hi + others_lo == 0), 1.0, hi / (hi + others_lo))
    return lowest, highest
