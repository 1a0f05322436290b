"""Outputs of a source: its label rule and probability parameters.

Decision values have LIBSVM's orientation and order everywhere: one column per pair of classes (0, 1), (0, 2), ..., (1,
2), ... A positive value is a vote for the first class of the pair, and any other value is a vote for the second.
Classes are indices into the model's labels. The core evaluates outputs (runtime.evaluator.native_outputs); the tests'
extended-precision oracle is tests/zoo/class_numbers.py.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np

from approxsvm.errors import ModelFormatError
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.schema import MAX_EXCESS, MAX_INVERSE_TEMPERATURE, Task, limit

LabelRule = Literal["votes", "scores", "probability", "value_threshold", "probability_threshold"]
DecisionShape = Literal["ovo", "ovr", "each"]


_SHAPES: Final[tuple[DecisionShape, ...]] = get_args(DecisionShape)

# Label rules that use probabilities, and those that use a threshold.
BY_PROBABILITY: Final = ("probability", "probability_threshold")
BY_THRESHOLD: Final = ("value_threshold", "probability_threshold")


@lru_cache(maxsize=4)
def class_pairs(n_classes: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs (i, j), i < j, in LIBSVM's order."""
    return tuple(combinations(range(n_classes), 2))


def count_classes(n_pairs: int) -> int:
    """Return the number of classes that form `n_pairs` pairs; 1 if `n_pairs` is 0."""
    n_classes = round((1 + math.sqrt(1 + 8 * n_pairs)) / 2)
    if n_classes * (n_classes - 1) // 2 != n_pairs:
        raise ModelFormatError(f"{n_pairs} decision values are not one per pair of classes")
    return n_classes


class Probability:
    """Kind of probabilities: the task of models that have them, and the format of their parameters."""

    kind: ClassVar[str]  # name of the kind in schema.inc
    task: ClassVar[Task]  # task of the models that may have them
    has_values: ClassVar[bool] = True  # True if the source also has decision values
    of_labels: ClassVar[bool] = False  # True if each row has one probability per label

    @property
    def facts(self) -> tuple[int, int, int]:
        """The last three integers of the section's header: positive, calibration_shape, n_calibrators."""
        return 0, 0, 0

    def stored(self) -> list[Any]:
        """Return the contents after the header: float64 numbers or arrays, or bytes."""
        return []

    @classmethod
    def read(cls, reader: Any, facts: tuple[int, ...], n_classes: int) -> "Probability":
        """Read the contents written by `stored` from a SectionReader."""
        return cls()

    def check(self, n_classes: int) -> None:
        """Raise ModelFormatError unless the parameters fit a model with `n_classes` classes."""


class ClassProbability(Probability):
    """Class probabilities."""

    task, of_labels = "classification", True


@dataclass(frozen=True, eq=False)
class PairwiseSigmoid(ClassProbability):
    """LIBSVM's probabilities: one sigmoid per pair of classes, coupled if there are more than two classes."""

    # shape (n_pairs,); P(first class of the pair | value f) = 1 / (1 + exp(prob_a f + prob_b)); the probA and probB of
    # model files
    prob_a: FloatArray
    prob_b: FloatArray
    # scikit-learn's copy of LIBSVM uses the iteration of Wu, Lin and Weng even for two classes, with a result that
    # differs from the sigmoid by up to 0.005; LIBSVM itself (3.37) returns the sigmoid.
    couple_two_classes: bool = False
    kind = "pairwise_sigmoid"

    def __post_init__(self) -> None:
        if self.prob_a.ndim != 1 or self.prob_a.shape != self.prob_b.shape:
            raise ModelFormatError(f"prob_a has shape {self.prob_a.shape}, but prob_b {self.prob_b.shape}")
        _check_finite(prob_a=self.prob_a, prob_b=self.prob_b)
        count_classes(len(self.prob_a))

    @property
    def facts(self) -> tuple[int, int, int]:
        return int(self.couple_two_classes), 0, 0

    def stored(self) -> list[Any]:
        return [self.prob_a, self.prob_b]

    @classmethod
    def read(cls, reader: Any, facts: tuple[int, ...], n_classes: int) -> "PairwiseSigmoid":
        n_pairs = n_classes * (n_classes - 1) // 2
        return cls(reader.numbers(n_pairs), reader.numbers(n_pairs), bool(facts[0]))

    def check(self, n_classes: int) -> None:
        n_pairs = n_classes * (n_classes - 1) // 2
        if len(self.prob_a) != n_pairs:
            raise ModelFormatError(f"{len(self.prob_a)} pairwise sigmoids for {n_pairs} pairs of classes")


@dataclass(frozen=True, eq=False)
class LaplaceNoise(Probability):
    """LIBSVM's probability model for regression: target = predicted value + z with density exp(-|z|/sigma)/(2 sigma).

    ``svm-predict -b 1`` prints sigma to standard output; its output file is the same as without ``-b 1``.
    """

    sigma: float  # probA of the model file; at least 0
    kind, task = "laplace_noise", "regression"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.sigma) and self.sigma >= 0):
            raise ModelFormatError(f"the laplace sigma is {self.sigma}, but must be a finite number of at least 0")

    def stored(self) -> list[Any]:
        return [self.sigma]

    @classmethod
    def read(cls, reader: Any, facts: tuple[int, ...], n_classes: int) -> "LaplaceNoise":
        return cls(float(reader.numbers(1)[0]))


@dataclass(frozen=True, eq=False)
class DensityMarks(Probability):
    """LIBSVM's probability of being normal, for one-class models: a step function of the decision value."""

    marks: FloatArray  # shape (10,); prob_density_marks of the model file, non-decreasing
    kind, task, of_labels = "density_marks", "one_class", True
    n_marks: ClassVar[int] = limit("n_density_marks")

    def __post_init__(self) -> None:
        if self.marks.shape != (self.n_marks,):
            raise ModelFormatError(f"there are {self.marks.size} density marks, expected {self.n_marks}")
        _check_finite(prob_density_marks=self.marks)
        if (np.diff(self.marks) < 0).any():
            raise ModelFormatError(f"density marks must ascend, got {self.marks.tolist()}")

    def stored(self) -> list[Any]:
        return [self.marks]

    @classmethod
    def read(cls, reader: Any, facts: tuple[int, ...], n_classes: int) -> "DensityMarks":
        return cls(reader.numbers(cls.n_marks))


@dataclass(frozen=True)
class SigmoidCalibrator:
    """1 / (1 + exp(slope f + intercept)), scikit-learn's method="sigmoid"."""

    slope: float
    intercept: float

    def __post_init__(self) -> None:
        _check_finite(slope=np.array([self.slope]), intercept=np.array([self.intercept]))

    def stored(self) -> list[Any]:
        """Return 0 as the number of knots, then the parameters."""
        return [bytes(8), self.slope, self.intercept]


@dataclass(frozen=True, eq=False)
class IsotonicCalibrator:
    """Monotone piecewise linear function, constant outside the knots: scikit-learn's method="isotonic"."""

    # shape (n_knots,); `knots` are strictly increasing, `heights` are non-decreasing; the heights are probabilities, up
    # to scikit-learn's rounding
    knots: FloatArray
    heights: FloatArray

    def __post_init__(self) -> None:
        if self.knots.ndim != 1 or self.knots.shape != self.heights.shape or len(self.knots) == 0:
            raise ModelFormatError(f"{self.knots.shape} knots do not match {self.heights.shape} heights")
        _check_finite(knots=self.knots, heights=self.heights)
        with np.errstate(over="ignore", under="ignore"):
            gaps, steps = np.diff(self.knots), np.diff(self.heights)
            slopes = steps[steps > 0] / gaps[steps > 0] if (gaps > 0).all() else gaps
        if not (gaps > 0).all() or not (steps >= 0).all():
            raise ModelFormatError("the isotonic calibrator is not monotone, or its knots do not ascend")
        if self.heights[0] < 0 or self.heights[-1] > 1 + MAX_EXCESS:
            raise ModelFormatError(f"the isotonic calibrator goes from {self.heights[0]} to {self.heights[-1]}")
        # The rounding error of an interpolation must have a bound relative to the result.
        if not ((slopes >= np.finfo(np.float64).tiny) & (slopes < np.inf)).all():
            raise ModelFormatError("the isotonic calibrator is too steep or too flat for float64")

    def stored(self) -> list[Any]:
        """Return the number of knots, the knots and the heights."""
        return [len(self.knots).to_bytes(8, "little"), self.knots, self.heights]


def _read_calibrator(reader: Any) -> SigmoidCalibrator | IsotonicCalibrator:
    n_knots = int(reader.array("<u8", 1)[0])
    if n_knots == 0:
        return SigmoidCalibrator(*reader.numbers(2).tolist())
    return IsotonicCalibrator(reader.numbers(n_knots), reader.numbers(n_knots))


@dataclass(frozen=True, eq=False)
class OneVsRestCalibration(ClassProbability):
    """One calibrator per class (one for two classes), normalized: scikit-learn's methods "sigmoid" and "isotonic"."""

    # Calibrators are in the order of the model's labels. With two classes, there is a single one, for the class
    # `positive`.
    calibrators: tuple[SigmoidCalibrator | IsotonicCalibrator, ...]
    # With two classes, the class whose probability is calibrated; the calibrator's input is the model's decision value
    # if `positive` is 0, and the negated value if `positive` is 1 (scikit-learn's orientation for support vector
    # machines). With more classes, the treatment of probabilities that are all 0: if `positive` is 1, equal
    # probabilities replace them; if it is 0, they stay 0, as in OneVsRestClassifier.
    positive: int = 1
    # Input of the calibrators with more than two classes: one-vs-rest scores, or the values of the first n_classes
    # pairs (as in scikit-learn, although these values have little meaning)
    decision_shape: DecisionShape = "ovr"
    kind = "one_vs_rest_calibration"

    def __post_init__(self) -> None:
        if len(self.calibrators) in (0, 2):
            raise ModelFormatError(f"{len(self.calibrators)} calibrators: two classes have 1, k > 2 classes have k")
        if self.positive not in (0, 1):
            raise ModelFormatError(f"positive is {self.positive}, but must be 0 or 1")

    @property
    def facts(self) -> tuple[int, int, int]:
        return self.positive, _SHAPES.index(self.decision_shape), len(self.calibrators)

    def stored(self) -> list[Any]:
        return [part for calibrator in self.calibrators for part in calibrator.stored()]

    @classmethod
    def read(cls, reader: Any, facts: tuple[int, ...], n_classes: int) -> "OneVsRestCalibration":
        positive, shape, n_calibrators = facts
        return cls(tuple(_read_calibrator(reader) for _ in range(n_calibrators)), positive, _SHAPES[shape])

    def check(self, n_classes: int) -> None:
        if len(self.calibrators) != (1 if n_classes == 2 else n_classes):
            raise ModelFormatError(f"{len(self.calibrators)} calibrators for {n_classes} classes")


@dataclass(frozen=True)
class TemperatureCalibration(ClassProbability):
    """softmax(inverse_temperature * scores), as in scikit-learn's method="temperature".

    With two labels, the scores are f and -f, because a positive value favors the first label.
    """

    inverse_temperature: float  # positive, at most MAX_INVERSE_TEMPERATURE, so that twice its value is finite
    positive: int = 1  # as in `OneVsRestCalibration`
    kind = "temperature_calibration"

    def __post_init__(self) -> None:
        if not 0 < self.inverse_temperature <= MAX_INVERSE_TEMPERATURE:
            raise ModelFormatError(
                f"the inverse temperature is {self.inverse_temperature}, but must be above 0 and at most "
                f"{MAX_INVERSE_TEMPERATURE}"
            )
        if self.positive not in (0, 1):
            raise ModelFormatError(f"positive is {self.positive}, but must be 0 or 1")

    @property
    def facts(self) -> tuple[int, int, int]:
        return self.positive, 0, 0

    def stored(self) -> list[Any]:
        return [self.inverse_temperature]

    @classmethod
    def read(cls, reader: Any, facts: tuple[int, ...], n_classes: int) -> "TemperatureCalibration":
        return cls(float(reader.numbers(1)[0]), facts[0])


SOFTMAX: Final = TemperatureCalibration(1.0)


@dataclass(frozen=True)
class MembersMean(ClassProbability):
    """Ensemble probabilities: weighted sums of the members' probabilities, divided by the total weight."""

    total: float  # at least 2^-900
    kind = "members_mean"

    def __post_init__(self) -> None:
        if not 2.0**-900 <= self.total < math.inf:
            raise ModelFormatError(f"the total of the weights is {self.total}, but must be at least 2^-900 and finite")

    def stored(self) -> list[Any]:
        return [self.total]

    @classmethod
    def read(cls, reader: Any, facts: tuple[int, ...], n_classes: int) -> "MembersMean":
        return cls(float(reader.numbers(1)[0]))


@dataclass(frozen=True)
class GaussianDensity(Probability):
    """Values that are means of Gaussian kernels, i.e. densities up to a factor (density.py computes logarithms)."""

    kind, task = "gaussian_density", "regression"


@dataclass(frozen=True)
class SignAlone(Probability):
    """Labels determined by the sign of a latent function, without decision values or probabilities."""

    kind, task, has_values = "sign_alone", "classification", False


PROBABILITIES: Final[dict[str, type[Probability]]] = {
    one.kind: one
    for one in (
        PairwiseSigmoid,
        LaplaceNoise,
        DensityMarks,
        OneVsRestCalibration,
        TemperatureCalibration,
        MembersMean,
        GaussianDensity,
        SignAlone,
    )
}


@dataclass(frozen=True, eq=False)
class Outputs:
    """Outputs that the source derives from decision values."""

    probability: Probability | None = None  # kind of probabilities; None if the source has none
    # Rule by which `predict` chooses a label: most votes (LIBSVM, scikit-learn), best score (break_ties=True, linear
    # models), or largest probability, where ties go to the first class (CalibratedClassifierCV). With two classes, or
    # with inlier and outlier, there may be a threshold: the label is `threshold_label` if the value or probability is
    # at least the threshold.
    label_rule: LabelRule = "votes"
    # Result of decision_function for more than two classes: pairwise values; one-vs-rest scores computed from them; or,
    # if the model has one function per class, the functions' values, which are also the scores. If members produce
    # labels, "ovr" means that each label states whether the row belongs to one particular class (multilabel
    # classification); if members vote, "ovr" means that the source has decision values, and vote fractions as
    # probabilities.
    decision_shape: DecisionShape = "ovo"
    is_column: bool = False  # True if regression values have shape (n_rows, 1), like the source's targets
    threshold: float | None = None  # threshold, for label rules that use one
    threshold_label: int = 0  # label for values at or above the threshold; lower values get the other label

    def __post_init__(self) -> None:
        if self.label_rule not in get_args(LabelRule):
            raise ModelFormatError(f"unknown label rule {self.label_rule!r}")
        if self.decision_shape not in get_args(DecisionShape):
            raise ModelFormatError(f"decision_shape is {self.decision_shape!r}, but must be 'ovo', 'ovr' or 'each'")
        if self.label_rule in BY_PROBABILITY and not isinstance(self.probability, ClassProbability):
            raise ModelFormatError("labels by probability need class probabilities")
        if (self.threshold is not None) != (self.label_rule in BY_THRESHOLD):
            raise ModelFormatError(f"the threshold is {self.threshold} for labels by {self.label_rule}")
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ModelFormatError(f"the threshold is {self.threshold}, but must be finite")
        if self.threshold_label not in (0, 1):
            raise ModelFormatError(f"threshold_label is {self.threshold_label}, but must be 0 or 1")

    @property
    def of_each_class(self) -> bool:
        """True if there is one decision function per class, instead of one per pair."""
        return self.decision_shape == "each"

    def check(self, task: str, n_classes: int) -> None:
        """Raise ModelFormatError unless these outputs fit a model of this task with `n_classes` classes."""
        probability = self.probability
        if probability is not None and probability.task != task:
            raise ModelFormatError(f"a {task} model cannot have probabilities by {type(probability).__name__}")
        is_inlier_rule = task == "one_class" and self.label_rule == "value_threshold"
        if self.label_rule != "votes" and task != "classification" and not is_inlier_rule:
            raise ModelFormatError(f"a {task} model cannot label by {self.label_rule}")
        if self.label_rule in BY_THRESHOLD and n_classes > 2:
            raise ModelFormatError(f"a threshold cannot separate {n_classes} classes")
        has_pairs = self.label_rule == "votes" or isinstance(probability, PairwiseSigmoid)
        if self.of_each_class and (n_classes < 3 or has_pairs):
            raise ModelFormatError(f"functions of each of {n_classes} classes allow no votes or pairwise sigmoids")
        if self.is_column and task != "regression":
            raise ModelFormatError(f"a {task} model cannot have values of the shape (n_rows, 1)")
        if probability is not None:
            probability.check(n_classes)


def _check_finite(**arrays: FloatArray) -> None:
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise ModelFormatError(f"{name} contains NaN or infinity")
