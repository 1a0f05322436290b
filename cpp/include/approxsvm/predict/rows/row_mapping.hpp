// Maps raw rows as the source does. The bounds on a row's values cover the error of the mapped row.
#ifndef APPROXSVM_PREDICT_ROWS_ROW_MAPPING_HPP
#define APPROXSVM_PREDICT_ROWS_ROW_MAPPING_HPP

#include "../../arena.hpp"
#include "input_map.hpp"
#include "row_source.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Memory for rows mapped together: their values, their errors, one raw row, and the memory of the ops.
struct MappedRowsMemory {
    double *mapped = nullptr, *errors = nullptr, *raw = nullptr, *ops = nullptr;

    MappedRowsMemory() = default;
    MappedRowsMemory(const ModelView& model, std::size_t n_rows, Arena& arena)
        : mapped(arena.take<double>(n_rows * model.n_features)),
          errors(arena.take<double>(n_rows)),
          raw(arena.take<double>(model.n_raw_features)),
          ops(arena.take<double>(map_doubles(model.input_map))) {}
};

// Maps rows. The function feels_error(error, row) returns whether the error of a mapped row may change a result.
template <Parts parts, class FeelsError>
class RowMapping {
  public:
    RowMapping(const ModelView& view, const double* gains, const RowSource& rows, const MappedRowsMemory& memory,
               const Request& request, const FeelsError& feels_error)
        : view_(view),
          rows_(rows),
          memory_(memory),
          feels_error_(feels_error),
          fault_(request.fault),
          source_{request.source_unit > unit64, rows.is_sparse()},
          scaler_(view_.input_map, gains, source_),
          mapper_(view_.input_map, gains, memory.ops, source_) {}

    // Maps the rows [first, first + n) into the memory's first n rows. Rows whose error matters are mapped with twice
    // the precision.
    Status map(std::size_t first, std::size_t n) const {
        if (scaler_) {
            for (std::size_t k = 0; k < n; ++k) {
                const Status status = scale(first + k, k);
                if (status != Status::ok) return status;
            }
            return Status::ok;
        }
        for (std::size_t k = 0; k < n; k += map_rows_together) {
            const std::size_t left = n - k, m = left < map_rows_together ? left : map_rows_together;
            MappedRow found[map_rows_together] = {};
            const Status status = map_few(first + k, m, false, found);
            if (status != Status::ok) return status;
            for (std::size_t r = 0; r < m; ++r) keep(k + r, found[r]);
            for (std::size_t r = 0; view_.input_map.has_projection && !source_.in_float32 && r < m; ++r) {
                const double* row = memory_.mapped + (k + r) * view_.n_features;
                if (!feels_error_(memory_.errors[k + r], row)) continue;
                MappedRow again[map_rows_together] = {};
                const Status known = map_few(first + k + r, 1, true, again);
                if (known != Status::ok) return known;
                keep(k + r, again[0]);
            }
        }
        return Status::ok;
    }

  private:
    // Maps row i into the memory's row k.
    Status scale(std::size_t i, std::size_t k) const {
        double* const selected = mapper_.row(0);
        Status status = load(i, selected, false);
        if (status != Status::ok) return status;
        if (scaler_.map(selected, memory_.mapped + k * view_.n_features, memory_.errors[k])) return Status::ok;
        MappedRow found[map_rows_together] = {};
        status = map_few(i, 1, false, found);
        if (status == Status::ok) keep(k, found[0]);
        return status;
    }

    Status map_few(std::size_t first, std::size_t n, bool exactly, MappedRow (&found)[map_rows_together]) const {
        for (std::size_t r = 0; r < n; ++r) {
            const Status status = load(first + r, mapper_.row(r), true);
            if (status != Status::ok) return status;
        }
        mapper_.map(n, exactly, found);
        for (std::size_t r = 0; r < n; ++r) {
            if (!found[r].is_inside) {
                if (fault_) *fault_ = found[r].outside;
                if (fault_) fault_->row = first + r;
                return Status::outside_domain;
            }
            if (!found[r].is_finite) return overflowed(first + r);
        }
        return Status::ok;
    }

    // Loads only the columns used. Without `checks`, the caller must detect nonfinite values in them, as a scaler does.
    Status load(std::size_t i, double* x, bool checks) const {
        const InputMapView& map = view_.input_map;
        if (rows_.check_order(i) == Status::unsorted_indices) return Status::unsorted_indices;
        double* raw = map.takes_all_columns ? x : memory_.raw;
        if (rows_.load(i, nullptr, 1.0, raw, 1) != 0.0) {  // also true for NaN
            if (fault_) *fault_ = {i, 0.0, static_cast<double>(view_.n_raw_features)};
            return Status::unknown_feature;
        }
        for (std::size_t k = 0; k < map.n_checked; ++k) {
            if (!takes(map.checked[k], raw[map.checked[k].column])) return Status::not_finite;
        }
        for (std::size_t k = 0; raw != x && k < map.n_columns; ++k) x[k] = raw[map.columns[k]];
        return checks && !takes_row<parts>(map, x) ? Status::not_finite : Status::ok;
    }

    Status overflowed(std::size_t i) const {
        double largest = 0.0;
        load(i, mapper_.row(0), false);
        for (std::size_t k = 0; k < view_.input_map.n_columns; ++k)
            largest = std::fmax(largest, std::fabs(mapper_.row(0)[k]));
        if (fault_) *fault_ = {i, largest, source_.in_float32 ? largest32 : largest_double};
        return Status::map_overflow;
    }

    void keep(std::size_t k, const MappedRow& row) const {
        const std::size_t d = view_.n_features;
        for (std::size_t j = 0; j < d; ++j) memory_.mapped[k * d + j] = row.values[j];
        memory_.errors[k] = row.error;
    }

    const ModelView& view_;
    const RowSource& rows_;
    const MappedRowsMemory& memory_;
    const FeelsError& feels_error_;
    Fault* const fault_;
    const SourceRows source_;
    const ScalerAlone scaler_;
    const RowMapper<parts> mapper_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
