"""The function score_raster(), which predicts one window of a raster while others are read and written."""

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

    Earlier windows are predicted and written while the next one is read. Predictions equal the results of `predict` and
    the related methods with the pixels as rows and one column per band.

    Parameters
    ----------
    model : path, bytes, Artifact, Predictor or compiled estimator
    inputs : path or sequence of paths
        Files that GDAL can read (GeoTIFF, JPEG 2000, VRT, ENVI and others), folders of such files, patterns, and names
        in GDAL's own syntax. Several files must have the same grid; their bands are stacked, in order. However, if the
        output is a folder, each file is a separate scene.
    output : path
        A .tif file, which has the input's grid and is tiled and compressed; or a folder, if the name has no extension.
        One file per input file is written to the folder. If a run was killed, the same call continues with the first
        missing file.
    outputs : str or sequence of str, optional
        "label", "value", "probability", "error_bound", "certified". Default: "label", or "value" for a regressor. Each
        output becomes one or several bands. All bands of a file have the same data type: the smallest one that can
        represent all outputs.
    bands : sequence of int or str, optional
        The bands, in the model's order: numbers from 1, counted over all files, or descriptions. Default: the column
        names with which the model was fitted, or else all bands except alpha bands, by position.
    nodata : float, optional
        No-data value, in addition to the no-data value, mask or alpha band declared by a file.
    scaled : bool
        True to multiply the bands by the scale declared in the files, and to add the declared offset.
    probability_scale : int, optional
        Factor by which probabilities are multiplied for storage as 16-bit integers. Default: probabilities are stored
        as float32.
    overviews : bool
        True to add overviews: smaller copies that viewers show first.
    n_jobs : int, optional
        Number of threads used for prediction. Default: all processors.
    progress : callable, optional
        Called with the number of pixels written so far and their fraction of all pixels.

    Returns
    -------
    Scoring
        Counts and times of the run; its rows are pixels. In the output, pixels without a prediction have the no-data
        value, which is 255 for labels from 0 to 254, and NaN for floating-point values.

    Raises
    ------
    InputError
        A band is missing, an output does not exist, two files have different grids (the message names both files), or
        the output is the same file as an input or the model.
    DataFormatError
        A file is damaged or is not a raster.
    OSError
        A file cannot be read or written. Any output file under its final name is complete.
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
