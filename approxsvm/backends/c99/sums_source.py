"""C text of sums in an exported C99 header (sums.py); placeholders as in source.py."""

from __future__ import annotations

from typing import Final

from approxsvm.backends.c99.program import model_text

# Newton's method yields a number not less than the root, from any starting point.
ROOT: Final = model_text("float32.h", "ROOT")

# Numbers of a row mapped in double; those too large to be evaluated remain so.
NARROWED: Final = model_text("float32.h", "NARROWED")

FORM: Final = model_text("expansions.h", "FORM")

_SUMS: Final = model_text("sums.h", "SUMS")
_PRODUCT: Final = model_text("sums.h", "PRODUCT")


def sums_of(term: str) -> str:
    """Return the functions of a sum, for the part of sums.h that evaluates a term."""
    return ("" if term == "GAUSSIAN" else _PRODUCT) + model_text("sums.h", term) + _SUMS


# A row in float32: @load@@ returns the sum of its squares.
LOAD: Final = """\
static inline float @load@@(const @ROW@ row[], float u[], float *moved) {{
{declare}    int j;
    *moved = {moved};
    for (j = 0; j < @n_mapped@@; ++j) u[j] = {load};
    return @sq_norm@@(u){refuse};
}}
"""
LIMITED: Final = model_text("sums.h", "LIMITED")
UNLIMITED: Final = model_text("sums.h", "UNLIMITED")
NEVER_SATURATED: Final = """\
static inline int @is_saturated@@(const @ROW@ row[]) {
    (void)row;
    return 0;
}
"""
EVALUATE: Final = model_text("sums.h", "EVALUATE")
