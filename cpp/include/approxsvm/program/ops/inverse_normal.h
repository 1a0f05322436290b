/* The op p -> y, where P(Z < y) = p for a standard normal Z and p is first clipped to [2^-24, 1 - 2^-24]. */
#ifndef APPROXSVM_PROGRAM_OPS_INVERSE_NORMAL_H
#define APPROXSVM_PROGRAM_OPS_INVERSE_NORMAL_H
#include "../ball.h"

#define APPROXSVM_LEAST_PROBABILITY 0x1p-24

/* Rational functions from Wichura (1988), Algorithm AS 241, with coefficients in ascending order: around 1/2, y / (p -
   1/2) in powers of 0.425^2 - (p - 1/2)^2; in the tails, -y in powers of sqrt(-log p) - 1.6. All coefficients and
   arguments are nonnegative. */
APPROXSVM_PROGRAM const double* approxsvm_inverse_normal_coefs(void) {
    static const double coefs[32] = {3.387132872796366608,
                                     133.14166789178437745,
                                     1971.5909503065514427,
                                     13731.693765509461125,
                                     45921.953931549871457,
                                     67265.770927008700853,
                                     33430.575583588128105,
                                     2509.0809287301226727,
                                     1.0,
                                     42.313330701600911252,
                                     687.1870074920579083,
                                     5394.1960214247511077,
                                     21213.794301586595867,
                                     39307.89580009271061,
                                     28729.085735721942674,
                                     5226.495278852854561,
                                     1.42343711074968357734,
                                     4.6303378461565452959,
                                     5.7694972214606914055,
                                     3.64784832476320460504,
                                     1.27045825245236838258,
                                     0.24178072517745061177,
                                     0.0227238449892691845833,
                                     7.7454501427834140764e-4,
                                     1.0,
                                     2.05319162663775882187,
                                     1.6763848301838038494,
                                     0.68976733498510000455,
                                     0.14810397642748007459,
                                     0.0151986665636164571966,
                                     5.475938084995344946e-4,
                                     1.05075007164441684324e-9};
    return coefs;
}

APPROXSVM_PROGRAM double approxsvm_inverse_normal_ratio(const double* coefs, double r) {
    double above = coefs[7], below = coefs[15];
    int k;
    for (k = 6; k >= 0; --k) {
        above = above * r + coefs[k];
        below = below * r + coefs[k + 8];
    }
    return above / below;
}

/* Evaluates a ball. Let t = min(p, 1 - p), which is exact for p >= 1/2. Then |y| is a quotient of polynomials of degree
   7 whose terms all have the same sign, so that numerator and denominator have relative errors of at most 15 roundings
   each; the error of the fit is less than one rounding. In the middle, both q = 1/2 - t and 0.425^2 - q^2 have an error
   of at most one rounding. The quotient, whose logarithm has a slope below 3, amplifies this error to three roundings;
   with the division and the product, the total is less than 40 roundings. In the tails, the error of s = sqrt(-log t)
   is at most 5.5 roundings, and subtracting 1.6 adds 2. Since dy / ds is 2 s t over the density at y, which is at least
   t y (Mills' ratio), these errors contribute (5.5 s + 2) 2 s / y^2 roundings relative to y, at most 17 (at t = 0.075),
   and the total is less than 50. The bound allows for 64, plus 12 units for a float32 source, which usually evaluates
   the function in float64; a float64 source performs the operations below. Nothing underflows: y is 0 or above 2^-53.
   The slope is the reciprocal of the density, which is a concave function of p, symmetric, 0 at 0, and 1 / sqrt(2 pi)
   at 1/2; it is therefore at least t sqrt(2 / pi), and also at least t y. Hence, within radius r of p, the slope is at
   most the reciprocal of this lower bound on the density at t - r. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_inverse_normal(approxsvm_ball p, int source) {
    const double *const coefs = approxsvm_inverse_normal_coefs(), least = APPROXSVM_LEAST_PROBABILITY;
    const double other = 1.0 - p.value, inner = other < p.value ? other : p.value, nearest = inner - p.radius;
    const double t = inner < least ? least : inner, q = 0.5 - t;
    const double middle = q * approxsvm_inverse_normal_ratio(coefs, 0.180625 - q * q);
    const double s = APPROXSVM_ROOT(-approxsvm_log(t, 0.0)) - 1.6;
    const double y = q <= 0.425 ? middle : approxsvm_inverse_normal_ratio(coefs + 16, s);
    const double slope = 1.0 / ((nearest > least ? nearest : least) * (y > 0.797 ? y : 0.797));
    const double carried = p.radius > 0.0 ? p.radius * slope : p.radius; /* NaN is kept */
    const double own = 64.0 * 0x1p-53 + (source == approxsvm_float32 ? 12.0 * approxsvm_unit_of(source) : 0.0);
    approxsvm_ball found;
    found.value = p.value < 0.5 ? -y : p.value >= 0.5 ? y : p.value;
    found.radius = (carried + own * y) * (1.0 + 0x1p-30);
    return found;
}

#endif
