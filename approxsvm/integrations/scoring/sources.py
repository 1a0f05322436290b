"""Search for the files to score: file names, folders, patterns and standard input are resolved to a list of files."""

import glob
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO

from approxsvm.errors import DataFormatError, InputError
from approxsvm.system.file_kinds import file_kinds

FORMATS = ("csv", "parquet", "arrow", "libsvm", "numpy")
SUFFIXES = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".npy": "numpy",
    ".npz": "numpy",
}
# File formats read by `score_raster`, as named by `file_kinds`.
RASTERS = (
    "a TIFF image",
    "a JPEG 2000 image",
    "a GDAL virtual raster (VRT)",
    "a PNG image",
    "a JPEG image",
    "a NetCDF file",
    "an ERDAS image",
)
_RASTER_SUFFIXES = (".tif", ".tiff", ".jp2", ".vrt")  # extensions that indicate a raster if the file does not exist
_BESIDE_RASTERS = (".ovr", ".msk")  # extensions of overviews and masks, which are themselves TIFF images
# Remedies suggested in messages about other file formats.
_REMEDIES = {
    **dict.fromkeys(RASTERS, "score_raster reads it (pip install 'approxsvm[raster]')"),
    "a NumPy array (.npy)": "give it the suffix .npy",
    "a NumPy archive (.npz)": "give it the suffix .npz",
    "a Parquet file": "give it the suffix .parquet",
    "an Arrow file": "give it the suffix .arrow",
    "an ARFF file": "save it as CSV",
    "an R object (.rds)": "save it in R: write.csv(rows, 'rows.csv', row.names = FALSE)",
    "R data (.rda)": "save it in R: write.csv(rows, 'rows.csv', row.names = FALSE)",
    "an HDF5 file": "save its rows by numpy.save; GDAL reads pictures in it with --input-format raster",
    "a MATLAB file": "save its rows by numpy.save(path, scipy.io.loadmat(file)[name])",
    "a pickle": "save its rows by numpy.save or to_parquet",
    "text in UTF-16": "save it as UTF-8",
}
# Text formats that are passed to the readers: they may contain rows, or the readers raise clearer errors.
_ROWS = ("", "a LIBSVM data file", "an empty file", "a range file of svm-scale")
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
STANDARD = "-"  # name of standard input and standard output


@dataclass(frozen=True)
class Source:
    """File to score."""

    path: Path | None  # None means standard input
    name: str  # name in messages
    format: str  # one of `FORMATS`
    relative: PurePath  # path of the file within the given folder or pattern

    @property
    def regular_path(self) -> Path | None:
        """Path of the source, or None if it is not a regular file (a pipe, for example)."""
        return self.path if self.path is not None and self.path.is_file() else None

    def open_stream(self, opened: ExitStack) -> IO[bytes]:
        """Open the source as a stream, to be closed by `opened`; raise InputError if standard input is closed."""
        if self.path is not None:
            return opened.enter_context(open(self.path, "rb"))
        if sys.stdin is None:
            raise InputError("it is closed")
        return sys.stdin.buffer


def format_of(name: str | os.PathLike[str]) -> str | None:
    """Return the format that a file's name identifies, compressed or not, or None if it identifies none."""
    path = PurePath(name)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return SUFFIXES.get(path.suffix.lower())


def _format(path: Path, unnamed: str) -> str:
    """Return a file's format: the one that its extension identifies, else `unnamed` if the contents allow it.

    Raises DataFormatError if the contents are in a different file format.
    """
    known = format_of(path)
    if known is not None:
        return known
    kind, inside = file_kinds(path)
    if inside and (path.suffix.lower() not in COMPRESSED or inside in _REMEDIES):
        kind = inside if inside in _REMEDIES else f"{kind} without a suffix that says so"
    elif path.suffix.lower() in COMPRESSED:
        return unnamed
    if kind in _ROWS or (unnamed == "csv" and kind not in _REMEDIES):
        return unnamed
    remedy = _REMEDIES.get(kind, "rows are read from CSV, Parquet, Arrow, NumPy and LIBSVM files")
    raise DataFormatError(f"{path}: this is {kind}; {remedy}")


def is_raster(name: str) -> bool:
    """Return whether GDAL can open `name`: the path of a raster file, or a name like /vsizip/a.zip/b.tif."""
    if os.path.isfile(name):
        return format_of(name) is None and (file_kinds(Path(name))[0] in RASTERS or _has_envi_header(Path(name)))
    if name.lower().endswith(_RASTER_SUFFIXES) and not os.path.lexists(name):
        return True  # the name is misspelled, or is a pattern without a match
    return name.startswith("/vsi") or bool(re.match(r"[A-Za-z0-9_]{2,}:", name) and not os.path.lexists(name))


def _has_envi_header(path: Path) -> bool:
    """Return whether a file of unknown format has an ENVI header in the same folder."""
    for header in (path.with_suffix(".hdr"), path.with_name(f"{path.name}.hdr")):
        if header != path and header.is_file():
            with header.open("rb") as file:
                return file.read(4) == b"ENVI"
    return False


def are_rasters(inputs: Sequence[str]) -> bool:
    """Return whether some input is an image and none is named like a table; folders and patterns are searched."""
    names = [file for name in inputs for file in _files(name)]
    return not any(map(format_of, names)) and any(map(is_raster, names))


def find_rasters(inputs: Sequence[str | os.PathLike[str]], without: Path | None) -> list[Source]:
    """List all rasters among the inputs; a folder stands for the images in it.

    Names in GDAL's syntax, such as /vsizip/a.zip/b.tif, are kept. Raises InputError if there is no file.
    """
    sources: list[Source] = []
    for given in inputs:
        name = os.fspath(given)
        if os.path.isdir(name):
            sources += sorted(_in_folder(Path(name), _format_of_raster, without), key=lambda source: source.name)
        elif glob.has_magic(name) and not os.path.lexists(name):
            sources += _matching(name, "raster", without, "")
        else:
            path = Path(name)
            sources.append(Source(path if path.exists() else None, name, "raster", PurePath(path.name)))
    if not sources:
        raise InputError(f"no raster to score in {', '.join(map(str, inputs)) or 'an empty list'}")
    return sources


def _files(name: str) -> list[str]:
    """Return the files that an input name may denote."""
    if os.path.isdir(name):
        return sorted(str(path) for path in Path(name).rglob("*") if path.is_file())
    is_pattern = glob.has_magic(name) and not os.path.lexists(name)
    return (is_pattern and glob.glob(name, recursive=True)) or [name]


def find_sources(
    inputs: Sequence[str | os.PathLike[str]],
    input_format: str | None = None,
    without: Path | None = None,
    *,
    unnamed: str = "libsvm",
) -> list[Source]:
    """List all files of the inputs, in order; the files of a folder or pattern are sorted by name.

    `inputs` lists files, folders, patterns with ``*``, ``?``, ``[...]`` and ``**``, or "-" for standard input. A folder
    stands for the files in it, at any depth, that have a known extension, except for names that begin with "." or "_"
    and the files in the folder `without`. The format `unnamed` is used for pipes, and for files given by name that have
    another extension; `input_format` overrides all formats. Raises InputError if there is no file or the format is
    unknown, and DataFormatError if the contents are in a different file format.
    """
    if input_format is not None and input_format not in FORMATS:
        raise InputError(f"the input format must be one of {', '.join(FORMATS)}, not {input_format!r}")
    sources: list[Source] = []
    for given in inputs:
        name = os.fspath(given)
        if name == STANDARD:
            sources.append(Source(None, "standard input", input_format or "csv", PurePath("standard_input")))
        elif os.path.isdir(name):
            sources += _in_folder(Path(name), lambda path: input_format or format_of(path), without)
        elif os.path.lexists(name) or not glob.has_magic(name):
            path = Path(name)
            path.stat()  # raises an error that names a missing file
            sources.append(Source(path, name, input_format or _format(path, unnamed), PurePath(path.name)))
        else:
            sources += _matching(name, input_format, without, unnamed)
    if sum(source.path is None for source in sources) > 1:
        raise InputError("standard input is given several times, but can be read only once")
    if not sources:
        raise InputError(f"no file to score in {', '.join(map(str, inputs)) or 'an empty list'}")
    return sources


def _in_folder(folder: Path, format_of_file: Callable[[Path], str | None], without: Path | None) -> list[Source]:
    sources = []
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if not path.is_file() or any(part[0] in "._" for part in relative.parts) or _is_within(path, without):
            continue
        known = format_of_file(path)
        if known is not None:
            sources.append(Source(path, str(path), known, relative))
    return sources


def _format_of_raster(path: Path) -> str | None:
    return "raster" if path.suffix not in _BESIDE_RASTERS and is_raster(str(path)) else None


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
            known = input_format or _format(path, unnamed)
            sources.append(Source(path, name, known, path.relative_to(fixed)))
    if not sources:
        raise InputError(f"no file matches {pattern}")
    return sources
