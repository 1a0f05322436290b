/* The op x -> log(x + offset). */
#ifndef APPROXSVM_PROGRAM_OPS_LOGARITHM_H
#define APPROXSVM_PROGRAM_OPS_LOGARITHM_H
#include "../ball.h"

/* Evaluates a ball. The error of the logarithm is at most 4 u in the core and 12 units in the source, which also rounds
   the offset and the sum s = x + offset. Within radius r of s, the logarithm changes by at most r / (s - r), because it
   is concave. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_logarithm(approxsvm_ball x, double offset, int source) {
    const double unit = approxsvm_unit_of(source), sum = x.value + offset;
    const double reach = x.radius + unit * (approxsvm_abs(sum) + approxsvm_abs(offset));
    const double nearest = sum * (1.0 - 0x1p-50) - reach;
    approxsvm_ball y;
    y.value = approxsvm_log_of_sum(x.value, offset);
    y.radius = (reach / nearest + (5.0 * 0x1p-53 + 12.0 * unit) * approxsvm_abs(y.value)) * (1.0 + 0x1p-30) +
               approxsvm_tiny_of(source);
    y.radius = nearest > 0.0 ? y.radius : approxsvm_infinity();
    return y;
}

#endif
