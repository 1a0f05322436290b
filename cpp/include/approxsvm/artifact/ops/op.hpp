// The interface of the ops of an input map: one struct per kind, each in its own file, used by the artifact reader and
// by the row mapper (models/FORMAT.md, "input_map").
#ifndef APPROXSVM_ARTIFACT_OPS_OP_HPP
#define APPROXSVM_ARTIFACT_OPS_OP_HPP

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "../../shared_code.hpp"
#include "../../simd/compensated.hpp"
#include "../../simd/norms.hpp"
#include "../../simd/simd.hpp"
#include "../fault.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// A view of one op in the artifact's bytes. Its outputs replace adjacent features in a row. Absent parts are null.
struct MapOp {
    OpKind kind;
    std::uint32_t parts_number;  // the field `parts` of the op's header
    std::size_t first, n_inputs, n_outputs;
    const double* parts[7];
    const std::uint32_t* integers[2];

    std::size_t end() const { return first + n_inputs; }
    bool takes(std::size_t feature) const { return first <= feature && feature < end(); }
    bool makes(std::size_t place) const { return first <= place && place < first + n_outputs; }
    // Returns the index, after the op, of a feature that the op does not use; the next function is the inverse.
    std::size_t passed(std::size_t feature) const { return feature < first ? feature : feature - n_inputs + n_outputs; }
    std::size_t before(std::size_t place) const { return place < first ? place : place - n_outputs + n_inputs; }
};

// Finds an op's arrays, one after another from the op's start, each aligned to a multiple of 8 bytes. If the start is
// null, only sums the array sizes.
class OpArrays {
  public:
    explicit OpArrays(const unsigned char* first) : first_(first) {}

    const double* numbers(ClaimedSize n) { return take<double>(n); }
    const std::uint32_t* integers(ClaimedSize n) { return take<std::uint32_t>(n); }
    ClaimedSize n_bytes() const { return n_bytes_; }

  private:
    template <class T>
    const T* take(ClaimedSize n) {
        const T* found = first_ ? reinterpret_cast<const T*>(first_ + static_cast<std::size_t>(n_bytes_)) : nullptr;
        n_bytes_ += (n * sizeof(T) + 7) / 8 * 8;
        return found;
    }

    const unsigned char* first_;
    ClaimedSize n_bytes_ = 0;
};

// Number of rows that pass through the ops together, so that a projection reads its matrix once for all of them.
constexpr std::size_t map_rows_together = 8;

// One mapped row, with bounds on its distance from the exact row.
struct MappedRow {
    const double* values;  // the mapped values, of shape (n_features,), borrowed
    const double* errors;  // a bound on the error of each value
    double error;          // a bound on the Euclidean distance; infinite if unknown
    bool is_finite;        // true if no scaling overflowed float64, and no norm overflowed the source's type
    bool is_inside;        // true if no op rejected a number; a rejected number is in `outside`
    Fault outside;
};

// --- sources that map float32 rows in float32
//
// Ops always compute in float64. For a float32 source, an op adds to each value's error the rounding errors of the
// source's operations on it, until the last result is stored:
// * each parameter p is rounded first, with an error of at most unit32 |p| + tiny32;
// * each operation is rounded in proportion to its result, including the incoming error;
// * an intermediate value above largest32 has an infinite error.
// round_to_float32() adds the final rounding: the source stores each output as float32. An error of 0 then means that a
// value is bit-identical to the source's, because any rounding makes the error positive.
constexpr double tiny32 = 0x1p-149, largest32 = 0x1.fffffep127;

inline bool is_float32(double x) {
    return std::fabs(x) <= largest32 && static_cast<double>(static_cast<float>(x)) == x;
}

// Returns the error of y, which the source stores as float32. The factor covers up to 2^14 source operations whose
// rounding is proportional to the source's value instead of y.
inline double round_to_float32(double y, double error) {
    const double size = std::fabs(y);
    if (error == 0.0 && size <= largest32) return std::fabs(y - static_cast<double>(static_cast<float>(y)));
    const double off = error * (1.0 + 0x1p-10) + (unit32 * size + tiny32);
    return size + off <= largest32 ? off : HUGE_VAL;
}

// The arithmetic used by the source to compute these rows.
struct SourceRows {
    bool in_float32 = false;  // true if the source computes in float32 instead of float64
    bool is_sparse = false;
    bool counts_float64 = false;  // errors also cover the source's float64 rounding, for reports

    // Replaces unit64 for functions that the source evaluates like the core; covers the errors of both.
    constexpr double unit() const { return in_float32 ? unit64 + unit32 : unit64; }
    constexpr double tiny() const { return in_float32 ? tiny32 : 0x1p-1070; }
};

// The arguments of an op: rows that are `stride` elements apart, and their errors.
struct RowsOnTheWay {
    std::size_t n_rows, stride;
    SourceRows source;
    bool has_errors;  // true if errors of x are stored; otherwise, all are 0
    bool is_source;   // x is bit-identical to the source's values; with float32, only where the error is 0
    bool exactly;     // true to simulate twice the precision where this is slow
    bool has_normal;  // the map contains the op inverse_normal
    double *x, *error;
    double *y, *y_error;  // outputs of kinds that do not work in place; arrays have space for n_rows strides
    MappedRow* rows;

    // Records that the kind rejects a number in row r, with its limit; only the first such number is kept.
    void refuse(std::size_t r, OpKind kind, double found, double needed) const {
        if (!rows[r].is_inside) return;
        rows[r].is_inside = false;
        rows[r].outside = {0, found, needed, kind};
    }
};

// Applies x = function(j, x) to balls.
template <class Function>
APPROXSVM_INLINE void map_features(int n, double* x, double* error, const Function& function) {
    for (int j = 0; j < n; ++j) {
        const approxsvm_ball y = function(j, approxsvm_ball{x[j], error[j]});
        x[j] = y.value;
        error[j] = y.radius;
    }
}

// Calls map(r, x, error, dtype) for each row r. The argument dtype is a constant that selects the source's rounding, so
// that compilers can vectorize the loops of the C code above.
template <class Map>
inline void map_balls(const MapOp& op, const RowsOnTheWay& on, const Map& map) {
    for (std::size_t r = 0; r < on.n_rows; ++r) {
        double *x = on.x + r * on.stride, *error = on.error + r * on.stride;
        for (std::size_t j = 0; !on.has_errors && j < op.n_inputs; ++j) error[j] = 0.0;
        if (on.source.in_float32) {
            map(r, x, error, std::integral_constant<int, approxsvm_float32>{});
        } else if (on.source.counts_float64) {
            map(r, x, error, std::integral_constant<int, approxsvm_float64>{});
        } else {
            map(r, x, error, std::integral_constant<int, approxsvm_real>{});
        }
    }
}

constexpr std::size_t nan_refused = ~std::size_t{0}, nan_replaced = nan_refused - 1, several_columns = nan_refused;

constexpr double most_parameter = 1e300;  // limit of parameters; larger ones might cause overflow

// Defaults for all kinds. Each kind also has `kind`, find_parts(), is_valid() and run(), with arguments as in
// affine.hpp. Kinds that work in place have as many outputs as inputs. Features are counted from the op's first
// feature.
struct AnyOp {
    static constexpr bool in_place = true;       // run() leaves its results in x instead of y
    static constexpr bool by_feature = false;    // output j depends only on input j, and NaN maps to NaN
    static constexpr bool as_source = false;     // results are bit-identical to the source's (FORMAT.md)
    static constexpr bool sums = false;          // the option `exactly` changes results
    static constexpr bool names_column = false;  // refuse() receives an input index; messages name the raw column
    static constexpr std::uint32_t least_parts = 0, most_parts = 0;  // permitted `parts` of the header
    static bool hides_infinity(const MapOp&) { return false; }       // true if infinity may become a finite number
    static std::size_t n_gains(const MapOp&) { return 0; }
    APPROXSVM_COLD static void fill_gains(const MapOp&, double*) {}
    // The next two functions are for kinds that are not by_feature. If input j is NaN, the first returns the index of
    // the only output that is then NaN, or else nan_refused or nan_replaced. The second returns the index of the input
    // on which output k depends, or several_columns if it depends on several.
    static std::size_t follow_nan(const MapOp&, std::size_t) { return nan_refused; }
    static std::size_t origin(const MapOp&, std::size_t) { return several_columns; }
    // For a kind that is as_source, returns whether the source treats sparse rows like dense ones.
    static bool as_source_of_sparse(const MapOp&) { return true; }
};

// Checks each of n integers, and the padding after them if n is odd.
APPROXSVM_COLD inline bool integers_are_valid(Check& check, field::Id name, const std::uint32_t* numbers, std::size_t n,
                                              const Expected& expected) {
    check.each(name, numbers, n, expected);
    if (n % 2 != 0) check(name, numbers[n], equal_to(0), n);
    return check.status() == Status::ok;
}

// For piecewise outputs, checks the input indices, the ends of their edges, and that edges are sorted.
APPROXSVM_COLD inline bool edges_are_valid(Check& check, const MapOp& op, std::size_t n_edges) {
    const std::size_t m = op.n_outputs;
    const std::uint32_t *source = op.integers[0], *ends = op.integers[1];
    std::size_t begin = 0;
    for (std::size_t k = 0; k < m; begin = ends[k], ++k) {
        if (!check(field::op_source, std::size_t{source[k]} + 1, from_to(1, op.n_inputs), k) ||
            !check(field::op_end, std::size_t{ends[k]}, from_to(begin, n_edges), k))
            return false;
        for (std::size_t i = begin + 1; i < ends[k]; ++i) {
            const Expected above{Rule::above, stored(op.parts[0][i - 1]), {}};
            if (!check(field::op_edge, op.parts[0][i], above, i)) return false;
        }
    }
    check(field::op_parts, n_edges, equal_to(begin));
    for (std::size_t k = m; m % 2 != 0 && k == m; ++k) {
        check(field::op_source, source[k], equal_to(0), k);
        check(field::op_end, ends[k], equal_to(0), k);
    }
    return check.finite(field::op_edge, op.parts[0], n_edges);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
