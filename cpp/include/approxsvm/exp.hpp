// exp(x) for x <= 0, a register of float32 at a time.
#pragma once

#include "simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Below this argument exp(x) is within a factor two of the smallest normal float32.
constexpr float exp_min_argument = -87.33f;

// exp(x) within 1.5 ULP (relative error below 2^-23) for exp_min_argument <= x <= 0; smaller x and NaN give
// exp(exp_min_argument). Arguments are clamped first, so that the range reduction cannot overflow.
//
// x = n ln 2 + r with |r| <= ln 2 / 2 (Cody and Waite: the high part of ln 2 has so few bits that n times it
// is exact, with or without fused multiply-add), exp(r) = 1 + (r + r^2 P(r)), P of degree 4 by weighted
// minimax; the relative error of the polynomial is 3.1e-9. cpp/tests/test_kernels.cpp walks through every
// float32 of the range.
APPROXSVM_INLINE f32v exp_nonpositive(f32v x) {
    x = max_or(x, set1(exp_min_argument));
    const f32v shift = set1(12582912.0f);  // 1.5 * 2^23: adding it rounds to the nearest integer
    const f32v shifted = fmadd(x, set1(1.44269504f), shift);
    const f32v n = sub(shifted, shift);
    const f32v r = fmadd(n, set1(2.12194440e-4f), fmadd(n, set1(-0.693359375f), x));
    f32v p = set1(0x1.6a23d0p-10f);
    p = fmadd(p, r, set1(0x1.123a20p-7f));
    p = fmadd(p, r, set1(0x1.5558f2p-5f));
    p = fmadd(p, r, set1(0x1.555492p-3f));
    p = fmadd(p, r, set1(0x1.fffffcp-2f));
    p = fmadd(mul(r, r), p, r);
    return mul(add(p, set1(1.0f)), exp2_of_shifted(shifted));
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
