#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "artifact_models.hpp"
#include "check.hpp"
#include "predictor.hpp"

// Every MUST of models/FORMAT.md about the sections, by the name that it has there. The header and the section table
// are in test_artifact.cpp.

using namespace artifact_models;
using artifact_writer::approximate;
using artifact_writer::certified;
using artifact_writer::exact;

namespace {

constexpr std::size_t task_at = 28, n_labels_at = 60, label_kind_at = 120;
constexpr float inf32 = std::numeric_limits<float>::infinity(), nan32 = std::numeric_limits<float>::quiet_NaN();

/// A model of every mode with one center, with many, and of a higher degree.
std::vector<artifact_writer::Model> all_models() {
    std::vector<artifact_writer::Model> models;
    for (const std::uint32_t mode : all_modes) models.push_back(small_model(mode));
    for (const std::uint32_t mode : {approximate, certified}) {
        models.push_back(many_model(mode));
        models.push_back(deep_model(mode));
    }
    return models;
}

/// A section may be neither shorter nor longer, whatever the mode.
void expect_one_size(std::uint32_t identifier, Status expected = Status::bad_section) {
    for (const artifact_writer::Model& model : all_models()) {
        Sections sections = artifact_writer::sections_of(model);
        const auto section = find(sections, identifier);
        if (section == sections.end()) continue;
        const std::size_t size = section->content.size();
        for (const std::size_t wrong : {std::size_t{0}, size - 1, size + 1, size - 4, size + 4, size + 64}) {
            CHECK_EQ(with_content(model, identifier, Bytes(wrong)), expected);
        }
    }
}

template <class T>
void expect_limits(const artifact_writer::Model& model, std::uint32_t identifier, std::size_t n,
                   const std::vector<T>& bad, const std::vector<T>& good) {
    for (std::size_t k = 0; k < n; ++k) {
        for (const T number : bad) CHECK_EQ(with_number(model, identifier, k, number), Status::bad_coefficient);
        for (const T number : good) CHECK_EQ(with_number(model, identifier, k, number), Status::ok);
    }
}

void expect_check_rows(const artifact_writer::Model& model, std::uint32_t identifier) {
    for (const std::size_t n_bytes : std::vector<std::size_t>{0, 8, 23, 25, 47, 24 * 17, 24 * 100}) {
        CHECK_EQ(with_content(model, identifier, Bytes(n_bytes)), Status::bad_section);
    }
    for (const std::size_t n : std::vector<std::size_t>{1, 16}) {
        CHECK_EQ(with_content(model, identifier, Bytes(24 * n)), Status::ok);
    }
    expect_limits<double>(model, identifier, 6, {infinite, -infinite, nan64}, {0.0, 1e300});
    for (const std::size_t k : std::vector<std::size_t>{0, 2, 3, 5}) {
        CHECK_EQ(with_number(model, identifier, k, -1.0), Status::bad_coefficient);
    }
    for (const std::size_t k : std::vector<std::size_t>{1, 4}) {
        CHECK_EQ(with_number(model, identifier, k, -1.0), Status::ok);
    }
}

Status with_names(const std::vector<std::string>& texts) {
    return with_content(approximate_model(), artifact_writer::feature_names, artifact_writer::text_list(texts));
}

}  // namespace

TEST(must_modes) {
    using List = std::vector<std::uint32_t>;
    namespace section = artifact_writer;
    const List of_all = {section::center, section::decisions};
    const List of_expansions = {section::expansions, section::linear, section::quadratic, section::check_rows};
    const List of_engines = {section::dual_coef, section::support_vectors, section::exact_check_rows};
    for (const std::uint32_t mode : all_modes) {
        const artifact_writer::Model model = small_model(mode);
        List needed = of_all;
        if (mode != exact) needed.insert(needed.end(), of_expansions.begin(), of_expansions.end());
        if (mode != approximate) needed.insert(needed.end(), of_engines.begin(), of_engines.end());
        for (const std::uint32_t identifier : needed) {
            CHECK_EQ(without_section(model, identifier), Status::bad_section);
        }
        CHECK_EQ(without_section(model, artifact_writer::labels), Status::bad_labels);
        CHECK_EQ(without_section(model, artifact_writer::feature_names), Status::ok);
        CHECK_EQ(with_section(model, artifact_writer::plan, {}), Status::ok);
        if (mode == exact) continue;
        for (const std::uint32_t identifier : List{artifact_writer::centers, artifact_writer::router}) {
            CHECK_EQ(without_section(many_model(mode), identifier), Status::bad_section);
        }
        CHECK_EQ(without_section(deep_model(mode), artifact_writer::higher), Status::bad_section);
    }
    for (const artifact_writer::Model& model : {small_model(certified), many_model(certified)}) {
        CHECK_EQ(without_section(model, artifact_writer::direction), Status::ok);
    }
    // What another mode, degree or number of centers has, of the size that it has there, and nothing at all.
    std::vector<artifact_writer::Model> models = all_models();
    models.push_back(approximate_model(3, 1));
    models.push_back(true_model(certified, 3, 5, 0, 1));
    for (const artifact_writer::Model& model : models) {
        Sections sections = artifact_writer::sections_of(model);
        for (const artifact_writer::Model& other : models) {
            for (const artifact_writer::Section& section : artifact_writer::sections_of(other)) {
                if (find(sections, section.identifier) != sections.end()) continue;
                const bool optional =
                    section.identifier == artifact_writer::direction && model.mode == certified && model.degree == 2;
                if (optional) continue;
                for (const Bytes& content : {section.content, Bytes()}) {
                    CHECK_EQ(with_section(model, section.identifier, content), Status::bad_section);
                }
            }
        }
    }
}

TEST(must_outputs) {
    const Bytes by_scores = bytes_of(std::vector<std::uint32_t>{0, 1, 0, 0, 0, 0});
    for (const std::uint32_t mode : all_modes) {
        const artifact_writer::Model model = small_model(mode);
        CHECK_EQ(with_section(model, artifact_writer::outputs, by_scores), Status::ok);
        for (const std::size_t n : {std::size_t{0}, std::size_t{23}, std::size_t{32}}) {
            Bytes wrong = by_scores;
            wrong.resize(n);
            CHECK_EQ(with_section(model, artifact_writer::outputs, wrong), Status::bad_section);
        }
        Sections sections = artifact_writer::sections_of(model);
        const auto place = std::find_if(sections.begin(), sections.end(), [](const artifact_writer::Section& section) {
            return section.identifier > artifact_writer::outputs;
        });
        sections.insert(place, {artifact_writer::outputs, by_scores});
        const Bytes bytes = artifact_writer::laid_out(model, sections);
        const ExactCopy copy(bytes);
        ModelView view;
        CHECK_EQ(open_artifact(copy.data(), bytes.size(), view), Status::ok);
        CHECK(view.outputs.label_rule == LabelRule::scores);
    }
}

TEST(must_center) {
    expect_one_size(artifact_writer::center);
    for (const std::uint32_t mode : all_modes) {
        expect_limits<float>(small_model(mode), artifact_writer::center, 3, {inf32, -inf32, nan32},
                             {std::numeric_limits<float>::max()});
    }
}

TEST(must_decisions) {
    expect_one_size(artifact_writer::decisions);
    for (const std::uint32_t mode : all_modes) {
        expect_limits<double>(small_model(mode), artifact_writer::decisions, 4, {infinite, -infinite, nan64},
                              {0.0, -0.0, 1e308});
        for (const double negative : {-1.0, -0x1p-1074}) {
            CHECK_EQ(with_number(small_model(mode), artifact_writer::decisions, 0, negative), Status::ok);
            for (const std::size_t k : std::vector<std::size_t>{1, 2, 3}) {
                CHECK_EQ(with_number(small_model(mode), artifact_writer::decisions, k, negative),
                         Status::bad_coefficient);
            }
        }
    }
}

TEST(must_expansions) {
    expect_one_size(artifact_writer::expansions);
    constexpr std::size_t record = 18, constant = 0, output_scale = 1, contraction = 12, max_sv_norm = 14;
    for (const std::uint32_t mode : {approximate, certified}) {
        const artifact_writer::Model model = many_model(mode);
        for (const std::size_t c : std::vector<std::size_t>{0, 4}) {
            const auto expect_number = [&](std::size_t k, const std::vector<double>& bad,
                                           const std::vector<double>& good) {
                for (const double number : bad) {
                    CHECK_EQ(with_number(model, artifact_writer::expansions, c * record + k, number),
                             Status::bad_coefficient);
                }
                for (const double number : good) {
                    CHECK_EQ(with_number(model, artifact_writer::expansions, c * record + k, number), Status::ok);
                }
            };
            expect_number(constant, {infinite, -infinite, nan64, 1.0000000000000002, -1.0000000000000002, 1e300},
                          {1.0, -1.0, 0.0});
            expect_number(output_scale, {infinite, -infinite, nan64, 0.0, -2.0, 1.5, 0x1p1001, 0x1p-1001, 0x1p-1074},
                          {0x1p1000, 0x1p-1000, 2.0});
            expect_number(contraction, {infinite, nan64, 0.0, -1.0, -0.5, 0.3, 0.75, 2.0}, {1.0, 0.5, 0.25, 0.125});
            for (std::size_t k = 2; k < record; ++k) {
                if (k == contraction) continue;
                expect_number(k, {-infinite, nan64, -1.0, -0x1p-1074}, {0.0, -0.0, 1e308});
                expect_number(k, {}, {});
                const Status status = with_number(model, artifact_writer::expansions, c * record + k, infinite);
                CHECK_EQ(status, k == max_sv_norm ? Status::ok : Status::bad_coefficient);
            }
        }
    }
}

TEST(must_centers) {
    expect_one_size(artifact_writer::centers);
    for (const std::uint32_t mode : {approximate, certified}) {
        expect_limits<float>(many_model(mode), artifact_writer::centers, 15, {inf32, -inf32, nan32},
                             {std::numeric_limits<float>::max()});
    }
}

TEST(must_linear) {
    expect_one_size(artifact_writer::linear);
    for (const std::uint32_t mode : {approximate, certified}) {
        for (const artifact_writer::Model& model : {small_model(mode), many_model(mode)}) {
            expect_limits<float>(model, artifact_writer::linear, 3 * model.expansions.size(),
                                 {1.0000001f, -1.0000001f, 3e38f, inf32, -inf32, nan32}, {1.0f, -1.0f});
        }
    }
}

TEST(must_quadratic) {
    expect_one_size(artifact_writer::quadratic);
    for (const std::uint32_t mode : {approximate, certified}) {
        for (const artifact_writer::Model& model : {small_model(mode), many_model(mode)}) {
            expect_limits<float>(model, artifact_writer::quadratic, 6 * model.expansions.size(),
                                 {2.0000002f, -2.0000002f, 3e38f, inf32, -inf32, nan32}, {2.0f, -2.0f});
        }
    }
}

TEST(must_higher) {
    expect_one_size(artifact_writer::higher);
    for (const std::uint32_t mode : {approximate, certified}) {  // 10 monomials of degree 3 and 15 of degree 4
        expect_limits<float>(deep_model(mode), artifact_writer::higher, 25,
                             {720.0001f, -720.0001f, 3e38f, inf32, -inf32, nan32}, {720.0f, -720.0f});
    }
}

TEST(must_labels) {
    const auto int64s = [](const std::vector<std::int64_t>& values) { return bytes_of(values); };
    const auto doubles = [](const std::vector<double>& values) { return bytes_of(values); };
    CHECK_EQ(with_labels(1, int64s({5, 5})), Status::bad_labels);
    CHECK_EQ(with_labels(1, int64s({5})), Status::bad_labels);
    CHECK_EQ(with_labels(1, int64s({5, 6, 7})), Status::bad_labels);
    CHECK_EQ(with_labels(0, int64s({5, 6})), Status::bad_labels);
    CHECK_EQ(with_labels(2, doubles({0.5, 0.5})), Status::bad_labels);
    CHECK_EQ(with_labels(2, doubles({0.0, -0.0})), Status::bad_labels);
    CHECK_EQ(with_labels(2, doubles({0.5})), Status::bad_labels);
    for (const double bad : {infinite, -infinite, nan64}) {
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
    for (const std::uint32_t mode : {certified, exact}) {
        CHECK_EQ(with_content(small_model(mode), artifact_writer::labels, int64s({5, 5})), Status::bad_labels);
    }
}

TEST(must_labels_be_for_classification_only) {
    for (const std::uint32_t mode : all_modes) {
        artifact_writer::Model model = small_model(mode);
        const Bytes classification = artifact_writer::written(model);
        CHECK_EQ(with(task_at, 1u, classification), Status::bad_labels);
        CHECK_EQ(with(task_at, 2u, classification), Status::bad_labels);
        drop_labels(model, 1);
        const Bytes regression = artifact_writer::written(model);
        CHECK_EQ(opened(regression), Status::ok);
        CHECK_EQ(with(task_at, 0u, regression), Status::bad_labels);
        CHECK_EQ(with(n_labels_at, 2u, regression), Status::bad_labels);
        CHECK_EQ(with(label_kind_at, 1u, regression), Status::bad_labels);
        for (const Bytes& content : {Bytes(16, 1), Bytes()}) {  // there is there, though it be empty
            CHECK_EQ(with_section(model, artifact_writer::labels, content), Status::bad_labels);
        }
    }
}

TEST(must_check_rows) {
    expect_check_rows(approximate_model(), artifact_writer::check_rows);
    expect_check_rows(small_model(certified), artifact_writer::check_rows);
}

TEST(must_exact_check_rows) {
    expect_check_rows(small_model(certified), artifact_writer::exact_check_rows);
    expect_check_rows(small_model(exact), artifact_writer::exact_check_rows);
}

TEST(must_feature_names) {
    CHECK_EQ(with_names({"a", "b", "a"}), Status::ok);
    CHECK_EQ(with_names({"", "", ""}), Status::ok);
    CHECK_EQ(with_names({"a", "b"}), Status::bad_labels);
    CHECK_EQ(with_names({"a", "b", "c", "d"}), Status::bad_labels);
    for (const std::uint32_t mode : all_modes) {
        CHECK_EQ(with_content(small_model(mode), artifact_writer::feature_names, {}), Status::bad_labels);
    }
}

TEST(must_text_list) {
    for (const std::uint32_t length : {0u, 2u, 5u, 0x7FFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFEu}) {
        for (std::size_t k = 0; k < 3; ++k) {
            Bytes list = artifact_writer::text_list({"a", "b", "c"});
            put(list, 4 * k, length);
            CHECK_EQ(with_content(approximate_model(), artifact_writer::feature_names, list), Status::bad_labels);
        }
    }
    for (const std::string bad : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x9F\xBF",
                                  "\xE1\x80", "\xE1\x80\xC0", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF",
                                  "\xF1\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "a\xFE"}) {
        CHECK_EQ(with_names({"a", bad, "c"}), Status::bad_labels);
        CHECK_EQ(with_names({"a", "b", bad}), Status::bad_labels);
        CHECK_EQ(with_labels(3, artifact_writer::text_list({"a", bad})), Status::bad_labels);
    }
    for (const std::string good : {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                                   "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
        CHECK_EQ(with_names({"a", good, good + "c"}), Status::ok);
    }
    CHECK_EQ(with_names({"\xC3", "\xA9", ""}), Status::bad_labels);  // a character cut in two by the lengths
}

TEST(must_plan) {
    const auto with_plan = [](const artifact_writer::Model& model, const std::string& text) {
        return with_section(model, artifact_writer::plan, Bytes(text.begin(), text.end()));
    };
    for (const std::uint32_t mode : all_modes) {
        for (const std::string good : {"", "a", "na\xC3\xAFve", "\xF4\x8F\xBF\xBF"}) {
            CHECK_EQ(with_plan(small_model(mode), good), Status::ok);
        }
        for (const std::string bad : {"\x80", "a\xFE", "\xC3", "\xED\xA0\x80", "\xE1\x80", "\xF4\x90\x80\x80"}) {
            CHECK_EQ(with_plan(small_model(mode), bad), Status::bad_labels);
        }
    }
}

TEST(must_direction) {
    expect_one_size(artifact_writer::direction);
    for (const artifact_writer::Model& model : {small_model(certified), many_model(certified)}) {
        expect_limits<float>(model, artifact_writer::direction, 6 * model.expansions.size(),
                             {2.0000002f, -2.0000002f, 3e38f, inf32, -inf32, nan32}, {2.0f, -2.0f});
    }
}

TEST(must_dual_coef) {
    for (const std::uint32_t mode : {certified, exact}) {
        const artifact_writer::Model model = small_model(mode);
        for (const std::size_t n_bytes : std::vector<std::size_t>{1, 7, 9, 39, 41}) {
            CHECK_EQ(with_content(model, artifact_writer::dual_coef, Bytes(n_bytes)), Status::bad_section);
        }
        for (const std::size_t n_sv : std::vector<std::size_t>{0, 4, 6}) {  // the vectors are for five
            CHECK_EQ(with_content(model, artifact_writer::dual_coef, Bytes(8 * n_sv)), Status::bad_support_vectors);
        }
        expect_limits<double>(model, artifact_writer::dual_coef, 5, {infinite, -infinite, nan64}, {-1e308, 0.0});
    }
}

// --- the router ---

namespace {

/// Status after a change to the router of a model with five centers in two groups, or in more.
Status with_router(const std::function<void(artifact_writer::Router&)>& change, std::uint32_t n_groups = 2) {
    artifact_writer::Model model = many_model(certified);
    add_router(model, n_groups);
    change(model.router);
    return opened(artifact_writer::written(model));
}

void expect_bad_router(const std::function<void(artifact_writer::Router&)>& change) {
    CHECK_EQ(with_router(change), Status::bad_section);
}

}  // namespace

TEST(must_router_counts) {
    expect_one_size(artifact_writer::router);
    for (std::size_t n_bytes = 0; n_bytes < 80; ++n_bytes) {
        CHECK_EQ(with_content(many_model(certified), artifact_writer::router, Bytes(n_bytes)), Status::bad_section);
    }
    for (const std::uint32_t n_groups : {1u, 2u, 3u, 5u}) {
        CHECK_EQ(with_router([](artifact_writer::Router&) {}, n_groups), Status::ok);
    }
    for (const std::uint32_t wrong : {0u, 1u, 3u, 5u, 6u, 0x40000000u, 0x80000000u, ~0u, ~0u - 1, ~0u - 2}) {
        expect_bad_router([=](artifact_writer::Router& router) { router.n_groups = wrong; });
        expect_bad_router([=](artifact_writer::Router& router) { router.n_panels = wrong; });
        expect_bad_router([=](artifact_writer::Router& router) { router.n_groups = router.n_panels = wrong; });
    }
    // More groups than centers, though everything else suits them.
    artifact_writer::Model model = many_model(certified);
    add_router(model, {{0}, {1}, {2}, {3}, {4}, {0}}, {0, 1, 2, 3, 4, 0});
    CHECK_EQ(opened(artifact_writer::written(model)), Status::bad_section);
    add_router(model, {{0}, {1}, {2}, {3}, {4}}, {0, 1, 2, 3, 4});
    CHECK_EQ(opened(artifact_writer::written(model)), Status::ok);
}

TEST(must_router_starts) {
    for (const std::uint32_t wrong : {1u, 2u, ~0u}) {
        expect_bad_router([=](artifact_writer::Router& router) { router.starts[0] = wrong; });
    }
    for (const std::uint32_t wrong : {0u, 2u, 3u, 0x80000000u, ~0u}) {
        expect_bad_router([=](artifact_writer::Router& router) { router.starts[1] = wrong; });
    }
    for (const std::uint32_t wrong : {0u, 1u, 3u, ~0u}) {
        expect_bad_router([=](artifact_writer::Router& router) { router.starts[2] = wrong; });
    }
    // Lists of 256 panels, but no longer ones.
    for (const std::size_t n_panels : std::vector<std::size_t>{256, 257}) {
        artifact_writer::Model model = many_model(approximate);
        add_router(model, {{0}, std::vector<std::uint32_t>(16 * n_panels, 1)}, {0, 1});
        CHECK_EQ(opened(artifact_writer::written(model)), n_panels == 256 ? Status::ok : Status::bad_section);
    }
    for (const std::uint32_t n_groups : {4096u, 4097u}) {  // and as many groups
        artifact_writer::Model model = approximate_model(1, 1, n_groups);
        add_router(model, n_groups);
        CHECK_EQ(opened(artifact_writer::written(model)), n_groups == 4096 ? Status::ok : Status::bad_section);
    }
}

TEST(must_router_members) {
    for (std::size_t k = 0; k < 32; ++k) {
        for (const std::uint32_t wrong : {5u, 6u, 0x80000000u, ~0u}) {
            expect_bad_router([=](artifact_writer::Router& router) { router.members[k] = wrong; });
        }
        // Any center will do in any slot.
        CHECK_EQ(with_router([=](artifact_writer::Router& router) { router.members[k] = 4; }), Status::ok);
    }
}

TEST(must_router_padding) {
    const Bytes bytes = artifact_writer::written(many_model(approximate));
    const std::size_t first = content_of(bytes, artifact_writer::router), used = 4 * (2 + 3 + 32);
    for (std::size_t k = used; k < (used + 63) / 64 * 64; ++k) {
        Bytes changed = bytes;
        put(changed, first + k, std::uint8_t{1});
        seal(changed);
        CHECK_EQ(opened(changed), Status::bad_section);
    }
}

TEST(must_router_panels) {
    const std::size_t n = many_model(approximate).router.panels.size();
    CHECK_EQ(n, std::size_t{3 * 16 * 4});
    for (std::size_t k = 0; k < n; k += 5) {
        for (const float bad : {inf32, -inf32, nan32}) {
            CHECK_EQ(with_router([=](artifact_writer::Router& router) { router.panels[k] = bad; }),
                     Status::bad_coefficient);
        }
        for (const float good : {3.4e38f, -3.4e38f, 0.0f}) {
            CHECK_EQ(with_router([=](artifact_writer::Router& router) { router.panels[k] = good; }), Status::ok);
        }
    }
}

// --- replayed rows ---

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
