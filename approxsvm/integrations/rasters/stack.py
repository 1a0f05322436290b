"""Reader of input files with the same grid as one stack of bands, with a mask of the pixels that have data."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ApproxSVMWarning, DataFormatError, InputError
from approxsvm.frames.columns import Tell, choose_columns
from approxsvm.frames.raw_columns import RawColumns
from approxsvm.integrations.rasters.pixels import differs, in_bands
from approxsvm.integrations.rasters.windows import Window
from approxsvm.runtime.evaluator import BoolArray
from approxsvm.system.options import whole_number
from approxsvm.system.packages import import_package

rasterio = import_package("rasterio", "raster", "reading rasters")

_MAX_SHIFT = 1e-3  # maximum distance, in pixels, between the corners of grids that count as equal
_MESSAGE_CHARACTERS = 300


def gdal_failure(error: Exception) -> str:
    """Return GDAL's own message for an error from rasterio."""
    return " ".join(str(error.__cause__ or error).split())[:_MESSAGE_CHARACTERS]


@contextmanager
def naming(name: str, doing: str) -> Iterator[None]:
    """Convert GDAL errors to a DataFormatError that names a file."""
    try:
        yield
    except rasterio.errors.RasterioError as error:
        raise DataFormatError(f"{name}: {doing}: {gdal_failure(error)}") from error


def open_quietly(*arguments: Any, **options: Any) -> Any:
    """Open a file without a warning about a missing georeference; no other thread may open files at the same time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        return rasterio.open(*arguments, sharing=False, **options)


@dataclass(frozen=True)
class Band:
    """Band of an open file; `name` is its description, or its number among all bands."""

    file: Any
    number: int  # number of the band within the file, from 1
    name: str
    dtype: np.dtype[Any]
    nodata: int | float | None  # no-data value, if the file declares one
    factors: tuple[float, float]  # scale and offset declared by the file
    block: tuple[int, int]  # height and width of the file's blocks
    is_alpha: bool


class Stack:
    """The model's bands, in the order that it expects, from files on the same grid.

    `grid` contains the size and georeference shared by the files, as keyword arguments for rasterio. The files stay
    open until `opened` is closed, and only one thread at a time may read. `bands` lists numbers or names; by default,
    bands are chosen by name or position. `nodata` is a no-data value for every band. Raises InputError if the files
    have different grids or bands are missing.
    """

    def __init__(
        self,
        names: Sequence[str],
        model: RawColumns,
        opened: ExitStack,
        *,
        bands: Sequence[int | str] | None,
        nodata: float | None,
        scaled: bool,
        tell: Tell,
    ) -> None:
        self.name = " + ".join(names) if len(names) < 4 else f"{names[0]} + {len(names) - 1} files"
        self.files = []
        for name in names:
            with naming(name, "not a readable raster"):
                self.files.append(opened.enter_context(open_quietly(name)))
                if not self.files[-1].count:
                    raise DataFormatError(f"{name}: contains no bands{_parts(self.files[-1])}")
            _check_same_grid(self.files[0], self.files[-1])
        first = self.files[0]
        self.width, self.height = int(first.width), int(first.height)
        self.grid = {"width": self.width, "height": self.height, "crs": first.crs, "transform": first.transform}
        self.ground_points = first.gcps
        every = _bands(self.files)
        self.bands = _chosen(every, model, bands, self.name, tell)
        # A band that the model does not use is read like any other, but its values are ignored.
        self._use = model.used.tolist()
        used = [self.bands[k] for k in self._use]
        self._masks = _masks(used, every)
        self._given = nodata
        self._is_scaled = scaled
        self.dtype = np.result_type(np.float64 if scaled else np.bool_, *(band.dtype for band in self.bands))
        if self.dtype.kind not in "fiub":
            raise InputError(f"{self.name}: the bands are {self.dtype}, but must be real numbers")
        if not scaled and any(band.factors != (1.0, 0.0) for band in used):
            warnings.warn(
                f"{self.name}: the bands have a scale and an offset, which are not applied; pass scaled=True "
                "(--scaled) if the model was fitted with scaled numbers",
                ApproxSVMWarning,
                stacklevel=2,
            )

    def read(self, window: Window) -> tuple[npt.NDArray[Any], BoolArray | None]:
        """Return the chosen bands in a window, and a mask of the pixels with data, or None if all pixels have data.

        The shape of the bands is (n_bands, height, width). Raises DataFormatError if a file is damaged within the
        window.
        """
        block = np.empty((len(self.bands), window.height, window.width), self.dtype)
        has_data = np.ones((window.height, window.width), np.bool_)
        place = rasterio.windows.Window(window.column, window.row, window.width, window.height)
        damaged = f"rows {window.row} to {window.row + window.height - 1} cannot be read"
        first = 0
        for file, group in groupby(self.bands, key=lambda band: band.file):
            numbers = [band.number for band in group]
            with naming(file.name, damaged):
                file.read(numbers, window=place, out=block[first : first + len(numbers)])
            first += len(numbers)
        for file, number, is_alpha in self._masks:
            with naming(file.name, damaged):
                has_data &= (file.read if is_alpha else file.read_masks)(number, window=place) != 0
        for k in self._use:
            for nodata in (self.bands[k].nodata, self._given):
                if nodata is not None:
                    has_data &= differs(block[k], nodata, self.bands[k].dtype)
        if self._is_scaled:
            for band, pixels in zip(self.bands, block, strict=True):
                scale, offset = band.factors
                pixels *= scale
                pixels += offset
        return block, None if has_data.all() else has_data


def _bands(files: Sequence[Any]) -> list[Band]:
    """Return all bands; if a name occurs twice, prefix names with the file name and, if needed, the band number."""
    found = [(file, k) for file in files for k in range(file.count)]
    names = [file.descriptions[k] or str(n) for n, (file, k) in enumerate(found, 1)]
    if len(set(names)) < len(names):
        names = [f"{PurePath(file.name).stem} {name}" for name, (file, _) in zip(names, found, strict=True)]
    if len(set(names)) < len(names):
        names = [f"{n} {name}" for n, name in enumerate(names, 1)]
    alpha = rasterio.enums.ColorInterp.alpha
    return [
        Band(
            file,
            k + 1,
            name,
            np.dtype(file.dtypes[k]),
            file.nodatavals[k],
            (float(file.scales[k]), float(file.offsets[k])),
            file.block_shapes[k],
            file.colorinterp[k] == alpha,
        )
        for (file, k), name in zip(found, names, strict=True)
    ]


def _chosen(
    every: Sequence[Band], model: RawColumns, wanted: Sequence[int | str] | None, name: str, tell: Tell
) -> list[Band]:
    """Choose the model's bands by number, name or position; alpha bands are skipped unless chosen or needed."""
    by_name = {band.name: band for band in every}
    offered = [band for band in every if not band.is_alpha]
    sentences: list[str] = []
    try:
        if len(offered) < model.n_columns == len(every):
            offered = list(every)
            if wanted is None:
                sentences.append(
                    "an alpha band is taken for a feature, because the model has as many features as bands"
                )
        columns = None if wanted is None else [_name_of(band, every) for band in wanted]
        generated = all(band.name == str(n) for n, band in enumerate(every, 1))
        offered = offered if wanted is None else list(every)
        names = [band.name for band in offered]
        features = choose_columns(names, model, columns=columns, generated=generated, tell=sentences.append)
        if len(features) != model.n_columns:
            raise InputError(f"there is {len(features)} band, but the model has {model.n_columns} features")
    except InputError as error:
        raise InputError(f"{name}: {in_bands(str(error))}") from None
    for sentence in sentences:
        tell(f"{name}: {in_bands(sentence)}")
    unused = (other for other in names if other not in features)
    return [by_name[feature if feature is not None else next(unused, names[0])] for feature in features]


def _name_of(band: int | str, every: Sequence[Band]) -> str:
    """Return the name of a band; a string of digits is a band number unless a band has this name."""
    if isinstance(band, str):
        if not band.isdecimal() or any(band == one.name for one in every):
            return band
        band = int(band)
    return str(every[whole_number(band, "a band", 1, len(every)) - 1].name)


def _masks(used: Sequence[Band], every: Sequence[Band]) -> list[tuple[Any, int, bool]]:
    """Return the masks to read, as (file, band, is_alpha); bands with a declared no-data value need no mask."""
    flags = rasterio.enums.MaskFlags
    found = {(band.file, band.number, True): None for band in every if band.is_alpha and band not in used}
    files = {band.file for band in used}
    masks = [mask for mask in found if mask[0] in files]
    of_file = set()
    for band in used:
        kinds = set(band.file.mask_flag_enums[band.number - 1])
        if not kinds or (flags.per_dataset in kinds and flags.alpha not in kinds and band.file not in of_file):
            masks.append((band.file, band.number, False))
        of_file |= {band.file} if flags.per_dataset in kinds else set()
    return masks


def _parts(file: Any) -> str:
    """Return the end of a message, naming the rasters inside a file, such as the variables of a NetCDF file."""
    names = list(file.subdatasets)
    return f", but the rasters {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}" if names else ""


def _check_same_grid(first: Any, other: Any) -> None:
    """Raise InputError if two files differ in size, coordinate system or position."""
    both = f"{first.name} and {other.name} have different"
    if first.shape != other.shape:
        sizes = " and ".join(f"{file.width} x {file.height}" for file in (first, other))
        raise InputError(f"{both} sizes: {sizes} pixels; warp one to the grid of the other (gdalwarp)")
    if first.crs != other.crs:
        systems = " and ".join(str(file.crs) if file.crs else "none" for file in (first, other))
        raise InputError(f"{both} coordinate systems: {systems}; warp one to the grid of the other (gdalwarp)")
    corners = [(0, first.width, 0), (0, 0, first.height), (1, 1, 1)]
    own, others = (np.reshape(file.transform[:6], (2, 3)) for file in (first, other))
    pixel = np.hypot(*own[:, :2]).min()  # length of a pixel's shorter side
    if np.abs((own - others) @ corners).max() > _MAX_SHIFT * pixel:
        places = " and ".join(str(tuple(file.transform)[:6]) for file in (first, other))
        raise InputError(f"{both} grids: {places}; warp one to the grid of the other (gdalwarp)")
