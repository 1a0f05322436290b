/* Balls: numbers on a row's way through an input map, with how far the number that is meant may be from each. */
#pragma once
#include "functions.h"

typedef struct {
    double value, radius; /* infinite where nothing is known */
} approxsvm_ball;

/* Rounding of sources that compute in float32: 2^-24, and what underflow adds. */
#define APPROXSVM_UNIT32 0x1p-24
#define APPROXSVM_TINY32 0x1p-149
#define APPROXSVM_LARGEST32 0x1.fffffep127

/* The ball of an increasing function, from its balls at a number and at both ends of that number's ball. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_increasing(approxsvm_ball low, approxsvm_ball at, approxsvm_ball high) {
    const double below = at.value - (low.value - low.radius), above = high.value + high.radius - at.value;
    const double radius = ((below > above ? below : above) + 0x1p-1070) * (1.0 + 0x1p-30);
    approxsvm_ball y;
    y.value = at.value;
    y.radius = radius >= 0.0 ? radius : approxsvm_infinity(); /* NaN of two infinities neither */
    return y;
}
