"""Section "combination": the columns of an ensemble's members, and the sparse matrix of their weights."""

from typing import Any, Final, cast

import numpy as np

from approxsvm.artifact.section_reader import SectionReader
from approxsvm.ir.ensembles.combination import Columns, Combination
from approxsvm.ir.schema import names_of, padded, record

_HEADER: Final = record("combination")
_COLUMNS: Final = cast(tuple[Columns, ...], names_of("columns"))


def pack_combination(combination: Combination, n_columns: int) -> bytes:
    """Encode a combination with `n_columns` columns (models/FORMAT.md, "combination")."""
    kind, weights, addends = _COLUMNS.index(combination.columns), combination.weights, combination.addends
    if weights is None or addends is None:
        return _HEADER.pack(kind, n_columns, 0, 0)
    stored, starts, values = combination.by_column()
    header = _HEADER.pack(kind, n_columns, len(addends), len(stored))
    numbers = (addends, "<f8"), (stored, "<f8"), (starts, "<u4"), (values, "<u4")
    return header + b"".join(padded(np.asarray(some, dtype=dtype).tobytes()) for some, dtype in numbers)


def unpack_combination(content: Any) -> Combination:
    """Decode the output of `pack_combination`."""
    reader = SectionReader(content)
    kind, n_columns, n_values, n_weights = reader.take(_HEADER)
    if n_values == 0:
        return Combination(_COLUMNS[kind])
    addends, numbers = reader.numbers(n_values), reader.numbers(n_weights)
    starts, values = reader.array("<u4", n_columns + 1), reader.array("<u4", n_weights)
    weights = np.zeros((n_values, n_columns))
    weights[values, np.searchsorted(starts, np.arange(n_weights), side="right") - 1] = numbers
    return Combination(_COLUMNS[kind], weights, addends)
