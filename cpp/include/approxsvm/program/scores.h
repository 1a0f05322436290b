/* Class scores, intervals for the scores of exact values, and labels by the largest score.

   There is one value per pair of classes (votes.h) or per class. A bound limits a value's distance from the exact
   value. Infinite, NaN and negative bounds carry no information; nor do nonfinite values. Intervals contain the results
   of these functions for the exact values, in this arithmetic and over the real numbers: the rounding of these
   functions is part of every interval. */
#ifndef APPROXSVM_PROGRAM_SCORES_H
#define APPROXSVM_PROGRAM_SCORES_H
#include "votes.h"

typedef struct {
    double lowest, highest;
} approxsvm_interval;

/* Parameters for computing scores and probabilities. */
typedef struct {
    int n_classes;         /* number of classes, at least 2 (inlier and outlier) */
    int is_each;           /* true if each of several classes has a value, instead of each pair */
    int positive;          /* a flag that depends on the probability kind */
    int of_values;         /* true if several classes are calibrated by values instead of scores */
    const double* numbers; /* parameters for the probability kind, as stored in artifacts (models/FORMAT.md) */
} approxsvm_outputs;
/* Exported headers define each of these macros as a constant if all their models have the same value. */
#ifndef APPROXSVM_N_CLASSES
#define APPROXSVM_N_CLASSES(o) ((o)->n_classes)
#define APPROXSVM_IS_EACH(o) ((o)->is_each)
#define APPROXSVM_IS_POSITIVE(o) ((o)->positive)
#define APPROXSVM_IS_OF_VALUES(o) ((o)->of_values)
#endif

/* The interval that contains the exact value. */
APPROXSVM_ANSWER approxsvm_interval approxsvm_around(double value, double bound) {
    const double reach = bound * (1.0 + 0x1p-52); /* at least the bound; each endpoint is rounded once more */
    const int is_known = approxsvm_is_known(value, bound);
    approxsvm_interval x;
    x.lowest = is_known ? -approxsvm_next_above(reach - value) : -approxsvm_infinity();
    x.highest = is_known ? approxsvm_next_above(value + reach) : approxsvm_infinity();
    return x;
}

/* An upper bound on the distance of a number from the farther endpoint of its interval, after rounding of both. */
APPROXSVM_PROGRAM double approxsvm_farther_end(double number, double lowest, double highest) {
    const double above = highest - number, below = number - lowest;
    return (above > below ? above : below) * (1.0 + 0x1p-51);
}

/* s / (3 (|s| + 1)); returns `limit` if the formula overflows. */
APPROXSVM_PROGRAM double approxsvm_confidence(double sum, double limit) {
    return approxsvm_abs(sum) <= 1e300 ? sum / (3.0 * (approxsvm_abs(sum) + 1.0)) : limit;
}

/* scikit-learn's one-vs-rest scores from one-vs-one values: votes + s / (3 (|s| + 1)), where s is the sum of a class's
   pair values, each with the sign that favours the class. A value of 0 votes for the first class of its pair, unlike in
   votes.h. Sums start at -0 instead of 0, for the reason given in votes.h. */
APPROXSVM_ANSWER void approxsvm_one_vs_rest_scores(int n, const double* values, double* scores, double* sums) {
    int i, j;
    for (i = 0; i < n; ++i) scores[i] = sums[i] = -0.0;
    for (i = 0; i < n; ++i) {
        for (j = i + 1; j < n; ++j, ++values) {
            sums[i] += *values;
            sums[j] -= *values;
            scores[*values < 0.0 ? j : i] += 1.0;
        }
    }
    for (i = 0; i < n; ++i) scores[i] += 0.0 + sums[i] / (3.0 * (approxsvm_abs(sums[i]) + 1.0));
}

/* Intervals of the one-vs-rest scores. An undecided pair may vote for either of its classes, so a class with one
   undecided pair has an interval about 1 wide. If all pairs of a class are certain, the width is at most 2/3 of the sum
   of their bounds, because the slope of s / (3 (|s| + 1)) is at most 1/3. The error of sums is at most n roundings of
   the sum of absolute values; scores add a few roundings of n. `room` is scratch space for 3 n doubles. */
APPROXSVM_ANSWER void approxsvm_one_vs_rest_ends(int n, const double* values, const APPROXSVM_BOUND* bounds,
                                                 double* lowest, double* highest, double* room) {
    const double unit = (double)n * 0x1p-53;
    double *const sums = room, *const spread = room + n, *const moduli = spread + n;
    int i, j;
    for (i = 0; i < n; ++i) lowest[i] = highest[i] = sums[i] = spread[i] = moduli[i] = -0.0;
    for (i = 0; i < n; ++i) {
        for (j = i + 1; j < n; ++j, ++values, ++bounds) {
            const double value = *values, given = (double)*bounds, bound = given >= 0.0 ? given : approxsvm_infinity();
            const double first = value > bound, second = value < -bound;
            sums[i] += value;
            sums[j] -= value;
            spread[i] += bound;
            spread[j] += bound;
            moduli[i] += approxsvm_abs(value);
            moduli[j] += approxsvm_abs(value);
            lowest[i] += first;
            lowest[j] += second;
            highest[i] += 1.0 - second;
            highest[j] += 1.0 - first;
        }
    }
    for (i = 0; i < n; ++i) {
        const double reach = spread[i] * (1.0 + 4.0 * unit) + 4.0 * unit * moduli[i];
        const int is_known = moduli[i] <= 1e300;
        lowest[i] = is_known ? lowest[i] + (approxsvm_confidence(sums[i] - reach, -1.0 / 3.0) - 8.0 * unit)
                             : -approxsvm_infinity();
        highest[i] = is_known ? highest[i] + (approxsvm_confidence(sums[i] + reach, 1.0 / 3.0) + 8.0 * unit)
                              : approxsvm_infinity();
    }
}

/* The score of each class: its value or its one-vs-rest score; `room` is scratch space for n doubles. */
APPROXSVM_ANSWER void approxsvm_scores(const approxsvm_outputs* o, const double* values, double* scores, double* room) {
    int c;
    (void)o;
    if (!APPROXSVM_IS_EACH(o)) {
        approxsvm_one_vs_rest_scores(APPROXSVM_N_CLASSES(o), values, scores, room);
        return;
    }
    for (c = 0; c < APPROXSVM_N_CLASSES(o); ++c) scores[c] = values[c];
}

/* Intervals of the scores; `room` is scratch space for 3 n doubles. */
APPROXSVM_ANSWER void approxsvm_score_ends(const approxsvm_outputs* o, const double* values,
                                           const APPROXSVM_BOUND* bounds, double* lowest, double* highest,
                                           double* room) {
    int c;
    (void)o;
    if (!APPROXSVM_IS_EACH(o)) {
        approxsvm_one_vs_rest_ends(APPROXSVM_N_CLASSES(o), values, bounds, lowest, highest, room);
        return;
    }
    for (c = 0; c < APPROXSVM_N_CLASSES(o); ++c) {
        const approxsvm_interval score = approxsvm_around(values[c], (double)bounds[c]);
        lowest[c] = score.lowest;
        highest[c] = score.highest;
    }
}

/* Whether the winner's number exceeds all others, for all numbers within their intervals. Equal scores go to the first
   class; probabilities that are equal up to rounding are not certain. */
APPROXSVM_ANSWER int approxsvm_is_largest(int n, int winner, const double* lowest, const double* highest,
                                          int ties_count) {
    const double least = lowest[winner];
    int c;
    for (c = 0; c < n; ++c) {
        if (c != winner && !(least > highest[c] || (ties_count && least == highest[c] && winner < c))) return 0;
    }
    return 1;
}

/* Labels by a threshold: a row belongs to class threshold[1] if this class's value or probability reaches threshold[0].
   Other functions state whether the label is certain. */
APPROXSVM_PROGRAM int approxsvm_label_of_threshold(const double* threshold) {
    return threshold[1] != 0.0;
}
APPROXSVM_PROGRAM int approxsvm_class_by_threshold(double number, const double* threshold) {
    const int label = approxsvm_label_of_threshold(threshold);
    return number >= threshold[0] ? label : 1 - label;
}

APPROXSVM_ANSWER int approxsvm_class_by_value(double value, const double* threshold) {
    return approxsvm_class_by_threshold(approxsvm_label_of_threshold(threshold) ? -value : value, threshold);
}
/* The difference and its product are each rounded once. */
APPROXSVM_ANSWER int approxsvm_is_certain_by_value(double value, double bound, const double* threshold) {
    const double ahead = (approxsvm_label_of_threshold(threshold) ? -value : value) - threshold[0];
    return approxsvm_is_known(value, bound) && approxsvm_abs(ahead) * (1.0 - 0x1p-52) > bound;
}
APPROXSVM_ANSWER int approxsvm_class_by_share(const double* p, const double* threshold) {
    return approxsvm_class_by_threshold(p[approxsvm_label_of_threshold(threshold)], threshold);
}
APPROXSVM_ANSWER int approxsvm_is_certain_by_share(const double* lowest, const double* highest,
                                                   const double* threshold) {
    const int label = approxsvm_label_of_threshold(threshold);
    return lowest[label] >= threshold[0] || highest[label] < threshold[0];
}

#endif
