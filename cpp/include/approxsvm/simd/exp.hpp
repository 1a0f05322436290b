// Computes exp(x) for x <= 0, one SIMD register of float32 or float64 values at a time.
#ifndef APPROXSVM_SIMD_EXP_HPP
#define APPROXSVM_SIMD_EXP_HPP

#include "simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The work of one exp, in multiply-adds (predict/row_work.hpp).
constexpr double work_of_exp = 12.0;

// At this argument, exp(x) is within a factor of two of the smallest normal float32.
constexpr float exp_min_argument = -87.33f;

// Computes exp(x) within 1.5 ULP (relative error below 2^-23) for exp_min_argument <= x <= 0; smaller x and NaN give
// exp(exp_min_argument). Arguments are clamped first, so that the range reduction cannot overflow.
//
// Let x = n ln 2 + r with |r| <= ln 2 / 2 (Cody and Waite: the high part of ln 2 has so few bits that its product with
// n is exact, with or without fused multiply-add). Then exp(r) = 1 + (r + r^2 P(r)), where P is a weighted minimax
// polynomial of degree 4; its relative error is at most 3.1e-9. cpp/tests/test_simd.cpp tests every float32 in the
// range.
//
// N registers are processed together, step by step, because the operations on a single register depend on one another
// and would leave the multiply-add units mostly idle.
template <int N>
APPROXSVM_INLINE void exp_nonpositive(f32v (&x)[N]) {
    const f32v shift = set1(12582912.0f);  // adding 1.5 * 2^23 rounds to the nearest integer
    f32v shifted[N], n[N], p[N];
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) x[i] = max_or(x[i], set1(exp_min_argument));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) shifted[i] = fmadd(x[i], set1(1.44269504f), shift);
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) n[i] = sub(shifted[i], shift);
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) x[i] = fmadd(n[i], set1(-0.693359375f), x[i]);
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) x[i] = fmadd(n[i], set1(2.12194440e-4f), x[i]);
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] = fmadd(set1(0x1.6a23d0p-10f), x[i], set1(0x1.123a20p-7f));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] = fmadd(p[i], x[i], set1(0x1.5558f2p-5f));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] = fmadd(p[i], x[i], set1(0x1.555492p-3f));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] = fmadd(p[i], x[i], set1(0x1.fffffcp-2f));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] = fmadd(mul(x[i], x[i]), p[i], x[i]);
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) x[i] = mul(add(p[i], set1(1.0f)), exp2_of_shifted(shifted[i]));
}
APPROXSVM_INLINE f32v exp_nonpositive(f32v x) {
    f32v one[1] = {x};
    exp_nonpositive(one);
    return one[0];
}

// The smallest integer x for which exp(x) exceeds the smallest normal float64.
constexpr double exp64_min_argument = -708.0;

// Computes exp(x) within 1.5 ULP (relative error below 2^-52) for exp64_min_argument <= x <= 0; smaller x and NaN give
// exp(exp64_min_argument).
//
// The derivation is as above: the high part of ln 2 has 41 bits and |n| <= 1021, so their product is exact. P is the
// minimax polynomial of degree 9 (Remez); with rounded coefficients, its relative error is at most 1.1e-17. The rest of
// the error is rounding: half a ULP in the last sum, a quarter in r + r^2 P(r), and a quarter in r itself.
// cpp/tests/test_simd.cpp compares the results with expl.
template <int N>
APPROXSVM_INLINE void exp_nonpositive(f64v (&x)[N]) {
    const f64v shift = set1(6755399441055744.0);  // 1.5 * 2^52
    f64v shifted[N], n[N], p[N];
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) x[i] = max_or(x[i], set1(exp64_min_argument));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) shifted[i] = fmadd(x[i], set1(0x1.71547652b82fep+0), shift);
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) n[i] = sub(shifted[i], shift);
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) x[i] = fmadd(n[i], set1(-0x1.62e42fefa3p-1), x[i]);
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) x[i] = fmadd(n[i], set1(-0x1.3de6af278ece6p-42), x[i]);
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] =
        fmadd(set1(0x1.ad7f7a4d64e91p-26), x[i], set1(0x1.28ad689c39c2cp-22));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] = fmadd(p[i], x[i], set1(0x1.71df253a81c7bp-19));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] = fmadd(p[i], x[i], set1(0x1.a0199a16e9755p-16));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] = fmadd(p[i], x[i], set1(0x1.a01a012a699b6p-13));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] = fmadd(p[i], x[i], set1(0x1.6c16c184266a0p-10));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] = fmadd(p[i], x[i], set1(0x1.1111111127b9cp-7));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] = fmadd(p[i], x[i], set1(0x1.555555555088cp-5));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] = fmadd(p[i], x[i], set1(0x1.55555555554fap-3));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] = fmadd(p[i], x[i], set1(0x1.000000000000ap-1));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) p[i] = fmadd(mul(x[i], x[i]), p[i], x[i]);
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) x[i] = mul(add(p[i], set1(1.0)), exp2_of_shifted(shifted[i]));
}
APPROXSVM_INLINE f64v exp_nonpositive(f64v x) {
    f64v one[1] = {x};
    exp_nonpositive(one);
    return one[0];
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
