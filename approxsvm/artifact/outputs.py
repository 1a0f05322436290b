"""Outputs as fixed-width numbers: the section that says what decision values become."""

from __future__ import annotations

import struct
from typing import Any, Final, cast

import numpy as np

from approxsvm.artifact.section_reader import SectionReader
from approxsvm.model.outputs import (
    BY_THRESHOLD,
    DecisionShape,
    DensityMarks,
    IsotonicCalibrator,
    LabelRule,
    LaplaceNoise,
    MembersMean,
    OneVsRestCalibration,
    Outputs,
    PairwiseSigmoid,
    Probability,
    SigmoidCalibrator,
    TemperatureCalibration,
)
from approxsvm.model.schema import N_DENSITY_MARKS, names_of, record

_OUTPUTS_HEADER: Final = record("outputs")
_N_KNOTS: Final = struct.Struct("<Q")
_SHAPES: Final = cast(tuple[DecisionShape, ...], names_of("decision_shape"))
_LABEL_RULES: Final = cast(tuple[LabelRule, ...], names_of("label_rule"))
_TYPES: Final = {
    "none": type(None),
    "pairwise_sigmoid": PairwiseSigmoid,
    "laplace_noise": LaplaceNoise,
    "density_marks": DensityMarks,
    "one_vs_rest_calibration": OneVsRestCalibration,
    "temperature_calibration": TemperatureCalibration,
    "members_mean": MembersMean,
}
_KINDS: Final = tuple(_TYPES[name] for name in names_of("probability"))


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
        int(outputs.is_column) or _SHAPES.index(outputs.decision_shape),
        _LABEL_RULES.index(outputs.label_rule),
        _KINDS.index(type(head)),
        positive,
        calibration_shape,
        n_calibrators,
    )
    members = b"" if outputs.weights is None else _doubles(outputs.weights, outputs.addend)
    threshold = b"" if outputs.threshold is None else _doubles(outputs.threshold, outputs.threshold_label)
    return header + members + threshold + _packed_numbers(head)


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
        return _N_KNOTS.pack(0) + _doubles(calibrator.slope, calibrator.intercept)
    return _N_KNOTS.pack(len(calibrator.knots)) + _doubles(calibrator.knots, calibrator.heights)


def _doubles(*numbers: Any) -> bytes:
    return b"".join(np.asarray(part, dtype="<f8").tobytes() for part in numbers)


def unpack_outputs(content: Any, task: str, n_classes: int, n_members: int = 0) -> Outputs:
    """What `pack_outputs` wrote, for a model or an ensemble of so many members."""
    reader = SectionReader(content)
    shape, rule, kind, positive, calibration_shape, n_calibrators = reader.take(_OUTPUTS_HEADER)
    weights, addend, threshold, threshold_label = None, 0.0, None, 0
    weighs = _SHAPES[shape] != "each" and _LABEL_RULES[rule] != "targets"
    if n_members > 0 and (task == "regression" or weighs):
        weights, addend = reader.numbers(n_members), float(reader.numbers(1)[0])
    if _LABEL_RULES[rule] in BY_THRESHOLD:
        threshold, threshold_label = float(reader.numbers(1)[0]), int(reader.numbers(1)[0])
    n_pairs = n_classes * (n_classes - 1) // 2
    probability: Probability | None = None
    if _KINDS[kind] is PairwiseSigmoid:
        probability = PairwiseSigmoid(reader.numbers(n_pairs), reader.numbers(n_pairs), bool(positive))
    elif _KINDS[kind] is LaplaceNoise:
        probability = LaplaceNoise(float(reader.numbers(1)[0]))
    elif _KINDS[kind] is DensityMarks:
        probability = DensityMarks(reader.numbers(N_DENSITY_MARKS))
    elif _KINDS[kind] is TemperatureCalibration:
        probability = TemperatureCalibration(float(reader.numbers(1)[0]), positive)
    elif _KINDS[kind] is MembersMean:
        probability = MembersMean()
    elif _KINDS[kind] is OneVsRestCalibration:
        calibrators = tuple(_calibrator(reader) for _ in range(n_calibrators))
        probability = OneVsRestCalibration(calibrators, positive, _SHAPES[calibration_shape])
    numbers: dict[str, Any] = {"weights": weights, "addend": addend}
    numbers |= {"threshold": threshold, "threshold_label": threshold_label}
    if task == "regression":
        return Outputs(probability, _LABEL_RULES[rule], is_column=bool(shape), **numbers)
    return Outputs(probability, _LABEL_RULES[rule], _SHAPES[shape], **numbers)


def _calibrator(reader: SectionReader) -> SigmoidCalibrator | IsotonicCalibrator:
    (n_knots,) = reader.take(_N_KNOTS)
    if n_knots == 0:
        slope, intercept = reader.numbers(2).tolist()
        return SigmoidCalibrator(slope, intercept)
    return IsotonicCalibrator(reader.numbers(n_knots), reader.numbers(n_knots))
