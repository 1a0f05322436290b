// Maps raw rows to model rows: selects columns, then applies ops. Up to the first op that computes sums or calls the C
// library, the source's operations are performed one by one in float64, so a row is bit-identical to the source's
// (models/FORMAT.md, "input_map"; for the kinds of ops, see artifact/ops). Each row has a bound on its distance from
// the row mapped in exact arithmetic.
#ifndef APPROXSVM_PREDICT_ROWS_INPUT_MAP_HPP
#define APPROXSVM_PREDICT_ROWS_INPUT_MAP_HPP

#include "../../artifact/sections/input_map.hpp"
#include "../../model_view.hpp"
#include "../../simd/block.hpp"
#include "../../status.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- growth of errors

// Number of gains stored by fill_map_gains, for each op and for all ops.
template <Parts parts = all_parts>
inline std::size_t n_gains(const MapOp& op) {
    return OpsOf<parts>::with(op.kind, std::size_t{0}, [&](auto kind) { return kind.n_gains(op); });
}
template <Parts parts = all_parts>
inline std::size_t map_gain_doubles(const InputMapView& map) {
    std::size_t total = 0;
    for_ops<parts>(map, [&](const MapOp& op) { total += n_gains<parts>(op); });
    return total;
}

// Computes the factors, rounded up, by which errors grow in each op, as defined by the op's kind.
template <Parts parts = all_parts>
inline void fill_map_gains(const InputMapView& map, double* gains) {
    for_ops<parts>(map, [&](const MapOp& op) {
        OpsOf<parts>::with(op.kind, true, [&](auto kind) { return kind.fill_gains(op, gains), true; });
        gains += n_gains<parts>(op);
    });
}

// --- a single affine op, as in scalers

// Sets x to (raw - subtract) * multiply / divide, with each operation rounded separately; returns the sum of squares.
// The arrays raw and x begin at the op's first feature.
template <bool Subtracts, bool Multiplies, bool Divides>
inline double scale_row(const MapOp& op, const double* raw, double* x) {
    const double *subtract = op.parts[part::subtract], *multiply = op.parts[part::multiply],
                 *divide = op.parts[part::divide];
    return sum_in_lanes(op.n_inputs, [=](std::size_t j) {
        double z = raw[j];
        if constexpr (Subtracts) z -= subtract[j];
        if constexpr (Multiplies) z *= multiply[j];
        if constexpr (Divides) z /= divide[j];
        x[j] = z;
        return z * z;
    });
}

// Evaluates a map in one or two passes over a row, if its only op is affine and has no limits or parameter errors. The
// error is computed from norms instead of element by element, as explained in run_affine().
class ScalerAlone {
  public:
    ScalerAlone(const InputMapView& map, const double* gains, const SourceRows& source = {}) {
        if (map.n_ops != 1) return;
        if (!map.scales_alone) return;
        read_op<scalers>(map.ops, op_);
        n_ = map.n_columns;
        const double* const* of_op = op_.parts;
        if (of_op[part::low] || of_op[part::high] || of_op[part::relative_error]) return;
        const bool subtracts = of_op[part::subtract], multiplies = of_op[part::multiply], divides = of_op[part::divide];
        using Scale = double (*)(const MapOp&, const double*, double*);
        static constexpr Scale scales[] = {scale_row<false, false, false>, scale_row<true, false, false>,
                                           scale_row<false, true, false>,  scale_row<true, true, false>,
                                           scale_row<false, false, true>,  scale_row<true, false, true>,
                                           scale_row<false, true, true>,   scale_row<true, true, true>};
        scale_ = scales[(subtracts ? 1 : 0) + (multiplies ? 2 : 0) + (divides ? 4 : 0)];
        depth_ = unit64 *
                 ((subtracts ? 1.0 : 0.0) + (multiplies ? 1.0 : 0.0) + (divides ? source.is_sparse ? 3.0 : 1.0 : 0.0));
        underflow_ = gains[2 * op_.n_inputs];
        if (!source.in_float32) return;
        in_float32_ = true;
        const double* const of_norms = gains + 5 * op_.n_inputs + 1;
        depth_ += of_norms[0];
        stretch_ = of_norms[1];
        underflow_ += of_norms[2];
    }

    // Returns whether the map consists of a single affine op without limits or parameter errors.
    explicit operator bool() const { return scale_ != nullptr; }

    // Maps the selected columns of a row. Returns false if squares exceed or approach the limits of float64, as for
    // non-finite rows; such rows are left to RowMapper.
    bool map(const double* raw, double* x, double& error) const {
        const std::size_t n = n_;
        double sq = scale_(op_, raw + op_.first, x + op_.first);
        if (op_.n_inputs < n) sq += pass(0, op_.first, raw, x) + pass(op_.end(), n, raw, x);
        if (!is_safe(sq)) return false;
        const double norm = norm_above(sq, x, n);
        error = depth_ * norm + underflow_;
        if (in_float32_ && !(norm * stretch_ + error <= largest32)) return false;
        if (const double* add = op_.parts[part::add]) {
            for (std::size_t j = 0; j < op_.n_inputs; ++j) x[op_.first + j] += add[j];
            sq = sq_norm(x, n);
            if (!is_safe(sq)) return false;
            error += unit64 * norm_above(sq, x, n);
        }
        error *= 1.0 + 0x1p-30;
        if (in_float32_) {
            error = round_to_float32(norm_above(sq, x, n), error) + std::sqrt(static_cast<double>(n)) * tiny32;
            if (!(error <= largest_double)) return false;
        }
        return true;
    }

  private:
    static bool is_safe(double sq) { return sq > 0x1p-900 && sq < 0x1p1000; }
    // Copies features; returns the sum of their squares.
    static double pass(std::size_t first, std::size_t end, const double* raw, double* x) {
        for (std::size_t j = first; j < end; ++j) x[j] = raw[j];
        return sq_norm(x + first, end - first);
    }

    MapOp op_{};
    std::size_t n_ = 0;
    double (*scale_)(const MapOp&, const double*, double*) = nullptr;
    double depth_ = 0.0, underflow_ = 0.0, stretch_ = 0.0;
    bool in_float32_ = false;
};

// --- rows

// Returns whether the step of the source that checks this column accepts the value x.
inline bool takes(const CheckedColumn& checked, double x) {
    return is_finite(x) || (x != x && checked.takes_nan != 0);
}
// Returns whether the selected columns of a row are finite, or NaN in columns where NaN is replaced by a number.
template <Parts parts = all_parts>
inline bool takes_row(const InputMapView& map, const double* x) {
    if (all_finite(x, 1, map.n_columns)) return true;
    for (std::size_t k = 0; k < map.n_columns; ++k) {
        if (!is_finite(x[k]) && !(x[k] != x[k] && takes_nan<parts>(map, k))) return false;
    }
    return true;
}

// Number of doubles needed by a RowMapper.
inline std::size_t map_doubles(const InputMapView& map) {
    return 4 * map_rows_together * map.widest;
}

// Maps up to map_rows_together rows at a time.
template <Parts parts = all_parts>
class RowMapper {
  public:
    // `gains` must have been filled by fill_map_gains; `memory` must hold map_doubles(map) doubles.
    RowMapper(const InputMapView& map, const double* gains, double* memory, const SourceRows& source = {})
        : map_(map), gains_(gains), stride_(map.widest), memory_(memory), source_(source) {}

    // Returns the array, of shape (n_columns,), for the selected columns of row r, which must be stored before map() is
    // called.
    double* row(std::size_t r) const { return memory_ + r * stride_; }
    // Returns the array for the errors of row r's columns, if any.
    double* errors_of_row(std::size_t r) const { return memory_ + (map_rows_together + r) * stride_; }

    // Maps the first n rows. If `exactly` is true, projections are computed with a single rounding, which is slower. If
    // `has_errors` is true, errors_of_row() holds the rows' errors; if `is_source` is also true, the rows nevertheless
    // equal the source's.
    void map(std::size_t n, bool exactly, MappedRow (&rows)[map_rows_together], bool has_errors = false,
             bool is_source = true) const {
        const std::size_t room = map_rows_together * stride_;
        double *x = memory_, *error = x + room, *y = error + room, *y_error = y + room;
        const double* gains = gains_;
        const unsigned char* next = map_.ops;
        std::size_t n_features = map_.n_columns;
        for (std::size_t r = 0; r < n; ++r) rows[r].is_inside = rows[r].is_finite = true;
        for (std::size_t k = 0; k < map_.n_ops; ++k) {
            MapOp op;
            next = read_op<parts>(next, op);
            const bool is_whole = op.n_inputs == n_features, have_errors = has_errors || k > 0;
            for (std::size_t r = 0; !is_whole && !have_errors && r < n; ++r) {
                for (std::size_t j = 0; j < n_features; ++j) row(error, r)[j] = 0.0;
            }
            const RowsOnTheWay on{n,
                                  stride_,
                                  source_,
                                  have_errors,
                                  is_source,
                                  exactly,
                                  map_.has_inverse_normal,
                                  x + op.first,
                                  error + op.first,
                                  y + op.first,
                                  y_error + op.first,
                                  rows};
            const bool in_place = OpsOf<parts>::with(op.kind, true, [&](auto kind) {
                if (k > 0 && kind.hides_infinity(op)) note_infinities(on.x, op.n_inputs, n, rows);
                kind.run(op, gains, on);
                if (kind.names_column) name_columns(op, k, n, rows);
                is_source &= kind.as_source && (!source_.is_sparse || kind.as_source_of_sparse(op));
                return kind.in_place;
            });
            gains += n_gains<parts>(op);
            if (!in_place) {
                for (std::size_t r = 0; !is_whole && r < n; ++r) {
                    pass_on(op, n_features, row(x, r), row(y, r));
                    pass_on(op, n_features, row(error, r), row(y_error, r));
                }
                n_features = op.passed(n_features);
                double *const was_x = x, *const was_error = error;
                x = y, error = y_error, y = was_x, y_error = was_error;
            }
            for (std::size_t r = 0; source_.in_float32 && r < n; ++r) {
                const std::size_t begin = r * stride_ + op.first;
                for (std::size_t j = begin; j < begin + op.n_outputs; ++j) error[j] = round_to_float32(x[j], error[j]);
            }
        }
        for (std::size_t r = 0; r < n; ++r) {
            const double* values = row(x, r);
            const double distance = map_.n_ops > 0 ? norm_above(row(error, r), n_features) : 0.0;
            rows[r].values = values;
            rows[r].errors = row(error, r);
            rows[r].error = distance == distance ? distance : HUGE_VAL;
            rows[r].is_finite = rows[r].is_finite && all_finite(values, 1, n_features);
        }
    }

  private:
    double* row(double* first, std::size_t r) const { return first + r * stride_; }

    // Copies the row's features that the op does not use to their positions in the op's output.
    static void pass_on(const MapOp& op, std::size_t n_features, const double* from, double* to) {
        for (std::size_t j = 0; j < op.first; ++j) to[j] = from[j];
        for (std::size_t j = op.end(); j < n_features; ++j) to[op.passed(j)] = from[j];
    }

    // Rejects values that have overflowed to infinity, as the source's next step would.
    void note_infinities(double* x, std::size_t n_features, std::size_t n, MappedRow* rows) const {
        for (std::size_t r = 0; r < n; ++r) {
            bool any = false;
            for (std::size_t j = 0; j < n_features; ++j) any |= std::fabs(row(x, r)[j]) > largest_double;
            rows[r].is_finite = rows[r].is_finite && !any;
        }
    }

    // Replaces the index of the input rejected by the op with the index of its raw column.
    void name_columns(const MapOp& op, std::size_t number, std::size_t n, MappedRow* rows) const {
        for (std::size_t r = 0; r < n; ++r) {
            Fault& fault = rows[r].outside;
            if (rows[r].is_inside || fault.step != op.kind || fault.row == named) continue;
            const std::size_t feature = op.first + static_cast<std::size_t>(fault.expected);
            fault.expected = static_cast<double>(raw_column<parts>(map_, number, feature));
            fault.row = named;
        }
    }
    static constexpr std::size_t named = 1;  // a mark in the field `row`, which the caller sets later

    const InputMapView& map_;
    const double* const gains_;
    const std::size_t stride_;
    double* const memory_;
    const SourceRows source_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
