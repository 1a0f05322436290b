"""Kinds of files, by their content."""

import zlib
from pathlib import Path
from typing import Final

from approxsvm import _native

_LOOKED_AT: Final = 1 << 16  # number of bytes at the beginning that identify a file


def file_kinds(path: Path) -> tuple[str, str]:
    """Return the kind of a file in the words of the native `file_kind`, and of what gzip has compressed in it."""
    if not path.is_file():  # a pipe can be read only once
        return "", ""
    with path.open("rb") as file:
        head = file.read(_LOOKED_AT)
        if head.startswith(b"PK"):
            head += file.read()  # archives have their names at the end
    kind = _native.file_kind(head)
    return kind, _native.file_kind(beginning(head)) if kind == "a file compressed by gzip" else ""


def beginning(content: bytes) -> bytes:
    """Decompress as much as the first bytes of a gzip file allow; nothing if they are broken."""
    try:
        return zlib.decompressobj(wbits=31).decompress(content, len(content))
    except zlib.error:
        return b""
