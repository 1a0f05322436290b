"""C export of lookups at the start of an input map (categories, bins, missing values), and of string columns' codes.

Features of the raw row are looked up without rounding, so a lookup does not affect bounds.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99.device.router import smallest
from approxsvm.errors import UnsupportedModelError
from approxsvm.frames.text_columns import NONE
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Lookup
from approxsvm.ir.ops.lookup import REFUSED, SAME, Steps

# Values that represent in C infinity (leave the feature unchanged) and NaN (reject the row); see program/ops/lookup.h.
_SAME: Final = 3.0e301
_REFUSES: Final = 2.0e301
_LARGEST: Final = 1.0e300
# Lookup that leaves values unchanged and rejects NaN.
_CHECKED: Final = Steps.of([], [SAME], REFUSED)


def most_looked_up(lookup: Lookup, before: FloatArray) -> FloatArray:
    """Return the maximum absolute value of each output for features with absolute values up to `before`."""
    most = np.zeros(lookup.n_outputs)
    for k, (j, steps) in enumerate(zip(lookup.source, lookup.steps, strict=True)):
        numbers = np.append(steps.values, steps.nan)
        moduli = np.abs(numbers[np.isfinite(numbers)])
        most[k] = max(moduli.max(initial=0.0), float(before[j]) if (numbers == SAME).any() else 0.0)
    if not (most < _LARGEST).all():
        raise UnsupportedModelError(f"a lookup gives {most.max():.3g}, but the C export allows 1e300")
    return most


def lookup_arrays(lookup: Lookup, columns: npt.NDArray[np.intp]) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield the arrays of a lookup; raw columns that it ignores come last, because the header checks them, too."""
    limit = float(np.finfo(np.float64).max)
    unused = np.setdiff1d(np.arange(lookup.n_features), lookup.source)
    every = [*lookup.steps, *(_CHECKED for _ in unused)]
    yield "lookup_source_", smallest(columns[np.append(lookup.source, unused)])
    yield "lookup_ends_", smallest(np.cumsum([len(steps.edges) for steps in every]))
    yield "lookup_edges_", np.concatenate([np.zeros(0), *(steps.edges for steps in every)]).clip(-limit, limit)
    yield "lookup_found_", written(np.concatenate([np.zeros(0), *(steps.values for steps in every)]))
    yield "lookup_missing_", written(np.array([steps.nan for steps in every], np.float64))


def written(numbers: FloatArray) -> FloatArray:
    """Replace infinity and NaN with the values that represent them in C."""
    return np.where(np.isnan(numbers), _REFUSES, np.where(np.isinf(numbers), _SAME, numbers))


def category_arrays(artifact: Artifact) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield the string columns, the index of each column's first string, and its kind of null."""
    columns = sorted(artifact.raw_columns.texts.items())
    yield "text_columns_", np.array([j for j, _ in columns], np.int32)
    yield "text_starts_", np.cumsum([0, *(len(known.texts) for _, known in columns)], dtype=np.int32)
    yield "nulls_", np.array([known.null == NONE for _, known in columns], np.uint8)


def categories(artifact: Artifact) -> list[str]:
    """Return the known strings of all string columns, column by column."""
    texts = [text for _, known in sorted(artifact.raw_columns.texts.items()) for text in known.texts]
    for text in texts:
        if "\0" in text:
            raise UnsupportedModelError(f"the category {text!r} has a character that ends a text in C")
    return texts
