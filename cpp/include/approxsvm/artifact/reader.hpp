// Reads an artifact in place (models/FORMAT.md). Every MUST of the format is checked before a pointer into the artifact
// is returned; nothing is copied or allocated; and no byte sequence makes the reader read outside [bytes, bytes +
// n_bytes). Python also opens artifacts with this reader; only the labels' data types, which no other language uses,
// are checked by Python code.
#ifndef APPROXSVM_ARTIFACT_READER_HPP
#define APPROXSVM_ARTIFACT_READER_HPP

#include <cmath>
#include <cstring>

#include "header.hpp"
#include "sections/categories.hpp"
#include "sections/combination.hpp"
#include "sections/input_map.hpp"
#include "sections/outputs.hpp"
#include "sections/router.hpp"
#include "sections/subspaces.hpp"
#include "support_vectors.hpp"
#include "texts.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <Parts parts>
APPROXSVM_COLD inline Status describe_artifact(const unsigned char* bytes, std::size_t n_bytes, ModelView& model,
                                               ArtifactFault* fault);

// Records the parts needed by the model, and rejects it if the program's list lacks one of them.
template <Parts parts>
APPROXSVM_COLD inline Status note_parts(ModelView& model, Parts needed) {
    model.needed |= needed;
    return (needed & ~parts) == 0 ? Status::ok : Status::left_out;
}

// Checks an expansion in a subspace's coordinates. The expansion is a complete artifact: a regressor with one center at
// the origin.
template <Parts parts>
APPROXSVM_COLD inline Status check_subspace_expansion(const unsigned char* bytes, std::size_t n_bytes,
                                                      const ModelView& outer, ArtifactFault* fault) {
    Status status = check_envelope(bytes, n_bytes, fault);
    if (status != Status::ok) return status;
    Check check(fault, section::none, Status::bad_section), center(fault, section::center, Status::bad_section),
        decisions(fault, section::decisions, Status::bad_section), map(fault, section::input_map, Status::bad_section);
    const Header header = header_of(bytes);
    check(field::header_mode, header.mode, equal_to(number_of(Mode::approximate)));
    check(field::header_task, header.task, equal_to(number_of(Task::regression)));
    check(field::header_kernel, header.kernel, equal_to(number_of(KernelKind::gaussian)));
    check(field::header_n_centers, header.n_centers, equal_to(1));
    check(field::header_n_decisions, header.n_decisions, equal_to(1));
    check(field::header_n_features, header.n_features, equal_to(outer.subspaces.coordinates[0]));
    check(field::header_gamma, header.gamma, equal_to(outer.gamma));
    check(field::header_input_scale, header.input_scale, equal_to(outer.input_scale));
    if (check.status() != Status::ok) return check.status();
    ModelView inner;
    status = describe_artifact<parts>(bytes, n_bytes, inner, fault);
    if (status != Status::ok) return status;
    if (!decisions(field::decisions_intercept, inner.decisions[0].intercept, equal_to(0.0), 0))
        return decisions.status();
    if (inner.has_input_map && !is_where_wanted(map, {1, 0}, inner, false)) return map.status();
    center.each(field::any_number, inner.center, inner.n_features, equal_to(0.0));
    return center.status();
}

// Reads the array sections, and checks the relations between their elements.
template <Parts parts>
APPROXSVM_COLD inline Status read_arrays(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    Layouts layouts(model, sections);
    const Status status = layouts.check_presence(sections, model, fault);
    if (status != Status::ok) return status;
    model.n_varying = model.n_features;
    model.subspaces.expansion = sections.at(section::subspace_expansion);
    Walk walk(sections, fault);
    layouts.read<parts>(walk, model);
    if (walk.status() != Status::ok) return walk.status();
    if (model.n_centers == 1) model.centers = model.center;
    model.n_terms = layouts.n_exact_terms();
    if (!sections.at(section::support_vectors)) return Status::ok;
    PackedVectorsParser parser(sections.at(section::support_vectors), sections[section::support_vectors].bytes, fault);
    return parser.parse(model.n_sv, model.n_features, model.packed);
}

// Checks the relations between elements of a section, and the artifact in the section "subspace_expansion".
template <Parts parts>
APPROXSVM_COLD inline Status check_relations(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    if constexpr (has(parts, rbf)) {
        const Status status = model.n_centers > 1 ? check_router(model.router, fault) : Status::ok;
        if (status != Status::ok) return status;
    }
    if (!sections.at(section::subspaces)) return Status::ok;
    Status status = note_parts<parts>(model, subspaces);
    if constexpr (has(parts, subspaces)) {
        if (status == Status::ok) status = check_subspaces(model, fault);
        if (status != Status::ok || !model.subspaces.expansion) return status;
        const std::size_t n_bytes = sections[section::subspace_expansion].bytes;
        status = check_subspace_expansion<parts>(model.subspaces.expansion, n_bytes, model, fault);
        if (status != Status::ok && fault) fault->in_subspace_expansion = true;
    }
    return status;
}

// Reads the section "outputs", which specifies how outputs are computed from values.
template <Parts parts>
APPROXSVM_COLD inline Status read_any_outputs(const SectionTable& sections, const OutputsOf& of, ModelView& model,
                                              ArtifactFault* fault) {
    const unsigned char* const bytes = sections.at(section::outputs);
    const Status status = bytes ? note_parts<parts>(model, probabilities) : Status::ok;
    if constexpr (has(parts, probabilities)) {
        return read_outputs(bytes, sections[section::outputs].bytes, of, model.outputs, fault);
    }
    return status;
}

// Reads the section that specifies how raw rows are mapped to model rows.
template <Parts parts>
APPROXSVM_COLD inline Status read_any_input_map(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    const unsigned char* const bytes = sections.at(section::input_map);
    model.has_input_map = bytes != nullptr;
    constexpr Parts ops = has(parts, pipelines) ? pipelines : scalers;
    if (bytes && !has(parts, scalers)) return note_parts<parts>(model, scalers);
    const Status status = read_input_map<ops>(bytes, sections[section::input_map].bytes, model.n_raw_features,
                                              model.n_features, model.input_map, fault);
    if (status == Status::left_out) return note_parts<parts>(model, pipelines);
    return status == Status::ok && bytes ? note_parts<parts>(model, model.input_map.scales_alone ? scalers : pipelines)
                                         : status;
}

// Reads all sections of a non-ensemble model.
template <Parts parts>
APPROXSVM_COLD inline Status read_model(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    Status status = note_parts<parts>(model, rules_of(model).part);
    if (status == Status::ok) status = read_any_outputs<parts>(sections, {model.task, model.n_labels}, model, fault);
    if (status != Status::ok) return status;
    Check header(fault, section::none, Status::bad_header);
    const std::size_t n_targets = model.task == Task::regression ? max_n_targets : 1;
    if (!has_classes(model)) header(field::header_majority_only, model.majority_only ? 1u : 0u, equal_to(0));
    if (!header(field::header_n_decisions, model.n_decisions,
                model.n_labels > 2 ? equal_to(n_decisions_of(model.n_labels, model.outputs.decision_shape))
                                   : from_to(1, n_targets)))
        return header.status();
    if (is_gaussian(model))
        status = note_parts<parts>(model, has_classes(model)   ? one_vs_one
                                          : has_several(model) ? several_functions
                                                               : Part{});
    if (status == Status::ok) status = read_any_input_map<parts>(sections, model, fault);
    if (status != Status::ok) return status;
    status = read_arrays<parts>(sections, model, fault);
    return status == Status::ok ? check_relations<parts>(sections, model, fault) : status;
}

// --- members of an ensemble

// Calls visit(member) for one member after another until visit() does not return ok. The members must have been
// validated.
template <class Visit>
inline Status for_members(const ModelView& ensemble, const Visit& visit) {
    const unsigned char* bytes = ensemble.members;
    for (std::size_t k = 0; k < ensemble.n_members; ++k) {
        const std::size_t n_bytes = static_cast<std::size_t>(header_of(bytes).file_bytes);
        ModelView member;
        Status status = ensemble.describe(bytes, n_bytes, member, nullptr);
        if (status == Status::ok) status = visit(member);
        if (status != Status::ok) return status;
        bytes += n_bytes;
    }
    return Status::ok;
}

// Checks an ensemble member, and counts its columns.
template <Parts parts>
APPROXSVM_COLD inline Status check_member(const unsigned char* bytes, std::size_t n_bytes, ModelView& ensemble,
                                          std::size_t& n_columns, ArtifactFault* fault) {
    Status status = check_envelope(bytes, n_bytes, fault);
    if (status != Status::ok) return status;
    Check kind(fault, section::none, Status::bad_section), same(fault, section::none, Status::bad_labels),
        labels(fault, section::labels, Status::bad_labels), outputs(fault, section::outputs, Status::bad_section);
    if (!kind(field::header_mode, header_of(bytes).mode, up_to(Mode::exact))) return kind.status();
    ModelView member;
    status = describe_artifact<parts>(bytes, n_bytes, member, fault);
    ensemble.needed |= member.needed;
    if (status != Status::ok) return status;
    const bool classifies = member.task == Task::classification, has_labels = is_of_targets(ensemble);
    // Only classifiers vote. A regressor's values may be columns of any ensemble, and the sign of a value may select
    // one of two labels.
    same(field::header_task, number_of(member.task),
         ensemble.task != Task::classification            ? equal_to(number_of(Task::regression))
         : ensemble.combination.columns == Columns::votes ? equal_to(number_of(Task::classification))
                                                          : up_to(Task::regression));
    same(field::header_n_raw_features, member.n_raw_features, equal_to(ensemble.n_raw_features));
    if (has_labels && !classifies) same(field::header_n_labels, ensemble.n_labels, equal_to(2));
    if (same.status() != Status::ok || (classifies && has_labels && !labels_are_among(labels, member, ensemble)))
        return Status::bad_labels;
    n_columns += n_columns_of(ensemble, member);
    // A member with more than two labels and no probabilities has scores, which cannot be averaged.
    const bool has_scores = member.n_labels > 2 && member.outputs.probability == ProbabilityKind::none &&
                            ensemble.outputs.probability != ProbabilityKind::members_mean;
    if (classifies && ensemble.combination.columns == Columns::numbers && !has_scores &&
        rules_of(member.outputs.probability).gives != Gives::of_classes)
        outputs.refuse(field::outputs_probability, number_of(member.outputs.probability),
                       from_to(1u, number_of(ProbabilityKind::members_mean) - 1));
    return outputs.status();
}

// Returns the number of members, computed from the unchecked sizes in their headers; 0 if these are wrong.
APPROXSVM_COLD inline std::size_t count_members(const unsigned char* bytes, std::size_t n_bytes) {
    std::size_t n = 0;
    for (std::size_t at = 0; at < n_bytes; ++n) {
        if (n_bytes - at < header_bytes) return 0;
        const std::uint64_t size = header_of(bytes + at).file_bytes;
        if (size < header_bytes || size > n_bytes - at) return 0;
        at += static_cast<std::size_t>(size);
    }
    return n;
}

// Reads the members and the section that combines them. The members are consecutive complete artifacts; none is an
// ensemble, and all have the same raw columns.
template <Parts parts>
APPROXSVM_COLD inline Status read_members(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    Status status = read_combination(sections, model, fault);
    if (status == Status::ok)
        status = read_any_outputs<parts>(sections, {model.task, model.n_labels, &model.combination}, model, fault);
    if (status != Status::ok) return status;
    const Section& section = sections[section::members];
    Check check(fault, section::members, Status::bad_section), header(fault, section::none, Status::bad_header),
        combination(fault, section::combination, Status::bad_section),
        outputs(fault, section::outputs, Status::bad_section);
    model.members = sections.at(section::members);
    std::size_t n_columns = 0;
    for (std::size_t at = 0; at < section.bytes; ++model.n_members) {
        const unsigned char* member = model.members + at;
        const std::size_t left = section.bytes - at;
        check(field::any_n_members, model.n_members + 1, from_to(1, max_n_members));
        if (!check(field::any_size, section.bytes, at_least(at + header_bytes))) return check.status();
        const std::uint64_t n_bytes = header_of(member).file_bytes;
        check(field::header_file_bytes, n_bytes, from_to(header_bytes, left), model.n_members);
        check(field::header_file_bytes, n_bytes, Expected{Rule::multiple_of, stored(section_alignment), {}},
              model.n_members);
        if (check.status() != Status::ok) return check.status();
        status = check_member<parts>(member, static_cast<std::size_t>(n_bytes), model, n_columns, fault);
        if (status != Status::ok) {
            if (fault) fault->member = static_cast<std::uint32_t>(model.n_members);
            return status;
        }
        at += static_cast<std::size_t>(n_bytes);
    }
    if (!check(field::any_n_members, model.n_members, from_to(1, max_n_members))) return check.status();
    const CombinationView& view = model.combination;
    if (!combination(field::combination_n_columns, view.n_columns, equal_to(n_columns))) return combination.status();
    const bool has_numbers = view.columns == Columns::numbers, classifies = model.task == Task::classification,
               has_values = has_numbers && model.outputs.probability != ProbabilityKind::members_mean;
    const std::size_t n_values = view.n_values > 0 ? view.n_values : n_columns;
    if (classifies && has_numbers) {
        if (!is_where_wanted(outputs, sections[section::outputs], model, true)) return outputs.status();
        combination(field::combination_n_values, n_values, equal_to(n_values_of(model.outputs, model.n_labels)));
        if (!has_values) {  // the ensemble computes a mean, whose quotients must not overflow
            double largest = 0.0;
            for (std::size_t k = 0; view.n_values > 0 && k < view.starts[n_columns]; ++k)
                largest = std::fmax(largest, std::fabs(view.weights[k]));
            outputs(field::outputs_total, model.outputs.numbers[0], at_least(0x1p-900 * largest));
        }
    }
    if (combination.status() != Status::ok) return combination.status();
    if (outputs.status() != Status::ok) return outputs.status();
    header(field::header_n_decisions, model.n_decisions, equal_to(has_values ? n_values : 0));
    header(field::header_n_features, model.n_features, equal_to(model.n_raw_features));
    return header.status();
}

// Checks one complete artifact, except the header's bytes up to the checksum.
template <Parts parts>
APPROXSVM_COLD inline Status describe_artifact(const unsigned char* bytes, std::size_t n_bytes, ModelView& model,
                                               ArtifactFault* fault) {
    model = ModelView{};
    model.describe = describe_artifact<parts>;
    SectionTable sections{};
    Status status = read_header(bytes, model, fault);
    if (status == Status::ok) status = read_sections(bytes, n_bytes, sections, fault);
    for (std::uint32_t id = 1; id < section::end; ++id) model.sections[id] = sections.at(static_cast<section::Id>(id));
    if (status == Status::ok)
        status = model.mode != Mode::ensemble ? read_model<parts>(sections, model, fault)
                                              : Layouts(model, sections).check_presence(sections, model, fault);
    if (status == Status::ok) status = read_labels_and_texts(sections, model, fault);
    if (status == Status::ok && sections.at(section::categories)) status = note_parts<parts>(model, text_columns);
    if constexpr (has(parts, text_columns)) {
        if (status == Status::ok) status = read_categories(sections, model, fault);
    }
    if (status != Status::ok || model.mode != Mode::ensemble) return status;
    status = note_parts<parts>(model, ensembles);
    if constexpr (has(parts, ensembles)) return read_members<parts>(sections, model, fault);
    return status;
}

// Validates an artifact and describes it in `model`. If `fault` is not null, a fault is stored in it. The memory at
// `bytes` must remain valid and unchanged while `model` is used. After Status::left_out, model.needed contains the
// parts needed.
template <Parts parts = all_parts>
APPROXSVM_COLD inline Status open_artifact(const void* data, std::size_t n_bytes, ModelView& model,
                                           ArtifactFault* fault = nullptr) {
    const unsigned char* bytes = static_cast<const unsigned char*>(data);
    if (fault) *fault = ArtifactFault{};
    if (reinterpret_cast<std::uintptr_t>(bytes) % 8 != 0) return Status::misaligned;
    const Status status = check_envelope(bytes, n_bytes, fault);
    return status == Status::ok ? describe_artifact<parts>(bytes, n_bytes, model, fault) : status;
}

// --- check rows

// Returns the next 64-bit random number from the generator SplitMix64 (Steele, Lea and Flood).
inline std::uint64_t splitmix64(std::uint64_t& state) {
    std::uint64_t x = state += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

// Computes check row k as defined by the format: center_j + amplitude / input_scale * (integer in [-128, 127]) / 128 in
// float32.
inline void make_check_row(const ModelView& model, const float* center, const CheckRecord* records, std::size_t k,
                           float* row) {
    const double amplitude = records[k].amplitude;
    std::uint64_t state = k;
    for (std::size_t j = 0; j < model.n_features; ++j) {
        const int step = static_cast<int>(splitmix64(state) >> 56) - 128;
        row[j] = center[j] + static_cast<float>(step * (amplitude / 128.0 / model.input_scale));
    }
}

// Returns the index of the center, or of the decision function, that check row k of n_rows tests; the check rows are
// distributed evenly over all n_all centers or functions.
constexpr std::size_t check_row_position(std::size_t n_all, std::size_t k, std::size_t n_rows) {
    return static_cast<std::size_t>(std::uint64_t{k} * n_all / n_rows);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
