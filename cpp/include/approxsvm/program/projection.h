/* x -> (x - center) matrix + bias. Who calls these has the products: the core in blocks of rows and columns. */
#pragma once
#include "ball.h"

/* What x - center is off by for its column of products: a sum of n of these errs by gamma_(n + 2) of the sum of their
   moduli, in any order, fused or not. By Cauchy and Schwarz that grows by the norm of a column at most. */
APPROXSVM_PROGRAM double approxsvm_centered_radius(double radius, double z, int n) {
    return 1.01 * ((double)n + 3.0) * 0x1p-53 * approxsvm_abs(z) + radius;
}

/* What does not depend on the row: the bias' own error and rounding, and underflow. */
APPROXSVM_PROGRAM double approxsvm_bias_radius(double bias, double bias_error, int n) {
    return bias_error + 0x1p-52 * approxsvm_abs(bias) + ((double)n + 2.0) * 0x1p-1070;
}

/* With the norm of approxsvm_centered_radius() of all features. */
APPROXSVM_PROGRAM double approxsvm_projected_radius(double reach, double column_norm, double of_bias, double y) {
    return (reach * column_norm + (of_bias + 0x1p-52 * approxsvm_abs(y))) * (1.0 + 0x1p-30);
}
