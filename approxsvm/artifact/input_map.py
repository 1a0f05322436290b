"""Input maps as fixed-width numbers: the section that says what happens to raw rows before the kernel."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from approxsvm.artifact.packing import padded
from approxsvm.artifact.section_reader import SectionReader
from approxsvm.model.input_map import InputMap
from approxsvm.model.schema import number_of, record
from approxsvm.model.steps import STEP_KINDS, Step

# An input map: header, columns, the stages one after the other, what is checked; everything at a multiple of 8 bytes.
_HEADER: Final = record("input_map")
_STAGE: Final = record("stage")
_CHECKED: Final = record("checked_column")


def pack_input_map(input_map: InputMap) -> bytes:
    """As fixed-width numbers (models/FORMAT.md, "input_map")."""
    columns = padded(input_map.columns.astype("<u4").tobytes())
    stages = [stage for stage in input_map.stages if not stage.is_identity]
    pieces = [_HEADER.pack(len(input_map.columns), len(stages), input_map.n_raw_features, input_map.by_column), columns]
    for stage in stages:
        parts, arrays = stage.stored()
        pieces.append(_STAGE.pack(number_of("stage_kind", stage.kind), parts, stage.n_outputs))
        pieces += [padded(values.astype(values.dtype.newbyteorder("<")).tobytes()) for values in arrays]
    pieces += [_CHECKED.pack(column, takes_nan) for column, takes_nan in sorted(input_map.checked.items())]
    return b"".join(pieces)


def unpack_input_map(content: Any) -> InputMap:
    """What `pack_input_map` wrote."""
    reader = SectionReader(content)
    n_columns, n_stages, n_raw, by_column = reader.take(_HEADER)
    columns = reader.array("<u4", n_columns).astype(np.intp)
    stages: list[Step] = []
    n = n_columns
    for _ in range(n_stages):
        stages.append(_stage(reader, n))
        n = stages[-1].n_outputs
    checked = {column: bool(takes_nan) for column, takes_nan in reader.rest(_CHECKED)}
    return InputMap(n_raw, columns, tuple(stages), by_column=bool(by_column), checked=checked)


def _stage(reader: SectionReader, n: int) -> Step:
    kind, parts, n_outputs = reader.take(_STAGE)
    return STEP_KINDS[kind].read(reader, parts, n, n_outputs)
