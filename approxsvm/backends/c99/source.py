"""The text of an exported C99 header: literals, arrays and functions, each as a string.

Functions take what differs between models from enum constants and arrays that the header itself defines, so that only
what a model lacks, such as a router or an input map, is left out. `@` stands for the prefix of every name, `@@` at the
end of a name marks it as internal: a name with one more underscore.

Sums are in an order of their own, made for processors without vectors. The core (expansion/polynomial.hpp) keeps eight
lanes apart up to the end; here that would take up to eight products in the place of one. Paths of additions are no
longer than form_path() and norm_path() of the core (bounds/certificate.hpp), which the bounds count:
tests/backends/test_c_paths.py counts those of this text. exp() is that of simd/exp.hpp.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

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
    """A number as C has it, which reads back as the same number."""
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
    """Write hexadecimal numbers as decimals that read back as the same: C++ knows hexadecimal ones only from 17 on."""

    def decimal(match: re.Match[str]) -> str:
        number = float.fromhex(match[1])
        return literal(np.float32(number) if match[2] else number)

    return re.sub(r"(0x1(?:\.[0-9a-f]+)?p[+-]?\d+)(f?)", decimal, text)


def _with_point(digits: str) -> str:
    return digits if any(mark in digits for mark in ".en") else f"{digits}.0"


def text_literal(text: str) -> str:
    """A text as C has it: UTF-8, what is not plain ASCII as octal escapes."""
    plain = set(range(0x20, 0x7F)) - set(b'"\\?')
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text.encode()) + '"'


def comment(lines: Iterable[str]) -> str:
    """A block comment that ends where it should, whatever is in it."""
    printable = ("".join(c if c.isprintable() else " " for c in line) for line in lines)
    plain = (line.replace("\\", "/").replace("??", "? ?") for line in printable)  # neither continued nor a trigraph
    safe = (line.replace("*/", "* /").replace("/*", "/ *") for line in plain)  # last, as each of these makes others
    wrapped = [part for line in safe for part in textwrap.wrap(line, LINE_LENGTH - 3) or [""]]
    return "\n".join(["/* " + wrapped[0], *(f" * {line}".rstrip() for line in wrapped[1:]), " */", ""])


def array(name: str, numbers: npt.NDArray[Any]) -> str:
    """A constant array of numbers; an element of zero where there are none, as C has no empty arrays."""
    flat = numbers.ravel() if numbers.size else np.zeros(1, numbers.dtype)
    texts = [literal(x if flat.dtype == np.float32 else x.item()) for x in flat]
    body = textwrap.fill(", ".join(texts), LINE_LENGTH - 4, break_on_hyphens=False, break_long_words=False)
    return f"static const {_C_TYPES[flat.dtype.name]} {name}[{len(flat)}] = {{\n{textwrap.indent(body, ' ' * 4)}}};\n"


def texts_array(name: str, texts: Iterable[str]) -> str:
    """A constant array of texts."""
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


# Scalars beyond arrays are enum constants, as C99 has no others that an array's size may be made of.
SIZES: Final = """\
typedef char @int_has_32_bits@@[sizeof(int) >= 4 ? 1 : -1];
typedef char @literals_are_double@@[sizeof(1.0) == sizeof(double) ? 1 : -1];
"""

EXP: Final = """\
/* exp(x) within 1.5 ULP for -87.33 <= x <= 0: x = n ln 2 + r, n ln 2 in two parts, a polynomial in r. 0 below. */
static inline float @exp32@@(float x) {
    const float shift = 12582912.0f;
    const int is_far = x < -87.33f;
    float shifted, n, p;
    x = x > -87.33f ? x : -87.33f;
    shifted = x * 1.44269504f + shift;
    n = shifted - shift;
    x = n * -0.693359375f + x;
    x = n * 2.12194440e-4f + x;
    p = 0x1.6a23d0p-10f * x + 0x1.123a20p-7f;
    p = p * x + 0x1.5558f2p-5f;
    p = p * x + 0x1.555492p-3f;
    p = p * x + 0x1.fffffcp-2f;
    p = (x * x) * p + x;
    return is_far ? 0.0f : (p + 1.0f) * approxsvm_float_of_bits((approxsvm_bits_of_float(shifted) << 23) + 0x3F800000u);
}
"""

# The bits of a float32 that is not negative rise with it: the exponent and the first bits of mantissa number the cells.
CELL: Final = """\
/* The cell of half_s = s / 2 that @bounds@@ has a number for. */
static inline int @cell@@(float half_s) {
    const uint32_t first = @first_cell@@;
    uint32_t cell;
    if (!(half_s < @end_of_cells@@)) return @n_cells@@ - 1;
    cell = approxsvm_bits_of_float(half_s) >> @cell_shift@@;
    return cell < first ? 0 : (int)(cell - first) + 1;
}
"""

LINEAR: Final = """\
static inline float @linear_form@@(const @T@ *l, const float u[]) {
    float form = 0.0f;
    int j;
    for (j = 0; j < @n_varying@@; ++j) form += (float)l[j] * u[j];
    return form;
}
"""

# The first panels hold eight matrix rows each, a lane for each row; what is left, at most 28 numbers, goes plainly.
QUADRATIC: Final = """\
/* sum_j l_j u_j + sum over i <= j of q_ij u_i u_j; q is in panels of eight rows, l may be null. */
static inline float @quadratic_form@@(const @T@ *q, const @T@ *l, int n, const float u[]) {
    const int whole = n - n % 8, rest = n - whole;
    float form = 0.0f;
    int lane, first, i, j, k;
    for (lane = 0; lane < 8 && n >= 8; ++lane) {
        const @T@ *panel = q + lane;
        float total = 0.0f;
        for (first = 0; first + 8 <= n; first += 8) {
            float s0 = l ? (float)l[first + lane] : 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
            for (k = 0; k < 8; k += 4) {
                const float *x = u + first + k;
                if (k >= lane) s0 += (float)panel[k * (k + 1) / 2] * x[0];
                if (k + 1 >= lane) s1 += (float)panel[(k + 1) * (k + 2) / 2] * x[1];
                if (k + 2 >= lane) s2 += (float)panel[(k + 2) * (k + 3) / 2] * x[2];
                if (k + 3 >= lane) s3 += (float)panel[(k + 3) * (k + 4) / 2] * x[3];
            }
            panel += 36;
            for (j = first + 8; j + 4 <= n; j += 4, panel += 32) {
                s0 += (float)panel[0] * u[j];
                s1 += (float)panel[8] * u[j + 1];
                s2 += (float)panel[16] * u[j + 2];
                s3 += (float)panel[24] * u[j + 3];
            }
            for (; j < n; ++j, panel += 8) s0 += (float)panel[0] * u[j];
            total += u[first + lane] * ((s0 + s1) + (s2 + s3));
        }
        form += total;
    }
    q += n * (n + 1) / 2 - rest * (rest + 1) / 2;
    for (i = 0; i < rest; ++i) {
        float sum = l ? (float)l[whole + i] : 0.0f;
        for (k = i; k < rest; ++k) sum += (float)q[k * (k + 1) / 2 + i] * u[whole + k];
        form += u[whole + i] * sum;
    }
    return form;
}
"""

NORM_PLAIN: Final = """\
static inline float @sq_norm@@(const float u[]) {
    float sum = 0.0f;
    int j;
    for (j = 0; j < @n_varying@@; ++j) sum += u[j] * u[j];
    return sum;
}
"""

NORM_IN_LANES: Final = """\
static inline float @sq_norm@@(const float u[]) {
    const int n = @n_varying@@, whole = n - n % 8;
    float norm = 0.0f;
    int lane, j;
    for (lane = 0; lane < 8; ++lane) {
        float sum = 0.0f;
        for (j = lane; j < whole; j += 8) sum += u[j] * u[j];
        norm += sum;
    }
    for (j = whole; j < n; ++j) norm += u[j] * u[j];
    return norm;
}
"""

PART_2: Final = """\
/* Homogeneous polynomials, sum_i u_i part(u_i ...); *next is where their coefficients are, and moves behind them. */
static inline float @part_2@@(const @T@ **next, int n, const float u[]) {
    const @T@ *const q = *next;
    *next += n * (n + 1) / 2;
    return @quadratic_form@@(q, (const @T@ *)0, n, u);
}
"""

PART: Final = """\
static inline float @part_{k}@@(const @T@ **next, int n, const float u[]) {{
    float total = 0.0f;
    int i;
    for (i = 0; i < n; ++i) total += u[i] * @part_{below}@@(next, n - i, u + i);
    return total;
}}
"""

ROUTER: Final = """\
/* Of the slots of panels first ... end - 1 the one nearest to y: the least ||x||^2 / 2 - x.y, a panel's number in its
 * lowest eight bits. */
static inline int @nearest@@(int first, int end, const float y[]) {
    float best = FLT_MAX;
    int found = (int)@panel_slots@@[first], panel, slot, j;
    for (panel = first; panel < end; ++panel) {
        for (slot = (int)@panel_slots@@[panel]; slot < (int)@panel_slots@@[panel + 1]; ++slot) {
            const float *point = @points@@ + (int)@slot_points@@[slot] * (@n_mapped@@ + 1);
            float score = point[0];
            uint32_t bits;
            for (j = 0; j < @n_mapped@@; ++j) score += point[1 + j] * y[j];
            bits = (approxsvm_bits_of_float(score) & ~(uint32_t)0xFF) | (uint32_t)(panel - first);
            score = approxsvm_float_of_bits(bits);
            if (score < best) {
                best = score;
                found = slot;
            }
        }
    }
    return (int)@slot_targets@@[found];
}
static inline int @center@@(const float y[]) {
    const int group = @nearest@@(0, @n_group_panels@@, y);
    return @nearest@@((int)@group_panels@@[group], (int)@group_panels@@[group + 1], y);
}
"""

# Newton's method gives a number that is not below the root, from any start.
SLICE: Final = """\
/* Brings the features that vary to the front; the squared distance to the center's slice, in scaled coordinates. */
static inline float @keep_varying@@(float u[]) {
    float off_sq = 0.0f;
    int j, kept = 0;
    for (j = 0; j < @n_mapped@@; ++j) {
        if (kept < @n_varying@@ && (int)@varying@@[kept] == j) {
            u[kept++] = u[j];
        } else {
            off_sq += u[j] * u[j];
        }
    }
    return off_sq;
}
/* Not below sqrt(2 gamma) times the distance to the slice; infinite where that is 1.415 or more. */
static inline float @slice_distance@@(float off_sq) {
    const float x = @theta_above@@ * off_sq;
    float root;
    if (!(x < 2.0f)) return approxsvm_infinity32();
    if (!(x > 1e-30f)) return 2e-15f;
    root = approxsvm_float_of_bits((approxsvm_bits_of_float(x) >> 1) + 0x1FC00000u);
    root = 0.5f * (root + x / root);
    root = 0.5f * (root + x / root);
    return 1.001f * root + 1e-15f;
}
"""

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

# Columns that the source checks although their features do not: #WRONG# becomes NaN.
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

# No array is set to zero at once: compilers would make that a call of memset. The first pair of a class sets its tally.
VOTES: Final = """\
/* The class with the most votes, the first of several; a value above 0 is a vote for the first class of its pair. */
static inline int @winner@@(const double values[]) {
    int votes[@n_labels];
    int pair = 0, best = 0, i, j;
    for (i = 0; i < @n_labels; ++i) {
        int own = i > 0 ? votes[i] : 0;
        for (j = i + 1; j < @n_labels; ++j, ++pair) {
            const int first = values[pair] > 0.0;
            own += first;
            votes[j] = (i > 0 ? votes[j] : 0) + !first;
        }
        votes[i] = own;
    }
    for (i = 1; i < @n_labels; ++i) best = votes[i] > votes[best] ? i : best;
    return best;
}
/* Whether the winner is the same however the pairs turn out whose sign the bounds leave open. */
static inline int @is_settled@@(const double values[], const float bounds[], int winner) {
    int sure[@n_labels], possible[@n_labels];
    int pair = 0, i, j;
    for (i = 0; i < @n_labels; ++i) {
        int own_sure = i > 0 ? sure[i] : 0, own_possible = i > 0 ? possible[i] : 0;
        for (j = i + 1; j < @n_labels; ++j, ++pair) {
            const double bound = (double)bounds[pair];
            const int first = values[pair] > bound, second = values[pair] <= -bound;
            own_sure += first;
            own_possible += !second;
            sure[j] = (i > 0 ? sure[j] : 0) + second;
            possible[j] = (i > 0 ? possible[j] : 0) + !first;
        }
        sure[i] = own_sure;
        possible[i] = own_possible;
    }
    for (i = 0; i < @n_labels; ++i) {
        if (i != winner && possible[i] + (i < winner) > sure[winner]) return 0;
    }
    return 1;
}
"""

TWO_CLASSES: Final = """\
static inline int @winner@@(const double values[]) { return values[0] > 0.0 ? 0 : 1; }
static inline int @is_settled@@(const double values[], const float bounds[], int winner) {
    const double bound = (double)bounds[0];
    return winner == 0 ? values[0] > bound : values[0] <= -bound;
}
"""

# The label that a threshold is for where the value in its favour is at least that. A difference is rounded once.
THRESHOLD: Final = """\
static inline int @winner@@(const double values[]) { return #SIGN#values[0] >= #THRESHOLD# ? #LABEL# : #OTHER#; }
static inline int @is_settled@@(const double values[], const float bounds[], int winner) {
    const double above = #SIGN#values[0] - #THRESHOLD#, ahead = winner == #LABEL# ? above : -above;
    return ahead * (1.0 - 0x1p-50) > (double)bounds[0];
}
"""

# Sums err by a few roundings of the moduli, scores by a few roundings of numbers up to the number of classes.
SCORES: Final = """\
static inline double @confidence@@(double sum) { return sum / (3.0 * (approxsvm_abs(sum) + 1.0)); }
/* scikit-learn's scores, votes + s / (3 (|s| + 1)), s the sum of a class's values. */
static inline void @scores@@(const double values[], double scores[]) {
    double sums[@n_labels];
    int pair = 0, i, j;
    for (i = 0; i < @n_labels; ++i) {
        double own = i > 0 ? sums[i] : 0.0, own_votes = i > 0 ? scores[i] : 0.0;
        for (j = i + 1; j < @n_labels; ++j, ++pair) {
            const int second = values[pair] < 0.0;
            own += values[pair];
            own_votes += !second;
            sums[j] = (i > 0 ? sums[j] : 0.0) - values[pair];
            scores[j] = (i > 0 ? scores[j] : 0.0) + second;
        }
        sums[i] = own;
        scores[i] = own_votes;
    }
    for (i = 0; i < @n_labels; ++i) scores[i] += @confidence@@(sums[i]);
}
/* Between what they lie for all values within the bounds. */
static inline void @score_ends@@(const double values[], const float bounds[], double lowest[], double highest[]) {
    const double n = (double)@n_labels, u = DBL_EPSILON;
    int c, i, j;
    for (c = 0; c < @n_labels; ++c) {
        double sum = 0.0, spread = 0.0, least = 0.0, most = 0.0;
        int pair = 0;
        for (i = 0; i < @n_labels; ++i) {
            for (j = i + 1; j < @n_labels; ++j, ++pair) {
                const double value = c == i ? values[pair] : -values[pair], bound = (double)bounds[pair];
                if (c != i && c != j) continue;
                sum += value;
                spread += bound + 4.0 * n * u * (bound + approxsvm_abs(value));
                least += value > bound;
                most += !(value < -bound);
            }
        }
        if (spread <= 1e300) {
            lowest[c] = least + @confidence@@(sum - spread) - 8.0 * n * u;
            highest[c] = most + @confidence@@(sum + spread) + 8.0 * n * u;
        } else {
            lowest[c] = -DBL_MAX;
            highest[c] = DBL_MAX;
        }
    }
}
"""

# Functions of each class are its score.
SCORES_OF_EACH: Final = """\
static inline void @scores@@(const double values[], double scores[]) {
    int c;
    for (c = 0; c < @n_labels; ++c) scores[c] = values[c];
}
/* Between what they lie for all values within the bounds. */
static inline void @score_ends@@(const double values[], const float bounds[], double lowest[], double highest[]) {
    int c;
    for (c = 0; c < @n_labels; ++c) {
        const double reach = (double)bounds[c] * (1.0 + 0x1p-40) + 0x1p-50 * approxsvm_abs(values[c]);
        lowest[c] = values[c] - reach;
        highest[c] = values[c] + reach;
    }
}
"""

BEST_SCORE: Final = """\
/* The first of the best scores. */
static inline int @winner@@(const double values[]) {
    double scores[@n_labels];
    int best = 0, c;
    @scores@@(values, scores);
    for (c = 1; c < @n_labels; ++c) best = scores[c] > scores[best] ? c : best;
    return best;
}
/* Whether the score of the winner is the best for all values within the bounds. */
static inline int @is_settled@@(const double values[], const float bounds[], int winner) {
    double lowest[@n_labels], highest[@n_labels];
    int c;
    @score_ends@@(values, bounds, lowest, highest);
    for (c = 0; c < @n_labels; ++c) {
        if (c != winner && !(lowest[winner] > highest[c] || (lowest[winner] == highest[c] && winner < c))) return 0;
    }
    return 1;
}
"""

# --- what programs call

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

# Values are narrowed to float32 on their way out, which half a unit in the last place bounds.
NARROWING: Final = """\
static inline float @with_narrowing@@(double value, float bound) {
    const double modulus = value < 0.0 ? -value : value;
    return (float)(((double)bound + modulus * 0x1p-23) * (1.0 + 0x1p-22) + 1e-37);
}
"""

# Of values.
LABEL: Final = """\
/* The position of a row's label@ZERO@; whether it is proven to be the exact model's, -1 for
   @STRANGE@, unless nobody asks. */
static inline int @label@@(const @ROW@ row[], int *is_proven) {
    double values[@n_values];
    float bounds[@n_values];
    const int is_known = @evaluate@@(row, values, bounds), winner = is_known ? @winner@@(values) : 0;
    if (is_proven) *is_proven = is_known ? @is_settled@@(values, bounds, winner) : -1;
    return winner;
}
"""

CLASSIFY: Final = """\
/* The position of the row's label in @labels@ZERO@. */
static inline int @predict(const @ROW@ row[]) { return @label@@(row, (int *)0); }
/* The same, but -1 where the label is not proven to be the exact model's. */
static inline int @predict_if_certain(const @ROW@ row[]) {
    int is_proven;
    const int label = @label@@(row, &is_proven);
    return is_proven > 0 ? label : -1;
}
/* 1 where the label is proven to be the exact model's, else 0. */
static inline int @is_certain(const @ROW@ row[]) { return @predict_if_certain(row) >= 0; }
"""

CLASSIFY_TARGETS: Final = """\
/* The positions of the row's labels in @labels, @n_targets of them; no matter which for @STRANGE@. */
static inline void @predict(const @ROW@ row[], int labels[]) {
    int is_proven[@n_targets];
    @targets@@(row, labels, is_proven);
}
/* The same, but -1 where a label is not proven to be the exact model's. */
static inline void @predict_if_certain(const @ROW@ row[], int labels[]) {
    int is_proven[@n_targets], k;
    @targets@@(row, labels, is_proven);
    for (k = 0; k < @n_targets; ++k) labels[k] = is_proven[k] > 0 ? labels[k] : -1;
}
/* 1 where all labels are proven to be the exact model's, else 0. */
static inline int @is_certain(const @ROW@ row[]) {
    int labels[@n_targets], k;
    @predict_if_certain(row, labels);
    for (k = 0; k < @n_targets; ++k) {
        if (labels[k] < 0) return 0;
    }
    return 1;
}
"""

# Of one target.
REGRESS: Final = """\
/* The value@NAN@. */
static inline float @predict(const @ROW@ row[]) {
    float value[1];
    @decision_values(row, value);
    return value[0];
}
"""

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
