// A piece of a LIBSVM or dense data file as a sparse matrix.
#pragma once

#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "dense_rows.hpp"
#include "libsvm_data.hpp"
#include "shown.hpp"

namespace approxsvm::tools {

/// The format of a data file's lines.
struct DataFormat {
    /// Empty for LIBSVM's format.
    std::optional<DenseFormat> dense;
    /// LIBSVM's index of column 0.
    std::uint32_t first_index = 1;

    bool has_targets() const { return !dense || dense->has_targets; }
};

/// A thread reuses the memory for each chunk.
class ParsedRows {
  public:
    void parse(std::string_view text, const DataFormat& format) {
        if (format.dense) {
            make_room(DenseRowParser::max_features(text.size()));
            take_rows(DenseRowParser(text, *format.dense));
        } else {
            make_room(text::max_features(text.size()));
            take_rows(text::DataRowParser(text));
            if (format.first_index == 0) return;
            const std::size_t end = static_cast<std::size_t>(row_starts_.back());
            for (std::size_t k = 0; k < end; ++k) columns_[k] -= static_cast<std::int32_t>(format.first_index);
        }
    }

    const std::vector<double>& targets() const { return targets_; }
    CsrRows<double, std::int32_t> matrix() const {
        return {values_.data(), columns_.data(), row_starts_.data(), targets_.size()};
    }

  private:
    // Most of this memory is never touched, and then costs nothing: the system provides it page by page.
    void make_room(std::size_t n_features) {
        if (n_features > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
            throw std::length_error("a line is too long");
        }
        if (columns_.size() >= n_features) return;
        columns_.resize(n_features);
        values_.resize(n_features);
    }

    template <class Parser>
    void take_rows(Parser rows) {
        targets_.clear();
        row_starts_.assign(1, 0);
        std::size_t end = 0, n = 0;
        double target = std::numeric_limits<double>::quiet_NaN();  // for rows without one: no label equals it
        while (rows.next(target, columns_.data() + end, values_.data() + end, n)) {
            end += n;
            targets_.push_back(target);
            row_starts_.push_back(static_cast<std::int32_t>(end));
        }
    }

    std::vector<double> targets_;
    std::vector<std::int32_t> row_starts_;
    text::UninitializedVector<std::int32_t> columns_;
    text::UninitializedVector<double> values_;
};

/// The number of values in the first row of a dense text, 0 if the text is empty.
inline std::size_t count_dense_features(std::string_view text, const DenseFormat& format) {
    const std::string_view line = text.substr(0, text.find('\n'));
    std::vector<std::int32_t> columns(DenseRowParser::max_features(line.size()));
    std::vector<double> values(columns.size());
    DenseRowParser rows(line, format);
    double target = 0.0;
    std::size_t n_nonzero = 0;
    rows.next(target, columns.data(), values.data(), n_nonzero);
    return rows.n_values();
}

/// Throws the TextError of the first row with a value that the model does not take. `shift` is LIBSVM's index of column
/// 0, `first` the index of the model's first feature.
template <class Parser>
void throw_first_bad_row(Parser rows, std::size_t max_features, std::int64_t shift, const ModelView& model,
                         std::int64_t first) {
    std::vector<std::int32_t> columns(max_features);
    std::vector<double> values(max_features);
    double target = 0.0;
    std::size_t n = 0;
    while (rows.next(target, columns.data(), values.data(), n)) {
        for (std::size_t k = 0; k < n; ++k) {
            if (std::isfinite(values[k]) || takes(model, static_cast<std::size_t>(columns[k] - first), values[k]))
                continue;
            const std::string feature = std::to_string(columns[k] + shift);
            throw text::TextError(rows.line() - 1, "the value of feature " + feature + " is " + shown(values[k]) +
                                                       ", and only finite values can be predicted");
        }
    }
}

/// Throws the TextError of the first bad line. Only called after a chunk has failed, which may come after another bad
/// one; reading from the top makes the line number and the choice of the line exact.
inline void throw_first_bad_line(std::string_view text, const DataFormat& format, const ModelView& model) {
    std::size_t longest = 0;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        longest = std::max(longest, end - begin);
        begin = end + 1;
    }
    if (format.dense) {
        throw_first_bad_row(DenseRowParser(text, *format.dense), DenseRowParser::max_features(longest), 1, model, 0);
    } else {
        throw_first_bad_row(text::DataRowParser(text), text::max_features(longest), 0, model, model.first_index);
    }
}

}  // namespace approxsvm::tools
