"""Section input_map: the transformation of raw rows before the kernel, as fixed-width numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from approxsvm.artifact.section_reader import SectionReader
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.schema import record
from approxsvm.ir.steps import STEP_KINDS, Step

# Layout: header, columns, the steps in order, the checked columns; each at a multiple of 8 bytes.
_HEADER: Final = record("input_map")
_STAGE: Final = record("stage")
_CHECKED: Final = record("checked_column")


def unpack_input_map(content: Any) -> InputMap:
    """Decode the output of `InputMap.packed`."""
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
