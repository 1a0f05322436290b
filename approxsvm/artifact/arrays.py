"""Sections that consist of numeric arrays, packed and viewed according to the layouts in artifact/schema.inc."""

from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.ir.schema import LAYOUTS, SECTION_IDS


def pack(layout: str, **numbers: Any) -> bytes:
    """Encode the scalars and arrays of a section or group, passed by name; reserved fields default to 0."""
    parts: list[bytes] = []
    for name, code in LAYOUTS[layout]:
        if isinstance(code, int):
            parts.append(bytes(-sum(map(len, parts)) % code))
        else:
            array = numbers.pop(name, 0) if name == "reserved" else numbers.pop(name)
            parts.append(np.asarray(array).astype("<" + code).tobytes())
    assert not numbers
    return b"".join(parts)


def views(artifact: _native.Artifact, section: str, content: Any) -> dict[str, list[npt.NDArray[Any]]]:
    """Return lists of a section's arrays by name; a list has one array or, in sections of groups, one per group."""
    found: dict[str, list[npt.NDArray[Any]]] = {}
    for name, code, offset, count, _, _ in artifact.list_numbers(SECTION_IDS[section]):
        found.setdefault(name, []).append(np.frombuffer(content, "<" + code, count, offset))
    return found
