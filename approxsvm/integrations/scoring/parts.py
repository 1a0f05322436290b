"""Output files, written under a temporary name and renamed when complete."""

import io
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from approxsvm.errors import InputError
from approxsvm.integrations.arrow.batches import Scorer
from approxsvm.integrations.scoring.folders import checksum
from approxsvm.integrations.scoring.sources import COMPRESSED, STANDARD, format_of
from approxsvm.system.output_files import remove_unfinished, whole_file
from approxsvm.system.packages import import_package

pa = import_package("pyarrow", "arrow", "scoring files")

OUTPUT_FORMATS = ("csv", "parquet", "arrow")
SUFFIXES = {"csv": ".csv", "parquet": ".parquet", "arrow": ".arrow"}
Write = Callable[[Any], None]


def output_format(output: str, requested: str | None, is_folder: bool) -> str:
    """Return the output format; raise InputError if it is unknown or not supported by the output."""
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
        raise InputError(f"{output}: the name must end in one of {', '.join(SUFFIXES.values())}")
    return kind


@contextmanager
def open_output(path: str, schema: Any, kind: str) -> Iterator[Write]:
    """Yield a function that appends batches to a file; the file appears, complete, if the `with` block succeeds."""
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
    """Writer of one-column CSV files. As in pandas, nulls are written as "", because readers skip empty lines."""

    def __init__(self, file: Any, schema: Any) -> None:
        self._file, self._csv = file, import_package("pyarrow.csv", "arrow", "writing CSV files")
        self._write(pa.RecordBatch.from_pylist([], schema), with_name=True)

    def __enter__(self) -> "_OneColumn":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write_batch(self, batch: Any) -> None:
        """Append a batch to the file."""
        self._write(batch, with_name=False)

    def _write(self, batch: Any, *, with_name: bool) -> None:
        column, text = batch.column(0), io.BytesIO()
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if is_text and column.null_count:  # Arrow quotes empty strings; line breaks within strings are unchanged
            batch = pa.RecordBatch.from_arrays([column.fill_null("")], schema=batch.schema)
        self._csv.write_csv(batch, text, self._csv.WriteOptions(include_header=with_name))
        written = text.getvalue()
        self._file.write(re.sub(rb"(?m)^\n", b'""\n', written) if column.null_count and not is_text else written)

    def close(self) -> None:
        """Do nothing: the caller closes the file."""


def _check_types(schema: Any, kind: str) -> None:
    """Raise InputError for a column type not supported by the file format."""
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
        with suppress(Exception):  # only the first error is reported
            made.close()
        if isinstance(error, pa.ArrowException):
            _check_types(schema, kind)
            raise InputError(f"a {kind} file does not support these answers: {error}") from None
        raise
    made.close()


def run_fingerprint(scorer: Scorer) -> dict[str, Any]:
    """Return the models and options stored in the record of an output folder."""
    return {
        "models": {name: checksum(evaluator.artifact.data) for name, evaluator in scorer.evaluators.items()},
        "outputs": {name: answer.outputs for name, answer in scorer.answers.items()},
        "keep": scorer.keep,
        "columns": scorer.columns,
        "on_error": scorer.on_error,
    }
