/* Box-Cox: x -> (x^p - 1) / p, log x where p is 0. Yeo-Johnson: that of 1 + x; below 0, minus that of 1 - x and 2 - p.
 */
#pragma once
#include "ball.h"

/* Whether every number of a ball has a value. */
APPROXSVM_PROGRAM int approxsvm_power_takes(double x, double radius, int is_shifted) {
    return is_shifted || x - radius > 0.0;
}

/* At one number, with what rounding does to it here and in the source.

   It is expm1(t) / p with t = p L. L errs by 4 u, and t by 6 u, as 2 - p and the product are rounded; that makes
   6 u t / (1 - exp(-t)) <= 6 u (1 + max(t, 0)) of expm1(t), to which expm1 and the quotient add 5 u.
   The source subtracts 1 from x^p, which errs by 16 of its units and, where it goes by way of L, by 14 |t| of them. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_power_at(double x, double power, int is_shifted, int source) {
    const int is_mirrored = is_shifted && x < 0.0;
    const double p = is_mirrored ? 2.0 - power : power, a = is_mirrored ? -x : x;
    const double log = approxsvm_log_of_sum(a, is_shifted ? 1.0 : 0.0), t = p * log, grown = approxsvm_expm1(t);
    const double divisor = p == 0.0 ? 1.0 : p, y = p == 0.0 ? log : grown / divisor;
    const double size = approxsvm_abs(y), of_divisor = 1.0 / approxsvm_abs(divisor);
    approxsvm_ball at;
    at.value = is_mirrored ? -y : y;
    at.radius = (12.0 + 7.0 * (t > 0.0 ? t : 0.0)) * 0x1p-53 * size + approxsvm_tiny_of(source) * (1.0 + of_divisor);
    if (source != approxsvm_real) {
        const double raised = p == 0.0 ? 0.0 : (grown + 1.0) * (16.0 + 14.0 * approxsvm_abs(t)) * of_divisor;
        at.radius += approxsvm_unit_of(source) * (raised + 14.0 * size);
    }
    if (source == approxsvm_float32 && !(grown + 1.0 + a <= 0x1.fffffep127 && approxsvm_abs(power) <= 0x1.fffffep127))
        at.radius = approxsvm_infinity(); /* beyond float32 on the way */
    return at;
}

/* Of a ball. The function increases in x and in the power. The source rounds the power, 2 - p and 1 + x, and may take a
   power below 2 of its units for 0. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_power(approxsvm_ball x, double power, int is_shifted, int source) {
    const double off = approxsvm_unit_of(source) * (4.0 + 2.0 * approxsvm_abs(power));
    const approxsvm_ball wide = approxsvm_widened(x, approxsvm_abs(x.value) + 1.0, source);
    approxsvm_ball y =
        approxsvm_increasing(approxsvm_power_at(wide.value - wide.radius, power - off, is_shifted, source),
                             approxsvm_power_at(x.value, power, is_shifted, source),
                             approxsvm_power_at(wide.value + wide.radius, power + off, is_shifted, source));
    y.radius = approxsvm_power_takes(wide.value, wide.radius, is_shifted) ? y.radius : approxsvm_infinity();
    return y;
}

/* Features of a row, which are points and not rounded by the source; those of an infinite power stay as they are. */
APPROXSVM_PROGRAM void approxsvm_power_points(int n, const double* power, int is_shifted, double* x, double* radius) {
    int j;
    for (j = 0; j < n; ++j) {
        const approxsvm_ball y = approxsvm_power_at(x[j], power[j], is_shifted, approxsvm_real);
        x[j] = power[j] < APPROXSVM_STAYS ? y.value : x[j];
        radius[j] = power[j] < APPROXSVM_STAYS ? y.radius : 0.0;
    }
}

/* Features of a row, with their radii. */
APPROXSVM_PROGRAM void approxsvm_power_balls(int n, const double* power, int is_shifted, int source, double* x,
                                             double* radius) {
    int j;
    for (j = 0; j < n; ++j) {
        approxsvm_ball y;
        y.value = x[j];
        y.radius = radius[j];
        y = approxsvm_power(y, power[j], is_shifted, source);
        x[j] = power[j] < APPROXSVM_STAYS ? y.value : x[j];
        radius[j] = power[j] < APPROXSVM_STAYS ? y.radius : radius[j];
    }
}
