"""Files that are whole or not there: written aside and renamed, or read at once."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

try:
    import fcntl
except ImportError:  # Windows, which does not remove what is open
    fcntl = None  # type: ignore[assignment]


def write_whole(data: bytes, path: str | os.PathLike[str]) -> None:
    """Write a file so that `path` holds either all of it or what it held before."""
    with whole_file(path) as file:
        file.write(data)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing, so that `path` holds all of it once the block has ended well, or what it held before.

    Only a regular file is replaced, by one of its own mode, and where `path` is a link, the file that it leads to. What
    is no regular file (a device, a pipe, standard output as /dev/fd/1) is written to as it is.
    """
    temporary = None
    try:
        target = _replaceable(path)
        if target is None:
            with open(path, "wb") as stream:
                yield stream
            return
        import secrets  # here, as who only predicts writes nothing

        temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}"
        try:
            with open(temporary, "xb") as file:  # and not tempfile, whose files are private
                if target.exists() and hasattr(os, "fchmod"):  # which Windows has not
                    os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
                _lock(file)
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)  # gone already when all went well
    except OSError as error:
        if error.filename not in (None, os.fspath(path), None if temporary is None else str(temporary)):
            raise  # of a file that the block has read
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None  # not the temporary file's name


def remove_unfinished(path: str | os.PathLike[str]) -> None:
    """Remove what a process that was killed while it wrote `path` by `whole_file` has left beside it.

    What another process is writing just now stays: of two, the last has the name, and either's file is whole.
    """
    target = Path(os.path.realpath(path))
    for name in os.listdir(target.parent):
        if re.fullmatch(rf"\.{re.escape(target.name)}\.[0-9a-f]{{16}}", name):
            with suppress(FileNotFoundError, PermissionError), open(target.parent / name, "rb") as file:
                if _lock(file):
                    (target.parent / name).unlink()


def _lock(file: IO[bytes]) -> bool:
    """Hold a file as long as it is open and this process lives; False if somebody else does."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks
    return True


def _replaceable(path: str | os.PathLike[str]) -> Path | None:
    """The regular file that `path` leads to, or would if it existed; None where something else is there."""
    target = Path(os.path.realpath(path))
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return target
    # A descriptor's link in /proc may lead to a file that has no name any more.
    is_target = target.exists() and os.path.samestat(there, target.stat())
    return target if stat.S_ISREG(there.st_mode) and is_target else None


Sealed = TypeVar("Sealed", bound="SealedBytes")


class SealedBytes:
    """The content of a file that never changes: equal, hashed, pickled and written by its bytes alone."""

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
        """Write the bytes so that `path` holds either all of them or what it held before."""
        write_whole(self.data, path)
