// A chunk of a LIBSVM data file as a sparse matrix.
#pragma once

#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "libsvm_data.hpp"
#include "shown.hpp"

namespace approxsvm::tools {

/// Parsed rows of a chunk; a thread reuses the memory for its next chunk.
class ParsedRows {
  public:
    /// `first_index` is LIBSVM's index of column 0.
    void parse(std::string_view text, std::uint32_t first_index) {
        make_room(text::max_features(text.size()));
        targets_.clear();
        row_starts_.assign(1, 0);
        text::DataRowParser rows(text);
        std::size_t end = 0, n = 0;
        double target = 0.0;
        while (rows.next(target, columns_.data() + end, values_.data() + end, n)) {
            end += n;
            targets_.push_back(target);
            row_starts_.push_back(static_cast<std::int32_t>(end));
        }
        if (first_index == 0) return;
        for (std::size_t k = 0; k < end; ++k) columns_[k] -= static_cast<std::int32_t>(first_index);
    }

    const std::vector<double>& targets() const { return targets_; }
    CsrRows<double, std::int32_t> matrix() const {
        return {values_.data(), columns_.data(), row_starts_.data(), targets_.size()};
    }

  private:
    // Most of this memory is never used and costs nothing: the system provides each page on first use.
    void make_room(std::size_t n_features) {
        if (n_features > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
            throw std::length_error("a line is too long");
        }
        if (columns_.size() >= n_features) return;
        columns_.resize(n_features);
        values_.resize(n_features);
    }

    std::vector<double> targets_;
    std::vector<std::int32_t> row_starts_;
    text::UninitializedVector<std::int32_t> columns_;
    text::UninitializedVector<double> values_;
};

/// Throws the TextError for the first invalid line, or for the first row with a value that the model rejects. Called
/// only after a chunk has failed. Because earlier chunks may also be faulty, the text is read from the start, so that
/// the reported line and its number are exact.
inline void throw_first_bad_line(std::string_view text, const ModelView& model) {
    std::size_t longest = 0;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        longest = std::max(longest, end - begin);
        begin = end + 1;
    }
    text::DataRowParser rows(text);
    std::vector<std::int32_t> columns(text::max_features(longest));
    std::vector<double> values(columns.size());
    double target = 0.0;
    std::size_t n = 0;
    while (rows.next(target, columns.data(), values.data(), n)) {
        for (std::size_t k = 0; k < n; ++k) {
            const std::int64_t column = std::int64_t{columns[k]} - model.first_index;
            if (std::isfinite(values[k]) || takes(model, static_cast<std::size_t>(column), values[k])) continue;
            throw text::TextError(rows.line() - 1, "the value of feature " + std::to_string(columns[k]) + " is " +
                                                       shown(values[k]) + ", and only finite values can be predicted");
        }
    }
}

}  // namespace approxsvm::tools
