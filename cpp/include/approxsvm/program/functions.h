/* Functions of one number, in the language that C99 and C++17 share and without libc: the core includes this file, and
   exported headers have its text with another prefix (export/c99/program.py). One text gives one derivation of each
   error, and the same bits on every machine whose compiler does not fuse products with sums.

   Errors are in units u = 2^-53 of the result. They hold whether products are fused with sums or not. Who includes this
   may say how functions are declared, and has <stdint.h>. */
#pragma once
#ifndef APPROXSVM_PROGRAM
#define APPROXSVM_PROGRAM static inline
#endif

APPROXSVM_PROGRAM double approxsvm_double_of_bits(uint64_t bits) {
#if defined(__cplusplus) && defined(__GNUC__)
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
#else
    union {
        uint64_t bits;
        double x;
    } same;
    same.bits = bits;
    return same.x;
#endif
}

APPROXSVM_PROGRAM uint64_t approxsvm_bits_of_double(double x) {
#if defined(__cplusplus) && defined(__GNUC__)
    uint64_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
#else
    union {
        double x;
        uint64_t bits;
    } same;
    same.x = x;
    return same.bits;
#endif
}

APPROXSVM_PROGRAM double approxsvm_infinity(void) {
    return approxsvm_double_of_bits((uint64_t)0x7FF << 52);
}

APPROXSVM_PROGRAM double approxsvm_abs(double x) {
    return x < 0.0 ? -x : x;
}

/* log(high + low) within 4 u, for a finite high > 0 and |low| <= u high.

   With high = m 2^k, sqrt(1/2) <= m < sqrt(2), f = m - 1 is exact, and with s = f / (2 + f)
       log m = 2 atanh s = f - (f^2 / 2 - s (f^2 / 2 + R)),    R = 2 s^2 / 3 + 2 s^4 / 5 + ... + 2 s^22 / 23:
   what R leaves out is below 2^-60 of log m. As |f| <= 0.4143 and |s| <= 0.1716, f^2 / 2 errs by 0.09 u, s (f^2 / 2 +
   R) by 0.1 u, and their difference by 0.09 u; that from f by at most 0.35 u if k is not 0, where |log| >= 0.3465. So
   all of it errs by less than 2.9 u. The first 32 bits of log 2 times k are exact. `low` adds low / high - (low /
   high)^2 / 2, the second of which is less than u / 2 of the first. */
APPROXSVM_PROGRAM double approxsvm_log(double high, double low) {
    const double log_2_high = 0x1.62e42feep-1, log_2_low = 0x1.a39ef35793c76p-33;
    const double correction = low / high;
    double k = 0.0, m, f, s, z, half, rest;
    uint64_t bits;
    if (high < 0x1p-1022) {
        high *= 0x1p54;
        k = -54.0;
    }
    bits = approxsvm_bits_of_double(high);
    k += (double)((int)(bits >> 52) - 1023);
    m = approxsvm_double_of_bits((bits & (((uint64_t)1 << 52) - 1)) | ((uint64_t)1023 << 52));
    if (m > 1.4142135623730951) {
        m *= 0.5;
        k += 1.0;
    }
    f = m - 1.0;
    s = f / (2.0 + f);
    z = s * s;
    half = 0.5 * f * f;
    rest = 2.0 / 21.0 + z * (2.0 / 23.0);
    rest = 2.0 / 17.0 + z * (2.0 / 19.0 + z * rest);
    rest = 2.0 / 13.0 + z * (2.0 / 15.0 + z * rest);
    rest = 2.0 / 9.0 + z * (2.0 / 11.0 + z * rest);
    rest = z * (2.0 / 3.0 + z * (2.0 / 5.0 + z * (2.0 / 7.0 + z * rest)));
    return k * log_2_high - ((half - (s * (half + rest) + (k * log_2_low + correction))) - f);
}

/* log(x + offset), both finite and their sum above 0, within 4 u: what their sum loses is counted (Knuth). */
APPROXSVM_PROGRAM double approxsvm_log_of_sum(double x, double offset) {
    const double sum = x + offset, of_offset = sum - x;
    return approxsvm_log(sum, (x - (sum - of_offset)) + (offset - of_offset));
}

/* exp(t) - 1 within 4 u; -1 below -50, infinity from 709.78 on.

   t = k log 2 + r, |r| <= 0.3467, where r errs by less than 1.1 u |r|; exp(r) - 1 = r + r^2 / 2 + ... + r^14 / 14!
   leaves out less than 2^-60 of itself and errs by less than 2 u of itself. That plus 1 - 2^-k, which is exact up to k
   = 53, is at least 0.207 in modulus where k is not 0, which makes of 2 u 0.293 less than 3 u; the sum is rounded once
   more. */
APPROXSVM_PROGRAM double approxsvm_expm1(double t) {
    const double log_2_high = 0x1.62e42feep-1, log_2_low = 0x1.a39ef35793c76p-33;
    double r, sum;
    int k;
    if (t != t) return t;
    if (t >= 709.78) return approxsvm_infinity();
    if (t < -50.0) return -1.0;
    k = (int)(t * 1.4426950408889634 + (t < 0.0 ? -0.5 : 0.5));
    r = (t - (double)k * log_2_high) - (double)k * log_2_low;
    sum = 1.0 / 6227020800.0 + r * (1.0 / 87178291200.0);
    sum = 1.0 / 39916800.0 + r * (1.0 / 479001600.0 + r * sum);
    sum = 1.0 / 362880.0 + r * (1.0 / 3628800.0 + r * sum);
    sum = 1.0 / 5040.0 + r * (1.0 / 40320.0 + r * sum);
    sum = 1.0 / 120.0 + r * (1.0 / 720.0 + r * sum);
    sum = 0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * sum));
    sum = r + r * r * sum;
    if (k == 0) return sum;
    sum += k > 60 ? 1.0 : 1.0 - approxsvm_double_of_bits((uint64_t)(1023 - k) << 52);
    return 2.0 * (approxsvm_double_of_bits((uint64_t)(1022 + k) << 52) * sum);
}
