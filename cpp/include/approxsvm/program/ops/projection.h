/* The op x -> (x - center) matrix + bias. Callers compute the products; the core uses blocks of rows and columns. */
#ifndef APPROXSVM_PROGRAM_OPS_PROJECTION_H
#define APPROXSVM_PROGRAM_OPS_PROJECTION_H
#include "../ball.h"

/* The error of x - center, which affects products with a column. A sum of n products has an error of at most gamma_(n +
   2) times the sum of their absolute values, in any order, fused or not. By the Cauchy-Schwarz inequality, the norm of
   a column bounds the growth of the error. */
APPROXSVM_PROGRAM double approxsvm_centered_radius(double radius, double z, int n) {
    return 1.01 * ((double)n + 3.0) * 0x1p-53 * approxsvm_abs(z) + radius;
}

/* The part of the error that does not depend on the row: the error and rounding of the bias, and underflow. */
APPROXSVM_PROGRAM double approxsvm_bias_radius(double bias, double bias_error, int n) {
    return bias_error + 0x1p-52 * approxsvm_abs(bias) + ((double)n + 2.0) * 0x1p-1070;
}

/* The radius of an output. `reach` is the norm of approxsvm_centered_radius() over all features. */
APPROXSVM_PROGRAM double approxsvm_projected_radius(double reach, double column_norm, double of_bias, double y) {
    return (reach * column_norm + (of_bias + 0x1p-52 * approxsvm_abs(y))) * (1.0 + 0x1p-30);
}

#endif
