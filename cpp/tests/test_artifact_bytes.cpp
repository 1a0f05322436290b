#include <approxsvm/approxsvm.hpp>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "artifact_models.hpp"
#include "check.hpp"
#include "exercise.hpp"

// Bytes that nobody meant: artifacts of every mode cut short, shifted and corrupted.

using namespace artifact_models;

namespace {

constexpr std::size_t checksum_at = 24;

/// Opens, and when that succeeds uses everything there is: any access outside the exact memory is a finding.
Status exercised(const Bytes& bytes) {
    const ExactCopy copy(bytes);
    ModelView model;
    const Status status = open_artifact(copy.data(), bytes.size(), model);
    if (status == Status::ok) CHECK_EQ(exercise::complaint_about(model), "");
    return status;
}

/// Every mode, and packed support vectors of every kind, some of them in both modes that have any.
std::vector<artifact_writer::Model> models() {
    std::vector<artifact_writer::Model> all = {approximate_model(), regression_model()};
    for (const std::uint32_t mode : {artifact_writer::approximate, artifact_writer::certified}) {
        all.push_back(mode == artifact_writer::approximate ? approximate_model(2, 1, 3)
                                                           : true_model(mode, 2, 3, 0, 2, 3));
        all.push_back(mode == artifact_writer::approximate ? approximate_model(2, 6) : true_model(mode, 2, 3, 0, 3));
    }
    for (const std::uint32_t mode : {artifact_writer::certified, artifact_writer::exact}) {
        for (std::uint32_t kind = 0; kind < 8; kind += mode == artifact_writer::certified ? 5 : 1) {
            artifact_writer::Model model = true_model(mode, 2, 3, kind);
            model.storage = kind % 3;
            model.value_kind = kind / 2;
            if (kind % 3 == 0) drop_labels(model, 1);
            if (kind % 4 == 1) model.expansions[0].direction.clear();
            all.push_back(model);
        }
    }
    all.push_back(polynomial_model(artifact_writer::approximate, 2));
    all.push_back(polynomial_model(artifact_writer::certified, 1));
    all.push_back(polynomial_model(artifact_writer::certified, 2));
    all.push_back(polynomial_model(artifact_writer::exact, 3));
    all.push_back(cosine_model(2, 3));
    return all;
}

/// Four changes of a byte; under sanitizers one of them in turn.
constexpr unsigned changes[] = {1u, 0x40u, 0x80u, 255u};
constexpr std::size_t changes_apart = check::under_sanitizer ? 4 : 1;

/// Every byte of every second model changed, and the checksum made right.
void every_byte_changed(std::size_t first) {
    const std::vector<artifact_writer::Model> all = models();
    for (std::size_t k = first; k < all.size(); k += 2) {
        Bytes bytes = artifact_writer::written(all[k]);
        std::size_t n_accepted = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            const unsigned char right = bytes[i];
            for (std::size_t c = i % changes_apart; c < 4; c += changes_apart) {
                bytes[i] = static_cast<unsigned char>(right ^ changes[c]);
                put(bytes, checksum_at, artifact_writer::checksum_of(bytes));
                n_accepted += exercised(bytes) == Status::ok;
            }
            bytes[i] = right;
        }
        CHECK(n_accepted > 0);  // coefficients may change, and texts for people
    }
}

}  // namespace

TEST(truncated_at_every_byte) {
    for (const artifact_writer::Model& written_model : models()) {
        const Bytes bytes = artifact_writer::written(written_model);
        CHECK_EQ(exercised(bytes), Status::ok);
        ModelView model;
        for (std::size_t n = 0; n < bytes.size(); ++n) {
            const Status expected = n == 0 ? Status::bad_magic : n < 192 ? Status::truncated : Status::size_mismatch;
            CHECK_EQ(open_artifact(ExactCopy(bytes, n).data(), n, model), expected);
            if (n < 192) continue;
            Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
            seal(cut);
            const Status status = exercised(cut);
            CHECK(status == Status::truncated || status == Status::bad_section);
        }
    }
}

TEST(misaligned_addresses) {
    for (const std::uint32_t mode : all_modes) {
        const Bytes bytes = artifact_writer::written(small_model(mode));
        std::vector<unsigned char> memory(bytes.size() + 16);
        unsigned char* const aligned = memory.data() + (8 - reinterpret_cast<std::uintptr_t>(memory.data()) % 8) % 8;
        ModelView model;
        for (std::size_t shift = 0; shift <= 8; ++shift) {
            std::memcpy(aligned + shift, bytes.data(), bytes.size());
            const Status expected = shift % 8 == 0 ? Status::ok : Status::misaligned;
            CHECK_EQ(open_artifact(aligned + shift, bytes.size(), model), expected);
        }
    }
}

TEST(every_corrupt_byte_is_refused) {
    for (const std::uint32_t mode : all_modes) {
        Bytes bytes = artifact_writer::written(small_model(mode));
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            const unsigned char right = bytes[i];
            for (const unsigned change : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u, 255u, 0x55u}) {
                bytes[i] = static_cast<unsigned char>(right ^ change);
                CHECK(opened(bytes) != Status::ok);
            }
            bytes[i] = right;
        }
        CHECK_EQ(opened(bytes), Status::ok);
    }
}

TEST(several_classes_with_any_byte_changed) {
    std::ifstream stream(APPROXSVM_GOLDEN_DIR "/iris_classes.asvm", std::ios::binary);
    Bytes bytes{std::istreambuf_iterator<char>(stream), {}};
    std::size_t n_accepted = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 1 + i / 50) {
        const unsigned char right = bytes[i];
        for (const unsigned change : {1u, 0x40u, 255u}) {
            bytes[i] = static_cast<unsigned char>(right ^ change);
            put(bytes, checksum_at, artifact_writer::checksum_of(bytes));
            n_accepted += exercised(bytes) == Status::ok;
        }
        bytes[i] = right;
    }
    CHECK(n_accepted > 0);
}

// Two halves, which can run side by side.
TEST(every_corrupt_byte_with_its_checksum_repaired_in_even_models) {
    every_byte_changed(0);
}
TEST(every_corrupt_byte_with_its_checksum_repaired_in_odd_models) {
    every_byte_changed(1);
}
