"""The function predict_image(), which predicts the pixels of an array in chunks, without copying it."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import InputError
from approxsvm.frames.columns import choose_columns
from approxsvm.integrations.rasters.layout import Layout, spare_number
from approxsvm.integrations.rasters.pixels import Answered, PixelModel, differs, in_bands, nodata_number
from approxsvm.integrations.scoring.overlap import overlapped
from approxsvm.runtime.answer_names import answer_names
from approxsvm.runtime.evaluator import artifact_of, labels_of
from approxsvm.system.options import whole_number
from approxsvm.system.threads import n_threads

_PIECE_BYTES = 4 << 20  # memory per thread for pixels and predictions
_FEWEST_PIXELS = 1 << 10
_MOST_PIXELS = 1 << 16
_ANSWERS = "approxsvm_answers"  # temporary dimension name
_OF_PLACE = ("grid_mapping", "crs", "transform", "AREA_OR_POINT")  # attributes copied from the image
Index = tuple[Any, ...]


def predict_image(
    model: Any,
    image: Any,
    axis: int | str = 0,
    nodata: float | None = None,
    outputs: str | Sequence[str] | None = None,
    *,
    n_jobs: int | None = -1,
) -> Any:
    """Predict every pixel of an array in which some pixels may have no data.

    Predictions equal the results of `predict` and the related methods with the pixels as rows. The array is read in
    chunks and not copied, so it may be a memory map that is larger than memory.

    Parameters
    ----------
    model : path, bytes, Artifact, Predictor or compiled estimator
    image : array of any shape, one axis of which is the axis of the bands
        A NumPy array or memory map; a masked array, where a pixel has no data if it is masked in any band that the
        model uses; or an xarray.DataArray, with lazy results if it contains a Dask array.
    axis : int or str
        The band axis: 0 for (bands, y, x), -1 for (y, x, bands), or the name of a DataArray dimension. If this
        dimension's coordinates are strings, or rioxarray has read band descriptions, these names are matched to the
        column names with which the model was fitted.
    nodata : float, optional
        No-data value of the image. Default for a DataArray: the attribute ``_FillValue`` or ``nodata``. NaN always
        means no data, except in bands for which the model accepts NaN.
    outputs : str or sequence of str, optional
        "label", "value", "probability", "error_bound", "certified". Default: "label", or "value" for a regressor.
    n_jobs : int, optional
        Number of threads. Default: all processors. Dask arrays use Dask's threads.

    Returns
    -------
    numpy.ma.MaskedArray, or xarray.DataArray if `image` is one; a dict by output if `outputs` is a sequence
        The shape is the image's shape without the band axis. An output with several columns has a column axis in place
        of the band axis. A pixel without data, or with a value that the model rejects, is masked. In a DataArray,
        masked pixels have the value of the attribute ``_FillValue``, labels are stored as integers, and the attributes
        ``flag_values`` and ``flag_meanings`` give the names of labels that are not integers.

    Raises
    ------
    InputError
        The number of bands differs from the model's, pixels are not real numbers, or an output does not exist.

    Examples
    --------
    >>> import approxsvm, numpy as np
    >>> image = np.full((30, 2, 3), 0.5)
    >>> image[7, 0, 1] = np.nan
    >>> approxsvm.predict_image("models/breast_cancer.asvm", image).tolist()
    [[-1, None, -1], [-1, -1, -1]]
    """
    pixels, nodata = PixelModel(artifact_of(model), outputs), nodata_number(nodata)
    if hasattr(image, "dims") and hasattr(image, "coords"):
        answers = _of_data_array(pixels, image, axis, nodata)
    elif isinstance(axis, str):
        raise InputError(f"axis is {axis!r}, but a {type(image).__name__} has no names of dimensions")
    else:
        image = image if isinstance(image, np.ndarray) else _as_array(image)
        answers = _of_array(pixels, np.moveaxis(image, _position(axis, image.shape), 0), nodata, n_threads(n_jobs))
        answers = {name: np.moveaxis(one, 0, axis) if one.ndim == image.ndim else one for name, one in answers.items()}
    return answers[pixels.outputs[0]] if outputs is None or isinstance(outputs, str) else answers


def _as_array(image: Any) -> npt.NDArray[Any]:
    if hasattr(image, "dask"):
        raise InputError("image is a Dask array: give its dimensions names, xarray.DataArray(image, dims=...)")
    array = np.asarray(image)
    if array.dtype.kind not in "fiub" and array.ndim == 0:
        raise InputError(f"image is a {type(image).__name__}, but must be an array; score_raster reads files")
    return array


def _position(axis: int, shape: tuple[int, ...]) -> int:
    place: int = whole_number(axis, "axis", -32)
    if not -len(shape) <= place < len(shape):
        raise InputError(f"axis is {axis}, but the image has shape {tuple(shape)}")
    return place


def _of_array(pixels: PixelModel, image: Any, nodata: float | None, n_workers: int) -> dict[str, Any]:
    """Predict the pixels of an array whose first axis is the band axis."""
    _check(pixels, image.shape, image.dtype)
    artifact, shape = pixels.artifact, image.shape[1:]
    labels = labels_of(artifact)
    kinds = {"label": labels.dtype, "certified": np.dtype(np.bool_)}
    whole = {
        output: np.zeros((len(answer_names(artifact, output)), *shape), kinds.get(output, np.dtype(np.float64)))
        for output in pixels.outputs
    }
    gaps = np.zeros(shape, np.bool_)
    work = partial(_answer, pixels, image, nodata)
    for index, answered in overlapped(_indices(pixels, image), work, n_workers):
        has_none = gaps[index]
        if answered.pixels is not None:
            flat = np.ones(has_none.size, np.bool_)
            flat[answered.pixels] = False
            has_none[...] = flat.reshape(has_none.shape)
        for output, answer in answered.answers.items():
            answer = labels[answer] if output == "label" else answer
            whole[output][(slice(None), *index)][:, ~has_none] = answer.T
    masked = {}
    for output, bands in whole.items():
        several = len(bands) > 1
        mask = np.broadcast_to(gaps, bands.shape).copy() if several else gaps.copy()
        fill = spare_number(bands.dtype, labels.tolist()) if output == "label" else None
        masked[output] = np.ma.MaskedArray(bands if several else bands[0], mask, fill_value=fill)
    return masked


def _check(pixels: PixelModel, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if shape[0] != pixels.columns.n_columns:
        raise InputError(
            f"the image has {shape[0]} bands along the axis, but the model has {pixels.columns.n_columns} features; "
            "axis names the axis of the bands"
        )
    if dtype.kind not in "fiub":
        raise InputError(f"the pixels are {dtype}, but must be real numbers")


def _indices(pixels: PixelModel, image: Any) -> Generator[Index, None, None]:
    """Yield the chunks of an array as indices for all axes except the band axis."""
    n_answers = sum(len(answer_names(pixels.artifact, output)) for output in pixels.outputs)
    bytes_per_pixel = len(image) * (image.dtype.itemsize + 8) + 8 * n_answers
    yield from _divided(image.shape[1:], min(max(_PIECE_BYTES // bytes_per_pixel, _FEWEST_PIXELS), _MOST_PIXELS))


def _divided(shape: tuple[int, ...], most: int) -> Iterator[Index]:
    """Divide an array into chunks of at most `most` consecutive elements."""
    if not shape:
        yield (...,)
        return
    inner = math.prod(shape[1:])
    if inner > most:
        for k in range(shape[0]):
            for rest in _divided(shape[1:], most):
                yield slice(k, k + 1), *rest
        return
    step = max(1, most // max(inner, 1))
    for first in range(0, shape[0], step):
        yield (slice(first, min(first + step, shape[0])),)


def _answer(pixels: PixelModel, image: Any, nodata: float | None, index: Index) -> tuple[Index, Answered]:
    part = image[(slice(None), *index)]
    mask = np.ma.getmask(part)
    rows = np.ma.getdata(part).reshape(len(part), -1).T  # a view if the chunk is contiguous
    used = pixels.columns.used
    has_data = None
    if mask is not np.ma.nomask:
        has_data = ~mask.reshape(len(part), -1)[used].any(axis=0)
    if nodata is not None:
        has_data = np.ones(len(rows), np.bool_) if has_data is None else has_data
        for band in used.tolist():
            has_data &= differs(rows[:, band], nodata, rows.dtype)
    if has_data is not None and has_data.all():
        has_data = None
    return index, pixels.answer(rows, has_data)


def _of_data_array(pixels: PixelModel, image: Any, axis: int | str, nodata: float | None) -> dict[str, Any]:
    """Predict the pixels of an xarray.DataArray, lazily if it contains a Dask array."""
    import xarray

    if not isinstance(image, xarray.DataArray):
        raise InputError(f"expected a DataArray, got {type(image).__name__}: dataset.to_dataarray('band')")
    if isinstance(axis, str) and axis not in image.dims:
        raise InputError(f"there is no dimension {axis!r}, only {', '.join(map(str, image.dims))}")
    dim = axis if isinstance(axis, str) else image.dims[_position(axis, image.shape)]
    place = image.dims.index(dim)
    names = None if pixels.columns.names is None else _band_names(image, dim)
    if names is not None:
        try:
            chosen = choose_columns(names, pixels.columns)
        except InputError as error:
            raise InputError(in_bands(str(error))) from None
        image = image.isel({dim: [0 if name is None else names.index(name) for name in chosen]})
    _check(pixels, (image.sizes[dim],), image.dtype)
    if nodata is None:
        nodata = nodata_number(image.attrs.get("_FillValue", image.attrs.get("nodata")))
    if image.chunks is not None:
        image = image.chunk({dim: -1})
    known = image.encoding | image.attrs  # readers store the grid mapping in either of these
    shared = {name: known[name] for name in _OF_PLACE if name in known}
    answers = {}
    for output in pixels.outputs:
        one = PixelModel(pixels.artifact, (output,))
        layout = Layout.of(pixels.artifact, (output,))
        several = len(layout.names) > 1
        answer = xarray.apply_ufunc(
            partial(_encoded, one, layout, nodata),
            image,
            input_core_dims=[[dim]],
            output_core_dims=[[_ANSWERS]] if several else [[]],
            exclude_dims={dim},
            keep_attrs=True,  # otherwise xarray 2024 would drop attributes of coordinates, even in the image
            dask="parallelized",
            output_dtypes=[layout.dtype],
            dask_gufunc_kwargs={"output_sizes": {_ANSWERS: len(layout.names)}} if several else {},
        )
        if several:
            dims = [str(name) for name in answer.dims if name != _ANSWERS]
            answer = answer.transpose(*dims[:place], _ANSWERS, *dims[place:]).rename({_ANSWERS: dim})
            answer = answer.assign_coords({dim: list(layout.names)})
        answers[output] = answer.rename(output)
        answers[output].attrs = shared | _attributes(layout)  # without the scales and names of the bands
    return answers


def _band_names(image: Any, dim: str) -> list[str] | None:
    """Return the band names: the coordinates if they are strings, or descriptions if they are numbers from 1."""
    if dim not in image.coords:
        return None
    bands, descriptions = image[dim].values.tolist(), image.attrs.get("long_name")
    if image[dim].dtype.kind in "UOT":
        return [str(band) for band in bands]
    if not isinstance(descriptions, list | tuple) or not all(band in range(1, len(descriptions) + 1) for band in bands):
        return None  # equal lengths are not sufficient: reordering bands does not change the attribute
    names = [descriptions[int(band) - 1] for band in bands]
    return names if all(isinstance(name, str) for name in names) else None


def _encoded(pixels: PixelModel, layout: Layout, nodata: float | None, block: Any) -> npt.NDArray[Any]:
    """Return the output bands for a block whose last axis is the image's band axis."""
    image = np.moveaxis(block, -1, 0)
    bands = np.empty((len(layout.names), *image.shape[1:]), layout.dtype)
    for index in _indices(pixels, image):
        part = bands[(slice(None), *index)]
        n_pixels = math.prod(part.shape[1:])
        part[...] = layout.encoded(_answer(pixels, image, nodata, index)[1], n_pixels).reshape(part.shape)
    return np.moveaxis(bands, 0, -1) if len(layout.names) > 1 else bands[0]


def _attributes(layout: Layout) -> dict[str, Any]:
    """Return a result's attributes, which follow the CF conventions."""
    attributes: dict[str, Any] = {"_FillValue": layout.dtype.type(layout.nodata)}
    if layout.labels is not None and layout.labels.names:
        names = layout.labels.names
        attributes["flag_values"] = np.arange(len(names)).astype(layout.dtype)
        attributes["flag_meanings"] = " ".join(name.replace(" ", "_") for name in names)
    return attributes
