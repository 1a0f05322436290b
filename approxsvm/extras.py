"""Outputs and input maps as fixed-width numbers: the sections that say what happens before and after the kernel."""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ApproxSVMError, ArtifactError
from approxsvm.heads import (
    DensityMarks,
    Heads,
    IsotonicCalibrator,
    LaplaceNoise,
    OneVsRestCalibration,
    PairwiseSigmoid,
    Probability,
    SigmoidCalibrator,
    TemperatureCalibration,
)
from approxsvm.input_map import AFFINE_PARTS, Affine, InputMap, Projection

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


def is_plain(heads: Heads, n_classes: int) -> bool:
    """Whether there is nothing to say: labels by votes, no probabilities, values of the pairs as they are."""
    shaped = n_classes > 2 and heads.decision_shape != "ovo"
    return heads.probability is None and heads.label_rule == "votes" and not shaped


def pack_heads(heads: Heads) -> bytes:
    """As fixed-width numbers (models/FORMAT.md, "outputs")."""
    head = heads.probability
    positive, calibration_shape, n_calibrators = 0, 0, 0
    if isinstance(head, PairwiseSigmoid):
        positive = int(head.couple_two_classes)
    if isinstance(head, (OneVsRestCalibration, TemperatureCalibration)):
        positive = head.positive
    if isinstance(head, OneVsRestCalibration):
        calibration_shape, n_calibrators = _SHAPES.index(head.decision_shape), len(head.calibrators)
    header = _OUTPUTS_HEADER.pack(
        _SHAPES.index(heads.decision_shape),
        _LABEL_RULES.index(heads.label_rule),
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


def unpack_heads(content: bytes, task: str, n_classes: int) -> Heads:
    """Read what `pack_heads` wrote.

    Raises
    ------
    ArtifactError
        The bytes are something else, or do not suit the model.
    """
    try:
        heads = _OutputsReader(content).read(n_classes)
        heads.check(task, n_classes)
    except ApproxSVMError as error:
        raise ArtifactError(f"section outputs cannot be read: {error}") from None
    return heads


class _Reader:
    """Takes numbers off the front; nothing is allocated that the bytes do not hold."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def _take(self, numbers: struct.Struct) -> tuple[int, ...]:
        return numbers.unpack(self._bytes(numbers.size))

    def _numbers(self, n: int) -> npt.NDArray[np.float64]:
        return np.frombuffer(self._bytes(8 * n), "<f8").astype(np.float64)

    def _bytes(self, n: int) -> bytes:
        piece = self._content[self._at : self._at + n]
        if len(piece) < n:
            raise ArtifactError(f"it has {len(self._content)} bytes, but needs {self._at + n}")
        self._at += n
        return piece

    def _end(self) -> None:
        if self._at != len(self._content):
            raise ArtifactError(f"it ends at byte {self._at} of {len(self._content)}")


class _OutputsReader(_Reader):
    def read(self, n_classes: int) -> Heads:
        header = self._take(_OUTPUTS_HEADER)
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
        self._end()
        return Heads(probability, _LABEL_RULES[rule], _SHAPES[shape])

    def _probability(self, kind: type, positive: int, n_classes: int) -> Probability | None:
        if kind is PairwiseSigmoid:
            n_pairs = n_classes * (n_classes - 1) // 2
            return PairwiseSigmoid(self._numbers(n_pairs), self._numbers(n_pairs), bool(positive))
        if kind is LaplaceNoise:
            return LaplaceNoise(float(self._numbers(1)[0]))
        if kind is DensityMarks:
            return DensityMarks(self._numbers(10))
        if kind is TemperatureCalibration:
            return TemperatureCalibration(float(self._numbers(1)[0]), positive)
        return None

    def _calibrator(self) -> SigmoidCalibrator | IsotonicCalibrator:
        (n_knots,) = self._take(struct.Struct("<Q"))
        if n_knots == 0:
            slope, intercept = self._numbers(2).tolist()
            return SigmoidCalibrator(slope, intercept)
        return IsotonicCalibrator(self._numbers(n_knots), self._numbers(n_knots))


# An input map: header, columns, then the stages one after the other, everything at a multiple of 8 bytes.
_HEADER: Final = struct.Struct("<IIQ")  # selected columns, stages, raw features
_STAGE: Final = struct.Struct("<IIQ")  # kind, parts that are there, features that come out
_AFFINE, _PROJECTION = 0, 1


def pack_input_map(input_map: InputMap) -> bytes:
    """As fixed-width numbers (models/FORMAT.md, "input_map")."""
    columns = input_map.columns.astype("<u4").tobytes()
    stages = [stage for stage in input_map.stages if not (isinstance(stage, Affine) and stage.is_identity)]
    pieces = [_HEADER.pack(len(input_map.columns), len(stages), input_map.n_raw_features)]
    pieces.append(columns + bytes(-len(columns) % 8))
    for stage in stages:
        if isinstance(stage, Affine):
            arrays = [getattr(stage, name) for name in AFFINE_PARTS]
            present = sum(1 << k for k, values in enumerate(arrays) if values is not None)
            pieces.append(_STAGE.pack(_AFFINE, present, stage.n_outputs))
        else:
            arrays = [stage.center, stage.matrix, stage.bias, stage.bias_error]
            pieces.append(_STAGE.pack(_PROJECTION, 0, stage.n_outputs))
        pieces += [values.astype("<f8").tobytes() for values in arrays if values is not None]
    return b"".join(pieces)


def unpack_input_map(content: bytes, n_raw_features: int | None, n_features: int) -> InputMap:
    """Read what `pack_input_map` wrote; n_raw_features is what it says where the caller does not know.

    Raises
    ------
    ArtifactError
        The bytes are something else, or do not suit the model.
    """
    try:
        found = _InputMapReader(content).read()
    except (ApproxSVMError, struct.error) as error:
        raise ArtifactError(f"section input_map cannot be read: {error}") from None
    if n_raw_features is None:
        n_raw_features = found.n_raw_features
    if (found.n_raw_features, found.n_features) != (n_raw_features, n_features):
        raise ArtifactError(
            f"section input_map cannot be read: it maps {found.n_raw_features} to {found.n_features} features, "
            f"but the model has {n_raw_features} and {n_features}"
        )
    return found


class _InputMapReader(_Reader):
    def read(self) -> InputMap:
        n_columns, n_stages, n_raw = self._take(_HEADER)
        columns = np.frombuffer(self._bytes(4 * n_columns), "<u4").astype(np.intp)
        if any(self._bytes(-4 * n_columns % 8)):
            raise ArtifactError("the padding behind the columns is not zero")
        if not 1 <= n_raw <= 1 << 20 or n_columns > 1 << 20 or n_stages > len(self._content) // _STAGE.size:
            raise ArtifactError(f"it says {n_raw} raw features, {n_columns} columns and {n_stages} stages")
        stages: list[Affine | Projection] = []
        n = n_columns
        for _ in range(n_stages):
            stages.append(self._stage(n))
            n = stages[-1].n_outputs
        self._end()
        return InputMap(n_raw, columns, tuple(stages))

    def _stage(self, n: int) -> Affine | Projection:
        kind, present, n_outputs = self._take(_STAGE)
        if kind == _AFFINE and n_outputs == n and 0 < present < 1 << len(AFFINE_PARTS):
            wanted = [name for k, name in enumerate(AFFINE_PARTS) if present >> k & 1]
            return Affine(n, **{name: self._numbers(n) for name in wanted})
        if kind == _PROJECTION and present == 0 and n_outputs <= 1 << 20:
            center, matrix = self._numbers(n), self._numbers(n * n_outputs).reshape(n, n_outputs)
            return Projection(center, matrix, self._numbers(n_outputs), self._numbers(n_outputs))
        raise ArtifactError(f"a stage of kind {kind} with parts {present} turns {n} features into {n_outputs}")
