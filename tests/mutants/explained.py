"""Places that no test can notice, or none has to, each with its reason."""

from __future__ import annotations

import re
from typing import Final

from .places import Place

_UNDERFLOW: Final = "what underflow loses, below 1e-290: steps are judged to 1e-300, on rows that keep away from it"
_SECOND_ORDER: Final = "an error times an error, below 2^-10 of what is added to numbers of float32 anyway"
_COVERED: Final = "the terms beside it allow for twice what their own operations round, which is more than this"

# A pattern of files, one of texts, and why nothing is lost.
EXPLAINED: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "backends/ops/",
        r"tiny|TINY|underflow(\[j\])?|\{UNDERFLOW!r\}|UNDERFLOW \* .*|np\.broadcast_to\(tiny, .*|1e-144 \* a",
        _UNDERFLOW,
    ),
    ("backends/ops/(affine|interval|monomials|piecewise_polynomial)", "own", _COVERED),
    ("backends/ops/interval", r'ROUNDING \* second|g\.op\("Mul", g\.op\("Abs", y\), ROUNDING\)', _COVERED),
    ("backends/ops/normalizer", "off", _COVERED),
    (
        "backends/ops/interval",
        r"most \+ np\.abs\(op\.low\)|most|np\.abs\(op\.low\)",
        "how large numbers become on the way: `low` counts in the next line, too, and float32 rows are far below 1e300",
    ),
    ("backends/ops/power", r'g\.op\("Mul", g\.op\("Abs", y\), 2 \* ROUNDING\)', _COVERED),
    ("program/normalizer", "rounding", "rounds what came as an error: it counts next to the least norm alone"),
    ("program/power", r"moved|size|is_shifted && .* at_0 : 0\.0", _SECOND_ORDER),
    ("sklearn/dtypes", r"name|behaviour\.gives == dtype", "words of messages alone"),
    ("frames/dtypes", "not self", "saves time alone: no dtype has an effect"),
    ("sklearn/dtypes", r".*_SCALARS_WIDEN.*", "true since NumPy 2"),
    (
        "density",
        r"\(d \+ 12\) \* UNIT64 \* mean|\(n \+ 24\) \* UNIT64|4\.0 \* UNIT64 \* .*",
        "far from the data, where this is computed, 4 units of the logarithm cover the others, and these cover it",
    ),
)


def reason(place: Place) -> str:
    """Return why a place may go unnoticed, "" if it may not."""
    return next(
        (why for file, text, why in EXPLAINED if re.search(file, place.file) and re.fullmatch(text, place.text)), ""
    )
