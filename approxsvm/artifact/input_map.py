"""Input maps as fixed-width numbers: the section that says what happens to raw rows before the kernel."""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from approxsvm.artifact.section_reader import SectionReader
from approxsvm.errors import ApproxSVMError, ArtifactError
from approxsvm.model.input_map import AFFINE_PARTS, Affine, InputMap, Logarithm, Projection, Stage

# An input map: header, columns, then the stages one after the other, everything at a multiple of 8 bytes.
_HEADER: Final = struct.Struct("<IIII")  # selected columns, stages, raw features, by_column
_STAGE: Final = struct.Struct("<IIQ")  # kind, parts that are there, features that come out
_AFFINE, _PROJECTION, _LOGARITHM = 0, 1, 2


def pack_input_map(input_map: InputMap) -> bytes:
    """As fixed-width numbers (models/FORMAT.md, "input_map")."""
    columns = input_map.columns.astype("<u4").tobytes()
    stages = [stage for stage in input_map.stages if not (isinstance(stage, Affine) and stage.is_identity)]
    pieces = [_HEADER.pack(len(input_map.columns), len(stages), input_map.n_raw_features, input_map.by_column)]
    pieces.append(columns + bytes(-len(columns) % 8))
    for stage in stages:
        if isinstance(stage, Affine):
            arrays = [getattr(stage, name) for name in AFFINE_PARTS]
            present = sum(1 << k for k, values in enumerate(arrays) if values is not None)
            pieces.append(_STAGE.pack(_AFFINE, present, stage.n_outputs))
        elif isinstance(stage, Logarithm):
            arrays = [stage.offset]
            pieces.append(_STAGE.pack(_LOGARITHM, 0, stage.n_outputs))
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


class _InputMapReader(SectionReader):
    def read(self) -> InputMap:
        n_columns, n_stages, n_raw, by_column = self.take(_HEADER)
        columns = np.frombuffer(self.raw_bytes(4 * n_columns), "<u4").astype(np.intp)
        if any(self.raw_bytes(-4 * n_columns % 8)):
            raise ArtifactError("the padding behind the columns is not zero")
        if not 1 <= n_raw <= 1 << 20 or n_columns > 1 << 20 or n_stages > len(self._content) // _STAGE.size:
            raise ArtifactError(f"it says {n_raw} raw features, {n_columns} columns and {n_stages} stages")
        if by_column > 1:
            raise ArtifactError(f"by_column is {by_column}, but at most 1 is allowed")
        stages: list[Stage] = []
        n = n_columns
        for _ in range(n_stages):
            stages.append(self._stage(n))
            n = stages[-1].n_outputs
        self.end()
        return InputMap(n_raw, columns, tuple(stages), by_column=bool(by_column))

    def _stage(self, n: int) -> Stage:
        kind, present, n_outputs = self.take(_STAGE)
        if kind == _AFFINE and n_outputs == n and 0 < present < 1 << len(AFFINE_PARTS):
            wanted = [name for k, name in enumerate(AFFINE_PARTS) if present >> k & 1]
            return Affine(n, **{name: self.numbers(n) for name in wanted})
        if kind == _PROJECTION and present == 0 and n_outputs <= 1 << 20:
            center, matrix = self.numbers(n), self.numbers(n * n_outputs).reshape(n, n_outputs)
            return Projection(center, matrix, self.numbers(n_outputs), self.numbers(n_outputs))
        if kind == _LOGARITHM and present == 0 and n_outputs == n:
            return Logarithm(self.numbers(n))
        raise ArtifactError(f"a stage of kind {kind} with parts {present} turns {n} features into {n_outputs}")
