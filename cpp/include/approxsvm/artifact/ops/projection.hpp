// The op x -> (x - center) matrix + bias.
#ifndef APPROXSVM_ARTIFACT_OPS_PROJECTION_HPP
#define APPROXSVM_ARTIFACT_OPS_PROJECTION_HPP

#include <type_traits>

#include "op.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/ops/projection.h"

namespace part {
enum : std::size_t { center, matrix, bias, bias_error };
}  // namespace part

// Returns an upper bound on the norm of column c of a projection's matrix; scaling by the column's maximum absolute
// value avoids overflow.
inline double column_norm(const MapOp& op, std::size_t c) {
    const double* matrix = op.parts[part::matrix] + c;
    const std::size_t n = op.n_inputs, m = op.n_outputs;
    double largest = 0.0, sum = 0.0;
    for (std::size_t j = 0; j < n; ++j) largest = std::fmax(largest, std::fabs(matrix[j * m]));
    for (std::size_t j = 0; j < n && largest > 0.0; ++j) {
        const double share = matrix[j * m] / largest;
        sum += share * share;
    }
    return largest * std::sqrt(sum) * (1.0 + 0x1p-30) + 0x1p-1070;
}

inline double bias_radius(const MapOp& op, std::size_t k) {
    return approxsvm_bias_radius(op.parts[part::bias][k], op.parts[part::bias_error][k], static_cast<int>(op.n_inputs));
}

// Computes sums[r][i] = x_r . column k + i, for `width` columns of the matrix and n_rows rows; constant arguments
// permit unrolling.
template <class Rows, class Width, std::size_t Tile>
APPROXSVM_INLINE void project_tile(const MapOp& op, std::size_t k, Rows n_rows, Width width, const double* x,
                                   std::size_t stride, double (&sums)[map_rows_together][Tile]) {
    const double* row = op.parts[part::matrix] + k;
    for (std::size_t j = 0; j < op.n_inputs; ++j, row += op.n_outputs) {
        for (std::size_t r = 0; r < n_rows; ++r) {
            const double factor = x[r * stride + j];
            for (std::size_t i = 0; i < width; ++i) sums[r][i] += factor * row[i];
        }
    }
}

// Computes y = (x - center) matrix + bias for rows `stride` elements apart; overwrites x and its errors. If the
// source's rounding is included, the source computes x matrix - center matrix.
inline void run_projection(const MapOp& op, const double* column_norms, bool has_errors, bool counts_source,
                           std::size_t n_rows, std::size_t stride, double* x, double* error, double* y,
                           double* y_error) {
    constexpr std::size_t tile = 16;
    const std::size_t n = op.n_inputs, m = op.n_outputs;
    const double *center = op.parts[part::center], *bias = op.parts[part::bias];
    const double depth = 1.01 * (static_cast<double>(n) + 3.0) * unit64;
    double reach[map_rows_together];
    for (std::size_t r = 0; r < n_rows; ++r) {
        double *z = x + r * stride, *e = error + r * stride;
        for (std::size_t j = 0; j < n; ++j) z[j] -= center[j];
        for (std::size_t j = 0; j < n; ++j)
            e[j] = approxsvm_centered_radius(has_errors ? e[j] : 0.0, z[j], static_cast<int>(n));
        for (std::size_t j = 0; counts_source && j < n; ++j) e[j] += 2.0 * depth * std::fabs(center[j]);
        reach[r] = norm_above(e, n);
    }
    for (std::size_t k = 0; k < m; k += tile) {
        const std::size_t width = m - k < tile ? m - k : tile;
        double sums[map_rows_together][tile] = {};
        if (width == tile && n_rows == map_rows_together) {
            project_tile(op, k, std::integral_constant<std::size_t, map_rows_together>{},
                         std::integral_constant<std::size_t, tile>{}, x, stride, sums);
        } else {
            project_tile(op, k, n_rows, width, x, stride, sums);
        }
        for (std::size_t r = 0; r < n_rows; ++r) {
            for (std::size_t i = 0; i < width; ++i) y[r * stride + k + i] = sums[r][i];
        }
    }
    for (std::size_t r = 0; r < n_rows; ++r) {
        double *z = y + r * stride, *e = y_error + r * stride;
        for (std::size_t k = 0; k < m; ++k) {
            z[k] += bias[k];
            e[k] = approxsvm_projected_radius(reach[r], column_norms[k], bias_radius(op, k), z[k]);
        }
    }
}

// Computes one row as if in twice the precision (Ogita, Rump and Oishi 2005, Dot2), for the few rows that need this
// precision. A sum that overflows in this algorithm is computed in plain float64.
inline void run_projection_exactly(const MapOp& op, bool has_errors, const double* x, const double* error, double* y,
                                   double* y_error) {
    constexpr double up = 1.0 + 0x1p-30;
    const std::size_t n = op.n_inputs, m = op.n_outputs;
    const double* center = op.parts[part::center];
    const double depth = 1.01 * (static_cast<double>(n) + 4.0) * unit64;
    for (std::size_t k = 0; k < m; ++k) {
        const double *column = op.parts[part::matrix] + k, bias = op.parts[part::bias][k];
        double plain = 0.0, total = 0.0, lost = 0.0, moduli = 0.0, carried = 0.0;
        for (std::size_t j = 0; j < n; ++j) {
            const double factor = column[j * m];
            double rest_of_x, rest_of_sum;
            const double from_center = two_sum(x[j], -center[j], rest_of_x);
            const double product = rounded_product(from_center, factor);
            const double rest_of_product = std::fma(from_center, factor, -product);
            total = two_sum(total, product, rest_of_sum);
            lost += (rest_of_product + rest_of_sum) + rest_of_x * factor;
            plain += product;
            moduli += std::fabs(product);
            if (has_errors && factor != 0.0) carried += error[j] * std::fabs(factor);
        }
        const double sum = total + lost;
        y[k] = sum + bias;
        // The bias radius covers underflow. Together with 2 u |y|, it also covers the sum's rounding: u (|y| + |bias|).
        const double own = bias_radius(op, k) + 0x1p-52 * std::fabs(y[k]);
        y_error[k] = (carried + 2.02 * depth * depth * moduli + own) * (1.0 + depth) * up;
        if (std::fabs(y[k]) <= largest_double && y_error[k] <= largest_double) continue;
        y[k] = plain + bias;
        y_error[k] = HUGE_VAL;
    }
}

// Adds the error of a float32 source that computes x . column - center . column, or the product with x - center: the
// sum of all absolute values times gamma_(n + 2). If float32 does not represent every element of a column exactly, the
// source's column and sum are float64, and only x - center is rounded to float32. The center may already have been
// subtracted from x; x is overwritten.
inline void add_projection_in_float32(const MapOp& op, const double* column_norms, double* x, const double* error,
                                      bool has_errors, double* y_error) {
    constexpr double least_normal = 0x1p-125;
    const double *center = op.parts[part::center], *has_float32 = column_norms + op.n_outputs;
    const std::size_t n = op.n_inputs;
    for (std::size_t j = 0; j < n; ++j)
        x[j] = std::fabs(x[j]) + 2.0 * std::fabs(center[j]) + (has_errors ? error[j] : 0.0) + least_normal;
    const double n_terms = static_cast<double>(n) + 3.0, reach = norm_above(x, n);
    for (std::size_t k = 0; k < op.n_outputs; ++k) {
        const double most = reach * column_norms[k],
                     off = has_float32[k] > 0.0 ? 1.1 * n_terms * (unit32 * most + tiny32) : 2.0 * unit32 * most;
        y_error[k] = (has_float32[k] > 0.0 ? most : reach) <= largest32 ? y_error[k] + off : HUGE_VAL;
    }
}

struct ProjectionOp : AnyOp {
    static constexpr OpKind kind = OpKind::projection;
    static constexpr bool in_place = false, sums = true;

    static void find_parts(MapOp& op, OpArrays& arrays) {
        op.parts[part::center] = arrays.numbers(op.n_inputs);
        op.parts[part::matrix] = arrays.numbers(ClaimedSize{op.n_inputs} * op.n_outputs);
        op.parts[part::bias] = arrays.numbers(op.n_outputs);
        op.parts[part::bias_error] = arrays.numbers(op.n_outputs);
    }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapOp& op) {
        const std::size_t n = op.n_inputs, m = op.n_outputs;
        return check.finite(field::op_projection, op.parts[part::center], n + n * m + 2 * m) &&
               check.each(field::op_bias_error, op.parts[part::bias_error], m, at_least(0.0));
    }

    // Number of gains: for each matrix column, its norm and a flag that is 1 if float32 represents the column exactly.
    static std::size_t n_gains(const MapOp& op) { return 2 * op.n_outputs; }
    APPROXSVM_COLD static void fill_gains(const MapOp& op, double* gains) {
        const std::size_t n = op.n_inputs, m = op.n_outputs;
        for (std::size_t c = 0; c < m; ++c) {
            gains[c] = column_norm(op, c);
            gains[m + c] = 1.0;
            for (std::size_t j = 0; j < n; ++j) {
                if (!is_float32(op.parts[part::matrix][j * m + c])) gains[m + c] = 0.0;
            }
        }
    }

    static void run(const MapOp& op, const double* gains, const RowsOnTheWay& on) {
        if (!on.exactly) {
            run_projection(op, gains, on.has_errors, on.source.counts_float64, on.n_rows, on.stride, on.x, on.error,
                           on.y, on.y_error);
        }
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            const std::size_t at = r * on.stride;
            double* const x = on.x + at;
            const double* const error = on.error + at;
            if (on.exactly) run_projection_exactly(op, on.has_errors, x, error, on.y + at, on.y_error + at);
            // The contents of x and its error after run_projection() suffice for this bound.
            if (on.source.in_float32)
                add_projection_in_float32(op, gains, x, error, on.has_errors || !on.exactly, on.y_error + at);
        }
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
