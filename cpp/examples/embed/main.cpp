// embed MODEL.asvm: predicts one row and a batch of a hundred, all near the model's center, and prints what it got: by
// the expansion alone, certified labels, and exact values with their bounds.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "mapped_model.hpp"

namespace {

using approxsvm::Status;

// What a program needs beside the model: memory for the model laid out, and one workspace for each thread.
struct Predictor {
    std::vector<unsigned char> memory, workspace;
    const approxsvm::PreparedModel* prepared = nullptr;
    Status status;

    explicit Predictor(const approxsvm::ModelView& model)
        : memory(approxsvm::prepared_bytes(model)),
          workspace(approxsvm::evaluation_workspace_bytes(model)),
          status(approxsvm::prepare(model, memory, prepared)) {}
};

// Row i is the center, or for a polynomial kernel the origin, moved by i / 1000 in every feature.
std::vector<float> rows_near_the_center(const approxsvm::ModelView& model, std::size_t n_rows) {
    std::vector<float> rows;
    for (std::size_t i = 0; i < n_rows; ++i) {
        for (std::size_t j = 0; j < model.n_features; ++j) {
            rows.push_back((model.center ? model.center[j] : 0.0f) + static_cast<float>(i) / 1000.0f);
        }
    }
    return rows;
}

// The expansion alone: a small workspace, nothing else.
Status print_expansion(const approxsvm::ModelView& model, const std::vector<float>& row) {
    std::vector<unsigned char> workspace(approxsvm::decision_function_bytes(model.n_features));
    std::vector<double> values(model.n_decisions);
    const Status status = approxsvm::decision_function(model, row, values, workspace);
    if (status == Status::no_expansion) {
        std::printf("expansion: none\n");
        return Status::ok;
    }
    if (status == Status::ok) std::printf("expansion: %.4f\n", values.front());
    return status;
}

// Labels alone: the expansion proves most of them.
Status print_labels(const approxsvm::ModelView& model, Predictor& predictor, const std::vector<float>& rows,
                    std::size_t n_rows) {
    std::vector<std::uint32_t> labels(n_rows);
    std::vector<std::uint8_t> stages(n_rows);
    approxsvm::Evaluation out;
    out.labels = labels;
    out.stages = stages;
    const Status status = approxsvm::evaluate(*predictor.prepared, rows, out, predictor.workspace);
    if (status != Status::ok) return status;
    char room[approxsvm::label_digits];
    const std::string_view first = approxsvm::text_of(approxsvm::label_at(model, labels.front()), room);
    std::printf("labels: first %.*s, ", static_cast<int>(first.size()), first.data());
    const std::string_view last = approxsvm::text_of(approxsvm::label_at(model, labels.back()), room);
    const auto n_expanded = std::count_if(stages.begin(), stages.end(),
                                          [](std::uint8_t stage) { return stage <= approxsvm::by_higher_degree; });
    std::printf("last %.*s, %d of %zu rows without the exact model\n", static_cast<int>(last.size()), last.data(),
                static_cast<int>(n_expanded), n_rows);
    return status;
}

// Values: the source model's own, or within the tolerance that was asked for; close, if the artifact is approximate.
Status print_values(const approxsvm::ModelView& model, Predictor& predictor, const std::vector<float>& rows,
                    std::size_t n_rows) {
    std::vector<double> values(n_rows * model.n_decisions), bounds(values.size());
    approxsvm::Evaluation out;
    out.values = values;
    out.bounds = bounds;
    const Status status = approxsvm::evaluate(*predictor.prepared, rows, out, predictor.workspace);
    if (status == Status::ok) {
        std::printf("values: first %.4f, last %.4f, within %.1e\n", values.front(), values.back(),
                    *std::max_element(bounds.begin(), bounds.end()));
    }
    return status;
}

int refused(const char* path, Status status) {
    std::fprintf(stderr, "embed: %s: %s\n", path, approxsvm::message(status));
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: embed model.asvm\n");
        return 1;
    }
    const MappedModel mapped(argv[1]);
    if (mapped.status() != Status::ok) return refused(argv[1], mapped.status());
    const approxsvm::ModelView& model = mapped.model();
    Predictor predictor(model);
    if (predictor.status != Status::ok) return refused(argv[1], predictor.status);

    const std::size_t n_rows = 100;
    const std::vector<float> rows = rows_near_the_center(model, n_rows);
    Status status = print_expansion(model, rows_near_the_center(model, 1));
    if (status == Status::ok && model.task != approxsvm::Task::regression) {
        status = print_labels(model, predictor, rows, n_rows);
    }
    if (status == Status::ok) status = print_values(model, predictor, rows, n_rows);
    return status == Status::ok ? 0 : refused(argv[1], status);
}
