// Bounds for expansions that are not in the table of certificate.hpp.
#ifndef APPROXSVM_BOUNDS_EXPANSIONS_HPP
#define APPROXSVM_BOUNDS_EXPANSIONS_HPP

#include "../expansion/sparse.hpp"
#include "certificate.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Bounds the sum of the parts from degree 3 up to the remainder: exp(-s/2) sqrt(v'G v) times the square root of sum_k
// 2^(k-3) s^(k-1) / k!, where v = sqrt(2 gamma) (z - center) and ||v||^2 = s.
inline double direction_bound(const ModelView& model, const ExpansionNumbers& numbers, float form, float half_s) {
    const double widen = s_error(model.n_features);
    const double s = 2.0 * static_cast<double>(half_s) * (1.0 + widen);
    const double theta = 2.0 * static_cast<double>(model.half_theta) * (1.0 + 0x1p-20);
    const double computed = form > 0.0f ? theta * numbers.direction_scale * static_cast<double>(form) : 0.0;
    const double rounding =
        1.01 * unit32 * (form_depth(model.n_features, 2) + 4.0) * numbers.direction_trace + numbers.direction_error;
    const double gaussian = std::exp(-static_cast<double>(half_s) * (1.0 - widen));
    double sum = 1.0;
    for (int k = model.first_remainder_degree - 1; k > 3; --k) sum = 1.0 + sum * 2.0 * s / k;
    return 1.000001 * gaussian * s * std::sqrt((computed + rounding * s) * sum / 6.0);
}

// Bounds the float64 rounding error for a sparse row (docs/derivation.md, Prediction). The bound is infinite if the
// error of s is too large.
inline double sparse_rounding_bound(const ModelView& model, const FoldedModel& folded, const SparseValue& row,
                                    std::size_t n_nonzero) {
    const double n = static_cast<double>(n_nonzero), scaled_norm = model.input_scale * row.row_norm;
    const double center_norm = std::sqrt(folded.center_sq_norm) / model.input_scale, reach = row.row_norm + center_norm;
    const double s_uncertainty = 4.0 * model.gamma * (n + 5.0) * unit64 * reach * reach;
    const double s = 2.0 * row.half_s;
    if (!(s_uncertainty <= 0x1p-12 * (s > 0x1p-20 ? s : 0x1p-20))) return infinity;
    if (row.half_s > -static_cast<double>(exp_min_argument)) return 0.0;  // the table is valid for such rows
    const double moduli = std::fabs(folded.constant) + folded.linear_norm * row.row_norm +
                          folded.quadratic_norm * scaled_norm * scaled_norm;
    double kept = 0.0;
    for (int k = 0; k <= model.degree; ++k) kept += model.expansions[0].norms[k];
    return 1.01 * (unit64 * (2.0 * n + 8.0) * row.value.gaussian * moduli + std::expm1(s_uncertainty) * kept);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
