"""Reads a section of fixed-width numbers from front to back."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ArtifactError


class SectionReader:
    """Takes numbers off the front; nothing is allocated that the bytes do not hold."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, numbers: struct.Struct) -> tuple[int, ...]:
        """The fields of a structure."""
        return numbers.unpack(self.raw_bytes(numbers.size))

    def numbers(self, n: int) -> npt.NDArray[np.float64]:
        """So many float64 numbers."""
        return np.frombuffer(self.raw_bytes(8 * n), "<f8").astype(np.float64)

    def raw_bytes(self, n: int) -> bytes:
        """So many bytes; ArtifactError where there are fewer."""
        piece = self._content[self._at : self._at + n]
        if len(piece) < n:
            raise ArtifactError(f"it has {len(self._content)} bytes, but needs {self._at + n}")
        self._at += n
        return piece

    def end(self) -> None:
        """Raise ArtifactError unless everything has been taken."""
        if self._at != len(self._content):
            raise ArtifactError(f"it ends at byte {self._at} of {len(self._content)}")
