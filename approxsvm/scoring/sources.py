"""Which files there are to score: names, folders, patterns and standard input -> a list, and what each of them is."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

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
COMPRESSED = (".gz", ".bz2", ".zst")
STANDARD = "-"  # input or output


@dataclass(frozen=True)
class Source:
    """A file to score.

    Attributes
    ----------
    path : Path or None
        None is standard input.
    name : str
        As messages call it.
    format : str
        One of `FORMATS`.
    relative : PurePath
        Where it is within what the user named.
    """

    path: Path | None
    name: str
    format: str
    relative: PurePath


def format_of(name: str | os.PathLike[str]) -> str | None:
    """What a file's name says that it is, compressed or not; None where it says nothing."""
    path = PurePath(name)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return SUFFIXES.get(path.suffix.lower())


def find_sources(
    inputs: Sequence[str | os.PathLike[str]], input_format: str | None = None, without: Path | None = None
) -> list[Source]:
    """All files that the inputs name, in order; those of a folder or a pattern by name.

    Parameters
    ----------
    inputs : sequence of path
        Files, folders, patterns with ``*``, ``?``, ``[...]`` and ``**``, or "-", standard input. Of a folder, files
        whose suffix is known, at any depth; what begins with "." or "_" is left out. A file of another suffix that is
        named itself is LIBSVM text.
    input_format : str, optional
        What the files are, whatever their names.
    without : Path, optional
        A folder whose files are none of them.

    Raises
    ------
    InputError
        There is nothing of that name, or `input_format` is unknown.
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
            path.stat()  # an error that names it, before anything is done
            found.append(Source(path, name, input_format or format_of(path) or "libsvm", PurePath(path.name)))
        else:
            found += _of_pattern(name, input_format)
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
        if without is None or without.resolve() not in path.resolve().parents:
            found.append(Source(path, str(path), known, relative))
    return found


def _of_pattern(pattern: str, input_format: str | None) -> list[Source]:
    fixed = Path(pattern)
    while glob.has_magic(str(fixed)):
        fixed = fixed.parent
    found = []
    for name in sorted(glob.glob(pattern, recursive=True)):
        path = Path(name)
        if path.is_file():
            known = input_format or format_of(path) or "libsvm"
            found.append(Source(path, name, known, path.relative_to(fixed)))
    if not found:
        raise InputError(f"no file matches {pattern}")
    return found
