// Artifacts under a true checksum. One that opens is used in all the ways there are, by every target: dense and sparse
// rows in both precisions, a row alone and rows in blocks, all answers and promises, in memory of exactly the promised
// size. It may answer nonsense. It must not make a sanitizer speak, depend on what memory held before, name a
// label that is none, or be refused by one target and taken by another.

#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <cmath>

#include "answers.hpp"
#include "artifact_mutator.hpp"

namespace {

using namespace fuzz;

/// Support vectors are unpacked for the engines: what would take longer than a fuzzer has.
constexpr std::size_t most_prepared_bytes = std::size_t{1} << 25, most_numbers = std::size_t{1} << 18;

/// Numbers of rows: the input's own as float32, where there are any, about the model's center.
RowForms rows_of(const ModelView& model, const artifact_writer::Bytes& input, std::size_t n_rows) {
    RowForms rows;
    rows.n_features = model.n_raw_features;
    rows.n_rows = n_rows;
    const std::size_t d = model.n_raw_features, n_different = d * n_rows > most_numbers ? 1 : n_rows;
    rows.stride = n_different == 1 ? 0 : static_cast<std::ptrdiff_t>(d);
    const bool has_center = model.center != nullptr && !model.has_input_map;
    for (std::size_t i = 0; i < n_different; ++i) {
        for (std::size_t j = 0; j < d; ++j) {
            float number = static_cast<float>((3 * i + 7 * j) % 29) / 29.0f;
            if (input.size() >= 4) {
                const std::size_t at = 4 * ((i * d + j) % (input.size() / 4));
                number = artifact_writer::get<float>(input, at);
            }
            rows.narrow.push_back(number + (has_center ? model.center[j] : 0.0f));
            rows.wide.push_back(static_cast<double>(rows.narrow.back()));
        }
    }
    rows.starts.push_back(0);
    for (std::size_t i = 0; i < n_rows; ++i) {
        // All columns, none, and one that is unknown; the row that stands for all has to have room for each.
        const std::size_t n = n_different == 1 && n_rows > 1 ? (i == 0 ? d : 0) : i % 5 == 3 ? 0 : d;
        for (std::size_t j = 0; j < n; ++j) rows.columns.push_back(static_cast<std::int64_t>(j));
        if (n > 0 && i % 7 == 5) rows.columns.back() += 3;
        rows.starts.push_back(rows.starts.back() + static_cast<std::int64_t>(n));
    }
    rows.narrow_columns.assign(rows.columns.begin(), rows.columns.end());
    rows.narrow_starts.assign(rows.starts.begin(), rows.starts.end());
    return rows;
}

/// Outcomes that may hang on a rounding, and so on the target.
bool is_settled_by_rounding(Status status) {
    return status == Status::ok || status == Status::beyond_float64 || status == Status::beyond_tolerance ||
           status == Status::map_overflow || status == Status::outside_domain;
}

void check_answers(const ModelView& model, const Room& room) {
    for (std::size_t i = 0; room.out.labels && i < room.labels.size; ++i) {
        if (room.labels.data[i] >= n_labels_of(model)) fail("a label is none of the model's");
        char digits[label_digits];
        if (text_of(label_at(model, room.labels.data[i]), digits).data() == nullptr) fail("a label does not print");
    }
    for (std::size_t i = 0; room.out.certified && i < room.certified.size; ++i) {
        if (room.certified.data[i] > 1) fail("a row is neither certified nor not");
        if (room.stages.data[i] >= n_stages) fail("a row was not answered");
    }
    for (std::size_t k = 0; room.out.bounds && k < room.bounds.size; ++k) {
        if (room.bounds.data[k] < 0.0) fail("a bound is negative");
    }
}

/// By every target, by the fastest in two kinds of memory.
void evaluate_everything(const ModelView& model, const artifact_writer::Bytes& rest, std::uint32_t choice) {
    const auto& targets = dispatch::runnable_targets();
    for (const dispatch::TargetTable* kernels : targets) {
        if (kernels->prepared_bytes(model) > most_prepared_bytes) return;
    }
    std::vector<std::unique_ptr<Prepared>> prepared;
    for (const dispatch::TargetTable* kernels : targets) {
        prepared.push_back(std::make_unique<Prepared>(model, *kernels, 0));
    }
    prepared.push_back(std::make_unique<Prepared>(model, *targets.front(), 0xFF));
    if (prepared.front()->replay(0) != prepared.back()->replay(0xFF)) fail("check rows depend on what memory held");
    for (std::size_t k = 1; k + 1 < prepared.size(); ++k) prepared[k]->replay(0);
    const std::size_t d = model.n_raw_features, n_probabilities = approxsvm::n_probabilities(model);
    const std::size_t sizes[] = {1, 1, 3, targets.front()->block_rows + 1};
    for (unsigned form = 0; form < 4; ++form, choice >>= 5) {
        const RowForms rows = rows_of(model, rest, d > most_numbers / 16 ? 1 : sizes[choice % 4]);
        const Request request{rows.n_rows, static_cast<Values>(choice / 4 % 3)};
        const unsigned wanted = choice / 12 % 4;
        std::vector<std::unique_ptr<Room>> rooms;
        std::vector<Status> statuses;
        for (const auto& one : prepared) {
            rooms.push_back(std::make_unique<Room>(model, n_probabilities, rows.n_rows, wanted));
            statuses.push_back(one->evaluate(rows, form, request, rooms.back()->out));
            if (statuses.back() == Status::ok) check_answers(model, *rooms.back());
            const bool agree = statuses.back() == statuses.front() ||
                               (is_settled_by_rounding(statuses.back()) && is_settled_by_rounding(statuses.front()));
            if (!agree)
                fail(std::string("targets disagree: ") + message(statuses.front()) + "; " + message(statuses.back()));
        }
        if (statuses.front() != statuses.back()) fail("an outcome depends on what memory held");
        if (statuses.front() == Status::ok && !(*rooms.front() == *rooms.back()))
            fail("answers depend on what memory held");
    }
    if (model.mode == Mode::ensemble || choice % 4 != 0) return;
    const bool is_expanded = model.mode != Mode::exact && !is_of_products(model);
    std::string complaint = is_expanded ? exercise::complaint_about_expansion(model) : "";
    if (complaint.empty())
        complaint = exercise::complaint_about_evaluation(model, *targets[choice / 4 % targets.size()]);
    if (!complaint.empty()) fail(complaint);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t n_bytes) {
    const artifact_mutator::Input input(bytes, n_bytes);
    const artifact_writer::ExactCopy copy(input.artifact);
    ModelView model;
    if (open_artifact(copy.data(), input.artifact.size(), model) != Status::ok) return -1;  // no seed for others
    evaluate_everything(
        model, input.rest,
        artifact_writer::checksum_of(input.artifact) ^ static_cast<std::uint32_t>(input.rest.size() * 2654435761u));
    return 0;
}
