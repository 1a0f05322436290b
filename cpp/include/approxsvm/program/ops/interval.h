/* Intervals: numbers outside an interval are wrapped into it, or rejected. */
#ifndef APPROXSVM_PROGRAM_OPS_INTERVAL_H
#define APPROXSVM_PROGRAM_OPS_INTERVAL_H
#include "../ball.h"

/* x -> low + (x - low) mod length, like NumPy's x % length: the remainder is exact if x is at least low, and is rounded
   otherwise. The rounding error of x - low is computed. If x is not the source's own number, the two may lie on
   different sides of a multiple of length. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_turned(approxsvm_ball x, double low, double length, int is_source) {
    const double from_low = x.value - low, back = from_low - x.value;
    const double lost = approxsvm_abs((x.value - (from_low - back)) + (-low - back));
    const double doubt = (x.radius + lost + 0x1p-53 * length) * (1.0 + 0x1p-30);
    double rest = approxsvm_abs(from_low), turn = length;
    approxsvm_ball y;
    y.radius = approxsvm_infinity();
    y.value = from_low - from_low; /* NaN if x is infinite or NaN */
    if (!(rest <= APPROXSVM_LARGEST)) return y;
    while (turn <= 0.5 * rest) turn *= 2.0;
    for (; turn >= length; turn *= 0.5) rest -= rest >= turn ? turn : 0.0;
    if (from_low < 0.0 && rest > 0.0) rest = length - rest;
    y.value = low + rest;
    if (is_source || (rest > 2.0 * doubt && length - rest > 2.0 * doubt))
        y.radius = doubt + 0x1p-53 * approxsvm_abs(y.value) * (1.0 + 0x1p-30);
    return y;
}

/* The signed distance of x from the nearer endpoint, positive outside the interval, where the source rejects x. */
APPROXSVM_PROGRAM double approxsvm_beyond(double x, double low, double high) {
    return low - x > x - high ? low - x : x - high;
}

/* Removes the bound of a number that the source may reject, because the source's number may lie beyond an endpoint. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_between(approxsvm_ball x, double low, double high, int is_source) {
    if (!(is_source || x.radius == 0.0) && !(approxsvm_beyond(x.value, low, high) < -approxsvm_reach(x)))
        x.radius = approxsvm_infinity();
    return x;
}

#endif
