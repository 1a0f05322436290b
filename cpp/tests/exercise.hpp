#pragma once

#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels.hpp"

// Uses everything that an artifact offers once it has opened, whatever it may hold: a sanitizer sees every read and
// write outside the memory that was asked for.

namespace exercise {

using namespace approxsvm;

/// Memory of exactly that size, at an address that suits nothing.
class OddMemory {
  public:
    explicit OddMemory(std::size_t n_bytes) : bytes_(new unsigned char[n_bytes + 1]) {}
    void* data() const { return bytes_.get() + 1; }

  private:
    std::unique_ptr<unsigned char[]> bytes_;
};

/// Support vectors are unpacked for the engine; a hostile file may stand for more of them than a test can hold.
constexpr std::size_t most_prepared_bytes = std::size_t{1} << 28;

/// Values of polynomial kernels and mapped rows may be beyond float64, or beyond the tolerance that was asked for.
inline bool is_refusal(Status status) {
    return status == Status::beyond_float64 || status == Status::beyond_tolerance || status == Status::map_overflow ||
           status == Status::unknown_feature;
}

/// What is wrong with the answers, or an empty text.
inline std::string complaint_about_answers(const ModelView& model, Status status, const std::vector<double>& values,
                                           const std::vector<double>& bounds, const std::vector<std::uint8_t>& stages,
                                           const std::uint64_t* counts) {
    if (status != Status::ok) return message(status);
    std::uint64_t counted[n_stages] = {};
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (stages[i] >= n_stages) return "row " + std::to_string(i) + " was not answered";
        ++counted[stages[i]];
        if (bounds[i] < 0) return "a bound is negative";
        if (model.mode == Mode::approximate && stages[i] > by_higher_degree) return "an approximate artifact fell back";
        if (model.mode == Mode::approximate || stages[i] == by_definition) continue;
        if (!(bounds[i] <= model.tolerance || is_polynomial(model))) return "a bound is beyond the tolerance";
        if (model.task != Task::regression && !(std::fabs(values[i]) > bounds[i])) return "a label is in doubt";
    }
    return std::equal(counted, counted + n_stages, counts) ? "" : "rows were not counted as they were answered";
}

/// The same of labels alone, and of exact values with their labels.
template <class Rows>
std::string complaint_about_labels(const ModelView& model, const void* prepared,
                                   dispatch::EvaluateFunction<Rows> function, const Rows& rows,
                                   const OddMemory& workspace) {
    std::vector<double> values(rows.n_rows * model.n_decisions);
    std::vector<std::uint32_t> alone(rows.n_rows, ~0u), beside(rows.n_rows, ~0u);
    Evaluation out;
    out.labels = alone;
    std::uint64_t counts[n_stages] = {};
    const Status status = function(prepared, rows, Request{rows.n_rows}, out, counts, workspace.data());
    if (model.task == Task::regression) return status == Status::no_labels ? "" : "a regression has labels";
    if (is_refusal(status)) return "";
    if (status != Status::ok) return message(status);
    out = {values, nullptr, nullptr, beside, nullptr};
    const Status exact = function(prepared, rows, {rows.n_rows, Values::exact}, out, counts, workspace.data());
    if (model.mode == Mode::approximate && !is_polynomial(model))
        return exact == Status::no_exact_values ? "" : "approximate values are exact";
    if (is_refusal(exact)) return "";
    if (exact != Status::ok) return message(exact);
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        if (alone[i] >= n_labels_of(model) || beside[i] >= n_labels_of(model)) return "a label is none of the model's";
        const bool by_votes = model.outputs.label_rule == LabelRule::votes;
        if (model.n_decisions == 1 && by_votes && beside[i] != label_position(values[i]))
            return "a label is not that of the value";
        char digits[label_digits];
        if (text_of(label_at(model, alone[i]), digits).data() == nullptr) return "a label does not print";
    }
    out.values.size -= model.n_decisions;
    return function(prepared, rows, Request{rows.n_rows}, out, counts, workspace.data()) == Status::buffer_too_small
               ? ""
               : "a small buffer is written";
}

template <class Rows>
std::string evaluated(const ModelView& model, const void* prepared, dispatch::EvaluateFunction<Rows> function,
                      const Rows& rows, const OddMemory& workspace) {
    std::vector<double> values(rows.n_rows * model.n_decisions), bounds(values.size());
    std::vector<std::uint8_t> stages(rows.n_rows, 255);
    std::uint64_t counts[n_stages] = {};
    const Status status = function(prepared, rows, {rows.n_rows, Values::settled},
                                   {values, bounds, stages, nullptr, nullptr}, counts, workspace.data());
    if (is_refusal(status)) return "";
    const std::string complaint = complaint_about_labels(model, prepared, function, rows, workspace);
    if (!complaint.empty()) return complaint;
    if (model.n_decisions > 1) return status == Status::ok ? "" : message(status);
    return complaint_about_answers(model, status, values, bounds, stages, counts);
}

/// Rows near and far through every stage, dense and sparse.
inline std::string complaint_about_evaluation(const ModelView& model, const dispatch::Kernels& kernels) {
    const std::size_t d = model.n_raw_features;
    if (kernels.prepared_bytes(model) > most_prepared_bytes) return "";
    const OddMemory memory(kernels.prepared_bytes(model));
    const void* const prepared = kernels.prepare(model, memory.data());
    const OddMemory workspace(kernels.workspace_bytes(prepared)), replay(kernels.replay_bytes(prepared));
    kernels.replay(prepared, replay.data());
    std::vector<float> near(d);
    if (model.center != nullptr && !model.has_input_map) near.assign(model.center, model.center + d);
    const std::vector<double> far(d, 3e38);
    const float values[] = {1.0f, 0.5f, -2.0f};
    const std::int32_t columns[] = {-1, static_cast<std::int32_t>(d - 1), static_cast<std::int32_t>(d)};
    const std::int32_t row_starts[] = {0, 3, 3, 3, 3, 3, 3};
    for (const std::size_t n : {std::size_t{1}, std::size_t{6}, kernels.block_rows + 1}) {
        std::string complaint =
            evaluated(model, prepared, kernels.evaluate_dense_f32, DenseRows<float>{near.data(), n, 0, 1}, workspace);
        if (!complaint.empty()) return complaint;
        complaint =
            evaluated(model, prepared, kernels.evaluate_dense_f64, DenseRows<double>{far.data(), n, 0, 1}, workspace);
        if (!complaint.empty()) return complaint;
        if (n > 6) break;
        complaint = evaluated(model, prepared, kernels.evaluate_csr_f32_i32,
                              CsrRows<float, std::int32_t>{values, columns, row_starts, n}, workspace);
        if (!complaint.empty()) return complaint;
    }
    return "";
}

/// The expansions alone, as programs use them that want nothing else: every sum must be a number.
inline std::string complaint_about_expansion(const ModelView& model) {
    const std::size_t d = model.n_features;
    const OddMemory memory(decision_function_bytes(d));
    const std::vector<float> near(model.center, model.center + d), far(d, 3e38f);
    std::vector<double> decided(7 * model.n_decisions);
    const Span<unsigned char> scratch{static_cast<unsigned char*>(memory.data()), decision_function_bytes(d)};
    for (std::size_t c = 0; c < model.n_centers; c += 1 + model.n_centers / 4) {
        const DenseRows<float> there{model.centers + c * d, 7, 0, 1};
        if (decision_function_about(model, c, model.n_decisions - 1, there, decided.data(), memory.data()) !=
            Status::ok)
            return "at a center";
        if (std::isnan(decided[0])) return "a center has no value";
    }
    const auto decide = [&](const std::vector<float>& row, std::size_t n) {
        return decision_function(model, DenseRows<float>{row.data(), n, 0, 1}, decided, scratch);
    };
    if (model.has_input_map) return decide(near, 1) == Status::needs_input_map ? "" : "rows that nobody maps";
    if (decide(near, 1) != Status::ok) return "one row";
    if (std::isnan(decided[0])) return "a row has no value";
    if (decide(near, 7) != Status::ok) return "seven rows";
    if (decided.front() != decided[6 * model.n_decisions]) return "equal rows differ";
    if (decide(far, 1) != Status::ok) return "a far row";
    if (decide(near, 8) != Status::buffer_too_small) return "eight rows in room for seven";
    return "";
}

/// What goes wrong when an opened artifact is used on any target, or an empty text.
inline std::string complaint_about(const ModelView& model) {
    for (const dispatch::Kernels* kernels : dispatch::runnable_targets()) {
        std::string complaint =
            model.mode == Mode::exact || is_polynomial(model) ? "" : complaint_about_expansion(model);
        if (complaint.empty()) complaint = complaint_about_evaluation(model, *kernels);
        if (!complaint.empty()) return std::string(kernels->name) + ": " + complaint;
    }
    return "";
}

}  // namespace exercise
