/* x -> a sqrt(x) cos(w log x), or sin, and 0 of 0: what AdditiveChi2Sampler makes. */
#pragma once
#include "ball.h"

/* The turn t = w log x errs by 6 u here, and by 14 units in the source; the wave by no more than that, times its size,
   by 4 u of the cosine and 4 more of root and products, 16 units in the source. The function has the slope
   a sqrt(1/4 + w^2) / sqrt(x) at most, which falls, and is within a sqrt(x) of 0: of numbers z within a radius r that
   the source takes, those not below 0, it is off by a (sqrt(x) + sqrt(x + r)) at most. A source has a from cosh(pi w),
   and the product of two numbers for w, `more`. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_periodic(approxsvm_ball x, double a, double w, int is_sine, int source) {
    const double unit = approxsvm_unit_of(source), more = 4.0 * unit;
    const double log = approxsvm_log(x.value > 0.0 ? x.value : 1.0, 0.0), size = a * APPROXSVM_ROOT(x.value);
    const double turn = w * log, nearest = x.value - x.radius;
    const double path = approxsvm_abs(turn) * (6.0 * 0x1p-53 + 14.2 * unit + more) +
                        more * (2.0 + 3.1415926535897932 * approxsvm_abs(w));
    double moved = x.radius;
    approxsvm_ball y;
    if (!(x.radius <= 0.0)) {
        const double whole = size + a * APPROXSVM_ROOT(x.value + x.radius);
        moved = nearest > 0.0 ? x.radius * a * APPROXSVM_ROOT(0.25 + w * w) / APPROXSVM_ROOT(nearest) : whole;
        moved = moved < whole ? moved : whole;
    }
    y.value = size * approxsvm_cos_or_sin(turn, is_sine);
    y.radius = (moved + (source == approxsvm_float32 ? size + moved : size) * (path + 10.0 * 0x1p-53 + 17.0 * unit)) *
                   (1.0 + 0x1p-30) +
               (source == approxsvm_float32 ? (1.0 + a) * 0x1p-73 : 0x1p-500);
    y.radius = approxsvm_abs(turn) < 0x1p18 ? y.radius : approxsvm_infinity();
    return y;
}
