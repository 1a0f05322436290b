"""score_dataset(): find, read, predict and write, all four at the same time and in constant memory."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from approxsvm.arrow.batches import Block, BoundScorer, OnError, Scored, Scorer
from approxsvm.errors import InputError
from approxsvm.packages import import_package
from approxsvm.predictor import open_evaluators
from approxsvm.scoring.parts import PartFolder, open_output, output_format
from approxsvm.scoring.readers import open_source
from approxsvm.scoring.sources import STANDARD, Source, find_sources
from approxsvm.threads import n_threads

pa = import_package("pyarrow", "arrow", "scoring files")

_MAX_REASONS = 100  # that are kept of all bad rows
Progress = Callable[[int, "float | None"], None]


@dataclass
class Scoring:
    """What became of the rows.

    Attributes
    ----------
    n_rows : int
        That were read.
    n_bad : int
        Those of them without an answer.
    bad_rows : list of str
        File, row and fault of the first hundred.
    written : list of str
        Files, whole.
    n_kept : int
        Parts of a folder that were there from an earlier run.
    seconds : float
        From the first to the last byte.
    seconds_reading, seconds_predicting, seconds_writing : float
        What each took, added up over threads; they overlap.
    """

    n_rows: int = 0
    n_bad: int = 0
    bad_rows: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    n_kept: int = 0
    seconds: float = 0.0
    seconds_reading: float = 0.0
    seconds_predicting: float = 0.0
    seconds_writing: float = 0.0


def score_dataset(
    model: Any,
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    outputs: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    on_error: OnError = "fail",
    input_format: str | None = None,
    output_format: str | None = None,
    batch_rows: int | None = None,
    n_jobs: int | None = -1,
    progress: Progress | None = None,
) -> Scoring:
    """Score files of any size, in memory that does not depend on it.

    Rows are read a batch at a time, while earlier batches are predicted and written. Answers are those of `predict` and
    its kin, number for number.

    Parameters
    ----------
    model : path, bytes, Artifact, Predictor or compiled estimator; or a mapping of names to these
        Several models answer in one pass over the rows; their columns begin with their names.
    inputs : path or sequence of paths
        CSV (compressed or not), Parquet and Arrow files, LIBSVM text; folders of them, patterns like ``day=*/*.csv``,
        "-" for standard input. Columns are found as by `Predictor.predict_arrow`. A CSV file without a line of names
        has the columns 1, 2, ... LIBSVM text has the column target, its first number, to be kept.
    output : path
        A .csv, .parquet or .arrow file, or "-", standard output. A name without a suffix is a folder, which gets one
        file for each that is read; a run that was killed is taken up at the first part that is missing.
    outputs : sequence of {"label", "value", "probability", "error_bound", "certified"}, optional
        What is wanted; "label" when left out, of a regression "value".
    keep : sequence of str
        Columns that are handed on, in front. Those of a CSV file stay text, letter by letter.
    columns : sequence of str, optional
        The columns that are features, in the models' order.
    on_error : {"fail", "null", "skip"}
        What becomes of rows with a null, NaN, infinity, a text that is no number, or a number beyond the model's range.
    input_format : {"csv", "parquet", "arrow", "libsvm"}, optional
        By the name of each file when left out; of standard input, CSV.
    output_format : {"csv", "parquet", "arrow"}, optional
        By the name when left out; Parquet in a folder, CSV on standard output.
    batch_rows : int, optional
        65,536, or fewer where there are more than 32 columns.
    n_jobs : int, optional
        Threads that predict: all processors unless told otherwise.
    progress : callable, optional
        Told how many rows are written, and the share of the input that is, from 0 to 1, or None where nobody knows.

    Returns
    -------
    Scoring

    Raises
    ------
    InputError
        A column is missing, an output does not exist, a row is bad; the message names file and row.
    DataFormatError
        A file cannot be read as what it is.
    OSError
        A file cannot be read or written. What is there under its final name is whole.
    MissingPackageError
        pyarrow is not installed: ``pip install 'approxsvm[arrow]'``.

    Examples
    --------
    >>> import approxsvm, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scored = approxsvm.score_dataset("models/breast_cancer.asvm", "models/breast_cancer.t", folder + "/bc.csv")
    >>> scored.n_rows
    150
    """
    start = time.perf_counter()
    if batch_rows is not None and batch_rows < 1:
        raise InputError(f"batch_rows is {batch_rows}, but must be positive")
    scorer = Scorer(open_evaluators(model), outputs=outputs, keep=keep, columns=columns, on_error=on_error)
    target = os.fspath(output)
    is_folder = _is_folder(target)
    named = [inputs] if isinstance(inputs, (str, os.PathLike)) else inputs
    sources = find_sources(named, input_format, Path(target) if is_folder else None)
    kind = _output_format(target, output_format, is_folder)
    found = Scoring()
    folder = PartFolder(Path(target), kind, sources, scorer) if is_folder else None
    left = sources
    if folder is not None:
        left = [source for source in sources if not folder.is_done(source)]
        found.n_kept = len(sources) - len(left)
    else:
        _refuse_to_overwrite(sources, target)
    share = _Share(left, progress)
    results = _scored(left, scorer, batch_rows, n_threads(n_jobs), found)
    for first in results:  # of each file that is written
        path = target if folder is None else folder.path(left[first.source])
        _write(path, kind, _of_one_file(first, results, by_source=folder is not None), found, share)
        found.written.append(path)
    found.seconds = time.perf_counter() - start
    return found


_output_format = output_format


def _is_folder(output: str) -> bool:
    """Whether an output is a folder, or would be one: what its name says, unless something is there."""
    if output == STANDARD or (os.path.exists(output) and not os.path.isdir(output)):
        return False
    return os.path.isdir(output) or output.endswith(os.sep) or not Path(output).suffix


def _refuse_to_overwrite(sources: Sequence[Source], target: str) -> None:
    for source in sources:
        if source.path is not None and os.path.exists(target) and os.path.samefile(source.path, target):
            raise InputError(f"{target} is an input, which would be lost")


@dataclass(frozen=True)
class _Result:
    """Answers on their way to a file."""

    source: int
    schema: Any
    scored: Scored
    share: float | None
    is_end: bool
    seconds: float


def _scored(
    sources: Sequence[Source], scorer: Scorer, batch_rows: int | None, n_workers: int, found: Scoring
) -> Iterator[_Result]:
    """Answers for all blocks of all sources, in their order.

    One thread reads a block ahead, `n_workers` predict one each, and whoever iterates writes. So there are never more
    than `n_workers` + 3 blocks in memory.
    """
    blocks = _blocks(sources, scorer, batch_rows, found)
    pending: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(1) as reading, ThreadPoolExecutor(n_workers) as predicting:
        try:
            upcoming = reading.submit(next, blocks, None)
            while True:
                try:
                    block = upcoming.result()
                except Exception:
                    while pending:  # what was read before is written first
                        yield pending.popleft().result()
                    raise
                if block is None:
                    break
                upcoming = reading.submit(next, blocks, None)
                pending.append(predicting.submit(_score, *block))
                if len(pending) > n_workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            upcoming.cancel()
            for future in pending:
                future.cancel()


def _score(source: int, bound: BoundScorer, block: Block) -> _Result:
    start = time.perf_counter()
    scored = bound.score(block)
    return _Result(source, bound.schema, scored, block.share, block.is_end, time.perf_counter() - start)


def _blocks(
    sources: Sequence[Source], scorer: Scorer, batch_rows: int | None, found: Scoring
) -> Iterator[tuple[int, BoundScorer, Block]]:
    for k, source in enumerate(sources):
        start = time.perf_counter()
        bound, blocks = open_source(source, scorer, batch_rows)
        for block in blocks:
            found.seconds_reading += time.perf_counter() - start
            yield k, bound, block
            start = time.perf_counter()
        yield k, bound, bound.end()


def _of_one_file(first: _Result, results: Iterator[_Result], *, by_source: bool) -> Iterator[_Result]:
    """The first result and those that go into the same file: up to the end of its source, or all."""
    for result in chain([first], results):
        yield result
        if by_source and result.is_end:
            return


def _write(path: str, kind: str, results: Iterator[_Result], found: Scoring, share: _Share) -> None:
    first = next(results)
    with open_output(path, first.schema, kind) as write:
        for result in chain([first], results):
            batch = _of_schema(result.scored.batch, first.schema, share.names[result.source])
            start = time.perf_counter()
            if batch.num_rows:
                write(batch)
            found.seconds_writing += time.perf_counter() - start
            found.seconds_predicting += result.seconds
            found.n_rows += result.scored.n_rows
            found.n_bad += result.scored.n_bad
            found.bad_rows += result.scored.reasons[: _MAX_REASONS - len(found.bad_rows)]
            share.tell(found.n_rows, result)


def _of_schema(batch: Any, schema: Any, name: str) -> Any:
    """A batch of another file with the columns of the first one."""
    if batch.schema == schema:
        return batch
    try:
        return pa.RecordBatch.from_arrays(
            [column.cast(kept.type) for column, kept in zip(batch.columns, schema, strict=True)], schema=schema
        )
    except pa.ArrowException as error:
        raise InputError(f"{name}: what is kept has other types than in the first file: {error}") from None


class _Share:
    """How much of all sources has been scored, by their bytes."""

    def __init__(self, sources: Sequence[Source], progress: Progress | None) -> None:
        self.names = [source.name for source in sources]
        self._progress = progress
        sizes = [None if source.path is None else source.path.stat().st_size for source in sources]
        self._starts: list[float] | None = None
        if None not in sizes and sum(filter(None, sizes)) > 0:
            total, done = sum(filter(None, sizes)), 0
            self._starts = []
            for size in [*sizes, 0]:
                self._starts.append(done / total)
                done += size or 0

    def tell(self, n_rows: int, result: _Result) -> None:
        """Report that a result is written."""
        if self._progress is None:
            return
        if self._starts is None or result.share is None:
            self._progress(n_rows, None)
            return
        start, end = self._starts[result.source : result.source + 2]
        self._progress(n_rows, start + (end - start) * result.share)
