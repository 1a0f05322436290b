#include <approxsvm.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "artifact_writer.hpp"
#include "check.hpp"
#include "exact.hpp"

// The C interface under sanitizers: every golden artifact, memory of exactly the size that is asked for.

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

class Model {
  public:
    explicit Model(const Bytes& bytes) { status = approxsvm_open_bytes(bytes.data(), bytes.size(), &handle, &error); }
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;
    ~Model() { approxsvm_close(handle); }

    approxsvm_model* handle = nullptr;
    approxsvm_error error{};
    approxsvm_status status;
};

/// Room for everything that a model has to say of some rows.
struct Room {
    Room(const approxsvm_model* model, std::size_t n_rows)
        : labels(approxsvm_n_labels(model) > 0 ? n_rows : 0),
          values(approxsvm_n_decisions(model) * n_rows),
          bounds(values.size),
          shares(approxsvm_n_probabilities(model) * n_rows),
          share_bounds(shares.size),
          certified(n_rows) {}

    approxsvm_request request() {
        approxsvm_request wanted = APPROXSVM_REQUEST;
        if (labels.size > 0) wanted.labels = labels.data.get(), wanted.labels_size = labels.size;
        if (values.size > 0) {
            wanted.values = values.data.get(), wanted.values_size = values.size;
            wanted.bounds = bounds.data.get(), wanted.bounds_size = bounds.size;
        }
        if (shares.size > 0) {
            wanted.probabilities = shares.data.get(), wanted.probabilities_size = shares.size;
            wanted.probability_bounds = share_bounds.data.get(), wanted.probability_bounds_size = share_bounds.size;
        }
        wanted.certified = certified.data.get(), wanted.certified_size = certified.size;
        return wanted;
    }

    bool operator==(const Room& other) const {
        return labels == other.labels && values == other.values && bounds == other.bounds && shares == other.shares &&
               share_bounds == other.share_bounds && certified == other.certified;
    }

    Exact<std::uint32_t> labels;
    Exact<double> values, bounds, shares, share_bounds;
    Exact<std::uint8_t> certified;
};

}  // namespace

// Calls with and without threads of their own, over more rows than one piece of work has; the memory that a model keeps
// for one caller is wanted by all of them. Others come and go beside. To be run under ThreadSanitizer, too.
TEST(one_model_many_threads) {
    constexpr std::size_t n_rows = 300;
    for (const Bytes& bytes : golden_artifacts()) {
        const Model model(bytes);
        const std::size_t d = approxsvm_n_features(model.handle);
        Exact<double> rows(n_rows * d);
        for (std::size_t k = 0; k < rows.size; ++k) rows.data[k] = static_cast<double>(7 * k % 64) / 64.0;
        Room expected(model.handle, n_rows);
        const approxsvm_request wanted = expected.request();
        CHECK_EQ(approxsvm_evaluate_f64(model.handle, rows.data.get(), rows.size, &wanted, nullptr), APPROXSVM_OK);
        std::vector<Room> found;
        for (int k = 0; k < 4; ++k) found.emplace_back(model.handle, n_rows);
        std::vector<std::thread> threads;
        for (std::size_t k = 0; k < found.size(); ++k) {
            threads.emplace_back([&, k] {
                approxsvm_request mine = found[k].request();
                mine.n_threads = static_cast<std::int32_t>(1 + k % 2);
                for (int left = 3; left > 0; --left) {
                    approxsvm_evaluate_f64(model.handle, rows.data.get(), rows.size, &mine, nullptr);
                    if (k == 0) CHECK_EQ(Model(Bytes(bytes)).status, APPROXSVM_OK);
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        for (const Room& mine : found) CHECK(mine == expected);
    }
}

// A polynomial kernel of a million features, whose support vectors are all zero and take four bytes each: 25 GB once
// they are unpacked.
TEST(memory_that_a_small_file_asks_for) {
    constexpr std::size_t n_sv = 2000, n_features = std::size_t{1} << 20;
    artifact_writer::Model model;
    model.mode = artifact_writer::exact;
    model.kernel = 1;
    model.task = 1, model.label_kind = 0, model.n_labels = 0, model.center_kind = 0;
    model.exact_check_rows = {1.0, 0.0, 1e300};
    Bytes zeros(24 + 4 * n_sv);  // how many numbers of each vector are not zero, in four bytes
    artifact_writer::put(zeros, 0, std::uint32_t{1});
    artifact_writer::put(zeros, 8, std::uint32_t{4});
    Bytes header = artifact_writer::header_of(model, 0);
    artifact_writer::put(header, 40, std::uint64_t{n_features});
    artifact_writer::put(header, 176, std::uint64_t{n_features});
    const Bytes bytes = artifact_writer::laid_out(
        header, {{artifact_writer::decisions, artifact_writer::bytes_of(std::vector<double>(4))},
                 {artifact_writer::dual_coef, artifact_writer::bytes_of(std::vector<double>(n_sv, 1.0))},
                 {artifact_writer::support_vectors, zeros},
                 {artifact_writer::exact_check_rows, artifact_writer::bytes_of(model.exact_check_rows)},
                 {artifact_writer::polynomial, artifact_writer::bytes_of(std::vector<double>(2))}});
    const Model opened(bytes);
    CHECK_EQ(opened.status, APPROXSVM_BAD_SUPPORT_VECTORS);
    const std::string message = opened.error.message;
    CHECK(message.find("far more than a file of " + std::to_string(bytes.size()) + " bytes") != std::string::npos);
}

TEST(file_names_are_utf8) {
    const std::string name = "approxsvm_mod\xc3\xa8le_\xe6\xa8\xa1.asvm";
    const std::filesystem::path path = std::filesystem::temp_directory_path() / std::filesystem::u8path(name);
    const Bytes bytes = golden_artifacts().front();
    {
        std::ofstream file(path, std::ios::binary);
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
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
    for (const std::vector<std::int64_t>& starts :
         {std::vector<std::int64_t>{0, 3}, {-1, 2}, {2, 1}, {0, most}, {least, 0}, {most, most}}) {
        CHECK_EQ(approxsvm_evaluate_csr_f64_i64(model.handle, values, columns, 2, starts.data(), 1, &wanted, nullptr),
                 APPROXSVM_BAD_ROW_STARTS);
    }
    CHECK_EQ(approxsvm_evaluate_csr_f64_i64(model.handle, values, columns, 2, &most, SIZE_MAX, &wanted, nullptr),
             APPROXSVM_BAD_ROW_STARTS);
}
