/* x -> log(x + offset). */
#pragma once
#include "ball.h"

/* Whether every number of a ball has a value. */
APPROXSVM_PROGRAM int approxsvm_logarithm_takes(double x, double radius, double offset) {
    return x - radius > -offset;
}

/* At one number: 4 u here, 12 units in the source. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_logarithm_at(double x, double offset, int source) {
    approxsvm_ball at;
    at.value = approxsvm_log_of_sum(x, offset);
    at.radius =
        (5.0 * 0x1p-53 + 12.0 * approxsvm_unit_of(source)) * approxsvm_abs(at.value) + approxsvm_tiny_of(source);
    return at;
}

/* Of a ball; the source rounds the offset and x + offset. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_logarithm(approxsvm_ball x, double offset, int source) {
    const double size = approxsvm_abs(x.value) + 2.0 * approxsvm_abs(offset);
    const approxsvm_ball wide = approxsvm_widened(x, size, source);
    approxsvm_ball y = approxsvm_increasing(approxsvm_logarithm_at(wide.value - wide.radius, offset, source),
                                            approxsvm_logarithm_at(x.value, offset, source),
                                            approxsvm_logarithm_at(wide.value + wide.radius, offset, source));
    y.radius = approxsvm_logarithm_takes(wide.value, wide.radius, offset) ? y.radius : approxsvm_infinity();
    return y;
}

/* Features of a row, which are points; those of an infinite offset stay as they are. */
APPROXSVM_PROGRAM void approxsvm_logarithm_points(int n, const double* offset, int source, double* x, double* radius) {
    int j;
    for (j = 0; j < n; ++j) {
        const approxsvm_ball y = approxsvm_logarithm_at(x[j], offset[j], source);
        x[j] = offset[j] < APPROXSVM_STAYS ? y.value : x[j];
        radius[j] = offset[j] < APPROXSVM_STAYS ? y.radius : 0.0;
    }
}

/* Features of a row, with their radii. */
APPROXSVM_PROGRAM void approxsvm_logarithm_balls(int n, const double* offset, int source, double* x, double* radius) {
    int j;
    for (j = 0; j < n; ++j) {
        approxsvm_ball y;
        y.value = x[j];
        y.radius = radius[j];
        y = approxsvm_logarithm(y, offset[j], source);
        x[j] = offset[j] < APPROXSVM_STAYS ? y.value : x[j];
        radius[j] = offset[j] < APPROXSVM_STAYS ? y.radius : radius[j];
    }
}
