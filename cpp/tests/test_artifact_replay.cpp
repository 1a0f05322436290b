#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "artifact_models.hpp"
#include "check.hpp"
#include "predictor.hpp"

// Check rows are replayed, by every target.

using namespace artifact_models;
using artifact_writer::approximate;
using artifact_writer::certified;
using artifact_writer::exact;

TEST(must_check_row_value) {
    const auto replayed = [](const Bytes& bytes, const dispatch::TargetTable& kernels) {
        const ExactCopy copy(bytes);
        ModelView model;
        CHECK_EQ(open_artifact(copy.data(), bytes.size(), model), Status::ok);
        const std::unique_ptr<unsigned char[]> memory(new unsigned char[kernels.prepared_bytes(model)]);
        const void* const prepared = kernels.prepare(model, memory.get());
        const std::unique_ptr<unsigned char[]> room(new unsigned char[kernels.replay_bytes(prepared)]);
        return kernels.replay(prepared, room.get());
    };
    for (const std::size_t d : std::vector<std::size_t>{1, 3, 8, 20, 130}) {
        artifact_writer::Model model = approximate_model(d);
        artifact_writer::add_check_rows(model, 4);
        const Bytes bytes = artifact_writer::written(model);
        for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
            CHECK_EQ(replayed(bytes, *kernels), Status::ok);
            std::size_t n_missed = 0, n_changed = 0;
            for (const std::uint32_t section : {artifact_writer::linear, artifact_writer::quadratic}) {
                const std::size_t n = section == artifact_writer::linear ? d : d * (d + 1) / 2;
                for (std::size_t k = 0; k < n; k += 1 + n / 50, ++n_changed) {
                    Bytes changed = bytes;
                    const std::size_t offset = content_of(bytes, section) + 4 * k;
                    const float limit = section == artifact_writer::linear ? 1.0f : 2.0f;
                    put(changed, offset, get<float>(changed, offset) > 0 ? -limit : limit);
                    seal(changed);
                    n_missed += replayed(changed, *kernels) == Status::ok;
                }
            }
            CHECK(n_changed > 1);
            // Among many features one coefficient may count less than the roundings of all.
            CHECK(d <= 20 ? n_missed == 0 : n_missed <= n_changed / 25);
            const std::size_t first = content_of(bytes, artifact_writer::check_rows);
            for (const double amplitude : {1e300, 1e38, 0.3}) {
                Bytes changed = bytes;
                put(changed, first, amplitude);
                seal(changed);
                CHECK_EQ(replayed(changed, *kernels), Status::check_row_mismatch);
            }
            Bytes last_value = bytes;
            put(last_value, first + 24 * 3 + 8, get<double>(bytes, first + 24 * 3 + 8) + 0.01);
            seal(last_value);
            CHECK_EQ(replayed(last_value, *kernels), Status::check_row_mismatch);
            CHECK_THROWS_WITH(dispatch::Predictor(ExactCopy(last_value).data(), last_value.size(), *kernels),
                              message(Status::check_row_mismatch));
        }
    }
}

TEST(must_check_rows_reach_every_degree_and_center) {
    for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
        const auto refuses = [&](Bytes changed) {
            seal(changed);
            const ExactCopy copy(changed);
            CHECK_THROWS_WITH(dispatch::Predictor(copy.data(), changed.size(), *kernels),
                              message(Status::check_row_mismatch));
        };
        for (std::uint32_t degree = 3; degree <= 6; ++degree) {
            artifact_writer::Model model = approximate_model(2, degree);
            artifact_writer::add_check_rows(model, 4);
            const Bytes bytes = artifact_writer::written(model);
            for (std::size_t k = 0; k < model.expansions[0].higher.size(); ++k) {
                Bytes changed = bytes;
                const std::size_t offset = content_of(bytes, artifact_writer::higher) + 4 * k;
                put(changed, offset, get<float>(changed, offset) > 0 ? -720.0f : 720.0f);
                refuses(changed);
            }
        }
        // Row number k is about center number k * n_centers / n_rows.
        artifact_writer::Model model = approximate_model(3, 2, 7);
        artifact_writer::add_check_rows(model, 3);
        const Bytes bytes = artifact_writer::written(model);
        for (std::size_t c = 0; c < 7; ++c) {
            Bytes changed = bytes;
            put(changed, content_of(bytes, artifact_writer::linear) + 12 * c, -1.0f);
            if (c == 0 || c == 2 || c == 4) {
                refuses(changed);
                continue;
            }
            seal(changed);
            const ExactCopy copy(changed);
            CHECK_EQ(dispatch::Predictor(copy.data(), changed.size(), *kernels).model().n_centers, std::size_t{7});
        }
    }
}

TEST(must_exact_check_row_value) {
    for (const std::uint32_t mode : {certified, exact}) {
        for (const std::size_t d : std::vector<std::size_t>{1, 3, 8, 20}) {
            artifact_writer::Model model = true_model(mode, d, 7, d);
            artifact_writer::add_exact_check_rows(model, 4);
            const Bytes bytes = artifact_writer::written(model);
            for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
                const auto refuses = [&](Bytes changed) {
                    seal(changed);
                    const ExactCopy copy(changed);
                    CHECK_THROWS_WITH(dispatch::Predictor(copy.data(), changed.size(), *kernels),
                                      message(Status::check_row_mismatch));
                };
                const ExactCopy copy(bytes);
                CHECK_EQ(dispatch::Predictor(copy.data(), bytes.size(), *kernels).model().n_sv, std::size_t{7});
                const std::size_t rows = content_of(bytes, artifact_writer::exact_check_rows);
                for (std::size_t k = 0; k < 4; ++k) {
                    const std::size_t value_at = rows + 24 * k + 8;
                    for (const double wrong : {0.01, -1e-8, 1e300}) {
                        Bytes changed = bytes;
                        put(changed, value_at, get<double>(bytes, value_at) + wrong);
                        refuses(changed);
                    }
                }
                for (std::size_t i = 0; i < 7; ++i) {
                    Bytes changed = bytes;
                    const std::size_t offset = content_of(bytes, artifact_writer::dual_coef) + 8 * i;
                    put(changed, offset, get<double>(bytes, offset) * 1.001);
                    refuses(changed);
                }
                for (std::size_t k = 0; k < 7 * d; ++k) {
                    artifact_writer::Model moved = model;
                    moved.support_vectors[k / d][k % d] += 0.25;
                    refuses(artifact_writer::written(moved));
                }
            }
        }
    }
}
