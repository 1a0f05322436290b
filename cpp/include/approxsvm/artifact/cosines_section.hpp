// Section cosines: the coefficients, phases and frequencies of sum_j coef_j cos(frequency_j.z + phase_j).
#pragma once

#include "envelope.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

inline bool is_cosine(const ModelView& model) {
    return model.kernel == KernelKind::cosine;
}

// Of a model whose n_features is known. The size of the section says how many cosines there are.
inline Status read_cosines(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    const Section& section = sections[section::cosines];
    const std::size_t numbers_of_each = model.n_features + 2;  // at most 2^20 + 2
    const std::size_t bytes_of_each = numbers_of_each * sizeof(double), n = section.bytes / bytes_of_each;
    Check check(fault, section::cosines, Status::bad_section), values(fault, section::cosines, Status::bad_coefficient);
    is_where_wanted(check, section, model, true);
    check(field::any_size, section.bytes, at_least(bytes_of_each));
    if (!check(field::any_size, section.bytes, Expected{Rule::multiple_of, stored(bytes_of_each), {}}))
        return check.status();
    const double* const numbers = reinterpret_cast<const double*>(sections.at(section::cosines));
    model.n_cosines = n;
    model.cosine_coef = numbers;
    model.phases = numbers + n;
    model.frequencies = numbers + 2 * n;
    values.finite(field::any_number, numbers, n * numbers_of_each);
    values.within(field::cosines_phase, model.phases, n, max_phase);
    return values.status();
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
