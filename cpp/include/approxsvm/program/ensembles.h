/* Combinations of the values computed by an ensemble's members: weighted sums of values, probabilities, scores or
   votes, for one row at a time, over the members in the source's order. */
#ifndef APPROXSVM_PROGRAM_ENSEMBLES_H
#define APPROXSVM_PROGRAM_ENSEMBLES_H
#include "scores.h"

/* A sum of an addend and n products of a weight and a value. Stored weights are within one unit of the real weights,
   and a product passes through at most n + 1 additions, so an exact sum is within

       sum |w| e + (n + 4) u (|addend| + sum |w x|)

   of the computed sum, if e bounds the error of each value x. The source's rounding error is at most as large, in
   whatever order the source adds and divides; approxsvm_unit_of_sum() covers the rounding of both core and source.
   Products with a subnormal weight lose up to 2^-1074 times the value. Values with weight 0 may have no bound. */
APPROXSVM_PROGRAM double approxsvm_unit_of_sum(int n) {
    return 2.02 * ((double)n + 4.0) * 0x1p-53;
}
APPROXSVM_PROGRAM double approxsvm_bound_of_addend(double unit, double addend) {
    return unit * approxsvm_abs(addend) + 0x1p-1000;
}
APPROXSVM_PROGRAM void approxsvm_add_product(double weight, double x, double e, double unit, double* sum,
                                             double* bound) {
    const double size = approxsvm_abs(weight);
    if (weight == 0.0) return;
    *sum += weight * x;
    *bound += 1.000001 * size * e + (unit * size + 0x1p-1074) * approxsvm_abs(x);
}
/* Enlarges a sum of bounds by the rounding of the summation. */
APPROXSVM_PROGRAM double approxsvm_bound_of_sum(double unit, double bound) {
    return bound * (1.0 + unit);
}

/* Whether the winner is the same however the `n_open` members without certain labels vote. Such a member adds 1/2 +-
   1/2 to the vote for each of its labels. If n_open is 0, the source and the core add the same values in the same
   order. */
APPROXSVM_ANSWER int approxsvm_is_elected(int n, int n_open, const double* sums, const double* bounds) {
    const int winner = approxsvm_first_largest(n, sums);
    const double least = approxsvm_around(sums[winner], bounds[winner]).lowest;
    int c;
    for (c = 0; c < n && n_open > 0; ++c) {
        if (c != winner && !(least > approxsvm_around(sums[c], bounds[c]).highest)) return 0;
    }
    return 1;
}

#endif
