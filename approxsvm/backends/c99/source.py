"""C text of an exported header: literals, arrays and functions, each as a string.

Functions read everything that differs between models from enum constants and arrays of the header, so text is omitted
only for components that a model lacks, such as a router or an input map. `@` is replaced by the prefix of all names;
`@@` at the end of a name marks it as internal and adds an underscore.

Sums use a different order from the core's, suited to processors without SIMD. The core (expansion/polynomial.hpp) keeps
eight lanes separate until the end; here, this could take eight products instead of one. Chains of additions are no
longer than form_depth() and norm_depth() of the core (bounds/certificate.hpp), which the bounds assume;
tests/backends/test_c_paths.py counts the chains in this text. exp() is the function of simd/exp.hpp.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.program import model_text

LINE_LENGTH: Final = 120
_C_TYPES: Final = {
    "float32": "float",
    "float64": "double",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
}


def literal(x: Any) -> str:
    """Return a C literal that parses to exactly this number."""
    if isinstance(x, np.float32):
        return f"{_with_point(str(x))}f"
    if isinstance(x, float):
        return _with_point(repr(float(x)))
    number = int(x)
    if number == -(2**63):
        return "(-INT64_C(9223372036854775807) - 1)"
    if number >= 2**63:
        return f"UINT64_C({number})"
    return f"INT64_C({number})" if not -(2**31) < number < 2**31 else str(number)


def with_decimals(text: str) -> str:
    """Convert hexadecimal floats to decimals that parse to the same number: C++ lacks hexadecimal ones before C++17."""

    def decimal(match: re.Match[str]) -> str:
        number = float.fromhex(match[1])
        return literal(np.float32(number) if match[2] else number)

    return re.sub(r"(0x[01](?:\.[0-9a-f]+)?p[+-]?\d+)(f?)", decimal, text)


def _with_point(digits: str) -> str:
    return digits if any(mark in digits for mark in ".en") else f"{digits}.0"


def text_literal(text: str) -> str:
    """Return a C string literal in UTF-8, with octal escapes for everything but plain ASCII."""
    plain = set(range(0x20, 0x7F)) - set(b'"\\?')
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text.encode()) + '"'


def comment(lines: Iterable[str]) -> str:
    """Return a block comment that no text inside can end early."""
    printable = ("".join(c if c.isprintable() else " " for c in line) for line in lines)
    plain = (line.replace("\\", "/").replace("??", "? ?") for line in printable)  # no continuation, no trigraph
    safe = (line.replace("*/", "* /").replace("/*", "/ *") for line in plain)  # last, as the others may create these
    wrapped = [part for line in safe for part in textwrap.wrap(line, LINE_LENGTH - 3) or [""]]
    return "\n".join(["/* " + wrapped[0], *(f" * {line}".rstrip() for line in wrapped[1:]), " */", ""])


def array(name: str, numbers: npt.NDArray[Any]) -> str:
    """Return a constant array of numbers; if empty, it gets one zero element, because C has no empty arrays."""
    flat = numbers.ravel() if numbers.size else np.zeros(1, numbers.dtype)
    texts = [literal(x if flat.dtype == np.float32 else x.item()) for x in flat]
    body = textwrap.fill(", ".join(texts), LINE_LENGTH - 4, break_on_hyphens=False, break_long_words=False)
    return f"static const {_C_TYPES[flat.dtype.name]} {name}[{len(flat)}] = {{\n{textwrap.indent(body, ' ' * 4)}}};\n"


def texts_array(name: str, texts: Iterable[str]) -> str:
    """Return a constant array of texts."""
    literals = [text_literal(text) for text in texts]
    return f"static const char *const {name}[{len(literals)}] = {{\n    " + ",\n    ".join(literals) + "};\n"


PREAMBLE: Final = """\
#include <float.h>
#include <stdint.h>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \\
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#error "this model needs IEEE arithmetic with NaN and infinities: compile without -ffast-math and each of its parts"
#endif
#if !defined(FLT_EVAL_METHOD) || (FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16) /* 16: of _Float16 alone */
#error "this model needs float arithmetic that is float's own: FLT_EVAL_METHOD 0 (on x86 -msse2 -mfpmath=sse)"
#endif
#if FLT_MANT_DIG != 24 || FLT_MAX_EXP != 128 || DBL_MANT_DIG != 53
#error "this model needs float and double of 32 and 64 bits, IEEE 754"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
"""


# Scalars are enum constants, the only named constants that C99 permits in array sizes.
SIZES: Final = """\
typedef char @int_has_32_bits@@[sizeof(int) >= 4 ? 1 : -1];
typedef char @literals_are_double@@[sizeof(1.0) == sizeof(double) ? 1 : -1];
"""

EXP: Final = model_text("float32.h", "EXP")

# The bit patterns of nonnegative float32 numbers are ordered like their values: exponent and top mantissa bits give the
# cell number.
CELL: Final = model_text("expansions.h", "CELL")

LINEAR: Final = model_text("expansions.h", "LINEAR")

# The first panels hold eight matrix rows each, one per lane; the remainder, at most 28 numbers, is processed one by
# one.
QUADRATIC: Final = model_text("expansions.h", "QUADRATIC")

NORM_PLAIN: Final = model_text("expansions.h", "NORM_PLAIN")

NORM_IN_LANES: Final = model_text("expansions.h", "NORM_IN_LANES")

PART_2: Final = model_text("expansions.h", "PART_2")

PART: Final = """\
static inline float @part_{k}@@(const @T@ **next, int n, const float u[]) {{
    float total = 0.0f;
    int i;
    for (i = 0; i < n; ++i) total += u[i] * @part_{below}@@(next, n - i, u + i);
    return total;
}}
"""

ROUTER: Final = model_text("expansions.h", "ROUTER")

# Newton's method yields a number not less than the root, from any starting point.
SLICE: Final = model_text("expansions.h", "SLICE")

# Rows of numbers, and rows of codes.
RAW: Final = """\
static inline float @raw@@(const float row[], int j) { return row[j]; }
"""

DECODED: Final = """\
/* Feature j of a row of codes. */
static inline float @raw@@(const @ROW@ row[], int j) { return @steps[j] * (float)row[j] + @offsets[j]; }
"""

CODES: Final = """\
static inline int @is_last@@(@ROW@ code) { return code >= @largest_code || code <= -@largest_code; }
/* Whether a feature that is used, or that the source checks, is beyond the codes. */
static inline int @is_saturated@@(const @ROW@ row[]) {
    int saturated = 0, j;
    for (j = 0; j < @n_used@@; ++j) saturated |= @is_last@@(row[@COLUMN@]);
#CHECKED#    return saturated;
}
/* The codes of a row of numbers; what is beyond them, and NaN, becomes the last one. */
static inline void @quantize(const float numbers[], @ROW@ row[]) {
    int j;
    for (j = 0; j < @n_features; ++j) {
        const float q = (numbers[j] - @offsets[j]) / @steps[j];
        const float limit = (float)@largest_code;
        if (q > -limit && q < limit) {
            row[j] = (@ROW@)(int)(q < 0.0f ? q - 0.5f : q + 0.5f);
        } else {
            row[j] = (@ROW@)(q <= -limit ? -@largest_code : @largest_code);
        }
    }
}
"""

CHECKED_CODES: Final = """\
    for (j = 0; j < @n_checked@@; ++j) saturated |= @is_last@@(row[@checked_columns@@[j]]);
"""

NOT_FINITE: Final = """\
/* 0 for a row whose numbers are finite where they are used, else NaN. */
static inline float @not_finite@@(const @ROW@ row[]) {
    float sum = 0.0f;
    int j;
    for (j = 0; j < @n_used@@; ++j) #UNLESS#sum += row[@COLUMN@] - row[@COLUMN@];
#CHECKED#    return sum;
}
"""

# Columns that the source checks but does not use as features: #WRONG# becomes NaN.
CHECKED: Final = """\
    for (j = 0; j < @n_checked@@; ++j) {
        const float x = row[@checked_columns@@[j]];
        if (!(x - x >= 0.0f) && !(@checked_nan@@[j] && x != x)) #WRONG# = approxsvm_nan32();
    }
"""

EVALUATE: Final = """\
/* All decision values and their bounds; 0 for @STRANGE@: NaN, with infinite bounds. */
static inline int @evaluate@@(const @ROW@ row[], double values[], float bounds[]) {{
{declare}{load}{refuse}    cell = @cell@@(half_s);
    gaussian = @exp32@@(-half_s);
    for (k = 0; k < @n_values; ++k) {{
        const int e = center * @n_values + k;
        const double scale = @output_scales@@[e] * (double)gaussian;
        double inner = @constants@@[e];
{forms}        values[k] = @intercepts@@[k] + (scale > 0.0 ? scale * inner : 0.0);
        bounds[k] = approxsvm_float_of_bits((uint32_t)@bounds@@[e * @n_cells@@ + cell] << 16);
{slack}    }}
    return 1;
}}
"""

REFUSE: Final = """\
    if (!(wrong <= 0.0f)) {
        for (k = 0; k < @n_values; ++k) {
            values[k] = (double)wrong;
            bounds[k] = approxsvm_infinity32();
        }
        return 0;
    }
"""

# --- labels

# No array is cleared by a loop, which compilers would turn into memset. The first pair of a class sets its tally.
VOTES: Final = model_text("labels.h", "VOTES")

TWO_CLASSES: Final = model_text("labels.h", "TWO_CLASSES")

# The label of a threshold, chosen if the value in its favour is at least the threshold. The difference is rounded once.
THRESHOLD: Final = """\
static inline int @winner@@(const double values[]) { return #SIGN#values[0] >= #THRESHOLD# ? #LABEL# : #OTHER#; }
static inline int @is_settled@@(const double values[], const float bounds[], int winner) {
    const double above = #SIGN#values[0] - #THRESHOLD#, ahead = winner == #LABEL# ? above : -above;
    return ahead * (1.0 - 0x1p-50) > (double)bounds[0];
}
"""

# The error of sums is a few roundings of their absolute values; of scores, a few roundings of numbers up to n_labels.
SCORES: Final = model_text("labels.h", "SCORES")

# The function of each class is its score.
SCORES_OF_EACH: Final = model_text("labels.h", "SCORES_OF_EACH")

BEST_SCORE: Final = model_text("labels.h", "BEST_SCORE")

# --- public functions

DECISION_VALUES: Final = """\
/* Decision values{values_are}@NAN@. */
static inline void @decision_values(const @ROW@ row[], float values[]) {{
    double exact[@n_values];
    float bounds[@n_values];
    int k;
    (void)@evaluate@@(row, exact, bounds);
    for (k = 0; k < @n_values; ++k) values[k] = (float)exact[k];
}}
/* What |value - exact value| never exceeds, for each of @decision_values; infinite for @STRANGE@. */
static inline void @error_bounds(const @ROW@ row[], float bounds[]) {{
    double values[@n_values];
    int k;
    if (!@evaluate@@(row, values, bounds)) return;
    for (k = 0; k < @n_values; ++k) bounds[k] = @with_narrowing@@(values[k], bounds[k]);
}}
"""

# Values are narrowed to float32 when returned; the error is at most half a unit in the last place.
NARROWING: Final = model_text("labels.h", "NARROWING")

# Labels from values.
LABEL: Final = model_text("labels.h", "LABEL")

CLASSIFY: Final = model_text("labels.h", "CLASSIFY")

CLASSIFY_TARGETS: Final = model_text("labels.h", "CLASSIFY_TARGETS")

# For a single target.
REGRESS: Final = model_text("labels.h", "REGRESS")

IS_WITHIN: Final = """\
/* 1 where {what} is proven to be {certain_means}, else 0. */
static inline int @is_certain(const @ROW@ row[]) {{
    float bounds[@n_values];
    int k;
    @error_bounds(row, bounds);
    for (k = 0; k < @n_values; ++k) {{
        if (!(bounds[k] <= {tolerance})) return 0;
    }}
    return 1;
}}
"""
