"""Files that are written: never over one that is read, and whole or not at all."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from approxsvm.errors import InputError

try:
    import fcntl
except ImportError:  # Windows, which does not remove what is open
    fcntl = None  # type: ignore[assignment]


File = str | os.PathLike[str] | int  # a path or an open descriptor


def refuse_shared_files(read: Iterable[tuple[str, File]], written: Iterable[tuple[str, File]]) -> None:
    """Refuse an output that is one file with an input or with another output, before any of them is opened.

    Parameters
    ----------
    read, written : iterable of (str, File)
        What messages call a file, and where it is.

    Raises
    ------
    InputError
        The message names both.
    """
    known = {_identity(file): (called, "which would be lost") for called, file in read}
    for called, file in written:
        identity = _identity(file)
        if identity is not None and identity in known:
            other, why = known[identity]
            raise InputError(f"{called} is the same file as {other}, {why}")
        known[identity] = called, "which is written too"


def _identity(file: File) -> tuple[object, ...] | None:
    """What tells a file from all others, under whatever name; None of devices, pipes and folders, which may be shared.

    Of a file that is not there yet it is the folder that it will be in, and its name.
    """
    try:
        there = os.stat(file)
        return (there.st_dev, there.st_ino) if stat.S_ISREG(there.st_mode) else None
    except FileNotFoundError:
        assert not isinstance(file, int)
        place = _place(file)
    except OSError:
        return None  # nothing can be read or written there
    try:
        folder = os.stat(place.parent)
    except OSError:
        return None
    return folder.st_dev, folder.st_ino, os.path.normcase(place.name)


def _place(path: str | os.PathLike[str]) -> Path:
    """Where the system makes a file that is not there: links are followed, and everything else is as it is spelled.

    `os.path.realpath` would take ``missing/../file`` for ``file``.
    """
    place = os.path.join(os.getcwd(), path)
    while os.path.islink(place):
        place = os.path.join(os.path.dirname(place), os.readlink(place))
    return Path(place)


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
    target = _replaceable(path)
    if target is None:
        return
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
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return _place(path)
    target = Path(os.path.realpath(path))
    # A descriptor's link in /proc may lead to a file that has no name any more.
    is_target = target.exists() and os.path.samestat(there, target.stat())
    return target if stat.S_ISREG(there.st_mode) and is_target else None
