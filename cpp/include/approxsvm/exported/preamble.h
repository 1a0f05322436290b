/* Requirements on the compiler for exported headers. */
#ifndef APPROXSVM_EXPORTED_PREAMBLE_H
#define APPROXSVM_EXPORTED_PREAMBLE_H
#include <float.h>
#include <stdint.h>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#error "this model needs IEEE arithmetic with NaN and infinities: compile without -ffast-math and each of its parts"
#endif
#if !defined(FLT_EVAL_METHOD) || (FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16) /* 16 concerns only _Float16 */
#error "this model needs float arithmetic that is float's own: FLT_EVAL_METHOD 0 (on x86 -msse2 -mfpmath=sse)"
#endif
#if FLT_MANT_DIG != 24 || FLT_MAX_EXP != 128 || DBL_MANT_DIG != 53
#error "this model needs float and double of 32 and 64 bits, IEEE 754"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#endif
