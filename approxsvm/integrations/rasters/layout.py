"""Layout of output bands: names, common data type, and no-data value."""

import colorsys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.errors import InputError
from approxsvm.integrations.rasters.pixels import Answered
from approxsvm.runtime.answer_names import answer_names
from approxsvm.runtime.evaluator import labels_of
from approxsvm.system.options import whole_number

# Data types of integer bands, each with its preferred no-data value; the first type that suffices is used.
_INTEGERS = ((np.uint8, 255), (np.int16, -(1 << 15)), (np.uint16, (1 << 16) - 1), (np.int32, -(1 << 31)))
_EXACT_FLOAT32 = 1 << 24  # all integers up to this one are exact in float32
_GOLDEN_ANGLE = 0.618034  # hue step that keeps any number of colors distinct
Color = tuple[int, int, int, int]


@dataclass(frozen=True)
class LabelCodes:
    """Integer codes for labels; `names` lists the labels if they are not 32-bit integers."""

    codes: npt.NDArray[np.int64]  # code of each label, in the model's order
    names: tuple[str, ...] = ()  # label of each code

    @classmethod
    def of(cls, artifact: Artifact) -> "LabelCodes":
        """Return the codes of a model's labels: the labels themselves, or their ranks."""
        labels = labels_of(artifact)
        if labels.dtype.kind in "biuf":
            numbers = [int(label) if float(label).is_integer() else None for label in labels.tolist()]
            if all(number is not None and abs(number) < 1 << 31 for number in numbers):
                return cls(np.array(numbers, np.int64))
        order = np.argsort(labels, kind="stable")
        codes = np.empty(len(labels), np.int64)
        codes[order] = np.arange(len(labels))
        return cls(codes, tuple(map(str, labels[order].tolist())))


@dataclass(frozen=True)
class Layout:
    """Output bands of a model."""

    outputs: tuple[str, ...]
    names: tuple[str, ...]  # one name per band
    labels: LabelCodes | None
    dtype: np.dtype[Any]
    nodata: float  # NaN if the bands are floating-point
    scale: int | None  # factor for probabilities

    @classmethod
    def of(cls, artifact: Artifact, outputs: Sequence[str], probability_scale: int | None = None) -> "Layout":
        """Choose the smallest data type for all outputs, and a no-data value that differs from all of them."""
        if probability_scale is not None:
            probability_scale = whole_number(probability_scale, "probability_scale", 1, (1 << 16) - 2)
            if "probability" not in outputs:
                raise InputError("probability_scale is given, but the output probability is not requested")
        labels = LabelCodes.of(artifact) if "label" in outputs else None
        taken = set() if labels is None else set(labels.codes.tolist())
        taken |= {0, 1} if "certified" in outputs else set()
        taken |= {0, probability_scale} if probability_scale else set()
        names = tuple(name for output in outputs for name in answer_names(artifact, output))
        wide = {"value", "error_bound"} & set(outputs)
        if wide or ("probability" in outputs and probability_scale is None):
            if probability_scale is not None:
                raise InputError(f"probability_scale makes all bands integers, which {min(wide)} does not fit in")
            fits = not wide and max(map(abs, taken), default=0) <= _EXACT_FLOAT32
            return cls(tuple(outputs), names, labels, np.dtype(np.float32 if fits else np.float64), np.nan, None)
        dtype, nodata = _integer_type(taken, probability_scale)
        return cls(tuple(outputs), names, labels, dtype, nodata, probability_scale)

    def encoded(self, answered: Answered, n_pixels: int) -> npt.NDArray[Any]:
        """Return the output bands for some pixels, of shape (n_bands, n_pixels)."""
        bands = np.full((len(self.names), n_pixels), self.nodata, self.dtype)
        where: Any = slice(None) if answered.pixels is None else answered.pixels
        first = 0
        for output in self.outputs:
            answer = answered.answers[output]
            if output == "label" and self.labels is not None:
                answer = self.labels.codes.astype(self.dtype)[answer]
            elif output == "probability" and self.scale is not None:
                answer = np.rint(answer * self.scale)
            bands[first : first + answer.shape[1], where] = answer.T
            first += answer.shape[1]
        return bands

    def colors(self) -> dict[int, Color]:
        """Return a color for each label if the only band contains 8-bit labels; otherwise return an empty dict."""
        if self.labels is None or len(self.names) > 1 or self.dtype != np.uint8:
            return {}
        known = sorted(self.labels.codes.tolist())
        return {**dict(zip(known, _colors(), strict=False)), int(self.nodata): (0, 0, 0, 0)}


def spare_number(dtype: np.dtype[Any], labels: Sequence[Any]) -> Any:
    """Return a value of a dtype that differs from all labels and can represent a missing label, or None."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        known = set(labels)
        numbers = (int(limits.max), int(limits.min), *range(int(limits.max), int(limits.max) - len(known) - 1, -1))
        return next((n for n in numbers if n not in known and n >= limits.min), None)
    return {"f": np.nan, "U": ""}.get(dtype.kind)


def _integer_type(taken: set[int], scale: int | None) -> tuple[np.dtype[Any], int]:
    """Return a dtype for the values in `taken` and 0 to `scale`, and a value that differs from all of them."""
    for kind, preferred in _INTEGERS:
        lowest, highest = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        if min(taken) < lowest or max(taken) > highest or (scale and kind in (np.uint8, np.int16)):
            continue
        for number in (preferred, *range(highest, max(highest - len(taken) - 1, lowest) - 1, -1)):
            if number not in taken and not (scale and 0 <= number <= scale):
                return np.dtype(kind), number
    raise InputError(f"the {len(taken)} labels leave no number of 32 bits for pixels without data")


def _colors() -> Iterator[Color]:
    hue = 0.6
    while True:
        red, green, blue = colorsys.hsv_to_rgb(hue, 0.65, 0.9)
        yield round(255 * red), round(255 * green), round(255 * blue), 255
        hue = (hue + _GOLDEN_ANGLE) % 1.0
