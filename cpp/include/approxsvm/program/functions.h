/* Functions of one variable, with proven error bounds in units u = 2^-53 relative to the result. The bounds hold
   whether or not products are fused with sums. */
#ifndef APPROXSVM_PROGRAM_FUNCTIONS_H
#define APPROXSVM_PROGRAM_FUNCTIONS_H
#include "bits.h"
#ifndef APPROXSVM_ROOT /* the square root of x >= 0, within 2 u */
#define APPROXSVM_ROOT approxsvm_root
#endif

/* log(high + low) within 4 u, for finite high > 0 and |low| <= u high.

   Let high = m 2^k with sqrt(1/2) <= m < sqrt(2). Then f = m - 1 is exact, and with s = f / (2 + f)
       log m = 2 atanh s = f - (f^2 / 2 - s (f^2 / 2 + R)),    R = 2 s^2 / 3 + 2 s^4 / 5 + ... + 2 s^22 / 23,
   up to a truncation error of R below 2^-60 log m. Since |f| <= 0.4143 and |s| <= 0.1716, the error of f^2 / 2 is at
   most 0.09 u, the error of s (f^2 / 2 + R) at most 0.1 u, and their difference adds at most 0.09 u; subtracting it
   from f adds at most 0.35 u if k is not 0, because then |log| >= 0.3465. The total error is below 2.9 u. The product
   of k and the leading 32 bits of log 2 is exact. The argument `low` contributes low / high - (low / high)^2 / 2, where
   the second term is less than u / 2 times the first. */
APPROXSVM_PROGRAM double approxsvm_log(double high, double low) {
    static const double series[11] = {2.0 / 23.0, 2.0 / 21.0, 2.0 / 19.0, 2.0 / 17.0, 2.0 / 15.0, 2.0 / 13.0,
                                      2.0 / 11.0, 2.0 / 9.0,  2.0 / 7.0,  2.0 / 5.0,  2.0 / 3.0};
    const double log_2_high = 0x1.62e42feep-1, log_2_low = 0x1.a39ef35793c76p-33, correction = low / high;
    const int is_tiny = high < 0x1p-1022;
    const uint64_t bits = approxsvm_bits_of_double(is_tiny ? high * 0x1p54 : high), one = (uint64_t)0x3FF << 52;
    /* An OR of the exponent into the bits of 2^52 converts it to double without an integer conversion. */
    const double exponent = approxsvm_double_of_bits((bits >> 52) | (uint64_t)0x433 << 52) - 0x1p52;
    const double mantissa = approxsvm_double_of_bits((bits & (((uint64_t)1 << 52) - 1)) | one);
    const int is_large = mantissa > 1.4142135623730951;
    const double k = exponent - (is_tiny ? 1077.0 : 1023.0) + (is_large ? 1.0 : 0.0);
    const double f = (is_large ? 0.5 * mantissa : mantissa) - 1.0, s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    double rest = 0.0;
    int i;
    for (i = 0; i < 11; ++i) rest = z * (rest + series[i]);
    return k * log_2_high - ((half - (s * (half + rest) + (k * log_2_low + correction))) - f);
}

/* log(x + offset) within 4 u, for finite x and offset with a positive sum: the rounding error of the sum is recovered
   (Knuth's TwoSum). The result is infinity if the sum overflows. */
APPROXSVM_PROGRAM double approxsvm_log_of_sum(double x, double offset) {
    const double sum = x + offset, of_offset = sum - x;
    const double log = approxsvm_log(sum, (x - (sum - of_offset)) + (offset - of_offset));
    return sum <= APPROXSVM_LARGEST ? log : sum;
}

/* exp(t) - subtracted, with subtracted 0 or 1, within 4 u, apart from underflow; infinity for t >= 709.78.

   Let t = k log 2 + r with |r| <= 0.3467; the error of r is below 1.1 u |r|. The series exp(r) - 1 = r + r^2 / 2 + ...
   + r^14 / 14! has a relative truncation error below 2^-60 and a relative error below 2 u. It is added to 1 - 2^-k,
   which is exact up to k = 53. If k is not 0, the sum is at least 0.207 in absolute value, while the series is at most
   0.293 for negative r, so its error of 2 u is less than 3 u of the sum; the sum itself is rounded once more. For t
   below -50, the result is -1, rounded. For exp(t), only r and the series have errors; for t below -708, the result is
   exp(-708). */
APPROXSVM_PROGRAM double approxsvm_exp_less(double t, double subtracted) {
    static const double series[13] = {1.0 / 87178291200.0,
                                      1.0 / 6227020800.0,
                                      1.0 / 479001600.0,
                                      1.0 / 39916800.0,
                                      1.0 / 3628800.0,
                                      1.0 / 362880.0,
                                      1.0 / 40320.0,
                                      1.0 / 5040.0,
                                      1.0 / 720.0,
                                      1.0 / 120.0,
                                      1.0 / 24.0,
                                      1.0 / 6.0,
                                      0.5};
    const double log_2_high = 0x1.62e42feep-1, log_2_low = 0x1.a39ef35793c76p-33, integers = 0x1.8p52;
    const double least = subtracted > 0.0 ? -50.0 : -708.0;
    const double limited = t < least ? least : t < 709.78 ? t : t != t ? t : 709.78;
    /* Adding `integers` rounds the product to an integer, which appears in the last bits of the sum. */
    const double shifted = limited * 1.4426950408889634 + integers, k = shifted - integers;
    const uint64_t last = approxsvm_bits_of_double(shifted);
    const double r = (limited - k * log_2_high) - k * log_2_low;
    const double down = approxsvm_double_of_bits((1023 - last) << 52),
                 up = approxsvm_double_of_bits((1022 + last) << 52);
    double sum = 0.0;
    int i;
    for (i = 0; i < 13; ++i) sum = r * sum + series[i];
    sum = r + r * r * sum + (1.0 - (k > 60.0 ? 0.0 : subtracted * down));
    return t >= 709.78 ? approxsvm_infinity() : 2.0 * (up * sum);
}

APPROXSVM_PROGRAM double approxsvm_expm1(double t) {
    return approxsvm_exp_less(t, 1.0);
}

APPROXSVM_PROGRAM double approxsvm_exp(double t) {
    return approxsvm_exp_less(t, 0.0);
}

/* tanh(t) = -expm1(-2 |t|) / (2 + expm1(-2 |t|)), within 14 u. */
APPROXSVM_PROGRAM double approxsvm_tanh(double t) {
    const double less = approxsvm_expm1(-2.0 * approxsvm_abs(t)), found = -less / (2.0 + less);
    return t < 0.0 ? -found : found;
}

/* cos(t) with an absolute error of at most 4 u, for |t| < 2^19.

   Let t = k pi / 2 + r with |r| <= 0.7855. The leading 99 bits of pi / 2 are split into three parts whose products with
   k are exact, so the error of r is at most two roundings, 1.6 u. The series omits the terms from r^18 / 18! and r^19 /
   19! on, which are less than 0.02 u, and its rounding error is below 1.5 u. */
APPROXSVM_PROGRAM double approxsvm_cos(double t) {
    static const double series[2][9] = {
        {1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0, -1.0 / 3628800.0, 1.0 / 40320.0, -1.0 / 720.0,
         1.0 / 24.0, -0.5, 1.0},
        {1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0, 1.0 / 362880.0,
         -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0, 1.0}};
    const double shifted = t * 0.6366197723675814 + 0x1.8p52, k = shifted - 0x1.8p52;
    const double r = ((t - k * 0x1.921fb544p0) - k * 0x1.0b4611a6p-34) - k * 0x1.3198a2ep-69, z = r * r;
    /* The result is cos, -sin, -cos or sin of r for k mod 4 = 0, 1, 2, 3. */
    const int turn = (int)(approxsvm_bits_of_double(shifted) & 3), is_odd = turn & 1;
    const double* const c = series[is_odd];
    double sum = c[0];
    int i;
    for (i = 1; i < 9; ++i) sum = sum * z + c[i];
    sum = is_odd ? sum * r : sum;
    return (turn + 1) & 2 ? -sum : sum;
}

/* The square root of x >= 0 within 2 u; infinity and NaN are returned unchanged. Halving the exponent gives a relative
   error of at most 6.1%, which four Newton steps reduce to below 2^-80. */
APPROXSVM_PROGRAM double approxsvm_root(double x) {
    double scale = 1.0, root;
    int k;
    if (!(x > 0.0 && x <= APPROXSVM_LARGEST)) return x;
    if (x < 0x1p-900) {
        x *= 0x1p200;
        scale = 0x1p-100;
    }
    root = approxsvm_double_of_bits((approxsvm_bits_of_double(x) >> 1) + ((uint64_t)0x1FF8 << 48));
    for (k = 0; k < 4; ++k) root = 0.5 * (root + x / root);
    return scale * root;
}

#endif
