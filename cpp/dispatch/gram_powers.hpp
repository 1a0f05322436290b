// Sums over elementwise powers of a Gram matrix block. The compiler computes norms from these sums
// (approxsvm/expansion/gram.py).
#pragma once

#include <approxsvm/simd/norms.hpp>
#include <cstddef>

namespace approxsvm {

struct GramPowers {
    const double* gram;  // the block, of shape (n_rows, n_columns), row-major
    std::size_t n_rows, n_columns, n_degrees;
    const double *left, *right;  // one weight per row and one per column
    const double* series;        // coefficients of the series, of shape (n_degrees,)
    double* sums;                // output: sum_ij left_i gram_ij^k right_j, of shape (n_degrees,)
    double* const* powers;       // outputs: elementwise gram^k, of shape (n_degrees,), or null
    double* sum_of_series;       // output: elementwise sum_k series_k gram^k, or null
    double* row;                 // workspace for n_columns elements
};

inline namespace APPROXSVM_TARGET {

// Processes one row at a time, so that the powers stay in the L1 cache. Every target adds and rounds in the same order:
// each row is summed in eight lanes, with a summation depth of at most n_columns / 8 + 3; then the row sums are added.
inline void gram_powers(const GramPowers& task) {
    const std::size_t n = task.n_columns;
    for (std::size_t k = 0; k < task.n_degrees; ++k) task.sums[k] = 0.0;
    for (std::size_t i = 0; i < task.n_rows; ++i) {
        const double *g = task.gram + i * n, *right = task.right;
        double* power = task.row;
        for (std::size_t j = 0; j < n; ++j) power[j] = 1.0;
        double* series = task.sum_of_series ? task.sum_of_series + i * n : nullptr;
        for (std::size_t j = 0; series && j < n; ++j) series[j] = 0.0;
        for (std::size_t k = 0; k < task.n_degrees; ++k) {
            for (std::size_t j = 0; k > 0 && j < n; ++j) power[j] *= g[j];
            task.sums[k] += task.left[i] * sum_in_lanes(n, [=](std::size_t j) { return power[j] * right[j]; });
            if (double* kept = task.powers[k]) {
                for (std::size_t l = 0; l < n; ++l) kept[i * n + l] = power[l];
            }
            const double factor = series ? task.series[k] : 0.0;
            for (std::size_t l = 0; factor != 0.0 && l < n; ++l) series[l] += factor * power[l];
        }
    }
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
