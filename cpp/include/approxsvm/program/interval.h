/* Intervals that numbers are moved into by whole turns, or refused beyond. */
#pragma once
#include "ball.h"

/* x -> low + (x - low) mod length, as NumPy's x % length: the remainder is exact, and rounded where x is below low.
   What x - low loses is known. A number that is not the source's own may be on either side of a full turn. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_turned(approxsvm_ball x, double low, double length, int is_source) {
    const double from_low = x.value - low, back = from_low - x.value;
    const double lost = approxsvm_abs((x.value - (from_low - back)) + (-low - back));
    const double doubt = (x.radius + lost + 0x1p-53 * length) * (1.0 + 0x1p-30);
    double rest = approxsvm_abs(from_low), turn = length;
    approxsvm_ball y;
    y.value = x.value;
    y.radius = x.radius;
    if (!(length < APPROXSVM_STAYS)) return y;
    y.radius = approxsvm_infinity();
    y.value = from_low - from_low; /* NaN of what is not finite */
    if (!(rest <= APPROXSVM_LARGEST)) return y;
    while (turn <= 0.5 * rest) turn *= 2.0;
    for (; turn >= length; turn *= 0.5) rest -= rest >= turn ? turn : 0.0;
    if (from_low < 0.0 && rest > 0.0) rest = length - rest;
    y.value = low + rest;
    if (is_source || (rest > 2.0 * doubt && length - rest > 2.0 * doubt))
        y.radius = doubt + 0x1p-53 * approxsvm_abs(y.value) * (1.0 + 0x1p-30);
    return y;
}

/* How far x is beyond the nearer end; the source refuses what is beyond 0. */
APPROXSVM_PROGRAM double approxsvm_beyond(double x, double low, double high) {
    return low - x > x - high ? low - x : x - high;
}

/* Nothing is known of a number that the source may refuse, as its own may be beyond an end. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_between(approxsvm_ball x, double low, double high, int is_source) {
    if (high < APPROXSVM_STAYS && !(is_source || x.radius == 0.0) &&
        !(approxsvm_beyond(x.value, low, high) < -approxsvm_reach(x)))
        x.radius = approxsvm_infinity();
    return x;
}
