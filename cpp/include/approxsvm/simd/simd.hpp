// All compiler- and CPU-specific code of the core is in this file and, for integers, in bits.hpp. The flags of the
// translation unit select one target; the names below have the same meaning on every target. `f32v` is a register of
// `lanes` floats, `f64v` is a register of `lanes64` = lanes / 2 doubles, and `f32x8` always holds eight floats.
//
// All functions of the core are in an inline namespace named after the target, so that the linker never replaces a
// function for an old CPU with its AVX-512 version.
#ifndef APPROXSVM_SIMD_SIMD_HPP
#define APPROXSVM_SIMD_SIMD_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../version.hpp"

// GCC's macro __GCC_IEC_559 shows whether any part of -ffast-math is on.
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \
    (defined(__GCC_IEC_559) && __GCC_IEC_559 == 0)
#error "approxsvm needs IEEE arithmetic with NaN and infinities: compile without -ffast-math and its parts"
#endif

// Contraction, -ffp-contract=fast, does not affect the bounds. It turns a * b + c into one fused operation, without
// rounding the product. The bounds of this library use the standard model of rounding: each result is the exact result
// times 1 + d, where |d| <= u. A fused operation satisfies this model with d = 0 for its product, and every bound is
// valid for all such d. Code would be wrong if it assumed that two uses of a product are equal, because one may be
// fused and the other rounded. No code in the core assumes this: is_finite compares instead of subtracting, the error
// of narrowing is measured on differences times a power of two, which are not rounded, the range reductions of exp have
// exact products, and products whose rounding error is computed are rounded_product. The executors in tests/zoo include
// builds with contraction. The last bits of values may differ between builds; only bit-identical LIBSVM probabilities
// (program/probabilities.h) require -ffp-contract=off.

#if defined(APPROXSVM_PORTABLE)
#define APPROXSVM_TARGET_WORD baseline
#elif defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && \
    defined(__FMA__)
#define APPROXSVM_TARGET_WORD avx512
#define APPROXSVM_AVX512 1
#if defined(__GNUC__) && !defined(__clang__)  // GCC bug 105593: GCC's header causes this warning wherever it is inlined
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#elif defined(__AVX2__) && (defined(__FMA__) || defined(_MSC_VER))
#define APPROXSVM_TARGET_WORD avx2
#define APPROXSVM_AVX2 1
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__ARM_NEON)
#define APPROXSVM_TARGET_WORD neon
#define APPROXSVM_NEON 1
#include <arm_neon.h>
#else
#define APPROXSVM_TARGET_WORD baseline
#endif

// The target's namespace in this version.
#define APPROXSVM_TARGET APPROXSVM_JOIN(APPROXSVM_JOIN(APPROXSVM_VERSION_NAMESPACE, _), APPROXSVM_TARGET_WORD)

// A test uses this macro to count a row's multiply-adds (predict/row_work.hpp).
#if !defined(APPROXSVM_COUNT_WORK)
#define APPROXSVM_COUNT_WORK(n) ((void)0)
#endif

#if defined(__GNUC__)
#define APPROXSVM_INLINE inline __attribute__((always_inline))
#define APPROXSVM_INLINE_LAMBDA __attribute__((always_inline))
#define APPROXSVM_NOINLINE __attribute__((noinline))
// Optimizes for size. A function that calls a cold function also becomes cold. Functions called by programs are
// therefore not marked cold, and are never inlined.
#define APPROXSVM_COLD __attribute__((cold))
#define APPROXSVM_UNROLL _Pragma("GCC unroll 16")
#else
#define APPROXSVM_INLINE inline
#define APPROXSVM_INLINE_LAMBDA
#define APPROXSVM_NOINLINE
#define APPROXSVM_COLD
#define APPROXSVM_UNROLL
#endif

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Constants replace std::numeric_limits, whose functions -O0 would emit as weak symbols.
constexpr float largest_float = 0x1.fffffep127f;
constexpr double largest_double = 0x1.fffffffffffffp1023;

#if defined(APPROXSVM_AVX512) || defined(APPROXSVM_AVX2)

#if defined(APPROXSVM_AVX512)
constexpr int lanes = 16;
constexpr int tile_rows = 8;  // matrix rows per register tile: 8 x 3 accumulators in 32 registers
using f32v = __m512;
using f64v = __m512d;
#define APPROXSVM_MM(name) _mm512_##name
#else
constexpr int lanes = 8;
constexpr int tile_rows = 4;  // matrix rows per register tile: 4 x 3 accumulators in 16 registers
using f32v = __m256;
using f64v = __m256d;
#define APPROXSVM_MM(name) _mm256_##name  // operations shared by AVX2 and AVX-512, with registers of different widths
#endif
constexpr int lanes64 = lanes / 2;
using f32x8 = __m256;

APPROXSVM_INLINE f32v zero() {
    return APPROXSVM_MM(setzero_ps)();
}
APPROXSVM_INLINE f32v set1(float x) {
    return APPROXSVM_MM(set1_ps)(x);
}
APPROXSVM_INLINE f32v load(const float* p) {
    return APPROXSVM_MM(loadu_ps)(p);
}
APPROXSVM_INLINE void store(float* p, f32v x) {
    APPROXSVM_MM(storeu_ps)(p, x);
}
APPROXSVM_INLINE f32v add(f32v a, f32v b) {
    return APPROXSVM_MM(add_ps)(a, b);
}
APPROXSVM_INLINE f32v sub(f32v a, f32v b) {
    return APPROXSVM_MM(sub_ps)(a, b);
}
APPROXSVM_INLINE f32v mul(f32v a, f32v b) {
    return APPROXSVM_MM(mul_ps)(a, b);
}
APPROXSVM_INLINE f32v fmadd(f32v a, f32v b, f32v c) {
    return APPROXSVM_MM(fmadd_ps)(a, b, c);
}
// Returns x where x >= low, and low where x < low or x is NaN.
APPROXSVM_INLINE f32v max_or(f32v x, f32v low) {
    return APPROXSVM_MM(max_ps)(x, low);
}
// Returns x where x <= high or x is NaN, and high where x > high.
APPROXSVM_INLINE f32v min_or_nan(f32v x, f32v high) {
    return APPROXSVM_MM(min_ps)(high, x);
}
APPROXSVM_INLINE f64v zero64() {
    return APPROXSVM_MM(setzero_pd)();
}
APPROXSVM_INLINE f64v set1(double x) {
    return APPROXSVM_MM(set1_pd)(x);
}
APPROXSVM_INLINE f64v load(const double* p) {
    return APPROXSVM_MM(loadu_pd)(p);
}
APPROXSVM_INLINE void store(double* p, f64v x) {
    APPROXSVM_MM(storeu_pd)(p, x);
}
APPROXSVM_INLINE f64v add(f64v a, f64v b) {
    return APPROXSVM_MM(add_pd)(a, b);
}
APPROXSVM_INLINE f64v sub(f64v a, f64v b) {
    return APPROXSVM_MM(sub_pd)(a, b);
}
APPROXSVM_INLINE f64v mul(f64v a, f64v b) {
    return APPROXSVM_MM(mul_pd)(a, b);
}
APPROXSVM_INLINE f64v div(f64v a, f64v b) {
    return APPROXSVM_MM(div_pd)(a, b);
}
APPROXSVM_INLINE f64v fmadd(f64v a, f64v b, f64v c) {
    return APPROXSVM_MM(fmadd_pd)(a, b, c);
}
APPROXSVM_INLINE f64v max_or(f64v x, f64v low) {
    return APPROXSVM_MM(max_pd)(x, low);
}
APPROXSVM_INLINE f64v min_or_nan(f64v x, f64v high) {
    return APPROXSVM_MM(min_pd)(high, x);
}

#if defined(APPROXSVM_AVX512)
// Returns x with its lowest eight bits replaced.
APPROXSVM_INLINE f32v with_low_byte(f32v x, std::uint32_t byte) {
    const __m512i kept = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(~0xFF));
    return _mm512_castsi512_ps(_mm512_or_si512(kept, _mm512_set1_epi32(static_cast<int>(byte))));
}
// Returns 2^n, where `shifted` is n + 1.5 * 2^23 and -126 <= n <= 127.
APPROXSVM_INLINE f32v exp2_of_shifted(f32v shifted) {
    return _mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(shifted), 23), _mm512_set1_epi32(0x3F800000)));
}
// Returns (p[0 .. lanes) - center[0 .. lanes)) * scale, with the difference in float64, rounded once to float32.
APPROXSVM_INLINE f32v load_shifted(const double* p, const float* center, double scale) {
    const __m512d k = _mm512_set1_pd(scale);
    const __m512d low = _mm512_mul_pd(k, _mm512_sub_pd(_mm512_loadu_pd(p), _mm512_cvtps_pd(_mm256_loadu_ps(center))));
    const __m512d high =
        _mm512_mul_pd(k, _mm512_sub_pd(_mm512_loadu_pd(p + 8), _mm512_cvtps_pd(_mm256_loadu_ps(center + 8))));
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
}
// Transposes rows to columns: r[i][j] <- r[j][i].
APPROXSVM_INLINE void transpose(f32v (&r)[16]) {
    __m512 t[16];
    APPROXSVM_UNROLL for (int i = 0; i < 8; ++i) {
        t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    APPROXSVM_UNROLL for (int i = 0; i < 4; ++i) {
        const __m512d a = _mm512_castps_pd(t[4 * i]), b = _mm512_castps_pd(t[4 * i + 1]);
        const __m512d c = _mm512_castps_pd(t[4 * i + 2]), d = _mm512_castps_pd(t[4 * i + 3]);
        r[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        r[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        r[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        r[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
    APPROXSVM_UNROLL for (int i = 0; i < 4; ++i) {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xDD);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xDD);
    }
    APPROXSVM_UNROLL for (int i = 0; i < 8; ++i) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xDD);
    }
}

// Returns 2^n, where `shifted` is n + 1.5 * 2^52 and -1022 <= n <= 1023.
APPROXSVM_INLINE f64v exp2_of_shifted(f64v shifted) {
    return _mm512_castsi512_pd(
        _mm512_add_epi64(_mm512_slli_epi64(_mm512_castpd_si512(shifted), 52), _mm512_set1_epi64(0x3FF0000000000000)));
}
// These functions return lanes [0, lanes64) and [lanes64, lanes), respectively, as float64.
APPROXSVM_INLINE f64v widen_low(f32v x) {
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}
APPROXSVM_INLINE f64v widen_high(f32v x) {
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}

#else
// Returns x with its lowest eight bits replaced.
APPROXSVM_INLINE f32v with_low_byte(f32v x, std::uint32_t byte) {
    const __m256i kept = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(~0xFF));
    return _mm256_castsi256_ps(_mm256_or_si256(kept, _mm256_set1_epi32(static_cast<int>(byte))));
}
APPROXSVM_INLINE f32v exp2_of_shifted(f32v shifted) {
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(shifted), 23), _mm256_set1_epi32(0x3F800000)));
}
APPROXSVM_INLINE f32v load_shifted(const double* p, const float* center, double scale) {
    const __m256d k = _mm256_set1_pd(scale);
    const __m256d low = _mm256_mul_pd(k, _mm256_sub_pd(_mm256_loadu_pd(p), _mm256_cvtps_pd(_mm_loadu_ps(center))));
    const __m256d high =
        _mm256_mul_pd(k, _mm256_sub_pd(_mm256_loadu_pd(p + 4), _mm256_cvtps_pd(_mm_loadu_ps(center + 4))));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high), 1);
}
APPROXSVM_INLINE void transpose(f32v (&r)[8]) {
    __m256 t[8];
    APPROXSVM_UNROLL for (int i = 0; i < 4; ++i) {
        t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    APPROXSVM_UNROLL for (int i = 0; i < 2; ++i) {
        r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
        r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xEE);
        r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
        r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xEE);
    }
    APPROXSVM_UNROLL for (int i = 0; i < 4; ++i) {
        t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
    APPROXSVM_UNROLL for (int i = 0; i < 8; ++i) r[i] = t[i];
}

APPROXSVM_INLINE f64v exp2_of_shifted(f64v shifted) {
    return _mm256_castsi256_pd(
        _mm256_add_epi64(_mm256_slli_epi64(_mm256_castpd_si256(shifted), 52), _mm256_set1_epi64x(0x3FF0000000000000)));
}
APPROXSVM_INLINE f64v widen_low(f32v x) {
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}
APPROXSVM_INLINE f64v widen_high(f32v x) {
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}
#endif

// Returns the lane sums of r[0], r[1], ..., in the lanes of one register; each sum takes log2(lanes) additions.
APPROXSVM_INLINE f32v sums_of_registers(f32v (&r)[lanes]) {
    APPROXSVM_UNROLL for (int n = 0; n < lanes / 2; ++n) {
        r[n] =
            add(APPROXSVM_MM(unpacklo_ps)(r[2 * n], r[2 * n + 1]), APPROXSVM_MM(unpackhi_ps)(r[2 * n], r[2 * n + 1]));
    }
    APPROXSVM_UNROLL for (int n = 0; n < lanes / 4; ++n) {
        const auto a = APPROXSVM_MM(castps_pd)(r[2 * n]), b = APPROXSVM_MM(castps_pd)(r[2 * n + 1]);
        r[n] = add(APPROXSVM_MM(castpd_ps)(APPROXSVM_MM(unpacklo_pd)(a, b)),
                   APPROXSVM_MM(castpd_ps)(APPROXSVM_MM(unpackhi_pd)(a, b)));
    }
#if defined(APPROXSVM_AVX512)
    const auto halves = [](f32v a, f32v b) APPROXSVM_INLINE_LAMBDA {
        return add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
    };
    return halves(halves(r[0], r[1]), halves(r[2], r[3]));
#else
    return add(_mm256_permute2f128_ps(r[0], r[1], 0x20), _mm256_permute2f128_ps(r[0], r[1], 0x31));
#endif
}

#elif defined(APPROXSVM_NEON)

constexpr int lanes = 4;
constexpr int tile_rows = 8;  // matrix rows per register tile: 8 x 3 accumulators in 32 registers
using f32v = float32x4_t;

APPROXSVM_INLINE f32v zero() {
    return vdupq_n_f32(0.0f);
}
APPROXSVM_INLINE f32v set1(float x) {
    return vdupq_n_f32(x);
}
APPROXSVM_INLINE f32v load(const float* p) {
    return vld1q_f32(p);
}
APPROXSVM_INLINE void store(float* p, f32v x) {
    vst1q_f32(p, x);
}
APPROXSVM_INLINE f32v add(f32v a, f32v b) {
    return vaddq_f32(a, b);
}
APPROXSVM_INLINE f32v sub(f32v a, f32v b) {
    return vsubq_f32(a, b);
}
APPROXSVM_INLINE f32v mul(f32v a, f32v b) {
    return vmulq_f32(a, b);
}
APPROXSVM_INLINE f32v fmadd(f32v a, f32v b, f32v c) {
    return vfmaq_f32(c, a, b);
}
APPROXSVM_INLINE f32v max_or(f32v x, f32v low) {
    return vmaxnmq_f32(x, low);
}
APPROXSVM_INLINE f32v min_or_nan(f32v x, f32v high) {
    return vminq_f32(x, high);
}
// Returns x with its lowest eight bits replaced.
APPROXSVM_INLINE f32v with_low_byte(f32v x, std::uint32_t byte) {
    const uint32x4_t kept = vandq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(~0xFFu));
    return vreinterpretq_f32_u32(vorrq_u32(kept, vdupq_n_u32(byte)));
}
APPROXSVM_INLINE f32v exp2_of_shifted(f32v shifted) {
    return vreinterpretq_f32_s32(vaddq_s32(vshlq_n_s32(vreinterpretq_s32_f32(shifted), 23), vdupq_n_s32(0x3F800000)));
}
APPROXSVM_INLINE f32v load_shifted(const double* p, const float* center, double scale) {
    const float32x4_t c = vld1q_f32(center);
    const float64x2_t low = vmulq_n_f64(vsubq_f64(vld1q_f64(p), vcvt_f64_f32(vget_low_f32(c))), scale);
    const float64x2_t high = vmulq_n_f64(vsubq_f64(vld1q_f64(p + 2), vcvt_high_f64_f32(c)), scale);
    return vcvt_high_f32_f64(vcvt_f32_f64(low), high);
}
APPROXSVM_INLINE void transpose(f32v (&r)[4]) {
    const float32x4x2_t a = vtrnq_f32(r[0], r[1]), b = vtrnq_f32(r[2], r[3]);
    r[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    r[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    r[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    r[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

constexpr int lanes64 = 2;
using f64v = float64x2_t;

APPROXSVM_INLINE f64v zero64() {
    return vdupq_n_f64(0.0);
}
APPROXSVM_INLINE f64v set1(double x) {
    return vdupq_n_f64(x);
}
APPROXSVM_INLINE f64v load(const double* p) {
    return vld1q_f64(p);
}
APPROXSVM_INLINE void store(double* p, f64v x) {
    vst1q_f64(p, x);
}
APPROXSVM_INLINE f64v add(f64v a, f64v b) {
    return vaddq_f64(a, b);
}
APPROXSVM_INLINE f64v sub(f64v a, f64v b) {
    return vsubq_f64(a, b);
}
APPROXSVM_INLINE f64v mul(f64v a, f64v b) {
    return vmulq_f64(a, b);
}
APPROXSVM_INLINE f64v div(f64v a, f64v b) {
    return vdivq_f64(a, b);
}
APPROXSVM_INLINE f64v fmadd(f64v a, f64v b, f64v c) {
    return vfmaq_f64(c, a, b);
}
APPROXSVM_INLINE f64v max_or(f64v x, f64v low) {
    return vmaxnmq_f64(x, low);
}
APPROXSVM_INLINE f64v min_or_nan(f64v x, f64v high) {
    return vminq_f64(x, high);
}
APPROXSVM_INLINE f64v exp2_of_shifted(f64v shifted) {
    return vreinterpretq_f64_s64(
        vaddq_s64(vshlq_n_s64(vreinterpretq_s64_f64(shifted), 52), vdupq_n_s64(0x3FF0000000000000)));
}
APPROXSVM_INLINE f64v widen_low(f32v x) {
    return vcvt_f64_f32(vget_low_f32(x));
}
APPROXSVM_INLINE f64v widen_high(f32v x) {
    return vcvt_high_f64_f32(x);
}

#else  // portable: four lanes, as in SSE2 or other 128-bit units, without fused multiply-add

constexpr int lanes = 4;
constexpr int lanes64 = 2;
constexpr int tile_rows = 4;
#define APPROXSVM_PORTABLE 1

#if defined(__GNUC__)
typedef float f32v __attribute__((vector_size(16)));
typedef double f64v __attribute__((vector_size(16)));

APPROXSVM_INLINE f32v set1(float x) {
    return f32v{x, x, x, x};
}
APPROXSVM_INLINE f32v add(f32v a, f32v b) {
    return a + b;
}
APPROXSVM_INLINE f32v sub(f32v a, f32v b) {
    return a - b;
}
APPROXSVM_INLINE f32v mul(f32v a, f32v b) {
    return a * b;
}
APPROXSVM_INLINE f32v max_or(f32v x, f32v low) {
    return x > low ? x : low;
}
APPROXSVM_INLINE f32v exp2_of_shifted(f32v shifted) {
    typedef std::uint32_t u32v __attribute__((vector_size(16)));
    return reinterpret_cast<f32v>((reinterpret_cast<u32v>(shifted) << 23) + 0x3F800000u);
}
APPROXSVM_INLINE f32v min_or_nan(f32v x, f32v high) {
    return x > high ? high : x;
}
// Returns x with its lowest eight bits replaced.
APPROXSVM_INLINE f32v with_low_byte(f32v x, std::uint32_t byte) {
    typedef std::uint32_t u32v __attribute__((vector_size(16)));
    return reinterpret_cast<f32v>((reinterpret_cast<u32v>(x) & ~0xFFu) | byte);
}

APPROXSVM_INLINE f64v set1(double x) {
    return f64v{x, x};
}
APPROXSVM_INLINE f64v add(f64v a, f64v b) {
    return a + b;
}
APPROXSVM_INLINE f64v sub(f64v a, f64v b) {
    return a - b;
}
APPROXSVM_INLINE f64v mul(f64v a, f64v b) {
    return a * b;
}
APPROXSVM_INLINE f64v div(f64v a, f64v b) {
    return a / b;
}
APPROXSVM_INLINE f64v max_or(f64v x, f64v low) {
    return x > low ? x : low;
}
APPROXSVM_INLINE f64v min_or_nan(f64v x, f64v high) {
    return x > high ? high : x;
}
APPROXSVM_INLINE f64v exp2_of_shifted(f64v shifted) {
    typedef std::uint64_t u64v __attribute__((vector_size(16)));
    return reinterpret_cast<f64v>((reinterpret_cast<u64v>(shifted) << 52) + 0x3FF0000000000000u);
}
#else
struct f32v {
    float lane[4];
    float& operator[](int i) { return lane[i]; }
    float operator[](int i) const { return lane[i]; }
};

APPROXSVM_INLINE f32v set1(float x) {
    return f32v{{x, x, x, x}};
}
APPROXSVM_INLINE f32v add(f32v a, f32v b) {
    return {{a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]}};
}
APPROXSVM_INLINE f32v sub(f32v a, f32v b) {
    return {{a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]}};
}
APPROXSVM_INLINE f32v mul(f32v a, f32v b) {
    return {{a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]}};
}
APPROXSVM_INLINE f32v max_or(f32v x, f32v low) {
    for (int i = 0; i < 4; ++i) x[i] = x[i] > low[i] ? x[i] : low[i];
    return x;
}
APPROXSVM_INLINE f32v exp2_of_shifted(f32v shifted) {
    std::uint32_t bits[4];
    std::memcpy(bits, &shifted, sizeof bits);
    for (std::uint32_t& b : bits) b = (b << 23) + 0x3F800000u;
    std::memcpy(&shifted, bits, sizeof bits);
    return shifted;
}
APPROXSVM_INLINE f32v min_or_nan(f32v x, f32v high) {
    for (int i = 0; i < 4; ++i) x[i] = x[i] > high[i] ? high[i] : x[i];
    return x;
}
// Returns x with its lowest eight bits replaced.
APPROXSVM_INLINE f32v with_low_byte(f32v x, std::uint32_t byte) {
    std::uint32_t bits[4];
    std::memcpy(bits, &x, sizeof bits);
    for (std::uint32_t& b : bits) b = (b & ~0xFFu) | byte;
    std::memcpy(&x, bits, sizeof bits);
    return x;
}

struct f64v {
    double lane[2];
    double& operator[](int i) { return lane[i]; }
    double operator[](int i) const { return lane[i]; }
};

APPROXSVM_INLINE f64v set1(double x) {
    return f64v{{x, x}};
}
APPROXSVM_INLINE f64v add(f64v a, f64v b) {
    return {{a[0] + b[0], a[1] + b[1]}};
}
APPROXSVM_INLINE f64v sub(f64v a, f64v b) {
    return {{a[0] - b[0], a[1] - b[1]}};
}
APPROXSVM_INLINE f64v mul(f64v a, f64v b) {
    return {{a[0] * b[0], a[1] * b[1]}};
}
APPROXSVM_INLINE f64v div(f64v a, f64v b) {
    return {{a[0] / b[0], a[1] / b[1]}};
}
APPROXSVM_INLINE f64v max_or(f64v x, f64v low) {
    for (int i = 0; i < 2; ++i) x[i] = x[i] > low[i] ? x[i] : low[i];
    return x;
}
APPROXSVM_INLINE f64v min_or_nan(f64v x, f64v high) {
    for (int i = 0; i < 2; ++i) x[i] = x[i] > high[i] ? high[i] : x[i];
    return x;
}
APPROXSVM_INLINE f64v exp2_of_shifted(f64v shifted) {
    std::uint64_t bits[2];
    std::memcpy(bits, &shifted, sizeof bits);
    for (std::uint64_t& b : bits) b = (b << 52) + 0x3FF0000000000000u;
    std::memcpy(&shifted, bits, sizeof bits);
    return shifted;
}
#endif

APPROXSVM_INLINE f32v zero() {
    return set1(0.0f);
}
APPROXSVM_INLINE f32v fmadd(f32v a, f32v b, f32v c) {
    return add(mul(a, b), c);
}
APPROXSVM_INLINE f32v load(const float* p) {
    f32v x;
    std::memcpy(&x, p, sizeof x);
    return x;
}
APPROXSVM_INLINE void store(float* p, f32v x) {
    std::memcpy(p, &x, sizeof x);
}
APPROXSVM_INLINE f64v zero64() {
    return set1(0.0);
}
APPROXSVM_INLINE f64v fmadd(f64v a, f64v b, f64v c) {
    return add(mul(a, b), c);
}
APPROXSVM_INLINE f64v load(const double* p) {
    f64v x;
    std::memcpy(&x, p, sizeof x);
    return x;
}
APPROXSVM_INLINE void store(double* p, f64v x) {
    std::memcpy(p, &x, sizeof x);
}
APPROXSVM_INLINE f64v widen_low(f32v x) {
    return f64v{static_cast<double>(x[0]), static_cast<double>(x[1])};
}
APPROXSVM_INLINE f64v widen_high(f32v x) {
    return f64v{static_cast<double>(x[2]), static_cast<double>(x[3])};
}
APPROXSVM_INLINE f32v load_shifted(const double* p, const float* center, double scale) {
    f32v x = zero();
    for (int i = 0; i < lanes; ++i) x[i] = static_cast<float>((p[i] - static_cast<double>(center[i])) * scale);
    return x;
}
APPROXSVM_INLINE void transpose(f32v (&r)[4]) {
    const f32v a = r[0], b = r[1], c = r[2], d = r[3];
    for (int i = 0; i < 4; ++i) {
        r[i][0] = a[i];
        r[i][1] = b[i];
        r[i][2] = c[i];
        r[i][3] = d[i];
    }
}

#endif

#if defined(APPROXSVM_NEON) || defined(APPROXSVM_PORTABLE)
APPROXSVM_INLINE f32v sums_of_registers(f32v (&r)[4]) {
    transpose(r);
    return add(add(r[0], r[1]), add(r[2], r[3]));
}
#endif

// Register types by number type.
template <class Real>
struct RegisterOf;
template <>
struct RegisterOf<float> {
    using type = f32v;
};
template <>
struct RegisterOf<double> {
    using type = f64v;
};

template <class Real>
constexpr int lanes_of = lanes * static_cast<int>(sizeof(float)) / static_cast<int>(sizeof(Real));

// A compile-time number that can be passed to a generic lambda.
template <int Value>
struct Number {
    static constexpr int value = Value;
};

// The target of programs that select no instruction set. For such programs, small code is more important than fast
// calls with few rows.
#if defined(APPROXSVM_PORTABLE)
constexpr bool is_portable = true;
#else
constexpr bool is_portable = false;
#endif

// Number of registers of `width` lanes for a block of n rows: as many as needed, at most three. On the portable target,
// the number is never two, which saves a third of the code. Only blocks whose rows fit into two registers, but not into
// one, then cost more.
constexpr std::size_t registers_for(std::size_t n, std::size_t width) {
    return n > (is_portable ? width : 2 * width) ? 3 : n > width ? 2 : 1;
}

// Calls take(Number<Registers>) with the number of registers of `width` lanes for n rows; does nothing if the caller
// never evaluates rows together.
template <bool are_together, class Take>
APPROXSVM_INLINE void with_registers_for(std::size_t n, std::size_t width, const Take& take) {
    if constexpr (are_together) {
        const std::size_t n_registers = registers_for(n, width);
        if (n_registers == 3) return take(Number<3>{});
        if constexpr (!is_portable) {
            if (n_registers == 2) return take(Number<2>{});
        }
        take(Number<1>{});
    }
}

// Does not call std::isfinite: an inline function of the standard library could be emitted with this target's
// instructions, and the linker could then use that code in the whole program. It does not compute x - x either, which
// may differ from 0 if the compiler fuses a product into the subtraction.
APPROXSVM_INLINE bool is_finite(float x) {
    return x >= -largest_float && x <= largest_float;
}
APPROXSVM_INLINE bool is_finite(double x) {
    return x >= -largest_double && x <= largest_double;
}

// Returns (p - center) * scale for float32 rows; only the difference is rounded, because `scale` is a power of two.
APPROXSVM_INLINE f32v load_shifted(const float* p, const float* center, double scale) {
    return mul(sub(load(p), load(center)), set1(static_cast<float>(scale)));
}

// Registers with eight lanes, one lane per row of a matrix panel, for a single input row.
#if defined(APPROXSVM_AVX512) || defined(APPROXSVM_AVX2)
APPROXSVM_INLINE f32x8 load8(const float* p) {
    return _mm256_loadu_ps(p);
}
// Loads the first n floats, 0 < n <= 8, and fills the other lanes with zeros; reads nothing beyond them.
APPROXSVM_INLINE f32x8 load8(const float* p, std::size_t n) {
    alignas(32) static constexpr std::int32_t first[15] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_maskload_ps(p, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first + 8 - n)));
}
APPROXSVM_INLINE f32x8 set1x8(float x) {
    return _mm256_set1_ps(x);
}
APPROXSVM_INLINE f32x8 add8(f32x8 a, f32x8 b) {
    return _mm256_add_ps(a, b);
}
APPROXSVM_INLINE f32x8 mul8(f32x8 a, f32x8 b) {
    return _mm256_mul_ps(a, b);
}
APPROXSVM_INLINE f32x8 fmadd8(f32x8 a, f32x8 b, f32x8 c) {
    return _mm256_fmadd_ps(a, b, c);
}
APPROXSVM_INLINE void store8(float* p, f32x8 x) {
    _mm256_storeu_ps(p, x);
}
#else
struct f32x8 {
    f32v low, high;
};
APPROXSVM_INLINE f32x8 load8(const float* p) {
    return {load(p), load(p + 4)};
}
APPROXSVM_INLINE f32x8 load8(const float* p, std::size_t n) {
    float copy[8] = {};
    for (std::size_t i = 0; i < n; ++i) copy[i] = p[i];
    return load8(copy);
}
APPROXSVM_INLINE f32x8 set1x8(float x) {
    return {set1(x), set1(x)};
}
APPROXSVM_INLINE f32x8 add8(f32x8 a, f32x8 b) {
    return {add(a.low, b.low), add(a.high, b.high)};
}
APPROXSVM_INLINE f32x8 mul8(f32x8 a, f32x8 b) {
    return {mul(a.low, b.low), mul(a.high, b.high)};
}
APPROXSVM_INLINE f32x8 fmadd8(f32x8 a, f32x8 b, f32x8 c) {
    return {fmadd(a.low, b.low, c.low), fmadd(a.high, b.high, c.high)};
}
APPROXSVM_INLINE void store8(float* p, f32x8 x) {
    store(p, x.low);
    store(p + 4, x.high);
}
#endif
// Returns the sum of the lanes, with three additions on each path.
APPROXSVM_INLINE float sum8(f32x8 x) {
    float lane[8];
    store8(lane, x);
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
