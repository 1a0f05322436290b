#pragma once

#include <approxsvm/model_view.hpp>
#include <approxsvm/status.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "exact.hpp"
#include "exercise.hpp"
#include "target_table.hpp"

// Everything that a model has to say of some rows, in memory without room to spare.

namespace fuzz {

using namespace approxsvm;

[[noreturn]] inline void fail(const std::string& complaint) {
    std::fprintf(stderr, "%s\n", complaint.c_str());
    std::abort();
}

template <class T>
Span<T> span_of(const Exact<T>& array) {
    return {array.data.get(), array.size};
}

/// Rows of a model, in the four forms that its engines take.
struct RowForms {
    std::vector<float> narrow;
    std::vector<double> wide;
    std::vector<std::int64_t> columns, starts;
    std::vector<std::int32_t> narrow_columns, narrow_starts;
    std::size_t n_rows = 0, n_features = 0;
    std::ptrdiff_t stride = 0;  // 0 where all rows are the same one

    DenseRows<float> dense_f32() const { return {narrow.data(), n_rows, stride, 1}; }
    DenseRows<double> dense_f64() const { return {wide.data(), n_rows, stride, 1}; }
    CsrRows<float, std::int32_t> csr_f32() const {
        return {narrow.data(), narrow_columns.data(), narrow_starts.data(), n_rows};
    }
    CsrRows<double, std::int64_t> csr_f64() const { return {wide.data(), columns.data(), starts.data(), n_rows}; }
};

/// Room for what is wanted: 0 labels alone, 1 all there is, 2 values alone, 3 probabilities and their bounds.
struct Room {
    Room(const ModelView& model, std::size_t n_probabilities, std::size_t n_rows, unsigned wanted)
        : labels(n_rows * n_targets_of(model)),
          stages(n_rows),
          certified(labels.size),
          values(n_rows * model.n_decisions),
          bounds(values.size),
          shares(n_rows * n_probabilities),
          share_bounds(shares.size) {
        if (model.task != Task::regression && wanted < 2) out.labels = span_of(labels);
        if (model.n_decisions > 0 && (wanted == 1 || wanted == 2)) out.values = span_of(values);
        if (wanted == 1) out.stages = span_of(stages), out.certified = span_of(certified);
        if (model.n_decisions > 0 && wanted == 1) out.bounds = span_of(bounds);
        if (n_probabilities > 0 && (wanted & 1u) != 0) out.probabilities = span_of(shares);
        if (n_probabilities > 0 && (wanted & 1u) != 0) out.probability_bounds = span_of(share_bounds);
    }
    bool operator==(const Room& other) const {
        return labels == other.labels && stages == other.stages && certified == other.certified &&
               values == other.values && bounds == other.bounds && shares == other.shares &&
               share_bounds == other.share_bounds;
    }

    Exact<std::uint32_t> labels;
    Exact<std::uint8_t> stages, certified;
    Exact<double> values, bounds, shares, share_bounds;
    Evaluation out;
};

/// A model laid out for one target, in memory that holds some byte before it is written.
class Prepared {
  public:
    Prepared(const ModelView& model, const dispatch::TargetTable& kernels, int fill)
        : kernels_(kernels),
          memory_(filled(kernels.prepared_bytes(model), fill)),
          model_(kernels.prepare(model, memory_.data())),
          workspace_(filled(kernels.workspace_bytes(model_), fill)) {}

    Status replay(int fill) const {
        const std::size_t n_bytes = kernels_.replay_bytes(model_);
        return kernels_.replay(model_, filled(n_bytes, fill).data());
    }

    /// In the form of that number.
    Status evaluate(const RowForms& rows, unsigned form, const Request& request, const Evaluation& out) const {
        switch (form) {
            case 0:
                return evaluated(kernels_.evaluate_dense_f32, rows.dense_f32(), request, out);
            case 1:
                return evaluated(kernels_.evaluate_dense_f64, rows.dense_f64(), request, out);
            case 2:
                return evaluated(kernels_.evaluate_csr_f32_i32, rows.csr_f32(), request, out);
            default:
                return evaluated(kernels_.evaluate_csr_f64_i64, rows.csr_f64(), request, out);
        }
    }

  private:
    static exercise::OddMemory filled(std::size_t n_bytes, int fill) {
        exercise::OddMemory memory(n_bytes);
        std::memset(memory.data(), fill, n_bytes);
        return memory;
    }
    template <class Rows>
    Status evaluated(dispatch::EvaluateFunction<Rows> function, const Rows& rows, const Request& request,
                     const Evaluation& out) const {
        std::uint64_t counts[n_stages] = {};
        return function(model_, rows, request, out, counts, workspace_.data());
    }

    const dispatch::TargetTable& kernels_;
    exercise::OddMemory memory_;
    const void* model_;
    exercise::OddMemory workspace_;
};

}  // namespace fuzz
