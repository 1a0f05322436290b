// Latency of small calls from C++ and C: latency MODEL.asvm ROWS N_FEATURES ROUNDS [SIZE...]. ROWS contains float32
// values, row-major; every call gets the next rows. Without sizes, every call gets one row. For class Model, the C
// library and its C++ wrapper, the program then prints the median and the 99th percentile over the rows, in nanoseconds
// per call; each row's time is its median over the rounds. With sizes, it prints class Model's microseconds per row in
// calls of SIZE rows, as medians over the rounds.
#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <approxsvm_runtime.hpp>
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

using Clock = std::chrono::steady_clock;

double median(std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

// Returns each row's time per call, as the median over the rounds.
template <class Call>
std::vector<double> nanoseconds(std::size_t n_rows, int rounds, const Call& call) {
    std::vector<std::vector<double>> of_rows(n_rows);
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < n_rows; ++i) {
            const auto start = Clock::now();
            call(i);
            of_rows[i].push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
        }
    }
    std::vector<double> found;
    for (std::vector<double>& of_row : of_rows) found.push_back(median(of_row));
    return found;
}

template <class Call>
void print_calls(std::size_t n_rows, int rounds, const Call& call) {
    std::vector<double> clock = nanoseconds(n_rows, rounds, [](std::size_t) {});
    std::vector<double> found = nanoseconds(n_rows, rounds, call);
    std::sort(found.begin(), found.end());
    const double nothing = median(clock);
    std::printf("%.1f %.1f ", found[n_rows / 2] - nothing, found[n_rows * 99 / 100] - nothing);
}

// Time per row in calls of `size` rows.
template <class Call>
double microseconds(std::size_t n_rows, std::size_t size, int rounds, const Call& call) {
    std::vector<double> found;
    const std::size_t n_calls = n_rows / size;
    for (int round = 0; round < rounds; ++round) {
        const auto start = Clock::now();
        for (std::size_t k = 0; k < n_calls; ++k) call(k * size, size);
        const std::chrono::duration<double, std::micro> passed = Clock::now() - start;
        found.push_back(passed.count() / static_cast<double>(n_calls * size));
    }
    return median(found);
}

}  // namespace

int main(int argc, char** argv) {
    check(argc >= 5, "usage: latency MODEL.asvm ROWS N_FEATURES ROUNDS [SIZE...]");
    const std::vector<char> artifact = content(argv[1]), rows_bytes = content(argv[2]);
    const std::size_t d = std::strtoul(argv[3], nullptr, 10), n_rows = rows_bytes.size() / sizeof(float) / d;
    const int rounds = std::atoi(argv[4]);
    const float* const rows = reinterpret_cast<const float*>(rows_bytes.data());
    std::uint32_t label = 0, label_of_c = 0;
    std::vector<std::uint32_t> labels(n_rows);

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

    approxsvm::runtime::Model wrapper;
    check(wrapper.open(argv[1]) == APPROXSVM_OK, "the library refuses it");
    const auto by_library = [&](std::size_t i) {
        const approxsvm_status status = approxsvm_predict_f32(wrapper.get(), rows + i * d, d, &label_of_c, 1, nullptr);
        check(status == APPROXSVM_OK, "refused by the library");
    };
    const auto by_wrapper = [&](std::size_t i) {
        const approxsvm::runtime::Span<const float> row(rows + i * d, d);
        check(wrapper.predict(row, {&label_of_c, 1}) == APPROXSVM_OK, "refused by the wrapper");
    };

    for (std::size_t i = 0; i < n_rows; ++i) {
        by_model(i);
        by_library(i);
        check(label == label_of_c, "labels differ");
    }
    for (int k = 5; k < argc; ++k) {
        const std::size_t size = std::strtoul(argv[k], nullptr, 10);
        check(size > 0 && size <= n_rows, "a call has one row at least, and no more than there are");
        const auto call = [&](std::size_t first, std::size_t n) {
            const approxsvm::Span<const float> some(rows + first * d, n * d);
            check(model.predict(some, {labels.data(), n}, workspace) == approxsvm::Status::ok, "refused");
        };
        std::printf("%.4f ", microseconds(n_rows, size, rounds, call));
    }
    if (argc == 5) {
        print_calls(n_rows, rounds, by_model);
        print_calls(n_rows, rounds, by_library);
        print_calls(n_rows, rounds, by_wrapper);
    }
    std::printf("\n");
}
