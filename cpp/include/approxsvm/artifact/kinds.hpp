// The kernel kinds in the format. To add one, add its record to this file, its number to schema.inc, and its type to
// exact/kinds.hpp.
#ifndef APPROXSVM_ARTIFACT_KINDS_HPP
#define APPROXSVM_ARTIFACT_KINDS_HPP

#include "envelope.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The format's constraints for a kernel kind.
struct KindRules {
    bool expands;                      // models are expanded around centers, except in "exact" mode
    bool only_exact;                   // models exist only in "exact" mode
    bool has_support_vectors;          // models contain support vectors, except in "approximate" mode
    int max_degree, max_exact_degree;  // maximum degrees in other modes and in "exact" mode; 0 if none
    Expected gamma;
    Part part;  // the part that a program needs for the kind
};

// The constraints of all kinds, indexed by KernelKind.
constexpr KindRules kinds[] = {{true, false, true, max_degree, 0, finite_from_0, rbf},
                               {false, false, true, max_form_degree, max_kernel_degree, finite_number, polynomials},
                               {false, true, false, 0, 0, equal_to(0.0), cosines},
                               {false, true, true, 0, 0, finite_number, polynomials}};
constexpr std::uint32_t n_kinds = sizeof kinds / sizeof kinds[0];
static_assert(n_kinds == number_of(KernelKind::sigmoid) + 1, "a record for each number up to the last");

// Returns a kind's constraints, or the first kind's if the number is unknown; the reader rejects unknown kinds.
constexpr const KindRules& rules_of(std::uint32_t kernel) {
    return kinds[kernel < n_kinds ? kernel : 0];
}
inline const KindRules& rules_of(const ModelView& model) {
    return rules_of(number_of(model.kernel));
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
