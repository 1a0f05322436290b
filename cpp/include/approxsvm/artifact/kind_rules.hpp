// The format's rules for a kind of kernel. The reader of each kind's section has a record of them; kinds.hpp lists the
// records.
#ifndef APPROXSVM_ARTIFACT_KIND_RULES_HPP
#define APPROXSVM_ARTIFACT_KIND_RULES_HPP

#include "envelope.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

struct KindRules {
    bool expands;                      // around centers, except in mode exact
    bool only_exact;                   // mode exact is the only mode
    bool has_support_vectors;          // except in mode approximate
    int max_degree, max_exact_degree;  // for the modes approximate and certified, and for mode exact; 0 for none
    Expected gamma;
    section::Id own;  // the section that only this kind has, or none
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
