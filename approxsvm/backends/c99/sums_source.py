"""C text of sums in an exported C99 header (sums.py); placeholders as in source.py."""

from __future__ import annotations

from typing import Final

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
        term = (double)@exp32@@(-@half_theta@@ * ((s[0] + s[1]) + (s[2] + s[3])));"""

LINEAR: Final = _PRODUCT + ";"


def power(degree: int) -> str:
    """Return the term of a polynomial kernel."""
    text = _PRODUCT + " + @coef0@@;"
    if degree == 1:
        return text
    return (
        f"{text}\n        {{\n            const double once = term;\n"
        f"            for (j = 1; j < {degree}; ++j) term *= once;\n        }}"
    )


SIGMOID: Final = _PRODUCT + " + @coef0@@;\n        term = approxsvm_tanh(term);"
OF_COS: Final = _PRODUCT + " + @phases@@[i];\n        term = approxsvm_cos_or_sin(term, 0);"

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
        values[k] = (double)approxsvm_nan32();
        bounds[k] = approxsvm_infinity32();
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
