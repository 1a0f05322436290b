// Expansions at sparse rows. The center is folded into the constant and the linear term, so the cost depends only on
// the number of nonzeros.
//
//     u = input_scale (z - center)   =>   constant + linear.u + u'Qu = folded_constant + folded_linear.z +
//     scale^2 z'Qz
//
// If the data are far from the origin, the terms are much larger than their sum. Therefore, everything is computed in
// float64, and folding is exact except for the last one or two bits: products of two float32 values are exact in
// float64, and the rounding errors of their sums are accumulated in a second float64.
#ifndef APPROXSVM_EXPANSION_SPARSE_HPP
#define APPROXSVM_EXPANSION_SPARSE_HPP

#include "../simd/compensated.hpp"
#include "decision_function.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Number of doubles that fold_center needs for the folded linear term and its rounding errors.
constexpr std::size_t folded_doubles(std::size_t n_features) {
    return 2 * n_features;
}

APPROXSVM_INLINE void add_exactly(double& sum, double& error, double term) {
    double lost;
    sum = two_sum(sum, term, lost);
    error += lost;
}

// Computes linear - 2 Q m, where m = input_scale * center and Q is the symmetric matrix of the packed triangle, and
// constant - (linear + folded linear).m / 2, which equals constant - linear.m + m'Qm.
APPROXSVM_COLD inline FoldedModel fold_center(const ModelView& model, double* memory) {
    const std::size_t n = model.n_features;
    double* sum = memory;
    double* error = memory + n;
    for (std::size_t i = 0; i < n; ++i) {
        sum[i] = static_cast<double>(model.linear[i]);
        error[i] = 0.0;
    }
    const auto m = [&](std::size_t i) { return static_cast<double>(model.center[i]) * model.input_scale; };
    const auto subtract_entry = [&](double q, std::size_t i,
                                    std::size_t j) {  // off-diagonal entries are doubled
        add_exactly(sum[i], error[i], -q * m(j));
        add_exactly(sum[j], error[j], -q * m(i));
    };
    const float* q = model.quadratic;
    for (std::size_t first = 0; first < n && q; first += panel_rows) {
        const std::size_t last = first + panel_rows < n ? first + panel_rows : n;
        for (std::size_t j = first; j < n; ++j) {
            const std::size_t end = j < last ? j + 1 : last;
            for (std::size_t i = first; i < end; ++i) subtract_entry(static_cast<double>(*q++), i, j);
        }
    }
    double constant = model.expansions[0].constant, constant_error = 0.0, sq_norm = 0.0, sq_error = 0.0,
           linear_sq_norm = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        const double half_m = 0.5 * m(i), v = static_cast<double>(model.linear[i]);
        add_exactly(constant, constant_error, -half_m * v);
        const double product = rounded_product(half_m, sum[i]);
        add_exactly(constant, constant_error, -product);
        constant_error -= std::fma(half_m, sum[i], -product) + half_m * error[i];
        add_exactly(sq_norm, sq_error, m(i) * m(i));
        sum[i] = (sum[i] + error[i]) * model.input_scale;
        linear_sq_norm += sum[i] * sum[i];
    }
    double form_sq_norm = 0.0;  // squared norm of the triangle, which bounds the norm of Q
    for (std::size_t k = 0; k < triangle_size(n) && model.quadratic; ++k) {
        form_sq_norm += static_cast<double>(model.quadratic[k]) * static_cast<double>(model.quadratic[k]);
    }
    const double half_theta = model.gamma / model.input_scale / model.input_scale;
    return {constant + constant_error, sq_norm + sq_error,     half_theta, sum,
            std::sqrt(linear_sq_norm), std::sqrt(form_sq_norm)};
}

// Returns whether a row has so many nonzeros that it is cheaper to evaluate it as a dense row: n_nonzero > n_features /
// sqrt(lanes).
inline bool worth_densifying(std::size_t n_nonzero, std::size_t n_features) {
    return n_nonzero * n_nonzero * static_cast<std::size_t>(lanes) > n_features * n_features;
}

// The nonzeros of one row. Features unknown to the model are accounted for separately, because they affect only the
// norm.
template <class Real, class Index>
struct SparseRow {
    const Real* values;
    const Index* columns;
    std::size_t n_nonzero;
    double unseen_sq_norm;
};

// Removes unknown columns from both ends of a row, and checks that the columns are strictly increasing and the values
// finite. Nonfinite values remain part of the row.
template <class Real, class Index>
inline Status checked_row(const CsrRows<Real, Index>& rows, std::size_t i, std::size_t n_features,
                          SparseRow<Real, Index>& row) {
    const Index begin = rows.row_starts[i], end = rows.row_starts[i + 1];
    Status status = Status::ok;
    row = {rows.values + begin, rows.columns + begin, 0, 0.0};
    double unseen_error = 0.0;  // rounding error of unseen_sq_norm, which the bound does not cover
    for (Index k = begin; k < end; ++k) {
        const Index column = rows.columns[k];
        const Real value = rows.values[k];
        if (k > begin && column <= rows.columns[k - 1]) return Status::unsorted_indices;
        if (!is_finite(value)) status = Status::not_finite;
        if (column >= 0 && static_cast<std::uint64_t>(column) < n_features) {
            ++row.n_nonzero;
        } else {
            add_exactly(row.unseen_sq_norm, unseen_error, static_cast<double>(value) * static_cast<double>(value));
            if (value != Real{0} && row.unseen_sq_norm == 0.0)
                row.unseen_sq_norm = 0x1p-1074;  // not 0, because the feature is present
            if (column < 0) ++row.values, ++row.columns;
        }
    }
    if (is_finite(row.unseen_sq_norm)) row.unseen_sq_norm += unseen_error;  // otherwise the error would be NaN
    return status;
}

// The value of an expansion at a sparse row.
struct SparseValue {
    Value value;
    double half_s;    // half_s before narrowing to float32
    double row_norm;  // ||z||, including unknown features
};

// Evaluates the expansion around the only center at one sparse row, using only the row's nonzeros.
template <class Real, class Index>
inline SparseValue sparse_value(const ModelView& model, const FoldedModel& folded, const SparseRow<Real, Index>& row) {
    const double scale = model.input_scale;
    double linear = 0.0, sq_norm = folded.center_sq_norm + row.unseen_sq_norm * scale * scale;
    double row_sq_norm = row.unseen_sq_norm;
    for (std::size_t k = 0; k < row.n_nonzero; ++k) {
        const std::size_t j = static_cast<std::size_t>(row.columns[k]);
        const double z = static_cast<double>(row.values[k]), x = z * scale;
        linear += folded.linear[j] * z;
        row_sq_norm += z * z;
        sq_norm += x * (x - 2.0 * static_cast<double>(model.center[j]) * scale);
    }
    const double half_s = folded.half_theta * (sq_norm > 0.0 ? sq_norm : 0.0), row_norm = std::sqrt(row_sq_norm);
    const float narrowed = static_cast<float>(half_s);
    if (!(half_s <= -static_cast<double>(exp_min_argument)) || sq_norm != sq_norm) {
        return {{0.0, narrowed, 0.0}, half_s, row_norm};
    }
    const double form =
        model.quadratic ? quadratic_sparse(model.quadratic, model.n_features, row.values, row.columns, row.n_nonzero)
                        : 0.0;
    const double inner = folded.constant + linear + scale * scale * form;
    return {{inner, narrowed, model.expansions[0].output_scale * std::exp(-half_s)}, half_s, row_norm};
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
