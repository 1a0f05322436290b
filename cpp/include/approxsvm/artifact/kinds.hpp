// The kinds of kernels that the format has: who adds one adds its record here, schema.inc its number, and
// exact/kinds.hpp what evaluates it.
#pragma once

#include "cosines_section.hpp"
#include "expansions_section.hpp"
#include "polynomial_section.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// By KernelKind.
constexpr KindRules kinds[] = {gaussian_rules, polynomial_rules, cosine_rules, sigmoid_rules};
constexpr std::uint32_t n_kinds = sizeof kinds / sizeof kinds[0];
static_assert(n_kinds == number_of(KernelKind::sigmoid) + 1, "a record for each number up to the last");

// The rules of a kind; for an unknown number, which the reader refuses, those of the first.
constexpr const KindRules& rules_of(std::uint32_t kernel) {
    return kinds[kernel < n_kinds ? kernel : 0];
}
inline const KindRules& rules_of(const ModelView& model) {
    return rules_of(number_of(model.kernel));
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
