#include "number.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>

namespace approxsvm::text::detail {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_alphanumeric(char c) {
    return digit_at(&c) < 10 || (lower(c) >= 'a' && lower(c) <= 'z');
}

bool starts_with(const char* p, const char* last, std::string_view lower_word) {
    return static_cast<std::size_t>(last - p) >= lower_word.size() &&
           std::equal(lower_word.begin(), lower_word.end(), p, [](char w, char c) { return w == lower(c); });
}

const char* skip_digits(const char* p, const char* last) {
    while (p != last && digit_at(p) < 10) ++p;
    return p;
}

/// Reads an exponent (an optional sign and at least one digit), or returns nullptr. The exponent saturates far beyond
/// the range of double, but far enough below the limits of int64 that a count of digits can be added.
const char* parse_exponent(const char* p, const char* last, std::int64_t& exponent) {
    constexpr std::int64_t limit = std::int64_t{1} << 60;
    const char* const end = parse_index(p, last, exponent);
    if (end != nullptr) exponent = std::clamp(exponent, -limit, limit);
    return end;
}

/// Parses inf, infinity, nan and nan(characters), ignoring case.
const char* parse_named(const char* p, const char* last, double& magnitude) {
    if (starts_with(p, last, "inf")) {
        magnitude = std::numeric_limits<double>::infinity();
        return p + (starts_with(p, last, "infinity") ? 8 : 3);
    }
    if (!starts_with(p, last, "nan")) return nullptr;
    magnitude = std::numeric_limits<double>::quiet_NaN();
    p += 3;
    if (p == last || *p != '(') return p;
    const char* const close = std::find_if_not(p + 1, last, [](char c) { return is_alphanumeric(c) || c == '_'; });
    return close != last && *close == ')' ? close + 1 : p;
}

unsigned hexadecimal_digit_at(const char* p) {
    if (digit_at(p) < 10) return digit_at(p);
    const char c = lower(*p);
    return c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10 : 16;
}

/// Returns mantissa * 2^exponent, rounded once to nearest, ties to even. Rounding off the surplus bits before ldexp
/// avoids a second rounding for denormals.
double scale_by_power_of_two(std::uint64_t mantissa, std::int64_t exponent) {
    constexpr std::int64_t lowest_exponent = DBL_MIN_EXP - DBL_MANT_DIG;
    if (mantissa == 0) return 0.0;
    int n_bits = 0;
    while ((mantissa >> n_bits) != 0) ++n_bits;
    const std::int64_t n_dropped =
        std::max({lowest_exponent - exponent, std::int64_t{n_bits - DBL_MANT_DIG}, std::int64_t{0}});
    if (n_dropped > n_bits) return 0.0;
    if (n_dropped > 0) {
        const std::uint64_t half = std::uint64_t{1} << (n_dropped - 1);
        const std::uint64_t rest = mantissa & (2 * half - 1);
        mantissa >>= n_dropped;
        mantissa += rest > half || (rest == half && mantissa % 2 == 1);
    }
    constexpr std::int64_t overflows = 2 * DBL_MAX_EXP;
    return std::ldexp(static_cast<double>(mantissa), static_cast<int>(std::min(exponent + n_dropped, overflows)));
}

/// Parses the digits after "0x", and the binary exponent if there is one.
const char* parse_hexadecimal(const char* p, const char* last, double& magnitude) {
    // Below this value, four more bits still fit into the mantissa. Of the digits that do not fit, it only matters
    // whether any is nonzero; the lowest bit records this.
    constexpr std::uint64_t full = std::uint64_t{1} << 56;
    std::uint64_t mantissa = 0;
    std::int64_t exponent = 0;
    bool has_digit = false;
    bool has_point = false;
    bool has_rest = false;
    for (; p != last; ++p) {
        if (*p == '.' && !has_point) {
            has_point = true;
            continue;
        }
        const unsigned digit = hexadecimal_digit_at(p);
        if (digit > 15) break;
        has_digit = true;
        if (mantissa < full) {
            mantissa = mantissa * 16 + digit;
        } else {
            has_rest |= digit != 0;
            exponent += 4;
        }
        if (has_point) exponent -= 4;
    }
    if (!has_digit) return nullptr;
    if (p != last && lower(*p) == 'p') {
        std::int64_t written = 0;
        if (const char* const end = parse_exponent(p + 1, last, written)) {
            exponent += written;
            p = end;
        }
    }
    magnitude = scale_by_power_of_two(mantissa | std::uint64_t{has_rest}, exponent);
    return p;
}

const char* find_decimal_end(const char* p, const char* last) {
    const char* const whole = p;
    p = skip_digits(p, last);
    std::ptrdiff_t n_digits = p - whole;
    if (p != last && *p == '.') {
        const char* const fraction = p + 1;
        p = skip_digits(fraction, last);
        n_digits += p - fraction;
    }
    if (n_digits == 0) return nullptr;
    if (p == last || lower(*p) != 'e') return p;
    std::int64_t exponent = 0;
    const char* const end = parse_exponent(p + 1, last, exponent);
    return end != nullptr ? end : p;
}

double decimal_from_stream(const char* first, const char* last) {
    std::istringstream stream(std::string(first, last));
    stream.imbue(std::locale::classic());
    double magnitude = 0.0;
    stream >> magnitude;
    // On overflow, some standard libraries return the largest double, others infinity.
    if (stream.fail() && magnitude == std::numeric_limits<double>::max()) {
        return std::numeric_limits<double>::infinity();
    }
    return magnitude;
}

/// Returns the value of a complete unsigned decimal number.
double decimal_value(const char* first, const char* last) {
#if defined(__cpp_lib_to_chars)
    double magnitude = 0.0;
    if (std::from_chars(first, last, magnitude).ec == std::errc{}) return magnitude;
    // The number is out of range. The standard does not say whether it is too large or too small, and some libraries
    // also report denormals this way.
#endif
    return decimal_from_stream(first, last);
}

}  // namespace

const char* parse_real_general(const char* first, const char* last, double& value) {
    if (first == last) return nullptr;
    const bool negative = *first == '-';
    const char* const p = first + (negative || *first == '+' ? 1 : 0);

    double magnitude = 0.0;
    const char* end = parse_named(p, last, magnitude);
    if (end == nullptr && starts_with(p, last, "0x")) end = parse_hexadecimal(p + 2, last, magnitude);
    if (end == nullptr) {
        end = find_decimal_end(p, last);
        if (end == nullptr) return nullptr;
        magnitude = decimal_value(p, end);
    }
    value = with_sign(magnitude, negative);
    return end;
}

const char* parse_index_general(const char* first, const char* last, std::int64_t& value) {
    if (first == last) return nullptr;
    const bool negative = *first == '-';
    const char* p = first + (negative || *first == '+' ? 1 : 0);
    if (p == last || digit_at(p) > 9) return nullptr;

    constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
    std::int64_t magnitude = 0;
    for (; p != last && digit_at(p) < 10; ++p) {
        const std::int64_t digit = static_cast<std::int64_t>(digit_at(p));
        magnitude = magnitude > (largest - digit) / 10 ? largest : magnitude * 10 + digit;
    }
    value = negative ? -magnitude : magnitude;
    return p;
}

}  // namespace approxsvm::text::detail
