"""Immutable file contents."""

import os
from typing import Any, TypeVar

from approxsvm.system.output_files import write_whole

Sealed = TypeVar("Sealed", bound="SealedBytes")


class SealedBytes:
    """Immutable contents of a file; comparing, hashing, pickling and writing use only these bytes."""

    data: bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.data,))

    def __copy__(self: Sealed) -> Sealed:
        return self

    def __deepcopy__(self: Sealed, memo: dict[int, Any]) -> Sealed:
        return self

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, SealedBytes) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the bytes to a file; if writing fails, the file at `path` keeps its previous contents."""
        write_whole(self.data, path)
