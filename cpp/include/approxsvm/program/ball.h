/* Balls: numbers on a row's way through an input map, with how far the number that is meant may be from each. */
#pragma once
#include "functions.h"

typedef struct {
    double value, radius; /* infinite where nothing is known */
} approxsvm_ball;

/* Parameters from here on say that a feature stays as it is. */
#define APPROXSVM_STAYS 1e301

/* What a source computes in, where balls cover its rounding: the real numbers where they need not. */
enum { approxsvm_real, approxsvm_float64, approxsvm_float32 };

/* The unit roundoff, and what underflow adds at most. */
APPROXSVM_PROGRAM double approxsvm_unit_of(int source) {
    return source == approxsvm_float32 ? 0x1p-24 : source == approxsvm_float64 ? 0x1p-53 : 0.0;
}
APPROXSVM_PROGRAM double approxsvm_tiny_of(int source) {
    return source == approxsvm_float32 ? 0x1p-149 : 0x1p-1000;
}

/* What a number of the source's own arithmetic may be from x: it rounds as x does, and so is within its radius of what
   is meant, as x is. No number between x and that is missed by comparing with x less, or plus, this. */
APPROXSVM_PROGRAM double approxsvm_reach(approxsvm_ball x) {
    return 2.0 * (1.0 + 0x1p-30) * x.radius + (0x1p-52 * approxsvm_abs(x.value) + 0x1p-1060);
}

/* Not below a norm, by the sum of n squares, by less than 1e-5 of it: from any start Newton's method for the root gives
   a number that is not below. Squares too small for float64 are of numbers below 2^-537. */
APPROXSVM_PROGRAM double approxsvm_norm_above(double sum_of_squares, int n) {
    double root = approxsvm_double_of_bits((approxsvm_bits_of_double(sum_of_squares) >> 1) + ((uint64_t)0x1FF8 << 48));
    root = 0.5 * (root + sum_of_squares / root);
    root = 0.5 * (root + sum_of_squares / root);
    return (1.0 + 0x1p-30) * root + (double)n * 0x1p-500;
}

/* How many of n ascending edges are not above x: the piece that x lies in. */
APPROXSVM_PROGRAM int approxsvm_piece(double x, const double* edges, int n) {
    int low = 0;
    while (n > 0) {
        const int half = n / 2, is_beyond = edges[low + half] <= x;
        low = is_beyond ? low + half + 1 : low;
        n = is_beyond ? n - half - 1 : half;
    }
    return low;
}
