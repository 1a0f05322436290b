"""Reads a section of fixed-width numbers from front to back, once the native reader has accepted it."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt


class SectionReader:
    """Takes numbers off the front; every array is padded to a multiple of eight bytes."""

    def __init__(self, content: Any) -> None:
        self._content = content
        self._at = 0

    def take(self, numbers: struct.Struct) -> tuple[int, ...]:
        """The fields of a record."""
        fields = numbers.unpack_from(self._content, self._at)
        self._at += numbers.size
        return fields

    def rest(self, numbers: struct.Struct) -> list[tuple[int, ...]]:
        """Records up to the end."""
        n = (len(self._content) - self._at) // numbers.size
        return [self.take(numbers) for _ in range(n)]

    def array(self, dtype: str, n: int) -> npt.NDArray[Any]:
        """So many numbers of a type, where they lie."""
        found = np.frombuffer(self._content, dtype, n, self._at)
        self._at += found.nbytes + -found.nbytes % 8
        return found

    def numbers(self, n: int) -> npt.NDArray[np.float64]:
        """So many float64 numbers."""
        return self.array("<f8", n).astype(np.float64)
