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
