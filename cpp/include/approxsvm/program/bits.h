/* Numbers and their bits, in the common subset of C99 and C++17, without libc. The core includes these files; exported
   headers contain their code with another prefix (backends/c99/text.py). Because both use the same code, every error
   bound has a single derivation, and results are bit-identical on every machine whose compiler does not contract
   products and sums.

   The including file may define declaration specifiers for functions, and must include <stdint.h>. */
#ifndef APPROXSVM_PROGRAM_BITS_H
#define APPROXSVM_PROGRAM_BITS_H
#ifndef APPROXSVM_PROGRAM
#define APPROXSVM_PROGRAM static inline
#endif
#ifndef APPROXSVM_ANSWER /* specifiers for functions called once or twice per row, not forced inline in the core */
#define APPROXSVM_ANSWER static inline
#endif
#ifndef APPROXSVM_PRODUCT /* the product of two numbers, rounded separately */
#define APPROXSVM_PRODUCT approxsvm_product
#endif

#define APPROXSVM_LARGEST 0x1.fffffffffffffp1023

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

APPROXSVM_PROGRAM float approxsvm_float_of_bits(uint32_t bits) {
#if defined(__cplusplus) && defined(__GNUC__)
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
#else
    union {
        uint32_t bits;
        float x;
    } same;
    same.bits = bits;
    return same.x;
#endif
}

APPROXSVM_PROGRAM uint32_t approxsvm_bits_of_float(float x) {
#if defined(__cplusplus) && defined(__GNUC__)
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
#else
    union {
        float x;
        uint32_t bits;
    } same;
    same.x = x;
    return same.bits;
#endif
}

APPROXSVM_PROGRAM double approxsvm_infinity(void) {
    return approxsvm_double_of_bits((uint64_t)0x7FF << 52);
}

APPROXSVM_PROGRAM double approxsvm_nan(void) {
    return approxsvm_double_of_bits((uint64_t)0x7FF8 << 48);
}

APPROXSVM_PROGRAM float approxsvm_infinity32(void) {
    return approxsvm_float_of_bits(0x7F800000u);
}

APPROXSVM_PROGRAM float approxsvm_nan32(void) {
    return approxsvm_float_of_bits(0x7FC00000u);
}

APPROXSVM_PROGRAM double approxsvm_abs(double x) {
#ifdef __GNUC__
    return __builtin_fabs(x);
#else
    return x < 0.0 ? -x : x;
#endif
}

APPROXSVM_PROGRAM int approxsvm_is_finite(double x) {
    return approxsvm_abs(x) <= APPROXSVM_LARGEST;
}

/* The smallest double above x, for any x except -0 and NaN; infinity if x is infinity. */
APPROXSVM_PROGRAM double approxsvm_next_above(double x) {
    const uint64_t bits = approxsvm_bits_of_double(x);
    return approxsvm_double_of_bits(bits >> 63 ? bits - 1 : bits + (bits < (uint64_t)0x7FF << 52));
}

/* The product of two numbers, which no compiler fuses with a sum. */
APPROXSVM_PROGRAM double approxsvm_product(double a, double b) {
    const volatile double product = a * b;
    return product;
}

#endif
