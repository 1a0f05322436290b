"""Graphs that compute votes, scores, probabilities and predicted classes from decision values.

Values and intervals are computed as in votes.h, scores.h, probabilities.h and ensembles.h in
cpp/include/approxsvm/program; these files derive the formulas. `SLACK` covers the rounding of the functions themselves.
A tie is never certified.
"""

from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.known_values import KnownValues
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.constants import COUPLING_SWEEPS, COUPLING_TOLERANCE, LEAST_PROBABILITY
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.outputs import (
    ClassProbability,
    IsotonicCalibrator,
    MembersMean,
    OneVsRestCalibration,
    Outputs,
    PairwiseSigmoid,
    SigmoidCalibrator,
    TemperatureCalibration,
    class_pairs,
)
from approxsvm.ir.schema import MAX_EXCESS

# Bound on the rounding errors of probabilities and scores, which are at most n_classes. It far exceeds the float64
# spacing of values near a tie.
SLACK: Final = 1e-9
_LARGEST: Final = float(np.finfo(np.float64).max)


class ClassOutputs:
    """Classes, scores and probabilities of a model with at least two classes, from one value per pair or per class."""

    def __init__(self, g: GraphBuilder, outputs: Outputs, n_classes: int, known: KnownValues) -> None:
        self.g, self.outputs, self.n_classes, self.known = g, outputs, n_classes, known
        pairs = class_pairs(n_classes)
        self.first, self.second = np.zeros((2, len(pairs), n_classes))
        for k, (i, j) in enumerate(pairs):
            self.first[k, i] = self.second[k, j] = 1.0

    @cached_property
    def scores(self) -> str:
        """Scores, shape (n_rows, n_classes): scikit-learn's one-vs-rest scores of pairs, or one value per class."""
        if self.outputs.of_each_class:
            return self.known.values
        g, values = self.g, self.known.values
        against = g.cast(g.op("Less", values, 0.0), np.float64)
        for_first = g.op("MatMul", g.op("Sub", 1.0, against), self.first)
        votes = g.op("Add", for_first, g.op("MatMul", against, self.second))
        return g.op("Add", votes, self._confidence(g.op("MatMul", values, self.first - self.second)))

    @cached_property
    def probabilities(self) -> str:
        """Probabilities of all classes in the model's class order, shape (n_rows, n_classes)."""
        probability = self.outputs.probability
        assert isinstance(probability, ClassProbability)
        if isinstance(probability, PairwiseSigmoid) and (self.n_classes > 2 or probability.couple_two_classes):
            return self._coupled(probability)
        if isinstance(probability, MembersMean):
            return self.g.op("Div", self.known.values, probability.total)
        if self.n_classes == 2:
            return self._two_columns(self._first_probability(probability, self.known.values))
        if isinstance(probability, TemperatureCalibration):
            return self.g.op("Softmax", self.g.op("Mul", self.scores, probability.inverse_temperature), axis=1)
        return self._normalized(_calibration(probability))

    def predicted(self) -> str:
        """Return the indices of the predicted labels, shape (n_rows,); the first label wins a tie."""
        g, rule = self.g, self.outputs.label_rule
        if rule == "votes":
            if self.n_classes == 2:
                against = g.op("Not", g.op("Greater", self.known.values, 0.0))
                return g.cast(g.op("Squeeze", against, np.array([1], np.int64)), np.int64)
            return g.op("ArgMax", self._votes(), axis=1, keepdims=0)
        if rule == "value_threshold":
            return by_threshold(g, self.outputs, self._in_favour(self.known.values))
        if rule == "probability_threshold":
            return by_threshold(g, self.outputs, g.columns(self.probabilities, [self.outputs.threshold_label]))
        return g.op("ArgMax", self.scores if rule == "scores" else self.probabilities, axis=1, keepdims=0)

    def certain(self, predicted: str) -> str:
        """Return a boolean array of shape (n_rows,): whether the bounds certify the row's class."""
        rule = self.outputs.label_rule
        if rule == "votes":
            low, high = self._vote_interval()
            # Ties go to the earlier class, so each class's index, scaled to a fraction of a vote, is subtracted.
            places = np.arange(self.n_classes)[np.newaxis] / (2.0 * self.n_classes)
            low, high = (self.g.op("Sub", end, places) for end in (low, high))
            return beats_all(self.g, predicted, low, high, self.n_classes, 0.1 / self.n_classes)
        if rule == "value_threshold":
            low, high = map(self._in_favour, self._ends())
            return on_one_side(self.g, self.outputs, self.g.op("Min", low, high), self.g.op("Max", low, high), 0.0)
        ends = self.score_interval() if rule == "scores" else self.probability_interval()
        if rule == "probability_threshold":
            low, high = (self.g.columns(end, [self.outputs.threshold_label]) for end in ends)
            return on_one_side(self.g, self.outputs, low, high, SLACK)
        return beats_all(self.g, predicted, *ends, self.n_classes, self.n_classes * SLACK)

    def probability_interval(self) -> tuple[str, str]:
        """Return bounds of shape (n_rows, n_classes) on the exact probabilities, valid to within `SLACK`."""
        g, probability = self.g, self.outputs.probability
        assert isinstance(probability, ClassProbability)
        if isinstance(probability, PairwiseSigmoid) and (self.n_classes > 2 or probability.couple_two_classes):
            # Even the smallest change in a value can change the number of iterations, so there is no bound.
            anywhere = g.op("Mul", self.probabilities, 0.0)
            return anywhere, g.op("Add", anywhere, 1.0)
        low, high = self._ends()
        if isinstance(probability, MembersMean):
            return g.op("Div", low, probability.total), g.op("Div", high, probability.total)
        if self.n_classes == 2:
            ends = [self._first_probability(probability, end) for end in (low, high)]
            least, most = self._two_columns(g.op("Min", *ends)), self._two_columns(g.op("Max", *ends))
            return g.op("Min", least, most), g.op("Max", least, most)
        return self._normalized_interval(*self._unnormalized_interval(probability))

    def _in_favour(self, values: str) -> str:
        """Return values, negated if necessary, so that larger ones favour the label that has the threshold."""
        return values if self.outputs.threshold_label == 0 else self.g.op("Neg", values)

    def _votes(self) -> str:
        g = self.g
        for_first = g.cast(g.op("Greater", self.known.values, 0.0), np.float64)
        against = g.op("Sub", 1.0, for_first)
        return g.op("Add", g.op("MatMul", for_first, self.first), g.op("MatMul", against, self.second))

    def _outcomes(self) -> tuple[str, str]:
        """Return two arrays of 0 and 1: the pairs proven to vote for their first class, and for their second class."""
        g, bounds = self.g, self.known.bounds
        assert bounds is not None
        first = g.op("Greater", self.known.values, bounds)
        second = g.op("Greater", g.op("Neg", self.known.values), bounds)
        return g.cast(first, np.float64), g.cast(second, np.float64)

    def _vote_interval(self) -> tuple[str, str]:
        """Return each class's number of proven votes, and its maximum number of votes."""
        g = self.g
        first, second = self._outcomes()
        low = g.op("Add", g.op("MatMul", first, self.first), g.op("MatMul", second, self.second))
        lost = g.op("Add", g.op("MatMul", second, self.first), g.op("MatMul", first, self.second))
        return low, g.op("Sub", float(self.n_classes - 1), lost)

    def _confidence(self, sums: str) -> str:
        g = self.g
        return g.op("Div", sums, g.op("Mul", g.op("Add", g.op("Abs", sums), 1.0), 3.0))

    def score_interval(self) -> tuple[str, str]:
        """Return bounds on the scores computed from exact values; a confidence's slope is at most 1/3."""
        if self.outputs.of_each_class:
            return self._ends()
        g, both = self.g, self.first + self.second
        assert self.known.bounds is not None
        votes = self._vote_interval()
        sums = g.op("MatMul", self.known.values, self.first - self.second)
        reach = g.op("MatMul", g.op("Abs", self.known.values), both * 1e-12)
        reach = g.op("Add", reach, g.op("MatMul", self.known.bounds, both * UP))
        low, high = (self._confidence(g.op(sign, sums, reach)) for sign in ("Sub", "Add"))
        return g.op("Add", votes[0], low), g.op("Add", votes[1], high)

    def _ends(self) -> tuple[str, str]:
        """Return lower and upper bounds on the exact values."""
        g, values, bounds = self.g, self.known.values, self.known.bounds
        assert bounds is not None
        reach = g.op("Add", g.op("Mul", bounds, UP), g.op("Mul", g.op("Abs", values), 1e-14))
        return g.op("Sub", values, reach), g.op("Add", values, reach)

    def _sigmoid(self, values: str, slope: Any, intercept: Any) -> str:
        """Compute 1 / (1 + exp(slope f + intercept)) without overflow, with the same two branches as LIBSVM."""
        g = self.g
        exponent = g.op("Add", g.op("Mul", values, slope), intercept)
        small = g.op("Exp", g.op("Neg", g.op("Abs", exponent)))
        above = g.op("Add", small, 1.0)
        is_small = g.op("Less", exponent, 0.0)
        return g.op("Where", is_small, g.op("Div", 1.0, above), g.op("Div", small, above))

    def _first_probability(self, probability: ClassProbability, values: str) -> str:
        """Compute the probability of the first of two classes from values of shape (n_rows, 1)."""
        g = self.g
        if isinstance(probability, PairwiseSigmoid):
            result = self._sigmoid(values, float(probability.prob_a[0]), float(probability.prob_b[0]))
            return g.op("Min", g.op("Max", result, LEAST_PROBABILITY), 1.0 - LEAST_PROBABILITY)
        if isinstance(probability, TemperatureCalibration):  # softmax of f and -f, or of -f and f
            return self._sigmoid(values, -2.0 * probability.inverse_temperature, 0.0)
        probability = _calibration(probability)
        oriented = values if probability.positive == 0 else g.op("Neg", values)
        result = self._without_excess(self._calibrated(probability.calibrators[0], oriented))
        return result if probability.positive == 0 else g.op("Sub", 1.0, result)

    def _two_columns(self, first: str) -> str:
        return self.g.op("Concat", first, self.g.op("Sub", 1.0, first), axis=1)

    def _calibrated(self, calibrator: SigmoidCalibrator | IsotonicCalibrator, values: str) -> str:
        """Calibrate values of shape (n_rows, 1)."""
        if isinstance(calibrator, SigmoidCalibrator):
            return self._sigmoid(values, calibrator.slope, calibrator.intercept)
        return self._interpolated(calibrator, values)

    def _interpolated(self, calibrator: IsotonicCalibrator, values: str) -> str:
        """Interpolate linearly between the knots; beyond the first and last knot, the result is constant."""
        g, knots, heights = self.g, calibrator.knots, calibrator.heights
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.diff(heights)
            slopes = np.where(steps > 0.0, steps / np.diff(knots), 0.0)
        slopes = np.concatenate([[0.0], slopes, [0.0]])
        starts = np.concatenate([knots[:1], knots])
        bases = np.concatenate([heights[:1], heights])
        limited = g.op("Min", g.op("Max", values, -_LARGEST), _LARGEST)
        reached = g.cast(g.op("GreaterOrEqual", limited, knots[np.newaxis]), np.int64)
        piece = g.rows_sum(reached, keepdims=True)
        slope, start, base = (g.op("Gather", numbers, piece) for numbers in (slopes, starts, bases))
        # Outside the knots, the slope is 0 and the distance may be infinite, so they must not be multiplied.
        beyond = g.op("Equal", slope, 0.0)
        run = g.op("Where", beyond, 0.0, g.op("Sub", limited, start))
        return g.op("Add", g.op("Mul", slope, run), base)

    def _without_excess(self, probability: str) -> str:
        """Set isotonic probabilities that rounding made larger than 1 to 1, as scikit-learn does."""
        g = self.g
        excess = g.op("And", g.op("Greater", probability, 1.0), g.op("LessOrEqual", probability, 1.0 + MAX_EXCESS))
        return g.op("Where", excess, 1.0, probability)

    def _calibrations(self, calibration: OneVsRestCalibration, inputs: str) -> str:
        """Calibrate the values of every class, shape (n_rows, n_classes)."""
        columns = [
            self._calibrated(calibrator, self.g.columns(inputs, [c]))
            for c, calibrator in enumerate(calibration.calibrators)
        ]
        return self.g.op("Concat", *columns, axis=1)

    def _normalized(self, calibration: OneVsRestCalibration) -> str:
        g = self.g
        inputs = self.scores if calibration.decision_shape == "ovr" else self.known.values
        calibrated = self._calibrations(calibration, inputs)
        total = g.rows_sum(calibrated, keepdims=True)
        all_zero = g.op("Equal", total, 0.0)
        ratios = g.op("Div", calibrated, g.op("Where", all_zero, 1.0, total))
        return self._without_excess(g.op("Where", all_zero, calibration.positive / self.n_classes, ratios))

    def _unnormalized_interval(self, probability: ClassProbability) -> tuple[str, str]:
        """Return lower and upper bounds on the unnormalized probabilities of a multiclass model."""
        g = self.g
        if isinstance(probability, TemperatureCalibration):
            low, high = (g.op("Mul", end, probability.inverse_temperature) for end in self.score_interval())
            # For large scores, rounding errors exceed the amount by which probability intervals are widened.
            low = g.op("Sub", low, g.op("Mul", g.op("Abs", low), 1e-14))
            high = g.op("Add", high, g.op("Mul", g.op("Abs", high), 1e-14))
            top = g.op("ReduceMax", high, axes=[1], keepdims=1)
            return g.op("Exp", g.op("Sub", low, top)), g.op("Exp", g.op("Sub", high, top))
        assert isinstance(probability, OneVsRestCalibration)
        low, high = self.score_interval() if probability.decision_shape == "ovr" else self._ends()
        ends = [self._calibrations(probability, end) for end in (low, high)]
        return g.op("Min", *ends), g.op("Max", *ends)

    def _normalized_interval(self, low: str, high: str) -> tuple[str, str]:
        """Return bounds on x_c / sum(x) for all x between `low` and `high`, widened to cover rounding and underflow."""
        g = self.g
        low = g.op("Max", g.op("Sub", g.op("Mul", low, 1.0 - SLACK), 1e-300), 0.0)
        high = g.op("Add", g.op("Mul", high, 1.0 + SLACK), 1e-300)
        least = g.op("Div", low, g.op("Add", low, self._sum_of_others(high)))
        most = g.op("Div", high, g.op("Add", high, self._sum_of_others(low)))
        return least, most

    def _sum_of_others(self, numbers: str) -> str:
        """For each class, sum the other classes' values directly; subtraction from the total may cancel digits."""
        g, axis = self.g, np.array(1, np.int64)
        before, after = (g.op("CumSum", numbers, axis, exclusive=1, reverse=reverse) for reverse in (0, 1))
        return g.op("Add", before, after)

    def _coupled(self, sigmoids: PairwiseSigmoid) -> str:
        """Run the second method of Wu, Lin and Weng (JMLR 2004), as implemented in LIBSVM, until each row converges."""
        g, k = self.g, self.n_classes
        share = self._sigmoid(self.known.values, sigmoids.prob_a[np.newaxis], sigmoids.prob_b[np.newaxis])
        share = g.op("Min", g.op("Max", share, LEAST_PROBABILITY), 1.0 - LEAST_PROBABILITY)
        other = g.op("Sub", 1.0, share)
        shape = np.array([-1, k, k], np.int64)
        pairs = class_pairs(k)
        upper, lower = np.zeros((2, len(pairs), k * k))
        for p, (i, j) in enumerate(pairs):
            upper[p, i * k + j] = lower[p, j * k + i] = 1.0
        ratios = g.op("Reshape", g.op("Add", g.op("MatMul", share, upper), g.op("MatMul", other, lower)), shape)
        mirrored = g.op("Transpose", ratios, perm=[0, 2, 1])
        squares = g.rows_sum(
            g.op("Mul", ratios, ratios), axis=1, keepdims=True
        )  # for each class t, the sum over j of P(j given j or t)^2
        diagonal = g.op("Mul", squares, np.eye(k))
        matrix = g.op("Sub", diagonal, g.op("Mul", ratios, mirrored))
        start = g.op("Add", g.op("Mul", g.columns(self.known.values, [0] * k), 0.0), 1.0 / k)
        active = g.cast(g.op("Add", g.op("Mul", g.columns(start, [0]), 0.0), 1.0), np.bool_)

        def sweep(_: str, state: list[str]) -> tuple[str, list[str]]:
            p, going = state
            products = g.op("Squeeze", g.op("MatMul", matrix, g.op("Unsqueeze", p, np.array([2]))), np.array([2]))
            norm = g.rows_sum(g.op("Mul", p, products), keepdims=True)
            error = g.op("ReduceMax", g.op("Abs", g.op("Sub", products, norm)), axes=[1], keepdims=1)
            going = g.op("And", going, g.op("Not", g.op("Less", error, COUPLING_TOLERANCE / k)))
            swept = self._sweep(matrix, p, products, norm)
            undecided = g.op("ReduceSum", g.cast(going, np.int64), keepdims=0)
            goes_on = g.op("Greater", undecided, np.array(0, np.int64))
            return goes_on, [g.op("Where", going, swept, p), going]

        state = [(start, np.float64, (None, k)), (active, np.bool_, (None, 1))]
        return g.loop(sweep, state, g.constant(np.array(max(COUPLING_SWEEPS, k), np.int64)))[0]

    def _sweep(self, matrix: str, p: str, products: str, norm: str) -> str:
        """Minimize the error over the probability of one class at a time."""
        g = self.g
        for t in range(self.n_classes):
            row = g.op("Gather", matrix, np.array(t, np.int64), axis=1)
            diagonal, product = g.columns(row, [t]), g.columns(products, [t])
            step = g.op("Div", g.op("Sub", norm, product), diagonal)
            scale = g.op("Add", step, 1.0)
            unit: FloatArray = np.eye(self.n_classes)[t : t + 1]
            inner = g.op("Add", g.op("Mul", step, diagonal), g.op("Mul", product, 2.0))
            norm = g.op("Div", g.op("Div", g.op("Add", norm, g.op("Mul", step, inner)), scale), scale)
            products = g.op("Div", g.op("Add", products, g.op("Mul", step, row)), scale)
            p = g.op("Div", g.op("Add", p, g.op("Mul", step, unit)), scale)
        return p


def _calibration(probability: ClassProbability) -> OneVsRestCalibration:
    """Return `probability` if it is a OneVsRestCalibration; raise UnsupportedModelError otherwise."""
    if isinstance(probability, OneVsRestCalibration):
        return probability
    raise UnsupportedModelError(f"the ONNX export does not support {probability.kind} probabilities")


def beats_all(g: GraphBuilder, winner: str, low: str, high: str, n_classes: int, slack: float) -> str:
    """Return a boolean array of shape (n_rows,): whether the winner's lower bound exceeds the others' upper bounds."""
    is_winner = g.op("Equal", g.op("Unsqueeze", winner, np.array([1])), np.arange(n_classes)[np.newaxis])
    zero = np.zeros(1)
    least = g.rows_sum(g.op("Where", is_winner, low, zero), keepdims=True)
    ahead = g.op("Greater", least, g.op("Add", high, slack))
    beaten = g.op("Or", ahead, is_winner)
    return g.op("Equal", g.rows_sum(g.cast(beaten, np.int64)), np.array(n_classes, np.int64))


def by_threshold(g: GraphBuilder, outputs: Outputs, numbers: str) -> str:
    """Return label indices of shape (n_rows,), given the value or probability of the label that has the threshold."""
    assert outputs.threshold is not None
    reaches = g.op("Squeeze", g.op("GreaterOrEqual", numbers, outputs.threshold), np.array([1]))
    label = outputs.threshold_label
    return g.op("Where", reaches, np.array(label, np.int64), np.array(1 - label, np.int64))


def on_one_side(g: GraphBuilder, outputs: Outputs, low: str, high: str, slack: float) -> str:
    """Return a boolean array of shape (n_rows,): whether `low` and `high` are on the same side of the threshold."""
    assert outputs.threshold is not None
    reaches = g.op("GreaterOrEqual", low, outputs.threshold + slack)
    misses = g.op("Less", high, outputs.threshold - slack)
    return g.op("Squeeze", g.op("Or", reaches, misses), np.array([1]))


class TargetOutputs:
    """Labels of several targets, one member per target; a regressor contributes the signs of all its values.

    Each member comes with an array that maps its label indices to the ensemble's.
    """

    def __init__(
        self, g: GraphBuilder, members: list[tuple[ClassOutputs | KnownValues, npt.NDArray[np.int64]]]
    ) -> None:
        self.g, self.members = g, members

    def predicted(self) -> str:
        """Return the indices of the predicted labels, shape (n_rows, n_targets)."""
        g, columns = self.g, []
        for member, positions in self.members:
            if isinstance(member, KnownValues):
                columns.append(g.cast(g.op("Greater", member.values, 0.0), np.int64))
            else:
                columns.append(g.op("Unsqueeze", g.op("Gather", positions, member.predicted()), np.array([1])))
        return g.op("Concat", *columns, axis=1)

    def certain(self, _predicted: str) -> str:
        """Return a boolean array of shape (n_rows, n_targets): whether the bounds certify the label."""
        g, columns = self.g, []
        for member, _ in self.members:
            if isinstance(member, KnownValues):
                assert member.bounds is not None
                columns.append(g.op("Greater", g.op("Abs", member.values), member.bounds))
            else:
                columns.append(g.op("Unsqueeze", member.certain(member.predicted()), np.array([1])))
        return g.op("Concat", *columns, axis=1)


class VoteOutputs:
    """Classes of an ensemble whose members vote; a member's weights have shape (n_classes, n_labels)."""

    def __init__(self, g: GraphBuilder, n_classes: int, members: list[tuple[ClassOutputs, FloatArray]]) -> None:
        self.g, self.n_classes, self.members = g, n_classes, members

    def predicted(self) -> str:
        """Return the indices of the predicted labels, shape (n_rows,)."""
        g = self.g
        sums = [g.op("Gather", weights.T, member.predicted()) for member, weights in self.members]
        return g.op("ArgMax", g.op("Sum", *sums), axis=1, keepdims=0)

    def certain(self, predicted: str) -> str:
        """Return a boolean array of shape (n_rows,): whether the bounds certify the row's class.

        An undecided member may vote for any of its labels.
        """
        g = self.g
        low: list[str] = []
        high: list[str] = []
        for member, weights in self.members:
            label = member.predicted()
            votes = g.op("Gather", weights.T, label)
            known = g.op("Unsqueeze", member.certain(label), np.array([1]))
            for ends, limit in ((low, np.minimum), (high, np.maximum)):
                ends.append(g.op("Where", known, votes, limit.reduce(weights, axis=1, initial=0.0)[np.newaxis]))
        slack = SLACK * sum(float(np.abs(weights).max()) for _, weights in self.members)
        return beats_all(g, predicted, g.op("Sum", *low), g.op("Sum", *high), self.n_classes, slack)
