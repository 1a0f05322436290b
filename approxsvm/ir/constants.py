"""Constants for error bounds. Those that the core also uses are defined there, under the same names."""

import math
from typing import Final

from approxsvm import _native

_CORE: Final = _native.constants()

# Unit roundoffs of float32 and float64.
UNIT32: Final = float(_CORE["unit32"])
UNIT64: Final = float(_CORE["unit64"])
# Exceeds 1 by more than the relative rounding error of any number that is multiplied by it.
ROUNDED_UP: Final = 1.0 + 1e-9
# Values of theta in expansion/certificate.py, starting at 1; each is half the previous one.
CONTRACTIONS: Final = tuple(map(float, _CORE["contractions"]))
# Bound tables divide s / 2 into cells: one cell below these octaves, CELLS_PER_OCTAVE in each octave, and one above.
FIRST_OCTAVE: Final = int(_CORE["first_octave"])
END_OCTAVE: Final = int(_CORE["end_octave"])
CELLS_PER_OCTAVE: Final = int(_CORE["cells_per_octave"])
# The number of columns in a kernel matrix block is a multiple of this number.
KERNEL_BLOCK_COLUMNS: Final = int(_CORE["kernel_block_columns"])
# If support vectors are stored by column: the maximum number of features stored with all values, including zeros, and
# the reciprocal of the minimum fraction of nonzeros in such a feature.
MAX_FREQUENT: Final = int(_CORE["max_frequent"])
FREQUENT_SHARE: Final = int(_CORE["frequent_share"])
# LIBSVM's probabilities: the smallest pairwise probability, and the stopping rule for coupling probabilities.
LEAST_PROBABILITY: Final = float(_CORE["least_probability"])
COUPLING_TOLERANCE: Final = float(_CORE["coupling_tolerance"])
COUPLING_SWEEPS: Final = int(_CORE["coupling_sweeps"])
# Inverse of the normal distribution function: the coefficients, of shape (2, 2, 8), for two ranges and for numerator
# and denominator, and the smallest argument.
INVERSE_NORMAL: Final = _CORE["inverse_normal"]
LEAST_INVERSE_NORMAL: Final = float(_CORE["least_inverse_normal"])


def gaussian_slope(gamma: float) -> float:
    """Return sqrt(2 gamma / e), the largest slope of exp(-gamma r^2), reached at r = 1 / sqrt(2 gamma)."""
    return math.sqrt(2.0 * gamma / math.e)
