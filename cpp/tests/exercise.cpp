#include "exercise.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "prepared_model.hpp"

namespace exercise {
namespace {

/// Support vectors are unpacked for the engines; a malicious file may declare more support vectors than a test can
/// hold.
constexpr std::size_t most_prepared_bytes = std::size_t{1} << 25, most_numbers = std::size_t{1} << 18;

RowForms rows_of(const ModelView& model, const std::vector<unsigned char>& numbers, std::size_t n_rows, bool far) {
    RowForms rows;
    const std::size_t d = model.n_raw_features, n_different = d * n_rows > most_numbers ? 1 : n_rows;
    rows.n_rows = n_rows;
    rows.stride = n_different == 1 ? 0 : static_cast<std::ptrdiff_t>(d);
    const bool has_center = model.center != nullptr && !model.has_input_map;
    for (std::size_t i = 0; i < n_different; ++i) {
        for (std::size_t j = 0; j < d; ++j) {
            float number = far ? 3e38f : static_cast<float>((3 * i + 7 * j) % 29) / 29.0f;
            const std::size_t n_given = numbers.size() / sizeof number;
            if (n_given > 0)
                std::memcpy(&number, numbers.data() + (i * d + j) % n_given * sizeof number, sizeof number);
            rows.add(static_cast<double>(number + (has_center && !far ? model.center[j] : 0.0f)));
        }
    }
    for (std::size_t i = 0; i < n_rows; ++i) {
        // The rows have all columns, none, or also an unknown one; a row that is used as every row must have room for
        // all columns.
        const std::size_t n = n_different == 1 && n_rows > 1 ? (i == 0 ? d : 0) : i % 5 == 3 ? 0 : d;
        for (std::size_t j = 0; j < n; ++j) rows.columns.push_back(static_cast<std::int64_t>(j));
        if (n > 0 && i % 7 == 5) rows.columns.back() += 3;
        rows.starts.push_back(rows.starts.back() + static_cast<std::int64_t>(n));
    }
    rows.finish();
    return rows;
}

/// Some rules hold for the outputs of every artifact, whatever values it contains. Returns the first rule that these
/// outputs break, or "".
std::string complaint_about_answers(const ModelView& model, const Room& room, Values kind,
                                    const std::uint64_t* counts) {
    const Evaluation& out = room.out;
    for (std::size_t i = 0; i < out.labels.size; ++i) {
        if (out.labels[i] >= n_labels_of(model)) return "a label is none of the model's";
        char digits[label_digits];
        if (text_of(label_at(model, out.labels[i]), digits).data() == nullptr) return "a label does not print";
    }
    for (std::size_t i = 0; i < out.certified.size; ++i) {
        if (out.certified[i] > 1) return "a row is neither certified nor not";
    }
    for (std::size_t k = 0; k < out.bounds.size; ++k) {
        if (out.bounds[k] < 0.0) return "a bound is negative";
    }
    std::uint64_t counted[n_stages] = {};
    for (std::size_t i = 0; i < out.stages.size; ++i) {
        if (out.stages[i] >= n_stages) return "a row was not answered";
        ++counted[out.stages[i]];
        if (model.mode == Mode::approximate && out.stages[i] > by_higher_degree)
            return "an approximate artifact fell back";
    }
    if (!out.stages || model.n_decisions != 1 || model.mode == Mode::ensemble) return "";
    for (int stage = 0; stage < n_stages; ++stage) {  // certificates may count a row again
        if (counts[stage] < counted[stage]) return "rows were not counted as they were answered";
    }
    const bool by_sign = out.labels && model.outputs.label_rule == LabelRule::votes && model.mode != Mode::approximate;
    for (std::size_t i = 0; i < out.values.size; ++i) {
        if (by_sign && kind == Values::exact && out.labels[i] != label_position(out.values[i]))
            return "a label is not that of the value";
        if (model.mode == Mode::approximate || out.stages[i] == by_definition) continue;
        if (!(out.bounds[i] <= model.tolerance || !is_gaussian(model))) return "a bound is beyond the tolerance";
        if (by_sign && !(std::fabs(out.values[i]) > out.bounds[i])) return "a label is in doubt";
    }
    return "";
}

}  // namespace

bool hangs_on_rounding(Status status) {
    return status == Status::ok || status == Status::beyond_float64 || status == Status::beyond_tolerance ||
           status == Status::map_overflow || status == Status::outside_domain;
}

std::string complaint_about(const ModelView& model, const std::vector<unsigned char>& numbers, std::uint32_t choice) {
    const auto& targets = dispatch::runnable_targets();
    // One per target, and a second one for the fastest target, in memory filled with another value.
    std::vector<std::unique_ptr<Prepared>> prepared;
    for (const dispatch::TargetTable* kernels : targets) {
        if (kernels->prepared_bytes(model) > most_prepared_bytes) return "";
        prepared.push_back(std::make_unique<Prepared>(model, *kernels, 0));
    }
    prepared.push_back(std::make_unique<Prepared>(model, *targets.front(), 0xFF));
    if (prepared.front()->replay() != prepared.back()->replay()) return "check rows depend on what memory held";
    for (std::size_t k = 1; k + 1 < prepared.size(); ++k) prepared[k]->replay();
    const std::size_t sizes[] = {1, 6, 3, targets.front()->block_rows + 1};
    const bool is_small = model.n_raw_features <= most_numbers / 16;
    for (unsigned form = 0; form < 4; ++form, choice = choice * 1664525u + 1013904223u) {
        const unsigned drawn = choice >> 16, wanted = drawn % 5 % 4;
        const RowForms rows = rows_of(model, numbers, is_small ? sizes[drawn / 5 % 4] : 1, drawn / 20 % 4 == 0);
        const Request request{rows.n_rows, static_cast<Values>(drawn / 80 % 3)};
        std::vector<std::unique_ptr<Room>> rooms;
        std::vector<Status> statuses;
        for (const auto& one : prepared) {
            std::uint64_t counts[n_stages] = {};
            rooms.push_back(std::make_unique<Room>(model, rows.n_rows, wanted));
            const Evaluation& out = rooms.back()->out;
            const Status status =
                rows.in_form(form, [&](const auto& given) { return one->evaluate(given, request, out, counts); });
            std::string complaint;
            if (status == Status::ok)
                complaint = complaint_about_answers(model, *rooms.back(), request.values, counts);
            else if (!hangs_on_rounding(status) && status != Status::unknown_feature &&
                     !(status == Status::not_finite && !numbers.empty()) &&
                     !(status == Status::no_exact_values && request.values == Values::exact))
                complaint = message(status);
            const bool agree = statuses.empty() || status == statuses.front() ||
                               (hangs_on_rounding(status) && hangs_on_rounding(statuses.front()));
            if (complaint.empty() && !agree)
                complaint = std::string("targets disagree: ") + message(statuses.front()) + "; " + message(status);
            if (!complaint.empty()) return complaint + ", form " + std::to_string(form);
            statuses.push_back(status);
        }
        if (statuses.front() != statuses.back()) return "an outcome depends on what memory held";
        if (statuses.front() == Status::ok && !(*rooms.front() == *rooms.back()))
            return "answers depend on what memory held";
    }
    return "";
}

}  // namespace exercise
