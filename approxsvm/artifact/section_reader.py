"""Sequential reader for sections of fixed-width numbers, already validated by the native reader."""

import struct
from typing import Any

import numpy as np
import numpy.typing as npt


class SectionReader:
    """Sequential reader of scalars and arrays; every array is padded to a multiple of eight bytes."""

    def __init__(self, content: Any) -> None:
        self._content = content
        self._at = 0

    def take(self, numbers: struct.Struct) -> tuple[int, ...]:
        """Read the fields of a record."""
        fields = numbers.unpack_from(self._content, self._at)
        self._at += numbers.size
        return fields

    def rest(self, numbers: struct.Struct) -> list[tuple[int, ...]]:
        """Read records until the end of the section."""
        n = (len(self._content) - self._at) // numbers.size
        return [self.take(numbers) for _ in range(n)]

    def array(self, dtype: str, n: int) -> npt.NDArray[Any]:
        """Return a view of n elements of the given type."""
        view = np.frombuffer(self._content, dtype, n, self._at)
        self._at += view.nbytes + -view.nbytes % 8
        return view

    def numbers(self, n: int) -> npt.NDArray[np.float64]:
        """Read n float64 numbers."""
        return self.array("<f8", n).astype(np.float64)
