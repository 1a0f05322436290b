"""Input files of one grid, read as one stack of bands, with the pixels that have data."""

import re
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
from approxsvm.integrations.rasters.pixels import differs
from approxsvm.integrations.rasters.windows import Window
from approxsvm.runtime.evaluator import BoolArray
from approxsvm.system.packages import import_package

rasterio = import_package("rasterio", "raster", "reading rasters")

_MAX_SHIFT = 1e-3  # limit of the distance between corners of two equal grids, in pixels
_MESSAGE_CHARACTERS = 300


def gdal_failure(error: Exception) -> str:
    """Return the words of GDAL itself for an error of rasterio."""
    return " ".join(str(error.__cause__ or error).split())[:_MESSAGE_CHARACTERS]


@contextmanager
def naming(name: str, doing: str) -> Iterator[None]:
    """Turn errors of GDAL into a DataFormatError that names a file."""
    try:
        yield
    except rasterio.errors.RasterioError as error:
        raise DataFormatError(f"{name}: {doing}: {gdal_failure(error)}") from error


def open_quietly(*arguments: Any, **options: Any) -> Any:
    """Open a file, without a warning if it has no place on the ground; not while other threads open files."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        return rasterio.open(*arguments, sharing=False, **options)


@dataclass(frozen=True)
class Band:
    """One band of an open file; `name` is its description, or its number among all bands."""

    file: Any
    number: int  # from 1, in the file
    name: str

    @property
    def dtype(self) -> np.dtype[Any]:
        """Number type of its pixels."""
        return np.dtype(self.file.dtypes[self.number - 1])

    @property
    def nodata(self) -> float | None:
        """The number that means no data, if the file declares one."""
        number = self.file.nodatavals[self.number - 1]
        return None if number is None else float(number)

    @property
    def factors(self) -> tuple[float, float]:
        """Scale and offset that the file declares."""
        return float(self.file.scales[self.number - 1]), float(self.file.offsets[self.number - 1])


class Stack:
    """The bands of some files, in order; InputError if two files have different grids.

    `grid` are the size and place of all files, as keyword arguments of rasterio. The files are open until `opened` is
    closed, and only one thread at a time may read.
    """

    def __init__(self, names: Sequence[str], opened: ExitStack) -> None:
        self.name = " + ".join(names) if len(names) < 4 else f"{names[0]} + {len(names) - 1} files"
        self.files = []
        for name in names:
            with naming(name, "not a readable raster"):
                self.files.append(opened.enter_context(open_quietly(name)))
        first = self.files[0]
        for other in self.files[1:]:
            _check_same_grid(first, other)
        self.width, self.height = int(first.width), int(first.height)
        self.grid = {"width": self.width, "height": self.height, "crs": first.crs, "transform": first.transform}
        self.ground_points = first.gcps
        self._all = _bands(self.files)
        self.bands: list[Band] = []  # chosen ones, in the model's order
        self.dtype = np.dtype(np.float64)
        self._nodata: list[float | None] = []
        self._given: float | None = None
        self._is_scaled = False

    def choose(
        self,
        model: RawColumns,
        bands: Sequence[int | str] | None,
        *,
        nodata: float | None,
        scaled: bool,
        tell: Tell,
    ) -> None:
        """Choose the model's bands, by number, name or position; `nodata` means no data in all of them."""
        names = [band.name for band in self._all]
        columns = None if bands is None else [self._name_of(band) for band in bands]
        generated = all(name == str(k) for k, name in enumerate(names, 1))
        sentences: list[str] = []
        try:
            features = choose_columns(names, model, columns=columns, generated=generated, tell=sentences.append)
            if len(features) != model.n_columns:
                raise InputError(f"there is {len(features)} band, but the model has {model.n_columns} features")
        except InputError as error:
            raise InputError(f"{self.name}: {_in_bands(str(error))}") from None
        for sentence in sentences:
            tell(f"{self.name}: {_in_bands(sentence)}")
        # A band that the model does not use is read like any other one, but is not looked at.
        unused = (name for name in names if name not in features)
        chosen = [name if name is not None else next(unused, names[0]) for name in features]
        self.bands = [self._all[names.index(name)] for name in chosen]
        self.dtype = np.result_type(*(band.dtype for band in self.bands))
        if self.dtype.kind not in "fiub":
            raise InputError(f"{self.name}: the bands are {self.dtype}, but must be real numbers")
        self._used = [self.bands[k] for k in model.used.tolist()]
        self._use = model.used.tolist()
        self._given = nodata
        self._is_scaled = scaled
        if scaled:
            self.dtype = np.dtype(np.float64)
        elif any(band.factors != (1.0, 0.0) for band in self._used):
            warnings.warn(
                f"{self.name}: the bands have a scale and an offset, which are not applied; pass scaled=True if the "
                "model was fitted with scaled numbers",
                ApproxSVMWarning,
                stacklevel=4,
            )

    def _name_of(self, band: int | str) -> str:
        if isinstance(band, str):
            return band
        if not 1 <= int(band) <= len(self._all):
            raise InputError(f"{self.name}: there is no band {band}, only 1 to {len(self._all)}")
        return self._all[int(band) - 1].name

    def read(self, window: Window) -> tuple[npt.NDArray[Any], BoolArray | None]:
        """Return the chosen bands of a window, shape (n_bands, height, width), and which pixels have data, None if all.

        DataFormatError if a file is damaged there.
        """
        block = np.empty((len(self.bands), window.height, window.width), self.dtype)
        has_data = np.ones((window.height, window.width), np.bool_)
        place = rasterio.windows.Window(window.column, window.row, window.width, window.height)
        first = 0
        for file, group in groupby(self.bands, key=lambda band: band.file):
            bands = list(group)
            part = block[first : first + len(bands)]
            rows = f"rows {window.row} to {window.row + window.height - 1} cannot be read"
            with naming(file.name, rows):
                file.read([band.number for band in bands], window=place, out=part)
                for number in _masked([band for band in bands if band in self._used]):
                    has_data &= file.read_masks(number, window=place) != 0
            first += len(bands)
        for k in self._use:
            for number in (self.bands[k].nodata, self._given):
                if number is not None:
                    has_data &= differs(block[k], float(number), self.bands[k].dtype)
        if self._is_scaled:
            for band, pixels in zip(self.bands, block, strict=True):
                scale, offset = band.factors
                pixels *= scale
                pixels += offset
        return block, None if has_data.all() else has_data


def _bands(files: Sequence[Any]) -> list[Band]:
    """Return all bands but alpha bands; names that occur twice get the file's name in front, or their number."""
    alpha = rasterio.enums.ColorInterp.alpha
    found = [
        (file, number)
        for file in files
        for number, kind in zip(file.indexes, file.colorinterp, strict=True)
        if kind != alpha
    ]
    names = [file.descriptions[number - 1] or str(k) for k, (file, number) in enumerate(found, 1)]
    if len(set(names)) < len(names):
        names = [f"{PurePath(file.name).stem} {name}" for name, (file, _) in zip(names, found, strict=True)]
    if len(set(names)) < len(names):
        names = [f"{k} {name}" for k, name in enumerate(names, 1)]
    return [Band(file, number, name) for (file, number), name in zip(found, names, strict=True)]


def _masked(bands: Sequence[Band]) -> list[int]:
    """Return the bands of one file whose masks say more than a number for no data; one serves a whole file."""
    flags = rasterio.enums.MaskFlags
    kinds = {band.number: set(band.file.mask_flag_enums[band.number - 1]) for band in bands}
    of_file = [number for number, of_band in kinds.items() if flags.per_dataset in of_band]
    return [*of_file[:1], *(number for number, of_band in kinds.items() if not of_band)]


def _check_same_grid(first: Any, other: Any) -> None:
    """Raise InputError if two files differ in size, coordinate system or place."""
    both = f"{first.name} and {other.name} have different"
    if first.shape != other.shape:
        sizes = " and ".join(f"{file.width} x {file.height}" for file in (first, other))
        raise InputError(f"{both} sizes: {sizes} pixels; warp one to the grid of the other (gdalwarp)")
    if first.crs != other.crs:
        systems = " and ".join(str(file.crs) if file.crs else "none" for file in (first, other))
        raise InputError(f"{both} coordinate systems: {systems}; warp one to the grid of the other (gdalwarp)")
    corners = [(0, 0), (first.width, 0), (0, first.height)]
    shifts = [np.subtract((~first.transform) * (other.transform * corner), corner) for corner in corners]
    if np.abs(shifts).max() > _MAX_SHIFT:
        places = " and ".join(str(tuple(file.transform)[:6]) for file in (first, other))
        raise InputError(f"{both} grids: {places}; warp one to the grid of the other (gdalwarp)")


def _in_bands(text: str) -> str:
    """Put a sentence about the columns of a table into words about the bands of a file."""
    return re.sub(r"\bcolumn(s?)\b", r"band\1", text.replace("the table", "the file"))
