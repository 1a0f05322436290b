#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "feature_row.hpp"
#include "text_error.hpp"
#include "uninitialized_vector.hpp"

// Rows of "label index:value ...", the format of LIBSVM's training and test files. A row ends with a line break (LF or
// CR LF, optional after the last row). Errors are TextErrors "wrong input format: <why>".

namespace approxsvm::text {

/// One row, in reused buffers: only the first n_features elements are valid.
struct DataRow {
    double label = 0.0;
    std::size_t n_features = 0;
    std::vector<std::int32_t> indices;
    std::vector<double> values;
};

/// Iterates over the rows of a text. Allocates memory only if a line is longer than all previous ones.
class DataRowParser {
  public:
    /// The text must outlive the parser. `first_line` is the number of the text's first line, for error messages.
    explicit DataRowParser(std::string_view text, std::size_t first_line = 1)
        : next_(text.data()), last_(text.data() + text.size()), line_(first_line) {}

    /// Reads the next row; returns false at the end of the text.
    bool next(DataRow& row) {
        if (next_ == last_) return false;
        const char* const line_break = find_line_break();
        const std::size_t capacity = max_features(static_cast<std::size_t>(line_break - next_));
        if (row.indices.size() < capacity) {
            row.indices.resize(capacity);
            row.values.resize(capacity);
        }
        row.n_features = parse_line(line_break, row.label, row.indices.data(), row.values.data());
        return true;
    }

    /// Reads the next row into the caller's arrays, which must have room for one feature per colon on the line.
    bool next(double& label, std::int32_t* indices, double* values, std::size_t& n_features) {
        if (next_ == last_) return false;
        n_features = parse_line(find_line_break(), label, indices, values);
        return true;
    }

    /// Returns the number of the line that the next call will read.
    std::size_t line() const { return line_; }

  private:
    const char* find_line_break() const {
        const void* const found = std::memchr(next_, '\n', static_cast<std::size_t>(last_ - next_));
        return found != nullptr ? static_cast<const char*>(found) : last_;
    }

    std::size_t parse_line(const char* line_break, double& label, std::int32_t* indices, double* values) {
        const char* const line_last = line_break != next_ && line_break[-1] == '\r' ? line_break - 1 : line_break;
        const char* const first = skip_blanks(next_, line_last);
        const char* const label_end = parse_real(first, last_, label);
        if (label_end == nullptr || (label_end != line_last && !is_blank(*label_end))) {
            throw_label_error(first, line_last);
        }
        const FeatureParse parse = parse_features<NonFinite::accept>(label_end, line_last, last_, indices, values);
        if (parse.fault != FeatureFault::none) throw_feature_error(parse, line_last);
        next_ = line_break == last_ ? last_ : line_break + 1;
        ++line_;
        return parse.n_features;
    }

    [[noreturn]] void throw_label_error(const char* label, const char* line_last) const;
    [[noreturn]] void throw_feature_error(const FeatureParse& parse, const char* line_last) const;

    const char* next_;
    const char* last_;
    std::size_t line_;
};

/// Splits a text after line breaks into n_chunks chunks of about equal length, in order. Chunks may be empty.
std::vector<std::string_view> split_at_lines(std::string_view text, std::size_t n_chunks);

/// All rows of a text. Row i has the features indptr[i] to indptr[i + 1] - 1; indices are those in the file.
struct LibsvmData {
    UninitializedVector<double> labels;
    UninitializedVector<std::int64_t> indptr;
    UninitializedVector<std::int32_t> indices;
    UninitializedVector<double> values;
    /// The smallest and largest index; -1 if no row has a feature.
    std::int32_t min_index = -1;
    std::int32_t max_index = -1;
};

/// Parses a whole text on at most n_threads threads (fewer if it is short). Throws the error for the first invalid
/// line.
LibsvmData parse_libsvm_data(std::string_view text, int n_threads = 1);

}  // namespace approxsvm::text
