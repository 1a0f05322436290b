// Converts records of named fields, including strings, to numeric raw rows.
#pragma once

#include <approxsvm/artifact/texts.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include "approxsvm.h"

namespace approxsvm {

// Finds columns by name, starting after the last match, because fields are often in column order.
class ColumnFinder {
  public:
    explicit ColumnFinder(const ModelView& model)
        : names_(model.feature_names), n_(model.n_raw_features), rest_(names_, n_) {}

    // Returns the index of the column with this name, or n_raw_features if no column has it.
    std::size_t find(std::string_view name) {
        for (std::size_t tried = 0; tried < n_; ++tried) {
            if (next_ == n_) {
                next_ = 0;
                rest_ = TextReader(names_, n_);
            }
            const Text own = rest_.next();
            const std::size_t column = next_++;
            if (std::string_view(own.data, own.length) == name) return column;
        }
        return n_;
    }

  private:
    const unsigned char* names_;
    std::size_t n_, next_ = 0;
    TextReader rest_;
};

// Returns true if a cell holds the special NaN that marks columns whose field has not been read.
inline bool is_unread(double number) {
    std::uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits == 0x7FF8A5A5A5A5A5A5u;
}

inline double unread_number() {
    const std::uint64_t bits = 0x7FF8A5A5A5A5A5A5u;
    double number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}

// Reads a field into `number`. If `has_texts`, its column is a string column with these strings; otherwise it is
// numeric. Returns null if the field has the right type, else an error message.
inline const char* read_field(const approxsvm_field& field, const ColumnTexts& texts, bool has_texts, double& number) {
    number = has_texts ? texts.null : std::numeric_limits<double>::quiet_NaN();
    switch (field.kind) {
        case APPROXSVM_MISSING:
            return nullptr;
        case APPROXSVM_NUMBER:
            if (!(has_texts && std::isnan(field.number))) number = field.number;
            return has_texts && !std::isnan(field.number) ? "a text is needed" : nullptr;
        case APPROXSVM_TEXT:
            if (!has_texts) return "a number is needed";
            if (field.text == nullptr && field.text_size > 0) return "text must not be null";
            number = texts.code({field.text, field.text_size});
            return nullptr;
        default:
            return "kind must be APPROXSVM_MISSING, APPROXSVM_NUMBER or APPROXSVM_TEXT";
    }
}

}  // namespace approxsvm
