// Computes cos(2 pi t), one SIMD register of float32 or float64 values at a time. Angles are in turns, so that the
// range reduction is a subtraction without rounding.
#ifndef APPROXSVM_SIMD_COSINE_HPP
#define APPROXSVM_SIMD_COSINE_HPP

#include "simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Maximum number of turns; adding `shift` to a larger one would not round to an integer.
constexpr double max_turns32 = 0x1p21, max_turns64 = 0x1p50;

// Bound on |cosine_of_turns(t) - cos(2 pi t)| in unit roundoffs of the type, for |t| up to max_turns.
constexpr double cosine_error_units = 8.0;

// The common code for float32 and float64, given P. Let n be the integer nearest to t. Then |r| = |t - n| <= 1/2 is
// exact, because both are multiples of the last place of t. Let a = 1/4 - |r|, which is in [-1/4, 1/4]; then cos(2 pi
// t) = sin(2 pi a) = a P(a^2), where P is the minimax polynomial (Remez) of sin(2 pi a) / a, weighted so that its
// errors count in full only where |sin| is 1. The error of the result is, in units of u:
//
//     a is rounded only if |r| < 1/8, by at most u / 8; its factor |2 pi sin(2 pi r)| is below 4.5 there         0.6
//     the stored coefficients: 0.83 in float32 and 0.5 in float64                                              0.9
//     a^2: half a unit, and |x cos x - sin x| <= 1, x = 2 pi a                                                 0.5
//     the last multiplication and addition of P, two roundings unless fused: 1 + 0.65; those before it         2.0
//     a times P                                                                                                1.0
//
// The sum is below 5.1, and below 8 with all second-order terms. cpp/tests/test_simd.cpp compares the results with
// cosl.
template <int N, class Register, class Real, int Degree>
APPROXSVM_INLINE void cosine_of_turns(Register (&t)[N], Real shift_, const Real (&p)[Degree + 1]) {
    const Register shift = set1(shift_), quarter = set1(Real(0.25)), nought = set1(Real{0});
    Register square[N], sum[N];
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) t[i] = sub(t[i], sub(add(t[i], shift), shift));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) t[i] = sub(quarter, max_or(t[i], sub(nought, t[i])));
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) square[i] = mul(t[i], t[i]);
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) sum[i] = set1(p[Degree]);
    APPROXSVM_UNROLL for (int k = Degree - 1; k >= 0; --k) {
        APPROXSVM_UNROLL for (int i = 0; i < N; ++i) sum[i] = fmadd(sum[i], square[i], set1(p[k]));
    }
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) t[i] = mul(t[i], sum[i]);
}

// Computes cosines in place. Results are undefined beyond max_turns and for nonfinite values.
template <int N>
APPROXSVM_INLINE void cosine_of_turns(f32v (&t)[N]) {
    constexpr float p[] = {0x1.921fb4p+2f, -0x1.4abbb6p+5f, 0x1.46676ep+6f, -0x1.3232fap+6f, 0x1.3c4b30p+5f};
    cosine_of_turns<N, f32v, float, 4>(t, 12582912.0f, p);  // 1.5 * 2^23
}
template <int N>
APPROXSVM_INLINE void cosine_of_turns(f64v (&t)[N]) {
    constexpr double p[] = {0x1.921fb54442d18p+2,  -0x1.4abbce625be51p+5, 0x1.466bc6775a9f7p+6,
                            -0x1.32d2cce62483dp+6, 0x1.50783483f505bp+5,  -0x1.e3074d564120ep+3,
                            0x1.e8f33b07dbcbfp+1,  -0x1.6f74785d42eb9p-1, 0x1.9c87667b36b7ep-4};
    cosine_of_turns<N, f64v, double, 8>(t, 6755399441055744.0, p);  // 1.5 * 2^52
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
