// Nanoseconds that one row takes from C++ and from C: latency MODEL.asvm ROWS N_FEATURES ROUNDS.
// ROWS holds float32 values, one row after the other. Every call gets one row, the next one each time; printed are the
// medians over the rounds, of class Model and of the C library.
#include <approxsvm.h>

#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

std::vector<char> content(const char* path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void check(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
}

template <class Call>
double nanoseconds(std::size_t n_rows, int rounds, const Call& predict) {
    std::vector<double> found;
    for (int round = 0; round < rounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < n_rows; ++i) predict(i);
        const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - start;
        found.push_back(passed.count() / static_cast<double>(n_rows));
    }
    std::nth_element(found.begin(), found.begin() + rounds / 2, found.end());
    return found[static_cast<std::size_t>(rounds / 2)];
}

}  // namespace

int main(int argc, char** argv) {
    check(argc == 5, "usage: latency MODEL.asvm ROWS N_FEATURES ROUNDS");
    const std::vector<char> artifact = content(argv[1]), rows_bytes = content(argv[2]);
    const std::size_t d = std::strtoul(argv[3], nullptr, 10), n_rows = rows_bytes.size() / sizeof(float) / d;
    const int rounds = std::atoi(argv[4]);
    const float* const rows = reinterpret_cast<const float*>(rows_bytes.data());
    std::uint32_t label = 0, label_of_c = 0;

    approxsvm::Model model;
    const auto* bytes = reinterpret_cast<const unsigned char*>(artifact.data());
    check(model.open({bytes, artifact.size()}) == approxsvm::Status::ok, "no artifact");
    std::vector<unsigned char> memory(model.memory_bytes());
    check(model.prepare(memory) == approxsvm::Status::ok, "cannot be prepared");
    std::vector<unsigned char> workspace(model.workspace_bytes());
    const auto by_model = [&](std::size_t i) {
        const approxsvm::Span<const float> row(rows + i * d, d);
        check(model.predict(row, {&label, 1}, workspace) == approxsvm::Status::ok, "refused");
    };

    approxsvm_model* handle = nullptr;
    check(approxsvm_open_file(argv[1], &handle, nullptr) == APPROXSVM_OK, "the library refuses it");
    const auto by_library = [&](std::size_t i) {
        const approxsvm_status status = approxsvm_predict_f32(handle, rows + i * d, d, &label_of_c, 1, nullptr);
        check(status == APPROXSVM_OK, "refused by the library");
    };

    for (std::size_t i = 0; i < n_rows; ++i) {
        by_model(i);
        by_library(i);
        check(label == label_of_c, "labels differ");
    }
    const double of_model = nanoseconds(n_rows, rounds, by_model);
    std::printf("%.1f %.1f\n", of_model, nanoseconds(n_rows, rounds, by_library));
    approxsvm_close(handle);
}
