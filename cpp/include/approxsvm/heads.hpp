// How decision values become labels and probabilities, by LIBSVM's rules, and which labels are certain although some
// values are not.
//
// A one-vs-one model of n_classes classes has a decision function per pair (i, j), i < j, in the order (0, 1), (0, 2),
// ..., (1, 2), ...; a positive value is a vote for i, any other for j, and the class with the most votes wins, the
// first of them if there are several. Classes are positions in the model's list of labels.
//
// No heap: arrays of n_classes and n_pairs(n_classes) numbers are the caller's.
#pragma once

#include <cmath>

#include "simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t n_pairs(std::size_t n_classes) {
    return n_classes * (n_classes - 1) / 2;
}

// The position of the pair (i, j), i < j < n_classes.
constexpr std::size_t pair_position(std::size_t n_classes, std::size_t i, std::size_t j) {
    return i * (2 * n_classes - i - 1) / 2 + (j - i - 1);
}

// Calls visit(pair, i, j) for every pair in order.
template <class Visit>
APPROXSVM_INLINE void for_each_pair(std::size_t n_classes, Visit visit) {
    std::size_t pair = 0;
    for (std::size_t i = 0; i < n_classes; ++i) {
        for (std::size_t j = i + 1; j < n_classes; ++j) visit(pair++, i, j);
    }
}

// The first of the largest, as LIBSVM finds it.
template <class Number>
APPROXSVM_INLINE std::size_t first_largest(std::size_t n, const Number* x) {
    std::size_t best = 0;
    for (std::size_t c = 1; c < n; ++c) {
        if (x[c] > x[best]) best = c;
    }
    return best;
}

// --- votes

// Of two classes, and of a one-class model: LIBSVM's rule, f > 0 is the first label and 0 the second. For a one-class
// model 0 means an inlier (+1), 1 an outlier (-1).
inline std::size_t label_position(double decision_value) {
    return decision_value > 0.0 ? 0 : 1;
}

// The class that the values elect. `votes`, (n_classes,), is filled.
inline std::size_t vote_winner(std::size_t n_classes, const double* values, std::uint32_t* votes) {
    for (std::size_t c = 0; c < n_classes; ++c) votes[c] = 0;
    for_each_pair(n_classes,
                  [=](std::size_t pair, std::size_t i, std::size_t j) { ++votes[values[pair] > 0.0 ? i : j]; });
    return first_largest(n_classes, votes);
}

// --- certain winners

// What is known of the pairs of a row: |values[p] - exact value| <= bounds[p] where evaluated[p]. A bound of 0 says
// that the value is final. A null `evaluated` says that all pairs are.
struct PairKnowledge {
    const double* values;
    const double* bounds;
    const std::uint8_t* evaluated;
};

enum class Outcome { unknown, first, second };

// Which class of a pair the exact value votes for, if that is certain. Every comparison fails for NaN, and an infinite
// value proves nothing.
APPROXSVM_INLINE Outcome outcome_of(double value, double bound) {
    if (!(bound >= 0.0 && is_finite(value))) return Outcome::unknown;
    if (value > bound) return Outcome::first;
    return value <= -bound ? Outcome::second : Outcome::unknown;
}
APPROXSVM_INLINE Outcome outcome_of(const PairKnowledge& known, std::size_t pair) {
    if (known.evaluated != nullptr && !known.evaluated[pair]) return Outcome::unknown;
    return outcome_of(known.values[pair], known.bounds[pair]);
}

// Fills the votes that each class is certain of and the most it can still get, (n_classes,) each.
inline void tally_votes(std::size_t n_classes, const PairKnowledge& known, std::uint32_t* certain,
                        std::uint32_t* possible) {
    for (std::size_t c = 0; c < n_classes; ++c) certain[c] = possible[c] = 0;
    for_each_pair(n_classes, [&](std::size_t pair, std::size_t i, std::size_t j) {
        const Outcome outcome = outcome_of(known, pair);
        certain[i] += outcome == Outcome::first;
        certain[j] += outcome == Outcome::second;
        possible[i] += outcome != Outcome::second;
        possible[j] += outcome != Outcome::first;
    });
}

// Class w comes before class c however the unknown pairs turn out, if w keeps only its certain votes. This is exact for
// two classes: c may win all its unknown pairs while w loses all of its own, (w, c) being one of both.
APPROXSVM_INLINE bool precedes(std::size_t w, std::uint32_t certain_of_w, std::size_t c, std::uint32_t possible_of_c) {
    return certain_of_w > possible_of_c || (certain_of_w == possible_of_c && w < c);
}

// Whether the same class wins for every outcome of the unknown pairs, and which.
inline bool certain_winner(std::size_t n_classes, const std::uint32_t* certain, const std::uint32_t* possible,
                           std::size_t& winner) {
    if (n_classes == 0) return false;
    const std::size_t w = first_largest(n_classes, certain);  // no other class could precede all
    for (std::size_t c = 0; c < n_classes; ++c) {
        if (c != w && !precedes(w, certain[w], c, possible[c])) return false;
    }
    winner = w;
    return true;
}

// --- probabilities: LIBSVM 3.37's numbers to the last bit, given its decision values. The order of operations is part
// of that: nothing here may be contracted (-ffp-contract=off), reordered or factored out.

// P(first class) = 1 / (1 + exp(a f + b)), in a form that neither overflows nor loses small probabilities.
inline double sigmoid_probability(double value, double a, double b) {
    const double x = value * a + b;
    return x >= 0.0 ? std::exp(-x) / (1.0 + std::exp(-x)) : 1.0 / (1.0 + std::exp(x));
}

// The same, kept away from 0 and 1. NaN becomes the least.
inline double pair_probability(double value, double a, double b) {
    constexpr double least = 1e-7;
    const double p = sigmoid_probability(value, a, b);
    const double raised = p > least ? p : least;
    return raised < 1.0 - least ? raised : 1.0 - least;
}

constexpr std::size_t coupling_doubles(std::size_t n_classes) {
    return n_classes * (n_classes + 1);
}

// Turns q[i][j] = P(i given i or j) into the matrix Q of Wu, Lin and Weng, in place: Q_tt = sum of q_jt^2 over j != t,
// Q_tj = -q_jt q_tj.
inline void make_coupling_matrix(std::size_t k, double* q) {
    for (std::size_t t = 0; t < k; ++t) {
        double sum = 0.0;
        for (std::size_t j = 0; j < k; ++j) {
            if (j != t) sum += q[j * k + t] * q[j * k + t];
        }
        q[t * k + t] = sum;
    }
    for (std::size_t t = 0; t < k; ++t) {
        for (std::size_t j = t + 1; j < k; ++j) q[t * k + j] = q[j * k + t] = -q[j * k + t] * q[t * k + j];
    }
}

// One look at Q p: fills qp, (k,), and returns whether p is near enough to a fixed point.
inline bool is_coupled(std::size_t k, const double* q, const double* p, double* qp, double& pqp) {
    pqp = 0.0;
    for (std::size_t t = 0; t < k; ++t) {
        qp[t] = 0.0;
        for (std::size_t j = 0; j < k; ++j) qp[t] += q[t * k + j] * p[j];
        pqp += p[t] * qp[t];
    }
    double largest = 0.0;
    for (std::size_t t = 0; t < k; ++t) {
        const double error = std::fabs(qp[t] - pqp);
        if (error > largest) largest = error;
    }
    return largest < 0.005 / static_cast<double>(k);
}

// Probabilities of k classes from those of all pairs: the second method of Wu, Lin and Weng, "Probability estimates for
// multi-class classification by pairwise coupling" (JMLR 2004), which minimizes sum_ij (q_ji p_i - q_ij p_j)^2. `q`,
// (k, k) with its diagonal of any value, is overwritten; `qp` is room for k numbers.
inline void couple_probabilities(std::size_t k, double* q, double* qp, double* p) {
    make_coupling_matrix(k, q);
    for (std::size_t t = 0; t < k; ++t) p[t] = 1.0 / static_cast<double>(k);
    const std::size_t most_iterations = k > 100 ? k : 100;
    for (std::size_t iteration = 0; iteration < most_iterations; ++iteration) {
        double pqp;
        if (is_coupled(k, q, p, qp, pqp)) return;
        for (std::size_t t = 0; t < k; ++t) {
            const double diagonal = q[t * k + t], step = (-qp[t] + pqp) / diagonal, scale = 1.0 + step;
            p[t] += step;
            pqp = (pqp + step * (step * diagonal + 2.0 * qp[t])) / scale / scale;
            for (std::size_t j = 0; j < k; ++j) {
                qp[j] = (qp[j] + step * q[t * k + j]) / scale;
                p[j] /= scale;
            }
        }
    }
}

// Probabilities of all classes, (n_classes,), from the values of all pairs and LIBSVM's probA and probB, one of each
// per pair. `room` is for coupling_doubles(n_classes) numbers. Returns the first of the most probable classes, which is
// LIBSVM's label with -b 1; it need not be the winner of the votes.
inline std::size_t class_probabilities(std::size_t n_classes, const double* values, const double* prob_a,
                                       const double* prob_b, double* probabilities, double* room) {
    for_each_pair(n_classes, [=](std::size_t pair, std::size_t i, std::size_t j) {
        const double p = pair_probability(values[pair], prob_a[pair], prob_b[pair]);
        room[i * n_classes + j] = p;
        room[j * n_classes + i] = 1.0 - p;
    });
    if (n_classes == 2) {
        probabilities[0] = room[1];
        probabilities[1] = room[2];
    } else {
        couple_probabilities(n_classes, room, room + n_classes * n_classes, probabilities);
    }
    return first_largest(n_classes, probabilities);
}

constexpr std::size_t n_density_marks = 10;

// The probability that a row is an inlier of a one-class model, from the model's density marks (ascending): the bin
// that the value falls into. At the very last mark, as for NaN, LIBSVM says 0.
inline double inlier_probability(double value, const double* marks) {
    if (value < marks[0]) return 0.001;
    if (value > marks[n_density_marks - 1]) return 0.999;
    for (std::size_t i = 1; i < n_density_marks; ++i) {
        if (value < marks[i]) return static_cast<double>(i) / static_cast<double>(n_density_marks);
    }
    return 0.0;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
