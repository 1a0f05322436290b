// Inner products of 16-bit integers: a register of `lanes` int32, each holding two 16-bit integers or a sum of their
// products. With simd.hpp and bits.hpp this is the only code that depends on a compiler or a CPU.
#ifndef APPROXSVM_SIMD_PAIRS_HPP
#define APPROXSVM_SIMD_PAIRS_HPP

#include "cpuid.hpp"
#include "simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Rounds to the nearest integer, |x| <= 2^22.
APPROXSVM_INLINE f32v to_nearest(f32v x) {
    const f32v shift = set1(12582912.0f);  // 1.5 * 2^23
    return sub(add(x, shift), shift);
}

#if defined(APPROXSVM_AVX512) || defined(APPROXSVM_AVX2)

constexpr bool multiplies_pairs = true;
#if defined(APPROXSVM_AVX512)
using i32v = __m512i;
#else
using i32v = __m256i;
#endif

APPROXSVM_INLINE i32v set1_pair(std::int32_t x) {
    return APPROXSVM_MM(set1_epi32)(x);
}
APPROXSVM_INLINE i32v add(i32v a, i32v b) {
    return APPROXSVM_MM(add_epi32)(a, b);
}
APPROXSVM_INLINE i32v sub(i32v a, i32v b) {
    return APPROXSVM_MM(sub_epi32)(a, b);
}
APPROXSVM_INLINE i32v products_of_pairs(i32v a, i32v b) {
    return APPROXSVM_MM(madd_epi16)(a, b);
}
APPROXSVM_INLINE f32v to_float(i32v x) {
    return APPROXSVM_MM(cvtepi32_ps)(x);
}

#if defined(APPROXSVM_AVX512)
APPROXSVM_INLINE i32v load_pairs(const std::int32_t* p) {
    return _mm512_loadu_si512(p);
}
APPROXSVM_INLINE void store_pairs(std::int32_t* p, i32v x) {
    _mm512_storeu_si512(p, x);
}
// Interleaves integers of 16 bits: the even ones go into the lower halves.
APPROXSVM_INLINE i32v pairs_of(f32v even, f32v odd) {
    return _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_cvtps_epi32(even),
                                   _mm512_slli_epi32(_mm512_cvtps_epi32(odd), 16));
}
APPROXSVM_INLINE void store_shorts(std::int16_t* p, f32v x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(x)));
}

#if defined(__GNUC__) && !defined(_WIN32)
#define APPROXSVM_FUSES_PAIRS (cpuid_7(0, 2) >> 11 & 1u)  // AVX512_VNNI
#define APPROXSVM_FUSED_PAIRS "vpdpwssd %2, %1, %0"
#endif

#else
APPROXSVM_INLINE i32v load_pairs(const std::int32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
APPROXSVM_INLINE void store_pairs(std::int32_t* p, i32v x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
}
APPROXSVM_INLINE i32v pairs_of(f32v even, f32v odd) {
    return _mm256_blend_epi16(_mm256_cvtps_epi32(even), _mm256_slli_epi32(_mm256_cvtps_epi32(odd), 16), 0xAA);
}
APPROXSVM_INLINE void store_shorts(std::int16_t* p, f32v x) {
    const __m256i whole = _mm256_cvtps_epi32(x);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1)));
}

#if !defined(_WIN32) && ((defined(__clang__) && __clang_major__ >= 15) || (!defined(__clang__) && __GNUC__ >= 12))
#define APPROXSVM_FUSES_PAIRS (cpuid_7(1, 0) >> 4 & 1u)  // AVX-VNNI
#define APPROXSVM_FUSED_PAIRS "%{vex%} vpdpwssd %2, %1, %0"
#endif
#endif

#else  // Floats are as fast on these targets; only tests use this.

constexpr bool multiplies_pairs = false;
struct i32v {
    std::int32_t lane[lanes];
};

template <class OfLane>
APPROXSVM_INLINE i32v each_lane(const OfLane& of_lane) {
    i32v all;
    for (int i = 0; i < lanes; ++i) all.lane[i] = of_lane(i);
    return all;
}
APPROXSVM_INLINE std::int32_t wrapped(std::int64_t x) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(x));
}
APPROXSVM_INLINE i32v set1_pair(std::int32_t x) {
    return each_lane([=](int) { return x; });
}
APPROXSVM_INLINE i32v load_pairs(const std::int32_t* p) {
    return each_lane([=](int i) { return p[i]; });
}
APPROXSVM_INLINE void store_pairs(std::int32_t* p, i32v x) {
    for (int i = 0; i < lanes; ++i) p[i] = x.lane[i];
}
APPROXSVM_INLINE i32v add(i32v a, i32v b) {
    return each_lane([=](int i) { return wrapped(std::int64_t{a.lane[i]} + b.lane[i]); });
}
APPROXSVM_INLINE i32v sub(i32v a, i32v b) {
    return each_lane([=](int i) { return wrapped(std::int64_t{a.lane[i]} - b.lane[i]); });
}
APPROXSVM_INLINE i32v products_of_pairs(i32v a, i32v b) {
    const auto low = [](std::int32_t x) { return std::int64_t{static_cast<std::int16_t>(x & 0xFFFF)}; };
    const auto high = [](std::int32_t x) { return std::int64_t{x >> 16}; };
    return each_lane(
        [=](int i) { return wrapped(low(a.lane[i]) * low(b.lane[i]) + high(a.lane[i]) * high(b.lane[i])); });
}
APPROXSVM_INLINE f32v to_float(i32v x) {
    float all[lanes];
    for (int i = 0; i < lanes; ++i) all[i] = static_cast<float>(x.lane[i]);
    return load(all);
}
APPROXSVM_INLINE i32v pairs_of(f32v even, f32v odd) {
    float low[lanes], high[lanes];
    store(low, even);
    store(high, odd);
    return each_lane([&](int i) {
        return wrapped((static_cast<std::int64_t>(low[i]) & 0xFFFF) | static_cast<std::int64_t>(high[i]) * 65536);
    });
}
APPROXSVM_INLINE void store_shorts(std::int16_t* p, f32v x) {
    float all[lanes];
    store(all, x);
    for (int i = 0; i < lanes; ++i) p[i] = static_cast<std::int16_t>(all[i]);
}

#endif

// sum + products_of_pairs(a, b), in one instruction (the integers are the same) or in two.
struct InTwo {
    APPROXSVM_INLINE static i32v add_products(i32v sum, i32v a, i32v b) { return add(sum, products_of_pairs(a, b)); }
};
#if defined(APPROXSVM_FUSES_PAIRS)
// Not all CPUs of these targets have this instruction, so preparing a model checks for it. This is inline assembly
// because GCC copies the sum twice around the intrinsic, which takes 1.5 x as long.
struct InOne {
    APPROXSVM_INLINE static i32v add_products(i32v sum, i32v a, i32v b) {
        asm(APPROXSVM_FUSED_PAIRS : "+v"(sum) : "v"(a), "v"(b));
        return sum;
    }
};
inline bool fuses_pairs() {
    return APPROXSVM_FUSES_PAIRS != 0;
}
#undef APPROXSVM_FUSED_PAIRS
#undef APPROXSVM_FUSES_PAIRS
#else
using InOne = InTwo;
APPROXSVM_INLINE bool fuses_pairs() {
    return false;
}
#endif

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
