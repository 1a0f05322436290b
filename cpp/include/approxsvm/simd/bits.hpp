// Integers side by side: bits that differ, sums of look-ups by bytes, and kernel values by digits of a distance. With
// simd.hpp these are all lines that know a compiler or a CPU.
#pragma once

#include "simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The lowest bit of each of eight bytes, the first one's lowest.
APPROXSVM_INLINE std::uint32_t lowest_bits(const std::uint8_t* bytes) {
    std::uint64_t all = 0;
    for (int i = 0; i < 8; ++i) all |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
    return static_cast<std::uint32_t>((all & 0x0101010101010101u) * 0x0102040810204080u >> 56);
}

// --- bits that differ

// count[64 k + i] = the bits in which row differs from the vector in lane i of panel k, (n_planes, 64) uint32 at
// panels + 256 n_planes k.
#if defined(APPROXSVM_AVX512)

#if defined(__AVX512VPOPCNTDQ__)
#define APPROXSVM_COUNTS_BITS
APPROXSVM_INLINE bool counts_bits() {
    return true;
}
#elif defined(__GNUC__) && !defined(_WIN32)
// Not all CPUs of this target count bits of registers: asked where a model is prepared.
#define APPROXSVM_COUNTS_BITS __attribute__((target("avx512vpopcntdq")))
APPROXSVM_INLINE bool counts_bits() {
    return __builtin_cpu_supports("avx512vpopcntdq");
}
#else
APPROXSVM_INLINE bool counts_bits() {
    return false;
}
#endif

#if defined(APPROXSVM_COUNTS_BITS)
APPROXSVM_COUNTS_BITS inline void differing_bits(const unsigned char* panels, std::size_t n_planes,
                                                 std::size_t n_panels, const std::uint32_t* row, std::uint32_t* count) {
    for (std::size_t panel = 0; panel < n_panels; ++panel, count += 64) {
        __m512i sum[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                          _mm512_setzero_si512()};
        for (std::size_t p = 0; p < n_planes; ++p, panels += 256) {
            const __m512i bits = _mm512_set1_epi32(static_cast<int>(row[p]));
            APPROXSVM_UNROLL for (int k = 0; k < 4; ++k) {
                const __m512i differing = _mm512_xor_si512(bits, _mm512_loadu_si512(panels + 64 * k));
                sum[k] = _mm512_add_epi32(sum[k], _mm512_popcnt_epi32(differing));
            }
        }
        APPROXSVM_UNROLL for (int k = 0; k < 4; ++k) _mm512_storeu_si512(count + 16 * k, sum[k]);
    }
}
#undef APPROXSVM_COUNTS_BITS
#else
inline void differing_bits(const unsigned char*, std::size_t, std::size_t, const std::uint32_t*, std::uint32_t*) {}
#endif

#else

#if defined(APPROXSVM_AVX2)
APPROXSVM_INLINE bool counts_bits() {  // look-ups take less
    return false;
}
#else
APPROXSVM_INLINE bool counts_bits() {
    return true;
}
#endif

APPROXSVM_INLINE std::uint32_t n_bits(std::uint32_t x) {
#if defined(APPROXSVM_NEON) && defined(__GNUC__)
    return static_cast<std::uint32_t>(__builtin_popcount(x));
#else
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    x = (x + (x >> 4)) & 0x0F0F0F0Fu;
    x += x >> 8;
    return (x + (x >> 16)) & 0x3Fu;
#endif
}
inline void differing_bits(const unsigned char* panels, std::size_t n_planes, std::size_t n_panels,
                           const std::uint32_t* row, std::uint32_t* count) {
    for (std::size_t panel = 0; panel < n_panels; ++panel, count += 64) {
        for (std::size_t i = 0; i < 64; ++i) count[i] = 0;
        for (std::size_t p = 0; p < n_planes; ++p, panels += 256) {
            std::uint32_t bits[64];
            std::memcpy(bits, panels, sizeof bits);
            for (std::size_t i = 0; i < 64; ++i) count[i] += n_bits(bits[i] ^ row[p]);
        }
    }
}

#endif

// --- look-ups by bytes

// sum[i] = or += the sum of table[p][codes[64 p + i]] over n parts, which is at most 255; 64 lanes.
#if defined(APPROXSVM_AVX512)
APPROXSVM_INLINE void add_looked_up(const std::uint8_t* codes, const std::uint8_t (*tables)[16], std::size_t n,
                                    bool is_first, std::uint32_t* sum) {
    __m512i bytes = _mm512_setzero_si512();
    for (std::size_t p = 0; p < n; ++p, codes += 64) {
        const __m128i narrow = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tables[p]));
        bytes = _mm512_add_epi8(bytes, _mm512_shuffle_epi8(_mm512_broadcast_i32x4(narrow), _mm512_loadu_si512(codes)));
    }
    const __m128i quarters[4] = {_mm512_castsi512_si128(bytes), _mm512_extracti32x4_epi32(bytes, 1),
                                 _mm512_extracti32x4_epi32(bytes, 2), _mm512_extracti32x4_epi32(bytes, 3)};
    APPROXSVM_UNROLL for (int k = 0; k < 4; ++k) {
        __m512i wide = _mm512_cvtepu8_epi32(quarters[k]);
        if (!is_first) wide = _mm512_add_epi32(wide, _mm512_loadu_si512(sum + 16 * k));
        _mm512_storeu_si512(sum + 16 * k, wide);
    }
}
#elif defined(APPROXSVM_AVX2)
APPROXSVM_INLINE void add_looked_up(const std::uint8_t* codes, const std::uint8_t (*tables)[16], std::size_t n,
                                    bool is_first, std::uint32_t* sum) {
    __m256i bytes[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (std::size_t p = 0; p < n; ++p, codes += 64) {
        const __m256i table =
            _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tables[p])));
        APPROXSVM_UNROLL for (int k = 0; k < 2; ++k) {
            const __m256i of_lanes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 32 * k));
            bytes[k] = _mm256_add_epi8(bytes[k], _mm256_shuffle_epi8(table, of_lanes));
        }
    }
    std::uint8_t narrow[64];
    APPROXSVM_UNROLL for (int k = 0; k < 2; ++k) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(narrow + 32 * k), bytes[k]);
    }
    APPROXSVM_UNROLL for (int k = 0; k < 8; ++k) {
        __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(narrow + 8 * k)));
        __m256i* const at = reinterpret_cast<__m256i*>(sum + 8 * k);
        if (!is_first) wide = _mm256_add_epi32(wide, _mm256_loadu_si256(at));
        _mm256_storeu_si256(at, wide);
    }
}
#else
APPROXSVM_INLINE void add_looked_up(const std::uint8_t* codes, const std::uint8_t (*tables)[16], std::size_t n,
                                    bool is_first, std::uint32_t* sum) {
    std::uint8_t bytes[64] = {};
    for (std::size_t p = 0; p < n; ++p, codes += 64) {
#if defined(APPROXSVM_NEON)
        const uint8x16_t table = vld1q_u8(tables[p]);
        APPROXSVM_UNROLL for (int k = 0; k < 4; ++k) {
            std::uint8_t* const at = bytes + 16 * k;
            vst1q_u8(at, vaddq_u8(vld1q_u8(at), vqtbl1q_u8(table, vld1q_u8(codes + 16 * k))));
        }
#else
        for (std::size_t i = 0; i < 64; ++i) bytes[i] = static_cast<std::uint8_t>(bytes[i] + tables[p][codes[i]]);
#endif
    }
    for (std::size_t i = 0; i < 64; ++i) sum[i] = (is_first ? 0 : sum[i]) + bytes[i];
}
#endif

// --- a function of an integer by its digits: the product of what tables hold for each of them

// Digits to base digit_values, Digits of them; a single one where registers hold no tables.
#if defined(APPROXSVM_AVX512)

constexpr int digit_bits = 5, fewest_digits = 2, most_digits = 3;
template <int Digits>
class DigitTables {
  public:
    explicit DigitTables(const float* digits) {
        APPROXSVM_UNROLL for (int k = 0; k < 2 * Digits; ++k) tables_[k] = load(digits + 16 * k);
    }
    APPROXSVM_INLINE f32v at(const std::uint32_t* h) const {
        __m512i left = _mm512_loadu_si512(h);
        f32v product = _mm512_permutex2var_ps(tables_[0], left, tables_[1]);
        APPROXSVM_UNROLL for (int k = 1; k < Digits; ++k) {
            left = _mm512_srli_epi32(left, 5);
            product = mul(product, _mm512_permutex2var_ps(tables_[2 * k], left, tables_[2 * k + 1]));
        }
        return product;
    }

  private:
    f32v tables_[2 * Digits];
};

#elif defined(APPROXSVM_AVX2)

constexpr int digit_bits = 3, fewest_digits = 2, most_digits = 4;
template <int Digits>
class DigitTables {
  public:
    explicit DigitTables(const float* digits) {
        APPROXSVM_UNROLL for (int k = 0; k < Digits; ++k) tables_[k] = load(digits + 8 * k);
    }
    APPROXSVM_INLINE f32v at(const std::uint32_t* h) const {
        __m256i left = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(h));
        f32v product = _mm256_permutevar8x32_ps(tables_[0], left);
        APPROXSVM_UNROLL for (int k = 1; k < Digits; ++k) {
            left = _mm256_srli_epi32(left, 3);
            product = mul(product, _mm256_permutevar8x32_ps(tables_[k], left));
        }
        return product;
    }

  private:
    f32v tables_[Digits];
};

#else

constexpr int digit_bits = 12, fewest_digits = 1, most_digits = 1;
template <int Digits>
class DigitTables {
  public:
    explicit DigitTables(const float* digits) : table_(digits) {}
    APPROXSVM_INLINE f32v at(const std::uint32_t* h) const {
        const float values[4] = {table_[h[0]], table_[h[1]], table_[h[2]], table_[h[3]]};
        return load(values);
    }

  private:
    const float* const table_;
};

#endif

constexpr std::size_t digit_values = std::size_t{1} << digit_bits;

// Digits of numbers up to `most`.
constexpr std::size_t digits_of(std::size_t most) {
    std::size_t n = fewest_digits;
    for (std::size_t rest = most >> (digit_bits * fewest_digits); rest > 0; rest >>= digit_bits) ++n;
    return n;
}

// take(Number<n>), fewest_digits <= n <= most_digits.
template <int Digits = fewest_digits, class Take>
APPROXSVM_INLINE auto with_digits(std::size_t n, const Take& take) {
    if constexpr (Digits < most_digits) {
        if (n > Digits) return with_digits<Digits + 1>(n, take);
    }
    return take(Number<Digits>{});
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
