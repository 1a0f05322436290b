#include <approxsvm/approxsvm.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "artifact_models.hpp"
#include "check.hpp"

// Packed support vectors: every storage and every kind of values comes back exactly. What breaks a MUST about them is
// in tests/broken_artifacts.py.

using namespace artifact_models;
using artifact_writer::certified;
using artifact_writer::exact;

namespace {

void for_all_kinds(const std::function<void(std::uint32_t, std::uint32_t)>& test) {
    for (std::uint32_t storage = 0; storage < 3; ++storage) {
        for (std::uint32_t kind = 0; kind < 4; ++kind) test(storage, kind);
    }
}

/// Reads what was packed.
void expect_round_trip(const std::vector<std::vector<double>>& vectors, std::size_t d, std::uint32_t storage,
                       std::uint32_t kind) {
    artifact_writer::Model model = true_model(exact, d, vectors.size());
    model.support_vectors = vectors;
    model.feature_names.clear();
    model.storage = storage;
    model.value_kind = kind;
    const Bytes bytes = artifact_writer::written(model);
    const ExactCopy copy(bytes);
    ModelView view;
    CHECK_EQ(open_artifact(copy.data(), bytes.size(), view), Status::ok);
    SupportVectorReader reader(view);
    for (const std::vector<double>& expected : vectors) {
        std::vector<double> vector(d, -1.0);
        reader.next(vector.data());
        CHECK(vector == expected);
    }
}

}  // namespace

TEST(packed_vectors_come_back_exactly) {
    for_all_kinds([](std::uint32_t storage, std::uint32_t kind) {
        for (const std::size_t d : std::vector<std::size_t>{1, 2, 7, 255, 256, 257, 65535, 65536}) {
            const std::size_t n_sv = d < 1000 ? 9 : 2;
            std::vector<std::vector<double>> vectors(n_sv, std::vector<double>(d));
            for (std::size_t i = 0; i < n_sv; ++i) {
                for (std::size_t j = i; j < d; j += 1 + i) vectors[i][j] = 0.25 * static_cast<double>((i + j) % 200);
            }
            vectors[n_sv - 1].assign(d, 0.5);  // a full row after an emptier one
            expect_round_trip(vectors, d, storage, kind);
        }
    });
    const double limit = std::numeric_limits<double>::max(), tiny = std::numeric_limits<double>::denorm_min();
    for (std::uint32_t storage = 0; storage < 3; ++storage) {
        for (const std::uint32_t kind : {0u, 2u, 3u}) {
            expect_round_trip({{limit, -limit, tiny}, {0, 0, 0}, {1e-300, 0.1, -tiny}}, 3, storage, kind);
        }
        for (const std::uint32_t kind : {1u, 2u, 3u}) expect_round_trip({{3, 3}, {3, 3}}, 2, storage, kind);
        expect_round_trip({{0x1p127, -0x1p-149}}, 2, storage, 1);
    }
    std::vector<std::vector<double>> many(300, std::vector<double>(220));  // 65,536 different values, and no more
    for (std::size_t k = 0; k < 300 * 220; ++k) many[k / 220][k % 220] = static_cast<double>(k % 65536);
    for (std::uint32_t storage = 0; storage < 3; ++storage) expect_round_trip(many, 220, storage, 3);
    for (const std::uint32_t mode : {certified, exact}) {
        for (const std::uint32_t storage : {0u, 1u}) {
            artifact_writer::Model none = true_model(mode, 3, 0);
            none.storage = storage;
            CHECK_EQ(opened(artifact_writer::written(none)), Status::ok);
        }
    }
}
