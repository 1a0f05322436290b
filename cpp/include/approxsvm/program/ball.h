/* Balls: intermediate values of an input map, each with a bound on its distance from the exact value. */
#ifndef APPROXSVM_PROGRAM_BALL_H
#define APPROXSVM_PROGRAM_BALL_H
#include "functions.h"

typedef struct {
    double value, radius; /* the radius is infinite if there is no bound */
} approxsvm_ball;

/* The source's arithmetic, whose rounding the balls cover; approxsvm_real if they cover no rounding in the source. */
enum { approxsvm_real, approxsvm_float64, approxsvm_float32 };

/* The unit roundoff of the source's arithmetic, and an upper bound on the error caused by one underflow. */
APPROXSVM_PROGRAM double approxsvm_unit_of(int source) {
    return source == approxsvm_float32 ? 0x1p-24 : source == approxsvm_float64 ? 0x1p-53 : 0.0;
}
APPROXSVM_PROGRAM double approxsvm_tiny_of(int source) {
    return source == approxsvm_float32 ? 0x1p-149 : 0x1p-1000;
}

/* A bound on the distance between x and the value computed by the source, which is rounded like x, so that both lie
   within the radius of the exact value. A comparison with both x - reach and x + reach therefore misses no value that
   the source may have. */
APPROXSVM_PROGRAM double approxsvm_reach(approxsvm_ball x) {
    return 2.0 * (1.0 + 0x1p-30) * x.radius + (0x1p-52 * approxsvm_abs(x.value) + 0x1p-1060);
}

/* An upper bound on a norm, given the sum of n squares, with a relative excess below 1e-5: Newton's iteration for the
   square root never ends below the root, whatever value it starts from. A square underflows float64 only if the value
   is below 2^-537. */
APPROXSVM_PROGRAM double approxsvm_norm_above(double sum_of_squares, int n) {
    double root = approxsvm_double_of_bits((approxsvm_bits_of_double(sum_of_squares) >> 1) + ((uint64_t)0x1FF8 << 48));
    root = 0.5 * (root + sum_of_squares / root);
    root = 0.5 * (root + sum_of_squares / root);
    return (1.0 + 0x1p-30) * root + (double)n * 0x1p-500;
}

/* The number of edges that are at most x, out of n in ascending order. This is the index of the piece with x. */
APPROXSVM_PROGRAM int approxsvm_piece(double x, const double* edges, int n) {
    int low = 0;
    while (n > 0) {
        const int half = n / 2, is_beyond = edges[low + half] <= x;
        low = is_beyond ? low + half + 1 : low;
        n = is_beyond ? n - half - 1 : half;
    }
    return low;
}

#endif
