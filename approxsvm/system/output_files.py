"""Output files that are never also inputs, and that are written completely or not at all."""

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
except ImportError:  # missing on Windows, where an open file cannot be removed anyway
    fcntl = None  # type: ignore[assignment]


File = str | os.PathLike[str] | int  # a path or an open descriptor


def refuse_shared_files(read: Iterable[tuple[str, File]], written: Iterable[tuple[str, File]]) -> None:
    """Raise InputError if an output is the same file as an input or another output, before any file is opened.

    `read` and `written` contain pairs: a file's name for messages, and the file itself.
    """
    known = {_identity(file): (label, "which would be lost") for label, file in read}
    for label, file in written:
        identity = _identity(file)
        if identity is not None and identity in known:
            other, why = known[identity]
            raise InputError(f"{label} is the same file as {other}, {why}")
        known[identity] = label, "which is also written"


def _identity(file: File) -> tuple[object, ...] | None:
    """Identify a file independently of its name; return None for devices, pipes and folders, which may be shared.

    A file that does not exist is identified by its name and the folder in which it would be created.
    """
    try:
        status = os.stat(file)
        return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
    except FileNotFoundError:
        assert not isinstance(file, int)
        place = _place(file)
    except OSError:
        return None  # the path cannot be read or written anyway
    try:
        folder = os.stat(place.parent)
    except OSError:
        return None
    return folder.st_dev, folder.st_ino, os.path.normcase(place.name)


def _place(path: str | os.PathLike[str]) -> Path:
    """Return the path at which the system would create a file, with links followed and `..` unresolved.

    `os.path.realpath` would turn ``missing/../file`` into ``file``.
    """
    place = os.path.join(os.getcwd(), path)
    while os.path.islink(place):
        place = os.path.join(os.path.dirname(place), os.readlink(place))
    return Path(place)


def write_whole(data: bytes, path: str | os.PathLike[str]) -> None:
    """Write a file; if writing fails, the file at `path` keeps its previous contents."""
    with whole_file(path) as file:
        file.write(data)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing; `path` receives the new contents if the block succeeds, and otherwise is unchanged.

    Only a regular file is replaced, and its mode is kept. A link remains; its target is replaced. Anything else (a
    device, a pipe, standard output as /dev/fd/1) is written to directly.
    """
    temporary = None
    try:
        target = _replaceable(path)
        if target is None:
            with open(path, "wb") as stream:
                yield stream
            return
        import secrets  # imported here because prediction does not need it

        temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}"
        try:
            with open(temporary, "xb") as file:  # not created by tempfile, whose files are private
                if target.exists() and hasattr(os, "fchmod"):  # missing on Windows
                    os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
                _lock(file)
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)  # after a success, the file has already been renamed
    except OSError as error:
        if error.filename not in (None, os.fspath(path), None if temporary is None else str(temporary)):
            raise  # an error about another file, raised in the block
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None  # the error must name `path`


def remove_unfinished(path: str | os.PathLike[str]) -> None:
    """Remove temporary files left by processes that were killed while `whole_file` was writing `path`.

    Files that another process is still writing are kept: both processes write complete files, and the one completed
    last replaces the other.
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
    """Lock a file while it is open and this process lives; return False if another process holds the lock."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # the file system does not support locks
    return True


def _replaceable(path: str | os.PathLike[str]) -> Path | None:
    """Return the regular file that `path` leads to or would create, or None if it leads to anything else."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return _place(path)
    target = Path(os.path.realpath(path))
    # A link in /proc/self/fd may lead to a file without a name.
    is_target = target.exists() and os.path.samestat(status, target.stat())
    return target if stat.S_ISREG(status.st_mode) and is_target else None
