#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "artifact_writer.hpp"
#include "check.hpp"
#include "predictor.hpp"

// Every MUST of models/FORMAT.md, by the name that it has there, and bytes that nobody meant.

using namespace approxsvm;
using artifact_writer::Bytes;
using artifact_writer::ExactCopy;
using artifact_writer::get;
using artifact_writer::put;
using artifact_writer::seal;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// Header offsets and section numbers of the format.
constexpr std::size_t version_at = 8, n_sections_at = 12, file_bytes_at = 16, checksum_at = 24, task_at = 28,
                      mode_at = 32, degree_at = 36, n_features_at = 40, first_index_at = 56, n_labels_at = 60,
                      gamma_at = 64, intercept_at = 72, constant_at = 80, input_scale_at = 88, output_scale_at = 96,
                      max_sv_norm_at = 104, max_sv_norm_origin_at = 112, label_kind_at = 120, center_kind_at = 176;
constexpr std::size_t center = 0, linear = 1, quadratic = 2, check_rows = 4, feature_names = 5;

artifact_writer::Model small_model(std::size_t d = 3) {
    artifact_writer::Model model;
    for (std::size_t j = 0; j < d; ++j) {
        model.center.push_back(0.25f * static_cast<float>(j));
        model.linear.push_back(j % 2 == 0 ? 1.0f : -0.75f);
        model.feature_names.push_back("x\xC3\xA9" + std::to_string(j));
    }
    for (std::size_t k = 0; k < d * d; ++k) model.triangle.push_back(k % 3 == 0 ? 2.0f : -0.5f);
    model.labels = artifact_writer::bytes_of(std::vector<std::int64_t>{3, -4});
    artifact_writer::add_check_rows(model, 2);
    return model;
}

artifact_writer::Model regression_model() {
    artifact_writer::Model model = small_model();
    model.task = 1;
    model.n_labels = model.label_kind = 0;
    model.labels.clear();
    return model;
}

Status opened(const Bytes& bytes, ModelView& model) {
    const ExactCopy copy(bytes);
    return open_artifact(copy.data(), bytes.size(), model);
}
Status opened(const Bytes& bytes) {
    ModelView model;
    return opened(bytes, model);
}

std::size_t entry_at(std::size_t section) {
    return 192 + 24 * section;
}
std::size_t content_at(const Bytes& bytes, std::size_t section) {
    return static_cast<std::size_t>(get<std::uint64_t>(bytes, entry_at(section) + 8));
}

/// Status after one change to a valid artifact, with the checksum made right again.
template <class T>
Status with(std::size_t offset, T value, Bytes bytes = artifact_writer::written(small_model())) {
    put(bytes, offset, value);
    seal(bytes);
    return opened(bytes);
}

using Sections = std::vector<artifact_writer::Section>;

/// Status after a change to the sections of a model, laid out as the format wants them.
Status with_sections(const artifact_writer::Model& model, const std::function<void(Sections&)>& change) {
    Sections sections = artifact_writer::sections_of(model);
    change(sections);
    return opened(artifact_writer::laid_out(model, sections));
}
Status with_sections(const std::function<void(Sections&)>& change) {
    return with_sections(small_model(), change);
}

Status with_content(std::size_t section, const Bytes& content) {
    return with_sections([&](Sections& sections) { sections[section].content = content; });
}

Status with_labels(std::uint32_t kind, const Bytes& content) {
    artifact_writer::Model model = small_model();
    model.label_kind = kind;
    model.labels = content;
    return opened(artifact_writer::written(model));
}

template <class T>
Status with_number(std::size_t section, std::size_t position, T value) {
    const Bytes bytes = artifact_writer::written(small_model());
    return with(content_at(bytes, section) + sizeof value * position, value, bytes);
}

/// Opens, and when that succeeds uses everything there is: any read outside the exact copy is a finding.
Status exercised(const Bytes& bytes) {
    const ExactCopy copy(bytes);
    ModelView model;
    const Status status = open_artifact(copy.data(), bytes.size(), model);
    if (status != Status::ok) return status;
    const std::vector<float> row(model.n_features, 0.5f);
    std::vector<double> memory(folded_doubles(model.n_features));
    const FoldedModel folded = fold_center(model, memory.data());
    CHECK(folded.linear == memory.data());
    for (const dispatch::Kernels* kernels : dispatch::runnable_targets()) {
        std::vector<unsigned char> workspace(kernels->replay_bytes(model.n_features));
        kernels->replay_check_rows(model, workspace.data());
        double value;
        CHECK_EQ(kernels->dense_f32(model, {row.data(), 1, 0, 1}, &value, workspace.data()), Status::ok);
    }
    if (model.task == Task::classification && model.label_kind == LabelKind::int64) {
        CHECK(integer_label(model, 1.0) != integer_label(model, 0.0));
    }
    return status;
}

}  // namespace

TEST(valid_artifacts_are_accepted) {
    for (std::size_t d = 1; d <= 20; ++d) {
        for (std::uint32_t task = 0; task <= 2; ++task) {
            artifact_writer::Model model = small_model(d);
            if (task != 0) {
                model.n_labels = model.label_kind = 0;
                model.labels.clear();
            }
            model.task = task;
            if (d % 2 == 0) model.feature_names.clear();
            CHECK_EQ(exercised(artifact_writer::written(model)), Status::ok);
        }
    }
    CHECK_EQ(with_labels(2, artifact_writer::bytes_of(std::vector<double>{0.5, -0.5})), Status::ok);
    CHECK_EQ(with_labels(3, artifact_writer::text_list({"", "\xF4\x8F\xBF\xBF"})), Status::ok);
    CHECK_EQ(with_labels(3, artifact_writer::text_list({"same", "samE"})), Status::ok);
}

TEST(fields_arrive_where_they_belong) {
    const Bytes bytes = artifact_writer::written(small_model());
    const ExactCopy copy(bytes);
    ModelView model;
    CHECK_EQ(open_artifact(copy.data(), bytes.size(), model), Status::ok);
    CHECK_EQ(model.task, Task::classification);
    CHECK_EQ(model.label_kind, LabelKind::int64);
    CHECK_EQ(model.n_labels, 2u);
    CHECK_EQ(model.first_index, 1u);
    CHECK_EQ(model.n_check_rows, 2u);
    CHECK_EQ(model.n_features, std::size_t{3});
    CHECK_EQ(model.gamma, 0.5);
    CHECK_EQ(model.intercept, 0.25);
    CHECK_EQ(model.constant, 0.5);
    CHECK_EQ(model.input_scale, 1.0);
    CHECK_EQ(model.output_scale, 1.0);
    CHECK_EQ(model.half_theta, 0.5f);
    CHECK_EQ(model.center[2], 0.5f);
    CHECK_EQ(model.linear[1], -0.75f);
    CHECK_EQ(integer_label(model, 0.1), 3);
    CHECK_EQ(integer_label(model, 0.0), -4);
    CHECK_EQ(integer_label(model, -0.1), -4);
}

TEST(golden_artifacts_are_read) {
    std::size_t n = 0;
    for (const auto& file : std::filesystem::directory_iterator(APPROXSVM_GOLDEN_DIR)) {
        if (file.path().extension() != ".asvm") continue;
        std::ifstream stream(file.path(), std::ios::binary);
        const Bytes bytes{std::istreambuf_iterator<char>(stream), {}};
        const ExactCopy copy(bytes);
        for (const dispatch::Kernels* kernels : dispatch::runnable_targets()) {
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

TEST(must_magic) {
    const Bytes bytes = artifact_writer::written(small_model());
    for (std::size_t i = 0; i < 8; ++i) {
        CHECK_EQ(with(i, static_cast<unsigned char>(bytes[i] ^ 0x20)), Status::bad_magic);
    }
    CHECK_EQ(opened({}), Status::bad_magic);
    CHECK_EQ(open_artifact(nullptr, 0, *std::make_unique<ModelView>()), Status::bad_magic);
    const std::string text = "svm_type c_svc\nkernel_type rbf\n";
    CHECK_EQ(opened(Bytes(text.begin(), text.end())), Status::bad_magic);
}

TEST(must_version) {
    for (const std::uint32_t version : {0u, 2u, 0x01000000u, ~0u}) {
        CHECK_EQ(with(version_at, version), Status::unsupported_version);
    }
}

TEST(must_n_sections) {
    for (const std::uint32_t n : {7u, 8u, 0x10000u, ~0u}) CHECK_EQ(with(n_sections_at, n), Status::bad_header);
    for (const std::uint32_t n : {0u, 1u, 5u}) CHECK_EQ(with(n_sections_at, n), Status::bad_section);
    Bytes bytes = artifact_writer::written(small_model());
    bytes.resize(192 + 24 * 6 - 1);
    seal(bytes);
    CHECK_EQ(opened(bytes), Status::truncated);
}

TEST(must_file_bytes) {
    for (const int wrong : {-64, -1, 1, 64}) {
        Bytes bytes = artifact_writer::written(small_model());
        put(bytes, file_bytes_at, static_cast<std::uint64_t>(static_cast<int>(bytes.size()) + wrong));
        put(bytes, checksum_at, artifact_writer::checksum_of(bytes));
        CHECK_EQ(opened(bytes), Status::size_mismatch);
    }
    Bytes longer = artifact_writer::written(small_model());
    longer.push_back(0);
    CHECK_EQ(opened(longer), Status::size_mismatch);
}

TEST(must_checksum) {
    Bytes bytes = artifact_writer::written(small_model());
    put(bytes, checksum_at, ~get<std::uint32_t>(bytes, checksum_at));
    CHECK_EQ(opened(bytes), Status::checksum_mismatch);
    CHECK_EQ(artifact_checksum(bytes.data(), bytes.size()), artifact_writer::checksum_of(bytes));
    const unsigned char digits[] = "123456789";
    CHECK_EQ(crc32(digits, 9), 0xCBF43926u);  // the check value of the CRC catalogue
}

TEST(must_enumerations) {
    CHECK_EQ(with(task_at, 3u), Status::bad_header);
    CHECK_EQ(with(task_at, ~0u), Status::bad_header);
    CHECK_EQ(with(mode_at, 1u), Status::bad_header);
    for (const std::uint32_t degree : {0u, 1u, 3u, 4u}) CHECK_EQ(with(degree_at, degree), Status::bad_header);
    CHECK_EQ(with(first_index_at, 2u), Status::bad_header);
    CHECK_EQ(with(label_kind_at, 4u), Status::bad_header);
    CHECK_EQ(with(center_kind_at, 2u), Status::bad_header);
    CHECK_EQ(with(first_index_at, 0u), Status::ok);
    CHECK_EQ(with(center_kind_at, 0u), Status::ok);
}

TEST(must_n_features) {
    for (const std::uint64_t n : {std::uint64_t{0}, (std::uint64_t{1} << 20) + 1, std::uint64_t{1} << 32,
                                  (std::uint64_t{1} << 32) + 3, ~std::uint64_t{0}}) {
        CHECK_EQ(with(n_features_at, n), Status::bad_header);
    }
    for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{4}, std::uint64_t{1} << 20}) {
        CHECK_EQ(with(n_features_at, n), Status::bad_section);
    }
}

TEST(must_gamma_and_input_scale) {
    for (const double gamma : {-1.0, -0x1p-1074, infinity, -infinity, not_a_number, 0.49, 2.0, 1e308}) {
        CHECK_EQ(with(gamma_at, gamma), Status::bad_header);
    }
    for (const double gamma : {0.0, -0.0, 0.5, 1.99}) CHECK_EQ(with(gamma_at, gamma), Status::ok);
    for (const double scale : {0.0, -1.0, 0.75, 3.0, 0x1p101, 0x1p-101, infinity, not_a_number, 0x1p-1074, 2.0, 0.25}) {
        CHECK_EQ(with(input_scale_at, scale), Status::bad_header);
    }
    Bytes no_gamma = artifact_writer::written(small_model());
    put(no_gamma, gamma_at, 0.0);
    for (const double scale : {0x1p100, 0x1p-100, 4.0}) {
        CHECK_EQ(with(input_scale_at, scale, no_gamma), Status::ok);
    }
    for (const double scale : {0x1p101, 0x1p-101, 1.5, -4.0}) {
        CHECK_EQ(with(input_scale_at, scale, no_gamma), Status::bad_header);
    }
}

TEST(must_other_numbers) {
    for (const double bad : {infinity, -infinity, not_a_number}) {
        CHECK_EQ(with(intercept_at, bad), Status::bad_header);
        CHECK_EQ(with(constant_at, bad), Status::bad_coefficient);
        CHECK_EQ(with(output_scale_at, bad), Status::bad_header);
    }
    for (const double bad : {1.0000000000000002, -1.0000000000000002, 1e300}) {
        CHECK_EQ(with(constant_at, bad), Status::bad_coefficient);
    }
    for (const double good : {1.0, -1.0, 0.0}) CHECK_EQ(with(constant_at, good), Status::ok);
    for (const double bad : {0.0, -2.0, 1.5, 0x1p1001, 0x1p-1001, 0x1p-1074}) {
        CHECK_EQ(with(output_scale_at, bad), Status::bad_header);
    }
    for (const double good : {0x1p1000, 0x1p-1000, 2.0}) CHECK_EQ(with(output_scale_at, good), Status::ok);
    for (const std::size_t offset : {max_sv_norm_at, max_sv_norm_origin_at}) {
        CHECK_EQ(with(offset, -1.0), Status::bad_header);
        CHECK_EQ(with(offset, not_a_number), Status::bad_header);
        CHECK_EQ(with(offset, 0.0), Status::ok);
    }
}

TEST(must_reserved) {
    for (std::size_t offset = 140; offset < 144; ++offset) {
        CHECK_EQ(with(offset, std::uint8_t{1}), Status::bad_header);
    }
    for (std::size_t offset = 180; offset < 192; ++offset) {
        CHECK_EQ(with(offset, std::uint8_t{0x80}), Status::bad_header);
    }
}

// --- the section table ---

TEST(must_section_order) {
    CHECK_EQ(with_sections([](Sections& s) { std::swap(s[center], s[linear]); }), Status::bad_section);
    CHECK_EQ(with_sections([](Sections& s) { s[linear].identifier = 1; }), Status::bad_section);
    CHECK_EQ(with_sections([](Sections& s) { s[center].identifier = 0; }), Status::bad_section);
    CHECK_EQ(with_sections([](Sections& s) { s[feature_names].identifier = 7; }), Status::bad_section);
    CHECK_EQ(with_sections([](Sections& s) { s[feature_names].identifier = ~0u; }), Status::bad_section);
}

TEST(must_section_reserved) {
    for (std::size_t k = 0; k < 6; ++k) CHECK_EQ(with(entry_at(k) + 4, 1u), Status::bad_section);
}

TEST(must_section_offset) {
    const Bytes bytes = artifact_writer::written(small_model());
    for (std::size_t k = 0; k < 6; ++k) {
        const std::uint64_t offset = content_at(bytes, k), size = get<std::uint64_t>(bytes, entry_at(k) + 16);
        const std::uint64_t top = ~std::uint64_t{0};
        for (const std::uint64_t wrong :
             {offset + 64, offset - 64, offset + 4, offset - 1, std::uint64_t{0}, top, top - 63, top << 6}) {
            CHECK_EQ(with(entry_at(k) + 8, wrong), Status::bad_section);
        }
        for (const std::uint64_t wrong :
             {size + 64, size + 4, size - 1, std::uint64_t{0}, top, top - offset, top - offset + 1, top - 63}) {
            const Status status = with(entry_at(k) + 16, wrong);
            CHECK(status == Status::bad_section || status == Status::bad_labels);
        }
    }
}

TEST(must_padding) {
    const Bytes bytes = artifact_writer::written(small_model());
    std::size_t n_padding = 0;
    std::size_t end = entry_at(6);
    for (std::size_t k = 0; k <= 6; ++k) {
        const std::size_t next = k < 6 ? content_at(bytes, k) : bytes.size();
        for (std::size_t offset = end; offset < next; ++offset, ++n_padding) {
            CHECK_EQ(with(offset, std::uint8_t{1}), Status::bad_section);
        }
        if (k < 6) end = next + static_cast<std::size_t>(get<std::uint64_t>(bytes, entry_at(k) + 16));
    }
    CHECK(n_padding > 64);
    for (const int change : {-1, 1, 63, 64}) {
        Bytes changed = bytes;
        changed.resize(static_cast<std::size_t>(static_cast<int>(bytes.size()) + change));
        seal(changed);
        CHECK_EQ(opened(changed), Status::bad_section);
    }
}

// --- the sections ---

TEST(must_be_there_and_of_its_size) {
    for (const std::size_t k : {center, linear, quadratic, check_rows}) {
        const auto position = static_cast<std::ptrdiff_t>(k);
        CHECK_EQ(with_sections([&](Sections& s) { s.erase(s.begin() + position); }), Status::bad_section);
        CHECK_EQ(with_sections([&](Sections& s) { s[k].content.clear(); }), Status::bad_section);
        CHECK_EQ(with_sections([&](Sections& s) { s[k].content.pop_back(); }), Status::bad_section);
        CHECK_EQ(with_sections([&](Sections& s) { s[k].content.resize(s[k].content.size() + 4); }),
                 Status::bad_section);
    }
}

TEST(must_center) {
    constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    for (std::size_t j = 0; j < 3; ++j) {
        for (const float bad : {inf, -inf, nan}) CHECK_EQ(with_number(center, j, bad), Status::bad_coefficient);
        CHECK_EQ(with_number(center, j, std::numeric_limits<float>::max()), Status::ok);
    }
}

TEST(must_linear_and_quadratic) {
    constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    for (std::size_t j = 0; j < 3; ++j) {
        for (const float bad : {1.0000001f, -1.0000001f, 3e38f, inf, -inf, nan}) {
            CHECK_EQ(with_number(linear, j, bad), Status::bad_coefficient);
        }
        CHECK_EQ(with_number(linear, j, -1.0f), Status::ok);
    }
    for (std::size_t k = 0; k < 6; ++k) {
        for (const float bad : {2.0000002f, -2.0000002f, 3e38f, inf, -inf, nan}) {
            CHECK_EQ(with_number(quadratic, k, bad), Status::bad_coefficient);
        }
        CHECK_EQ(with_number(quadratic, k, -2.0f), Status::ok);
    }
}

TEST(must_labels) {
    const auto int64s = [](const std::vector<std::int64_t>& values) { return artifact_writer::bytes_of(values); };
    const auto doubles = [](const std::vector<double>& values) { return artifact_writer::bytes_of(values); };
    CHECK_EQ(with_labels(1, int64s({5, 5})), Status::bad_labels);
    CHECK_EQ(with_labels(1, int64s({5})), Status::bad_labels);
    CHECK_EQ(with_labels(1, int64s({5, 6, 7})), Status::bad_labels);
    CHECK_EQ(with_labels(0, int64s({5, 6})), Status::bad_labels);
    CHECK_EQ(with_labels(2, doubles({0.5, 0.5})), Status::bad_labels);
    CHECK_EQ(with_labels(2, doubles({0.0, -0.0})), Status::bad_labels);
    CHECK_EQ(with_labels(2, doubles({0.5})), Status::bad_labels);
    for (const double bad : {infinity, -infinity, not_a_number}) {
        CHECK_EQ(with_labels(2, doubles({bad, 0.5})), Status::bad_labels);
        CHECK_EQ(with_labels(2, doubles({0.5, bad})), Status::bad_labels);
    }
    CHECK_EQ(with_labels(3, artifact_writer::text_list({"a", "a"})), Status::bad_labels);
    CHECK_EQ(with_labels(3, artifact_writer::text_list({"", ""})), Status::bad_labels);
    CHECK_EQ(with_labels(1, {}), Status::bad_labels);
    for (const std::uint32_t kind : {1u, 2u, 3u}) {
        for (std::size_t size = 0; size < 8; ++size) {
            CHECK_EQ(with_labels(kind, Bytes(size, 1)), Status::bad_labels);
        }
    }
    for (const std::uint32_t n : {0u, 1u, 3u, ~0u}) CHECK_EQ(with(n_labels_at, n), Status::bad_labels);
}

TEST(must_labels_be_for_classification_only) {
    const Bytes regression = artifact_writer::written(regression_model());
    CHECK_EQ(opened(regression), Status::ok);
    CHECK_EQ(with(task_at, 0u, regression), Status::bad_labels);
    CHECK_EQ(with(n_labels_at, 2u, regression), Status::bad_labels);
    CHECK_EQ(with(label_kind_at, 1u, regression), Status::bad_labels);
    CHECK_EQ(with(task_at, 1u), Status::bad_labels);
    CHECK_EQ(with(task_at, 2u), Status::bad_labels);
    const auto add_labels = [](const Bytes& content) {
        return [content](Sections& sections) { sections.insert(sections.begin() + 3, {4, content}); };
    };
    CHECK_EQ(with_sections(regression_model(), add_labels(Bytes(16, 1))), Status::bad_labels);
    CHECK_EQ(with_sections(regression_model(), add_labels({})), Status::bad_labels);  // there, though empty
}

TEST(must_check_rows) {
    for (const std::size_t n : std::vector<std::size_t>{0, 17, 100}) {
        CHECK_EQ(with_content(check_rows, Bytes(24 * n)), Status::bad_section);
    }
    CHECK_EQ(with_content(check_rows, Bytes(24 * 16)), Status::ok);
    for (const double bad : {infinity, -infinity, not_a_number}) {
        for (std::size_t k = 0; k < 6; ++k) CHECK_EQ(with_number(check_rows, k, bad), Status::bad_coefficient);
    }
    for (const std::size_t k : std::vector<std::size_t>{0, 2, 3, 5})
        CHECK_EQ(with_number(check_rows, k, -1.0), Status::bad_coefficient);
    for (const std::size_t k : std::vector<std::size_t>{1, 4}) CHECK_EQ(with_number(check_rows, k, -1.0), Status::ok);
}

TEST(must_text_list) {
    const auto names = [](std::vector<std::string> texts) {
        return with_content(feature_names, artifact_writer::text_list(texts));
    };
    CHECK_EQ(names({"a", "b", "a"}), Status::ok);
    CHECK_EQ(names({"", "", ""}), Status::ok);
    CHECK_EQ(names({"a", "b"}), Status::bad_labels);
    CHECK_EQ(names({"a", "b", "c", "d"}), Status::bad_labels);
    CHECK_EQ(with_content(feature_names, {}), Status::bad_labels);
    for (const std::uint32_t length : {0u, 2u, 5u, 0x7FFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFEu}) {
        for (std::size_t k = 0; k < 3; ++k) {
            Bytes list = artifact_writer::text_list({"a", "b", "c"});
            put(list, 4 * k, length);
            CHECK_EQ(with_content(feature_names, list), Status::bad_labels);
        }
    }
    for (const std::string bad : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x9F\xBF",
                                  "\xE1\x80", "\xE1\x80\xC0", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF",
                                  "\xF1\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "a\xFE"}) {
        CHECK_EQ(names({"a", bad, "c"}), Status::bad_labels);
        CHECK_EQ(names({"a", "b", bad}), Status::bad_labels);
        CHECK_EQ(with_labels(3, artifact_writer::text_list({"a", bad})), Status::bad_labels);
    }
    for (const std::string good : {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                                   "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
        CHECK_EQ(names({"a", good, good + "c"}), Status::ok);
    }
    CHECK_EQ(names({"\xC3", "\xA9", ""}), Status::bad_labels);  // a character cut in two by the lengths
}

// --- check rows ---

TEST(must_check_row_value) {
    const auto replayed = [](const Bytes& bytes, const dispatch::Kernels& kernels) {
        const ExactCopy copy(bytes);
        ModelView model;
        CHECK_EQ(open_artifact(copy.data(), bytes.size(), model), Status::ok);
        const std::unique_ptr<unsigned char[]> memory(new unsigned char[kernels.replay_bytes(model.n_features)]);
        return kernels.replay_check_rows(model, memory.get());
    };
    for (const std::size_t d : std::vector<std::size_t>{1, 3, 8, 20, 130}) {
        artifact_writer::Model model = small_model(d);
        artifact_writer::add_check_rows(model, 4);
        const Bytes bytes = artifact_writer::written(model);
        for (const dispatch::Kernels* kernels : dispatch::runnable_targets()) {
            CHECK_EQ(replayed(bytes, *kernels), Status::ok);
            std::size_t n_missed = 0, n_changed = 0;
            for (const std::size_t section : {linear, quadratic}) {
                const std::size_t n = section == linear ? d : d * (d + 1) / 2;
                for (std::size_t k = 0; k < n; k += 1 + n / 50, ++n_changed) {
                    Bytes changed = bytes;
                    const std::size_t offset = content_at(bytes, section) + 4 * k;
                    const float limit = section == linear ? 1.0f : 2.0f;
                    put(changed, offset, get<float>(changed, offset) > 0 ? -limit : limit);
                    seal(changed);
                    n_missed += replayed(changed, *kernels) == Status::ok;
                }
            }
            CHECK(n_changed > 1);
            // Among many features one coefficient may count less than the roundings of all.
            CHECK(d <= 20 ? n_missed == 0 : n_missed <= n_changed / 25);
            const std::size_t first = content_at(bytes, check_rows);
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

// --- bytes that nobody meant ---

TEST(truncated_at_every_byte) {
    const Bytes bytes = artifact_writer::written(small_model());
    ModelView model;
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        const Status expected = n == 0 ? Status::bad_magic : n < 192 ? Status::truncated : Status::size_mismatch;
        CHECK_EQ(open_artifact(ExactCopy(bytes, n).data(), n, model), expected);
        Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
        if (n < 192) continue;
        seal(cut);
        const Status status = exercised(cut);
        CHECK(status == Status::truncated || status == Status::bad_section);
    }
}

TEST(misaligned_addresses) {
    const Bytes bytes = artifact_writer::written(small_model());
    std::vector<unsigned char> memory(bytes.size() + 16);
    unsigned char* const aligned = memory.data() + (8 - reinterpret_cast<std::uintptr_t>(memory.data()) % 8) % 8;
    ModelView model;
    for (std::size_t shift = 0; shift <= 8; ++shift) {
        std::memcpy(aligned + shift, bytes.data(), bytes.size());
        CHECK_EQ(open_artifact(aligned + shift, bytes.size(), model), shift % 8 == 0 ? Status::ok : Status::misaligned);
    }
}

TEST(every_corrupt_byte_is_refused) {
    Bytes bytes = artifact_writer::written(small_model());
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

TEST(every_corrupt_byte_with_its_checksum_repaired) {
    for (const artifact_writer::Model& model : {small_model(), regression_model()}) {
        Bytes bytes = artifact_writer::written(model);
        std::size_t n_accepted = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            const unsigned char right = bytes[i];
            for (const unsigned change : {1u, 0x40u, 0x80u, 255u}) {
                bytes[i] = static_cast<unsigned char>(right ^ change);
                put(bytes, checksum_at, artifact_writer::checksum_of(bytes));
                n_accepted += exercised(bytes) == Status::ok;
            }
            bytes[i] = right;
        }
        CHECK(n_accepted > 0);  // coefficients may change, and texts for people
    }
}
