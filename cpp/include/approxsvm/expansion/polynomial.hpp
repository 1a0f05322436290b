// The part of degree k > 2 of an expansion: a homogeneous polynomial in the coordinates u, computed by nested products,
//
//     part_k(u_0 ... u_{n-1}) = sum_i u_i part_{k-1}(u_i ... u_{n-1}),
//
// where part_2 is a quadratic form (quadratic.hpp). The C(n + k - 1, k) coefficients of part_k, one per monomial, are
// stored in the order in which this sum reads them: those for i = 0 come first, and each inner quadratic form is stored
// in panels.
#ifndef APPROXSVM_EXPANSION_POLYNOMIAL_HPP
#define APPROXSVM_EXPANSION_POLYNOMIAL_HPP

#include "quadratic.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// C(n + k - 1, k), the number of monomials of degree k in n variables. If the coefficients are in memory, at 4 bytes
// each and less than 2^31 bytes in total, intermediate products fit in 32 bits. Sizes declared by a file are computed
// in 64 bits.
template <class Integer>
constexpr Integer n_monomials(Integer n, int k) {
    Integer count = 1;
    for (int i = 1; i <= k; ++i) count = count * (n + static_cast<Integer>(i) - 1) / static_cast<Integer>(i);
    return count;
}

// Number of coefficients of degrees 3 through `degree`.
template <class Integer>
constexpr Integer n_higher(Integer n_features, int degree) {
    Integer count = 0;
    for (int k = 3; k <= degree; ++k) count += n_monomials(n_features, k);
    return count;
}

// The number of coefficients of degrees 3 through `degree`, or a value of at least `limit` if there are more; for sizes
// declared by a file.
constexpr std::uint64_t n_higher_limited(std::uint64_t n_features, int degree, std::uint64_t limit) {
    double count = 0.0, term = 1.0;
    for (int k = 1; k <= degree; ++k) {
        term = term * static_cast<double>(n_features + static_cast<std::uint64_t>(k) - 1) / k;
        count += term;
    }
    return count < static_cast<double>(limit) ? static_cast<std::uint64_t>(count) : limit;
}

// Computes part_k for Registers * lanes rows, one per lane. The array `zeros` holds one zero per feature.
template <int Registers>
APPROXSVM_NOINLINE void part_block(const float* coefficients, int k, const float* zeros, std::size_t n_features,
                                   const float* block, float* part) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
    float inner[stride], *const unused = nullptr;
    if (k == 2) return quadratic_block<Registers, false>(coefficients, zeros, n_features, block, part, unused);
    for (std::size_t r = 0; r < stride; ++r) part[r] = 0.0f;
    for (std::size_t i = 0; i < n_features; ++i) {
        const std::size_t n = n_features - i;
        if (k == 3)
            quadratic_block<Registers, false>(coefficients, zeros, n, block, inner, unused);
        else
            part_block<Registers>(coefficients, k - 1, zeros, n, block, inner);
        for (std::size_t r = 0; r < stride; r += lanes) {
            store(part + r, fmadd(load(block + r), load(inner + r), load(part + r)));
        }
        coefficients += n_monomials(n, k - 1);
        block += stride;
    }
}

// Returns lanes whose sum is part_k of one row. Each level sums n parts, as in a block; the lanes are added last.
inline f32x8 part_lanes(const float* coefficients, int k, const float* zeros, std::size_t n_features, const float* u) {
    f32x8 total = set1x8(0.0f);
    if (k == 2) return quadratic_lanes<false>(coefficients, zeros, n_features, u, total);
    for (std::size_t i = 0; i < n_features; ++i) {
        const std::size_t n = n_features - i;
        total = fmadd8(set1x8(u[i]), part_lanes(coefficients, k - 1, zeros, n, u + i), total);
        coefficients += n_monomials(n, k - 1);
    }
    return total;
}

// Returns part_k of one row.
inline float part_row(const float* coefficients, int k, const float* zeros, std::size_t n_features, const float* u) {
    APPROXSVM_COUNT_WORK(static_cast<double>(n_monomials(n_features, k)));
    return sum8(part_lanes(coefficients, k, zeros, n_features, u));
}

// Computes part_k of a row in float64 from the row's nonzeros values[a] with columns[a] >= first; this takes about
// n_nonzero^k / k! multiply-adds. The variables are the columns first ... n_features - 1.
template <class Real, class Index>
APPROXSVM_NOINLINE inline double part_sparse(const float* coefficients, int k, std::size_t first,
                                             std::size_t n_features, const Real* values, const Index* columns,
                                             std::size_t n_nonzero) {
    const std::size_t n = n_features - first;
    if (k == 2) return quadratic_sparse(coefficients, n, values, columns, n_nonzero, first);
    const std::size_t all = n_monomials(n, k);
    double total = 0.0;
    for (std::size_t a = 0; a < n_nonzero; ++a) {
        const std::size_t column = static_cast<std::size_t>(columns[a]);
        const float* inner = coefficients + (all - n_monomials(n_features - column, k));
        total += static_cast<double>(values[a]) *
                 part_sparse(inner, k - 1, column, n_features, values + a, columns + a, n_nonzero - a);
    }
    return total;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
