// A block of the kernel matrix, and the remainders of its elementwise roots, computed from inner products. The compiler
// computes norms from such blocks (approxsvm/expansion/kernel_sums.py).
#pragma once

#include <approxsvm/simd/exp.hpp>
#include <cmath>
#include <cstddef>

namespace approxsvm {

// On every target, the number of columns in a block is a multiple of this constant.
constexpr std::size_t kernel_block_columns = 32;

// For scaled support vectors x_i and x_j, K_ij = exp(min(0, x_i.x_j - |x_i|^2 / 2 - |x_j|^2 / 2)).
struct KernelBlock {
    const double* gram;  // x_i.x_j, of shape (n_rows, n_columns), row-major
    std::size_t n_rows, n_columns;
    const double *left, *right;            // |x|^2 / 2 for the rows and for the columns
    const double *left_coef, *right_coef;  // coefficients a_i for the rows and a_j for the columns
    std::size_t n_roots;                   // number of squarings from the first root to K
    // Outputs for theta = 1/2, 1/4, ...: n_roots arrays of the same shape as gram, each of which may be null, with the
    // elements K_ij^theta - e_i e_j (1 + theta x_i.x_j), where e_i = exp(-theta |x_i|^2 / 2).
    float* const* remainders;
    const double *const *left_fades, *const *right_fades;
    double* row_sums;     // output: sum_j K_ij a_j, of shape (n_rows,)
    double* column_sums;  // output: sum_i a_i K_ij, of shape (n_columns,)
    double moduli;        // output: sum_ij |a_i a_j| K_ij
};

inline namespace APPROXSVM_TARGET {

// The first root has a relative error of at most 2u, where u = 2^-53. Each squaring doubles the error and adds u, so
// after three squarings K has a relative error of at most 23u. Roots that are NaN or below exp(-708) become exp(-708).
// The summation depth of a row or column sum is at most its number of terms.
inline void kernel_block(KernelBlock& task) {
    constexpr int n = 4;
    static_assert(kernel_block_columns % (n * lanes64) == 0, "a block is not a whole number of registers");
    const f64v root = set1(std::ldexp(1.0, -static_cast<int>(task.n_roots)));
    for (std::size_t j = 0; j < task.n_columns; ++j) task.column_sums[j] = 0.0;
    task.moduli = 0.0;
    for (std::size_t i = 0; i < task.n_rows; ++i) {
        const f64v left = set1(task.left[i]), own = set1(task.left_coef[i]);
        f64v sums[2] = {zero64(), zero64()};
        for (std::size_t j = 0; j < task.n_columns; j += n * lanes64) {
            const std::size_t at = i * task.n_columns + j;
            f64v x[n];
            APPROXSVM_UNROLL for (int k = 0; k < n; ++k) {
                const f64v argument =
                    sub(sub(load(task.gram + at + k * lanes64), left), load(task.right + j + k * lanes64));
                x[k] = mul(min_or_nan(argument, zero64()), root);
            }
            exp_nonpositive(x);
            for (std::size_t r = task.n_roots; r-- > 0;) {
                if (float* kept = task.remainders[r]) {
                    const f64v theta = set1(std::ldexp(1.0, -1 - static_cast<int>(r)));
                    const f64v fade = set1(task.left_fades[r][i]);
                    double remainder[n * lanes64];
                    APPROXSVM_UNROLL for (int k = 0; k < n; ++k) {
                        const f64v linear = fmadd(theta, load(task.gram + at + k * lanes64), set1(1.0));
                        const f64v fades = mul(fade, load(task.right_fades[r] + j + k * lanes64));
                        store(remainder + k * lanes64, sub(x[k], mul(fades, linear)));
                    }
                    for (int k = 0; k < n * lanes64; ++k) kept[at + k] = static_cast<float>(remainder[k]);
                }
                APPROXSVM_UNROLL for (int k = 0; k < n; ++k) x[k] = mul(x[k], x[k]);
            }
            APPROXSVM_UNROLL for (int k = 0; k < n; ++k) {
                const f64v a = load(task.right_coef + j + k * lanes64);
                double* column = task.column_sums + j + k * lanes64;
                sums[0] = fmadd(x[k], a, sums[0]);
                sums[1] = fmadd(x[k], max_or(a, sub(zero64(), a)), sums[1]);
                store(column, fmadd(own, x[k], load(column)));
            }
        }
        double in_lanes[lanes64], of_row[2] = {};
        for (int k = 0; k < 2; ++k) {
            store(in_lanes, sums[k]);
            for (const double sum : in_lanes) of_row[k] += sum;
        }
        task.row_sums[i] = of_row[0];
        task.moduli += std::fabs(task.left_coef[i]) * of_row[1];
    }
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
