"""Output files, written to a temporary name and renamed when complete; a folder has one for each input file."""

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from approxsvm.errors import InputError
from approxsvm.integrations.arrow.batches import Scorer
from approxsvm.integrations.scoring.jobs import checksum
from approxsvm.integrations.scoring.sources import COMPRESSED, STANDARD, Source, format_of
from approxsvm.system.output_files import remove_unfinished, whole_file, write_whole
from approxsvm.system.packages import import_package

pa = import_package("pyarrow", "arrow", "scoring files")

OUTPUT_FORMATS = ("csv", "parquet", "arrow")
RECORD = "_approxsvm_score.json"  # other programs skip files that begin with an underscore
_SUFFIXES = {"csv": ".csv", "parquet": ".parquet", "arrow": ".arrow"}
Write = Callable[[Any], None]


def output_format(output: str, requested: str | None, is_folder: bool) -> str:
    """Return the format to write; InputError if none is given or implied, or the output does not support it."""
    if requested is not None and requested not in OUTPUT_FORMATS:
        raise InputError(f"the output format must be one of {', '.join(OUTPUT_FORMATS)}, not {requested!r}")
    if output == STANDARD:
        if requested == "parquet":
            raise InputError("standard output takes csv and arrow, not parquet")
        return requested or "csv"
    if is_folder:
        return requested or "parquet"
    kind = requested or format_of(output)
    if kind not in OUTPUT_FORMATS or Path(output).suffix.lower() in COMPRESSED:
        raise InputError(f"{output}: the name must end in one of {', '.join(_SUFFIXES.values())}")
    return kind


@contextmanager
def open_output(path: str, schema: Any, kind: str) -> Iterator[Write]:
    """Yield a function that appends batches to a file; the complete file appears when the block ends without error."""
    if path == STANDARD:
        if sys.stdout is None:
            raise InputError("standard output is closed")
        with _writer(sys.stdout.buffer, schema, kind, is_stream=True) as write:
            yield write
        sys.stdout.buffer.flush()
        return
    remove_unfinished(path)
    with whole_file(path) as file, _writer(file, schema, kind, is_stream=False) as write:
        yield write


def _opened(file: Any, schema: Any, kind: str, *, is_stream: bool = False) -> Any:
    if kind == "parquet":
        return import_package("pyarrow.parquet", "arrow", "writing Parquet files").ParquetWriter(file, schema)
    if kind == "arrow":
        return (pa.ipc.new_stream if is_stream else pa.ipc.new_file)(file, schema)
    arrow_csv = import_package("pyarrow.csv", "arrow", "writing CSV files")
    return _OneColumn(file, schema) if len(schema) == 1 else arrow_csv.CSVWriter(file, schema)


class _OneColumn:
    """Writer of a CSV file of one column, in which a null is "" like in pandas: readers skip an empty line."""

    def __init__(self, file: Any, schema: Any) -> None:
        self._file, self._csv = file, import_package("pyarrow.csv", "arrow", "writing CSV files")
        self._write(pa.RecordBatch.from_pylist([], schema), with_name=True)

    def __enter__(self) -> "_OneColumn":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write_batch(self, batch: Any) -> None:
        """Append a batch."""
        self._write(batch, with_name=False)

    def _write(self, batch: Any, *, with_name: bool) -> None:
        column, text = batch.column(0), io.BytesIO()
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if is_text and column.null_count:  # Arrow quotes empty texts; lines within other texts stay as they are
            batch = pa.RecordBatch.from_arrays([column.fill_null("")], schema=batch.schema)
        self._csv.write_csv(batch, text, self._csv.WriteOptions(include_header=with_name))
        written = text.getvalue()
        self._file.write(re.sub(rb"(?m)^\n", b'""\n', written) if column.null_count and not is_text else written)

    def close(self) -> None:
        """Do nothing: the caller closes the file."""


def _check_types(schema: Any, kind: str) -> None:
    """Raise InputError for a column type that files of this kind do not support."""
    for column in schema:
        nothing = pa.RecordBatch.from_arrays([pa.nulls(1, column.type)], [column.name])
        try:
            with _opened(io.BytesIO(), nothing.schema, kind) as writer:
                writer.write_batch(nothing)
        except pa.ArrowException:
            raise InputError(f"column {column.name!r} is {column.type}, which {kind} files do not support") from None


@contextmanager
def _writer(file: Any, schema: Any, kind: str, *, is_stream: bool) -> Iterator[Write]:
    try:
        made = _opened(file, schema, kind, is_stream=is_stream)
    except pa.ArrowException:
        _check_types(schema, kind)
        raise
    try:
        yield made.write_batch
    except BaseException as error:
        with suppress(Exception):  # only the first failure is reported
            made.close()
        if isinstance(error, pa.ArrowException):
            _check_types(schema, kind)
            raise InputError(f"a {kind} file does not support these answers: {error}") from None
        raise
    made.close()


class PartFolder:
    """A folder of answers, with one file for each input file, and a record of the models and options.

    A run with the same record continues one that was killed: a part that exists is complete, and is kept unless it is
    older than its source. Raises InputError if two sources would have the same part.
    """

    def __init__(self, folder: Path, kind: str, sources: Sequence[Source]) -> None:
        self._folder, self._kind = folder, kind
        self.paths: dict[Source, Path] = {}
        taken: dict[Path, Source] = {}
        for source in sources:
            relative = source.relative
            while relative.suffix.lower() in COMPRESSED:
                relative = relative.with_suffix("")
            path = folder / relative.with_suffix(_SUFFIXES[kind])
            other = taken.setdefault(path, source)
            if other is not source:
                raise InputError(f"{other.name} and {source.name} would both be written to {path}")
            self.paths[source] = path

    def written(self) -> Iterator[tuple[str, Path]]:
        """Yield all files that may be written, with their names in messages."""
        for path in (*self.paths.values(), self._folder / RECORD):
            yield f"output {path}", path

    def claim(self, options: Mapping[str, Any]) -> None:
        """Write the record of a run with these options; InputError if other files would be overwritten."""
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

    def is_done(self, source: Source) -> bool:
        """Return whether the part of a source exists and is not older than the source."""
        path = self.paths[source]
        return source.path is not None and path.exists() and path.stat().st_mtime_ns >= source.path.stat().st_mtime_ns

    def path(self, source: Source) -> str:
        """Return the path to which the part of a source is written; create its folder."""
        self.paths[source].parent.mkdir(parents=True, exist_ok=True)
        return os.fspath(self.paths[source])


def run_fingerprint(scorer: Scorer) -> dict[str, Any]:
    """Return models and options as the record of a folder stores them."""
    return {
        "models": {name: checksum(evaluator.artifact.data) for name, evaluator in scorer.evaluators.items()},
        "outputs": {name: answer.outputs for name, answer in scorer.answers.items()},
        "keep": scorer.keep,
        "columns": scorer.columns,
        "on_error": scorer.on_error,
    }
