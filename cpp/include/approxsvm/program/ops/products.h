/* Products of balls. */
#ifndef APPROXSVM_PROGRAM_OPS_PRODUCTS_H
#define APPROXSVM_PROGRAM_OPS_PRODUCTS_H
#include "../ball.h"

/* The error of a product of y and a factor with radii e and d is at most |y| d + |factor| e + e d, plus the rounding of
   the product. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_times(approxsvm_ball y, approxsvm_ball factor, int source) {
    const double unit = 0x1p-53 + (source == approxsvm_float32 ? 0x1p-24 : 0.0);
    const double came = !(factor.radius <= 0.0) ? factor.radius * (approxsvm_abs(y.value) + y.radius) : 0.0;
    approxsvm_ball product;
    product.value = APPROXSVM_PRODUCT(y.value, factor.value);
    product.radius = (approxsvm_abs(factor.value) * y.radius + came + unit * approxsvm_abs(product.value) +
                      approxsvm_tiny_of(source)) *
                     (1.0 + 0x1p-30);
    return product;
}

#endif
