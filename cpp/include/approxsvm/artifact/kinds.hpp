// The kinds of kernels in the format. To add one, add its record here, its number to schema.inc, and its evaluator to
// exact/kinds.hpp.
#ifndef APPROXSVM_ARTIFACT_KINDS_HPP
#define APPROXSVM_ARTIFACT_KINDS_HPP

#include "cosines_section.hpp"
#include "expansions_section.hpp"
#include "polynomial_section.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Indexed by KernelKind.
constexpr KindRules kinds[] = {gaussian_rules, polynomial_rules, cosine_rules, sigmoid_rules};
constexpr std::uint32_t n_kinds = sizeof kinds / sizeof kinds[0];
static_assert(n_kinds == number_of(KernelKind::sigmoid) + 1, "a record for each number up to the last");

// Returns the rules of a kind, or of the first kind if the number is unknown, which the reader refuses.
constexpr const KindRules& rules_of(std::uint32_t kernel) {
    return kinds[kernel < n_kinds ? kernel : 0];
}
inline const KindRules& rules_of(const ModelView& model) {
    return rules_of(number_of(model.kernel));
}

// Indexed by KernelKind.
constexpr Part parts_of_kinds[] = {rbf, polynomials, cosines, polynomials};
static_assert(sizeof parts_of_kinds == sizeof(Part) * n_kinds, "a part for each kind");

// Reads the section that only one kind has.
template <Parts parts>
APPROXSVM_COLD inline Status read_own(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    if constexpr (has(parts, rbf)) {
        if (is_gaussian(model)) return read_gaussian(sections, model, fault);
    }
    if constexpr (has(parts, polynomials)) {
        if (is_of_products(model)) return read_polynomial(sections, model, fault);
    }
    if constexpr (has(parts, cosines)) {
        if (model.kernel == KernelKind::cosine) return read_cosines(sections, model, fault);
    }
    return Status::left_out;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
