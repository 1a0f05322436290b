/* Powers, and polynomial bounds. */
#ifndef APPROXSVM_PROGRAM_POLYNOMIAL_H
#define APPROXSVM_PROGRAM_POLYNOMIAL_H
#include "bits.h"

/* t^p, computed with p - 1 roundings. */
APPROXSVM_PROGRAM double approxsvm_powered(double t, int power) {
    double product = t;
    int k;
    for (k = 1; k < power; ++k) product *= t;
    return product;
}

/* The value at r >= 0 of a polynomial with nonnegative coefficients, rounded up. */
APPROXSVM_PROGRAM float approxsvm_polynomial_above(const float* c, int n, float r) {
    float sum = c[n - 1];
    int k;
    for (k = n - 2; k >= 0; --k) sum = sum * r + c[k];
    return sum * 1.00001f;
}

#endif
