"""Bytes of the artifacts that only Python reads: a description in JSON and named arrays (models/FORMAT.md)."""

from __future__ import annotations

import json
import math
import struct
import zlib
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ArtifactError

VERSION: Final = 2
ENSEMBLE_MAGIC: Final = b"\x89ASVE\r\n\x1a"
HEADER: Final = struct.Struct("<8sIIQQ")  # magic, version, checksum, file_bytes, json_bytes
CHECKSUM_OFFSET: Final = 12
_DTYPES: Final = ("<f8", "<i8", "|u1")
_MAX_DIMENSIONS: Final = 3

Arrays = dict[str, npt.NDArray[Any]]


def pack(magic: bytes, about: dict[str, Any], arrays: Arrays) -> bytes:
    """Lay a description and arrays of float64, int64 or bytes out, each padded to a multiple of eight bytes."""
    table = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    text = json.dumps(about | {"arrays": table}, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    content = text + b"".join(_padded(np.ascontiguousarray(array).tobytes()) for array in arrays.values())
    size = HEADER.size + len(content)
    rest = struct.pack("<QQ", size, len(text)) + content
    return magic + struct.pack("<I", VERSION) + struct.pack("<I", _checksum(magic, VERSION, rest)) + rest


def unpack(magic: bytes, data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Read what `pack` wrote; arrays are views of `data`.

    Raises
    ------
    ArtifactError
        The bytes break a rule of models/FORMAT.md.
    """
    if len(data) < HEADER.size:
        raise ArtifactError(f"the file has {len(data)} bytes, but the header alone takes {HEADER.size}")
    found, version, checksum, size, json_bytes = HEADER.unpack_from(data)
    if found != magic:
        raise ArtifactError(f"the file starts with {found!r}, not with {magic!r}")
    if version != VERSION:
        raise ArtifactError(f"format version {version} is not supported, only version {VERSION}")
    if size != len(data):
        raise ArtifactError(f"the header says {size} bytes, but the file has {len(data)}")
    actual = _checksum(found, version, data[CHECKSUM_OFFSET + 4 :])
    if checksum != actual:
        raise ArtifactError(f"the checksum is {actual:08x}, but the header says {checksum:08x}")
    if json_bytes % 8 or json_bytes > len(data) - HEADER.size:
        raise ArtifactError(f"json_bytes is {json_bytes} in a file of {len(data)} bytes")
    try:
        about = json.loads(data[HEADER.size : HEADER.size + json_bytes].decode())
        table = about.pop("arrays")
        shapes = {str(name): (str(dtype), tuple(shape)) for name, (dtype, shape) in table.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ArtifactError(f"the description cannot be read: {type(error).__name__}: {error}") from None
    return about, _cut(data, HEADER.size + json_bytes, shapes)


def _cut(data: bytes, offset: int, shapes: dict[str, tuple[str, tuple[Any, ...]]]) -> Arrays:
    """The arrays one after the other; together they fill the file."""
    arrays: Arrays = {}
    for name, (dtype, shape) in shapes.items():
        plain = all(type(n) is int and 0 <= n < 2**40 for n in shape)
        if dtype not in _DTYPES or not plain or len(shape) > _MAX_DIMENSIONS:
            raise ArtifactError(f"array {name} has type {dtype} and shape {shape}")
        count = math.prod(shape)
        end = offset + count * np.dtype(dtype).itemsize
        if end > len(data):
            raise ArtifactError(f"array {name} ends at byte {end} of a file of {len(data)}")
        arrays[name] = np.frombuffer(data, dtype, count, offset).reshape(shape)
        offset = end + -end % 8
        if any(data[end:offset]):
            raise ArtifactError(f"the padding behind array {name} is not zero")
    if offset != len(data):
        raise ArtifactError(f"the arrays end at byte {offset} of a file of {len(data)}")
    return arrays


def _checksum(magic: bytes, version: int, rest: bytes) -> int:
    return zlib.crc32(rest, zlib.crc32(magic + struct.pack("<II", version, 0)))


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 8)
