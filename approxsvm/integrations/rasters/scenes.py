"""Concurrent reading, prediction and writing of rasters in constant memory."""

import os
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.frames.columns import warn
from approxsvm.integrations.rasters.layout import Layout
from approxsvm.integrations.rasters.pixels import PixelModel
from approxsvm.integrations.rasters.stack import Stack, rasterio
from approxsvm.integrations.rasters.windows import Tiling, Window
from approxsvm.integrations.rasters.writing import check_name, open_raster
from approxsvm.integrations.scoring.folders import PartFolder, checksum, is_folder, model_files
from approxsvm.integrations.scoring.overlap import overlapped
from approxsvm.integrations.scoring.result import Progress, Scoring
from approxsvm.integrations.scoring.sources import find_rasters
from approxsvm.runtime.evaluator import BoolArray, artifact_of
from approxsvm.system.output_files import refuse_shared_files
from approxsvm.system.threads import n_threads

# Limits on GDAL's block cache for all files. The cache should hold all blocks of one window, because blocks missing
# from it are decoded again.
_LEAST_CACHE_BYTES = 32 << 20
_MOST_CACHE_BYTES = 128 << 20
_WORK_BYTES = 48 << 20  # memory for the pixels and predictions in all threads
_FEWEST_PIXELS = 1 << 10  # a chunk may have this many pixels even if memory is short
_MOST_PIXELS = 1 << 17


def run(
    scoring: Scoring,
    model: Any,
    inputs: Sequence[str | os.PathLike[str]],
    output: str,
    *,
    outputs: str | Sequence[str] | None,
    reading: Mapping[str, Any],
    probability_scale: int | None,
    overviews: bool,
    n_jobs: int | None,
    progress: Progress | None,
) -> None:
    """Implement `score_raster`; add the counts and times of the run to `scoring`."""
    start, n_workers = time.perf_counter(), n_threads(n_jobs)
    pixels = PixelModel(artifact_of(model), outputs)
    layout = Layout.of(pixels.artifact, pixels.outputs, probability_scale)
    in_folder = is_folder(output)
    sources = find_rasters(inputs, Path(output) if in_folder else None)
    read = [*model_files(model), *((f"input {one.name}", one.path) for one in sources if one.path is not None)]
    if in_folder:
        folder = PartFolder(Path(output), "tif", ".tif", sources)
        refuse_shared_files(read, folder.written())
        remaining = folder.claim(_fingerprint(pixels, reading, probability_scale, overviews))
        scoring.n_kept = len(sources) - len(remaining)
        scenes = {folder.path(source): [source.name] for source in remaining}
    else:
        check_name(output)
        refuse_shared_files(read, [(f"output {output}", output)])
        scenes = {output: [source.name for source in sources]}
    work = _Work(pixels, layout, reading, n_workers, overviews, tell=cache(warn))
    for k, (path, stacked) in enumerate(scenes.items()):
        _score_scene(stacked, path, work, scoring, _part_of(progress, k, len(scenes)))
        scoring.written.append(path)
    scoring.seconds = time.perf_counter() - start


def _fingerprint(pixels: PixelModel, reading: Mapping[str, Any], scale: int | None, overviews: bool) -> dict[str, Any]:
    options = {**reading, "outputs": pixels.outputs, "probability_scale": scale, "overviews": overviews}
    return {"models": {"model": checksum(pixels.artifact.data)}, **options}


def _part_of(progress: Progress | None, k: int, n: int) -> Progress | None:
    """Return a function that converts the progress within scene k to the overall progress across n scenes."""
    return None if progress is None else lambda pixels, share: progress(pixels, (k + (share or 0.0)) / n)


@dataclass(frozen=True)
class _Work:
    """Settings shared by all scenes of a run."""

    pixels: PixelModel
    layout: Layout
    reading: Mapping[str, Any]
    n_workers: int
    overviews: bool
    tell: Any

    def pieces(self, stack: Stack, tiling: Tiling, scoring: Scoring) -> Generator["_Piece", None, None]:
        """Read the windows; yield chunks of full rows, enough to occupy all threads."""
        n_bands = len(stack.bands)
        bytes_per_pixel = n_bands * (stack.dtype.itemsize + 8) + 16 * len(self.layout.names)
        most = _WORK_BYTES // (self.n_workers + 3) // bytes_per_pixel
        most = min(max(most, _FEWEST_PIXELS), _MOST_PIXELS)
        for window in tiling.windows():
            start = time.perf_counter()
            block, has_data = stack.read(window)
            scoring.seconds_reading += time.perf_counter() - start
            share = -(-window.height * window.width // self.n_workers)  # pixels per thread
            step = max(1, min(share, most) // window.width)
            for row in range(0, window.height, step):
                rows = slice(row, min(row + step, window.height))
                yield _Piece(window, rows, block[:, rows], None if has_data is None else has_data[rows])


@dataclass(frozen=True)
class _Piece:
    """Consecutive rows of a window."""

    window: Window
    rows: slice
    block: npt.NDArray[Any]
    has_data: BoolArray | None


@dataclass(frozen=True)
class _Result:
    """Predictions for a chunk that have not been written yet."""

    piece: _Piece
    bands: npt.NDArray[Any]
    n_answered: int
    reasons: Mapping[int, str]
    seconds: float


def _answer(work: _Work, piece: _Piece) -> _Result:
    start = time.perf_counter()
    n_bands, height, width = piece.block.shape
    rows = piece.block.reshape(n_bands, height * width).T  # a view, because full rows of a window are contiguous
    has_data = None if piece.has_data is None else piece.has_data.ravel()
    answered = work.pixels.answer(rows, has_data)
    bands = work.layout.encoded(answered, height * width).reshape(-1, height, width)
    n_answered = height * width if answered.pixels is None else len(answered.pixels)
    return _Result(piece, bands, n_answered, answered.reasons, time.perf_counter() - start)


def _score_scene(names: Sequence[str], path: str, work: _Work, scoring: Scoring, progress: Progress | None) -> None:
    with ExitStack() as opened:
        stack = Stack(names, work.pixels.columns, opened, tell=work.tell, **work.reading)
        bytes_per_pixel = (
            len(stack.bands) * stack.dtype.itemsize + 1 + len(work.layout.names) * work.layout.dtype.itemsize
        )
        tiling = Tiling.of((stack.height, stack.width), [band.block for band in stack.bands], bytes_per_pixel)
        results = overlapped(work.pieces(stack, tiling, scoring), partial(_answer, work), work.n_workers)
        # The output is opened first, and closed after the threads have ended.
        with (
            rasterio.Env(GDAL_CACHEMAX=_cache_bytes(stack, tiling)),  # rasterio takes an int as a number of bytes
            open_raster(path, stack.grid, stack.ground_points, work.layout, tiling, overviews=work.overviews) as write,
            closing(results),
        ):
            n_written = 0
            for result in results:
                window, rows = result.piece.window, result.piece.rows
                if rows.start == 0:
                    whole = np.empty((len(result.bands), window.height, window.width), result.bands.dtype)
                whole[:, rows] = result.bands
                if rows.stop == window.height:  # GDAL writes partial blocks twenty times as slowly
                    start = time.perf_counter()
                    write(whole, window)
                    scoring.seconds_writing += time.perf_counter() - start
                _count(scoring, stack.name, result)
                n_written += result.bands[0].size
                if progress is not None:
                    progress(scoring.n_rows, n_written / (stack.height * stack.width))


def _cache_bytes(stack: Stack, tiling: Tiling) -> int:
    """Return the size of GDAL's cache for one scene."""
    needed = _LEAST_CACHE_BYTES // 2  # the output's part of the cache
    for band in stack.bands:
        height, width = (min(block, size) for block, size in zip(band.block, tiling.size, strict=True))
        needed += height * width * -(-tiling.width // width) * band.dtype.itemsize
    return min(max(needed, _LEAST_CACHE_BYTES), _MOST_CACHE_BYTES)


def _count(scoring: Scoring, name: str, result: _Result) -> None:
    """Add the counts and times of a result to `scoring`."""
    window, n_pixels = result.piece.window, result.bands[0].size
    scoring.n_rows += n_pixels
    scoring.n_bad += n_pixels - result.n_answered
    scoring.seconds_predicting += result.seconds
    for pixel in sorted(result.reasons)[: scoring.n_reasons_left]:
        row, column = divmod(pixel, window.width)
        place = f"{name}, row {window.row + result.piece.rows.start + row}, column {window.column + column}"
        scoring.bad_rows.append(f"{place}: {result.reasons[pixel]}")
