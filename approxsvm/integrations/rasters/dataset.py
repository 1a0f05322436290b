"""score_raster(): the pixels of raster files, predicted in windows while others are read and written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from approxsvm.integrations.scoring.result import Progress, Scoring


def score_raster(
    model: Any,
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    outputs: str | Sequence[str] | None = None,
    bands: int | str | Sequence[int | str] | None = None,
    nodata: float | None = None,
    scaled: bool = False,
    probability_scale: int | None = None,
    overviews: bool = False,
    n_jobs: int | None = -1,
    progress: Progress | None = None,
) -> Scoring:
    """Predict every pixel of raster files of any size.

    While a window is read, earlier ones are predicted and written. Answers equal what `predict` and the related
    methods return for the pixels as rows, with one column for each band.

    Parameters
    ----------
    model : path, bytes, Artifact, Predictor or compiled estimator
    inputs : path or sequence of paths
        Files that GDAL reads: GeoTIFF, JPEG 2000, VRT, ENVI and others; folders of them, patterns, and GDAL's own
        names. Several files must have the same grid; their bands are stacked, in order. If the output is a folder, each
        file is a separate scene instead.
    output : path
        A .tif file, with the grid of the input, tiled and compressed. A name without a suffix is a folder, which gets
        one file for each input file; after a run that was killed, the same call continues with the first missing file.
    outputs : str or sequence of str, optional
        "label", "value", "probability", "error_bound", "certified".
        Default: "label", or "value" for a regression. Each becomes one or several bands. All bands of a file have one
        number type, the smallest that holds all outputs.
    bands : sequence of int or str, optional
        The bands, in the model's order: numbers from 1, counted over all files, or descriptions. Default: the names
        that the model was fitted with, else all bands but alpha, by position.
    nodata : float, optional
        A number that means no data, besides the number, mask or alpha band that a file declares.
    scaled : bool
        Whether to multiply the bands by the scale, and add the offset, that the files declare.
    probability_scale : int, optional
        Write probabilities times this number as integers of 16 bits. Default: as float32.
    overviews : bool
        Whether to add overviews, smaller copies that viewers show first.
    n_jobs : int, optional
        Number of threads that predict. Default: all processors.
    progress : callable, optional
        Called with the number of pixels written, and the fraction of all pixels that they are.

    Returns
    -------
    Scoring
        Its rows are pixels. Those without an answer hold the output's number for no data: 255 for labels from 0 to
        254, NaN for floating-point numbers.

    Raises
    ------
    InputError
        A band is missing, an output does not exist, or two files have different grids; the message names both. Also if
        the output is the same file as an input or the model.
    DataFormatError
        A file is not a raster, or is damaged.
    OSError
        A file cannot be read or written. Files under their final names are complete.
    MissingPackageError
        rasterio is not installed: ``pip install 'approxsvm[raster]'``.
    """
    from approxsvm.integrations.rasters.pixels import nodata_number
    from approxsvm.integrations.rasters.scenes import run  # imported here because it needs rasterio

    scoring = Scoring()
    run(
        scoring,
        model,
        [inputs] if isinstance(inputs, (str, os.PathLike)) else inputs,
        os.fspath(output),
        outputs=outputs,
        reading={
            "bands": [bands] if isinstance(bands, (int, str)) else bands,
            "nodata": nodata_number(nodata),
            "scaled": scaled,
        },
        probability_scale=probability_scale,
        overviews=overviews,
        n_jobs=n_jobs,
        progress=progress,
    )
    return scoring
