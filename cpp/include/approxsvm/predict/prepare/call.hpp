// Data of a call used by all stages: its rows, the requested outputs, and the number of rows evaluated together.
#ifndef APPROXSVM_PREDICT_PREPARE_CALL_HPP
#define APPROXSVM_PREDICT_PREPARE_CALL_HPP

#include "../rows/row_source.hpp"
#include "prepared_model.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- rows together or one by one

// Rows are evaluated either one by one or as a block with one row per lane; the order of additions differs. For a few
// rows, evaluation one by one is cheaper. If values are requested, all rows of a call are evaluated in the same way, so
// that no value depends on other rows. Labels do not depend on this choice, so each queue chooses according to its
// number of rows.
struct Batch {
    bool rows_alone;     // true if expansions evaluate fewer rows than lanes one by one
    bool engines_alone;  // true if the exact engines evaluate rows one by one
    bool goes_by_queue;
    std::size_t alone_eighths;  // maximum number of rows evaluated one by one, in eighths of a register's lanes

    // Returns whether n rows waiting for a block with this many lanes are evaluated one by one.
    bool alone_in_expansion(std::size_t n) const {
        return goes_by_queue ? engines_alone || 3 * n <= lanes + 2
                             : rows_alone;  // small calls have no memory for a block
    }
    bool alone_in_engine(std::size_t n, std::size_t n_lanes = lanes) const {
        return engines_alone || (goes_by_queue && n <= most_alone(n_lanes));
    }
    // Returns how many of n rows are evaluated one by one: the rows left over after full registers, if they are few. A
    // further register costs about half as much as the first.
    std::size_t n_alone_in_engine(std::size_t n, std::size_t n_lanes) const {
        if (alone_in_engine(n, n_lanes)) return n;
        const std::size_t beyond = n % n_lanes;
        return goes_by_queue && n > n_lanes && 2 * beyond <= most_alone(n_lanes) ? beyond : 0;
    }

  private:
    std::size_t most_alone(std::size_t n_lanes) const { return alone_eighths * n_lanes / 8; }
};

// For a single row, the support vectors are in the lanes, and loading them takes most of the time. A single row costs
// 4/3 of its share of a full register's work if lanes are few or exp is most of the work. With sixteen lanes, the
// factor is 1.7 if the support vectors are in the L1 cache, else 2.6 (ijcnn1, usps, covtype, pendigits and svmguide1 on
// a Zen 5).
inline std::size_t alone_eighths_of(const ModelView& model) {
    constexpr std::size_t first_level_bytes = std::size_t{1} << 14;
    if (lanes < 16 || model.n_features <= 8) return 6;
    return model.n_sv * model.n_features * sizeof(float) <= first_level_bytes ? 4 : 3;
}

// Maximum number of rows in a call, which determines the memory size. If all rows are evaluated one by one (batch_of),
// no memory is needed for blocks of rows.
struct CallRows {
    std::size_t n, side_by_side;

    CallRows(std::size_t n_rows, bool has_batches)
        : n(n_rows), side_by_side(!has_batches || n_rows <= max_single_rows ? 1 : block_rows) {}

    // Returns the size in bytes of the block shared by the stages, for rows in lanes or one row of doubles.
    std::size_t block_bytes(const ModelView& model) const {
        return side_by_side > 1 ? approxsvm::block_bytes(model.n_features)
                                : model.n_features * sizeof(double) + panel_rows * sizeof(float) + 64;
    }
    std::size_t at_most(std::size_t n_rows) const { return n < n_rows ? n : n_rows; }
};
// CallRows for a list of parts. Without `batches`, each row has a block to itself.
template <Parts parts>
struct CallOf : CallRows {
    explicit CallOf(std::size_t n_rows) : CallRows(n_rows, has(parts, batches)) {}
};
// Stands for a call with any number of rows.
constexpr std::size_t any_number_of_rows = ~std::size_t{0};

template <Parts parts>
inline Batch batch_of(const ModelView& model, std::size_t n_rows, bool labels_only) {
    if (!has(parts, batches)) return {true, true, labels_only, 0};
    const std::size_t n_groups = model.n_centers > 1 ? model.n_centers : 1;
    return {n_rows <= max_single_rows * n_groups, n_rows <= max_single_rows, labels_only, alone_eighths_of(model)};
}

// --- the job of a call

struct EvaluationMemory;

inline bool wants_values(const Evaluation& out) {
    return out.values || out.bounds;
}

// Returns whether rows skip the float32 engine. With kernels of inner products, all values are exact.
inline bool wants_exact_values(const ModelView& model, const Request& request, const Evaluation& out) {
    if (is_of_products(model)) return false;
    if (request.values != Values::promised) return request.values == Values::exact;
    return has_engines(model) && wants_values(out) && !(model.tolerance < infinity);
}

// The rows of a call, the requested outputs, and the memory for computing them.
struct Job {
    const PreparedModel& prepared;
    const ModelView& view;
    const RowSource& source;
    const Request& request;
    const Evaluation& out;
    std::uint64_t* const counts;  // per stage: number of rows with results from it
    const Batch batch;
    const EvaluationMemory& memory;

    // Returns a bound on the distance between the row and the intended row.
    double row_error(std::size_t i) const { return request.row_errors ? request.row_errors[i] : 0.0; }
    Status check(const std::size_t* rows, std::size_t n) const {
        for (std::size_t r = 0; r < n; ++r) {
            const Status status = source.check(rows[r]);
            if (status != Status::ok) return status;
        }
        return Status::ok;
    }
    // Returns whether rows that miss the tolerance are rejected.
    bool has_promise() const { return view.tolerance_asked && wants_values(out) && request.keeps_promise; }
    bool is_exact() const { return wants_exact_values(view, request, out); }
};

// A queue of rows waiting to fill a block.
template <std::size_t capacity>
struct RowQueue {
    std::size_t n = 0, rows[capacity];

    // Adds a row; returns whether the queue is now full.
    bool add(std::size_t i) {
        rows[n++] = i;
        return n == capacity;
    }
    // Empties the queue and returns its size; the rows remain readable until the next row is added.
    std::size_t take() {
        const std::size_t taken = n;
        n = 0;
        return taken;
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
