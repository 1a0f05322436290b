#pragma once

#include <approxsvm/approxsvm.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "exact_memory.hpp"

// Uses everything that an open artifact offers, whatever it contains, so that a sanitizer sees every access outside the
// requested memory.

namespace exercise {

using namespace approxsvm;

/// Rows for a model, in four forms accepted by its engines.
struct RowForms {
    std::vector<float> narrow;
    std::vector<double> wide;
    std::vector<std::int64_t> columns, starts = {0};
    std::vector<std::int32_t> narrow_columns, narrow_starts;
    std::size_t n_rows = 0;
    std::ptrdiff_t stride = 0;  // 0 if all rows are the same row

    void add(double number) {
        narrow.push_back(static_cast<float>(number));
        wide.push_back(static_cast<double>(narrow.back()));
    }
    void finish() {
        narrow_columns.assign(columns.begin(), columns.end());
        narrow_starts.assign(starts.begin(), starts.end());
    }
    /// Calls use() with the rows in form number `form`.
    template <class Use>
    Status in_form(unsigned form, const Use& use) const {
        switch (form) {
            case 0:
                return use(DenseRows<float>{narrow.data(), n_rows, stride, 1});
            case 1:
                return use(DenseRows<double>{wide.data(), n_rows, stride, 1});
            case 2:
                return use(
                    CsrRows<float, std::int32_t>{narrow.data(), narrow_columns.data(), narrow_starts.data(), n_rows});
            default:
                return use(CsrRows<double, std::int64_t>{wide.data(), columns.data(), starts.data(), n_rows});
        }
    }
};

enum Wanted : unsigned { labels_alone, everything, values_alone, probabilities_alone };

/// Memory for the requested outputs of some rows, with no spare bytes.
struct Room {
    Room(const ModelView& model, std::size_t n_rows, unsigned wanted = everything)
        : labels(n_rows * n_targets_of(model)),
          stages(n_rows),
          certified(labels.size),
          values(n_rows * model.n_decisions),
          bounds(values.size),
          shares(n_rows * n_probabilities(model)),
          share_bounds(shares.size) {
        const bool all = wanted == everything;
        if (model.task != Task::regression && (all || wanted == labels_alone)) out.labels = span_of(labels);
        if (model.n_decisions > 0 && (all || wanted == values_alone)) out.values = span_of(values);
        if (model.n_decisions > 0 && all) out.bounds = span_of(bounds);
        if (all) out.stages = span_of(stages), out.certified = span_of(certified);
        if (shares.size > 0 && (all || wanted == probabilities_alone))
            out.probabilities = span_of(shares), out.probability_bounds = span_of(share_bounds);
    }
    bool operator==(const Room& other) const {
        return labels == other.labels && stages == other.stages && certified == other.certified &&
               values == other.values && bounds == other.bounds && shares == other.shares &&
               share_bounds == other.share_bounds;
    }
    template <class T>
    static Span<T> span_of(const Exact<T>& array) {
        return {array.data.get(), array.size};
    }

    Exact<std::uint32_t> labels;
    Exact<std::uint8_t> stages, certified;
    Exact<double> values, bounds, shares, share_bounds;
    Evaluation out;
};

/// Returns true if a status may depend on rounding, and therefore on the target.
bool hangs_on_rounding(Status status);

/// Uses an opened artifact on every target and returns the first fault, or an empty string. `numbers` are float32
/// values for rows, if any; `choice` selects the number of rows and the request.
std::string complaint_about(const ModelView& model, const std::vector<unsigned char>& numbers, std::uint32_t choice);

}  // namespace exercise
