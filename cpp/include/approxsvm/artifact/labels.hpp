// A model's labels, of any type, as printable strings.
#ifndef APPROXSVM_ARTIFACT_LABELS_HPP
#define APPROXSVM_ARTIFACT_LABELS_HPP

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "reader.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// One label; a string label points into the artifact's bytes. The kind `none` means that the label does not exist.
struct Label {
    LabelKind kind = LabelKind::none;
    std::int64_t integer = 0;
    double real = 0.0;
    std::string_view text{};
};

// Number of bytes sufficient for any number as a string.
constexpr std::size_t label_digits = 32;

// Returns the shortest decimal string, of at most 17 digits, that parses back to exactly `number`.
inline std::string_view digits_of(double number, char (&room)[label_digits]) {
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
    return {room, static_cast<std::size_t>(std::to_chars(room, room + label_digits, number).ptr - room)};
#else
    int length = 0;
    for (int precision = 15; precision <= 17; ++precision) {
        length = std::snprintf(room, label_digits, "%.*g", precision, number);
        if (std::strtod(room, nullptr) == number) break;
    }
    return {room, static_cast<std::size_t>(length)};
#endif
}

// Returns the label as a string; numbers are written to `room`. The string is empty if there is no label.
inline std::string_view text_of(const Label& label, char (&room)[label_digits]) {
    switch (label.kind) {
        case LabelKind::int64:
            return {room, static_cast<std::size_t>(std::to_chars(room, room + label_digits, label.integer).ptr - room)};
        case LabelKind::float64:
            return digits_of(label.real, room);
        case LabelKind::text:
            return label.text;
        case LabelKind::none:
            break;
    }
    return {};
}

// Supports std::cout << label without including <ostream>.
template <class Stream>
inline auto operator<<(Stream& stream, const Label& label) -> decltype(stream.write("", 0), stream) {
    char room[label_digits];
    const std::string_view text = text_of(label, room);
    stream.write(text.data(), static_cast<std::ptrdiff_t>(text.size()));
    return stream;
}

// Returns the number of labels that a model can predict; 0 for a regressor.
inline std::size_t n_labels_of(const ModelView& model) {
    return model.task == Task::one_class ? 2 : model.task == Task::classification ? model.n_labels : 0;
}

// Returns the label at an index returned by evaluate(): 1 or -1 for a one-class model. For a regressor, or an index
// past the last label, the label has the kind `none`.
inline Label label_at(const ModelView& model, std::size_t position) {
    Label label;
    if (position >= n_labels_of(model)) return label;
    if (model.task == Task::one_class) {
        label.kind = LabelKind::int64;
        label.integer = position == 0 ? 1 : -1;
        return label;
    }
    label.kind = model.label_kind;
    if (label.kind == LabelKind::int64) label.integer = read_at<std::int64_t>(model.labels, 8 * position);
    if (label.kind == LabelKind::float64) label.real = read_at<double>(model.labels, 8 * position);
    if (label.kind == LabelKind::text) {
        const Text text = text_at(model.labels, model.n_labels, position);
        label.text = {text.data, text.length};
    }
    return label;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
