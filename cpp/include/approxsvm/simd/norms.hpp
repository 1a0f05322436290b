// Sums of squares and of products, and their rounding.
#ifndef APPROXSVM_SIMD_NORMS_HPP
#define APPROXSVM_SIMD_NORMS_HPP

#include <cmath>
#include <cstddef>

#include "simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr double unit32 = 0x1p-24, unit64 = 0x1p-53;  // unit roundoffs

// Inner products are summed in chunks of this many features, which reduces the rounding error. With few features,
// chunks are shorter.
constexpr std::size_t chunk_features(std::size_t n_features) {
    return n_features <= 512 ? 16 : 32;
}

// The summation depth (the number of roundings) of an inner product of n_features terms, with or without fused
// multiply-add, for blocks, single rows and sparse rows. The argument of exp then has an error of at most u
// (inner_product_depth + 5) half_theta (max ||xh_i|| + ||u||)^2, where u is the unit roundoff of Real, if half_theta
// ||u||^2 was computed with at most this depth.
constexpr std::size_t inner_product_depth(std::size_t n_features) {
    const std::size_t chunk = chunk_features(n_features);
    return (n_features < chunk ? n_features : chunk) + (n_features + chunk - 1) / chunk;
}

// Returns term(0) + ... + term(n - 1), summed in eight lanes, which are then added in pairs; the order is the same on
// every target.
template <class Term>
APPROXSVM_INLINE double sum_in_lanes(std::size_t n, const Term& term) {
    constexpr std::size_t width = 8;
    double sums[width] = {};
    std::size_t j = 0;
    for (; j + width <= n; j += width) {
        for (std::size_t l = 0; l < width; ++l) sums[l] += term(j + l);
    }
    for (std::size_t l = 0; j + l < n; ++l) sums[l] += term(j + l);
    for (std::size_t half = width / 2; half > 0; half /= 2) {
        for (std::size_t l = 0; l < half; ++l) sums[l] += sums[l + half];
    }
    return sums[0];
}

// Returns the summation depth (the number of roundings) of a sum of n products accumulated in lanes.
constexpr std::size_t depth_in_lanes(std::size_t n) {
    return n / 8 + 5;
}

// Returns the sum of n_terms squares x[k stride]^2, in float64, with a smaller summation depth than
// inner_product_depth(n_terms).
template <class Real>
inline double sq_norm(const Real* x, std::size_t n_terms, std::size_t stride = 1) {
    const std::size_t chunk = chunk_features(n_terms);
    const auto square = [=](std::size_t k) {
        const double value = static_cast<double>(x[k * stride]);
        return value * value;
    };
    double total = 0.0;
    for (std::size_t k = 0; k < n_terms;) {
        const std::size_t end = n_terms - k < chunk ? n_terms : k + chunk;
        double part[4] = {0.0, 0.0, 0.0, 0.0};
        for (; k + 4 <= end; k += 4) {
            for (std::size_t i = 0; i < 4; ++i) part[i] += square(k + i);
        }
        for (; k < end; ++k) part[0] += square(k);
        total += (part[0] + part[1]) + (part[2] + part[3]);
    }
    return total;
}

// Returns an upper bound on the Euclidean norm of n values, given the sum of their squares, `sq_norm`, computed with a
// summation depth of at most n + 4. If squares overflow or lose digits, the bound is computed from the values
// themselves, which are `stride` elements apart. The bound is infinite if a value is NaN.
inline double norm_above(double sq_norm, const double* x, std::size_t n, std::size_t stride = 1) {
    const double widen = 1.0 + 2.0 * (static_cast<double>(n) + 8.0) * unit64;
    if (sq_norm > 0x1p-900 && sq_norm < 0x1p1000) return std::sqrt(sq_norm) * widen;
    double largest = 0.0;
    for (std::size_t j = 0; j < n; ++j) {
        const double modulus = std::fabs(x[j * stride]);
        if (modulus != modulus) return HUGE_VAL;
        if (modulus > largest) largest = modulus;
    }
    if (!(largest > 0.0 && largest <= largest_double)) return largest == 0.0 ? 0.0 : HUGE_VAL;
    int exponent;
    std::frexp(largest, &exponent);
    double scaled = 0.0;
    for (std::size_t j = 0; j < n; ++j) {
        const double part = std::ldexp(x[j * stride], -exponent);
        scaled += part * part;
    }
    // Add one denormal unit, because the result may be denormal. The slack in `widen` covers underflow of squares.
    return std::ldexp(std::sqrt(scaled) * widen, exponent) + 0x1p-1074;
}
inline double norm_above(const double* x, std::size_t n, std::size_t stride = 1) {
    return norm_above(sq_norm(x, n, stride), x, n, stride);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
