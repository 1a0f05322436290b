// embed MODEL.asvm: predicts a hundred raw rows and prints the labels, the values with error bounds and the
// probabilities for the first and last row.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "mapped_model.hpp"

namespace {

using approxsvm::Model;
using approxsvm::Status;

constexpr std::size_t n_rows = 100;

// Row i has i / 100 in every feature.
std::vector<float> raw_rows(const Model& model) {
    std::vector<float> rows;
    for (std::size_t i = 0; i < n_rows; ++i)
        rows.insert(rows.end(), model.n_features(), static_cast<float>(i) / 100.0f);
    return rows;
}

void print_row(const char* name, const double* numbers, std::size_t n) {
    std::printf("%s", name);
    for (std::size_t k = 0; k < n; ++k) std::printf(" %.6g", numbers[k]);
}

// Prints the labels of row i: one in total, or one per target.
void print_labels_of(const Model& model, const std::vector<std::uint32_t>& labels, std::size_t i) {
    char room[approxsvm::label_digits];
    for (std::size_t k = 0; k < model.n_targets(); ++k) {
        const std::string_view text = approxsvm::text_of(model.label(labels[i * model.n_targets() + k]), room);
        std::printf(" %.*s", static_cast<int>(text.size()), text.data());
    }
}

// Computes only labels: the expansion proves most of them.
Status print_labels(const Model& model, const std::vector<float>& rows, std::vector<unsigned char>& workspace) {
    std::vector<std::uint32_t> labels(n_rows * model.n_targets());
    std::vector<std::uint8_t> certified(labels.size());
    approxsvm::Evaluation out;
    out.labels = labels;
    out.certified = certified;
    const Status status = model.evaluate(rows, out, workspace);
    if (status != Status::ok) return status;
    std::printf("labels: first");
    print_labels_of(model, labels, 0);
    std::printf(", last");
    print_labels_of(model, labels, n_rows - 1);
    std::printf(", %d of %zu proven by the first stage\n",
                static_cast<int>(std::count(certified.begin(), certified.end(), 1)), labels.size());
    return status;
}

// Computes values: the source model's, or values within the requested tolerance, or an approximate artifact's.
Status print_values(const Model& model, const std::vector<float>& rows, std::vector<unsigned char>& workspace) {
    const std::size_t n = model.n_decisions();
    std::vector<double> values(n_rows * n), bounds(values.size());
    Status status = model.decision_values(rows, values, workspace);
    if (status == Status::ok) status = model.error_bounds(rows, bounds, workspace);
    if (status != Status::ok) return status;
    print_row("values: first", values.data(), n);
    print_row(", last", values.data() + (n_rows - 1) * n, n);
    std::printf(", within %.1e\n", *std::max_element(bounds.begin(), bounds.end()));
    return status;
}

Status print_probabilities(const Model& model, const std::vector<float>& rows, std::vector<unsigned char>& workspace) {
    const std::size_t n = model.n_probabilities();
    std::vector<double> shares(n_rows * n);
    const Status status = model.probabilities(rows, shares, workspace);
    if (status != Status::ok) return status;
    print_row("probabilities: first", shares.data(), n);
    print_row(", last", shares.data() + (n_rows - 1) * n, n);
    std::printf("\n");
    return status;
}

Status print_answers(const Model& model) {
    const std::vector<float> rows = raw_rows(model);
    std::vector<unsigned char> workspace(model.workspace_bytes());  // one per thread
    Status status = Status::ok;
    if (model.n_labels() > 0) status = print_labels(model, rows, workspace);
    if (status == Status::ok && model.n_decisions() > 0) status = print_values(model, rows, workspace);
    if (status == Status::ok && model.n_probabilities() > 0) status = print_probabilities(model, rows, workspace);
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
    const Status status = print_answers(mapped.model());
    return status == Status::ok ? 0 : refused(argv[1], status);
}
