// embed MODEL.asvm: predicts one row and a batch of a hundred, all near the model's center, and prints what it got: by
// the expansion alone, and certified, with the error bound of each value.
#include <cstdio>
#include <vector>

#include "mapped_model.hpp"

namespace {

// Row i is the center moved by i / 1000 in every feature.
std::vector<float> rows_near_the_center(const approxsvm::ModelView& model, std::size_t n_rows) {
    std::vector<float> rows;
    for (std::size_t i = 0; i < n_rows; ++i) {
        for (std::size_t j = 0; j < model.n_features; ++j) {
            rows.push_back(model.center[j] + static_cast<float>(i) / 1000.0f);
        }
    }
    return rows;
}

}  // namespace

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
    const std::size_t n_rows = 100;
    const std::vector<float> storage = rows_near_the_center(model, n_rows);
    const std::ptrdiff_t row_stride = static_cast<std::ptrdiff_t>(model.n_features);
    const approxsvm::DenseRows<float> row{storage.data(), 1, row_stride, 1};
    const approxsvm::DenseRows<float> batch{storage.data(), n_rows, row_stride, 1};

    // The expansion alone: a small workspace, nothing else.
    std::vector<unsigned char> workspace(approxsvm::decision_function_bytes(model.n_features));
    double value = 0.0;
    if (approxsvm::decision_function(model, row, &value, workspace.data()) != approxsvm::Status::ok) return 1;
    std::printf("expansion: %.4f", value);
    if (model.label_kind == approxsvm::LabelKind::int64 || model.task == approxsvm::Task::one_class) {
        std::printf(", label %lld", static_cast<long long>(approxsvm::integer_label(model, value)));
    }
    std::printf("\n");

    // Certified: every label equals the exact model's, every value has a bound.
    std::vector<unsigned char> memory(approxsvm::prepared_bytes(model));
    const approxsvm::PreparedModel& prepared = approxsvm::prepare(model, memory.data());
    workspace.resize(approxsvm::evaluation_workspace_bytes(model));
    std::vector<double> values(n_rows), bounds(n_rows);
    std::vector<std::uint8_t> stages(n_rows);
    const approxsvm::Evaluation out{values.data(), bounds.data(), stages.data()};
    if (approxsvm::evaluate(prepared, batch, out, workspace.data()) != approxsvm::Status::ok) return 1;
    std::size_t n_certified = 0;
    for (const std::uint8_t stage : stages) n_certified += stage <= approxsvm::by_higher_degree;
    std::printf("certified: first %.4f, last %.4f, %zu of %zu rows without the exact model\n", values.front(),
                values.back(), n_certified, n_rows);
    return 0;
}
