"""Class probabilities in a header, with intervals for the exact ones, as in cpp/include/approxsvm/outputs.

Probabilities are monotone functions of each value or score, so the ends of the interval of a value map to the ends of
the interval of a probability. Each end is widened by more than its rounding error; exp is accurate to 2^-48
(probabilities_source.py). There are two exceptions: the coupling of three or more classes, for which only [0, 1] is
claimed, and the coupling of two, whose iteration stops within 0.005 of the sigmoid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99 import probabilities_source
from approxsvm.backends.c99.device_router import smallest
from approxsvm.ir.constants import COUPLING_SWEEPS
from approxsvm.ir.outputs import (
    ClassProbability,
    DensityMarks,
    OneVsRestCalibration,
    PairwiseSigmoid,
    SigmoidCalibrator,
    TemperatureCalibration,
)

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Shares:
    """The code and data that compute probabilities.

    Attributes
    ----------
    text : str
        The function `shares`.
    arrays : dict of str to ndarray
    by_scores : bool
        Whether the function takes scores of classes.
    numbers_per_class : int
        Number of float64 values on the stack.
    """

    text: str
    arrays: Arrays = field(default_factory=dict)
    by_scores: bool = False
    numbers_per_class: int = 4

    def functions(self) -> Iterator[str]:
        """Yield the functions, without those that compute scores."""
        yield probabilities_source.ENDS
        yield self.text


def shares_of(artifact: Artifact) -> Shares | None:
    """Return the code for an artifact's probabilities, or None if it has no class probabilities."""
    head = artifact.outputs.probability
    found = _BY_KIND.get(type(head))
    return None if found is None else found(artifact, head)


def has_shares(head: Any) -> bool:
    """Return whether the export supports the output: class probabilities it knows, or no class probabilities."""
    return type(head) in _BY_KIND or not isinstance(head, ClassProbability)


def _pairwise(artifact: Artifact, head: PairwiseSigmoid) -> Shares:
    n = len(artifact.labels)
    arrays: Arrays = {"prob_a_": head.prob_a.copy(), "prob_b_": head.prob_b.copy()}
    if n == 2 and not head.couple_two_classes:
        return Shares(probabilities_source.ONE_SIGMOID + _two_shares(), arrays)
    text = probabilities_source.COUPLED.replace("#SWEEPS#", str(max(n, COUPLING_SWEEPS)))
    return Shares(text, arrays, numbers_per_class=5 + n)


def _calibrated(artifact: Artifact, head: OneVsRestCalibration) -> Shares:
    knots, heights, kinds, ends = [], [], [], [0]
    for one in head.calibrators:
        is_sigmoid = isinstance(one, SigmoidCalibrator)
        knots.append([one.slope] if isinstance(one, SigmoidCalibrator) else one.knots)
        heights.append([one.intercept] if isinstance(one, SigmoidCalibrator) else one.heights)
        kinds.append(is_sigmoid)
        ends.append(ends[-1] + len(knots[-1]))
    arrays: Arrays = {
        "knots_": np.concatenate(knots).astype(np.float64),
        "heights_": np.concatenate(heights).astype(np.float64),
        "is_sigmoid_": np.array(kinds, np.uint8),
        "knot_ends_": smallest(np.array(ends)),
    }
    if len(artifact.labels) == 2:
        text = probabilities_source.ONE_CALIBRATED.replace("#SIGN#", "" if head.positive == 0 else "-")
        return Shares(probabilities_source.CALIBRATED + text + _two_shares(head.positive), arrays)
    by_scores = head.decision_shape == "ovr"
    inputs = probabilities_source.OF_SCORES if by_scores else probabilities_source.OF_VALUES
    several = probabilities_source.ALL_CALIBRATED.replace("#INPUTS#", inputs).replace("#POSITIVE#", str(head.positive))
    text = probabilities_source.CALIBRATED + probabilities_source.SHARE_ENDS + several
    return Shares(text, arrays, by_scores, numbers_per_class=8)


def _two_shares(known: int = 0) -> str:
    """Return the text for two classes, given the probability of one."""
    return probabilities_source.TWO_SHARES.replace("#A#", str(known)).replace("#B#", str(1 - known))


def _temperature(artifact: Artifact, head: TemperatureCalibration) -> Shares:
    arrays: Arrays = {"inverse_temperature_": np.array([head.inverse_temperature])}
    if len(artifact.labels) == 2:
        return Shares(probabilities_source.ONE_SOFTMAX + _two_shares(), arrays)
    return Shares(
        probabilities_source.SHARE_ENDS + probabilities_source.SOFTMAX, arrays, by_scores=True, numbers_per_class=8
    )


def _density(artifact: Artifact, head: DensityMarks) -> Shares:
    return Shares(probabilities_source.DENSITY + _two_shares(), {"marks_": head.marks.copy()})


_BY_KIND: Final[dict[type, Callable[[Artifact, Any], Shares]]] = {
    PairwiseSigmoid: _pairwise,
    OneVsRestCalibration: _calibrated,
    TemperatureCalibration: _temperature,
    DensityMarks: _density,
}
