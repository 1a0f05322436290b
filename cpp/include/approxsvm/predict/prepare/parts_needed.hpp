// The parts (parts.hpp) that a program needs for a model.
#ifndef APPROXSVM_PREDICT_PREPARE_PARTS_NEEDED_HPP
#define APPROXSVM_PREDICT_PREPARE_PARTS_NEEDED_HPP

#include "prepared_model.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Returns the parts needed by the model's layout on any target; the reader has recorded the other parts.
inline Parts parts_laid_out(const ModelView& model) {
    Parts parts = may_have_few_values(model) ? few_values : Part{};
    if ((is_gaussian(model) && has_engines(model) && engine_at_reference(model)) || by_columns(model)) parts |= sparse;
    return parts;
}

// Returns all parts needed by an opened model.
APPROXSVM_COLD inline Parts parts_needed(const ModelView& model) {
    Parts needed = model.needed;
    if (model.n_members == 0) return needed | parts_laid_out(model);
    for_members(model, [&](const ModelView& member) {
        needed |= parts_laid_out(member);
        return Status::ok;
    });
    return needed;
}

// Returns all parts needed by an artifact, or an empty set if the bytes are not an artifact. Reads only the headers of
// the artifact and its sections, because the code for other parts may be missing.
APPROXSVM_COLD inline Parts parts_at_sight(const unsigned char* bytes, std::size_t n_bytes, bool is_member = false) {
    ModelView model{};
    SectionTable sections{};
    if (check_envelope(bytes, n_bytes, nullptr) != Status::ok || read_header(bytes, model, nullptr) != Status::ok)
        return 0;
    if (read_sections(bytes, n_bytes, sections, nullptr) != Status::ok) return 0;
    Parts parts = sections.at(section::categories) ? text_columns : Part{};
    if (const unsigned char* const outputs = sections.at(section::outputs)) {
        parts |= probabilities;
        if (sections[section::outputs].bytes < sizeof(OutputsHeader)) return parts;
        const std::uint32_t shape = read_at<OutputsHeader>(outputs, 0).decision_shape;
        if (shape >= number_of(DecisionShape::each)) model.outputs.decision_shape = DecisionShape::each;
    }
    if (model.mode == Mode::ensemble) {
        if (is_member) return 0;  // the reader rejects nested ensembles
        parts |= ensembles;
        const unsigned char* member = sections.at(section::members);
        for (std::size_t n = member ? count_members(member, sections[section::members].bytes) : 0; n > 0; --n) {
            const std::size_t size = static_cast<std::size_t>(header_of(member).file_bytes);
            parts |= parts_at_sight(member, size, true);
            member += size;
        }
        return parts;
    }
    parts |= rules_of(model).part;
    if (is_gaussian(model)) parts |= has_classes(model) ? one_vs_one : has_several(model) ? several_functions : Part{};
    if (const unsigned char* const map = sections.at(section::input_map))
        parts |= only_scales(map, sections[section::input_map].bytes) ? scalers : pipelines;
    if (sections.at(section::subspaces)) parts |= subspaces;
    const bool is_known = model.n_decisions > 0 && read_arrays<Parts{}>(sections, model, nullptr) == Status::ok;
    return is_known ? parts | parts_laid_out(model) : parts;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
