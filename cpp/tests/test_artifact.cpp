#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>

#include "artifact_models.hpp"
#include "check.hpp"
#include "exercise.hpp"

// What breaks a MUST of models/FORMAT.md: tests/broken_artifacts.py.

using namespace approxsvm;

// Minus zero is at least zero, and has a sign that tables of bounds, looked up by the bits of a distance, do not know.
TEST(a_gamma_of_minus_zero_is_zero) {
    artifact_writer::Model model = artifact_models::true_model(artifact_writer::certified);
    model.gamma = -0.0;
    const artifact_writer::Bytes bytes = artifact_writer::written(model);
    const artifact_writer::ExactCopy copy(bytes);
    ModelView view;
    CHECK_EQ(open_artifact(copy.data(), bytes.size(), view), Status::ok);
    CHECK(!std::signbit(view.gamma) && !std::signbit(view.half_theta));
    CHECK_EQ(exercise::complaint_about(view), "");
}

TEST(labels_print_as_what_they_are) {
    const auto printed = [](const ModelView& model, std::size_t position) {
        std::ostringstream stream;
        stream << label_at(model, position);
        return stream.str();
    };
    ModelView model{};
    model.task = Task::classification;
    model.n_labels = 2;
    model.label_kind = LabelKind::int64;
    alignas(8) unsigned char bytes[16];
    const std::int64_t integers[] = {-7, std::numeric_limits<std::int64_t>::max()};
    std::memcpy(bytes, integers, sizeof bytes);
    model.labels = bytes;
    CHECK_EQ(printed(model, 0), "-7");
    CHECK_EQ(printed(model, 1), "9223372036854775807");
    CHECK(label_at(model, 2).kind == LabelKind::none);

    model.label_kind = LabelKind::float64;
    const double numbers[] = {0.1, -1.5e300};
    std::memcpy(bytes, numbers, sizeof bytes);
    CHECK_EQ(printed(model, 0), "0.1");
    CHECK_EQ(printed(model, 1), "-1.5e+300");

    model.label_kind = LabelKind::text;
    const std::uint32_t lengths[] = {2, 4};
    std::memcpy(bytes, lengths, 8);
    std::memcpy(bytes + 8, "nokept", 6);
    CHECK_EQ(printed(model, 0), "no");
    CHECK_EQ(printed(model, 1), "kept");

    model.task = Task::one_class;
    model.label_kind = LabelKind::none;
    model.n_labels = 0;
    CHECK_EQ(printed(model, 0), "1");
    CHECK_EQ(printed(model, 1), "-1");
    model.task = Task::regression;
    CHECK_EQ(printed(model, 0), "");
}
