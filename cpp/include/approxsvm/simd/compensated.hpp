// Sums and products with their rounding errors.
#ifndef APPROXSVM_SIMD_COMPENSATED_HPP
#define APPROXSVM_SIMD_COMPENSATED_HPP

#include <cmath>

#include "simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Returns the rounded product a b, even if the compiler contracts expressions, for code that computes its rounding
// error.
APPROXSVM_INLINE double rounded_product(double a, double b) {
    return std::fma(a, b, 0.0);
}

// Returns the rounded sum a + b and its rounding error (Knuth).
APPROXSVM_INLINE double two_sum(double a, double b, double& lost) {
    const double s = a + b, of_b = s - a;
    lost = (a - (s - of_b)) + (b - of_b);
    return s;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
