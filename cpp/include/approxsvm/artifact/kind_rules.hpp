// The format's rules for a kind of kernel. Each kind has a record next to the reader of its section; kinds.hpp lists
// them.
#pragma once

#include "envelope.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

struct KindRules {
    bool expands;                      // about centers, but in mode exact
    bool only_exact;                   // there is mode exact alone
    bool has_support_vectors;          // but in mode approximate
    int max_degree, max_exact_degree;  // of the modes approximate and certified, and of mode exact; 0 for none
    Expected gamma;
    section::Id own;  // the section that other kinds have not, or none
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
