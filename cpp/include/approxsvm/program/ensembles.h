/* Answers of several models, combined: means of probabilities, votes, and sums of values, one row at a time, one member
   after the other in the source's order. Callers clear the sums. */
#ifndef APPROXSVM_PROGRAM_ENSEMBLES_H
#define APPROXSVM_PROGRAM_ENSEMBLES_H
#include "scores.h"

/* Adds the probabilities of a member and their intervals, times its weight. */
APPROXSVM_ANSWER void approxsvm_add_shares(int n, double weight, const double* p, const double* low, const double* high,
                                           double* sums, double* lowest, double* highest) {
    int c;
    for (c = 0; c < n; ++c) {
        sums[c] += weight * p[c];
        lowest[c] += weight * low[c];
        highest[c] += weight * high[c];
    }
}

/* Turns these sums into means and their intervals. The total of the weights, products, sums and divisions round by less
   than 2 n_members + 2 units of numbers up to 1: here, and in the source, whatever its order. */
APPROXSVM_ANSWER void approxsvm_divide_shares(int n, int n_members, double total, double* sums, double* lowest,
                                              double* highest) {
    const double slack = 4.0 * ((double)n_members + 1.0) * 0x1p-53;
    int c;
    for (c = 0; c < n; ++c) {
        sums[c] /= total;
        lowest[c] = lowest[c] / total - slack;
        highest[c] = highest[c] / total + slack;
    }
}

/* Counts a member's vote: `weight` for its label. `sure` counts only certain labels, `open` the weight of all others.
   The label with the largest sum wins, or the first of them. */
APPROXSVM_ANSWER void approxsvm_count_vote(int label, int is_certain, double weight, double* sums, double* sure,
                                           double* open) {
    sums[label] += weight;
    if (is_certain) {
        sure[label] += weight;
    } else {
        *open += weight;
    }
}

/* Whether no vote of the members without certain labels can change the winner. Each moves one label's sum against
   another's by its weight. A sum is off by at most n_members + 4 units of the absolute sum; eight times as much covers
   both sums, here and in the source. Without such members, source and core add the same numbers in the same order. */
APPROXSVM_ANSWER int approxsvm_is_elected(int n, int n_members, const double* sure, double open) {
    const int winner = approxsvm_first_largest(n, sure);
    double total = open;
    int c;
    if (open == 0.0) return 1;
    for (c = 0; c < n; ++c) total += sure[c];
    for (c = 0; c < n; ++c) {
        if (c != winner && !(sure[winner] - sure[c] > open + 8.0 * ((double)n_members + 4.0) * 0x1p-53 * total))
            return 0;
    }
    return 1;
}

/* A sum of an addend and of n weights times numbers. Stored weights are within a unit of the real ones, and a product
   goes through at most n + 1 additions, so an exact sum is within

       sum |w| e + (n + 4) u (|addend| + sum |w x|)

   of the computed one, if e bounds the error of each number x. Products of a subnormal weight lose up to 2^-1074 of a
   number. Numbers of weight 0 may be unbounded. */
APPROXSVM_PROGRAM double approxsvm_unit_of_sum(int n) {
    return 1.01 * ((double)n + 4.0) * 0x1p-53;
}
APPROXSVM_PROGRAM double approxsvm_bound_of_addend(double unit, double addend) {
    return unit * approxsvm_abs(addend) + 0x1p-1000;
}
APPROXSVM_ANSWER void approxsvm_add_products(int n, const double* weights, const double* x, const double* e,
                                             double unit, double* sum, double* bound) {
    int k;
    for (k = 0; k < n; ++k) {
        const double size = approxsvm_abs(weights[k]);
        if (weights[k] == 0.0) continue;
        *sum += weights[k] * x[k];
        *bound += 1.000001 * size * e[k] + (unit * size + 0x1p-1074) * approxsvm_abs(x[k]);
    }
}

#endif
