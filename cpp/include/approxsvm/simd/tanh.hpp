// Computes tanh(x), several registers of float64 values at a time.
#ifndef APPROXSVM_SIMD_TANH_HPP
#define APPROXSVM_SIMD_TANH_HPP

#include "exp.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Bound on |hyperbolic_tangent(x) - tanh(x)| in unit roundoffs of float64, which is also assumed for C libraries.
constexpr double tanh_error_units = 6.0;

// Computes tanh in place with e = exp(-2 |x|): tanh(x) = +-(1 - e) / (1 + e). The relative error of e is at most 2 u,
// which changes the quotient by at most u, because the slope of the quotient is 2 / (1 + e)^2 in absolute value. The
// difference, the sum and the quotient are each rounded once, which adds 3 u of a value of at most 1. The sign is a
// factor that is rounded only if |x| < 2^-1000, when the quotient is below 2 u. The sum is below 5 u. +-infinity gives
// +-1, and NaN gives NaN. cpp/tests/test_simd.cpp compares the results with tanhl.
template <int N>
APPROXSVM_INLINE void hyperbolic_tangent(f64v (&x)[N]) {
    const f64v one = set1(1.0), nought = set1(0.0);
    f64v e[N];
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) {
        e[i] = mul(set1(-2.0), max_or(x[i], sub(nought, x[i])));
        x[i] = sub(nought, min_or_nan(mul(x[i], set1(0x1p1000)), one));
        x[i] = sub(nought, min_or_nan(x[i], one));
    }
    exp_nonpositive(e);
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) x[i] = mul(x[i], div(sub(one, e[i]), add(one, e[i])));
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
