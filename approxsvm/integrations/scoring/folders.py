"""Output folders, which contain one file per input file, so that a killed run can be continued."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from approxsvm.errors import InputError
from approxsvm.integrations.scoring.sources import COMPRESSED, STANDARD, Source
from approxsvm.system.output_files import File, write_whole

RECORD = "_approxsvm_score.json"  # other programs skip files whose names begin with an underscore


def is_folder(output: str) -> bool:
    """Return whether an output is a folder or, if nothing exists at its path, is named like a folder."""
    if output == STANDARD or (os.path.exists(output) and not os.path.isdir(output)):
        return False
    return os.path.isdir(output) or output.endswith(os.sep) or not Path(output).suffix


def model_files(model: Any) -> Iterator[tuple[str, File]]:
    """Yield a name for messages and the path, for every file of a model or of the models in a mapping."""
    for one in model.values() if isinstance(model, Mapping) else [model]:
        if isinstance(one, (str, os.PathLike)):
            yield f"model {os.fspath(one)}", one


def checksum(data: bytes) -> str:
    """Return the SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


class PartFolder:
    """Folder of predictions, with one file (a part) per input file, and a record of the models and options.

    A run continues a killed run with the same record: existing parts are complete, and each is kept unless it is older
    than its source. Raises InputError if two sources would have the same part.
    """

    def __init__(self, folder: Path, kind: str, suffix: str, sources: Sequence[Source]) -> None:
        self._folder, self._kind = folder, kind
        self.paths: dict[Source, Path] = {}
        taken: dict[Path, Source] = {}
        for source in sources:
            relative = source.relative
            while relative.suffix.lower() in COMPRESSED:
                relative = relative.with_suffix("")
            path = folder / relative.with_suffix(suffix)
            other = taken.setdefault(path, source)
            if other is not source:
                raise InputError(f"{other.name} and {source.name} would both be written to {path}")
            self.paths[source] = path

    def written(self) -> Iterator[tuple[str, Path]]:
        """Yield a name for messages and the path, for every file that may be written."""
        for path in (*self.paths.values(), self._folder / RECORD):
            yield f"output {path}", path

    def claim(self, options: Mapping[str, Any]) -> list[Source]:
        """Write the record of a run with the given options; return the sources that do not have a complete part yet.

        Raises InputError if the run would overwrite files from other runs or programs.
        """
        self._write_record(options)
        return [source for source in self.paths if not self._is_done(source)]

    def _write_record(self, options: Mapping[str, Any]) -> None:
        requested: dict[str, Any] = {"kind": self._kind, **options}
        record, text = self._folder / RECORD, json.dumps(requested, indent=1, sort_keys=True)
        requested = json.loads(text)
        if record.exists():
            recorded = self._read(record)
            differ = [
                name for name in sorted(recorded.keys() | requested.keys()) if recorded.get(name) != requested.get(name)
            ]
            if not differ:
                return
            if any(path.is_file() and path.name[0] != "." and path != record for path in self._folder.rglob("*")):
                raise InputError(
                    f"{self._folder} holds the answers of another run, with {differ[0]} {recorded.get(differ[0])} "
                    f"instead of {requested.get(differ[0])}; use another folder, or remove it"
                )
        for path in self.paths.values():
            if path.exists():
                raise InputError(f"{path} already exists, and {self._folder} has no record of its run")
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(text.encode(), record)

    def _read(self, record: Path) -> dict[str, Any]:
        try:
            return dict(json.loads(record.read_text()))
        except (ValueError, TypeError):
            raise InputError(f"{record}: not the record of a run; use another folder, or remove it") from None

    def _is_done(self, source: Source) -> bool:
        """Return whether the part for a source exists and is not older than the source."""
        path = self.paths[source]
        return source.path is not None and path.exists() and path.stat().st_mtime_ns >= source.path.stat().st_mtime_ns

    def path(self, source: Source) -> str:
        """Return the path to which the part for a source is written; create its folder."""
        self.paths[source].parent.mkdir(parents=True, exist_ok=True)
        return os.fspath(self.paths[source])
