/* Labels by the votes of class pairs, and tests whether a label is certain although values have errors.

   Classes are indices into the model's list of labels. There is one value per pair (0, 1), (0, 2), ..., (1, 2), ...; a
   positive value is a vote for the first class of its pair, and any other value for the second. The class with the most
   votes wins; ties go to the first class, as in LIBSVM. Counts start at 1 instead of 0, because compilers would replace
   a loop that clears an array with a call to memset. */
#ifndef APPROXSVM_PROGRAM_VOTES_H
#define APPROXSVM_PROGRAM_VOTES_H
#include "bits.h"
#ifndef APPROXSVM_BOUND /* the number type of bounds */
#define APPROXSVM_BOUND float
#endif
#ifndef APPROXSVM_CHECKS /* 1 if values may be infinite or NaN, and bounds negative or NaN */
#define APPROXSVM_CHECKS 0
#endif

/* The class of a pair that certainly gets the exact value's vote. */
enum { approxsvm_unknown, approxsvm_first, approxsvm_second };

/* Whether a value and its bound carry information: comparisons are false for NaN, and infinite values prove nothing. */
APPROXSVM_PROGRAM int approxsvm_is_known(double value, double bound) {
    return !APPROXSVM_CHECKS || (bound >= 0.0 && approxsvm_is_finite(value));
}

APPROXSVM_PROGRAM int approxsvm_outcome(double value, double bound) {
    if (!approxsvm_is_known(value, bound)) return approxsvm_unknown;
    if (value > bound) return approxsvm_first;
    return value <= -bound ? approxsvm_second : approxsvm_unknown;
}

/* The index of the largest number; ties go to the first. */
APPROXSVM_ANSWER int approxsvm_first_largest(int n, const double* x) {
    int best = 0, c;
    for (c = 1; c < n; ++c) best = x[c] > x[best] ? c : best;
    return best;
}
APPROXSVM_ANSWER int approxsvm_most_votes(int n, const uint32_t* votes) {
    int best = 0, c;
    for (c = 1; c < n; ++c) best = votes[c] > votes[best] ? c : best;
    return best;
}

/* The class that wins by the pairs' values; `votes` is scratch space for n counts. */
APPROXSVM_ANSWER int approxsvm_vote_winner(int n, const double* values, uint32_t* votes) {
    int i, j;
    for (i = 0; i < n; ++i) votes[i] = 1;
    for (i = 0; i < n; ++i) {
        for (j = i + 1; j < n; ++j) ++votes[*values++ > 0.0 ? i : j];
    }
    return approxsvm_most_votes(n, votes);
}

/* Adds the outcome of the pair (i, j) to each class's number of certain votes and maximum number of votes. */
APPROXSVM_PROGRAM void approxsvm_tally_pair(int outcome, int i, int j, uint32_t* certain, uint32_t* possible) {
    certain[i] += outcome == approxsvm_first;
    certain[j] += outcome == approxsvm_second;
    possible[i] += outcome != approxsvm_second;
    possible[j] += outcome != approxsvm_first;
}

/* The class that wins for every outcome of the unknown pairs, or -1 if there is none. The test assumes the worst case,
   which can occur: the winner loses all its unknown pairs, and another class wins all its own. The pair of these two
   classes may be among them. */
APPROXSVM_ANSWER int approxsvm_certain_winner(int n, const uint32_t* certain, const uint32_t* possible) {
    const int winner = approxsvm_most_votes(n, certain); /* only this class can win in all cases */
    int c;
    for (c = 0; c < n; ++c) {
        if (c != winner && possible[c] + (c < winner) > certain[winner]) return -1;
    }
    return winner;
}

/* The class that wins for all values within their bounds, or -1 if there is none; `counts` is scratch space for 2 n
   counts. */
APPROXSVM_ANSWER int approxsvm_certain_vote(int n, const double* values, const APPROXSVM_BOUND* bounds,
                                            uint32_t* counts) {
    int i, j;
    for (i = 0; i < 2 * n; ++i) counts[i] = 1;
    for (i = 0; i < n; ++i) {
        for (j = i + 1; j < n; ++j)
            approxsvm_tally_pair(approxsvm_outcome(*values++, (double)*bounds++), i, j, counts, counts + n);
    }
    return approxsvm_certain_winner(n, counts, counts + n);
}

#endif
