/* x -> a sqrt(x) cos(w log x), or with sin, and 0 at 0: the features of AdditiveChi2Sampler. */
#pragma once
#include "ball.h"

/* The argument t = w log x has an error of 6 u here and 14 units in the source; the wave's error is at most its size
   times this, plus 4 u for the cosine and 4 more for the root and the products, or 16 units in the source. The slope of
   the function is at most a sqrt(1/4 + w^2) / sqrt(x), which decreases in x, and its absolute value is at most a
   sqrt(x). For numbers within radius r that the source accepts, those not below 0, the change is therefore also at most
   a (sqrt(x) + sqrt(x + r)). A source computes a from cosh(pi w), and w as a product of two numbers, which adds
   `more`. It multiplies x by a^2 before it takes the root, of which underflow removes up to 2^-73 in float32. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_periodic(approxsvm_ball x, double a, double w, int is_sine, int source) {
    const double unit = approxsvm_unit_of(source), more = 4.0 * unit;
    const double log = approxsvm_log(x.value > 0.0 ? x.value : 1.0, 0.0), size = a * APPROXSVM_ROOT(x.value);
    const double turn = w * log, nearest = x.value - x.radius;
    const double depth = approxsvm_abs(turn) * (6.0 * 0x1p-53 + 14.2 * unit + more) +
                         more * (2.0 + 3.1415926535897932 * approxsvm_abs(w));
    double moved = 0.0;
    approxsvm_ball y;
    if (!(x.radius <= 0.0)) {
        const double whole = size + a * APPROXSVM_ROOT(x.value + x.radius);
        moved = nearest > 0.0 ? x.radius * a * APPROXSVM_ROOT(0.25 + w * w) / APPROXSVM_ROOT(nearest) : whole;
        moved = moved < whole ? moved : whole;
    }
    y.value = size * approxsvm_cos_or_sin(turn, is_sine);
    y.radius = (moved + (source == approxsvm_float32 ? size + moved : size) * (depth + 10.0 * 0x1p-53 + 17.0 * unit)) *
                   (1.0 + 0x1p-30) +
               (source == approxsvm_float32 ? 0x1p-73 : 0x1p-500);
    y.radius = approxsvm_abs(turn) < 0x1p18 ? y.radius : approxsvm_infinity();
    return y;
}
