// The sum of a polynomial kernel of degree 1 or 2 as a quadratic form,
//
//     f(z) = constant + linear.z + sum_{i <= j} triangle_ij z_i z_j,
//
// computed in float64. Nothing is truncated, so its values are exact except for rounding, which is bounded by values
// stored in the artifact.
#ifndef APPROXSVM_EXPANSION_FORM_HPP
#define APPROXSVM_EXPANSION_FORM_HPP

#include <cmath>

#include "../model_view.hpp"
#include "../simd/norms.hpp"
#include "../simd/simd.hpp"
#include "quadratic.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Returns whether the model has one decision function per class pair.
inline bool has_classes(const ModelView& model) {
    return model.n_labels > 2 && model.outputs.decision_shape != DecisionShape::each;
}
// Returns whether an ensemble predicts the labels of all its members, one per target.
inline bool is_of_targets(const ModelView& ensemble) {
    return ensemble.combination.columns == Columns::labels;
}
// Number of labels per row, each with a certificate. A regressor has one certificate for all its values.
inline std::size_t n_targets_of(const ModelView& model) {
    return is_of_targets(model) ? model.combination.n_columns : 1;
}
// Number of values per row from which labels and probabilities are computed: decision values, or, if the model averages
// its members' probabilities, their sums.
inline std::size_t n_values_of(const ModelView& model) {
    const bool is_mean = model.outputs.probability == ProbabilityKind::members_mean;
    return is_mean ? n_values_of(model.outputs, model.n_labels) : model.n_decisions;
}
// Returns whether several decision functions, one per class or target, share all terms.
inline bool has_several(const ModelView& model) {
    return model.n_decisions > 1 && !has_classes(model);
}
// The decision value at which a single function's label changes: 0 or a threshold.
inline double label_change(const ModelView& model) {
    const OutputsView& outputs = model.outputs;
    if (outputs.label_rule != LabelRule::value_threshold) return 0.0;
    return outputs.threshold[1] == 0.0 ? outputs.threshold[0] : -outputs.threshold[0];
}
inline bool is_gaussian(const ModelView& model) {
    return model.kernel == KernelKind::gaussian;
}
// Returns whether the kernel is a function of inner products (polynomial or sigmoid). Values with such kernels are
// always exact. These kernels have no float32 engine, so float64 is the first stage (predict/answers/request.hpp), and
// there is memory for one row (predict/prepare/thread_memory.hpp).
inline bool is_of_products(const ModelView& model) {
    return model.kernel == KernelKind::polynomial || model.kernel == KernelKind::sigmoid;
}
// Data of each decision function: the constant; bounds on the rounding errors of the constant, the linear term (norm)
// and the triangle (Frobenius norm of the symmetric matrix); then the linear term, and the triangle in the panels of
// quadratic.hpp, with off-diagonal entries doubled.
namespace form_part {
constexpr std::size_t constant = offsetof(FormHeader, constant) / sizeof(double),
                      constant_error = offsetof(FormHeader, constant_error) / sizeof(double),
                      linear_error = offsetof(FormHeader, linear_error) / sizeof(double),
                      quadratic_error = offsetof(FormHeader, quadratic_error) / sizeof(double),
                      linear = sizeof(FormHeader) / sizeof(double);
}
template <class Integer>
constexpr Integer form_size(Integer n_features, int degree) {
    return form_part::linear + n_features + (degree == 2 ? triangle_size(n_features) : 0);
}

struct PolynomialForm {
    const double* numbers;
    const double* linear;
    const double* triangle;  // coefficients of degree 2; null for degree 1
};
inline PolynomialForm form_of(const ModelView& model, std::size_t decision) {
    const double* numbers = model.form + decision * form_size(model.n_features, model.degree);
    const double* linear = numbers + form_part::linear;
    return {numbers, linear, model.degree == 2 ? linear + model.n_features : nullptr};
}

struct FormNorms {
    double linear, quadratic;  // upper bounds on ||linear|| and on the Frobenius norm of the symmetric matrix
};
APPROXSVM_COLD inline FormNorms norms_of_form(const PolynomialForm& form, std::size_t n_features) {
    FormNorms norms{norm_above(form.linear, n_features), 0.0};
    if (!form.triangle) return norms;
    // ||Q||^2 = (||triangle||^2 + ||diagonal||^2) / 2, because each off-diagonal entry occurs twice in Q and is doubled
    // in the triangle. The computation is relative to the triangle's norm, so that no square overflows or underflows
    // float64.
    const double whole = norm_above(form.triangle, triangle_size(n_features));
    double diagonal_sq = 0.0;
    for (std::size_t j = 0; j < n_features && whole > 0.0; ++j) {
        const std::size_t k = j % panel_rows;
        const double* panel = form.triangle + panel_offset(j / panel_rows, n_features);
        const double share = panel[k * (k + 1) / 2 + k] / whole;
        diagonal_sq += share * share;
    }
    norms.quadratic =
        whole * std::sqrt(0.5 * (1.0 + diagonal_sq)) * (1.0 + (static_cast<double>(n_features) + 8.0) * unit64);
    return norms;
}

// Bounds the error of the form's value for a row, without value_error. `norm` bounds the norms of the row and of the
// exact row; `row_error` bounds the distance between the two.
//
// A product in the form passes through at most 2 n_features + 8 roundings, in any order of summation. The sum of the
// absolute values of all products is at most |constant| + ||linear|| norm + ||Q|| norm^2. Underflow has an effect of
// less than 2^-1050 on a sum of products, and on each product with a coordinate.
inline double form_bound(const PolynomialForm& form, const FormNorms& norms, std::size_t n_features, double norm,
                         double row_error) {
    const double depth = 1.01 * (2.0 * static_cast<double>(n_features) + 8.0) * unit64;
    const double* numbers = form.numbers;
    // Multiply by one norm at a time, because the square of a small norm may underflow to zero.
    const double moduli = std::fabs(numbers[form_part::constant]) + norms.linear * norm + norms.quadratic * norm * norm;
    const double terms = numbers[form_part::constant_error] + numbers[form_part::linear_error] * norm +
                         numbers[form_part::quadratic_error] * norm * norm;
    const double moved =
        row_error != 0.0 ? row_error * (norms.linear + norms.quadratic * (2.0 * norm + row_error)) : 0.0;
    return (depth * moduli + terms + moved) * (1.0 + 1e-9) + 0x1p-1000 * (1.0 + norm);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
