// embed MODEL.asvm: predicts one row and a batch of a hundred, all near the model's center, and prints what it got.
#include <cstdio>
#include <vector>

#include "mapped_model.hpp"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: embed model.asvm\n");
        return 1;
    }
    const MappedModel mapped(argv[1]);
    if (mapped.status() != approxsvm::Status::ok) {
        std::fprintf(stderr, "embed: %s: %s\n", argv[1], approxsvm::message(mapped.status()));
        return 1;
    }
    const approxsvm::ModelView& model = mapped.model();
    std::vector<unsigned char> workspace(approxsvm::workspace_bytes(model.n_features));

    // One row: the center itself.
    const std::vector<float> row(model.center, model.center + model.n_features);
    double value = 0.0;
    approxsvm::Status status =
        approxsvm::decision_function(model, approxsvm::DenseRows<float>{row.data(), 1, 0, 1}, &value, workspace.data());
    if (status != approxsvm::Status::ok) return 1;
    std::printf("row: decision value %.6f", value);
    if (model.label_kind == approxsvm::LabelKind::int64 || model.task == approxsvm::Task::one_class) {
        std::printf(", label %lld", static_cast<long long>(approxsvm::integer_label(model, value)));
    }
    std::printf("\n");

    // A batch, row after row in one array: row i is the center moved by i / 1000 in every feature.
    const std::size_t n_rows = 100;
    std::vector<float> batch;
    for (std::size_t i = 0; i < n_rows; ++i) {
        for (const float x : row) batch.push_back(x + static_cast<float>(i) / 1000.0f);
    }
    std::vector<double> values(n_rows);
    const approxsvm::DenseRows<float> rows{batch.data(), n_rows, static_cast<std::ptrdiff_t>(model.n_features), 1};
    status = approxsvm::decision_function(model, rows, values.data(), workspace.data());
    if (status != approxsvm::Status::ok) return 1;
    std::printf("batch: %zu rows, first decision value %.6f, last %.6f\n", n_rows, values.front(), values.back());
    return 0;
}
