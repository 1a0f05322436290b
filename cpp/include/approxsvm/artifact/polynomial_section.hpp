// Section polynomial: coef0 of kernels of inner products, and the forms of polynomial kernels.
#ifndef APPROXSVM_ARTIFACT_POLYNOMIAL_SECTION_HPP
#define APPROXSVM_ARTIFACT_POLYNOMIAL_SECTION_HPP

#include "../expansion/form.hpp"
#include "kind_rules.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Reads coef0, the relative error of the coefficients and, except in mode exact, the form of each decision function.
APPROXSVM_COLD inline Status read_polynomial(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    Check check(fault, section::polynomial, Status::bad_section),
        values(fault, section::polynomial, Status::bad_coefficient);
    // There are at most 2^19 forms of less than 2^40 numbers.
    const ClaimedSize size = model.mode == Mode::exact ? 0 : form_size(ClaimedSize{model.n_features}, model.degree);
    const ClaimedSize n_bytes = sizeof(PolynomialHeader) + 8 * model.n_decisions * size;
    if (!has_size(check, sections[section::polynomial], model, true, n_bytes)) return check.status();
    const double* numbers = reinterpret_cast<const double*>(sections.at(section::polynomial));
    if (!values.finite(field::any_number, numbers, static_cast<std::size_t>(n_bytes / 8))) return values.status();
    const PolynomialHeader header = read_at<PolynomialHeader>(sections.at(section::polynomial), 0);
    model.coef0 = header.coef0;
    model.coef_error = header.coef_error;
    model.form = size == 0 ? nullptr : numbers + sizeof(PolynomialHeader) / sizeof(double);
    values(field::polynomial_coef_error, header.coef_error, at_least(0.0));
    for (std::size_t k = 0; model.form && k < model.n_decisions; ++k) {
        const double* form = model.form + k * static_cast<std::size_t>(size);
        values(field::form_constant_error, form[form_part::constant_error], at_least(0.0), k);
        values(field::form_linear_error, form[form_part::linear_error], at_least(0.0), k);
        values(field::form_quadratic_error, form[form_part::quadratic_error], at_least(0.0), k);
    }
    return values.status();
}

constexpr KindRules polynomial_rules = {/* expands */ false,
                                        /* only_exact */ false,
                                        /* has_support_vectors */ true,
                                        /* max_degree */ max_form_degree,
                                        /* max_exact_degree */ max_kernel_degree,
                                        /* gamma */ finite_number,
                                        section::polynomial};

// Only coef0 and coef_error.
constexpr KindRules sigmoid_rules = {/* expands */ false,
                                     /* only_exact */ true,
                                     /* has_support_vectors */ true,
                                     /* max_degree */ 0,
                                     /* max_exact_degree */ 0,
                                     /* gamma */ finite_number,
                                     section::polynomial};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
