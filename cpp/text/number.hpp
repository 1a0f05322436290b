#pragma once

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace approxsvm::text {

/// Reads the real number at the start of [first, last) as strtod does in the C locale, whatever the locale of the
/// process. The result is correctly rounded at any length; the number may be hexadecimal, inf or nan. Overflow gives
/// +-inf, and underflow gives a denormal or +-0. Leading blanks are not skipped.
/// Returns one past the number's last character, or nullptr (value untouched) if there is no number.
const char* parse_real(const char* first, const char* last, double& value);

/// Reads the decimal integer, optionally signed, at the start of [first, last). Integers outside int64 saturate, so
/// that the caller's range check rejects them. Returns one past the last digit, or nullptr (value untouched) if there
/// is none.
const char* parse_index(const char* first, const char* last, std::int64_t& value);

namespace detail {

const char* parse_real_general(const char* first, const char* last, double& value);
const char* parse_index_general(const char* first, const char* last, std::int64_t& value);

// Because 10^19 < 2^64, a number with this many digits never overflows the 64-bit accumulator.
inline constexpr std::ptrdiff_t max_fast_digits = 19;
inline constexpr std::uint64_t max_exact_integer = std::uint64_t{1} << DBL_MANT_DIG;
// Powers of ten up to 10^22 are exact doubles; the fast path needs those up to max_fast_digits.
inline constexpr double powers_of_ten[max_fast_digits + 1] = {
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
inline constexpr std::uint64_t block_scales[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

inline unsigned digit_at(const char* p) {
    return static_cast<unsigned>(static_cast<unsigned char>(*p)) - static_cast<unsigned>('0');
}

/// Loads eight bytes in little-endian order on any machine; compilers turn this into a single load.
inline std::uint64_t load_first_lowest(const char* p) {
    const auto byte = [p](int i) { return std::uint64_t{static_cast<unsigned char>(p[i])} << (8 * i); };
    return byte(0) | byte(1) | byte(2) | byte(3) | byte(4) | byte(5) | byte(6) | byte(7);
}

/// Returns the number of digits before the first byte that is not a digit; each byte of `block` is a character XOR '0'.
inline unsigned count_leading_digits(std::uint64_t block) {
    constexpr std::uint64_t ones = 0x0101010101010101;
    // Adding 0x76 to a byte above 9 sets its top bit or causes a carry, which affects only later bytes.
    const std::uint64_t stop = (((block + 0x76 * ones) | block) >> 7) & ones;
    const std::uint64_t before_first_stop = (stop - 1) & ~stop;
    return static_cast<unsigned>(((before_first_stop & ones) * ones) >> 56);
}

/// Returns the value of eight digits, the most significant one in the lowest byte. The three multiplications combine
/// digits into pairs, pairs into groups of four, and these groups into the result.
inline std::uint64_t join_eight_digits(std::uint64_t digits) {
    digits = ((digits * (1 + (std::uint64_t{10} << 8))) >> 8) & 0x00FF00FF00FF00FF;
    digits = ((digits * (1 + (std::uint64_t{100} << 16))) >> 16) & 0x0000FFFF0000FFFF;
    return (digits * (1 + (std::uint64_t{10000} << 32))) >> 32;
}

/// Appends the decimal digits at p to mantissa and returns their end. Reads eight digits at a time: fractions vary in
/// length, so every exit from a bytewise loop would be mispredicted.
inline const char* append_fraction(const char* p, const char* last, std::uint64_t& mantissa) {
    while (last - p >= 8) {
        const std::uint64_t block = load_first_lowest(p) ^ 0x3030303030303030;
        const unsigned n_digits = count_leading_digits(block);
        // Shift in two steps, because a shift by 64 (no digits kept) is undefined.
        const unsigned half_shift = 4 * (8 - n_digits);
        mantissa = mantissa * block_scales[n_digits] + join_eight_digits((block << half_shift) << half_shift);
        p += n_digits;
        if (n_digits < 8) return p;
    }
    for (; p != last && digit_at(p) < 10; ++p) mantissa = mantissa * 10 + digit_at(p);
    return p;
}

/// Sets the sign without a branch, because signs in scaled data are nearly random.
inline double with_sign(double magnitude, bool negative) {
    std::uint64_t bits;
    std::memcpy(&bits, &magnitude, sizeof bits);
    bits |= std::uint64_t{negative} << 63;
    std::memcpy(&magnitude, &bits, sizeof bits);
    return magnitude;
}

}  // namespace detail

/// Most numbers in data files are short. If the digits form an integer of at most 53 bits and the power of ten is also
/// exact, a single IEEE division is correctly rounded (Clinger, How to read floating point numbers accurately, PLDI
/// 1990). Other numbers are left to the general parser.
inline const char* parse_real(const char* first, const char* last, double& value) {
    if (first == last) return nullptr;
    const bool negative = *first == '-';
    const char* p = first + (negative | (*first == '+'));

    std::uint64_t mantissa = 0;
    const char* const whole = p;
    for (; p != last && detail::digit_at(p) < 10; ++p) mantissa = mantissa * 10 + detail::digit_at(p);
    std::ptrdiff_t n_digits = p - whole;
    std::ptrdiff_t n_fraction_digits = 0;
    if (p != last && *p == '.') {
        const char* const fraction = ++p;
        p = detail::append_fraction(fraction, last, mantissa);
        n_fraction_digits = p - fraction;
        n_digits += n_fraction_digits;
    }

    // A character other than white space may start an exponent or be the x of a hexadecimal number.
    const bool ends_here = p == last || static_cast<unsigned char>(*p) <= ' ';
    const bool is_exact =
        FLT_EVAL_METHOD == 0 && n_digits <= detail::max_fast_digits && mantissa <= detail::max_exact_integer;
    if (n_digits == 0 || !ends_here || !is_exact) return detail::parse_real_general(first, last, value);

    // Convert through int64, because converting an unsigned integer takes a branch on x86-64.
    const double integer = static_cast<double>(static_cast<std::int64_t>(mantissa));
    value = detail::with_sign(integer / detail::powers_of_ten[n_fraction_digits], negative);
    return p;
}

inline const char* parse_index(const char* first, const char* last, std::int64_t& value) {
    constexpr std::ptrdiff_t max_safe_digits = 18;
    std::uint64_t magnitude = 0;
    const char* p = first;
    for (; p != last && detail::digit_at(p) < 10; ++p) magnitude = magnitude * 10 + detail::digit_at(p);
    if (p == first || p - first > max_safe_digits) return detail::parse_index_general(first, last, value);
    value = static_cast<std::int64_t>(magnitude);
    return p;
}

}  // namespace approxsvm::text
