#include <approxsvm.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "c_room.hpp"
#include "check.hpp"

// The C interface under sanitizers. See also tests/cpp/test_runtime.py and tests/zoo.

namespace runtime {
namespace {

using Bytes = std::vector<unsigned char>;

std::vector<Bytes> golden_artifacts() {
    std::vector<Bytes> all;
    for (const auto& entry : std::filesystem::directory_iterator(APPROXSVM_GOLDEN_DIR)) {
        if (entry.path().extension() != ".asvm") continue;
        std::ifstream file(entry.path(), std::ios::binary);
        all.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return all;
}

struct Model {
    explicit Model(const Bytes& bytes) {
        CHECK_EQ(approxsvm_open_bytes(bytes.data(), bytes.size(), &handle, nullptr), APPROXSVM_OK);
    }
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;
    ~Model() { approxsvm_close(handle); }

    approxsvm_model* handle = nullptr;
};

}  // namespace

// Makes calls with one thread and with several, on more rows than fit in one chunk. The calls compete for the memory
// that a model keeps for one caller, while other models are opened and closed. Also run it under ThreadSanitizer.
TEST(one_model_many_threads) {
    constexpr std::size_t n_rows = 300;
    for (const Bytes& bytes : golden_artifacts()) {
        const Model model(bytes);
        const unsigned all = CRoom::all_of(model.handle);
        Exact<double> rows(n_rows * approxsvm_n_features(model.handle));
        for (std::size_t k = 0; k < rows.size; ++k) rows.data[k] = static_cast<double>(7 * k % 64) / 64.0;
        const auto evaluate = [&](const approxsvm_request& wanted) {
            return approxsvm_evaluate_f64(model.handle, rows.data.get(), rows.size, &wanted, nullptr);
        };
        const CRoom expected(model.handle, n_rows, all);
        CHECK_EQ(evaluate(expected.request), APPROXSVM_OK);
        std::vector<CRoom> found;
        for (int k = 0; k < 4; ++k) found.emplace_back(model.handle, n_rows, all);
        std::vector<std::thread> threads;
        for (std::size_t k = 0; k < found.size(); ++k) {
            threads.emplace_back([&, k] {
                found[k].request.n_threads = static_cast<std::int32_t>(1 + k % 2);
                for (int left = 3; left > 0; --left) {
                    evaluate(found[k].request);
                    if (k == 0) const Model other(Bytes{bytes});
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        for (const CRoom& mine : found) CHECK(mine == expected);
    }
}

TEST(file_names_are_utf8) {
    const std::string name = "approxsvm_mod\xc3\xa8le_\xe6\xa8\xa1.asvm";
    const std::filesystem::path path = std::filesystem::temp_directory_path() / std::filesystem::u8path(name);
    const Bytes bytes = golden_artifacts().front();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    approxsvm_model* model = nullptr;
    approxsvm_error error;
    CHECK_EQ(approxsvm_open_file(path.u8string().c_str(), &model, &error), APPROXSVM_OK);
    approxsvm_close(model);
    std::filesystem::remove(path);
    CHECK_EQ(approxsvm_open_file(path.u8string().c_str(), &model, &error), APPROXSVM_UNREADABLE_FILE);
    CHECK(std::strstr(error.message, name.c_str()) != nullptr);
}

TEST(starts_that_lead_astray) {
    const Model model(golden_artifacts().front());
    const double values[2] = {0.5, 0.25};
    const std::int64_t columns[2] = {0, 1}, most = INT64_MAX, least = INT64_MIN;
    approxsvm_request wanted = APPROXSVM_REQUEST;
    const auto refused = [&](const std::int64_t* starts, std::size_t n_rows) {
        CHECK_EQ(approxsvm_evaluate_csr_f64_i64(model.handle, values, columns, 2, starts, n_rows, &wanted, nullptr),
                 APPROXSVM_BAD_ROW_STARTS);
    };
    for (const auto& starts : {std::vector<std::int64_t>{0, 3}, {-1, 2}, {2, 1}, {0, most}, {least, 0}, {most, most}})
        refused(starts.data(), 1);
    refused(&most, SIZE_MAX);
}

}  // namespace runtime
