// Sums that keep what rounding lost.
#pragma once

#include <cmath>

#include "simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// a b rounded, whatever the compiler contracts: for code that goes on to ask what the rounding lost.
APPROXSVM_INLINE double rounded_product(double a, double b) {
    return std::fma(a, b, 0.0);
}

// a + b rounded, and what rounding lost (Knuth).
APPROXSVM_INLINE double two_sum(double a, double b, double& lost) {
    const double s = a + b, of_b = s - a;
    lost = (a - (s - of_b)) + (b - of_b);
    return s;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
