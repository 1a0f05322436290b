"""Input maps as fixed-width numbers: the section that says what happens to raw rows before the kernel."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from approxsvm.artifact.section_reader import SectionReader
from approxsvm.model.input_map import AFFINE_PARTS, Affine, InputMap, Logarithm, Projection, Stage
from approxsvm.model.schema import names_of, record

# An input map: header, columns, then the stages one after the other, everything at a multiple of 8 bytes.
_HEADER: Final = record("input_map")
_STAGE: Final = record("stage")
_AFFINE, _PROJECTION, _LOGARITHM = map(names_of("stage_kind").index, ("affine", "projection", "logarithm"))


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


def unpack_input_map(content: Any) -> InputMap:
    """What `pack_input_map` wrote."""
    reader = SectionReader(content)
    n_columns, n_stages, n_raw, by_column = reader.take(_HEADER)
    columns = reader.array("<u4", n_columns).astype(np.intp)
    stages: list[Stage] = []
    n = n_columns
    for _ in range(n_stages):
        stages.append(_stage(reader, n))
        n = stages[-1].n_outputs
    return InputMap(n_raw, columns, tuple(stages), by_column=bool(by_column))


def _stage(reader: SectionReader, n: int) -> Stage:
    kind, present, n_outputs = reader.take(_STAGE)
    if kind == _AFFINE:
        wanted = [name for k, name in enumerate(AFFINE_PARTS) if present >> k & 1]
        return Affine(n, **{name: reader.numbers(n) for name in wanted})
    if kind == _LOGARITHM:
        return Logarithm(reader.numbers(n))
    center, matrix = reader.numbers(n), reader.numbers(n * n_outputs).reshape(n, n_outputs)
    return Projection(center, matrix, reader.numbers(n_outputs), reader.numbers(n_outputs))
