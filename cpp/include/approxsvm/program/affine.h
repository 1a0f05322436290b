/* x -> min(max((x - subtract) * multiply / divide + add, low), high), as scalers do it. Who calls these has the
   operations themselves: the core in loops over features, each of its own, so that no compiler fuses two of them. */
#pragma once
#include "ball.h"

/* What radii grow by, and what underflow adds. */
APPROXSVM_PROGRAM double approxsvm_affine_gain(double multiply, double divide) {
    return approxsvm_abs(multiply) / approxsvm_abs(divide) * (1.0 + 0x1p-50) + 0x1p-1070;
}
APPROXSVM_PROGRAM double approxsvm_affine_underflow(double divide) {
    return 0x1p-1069 / approxsvm_abs(divide) + 0x1p-1069;
}

/* With y the value before `add`, each of the operations up to it, whose number times 2^-53 is `path`, errs by u |y|. */
APPROXSVM_PROGRAM double approxsvm_own_radius(double path, double y, double underflow) {
    return path * approxsvm_abs(y) + underflow;
}
APPROXSVM_PROGRAM double approxsvm_scaled_radius(double radius, double gain, double path, double y, double underflow) {
    return radius * gain + approxsvm_own_radius(path, y, underflow);
}

/* By how much, relatively, multiply / divide may differ from the source's parameters over the real numbers. */
APPROXSVM_PROGRAM double approxsvm_with_relative(double radius, double y, double relative) {
    return radius + (relative > 0.0 ? relative * (approxsvm_abs(y) + radius) : 0.0);
}

APPROXSVM_PROGRAM double approxsvm_added_radius(double radius, double y) {
    return radius + 0x1.00001p-53 * approxsvm_abs(y);
}

/* A number that is beyond a limit within its radius is the limit. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_at_least(approxsvm_ball x, double low) {
    approxsvm_ball y;
    y.radius = x.value + x.radius < low ? 0.0 : x.radius;
    y.value = x.value < low ? low : x.value;
    return y;
}
APPROXSVM_PROGRAM approxsvm_ball approxsvm_at_most(approxsvm_ball x, double high) {
    approxsvm_ball y;
    y.radius = x.value - x.radius > high ? 0.0 : x.radius;
    y.value = x.value > high ? high : x.value;
    return y;
}
