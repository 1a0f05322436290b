"""Places that no test can, or must, notice, each with the reason."""

from __future__ import annotations

import re
from typing import Final

from .places import Place

_UNDERFLOW: Final = "what underflow loses, below 1e-290: steps are judged to 1e-300, on rows that keep away from it"
_SECOND_ORDER: Final = "an error times an error, below 2^-10 of what is added to numbers of float32 anyway"
_TIME: Final = "decides where a row is evaluated, or in which order: a wrong decision costs time alone"
_NEXT_TO_MODULI: Final = "far below the rounding of moduli in float32, and a larger intercept decides the label alone"
_NATIVE: Final = "cpp/tests/test_listed_errors.cpp notices it, which no Python test runs"
_COVERED: Final = "the terms beside it allow for twice what their own operations round, which is more than this"

# Patterns for the file and for the text (or text and occurrence number), and why nothing is lost.
EXPLAINED: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "backends/ops/",
        r"tiny|TINY|underflow(\[j\])?|\{UNDERFLOW!r\}|UNDERFLOW \* .*|np\.broadcast_to\(tiny, .*|1e-144 \* a",
        _UNDERFLOW,
    ),
    ("backends/ops/(affine|interval|monomials|piecewise_polynomial)", "own", _COVERED),
    ("backends/ops/interval", r'ROUNDING \* second|g\.op\("Mul", g\.op\("Abs", y\), ROUNDING\)', _COVERED),
    ("backends/ops/normalizer", "off", _COVERED),
    ("backends/ops/power", r'g\.op\("Mul", g\.op\("Abs", y\), 2 \* ROUNDING\)', _COVERED),
    ("program/ops/normalizer", "rounding", "rounds what came as an error: it counts next to the least norm alone"),
    ("program/ops/power", r"moved|size|is_shifted && .* at_0 : 0\.0", _SECOND_ORDER),
    (
        "kernel_sums|few_values",
        r"0x1p-120 \* .*",
        "kernel values below 2^-120 of the coefficients: no test has as many",
    ),
    ("kernel_sums|few_values", r"1\.01 \* (?:\(static_cast.*n_sv\) \+ 8\.0\)|n) \* unit64", _SECOND_ORDER),
    ("kernel_sums", "infinity #1", "the other number of the record is infinite, too"),
    (
        "kernel_sums",
        r"if \(!\(per_reach .*|infinity|listed < furthest \? .*|1\.1 \* of_far.*|.*_of_far .*0x1p-58",
        _NATIVE,
    ),
    ("bounds/subspaces", r"0\.5 \* moved \* moved", _SECOND_ORDER),
    ("bounds/subspaces", "row", "a row without numbers has no bound, either"),
    ("few_values/layout", r"if \(!\(step > 0\.0\)\) return false;", "no value is on a grid without a step"),
    ("stages/winner", r"fixed|listed\[r\]\.of_all_moduli \* decision\.sum_moduli", _NEXT_TO_MODULI),
    ("stages/winner", r"(?:> bound #1|bounds\[c\] <)", _TIME),
    ("stages/several_functions", r"if \(view_\.task == .*|bound <=?|before\[1\]\[r\]", _TIME),
    ("stages/one_function", r"table_bound\(n_bases.*|extra #1|bound <=", _TIME),
    (
        "stages/definition",
        r"outcome_of\(.*|0x1p-1000 \* a1",
        "pairs that are known are summed again, or what underflows",
    ),
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
    """Return why a place may go unnoticed, or "" if it must be noticed."""
    texts = (place.text, f"{place.text} #{place.occurrence}")
    return next(
        (
            why
            for file, text, why in EXPLAINED
            if re.search(file, place.file) and any(re.fullmatch(text, one) for one in texts)
        ),
        "",
    )
