"""Section "categories": the strings in raw columns, as fixed-width numbers and UTF-8."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np

from approxsvm.artifact.section_reader import SectionReader
from approxsvm.frames.text_columns import NONE, TextColumn
from approxsvm.ir.schema import record

_HEADER: Final = record("categories")
_COLUMN: Final = record("category_column")


def pack_categories(texts: Mapping[int, TextColumn]) -> bytes:
    """Encode the strings in raw columns (models/FORMAT.md, "categories")."""
    columns = sorted(texts.items())
    encoded = [text.encode() for _, known in columns for text in known.texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.uint32).astype("<u4")
    records = [_COLUMN.pack(j, len(known.texts), int(known.null == NONE), 0) for j, known in columns]
    return b"".join([_HEADER.pack(len(columns), len(encoded)), *records, ends.tobytes(), *encoded])


def unpack_categories(content: Any) -> dict[int, TextColumn]:
    """Decode the output of `pack_categories`."""
    reader = SectionReader(content)
    n_columns, n_texts = reader.take(_HEADER)
    columns = [reader.take(_COLUMN) for _ in range(n_columns)]
    at = _HEADER.size + n_columns * _COLUMN.size
    ends = np.frombuffer(content, "<u4", n_texts, at)
    begin = at + ends.nbytes
    texts = iter([bytes(content[begin + a : begin + b]).decode() for a, b in pairwise([0, *ends.tolist()])])
    return {
        column: TextColumn(tuple(next(texts) for _ in range(n)), NONE if null else math.nan)
        for column, n, null, _ in columns
    }
