#pragma once

#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "target_table.hpp"

// Uses everything that an artifact offers once it has opened, whatever it may hold: a sanitizer sees every read and
// write outside the memory that was asked for.

namespace exercise {

using namespace approxsvm;

/// Memory of exactly that size, one byte behind a cache line: whoever aligns it has none of it to spare.
class OddMemory {
  public:
    explicit OddMemory(std::size_t n_bytes) : bytes_(new (line) unsigned char[n_bytes + 1]) {}
    void* data() const { return bytes_.get() + 1; }

  private:
    static constexpr std::align_val_t line{64};
    struct Delete {
        void operator()(unsigned char* bytes) const { ::operator delete[](bytes, line); }
    };
    std::unique_ptr<unsigned char[], Delete> bytes_;
};

/// Support vectors are unpacked for the engine; a hostile file may stand for more of them than a test can hold.
constexpr std::size_t most_prepared_bytes = std::size_t{1} << 28;

/// Values of polynomial kernels and mapped rows may be beyond float64, or beyond the tolerance that was asked for.
inline bool is_refusal(Status status) {
    return status == Status::beyond_float64 || status == Status::beyond_tolerance || status == Status::map_overflow ||
           status == Status::outside_domain || status == Status::unknown_feature;
}

/// What is wrong with the answers, or an empty text.
std::string complaint_about_answers(const ModelView& model, Status status, const std::vector<double>& values,
                                    const std::vector<double>& bounds, const std::vector<std::uint8_t>& stages,
                                    const std::uint64_t* counts);

/// The same of labels alone, and of exact values with their labels.
template <class Rows>
std::string complaint_about_labels(const ModelView& model, const void* prepared,
                                   dispatch::EvaluateFunction<Rows> function, const Rows& rows,
                                   const OddMemory& workspace) {
    std::vector<double> values(rows.n_rows * model.n_decisions);
    std::vector<std::uint32_t> alone(rows.n_rows * n_targets_of(model), ~0u), beside(alone);
    Evaluation out;
    out.labels = alone;
    std::uint64_t counts[n_stages] = {};
    const Status status = function(prepared, rows, Request{rows.n_rows}, out, counts, workspace.data());
    if (model.task == Task::regression) return status == Status::no_labels ? "" : "a regression has labels";
    if (is_refusal(status)) return "";
    if (status != Status::ok) return message(status);
    out = {values, nullptr, nullptr, beside, nullptr};
    const Status exact = function(prepared, rows, {rows.n_rows, Values::exact}, out, counts, workspace.data());
    if (model.mode == Mode::approximate && !is_of_products(model))
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
    if (model.n_decisions == 0) return "";
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
std::string complaint_about_evaluation(const ModelView& model, const dispatch::TargetTable& kernels);

/// The expansions alone, as programs use them that want nothing else: every sum must be a number.
std::string complaint_about_expansion(const ModelView& model);

/// What goes wrong when an opened artifact is used on any target, or an empty text.
std::string complaint_about(const ModelView& model);

}  // namespace exercise
