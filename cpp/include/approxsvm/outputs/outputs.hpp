// Turns the decision values of a row into scores, probabilities and the class that the source predicts, and tells what
// is certain if values are known only within bounds.
//
// Values are those of all pairs of n_classes >= 2 classes, in order (votes.hpp), or of each of several classes. A
// one-class model has two classes, normal and outlier, and its one value. A bound says how far its value may be from
// the exact one; one that is infinite, NaN or negative says nothing, nor does a value that is no finite number. What is
// claimed of exact values holds for what these functions make of them and for the same functions of real numbers: their
// own rounding is part of every interval.
//
// No heap: `room` is the caller's, of outputs_doubles(n_classes) numbers; other arrays are (n_classes,).
#pragma once

#include <cmath>

#include "../artifact/outputs_section.hpp"
#include "../model_view.hpp"
#include "../simd/simd.hpp"
#include "libsvm_probabilities.hpp"
#include "votes.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// A matrix for coupling, three arrays of results, and the memory of an interval of scores.
constexpr std::size_t outputs_doubles(std::size_t n_classes) {
    return coupling_doubles(n_classes) + 8 * n_classes;
}

// How far a share is from the farther end of its interval, at least: the difference is rounded, and so is the product.
APPROXSVM_INLINE double farther_end(double share, double lowest, double highest) {
    const double above = highest - share, below = share - lowest;
    return (above > below ? above : below) * (1.0 + 0x1p-51);
}

// --- scores: scikit-learn's one-vs-rest scores of one-vs-one values, votes + s / (3 (|s| + 1)), s the sum of the
// values in favour of a class. A value of 0 votes for the first class of its pair, unlike in votes.hpp.

inline void one_vs_rest_scores(std::size_t n_classes, const double* values, double* scores, double* room) {
    double* sums = room;
    for (std::size_t c = 0; c < n_classes; ++c) scores[c] = sums[c] = 0.0;
    for_each_pair(n_classes, [=](std::size_t pair, std::size_t i, std::size_t j) {
        sums[i] += values[pair];
        sums[j] -= values[pair];
        scores[values[pair] < 0.0 ? j : i] += 1.0;
    });
    for (std::size_t c = 0; c < n_classes; ++c) scores[c] += sums[c] / (3.0 * (std::fabs(sums[c]) + 1.0));
}

// s / (3 (|s| + 1)) at one end of an interval; `limit` if the formula overflows.
APPROXSVM_INLINE double confidence_at(double sum, double limit) {
    return std::fabs(sum) <= 1e300 ? sum / (3.0 * (std::fabs(sum) + 1.0)) : limit;
}

// Intervals of the scores of the exact values. An open pair may vote either way, so a class with one has an interval
// about 1 wide. If all its pairs are certain, the interval is at most 2/3 of the sum of their bounds wide, as the slope
// of s / (3 (|s| + 1)) is at most 1/3.
inline void one_vs_rest_interval(std::size_t n_classes, const double* values, const double* bounds, double* lowest,
                                 double* highest, double* room) {
    double *sums = room, *spread = sums + n_classes, *moduli = spread + n_classes;
    for (std::size_t c = 0; c < n_classes; ++c) lowest[c] = highest[c] = sums[c] = spread[c] = moduli[c] = 0.0;
    for_each_pair(n_classes, [=](std::size_t pair, std::size_t i, std::size_t j) {
        const double value = values[pair], bound = bounds[pair] >= 0.0 ? bounds[pair] : HUGE_VAL;
        const bool first = value > bound, second = value < -bound;
        sums[i] += value;
        sums[j] -= value;
        spread[i] += bound;
        spread[j] += bound;
        moduli[i] += std::fabs(value);
        moduli[j] += std::fabs(value);
        lowest[i] += first;
        lowest[j] += second;
        highest[i] += !second;
        highest[j] += !first;
    });
    constexpr double u = 0x1p-53;
    // Sums err by at most n_classes roundings of the moduli, scores by a few roundings of numbers up to n_classes.
    const double n = static_cast<double>(n_classes), slack = 8.0 * n * u;
    for (std::size_t c = 0; c < n_classes; ++c) {
        if (!(moduli[c] <= 1e300)) {
            lowest[c] = -HUGE_VAL;
            highest[c] = HUGE_VAL;
            continue;
        }
        const double reach = spread[c] * (1.0 + 4.0 * n * u) + 4.0 * n * u * moduli[c];
        lowest[c] += confidence_at(sums[c] - reach, -1.0 / 3.0) - slack;
        highest[c] += confidence_at(sums[c] + reach, 1.0 / 3.0) + slack;
    }
}

// The score of each class by whatever decision functions there are: its own value, where there is one for each class.
inline void class_scores(const OutputsView& outputs, std::size_t n_classes, const double* values, double* scores,
                         double* room) {
    if (outputs.decision_shape != DecisionShape::each) return one_vs_rest_scores(n_classes, values, scores, room);
    for (std::size_t c = 0; c < n_classes; ++c) scores[c] = values[c];
}

struct Interval {
    double lowest, highest;
};

// Where the exact value lies.
APPROXSVM_NOINLINE inline Interval around(double value, double bound) {
    if (!(bound >= 0.0 && is_finite(value))) return {-HUGE_VAL, HUGE_VAL};
    const double reach = bound * (1.0 + 0x1p-52);  // at least the bound itself; then each end is rounded once more
    return {std::nextafter(value - reach, -HUGE_VAL), std::nextafter(value + reach, HUGE_VAL)};
}

// Whether the greatest of several values is so for certain. Of most rows a look suffices: 2^-48 of all moduli is more
// than around() rounds by.
inline bool beats_all_others(std::size_t n, const double* values, const double* bounds) {
    const std::size_t winner = first_largest(n, values);
    const double value = values[winner], bound = bounds[winner];
    std::size_t n_clear = 0;
    for (std::size_t k = 0; k < n; ++k) {
        const double moduli = std::fabs(value) + std::fabs(values[k]) + bound + bounds[k];
        n_clear += (value - bound) - (values[k] + bounds[k]) > 0x1p-48 * moduli && bound >= 0.0 && bounds[k] >= 0.0;
    }
    if (n_clear == n - 1) return true;
    const double least = around(values[winner], bounds[winner]).lowest;
    for (std::size_t k = 0; k < n; ++k) {
        if (k != winner && !(least > around(values[k], bounds[k]).highest)) return false;
    }
    return true;
}

inline void class_score_interval(const OutputsView& outputs, std::size_t n_classes, const double* values,
                                 const double* bounds, double* lowest, double* highest, double* room) {
    if (outputs.decision_shape != DecisionShape::each)
        return one_vs_rest_interval(n_classes, values, bounds, lowest, highest, room);
    for (std::size_t c = 0; c < n_classes; ++c) {
        const Interval score = around(values[c], bounds[c]);
        lowest[c] = score.lowest;
        highest[c] = score.highest;
    }
}

// --- calibrators

// numpy.interp's formula: constant outside the knots, a height at its knot, and between them from the left.
inline double interpolate(std::size_t n, const double* knots, const double* heights, double x) {
    if (!(x >= knots[0])) return x == x ? heights[0] : x;
    std::size_t left = 0, right = n;  // knots[left] <= x < knots[right]
    while (right - left > 1) {
        const std::size_t middle = left + (right - left) / 2;
        (x >= knots[middle] ? left : right) = middle;
    }
    // Knots of equal heights may be so far apart that their distance overflows.
    if (left + 1 == n || knots[left] == x || heights[left + 1] == heights[left]) return heights[left];
    const double slope = (heights[left + 1] - heights[left]) / (knots[left + 1] - knots[left]);
    return slope * (x - knots[left]) + heights[left];
}

inline double calibrated(const Calibrator& calibrator, double value) {
    const double* numbers = calibrator.numbers;
    const std::size_t n = calibrator.n_knots;
    return n == 0 ? sigmoid_probability(value, numbers[0], numbers[1]) : interpolate(n, numbers, numbers + n, value);
}

// --- probabilities

// As in scikit-learn: shares may exceed 1 by rounding.
APPROXSVM_INLINE double without_excess(double share) {
    return share > 1.0 && share <= 1.0 + max_excess ? 1.0 : share;
}

// The model's value with the orientation of a calibrator of two classes.
APPROXSVM_INLINE double oriented(const OutputsView& outputs, double value) {
    return outputs.positive == 0 ? value : -value;
}

inline void calibrated_probabilities(const OutputsView& outputs, std::size_t n_classes, const double* values,
                                     double* probabilities, double* room) {
    Calibrator calibrator;
    const unsigned char* next = outputs.calibrators;
    if (n_classes == 2) {
        read_calibrator(next, calibrator);
        const double share = without_excess(calibrated(calibrator, oriented(outputs, values[0])));
        probabilities[outputs.positive] = share;
        probabilities[1 - outputs.positive] = 1.0 - share;
        return;
    }
    const double* inputs = values;
    if (outputs.calibration_shape == DecisionShape::ovr) {
        class_scores(outputs, n_classes, values, room, room + n_classes);
        inputs = room;
    }
    double total = 0.0;
    for (std::size_t c = 0; c < n_classes; ++c) {
        next = read_calibrator(next, calibrator);
        total += probabilities[c] = calibrated(calibrator, inputs[c]);
    }
    const double of_nothing = outputs.positive == 0 ? 0.0 : 1.0 / static_cast<double>(n_classes);
    for (std::size_t c = 0; c < n_classes; ++c) {
        probabilities[c] = total == 0.0 ? of_nothing : without_excess(probabilities[c] / total);
    }
}

// softmax(inverse_temperature * scores).
inline void softmax_probabilities(const OutputsView& outputs, std::size_t n_classes, const double* values,
                                  double* probabilities, double* room) {
    if (n_classes == 2) {  // in either orientation
        probabilities[0] = values[0];
        probabilities[1] = -values[0];
    } else {
        class_scores(outputs, n_classes, values, probabilities, room);
    }
    const double beta = *outputs.numbers, best = probabilities[first_largest(n_classes, probabilities)],
                 largest = beta * best;
    const bool overflows = !is_finite(largest);  // then differences come first, of which the largest is 0
    double total = 0.0;
    for (std::size_t c = 0; c < n_classes; ++c) {
        const double score = probabilities[c];
        total += probabilities[c] = std::exp(overflows ? beta * (score - best) : beta * score - largest);
    }
    for (std::size_t c = 0; c < n_classes; ++c) probabilities[c] /= total;
}

// The probability that a row is an inlier of a one-class model, by the bin of the value among the model's density marks
// (ascending). At exactly the last mark, and for NaN, LIBSVM gives 0.
inline double inlier_probability(double value, const double* marks) {
    if (value < marks[0]) return 0.001;
    if (value > marks[n_density_marks - 1]) return 0.999;
    for (std::size_t i = 1; i < n_density_marks; ++i) {
        if (value < marks[i]) return static_cast<double>(i) / static_cast<double>(n_density_marks);
    }
    return 0.0;
}

// Whether there are probabilities of classes, including normal and outlier.
constexpr bool has_probabilities(const OutputsView& outputs) {
    return rules_of(outputs.probability).gives == Gives::of_classes;
}

// Probabilities of all classes. Only where has_probabilities().
inline void probabilities_of(const OutputsView& outputs, std::size_t n_classes, const double* values,
                             double* probabilities, double* room) {
    switch (outputs.probability) {
        case ProbabilityKind::pairwise_sigmoid:
            class_probabilities(n_classes, values, outputs.numbers, outputs.numbers + n_decisions_of(n_classes),
                                probabilities, room, outputs.couple_two_classes);
            return;
        case ProbabilityKind::one_vs_rest_calibration:
            calibrated_probabilities(outputs, n_classes, values, probabilities, room);
            return;
        case ProbabilityKind::temperature_calibration:
            softmax_probabilities(outputs, n_classes, values, probabilities, room);
            return;
        case ProbabilityKind::density_marks:
            probabilities[0] = inlier_probability(values[0], outputs.numbers);
            probabilities[1] = 1.0 - probabilities[0];
            return;
        default:  // an ensemble's own, or none
            return;
    }
}

// --- intervals of probabilities: every function here is monotone in each value or score, so that the ends of an
// interval of those give the ends of one of these

// Of 1 / (1 + exp(slope f + intercept)). Both terms may be large and cancel: then their rounding is felt, and it is not
// the same where the compiler fuses them.
inline Interval sigmoid_interval(const Interval& f, double slope, double intercept) {
    const auto exponent = [=](double end, double direction) {
        const double term = slope * end, x = term + intercept;
        return is_finite(x) ? x + direction * 0x1p-51 * (std::fabs(term) + std::fabs(intercept)) : x;
    };
    const double ends[] = {f.lowest, f.highest}, least = exponent(ends[slope < 0.0], -1.0),
                 most = exponent(ends[!(slope < 0.0)], 1.0);
    if (!(least <= most)) return {0.0, 1.0};  // infinity times 0
    return {sigmoid(most), sigmoid(least)};
}

inline Interval calibrated_interval(const Calibrator& calibrator, const Interval& f) {
    const double* numbers = calibrator.numbers;
    const std::size_t n = calibrator.n_knots;
    if (n == 0) return sigmoid_interval(f, numbers[0], numbers[1]);
    return {interpolate(n, numbers, numbers + n, f.lowest), interpolate(n, numbers, numbers + n, f.highest)};
}

// The probability is a rising step function of the value, except for a 0 at exactly the last mark.
inline Interval inlier_interval(const Interval& f, const double* marks) {
    const double last = marks[n_density_marks - 1];
    const Interval steps{inlier_probability(f.lowest, marks), inlier_probability(f.highest, marks)};
    if (!(f.lowest <= last && last <= f.highest)) return steps;
    return {0.0, steps.highest > 0.9 ? steps.highest : 0.9};
}

// The interval of P(f) = 1 / (1 + exp(-2 beta f)), the share of the first class.
inline Interval softmax_interval(const Interval& f, double beta) {
    return sigmoid_interval(f, -2.0 * beta, 0.0);
}

// Shares x_c / sum(x) of all x between lo and hi, which are at least 0; where the sum may be 0, that is 0 to 1. `lo`
// and `hi` are widened: what they hold is rounded relatively, and absolutely where it underflows. No `hi` is 0 then.
inline void share_interval(std::size_t n, double* lo, double* hi, double* lowest, double* highest) {
    constexpr double wider = 0x1p-50, tiny = 0x1p-1070;
    for (std::size_t c = 0; c < n; ++c) {
        const double low = lo[c] * (1.0 - wider) - tiny;
        lo[c] = low > 0.0 ? low : 0.0;
        hi[c] = hi[c] * (1.0 + wider) + tiny;
    }
    for (std::size_t c = 0; c < n; ++c) {
        double others_lo = 0.0, others_hi = 0.0;  // not differences of sums, which may cancel
        for (std::size_t k = 0; k < n; ++k) {
            if (k == c) continue;
            others_lo += lo[k];
            others_hi += hi[k];
        }
        lowest[c] = lo[c] / (lo[c] + others_hi);
        highest[c] = hi[c] / (hi[c] + others_lo);
    }
}

// The intervals of several calibrated classes; room is for 5 n_classes numbers.
inline void calibrated_intervals(const OutputsView& outputs, std::size_t n_classes, const double* values,
                                 const double* bounds, double* lowest, double* highest, double* room) {
    double *lo = room, *hi = lo + n_classes;
    const bool by_scores = outputs.calibration_shape == DecisionShape::ovr;
    if (by_scores) class_score_interval(outputs, n_classes, values, bounds, lo, hi, hi + n_classes);
    const unsigned char* next = outputs.calibrators;
    for (std::size_t c = 0; c < n_classes; ++c) {
        Calibrator calibrator;
        next = read_calibrator(next, calibrator);
        const Interval share =
            calibrated_interval(calibrator, by_scores ? Interval{lo[c], hi[c]} : around(values[c], bounds[c]));
        lo[c] = share.lowest;
        hi[c] = share.highest;
    }
    share_interval(n_classes, lo, hi, lowest, highest);
}

inline void softmax_intervals(const OutputsView& outputs, std::size_t n_classes, const double* values,
                              const double* bounds, double* lowest, double* highest, double* room) {
    double *lo = room, *hi = lo + n_classes;
    class_score_interval(outputs, n_classes, values, bounds, lo, hi, hi + n_classes);
    double top = -HUGE_VAL, scale = 0.0;
    for (std::size_t c = 0; c < n_classes; ++c) {
        lo[c] *= *outputs.numbers;
        hi[c] *= *outputs.numbers;
        top = hi[c] > top ? hi[c] : top;
        scale = std::fmax(scale, std::fmax(std::fabs(lo[c]), std::fabs(hi[c])));
    }
    if (!is_finite(scale)) {
        for (std::size_t c = 0; c < n_classes; ++c) {
            lowest[c] = 0.0;
            highest[c] = 1.0;
        }
        return;
    }
    // Products and differences err by a few roundings of the largest, here and where probabilities are computed.
    const double slack = 0x1p-50 * scale;
    for (std::size_t c = 0; c < n_classes; ++c) {
        lo[c] = std::exp(lo[c] - top - slack);
        hi[c] = std::exp(hi[c] - top + slack);
    }
    share_interval(n_classes, lo, hi, lowest, highest);
}

// Intervals of the probabilities of the exact values, if has_probabilities(). The coupling of three or more classes
// stops after a number of sweeps that the smallest change can change, so the intervals are [0, 1]. The coupling of two
// classes stops within 0.005 of the sigmoid.
inline void probability_interval(const OutputsView& outputs, std::size_t n_classes, const double* values,
                                 const double* bounds, double* lowest, double* highest, double* room) {
    const Interval f = around(values[0], bounds[0]);
    Interval share{0.0, 1.0};
    std::size_t of_class = 0;
    switch (outputs.probability) {
        case ProbabilityKind::pairwise_sigmoid:
            if (n_classes > 2) break;
            share = sigmoid_interval(f, outputs.numbers[0], outputs.numbers[1]);
            share = {clipped_probability(share.lowest), clipped_probability(share.highest)};
            break;
        case ProbabilityKind::density_marks:
            share = inlier_interval(f, outputs.numbers);
            break;
        case ProbabilityKind::one_vs_rest_calibration:
            if (n_classes > 2) {
                calibrated_intervals(outputs, n_classes, values, bounds, lowest, highest, room);
            } else {
                Calibrator calibrator;
                read_calibrator(outputs.calibrators, calibrator);
                share = calibrated_interval(calibrator, outputs.positive == 0 ? f : Interval{-f.highest, -f.lowest});
                of_class = outputs.positive;
            }
            break;
        case ProbabilityKind::temperature_calibration:
            if (n_classes > 2) {
                softmax_intervals(outputs, n_classes, values, bounds, lowest, highest, room);
            } else {
                share = softmax_interval(f, *outputs.numbers);
            }
            break;
        default:
            return;
    }
    if (n_classes == 2) {
        lowest[of_class] = share.lowest;
        highest[of_class] = share.highest;
        lowest[1 - of_class] = 1.0 - share.highest;
        highest[1 - of_class] = 1.0 - share.lowest;
    }
    const bool coupled = outputs.probability == ProbabilityKind::pairwise_sigmoid;
    // The ends are rounded like the probabilities: by a few units in the last place of numbers of at most 1.
    const double slack = (16.0 + 4.0 * static_cast<double>(n_classes)) * 0x1p-53 +
                         (coupled && outputs.couple_two_classes ? coupling_tolerance : 0.0);
    for (std::size_t c = 0; c < n_classes; ++c) {
        if (coupled && n_classes > 2) lowest[c] = 0.0, highest[c] = 1.0;
        lowest[c] = lowest[c] > slack ? lowest[c] - slack : 0.0;
        highest[c] = highest[c] < 1.0 - slack ? highest[c] + slack : 1.0;
    }
}

// --- labels

// Rules of thresholds: the label whose value, or probability, has to be that large, and the class by this number.
inline std::size_t label_of_threshold(const OutputsView& outputs) {
    return outputs.threshold[1] != 0.0;
}
inline std::size_t class_of_threshold(const OutputsView& outputs, double number) {
    const std::size_t label = label_of_threshold(outputs);
    return number >= outputs.threshold[0] ? label : 1 - label;
}
// Whether a number between these is on one side of the threshold for certain.
inline bool is_on_one_side(const OutputsView& outputs, double lowest, double highest) {
    return lowest >= outputs.threshold[0] || highest < outputs.threshold[0];
}

// The class by the probabilities of all.
inline std::size_t class_of_shares(const OutputsView& outputs, std::size_t n_classes, const double* shares) {
    if (outputs.label_rule != LabelRule::probability_threshold) return first_largest(n_classes, shares);
    return class_of_threshold(outputs, shares[label_of_threshold(outputs)]);
}
// Whether that class, the winner, is the same for all probabilities within an interval.
inline bool certain_by_shares(const OutputsView& outputs, std::size_t n_classes, std::size_t winner,
                              const double* lowest, const double* highest) {
    if (outputs.label_rule == LabelRule::probability_threshold) {
        const std::size_t label = label_of_threshold(outputs);
        return is_on_one_side(outputs, lowest[label], highest[label]);
    }
    // Those that are equal up to rounding are not certain.
    for (std::size_t c = 0; c < n_classes; ++c) {
        if (c != winner && !(lowest[winner] > highest[c])) return false;
    }
    return true;
}

// The class that the source predicts by its rule; of equal ones the first.
inline std::size_t predicted_class(const OutputsView& outputs, std::size_t n_classes, const double* values,
                                   double* room) {
    double* rest = room + n_classes;
    switch (outputs.label_rule) {
        case LabelRule::targets:  // an ensemble's own
        case LabelRule::votes:
            return vote_winner(n_classes, values, room);
        case LabelRule::scores:
            class_scores(outputs, n_classes, values, room, rest);
            break;
        case LabelRule::probability:
            probabilities_of(outputs, n_classes, values, room, rest);
            break;
        case LabelRule::value_threshold:
            return class_of_threshold(outputs, label_of_threshold(outputs) == 0 ? values[0] : -values[0]);
        case LabelRule::probability_threshold:
            probabilities_of(outputs, n_classes, values, room, rest);
            return class_of_shares(outputs, n_classes, room);
    }
    return first_largest(n_classes, room);
}

// Whether the exact values have the same class as these, which is stored in `winner` in any case.
inline bool certified_class(const OutputsView& outputs, std::size_t n_classes, const double* values,
                            const double* bounds, std::size_t& winner, double* room) {
    winner = predicted_class(outputs, n_classes, values, room);
    double *lowest = room, *highest = lowest + n_classes, *rest = highest + n_classes;
    switch (outputs.label_rule) {
        case LabelRule::targets:
        case LabelRule::votes:
            tally_votes(n_classes, PairKnowledge{values, bounds, nullptr}, lowest, highest);
            return certain_winner(n_classes, lowest, highest, winner);
        case LabelRule::scores:
            if (outputs.decision_shape == DecisionShape::each && beats_all_others(n_classes, values, bounds))
                return true;
            class_score_interval(outputs, n_classes, values, bounds, lowest, highest, rest);
            for (std::size_t c = 0; c < n_classes; ++c) {
                if (c != winner && !precedes(winner, lowest[winner], c, highest[c])) return false;
            }
            return true;
        case LabelRule::value_threshold: {
            const Interval f = around(values[0], bounds[0]);
            return label_of_threshold(outputs) == 0 ? is_on_one_side(outputs, f.lowest, f.highest)
                                                    : is_on_one_side(outputs, -f.highest, -f.lowest);
        }
        case LabelRule::probability:
        case LabelRule::probability_threshold:
            probability_interval(outputs, n_classes, values, bounds, lowest, highest, rest);
            return certain_by_shares(outputs, n_classes, winner, lowest, highest);
    }
    return false;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
