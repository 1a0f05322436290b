"""Probabilities of classes in a header, and between what they lie, as cpp/include/approxsvm/outputs has them.

Every function that makes probabilities is monotone in each value or score, so the ends of an interval of those give the
ends of one of these. Each end is widened by more than its own rounding; exp is within 2^-48 (probabilities_source.py).
Two are not such functions: the coupling of three and more classes, of which nothing but [0, 1] is claimed, and that
of two, which stops within 0.005 of its sigmoid.
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
    """What probabilities are made of.

    Attributes
    ----------
    text : str
        Of the function `shares`.
    arrays : dict of str to ndarray
    by_scores : bool
        Whether it takes scores of classes.
    numbers_per_class : int
        Of float64, on the stack.
    """

    text: str
    arrays: Arrays = field(default_factory=dict)
    by_scores: bool = False
    numbers_per_class: int = 4

    def functions(self) -> Iterator[str]:
        """Those of scores aside."""
        yield probabilities_source.ENDS
        yield self.text


def shares_of(artifact: Artifact) -> Shares | None:
    """Those of an artifact; None where it has no probabilities of classes."""
    head = artifact.outputs.probability
    found = _BY_KIND.get(type(head))
    return None if found is None else found(artifact, head)


def has_shares(head: Any) -> bool:
    """Whether it is known what becomes of values: probabilities of classes, or nothing."""
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
    """Of two classes, from the share of one."""
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
