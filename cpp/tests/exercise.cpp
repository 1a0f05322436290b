#include "exercise.hpp"

namespace exercise {

std::string complaint_about_answers(const ModelView& model, Status status, const std::vector<double>& values,
                                    const std::vector<double>& bounds, const std::vector<std::uint8_t>& stages,
                                    const std::uint64_t* counts) {
    if (status != Status::ok) return message(status);
    const bool by_sign = model.outputs.label_rule == LabelRule::votes && model.mode != Mode::ensemble;
    std::uint64_t counted[n_stages] = {};
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (stages[i] >= n_stages) return "row " + std::to_string(i) + " was not answered";
        ++counted[stages[i]];
        if (bounds[i] < 0) return "a bound is negative";
        if (model.mode == Mode::approximate && stages[i] > by_higher_degree) return "an approximate artifact fell back";
        if (model.mode == Mode::approximate || stages[i] == by_definition) continue;
        if (!(bounds[i] <= model.tolerance || !is_gaussian(model))) return "a bound is beyond the tolerance";
        if (by_sign && model.task != Task::regression && !(std::fabs(values[i]) > bounds[i]))
            return "a label is in doubt";
    }
    if (model.mode == Mode::ensemble) return "";  // whose members count
    return std::equal(counted, counted + n_stages, counts) ? "" : "rows were not counted as they were answered";
}

std::string complaint_about_evaluation(const ModelView& model, const dispatch::TargetTable& kernels) {
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

std::string complaint_about_expansion(const ModelView& model) {
    const std::size_t d = model.n_features;
    const OddMemory memory(decision_function_bytes(d));
    const std::vector<float> near(model.center, model.center + d), far(d, 3e38f);
    std::vector<double> decided(7 * model.n_decisions);
    const Span<unsigned char> scratch{static_cast<unsigned char*>(memory.data()), decision_function_bytes(d)};
    for (std::size_t c = 0; c < model.n_centers; c += 1 + model.n_centers / 4) {
        const DenseRows<float> there{model.centers + c * d, 7, 0, 1};
        if (decision_function_about(model, c, model.n_forms - 1, there, decided.data(), memory.data()) != Status::ok)
            return "at a center";
        if (std::isnan(decided[0])) return "a center has no value";
    }
    const auto decide = [&](const std::vector<float>& row, std::size_t n) {
        return decision_function(model, DenseRows<float>{row.data(), n, 0, 1}, decided, scratch);
    };
    if (model.majority_only) return decide(near, 1) == Status::no_expansion ? "" : "pairs that no center has";
    if (model.has_input_map) return decide(near, 1) == Status::needs_input_map ? "" : "rows that nobody maps";
    if (decide(near, 1) != Status::ok) return "one row";
    if (std::isnan(decided[0])) return "a row has no value";
    if (decide(near, 7) != Status::ok) return "seven rows";
    if (decided.front() != decided[6 * model.n_decisions]) return "equal rows differ";
    if (decide(far, 1) != Status::ok) return "a far row";
    if (decide(near, 8) != Status::buffer_too_small) return "eight rows in room for seven";
    return "";
}

std::string complaint_about(const ModelView& model) {
    for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
        std::string complaint = model.n_centers == 0 ? "" : complaint_about_expansion(model);
        if (complaint.empty()) complaint = complaint_about_evaluation(model, *kernels);
        if (!complaint.empty()) return std::string(kernels->name) + ": " + complaint;
    }
    return "";
}

}  // namespace exercise
