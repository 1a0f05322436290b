// Turns the decision values of a row into scores, probabilities and the class that the source predicts, and decides
// which of them are certain if values are known only within bounds.
//
// Values belong to all pairs of n_classes >= 2 classes, in order (votes.hpp), or to each of several classes. A
// one-class model has two classes, normal and outlier, and one value. A bound limits the distance of a value from the
// exact one. Bounds that are infinite, NaN or negative carry no information, nor do values that are not finite.
// Intervals for exact values contain both the results of these functions and those of the same functions over the real
// numbers: their own rounding is part of every interval.
//
// Nothing allocates: `room` is the caller's scratch space for outputs_doubles(n_classes) numbers; other arrays are
// (n_classes,).
#pragma once

#include <cmath>

#include "../artifact/outputs_section.hpp"
#include "../model_view.hpp"
#include "../simd/simd.hpp"
#include "libsvm_probabilities.hpp"
#include "votes.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Scratch space for a coupling matrix, three arrays of results, and an interval of scores.
constexpr std::size_t outputs_doubles(std::size_t n_classes) {
    return coupling_doubles(n_classes) + 8 * n_classes;
}

// Upper bound of the distance of a probability from the farther end of its interval, after rounding of both.
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

// s / (3 (|s| + 1)) at one end of an interval; returns `limit` if the formula overflows.
APPROXSVM_INLINE double confidence_at(double sum, double limit) {
    return std::fabs(sum) <= 1e300 ? sum / (3.0 * (std::fabs(sum) + 1.0)) : limit;
}

// Intervals of the scores of the exact values. An undecided pair may vote either way, so a class with one has an
// interval about 1 wide. If all its pairs are certain, the interval is at most 2/3 of the sum of their bounds wide, as
// the slope of s / (3 (|s| + 1)) is at most 1/3.
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
    // The error of sums is at most n_classes roundings of the absolute sum; scores add a few roundings of n_classes.
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

// The score of each class: its own value if there is a function per class, else the one-vs-rest score.
inline void class_scores(const OutputsView& outputs, std::size_t n_classes, const double* values, double* scores,
                         double* room) {
    if (outputs.decision_shape != DecisionShape::each) return one_vs_rest_scores(n_classes, values, scores, room);
    for (std::size_t c = 0; c < n_classes; ++c) scores[c] = values[c];
}

struct Interval {
    double lowest, highest;
};

// The interval of the exact value.
APPROXSVM_NOINLINE inline Interval around(double value, double bound) {
    if (!(bound >= 0.0 && is_finite(value))) return {-HUGE_VAL, HUGE_VAL};
    const double reach = bound * (1.0 + 0x1p-52);  // not below the bound; each end is rounded once more
    return {std::nextafter(value - reach, -HUGE_VAL), std::nextafter(value + reach, HUGE_VAL)};
}

// Whether the largest of several values is certainly the largest. A quick test decides most rows: 2^-48 of the absolute
// sum exceeds the rounding of around().
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

// numpy.interp's formula: constant outside the knots, exact at knots, and interpolated from the left between them.
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

// Applies scikit-learn's guard: isotonic probabilities may exceed 1 by rounding.
APPROXSVM_INLINE double without_excess(double share) {
    return share > 1.0 && share <= 1.0 + max_excess ? 1.0 : share;
}

// The model's value in the orientation of a calibrator of two classes.
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
    if (n_classes == 2) {  // the same in either orientation
        probabilities[0] = values[0];
        probabilities[1] = -values[0];
    } else {
        class_scores(outputs, n_classes, values, probabilities, room);
    }
    const double beta = *outputs.numbers, best = probabilities[first_largest(n_classes, probabilities)],
                 largest = beta * best;
    const bool overflows = !is_finite(largest);  // subtract the largest first, if products overflow
    double total = 0.0;
    for (std::size_t c = 0; c < n_classes; ++c) {
        const double score = probabilities[c];
        total += probabilities[c] = std::exp(overflows ? beta * (score - best) : beta * score - largest);
    }
    for (std::size_t c = 0; c < n_classes; ++c) probabilities[c] /= total;
}

// The probability that a row is an inlier of a one-class model, from the bin of its value among the model's ascending
// density marks. At exactly the last mark, and for NaN, LIBSVM returns 0.
inline double inlier_probability(double value, const double* marks) {
    if (value < marks[0]) return 0.001;
    if (value > marks[n_density_marks - 1]) return 0.999;
    for (std::size_t i = 1; i < n_density_marks; ++i) {
        if (value < marks[i]) return static_cast<double>(i) / static_cast<double>(n_density_marks);
    }
    return 0.0;
}

// Whether there are class probabilities, including those of normal and outlier.
constexpr bool has_probabilities(const OutputsView& outputs) {
    return rules_of(outputs.probability).gives == Gives::of_classes;
}

// Probabilities of all classes. Call it only if has_probabilities().
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
        default:  // an ensemble's, or none
            return;
    }
}

// --- intervals of probabilities: every function here is monotone in each value or score, so the ends of the intervals
// of values or scores give the ends of the probabilities' intervals

// The interval of 1 / (1 + exp(slope f + intercept)). Both terms may be large and cancel; then their rounding matters,
// and it depends on whether the compiler fuses them.
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

// The interval of P(f) = 1 / (1 + exp(-2 beta f)), the probability of the first class.
inline Interval softmax_interval(const Interval& f, double beta) {
    return sigmoid_interval(f, -2.0 * beta, 0.0);
}

// Intervals of x_c / sum(x) over all x between lo and hi, which are at least 0; [0, 1] if the sum may be 0. `lo` and
// `hi` are widened for their relative rounding and for underflow, after which no `hi` is 0.
//
// x_c / (x_c + others) rises with x_c and falls with the others. The others are added up from both sides, because a
// difference from the sum of all may cancel. Each number goes through n_classes - 1 additions of numbers that are not
// negative, and one division: the relative error of an end is at most n_classes u, and so is that of the probabilities
// themselves, in whatever order they are added up. Both are below the 4 n_classes u of probability_interval(), because
// no probability exceeds 1.
inline void share_interval(std::size_t n_classes, double* lo, double* hi, double* lowest, double* highest) {
    constexpr double wider = 0x1p-50, tiny = 0x1p-1070;
    double sum_lo = 0.0, sum_hi = 0.0;
    for (std::size_t c = n_classes; c-- > 0;) {
        const double low = lo[c] * (1.0 - wider) - tiny;
        lo[c] = low > 0.0 ? low : 0.0;
        hi[c] = hi[c] * (1.0 + wider) + tiny;
        lowest[c] = sum_hi;  // over the classes after c
        highest[c] = sum_lo;
        sum_lo += lo[c];
        sum_hi += hi[c];
    }
    sum_lo = sum_hi = 0.0;
    for (std::size_t c = 0; c < n_classes; ++c) {
        lowest[c] = lo[c] / (lo[c] + (sum_hi + lowest[c]));
        highest[c] = hi[c] / (hi[c] + (sum_lo + highest[c]));
        sum_lo += lo[c];
        sum_hi += hi[c];
    }
}

// The intervals of several calibrated classes; `room` is scratch space for 5 n_classes numbers.
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
    // Products and differences have an error of a few roundings of the largest, here and in the probabilities.
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
    // The ends are rounded as the probabilities are: in sums over all classes (share_interval), otherwise by a few
    // units in the last place of numbers of at most 1.
    const double slack = (16.0 + 4.0 * static_cast<double>(n_classes)) * 0x1p-53 +
                         (coupled && outputs.couple_two_classes ? coupling_tolerance : 0.0);
    for (std::size_t c = 0; c < n_classes; ++c) {
        if (coupled && n_classes > 2) lowest[c] = 0.0, highest[c] = 1.0;
        lowest[c] = lowest[c] > slack ? lowest[c] - slack : 0.0;
        highest[c] = highest[c] < 1.0 - slack ? highest[c] + slack : 1.0;
    }
}

// --- labels

// For threshold rules: the label whose value, or probability, must reach the threshold, and the class by this number.
inline std::size_t label_of_threshold(const OutputsView& outputs) {
    return outputs.threshold[1] != 0.0;
}
inline std::size_t class_of_threshold(const OutputsView& outputs, double number) {
    const std::size_t label = label_of_threshold(outputs);
    return number >= outputs.threshold[0] ? label : 1 - label;
}
// Whether a number in this interval is certainly on one side of the threshold.
inline bool is_on_one_side(const OutputsView& outputs, double lowest, double highest) {
    return lowest >= outputs.threshold[0] || highest < outputs.threshold[0];
}

// The class predicted from the probabilities of all classes.
inline std::size_t class_of_shares(const OutputsView& outputs, std::size_t n_classes, const double* shares) {
    if (outputs.label_rule != LabelRule::probability_threshold) return first_largest(n_classes, shares);
    return class_of_threshold(outputs, shares[label_of_threshold(outputs)]);
}
// Whether the class `winner` is the same for all probabilities within their intervals.
inline bool certain_by_shares(const OutputsView& outputs, std::size_t n_classes, std::size_t winner,
                              const double* lowest, const double* highest) {
    if (outputs.label_rule == LabelRule::probability_threshold) {
        const std::size_t label = label_of_threshold(outputs);
        return is_on_one_side(outputs, lowest[label], highest[label]);
    }
    // Probabilities that are equal up to rounding are not certain.
    for (std::size_t c = 0; c < n_classes; ++c) {
        if (c != winner && !(lowest[winner] > highest[c])) return false;
    }
    return true;
}

// The class that the source predicts by its label rule; ties go to the first.
inline std::size_t predicted_class(const OutputsView& outputs, std::size_t n_classes, const double* values,
                                   double* room) {
    double* rest = room + n_classes;
    switch (outputs.label_rule) {
        case LabelRule::targets:  // ensembles only
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

// Whether the exact values have the same class as these values; `winner` is set in any case.
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
