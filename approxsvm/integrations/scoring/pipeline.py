"""Concurrent reading, prediction and writing of tables in constant memory."""

import os
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from approxsvm.errors import InputError
from approxsvm.frames.columns import warn
from approxsvm.integrations.arrow.batches import Block, BoundScorer, Scored, Scorer
from approxsvm.integrations.scoring import parts
from approxsvm.integrations.scoring.folders import PartFolder, is_folder, model_files
from approxsvm.integrations.scoring.overlap import overlapped
from approxsvm.integrations.scoring.readers import Reading, open_source
from approxsvm.integrations.scoring.result import Progress, Scoring
from approxsvm.integrations.scoring.sources import STANDARD, Source, find_sources
from approxsvm.runtime.evaluator import open_evaluators
from approxsvm.system.output_files import File, refuse_shared_files
from approxsvm.system.packages import import_package
from approxsvm.system.threads import n_threads

pa = import_package("pyarrow", "arrow", "scoring files")

_SHORT = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}  # smaller types for the same values


def run(
    scoring: Scoring,
    model: Any,
    inputs: Sequence[str | os.PathLike[str]],
    output: str,
    *,
    wanted: Mapping[str, Any],
    input_format: str | None,
    output_format: str | None,
    reading: tuple[int | None, str | None, bool | None],
    n_jobs: int | None,
    progress: Progress | None,
) -> None:
    """Implement `score_dataset`; add the counts and times of the run to `scoring`."""
    start, n_workers = time.perf_counter(), n_threads(n_jobs)
    scorer = Scorer(open_evaluators(model), **wanted)
    in_folder = is_folder(output)
    how = Reading(*reading, tell=cache(warn))  # the reading thread calls `tell` once for all files
    unnamed = "libsvm" if how.delimiter is None else "csv"
    sources = find_sources(inputs, input_format, Path(output) if in_folder else None, unnamed=unnamed)
    kind = parts.output_format(output, output_format, in_folder)
    folder = PartFolder(Path(output), kind, parts.SUFFIXES[kind], sources) if in_folder else None
    refuse_shared_files(_read(model, sources), _written(output) if folder is None else folder.written())
    remaining = sources
    if folder is not None:
        how_read = {"delimiter": how.delimiter or ",", "header": how.header}
        remaining = folder.claim({**parts.run_fingerprint(scorer), **how_read})
        scoring.n_kept = len(sources) - len(remaining)
    share = _Share(remaining, progress)
    with closing(overlapped(_blocks(remaining, scorer, how, scoring), _score, n_workers)) as results:
        for first in results:  # `first` is the first result for an output file
            path = output if folder is None else folder.path(remaining[first.source])
            _write(path, kind, _for_one_file(first, results, by_source=folder is not None), scoring, share)
            scoring.written.append(path)
    scoring.seconds = time.perf_counter() - start


def _read(model: Any, sources: Sequence[Source]) -> Iterator[tuple[str, File]]:
    yield from model_files(model)
    for source in sources:
        if source.path is not None:
            yield f"input {source.name}", source.path
        else:
            yield from _open_file(source.name, sys.stdin)


def _written(output: str) -> Iterator[tuple[str, File]]:
    return _open_file("standard output", sys.stdout) if output == STANDARD else iter([(f"output {output}", output)])


def _open_file(name: str, stream: Any) -> Iterator[tuple[str, File]]:
    """Yield the file descriptor of a stream if it has one."""
    with suppress(AttributeError, OSError, ValueError):
        yield name, stream.fileno()


@dataclass(frozen=True)
class _Result:
    """Predictions for a block that have not been written yet."""

    source: int
    schema: Any
    scored: Scored
    share: float | None
    is_end: bool
    seconds: float


def _score(item: tuple[int, BoundScorer, Block]) -> _Result:
    source, bound, block = item
    start = time.perf_counter()
    scored = bound.score(block)
    return _Result(source, bound.schema, scored, block.share, block.is_end, time.perf_counter() - start)


def _blocks(
    sources: Sequence[Source], scorer: Scorer, reading: Reading, scoring: Scoring
) -> Generator[tuple[int, BoundScorer, Block], None, None]:
    for k, source in enumerate(sources):
        start = time.perf_counter()
        bound, blocks = open_source(source, scorer, reading)
        for block in blocks:
            scoring.seconds_reading += time.perf_counter() - start
            yield k, bound, block
            start = time.perf_counter()
        yield k, bound, bound.end()


def _for_one_file(first: _Result, results: Iterator[_Result], *, by_source: bool) -> Iterator[_Result]:
    """Yield the results for the same output file as `first`: all of them, or those up to the source's end."""
    for result in chain([first], results):
        yield result
        if by_source and result.is_end:
            return


def _write(path: str, kind: str, results: Iterator[_Result], scoring: Scoring, share: "_Share") -> None:
    first = next(results)
    with parts.open_output(path, first.schema, kind) as write:
        for result in chain([first], results):
            batch = _with_schema(result.scored.batch, first.schema, share.names[result.source])
            start = time.perf_counter()
            if batch.num_rows:
                write(batch)
            scoring.seconds_writing += time.perf_counter() - start
            scoring.seconds_predicting += result.seconds
            scoring.n_rows += result.scored.n_rows
            scoring.n_bad += result.scored.n_bad
            scoring.bad_rows += result.scored.reasons[: scoring.n_reasons_left]
            share.tell(scoring.n_rows, result)


def _with_schema(batch: Any, schema: Any, name: str) -> Any:
    """Cast a batch from another file to the column types of the first file."""
    if batch.schema == schema:
        return batch
    try:
        _check_casts(batch.schema, schema)
        return pa.RecordBatch.from_arrays(
            [column.cast(kept.type) for column, kept in zip(batch.columns, schema, strict=True)], schema=schema
        )
    except pa.ArrowException as error:
        raise InputError(f"{name}: kept columns have other types than in the first file: {error}") from None


def _check_casts(given: Any, schema: Any) -> None:
    """Raise ArrowTypeError for casts that could change values: Arrow may round or truncate them silently."""
    for one, kept in zip(given, schema, strict=True):
        both = [pa.field("", _SHORT.get(column.type, column.type)) for column in (kept, one)]
        common = pa.unify_schemas([pa.schema([column]) for column in both], promote_options="permissive")
        if common.field(0) != both[0]:
            raise pa.ArrowTypeError(f"{one.name} is {one.type}, and {kept.type} cannot hold all of its values")


class _Share:
    """Fraction of all sources, in bytes, processed so far."""

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
        """Report progress after a result has been written."""
        if self._progress is None:
            return
        if self._starts is None or result.share is None:
            self._progress(n_rows, None)
            return
        start, end = self._starts[result.source : result.source + 2]
        self._progress(n_rows, start + (end - start) * result.share)
