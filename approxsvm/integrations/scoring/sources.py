"""Search for the files to score: names, folders, patterns and standard input become a list with formats."""

import glob
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO

from approxsvm import _native
from approxsvm.errors import InputError

FORMATS = ("csv", "parquet", "arrow", "libsvm")
SUFFIXES = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
}
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
STANDARD = "-"  # input or output
_HEAD_BYTES = 4096
_LIBSVM = "a LIBSVM data file"


@dataclass(frozen=True)
class Source:
    """A file to score."""

    path: Path | None  # None is standard input
    name: str  # for messages
    format: str  # one of `FORMATS`
    relative: PurePath  # its path within the folder or pattern that the user gave

    @property
    def regular_path(self) -> Path | None:
        """Path of a regular file; None for a pipe."""
        return self.path if self.path is not None and self.path.is_file() else None

    def open_stream(self, opened: ExitStack) -> IO[bytes]:
        """Open a stream of its bytes, which is closed with `opened`; InputError if standard input is closed."""
        if self.path is not None:
            return opened.enter_context(open(self.path, "rb"))
        if sys.stdin is None:
            raise InputError("it is closed")
        return sys.stdin.buffer


def format_of(name: str | os.PathLike[str]) -> str | None:
    """Return the format that a file's name implies, compressed or not; None if it implies none."""
    path = PurePath(name)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return SUFFIXES.get(path.suffix.lower())


def find_sources(
    inputs: Sequence[str | os.PathLike[str]],
    input_format: str | None = None,
    without: Path | None = None,
    *,
    unnamed: str = "libsvm",
) -> list[Source]:
    """List all files that the inputs name, in order; files of a folder or a pattern are sorted by name.

    `inputs` are files, folders, patterns with ``*``, ``?``, ``[...]`` and ``**``, or "-" for standard input. A folder
    means its files with a known suffix, at any depth, except those that begin with "." or "_", and those in
    `without`. A file that is given by name and has another suffix has the format `unnamed`, and so has a pipe;
    `input_format` overrides all. Raises InputError if there is no file, or the format is unknown, as its first bytes
    may show.
    """
    if input_format is not None and input_format not in FORMATS:
        raise InputError(f"the input format must be one of {', '.join(FORMATS)}, not {input_format!r}")
    sources: list[Source] = []
    for given in inputs:
        name = os.fspath(given)
        if name == STANDARD:
            sources.append(Source(None, "standard input", input_format or "csv", PurePath("standard_input")))
        elif os.path.isdir(name):
            sources += _in_folder(Path(name), input_format, without)
        elif os.path.lexists(name) or not glob.has_magic(name):
            path = Path(name)
            path.stat()  # raises an error that names the file before anything is done
            known = input_format or format_of(path) or _checked(path, unnamed)
            sources.append(Source(path, name, known, PurePath(path.name)))
        else:
            sources += _matching(name, input_format, without, unnamed)
    if sum(source.path is None for source in sources) > 1:
        raise InputError("standard input is given several times, but can be read only once")
    if not sources:
        raise InputError(f"no file to score in {', '.join(map(str, inputs)) or 'an empty list'}")
    return sources


def _checked(path: Path, unnamed: str) -> str:
    """Return the format of a file without a known suffix; InputError if its first bytes are of another kind."""
    if not path.is_file() or path.suffix.lower() in COMPRESSED:
        return unnamed
    with open(path, "rb") as file:
        head = file.read(_HEAD_BYTES)
    start = head.lstrip().lower()
    kind = "an ARFF file" if start.startswith(b"@relation") else _native.file_kind(head)
    if kind in ("", _LIBSVM, "an empty file"):
        return unnamed
    remedy = "; its rows are np.load(path), for predict of approxsvm.load(model)" if "NumPy" in kind else ""
    raise InputError(f"{path}: this is {kind}, but only CSV, Parquet, Arrow and LIBSVM text can be scored{remedy}")


def _in_folder(folder: Path, input_format: str | None, without: Path | None) -> list[Source]:
    sources = []
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        known = input_format or format_of(path)
        if known is None or not path.is_file() or any(part[0] in "._" for part in relative.parts):
            continue
        if not _is_within(path, without):
            sources.append(Source(path, str(path), known, relative))
    return sources


def _is_within(path: Path, folder: Path | None) -> bool:
    return folder is not None and folder.resolve() in path.resolve().parents


def _matching(pattern: str, input_format: str | None, without: Path | None, unnamed: str) -> list[Source]:
    fixed = Path(pattern)
    while glob.has_magic(str(fixed)):
        fixed = fixed.parent
    sources = []
    for name in sorted(glob.glob(pattern, recursive=True)):
        path = Path(name)
        if path.is_file() and not _is_within(path, without):
            known = input_format or format_of(path) or _checked(path, unnamed)
            sources.append(Source(path, name, known, path.relative_to(fixed)))
    if not sources:
        raise InputError(f"no file matches {pattern}")
    return sources
