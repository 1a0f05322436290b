// Bounds the difference between kernel sums over a few coordinates (exact/rbf_subspace.hpp) and the model's functions.
#ifndef APPROXSVM_BOUNDS_SUBSPACES_HPP
#define APPROXSVM_BOUNDS_SUBSPACES_HPP

#include "../exact/rbf_subspace.hpp"
#include "kernel_sums.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The part of the bounds that depends only on the row and applies to all functions.
struct ResidualOfRow {
    bool is_known;       // true if there is a bound
    double gaussian;     // exp(-gamma ||residual||^2), as computed
    double widened;      // upper bound on the exact exp(-gamma ||residual||^2)
    double of_value;     // relative error of the product with `gaussian`
    double of_total;     // factor of W: distance by which rounding moves the coordinates
    double of_norms;     // factor of the norms of the residual parts
    const float* table;  // the table row of the residual's cell
};

// half_s = gamma ||z - center||^2 is computed from the features; half_s_in, the part within the subspace, is computed
// from the coordinates.
//
// Rounding moves the coordinates, in units of 1 / sqrt(2 gamma), by at most `moved`, which is sqrt(2 half_s) times the
// sum of three errors: of the row, of its inner products with unit vectors, and from the skew of the basis. The sum
// changes by at most W * moved, because the norm of the function on the subspace is at most the whole function's. This
// movement also changes half_s_in, in addition to the rounding of its sum. The exact gamma ||residual||^2 differs from
// the computed one by at most `off`. At the exact s, the tabulated functions are therefore at most exp(2 off) times
// their tabulated values for the cell of `upper`.
inline ResidualOfRow residual_of_row(const SubspaceSums& sums, const float* table, std::size_t n_features,
                                     double half_s, double half_s_in) {
    const double depth = static_cast<double>(inner_product_depth(n_features)) + 4.0,
                 depth_in = static_cast<double>(inner_product_depth(sums.kernels.n_features)) + 4.0;
    const double of_products = std::sqrt(static_cast<double>(sums.kernels.n_features)) * depth;
    const double moved = 1.01 * (unit32 * (1.0 + of_products) + sums.skew) * std::sqrt(2.0 * half_s) + 0x1p-60;
    const double off = 1.01 * (unit32 * (depth * half_s + depth_in * half_s_in) + std::sqrt(2.0 * half_s_in) * moved +
                               0.5 * moved * moved) +
                       0x1p-60;
    ResidualOfRow row{};
    row.is_known = off <= 0x1p-6;
    if (!row.is_known) return row;
    const double outside = half_s > half_s_in ? half_s - half_s_in : 0.0, upper = (outside + off) * (1.0 + 0x1p-20);
    const double widen = 1.0 + 1.05 * (upper - (outside - off));
    row.gaussian = std::exp(-outside);
    row.widened = widen * row.gaussian + 0x1p-1000;
    row.of_value = row.widened * 1.05 * off;
    row.of_total = row.widened * moved;
    row.of_norms = widen;
    row.table = table + cell_of(static_cast<float>(upper)) * n_residual_terms;
    return row;
}

// Bounds the error of `gaussian` * value as an approximation of the decision function without its intercept. `error`
// bounds the difference between the value and the function on the subspace, evaluated at the computed coordinates.
inline double residual_bound(const ResidualOfRow& row, const ResidualNumbers& known, double modulus, double error) {
    if (!row.is_known) return infinity;
    const double cap = known.total * static_cast<double>(row.table[residual_cap]);
    double parts = 0.0;
    for (int t = 0; t < 4; ++t) parts += known.norms[t] * static_cast<double>(row.table[t]);
    parts *= row.of_norms;
    const double rest = parts < cap ? parts : cap;
    return 1.0001 * (rest + row.of_value * modulus + row.of_total * known.total +
                     row.widened * (known.value_error + error)) +
           0x1p-1040;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
