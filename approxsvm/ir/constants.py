"""Numbers that bounds are made of. The core is the author of those that it has, too; their names are its own."""

from __future__ import annotations

import math
from typing import Final

from approxsvm import _native

_CORE: Final = _native.constants()

# Unit roundoffs of float32 and float64.
UNIT32: Final = float(_CORE["unit32"])
UNIT64: Final = float(_CORE["unit64"])
# theta of expansion/certificate.py, from 1 down; each is half of the one before.
CONTRACTIONS: Final = tuple(map(float, _CORE["contractions"]))
# From this s on the value of an expansion may be the intercept alone.
BARE_FROM_S: Final = float(_CORE["bare_from_s"])
# What the parts of a remainder come to where their factor leaves this is said by W alone.
MOST_REMAINDER_FACTOR: Final = float(_CORE["most_remainder_factor"])
# Cells of s / 2 that bounds are tabulated by: one below these octaves, and an open one above.
FIRST_OCTAVE: Final = int(_CORE["first_octave"])
END_OCTAVE: Final = int(_CORE["end_octave"])
CELLS_PER_OCTAVE: Final = int(_CORE["cells_per_octave"])
# Features of support vectors by columns that have all values stored: how many at most, and one in how many values.
MAX_FREQUENT: Final = int(_CORE["max_frequent"])
FREQUENT_SHARE: Final = int(_CORE["frequent_share"])
# LIBSVM's probabilities: what is least of a pair, and when their coupling ends.
LEAST_PROBABILITY: Final = float(_CORE["least_probability"])
COUPLING_TOLERANCE: Final = float(_CORE["coupling_tolerance"])
COUPLING_SWEEPS: Final = int(_CORE["coupling_sweeps"])
# The inverse of the normal distribution function: coefficients, shape (2 ranges, above and below, 8); least argument.
INVERSE_NORMAL: Final = _CORE["inverse_normal"]
LEAST_INVERSE_NORMAL: Final = float(_CORE["least_inverse_normal"])


def gaussian_slope(gamma: float) -> float:
    """sqrt(2 gamma / e), the steepest slope of exp(-gamma r^2): at r = 1 / sqrt(2 gamma)."""
    return math.sqrt(2.0 * gamma / math.e)
