// What every kind of stage of an input map says of itself: a struct, and a file, for each kind, which the reader of
// artifacts and the mapper of rows go by (models/FORMAT.md, "input_map").
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "../../simd/compensated.hpp"
#include "../../simd/norms.hpp"
#include "../../simd/simd.hpp"
#include "../fault.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The C that exported headers share (program/) is compiled in the namespace of the target; each stage includes its own.
#if defined(APPROXSVM_PORTABLE)
#define APPROXSVM_PROGRAM inline  // as fast there, and half the code
#else
#define APPROXSVM_PROGRAM APPROXSVM_INLINE
#endif
#define APPROXSVM_ROOT std::sqrt
#define APPROXSVM_PRODUCT(a, b) ((a) * (b))  // -ffp-contract=off
#include "../../program/ball.h"

// One stage, seen in place. Parts that it has not are null.
struct MapStage {
    StageKind kind;
    std::uint32_t parts_number;  // `parts` of its header
    std::size_t n_inputs, n_outputs;
    const double* parts[7];
    const std::uint32_t* integers[2];
};

// Takes arrays off the front of a stage, each at a multiple of 8 bytes.
class StageArrays {
  public:
    explicit StageArrays(const unsigned char* p) : next_(p) {}

    const double* numbers(std::size_t n) { return take<double>(n); }
    const std::uint32_t* integers(std::size_t n) { return take<std::uint32_t>(n); }
    const unsigned char* end() const { return next_; }

  private:
    template <class T>
    const T* take(std::size_t n) {
        const T* first = reinterpret_cast<const T*>(next_);
        next_ += (n * sizeof(T) + 7) / 8 * 8;
        return first;
    }

    const unsigned char* next_;
};
// How many numbers of 8 bytes so many integers of 4 take.
constexpr ClaimedSize words_of_integers(ClaimedSize n) {
    return (n + 1) / 2;
}

// Rows that go through the stages together, so that a projection's matrix is read once for all of them.
constexpr std::size_t map_rows_together = 8;

// One mapped row, and how far it is from what is meant.
struct MappedRow {
    const double* values;  // (n_features,), in the memory lent
    const double* errors;  // of each of them
    double error;          // Euclidean distance; infinite where it is unknown
    bool is_finite;        // or else scaling has gone beyond float64
    bool is_inside;        // or else a stage does not take a number: `outside` says which
    Fault outside;
};

// --- sources that map float32 rows in float32
//
// Stages compute in float64 whatever the source does. Where it has float32, a stage adds to the error of a number what
// the source's own operations may be off by, from the same numbers, before the last of them is stored:
// * each parameter p is rounded first, which is off by unit32 |p| + tiny32;
// * so is each operation, in proportion to its result with the error that comes in;
// * a number beyond largest32 on the way has the error infinity.
// round_to_float32() adds the rest: the source stores each output as float32. An error of 0 then says that a number is
// the source's own, bit for bit: whatever rounds has a larger one.
constexpr double tiny32 = 0x1p-149, largest32 = 0x1.fffffep127;

inline bool is_float32(double x) {
    return std::fabs(x) <= largest32 && static_cast<double>(static_cast<float>(x)) == x;
}

// An error of y, which the source stores as float32. The factor pays for operations of the source that are rounded in
// proportion to its number instead of y: for up to 2^14 of them.
inline double round_to_float32(double y, double error) {
    const double size = std::fabs(y);
    if (error == 0.0 && size <= largest32) return std::fabs(y - static_cast<double>(static_cast<float>(y)));
    const double off = error * (1.0 + 0x1p-10) + (unit32 * size + tiny32);
    return size + off <= largest32 ? off : HUGE_VAL;
}

// How the source computes the rows at hand.
struct SourceRows {
    bool in_float32 = false;  // or else in float64
    bool is_sparse = false;
    bool counts_float64 = false;  // errors cover what the source rounds in float64, too, as reports ask

    // In place of unit64, in errors of functions that the source computes as we do, for both of them.
    constexpr double unit() const { return in_float32 ? unit64 + unit32 : unit64; }
    constexpr double tiny() const { return in_float32 ? tiny32 : 0x1p-1070; }
};

// Rows in the middle of a map, `stride` numbers apart.
struct RowsOnTheWay {
    std::size_t n_rows, stride;
    SourceRows source;
    bool has_errors;  // or else those of x are all 0, and nobody has written them
    bool is_source;   // x is what the source has, bit for bit; of float32 what has an error of 0 is
    bool exactly;     // as if in twice the precision, where that is slow
    bool has_normal;  // the map has a stage inverse_normal
    double *x, *error;
    double *y, *y_error;  // room for what comes out of kinds that are not in place
    MappedRow* rows;

    // Row r does not take a number, of which the kind says what it needs; the first such number counts.
    void refuse(std::size_t r, StageKind kind, double found, double needed) const {
        if (!rows[r].is_inside) return;
        rows[r].is_inside = false;
        rows[r].outside = {0, found, needed, kind};
    }
};

// x = function(j, x) of balls, for the features that are taken, of a row.
template <class Taken, class Function>
APPROXSVM_INLINE void map_features(int n, double* x, double* error, const Taken& taken, const Function& function) {
    for (int j = 0; j < n; ++j) {
        const approxsvm_ball y = function(j, approxsvm_ball{x[j], error[j]});
        x[j] = taken(j) ? y.value : x[j];
        error[j] = taken(j) ? y.radius : error[j];
    }
}

// Calls map(r, x, error, dtype) for each row r, with the dtype that the source's rounding is counted in as a constant,
// so that loops of the C above are vectorized.
template <class Map>
inline void map_balls(const MapStage& stage, const RowsOnTheWay& on, const Map& map) {
    for (std::size_t r = 0; r < on.n_rows; ++r) {
        double *x = on.x + r * on.stride, *error = on.error + r * on.stride;
        for (std::size_t j = 0; !on.has_errors && j < stage.n_inputs; ++j) error[j] = 0.0;
        if (on.source.in_float32) {
            map(r, x, error, std::integral_constant<int, approxsvm_float32>{});
        } else if (on.source.counts_float64) {
            map(r, x, error, std::integral_constant<int, approxsvm_float64>{});
        } else {
            map(r, x, error, std::integral_constant<int, approxsvm_real>{});
        }
    }
}

constexpr std::size_t nan_refused = ~std::size_t{0}, nan_replaced = nan_refused - 1, several = nan_refused;

// What most kinds have nothing of. A kind also has `kind`, header_is_valid(), n_words(), find_parts(), is_valid() and
// run(); the arguments of all are those of affine.hpp.
struct AnyStage {
    static constexpr bool in_place = true;       // run() leaves rows in x, and not in y
    static constexpr bool by_feature = false;    // output j comes from input j alone, NaN from NaN
    static constexpr bool as_source = false;     // computes what the source does, bit for bit; FORMAT.md lists these
    static constexpr bool sums = false;          // `exactly` makes a difference
    static constexpr bool names_column = false;  // what it needs, in refuse(), is an input, for messages a raw column
    static bool hides_infinity(const MapStage&) { return false; }  // may make a number of it
    static std::size_t n_gains(const MapStage&) { return 0; }
    APPROXSVM_COLD static void fill_gains(const MapStage&, double*) {}
    // Of kinds that are not by_feature: the only output that is NaN where input j is, or one of the two below; and the
    // input that output k comes from, or `several`.
    static std::size_t follow_nan(const MapStage&, std::size_t) { return nan_refused; }
    static std::size_t origin(const MapStage&, std::size_t) { return several; }
    // Of kinds that are as_source: whether the source does the same to sparse rows.
    static bool as_source_of_sparse(const MapStage&) { return true; }
};

// Parameters that are infinite where a feature stays as it is.
inline bool are_taken_or_stay(Check& check, field::Id name, const double* numbers, std::size_t n) {
    constexpr double most = 1e300;  // below APPROXSVM_STAYS
    check.each(name, numbers, n, at_least(-most));
    for (std::size_t j = 0; j < n; ++j) {
        if (numbers[j] <= largest_double) check(name, numbers[j], from_to(-most, most), j);
    }
    return check.status() == Status::ok;
}

// What parts and number of outputs of a kind are that has no choice of them.
inline bool has_plain_header(Check& check, const StageHeader& header, std::size_t n_inputs, std::uint64_t index) {
    return check(field::stage_parts, header.parts, equal_to(0), index) &&
           check(field::stage_n_outputs, header.n_outputs, equal_to(n_inputs), index);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
