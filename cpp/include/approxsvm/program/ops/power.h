/* Box-Cox: x -> (x^p - 1) / p, or log x if p = 0. Yeo-Johnson: the same function at 1 + x; for x below 0, minus the
   same function at 1 - x with 2 - p instead of p. */
#ifndef APPROXSVM_PROGRAM_OPS_POWER_H
#define APPROXSVM_PROGRAM_OPS_POWER_H
#include "../ball.h"

/* Whether the function is defined at every number in a ball. */
APPROXSVM_PROGRAM int approxsvm_power_takes(double x, double radius, int is_shifted) {
    return is_shifted || x - radius > 0.0;
}

/* Evaluation at one number: the value, the error from the core's rounding, and the error added by the source's
   rounding.

   The value is expm1(t) / p with t = p L, where L is the logarithm. The error of L is at most 4 u, and the error of t
   at most 6 u, because 2 - p and the product are rounded. This changes expm1(t) by a relative error of at most 6 u t /
   (1 - exp(-t)) <= 6 u (1 + max(t, 0)); expm1 and the division add 5 u. The source subtracts 1 from x^p, whose error is
   at most 16 of the source's units, or 14 |t| units if x^p is computed from L. The error of the source's power p is d =
   (4 + 2 |p|) units: the power is rounded, 2 - p is rounded, and a power below 2 units may be treated as 0. The
   derivative with respect to p is at most L y, for the largest y between the two powers. The error from underflow in
   the source is far below 14 units of y or 16 units of x^p / p. */
typedef struct {
    double value, own, of_source;
} approxsvm_power_value;

APPROXSVM_PROGRAM approxsvm_power_value approxsvm_power_at(double x, double power, int is_shifted, int source) {
    const int is_mirrored = is_shifted && x < 0.0;
    const double p = is_mirrored ? 2.0 - power : power, a = is_mirrored ? -x : x;
    const double log = approxsvm_log_of_sum(a, is_shifted ? 1.0 : 0.0), t = p * log, grown = approxsvm_expm1(t);
    const double divisor = p == 0.0 ? 1.0 : p, y = p == 0.0 ? log : grown / divisor;
    const double size = approxsvm_abs(y), of_divisor = 1.0 / approxsvm_abs(divisor);
    approxsvm_power_value at;
    at.value = is_mirrored ? -y : y;
    at.own = (12.0 + 7.0 * (t > 0.0 ? t : 0.0)) * 0x1p-53 * size + 0x1p-1000 * (1.0 + of_divisor);
    at.of_source = 0.0;
    if (source != approxsvm_real) {
        const double unit = approxsvm_unit_of(source), largest = source == approxsvm_float32 ? 0x1.fffffep127 : 1e308;
        const double raised = p == 0.0 ? 0.0 : (grown + 1.0) * (16.0 + 14.0 * approxsvm_abs(t)) * of_divisor;
        const double off = unit * (4.0 + 2.0 * approxsvm_abs(power)) * approxsvm_abs(log);
        const double added = unit * (raised + 14.0 * size) + 1.01 * off * size;
        /* There is no bound if the source's intermediate values may overflow, or if d changes x^p substantially. */
        const int is_known = (grown + 1.0 + a <= largest) & (approxsvm_abs(power) <= largest) & (off <= 0.01);
        at.of_source = is_known ? added : approxsvm_infinity();
    }
    return at;
}

/* Evaluates a ball. The function is increasing in x, so its values lie between those at both endpoints. The terms of
   the source's error are also monotone below 0 and above 0, so the largest error is at an endpoint or, in the shifted
   case, at 0. In the shifted case, the source rounds 1 + x. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_power(approxsvm_ball x, double power, int is_shifted, int source) {
    const double unit = approxsvm_unit_of(source), size = approxsvm_abs(x.value);
    const double reach = x.radius + (is_shifted ? unit * (size + 1.0) : 0.0);
    const double wide = reach > 0.0 ? reach * (1.0 + 0x1p-50) + 0x1p-52 * size : reach;
    const approxsvm_power_value low = approxsvm_power_at(x.value - wide, power, is_shifted, source);
    const approxsvm_power_value at = approxsvm_power_at(x.value, power, is_shifted, source);
    const approxsvm_power_value high = approxsvm_power_at(x.value + wide, power, is_shifted, source);
    const double below = at.value - (low.value - low.own), above = high.value + high.own - at.value;
    const double at_0 =
        (power == 0.0 ? 0.0 : 1.0 / approxsvm_abs(power)) + (power == 2.0 ? 0.0 : 1.0 / approxsvm_abs(2.0 - power));
    const double of_0 = is_shifted && !(wide < size) ? 17.0 * unit * at_0 : 0.0;
    const double of_ends = low.of_source > high.of_source ? low.of_source : high.of_source;
    const double of_both = at.of_source > of_ends ? at.of_source : of_ends;
    const double moved = below > above ? below : above;
    const double radius = (moved + (of_both > of_0 ? of_both : of_0) + 0x1p-1000) * (1.0 + 0x1p-30);
    approxsvm_ball y;
    y.value = at.value;
    y.radius = (below >= 0.0) & (above >= 0.0) & (radius >= 0.0) & approxsvm_power_takes(x.value, wide, is_shifted)
                   ? radius
                   : approxsvm_infinity(); /* nor is there a bound if a number is NaN */
    return y;
}

#endif
