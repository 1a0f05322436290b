/* Single-precision exponential function, square root and rounding for exported headers. */
#ifndef APPROXSVM_EXPORTED_FLOAT32_H
#define APPROXSVM_EXPORTED_FLOAT32_H
#include "../program/bits.h"

/* exp(x) within 1.5 ULP for -87.33 <= x <= 0; 0 for smaller x. Here x = n ln 2 + r; n ln 2 is subtracted in two parts,
   and a polynomial approximates exp(r). */
static inline float approxsvm_exp32(float x) {
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

static inline float approxsvm_narrowed(double x) {
    return x > -1e19 && x < 1e19 ? (float)x : 1e19f;
}
static inline float approxsvm_above(double error) {
    return error < 1e37 ? (float)(error * 1.000001) + 1e-37f : approxsvm_infinity32();
}

/* An upper bound on the square root of x >= 0. Because underflow may have reduced x, `lost` or, for small roots, 2e-15
   is added. */
static inline float approxsvm_root_above(float x, float lost) {
    float root;
    if (!(x > 1e-30f)) return 2e-15f;
    root = approxsvm_float_of_bits((approxsvm_bits_of_float(x) >> 1) + 0x1FC00000u);
    root = 0.5f * (root + x / root);
    root = 0.5f * (root + x / root);
    return 1.001f * root + lost;
}

#endif
