"""Find the files to score: names, folders, patterns and standard input become a list with formats."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO

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


@dataclass(frozen=True)
class Source:
    """A file to score."""

    path: Path | None  # None is standard input
    name: str  # in messages
    format: str  # one of `FORMATS`
    relative: PurePath  # its path within the folder or pattern that the user gave

    @property
    def regular_path(self) -> Path | None:
        """The path of a regular file; None for a pipe."""
        return self.path if self.path is not None and self.path.is_file() else None

    def open_stream(self, opened: ExitStack) -> IO[bytes]:
        """Open a stream of its bytes, which is closed with `opened`; InputError if standard input is closed."""
        if self.path is not None:
            return opened.enter_context(open(self.path, "rb"))
        if sys.stdin is None:
            raise InputError("it is closed")
        return sys.stdin.buffer


def format_of(name: str | os.PathLike[str]) -> str | None:
    """The format that a file's name implies, compressed or not; None if it implies none."""
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
    """All files that the inputs name, in order; those of a folder or a pattern sorted by name.

    `inputs` are files, folders, patterns with ``*``, ``?``, ``[...]`` and ``**``, or "-" for standard input. A folder
    gives its files with a known suffix, at any depth, except those that begin with "." or "_", and those in `without`.
    A file with another suffix that is named itself is of the format `unnamed`, and so is a pipe; `input_format`
    overrides all.
    InputError if nothing has a name, or the format is unknown.
    """
    if input_format is not None and input_format not in FORMATS:
        raise InputError(f"the input format must be one of {', '.join(FORMATS)}, not {input_format!r}")
    found: list[Source] = []
    for given in inputs:
        name = os.fspath(given)
        if name == STANDARD:
            found.append(Source(None, "standard input", input_format or "csv", PurePath("standard_input")))
        elif os.path.isdir(name):
            found += _of_folder(Path(name), input_format, without)
        elif os.path.lexists(name) or not glob.has_magic(name):
            path = Path(name)
            path.stat()  # raises an error that names the file, before anything is done
            found.append(Source(path, name, input_format or format_of(path) or unnamed, PurePath(path.name)))
        else:
            found += _of_pattern(name, input_format, without, unnamed)
    if sum(source.path is None for source in found) > 1:
        raise InputError("standard input is given several times, but can be read only once")
    if not found:
        raise InputError(f"there is no file to score in {', '.join(str(given) for given in inputs) or 'nothing'}")
    return found


def _of_folder(folder: Path, input_format: str | None, without: Path | None) -> list[Source]:
    found = []
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        known = input_format or format_of(path)
        if known is None or not path.is_file() or any(part[0] in "._" for part in relative.parts):
            continue
        if not _is_within(path, without):
            found.append(Source(path, str(path), known, relative))
    return found


def _is_within(path: Path, folder: Path | None) -> bool:
    return folder is not None and folder.resolve() in path.resolve().parents


def _of_pattern(pattern: str, input_format: str | None, without: Path | None, unnamed: str) -> list[Source]:
    fixed = Path(pattern)
    while glob.has_magic(str(fixed)):
        fixed = fixed.parent
    found = []
    for name in sorted(glob.glob(pattern, recursive=True)):
        path = Path(name)
        if path.is_file() and not _is_within(path, without):
            known = input_format or format_of(path) or unnamed
            found.append(Source(path, name, known, path.relative_to(fixed)))
    if not found:
        raise InputError(f"no file matches {pattern}")
    return found
