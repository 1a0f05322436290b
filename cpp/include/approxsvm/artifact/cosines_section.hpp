// Section cosines: the coefficients, phases and frequencies of sum_j coef_kj cos(frequency_j.z + phase_j).
#ifndef APPROXSVM_ARTIFACT_COSINES_SECTION_HPP
#define APPROXSVM_ARTIFACT_COSINES_SECTION_HPP

#include "kind_rules.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

struct CosinesView {
    std::size_t n;
    const double* coef;         // (n_decisions, n)
    const double* phases;       // (n,)
    const double* frequencies;  // (n, n_features)
};

// Points into the section of a validated model of this kind.
inline CosinesView cosines_of(const ModelView& model) {
    const double* const numbers = reinterpret_cast<const double*>(model.sections[section::cosines]);
    const std::size_t n = model.n_terms, n_coef = model.n_decisions * n;
    return {n, numbers, numbers + n_coef, numbers + n_coef + n};
}

// Reads the section of a model whose n_features and n_decisions are known. The size of the section determines the
// number of cosines.
APPROXSVM_COLD inline Status read_cosines(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    const Section& section = sections[section::cosines];
    const std::size_t numbers_of_each = model.n_features + 1 + model.n_decisions;  // per cosine, less than 2^21
    const std::size_t bytes_of_each = numbers_of_each * sizeof(double);
    Check check(fault, section::cosines, Status::bad_section), values(fault, section::cosines, Status::bad_coefficient);
    check(field::any_size, section.bytes, at_least(bytes_of_each));
    if (!check(field::any_size, section.bytes, Expected{Rule::multiple_of, stored(bytes_of_each), {}}))
        return check.status();
    model.n_terms = section.bytes / bytes_of_each;
    const CosinesView cosines = cosines_of(model);
    values.finite(field::any_number, cosines.coef, cosines.n * numbers_of_each);
    values.within(field::cosines_phase, cosines.phases, cosines.n, max_phase);
    return values.status();
}

constexpr KindRules cosine_rules = {/* expands */ false,
                                    /* only_exact */ true,
                                    /* has_support_vectors */ false,
                                    /* max_degree */ 0,
                                    /* max_exact_degree */ 0,
                                    /* gamma */ equal_to(0.0),
                                    section::cosines};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
