// Votes of class pairs (program/votes.h) in the core. No function allocates memory; arrays belong to the caller.
#ifndef APPROXSVM_OUTPUTS_VOTES_HPP
#define APPROXSVM_OUTPUTS_VOTES_HPP

#include "../model_view.hpp"
#include "../shared_code.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../program/votes.h"

constexpr std::size_t n_pairs(std::size_t n_classes) {
    return n_classes * (n_classes - 1) / 2;
}

// Returns the index of the pair of two classes, given in either order.
constexpr std::size_t pair_of(std::size_t n_classes, std::size_t a, std::size_t b) {
    return a < b ? pair_position(n_classes, a, b) : pair_position(n_classes, b, a);
}

// Calls visit(pair, i, j) for every pair in order.
template <class Visit>
APPROXSVM_INLINE void for_each_pair(std::size_t n_classes, Visit visit) {
    std::size_t pair = 0;
    for (std::size_t i = 0; i < n_classes; ++i) {
        for (std::size_t j = i + 1; j < n_classes; ++j) visit(pair++, i, j);
    }
}

// Returns the index of the largest number; ties go to the first, as in LIBSVM.
APPROXSVM_INLINE std::size_t first_largest(std::size_t n, const double* x) {
    return static_cast<std::size_t>(approxsvm_first_largest(static_cast<int>(n), x));
}

// Returns the label index in a two-class or one-class model by LIBSVM's rule: 0 (the first label) if f > 0, else 1. In
// a one-class model, 0 means an inlier (+1), and 1 an outlier (-1).
inline std::size_t label_position(double decision_value) {
    return decision_value > 0.0 ? 0 : 1;
}

// Returns the class that wins the votes of the pairs' values; `votes` is scratch space for n_classes counts.
inline std::size_t vote_winner(std::size_t n_classes, const double* values, std::uint32_t* votes) {
    return static_cast<std::size_t>(approxsvm_vote_winner(static_cast<int>(n_classes), values, votes));
}

// --- certain winners

// The class of a pair that certainly gets the exact value's vote.
enum class Outcome : std::uint8_t { unknown = approxsvm_unknown, first = approxsvm_first, second = approxsvm_second };

APPROXSVM_INLINE Outcome outcome_of(double value, double bound) {
    return static_cast<Outcome>(approxsvm_outcome(value, bound));
}

// Stores the class `found` in `winner` unless it is -1; returns whether it was stored.
APPROXSVM_INLINE bool is_class(int found, std::size_t& winner) {
    if (found >= 0) winner = static_cast<std::size_t>(found);
    return found >= 0;
}

// Returns whether the same class wins for all values within their bounds, and stores it in `winner`; `tally` is scratch
// space for 2 n_classes counts.
inline bool certain_vote(std::size_t n_classes, const double* values, const double* bounds, std::uint32_t* tally,
                         std::size_t& winner) {
    return is_class(approxsvm_certain_vote(static_cast<int>(n_classes), values, bounds, tally), winner);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
