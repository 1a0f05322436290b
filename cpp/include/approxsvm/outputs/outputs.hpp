// Computes scores, probabilities and the class predicted by the source from a row's decision values, and determines
// which of these results are certain if the values are known only to within bounds. Applies program/scores.h and
// probabilities.h to an artifact's outputs.
//
// There is one value per pair of classes (in order) or one per class; n_classes >= 2. A one-class model has two
// classes, normal and outlier, and one value. No function allocates memory: `room` is the caller's scratch space for
// outputs_doubles(n_classes) doubles; other arrays have the shape (n_classes,).
#ifndef APPROXSVM_OUTPUTS_OUTPUTS_HPP
#define APPROXSVM_OUTPUTS_OUTPUTS_HPP

#include "../artifact/sections/outputs.hpp"
#include "votes.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../program/ensembles.h"
#include "../program/probabilities.h"
static_assert(max_excess == APPROXSVM_MAX_EXCESS && n_density_marks == APPROXSVM_N_MARKS);

// Returns the size of the scratch space for a coupling matrix, three arrays of results, and an interval of scores.
constexpr std::size_t outputs_doubles(std::size_t n_classes) {
    return APPROXSVM_SCRATCH_pairwise_sigmoid(n_classes) + 8 * n_classes;
}

inline approxsvm_outputs parameters_of(const OutputsView& outputs, std::size_t n_classes) {
    return {static_cast<int>(n_classes), outputs.decision_shape == DecisionShape::each,
            static_cast<int>(outputs.positive), outputs.calibration_shape != DecisionShape::ovr, outputs.numbers};
}

// Returns whether the largest of several values is certainly the largest. A quick test suffices for most rows: its
// slack, 2^-48 times the sum of absolute values, exceeds the rounding error of around().
inline bool beats_all_others(std::size_t n, const double* values, const double* bounds) {
    const std::size_t winner = first_largest(n, values);
    const double value = values[winner], bound = bounds[winner];
    std::size_t n_clear = 0;
    for (std::size_t k = 0; k < n; ++k) {
        const double moduli = std::fabs(value) + std::fabs(values[k]) + bound + bounds[k];
        n_clear += (value - bound) - (values[k] + bounds[k]) > 0x1p-48 * moduli && bound >= 0.0 && bounds[k] >= 0.0;
    }
    if (n_clear == n - 1) return true;
    const double least = approxsvm_around(values[winner], bounds[winner]).lowest;
    for (std::size_t k = 0; k < n; ++k) {
        if (k != winner && !(least > approxsvm_around(values[k], bounds[k]).highest)) return false;
    }
    return true;
}

// Returns whether there are class probabilities, including the classes normal and outlier.
constexpr bool has_probabilities(const OutputsView& outputs) {
    return rules_of(outputs.probability).gives == Gives::of_classes;
}

// The functions for each kind of probabilities, in numerical order.
struct ProbabilityFunctions {
    void (*values)(const approxsvm_outputs*, const double*, double*, double*);
    void (*ends)(const approxsvm_outputs*, const double*, const double*, double*, double*, double*);
};
#define APPROXSVM_pairs_of_classes(kind) {approxsvm_##kind, approxsvm_##kind##_ends},
#define APPROXSVM_values_of_classes(kind) APPROXSVM_pairs_of_classes(kind)
#define APPROXSVM_anybody_nothing(kind) {nullptr, nullptr},
#define APPROXSVM_values_nothing(kind) APPROXSVM_anybody_nothing(kind)
#define APPROXSVM_members_of_classes(kind) APPROXSVM_pairs_of_classes(kind)
#define APPROXSVM_PROBABILITY(kind, task, owner, gives, ...) APPROXSVM_##owner##_##gives(kind)
inline constexpr ProbabilityFunctions probability_functions[] = {
#include "../artifact/schema.inc"
};

// If has_probabilities() is true, computes the probabilities of all classes, and intervals that contain the exact
// probabilities.
inline void probabilities_of(const OutputsView& outputs, std::size_t n_classes, const double* values,
                             double* probabilities, double* room) {
    const approxsvm_outputs o = parameters_of(outputs, n_classes);
    probability_functions[number_of(outputs.probability)].values(&o, values, probabilities, room);
}
inline void probability_interval(const OutputsView& outputs, std::size_t n_classes, const double* values,
                                 const double* bounds, double* lowest, double* highest, double* room) {
    const approxsvm_outputs o = parameters_of(outputs, n_classes);
    probability_functions[number_of(outputs.probability)].ends(&o, values, bounds, lowest, highest, room);
}

// --- labels

// Returns the class predicted from the probabilities of all classes.
inline std::size_t class_of_shares(const OutputsView& outputs, std::size_t n_classes, const double* shares) {
    if (outputs.label_rule != LabelRule::probability_threshold) return first_largest(n_classes, shares);
    return static_cast<std::size_t>(approxsvm_class_by_share(shares, outputs.threshold));
}
// Returns whether `winner` is the class for all probabilities within their intervals.
inline bool certain_by_shares(const OutputsView& outputs, std::size_t n_classes, std::size_t winner,
                              const double* lowest, const double* highest) {
    if (outputs.label_rule != LabelRule::probability_threshold)
        return approxsvm_is_largest(static_cast<int>(n_classes), static_cast<int>(winner), lowest, highest, false);
    return approxsvm_is_certain_by_share(lowest, highest, outputs.threshold);
}

// Returns the class predicted by the source's label rule; ties go to the first class.
inline std::size_t predicted_class(const OutputsView& outputs, std::size_t n_classes, const double* values,
                                   double* room) {
    double* rest = room + n_classes;
    switch (outputs.label_rule) {
        case LabelRule::votes:
            return vote_winner(n_classes, values, reinterpret_cast<std::uint32_t*>(room));
        case LabelRule::scores: {
            const approxsvm_outputs o = parameters_of(outputs, n_classes);
            approxsvm_scores(&o, values, room, rest);
            return first_largest(n_classes, room);
        }
        case LabelRule::value_threshold:
            return static_cast<std::size_t>(approxsvm_class_by_value(values[0], outputs.threshold));
        case LabelRule::probability:
        case LabelRule::probability_threshold:
            probabilities_of(outputs, n_classes, values, room, rest);
            break;
    }
    return class_of_shares(outputs, n_classes, room);
}

// Returns whether the exact values have the same class as these values; sets `winner` in any case.
inline bool certified_class(const OutputsView& outputs, std::size_t n_classes, const double* values,
                            const double* bounds, std::size_t& winner, double* room) {
    winner = predicted_class(outputs, n_classes, values, room);
    double *lowest = room, *highest = lowest + n_classes, *rest = highest + n_classes;
    switch (outputs.label_rule) {
        case LabelRule::votes:
            return certain_vote(n_classes, values, bounds, reinterpret_cast<std::uint32_t*>(room), winner);
        case LabelRule::scores: {
            const approxsvm_outputs o = parameters_of(outputs, n_classes);
            if (o.is_each && beats_all_others(n_classes, values, bounds)) return true;
            approxsvm_score_ends(&o, values, bounds, lowest, highest, rest);
            return approxsvm_is_largest(o.n_classes, static_cast<int>(winner), lowest, highest, true);
        }
        case LabelRule::value_threshold:
            return approxsvm_is_certain_by_value(values[0], bounds[0], outputs.threshold);
        case LabelRule::probability:
        case LabelRule::probability_threshold:
            probability_interval(outputs, n_classes, values, bounds, lowest, highest, rest);
            break;
    }
    return certain_by_shares(outputs, n_classes, winner, lowest, highest);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
