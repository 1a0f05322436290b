// doors ROWS COUNT ARTIFACT...: what the headers alone say of COUNT raw rows, float64 one after the other in a file, as
// dense and then as sparse rows: a line for each form and kind of answer.
//
// doors ARTIFACT: reads a raw row a line, cells between tabs, a cell of nothing being a missing value, and prints its
// label: texts go through category_code(), as a program in C++ would send them.
#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace {

using approxsvm::Model;
using approxsvm::Status;

void check(Status status, const char* path) {
    if (status == Status::ok) return;
    std::fprintf(stderr, "%s: %s\n", path, approxsvm::message(status));
    std::exit(1);
}

std::vector<unsigned char> content(const char* path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void print(const char* name, const std::vector<double>& numbers) {
    std::printf("%s", name);
    for (const double number : numbers) std::printf(" %.17g", number);
    std::printf("\n");
}

template <class Rows>
void answer(const Model& model, const Rows& rows, std::size_t n_rows, const char* path) {
    std::vector<unsigned char> workspace(model.workspace_bytes());
    std::vector<std::uint32_t> labels(model.n_labels() > 0 ? n_rows : 0);
    if (!labels.empty()) check(model.predict(rows, labels, workspace), path);
    std::printf("labels");
    for (const std::uint32_t position : labels) {
        char room[approxsvm::label_digits];
        const std::string text(approxsvm::text_of(model.label(position), room));
        std::printf(" %s", text.c_str());
    }
    std::printf("\n");
    std::vector<double> values(n_rows * model.n_decisions()), bounds(values.size());
    std::vector<double> shares(n_rows * model.n_probabilities()), share_bounds(shares.size());
    if (!values.empty()) check(model.decision_values(rows, values, workspace), path);
    if (!bounds.empty()) check(model.error_bounds(rows, bounds, workspace), path);
    if (!shares.empty()) {
        approxsvm::Evaluation out;
        out.probabilities = shares;
        out.probability_bounds = share_bounds;
        check(model.evaluate(rows, out, workspace), path);
    }
    print("values", values);
    print("bounds", bounds);
    print("probabilities", shares);
    print("probability_bounds", share_bounds);
}

int answer_texts(const char* path) {
    const std::vector<unsigned char> bytes = content(path);
    Model model;
    check(model.open(bytes), path);
    std::vector<unsigned char> memory(model.memory_bytes());
    check(model.prepare(memory), path);
    std::vector<unsigned char> workspace(model.workspace_bytes(1));
    for (std::size_t j = 0; j < model.n_features(); ++j) {
        for (std::size_t k = 0; k < model.n_categories(j); ++k) {
            if (model.category_code(j, model.category(j, k)) != static_cast<double>(k)) return 3;
        }
        if (!model.category(j, model.n_categories(j)).empty()) return 4;
    }
    for (std::string line; std::getline(std::cin, line);) {
        std::vector<double> row;
        std::istringstream cells(line + "\t");
        for (std::string cell; std::getline(cells, cell, '\t');) {
            const std::size_t j = row.size();
            row.push_back(model.n_categories(j) == 0
                              ? (cell.empty() ? std::nan("") : std::strtod(cell.c_str(), nullptr))
                          : cell.empty() ? model.missing_code(j)
                                         : model.category_code(j, cell));
        }
        std::uint32_t label = 0;
        const Status status = model.predict(row, {&label, 1}, workspace);
        if (status == Status::ok) std::cout << model.label(label) << "\n";
        if (status != Status::ok) std::cout << message(status) << "\n";
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2) return answer_texts(argv[1]);
    if (argc < 4) return 1;
    const std::vector<unsigned char> numbers = content(argv[1]);
    const std::size_t n_rows = std::strtoul(argv[2], nullptr, 10);
    std::vector<double> rows(numbers.size() / sizeof(double));
    std::memcpy(rows.data(), numbers.data(), numbers.size());
    const std::size_t n_columns = rows.size() / n_rows;

    std::vector<double> values;
    std::vector<std::int32_t> columns, starts(1);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] != 0.0) {
            values.push_back(rows[i]);
            columns.push_back(static_cast<std::int32_t>(i % n_columns));
        }
        if (i % n_columns == n_columns - 1) starts.push_back(static_cast<std::int32_t>(values.size()));
    }
    for (int k = 3; k < argc; ++k) {
        const std::vector<unsigned char> bytes = content(argv[k]);
        Model model;
        check(model.open(bytes), argv[k]);
        std::vector<unsigned char> memory(model.memory_bytes());
        check(model.prepare(memory), argv[k]);
        std::vector<unsigned char> workspace(model.replay_bytes());
        check(model.replay(workspace), argv[k]);
        answer(model, rows, n_rows, argv[k]);
        answer(model, approxsvm::SparseRows<double, std::int32_t>{values, columns, starts}, n_rows, argv[k]);
    }
}
