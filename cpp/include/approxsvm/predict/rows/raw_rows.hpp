// Provides access to raw rows in the caller's data type, and finds the rows and numbers to reject.
#ifndef APPROXSVM_PREDICT_ROWS_RAW_ROWS_HPP
#define APPROXSVM_PREDICT_ROWS_RAW_ROWS_HPP

#include "../../artifact/reader.hpp"
#include "input_map.hpp"
#include "row_source.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Checks sparse rows, and converts them to rows whose indices are within their arrays' bounds.
template <class Real, class Index>
inline Status check_row_starts(const SparseRows<Real, Index>& rows, CsrRows<Real, Index>& checked) {
    const std::size_t n_starts = rows.row_starts.size;
    const std::size_t end = rows.values.size < rows.columns.size ? rows.values.size : rows.columns.size;
    std::int64_t last = 0;
    for (std::size_t k = 0; k < n_starts; ++k) {
        const std::int64_t start = static_cast<std::int64_t>(rows.row_starts[k]);
        if (start < last) return Status::bad_row_starts;
        last = start;
    }
    if (n_starts == 0 || static_cast<std::uint64_t>(last) > end) return Status::bad_row_starts;
    checked = {rows.values.data, rows.columns.data, rows.row_starts.data, n_starts - 1};
    return Status::ok;
}

// Calls call(RowSource) with a source for the rows, and returns the result.
template <Parts parts = all_parts, class Real, class Call>
inline Status with_source(const DenseRows<Real>& rows, const ModelView& model, const Call& call) {
    return call(DenseSource<Real, parts>(rows, model.n_raw_features));
}
template <Parts parts = all_parts, class Real, class Index, class Call>
inline Status with_source(const CsrRows<Real, Index>& rows, const ModelView& model, const Call& call) {
    static_assert(has(parts, sparse), "sparse rows: add approxsvm::sparse to the list of approxsvm::ModelOf");
    return call(CsrSource<Real, Index>(rows, model.n_raw_features));
}
template <Parts parts = all_parts, class Real, class Index, class Call>
inline Status with_source(const SparseRows<Real, Index>& rows, const ModelView& model, const Call& call) {
    CsrRows<Real, Index> checked;
    const Status status = check_row_starts(rows, checked);
    return status == Status::ok ? with_source<parts>(checked, model, call) : status;
}
template <Parts parts = all_parts, class Real, class Call>
inline Status with_whole_rows(Span<const Real> numbers, const ModelView& model, const Call& call) {
    const std::size_t d = model.n_raw_features;
    if (numbers.size % d != 0) return Status::wrong_row_size;
    return with_source<parts>(DenseRows<Real>{numbers.data, numbers.size / d, static_cast<std::ptrdiff_t>(d), 1}, model,
                              call);
}
template <Parts parts = all_parts, class Call>
inline Status with_source(Span<const float> numbers, const ModelView& model, const Call& call) {
    return with_whole_rows<parts>(numbers, model, call);
}
template <Parts parts = all_parts, class Call>
inline Status with_source(Span<const double> numbers, const ModelView& model, const Call& call) {
    return with_whole_rows<parts>(numbers, model, call);
}

// Returns the index of the first unsorted row, because a block reports only that one of its rows is faulty.
inline std::size_t first_unsorted_row(const RowSource& rows) {
    std::size_t i = 0;
    while (i + 1 < rows.n_rows() && rows.check(i) != Status::unsorted_indices) ++i;
    return i;
}

// A nonfinite value and its position; `column` is n_raw_features if the model does not know the feature.
struct BadNumber {
    std::size_t row, column;
    double value;
};
// Returns whether a raw row may contain this number: any finite number, NaN if the model replaces it, or any number in
// an unused column.
template <Parts parts = all_parts>
inline bool takes(const ModelView& model, std::size_t column, double value) {
    bool taken = is_finite(value) || model.has_input_map || model.n_members > 0;
    if constexpr (has(parts, ensembles)) {
        for_members(model, [&](const ModelView& member) {
            taken = taken && takes<parts>(member, column, value);
            return Status::ok;
        });
    }
    const InputMapView& map = model.input_map;
    for (std::size_t k = 0; model.has_input_map && !is_finite(value) && k < map.n_columns; ++k) {
        if (map.columns[k] == column) taken = taken && value != value && takes_nan<parts>(map, k);
    }
    for (std::size_t k = 0; model.has_input_map && k < map.n_checked; ++k)
        taken = taken && (map.checked[k].column != column || takes(map.checked[k], value));
    return taken;
}
// Returns the first rejected value in a column used by the model, with its row and column.
template <Parts parts = all_parts>
APPROXSVM_COLD inline BadNumber first_bad_number(const ModelView& model, const RowSource& rows) {
    BadNumber first{rows.n_rows(), model.n_raw_features, HUGE_VAL};
    const auto take = [&first](const BadNumber& other) {
        if (other.row < first.row || (other.row == first.row && other.column < first.column)) first = other;
    };
    if constexpr (has(parts, ensembles)) {
        for_members(model, [&](const ModelView& member) {
            take(first_bad_number<parts>(member, rows));
            return Status::ok;
        });
    }
    const InputMapView& map = model.input_map;
    const std::size_t n_columns = model.has_input_map ? map.n_columns : model.n_raw_features;
    for (std::size_t i = 0; model.n_members == 0 && i < rows.n_rows() && first.row > i; ++i) {
        if (rows.check(i) == Status::ok) continue;
        if (!model.has_input_map) take({i, model.n_raw_features, HUGE_VAL});
        const auto look_at = [&](std::size_t j) {
            const double value = rows.value(i, j);
            if (!takes<parts>(model, j, value)) take({i, j, value});
        };
        for (std::size_t k = 0; k < n_columns; ++k) look_at(model.has_input_map ? map.columns[k] : k);
        for (std::size_t k = 0; model.has_input_map && k < map.n_checked; ++k) look_at(map.checked[k].column);
    }
    return first;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
