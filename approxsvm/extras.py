"""Heads and input maps as bytes: what an artifact carries beside its numbers, for Python alone."""

from __future__ import annotations

import json
import struct
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm import heads as head_types
from approxsvm.errors import ApproxSVMError, ArtifactError
from approxsvm.heads import Heads
from approxsvm.input_map import AFFINE_PARTS, Affine, InputMap, Projection

_KINDS: Final = {
    kind.__name__: kind
    for kind in (
        head_types.PairwiseSigmoid,
        head_types.LaplaceNoise,
        head_types.DensityMarks,
        head_types.SigmoidCalibrator,
        head_types.IsotonicCalibrator,
        head_types.OneVsRestCalibration,
        head_types.TemperatureCalibration,
        Heads,
    )
}


def is_plain(heads: Heads, n_classes: int) -> bool:
    """Whether there is nothing to say: labels by votes, no probabilities, values of the pairs as they are."""
    shaped = n_classes > 2 and heads.decision_shape != "ovo"
    return heads.probability is None and heads.label_rule == "votes" and not shaped


def pack_heads(heads: Heads) -> bytes:
    """As JSON text, every number with the digits that bring it back."""
    return json.dumps(_plain(heads), separators=(",", ":")).encode()


def unpack_heads(content: bytes, task: str, n_classes: int) -> Heads:
    """Read what `pack_heads` wrote.

    Raises
    ------
    ArtifactError
        The bytes are something else, or do not suit the model.
    """
    try:
        heads = _restored(json.loads(content))
        if not isinstance(heads, Heads):
            raise ValueError(f"it describes a {type(heads).__name__}")
        heads.check(task, n_classes)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, ApproxSVMError) as error:
        raise ArtifactError(f"section outputs cannot be read: {error}") from None
    return heads


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {"kind": type(value).__name__} | {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value


def _restored(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    content = dict(value)
    kind = _KINDS[content.pop("kind")]
    arguments = {}
    for field in fields(kind):
        found = content.pop(field.name)
        if isinstance(found, list):
            nested = [_restored(part) for part in found]
            found = tuple(nested) if any(isinstance(part, dict) for part in found) else np.array(nested, float)
        arguments[field.name] = _restored(found)
    if content:
        raise ValueError(f"unknown names {sorted(content)}")
    return kind(**arguments)


# An input map: header, columns, then the stages one after the other, everything at a multiple of 8 bytes.
_HEADER: Final = struct.Struct("<IIQ")  # selected columns, stages, raw features
_STAGE: Final = struct.Struct("<IIQ")  # kind, parts that are there, features that come out
_AFFINE, _PROJECTION = 0, 1


def pack_input_map(input_map: InputMap) -> bytes:
    """As fixed-width numbers (models/FORMAT.md, "input_map")."""
    columns = input_map.columns.astype("<u4").tobytes()
    pieces = [_HEADER.pack(len(input_map.columns), len(input_map.stages), input_map.n_raw_features)]
    pieces.append(columns + bytes(-len(columns) % 8))
    for stage in input_map.stages:
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


class _InputMapReader:
    """Takes numbers off the front; nothing is allocated that the bytes do not hold."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def read(self) -> InputMap:
        n_columns, n_stages, n_raw = self._take(_HEADER)
        columns = np.frombuffer(self._bytes(4 * n_columns), "<u4").astype(np.intp)
        if any(self._bytes(-4 * n_columns % 8)):
            raise ArtifactError("the padding behind the columns is not zero")
        if not 1 <= n_raw <= 1 << 20 or n_stages > len(self._content) // _STAGE.size:
            raise ArtifactError(f"it says {n_raw} raw features and {n_stages} stages")
        stages: list[Affine | Projection] = []
        n = n_columns
        for _ in range(n_stages):
            stages.append(self._stage(n))
            n = stages[-1].n_outputs
        if self._at != len(self._content):
            raise ArtifactError(f"it ends at byte {self._at} of {len(self._content)}")
        return InputMap(n_raw, columns, tuple(stages))

    def _stage(self, n: int) -> Affine | Projection:
        kind, present, n_outputs = self._take(_STAGE)
        if kind == _AFFINE and n_outputs == n and present < 1 << len(AFFINE_PARTS):
            wanted = [name for k, name in enumerate(AFFINE_PARTS) if present >> k & 1]
            return Affine(n, **{name: self._numbers(n) for name in wanted})
        if kind == _PROJECTION and present == 0 and n_outputs <= 1 << 20:
            center, matrix = self._numbers(n), self._numbers(n * n_outputs).reshape(n, n_outputs)
            return Projection(center, matrix, self._numbers(n_outputs), self._numbers(n_outputs))
        raise ArtifactError(f"a stage of kind {kind} with parts {present} turns {n} features into {n_outputs}")

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
