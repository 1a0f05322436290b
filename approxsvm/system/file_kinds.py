"""File formats, recognized by their contents."""

import zlib
from pathlib import Path
from typing import Final

from approxsvm import _native

_GZIP: Final = "a file compressed by gzip"
_LOOKED_AT: Final = 1 << 16  # number of leading bytes that identify a file


def file_kinds(path: Path) -> tuple[str, str]:
    """Return a file's format, as the native `file_kind` does; for a gzip file, also the format of its contents."""
    head = _head(path)
    kind = _native.file_kind(head)
    return kind, _native.file_kind(beginning(head)) if kind == _GZIP else ""


def described_inside(path: Path) -> str:
    """Describe a gzip file's contents in a clause, with advice; return an empty string for other files."""
    head = _head(path)
    return _native.described_file(beginning(head)) if _native.file_kind(head) == _GZIP else ""


def _head(path: Path) -> bytes:
    if not path.is_file():  # a pipe can be read only once
        return b""
    with path.open("rb") as file:
        head = file.read(_LOOKED_AT)
        return head + file.read() if head.startswith(b"PK") else head  # an archive lists its members at the end


def beginning(content: bytes) -> bytes:
    """Decompress the first bytes of a gzip file as far as possible; return no bytes if the file is damaged."""
    try:
        return zlib.decompressobj(wbits=31).decompress(content, len(content))
    except zlib.error:
        return b""
