"""The text of sums in an exported C99 header (sums.py), with marks as in source.py."""

from __future__ import annotations

from typing import Final

from approxsvm.backends.c99.source import real_of_bits

# Newton's method gives a number that is not below the root, from any start.
ROOT: Final = """\
/* Not below the root of x >= 0, nor of what x may have lost by underflow. */
static inline float @root_above@@(float x) {
    float root;
    if (!(x > 1e-30f)) return 2e-15f;
    root = @float_of@@((@bits_of@@(x) >> 1) + 0x1FC00000u);
    root = 0.5f * (root + x / root);
    root = 0.5f * (root + x / root);
    return 1.001f * root + 2e-15f;
}
"""

# Numbers of a row that is mapped in double: what is beyond all rows that are evaluated stays so.
NARROWED: Final = """\
static inline float @narrowed@@(double x) { return x > -1e19 && x < 1e19 ? (float)x : 1e19f; }
static inline float @above@@(double error) {
    return error < 1e37 ? (float)(error * 1.000001) + 1e-37f : @float_of@@(0x7F800000u);
}
"""

TERMS: Final = """\
/* Of term i times its coefficients, for each function that it takes part in. */
static inline void @sums@@(const float u[], double values[]) {
    const float *x = @vectors@@, *weight = @weights@@;
    int group = 0, i, j, k;
    for (i = 0; i < @n_terms@@; ++i, x += @n_varying@@, weight += @n_weights@@) {
        float s[4];
        double term;
        s[0] = s[1] = s[2] = s[3] = 0.0f;
        while (i == (int)@ends@@[group]) ++group;
#TERM#
        for (k = 0; k < @n_weights@@; ++k) values[(int)@places@@[group * @n_weights@@ + k]] += (double)weight[k] * term;
    }
}
"""

_PRODUCT: Final = """\
        for (j = 0; j + 4 <= @n_varying@@; j += 4) {
            for (k = 0; k < 4; ++k) s[k] += x[j + k] * u[j + k];
        }
        for (; j < @n_varying@@; ++j) s[0] += x[j] * u[j];
        term = (double)((s[0] + s[1]) + (s[2] + s[3]))"""

GAUSSIAN: Final = """\
        for (j = 0; j + 4 <= @n_varying@@; j += 4) {
            for (k = 0; k < 4; ++k) s[k] += (x[j + k] - u[j + k]) * (x[j + k] - u[j + k]);
        }
        for (; j < @n_varying@@; ++j) s[0] += (x[j] - u[j]) * (x[j] - u[j]);
        term = (double)@exp@@(-@half_theta@@ * ((s[0] + s[1]) + (s[2] + s[3])));"""

LINEAR: Final = _PRODUCT + ";"


def power(degree: int) -> str:
    """Of a polynomial kernel."""
    text = _PRODUCT + " + @coef0@@;"
    if degree == 1:
        return text
    return (
        f"{text}\n        {{\n            const double once = term;\n"
        f"            for (j = 1; j < {degree}; ++j) term *= once;\n        }}"
    )


SIGMOID: Final = _PRODUCT + " + @coef0@@;\n        term = @tanh@@(term);"
OF_COS: Final = _PRODUCT + " + @phases@@[i];\n        term = @cos@@(term);"

FORM: Final = """\
static inline void @sums@@(const float u[], double values[]) {
    int k;
    for (k = 0; k < @n_values; ++k) {
        const float *const l = @degree_1@@ + k * @size_1@@;
        values[k] += (double)@quadratic_form@@(@degree_2@@ + k * @size_2@@, l, @n_varying@@, u);
    }
}
"""

EVALUATE: Final = """\
/* A polynomial in r with coefficients of at least 0, rounded upwards. */
static inline float @polynomial@@(const float c[], int n, float r) {{
    float sum = c[n - 1];
    int k;
    for (k = n - 2; k >= 0; --k) sum = sum * r + c[k];
    return sum * 1.00001f;
}}
/* All decision values and their bounds; 0 for @STRANGE@: NaN, with infinite bounds. */
static inline int @evaluate@@(const @ROW@ row[], double values[], float bounds[]) {{
    float u[@n_mapped@@], reach, moved;
{declare}    int j, k;
    moved = {moved};
    for (j = 0; j < @n_mapped@@; ++j) u[j] = {load};
    reach = @sq_norm@@(u){refuse};
    for (k = 0; k < @n_values; ++k) {{
        values[k] = (double)@float_of@@(0x7FC00000u);
        bounds[k] = @float_of@@(0x7F800000u);
    }}
    if (!(reach <= @limit_sq@@)) return 0;
    reach = @root_above@@(reach);
    for (k = 0; k < @n_values; ++k) values[k] = 0.0;
    @sums@@(u, values);
    for (k = 0; k < @n_values; ++k) {{
        const float slope = @polynomial@@(@slopes@@ + k * @n_slope@@, @n_slope@@, reach + moved);
        const float own = @polynomial@@(@majorants@@ + k * @n_majorant@@, @n_majorant@@, reach);
        const float bound = 1.00001f * (own + slope * moved);
        values[k] += @intercepts@@[k];
        bounds[k] = {is_known} ? bound : {otherwise};
{saturated}    }}
    return 1;
}}
"""

# Arithmetic in double, for sums and for probabilities.
EXP64: Final = (
    real_of_bits("double", "uint64_t")
    + """\
/* exp(x), relatively within 2^-48; that of -708 or 708 beyond these. x = n ln 2 + r, exp(r) by its series. */
static inline double @exp64@@(double x) {
    const double shift = 6755399441055744.0;
    double n, r, sum;
    int k;
    x = x > -708.0 ? x : -708.0;
    x = x < 708.0 ? x : 708.0;
    n = (x * 1.4426950408889634 + shift) - shift;
    r = x - n * 0x1.62e42fee00000p-1;
    r = r - n * 0x1.a39ef35793c76p-33;
    sum = 1.0;
    for (k = 14; k > 0; --k) sum = 1.0 + sum * r / (double)k;
    return sum * @double_of@@((uint64_t)((int)n + 1023) << 52);
}
"""
)

TANH: Final = """\
static inline double @tanh@@(double t) {
    const double e = @exp64@@(t < 0.0 ? 2.0 * t : -2.0 * t), share = (1.0 - e) / (1.0 + e);
    return t < 0.0 ? -share : share;
}
"""

COS: Final = """\
/* cos(t) = 1 - 2 sin(y)^2, y half of what is left of t beyond whole turns; the sine by its series. */
static inline double @cos@@(double t) {
    const double shift = 6755399441055744.0, turns = (t * 0.15915494309189535 + shift) - shift;
    const double y = 0.5 * (t - turns * 6.283185307179586), y_sq = y * y;
    double sum = 1.0;
    int k;
    for (k = 10; k > 0; --k) sum = 1.0 - sum * y_sq / (double)(2 * k * (2 * k + 1));
    return 1.0 - 2.0 * (y * sum) * (y * sum);
}
"""
