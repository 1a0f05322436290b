#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

#include "number.hpp"

// Parses "index:value index:value ..." up to the end of a line, as in rows of data and support vectors. All functions
// are inline, because this loop takes most of the time spent reading a file.

namespace approxsvm::text {

/// One less than the largest int32, so that the number of features still fits in an int32.
inline constexpr std::int64_t max_feature_index = std::numeric_limits<std::int32_t>::max() - 1;

enum class FeatureFault {
    none,
    /// "integer:" is missing.
    not_a_pair,
    negative_index,
    /// The index exceeds max_feature_index.
    index_too_large,
    /// The index is not greater than the previous one.
    not_ascending,
    /// The characters after the colon are not exactly one number.
    not_a_value,
    /// The value is inf or nan, and the policy is NonFinite::reject.
    not_finite,
    /// The number overflows a double.
    value_too_large
};

/// Treatment of the values inf and nan: data may contain them, but models may not.
enum class NonFinite { accept, reject };

struct FeatureParse {
    std::size_t n_features;
    FeatureFault fault;
    /// Location of the fault, the faulty index, and the previous index on the line.
    const char* at;
    std::int64_t index;
    std::int64_t previous_index;
};

inline bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

inline const char* skip_blanks(const char* p, const char* line_last) {
    while (p != line_last && is_blank(*p)) ++p;
    return p;
}

/// Maximum number of pairs on a line of n_bytes: the shortest pair, "0:1", takes four bytes with a blank.
inline std::size_t max_features(std::size_t n_bytes) {
    return n_bytes / 4 + 1;
}

namespace detail {

inline FeatureFault index_fault(std::int64_t index) {
    if (index < 0) return FeatureFault::negative_index;
    return index > max_feature_index ? FeatureFault::index_too_large : FeatureFault::not_ascending;
}

inline FeatureFault non_finite_fault(const char* value, NonFinite policy) {
    const char* const p = value + (*value == '-' || *value == '+' ? 1 : 0);
    if (digit_at(p) < 10 || *p == '.') return FeatureFault::value_too_large;
    return policy == NonFinite::reject ? FeatureFault::not_finite : FeatureFault::none;
}

}  // namespace detail

/// Reads the pairs on the line [p, line_last) into indices and values, which have room for one pair per colon on the
/// line. The pointer text_last, which is not before line_last, marks the end of the readable bytes. A byte at line_last
/// must be white space, so that every number ends there.
template <NonFinite policy>
inline FeatureParse parse_features(const char* p, const char* line_last, const char* text_last, std::int32_t* indices,
                                   double* values) {
    std::size_t n = 0;
    std::int64_t previous = -1;
    for (p = skip_blanks(p, line_last); p != line_last; p = skip_blanks(p, line_last)) {
        std::int64_t index = 0;
        const char* end = parse_index(p, text_last, index);
        if (end == nullptr || end == text_last || *end != ':') {
            return {n, FeatureFault::not_a_pair, p, index, previous};
        }
        if (index <= previous || index > max_feature_index) {
            return {n, detail::index_fault(index), p, index, previous};
        }

        p = skip_blanks(end + 1, line_last);
        double value = 0.0;
        end = parse_real(p, text_last, value);
        if (end == nullptr || (end != line_last && !is_blank(*end))) {
            return {n, FeatureFault::not_a_value, p, index, previous};
        }
        if (!std::isfinite(value)) {
            const FeatureFault fault = detail::non_finite_fault(p, policy);
            if (fault != FeatureFault::none) return {n, fault, p, index, previous};
        }

        indices[n] = static_cast<std::int32_t>(index);
        values[n] = value;
        ++n;
        previous = index;
        p = end;
    }
    return {n, FeatureFault::none, p, previous, previous};
}

/// Quotes the token at p for an error message, truncated to a readable length, with '?' for unprintable bytes.
inline std::string quote_token(const char* p, const char* last) {
    constexpr std::ptrdiff_t max_shown_bytes = 40;
    const char* const end = std::find_if(p, std::min(last, p + std::min(last - p, max_shown_bytes)), [](char c) {
        return is_blank(c) || c == '\n' || c == '\r' || c == '\v' || c == '\f';
    });
    std::string quoted = "'";
    std::transform(p, end, std::back_inserter(quoted), [](char c) { return c > ' ' && c <= '~' ? c : '?'; });
    return quoted + (end - p == max_shown_bytes ? "...'" : "'");
}

inline std::string describe(const FeatureParse& parse, const char* line_last) {
    const std::string index = std::to_string(parse.index);
    switch (parse.fault) {
        case FeatureFault::none:
            return "no error";
        case FeatureFault::not_a_pair:
            return quote_token(parse.at, line_last) + " is not index:value";
        case FeatureFault::negative_index:
            return "index " + index + " is negative";
        case FeatureFault::index_too_large:
            return "index " + quote_token(parse.at, std::find(parse.at, line_last, ':')) + " exceeds " +
                   std::to_string(max_feature_index);
        case FeatureFault::not_ascending:
            return "index " + index + " follows index " + std::to_string(parse.previous_index) +
                   ", but indices must ascend";
        case FeatureFault::not_a_value:
            return "the value of index " + index + " is " + quote_token(parse.at, line_last) + ", not a number";
        case FeatureFault::not_finite:
            return "the value of index " + index + " is " + quote_token(parse.at, line_last) + ", not finite";
        case FeatureFault::value_too_large:
            return "the value of index " + index + " is " + quote_token(parse.at, line_last) +
                   ", beyond the range of a double";
    }
    return "unknown fault";
}

/// Upper bounds on the array sizes for a text: one row per line break, and one feature per colon.
struct TextCounts {
    std::size_t n_line_breaks = 0;
    std::size_t n_colons = 0;
};

inline TextCounts count_line_breaks_and_colons(std::string_view text) {
    // Blocks are short enough for byte-sized counters; compilers then count with one vector addition per vector of
    // bytes.
    constexpr std::size_t block_bytes = 240;
    TextCounts counts;
    for (std::size_t begin = 0; begin < text.size(); begin += block_bytes) {
        const char* const block = text.data() + begin;
        const std::size_t n_bytes = std::min(block_bytes, text.size() - begin);
        std::uint8_t n_line_breaks = 0;
        std::uint8_t n_colons = 0;
        for (std::size_t i = 0; i < n_bytes; ++i) {
            n_line_breaks = static_cast<std::uint8_t>(n_line_breaks + (block[i] == '\n'));
            n_colons = static_cast<std::uint8_t>(n_colons + (block[i] == ':'));
        }
        counts.n_line_breaks += n_line_breaks;
        counts.n_colons += n_colons;
    }
    return counts;
}

}  // namespace approxsvm::text
