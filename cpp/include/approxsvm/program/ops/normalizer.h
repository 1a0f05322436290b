/* The op x / ||x||. Callers compute the norms; the core does so in SIMD lanes. */
#ifndef APPROXSVM_PROGRAM_OPS_NORMALIZER_H
#define APPROXSVM_PROGRAM_OPS_NORMALIZER_H
#include "../ball.h"

/* For dense rows, a norm below this limit is replaced by 1, as in scikit-learn; for sparse rows, only a norm of 0 is
   replaced. */
#define APPROXSVM_LEAST_NORM (10.0 * 0x1p-52)
#define APPROXSVM_LEAST_NORM_OF_SPARSE_ROWS 0x1p-1074

/* The ball of the norm of n values, where `came` is the norm of their radii. The relative error of a sum of n absolute
   values or squares is at most gamma_(n + 3), in any order of summation; `lost` is a bound on the norm's loss by
   underflow: for squares, n times 0x1p-536, which matters only for tiny norms. A maximum (n = 0) is not rounded. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_norm(double length, double came, int n, double unit, double lost) {
    const double rounding = n > 0 ? 1.01 * ((double)n + 3.0) * unit : 0.0;
    approxsvm_ball norm;
    norm.value = length;
    norm.radius = (came * (1.0 + rounding) + rounding * length) * (1.0 + 0x1p-30) + lost;
    return norm;
}

/* The norm of n values, for callers that do not need speed: l1, l2, or the maximum. */
enum { approxsvm_l1, approxsvm_l2, approxsvm_max };
APPROXSVM_PROGRAM double approxsvm_length(int which, int n, const double* x) {
    double length = 0.0;
    int j;
    for (j = 0; j < n; ++j) {
        const double size = approxsvm_abs(x[j]);
        length = which == approxsvm_max ? (size > length ? size : length)
                                        : length + (which == approxsvm_l2 ? size * size : size);
    }
    return which == approxsvm_l2 ? APPROXSVM_ROOT(length) : length;
}

/* The error of x / N is at most (e + |x / N| E) / (N - E), where E is the radius of the norm N and e the radius of x,
   plus one rounding. */
APPROXSVM_PROGRAM double approxsvm_normalized_radius(double radius, double y, approxsvm_ball norm, double unit,
                                                     double tiny) {
    const double size = approxsvm_abs(y);
    return ((radius + size * norm.radius + tiny) / (norm.value - norm.radius) + unit * size + tiny) * (1.0 + 0x1p-30);
}

/* There is no bound if the norm may lie on either side of the smallest norm by which values are divided. A value known
   to be 0 stays 0 in both cases.
 */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_normalized(approxsvm_ball x, approxsvm_ball norm, double least) {
    if (x.value == 0.0 && x.radius == 0.0) return x;
    if (norm.value >= least) {
        x.value /= norm.value;
        x.radius = approxsvm_normalized_radius(x.radius, x.value, norm, 0x1p-53, 0x1p-1000);
    }
    if (!(norm.value - norm.radius >= least || norm.value + norm.radius < least)) x.radius = approxsvm_infinity();
    return x;
}

#endif
