#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "artifact_models.hpp"
#include "check.hpp"
#include "exercise.hpp"
#include "fault_text.hpp"
#include "predictor.hpp"

// What an artifact says arrives, and a fault says what is wrong. What breaks a MUST of models/FORMAT.md is written
// once, in tests/broken_artifacts.py.

using namespace artifact_models;
using artifact_writer::approximate;
using artifact_writer::certified;
using artifact_writer::exact;
using artifact_writer::written;

namespace {

constexpr std::size_t n_features_at = 40;

/// Opens, replays and uses everything on every target.
void expect_usable(const artifact_writer::Model& model) {
    const Bytes bytes = written(model);
    const ExactCopy copy(bytes);
    ModelView view;
    CHECK_EQ(open_artifact(copy.data(), bytes.size(), view), Status::ok);
    CHECK_EQ(exercise::complaint_about(view), "");
    for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
        const dispatch::Predictor predictor(copy.data(), bytes.size(), *kernels);
        CHECK_EQ(predictor.model().n_features, model.n_features());
    }
}

}  // namespace

// Minus zero is at least zero, and has a sign that tables of bounds, looked up by the bits of a distance, do not know.
TEST(a_gamma_of_minus_zero_is_zero) {
    for (const std::uint32_t mode : {approximate, certified}) {
        artifact_writer::Model model = small_model(mode);
        model.gamma = -0.0;
        const Bytes bytes = written(model);
        const ExactCopy copy(bytes);
        ModelView view;
        CHECK_EQ(open_artifact(copy.data(), bytes.size(), view), Status::ok);
        CHECK(!std::signbit(view.gamma) && !std::signbit(view.half_theta));
        CHECK_EQ(exercise::complaint_about(view), "");
    }
}

TEST(valid_artifacts_are_accepted) {
    for (std::size_t d = 1; d <= 20; ++d) {
        for (const std::uint32_t mode : all_modes) {
            for (std::uint32_t task = 0; task <= 2; ++task) {
                artifact_writer::Model model = mode == approximate ? approximate_model(d) : true_model(mode, d, d / 2);
                if (task != 0) drop_labels(model, task);
                if (d % 2 == 0) model.feature_names.clear();
                if (d % 3 == 0) model.expansions[0].direction.clear();
                model.storage = static_cast<std::uint32_t>(d % 3);
                model.value_kind = static_cast<std::uint32_t>(d % 4);
                if (d / 2 == 0) model.value_kind = 0;  // nothing to make a dictionary of
                if (task == 1) model.tolerance = 0.125;
                expect_usable(model);
            }
        }
    }
    for (const std::uint32_t mode : {approximate, certified}) {
        for (std::uint32_t degree = 1; degree <= 6; ++degree) {
            for (const std::size_t n_centers : std::vector<std::size_t>{1, 2, 20}) {
                const std::size_t d = 1 + (degree + n_centers) % 5;
                expect_usable(mode == approximate ? approximate_model(d, degree, n_centers)
                                                  : true_model(mode, d, 4, degree, degree, n_centers));
            }
        }
    }
    CHECK_EQ(with_labels(2, bytes_of(std::vector<double>{0.5, -0.5})), Status::ok);
    CHECK_EQ(with_labels(3, artifact_writer::text_list({"", "\xF4\x8F\xBF\xBF"})), Status::ok);
    CHECK_EQ(with_labels(3, artifact_writer::text_list({"same", "samE"})), Status::ok);
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

TEST(fields_arrive_where_they_belong) {
    const Bytes bytes = written(approximate_model());
    const ExactCopy copy(bytes);
    ModelView model;
    CHECK_EQ(open_artifact(copy.data(), bytes.size(), model), Status::ok);
    CHECK_EQ(model.mode, Mode::approximate);
    CHECK_EQ(model.task, Task::classification);
    CHECK_EQ(model.label_kind, LabelKind::int64);
    CHECK_EQ(model.n_labels, 2u);
    CHECK_EQ(model.first_index, 1u);
    CHECK_EQ(model.n_check_rows, 2u);
    CHECK_EQ(model.n_exact_check_rows, 0u);
    CHECK_EQ(model.n_features, std::size_t{3});
    CHECK_EQ(model.n_sv, std::size_t{0});
    CHECK_EQ(model.gamma, 0.5);
    CHECK_EQ(model.degree, 2);
    CHECK_EQ(model.first_remainder_degree, 9);
    CHECK_EQ(model.n_centers, std::size_t{1});
    CHECK_EQ(model.decisions[0].intercept, 0.25);
    CHECK_EQ(model.expansions[0].constant, 0.5);
    CHECK_EQ(model.input_scale, 1.0);
    CHECK_EQ(model.expansions[0].output_scale, 1.0);
    CHECK_EQ(model.max_sv_norm, 1.5);
    CHECK_EQ(model.max_sv_norm_origin, 2.5);
    CHECK_EQ(model.tolerance, infinite);
    CHECK_EQ(model.half_theta, 0.5f);
    CHECK_EQ(model.center[2], 0.5f);
    CHECK_EQ(model.linear[1], -0.75f);
    CHECK(model.centers == model.center);
    CHECK(model.higher == nullptr);
    CHECK(model.direction == nullptr);
    CHECK_EQ(label_at(model, label_position(0.1)).integer, 3);
    CHECK_EQ(label_at(model, label_position(0.0)).integer, -4);
    CHECK_EQ(label_at(model, label_position(-0.1)).integer, -4);
}

namespace {

std::string printed(const Label& label) {
    std::ostringstream stream;
    stream << label;
    return stream.str();
}

}  // namespace

TEST(labels_print_as_what_they_are) {
    ModelView model{};
    model.task = Task::classification;
    model.n_labels = 2;
    model.label_kind = LabelKind::int64;
    alignas(8) unsigned char bytes[16];
    const std::int64_t integers[] = {-7, std::numeric_limits<std::int64_t>::max()};
    std::memcpy(bytes, integers, sizeof bytes);
    model.labels = bytes;
    CHECK_EQ(printed(label_at(model, 0)), "-7");
    CHECK_EQ(printed(label_at(model, 1)), "9223372036854775807");
    CHECK(label_at(model, 2).kind == LabelKind::none);

    model.label_kind = LabelKind::float64;
    const double numbers[] = {0.1, -1.5e300};
    std::memcpy(bytes, numbers, sizeof bytes);
    CHECK_EQ(printed(label_at(model, 0)), "0.1");
    CHECK_EQ(printed(label_at(model, 1)), "-1.5e+300");

    model.label_kind = LabelKind::text;
    const std::uint32_t lengths[] = {2, 4};
    std::memcpy(bytes, lengths, 8);
    std::memcpy(bytes + 8, "nokept", 6);
    CHECK_EQ(printed(label_at(model, 0)), "no");
    CHECK_EQ(printed(label_at(model, 1)), "kept");

    model.task = Task::one_class;
    model.label_kind = LabelKind::none;
    model.n_labels = 0;
    CHECK_EQ(printed(label_at(model, 0)), "1");
    CHECK_EQ(printed(label_at(model, 1)), "-1");
    model.task = Task::regression;
    CHECK_EQ(printed(label_at(model, 0)), "");
}

TEST(fields_of_the_exact_model_arrive_where_they_belong) {
    for (const std::uint32_t mode : {certified, exact}) {
        artifact_writer::Model written_model = true_model(mode, 3, 5);
        written_model.tolerance = 0.5;
        written_model.total_norm = 12.0;
        written_model.sum_moduli = 13.0;
        const Bytes bytes = written(written_model);
        const ExactCopy copy(bytes);
        ModelView model;
        CHECK_EQ(open_artifact(copy.data(), bytes.size(), model), Status::ok);
        CHECK_EQ(model.mode, mode == certified ? Mode::certified : Mode::exact);
        CHECK_EQ(model.tolerance, 0.5);
        CHECK_EQ(model.n_sv, std::size_t{5});
        CHECK_EQ(model.n_exact_check_rows, 2u);
        CHECK_EQ(model.n_check_rows, mode == certified ? 2u : 0u);
        CHECK_EQ(model.dual_coef[4], written_model.dual_coef[4]);
        CHECK_EQ(model.decisions[0].total, 12.0);
        CHECK_EQ(model.decisions[0].sum_moduli, 13.0);
        CHECK_EQ(model.linear != nullptr, mode == certified);
        CHECK_EQ(model.direction != nullptr, mode == certified);
        if (mode == certified) CHECK_EQ(model.direction[0], written_model.expansions[0].direction[0]);
        SupportVectorReader reader(model);
        for (const std::vector<double>& expected : written_model.support_vectors) {
            std::vector<double> vector(3, -1.0);
            reader.next(vector.data());
            CHECK(vector == expected);
        }
    }
}

TEST(what_belongs_to_each_center_arrives_where_it_belongs) {
    for (const std::uint32_t degree : {2u, 4u}) {
        artifact_writer::Model written_model = true_model(certified, 3, 5, 1, degree, 4);
        written_model.first_remainder_degree = 6;
        written_model.plan = "na\xC3\xAFve";
        for (std::size_t c = 0; c < 4; ++c) {
            artifact_writer::Expansion& expansion = written_model.expansions[c];
            const double first = 100.0 * static_cast<double>(c);
            for (std::size_t k = 0; k < 9; ++k) expansion.norms[k] = first + static_cast<double>(k);
            expansion.remainder = first + 9;
            expansion.contraction = c == 0 ? 1.0 : c == 1 ? 0.5 : 0.25;
            expansion.coefficient_error = first + 10;
            expansion.max_sv_norm = first + 11;
            expansion.direction_scale = first + 12;
            expansion.direction_trace = first + 13;
            expansion.direction_error = first + 14;
        }
        const Bytes bytes = written(written_model);
        const ExactCopy copy(bytes);
        ModelView model;
        CHECK_EQ(open_artifact(copy.data(), bytes.size(), model), Status::ok);
        CHECK_EQ(model.degree, static_cast<int>(degree));
        CHECK_EQ(model.first_remainder_degree, 6);
        CHECK_EQ(model.n_centers, std::size_t{4});
        for (std::size_t c = 0; c < 4; ++c) {
            const artifact_writer::Expansion& expected = written_model.expansions[c];
            const ExpansionNumbers& found = model.expansions[c];
            const double first = 100.0 * static_cast<double>(c);
            CHECK_EQ(found.constant, expected.constant);
            CHECK_EQ(found.output_scale, expected.output_scale);
            CHECK_EQ(found.norms[0], first);
            CHECK_EQ(found.norms[8], first + 8);
            const double rest[] = {found.coefficient_error, found.max_sv_norm,     found.direction_scale,
                                   found.direction_trace,   found.direction_error, found.remainder};
            for (std::size_t k = 0; k < 6; ++k) CHECK_EQ(rest[k], first + (k < 5 ? 10.0 + static_cast<double>(k) : 9));
            CHECK_EQ(found.contraction, expected.contraction);
            const Expansion expansion = expansion_of(model, c);
            for (std::size_t j = 0; j < 3; ++j) {
                CHECK_EQ(expansion.center[j], expected.center[j]);
                CHECK_EQ(expansion.linear[j], expected.linear[j]);
            }
            CHECK_EQ(expansion.quadratic[1], expected.triangle[1]);
            CHECK_EQ(expansion.direction != nullptr, degree == 2);
            if (degree == 2) CHECK_EQ(expansion.direction[1], expected.direction[1]);
            if (degree != 4) continue;
            CHECK_EQ(part_of_degree(expansion, 3, 3)[0], expected.higher[0]);
            CHECK_EQ(part_of_degree(expansion, 3, 4)[0], expected.higher[10]);
            CHECK_EQ(part_of_degree(expansion, 3, 4)[14], expected.higher[24]);
        }
        CHECK_EQ(model.router.n_groups, std::size_t{1});
        CHECK_EQ(model.router.starts[1], 1u);
        CHECK_EQ(model.router.members[3], 3u);
        CHECK_EQ(model.router.members[15], 3u);
        CHECK_EQ(model.router.groups[0], written_model.router.panels[0]);
        CHECK_EQ(model.router.panels[0], written_model.router.panels[64]);
    }
}

TEST(golden_artifacts_are_read) {
    std::size_t n = 0;
    for (const auto& file : std::filesystem::directory_iterator(APPROXSVM_GOLDEN_DIR)) {
        if (file.path().extension() != ".asvm") continue;
        std::ifstream stream(file.path(), std::ios::binary);
        const Bytes bytes{std::istreambuf_iterator<char>(stream), {}};
        const ExactCopy copy(bytes);
        for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
            try {
                dispatch::Predictor(copy.data(), bytes.size(), *kernels);
            } catch (const dispatch::ArtifactError& error) {
                check::report(__FILE__, __LINE__, file.path().string() + ": " + error.what());
            }
        }
        ++n;
    }
    if (n == 0) std::printf("  skipped: no *.asvm in %s\n", APPROXSVM_GOLDEN_DIR);
}

// --- the header ---

TEST(source_is_for_people_only) {
    for (std::size_t offset = 144; offset < 176; ++offset) CHECK_EQ(with(offset, std::uint8_t{255}), Status::ok);
}

TEST(a_fault_names_section_field_and_both_numbers) {
    const auto refused = [](Bytes bytes) {
        artifact_writer::seal(bytes);
        const ExactCopy copy(bytes);
        Model model;
        ArtifactFault fault;
        const Status status = model.open({copy.data(), bytes.size()}, &fault);
        CHECK(status != Status::ok);
        return dispatch::text_of(status, fault);
    };
    Bytes bytes = written(small_model(certified));
    put(bytes, n_features_at, ~std::uint64_t{0});
    CHECK_EQ(refused(bytes), "n_features is 18446744073709551615, expected 1 to 1048576");
    artifact_writer::Model model = small_model(certified);
    model.center[1] = std::numeric_limits<float>::quiet_NaN();
    CHECK_EQ(refused(written(model)), "number 1 of section center is nan, expected a finite number");
    CHECK_EQ(dispatch::text_of(Status::misaligned, ArtifactFault{}), message(Status::misaligned));
}
