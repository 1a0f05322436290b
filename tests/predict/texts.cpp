// texts ARTIFACT: reads a raw row a line, cells between tabs, a cell of nothing being a missing value, and prints its
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

int main(int, char** arguments) {
    std::ifstream file(arguments[1], std::ios::binary);
    const std::vector<unsigned char> content{std::istreambuf_iterator<char>(file), {}};
    std::vector<unsigned char> bytes(content);
    approxsvm::Model model;
    if (model.open(bytes) != approxsvm::Status::ok) return 1;
    std::vector<unsigned char> memory(model.memory_bytes());
    if (model.prepare(memory) != approxsvm::Status::ok) return 2;
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
        const approxsvm::Status status = model.predict(row, {&label, 1}, workspace);
        if (status == approxsvm::Status::ok) std::cout << model.label(label) << "\n";
        if (status != approxsvm::Status::ok) std::cout << approxsvm::message(status) << "\n";
    }
}
