// An artifact's strings, and its labels of any kind.
#ifndef APPROXSVM_ARTIFACT_TEXTS_HPP
#define APPROXSVM_ARTIFACT_TEXTS_HPP

#include <cstring>

#include "envelope.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Returns the index of the first byte that is not part of a valid UTF-8 character, or n if all bytes are valid.
inline std::size_t utf8_length(const unsigned char* p, std::size_t n) {
    std::size_t i = 0;
    while (i < n) {
        const unsigned char c = p[i];
        const std::size_t more = c < 0x80                  ? 0
                                 : (c >= 0xC2 && c < 0xE0) ? 1
                                 : (c >= 0xE0 && c < 0xF0) ? 2
                                 : (c >= 0xF0 && c < 0xF5) ? 3
                                                           : 4;
        if (more == 4 || more >= n - i) return i;
        for (std::size_t k = 1; k <= more; ++k) {
            if ((p[i + k] & 0xC0) != 0x80) return i;
        }
        if (c == 0xE0 && p[i + 1] < 0xA0) return i;  // an overlong encoding
        if (c == 0xED && p[i + 1] > 0x9F) return i;  // a surrogate
        if (c == 0xF0 && p[i + 1] < 0x90) return i;  // an overlong encoding
        if (c == 0xF4 && p[i + 1] > 0x8F) return i;  // a character above U+10FFFF
        i += more + 1;
    }
    return n;
}

// Checks that bytes [first, first + n) of a section are valid UTF-8.
APPROXSVM_COLD inline bool is_utf8(Check& check, const unsigned char* section, std::size_t first, std::size_t n) {
    const std::size_t length = utf8_length(section + first, n);
    return length == n ? check.status() == Status::ok
                       : check.refuse(field::any_text_byte, section[first + length], Expected{Rule::utf8, {}, {}},
                                      first + length);
}

// Checks a list of n strings: n lengths as uint32, then the UTF-8 bytes.
APPROXSVM_COLD inline bool is_text_list(Check& check, const unsigned char* p, std::size_t bytes, std::size_t n) {
    if (!check(field::any_size, bytes, at_least(ClaimedSize{4} * n))) return false;
    std::size_t used = 4 * n;
    for (std::size_t k = 0; k < n; ++k) {
        const std::size_t length = read_at<std::uint32_t>(p, 4 * k);
        if (!check(field::any_text_size, length, from_to(0, bytes - used), k) || !is_utf8(check, p, used, length))
            return false;
        used += length;
    }
    return check(field::any_size, bytes, equal_to(used));
}

struct Text {
    const char* data;
    std::size_t length;
};

// Iterates over the strings of a valid list.
class TextReader {
  public:
    TextReader(const unsigned char* list, std::size_t n) : lengths_(list), text_(list + 4 * n) {}
    Text next() {
        const Text text{reinterpret_cast<const char*>(text_), read_at<std::uint32_t>(lengths_, 0)};
        lengths_ += 4;
        text_ += text.length;
        return text;
    }

  private:
    const unsigned char *lengths_, *text_;
};

// Returns string k of a valid list.
inline Text text_at(const unsigned char* list, std::size_t n, std::size_t k) {
    TextReader reader(list, n);
    for (std::size_t i = 0; i < k; ++i) reader.next();
    return reader.next();
}

inline bool is_same(const Text& a, const Text& b) {
    return a.length == b.length && std::memcmp(a.data, b.data, a.length) == 0;
}

// Returns the number that identifies a label in a fault: the label itself if it is numeric, or else its index.
inline StoredNumber told_of_label(const ModelView& model, std::size_t k) {
    switch (model.label_kind) {
        case LabelKind::int64:
            return stored(static_cast<double>(read_at<std::int64_t>(model.labels, 8 * k)));
        case LabelKind::float64:
            return stored(read_at<double>(model.labels, 8 * k));
        default:
            return stored(k);
    }
}

// Checks that no two labels are equal. The list must be readable. All pairs are compared, because lists are short.
APPROXSVM_COLD inline bool labels_are_distinct(Check& check, const ModelView& model) {
    const unsigned char* p = model.labels;
    const std::size_t n = model.n_labels;
    TextReader texts(p, n);
    for (std::size_t i = 0; i < n; ++i) {
        const Text text = model.label_kind == LabelKind::text ? texts.next() : Text{};
        TextReader later = texts;
        for (std::size_t j = i + 1; j < n; ++j) {
            const bool same = model.label_kind == LabelKind::text ? is_same(text, later.next())
                              : model.label_kind == LabelKind::int64
                                  ? read_at<std::int64_t>(p, 8 * i) == read_at<std::int64_t>(p, 8 * j)
                                  : read_at<double>(p, 8 * i) == read_at<double>(p, 8 * j);
            if (same)
                return check.refuse(field::any_label, told_of_label(model, j), Expected{Rule::distinct, stored(i), {}},
                                    j);
        }
    }
    return check.status() == Status::ok;
}

// Reads labels and raw column names; checks that the plans, vectorizers and dtypes are UTF-8.
APPROXSVM_COLD inline Status read_labels_and_texts(const SectionTable& sections, ModelView& model,
                                                   ArtifactFault* fault) {
    const Section& section = sections[section::labels];
    Check header(fault, section::none, Status::bad_labels), labels(fault, section::labels, Status::bad_labels),
        names(fault, section::feature_names, Status::bad_labels);
    const bool classifies = model.task == Task::classification;
    model.labels = sections.bytes + section.offset;
    header(field::header_n_labels, model.n_labels, classifies ? at_least(2) : equal_to(0));
    header(field::header_label_kind, number_of(model.label_kind), classifies ? at_least(1) : equal_to(0));
    if (header.status() != Status::ok) return header.status();
    if (classifies) {
        const std::size_t n = model.n_labels;
        bool valid = model.label_kind == LabelKind::text ? is_text_list(labels, model.labels, section.bytes, n)
                                                         : labels(field::any_size, section.bytes, equal_to(8 * n));
        for (std::size_t i = 0; valid && model.label_kind == LabelKind::float64 && i < n; ++i) {
            valid = labels(field::any_label, read_at<double>(model.labels, 8 * i), finite_number, i);
        }
        if (valid) labels_are_distinct(labels, model);
    }
    if (labels.status() != Status::ok) return labels.status();
    model.feature_names = sections.at(section::feature_names);
    if (model.feature_names)
        is_text_list(names, model.feature_names, sections[section::feature_names].bytes, model.n_raw_features);
    if (names.status() != Status::ok) return names.status();
    for (const section::Id id : {section::plan, section::vectorizers, section::dtypes, section::build_plan}) {
        Check text(fault, id, id == section::plan ? Status::bad_labels : Status::bad_section);
        if (sections.at(id) && !is_utf8(text, sections.at(id), 0, sections[id].bytes)) return text.status();
    }
    return Status::ok;
}

// Returns the index of a member's label k among the ensemble's labels, which have the same type, or the number of the
// ensemble's labels if label k is not among them.
inline std::size_t position_in(const ModelView& ensemble, const ModelView& member, std::size_t k) {
    const bool by_text = member.label_kind == LabelKind::text;
    const Text own = by_text ? text_at(member.labels, member.n_labels, k) : Text{};
    TextReader others(ensemble.labels, ensemble.n_labels);
    std::size_t at = 0;
    while (at < ensemble.n_labels && !(by_text ? is_same(own, others.next())
                                               : std::memcmp(member.labels + 8 * k, ensemble.labels + 8 * at, 8) == 0))
        ++at;
    return at;
}

// Returns whether the ensemble has all labels of a member that predicts one of its targets.
APPROXSVM_COLD inline bool labels_are_among(Check& check, const ModelView& member, const ModelView& ensemble) {
    if (!check(field::header_label_kind, number_of(member.label_kind), equal_to(number_of(ensemble.label_kind))))
        return false;
    for (std::size_t k = 0; k < member.n_labels; ++k) {
        if (position_in(ensemble, member, k) == ensemble.n_labels)
            return check.refuse(field::any_label, told_of_label(member, k),
                                Expected{Rule::some_label_of_ensemble, {}, {}}, k);
    }
    return check.status() == Status::ok;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
