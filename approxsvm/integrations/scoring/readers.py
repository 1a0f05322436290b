"""Readers that split files into blocks of rows and provide a name for every row."""

import codecs
import contextlib
import io
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from approxsvm import _native
from approxsvm.errors import DataFormatError, InputError
from approxsvm.frames.columns import Tell
from approxsvm.frames.first_line import has_names, refuse_other_delimiter
from approxsvm.integrations.arrow.batches import Block, BoundScorer, Scorer, pieces
from approxsvm.integrations.scoring.sources import COMPRESSED, Source
from approxsvm.runtime.evaluator import with_one_index_type
from approxsvm.system.options import whole_number
from approxsvm.system.packages import import_package

pa = import_package("pyarrow", "arrow", "scoring files")

_TEXT_BYTES = 1 << 22  # bytes parsed at a time from a CSV or LIBSVM file; lines of a CSV file must be shorter
_LIBSVM_BYTES = 64  # bytes per feature in a line of LIBSVM text: its index, its value, and a safety margin
_COLUMN_BYTES = 1 << 16  # bytes read at a time from a column chunk of a Parquet file, regardless of row-group size
_MAX_NUMBERS = 1 << 21  # maximum number of values in a batch
_MAX_ROWS = 1 << 16
ROW = "row"  # name of the column with an array's row numbers
TARGET = "target"  # name of the column with the first number in each line of LIBSVM text


@dataclass(frozen=True)
class Reading:
    """Options for reading files; an invalid `batch_rows` or `delimiter` raises InputError."""

    batch_rows: int | None = None  # number of rows per batch; None: chosen by `rows_of`
    delimiter: str | None = None  # character between columns of CSV files; None means a comma
    header: bool | None = None  # True if the first line of a CSV file contains names; None: determined by `has_names`
    tell: Tell | None = None  # called with a sentence if columns are matched by position

    def __post_init__(self) -> None:
        if self.batch_rows is not None:
            object.__setattr__(self, "batch_rows", whole_number(self.batch_rows, "batch_rows", 1))
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise InputError(f"the delimiter is {self.delimiter!r}, but must be one character")

    def rows_of(self, n_columns: int) -> int:
        """Return `batch_rows`, or by default the number of rows that fit into 16 MB as float64 (at most 65,536)."""
        return self.batch_rows or max(1, min(_MAX_ROWS, _MAX_NUMBERS // max(n_columns, 1)))


Blocks = tuple[BoundScorer, Iterator[Block]]


def open_source(source: Source, scorer: Scorer, reading: Reading) -> Blocks:
    """Open a file; return a scorer for its blocks, and an iterator over them.

    Errors name the file. Raises InputError if a column is missing or not numeric, DataFormatError if the file is
    malformed (also while blocks are read), and OSError if it cannot be read.
    """
    if source.regular_path is not None:
        open(source.regular_path, "rb").close()  # raises an error that names the file, unlike some Arrow errors
    with contextlib.ExitStack() as opened:
        try:
            scorer_of_blocks, blocks = _READERS[source.format](source, scorer, reading, opened)
        except InputError as error:
            raise InputError(f"{source.name}: {error}") from None
        except _ARROW_ERRORS as error:
            raise _unreadable(source, error) from error
        return scorer_of_blocks, _naming_file(source, blocks, opened.pop_all())


_ARROW_ERRORS = (pa.ArrowException, OSError, EOFError, UnicodeDecodeError)


def _naming_file(source: Source, blocks: Iterator[Block], opened: contextlib.ExitStack) -> Iterator[Block]:
    """Yield the blocks, add the file's name to errors, and close the opened files at the end."""
    try:
        with opened:
            yield from blocks
    except _ARROW_ERRORS as error:
        raise _unreadable(source, error) from error


def _unreadable(source: Source, error: Exception) -> Exception:
    if isinstance(error, OSError) and error.errno is not None:
        return OSError(error.errno, error.strerror, source.name)
    words = " ".join(str(error).split())
    if source.format == "csv" and "straddl" in words:
        words = f"a line is longer than {_TEXT_BYTES} bytes"
    return DataFormatError(f"{source.name}: not a readable {source.format} file: {words}")


def _row_names(source: Source, first: int) -> Callable[[int], str]:
    return lambda row: f"{source.name}, row {first + row}"


def _open_parquet(source: Source, scorer: Scorer, reading: Reading, opened: contextlib.ExitStack) -> Blocks:
    parquet = import_package("pyarrow.parquet", "arrow", "reading Parquet files")
    if source.path is None:
        raise InputError("a Parquet file cannot be read from standard input, as its index is at the end")
    # Column chunks are read piecewise, so a row group, which may be the whole file, need not fit in memory.
    file = opened.enter_context(parquet.ParquetFile(source.path, buffer_size=_COLUMN_BYTES, pre_buffer=False))
    schema = file.schema_arrow
    features = scorer.features(schema.names, tell=reading.tell)
    needed = scorer.needed(features)
    bound = scorer.bind(schema, features)
    n_rows = reading.rows_of(len(needed))

    def blocks() -> Iterator[Block]:
        first = 0
        for batch in file.iter_batches(batch_size=n_rows, columns=needed):
            share = (first + batch.num_rows) / max(file.metadata.num_rows, 1)
            yield Block(batch, _row_names(source, first), share=share)
            first += batch.num_rows

    return bound, blocks()


def _open_arrow(source: Source, scorer: Scorer, reading: Reading, opened: contextlib.ExitStack) -> Blocks:
    is_file = False
    path = source.regular_path
    if path is not None:
        with open(path, "rb") as file:
            is_file = file.read(6) == b"ARROW1"
        # The file is memory-mapped, so uncompressed columns are read only once.
        stream: Any = opened.enter_context(pa.memory_map(os.fspath(path)))
    else:
        stream = source.open_stream(opened)
    reader: Any = pa.ipc.open_file(stream) if is_file else pa.ipc.open_stream(stream)
    schema = reader.schema
    features = scorer.features(schema.names, tell=reading.tell)
    needed = scorer.needed(features)
    bound = scorer.bind(schema, features)
    n_rows = reading.rows_of(len(needed))
    n_batches: int | None = None
    batches: Iterator[Any]
    if not is_file:
        batches = iter(reader)
    else:
        # Without `included_fields`, unused columns in a compressed file would also be decompressed.
        options = pa.ipc.IpcReadOptions(included_fields=sorted(map(schema.get_field_index, needed)))
        reader = pa.ipc.open_file(stream, options=options)
        n_batches = reader.num_record_batches
        batches = map(reader.get_batch, range(n_batches))

    def blocks() -> Iterator[Block]:
        first = 0
        for k, whole in enumerate(batches):
            # Without validation, Arrow trusts the offsets in the file and could read beyond the buffers.
            whole.validate()
            for batch in pieces(whole.select(needed), n_rows):
                batch.validate(full=True)
                yield Block(batch, _row_names(source, first), share=k / n_batches if n_batches else None)
                first += batch.num_rows

    return bound, blocks()


class _Text:
    """Text stream for Arrow that lets the first lines be read in advance.

    `position` is the number of bytes read so far, after decompression.
    """

    closed = False

    def __init__(self, source: Source, opened: contextlib.ExitStack) -> None:
        self._stream: Any = source.open_stream(opened)
        path = source.regular_path
        self.n_bytes = None if path is None else path.stat().st_size
        compression = None if source.path is None else COMPRESSED.get(source.path.suffix.lower())
        if compression is not None:
            self._stream, self.n_bytes = pa.CompressedInputStream(self._stream, compression), None
        self.position = 0
        self._head = b""

    def first_lines(self) -> tuple[bytes, bytes]:
        """Return the first two nonblank lines, including quoted line breaks; a missing line is empty."""
        self._head = self._stream.read(_TEXT_BYTES)
        text = self._head.lstrip(b"\r\n")
        first = _first_line(text)
        second = _first_line(text[len(first) :].lstrip(b"\r\n"))
        if not second and len(self._head) < _TEXT_BYTES:
            self._head += b"\n"  # Arrow rejects a file whose header has no line break
        return first, second

    def read(self, n: int) -> bytes:
        """Read up to n bytes, like a file's `read` method."""
        head, self._head = self._head[:n], self._head[n:]
        data: bytes = head + self._stream.read(n - len(head))
        self.position += len(data)
        return data

    def close(self) -> None:
        """Do nothing: the caller closes the stream."""

    @property
    def share(self) -> float | None:
        return None if self.n_bytes is None else min(1.0, self.position / max(self.n_bytes, 1))


def _first_line(text: bytes) -> bytes:
    """Return the text up to the first line break outside quotation marks, or all of the text if it has none."""
    n_bytes = n_quotes = 0
    for line in text.splitlines(keepends=True):
        n_bytes += len(line)
        n_quotes += line.count(b'"')
        if n_quotes % 2 == 0:
            break
    return text[:n_bytes].rstrip(b"\r\n")


def _open_csv(source: Source, scorer: Scorer, reading: Reading, opened: contextlib.ExitStack) -> Blocks:
    """Open a CSV file; features are parsed when a block is scored, in parallel, so that messages can name bad rows."""
    arrow_csv = import_package("pyarrow.csv", "arrow", "reading CSV files")
    text = _Text(source, opened)
    delimiter = reading.delimiter or ","
    how = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    first, second = text.first_lines()
    names = _cells(first, how)
    if reading.delimiter is None:
        refuse_other_delimiter(names, source.name)
    below = second.decode(errors="replace").split(delimiter)
    is_named = has_names(names, below, reading.header)
    values = below if is_named else names
    if not is_named:
        names = [str(k + 1) for k in range(len(names))]
    # As in pandas, a boolean column contains only booleans. The first row determines which columns are boolean, so the
    # result does not depend on the division into blocks.
    truths = {name for name, cell in zip(names, values, strict=False) if cell.strip('"').lower() in ("true", "false")}
    features = scorer.features(names, generated=not is_named, tell=reading.tell)
    needed = scorer.needed(features)
    ragged = array("q")  # row numbers of the rows that Arrow omitted
    lost: list[str] = []  # messages about omitted rows that have not been reported yet

    def handle_ragged(row: Any) -> str:
        if scorer.on_error != "skip":
            return "error"
        number = row.number - 1 - is_named
        ragged.append(number)
        lost.append(f"{source.name}, row {number}: {row.actual_columns} columns, expected {row.expected_columns}")
        return "skip"

    def take_lost() -> tuple[str, ...]:
        messages = tuple(lost)
        lost.clear()
        return messages

    how.invalid_row_handler = handle_ragged
    reader = arrow_csv.open_csv(
        pa.PythonFile(text, mode="r"),
        # Arrow numbers lines only with a single thread, which is fast enough, because it parses no numbers here.
        read_options=arrow_csv.ReadOptions(
            use_threads=False, block_size=_TEXT_BYTES, column_names=None if is_named else names
        ),
        parse_options=how,
        convert_options=arrow_csv.ConvertOptions(
            include_columns=needed,
            column_types=dict.fromkeys(needed, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,  # a quoted empty string is not null
            check_utf8=False,
        ),
    )
    schema = pa.schema([(name, pa.string()) for name in needed])
    only_kept = set(needed).difference(*features.values())

    def place(first: int) -> Callable[[int], str]:
        def name(row: int) -> str:
            # There are ragged[k] - k other rows before the k-th ragged row.
            n_ragged = bisect_right(range(len(ragged)), first + row, key=lambda k: ragged[k] - k)
            return f"{source.name}, row {first + row + n_ragged}"

        return name

    def blocks() -> Iterator[Block]:
        first = 0
        for whole in reader:
            for piece in pieces(whole, reading.rows_of(len(needed))):
                batch, unreadable = _valid_text(_as_written(piece, only_kept))
                yield Block(batch, place(first), unreadable=unreadable, lost=take_lost(), share=text.share)
                first += batch.num_rows
        if lost:
            yield Block(pa.RecordBatch.from_pylist([], schema), place(first), lost=take_lost(), share=text.share)

    return scorer.bind(schema, features, text=True, truths=truths), blocks()


def _cells(line: bytes, how: Any) -> list[str]:
    """Split a line into cells with Arrow's parser."""
    arrow_csv = import_package("pyarrow.csv", "arrow", "reading CSV files")
    if not line:
        raise InputError("the file is empty: it has no line of names")
    options = arrow_csv.ReadOptions(use_threads=False, block_size=len(line) + 2)
    try:
        return list(arrow_csv.read_csv(pa.BufferReader(line + b"\n"), options, how).schema.names)
    except UnicodeDecodeError:
        raise InputError(f"the first line is not UTF-8 text: {line[:40]!r}") from None


def _as_written(batch: Any, names: Set[str]) -> Any:
    """Replace nulls in the columns `names` with empty strings, as in the file."""
    columns = [
        column.fill_null("") if name in names and column.null_count else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _valid_text(batch: Any) -> tuple[Any, dict[int, str]]:
    """Replace cells that are not valid UTF-8 with null; return the batch, and the reason for each affected row."""
    unreadable: dict[int, str] = {}
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            pass
        else:
            columns.append(column)
            continue
        cells = column.cast(pa.binary()).to_pylist()
        for row, cell in enumerate(cells):
            try:
                cell.decode()
            except UnicodeDecodeError:
                cells[row] = None
                unreadable.setdefault(row, f"column {name!r} holds {cell[:40]!r}, which is not UTF-8 text")
        columns.append(pa.array(cells, pa.binary()).cast(pa.string()))
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema), unreadable


def _open_libsvm(source: Source, scorer: Scorer, reading: Reading, opened: contextlib.ExitStack) -> Blocks:
    from scipy.sparse import csr_array

    if scorer.columns is not None:
        raise InputError("LIBSVM text has no columns to choose")
    artifacts = [evaluator.artifact for evaluator in scorer.evaluators.values()]
    width, first_index = artifacts[0].n_raw_features, int(artifacts[0].header["first_index"])
    for artifact in artifacts:
        if (artifact.n_raw_features, int(artifact.header["first_index"])) != (width, first_index):
            raise InputError("LIBSVM text needs models with the same number of features and the same first index")
    text = _Text(source, opened)
    most_bytes = _TEXT_BYTES + _LIBSVM_BYTES * width
    schema = pa.schema([(TARGET, pa.float64())])
    bound = scorer.bind_rows(schema, csr_array((0, width)))

    def block(lines: bytes, first_line: int, share: float | None) -> Block:
        labels, indptr, indices, values, unreadable, no_label = _parse(lines, width, first_index)
        rows = csr_array((values, indices, indptr), shape=(len(labels), width))
        has_none = np.zeros(len(labels), np.bool_)
        has_none[no_label] = True
        batch = pa.RecordBatch.from_arrays([pa.array(labels, mask=has_none)], schema=schema)
        return Block(batch, lambda row: f"{source.name}, line {first_line + row}", rows, unreadable, share=share)

    def blocks() -> Iterator[Block]:
        left, line = b"", 1
        while True:
            more = text.read(_TEXT_BYTES)
            cut = more.rfind(b"\n") + 1
            if more and not cut:
                left += more
                if len(left) > most_bytes:
                    words = f"the line has more than {most_bytes} bytes, too many for {width} features"
                    raise DataFormatError(f"{source.name}, line {line}: {words}")
                continue
            piece, left = left + more[:cut], more[cut:]
            if not more:
                piece, left = piece + left, b""
            if piece:
                piece = piece.removeprefix(codecs.BOM_UTF8) if line == 1 else piece
                parsed = block(piece, line, text.share)
                yield parsed
                line += parsed.batch.num_rows
            if not more:
                return

    return bound, blocks()


def _parse(text: bytes, width: int, first_index: int) -> tuple[Any, Any, Any, Any, dict[int, str], list[int]]:
    """Parse LIBSVM text; also return reasons for unreadable rows, which become empty, and the rows without a label."""
    unreadable: dict[int, str] = {}
    try:
        parts = [_native.parse_libsvm_data(text)[:4]]
    except DataFormatError:
        parsed = [_parse_line(line) for line in io.BytesIO(text)]
        parts = [part for part, _ in parsed]
        unreadable = {row: reason for row, (_, reason) in enumerate(parsed) if reason}
    no_label = list(unreadable)
    labels, indptr, indices, values = _joined(parts)
    for row in _outside(indptr, indices, width, first_index):
        bad = indices[indptr[row] : indptr[row + 1]]
        worst = int(bad.max() if bad.max() >= width + first_index else bad.min())
        unreadable.setdefault(row, f"index {worst} lies outside {first_index} to {width + first_index - 1}")
    if unreadable and len(indices):
        keep = ~np.isin(np.repeat(np.arange(len(labels)), np.diff(indptr)), list(unreadable))
        lengths = np.diff(indptr)
        lengths[list(unreadable)] = 0
        indices, values, indptr = indices[keep], values[keep], np.concatenate([[0], np.cumsum(lengths)])
    columns = indices - first_index
    return labels, indptr.astype(np.int32), columns.astype(np.int32), values, unreadable, no_label


def _parse_line(text: bytes) -> tuple[tuple[Any, Any, Any, Any], str]:
    """Parse a line; if it cannot be parsed, return an empty row and the reason."""
    try:
        return _native.parse_libsvm_data(text)[:4], ""
    except DataFormatError as error:
        no_row = (np.zeros(1), np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0))
        return no_row, str(error).removeprefix("line 1: ")


def _joined(parts: list[tuple[Any, Any, Any, Any]]) -> tuple[Any, Any, Any, Any]:
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(part[2]) for part in parts)])
    indptr = [part[1][:-1] + start for part, start in zip(parts, starts[:-1], strict=True)]
    labels, indices, values = (np.concatenate([part[k] for part in parts]) for k in (0, 2, 3))
    return labels, np.concatenate([*indptr, starts[-1:]]), indices, values


def _outside(indptr: Any, indices: Any, width: int, first_index: int) -> list[int]:
    """Return the rows that contain an index for which the model has no column."""
    outside = np.flatnonzero((indices < first_index) | (indices >= width + first_index))
    return np.unique(np.searchsorted(indptr, outside, side="right") - 1).tolist() if len(outside) else []


def _open_numpy(source: Source, scorer: Scorer, reading: Reading, opened: contextlib.ExitStack) -> Blocks:
    from approxsvm.frontends.data import read_rows  # imported here because it needs SciPy

    if scorer.columns is not None:
        raise InputError("an array has no columns to choose")
    if source.path is None or source.path.suffix.lower() not in (".npy", ".npz"):
        raise InputError("an array is read from a file whose name ends in .npy or .npz")
    artifacts = [evaluator.artifact for evaluator in scorer.evaluators.values()]
    for artifact in artifacts:
        if artifact.n_raw_features != artifacts[0].n_raw_features or artifact.takes_texts:
            raise InputError("an array needs models with the same number of features, all of them numbers")
    rows = read_rows(source.path, n_features=artifacts[0].n_raw_features)
    if rows.dtype.kind not in "fiub":
        raise InputError(f"the array is {rows.dtype}, but must hold real numbers")
    if not isinstance(rows, np.ndarray):
        rows = with_one_index_type(rows)
    schema = pa.schema([(ROW, pa.int64())])
    bound = scorer.bind_rows(schema, rows[:0])
    n_rows = reading.rows_of(rows.shape[1])

    def blocks() -> Iterator[Block]:
        for first in range(0, rows.shape[0], n_rows):
            part = rows[first : first + n_rows]
            numbers = pa.array(np.arange(first, first + part.shape[0]))
            batch = pa.RecordBatch.from_arrays([numbers], schema=schema)
            yield Block(batch, _row_names(source, first), part, share=(first + part.shape[0]) / rows.shape[0])

    return bound, blocks()


_READERS: dict[str, Callable[[Source, Scorer, Reading, contextlib.ExitStack], Blocks]] = {
    "csv": _open_csv,
    "parquet": _open_parquet,
    "arrow": _open_arrow,
    "libsvm": _open_libsvm,
    "numpy": _open_numpy,
}
