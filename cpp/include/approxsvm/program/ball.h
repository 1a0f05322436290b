/* Balls: numbers on a row's way through an input map, with how far the number that is meant may be from each. */
#pragma once
#include "functions.h"

typedef struct {
    double value, radius; /* infinite where nothing is known */
} approxsvm_ball;

/* Parameters from here on say that a feature stays as it is. */
#define APPROXSVM_STAYS 1e301

/* What a source computes in, where balls cover its rounding: the real numbers where they need not. */
enum { approxsvm_real, approxsvm_float64, approxsvm_float32 };

/* The unit roundoff, and what underflow adds at most. */
APPROXSVM_PROGRAM double approxsvm_unit_of(int source) {
    return source == approxsvm_float32 ? 0x1p-24 : source == approxsvm_float64 ? 0x1p-53 : 0.0;
}
APPROXSVM_PROGRAM double approxsvm_tiny_of(int source) {
    return source == approxsvm_float32 ? 0x1p-149 : 0x1p-1000;
}

/* The ball about x that the source may have, which rounds numbers up to `size` on its way to the function. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_widened(approxsvm_ball x, double size, int source) {
    const double reach =
        (x.radius + approxsvm_unit_of(source) * size) * (1.0 + 0x1p-50) + 0x1p-52 * approxsvm_abs(x.value);
    x.radius = x.radius == 0.0 && source == approxsvm_real ? 0.0 : reach;
    return x;
}

/* The ball of an increasing function, from its balls at a number and at both ends of that number's ball. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_increasing(approxsvm_ball low, approxsvm_ball at, approxsvm_ball high) {
    const double below = at.value - (low.value - low.radius), above = high.value + high.radius - at.value;
    const double radius = ((below > above ? below : above) + 0x1p-1000) * (1.0 + 0x1p-30);
    approxsvm_ball y;
    y.value = at.value;
    y.radius = radius >= 0.0 ? radius : approxsvm_infinity(); /* NaN of two infinities neither */
    return y;
}
