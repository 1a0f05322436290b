"""Writer of predictions to GeoTIFF files with names, colors and categories; files are renamed when complete."""

import errno
import html
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from approxsvm.errors import InputError
from approxsvm.integrations.rasters.layout import Layout
from approxsvm.integrations.rasters.stack import gdal_failure, open_quietly
from approxsvm.integrations.rasters.windows import Tiling, Window
from approxsvm.system.output_files import remove_unfinished, whole_file, write_whole
from approxsvm.system.packages import import_package

rasterio = import_package("rasterio", "raster", "writing rasters")

Write = Callable[[Any, Window], None]
_SMALLEST_OVERVIEW = 256  # overviews are added until the longer side has at most this many pixels
_SUFFIXES = (".tif", ".tiff")


def check_name(output: str) -> None:
    """Raise InputError if an output name is not the name of a GeoTIFF file."""
    if not output.lower().endswith(_SUFFIXES) or (os.path.exists(output) and not os.path.isfile(output)):
        raise InputError(f"{output}: the output of a raster must be a file whose name ends in .tif, or a folder")


@contextmanager
def open_raster(
    path: str, grid: Mapping[str, Any], ground_points: Any, layout: Layout, tiling: Tiling, *, overviews: bool
) -> Iterator[Write]:
    """Yield a function that writes a window's bands; the file appears, complete, if the `with` block succeeds.

    Raises OSError if the disk is full, which GDAL itself does not always report.
    """
    remove_unfinished(path)
    with whole_file(path) as file:
        name = file.name  # GDAL writes to the locked file
        with _naming(path), open_quietly(name, "w", **_profile(grid, layout, tiling)) as dataset:
            if ground_points[0] and dataset.transform.is_identity:
                dataset.gcps = ground_points
            _describe(dataset, layout)
            yield lambda bands, window: _write(path, dataset, bands, window)
        with _naming(path):
            if overviews:
                _add_overviews(name, layout)
            _check_complete(name)
        _write_categories(path, layout)


def _write(path: str, dataset: Any, bands: Any, window: Window) -> None:
    with _naming(path):
        dataset.write(bands, window=rasterio.windows.Window(window.column, window.row, window.width, window.height))


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Convert GDAL errors to an OSError that names the output."""
    try:
        yield
    except rasterio.errors.RasterioError as error:
        raise OSError(errno.EIO, f"cannot be written, is the disk full? ({gdal_failure(error)})", path) from error


def _profile(grid: Mapping[str, Any], layout: Layout, tiling: Tiling) -> dict[str, Any]:
    tile = tiling.tile
    blocks = {"blockysize": tiling.height, "tiled": False}
    if tile is not None:
        blocks = {"blockysize": tile[0], "blockxsize": tile[1], "tiled": True}
    return {
        **grid,
        **blocks,
        "driver": "GTiff",
        "count": len(layout.names),
        "dtype": layout.dtype.name,
        "nodata": layout.nodata,
        "compress": "deflate",
        "zlevel": 1,
        "predictor": 1 if layout.dtype.kind in "iu" else 3,
        "interleave": "band",
        "bigtiff": "if_safer",
        "num_threads": "all_cpus",
    }


def _describe(dataset: Any, layout: Layout) -> None:
    for number, name in enumerate(layout.names, 1):
        dataset.set_band_description(number, name)
    if layout.labels is not None and layout.labels.names:
        number = layout.names.index(next(name for name in layout.names if name.startswith("label"))) + 1
        dataset.update_tags(number, **{f"CLASS_{code}": name for code, name in enumerate(layout.labels.names)})
    colors = layout.colors()
    if colors:
        dataset.write_colormap(1, colors)


def _add_overviews(name: str, layout: Layout) -> None:
    resampling = rasterio.enums.Resampling
    with open_quietly(name, "r+") as dataset:
        longest, factors = max(dataset.shape), [2]
        while longest / factors[-1] > _SMALLEST_OVERVIEW:
            factors.append(2 * factors[-1])
        dataset.build_overviews(factors, resampling.nearest if layout.dtype.kind in "iu" else resampling.average)


def _check_complete(name: str) -> None:
    """Raise RasterioIOError if a block is missing: closing a file does not report that the disk was full."""
    n_bytes = os.path.getsize(name)
    with open_quietly(name) as dataset:
        for band in dataset.indexes:
            (height, width), (rows, columns) = dataset.block_shapes[band - 1], dataset.shape
            for y, x in np.ndindex(-(-rows // height), -(-columns // width)):
                offset, size = (
                    int(dataset.get_tag_item(f"BLOCK_{word}_{x}_{y}", "TIFF", bidx=band) or 0)
                    for word in ("OFFSET", "SIZE")
                )
                if not offset or offset + size > n_bytes:
                    raise rasterio.errors.RasterioIOError(f"block {x}, {y} of band {band} is missing")


def _write_categories(path: str, layout: Layout) -> None:
    """Write the class names to the sidecar file read by GDAL; remove the sidecar files of an earlier output."""
    for suffix in (".aux.xml", ".ovr", ".msk"):
        Path(path + suffix).unlink(missing_ok=True)
    if layout.labels is None or not layout.labels.names:
        return
    categories = "".join(f"<Category>{html.escape(name)}</Category>" for name in layout.labels.names)
    bands = "".join(
        f'<PAMRasterBand band="{number}"><CategoryNames>{categories}</CategoryNames></PAMRasterBand>'
        for number, name in enumerate(layout.names, 1)
        if name.startswith("label")
    )
    write_whole(f"<PAMDataset>{bands}</PAMDataset>\n".encode(), f"{path}.aux.xml")
