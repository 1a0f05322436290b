"""Section "input_map": the transformation of raw rows before the kernel, as fixed-width numbers."""

from typing import Any, Final

import numpy as np

from approxsvm.artifact.section_reader import SectionReader
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.ops import OP_KINDS, Op
from approxsvm.ir.schema import record

# Layout: header, columns, steps in order, checked columns; each part begins at a multiple of 8 bytes.
_HEADER: Final = record("input_map")
_OP: Final = record("op")
_CHECKED: Final = record("checked_column")


def unpack_input_map(content: Any) -> InputMap:
    """Decode the output of `InputMap.packed`."""
    reader = SectionReader(content)
    n_columns, n_ops, n_raw, by_column = reader.take(_HEADER)
    columns = reader.array("<u4", n_columns).astype(np.intp)
    ops: list[Op] = []
    for _ in range(n_ops):
        kind, *rest = reader.take(_OP)
        ops.append(OP_KINDS[kind].read(reader, *rest))
    checked = {column: bool(takes_nan) for column, takes_nan in reader.rest(_CHECKED)}
    return InputMap(n_raw, columns, tuple(ops), by_column=bool(by_column), checked=checked)
