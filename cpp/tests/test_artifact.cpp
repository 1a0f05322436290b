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
#include "predictor.hpp"

// What an artifact says arrives, and every MUST of models/FORMAT.md about the header and the section table, by the name
// that it has there. The sections are in test_artifact_sections.cpp.

using namespace artifact_models;
using artifact_writer::approximate;
using artifact_writer::certified;
using artifact_writer::exact;
using artifact_writer::written;

namespace {

// Header offsets of the format.
constexpr std::size_t version_at = 8, n_sections_at = 12, file_bytes_at = 16, checksum_at = 24, task_at = 28,
                      mode_at = 32, degree_at = 36, n_features_at = 40, first_index_at = 56, n_labels_at = 60,
                      gamma_at = 64, input_scale_at = 72, tolerance_at = 80, max_sv_norm_at = 88,
                      max_sv_norm_origin_at = 96, n_centers_at = 104, n_decisions_at = 108, n_raw_features_at = 176,
                      first_remainder_degree_at = 112, center_kind_at = 116, label_kind_at = 120, label_dtype_at = 124,
                      majority_only_at = 188;

std::size_t entry_at(std::size_t position) {
    return 192 + 24 * position;
}

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
        CHECK_EQ(model.decisions[0].total_norm, 12.0);
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

// --- several classes ---

Bytes golden(const std::string& name) {
    std::ifstream stream(APPROXSVM_GOLDEN_DIR "/" + name + ".asvm", std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}
Bytes golden_of_classes() {
    return golden("iris_classes");
}

/// Where a section of an artifact starts.
std::size_t start_of(const Bytes& bytes, std::uint32_t identifier) {
    for (std::size_t k = 0; k < get<std::uint32_t>(bytes, n_sections_at); ++k) {
        if (get<std::uint32_t>(bytes, entry_at(k)) == identifier)
            return static_cast<std::size_t>(get<std::uint64_t>(bytes, entry_at(k) + 8));
    }
    return 0;
}

// --- an ensemble

Bytes golden_ensemble() {
    return golden("iris_ensemble");
}

/// The status of the ensemble when its first member is changed, and both are sealed again.
template <class Change>
Status with_member(const Change& change) {
    Bytes bytes = golden_ensemble();
    const std::size_t at = start_of(bytes, artifact_writer::members);
    const std::size_t n_bytes = static_cast<std::size_t>(get<std::uint64_t>(bytes, at + file_bytes_at));
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    Bytes member(first, first + static_cast<std::ptrdiff_t>(n_bytes));
    change(member);
    std::copy(member.begin(), member.end(), first);
    artifact_writer::seal(bytes);
    return opened(bytes);
}

template <class T>
Status with_field_of_member(std::size_t offset, T value) {
    return with_member([=](Bytes& member) {
        put(member, offset, value);
        artifact_writer::seal(member);
    });
}

TEST(must_members) {
    const Bytes bytes = golden_ensemble();
    CHECK_EQ(opened(bytes), Status::ok);
    const Bytes longer_sections = [&] {
        Bytes changed = bytes;  // the ensemble's section ends before its last member does
        for (std::size_t k = 0; k < get<std::uint32_t>(changed, n_sections_at); ++k) {
            if (get<std::uint32_t>(changed, entry_at(k)) != artifact_writer::members) continue;
            put(changed, entry_at(k) + 16, get<std::uint64_t>(changed, entry_at(k) + 16) - 64);
        }
        artifact_writer::seal(changed);
        return changed;
    }();
    CHECK(opened(longer_sections) != Status::ok);
    for (const double wrong : {0.5, 1.0}) CHECK_EQ(with(gamma_at, wrong, bytes), Status::bad_header);
    for (const double wrong : {0.5, 2.0}) CHECK_EQ(with(input_scale_at, wrong, bytes), Status::bad_header);
    CHECK_EQ(with(tolerance_at, 1.0, bytes), Status::bad_header);
    CHECK_EQ(with(184, 1u, bytes), Status::bad_header);
    for (const std::uint32_t n : {1u, 2u, 3u}) CHECK_EQ(with(n_decisions_at, n, bytes), Status::bad_header);
    for (const std::uint32_t n : {1u, 2u}) CHECK_EQ(with(degree_at, n, bytes), Status::bad_header);
    for (const std::uint32_t mode : {0u, 1u, 2u}) CHECK(with(mode_at, mode, bytes) != Status::ok);
    for (const std::uint32_t task : {1u, 2u}) CHECK(with(task_at, task, bytes) != Status::ok);
    const std::uint64_t n_raw = get<std::uint64_t>(bytes, n_raw_features_at);
    CHECK(with(n_features_at, n_raw + 1, bytes) != Status::ok);
    CHECK(with(n_raw_features_at, n_raw + 1, bytes) != Status::ok);

    CHECK_EQ(with_member([](Bytes&) {}), Status::ok);
    CHECK_EQ(with_field_of_member(mode_at, 3u), Status::bad_section);
    CHECK_EQ(with_field_of_member(version_at, 5u), Status::unsupported_version);
    CHECK_EQ(with_field_of_member(std::size_t{0}, std::uint8_t{0}), Status::bad_magic);
    CHECK_EQ(with_member([](Bytes& member) { member.back() ^= 1; }), Status::checksum_mismatch);
    for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{192}, std::uint64_t{1} << 20, ~std::uint64_t{0}}) {
        CHECK(with_member([=](Bytes& member) { put(member, file_bytes_at, n); }) != Status::ok);
    }
    CHECK(with_field_of_member(n_raw_features_at, n_raw + 1) != Status::ok);
    // Other labels, and no probabilities.
    CHECK_EQ(with_member([](Bytes& member) {
                 put(member, start_of(member, artifact_writer::labels) + 12, std::uint8_t{'x'});  // the first letter
                 artifact_writer::seal(member);
             }),
             Status::bad_labels);
    CHECK(with_member([](Bytes& member) {
              put(member, start_of(member, artifact_writer::outputs) + 8, 0u);
              artifact_writer::seal(member);
          }) != Status::ok);
}

TEST(must_class_counts) {
    const Bytes bytes = golden_of_classes();
    const std::size_t counts = start_of(bytes, artifact_writer::class_counts);
    for (std::size_t c = 0; c < 3; ++c) {
        const std::uint32_t right = get<std::uint32_t>(bytes, counts + 4 * c);
        CHECK_EQ(with(counts + 4 * c, right, bytes), Status::ok);
        for (const std::uint32_t wrong : {right + 1, right - 1, ~0u})
            CHECK_EQ(with(counts + 4 * c, wrong, bytes), Status::bad_section);
    }
}

TEST(must_majority_classes) {
    const Bytes bytes = golden_of_classes();
    const std::size_t majority_classes = start_of(bytes, artifact_writer::majority_classes);
    for (std::size_t c = 0; c < 4; ++c) {
        for (const std::uint32_t good : {0u, 1u, 2u}) CHECK_EQ(with(majority_classes + 4 * c, good, bytes), Status::ok);
        for (const std::uint32_t bad : {3u, ~0u})
            CHECK_EQ(with(majority_classes + 4 * c, bad, bytes), Status::bad_section);
    }
}

// Of ten functions in two stages: five classes, each against the others.
TEST(must_subspaces) {
    const Bytes bytes = golden("digits_classes");
    ModelView view;
    CHECK_EQ(opened(bytes, view), Status::ok);
    const std::size_t n_forms = 4, last = view.subspaces.n_coordinates, d = view.n_features;
    const std::size_t at = start_of(bytes, artifact_writer::subspaces), skew = at + 16, counts = skew + 8,
                      known = counts + 4 * (2 + n_forms), basis = known + 2 * n_forms * 6 * 8,
                      vectors = basis + 4 * last * d;
    std::size_t n_listed = 0;
    for (std::size_t f = 0; f <= n_forms; ++f) n_listed += get<std::uint32_t>(bytes, counts + 4 * f);
    const std::size_t coef = vectors + 4 * n_listed * last;
    const float first_coef = get<float>(bytes, coef);
    std::size_t second = coef + 4;
    while (get<float>(bytes, second) == 0.0f) second += 4;
    CHECK(first_coef != 0.0f);
    CHECK_EQ(with(skew, 0x1p-10, bytes), Status::ok);
    CHECK_EQ(with(coef, std::copysign(0x1p-60f, first_coef), bytes), Status::ok);
    for (const std::uint32_t n_stages : {0u, 1u, 3u, 9u, ~0u}) CHECK_EQ(with(at, n_stages, bytes), Status::bad_section);
    for (const std::uint32_t reserved : {1u, ~0u}) CHECK_EQ(with(at + 4, reserved, bytes), Status::bad_section);
    for (const std::size_t first : {std::size_t{0}, last})
        CHECK_EQ(with(at + 8, static_cast<std::uint32_t>(first), bytes), Status::bad_section);
    for (const std::size_t wrong : {std::size_t{8}, d + 1, std::size_t{0xffffffff}})
        CHECK_EQ(with(at + 12, static_cast<std::uint32_t>(wrong), bytes), Status::bad_section);
    CHECK(with(at + 12, static_cast<std::uint32_t>(last + 1), bytes) != Status::ok);
    for (const double wrong : {-1e-9, 0x1p-9, std::nan(""), HUGE_VAL})
        CHECK_EQ(with(skew, wrong, bytes), Status::bad_coefficient);
    for (const std::size_t wrong : {view.n_sv + 1, std::size_t{0xffffffff}}) {
        CHECK_EQ(with(counts, static_cast<std::uint32_t>(wrong), bytes), Status::bad_section);
        CHECK_EQ(with(counts + 4, static_cast<std::uint32_t>(wrong), bytes), Status::bad_section);
    }
    CHECK_EQ(with(counts + 4 * (1 + n_forms), 1u, bytes), Status::bad_section);
    for (const std::size_t k : {0u, 1u, 5u, 47u}) {
        for (const double wrong : {-1e-300, std::nan(""), HUGE_VAL})
            CHECK_EQ(with(known + 8 * k, wrong, bytes), Status::bad_coefficient);
    }
    for (const std::size_t number : {basis, vectors - 4, vectors, coef - 4, coef}) {
        for (const float wrong : {std::nanf(""), HUGE_VALF})
            CHECK_EQ(with(number, wrong, bytes), Status::bad_coefficient);
    }
    for (const float wrong : {0x1p61f, 0x1p-61f, -0x1p61f}) CHECK_EQ(with(coef, wrong, bytes), Status::bad_coefficient);
    CHECK_EQ(with(second, -first_coef, bytes), Status::bad_coefficient);
}

TEST(must_subspace_expansion) {
    const Bytes bytes = golden("digits_subspace");
    ModelView view;
    CHECK_EQ(opened(bytes, view), Status::ok);
    const std::size_t at = start_of(bytes, artifact_writer::subspace_expansion);
    const std::size_t n_bytes = static_cast<std::size_t>(get<std::uint64_t>(bytes, at + file_bytes_at));
    const auto with_inner = [&](std::size_t offset, const auto& value) {
        Bytes inner(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    bytes.begin() + static_cast<std::ptrdiff_t>(at + n_bytes));
        put(inner, offset, value);
        artifact_writer::seal(inner);
        Bytes changed = bytes;
        std::copy(inner.begin(), inner.end(), changed.begin() + static_cast<std::ptrdiff_t>(at));
        artifact_writer::seal(changed);
        return opened(changed);
    };
    const Bytes inner(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                      bytes.begin() + static_cast<std::ptrdiff_t>(at + n_bytes));
    CHECK_EQ(with_inner(gamma_at, view.gamma), Status::ok);
    CHECK_EQ(with_inner(gamma_at, view.gamma * (1.0 + 0x1p-52)), Status::bad_section);
    CHECK_EQ(with_inner(start_of(inner, artifact_writer::center), 1e-30f), Status::bad_section);
    CHECK_EQ(with_inner(start_of(inner, artifact_writer::decisions), 1e-300), Status::bad_section);
    CHECK_EQ(with_inner(mode_at, 1u), Status::bad_section);
    CHECK_EQ(with_inner(task_at, 2u), Status::bad_section);
    CHECK(with_inner(n_features_at, std::uint64_t{15}) != Status::ok);
    CHECK_EQ(with(at, std::uint8_t{0}, bytes), Status::bad_magic);
    CHECK_EQ(with(at + n_bytes - 64, get<std::uint8_t>(bytes, at + n_bytes - 64) ^ 1u, bytes),
             Status::checksum_mismatch);
}

TEST(must_presumption) {
    const Bytes bytes = golden("shells_exact");
    ModelView view;
    CHECK_EQ(opened(bytes, view), Status::ok);
    const std::size_t at = start_of(bytes, artifact_writer::presumption), n = view.n_landmarks,
                      weights_at = at + 8 + 4 * ((n + 1) / 2 * 2),
                      n_weights = (1 + view.n_features + n) * view.n_labels;
    for (const std::size_t wrong : {n + 1, view.n_sv + 1, n + 2, std::size_t{~0u}})
        CHECK_EQ(with(at, static_cast<std::uint32_t>(wrong), bytes), Status::bad_section);
    for (const std::uint32_t wrong : {1u, ~0u}) CHECK_EQ(with(at + 4, wrong, bytes), Status::bad_section);
    for (const float wrong : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
        CHECK_EQ(with(weights_at, wrong, bytes), Status::bad_coefficient);
        CHECK_EQ(with(weights_at + 4 * (n_weights - 1), wrong, bytes), Status::bad_coefficient);
    }
    CHECK_EQ(with(weights_at + 4 * (n_weights - 1), 1e30f, bytes), Status::ok);
    // Landmarks, an odd number of them: the weights of a row less, and two numbers more of landmarks.
    Bytes changed = bytes;
    const auto with_landmarks = [&](std::uint32_t n_landmarks, std::uint32_t first, std::uint32_t second) {
        changed = bytes;
        put(changed, at, n_landmarks);
        put(changed, at + 8, first);
        put(changed, at + 12, second);
        const std::uint64_t n_bytes =
            8 + 4 * ((n_landmarks + 1) / 2 * 2 + (1 + view.n_features + n_landmarks) * std::uint64_t{view.n_labels});
        for (std::size_t k = 0; k < get<std::uint32_t>(changed, n_sections_at); ++k) {
            if (get<std::uint32_t>(changed, entry_at(k)) == artifact_writer::presumption)
                put(changed, entry_at(k) + 16, n_bytes);
        }
        changed.resize((at + static_cast<std::size_t>(n_bytes) + 63) / 64 * 64);
        for (std::size_t k = at + static_cast<std::size_t>(n_bytes); k < changed.size(); ++k) changed[k] = 0;
        put(changed, file_bytes_at, std::uint64_t{changed.size()});
        artifact_writer::seal(changed);
        return opened(changed);
    };
    const std::uint32_t last = static_cast<std::uint32_t>(view.n_sv) - 1;
    CHECK_EQ(with_landmarks(0, 0, 0), Status::ok);
    CHECK_EQ(with_landmarks(1, last, 0), Status::ok);
    CHECK_EQ(with_landmarks(1, last, 1), Status::bad_section);
    CHECK_EQ(with_landmarks(2, last, last), Status::ok);
    CHECK_EQ(with_landmarks(2, last, last + 1), Status::bad_section);
    CHECK_EQ(with_landmarks(1, last + 1, 0), Status::bad_section);
}

TEST(must_varying) {
    const artifact_writer::Model model = true_model(artifact_writer::certified, 4, 5, 0, 2, 3, {1, 3});
    ModelView view;
    CHECK_EQ(opened(written(model), view), Status::ok);
    CHECK_EQ(view.n_varying, std::size_t{2});
    const auto with_columns = [&](const std::vector<std::uint32_t>& columns) {
        return with_sections(model, [&](Sections& sections) { sections.back().content = bytes_of(columns); });
    };
    for (const std::vector<std::uint32_t>& good : {std::vector<std::uint32_t>{0, 1}, {0, 3}, {2, 3}}) {
        CHECK_EQ(with_columns(good), Status::ok);
    }
    for (const std::vector<std::uint32_t>& bad : {std::vector<std::uint32_t>{},
                                                  {1},
                                                  {3, 1},
                                                  {1, 1},
                                                  {1, 4},
                                                  {1, ~0u},
                                                  {0, 1, 2},
                                                  {0, 1, 2, 3},
                                                  {0, 1, 2, 3, 4}}) {
        CHECK_EQ(with_columns(bad), Status::bad_section);
    }
    for (const std::size_t n_bytes : {1u, 7u, 9u}) {
        CHECK_EQ(with_sections(model, [&](Sections& sections) { sections.back().content.resize(n_bytes); }),
                 Status::bad_section);
    }
    // No slices about a single center, and none in other modes.
    for (const artifact_writer::Model& other : {true_model(artifact_writer::certified, 4), approximate_model(4, 2, 3),
                                                true_model(artifact_writer::exact, 4)}) {
        CHECK_EQ(with_sections(other,
                               [&](Sections& sections) {
                                   const std::vector<std::uint32_t> columns = {1, 3};
                                   sections.push_back({artifact_writer::varying, bytes_of(columns)});
                               }),
                 Status::bad_section);
    }
}

// --- the header ---

TEST(must_magic) {
    const Bytes bytes = written(approximate_model());
    for (std::size_t i = 0; i < 8; ++i) {
        CHECK_EQ(with(i, static_cast<unsigned char>(bytes[i] ^ 0x20)), Status::bad_magic);
    }
    CHECK_EQ(opened({}), Status::bad_magic);
    CHECK_EQ(open_artifact(nullptr, 0, *std::make_unique<ModelView>()), Status::bad_magic);
    CHECK_EQ(with(4, std::uint8_t{'Q'}), Status::bad_magic);
    CHECK_EQ(with(4, std::uint8_t{'E'}), Status::bad_magic);
    const std::string text = "svm_type c_svc\nkernel_type rbf\n";
    CHECK_EQ(opened(Bytes(text.begin(), text.end())), Status::bad_magic);
}

TEST(must_version) {
    for (const std::uint32_t version : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 10u, 0x09000000u, ~0u}) {
        CHECK_EQ(with(version_at, version), Status::unsupported_version);
    }
}

TEST(must_n_sections) {
    for (const std::uint32_t n : {28u, 29u, 0x10000u, ~0u}) CHECK_EQ(with(n_sections_at, n), Status::bad_header);
    for (const std::uint32_t mode : all_modes) {
        const Bytes bytes = written(small_model(mode));
        const std::uint32_t right = get<std::uint32_t>(bytes, n_sections_at);
        for (std::uint32_t n = 0; n <= 16; ++n) {
            const Status status = with(n_sections_at, n, bytes);
            CHECK(n == right ? status == Status::ok : status == Status::bad_section || status == Status::truncated);
        }
        Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(entry_at(right) - 1));
        seal(cut);
        CHECK_EQ(opened(cut), Status::truncated);
    }
    artifact_writer::Model everything = many_model(certified);  // but what a higher degree has
    everything.plan = "because";
    CHECK_EQ(get<std::uint32_t>(written(everything), n_sections_at), 15u);
}

TEST(must_file_bytes) {
    for (const int wrong : {-64, -1, 1, 64}) {
        Bytes bytes = written(approximate_model());
        put(bytes, file_bytes_at, static_cast<std::uint64_t>(static_cast<int>(bytes.size()) + wrong));
        put(bytes, checksum_at, artifact_writer::checksum_of(bytes));
        CHECK_EQ(opened(bytes), Status::size_mismatch);
    }
    Bytes longer = written(approximate_model());
    longer.push_back(0);
    CHECK_EQ(opened(longer), Status::size_mismatch);
}

TEST(must_checksum) {
    Bytes bytes = written(approximate_model());
    put(bytes, checksum_at, ~get<std::uint32_t>(bytes, checksum_at));
    CHECK_EQ(opened(bytes), Status::checksum_mismatch);
    CHECK_EQ(artifact_checksum(bytes.data(), bytes.size()), artifact_writer::checksum_of(bytes));
    const unsigned char digits[] = "123456789";
    CHECK_EQ(crc32(digits, 9), 0xCBF43926u);  // the check value of the CRC catalogue
}

TEST(must_task) {
    for (const std::uint32_t task : {3u, ~0u}) CHECK_EQ(with(task_at, task), Status::bad_header);
}

TEST(must_mode) {
    for (const std::uint32_t mode : all_modes) {
        const Bytes bytes = written(small_model(mode));
        for (const std::uint32_t wrong : {3u, 0x100u, ~0u}) CHECK_EQ(with(mode_at, wrong, bytes), Status::bad_header);
        for (const std::uint32_t other : all_modes) {  // its sections or its degree do not suit it
            if (other != mode) CHECK(with(mode_at, other, bytes) != Status::ok);
        }
    }
}

TEST(must_degree) {
    for (const std::uint32_t mode : {approximate, certified}) {
        for (const artifact_writer::Model& model : {small_model(mode), deep_model(mode)}) {
            const Bytes bytes = written(model);
            for (const std::uint32_t degree : {0u, 7u, 8u, 9u, 10u, 0x100u, ~0u}) {
                CHECK_EQ(with(degree_at, degree, bytes), Status::bad_header);
            }
            for (std::uint32_t degree = 1; degree <= 6; ++degree) {  // the sections are for one of them
                CHECK_EQ(with(degree_at, degree, bytes), degree == model.degree ? Status::ok : Status::bad_section);
            }
        }
    }
    for (std::uint32_t degree = 1; degree <= 7; ++degree) {
        CHECK_EQ(with(degree_at, degree, written(small_model(exact))), Status::bad_header);
    }
}

TEST(must_n_centers) {
    for (const std::uint32_t mode : {approximate, certified}) {
        for (const artifact_writer::Model& model : {small_model(mode), many_model(mode)}) {
            const Bytes bytes = written(model);
            for (const std::uint32_t n : {0u, (1u << 20) + 1, 0x80000001u, ~0u}) {
                CHECK_EQ(with(n_centers_at, n, bytes), Status::bad_header);
            }
            for (const std::uint32_t n : {1u, 2u, 4u, 6u, 1u << 20}) {
                CHECK_EQ(with(n_centers_at, n, bytes), n == model.expansions.size() ? Status::ok : Status::bad_section);
            }
        }
    }
    for (const std::uint32_t n : {1u, 2u}) {
        CHECK_EQ(with(n_centers_at, n, written(small_model(exact))), Status::bad_header);
    }
}

TEST(must_claims_not_overflow) {
    // Products of degree, features and centers such that 32 or 64 bits wrap around.
    for (const std::uint32_t degree : {1u, 2u, 3u, 4u, 5u, 6u}) {
        for (const std::uint32_t n_centers : {1u, 1u << 10, 1u << 20}) {
            for (const std::uint64_t n_features : {1u << 10, 1u << 11, 1u << 16, 1u << 20}) {
                Bytes bytes = written(small_model(certified));
                put(bytes, degree_at, degree);
                put(bytes, n_centers_at, n_centers);
                put(bytes, n_raw_features_at, n_features);
                CHECK_EQ(with(n_features_at, n_features, bytes), Status::bad_section);
            }
        }
    }
}

TEST(must_n_decisions) {
    for (const std::uint32_t mode : all_modes) {
        for (const std::uint32_t n : {0u, 2u, 3u, ~0u}) {
            CHECK_EQ(with(n_decisions_at, n, written(small_model(mode))), Status::bad_header);
        }
    }
}

TEST(must_first_remainder_degree) {
    for (const std::uint32_t mode : {approximate, certified}) {
        for (const artifact_writer::Model& model : {small_model(mode), deep_model(mode)}) {
            const Bytes bytes = written(model);
            for (std::uint32_t k = 0; k < 12; ++k) {
                const bool right = k > model.degree && k <= 9;
                CHECK_EQ(with(first_remainder_degree_at, k, bytes), right ? Status::ok : Status::bad_header);
            }
            CHECK_EQ(with(first_remainder_degree_at, ~0u, bytes), Status::bad_header);
        }
    }
    for (const std::uint32_t k : {1u, 3u, 9u}) {
        CHECK_EQ(with(first_remainder_degree_at, k, written(small_model(exact))), Status::bad_header);
    }
}

TEST(must_n_features) {
    for (const std::uint64_t n : {std::uint64_t{0}, (std::uint64_t{1} << 20) + 1, std::uint64_t{1} << 32,
                                  (std::uint64_t{1} << 32) + 3, ~std::uint64_t{0}}) {
        CHECK_EQ(with(n_features_at, n), Status::bad_header);
    }
    for (const std::uint32_t mode : all_modes) {
        Bytes bytes = written(small_model(mode));
        for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{4}, std::uint64_t{1} << 20}) {
            put(bytes, n_raw_features_at, n);
            CHECK_EQ(with(n_features_at, n, bytes), Status::bad_section);
        }
    }
}

TEST(must_first_index) {
    for (const std::uint32_t index : {2u, ~0u}) CHECK_EQ(with(first_index_at, index), Status::bad_header);
    for (const std::uint32_t index : {0u, 1u}) CHECK_EQ(with(first_index_at, index), Status::ok);
}

TEST(must_n_labels) {
    for (const std::uint32_t n : {0u, 1u}) CHECK_EQ(with(n_labels_at, n), Status::bad_labels);
    for (const std::uint32_t n : {3u, 1025u, ~0u}) CHECK_EQ(with(n_labels_at, n), Status::bad_header);  // n_decisions
    for (const std::uint32_t n : {1u, 2u}) {
        CHECK_EQ(with(n_labels_at, n, written(regression_model())), Status::bad_labels);
    }
    CHECK_EQ(with(n_labels_at, ~0u, written(regression_model())), Status::bad_header);
}

TEST(must_gamma) {
    for (const double gamma : {-1.0, -0x1p-1074, infinite, -infinite, nan64, 0.49, 2.0, 1e308}) {
        CHECK_EQ(with(gamma_at, gamma), Status::bad_header);
    }
    for (const double gamma : {0.0, -0.0, 0.5, 1.99}) CHECK_EQ(with(gamma_at, gamma), Status::ok);
}

TEST(must_input_scale) {
    for (const double scale : {0.0, -1.0, 0.75, 3.0, 0x1p101, 0x1p-101, infinite, nan64, 0x1p-1074, 2.0, 0.25}) {
        CHECK_EQ(with(input_scale_at, scale), Status::bad_header);
    }
    Bytes no_gamma = written(approximate_model());
    put(no_gamma, gamma_at, 0.0);
    for (const double scale : {0x1p100, 0x1p-100, 4.0}) {
        CHECK_EQ(with(input_scale_at, scale, no_gamma), Status::ok);
    }
    for (const double scale : {0x1p101, 0x1p-101, 1.5, -4.0}) {
        CHECK_EQ(with(input_scale_at, scale, no_gamma), Status::bad_header);
    }
}

namespace {

void expect_norm_at(std::size_t offset) {
    for (const double bad : {-1.0, -infinite, nan64}) CHECK_EQ(with(offset, bad), Status::bad_header);
    for (const double good : {0.0, 1e300}) CHECK_EQ(with(offset, good), Status::ok);
}

}  // namespace

TEST(must_max_sv_norm) {
    expect_norm_at(max_sv_norm_at);
}

TEST(must_max_sv_norm_origin) {
    expect_norm_at(max_sv_norm_origin_at);
}

TEST(must_label_kind) {
    for (const std::uint32_t kind : {4u, ~0u}) CHECK_EQ(with(label_kind_at, kind), Status::bad_header);
    CHECK_EQ(with(label_kind_at, 0u), Status::bad_labels);
    for (const std::uint32_t kind : {1u, 2u, 3u}) {
        CHECK_EQ(with(label_kind_at, kind, written(regression_model())), Status::bad_labels);
    }
}

TEST(label_dtype_is_for_python_only) {
    for (std::size_t offset = label_dtype_at; offset < 140; ++offset)
        CHECK_EQ(with(offset, std::uint8_t{255}), Status::ok);
}

TEST(source_is_for_people_only) {
    for (std::size_t offset = 144; offset < 176; ++offset) CHECK_EQ(with(offset, std::uint8_t{255}), Status::ok);
}

TEST(must_kernel) {
    for (const std::uint32_t kernel : {2u, 256u, ~0u}) CHECK_EQ(with(184, kernel), Status::bad_header);
}

TEST(must_majority_only) {
    for (const std::uint32_t mode : all_modes) {  // of two labels
        for (const std::uint32_t wrong : {1u, 2u, 256u, ~0u})
            CHECK_EQ(with(majority_only_at, wrong, written(small_model(mode))), Status::bad_header);
    }
    const Bytes bytes = golden_of_classes();
    CHECK_EQ(opened(bytes), Status::ok);
    for (const std::uint32_t wrong : {2u, 256u, ~0u})
        CHECK_EQ(with(majority_only_at, wrong, bytes), Status::bad_header);
    CHECK_EQ(with(majority_only_at, 0u, bytes), Status::bad_section);  // forms of the other pairs are missing
    CHECK_EQ(with(tolerance_at, 1.0, bytes), Status::bad_header);
    CHECK_EQ(with(mode_at, 0u, bytes), Status::bad_header);
}

TEST(must_tolerance_asked) {
    for (const std::uint32_t asked : {2u, 256u, ~0u}) CHECK_EQ(with(140, asked), Status::bad_header);
    for (const std::uint32_t asked : {0u, 1u}) CHECK_EQ(with(140, asked), Status::ok);
}

TEST(must_n_raw_features) {
    for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{1} << 21, ~std::uint64_t{0}}) {
        CHECK_EQ(with(n_raw_features_at, n), Status::bad_header);
    }
    CHECK_EQ(with(n_raw_features_at, std::uint64_t{1000}), Status::bad_header);  // no input map explains it
}

TEST(must_center_kind) {
    for (const std::uint32_t kind : {2u, ~0u}) CHECK_EQ(with(center_kind_at, kind), Status::bad_header);
    for (const std::uint32_t kind : {0u, 1u}) CHECK_EQ(with(center_kind_at, kind), Status::ok);
}

TEST(must_tolerance) {
    for (const std::uint32_t mode : all_modes) {
        const Bytes bytes = written(small_model(mode));
        for (const double bad : {0.0, -0.0, -1.0, -0x1p-1074, -infinite, nan64}) {
            CHECK_EQ(with(tolerance_at, bad, bytes), Status::bad_header);
        }
        for (const double good : {0x1p-1074, 1.0, 1e308, infinite}) {
            CHECK_EQ(with(tolerance_at, good, bytes), Status::ok);
        }
    }
}

// --- the section table ---

TEST(must_section_order) {
    for (const std::uint32_t mode : all_modes) {
        const artifact_writer::Model model = small_model(mode);
        const std::size_t n = artifact_writer::sections_of(model).size();
        for (std::size_t k = 0; k < n; ++k) {
            const std::uint32_t before = k == 0 ? 0 : artifact_writer::sections_of(model)[k - 1].identifier;
            for (const std::uint32_t wrong : {before, 0u, 24u, ~0u}) {
                CHECK_EQ(with_sections(model, [=](Sections& s) { s[k].identifier = wrong; }), Status::bad_section);
            }
            if (k == 0) continue;
            CHECK_EQ(with_sections(model, [=](Sections& s) { std::swap(s[k - 1], s[k]); }), Status::bad_section);
        }
    }
}

TEST(must_section_reserved) {
    for (std::size_t k = 0; k < 14; ++k) {
        CHECK_EQ(with(entry_at(k) + 4, 1u, written(many_model(certified))), Status::bad_section);
    }
}

TEST(must_section_offset) {
    for (const std::uint32_t mode : all_modes) {
        const Bytes bytes = written(small_model(mode));
        for (std::size_t k = 0; k < get<std::uint32_t>(bytes, n_sections_at); ++k) {
            const std::uint64_t offset = get<std::uint64_t>(bytes, entry_at(k) + 8);
            const std::uint64_t size = get<std::uint64_t>(bytes, entry_at(k) + 16), top = ~std::uint64_t{0};
            for (const std::uint64_t wrong :
                 {offset + 64, offset - 64, offset + 4, offset - 1, std::uint64_t{0}, top, top - 63, top << 6}) {
                CHECK_EQ(with(entry_at(k) + 8, wrong, bytes), Status::bad_section);
            }
            for (const std::uint64_t wrong :
                 {size + 64, size + 4, size - 1, std::uint64_t{0}, top, top - offset, top - offset + 1, top - 63}) {
                const Status status = with(entry_at(k) + 16, wrong, bytes);
                CHECK(status == Status::bad_section || status == Status::bad_labels ||
                      status == Status::bad_support_vectors);
            }
        }
    }
}

TEST(must_padding) {
    for (const std::uint32_t mode : all_modes) {
        const Bytes bytes = written(small_model(mode));
        const std::size_t n_sections = get<std::uint32_t>(bytes, n_sections_at);
        std::size_t n_padding = 0, end = entry_at(n_sections);
        for (std::size_t k = 0; k <= n_sections; ++k) {
            const auto number = [&](std::size_t at) {
                return static_cast<std::size_t>(get<std::uint64_t>(bytes, entry_at(k) + at));
            };
            const std::size_t next = k < n_sections ? number(8) : bytes.size();
            for (std::size_t offset = end; offset < next; ++offset, ++n_padding) {
                CHECK_EQ(with(offset, std::uint8_t{1}, bytes), Status::bad_section);
            }
            if (k < n_sections) end = next + number(16);
        }
        CHECK(n_padding > 64);
        for (const int change : {-1, 1, 63, 64}) {
            Bytes changed = bytes;
            changed.resize(static_cast<std::size_t>(static_cast<int>(bytes.size()) + change));
            seal(changed);
            CHECK_EQ(opened(changed), Status::bad_section);
        }
    }
}
