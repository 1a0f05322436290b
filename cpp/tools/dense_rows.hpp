// Rows of a dense data file: "label value value ...", or values only, one row per line.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

#include "feature_row.hpp"
#include "number.hpp"
#include "text_error.hpp"

namespace approxsvm::tools {

struct DenseFormat {
    /// The character between values, which blanks may surround; 0 stands for a comma or white space.
    char delimiter = 0;
    /// Whether the first value of a row is its label.
    bool has_targets = true;
    /// Values per row without the label; 0 until the first row has been read.
    std::size_t n_features = 0;
    /// Whether the first line is known to be a row, although it may count 0, 1, 2, ...
    bool has_no_header = false;
};

/// Whether a character can separate values: not a letter (hexadecimal numbers, inf, nan), digit, sign or point.
inline bool can_delimit(char c) {
    return c == '\t' || (c >= ' ' && c <= '~' && std::strchr("+-.", c) == nullptr && !(c >= '0' && c <= '9') &&
                         !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z'));
}

/// Whether the first line counts 0, 1, 2, ... or 1, 2, 3, ..., as pandas names the columns of an array.
inline bool counts_up(std::string_view text) {
    std::size_t n_numbers = 0, first = 0;
    for (std::size_t i = 0; i < text.size() && text[i] != '\n';) {
        if (text[i] == '\r' || can_delimit(text[i])) {
            ++i;
            continue;
        }
        std::size_t number = 0;
        const char* const last = text.data() + text.size();
        const auto [end, error] = std::from_chars(text.data() + i, last, number);
        if (error != std::errc() || !(end == last || *end == '\n' || *end == '\r' || can_delimit(*end))) return false;
        if (n_numbers == 0) first = number;
        if (first > 1 || number != first + n_numbers++) return false;
        i = static_cast<std::size_t>(end - text.data());
    }
    return n_numbers > 1;
}

/// Iterates over the rows of a text. Zeros are left out, as in sparse rows.
class DenseRowParser {
  public:
    DenseRowParser(std::string_view text, const DenseFormat& format)
        : next_(text.data()), last_(next_ + text.size()), format_(format) {}

    /// Returns the maximum number of non-zero values in a text: a digit and a separator take two bytes.
    static std::size_t max_features(std::size_t n_bytes) { return n_bytes / 2 + 1; }

    /// Reads the next row; false at the end of the text. Throws text::TextError.
    bool next(double& target, std::int32_t* columns, double* values, std::size_t& n_nonzero) {
        if (next_ == last_) return false;
        const void* const found = std::memchr(next_, '\n', static_cast<std::size_t>(last_ - next_));
        const char* const line_break = found != nullptr ? static_cast<const char*>(found) : last_;
        line_last_ = line_break != next_ && line_break[-1] == '\r' ? line_break - 1 : line_break;
        next_ = skip_blanks(next_);
        if (next_ == line_last_) fail("the line is blank");
        bool has_more = true;
        if (format_.has_targets) has_more = take("label ", target);
        n_nonzero = n_values_ = 0;
        while (has_more) {
            double value = 0.0;
            has_more = take("value ", value);
            if (value != 0.0) {
                columns[n_nonzero] = static_cast<std::int32_t>(n_values_);
                values[n_nonzero++] = value;
            }
            ++n_values_;
        }
        check_number();
        next_ = line_break == last_ ? last_ : line_break + 1;
        ++line_;
        return true;
    }

    /// Returns the number of the line that the next call reads.
    std::size_t line() const { return line_; }
    /// Returns the number of values of the last row, including zeros.
    std::size_t n_values() const { return n_values_; }

  private:
    [[noreturn]] void fail(const std::string& why) const { throw text::TextError(line_, "wrong input format: " + why); }

    const char* skip_blanks(const char* p) const {
        while (p != line_last_ && text::is_blank(*p) && (*p != format_.delimiter || *p == ' ')) ++p;
        return p;
    }

    /// Reads a value and the separator after it; false for the last value of a line.
    bool take(const char* what, double& value) {
        const char* const end = text::parse_real(next_, line_last_, value);
        const char* const behind = end == nullptr ? nullptr : skip_blanks(end);
        const char delimiter = format_.delimiter == 0 ? ',' : format_.delimiter;
        const bool is_last = behind == line_last_;
        const bool is_delimited = !is_last && behind != nullptr && *behind == delimiter;
        const bool is_blank_enough = behind != end && (format_.delimiter == 0 || format_.delimiter == ' ');
        if (end == nullptr || !(is_last || is_delimited || is_blank_enough)) {
            fail(what + text::quote_token(next_, line_last_) + " is not a number");
        }
        next_ = is_delimited ? skip_blanks(behind + 1) : behind;
        if (is_delimited && next_ == line_last_) fail("nothing follows the last delimiter");
        return !is_last;
    }

    void check_number() const {
        if (n_values_ == 0) fail("there is a label, but no value (use --no-labels if the first value is not a label)");
        if (format_.n_features != 0 && n_values_ != format_.n_features) {
            fail("the row has " + std::to_string(n_values_) + " values instead of " +
                 std::to_string(format_.n_features));
        }
    }

    const char* next_;
    const char* last_;
    const char* line_last_ = nullptr;
    DenseFormat format_;
    std::size_t line_ = 1;
    std::size_t n_values_ = 0;
};

}  // namespace approxsvm::tools
