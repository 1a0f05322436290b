/* The op x -> min(max((x - subtract) * multiply / divide + add, low), high), as in scalers. Callers perform these
   operations themselves: the core uses one loop over features per operation, so that no compiler fuses two of them. */
#ifndef APPROXSVM_PROGRAM_OPS_AFFINE_H
#define APPROXSVM_PROGRAM_OPS_AFFINE_H
#include "../ball.h"

/* The growth factor of a radius, and the error added by underflow. */
APPROXSVM_PROGRAM double approxsvm_affine_gain(double multiply, double divide) {
    return approxsvm_abs(multiply) / approxsvm_abs(divide) * (1.0 + 0x1p-50) + 0x1p-1070;
}
APPROXSVM_PROGRAM double approxsvm_affine_underflow(double divide) {
    return 0x1p-1069 / approxsvm_abs(divide) + 0x1p-1069;
}

/* Let y be the value before `add`. Each operation leading to y has an error of at most u |y|; `depth` is the number of
   operations times 2^-53.
 */
APPROXSVM_PROGRAM double approxsvm_own_radius(double depth, double y, double underflow) {
    return depth * approxsvm_abs(y) + underflow;
}
APPROXSVM_PROGRAM double approxsvm_scaled_radius(double radius, double gain, double depth, double y, double underflow) {
    return radius * gain + approxsvm_own_radius(depth, y, underflow);
}

/* `relative` bounds the relative difference between multiply / divide and the source's parameters in exact
   arithmetic. */
APPROXSVM_PROGRAM double approxsvm_with_relative(double radius, double y, double relative) {
    return radius + (relative > 0.0 ? relative * (approxsvm_abs(y) + radius) : 0.0);
}

APPROXSVM_PROGRAM double approxsvm_added_radius(double radius, double y) {
    return radius + 0x1.00001p-53 * approxsvm_abs(y);
}

/* A value beyond a limit by more than its radius is replaced by exactly this limit. */
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

#endif
