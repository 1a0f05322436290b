// Computes labels from decision values by LIBSVM's votes, and which labels are certain if some values are not.
//
// A one-vs-one model of n_classes classes has a decision function per pair (i, j), i < j, in the order (0, 1), (0, 2),
// ..., (1, 2), ...; a positive value is a vote for i, any other for j. The class with the most votes wins; ties go to
// the first. Classes are positions in the model's list of labels.
//
// Nothing allocates: arrays of n_classes and n_pairs(n_classes) numbers belong to the caller.
#pragma once

#include "../model_view.hpp"
#include "../simd/simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t n_pairs(std::size_t n_classes) {
    return n_classes * (n_classes - 1) / 2;
}

// Calls visit(pair, i, j) for every pair in order.
template <class Visit>
APPROXSVM_INLINE void for_each_pair(std::size_t n_classes, Visit visit) {
    std::size_t pair = 0;
    for (std::size_t i = 0; i < n_classes; ++i) {
        for (std::size_t j = i + 1; j < n_classes; ++j) visit(pair++, i, j);
    }
}

// Position of the first largest number, as in LIBSVM.
template <class Number>
APPROXSVM_INLINE std::size_t first_largest(std::size_t n, const Number* x) {
    std::size_t best = 0;
    for (std::size_t c = 1; c < n; ++c) {
        if (x[c] > x[best]) best = c;
    }
    return best;
}

// --- votes

// For two classes and one-class models, by LIBSVM's rule: f > 0 is position 0, the first label, any other value 1. In a
// one-class model 0 means an inlier (+1), 1 an outlier (-1).
inline std::size_t label_position(double decision_value) {
    return decision_value > 0.0 ? 0 : 1;
}

// The class that the values elect. Fills `votes`, (n_classes,) of any integer type.
template <class Count>
inline std::size_t vote_winner(std::size_t n_classes, const double* values, Count* votes) {
    for (std::size_t c = 0; c < n_classes; ++c) votes[c] = 0;
    for_each_pair(n_classes,
                  [=](std::size_t pair, std::size_t i, std::size_t j) { ++votes[values[pair] > 0.0 ? i : j]; });
    return first_largest(n_classes, votes);
}

// --- certain winners

// Values of the pairs of a row: |values[p] - exact value| <= bounds[p] if evaluated[p]. A bound of 0 means that the
// value is final. If `evaluated` is null, all pairs are evaluated.
struct PairKnowledge {
    const double* values;
    const double* bounds;
    const std::uint8_t* evaluated;
};

enum class Outcome : std::uint8_t { unknown, first, second };

// The class of a pair for which the exact value votes, if that is certain. Comparisons are false for NaN, and an
// infinite value proves nothing.
APPROXSVM_INLINE Outcome outcome_of(double value, double bound) {
    if (!(bound >= 0.0 && is_finite(value))) return Outcome::unknown;
    if (value > bound) return Outcome::first;
    return value <= -bound ? Outcome::second : Outcome::unknown;
}
APPROXSVM_INLINE Outcome outcome_of(const PairKnowledge& known, std::size_t pair) {
    if (known.evaluated != nullptr && !known.evaluated[pair]) return Outcome::unknown;
    return outcome_of(known.values[pair], known.bounds[pair]);
}

// Fills the certain votes of each class and its maximum number of votes, (n_classes,) each, from outcome_of(pair).
template <class OutcomeOf, class Count>
inline void tally_outcomes(std::size_t n_classes, const OutcomeOf& outcome_of, Count* certain, Count* possible) {
    for (std::size_t c = 0; c < n_classes; ++c) certain[c] = possible[c] = 0;
    for_each_pair(n_classes, [&](std::size_t pair, std::size_t i, std::size_t j) {
        const Outcome outcome = outcome_of(pair);
        certain[i] += outcome == Outcome::first;
        certain[j] += outcome == Outcome::second;
        possible[i] += outcome != Outcome::second;
        possible[j] += outcome != Outcome::first;
    });
}

template <class Count>
inline void tally_votes(std::size_t n_classes, const PairKnowledge& known, Count* certain, Count* possible) {
    tally_outcomes(n_classes, [&](std::size_t pair) { return outcome_of(known, pair); }, certain, possible);
}

// Whether class w precedes class c for every outcome of the unknown pairs. The worst case is exact: w loses all its
// unknown pairs and c wins all of its own; (w, c) can be one of both.
template <class Count>
APPROXSVM_INLINE bool precedes(std::size_t w, Count certain_of_w, std::size_t c, Count possible_of_c) {
    return certain_of_w > possible_of_c || (certain_of_w == possible_of_c && w < c);
}

// Whether the same class wins for every outcome of the unknown pairs, and which one.
template <class Count>
inline bool certain_winner(std::size_t n_classes, const Count* certain, const Count* possible, std::size_t& winner) {
    if (n_classes == 0) return false;
    const std::size_t w = first_largest(n_classes, certain);  // no other class can precede all
    for (std::size_t c = 0; c < n_classes; ++c) {
        if (c != w && !precedes(w, certain[w], c, possible[c])) return false;
    }
    winner = w;
    return true;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
