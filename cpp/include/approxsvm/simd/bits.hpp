// Integer kernels: counts of differing bits, sums of byte-wise table lookups, and kernel values from the digits of an
// integer distance. Only this file and simd.hpp depend on the compiler or CPU.
#ifndef APPROXSVM_SIMD_BITS_HPP
#define APPROXSVM_SIMD_BITS_HPP

#include "simd.hpp"

#if defined(APPROXSVM_AVX512) && defined(__GNUC__) && !defined(_WIN32)
#include <cpuid.h>
#endif
#if defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Returns the lowest bits of eight bytes; bit 0 comes from the first byte.
APPROXSVM_INLINE std::uint32_t lowest_bits(const std::uint8_t* bytes) {
    std::uint64_t all = 0;
    for (int i = 0; i < 8; ++i) all |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
    return static_cast<std::uint32_t>((all & 0x0101010101010101u) * 0x0102040810204080u >> 56);
}

// Sixteen bytes, for targets without wider byte registers.
#if defined(APPROXSVM_NEON)
#define APPROXSVM_BYTES16
using u8x16 = uint8x16_t;
APPROXSVM_INLINE u8x16 load16(const unsigned char* p) {
    return vld1q_u8(p);
}
APPROXSVM_INLINE void store16(unsigned char* p, u8x16 x) {
    vst1q_u8(p, x);
}
APPROXSVM_INLINE u8x16 add8(u8x16 a, u8x16 b) {
    return vaddq_u8(a, b);
}
// Looks up table entries for codes below 16.
APPROXSVM_INLINE u8x16 look_up(u8x16 table, u8x16 codes) {
    return vqtbl1q_u8(table, codes);
}
// Adds the number of bits in which a and b differ to `sum`, which holds four uint32.
APPROXSVM_INLINE u8x16 add_differing(u8x16 sum, u8x16 a, u8x16 b) {
    return vreinterpretq_u8_u32(vpadalq_u16(vreinterpretq_u32_u8(sum), vpaddlq_u8(vcntq_u8(veorq_u8(a, b)))));
}
#elif defined(__wasm_simd128__)
#define APPROXSVM_BYTES16
using u8x16 = v128_t;
APPROXSVM_INLINE u8x16 load16(const unsigned char* p) {
    return wasm_v128_load(p);
}
APPROXSVM_INLINE void store16(unsigned char* p, u8x16 x) {
    wasm_v128_store(p, x);
}
APPROXSVM_INLINE u8x16 add8(u8x16 a, u8x16 b) {
    return wasm_i8x16_add(a, b);
}
APPROXSVM_INLINE u8x16 look_up(u8x16 table, u8x16 codes) {
    return wasm_i8x16_swizzle(table, codes);
}
APPROXSVM_INLINE u8x16 add_differing(u8x16 sum, u8x16 a, u8x16 b) {
    const v128_t of_bytes = wasm_i8x16_popcnt(wasm_v128_xor(a, b));
    return wasm_i32x4_add(sum, wasm_u32x4_extadd_pairwise_u16x8(wasm_u16x8_extadd_pairwise_u8x16(of_bytes)));
}
#endif

// --- differing bits

// Sets count[64 k + i] to the number of bits in which the row differs from the vector in lane i of panel k. Panel k, a
// uint32 array of shape (n_planes, 64), is at panels + 256 n_planes k.
#if defined(APPROXSVM_AVX512)

#if defined(__AVX512VPOPCNTDQ__)
#define APPROXSVM_COUNTS_BITS
APPROXSVM_INLINE bool counts_bits() {
    return true;
}
#elif defined(__GNUC__) && !defined(_WIN32)
// Not all CPUs of this target can count bits in vector registers, so this is checked when a model is prepared.
// counts_bits() reads cpuid itself, because zig's tables for __builtin_cpu_supports are empty. It need not check the
// operating system, which is known to save this target's registers.
#define APPROXSVM_COUNTS_BITS __attribute__((target("avx512vpopcntdq")))
inline bool counts_bits() {
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 14 & 1u) != 0;  // AVX512_VPOPCNTDQ
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
APPROXSVM_INLINE bool counts_bits() {  // lookups are faster on this target
    return false;
}
#else
APPROXSVM_INLINE bool counts_bits() {
    return true;
}
#endif

#if defined(APPROXSVM_BYTES16)
inline void differing_bits(const unsigned char* panels, std::size_t n_planes, std::size_t n_panels,
                           const std::uint32_t* row, std::uint32_t* count) {
    std::memset(count, 0, 64 * n_panels * sizeof(std::uint32_t));
    for (std::size_t panel = 0; panel < n_panels; ++panel, count += 64) {
        unsigned char* const sums = reinterpret_cast<unsigned char*>(count);
        u8x16 sum[16];
        APPROXSVM_UNROLL for (int k = 0; k < 16; ++k) sum[k] = load16(sums + 16 * k);
        for (std::size_t p = 0; p < n_planes; ++p, panels += 256) {
            const std::uint32_t four[4] = {row[p], row[p], row[p], row[p]};
            const u8x16 bits = load16(reinterpret_cast<const unsigned char*>(four));
            APPROXSVM_UNROLL for (int k = 0; k < 16; ++k) {
                sum[k] = add_differing(sum[k], bits, load16(panels + 16 * k));
            }
        }
        APPROXSVM_UNROLL for (int k = 0; k < 16; ++k) store16(sums + 16 * k, sum[k]);
    }
}
#else
APPROXSVM_INLINE std::uint32_t n_bits(std::uint32_t x) {
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    x = (x + (x >> 4)) & 0x0F0F0F0Fu;
    x += x >> 8;
    return (x + (x >> 16)) & 0x3Fu;
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

#endif

// --- byte-wise lookups

// Sets sum[64 k + i] to the sum over p < n_parts of tables[p][code p of the vector in lane i of panel k], which is
// below 65,536. Each panel consists of bytes, of shape (n_parts, 64). The elements of run_ends are ascending, and the
// last is n_parts; a sum over the parts between two consecutive elements is at most 255.
#if defined(APPROXSVM_AVX512)
inline void looked_up_sums(const unsigned char* panels, std::size_t n_parts, std::size_t n_panels,
                           const std::uint8_t (*tables)[16], const std::uint32_t* run_ends, std::uint32_t* sum) {
    const __m512i low_bytes = _mm512_set1_epi16(0xFF);
    for (std::size_t panel = 0; panel < n_panels; ++panel, sum += 64) {
        __m512i even = _mm512_setzero_si512(), odd = even;  // sums of even and odd bytes, in 16 bits
        for (std::size_t p = 0, r = 0; p < n_parts; ++r) {
            __m512i bytes = _mm512_setzero_si512();
            for (; p < run_ends[r]; ++p, panels += 64) {
                const __m512i table =
                    _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tables[p])));
                bytes = _mm512_add_epi8(bytes, _mm512_shuffle_epi8(table, _mm512_loadu_si512(panels)));
            }
            even = _mm512_add_epi16(even, _mm512_and_si512(bytes, low_bytes));
            odd = _mm512_add_epi16(odd, _mm512_srli_epi16(bytes, 8));
        }
        // `first` holds the sums of the first eight of every 16 lanes, and `second` the sums of the other eight.
        const __m512i first = _mm512_unpacklo_epi16(even, odd), second = _mm512_unpackhi_epi16(even, odd);
        const auto store_quarter = [&](__m128i low, __m128i high, int k) {
            _mm512_storeu_si512(sum + 16 * k, _mm512_cvtepu16_epi32(_mm256_set_m128i(high, low)));
        };
        store_quarter(_mm512_castsi512_si128(first), _mm512_castsi512_si128(second), 0);
        store_quarter(_mm512_extracti32x4_epi32(first, 1), _mm512_extracti32x4_epi32(second, 1), 1);
        store_quarter(_mm512_extracti32x4_epi32(first, 2), _mm512_extracti32x4_epi32(second, 2), 2);
        store_quarter(_mm512_extracti32x4_epi32(first, 3), _mm512_extracti32x4_epi32(second, 3), 3);
    }
}
#elif defined(APPROXSVM_AVX2)
inline void looked_up_sums(const unsigned char* panels, std::size_t n_parts, std::size_t n_panels,
                           const std::uint8_t (*tables)[16], const std::uint32_t* run_ends, std::uint32_t* sum) {
    const __m256i low_bytes = _mm256_set1_epi16(0xFF);
    for (std::size_t panel = 0; panel < n_panels; ++panel, sum += 64) {
        __m256i even[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()}, odd[2] = {even[0], even[0]};
        for (std::size_t p = 0, r = 0; p < n_parts; ++r) {
            __m256i bytes[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
            for (; p < run_ends[r]; ++p, panels += 64) {
                const __m256i table =
                    _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tables[p])));
                APPROXSVM_UNROLL for (int k = 0; k < 2; ++k) {
                    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panels + 32 * k));
                    bytes[k] = _mm256_add_epi8(bytes[k], _mm256_shuffle_epi8(table, codes));
                }
            }
            APPROXSVM_UNROLL for (int k = 0; k < 2; ++k) {
                even[k] = _mm256_add_epi16(even[k], _mm256_and_si256(bytes[k], low_bytes));
                odd[k] = _mm256_add_epi16(odd[k], _mm256_srli_epi16(bytes[k], 8));
            }
        }
        const auto store_eight = [](__m128i lanes16, std::uint32_t* out) {
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_cvtepu16_epi32(lanes16));
        };
        APPROXSVM_UNROLL for (int k = 0; k < 2; ++k) {
            const __m256i first = _mm256_unpacklo_epi16(even[k], odd[k]);
            const __m256i second = _mm256_unpackhi_epi16(even[k], odd[k]);
            store_eight(_mm256_castsi256_si128(first), sum + 32 * k);
            store_eight(_mm256_castsi256_si128(second), sum + 32 * k + 8);
            store_eight(_mm256_extracti128_si256(first, 1), sum + 32 * k + 16);
            store_eight(_mm256_extracti128_si256(second, 1), sum + 32 * k + 24);
        }
    }
}
#else
inline void looked_up_sums(const unsigned char* panels, std::size_t n_parts, std::size_t n_panels,
                           const std::uint8_t (*tables)[16], const std::uint32_t* run_ends, std::uint32_t* sum) {
    for (std::size_t panel = 0; panel < n_panels; ++panel, sum += 64) {
        for (std::size_t i = 0; i < 64; ++i) sum[i] = 0;
        for (std::size_t p = 0, r = 0; p < n_parts; ++r) {
            std::uint8_t bytes[64] = {};
            for (; p < run_ends[r]; ++p, panels += 64) {
#if defined(APPROXSVM_BYTES16)
                const u8x16 table = load16(tables[p]);
                APPROXSVM_UNROLL for (int k = 0; k < 4; ++k) {
                    store16(bytes + 16 * k, add8(load16(bytes + 16 * k), look_up(table, load16(panels + 16 * k))));
                }
#else
                for (std::size_t i = 0; i < 64; ++i) {
                    bytes[i] = static_cast<std::uint8_t>(bytes[i] + tables[p][panels[i]]);
                }
#endif
            }
            for (std::size_t i = 0; i < 64; ++i) sum[i] += bytes[i];
        }
    }
}
#endif

// Costs per support vector: of one bit plane, of one lookup, and of all other work. They are in float32 multiply-adds
// and were measured on Zen 5.
struct BitsWork {
    double plane, part, rest;
};
#if defined(APPROXSVM_AVX512) || defined(APPROXSVM_AVX2)
constexpr BitsWork bits_work = {1.2, 0.35, 5.0};
#else
constexpr BitsWork bits_work = {4.0, 3.0, 8.0};
#endif

// --- a function of an integer by its digits: the product of a table entry for each digit

// Numbers of digits in base digit_values; a single digit if registers cannot hold the tables.
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

// Number of digits for integers up to `most`.
constexpr std::size_t digits_of(std::size_t most) {
    std::size_t n = fewest_digits;
    for (std::size_t rest = most >> (digit_bits * fewest_digits); rest > 0; rest >>= digit_bits) ++n;
    return n;
}

// Calls take(Number<n>) for n digits, where fewest_digits <= n <= most_digits.
template <int Digits = fewest_digits, class Take>
APPROXSVM_INLINE auto with_digits(std::size_t n, const Take& take) {
    if constexpr (Digits < most_digits) {
        if (n > Digits) return with_digits<Digits + 1>(n, take);
    }
    return take(Number<Digits>{});
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
