"""Outputs as fixed-width numbers: the section that says what decision values become."""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np

from approxsvm.artifact.section_reader import SectionReader
from approxsvm.errors import ApproxSVMError, ArtifactError
from approxsvm.model.outputs import (
    DensityMarks,
    IsotonicCalibrator,
    LaplaceNoise,
    OneVsRestCalibration,
    Outputs,
    PairwiseSigmoid,
    Probability,
    SigmoidCalibrator,
    TemperatureCalibration,
)

# Outputs: decision_shape, label_rule, kind of probabilities, positive, calibration_shape, n_calibrators; then numbers.
_OUTPUTS_HEADER: Final = struct.Struct("<6I")
_SHAPES: Final = ("ovo", "ovr")
_LABEL_RULES: Final = ("votes", "scores", "probability")
_KINDS: Final = (
    type(None),
    PairwiseSigmoid,
    LaplaceNoise,
    DensityMarks,
    OneVsRestCalibration,
    TemperatureCalibration,
)


def is_plain(outputs: Outputs, n_classes: int) -> bool:
    """Whether there is nothing to say: labels by votes, no probabilities, values as they are."""
    shaped = n_classes > 2 and outputs.decision_shape != "ovo"
    return outputs.probability is None and outputs.label_rule == "votes" and not shaped and not outputs.is_column


def pack_outputs(outputs: Outputs) -> bytes:
    """As fixed-width numbers (models/FORMAT.md, "outputs")."""
    head = outputs.probability
    positive, calibration_shape, n_calibrators = 0, 0, 0
    if isinstance(head, PairwiseSigmoid):
        positive = int(head.couple_two_classes)
    if isinstance(head, (OneVsRestCalibration, TemperatureCalibration)):
        positive = head.positive
    if isinstance(head, OneVsRestCalibration):
        calibration_shape, n_calibrators = _SHAPES.index(head.decision_shape), len(head.calibrators)
    header = _OUTPUTS_HEADER.pack(
        int(outputs.is_column or outputs.decision_shape == "ovr"),
        _LABEL_RULES.index(outputs.label_rule),
        _KINDS.index(type(head)),
        positive,
        calibration_shape,
        n_calibrators,
    )
    return header + _packed_numbers(head)


def _packed_numbers(head: Probability | None) -> bytes:
    if isinstance(head, PairwiseSigmoid):
        return _doubles(head.prob_a, head.prob_b)
    if isinstance(head, LaplaceNoise):
        return _doubles(head.sigma)
    if isinstance(head, DensityMarks):
        return _doubles(head.marks)
    if isinstance(head, TemperatureCalibration):
        return _doubles(head.inverse_temperature)
    if isinstance(head, OneVsRestCalibration):
        return b"".join(_packed_calibrator(calibrator) for calibrator in head.calibrators)
    return b""


def _packed_calibrator(calibrator: SigmoidCalibrator | IsotonicCalibrator) -> bytes:
    if isinstance(calibrator, SigmoidCalibrator):
        return struct.pack("<Q", 0) + _doubles(calibrator.slope, calibrator.intercept)
    return struct.pack("<Q", len(calibrator.knots)) + _doubles(calibrator.knots, calibrator.heights)


def _doubles(*numbers: Any) -> bytes:
    return b"".join(np.asarray(part, dtype="<f8").tobytes() for part in numbers)


def unpack_outputs(content: bytes, task: str, n_classes: int) -> Outputs:
    """Read what `pack_outputs` wrote.

    Raises
    ------
    ArtifactError
        The bytes are something else, or do not suit the model.
    """
    try:
        outputs = _OutputsReader(content).read(task, n_classes)
        outputs.check(task, n_classes)
    except ApproxSVMError as error:
        raise ArtifactError(f"section outputs cannot be read: {error}") from None
    return outputs


class _OutputsReader(SectionReader):
    def read(self, task: str, n_classes: int) -> Outputs:
        header = self.take(_OUTPUTS_HEADER)
        shape, rule, kind, positive, calibration_shape, n_calibrators = header
        choices = (len(_SHAPES), len(_LABEL_RULES), len(_KINDS), 2, len(_SHAPES))
        if any(number >= n for number, n in zip(header[:5], choices, strict=True)):
            raise ArtifactError(f"its header is {header}")
        calibrated = _KINDS[kind] is OneVsRestCalibration
        oriented = calibrated or _KINDS[kind] in (PairwiseSigmoid, TemperatureCalibration)
        if (positive and not oriented) or ((calibration_shape or n_calibrators) and not calibrated):
            raise ArtifactError(f"its header is {header}, with numbers that probabilities of kind {kind} do not have")
        if calibrated:
            calibrators = tuple(self._calibrator() for _ in range(n_calibrators))
            probability: Any = OneVsRestCalibration(calibrators, positive, _SHAPES[calibration_shape])
        else:
            probability = self._probability(_KINDS[kind], positive, n_classes)
        self.end()
        if task == "regression":
            return Outputs(probability, _LABEL_RULES[rule], is_column=bool(shape))
        return Outputs(probability, _LABEL_RULES[rule], _SHAPES[shape])

    def _probability(self, kind: type, positive: int, n_classes: int) -> Probability | None:
        if kind is PairwiseSigmoid:
            n_pairs = n_classes * (n_classes - 1) // 2
            return PairwiseSigmoid(self.numbers(n_pairs), self.numbers(n_pairs), bool(positive))
        if kind is LaplaceNoise:
            return LaplaceNoise(float(self.numbers(1)[0]))
        if kind is DensityMarks:
            return DensityMarks(self.numbers(10))
        if kind is TemperatureCalibration:
            return TemperatureCalibration(float(self.numbers(1)[0]), positive)
        return None

    def _calibrator(self) -> SigmoidCalibrator | IsotonicCalibrator:
        (n_knots,) = self.take(struct.Struct("<Q"))
        if n_knots == 0:
            slope, intercept = self.numbers(2).tolist()
            return SigmoidCalibrator(slope, intercept)
        return IsotonicCalibrator(self.numbers(n_knots), self.numbers(n_knots))
